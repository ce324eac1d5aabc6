"""Settings by name, also those inside others: `gpt2` of a paper is a dataclass of its own, `gpt2.depth` a field of
that.

Whatever takes a name of a setting (`--set`, `--grid`, a manifest, a comparison of two runs) takes it in this form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from iclab.errors import InputError


def is_group(value: Any) -> bool:
    """Whether this value of a setting holds settings of its own."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def names_of(settings: Any) -> list[str]:
    """The names of all settings, in their order; those inside a group with its name and a point before theirs."""
    names = []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        names += [f"{field.name}.{inner}" for inner in names_of(value)] if is_group(value) else [field.name]
    return names


def value_of(settings: Any, name: str) -> Any:
    """The value of a setting by its name, `gpt2.depth` too."""
    for part in name.split("."):
        settings = getattr(settings, part)
    return settings


def replaced(settings: Any, values: Mapping[str, Any]) -> Any:
    """The settings with other values by name. A group is made once with all of its own, as it checks them together."""
    own: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        group, _, inner = name.partition(".")
        if inner:
            groups.setdefault(group, {})[inner] = value
        else:
            own[name] = value
    for group, inside in groups.items():
        try:
            own[group] = replaced(getattr(settings, group), inside)
        except InputError as error:  # a group does not know what it is called here
            raise InputError(f"{group}: {error}") from error
    return dataclasses.replace(settings, **own)


def rebuilt(like: Any, values: Mapping[str, Any]) -> Any:
    """The settings that `dataclasses.asdict` made these values from, of the classes that `like` has.

    Names that it does not have are a `TypeError`.
    """
    groups = {field.name for field in dataclasses.fields(like) if is_group(getattr(like, field.name))}
    inner = {name: rebuilt(getattr(like, name), value) for name, value in values.items() if name in groups}
    return type(like)(**{**values, **inner})


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested values, as `dataclasses.asdict` makes them, by the names of `names_of`.

    >>> flat({"steps": 20, "gpt2": {"depth": 3, "half": False}})
    {'steps': 20, 'gpt2.depth': 3, 'gpt2.half': False}
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            found |= {f"{name}.{inner}": inside for inner, inside in flat(value).items()}
        else:
            found[name] = value
    return found

"""Settings by name, including nested ones: `gpt2` of a paper is a dataclass, and `gpt2.depth` is a field of it.

`--set`, `--grid`, manifests and comparisons of runs all use these names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from iclab.errors import InputError


def is_group(value: Any) -> bool:
    """Whether this value of a setting is a group of settings."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def names_of(settings: Any) -> list[str]:
    """The names of all settings, in order; those inside a group begin with its name and a dot."""
    names = []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        names += [f"{field.name}.{inner}" for inner in names_of(value)] if is_group(value) else [field.name]
    return names


def value_of(settings: Any, name: str) -> Any:
    """The value of a setting by its name, such as `steps` or `gpt2.depth`."""
    for part in name.split("."):
        settings = getattr(settings, part)
    return settings


def replaced(settings: Any, values: Mapping[str, Any]) -> Any:
    """The settings with other values, by name. A group is rebuilt once, as it checks its values together."""
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
        except InputError as error:  # a group does not know its own name
            raise InputError(f"{group}: {error}") from error
    return dataclasses.replace(settings, **own)


def rebuilt(like: Any, values: Mapping[str, Any]) -> Any:
    """The inverse of `dataclasses.asdict`, with the classes of `like`.

    Unknown names raise a `TypeError`.
    """
    groups = {field.name for field in dataclasses.fields(like) if is_group(getattr(like, field.name))}
    inner = {name: rebuilt(getattr(like, name), value) for name, value in values.items() if name in groups}
    return type(like)(**{**values, **inner})


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """The nested values of `dataclasses.asdict`, by the names of `names_of`.

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

"""Settings from the command line: `--set name=value` and `--grid name=v1,v2` or `name=start:stop:count`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iclab.authoring.paper import PROFILES
from iclab.authoring.plugged import SETTING, pinned
from iclab.errors import InputError, nearest, require
from iclab.settings import names_of, replaced, value_of

SMALLEST, LARGEST = (float(value) for value in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))
MOST = 2**31 - 1
MOST_SEEDS = 100_000
MOST_POINTS = 100_000


def parse(settings: Any, option: str, name: str, text: str) -> Any:
    """The value of `text` for this setting, of the same type as its present value."""
    before = value_of(settings, name)
    settable = isinstance(before, bool | int | float | str)
    require(settable, f"{option} {name}={text}: {name} is not a number or text; change it in the file that defines it.")
    if isinstance(before, bool):
        require(text.lower() in ("true", "false"), f"{option} {name}={text}: {name} must be true or false.")
        return text.lower() == "true"
    try:
        value = type(before)(text)
    except ValueError:
        raise InputError(f"{option} {name}={text}: {name} takes a value like {before!r}.") from None
    finite = not isinstance(value, int | float) or math.isfinite(value)
    require(finite, f"{option} {name}={text}: the value must be finite.")
    if isinstance(value, float) and value:
        known = SMALLEST <= abs(value) <= LARGEST
        require(known, f"{option} {name}={text}: a 32-bit number must lie between {SMALLEST:.1g} and {LARGEST:.1g}.")
    if isinstance(value, int):
        require(abs(value) <= MOST, f"{option} {name}={text}: a whole number must not exceed {MOST:,}.")
    return value


def whole(option: str, text: str | None) -> int | None:
    """A count from the command line."""
    if text is None:
        return None
    usable = bool(re.fullmatch(r"[0-9]{1,18}", text.strip()))
    require(usable, f"{option} {text}: give a whole number, for example 8.")
    return int(text)


def seed_count(given: int | None, profile: str) -> int:
    """The number of training seeds."""
    count = PROFILES[profile].seeds if given is None else given
    require(count >= 1, f"--seeds is {count}; it must be at least 1.")
    require(count <= MOST_SEEDS, f"--seeds is {count}; a run takes at most {MOST_SEEDS:,}.")
    return count


def override(settings: Any, changes: Mapping[str, str]) -> Any:
    """The settings with `--set` applied, as far as they have these names."""
    known = names_of(settings)
    return replaced(settings, {n: parse(settings, "--set", n, text) for n, text in changes.items() if n in known})


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Values of settings as written on the command line."""
    return {name: str(value) for name, value in values.items()}


def check_profile(profile: str) -> None:
    """Refuse an unknown profile."""
    require(profile in PROFILES, f"profile {profile!r} is unknown. {nearest(profile, PROFILES)}")


def check_names(option: str, names: Sequence[str], owners: Mapping[str, Any], also: Sequence[str] = ()) -> None:
    """Every name must be a setting of at least one of the owners (settings by id), or one of `also`."""
    known = sorted({name for settings in owners.values() for name in names_of(settings)} | set(also))
    for name in names:
        if name in known:
            continue
        words = f"--model: the model of {', '.join(owners)} cannot be replaced; its world needs its own model."
        require(name != SETTING, words)
        inside = [setting for setting in known if setting.startswith(f"{name}.")]
        require(not inside, f"{option} {name} is a group of settings; choose one of {', '.join(inside)}.")
        raise InputError(f"{option} {name}: there is no such setting in {', '.join(owners)}. {nearest(name, known)}")


def split(option: str, text: str) -> tuple[str, str]:
    """The name and the value of `name=value`."""
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise InputError(f"{option} {text}: write it as name=value, for example matching_fraction=0.6.")
    return name, value


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """`name=value` for every text; no name twice."""
    found: dict[str, str] = {}
    for name, value in (split(option, text) for text in texts):
        require(name not in found, f"{option} {name} is given twice.")
        found[name] = value
    return found


def with_model(changes: dict[str, str], model: str | None, ids: Sequence[str]) -> dict[str, str]:
    """The changes of settings, including the model if `--model NAME` is given."""
    if model is None:
        return changes
    require(bool(ids), f"--model {model}: name the paper whose model it replaces, for example mamba-outliers.")
    require(
        SETTING not in changes,
        f"--model {model} and --set {SETTING}={changes.get(SETTING)} set the same thing; give one.",
    )
    return changes | {SETTING: model}


def grid_values(settings: Any, name: str, text: str) -> list[Any]:
    """The values of one swept setting: v1,v2,... or start:stop:count, evenly spaced with both ends."""
    option = "--grid"
    before = value_of(settings, name)
    if ":" not in text or isinstance(before, str):
        values = [parse(settings, option, name, part) for part in text.split(",") if part.strip()]
        values = [pinned(value) for value in values] if name == SETTING else values
    else:
        parts = text.split(":")
        counted = len(parts) == 3 and bool(re.fullmatch(r"[0-9]{1,9}", parts[2]))
        require(counted, f"{option} {name}={text}: write a range as start:stop:count.")
        count = int(parts[2])
        require(count <= MOST_POINTS, f"{option} {name}={text}: a sweep has at most {MOST_POINTS:,} points.")
        start, stop = (parse(settings, option, name, part) for part in parts[:2])
        numeric = isinstance(start, int | float) and not isinstance(start, bool)
        require(numeric, f"{option} {name}={text}: {name} is not a number; list its values as v1,v2.")
        require(count >= 1, f"{option} {name}={text}: a range needs at least one value.")
        spaced = [float(value) for value in np.linspace(start, stop, count)]
        if isinstance(start, int):
            require(
                all(math.isclose(value, round(value)) for value in spaced),
                f"{option} {name}={text}: {name} takes whole numbers, but the range has others; list its values.",
            )
            spaced = [round(value) for value in spaced]
        values = [round(value, 12) for value in spaced]
    require(bool(values), f"{option} {name}={text}: give at least one value.")
    require(len(set(values)) == len(values), f"{option} {name}={text}: a value is given twice.")
    return values


def points_of(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All points of the grid, the last name varying fastest."""
    count = math.prod(len(values) for values in grid.values())
    require(count <= MOST_POINTS, f"--grid: {count:,} points are too many; a sweep has at most {MOST_POINTS:,}.")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]

"""Read a paper from a module: a user's file, a package, or a folder of `iclab.papers`.

| name | what it is |
|---|---|
| settings | a frozen dataclass whose fields can be set and swept, or one for each profile by name |
| experiment(lab), or experiments | a function that returns an xarray Dataset, or several by name |
| statements | a sequence of statements, or a function of the settings that returns one |
| figures, tables | functions of (results, settings) by name; a statement without a figure gets a default one |
| symbols(settings), theorems(symbols, constant) | conditions and rates, for `iclab theory` and beside the answers |
| printed | the paper's own words about its statements, by their names |
| unstated | what the paper leaves open: settings with plausible values, and sentences |
| check(settings) | may refuse settings |
| title, citation, equation | for the page; the default title is the first line of the docstring |
| explore | `True`: the page shows the first training in detail; or a function, see `iclab.authoring.paper.Paper` |
| facets, lacking, unit | see `iclab.authoring.paper.Paper` |
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from iclab.authoring import own_explorer
from iclab.authoring.guarded import guard, is_text, require_name
from iclab.authoring.paper import PROFILES, Experiment, Paper
from iclab.errors import InputError, nearest, require
from iclab.expressions import Expression
from iclab.kinds import Rule
from iclab.settings import is_group, names_of, value_of
from iclab.statements import Part, Printed, Reading, Statement, Table
from iclab.theorems import Theorem

OPTIONAL = ("symbols", "check", "lacking", "unit", "equation", "explore", "citation", "facets")


def paper_of(name: str, where: str, module: types.ModuleType) -> Paper:
    """The paper that a module defines, with this id; messages call the module `where`."""
    settings = _settings(where, getattr(module, "settings", None))
    experiments = _experiments(where, module)
    lines = (inspect.getdoc(module) or name).strip().splitlines()
    given = {key: getattr(module, key) for key in OPTIONAL if hasattr(module, key)}
    checked = given.get("check", print)
    require(callable(checked), f"{where}: `check` must be a function of the settings, not a {type(checked).__name__}.")
    given |= {key: guard(where, f"`{key}`", run) for key, run in given.items() if callable(run)}
    if given.get("explore") is True:
        experiments["explorer"] = Experiment(own_explorer.experiment(next(iter(experiments.values())).run))
        given["explore"] = own_explorer.explore
    printed = getattr(module, "printed", {})
    usable = isinstance(printed, Mapping) and all(isinstance(one, Printed) for one in printed.values())
    require(usable, f"{where}: `printed` must map names of statements to Printed(...).")
    return Paper(
        **({"citation": f"From {where}."} | given),
        id=name,
        title=getattr(module, "title", lines[0].rstrip(".")),
        settings=settings,
        experiments=experiments,
        statements=_statements(name, where, getattr(module, "statements", ()), experiments, printed),
        figures=_drawers(where, module, "figures", Figure),
        theorems=_theorems(name, guard(where, "`theorems`", getattr(module, "theorems", lambda symbols, constant: ()))),
        tables=_drawers(where, module, "tables", Table),
        unstated=tuple(getattr(module, "unstated", ())),
    )


def _settings(where: str, given: Any) -> dict[str, Any]:
    """Settings by profile: one for all profiles, or one each."""
    chosen = dict(given) if isinstance(given, Mapping) else dict.fromkeys(PROFILES, given)
    for profile, settings in chosen.items():
        known = profile in PROFILES
        require(known, f"{where} has settings for the profile {profile!r}. {nearest(str(profile), PROFILES)}")
        require(is_group(settings), f"{where} must define `settings`, an instance of a frozen dataclass.")
        for name in names_of(settings):
            value = value_of(settings, name)
            require(_plain(value), f"{where}: the setting {name} is {value!r}; it must be a number, a text or a tuple.")
    require(bool(chosen), f"{where} must define `settings`, an instance of a frozen dataclass.")
    return chosen


def _plain(value: Any) -> bool:
    """Whether a manifest can hold it: finite numbers, texts, tuples of them."""
    if isinstance(value, tuple | list):
        return all(_plain(entry) for entry in value)
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


def _experiments(where: str, module: types.ModuleType) -> dict[str, Experiment]:
    found: dict[str, Any]
    several, single = getattr(module, "experiments", None), getattr(module, "experiment", None)
    by_name = several is None or isinstance(several, Mapping)
    require(by_name, f"{where}: `experiments` must map names to functions of (lab); it is a {type(several).__name__}.")
    found = {"experiment": single} if several is None else dict(several)
    for name, run in found.items():
        require(
            callable(run) or isinstance(run, Experiment),
            f"{where} must define `experiment(lab)`, a function that returns an xarray Dataset (or `experiments`, a "
            "dict of several).",
        )
        require_name(where, "an experiment", name)
    given = {name: run if isinstance(run, Experiment) else Experiment(run) for name, run in found.items()}
    return {
        name: dataclasses.replace(one, run=guard(where, f"the experiment {name!r}", one.run, xr.Dataset))
        for name, one in given.items()
    }


def _drawers(where: str, module: types.ModuleType, names: str, kind: type) -> dict[str, Callable[..., Any]]:
    """Figures or tables: functions by name, each of which returns one."""
    found = getattr(module, names, {})
    require(isinstance(found, Mapping), f"{where}: `{names}` must map names to functions of (results, settings).")
    for name, draw in found.items():
        require_name(where, f"one of the {names}", name)
        require(callable(draw), f"{where}: {name!r} in `{names}` is not a function of (results, settings).")
    return {name: guard(where, f"{name!r} of {names}", draw, kind) for name, draw in found.items()}


def _statements(
    name: str, where: str, given: Any, experiments: Mapping[str, Experiment], printed: Mapping[str, Printed]
) -> Callable[[Any], tuple[Statement, ...]]:
    """The statements as a function of the settings, under the id of the paper."""
    if callable(given):
        given = guard(where, "`statements`", given)

    def made(settings: Any) -> tuple[Statement, ...]:
        found = given(settings) if callable(given) else given
        several = isinstance(found, Sequence) and all(isinstance(entry, Statement) for entry in found)
        require(
            several,
            f"{where}: `statements` must be a list of statements, or a function of the settings that returns one.",
        )
        ids = [entry.id for entry in found]
        require(len(set(ids)) == len(ids), f"{where}: two statements have the same name.")
        whole = (_completed(name, where, entry, experiments) for entry in found)
        return tuple(dataclasses.replace(one, printed=_printed(one, printed)) for one in whole)

    remembered = functools.lru_cache(maxsize=16)(made)

    def statements(settings: Any) -> tuple[Statement, ...]:
        try:
            hash(settings)
        except TypeError:  # a user's settings may hold a list
            return made(settings)
        return remembered(settings)

    return statements


def _printed(statement: Statement, printed: Mapping[str, Printed]) -> Printed | None:
    """The paper's own words about a statement; None for a model that is not the paper's."""
    return statement.printed or (None if statement.asked_of else printed.get(statement.name))


def _completed(name: str, where: str, statement: Statement, experiments: Mapping[str, Experiment]) -> Statement:
    """The statement under the id of the paper. Names that do not exist are refused before anything is trained."""
    require(
        isinstance(statement.id, str), f"{where}: {statement.id!r} cannot be the name of a statement; use one word."
    )
    own = statement.id.removeprefix(f"{name}/")
    require_name(where, "a statement", own)
    plain = not set(own) & set("/[] ")
    require(plain, f"{where}: {statement.id!r} cannot be the name of a statement; use one word.")
    for text in (statement.words, statement.source):
        require(is_text(text), f"{where}: {text!r} in the statement {own} is not a printable text.")
    require(isinstance(statement.parts, Sequence), f"{where}: `parts` of {own} must be a tuple of parts: (part,).")
    require(bool(statement.parts), f"{where}: the statement {own} has no parts; give at least one Part.")
    for part in statement.parts:
        _require_part(where, own, part)
    for one in statement.readings:
        usable = isinstance(one, Reading) and isinstance(one.name, str)
        require(usable, f"{where}: a reading of {own} is a {type(one).__name__}, not a Reading with a name.")
    names = [reading.name for reading in statement.readings]
    require(len(set(names)) == len(names) > 0, f"{where}: two readings of {own} have the same name, or it has none.")
    for reading in names:
        require(
            not set(reading) & set("/[]@ "),
            f"{where}: {reading!r} cannot be the name of a reading of {own}; use one word.",
        )
        asked = [part.name for part in statement.parts if not part.readings or reading in part.readings]
        require(bool(asked), f"{where}: no part of {own} belongs to the reading {reading!r}.")
        require(len(set(asked)) == len(asked), f"{where}: two parts of {own} have the same name.")
    for part in statement.parts:
        if part.readings and not set(part.readings) & set(names):
            raise InputError(
                f"{where}: the part {part.name!r} of {own} names the readings {', '.join(part.readings)}, but {own} "
                f"has none of them. {nearest(', '.join(part.readings), names)}"
            )
    for need in (need.partition("@")[0] for need in statement.needs()):
        if need not in experiments:
            raise InputError(f"{where}: {own} needs {need!r}, which is not an experiment. {nearest(need, experiments)}")
    return dataclasses.replace(statement, id=f"{name}/{own}", source=statement.source or "own statement")


def _require_part(where: str, own: str, part: Any) -> None:
    """Refuse a part unless it has a name, an expression over results, and a rule with numbers."""
    require(isinstance(part, Part), f"{where}: a part of {own} is a {type(part).__name__}, not a Part.")
    named = f"{where}: the part {part.name!r} of {own}"
    require(is_text(part.name) and part.name, f"{named} has no name.")
    measured = isinstance(part.statistic, Expression)
    require(measured, f"{named} has no statistic: it is a {type(part.statistic).__name__}, not measured(...).")
    ruled = isinstance(part.rule, Rule)
    require(ruled, f"{named} has no rule: {part.rule!r} is not below(...), above(...), larger(...) or the like.")
    try:
        known = not any(math.isnan(float(end)) for end in (part.rule.low, part.rule.high, *part.bounds))
    except (TypeError, ValueError):
        known = False
    require(known, f"{named}: its rule or its bounds are not numbers.")


def _theorems(name: str, given: Callable[[Any, float], Sequence[Theorem]]) -> Callable[[Any, float], Sequence[Theorem]]:
    """The theorems under the id of the paper. They are kept: a run asks for their conditions at every answer, and to
    find how a rate depends on each symbol took a third of the time of judging.
    """

    def theorems(symbols: Any, constant: float) -> tuple[Theorem, ...]:
        found = given(symbols, constant)
        return tuple(dataclasses.replace(t, id=f"{name}/{t.id.removeprefix(f'{name}/')}") for t in found)

    kept = functools.lru_cache(maxsize=64)(theorems)
    return lambda symbols, constant: (kept if isinstance(symbols, Hashable) else theorems)(symbols, constant)

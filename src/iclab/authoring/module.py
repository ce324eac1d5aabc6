"""A paper as a module writes it down: a user's file, a package, or a folder of `iclab.papers`. All are read by this
code.

| name | what it is |
|---|---|
| settings | a frozen dataclass whose fields can be set and swept, or one for each profile by name |
| experiment(lab), or experiments | a function that returns an xarray Dataset, or several by name |
| statements | a sequence of statements, or a function of the settings that returns one |
| figures, tables | functions of (results, settings) by name; a statement without a figure gets one of its parts |
| symbols(settings), theorems(symbols, constant) | conditions and rates, for `iclab theory` and beside the answers |
| unstated | what the paper leaves open: settings with plausible values, and sentences |
| check(settings) | may refuse settings |
| title, citation, equation | for the page; the first line of the docstring is the title unless told otherwise |
| explore, lacking, unit | see `iclab.authoring.paper.Paper` |
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr

from iclab.authoring.paper import PROFILES, Experiment, Paper
from iclab.errors import InputError, in_words, line_in, nearest, require
from iclab.experiments import Lab, NoSeedsError
from iclab.statements import Statement
from iclab.theorems import Theorem

OPTIONAL = ("symbols", "check", "lacking", "unit", "equation", "explore", "citation")


def paper_of(name: str, where: str, module: types.ModuleType) -> Paper:
    """The paper that a module defines, with this id; `where` is what messages call it."""
    settings = _settings(where, getattr(module, "settings", None))
    experiments = _experiments(where, module)
    lines = (inspect.getdoc(module) or name).strip().splitlines()
    given = {key: getattr(module, key) for key in OPTIONAL if hasattr(module, key)}
    return Paper(
        **({"citation": f"From {where}."} | given),
        id=name,
        title=getattr(module, "title", lines[0].rstrip(".")),
        settings=settings,
        experiments=experiments,
        statements=_statements(name, where, getattr(module, "statements", ()), experiments),
        figures=dict(getattr(module, "figures", {})),
        theorems=_theorems(name, getattr(module, "theorems", lambda symbols, constant: ())),
        tables=dict(getattr(module, "tables", {})),
        unstated=tuple(getattr(module, "unstated", ())),
    )


def _settings(where: str, given: Any) -> dict[str, Any]:
    """Settings by profile: one for all profiles, or one each."""
    chosen = dict(given) if isinstance(given, Mapping) else dict.fromkeys(PROFILES, given)
    for profile, settings in chosen.items():
        require(profile in PROFILES, f"{where} has settings for the profile {profile!r}. {nearest(profile, PROFILES)}")
        usable = dataclasses.is_dataclass(settings) and not isinstance(settings, type)
        require(usable, f"{where} must define `settings`, an instance of a dataclass whose fields can be swept.")
    require(bool(chosen), f"{where} must define `settings`, an instance of a dataclass whose fields can be swept.")
    return chosen


def _experiments(where: str, module: types.ModuleType) -> dict[str, Experiment]:
    found: dict[str, Any]
    several, single = getattr(module, "experiments", None), getattr(module, "experiment", None)
    found = dict(several) if isinstance(several, Mapping) else {"experiment": single}
    for run in found.values():
        require(
            callable(run) or isinstance(run, Experiment),
            f"{where} must define `experiment(lab)`, a function that returns an xarray Dataset (or "
            "`experiments`, several "
            "of them by name).",
        )
    given = {name: run if isinstance(run, Experiment) else Experiment(run) for name, run in found.items()}
    return {name: dataclasses.replace(run, run=_explained(where, name, run.run)) for name, run in given.items()}


def _explained(where: str, name: str, run: Callable[[Lab], xr.Dataset]) -> Callable[[Lab], xr.Dataset]:
    """The experiment, with what goes wrong in it as one sentence that names the line."""
    if not where.endswith(".py"):
        return run

    @functools.wraps(run)
    def explained(lab: Lab) -> xr.Dataset:
        try:
            data = run(lab)
        except (InputError, NoSeedsError, MemoryError):
            raise
        except Exception as error:
            what = f"{where}{line_in(where, error)}, in the experiment {name!r}: {in_words(error)}"
            raise InputError(f"{what} (`iclab check` says more about errors in a world or a model.)") from error
        require(
            isinstance(data, xr.Dataset),
            f"{where}: the experiment {name!r} must return an xarray Dataset, not {type(data).__name__}.",
        )
        return data

    return explained


def _statements(
    name: str, where: str, given: Any, experiments: Mapping[str, Experiment]
) -> Callable[[Any], tuple[Statement, ...]]:
    """The statements as a function of the settings, under the id of the paper."""

    def statements(settings: Any) -> tuple[Statement, ...]:
        found = given(settings) if callable(given) else given
        several = isinstance(found, Sequence) and all(isinstance(entry, Statement) for entry in found)
        require(
            several,
            f"{where}: `statements` must be a list of statements, or a function of the settings that returns one.",
        )
        ids = [entry.id for entry in found]
        require(len(set(ids)) == len(ids), f"{where}: two statements have the same name.")
        return tuple(_completed(name, where, entry, experiments) for entry in found)

    return statements


def _completed(name: str, where: str, statement: Statement, experiments: Mapping[str, Experiment]) -> Statement:
    """The statement under the id of the paper; what it names and is not there is said before anything is trained."""
    own = statement.id.removeprefix(f"{name}/")
    plain = bool(own) and not set(own) & set("/[] ")
    require(plain, f"{where}: {statement.id!r} is no name for a statement; use one word.")
    require(bool(statement.parts), f"{where}: the statement {own} has no part; nothing could be measured.")
    names = [reading.name for reading in statement.readings]
    require(len(set(names)) == len(names) > 0, f"{where}: two readings of {own} have the same name, or it has none.")
    for reading in names:
        require(
            not set(reading) & set("/[]@ "), f"{where}: {reading!r} is no name for a reading of {own}; use one word."
        )
        asked = [part.name for part in statement.parts if not part.readings or reading in part.readings]
        require(bool(asked), f"{where}: no part of {own} belongs to the reading {reading!r}.")
        require(len(set(asked)) == len(asked), f"{where}: two parts of {own} have the same name.")
    for part in statement.parts:
        require(
            not part.readings or set(part.readings) & set(names),
            f"{where}: the part {part.name!r} of {own} belongs to the readings {', '.join(part.readings)}, which are "
            f"none of its own. {nearest(', '.join(part.readings), names)}",
        )
    for need in (need.partition("@")[0] for need in statement.needs()):
        require(need in experiments, f"{where}: the statement {own} needs {need!r}. {nearest(need, experiments)}")
    return dataclasses.replace(statement, id=f"{name}/{own}", source=statement.source or "own statement")


def _theorems(name: str, given: Callable[[Any, float], Sequence[Theorem]]) -> Callable[[Any, float], Sequence[Theorem]]:
    """The theorems under the id of the paper."""

    def theorems(symbols: Any, constant: float) -> list[Theorem]:
        return [dataclasses.replace(t, id=f"{name}/{t.id.removeprefix(f'{name}/')}") for t in given(symbols, constant)]

    return theorems

"""A user's own paper: what a file or a module defines under plain names.

| name | what it is |
|---|---|
| settings | a frozen dataclass whose fields can be set and swept, or one for each profile by name |
| experiment(lab), or experiments | a function that returns an xarray Dataset, or several by name |
| claims | a sequence of claims, or a function of the settings that returns one |
| figures, tables | functions of (results, settings) by name; without any, every experiment has an overview |
| symbols(settings), theorems(symbols, constant) | conditions and rates, for `iclab theory` |
| check(settings) | may refuse settings |
| title, citation, equation | for the page; the first line of the docstring is the title unless told otherwise |

`paper`, a whole `Paper`, may stand in place of all of these.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr

from iclab.claims import Claim
from iclab.errors import InputError, in_words, line_in, nearest, require
from iclab.experiments import Lab, NoSeedsError
from iclab.authoring.overview import overview
from iclab.authoring.paper import PROFILES, Experiment, Paper
from iclab.theorems import Theorem


def paper_of(name: str, where: str, module: types.ModuleType) -> Paper:
    """The paper that a module defines, with this id; `where` is what messages call it."""
    whole = getattr(module, "paper", None)
    if isinstance(whole, Paper):
        return whole
    settings = _settings(where, getattr(module, "settings", None))
    experiments = _experiments(where, module)
    figures = dict(getattr(module, "figures", {}))
    shown = figures or {key: overview(key) for key in experiments}
    lines = (inspect.getdoc(module) or name).strip().splitlines()
    return Paper(
        id=name,
        title=getattr(module, "title", lines[0].rstrip(".")),
        citation=getattr(module, "citation", f"From {where}."),
        settings=settings,
        experiments=experiments,
        claims=_claims(name, where, getattr(module, "claims", ()), experiments, automatic=not figures),
        figures=shown,
        symbols=getattr(module, "symbols", None),
        theorems=_theorems(name, getattr(module, "theorems", lambda symbols, constant: ())),
        tables=dict(getattr(module, "tables", {})),
        check=getattr(module, "check", lambda settings: None),
        equation=getattr(module, "equation", ""),
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
            f"{where} must define `experiment(lab)`, a function that returns an xarray Dataset (or `experiments`, several of "
            "them by name).",
        )
    given = {name: run if isinstance(run, Experiment) else Experiment(run) for name, run in found.items()}
    return {name: dataclasses.replace(run, run=_explained(where, name, run.run)) for name, run in given.items()}


def _explained(where: str, name: str, run: Callable[[Lab], xr.Dataset]) -> Callable[[Lab], xr.Dataset]:
    """The experiment, with what goes wrong in it as one sentence that names the line."""

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


def _claims(
    name: str, where: str, given: Any, experiments: Mapping[str, Experiment], *, automatic: bool
) -> Callable[[Any], tuple[Claim, ...]]:
    """The claims as a function of the settings, under the id of the file."""

    def claims(settings: Any) -> tuple[Claim, ...]:
        found = given(settings) if callable(given) else given
        several = isinstance(found, Sequence) and all(isinstance(entry, Claim) for entry in found)
        require(several, f"{where}: `claims` must be a list of claims, or a function of the settings that returns one.")
        ids = [entry.id for entry in found]
        require(len(set(ids)) == len(ids), f"{where}: two claims have the same name.")
        return tuple(_completed(name, where, entry, experiments, automatic=automatic) for entry in found)

    return claims


def _theorems(name: str, given: Callable[[Any, float], Sequence[Theorem]]) -> Callable[[Any, float], Sequence[Theorem]]:
    """The theorems under the id of the file."""

    def theorems(symbols: Any, constant: float) -> list[Theorem]:
        return [dataclasses.replace(t, id=f"{name}/{t.id.removeprefix(f'{name}/')}") for t in given(symbols, constant)]

    return theorems


def _completed(name: str, where: str, claim: Claim, experiments: Mapping[str, Experiment], *, automatic: bool) -> Claim:
    own = claim.id.removeprefix(f"{name}/")
    require(bool(own) and "/" not in own and " " not in own, f"{where}: {claim.id!r} is no name for a claim; use one word.")
    require(bool(claim.checks), f"{where}: the claim {own} has no check; nothing could be measured.")
    needs = claim.needs or tuple(experiments)
    for need in needs:
        require(need in experiments, f"{where}: the claim {own} needs {need!r}. {nearest(need, experiments)}")
    figure = claim.figure or (needs[0] if automatic else None)
    return dataclasses.replace(claim, id=f"{name}/{own}", source=claim.source or "own claim", needs=needs, figure=figure)

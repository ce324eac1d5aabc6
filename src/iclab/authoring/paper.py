"""What a paper consists of: settings per profile, experiments, claims and figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from iclab.claims import Claim, Results, Table
from iclab.experiments import Lab
from iclab.authoring.exploration import Exploration
from iclab.theorems import SymbolsBase, Theorem


@dataclasses.dataclass(frozen=True)
class Profile:
    """How much is run. `verdicts` is False where the sizes are too small to say anything (smoke)."""

    name: str
    seeds: int
    verdicts: bool = True


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("smoke", seeds=2, verdicts=False),
        Profile("quick", seeds=8),
        Profile("paper", seeds=32),
    )
}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A function of a lab that returns a dataset. `cost` is its rough share of the time, for the estimate of time left."""

    run: Callable[[Lab], xr.Dataset]
    cost: float = 1.0


@dataclasses.dataclass(frozen=True)
class Paper:
    """One paper. `settings[profile]` is a frozen dataclass whose fields `--set` changes; rules and figures follow from it.

    `symbols(settings)` are the numbers that the theorems speak of, `theorems(symbols, constant)` their conditions and rates;
    a paper without theorems has neither.

    `equation` is the model, in LaTeX. `explore(history, settings)` is what the page's explorer shows of the experiment
    "explorer", which no claim needs and which runs with a few seeds where the whole paper is asked for.

    `check(settings)` may refuse settings before anything is run or written, where building them takes more than a moment.
    `lacking(settings)` says in a sentence what is not installed that they need; nothing, as a rule.

    `unit` is what intervals are over: training seeds, or prompts where one given model is asked, which then run but once.
    """

    id: str
    title: str
    citation: str
    settings: Mapping[str, Any]
    experiments: Mapping[str, Experiment]
    claims: Callable[[Any], tuple[Claim, ...]]
    figures: Mapping[str, Callable[[Results, Any], Figure]]
    symbols: Callable[[Any], SymbolsBase] | None = None
    theorems: Callable[[Any, float], Sequence[Theorem]] = lambda symbols, constant: ()
    tables: Mapping[str, Callable[[Results, Any], Table]] = dataclasses.field(default_factory=dict)
    check: Callable[[Any], None] = lambda settings: None
    lacking: Callable[[Any], str] = lambda settings: ""
    unit: str = "seed"
    equation: str = ""
    explore: Callable[[xr.Dataset, Any], Exploration] | None = None

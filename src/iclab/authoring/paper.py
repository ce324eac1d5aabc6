"""What a paper consists of: settings per profile, experiments, statements and figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from iclab.authoring.exploration import Exploration
from iclab.errors import require
from iclab.experiments import Lab
from iclab.expressions import Results
from iclab.statements import Reading, Statement, Table
from iclab.theorems import SymbolsBase, Theorem
from iclab.unstated import Unstated


@dataclasses.dataclass(frozen=True)
class Profile:
    """How much is run. `answers` is False where the sizes are too small to say anything (smoke); a `sparing` profile
    adds seeds up to its number only where the answer is open with fewer.
    """

    name: str
    seeds: int
    answers: bool = True
    sparing: bool = False


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("smoke", seeds=2, answers=False),
        Profile("quick", seeds=8, sparing=True),
        Profile("paper", seeds=32),
    )
}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A function of a lab that returns a dataset. `cost` is its rough share of the time, for the estimate of time left.

    `about` is what it does, in a line; the first line of the function's docstring if none is given.
    """

    run: Callable[[Lab], xr.Dataset]
    cost: float = 1.0
    about: str = ""

    @property
    def words(self) -> str:
        """What it does, in a line."""
        lines = (self.run.__doc__ or "").strip().splitlines()
        return self.about or (lines[0] if lines else "")


@dataclasses.dataclass(frozen=True)
class Paper:
    """One paper, as `iclab.authoring.module` reads it. `settings[profile]` is a frozen dataclass whose fields `--set`
    changes.

    `symbols(settings)` are the numbers that the theorems speak of, `theorems(symbols, constant)` their conditions and
    rates; a paper without theorems has neither. `unstated` are the settings that the paper does not print, with
    plausible values, and in plain words what is no setting.

    `equation` is the model, in LaTeX. `explore(history, settings)` is what the page's explorer shows of the experiment
    "explorer", which no statement needs and which runs with a few seeds where the whole paper is asked for.

    `check(settings)` may refuse settings before anything is run or written, where building them takes more than a
    moment. `lacking(settings)` says in a sentence what is not installed that they need; nothing, as a rule.

    `facets` says what the words of its readings' names are called in a sentence: "kappa=10" is "outliers of size 10".

    `unit` is what intervals are over: training seeds, or prompts where one given model is asked, which then run but
    once.
    """

    id: str
    title: str
    citation: str
    settings: Mapping[str, Any]
    experiments: Mapping[str, Experiment]
    statements: Callable[[Any], tuple[Statement, ...]]
    figures: Mapping[str, Callable[[Results, Any], Figure]]
    symbols: Callable[[Any], SymbolsBase] | None = None
    theorems: Callable[[Any, float], Sequence[Theorem]] = lambda symbols, constant: ()
    tables: Mapping[str, Callable[[Results, Any], Table]] = dataclasses.field(default_factory=dict)
    unstated: tuple[Unstated | str, ...] = ()
    check: Callable[[Any], None] = lambda settings: None
    lacking: Callable[[Any], str] = lambda settings: ""
    unit: str = "seed"
    equation: str = ""
    explore: Callable[[xr.Dataset, Any], Exploration] | None = None
    facets: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def theorem(self, name: str, settings: Any) -> Theorem | None:
        """A theorem by its name at these settings; None if the paper has none of this name."""
        if self.symbols is None:
            return None
        found = [t for t in self.theorems(self.symbols(settings), 1.0) if t.id == f"{self.id}/{name}"]
        return found[0] if found else None


def variants(statements: Sequence[Statement]) -> dict[str, Reading]:
    """The readings that run experiments at settings of their own, by name."""
    found: dict[str, Reading] = {}
    for statement in statements:
        for reading in statement.readings:
            if reading.changes:
                same = found.setdefault(reading.name, reading)
                require(
                    same.changes == reading.changes,
                    f"{statement.id}: another reading with other settings is called {reading.name!r}, too.",
                )
    return found

"""A paper: settings per profile, experiments, statements and figures."""

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
    """How much to run. `answers` is False if the sizes are too small to say anything (smoke); a `sparing` profile adds
    seeds, up to its number, only while the answer is open.
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

    `about` says in one line what it does; the default is the first line of the function's docstring.
    """

    run: Callable[[Lab], xr.Dataset]
    cost: float = 1.0
    about: str = ""

    @property
    def words(self) -> str:
        """What it does, in one line."""
        lines = (self.run.__doc__ or "").strip().splitlines()
        return self.about or (lines[0] if lines else "")


@dataclasses.dataclass(frozen=True)
class Paper:
    """One paper, as `iclab.authoring.module` reads it. `settings[profile]` is a frozen dataclass whose fields `--set`
    changes.

    `symbols(settings)` are the numbers in the theorems, `theorems(symbols, constant)` their conditions and rates; a
    paper without theorems has neither. `unstated` are the settings that the paper does not state, with plausible
    values, and sentences on other open choices.

    `equation` is the model, in LaTeX. `explore(history, settings)` is what the page's explorer shows of the experiment
    "explorer". No statement needs that experiment; it runs with a few seeds if the whole paper is reproduced.

    `check(settings)` may refuse settings before anything is run or written, if building them takes more than a moment.
    `lacking(settings)` says in a sentence which required package is not installed; usually it is empty.

    `facets` gives the words of its readings' names in a sentence: "kappa=10" is "outliers of size 10".

    `unit` is what intervals are taken over: training seeds, or prompts for a given model, whose experiments run once.
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
    """The readings with their own settings, by name."""
    found: dict[str, Reading] = {}
    for statement in statements:
        for reading in statement.readings:
            if reading.changes:
                same = found.setdefault(reading.name, reading)
                require(
                    same.changes == reading.changes,
                    f"{statement.id}: two readings with different settings are called {reading.name!r}.",
                )
    return found

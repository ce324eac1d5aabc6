"""From results to answers and figures: a run's statements with their settings, theorems and controls."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from iclab import answers, entries
from iclab.answers import Read
from iclab.authoring.paper import Paper, variants
from iclab.authoring.pictures import statement_figure
from iclab.errors import InputError, nearest, require
from iclab.experiments import Lab
from iclab.planning import PlanningEngine
from iclab.runs.jobs import CONTROL
from iclab.runs.options import check_names, override, texts
from iclab.statements import Reading, Statement
from iclab.statistics import LEVEL
from iclab.theorems import Theorem


@dataclasses.dataclass(frozen=True)
class Judge:
    """Answers statements of these papers at these settings. With `attempted=False` there are numbers but no answers."""

    papers: Mapping[str, Paper]
    settings: Mapping[str, Any]
    attempted: bool = True

    def split(
        self, paper: str, results: Mapping[str, xr.Dataset]
    ) -> tuple[dict[str, xr.Dataset], dict[str, xr.Dataset]]:
        """A paper's results by experiment, of trained and of untrained models."""
        own = _under(f"{paper}/", results)
        return own, _under(f"{CONTROL}{paper}/", results)

    def __call__(
        self,
        statement: Statement,
        results: Mapping[str, xr.Dataset],
        level: float = LEVEL,
        before: Mapping[str, Read] = answers.NOTHING,
    ) -> tuple[Read, ...]:
        """The statement's readings, at a look with intervals of this level; parts that were settled `before` stay."""
        own, control = self.split(statement.paper, results)
        hypotheses = functools.partial(self._theorem, statement.paper)
        asked = control if set(statement.needs()) <= set(control) else None
        return answers.read(statement, own, asked, hypotheses, level=level, before=before)

    def entry(self, statement: Statement, reads: Sequence[Read]) -> dict[str, Any]:
        """The statement's entry in claims.json."""
        return entries.entry(statement, reads, attempted=self.attempted)

    def _theorem(self, paper: str, name: str, reading: Reading) -> Theorem | None:
        return self.papers[paper].theorem(name, override(self.settings[paper], texts(reading.changes)))

    def figures(
        self, statements: Sequence[Statement], results: Mapping[str, xr.Dataset], control: Mapping[str, xr.Dataset]
    ) -> dict[str, Callable[[], Figure]]:
        """The figures of these statements of one paper: their own, or a default one of their parts and rules."""
        found: dict[str, Callable[[], Figure]] = {}
        for statement in statements:
            if statement.figure is None:
                both = control if set(statement.needs()) <= set(control) else None
                found[statement.name] = functools.partial(statement_figure, statement, results, both)
            else:
                paper = self.papers[statement.paper]
                found[statement.figure] = functools.partial(
                    paper.figures[statement.figure], results, self.settings[statement.paper]
                )
        return found


def at_one_size(statement: Statement) -> Statement:
    """The statement without readings that have their own settings: if nothing is answered, they need not run."""
    kept = tuple(reading for reading in statement.readings if not reading.changes)
    return dataclasses.replace(statement, readings=kept) if kept else statement


def _under(prefix: str, results: Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    return {name.removeprefix(prefix): data for name, data in results.items() if name.startswith(prefix)}


def dry_run(paper: Paper, settings: Any, statements: Sequence[Statement]) -> None:
    """Evaluate every statement on zeros of the shapes that its experiments will have, before anything is trained.

    This refuses a statement that names an experiment, a variable or a coordinate that does not exist.
    """
    results: dict[str, xr.Dataset] = {}
    needs = {need for statement in statements for need in statement.needs()}
    for name, reading in {"": None, **variants(statements)}.items():
        changes = texts(reading.changes) if reading else {}
        check_names(f"the reading {name!r} changes", list(changes), {paper.id: settings})
        lab = Lab(paper.id, override(settings, changes), (0, 1), engine=PlanningEngine())
        behind = f"@{name}" if name else ""
        results |= {
            f"{experiment}{behind}": paper.experiments[experiment].run(lab)
            for experiment in paper.experiments
            if f"{experiment}{behind}" in needs
        }
    _require_read(statements, results)
    for statement in statements:
        require(
            statement.figure is None or statement.figure in paper.figures,
            f"{statement.id}: no figure {statement.figure!r}; the figures are {', '.join(paper.figures) or 'none'}.",
        )
        require(
            statement.table is None or statement.table in paper.tables,
            f"{statement.id}: no table {statement.table!r}; the tables are {', '.join(paper.tables) or 'none'}.",
        )
        require(
            not statement.hypotheses or paper.theorem(statement.hypotheses, settings) is not None,
            f"{statement.id}: its hypotheses name the theorem {statement.hypotheses!r}, which does not exist.",
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # zeros divided by zeros
            entries.judge(statement, results, attempted=False)


def _require_read(statements: Sequence[Statement], results: Mapping[str, xr.Dataset]) -> None:
    """Refuse a reading that replaces something which no result of its statements has."""
    asked = [(statement, reading) for statement in statements for reading in statement.readings]
    for statement, reading in asked:
        places = {place for other, same in asked if same == reading for place in other.needs_of(same)}
        seen = [results[place] for place in sorted(places)]
        named = f"{statement.id}, the reading {reading.name!r}"
        dims = dict.fromkeys(str(dim) for data in seen for dim in data.dims)
        variables = dict.fromkeys(str(variable) for data in seen for variable in data)
        for dim in reading.at:
            if dim not in dims:
                raise InputError(f"{named}: no result that it reads has a dimension {dim!r}. {nearest(dim, dims)}")
        for name in reading.variables.values():
            if name not in variables:
                raise InputError(f"{named}: no result that it reads has {name!r}. {nearest(name, variables)}")

"""Statements: the numbered claims of a paper, as data that a run can answer.

A statement (a theorem, a panel of a figure) has one part per claim in its sentence. A part is an expression over
results with one number per seed, and a rule (`iclab.kinds`). If the paper leaves open something that decides the
answer, the statement has readings: other labels, variables or experiments in the expressions, or other settings for the
experiments. The settings that a paper does not state are listed once per paper (`iclab.unstated`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from iclab.expressions import Expression
from iclab.kinds import Rule


@dataclasses.dataclass(frozen=True)
class Part:
    """One claim of a statement. `statistic` has one number per seed, and a dimension of sizes if the rule has one.

    `bounds` is the statistic's possible range. `readings` names the readings that it belongs to (default: all). `found`
    is what a statement of existence found, reported in the form `found_as` ("L = {:.0%} of the neurons"). `unsettled`
    says why the settings of this run cannot answer for the paper's ("d = 3000 gives another answer"): the part is then
    open with that reason, whatever it measures, in the readings that `unsettled_in` names (default: all).
    """

    name: str
    statistic: Expression
    rule: Rule
    bounds: tuple[float, float] = (-np.inf, np.inf)
    readings: tuple[str, ...] = ()
    found: Expression | None = None
    found_as: str = "{:.3g}"
    unsettled: str = ""
    unsettled_in: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Reading:
    """One way to fill in what the paper leaves open; `why` says why it is plausible.

    Expressions are evaluated at the labels `at`, with some variables and experiments replaced; with `changes`, the
    experiments run at other settings.
    """

    name: str
    why: str = ""
    at: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    experiments: Mapping[str, str] = dataclasses.field(default_factory=dict)
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def place(self, experiment: str) -> str:
        """The name of an experiment's results in this reading."""
        name = self.experiments.get(experiment, experiment)
        return f"{name}@{self.name}" if self.changes else name


STATED = Reading("")
UNIT = (0.0, 1.0)
SIGNED = (-1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Printed:
    """The paper's own words about a statement (formulas transcribed, omissions as "..."), their place in the paper, and
    its numbers, by the names of the parts that measure them.
    """

    words: str
    where: str = ""
    values: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Statement:
    """A statement of a paper, or our own beyond it.

    `source` is its name in the paper, `words` what it says. `hypotheses` names the theorem whose conditions are shown
    beside the answer (default: the one with the statement's name). `ours` are choices that only this statement depends
    on. `afterwards` says which part of its rule or statistic was chosen after seeing a result, and why. `architecture`
    is the reason why an untrained model may pass: then the statement is not about learning. `beyond` means that the
    paper does not ask this; it is counted separately. `printed` are the paper's own words and numbers, if any.
    `asked_of` is the model that replaces the paper's own; `unfit` says why it cannot.
    """

    id: str
    source: str
    words: str
    parts: tuple[Part, ...]
    readings: tuple[Reading, ...] = (STATED,)
    hypotheses: str = ""
    figure: str | None = None
    table: str | None = None
    ours: tuple[str, ...] = ()
    afterwards: str = ""
    architecture: str = ""
    beyond: bool = False
    printed: Printed | None = None
    asked_of: str = ""
    unfit: str = ""

    @property
    def paper(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        """The part of the id after the slash: the name in the paper."""
        return self.id.partition("/")[2] or self.id

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its parts, in order."""
        return tuple(dict.fromkeys(part.rule.kind for part in self.parts))

    def asked(self, reading: Reading) -> tuple[Part, ...]:
        """The parts that belong to a reading."""
        return tuple(part for part in self.parts if not part.readings or reading.name in part.readings)

    def needs(self) -> tuple[str, ...]:
        """The results that it reads: experiments, or "experiment@reading" if a reading has its own settings."""
        return tuple(dict.fromkeys(need for reading in self.readings for need in self.needs_of(reading)))

    def needs_of(self, reading: Reading) -> tuple[str, ...]:
        """The results that one of its readings reads."""
        expressions = [e for part in self.asked(reading) for e in (part.statistic, part.found) if e is not None]
        return tuple(dict.fromkeys(reading.place(name) for expression in expressions for name in expression.needs))

    @property
    def rule(self) -> str:
        """All parts in words."""
        return "; ".join(f"{part.name} {part.rule}" for part in self.parts)


@dataclasses.dataclass(frozen=True)
class Table:
    """A small table of results, for the page."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

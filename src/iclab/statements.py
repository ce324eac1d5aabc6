"""Statements: what a paper says and numbers, as data that a run can answer.

A statement (a theorem, a figure's panel) has parts where its sentence has several. A part is an expression over results
with one number per seed and a rule of a kind (`iclab.kinds`). What the paper leaves open, and what decides, is a
reading: another label, variable or experiment in the expressions, or other settings at which the experiments run once
more. Which settings the paper does not print is said once per paper (`iclab.unstated`).
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
    """One thing that a statement says. `statistic` has one number per seed, and a dimension of sizes where the rule has
    one.

    `bounds` is the statistic's possible range. `readings` names the readings that it belongs to, all if none. `found`
    is what a statement of existence found, reported as `found_as` says ("L = {:.0%} of the neurons"). `unsettled` says
    why the settings of this run cannot answer for the paper's ("d = 3000 gives another answer"): the part is then open
    with that reason, whatever it measures, in the readings that `unsettled_in` names, in all if none.
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
    """One way to fill what the paper leaves open; `why` says why it is plausible.

    Expressions are read at these labels (`at`), with other variables and experiments in the place of those they name;
    with `changes` the experiments run at other settings.
    """

    name: str
    why: str = ""
    at: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    experiments: Mapping[str, str] = dataclasses.field(default_factory=dict)
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def place(self, experiment: str) -> str:
        """Where the results of an experiment are found in this reading."""
        name = self.experiments.get(experiment, experiment)
        return f"{name}@{self.name}" if self.changes else name


STATED = Reading("")
UNIT = (0.0, 1.0)
SIGNED = (-1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Printed:
    """What the paper prints about a statement: a sentence of its own, formulas transcribed, left-out words as "...";
    where it stands; and the numbers that it gives, by the names of the parts that measure them.
    """

    words: str
    where: str = ""
    values: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Statement:
    """A statement of a paper, or of ours beyond it.

    `source` is its name in print, `words` what it says. `hypotheses` names the theorem whose conditions stand beside
    the answer, the one of the statement's own name if none. `ours` are choices that only this statement depends on.
    `afterwards` says what of its rule or statistic was chosen after a result had been seen, and why. `architecture` is
    the reason why an untrained model may pass: then the statement is not about learning. `beyond`: the paper does not
    ask this; it is counted apart. `printed` are the paper's own words and numbers, where it has any. `asked_of` is
    the model that it is asked of instead of the paper's own; `unfit` says why it cannot be.
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
        """The part of the id behind the slash: the paper's number."""
        return self.id.partition("/")[2] or self.id

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its parts, in order."""
        return tuple(dict.fromkeys(part.rule.kind for part in self.parts))

    def asked(self, reading: Reading) -> tuple[Part, ...]:
        """The parts that belong to a reading."""
        return tuple(part for part in self.parts if not part.readings or reading.name in part.readings)

    def needs(self) -> tuple[str, ...]:
        """The results that it reads: experiments, or "experiment@reading" where a reading has settings of its own."""
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

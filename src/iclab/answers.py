"""Answers: what a run says about a statement, and the checks that the answer must pass.

Every part of every reading is judged twice by the same rule: on the trained models and on the same models before
training. A theorem's hypotheses, at the settings of the run, are shown beside its answer: if they are not met, a
theorem cannot fail.

    holds              in every reading, and an untrained model would not pass
    holds if ...       only in the named readings
    in part            only the named parts hold
    fails, fails in scaling
    open               with the reason: too few seeds, never reached, hypotheses not met, an untrained model passes too
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from iclab.errors import InputError, in_words, require
from iclab.expressions import Expression, Results, require_labels
from iclab.kinds import Finding, Outcome, Rule, compared
from iclab.statements import Part, Reading, Statement
from iclab.statistics import LEVEL, at_level, unit_of
from iclab.tallies import Answer
from iclab.theorems import Theorem

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Judged:
    """A part in a reading: the finding on trained models, and on untrained ones (None if they were not tested), with
    intervals of this level.
    """

    part: Part
    finding: Finding
    control: Finding | None
    level: float
    found: str = ""

    @property
    def holds(self) -> bool:
        """The trained models agree with the paper."""
        return self.finding.outcome is Outcome.holds

    @property
    def untrained(self) -> bool:
        """So do untrained ones."""
        return self.control is not None and self.control.outcome is Outcome.holds

    @property
    def alike(self) -> bool:
        """It is unclear whether untrained models pass and whether they differ from trained ones: their interval crosses
        the rule and overlaps that of the trained models.
        """
        if self.control is None or self.control.outcome is not Outcome.open:
            return False
        one, other, rule = self.finding.interval, self.control.interval, self.part.rule
        crosses = compared(other, rule.low, rule.high) is Outcome.open
        return crosses and other.low <= one.high and one.low <= other.high

    @property
    def settled(self) -> bool:
        """More seeds would probably not change it; if it holds, it is also clear whether untrained models pass."""
        unclear = self.control is not None and self.control.outcome is Outcome.open and not self.control.settled
        return self.finding.settled and not (self.holds and unclear)


@dataclasses.dataclass(frozen=True)
class Read:
    """One reading of a statement: its parts, its theorem's hypotheses at its settings, and its answer."""

    reading: Reading
    parts: tuple[Judged, ...]
    theorem: Theorem | None
    answer: Answer
    words: str

    @property
    def open(self) -> tuple[str, ...]:
        """The parts that more seeds could settle."""
        return tuple(judged.part.name for judged in self.parts if not judged.settled)

    @property
    def also_untrained(self) -> bool:
        """Untrained models pass every part: the reading says nothing about learning."""
        return bool(self.parts) and all(judged.untrained for judged in self.parts)


Hypotheses = Callable[[str, Reading], Theorem | None]
"""`hypotheses(name, reading)`: a theorem of the paper at the settings of a reading; None if there is none of this name.
"""


def no_hypotheses(name: str, reading: Reading) -> Theorem | None:
    """A paper without theorems."""
    return None


def read(
    statement: Statement,
    results: Results,
    control: Results | None = None,
    hypotheses: Hypotheses = no_hypotheses,
    *,
    level: float = LEVEL,
    before: Mapping[str, Read] = NOTHING,
) -> tuple[Read, ...]:
    """Judge every reading of the statement. `control` are the same results of untrained models, `level` is that of the
    intervals, and parts that were settled `before`, in readings by name, stay as they are.
    """
    with at_level(level):
        return tuple(
            _read(statement, reading, results, control, hypotheses, level, before.get(reading.name))
            for reading in statement.readings
        )


def combine(reads: Sequence[Read]) -> tuple[Answer, str]:
    """The answer over all readings."""
    if len(reads) == 1:
        return reads[0].answer, reads[0].words
    by = {answer: [read for read in reads if read.answer is answer] for answer in Answer}
    held = by[Answer.holds]
    if len(held) == len(reads):
        return Answer.holds, f"holds in all {len(reads)} readings{_constants(held[0].parts)}"
    rest = " · ".join(f"{_named(read)}: {read.words}" for read in reads if read.answer is not Answer.holds)
    if held:
        return Answer.holds_if, f"holds if {' or '.join(_named(read) for read in held)} · {rest}"
    for answer in (Answer.in_part, Answer.open, Answer.fails, Answer.fails_in_scaling):
        if by[answer]:
            return answer, rest
    raise AssertionError("a statement has at least one reading")


def _read(
    statement: Statement,
    reading: Reading,
    results: Results,
    control: Results | None,
    hypotheses: Hypotheses,
    level: float,
    before: Read | None,
) -> Read:
    kept = {judged.part.name: judged for judged in before.parts if judged.settled} if before else {}
    parts = tuple(
        kept.get(part.name) or _judged(statement, part, reading, results, control, level)
        for part in statement.asked(reading)
    )
    require(bool(parts), f"{statement.id}: no part belongs to the reading {reading.name!r}.")
    theorem = None if statement.asked_of else hypotheses(statement.hypotheses or statement.name, reading)
    answer, words = answer_of(parts, theorem, architecture=bool(statement.architecture))
    return Read(reading, parts, theorem, answer, words)


def answer_of(parts: Sequence[Judged], theorem: Theorem | None, *, architecture: bool) -> tuple[Answer, str]:
    """The answer of one reading from its parts."""
    unmet = [] if theorem is None else [condition for condition in theorem.conditions if not condition.satisfied]
    held = [judged for judged in parts if judged.holds]
    failed = [judged for judged in parts if judged.finding.outcome in (Outcome.fails, Outcome.fails_in_scaling)]
    untrained = all(judged.untrained for judged in parts)
    several = len(parts) > 1
    if len(held) == len(parts):
        found = "; ".join(judged.found for judged in parts if judged.found)
        words = parts[0].finding.words if not several else f"holds{_constants(parts)}"
        words = f"{words}{f' ({found})' if found else ''}"
        if untrained and not architecture:
            return Answer.open, f"open: an untrained model passes too ({words})"
        if not untrained and not architecture and all(judged.untrained or judged.alike for judged in parts):
            return Answer.open, f"open: untrained models cannot be told from trained ones ({words})"
        return Answer.holds, f"{words}{', also untrained' if untrained else ''}"
    told = " · ".join(
        f"{judged.part.name}: {judged.finding.words}{_also(judged)}" for judged in parts if not judged.holds
    )
    words = told if several else f"{parts[0].finding.words}{_also(parts[0])}"
    missing = ", ".join(condition.name for condition in unmet)
    excused = f" · the theorem's hypotheses are not met ({missing})" if failed and unmet else ""
    if held:
        names = ", ".join(f"{judged.part.name}{_also(judged)}" for judged in held)
        return Answer.in_part, f"in part: {names} hold{'s' * (len(held) == 1)} · {words}{excused}"
    if excused or not failed:
        return Answer.open, f"{'open: ' * bool(excused)}{words}{excused}"
    scaling = all(judged.finding.outcome is Outcome.fails_in_scaling for judged in failed)
    return (Answer.fails_in_scaling if scaling else Answer.fails), words


def _also(judged: Judged) -> str:
    """A remark on untrained models, if they pass."""
    if not judged.untrained:
        return ""
    return " (also untrained)" if judged.holds else " (an untrained model passes)"


def _named(read: Read) -> str:
    return read.reading.name or "as stated"


def _constants(parts: Sequence[Judged]) -> str:
    """The constants with which bounds hold."""
    known = {j.part.name: j.finding.details["constant"] for j in parts if "constant" in j.finding.details}
    told = [f"with {', '.join(f'c ≈ {value:.2g} ({name})' for name, value in known.items())}"] if known else []
    loose = [j.part.name for j in parts if j.finding.details.get("loose")]
    return "".join(f" {words}" for words in told + ([f"(loose: {', '.join(loose)})"] if loose else []))


def _judged(
    statement: Statement, part: Part, reading: Reading, results: Results, control: Results | None, level: float
) -> Judged:
    finding = part.rule.judge(_values(statement, part.name, part.statistic, part.rule, reading, results), part.bounds)
    if finding.interval.lost and (diverged := _diverged(part, reading, results)):
        finding = dataclasses.replace(finding, words=f"{finding.words} ({diverged})")
    if part.unsettled and reading.name in (part.unsettled_in or (reading.name,)):
        words = f"open: {part.unsettled} (here {finding.words})"
        finding = dataclasses.replace(finding, outcome=Outcome.open, words=words, settled=True)
    untrained = None
    if control is not None:
        values = _values(statement, part.name, part.statistic, part.rule, reading, control)
        untrained = part.rule.judge(values, part.bounds)
    found = ""
    if part.found is not None:
        number = float(evaluated(statement, part.name, part.found, reading, results).mean())
        found = part.found_as.format(number) if np.isfinite(number) else ""
    return Judged(part, finding, untrained, level, found)


def _diverged(part: Part, reading: Reading, results: Results) -> str:
    """How many of the trainings behind a part diverged, in words; empty if none did."""
    found = [results[place].attrs for name in part.statistic.needs if (place := reading.place(name)) in results]
    lost, members = (sum(int(attrs.get(name, 0)) for attrs in found) for name in ("diverged", "members"))
    return f"{lost} of {members} trainings diverged" if lost else ""


def view(reading: Reading, experiments: Sequence[str], results: Results) -> dict[str, xr.Dataset]:
    """The results as a reading sees them, with its experiments, variables and labels in place of the named ones."""
    seen = {}
    for name in experiments:
        place = reading.place(name)
        if place not in results:
            continue
        data = results[place]
        for variable, other in reading.variables.items():
            if other in data:
                data = data.assign({variable: data[other]})
        at = {dim: label for dim, label in reading.at.items() if dim in data.dims}
        require_labels(data, name, at)
        seen[name] = data.sel(at)
    return seen


def evaluated(
    statement: Statement, part: str, expression: Expression, reading: Reading, results: Results
) -> xr.DataArray:
    """An expression in a reading; an `InputError` in one sentence if something does not exist."""
    where = f"{statement.id}{f'[{reading.name}]' if reading.name else ''}, {part!r}"
    try:
        values = expression.evaluate(view(reading, expression.needs, results))
    except Exception as error:
        raise InputError(f"{where}: {in_words(error)}") from error
    kind = type(values).__name__
    require(isinstance(values, xr.DataArray), f"{where}: the statistic must be an xarray DataArray, not {kind}.")
    numeric = values.dtype.kind in "biuf"
    require(numeric, f"{where}: the statistic has values of the type {values.dtype}; they must be numbers.")
    return values


def _values(
    statement: Statement, part: str, expression: Expression, rule: Rule, reading: Reading, results: Results
) -> xr.DataArray:
    """The statistic: one number per seed (or per prompt, if nothing was trained), and per size if the rule has one."""
    values = evaluated(statement, part, expression, reading, results)
    unit = unit_of(values)
    kept = [unit, *([rule.dim] if rule.dim else [])]
    others = [dim for dim in values.dims if dim not in kept]
    many = [f"{dim} ({values.sizes[dim]})" for dim in others if values.sizes[dim] > 1]
    missing = [name for name in kept if name not in values.dims]
    where = f"{statement.id}, {part!r}"
    require(
        not many,
        f"{where}: the statistic also has the dimensions {', '.join(many)}; choose with .sel(...) or reduce them.",
    )
    require(not missing, f"{where}: the statistic has no dimension {', '.join(map(repr, missing))}.")
    return values.squeeze(others, drop=True)

"""A statement and its answer in claims.json: plain data, with every number behind the answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iclab.answers import Hypotheses, Judged, Read, combine, no_hypotheses, read
from iclab.expressions import Results
from iclab.kinds import Finding, describe
from iclab.statements import Statement
from iclab.tallies import Answer
from iclab.theorems import Theorem

SCHEMA = 2  # of claims.json


def judge(
    statement: Statement,
    results: Results,
    control: Results | None = None,
    hypotheses: Hypotheses = no_hypotheses,
    *,
    attempted: bool = True,
) -> dict[str, Any]:
    """The statement's entry in claims.json, from all results at once."""
    return entry(statement, read(statement, results, control, hypotheses), attempted=attempted)


def entry(statement: Statement, reads: Sequence[Read], *, attempted: bool = True) -> dict[str, Any]:
    """The statement in claims.json, without what only the run knows (profile, settings, seconds). With
    `attempted=False` (the smoke profile) it has numbers but no answer.
    """
    answer, words = combine(reads)
    printed = statement.printed
    passes = [read.reading.name for read in reads if read.also_untrained]
    return {
        "id": statement.id,
        "paper": statement.paper,
        "source": statement.source,
        "statement": statement.words,
        "kinds": list(statement.kinds),
        "beyond": statement.beyond,
        "answer": str(answer) if attempted else str(Answer.not_asked),
        "words": words if attempted else "not asked at this size",
        "architecture": statement.architecture,
        "also_untrained": passes,
        "readings": [_reading_entry(read, attempted, printed.values if printed else {}) for read in reads],
        "ours": list(statement.ours),
        "afterwards": statement.afterwards,
        "figure": statement.figure or statement.name,
        "table": statement.table,
        "printed": {"words": printed.words, "where": printed.where} if printed else None,
    }


def _reading_entry(read: Read, attempted: bool, printed: Mapping[str, float]) -> dict[str, Any]:
    return {
        "name": read.reading.name,
        "why": read.reading.why,
        "changes": dict(read.reading.changes),
        "answer": str(read.answer) if attempted else str(Answer.not_asked),
        "words": read.words if attempted else "",
        "hypotheses": _hypotheses(read.theorem),
        "parts": [_part_entry(judged, attempted) | _number(printed, judged) for judged in read.parts],
    }


def _hypotheses(theorem: Theorem | None) -> dict[str, Any] | None:
    if theorem is None or not theorem.conditions:
        return None
    met = [condition for condition in theorem.conditions if condition.satisfied]
    unmet = [f"{condition.name}: {condition.formula}" for condition in theorem.conditions if not condition.satisfied]
    return {"theorem": theorem.id, "met": len(met), "of": len(theorem.conditions), "unmet": unmet}


def _number(printed: Mapping[str, float], judged: Judged) -> dict[str, float]:
    """The number that the paper prints for a part, if any."""
    name = judged.part.name
    return {"printed": printed[name]} if name in printed else {}


def _part_entry(judged: Judged, attempted: bool) -> dict[str, Any]:
    control = judged.control
    return {
        "name": judged.part.name,
        **describe(judged.part.rule),
        "outcome": str(judged.finding.outcome) if attempted else str(Answer.not_asked),
        "level": round(judged.level, 6),
        **_finding_entry(judged.finding),
        "found": judged.found,
        "control": None if control is None else {"outcome": str(control.outcome), **_finding_entry(control)},
    }


def _finding_entry(finding: Finding) -> dict[str, Any]:
    return {
        "words": finding.words,
        **{key: _plain(value) for key, value in dataclasses.asdict(finding.interval).items()},
        "unit": finding.unit,
        "details": {key: _plain(value) for key, value in finding.details.items()},
        "values": [_plain(value) for value in finding.values],
    }


def _plain(value: Any) -> Any:
    """JSON has no NaN or infinity: they become null."""
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value

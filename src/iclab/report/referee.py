"""A referee's report on a paper, from the answers of a run or from the recorded ones: what was tested, what holds in
which reading, what could not be tested, what the authors should state, the strongest counter-evidence, and our own
choices.

Every sentence is a template filled with the answers; `writing` renders it as Markdown and as LaTeX.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iclab.authoring.gpt2 import GPT2Training
from iclab.authoring.paper import Paper
from iclab.report.evidence import Evidence, evidence
from iclab.report.formats import listed
from iclab.report.testimony import (
    FAILS,
    Record,
    Testimony,
    begun,
    full_name,
    in_reading,
    named,
    numbers,
    shortened,
)
from iclab.settings import replaced, value_of
from iclab.statements import Statement
from iclab.tallies import Answer
from iclab.unstated import Between, Unstated, shown

VERBS = {
    Answer.holds: ("holds", "hold"),
    Answer.holds_if: ("holds in some readings only", "hold in some readings only"),
    Answer.in_part: ("holds in part", "hold in part"),
    Answer.fails: ("fails", "fail"),
    Answer.fails_in_scaling: ("fails in scaling", "fail in scaling"),
    Answer.open: ("is open", "are open"),
}
MOST_TOLD = 1  # failing and open parts of a statement to describe; the others are counted
SHARED = 2  # report a choice of ours if it concerns at least this many statements
MOST_READINGS = 10  # of a statement, up to which each is explained
MOST_CHOICES = 3  # that concern several statements
MOST_REASONS = 6
CROSSES, ONE_SIZE = "crosses the rule", "at one size"


@dataclasses.dataclass(frozen=True)
class Row:
    """One statement in the table: its name in the paper, what it says, the answer, and the evidence."""

    source: str
    words: str
    answer: str
    detail: str
    beyond: bool
    afterwards: bool


@dataclasses.dataclass(frozen=True)
class Report:
    """The report, section by section, as plain text."""

    title: str
    citation: str
    origin: str
    summary: tuple[str, ...]
    rows: tuple[Row, ...]
    deciding: tuple[str, ...]
    readings: tuple[tuple[str, str], ...]
    untested: tuple[str, ...]
    unstated: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    choices: tuple[str, ...]


def report(given: Testimony) -> Report:
    """The report on the paper."""
    statements = {one.id: one for one in given.paper.statements(given.settings)}
    own = [entry for entry in given.entries if not entry["beyond"]]
    settings = [one for one in given.paper.unstated if isinstance(one, Unstated)]
    return Report(
        given.paper.title,
        given.paper.citation,
        f"{given.origin} ({given.profile} profile, {given.seeds})",
        tuple(_summary(given)),
        tuple(_row(entry, statements[entry["id"]]) for entry in given.entries),
        tuple(_deciding(own)),
        tuple(_glossary(own, statements)),
        tuple(_untested(given, own, statements)),
        tuple((one.setting, _unstated(one, given.settings)) for one in settings),
        tuple(_remarks(given.paper, given.settings)),
        tuple(evidence(given, own, statements)),
        tuple(_choices(own, statements)),
    )


def _summary(given: Testimony) -> Iterator[str]:
    own, beyond = ([e for e in given.entries if e["beyond"] == flag] for flag in (False, True))
    yield f"Of {_counted(own)}."
    failing = [entry["source"] for entry in own if entry["answer"] in FAILS]
    if failing:
        yield f"No part holds in {listed(failing)}."
    passing = [e["source"] for e in own if len(e["also_untrained"]) == len(e["readings"]) and e["answer"] == "holds"]
    if passing:
        yield f"Untrained models also pass {listed(passing)}, so this says nothing about learning."
    if beyond:
        yield f"Beyond the paper, of {_counted(beyond, ' of our own')}."


def _counted(entries: Sequence[Record], which: str = " of the paper") -> str:
    """How many statements have which answer, as part of a sentence.

    >>> _counted([{"answer": "holds"}, {"answer": "open"}, {"answer": "open"}])
    '3 statements of the paper, 1 holds and 2 are open'
    """
    told = []
    for answer, (one, several) in VERBS.items():
        count = sum(entry["answer"] == answer for entry in entries)
        told += [f"{count} {one if count == 1 else several}"] * bool(count)
    return f"{len(entries)} statement{'s' * (len(entries) != 1)}{which}, {listed(told)}"


def _row(entry: Record, statement: Statement) -> Row:
    source = entry["source"].removeprefix("Beyond: ").removeprefix("Beyond ")
    source = begun(source)
    detail = shortened(_detail(entry))
    return Row(source, shortened(statement.words), entry["answer"], detail, entry["beyond"], bool(statement.afterwards))


def _detail(entry: Record) -> str:
    """The evidence for an answer, in a sentence or two."""
    readings = entry["readings"]
    if entry["answer"] == "holds":
        return str(entry["words"]).removeprefix("holds").lstrip(": ,") or "every part"
    if len(readings) == 1:
        return _parts(readings[0])
    held = sum(one["answer"] == "holds" for one in readings)
    first = next(one for one in readings if one["answer"] != "holds")
    told = f"holds in {held} of {len(readings)} readings" if held else f"{len(readings)} readings"
    return f"{told}. Reading {first['name'] or 'as stated'}: {_parts(first)}"


def _parts(reading: Record) -> str:
    """How many parts hold, which fail, which are open."""
    parts = reading["parts"]
    held = sum(part["outcome"] == "holds" for part in parts)
    told = [f"{held} of {len(parts)} parts hold{'s' * (held == 1)}"] if len(parts) > 1 else []
    failing = [part for part in parts if part["outcome"] in FAILS]
    if failing:
        measured = [f"{part['name']}: {numbers(part)}" for part in failing[:MOST_TOLD]]
        told.append(f"fails: {'; '.join(measured)}{_more(failing)}")
    unclear = [part for part in parts if part["outcome"] == "open"]
    if unclear:
        told.append(f"open: {'; '.join(part['name'] for part in unclear[:MOST_TOLD])}{_more(unclear)}")
    return "; ".join(told)


def _more(parts: Sequence[Record]) -> str:
    return f" (and {len(parts) - MOST_TOLD} more)" if len(parts) > MOST_TOLD else ""


def _deciding(own: Sequence[Record]) -> Iterator[str]:
    """Statements whose answer depends on the reading: where they hold and where not. Those that agree are grouped."""
    found: dict[str, list[str]] = {}
    for entry in own:
        readings = entry["readings"]
        if len({one["answer"] for one in readings}) > 1:
            held = [named(one) for one in readings if one["answer"] == "holds"]
            others = [f"{named(one)} ({one['answer']})" for one in readings if one["answer"] != "holds"]
            others = [f"the other {len(others)}"] if len(readings) > MOST_READINGS else others
            where = [f"holds in {', '.join(held)}"] if held else []
            where += [f"not in {', '.join(others)}"] if others else []
            found.setdefault(f"{'; '.join(where)}.", []).append(entry["source"])
    for told, sources in found.items():
        yield f"{listed(sources)}: {told}"


def _glossary(own: Sequence[Record], statements: Mapping[str, Statement]) -> Iterator[tuple[str, str]]:
    """Explanations of the readings of those statements, unless a statement has too many."""
    told: dict[str, dict[str, None]] = {}
    for entry in own:
        readings = statements[entry["id"]].readings
        if len({one["answer"] for one in entry["readings"]}) > 1 and len(readings) <= MOST_READINGS:
            for reading in readings:
                changes = ", ".join(f"{key} = {shown(value)}" for key, value in reading.changes.items())
                if reading.why or changes:
                    told.setdefault(reading.why or changes, {})[reading.name or "as stated"] = None
    for why, names in told.items():
        yield " and ".join(names), why


def _untested(given: Testimony, own: Sequence[Record], statements: Mapping[str, Statement]) -> Iterator[str]:
    """What is open and why, and where a theorem's hypotheses are not met."""
    crossing, constants, reasons = [], [], []
    for entry in own:
        told = False
        unclear = [(one, part) for one in entry["readings"] for part in one["parts"] if part["outcome"] == "open"]
        for one, part in unclear:
            reason = re.sub(r" \(here .*\)$", "", str(part["words"]).removeprefix("open: "))
            if ONE_SIZE in reason:
                constants.append(entry["source"])
            elif CROSSES in reason or reason[:1].isdigit() or reason.startswith(("-", "exponent")):
                crossing.append(entry["source"])
            elif not told:
                told = True
                reasons.append(f"{entry['source']}: {full_name(part, one)}{in_reading(one)}: {reason.rstrip('.')}.")
    yield from reasons[:MOST_REASONS]
    if len(reasons) > MOST_REASONS:
        more = len(reasons) - MOST_REASONS
        words = "statement has" if more == 1 else "statements have"
        yield f"{more} more {words} parts that are open for other reasons."
    if crossing:
        yield f"Some parts stay open because their intervals cross the rule: {listed(crossing)}."
    if constants:
        yield (
            "Some bounds were tested at one size and need a constant above 1, which may or may not be a failure: "
            f"{listed(constants)}."
        )
    yield from _unmet(given, own, statements)


def _unmet(given: Testimony, own: Sequence[Record], statements: Mapping[str, Statement]) -> Iterator[str]:
    """Conditions of theorems that are not met: at the settings of the run, and in readings with other settings."""
    conditions: dict[str, dict[str, None]] = {"": {}}
    sources: dict[str, list[str]] = {"": []}
    for entry in own:
        statement = statements[entry["id"]]
        for reading in statement.readings:
            settings = replaced(given.settings, reading.changes)
            theorem = given.paper.theorem(statement.hypotheses or statement.name, settings)
            failing = [one.formula for one in theorem.conditions if not one.satisfied] if theorem else []
            if failing:
                where = reading.name if reading.changes else ""
                conditions.setdefault(where, {}).update(dict.fromkeys(failing))
                sources.setdefault(where, []).append(entry["source"])
    for where in (where for where in conditions if conditions[where]):
        at = f"In the reading {where}" if where else "At the settings of the run"
        yield (
            f"{at}, some hypotheses of {listed(sources[where])} are not met, with a hidden constant of 1: "
            f"{'; '.join(conditions[where])}. The report does not call a theorem failed there."
        )


def _remarks(paper: Paper, settings: Any) -> Iterator[str]:
    """Unstated choices that are not settings; for GPT-2, those of these settings and not of another profile."""
    groups = {profile: _gpt2(found) for profile, found in paper.settings.items()}
    others = {sentence for found in groups.values() for one in found for sentence in one.unstated()}
    yield from (one for one in paper.unstated if isinstance(one, str) and one not in others)
    if others & set(paper.unstated):
        yield from (sentence for one in _gpt2(settings) for sentence in one.unstated())


def _gpt2(settings: Any) -> list[GPT2Training]:
    values = [getattr(settings, field.name) for field in dataclasses.fields(settings)]
    return [value for value in values if isinstance(value, GPT2Training)]


def _unstated(one: Unstated, settings: Any) -> str:
    taken = shown(value_of(settings, one.setting))
    others = (
        [one.values] if isinstance(one.plausible, Between) else map(shown, one.others(value_of(settings, one.setting)))
    )
    also = ", or ".join(["", ", ".join(others)]) if one.others(value_of(settings, one.setting)) else ""
    return f"{taken} here{also}{f' ({one.source})' if one.source else ''}"


def _choices(own: Sequence[Record], statements: Mapping[str, Statement]) -> Iterator[str]:
    """What a reader must know about how the answers were made."""
    yield "Models, data and training are written from the paper; the authors' code was not run."
    yield (
        "Each rule is compared with the 95 % interval of its statistic over training seeds (Student's t), without "
        "correction for the number of statements. Exponents may be off by a quarter of the prediction."
    )
    later = [entry["source"] for entry in own if statements[entry["id"]].afterwards]
    if later:
        yield (
            f"In {len(later)} of {len(own)} statements (marked †) part of the rule, the statistic or the readings was "
            "chosen after seeing a result; the paper's page says what and why."
        )
    counted: dict[str, list[str]] = {}
    for entry in own:
        for choice in statements[entry["id"]].ours:
            counted.setdefault(choice, []).append(entry["source"])
    shared = sorted((c for c in counted if len(counted[c]) >= SHARED), key=lambda c: -len(counted[c]))[:MOST_CHOICES]
    for choice in shared:
        yield f"{begun(choice)} ({listed(counted[choice])})."
    if len(counted) > len(shared):
        yield f"{len(counted) - len(shared)} more choices are listed with their statements on the paper's page."

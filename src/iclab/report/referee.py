"""A referee's report on a paper, from the answers of a run or from those on record: what was tested, what holds in
which reading, what could not be tested, what the authors should state, the strongest counter-evidence, and our own
choices.

Every sentence is a template filled from the answers; `writing` sets it in Markdown and in LaTeX.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from iclab.authoring.gpt2 import GPT2Training
from iclab.authoring.paper import Paper
from iclab.settings import replaced, value_of
from iclab.statements import Part, Statement, Unstated, shown
from iclab.tallies import Answer

Record = Mapping[str, Any]
VERBS = {
    Answer.holds: ("holds", "hold"),
    Answer.holds_if: ("holds in some readings only", "hold in some readings only"),
    Answer.in_part: ("holds in part", "hold in part"),
    Answer.fails: ("fails", "fail"),
    Answer.fails_in_scaling: ("fails in scaling", "fail in scaling"),
    Answer.open: ("is open", "are open"),
}
FAILS = ("fails", "fails in scaling")
MOST_EVIDENCE = 3
MOST_TOLD = 1  # failing parts, open ones and choices of ours that are told of a statement; the others are counted
SHARED = 2  # statements that a choice of ours concerns, from which on it is told
MOST_READINGS = 10  # of a statement, for which it is told what each means
MOST_CHOICES = 3  # that concern several statements
LONGEST = 130  # signs of a cell
MOST_REASONS = 6
CROSSES, ONE_SIZE = "crosses the rule", "at one size"


@dataclasses.dataclass(frozen=True)
class Testimony:
    """The answers that a report rests on, condensed as `iclab.records` does, and what they were asked with."""

    paper: Paper
    settings: Any
    entries: Sequence[Record]
    origin: str
    profile: str

    @property
    def seeds(self) -> str:
        """How many seeds its numbers are over."""
        counts = [
            part["seeds"] for e in self.entries for one in e["readings"] for part in one["parts"] if part["seeds"]
        ]
        few, many = min(counts, default=0), max(counts, default=0)
        return f"{many} seeds" if few == many else f"{few} to {many} seeds"


@dataclasses.dataclass(frozen=True)
class Row:
    """One statement in the table: its name in print, what it says, the answer, and what that rests on."""

    source: str
    words: str
    answer: str
    detail: str
    beyond: bool
    afterwards: bool


@dataclasses.dataclass(frozen=True)
class Evidence:
    """A part of a statement that fails, in sentences, and the command that shows it."""

    source: str
    words: str
    sentences: tuple[str, ...]
    command: str


@dataclasses.dataclass(frozen=True)
class Report:
    """The report, section by section, as plain text."""

    title: str
    citation: str
    paper: str
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
    named = [one for one in given.paper.unstated if isinstance(one, Unstated)]
    return Report(
        given.paper.title,
        given.paper.citation,
        given.paper.id,
        f"{given.origin} ({given.profile} profile, {given.seeds})",
        tuple(_summary(given)),
        tuple(_row(entry, statements[entry["id"]]) for entry in given.entries),
        tuple(_deciding(own)),
        tuple(_glossary(own, statements)),
        tuple(_untested(given, own, statements)),
        tuple((one.setting, _unstated(one, given.settings)) for one in named),
        tuple(_remarks(given.paper, given.settings)),
        tuple(_evidence(given, own, statements)),
        tuple(_choices(given, own, statements)),
    )


def _summary(given: Testimony) -> Iterator[str]:
    own, beyond = ([e for e in given.entries if e["beyond"] == flag] for flag in (False, True))
    yield f"Of {_counted(own)}."
    failing = [entry["source"] for entry in own if entry["answer"] in FAILS]
    if failing:
        yield f"No part holds in {_listed(failing)}."
    passing = [e["source"] for e in own if len(e["also_untrained"]) == len(e["readings"]) and e["answer"] == "holds"]
    if passing:
        yield f"What untrained models pass as well says nothing about learning: {_listed(passing)}."
    if beyond:
        yield f"Beyond it, of {_counted(beyond, ' of ours')}."


def _counted(entries: Sequence[Record], which: str = " of the paper") -> str:
    """How many statements have which answer, as a sentence goes on.

    >>> _counted([{"answer": "holds"}, {"answer": "open"}, {"answer": "open"}])
    '3 statements of the paper 1 holds and 2 are open'
    """
    told = []
    for answer, (one, several) in VERBS.items():
        count = sum(entry["answer"] == answer for entry in entries)
        told += [f"{count} {one if count == 1 else several}"] * bool(count)
    return f"{len(entries)} statement{'s' * (len(entries) != 1)}{which} {_listed(told)}"


def _row(entry: Record, statement: Statement) -> Row:
    source = entry["source"].removeprefix("Beyond: ").removeprefix("Beyond ")
    source = _begun(source)
    detail = _shortened(_detail(entry))
    return Row(
        source, _shortened(statement.words), entry["answer"], detail, entry["beyond"], bool(statement.afterwards)
    )


def _detail(entry: Record) -> str:
    """What an answer rests on, in a sentence or two."""
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
        numbers = [f"{part['name']}: {_numbers(part)}" for part in failing[:MOST_TOLD]]
        told.append(f"fails: {'; '.join(numbers)}{_more(failing)}")
    unclear = [part for part in parts if part["outcome"] == "open"]
    if unclear:
        told.append(f"open: {'; '.join(part['name'] for part in unclear[:MOST_TOLD])}{_more(unclear)}")
    return "; ".join(told)


def _numbers(part: Record) -> str:
    words = str(part["words"])
    for outcome in ("fails in scaling", "fails", "open", "holds"):
        words = words.removeprefix(f"{outcome}: ")
    return words if "against" in words else f"{words} (rule: {part['rule']})"


def _more(parts: Sequence[Record]) -> str:
    return f" (and {len(parts) - MOST_TOLD} more)" if len(parts) > MOST_TOLD else ""


def _deciding(own: Sequence[Record]) -> Iterator[str]:
    """Statements whose answer hangs on the reading: where they hold and where not. Those that agree come together."""
    found: dict[str, list[str]] = {}
    for entry in own:
        readings = entry["readings"]
        if len({one["answer"] for one in readings}) > 1:
            held = [_name(one) for one in readings if one["answer"] == "holds"]
            others = [f"{_name(one)} ({one['answer']})" for one in readings if one["answer"] != "holds"]
            others = [f"the other {len(others)}"] if len(readings) > MOST_READINGS else others
            where = [f"holds in {', '.join(held)}"] if held else []
            where += [f"not in {', '.join(others)}"] if others else []
            found.setdefault(f"{'; '.join(where)}.", []).append(entry["source"])
    for told, sources in found.items():
        yield f"{_listed(sources)}: {told}"


def _glossary(own: Sequence[Record], statements: Mapping[str, Statement]) -> Iterator[tuple[str, str]]:
    """What the readings of those statements are; not where a statement has so many that their names must do."""
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
                reasons.append(f"{entry['source']}: {part['name']}{_in(one)}: {reason.rstrip('.')}.")
    yield from reasons[:MOST_REASONS]
    if len(reasons) > MOST_REASONS:
        yield f"{len(reasons) - MOST_REASONS} more statements have parts that are open for reasons of their own."
    if crossing:
        yield f"Some parts stay open as their intervals cross the rule: {_listed(crossing)}."
    if constants:
        yield (
            "Some bounds were asked at one size and need a constant above 1, which may be a failure or not: "
            f"{_listed(constants)}."
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
            f"{at} some hypotheses of {_listed(sources[where])} are not met, with a hidden constant of 1: "
            f"{'; '.join(conditions[where])}. A theorem is not said to fail there."
        )


def _remarks(paper: Paper, settings: Any) -> Iterator[str]:
    """What no setting can say; of GPT-2, what these settings say and not those of another profile."""
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
    others = [shown(value) for value in one.plausible if shown(value) != taken]
    also = f", or {', '.join(others)}" if others else ""
    return f"{taken} here{also}{f' ({one.why})' if one.why else ''}"


def _evidence(given: Testimony, own: Sequence[Record], statements: Mapping[str, Statement]) -> Iterator[Evidence]:
    """Parts that fail where all hypotheses are met, one per statement: in the first reading in which one does, the part
    that is farthest from its rule. Statements that fail as a whole come first, then theorems before propositions before
    figures before lemmas, then what holds in fewer readings, then what is farther from its rule.
    """
    found = []
    for entry in own:
        statement = statements[entry["id"]]
        for one in entry["readings"]:
            failing = [part for part in one["parts"] if part["outcome"] in FAILS] if _met(one) else []
            if failing:
                distance, part = max(
                    ((_clearness(part, _rule(statement, part["name"])), part) for part in failing),
                    key=lambda item: item[0],
                )
                held = sum(r["answer"] == "holds" for r in entry["readings"]) / len(entry["readings"])
                rank = (entry["answer"] in FAILS, _weight(entry["source"]), -held, distance)
                found.append((rank, entry, one, part))
                break
    told: set[str] = set()
    for _, entry, one, part in sorted(found, key=lambda item: item[0], reverse=True):
        if part["name"] not in told and len(told) < MOST_EVIDENCE:  # panels of one figure say the same
            told.add(part["name"])
            yield _told(given, entry, statements[entry["id"]], one, part)


def _weight(source: str) -> int:
    """How much of a paper rests on a statement, by what it is called."""
    if source.startswith("Theorem"):
        return 3
    if source.startswith(("Proposition", "Corollary")):
        return 2
    return 0 if source.startswith(("Lemma", "Equation", "(")) else 1


def _told(given: Testimony, entry: Record, statement: Statement, one: Record, part: Record) -> Evidence:
    words = [f"{_begun(part['name'])}: {_numbers(part)}, {part['seeds']} seeds{_in(one)}."]
    held, count = sum(r["answer"] == "holds" for r in entry["readings"]), len(entry["readings"])
    if count > 1:
        words.append(f"The statement holds in {held or 'none'} of its {count} readings.")
    if one["hypotheses"]:
        words.append(f"Hypotheses met: {one['hypotheses']}, with a hidden constant of 1.")
    if part["control"]:
        words.append(f"The same rule, put to untrained models: {part['control']}.")
    if statement.ours:
        more = len(statement.ours) - MOST_TOLD
        words.append(
            f"Ours in this: {'; '.join(statement.ours[:MOST_TOLD])}{f'; and {more} more' if more > 0 else ''}."
        )
    wanted = f"{entry['id']}[{one['name']}]" if one["name"] else entry["id"]
    again = shlex.join(["iclab", "reproduce", wanted, "--profile", given.profile, "--seeds", str(part["seeds"])])
    return Evidence(entry["source"], _shortened(statement.words), tuple(words), again)


def _in(reading: Record) -> str:
    return f" (reading {reading['name']})" if reading["name"] else ""


def _met(reading: Record) -> bool:
    """Whether all hypotheses are met, or there are none."""
    met, _, of = str(reading["hypotheses"]).partition(" of ")
    return met == of or not of


def _rule(statement: Statement, name: str) -> Part:
    return next(part for part in statement.parts if part.name == name)


def _clearness(part: Record, asked: Part) -> float:
    """How many half-widths of its interval a part is away from its rule; at most 1000."""
    low, high, measured = (part[name] for name in ("low", "high", "measured"))
    if measured is None or low is None or high is None:
        return 0.0
    distance = max(asked.rule.low - measured, measured - asked.rule.high, 0.0)
    half = max((high - low) / 2, 1e-3 * abs(measured), 1e-12)
    return float(min(distance / half, 1000.0)) if np.isfinite(distance) else 0.0


def _choices(given: Testimony, own: Sequence[Record], statements: Mapping[str, Statement]) -> Iterator[str]:
    """What a reader has to know about how the answers were made."""
    yield "Models, data and training are written from the paper; the authors' code was not run."
    yield (
        "A rule is compared with the 95 % interval of its statistic over training seeds (Student's t). Nothing "
        "corrects for the number of statements. Exponents may be off by a quarter of what is predicted."
    )
    later = [entry["source"] for entry in own if statements[entry["id"]].afterwards]
    if later:
        yield (
            f"In {len(later)} of {len(own)} statements (marked †) something of the rule, the statistic or the readings "
            "was chosen after a result had been seen; the paper's page says what and why."
        )
    counted: dict[str, list[str]] = {}
    for entry in own:
        for choice in statements[entry["id"]].ours:
            counted.setdefault(choice, []).append(entry["source"])
    shared = sorted((c for c in counted if len(counted[c]) >= SHARED), key=lambda c: -len(counted[c]))[:MOST_CHOICES]
    for choice in shared:
        yield f"{_begun(choice)} ({_listed(counted[choice])})."
    if len(counted) > len(shared):
        yield f"{len(counted) - len(shared)} more choices stand with their statements on the paper's page."


def _begun(text: str) -> str:
    """The beginning of a sentence; a letter of the paper stays as it is."""
    return f"{text[:1].upper()}{text[1:]}" if text[1:2].isalpha() and text[:1].isascii() else text


def _name(reading: Record) -> str:
    return str(reading["name"]) or "the statement as it stands"


def _listed(words: Sequence[str], last: str = "and") -> str:
    words = list(dict.fromkeys(words))
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0].rstrip(';,:')} …"

"""Compare two runs, or a run and the recorded answers: which statements, readings and parts have other answers, which
settings differ, which intervals moved.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from iclab.report.formats import plain
from iclab.report.page import number, rendered
from iclab.settings import flat
from iclab.tallies import Answer

NUMBERS = ("values", "measured", "low", "high", "seeds", "lost", "details", "control")
ABOUT = ("profile", "seeds", "version", "source")
UNDECIDED = (Answer.open, Answer.not_asked)
DIFFERENTLY, ONLY_FIRST, ONLY_SECOND = "decided differently", "decided only in 1", "decided only in 2"


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the two runs: its name, its manifest, its statements."""

    name: str
    manifest: Mapping[str, Any]
    statements: Sequence[Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Difference:
    """A setting, an answer or a rule that differs; `how` says whether both runs decide it."""

    where: str
    name: str
    first: Any
    second: Any
    how: str = ""


@dataclasses.dataclass(frozen=True)
class Restated:
    """A statement whose answer differs, or the answer of one of its readings or parts."""

    id: str
    source: str
    first: str
    second: str
    words: str
    inside: tuple[Difference, ...]


@dataclasses.dataclass(frozen=True)
class Shift:
    """A part whose two intervals do not overlap."""

    statement: str
    part: str
    first: Mapping[str, Any]
    second: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What differs between two runs. `equal` statements have the same numbers to the last digit."""

    first: Side
    second: Side
    settings: tuple[Difference, ...]
    statements: tuple[Restated, ...]
    rules: tuple[Difference, ...]
    shifts: tuple[Shift, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    shared: int
    equal: int


def compare(first: Side, second: Side) -> Comparison:
    """Statements are matched by id, parts by reading and name."""
    here, there = ({statement["id"]: statement for statement in side.statements} for side in (first, second))
    both = [name for name in here if name in there]
    statements, rules, shifts, equal = [], [], [], 0
    for name in both:
        one, two = here[name], there[name]
        inside = tuple(_inside(one, two))
        if inside or one["answer"] != two["answer"]:
            about = name, str(two["source"]), str(one["answer"]), str(two["answer"]), str(two["words"])
            statements.append(Restated(*about, inside))
        parts, others = _parts(one), _parts(two)
        for part in (part for part in parts if part in others):
            before, after = parts[part], others[part]
            if before["rule"] != after["rule"]:
                rules.append(Difference(name, part, before["rule"], after["rule"]))
            if _apart(before, after):
                shifts.append(Shift(name, part, before, after))
        numbers = [
            {part: [entry.get(name) for name in NUMBERS] for part, entry in own.items()} for own in (parts, others)
        ]
        equal += numbers[0] == numbers[1]
    return Comparison(
        first,
        second,
        tuple(_settings(first, second)),
        tuple(statements),
        tuple(rules),
        tuple(shifts),
        tuple(name for name in here if name not in there),
        tuple(name for name in there if name not in here),
        len(both),
        equal,
    )


def _inside(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[Difference]:
    """The differences in a statement's readings and parts: answers, hypotheses, outcomes, controls."""
    found = []
    others = {reading["name"]: reading for reading in two["readings"]}
    for before in one["readings"]:
        name = before["name"]
        after = others.pop(name, None)
        where = f"[{name}]" if name else "as stated"
        if after is None:
            found.append(Difference(where, "reading", before["answer"], "not there"))
            continue
        found += _changed(where, "answer", str(before["answer"]), str(after["answer"]))
        found += _changed(where, "hypotheses met", _met(before), _met(after))
        same = {part["name"]: part for part in after["parts"]}
        for part in (part for part in before["parts"] if part["name"] in same):
            pair = part, same[part["name"]]
            found += _changed(where, part["name"], *(str(side["outcome"]) for side in pair))
            found += _changed(where, f"{part['name']}, untrained", *map(_control, pair))
    return found + [Difference(f"[{name}]", "reading", "not there", other["answer"]) for name, other in others.items()]


def _changed(where: str, name: str, first: str, second: str) -> list[Difference]:
    """The difference, if any, and whether one run leaves open what the other decides."""
    if first == second:
        return []
    answers, open_first, open_second = set(Answer), first in UNDECIDED, second in UNDECIDED
    how = DIFFERENTLY
    if not {first, second} <= answers or (open_first and open_second):
        how = ""
    elif open_first or open_second:
        how = ONLY_SECOND if open_first else ONLY_FIRST
    return [Difference(where, name, first, second, how)]


def _met(reading: Mapping[str, Any]) -> str:
    """The number of hypotheses met, from a run or from a record."""
    known = reading.get("hypotheses")
    return f"{known['met']} of {known['of']}" if isinstance(known, Mapping) else known or "none"


def _control(part: Mapping[str, Any]) -> str:
    """The outcome of untrained models, from a run or from a record."""
    known = part.get("control")
    return str(known["outcome"]) if isinstance(known, Mapping) else known or "not asked"


def _parts(statement: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The parts of a statement by reading and name."""
    return {
        f"{reading['name']}: {part['name']}" if reading["name"] else part["name"]: part
        for reading in statement["readings"]
        for part in reading["parts"]
    }


def _apart(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether two intervals do not touch, or only one of the runs has a number."""
    if (one["measured"] is None) != (two["measured"] is None):
        return True
    ends = (one["low"], one["high"], two["low"], two["high"])
    return all(end is not None for end in ends) and (one["high"] < two["low"] or two["high"] < one["low"])


def _settings(first: Side, second: Side) -> list[Difference]:
    one, two = first.manifest["identity"], second.manifest["identity"]
    places = [(one, two, name) for name in ABOUT] + [
        (first.manifest, second.manifest, name) for name in ("revision", "backend")
    ]
    found = [
        Difference("run", name, old[name], new[name])
        for old, new, name in places
        if name in old and name in new and old[name] != new[name]  # a record has neither version nor machine
    ]
    texts = [side.get("texts", {}) for side in (one, two)]
    digests = [{name: hashlib.sha256(text.encode()).hexdigest()[:8] for name, text in part.items()} for part in texts]
    both = [name for name in digests[0] if name in digests[1] and digests[0][name] != digests[1][name]]
    found += [Difference(name, "source", digests[0][name], digests[1][name]) for name in both]
    before, after = one.get("settings", {}), two.get("settings", {})
    for paper in (paper for paper in before if paper in after):
        old_values, new_values = flat(before[paper]), flat(after[paper])
        pairs = ((name, old_values.get(name), new_values.get(name)) for name in old_values | new_values)
        found += [Difference(paper, name, old, new) for name, old, new in pairs if old != new]
    return found


def print_comparison(out: Console, found: Comparison, colours: Mapping[str, str]) -> None:
    """The comparison in a terminal, one line per difference."""
    out.print(
        f"[bold]1[/] {_safe(found.first.name)}\n[bold]2[/] {_safe(found.second.name)}",
        highlight=False,
        soft_wrap=True,
    )

    def section(title: str, lines: Sequence[str]) -> None:
        if lines:
            out.print(f"\n[bold]{title}[/]", highlight=False)
            for line in lines:
                out.print(f"  {line}", highlight=False, soft_wrap=True)

    section(
        "settings", [f"{_safe(d.where)} {_safe(d.name)}: {_safe(d.first)} → {_safe(d.second)}" for d in found.settings]
    )
    lines = []
    for one in found.statements:
        both = " → ".join(f"[{colours[answer]}]{answer}[/]" for answer in (one.first, one.second))
        lines.append(f"{_safe(one.id)}: {both} [dim]{_safe(one.source)}: {_safe(one.words)}[/]")
        lines += [
            f"  {_safe(f'{d.where} {d.name}: {d.first} → {d.second}')}{f' [bold]({d.how})[/]' if d.how else ''}"
            for d in one.inside
        ]
    section("statements", lines)
    section("rules", [_safe(f"{d.where}, {d.name}: {d.first} → {d.second}") for d in found.rules])
    section(
        "intervals that moved",
        [_safe(f"{s.statement}, {s.part}: {_interval(s.first)} → {_interval(s.second)}") for s in found.shifts],
    )
    section("only in 1", [_safe(name) for name in found.only_first])
    section("only in 2", [_safe(name) for name in found.only_second])
    out.print(f"\n{summary(found)}", highlight=False, soft_wrap=True)


def _safe(text: object) -> str:
    """Text from a folder that somebody else may have made, escaped."""
    return escape(plain(str(text)))


def parts_decided(found: Comparison, how: str) -> int:
    """How many parts of statements the two runs decide in this way."""
    names = ("answer", "reading", "hypotheses met")
    inside = [d for one in found.statements for d in one.inside if d.name not in names]
    return sum(d.how == how and not d.name.endswith(", untrained") for d in inside)


def summary(found: Comparison) -> str:
    """The comparison in a sentence."""
    changed = sum(one.first != one.second for one in found.statements)
    told = [
        f"{_several(found.shared, 'statement')} in both, {found.equal} with equal numbers; "
        f"{_several(changed, 'answer')} changed",
        *(
            f"{_several(n, 'part')} {how}"
            for how in (DIFFERENTLY, ONLY_FIRST, ONLY_SECOND)
            if (n := parts_decided(found, how))
        ),
        f"{_several(len(found.shifts), 'interval')} no longer overlap{'s' * (len(found.shifts) == 1)}",
        f"{_several(len(found.settings), 'setting')} differ{'s' * (len(found.settings) == 1)}.",
    ]
    return ", ".join(told)


def _several(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def _interval(part: Mapping[str, Any]) -> str:
    return f"{number(part['measured'])} [{number(part['low'])}, {number(part['high'])}]"


def render_comparison(found: Comparison) -> str:
    """The comparison as an HTML page."""
    return rendered("comparison.html", found=found, summary=summary(found))

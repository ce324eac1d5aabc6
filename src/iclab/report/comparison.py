"""Two runs side by side: what was set differently, which answers changed, which intervals moved."""

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

NUMBERS = ("values", "measured", "low", "high", "seeds", "lost", "details", "control")
ABOUT = ("profile", "seeds", "version", "source")


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the two runs: its name, its manifest, its statements."""

    name: str
    manifest: Mapping[str, Any]
    statements: Sequence[Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Difference:
    """A setting, an answer or a rule that is not the same."""

    where: str
    name: str
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Shift:
    """A part whose two intervals have nothing in common."""

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
    answers: tuple[Difference, ...]
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
    answers, rules, shifts, equal = [], [], [], 0
    for name in both:
        one, two = here[name], there[name]
        if one["answer"] != two["answer"]:
            answers.append(Difference(name, two["words"], str(one["answer"]), str(two["answer"])))
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
        tuple(answers),
        tuple(rules),
        tuple(shifts),
        tuple(name for name in here if name not in there),
        tuple(name for name in there if name not in here),
        len(both),
        equal,
    )


def _parts(statement: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The parts of a statement by reading and name."""
    return {
        f"{reading['name']}: {part['name']}" if reading["name"] else part["name"]: part
        for reading in statement["readings"]
        for part in reading["parts"]
    }


def _apart(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether two intervals do not touch, or one run has a number where the other has none."""
    if (one["measured"] is None) != (two["measured"] is None):
        return True
    ends = (one["low"], one["high"], two["low"], two["high"])
    return all(end is not None for end in ends) and (one["high"] < two["low"] or two["high"] < one["low"])


def _settings(first: Side, second: Side) -> list[Difference]:
    one, two = first.manifest["identity"], second.manifest["identity"]
    found = [Difference("run", name, one.get(name), two.get(name)) for name in ABOUT if one.get(name) != two.get(name)]
    for name in ("revision", "backend"):
        if first.manifest.get(name) != second.manifest.get(name):
            found.append(Difference("run", name, first.manifest.get(name), second.manifest.get(name)))
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
    section(
        "answers",
        [
            f"{_safe(d.where)}: [{colours[d.first]}]{d.first}[/] → [{colours[d.second]}]{d.second}[/] "
            f"[dim]{_safe(d.name)}[/]"
            for d in found.answers
        ],
    )
    section("rules", [_safe(f"{d.where}, {d.name}: {d.first} → {d.second}") for d in found.rules])
    section(
        "intervals that moved",
        [_safe(f"{s.statement}, {s.part}: {_interval(s.first)} → {_interval(s.second)}") for s in found.shifts],
    )
    section("only in 1", [_safe(name) for name in found.only_first])
    section("only in 2", [_safe(name) for name in found.only_second])
    out.print(f"\n{summary(found)}", highlight=False, soft_wrap=True)


def _safe(text: object) -> str:
    """Text of a folder that somebody else may have made, as text."""
    return escape(plain(str(text)))


def summary(found: Comparison) -> str:
    """The comparison in a sentence."""
    return (
        f"{found.shared} statements in both, {found.equal} with equal numbers; {len(found.answers)} answers changed, "
        f"{len(found.shifts)} intervals moved apart, {len(found.settings)} settings differ."
    )


def _interval(part: Mapping[str, Any]) -> str:
    return f"{number(part['measured'])} [{number(part['low'])}, {number(part['high'])}]"


def render_comparison(found: Comparison) -> str:
    """The comparison as a page of its own."""
    return rendered("comparison.html", found=found, summary=summary(found))

"""Two runs side by side: what was set differently, which verdicts changed, which intervals moved."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from iclab.report.page import number, template
from iclab.settings import flat

ABOUT = ("profile", "seeds", "version", "source")


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the two runs: its name, its manifest, its claims."""

    name: str
    manifest: Mapping[str, Any]
    claims: Sequence[Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Difference:
    """A setting, a verdict or a rule that is not the same."""

    where: str
    name: str
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Shift:
    """A check whose two intervals have nothing in common."""

    claim: str
    check: str
    first: Mapping[str, Any]
    second: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What differs between two runs. `equal` claims have the same numbers to the last digit."""

    first: Side
    second: Side
    settings: tuple[Difference, ...]
    verdicts: tuple[Difference, ...]
    rules: tuple[Difference, ...]
    shifts: tuple[Shift, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    shared: int
    equal: int


def compare(first: Side, second: Side) -> Comparison:
    """Claims are matched by id, checks by name."""
    here, there = ({claim["id"]: claim for claim in side.claims} for side in (first, second))
    both = [name for name in here if name in there]
    verdicts, rules, shifts, equal = [], [], [], 0
    for name in both:
        one, two = here[name], there[name]
        if one["verdict"] != two["verdict"]:
            verdicts.append(Difference(name, str(two["decided_by"]), str(one["verdict"]), str(two["verdict"])))
        others = {check["name"]: check for check in two["checks"]}
        for check in one["checks"]:
            other = others.get(check["name"])
            if other is None:
                continue
            if check["rule"] != other["rule"]:
                rules.append(Difference(name, check["name"], check["rule"], other["rule"]))
            if _apart(check, other):
                shifts.append(Shift(name, check["name"], check, other))
        equal += [check["values"] for check in one["checks"]] == [check["values"] for check in two["checks"]]
    return Comparison(
        first, second, tuple(_settings(first, second)), tuple(verdicts), tuple(rules), tuple(shifts),
        tuple(name for name in here if name not in there), tuple(name for name in there if name not in here), len(both), equal,
    )  # fmt: skip


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
    out.print(f"[bold]1[/] {escape(found.first.name)}\n[bold]2[/] {escape(found.second.name)}", highlight=False, soft_wrap=True)

    def section(title: str, lines: Sequence[str]) -> None:
        if lines:
            out.print(f"\n[bold]{title}[/]", highlight=False)
            for line in lines:
                out.print(f"  {line}", highlight=False, soft_wrap=True)

    section("settings", [f"{d.where} {d.name}: {escape(str(d.first))} → {escape(str(d.second))}" for d in found.settings])
    section(
        "verdicts",
        [
            f"{escape(d.where)}: [{colours[d.first]}]{d.first}[/] → [{colours[d.second]}]{d.second}[/] [dim]{escape(d.name)}[/]"
            for d in found.verdicts
        ],
    )
    section("rules", [escape(f"{d.where}, {d.name}: {d.first} → {d.second}") for d in found.rules])
    section(
        "intervals that moved",
        [escape(f"{s.claim}, {s.check}: {_interval(s.first)} → {_interval(s.second)}") for s in found.shifts],
    )
    section("only in 1", [escape(name) for name in found.only_first])
    section("only in 2", [escape(name) for name in found.only_second])
    out.print(f"\n{summary(found)}", highlight=False, soft_wrap=True)


def summary(found: Comparison) -> str:
    """The comparison in a sentence."""
    return (
        f"{found.shared} claims in both, {found.equal} with equal numbers; {len(found.verdicts)} verdicts changed, "
        f"{len(found.shifts)} intervals moved apart, {len(found.settings)} settings differ."
    )


def _interval(check: Mapping[str, Any]) -> str:
    return f"{number(check['measured'])} [{number(check['low'])}, {number(check['high'])}]"


def render_comparison(found: Comparison) -> str:
    """The comparison as a page of its own."""
    return template("comparison.html").render(found=found, summary=summary(found))

"""A small drawing of a part: its rule, interval, mean and every seed on one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator

from iclab.report.formats import number

APART = 24.0  # per cent of the width between two numbers on an axis


def strip(check: Mapping[str, Any], beside: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any] | None:
    """The places of a part's rule, interval, mean, seeds and printed value, in per cent of the width, and the numbers
    on the axis; None without a finite value. Parts `beside` it share the scale.
    """
    rule = check.get("rule_low"), check.get("rule_high")
    values = [value for value in check["values"] if value is not None]
    marks = [
        value for one in (check, *beside) for value in (one["low"], one["high"], one["measured"], *one["values"], *rule)
    ]
    marks = [value for value in (*marks, check.get("printed")) if value is not None]
    if check["measured"] is None or not marks:
        return None
    low, high = min(marks), max(marks)
    margin = 0.08 * (high - low) or 0.1 * max(abs(high), 1e-9)
    low, high = low - margin, high + margin

    def place(value: float) -> float:
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)

    begin, end = (place(-math.inf if rule[0] is None else rule[0]), place(math.inf if rule[1] is None else rule[1]))
    found: dict[str, Any] = {
        "rule": (begin, round(end - begin, 2)),
        "mean": place(check["measured"]),
        "seeds": [*dict.fromkeys(map(place, values))],
        "axis": _axis([(place(edge), number(edge)) for edge in rule if edge is not None], low, high, place),
    }
    if check["low"] is not None and check["high"] is not None:
        found["interval"] = (place(check["low"]), round(place(check["high"]) - place(check["low"]), 2))
    if check.get("printed") is not None:
        found["printed"] = place(check["printed"])
    return found


def _axis(edges: list[tuple[float, str]], low: float, high: float, place: Any) -> list[tuple[float, str]]:
    """The edges of the rule, and round numbers where there is room."""
    shown = edges[:1] if len(edges) == 2 and edges[1][0] - edges[0][0] < APART else edges
    ticks = [tick for tick in MaxNLocator(3, steps=[1, 2, 5, 10]).tick_values(low, high) if low <= tick <= high]
    for at, text in [(place(tick), number(0.0 if abs(tick) < 1e-12 * (high - low) else float(tick))) for tick in ticks]:
        if all(abs(at - other) >= APART for other, _ in shown):
            shown = [*shown, (at, text)]
    return sorted(shown)


def about(statement: Mapping[str, Any]) -> Mapping[str, Any]:
    """The reading that decides a statement's answer: the first in which it holds, or else the first."""
    readings: Sequence[Mapping[str, Any]] = statement["readings"]
    return next((reading for reading in readings if reading["answer"] == "holds"), readings[0])


def shown(statement: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that a statement's strip shows: the first deciding part of the deciding reading."""
    parts: Sequence[Mapping[str, Any]] = about(statement)["parts"]
    return next((part for part in parts if part["outcome"] not in ("holds", "not asked")), parts[0])

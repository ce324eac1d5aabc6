"""What a rule means, and how near an interval lies to its edge, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iclab.report.formats import number

Part = Mapping[str, Any]
MANY = 1000  # times; beyond that the number says nothing more


def meaning(part: Part) -> str:
    """A part's rule, explained to a reader who does not know how answers are decided.

    >>> meaning({"kind": "value", "rule": "below 0.01"})
    'The paper says how large it is; the whole interval must lie below 0.01.'
    """
    kind, rule = part["kind"], part["rule"]
    if kind == "bound" and rule.startswith(("O(", "Ω(")):
        edge = part["rule_high"] if rule.startswith("O(") else part["rule_low"]
        other = "larger" if rule.startswith("O(") else "smaller"
        return (
            f"The paper bounds it up to a constant c that it does not state. Here c = 1 gives {number(edge)}; one size "
            f"cannot tell a {other} c from a failure."
        )
    if kind == "bound" and " like " in rule:
        edge = part["rule_high"] if part["rule_high"] is not None else part["rule_low"]
        return (
            f"The paper bounds how it grows: {rule}. The fitted exponent may be off by a quarter, so the edge is "
            f"{number(edge)}. The other side is free."
        )
    if kind == "rate":
        return (
            f"The paper states the rate: {rule}. The fitted exponent may be off by a quarter, so it must lie "
            f"{_room(part)}."
        )
    return {
        "identity": f"Both sides are the same number; their difference, a floating-point error, must stay {rule}.",
        "value": f"The paper says how large it is; the whole interval must lie {rule}.",
        "order": f"The paper says which is larger; the whole interval must lie {rule}.",
        "bound": f"A bound with its constant filled in; the whole interval must lie {rule}.",
        "sufficiency": f"If the conditions are met, the worst case must lie {rule}.",
        "existence": f"The paper says that something exists; the best found in a search must lie {rule}.",
    }[kind]


def _room(part: Part) -> str:
    low, high = part["rule_low"], part["rule_high"]
    if low is None or high is None:
        return f"above {number(low)}" if high is None else f"below {number(high)}"
    return f"between {number(low)} and {number(high)}"


def nearness(part: Part) -> tuple[str, bool]:
    """The distance of an interval from the edge of its rule, in words, and whether it is near: below its own width.

    >>> part = {"measured": 0.0115, "low": 0.011, "high": 0.012, "rule_low": None, "rule_high": 0.01}
    >>> nearness(part)
    ('misses the edge, 0.01, by 15 %', True)
    >>> nearness(part | {"measured": 0.5, "low": 0.45, "high": 0.55})
    ('misses the edge, 0.01, 50 times over', False)
    >>> nearness(part | {"measured": 0.001, "low": 0.0005, "high": 0.002})
    ('the edge, 0.01, is 5 times as much', False)
    """
    low, high, mean = part["low"], part["high"], part["measured"]
    edges = [edge for edge in (part["rule_low"], part["rule_high"]) if edge is not None]
    if low is None or high is None or mean is None or not edges:
        return "", False
    edge = min(edges, key=lambda one: min(abs(one - low), abs(one - high)))
    if low < edge < high:
        return f"the edge, {number(edge)}, lies inside the interval", True
    inside = (part["rule_low"] is None or mean > part["rule_low"]) and (
        part["rule_high"] is None or mean < part["rule_high"]
    )
    end = low if edge <= low else high
    gap, width = abs(end - edge), high - low
    near = gap < width or abs(mean - edge) < 0.2 * abs(edge)
    if inside:
        return f"the edge, {number(edge)}, is {_away(end, edge, gap, width)}", near
    return f"misses the edge, {number(edge)}, {_missed(mean, edge, gap, width)}", near


def _away(end: float, edge: float, gap: float, width: float) -> str:
    if edge > end > 0:
        return f"{_times(edge / end)} as much" if edge / end >= 2 else f"{_percent(edge / end - 1)} above"
    if end > edge > 0:
        return f"{_times(end / edge)} less" if end / edge >= 2 else f"{_percent(1 - edge / end)} below"
    return f"{number(gap)} away" if width == 0 else f"{number(gap / width)} interval widths away"


def _missed(mean: float, edge: float, gap: float, width: float) -> str:
    if mean > edge > 0 or edge > mean > 0:
        factor = max(mean, edge) / min(mean, edge)
        return f"by {_percent(abs(mean - edge) / edge)}" if factor < 2 else f"{_times(factor)} over"
    return f"by {number(gap)}" if width == 0 else f"by {number(gap / width)} interval widths"


def _times(factor: float) -> str:
    return f"{number(factor)} times" if factor < MANY else f"more than {MANY} times"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def hypotheses(statement: Mapping[str, Any]) -> str:
    """How many of its theorem's conditions are met, over its readings; empty if there are none.

    >>> hypotheses({"readings": [{"hypotheses": {"met": 5, "of": 6}}, {"hypotheses": {"met": 6, "of": 6}}]})
    '5–6 of 6'
    """
    known = [reading["hypotheses"] for reading in statement["readings"] if reading["hypotheses"]]
    if not known:
        return ""
    least, most = min(one["met"] for one in known), max(one["met"] for one in known)
    return f"{least}{f'–{most}' if most > least else ''} of {max(one['of'] for one in known)}"


def control(statement: Mapping[str, Any]) -> tuple[str, bool]:
    """What untrained models do, in words, and whether they pass in some reading."""
    asked = [part["control"] for reading in statement["readings"] for part in reading["parts"]]
    passes, readings = len(statement["also_untrained"]), len(statement["readings"])
    if not any(asked):
        return "not tested", False
    if not passes:
        return "does not pass", False
    return ("passes too" if passes == readings else f"passes in {passes} of {readings} readings"), True


def told(statement: Mapping[str, Any]) -> list[str]:
    """An answer in words, without the answer itself, which is shown before it; one line per reading or part.

    >>> told({"answer": "holds if", "words": "holds if a or b · c: fails: 0.4 [0.3, 0.5]"})
    ['a or b', 'c: fails: 0.4 [0.3, 0.5]']
    """
    words = statement["words"].removeprefix(statement["answer"]).removeprefix(":").removeprefix(",").strip()
    return words.split(" · ")


def remarks(part: Part) -> list[str]:
    """Remarks on a part beyond its outcome and its numbers.

    >>> part = {"outcome": "holds", "measured": 0.002, "low": 0.001, "high": 0.003, "found": "", "lost": 0}
    >>> remarks(part | {"words": "holds: 0.002 [0.001, 0.003]"}), remarks(part | {"words": "holds with c ≈ 2"})
    ([], ['holds with c ≈ 2'])
    """
    low, high, mean = part["low"], part["high"], part["measured"]
    said = part["words"]
    if None not in (low, high, mean):
        said = said.removeprefix(f"{part['outcome']}: {mean:.3g} [{low:.3g}, {high:.3g}]")
    lost = (
        f"{part['lost']} of {part['lost'] + part['seeds']} {part['unit']}s have no finite value" if part["lost"] else ""
    )
    return [words for words in (said.strip(" ,;"), part["found"], lost) if words]

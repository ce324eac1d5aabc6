"""The strongest counter-evidence: parts that fail although all hypotheses are met, with the commands that show it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from iclab.report.testimony import FAILS, Record, Testimony, begun, full_name, in_reading, numbers, shortened
from iclab.statements import Part, Statement

MOST_EVIDENCE = 3


@dataclasses.dataclass(frozen=True)
class Evidence:
    """A part of a statement that fails, in sentences, and the command that shows it."""

    source: str
    words: str
    sentences: tuple[str, ...]
    command: str


def evidence(given: Testimony, own: Sequence[Record], statements: Mapping[str, Statement]) -> Iterator[Evidence]:
    """Parts that fail although all hypotheses are met, one per statement: in the first reading with such a part, the
    one farthest from its rule. Statements that fail as a whole come first, then theorems before propositions before
    figures before lemmas, then those that hold in fewer readings, then those farther from their rule.
    """
    found = []
    for entry in own:
        statement = statements[entry["id"]]
        for one in entry["readings"]:
            failing = [part for part in one["parts"] if part["outcome"] in FAILS] if _met(one) else []
            if failing:
                distance, part = max(
                    ((_clearness(part, _part(statement, part["name"])), part) for part in failing),
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
    """How important a statement is, by its name in the paper."""
    if source.startswith("Theorem"):
        return 3
    if source.startswith(("Proposition", "Corollary")):
        return 2
    return 0 if source.startswith(("Lemma", "Equation", "(")) else 1


def _told(given: Testimony, entry: Record, statement: Statement, one: Record, part: Record) -> Evidence:
    words = [f"{begun(full_name(part, one))}: {numbers(part)}, {part['seeds']} seeds{in_reading(one)}."]
    held, count = sum(r["answer"] == "holds" for r in entry["readings"]), len(entry["readings"])
    if count > 1:
        words.append(f"The statement holds in {held or 'none'} of its {count} readings.")
    if one["hypotheses"]:
        words.append(f"Hypotheses met: {one['hypotheses']}, with a hidden constant of 1.")
    if part["control"]:
        words.append(f"Untrained models under the same rule: {part['control']}.")
    if statement.ours:
        words.append(f"Our own choices here: {'; '.join(statement.ours)}.")
    wanted = f"{entry['id']}[{one['name']}]" if one["name"] else entry["id"]
    again = shlex.join(["iclab", "reproduce", wanted, "--profile", given.profile, "--seeds", str(part["seeds"])])
    return Evidence(entry["source"], shortened(statement.words), tuple(words), again)


def _met(reading: Record) -> bool:
    """Whether all hypotheses are met, or there are none."""
    met, _, of = str(reading["hypotheses"]).partition(" of ")
    return met == of or not of


def _part(statement: Statement, name: str) -> Part:
    return next(part for part in statement.parts if part.name == name)


def _clearness(part: Record, asked: Part) -> float:
    """The distance of a part from its rule, in half-widths of its interval; at most 1000."""
    low, high, measured = (part[name] for name in ("low", "high", "measured"))
    if measured is None or low is None or high is None:
        return 0.0
    distance = max(asked.rule.low - measured, measured - asked.rule.high, 0.0)
    half = max((high - low) / 2, 1e-3 * abs(measured), 1e-12)
    return float(min(distance / half, 1000.0)) if np.isfinite(distance) else 0.0

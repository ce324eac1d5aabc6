"""The answers that a statement can have, and how they are counted."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any


class Answer(enum.StrEnum):
    """What a run says about a statement."""

    holds = "holds"
    holds_if = "holds if"
    in_part = "in part"
    fails = "fails"
    fails_in_scaling = "fails in scaling"
    open = "open"
    not_asked = "not asked"


PLURAL = {"holds": "hold", "holds if": "hold if", "fails": "fail", "fails in scaling": "fail in scaling"}


def tally(entries: Sequence[Mapping[str, Any]]) -> str:
    """How many statements have which answer.

    >>> tally([{"answer": "holds"}, {"answer": "open"}, {"answer": "holds"}])
    '3 statements: 2 hold, 1 open'
    """
    counts = [(str(answer), sum(entry["answer"] == answer for entry in entries)) for answer in Answer]
    told = [f"{count} {PLURAL.get(name, name) if count > 1 else name}" for name, count in counts if count]
    return f"{len(entries)} statement{'s' * (len(entries) != 1)}: {', '.join(told)}"

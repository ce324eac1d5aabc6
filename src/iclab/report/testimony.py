"""The answers behind a report, and wording that its sections share."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from iclab.authoring.paper import Paper

Record = Mapping[str, Any]
FAILS = ("fails", "fails in scaling")
LONGEST = 130  # characters in a cell
SAME = re.compile(r"(?:^|: )the same\b")  # a part that refers to the statistic before it


@dataclasses.dataclass(frozen=True)
class Testimony:
    """The answers behind a report, condensed as in `iclab.records`, with their settings and origin."""

    paper: Paper
    settings: Any
    entries: Sequence[Record]
    origin: str
    profile: str

    @property
    def seeds(self) -> str:
        """The number of seeds behind its numbers."""
        counts = [
            part["seeds"] for e in self.entries for one in e["readings"] for part in one["parts"] if part["seeds"]
        ]
        few, many = min(counts, default=0), max(counts, default=0)
        return f"{many} seeds" if few == many else f"{few} to {many} seeds"


def numbers(part: Record) -> str:
    """What a part measured, with its rule."""
    words = str(part["words"])
    for outcome in ("fails in scaling", "fails", "open", "holds"):
        words = words.removeprefix(f"{outcome}: ")
    return words if "against" in words else f"{words} (rule: {part['rule']})"


def full_name(part: Record, reading: Record) -> str:
    """The name of a part; if it says "the same", with the part that it refers to."""
    names = [str(one["name"]) for one in reading["parts"]]
    before = [name for name in names[: names.index(part["name"])] if not SAME.search(name)]
    told = SAME.search(part["name"]) and before
    return f"{part['name']} (the same as in: {before[-1]})" if told else str(part["name"])


def in_reading(reading: Record) -> str:
    """The reading, in parentheses, unless it has no name."""
    return f" (reading {reading['name']})" if reading["name"] else ""


def begun(text: str) -> str:
    """The text with a capital, as the beginning of a sentence; a letter of the paper stays as it is."""
    return f"{text[:1].upper()}{text[1:]}" if text[1:2].isalpha() and text[:1].isascii() else text


def named(reading: Record) -> str:
    """The name of a reading."""
    return str(reading["name"]) or "the statement as it stands"


def shortened(text: str) -> str:
    """The text, cut to fit a cell."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0].rstrip(';,:')} …"

"""One statement of a run: its answer, the numbers and results behind it, its figure, and the reasons."""

from __future__ import annotations

import dataclasses
import html
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

import xarray as xr
from matplotlib.figure import Figure

from iclab.report.figures import picture
from iclab.report.formats import number, plain

WIDTH = 96  # characters per line


class Hypotheses(TypedDict):
    """How many conditions of a theorem are met at the settings of a reading."""

    theorem: str
    met: int
    of: int
    unmet: list[str]


class Found(TypedDict):
    """A statistic over seeds (or prompts): its mean, its interval, the numbers themselves."""

    outcome: str
    words: str
    measured: float | None
    low: float | None
    high: float | None
    seeds: int
    lost: int
    unit: str
    values: list[float | None]
    details: dict[str, float | int | bool | str | None]


class PartEntry(Found):
    """A part of a statement in a reading: what was found, the rule that judges it, and what untrained models give."""

    name: str
    kind: str
    rule: str
    rule_low: float | None
    rule_high: float | None
    level: float
    found: str
    control: Found | None


class ReadingEntry(TypedDict):
    """One way to fill in what the paper leaves open, and its answer."""

    name: str
    why: str
    changes: dict[str, float | int | bool | str]
    answer: str
    words: str
    hypotheses: Hypotheses | None
    parts: list[PartEntry]


class Entry(TypedDict):
    """A statement as written in claims.json."""

    id: str
    paper: str
    source: str
    statement: str
    kinds: list[str]
    beyond: bool
    answer: str
    words: str
    architecture: str
    also_untrained: list[str]
    readings: list[ReadingEntry]
    ours: list[str]
    afterwards: str
    figure: str
    table: str | None
    profile: str
    settings: dict[str, object]
    seconds: float


class Words(str):
    """Text that a notebook and a prompt show without quotes, wrapped to the width."""

    def __repr__(self) -> str:
        lines = self.splitlines()
        return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False) for line in lines)


@dataclasses.dataclass(frozen=True, repr=False)
class Answered:
    """A statement and its answer. `entry` is its entry in claims.json.

    `results` and `draw` need the code of the paper and are called only when used.
    """

    entry: Entry
    unstated: Sequence[str] = ()
    command: str = ""
    results: Callable[[], Mapping[str, xr.Dataset]] = dict
    draw: Callable[[], Figure] = Figure

    @property
    def id(self) -> str:
        """The paper and the statement, as paper/statement."""
        return self.entry["id"]

    @property
    def answer(self) -> str:
        """holds, holds if, in part, fails, fails in scaling, open, not asked."""
        return self.entry["answer"]

    @property
    def words(self) -> str:
        """The answer in words."""
        return self.entry["words"]

    @property
    def data(self) -> xr.DataTree:
        """The results behind the answer: trained/EXPERIMENT, and untrained/EXPERIMENT before training."""
        return xr.DataTree.from_dict(dict(self.results()))

    def plot(self) -> Figure:
        """Its figure, as on the page of the run."""
        _let_a_notebook_show_figures()
        return self.draw()

    def why(self) -> Words:
        """Everything behind the answer: rules, intervals, controls, hypotheses, readings, unstated settings."""
        return why(self.entry, self.unstated, self.command)

    def __repr__(self) -> str:
        return plain(f"{self.id} ({self.entry['source']}): {self.words}")

    def _repr_html_(self) -> str:
        return f"<pre style='white-space: pre-wrap'>{html.escape(plain(self.why()))}</pre>"


def why(entry: Entry, unstated: Sequence[str] = (), command: str = "") -> Words:
    """A statement's answer and everything it rests on, as text."""
    lines = [f"{entry['id']} · {entry['source']}", entry["statement"], "", f"Answer: {entry['words']}"]
    for reading in entry["readings"]:
        lines += ["", *_reading(reading)]
    passing = entry["also_untrained"]
    notes = {
        "Untrained models pass too, in": ", ".join(name or "the statement as it stands" for name in passing),
        "About the architecture": entry["architecture"],
        "Our choices": "; ".join(entry["ours"]),
        "Chosen after seeing a result": entry["afterwards"],
    }
    told = [f"{word}: {text}" for word, text in notes.items() if text]
    lines += ["", *told] if told else []
    if unstated:
        lines += ["", "The paper does not state:", *(f"- {sentence}" for sentence in unstated)]
    if command:
        lines += ["", f"Repeat with: {command}"]
    return Words(plain("\n".join(lines)))


def _reading(reading: ReadingEntry) -> list[str]:
    changes = ", ".join(f"{name}={value}" for name, value in reading["changes"].items())
    about = "; ".join(text for text in (reading["why"], changes and f"with {changes}") if text)
    head = f"Reading {reading['name']}" if reading["name"] else "As stated"
    lines = [f"{head}{f' ({about})' if about else ''}: {reading['answer']}"]
    for part in reading["parts"]:
        lines.append(f"- {part['name']}: {_interval(part)}; rule: {part['rule']}; {part['outcome']}")
        if part["found"]:
            lines.append(f"  found: {part['found']}")
        if part["control"] is not None:
            lines.append(f"  untrained: {_interval(part['control'])}; {part['control']['outcome']}")
    known = reading["hypotheses"]
    if known:
        unmet = f"; not met: {'; '.join(known['unmet'])}" if known["unmet"] else ""
        lines.append(f"- hypotheses: {known['met']} of {known['of']} met{unmet}")
    return lines


def _interval(found: Found) -> str:
    lost = f", {found['lost']} lost" if found["lost"] else ""
    unit = f"{found['seeds']} {found['unit']}{'s' * (found['seeds'] != 1)}"
    return f"{number(found['measured'])} [{number(found['low'])}, {number(found['high'])}], {unit}{lost}"


def _let_a_notebook_show_figures() -> None:
    """A kernel shows a figure as a picture only once pyplot is imported, and nothing here imports it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    formatter = shell.display_formatter.formatters["image/png"] if shell is not None else None
    if formatter is not None and formatter.for_type(Figure) is None:
        formatter.for_type(Figure, _as_png)


def _as_png(figure: Figure) -> bytes:
    return picture(figure, "png")

"""The summary of a specification curve for one statement: from the answers at all points to one line and a dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.specification import (
    DEFAULT,
    READING,
    Change,
    Edge,
    Influence,
    Point,
    Share,
    edges,
    influences,
    smallest_change,
)
from iclab.statements import Statement
from iclab.tallies import Answer
from iclab.unstated import Unstated

Entries = Mapping[int, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Robustness:
    """One statement over all points.

    `data` has the dimensions point and part: the measured value with its interval, the outcome, and the settings of
    every point as coordinates. `share` is over the points of the sequence, `met` over those at which the theorem's
    hypotheses are met.
    """

    id: str
    source: str
    statement: str
    letters: Mapping[str, str]
    plausible: Mapping[str, str]
    without: tuple[str, ...]
    share: Share
    met: Share
    answers: Mapping[str, int]
    own: str
    influences: tuple[Influence, ...]
    change: Change | None
    edges: tuple[Edge, ...]
    data: xr.Dataset

    @classmethod
    def of(
        cls,
        statement: Statement,
        dimensions: Sequence[Unstated],
        points: Sequence[Point],
        without: tuple[str, ...],
        entries: Entries,
    ) -> Robustness:
        """From the answers at the points, by their numbers."""
        there = [point for point in points if point.number in entries]
        drawn = [point for point in there if not point.alone]
        held = [entries[point.number]["answer"] == Answer.holds for point in drawn]
        factors = [entries[point.number]["factors"] for point in drawn]
        blocks = [point.block for point in drawn]
        inside = [number for number, one in enumerate(factors) if all(factor >= 1 for factor in one.values())]
        own = next((entries[point.number] for point in there if point.alone == DEFAULT), None)
        alone = [
            (point.alone, entries[point.number]["at"], entries[point.number]["answer"])
            for point in there
            if point.alone not in ("", DEFAULT)
        ]
        counted = [entries[point.number]["answer"] for point in drawn]
        columns = _columns(statement, dimensions, [entries[point.number]["at"] for point in drawn])
        return cls(
            id=statement.id,
            source=statement.source,
            statement=statement.words,
            letters={one.setting: one.letter or one.setting for one in dimensions},
            plausible={one.setting: one.values for one in dimensions},
            without=without,
            share=Share.of(held, blocks),
            met=Share.of([held[number] for number in inside], [blocks[number] for number in inside]),
            answers={str(answer): counted.count(answer) for answer in Answer if answer in counted},
            own=own["answer"] if own else "",
            influences=tuple(influences(columns, held, blocks)) if drawn else (),
            change=smallest_change(dimensions, (own["at"], own["answer"]), alone) if own else None,
            edges=tuple(edges(factors, held)),
            data=_dataset(there, entries, columns),
        )

    @property
    def deciding(self) -> list[str]:
        """The settings that decide, by the paper's letter if it has one."""
        return [self.letters.get(one.setting, one.setting) for one in self.influences if one.decides]

    @property
    def words(self) -> str:
        """The summary in one line."""
        others = [f"{answer} in {count}" for answer, count in self.answers.items() if answer != Answer.holds]
        also = f" ({', '.join(others)})" if others else ""
        return f"holds in {self.share}{also}{self._decided()}"

    def _decided(self) -> str:
        told = [f"{self.letters.get(o.setting, o.setting)} ({o.explained:.0%})" for o in self.influences if o.decides]
        if told:
            return f"; decided by {', '.join(told)}"
        return "; no setting alone decides" if 0 < self.share.held < self.share.points else ""

    def summary(self) -> dict[str, Any]:
        """The entry in robustness.json: everything but the data, and the summary in words."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "data"}
        plain = {name: _plain(value) for name, value in own.items()}
        return plain | {
            "words": self.words,
            "decided_by": self.deciding,
            "smallest_change": str(self.change) if self.change else "",
            "beyond": [str(edge) for edge in self.edges],
        }

    @classmethod
    def opened(cls, summary: Mapping[str, Any], data: xr.Dataset) -> Robustness:
        """The inverse of `summary`, with the data that belong to it."""
        change = summary["change"]
        return cls(
            **{name: summary[name] for name in ("id", "source", "statement", "letters", "plausible", "answers", "own")},
            without=tuple(summary["without"]),
            share=Share(**summary["share"]),
            met=Share(**summary["met"]),
            influences=tuple(Influence(**one) for one in summary["influences"]),
            change=Change(**change) if change else None,
            edges=tuple(Edge(**one) for one in summary["edges"]),
            data=data,
        )


def _plain(value: Any) -> Any:
    """A field as JSON has it."""
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def _columns(
    statement: Statement, dimensions: Sequence[Unstated], at: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """The settings that differ between points, one value per point; the reading too, where it is more than settings."""
    changed = dict.fromkeys(name for reading in statement.readings for name in reading.changes)
    names = [*(one.setting for one in dimensions), *changed]
    found = {name: [one[name] for one in at] for name in dict.fromkeys(names)}
    settings = {reading.name: str(sorted(reading.changes.items())) for reading in statement.readings}
    used = {one[READING] for one in at}
    if len({settings.get(name, name) for name in used}) < len(used):
        found[READING] = [one[READING] or "as stated" for one in at]
    return {name: values for name, values in found.items() if len(set(values)) > 1}


def _dataset(points: Sequence[Point], entries: Entries, columns: Mapping[str, Any]) -> xr.Dataset:
    parts = dict.fromkeys(part["name"] for p in points for part in entries[p.number]["readings"][0]["parts"])
    measured = {name: np.full((len(points), len(parts)), np.nan) for name in ("measured", "low", "high")}
    measured |= {name: np.full((len(points), len(parts)), np.nan) for name in ("rule_low", "rule_high")}
    outcome = np.full((len(points), len(parts)), "", dtype=object)
    for row, point in enumerate(points):
        for part in entries[point.number]["readings"][0]["parts"]:
            column = list(parts).index(part["name"])
            outcome[row, column] = part["outcome"]
            for name, values in measured.items():
                values[row, column] = np.nan if part[name] is None else part[name]
    names = dict.fromkeys([*columns, READING])
    at = {name: ("point", [entries[point.number]["at"][name] for point in points]) for name in names}
    found = {name: (("point", "part"), values) for name, values in measured.items()}
    return xr.Dataset(
        found
        | {"outcome": (("point", "part"), outcome.astype(str))}
        | {"answer": ("point", [entries[point.number]["answer"] for point in points])}
        | {"alone": ("point", [point.alone for point in points])},
        {"point": [point.number for point in points], "part": list(parts)} | at,
    )

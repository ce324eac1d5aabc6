"""A figure in every form it is wanted in: for the page, for a paper, as numbers, in words."""

from __future__ import annotations

import dataclasses
import io

from matplotlib.figure import Figure

from iclab.drawing import finish
from iclab.report.figure_numbers import in_words, points, to_csv

FORMATS = ("svg", "pdf", "png")  # that a figure can be drawn in


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure for the page, its numbers as CSV, and what it shows in words. `iclab figures` draws it for a paper."""

    svg: bytes
    csv: str
    words: str

    def files(self) -> dict[str, bytes]:
        """Its files by suffix."""
        return {"svg": self.svg, "csv": self.csv.encode()}


def picture(figure: Figure, kind: str) -> bytes:
    """The figure as a file of this kind, the same bytes every time."""
    buffer = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(buffer, format=kind, metadata=undated.get(kind))
    return buffer.getvalue()


def draw(figure: Figure) -> Drawn:
    """All forms of a figure."""
    text, words = to_csv(points(figure)), in_words(figure)
    finish(figure)
    return Drawn(picture(figure, "svg"), text, words)

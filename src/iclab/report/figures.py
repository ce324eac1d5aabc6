"""A figure in all its forms: for the page, for a paper, as numbers, in words."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Callable, Mapping

from joblib.externals.loky import ProcessPoolExecutor
from matplotlib.figure import Figure

from iclab.drawing import finish
from iclab.report.figure_numbers import in_words, points, to_csv

FORMATS = ("svg", "pdf", "png")  # of figures
FEW = 8  # figures that take less time than starting a process


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure for the page, its numbers as CSV, and a description in words. `iclab figures` draws it for a paper."""

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


def draw_all(figures: Mapping[str, Callable[[], Figure]]) -> dict[str, Drawn]:
    """All forms of several figures; many are drawn in one process per core. These do not use the GPU."""
    processes = min(os.cpu_count() or 1, len(figures) // FEW)
    if processes < 2:
        return {name: draw(figure()) for name, figure in figures.items()}
    with ProcessPoolExecutor(processes, env={"JAX_PLATFORMS": "cpu"}) as pool:
        return dict(zip(figures, pool.map(_drawn, figures.values()), strict=True))


def _drawn(figure: Callable[[], Figure]) -> Drawn:
    return draw(figure())

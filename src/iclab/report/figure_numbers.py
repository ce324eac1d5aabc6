"""The numbers that a figure shows, read back from it: as rows, as CSV, and in words for readers who cannot see it.

Because they are read from the drawing, no figure has to state them twice, and the download is exactly what is drawn.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FuncFormatter

from iclab.report.formats import number as short

SIGNS = {r"\|": "‖", r"^\top": "ᵀ", r"\log": "log ", r"\mu": " μ", r"\nu": " ν"}
MOST_SERIES = 6  # series that a description names per panel
MOST_PLACES = 8  # categories of which a description gives every value


class Point(NamedTuple):
    """One number of a figure. `x` and `y` may be names of categories; `value` is the number behind a colour."""

    panel: str
    series: str
    x: float | str
    y: float | str
    low: float | None = None
    high: float | None = None
    value: float | None = None


def points(figure: Figure) -> list[Point]:
    """Everything drawn from data: lines with their bands, bars and points with their whiskers, scatters, heat maps."""
    return [point for axis in drawn_axes(figure) for point in _panel(axis)]


def drawn_axes(figure: Figure) -> list[Axes]:
    """The panels: visible axes that are not colour bars."""
    return [axis for axis in figure.axes if axis.get_visible() and not hasattr(axis, "_colorbar")]


def to_csv(found: list[Point]) -> str:
    """One line per number, without empty columns."""
    names = [name for name in Point._fields if any(getattr(point, name) not in (None, "") for point in found)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(getattr(point, name)) for name in names] for point in found)
    return text.getvalue()


def in_words(figure: Figure) -> str:
    """A description of each panel: its axes, and where every series begins and ends."""
    sentences = []
    for axis in drawn_axes(figure):
        found = list(_panel(axis))
        names = list(dict.fromkeys(point.series for point in found))
        what = plain(axis.get_ylabel())
        against = plain(axis.get_xlabel())
        reach = [p.x for p in found if not isinstance(p.x, str) and math.isfinite(p.x)]
        span = f" from {short(min(reach))} to {short(max(reach))}" if len(reach) == len(found) > 1 and against else ""
        head = f"{title(axis)}: {what}" + (f" against {against}{span}" if against else "")
        told = [_series(name, [p for p in found if p.series == name], bool(against)) for name in names[:MOST_SERIES]]
        more = [f"and {len(names) - MOST_SERIES} more"] if len(names) > MOST_SERIES else []
        sentences.append(f"{head.strip(': ')}. {'; '.join([part for part in told if part] + more)}.")
    return " ".join(sentence.replace(". .", ".") for sentence in sentences)


def title(axis: Axes) -> str:
    """The panel's letter and name."""
    return plain(axis.get_title(loc="left") or axis.get_title())


def plain(text: str) -> str:
    r"""A label without mathematical markup.

    >>> plain(r"$\|W_Q p_{query}\|$ along pattern"), plain(r"$u^\top W_V u$")
    ('‖W_Q p_query‖ along pattern', 'uᵀ W_V u')
    """
    if "$" in text:
        for mark, sign in SIGNS.items():
            text = text.replace(mark, sign)
        text = re.sub(r"[${}\\]", "", text)
    return text.strip()


def _panel(axis: Axes) -> Iterator[Point]:
    panel = title(axis)
    name_x, name_y = _categories(axis.xaxis), _categories(axis.yaxis)
    filled: list[Any] = [c for c in axis.collections if type(c).__name__.startswith("FillBetween")]
    bands = [(to_rgb(shape.get_facecolor()[0]), _edges(shape)) for shape in filled]
    within = {id(part) for box in axis.containers for part in _parts(box)}
    unnamed = 0
    for line in axis.get_lines():
        if id(line) in within or line.get_transform() != axis.transData:
            continue  # a whisker's line is read below; a threshold is not data
        series = _label(line.get_label())
        if not series:
            unnamed += 1
            series = f"line {unnamed}"
        colour = to_rgb(line.get_color())
        band = next((edges for shade, edges in bands if shade == colour), {})
        bands = [entry for entry in bands if entry[1] is not band]
        for x, y in _xy(line):
            yield Point(panel, series, name_x(x), name_y(y), *band.get(x, ()))
    for box in axis.containers:
        yield from _box(box, panel, name_x)
    for collection in axis.collections:
        if isinstance(collection, PathCollection):
            values = collection.get_array()
            for number, (x, y) in enumerate(np.asarray(collection.get_offsets())):
                value = None if values is None else float(values[number])
                yield Point(
                    panel, _label(collection.get_label()) or "points", name_x(float(x)), name_y(float(y)), value=value
                )
        elif isinstance(collection, QuadMesh):
            corners = np.asarray(collection.get_coordinates())
            middle = (corners[:-1, :-1] + corners[1:, 1:]) / 2
            cells = np.ma.filled(np.ma.asarray(collection.get_array(), float), np.nan).reshape(middle.shape[:2])
            for place, value in np.ndenumerate(cells):
                x, y = middle[place]
                yield Point(panel, "cells", name_x(float(x)), name_y(float(y)), value=float(value))
    for image in axis.images:
        for (row, column), value in np.ndenumerate(np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)):
            yield Point(panel, "cells", name_x(float(column)), name_y(float(row)), value=float(value))


def _box(box: object, panel: str, name_x: Callable[[float], float | str]) -> Iterator[Point]:
    """Bars or dots with whiskers."""
    if isinstance(box, BarContainer):
        places = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in box.patches]
        whiskers = _whiskers(box.errorbar)
    elif isinstance(box, ErrorbarContainer) and box.lines[0] is not None:
        places = _xy(box.lines[0])
        whiskers = _whiskers(box)
    else:
        return
    beside = len(places) > 1 and isinstance(box, BarContainer)  # bars of several series stand beside a whole number
    for number, (x, y) in enumerate(places):
        x = round(x) if beside and 0 < abs(x - round(x)) < 0.5 and places[1][0] - places[0][0] == 1 else x
        low, high = whiskers[number] if number < len(whiskers) else (None, None)
        yield Point(panel, _label(box.get_label()) or "bars", name_x(float(x)), float(y), low, high)


def _xy(line: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def _parts(box: object) -> Iterator[object]:
    """The artists that belong to bars or whiskers."""
    if isinstance(box, BarContainer) and box.errorbar is not None:
        yield from _parts(box.errorbar)
    elif isinstance(box, ErrorbarContainer):
        yield from (box.lines[0], *box.lines[1])


def _whiskers(box: ErrorbarContainer | None) -> list[tuple[float, float]]:
    if box is None or not box.has_yerr:
        return []
    collection = next(part for part in box.lines[2] if isinstance(part, LineCollection))
    ends = [np.asarray(segment)[:, 1] if len(segment) else np.array([np.nan]) for segment in collection.get_segments()]
    return [(float(np.min(end)), float(np.max(end))) for end in ends]


def _edges(collection: PolyCollection) -> dict[float, tuple[float, float]]:
    """The lower and the upper edge of a band at every x."""
    edges: dict[float, tuple[float, float]] = {}
    for path in collection.get_paths():
        for x, y in np.asarray(path.vertices):
            low, high = edges.get(float(x), (math.inf, -math.inf))
            edges[float(x)] = (min(low, float(y)), max(high, float(y)))
    return edges


def _categories(axis: Any) -> Callable[[float], float | str]:
    """Positions that carry a written label become that label."""
    written: dict[int, str] = {}
    if isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
        for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False):
            if label.get_text() and math.isclose(place, round(place)):
                written[round(place)] = plain(label.get_text())
    return lambda place: written.get(round(place), place) if math.isfinite(place) else place


def _label(text: object) -> str:
    return "" if str(text).startswith("_") else plain(str(text))


def _series(name: str, found: list[Point], along: bool) -> str:
    """One series in words: its course along an axis of numbers, its values over categories, or else its range."""
    head = "" if name in ("bars", "points", "cells") or re.fullmatch(r"line \d+", name) else f"{name} "
    if found and found[0].value is not None:
        values = [p.value for p in found if p.value is not None and math.isfinite(p.value)]
        return f"{head}{_range(values)}" if values else ""
    heights = [(p.x, float(p.y)) for p in found if not isinstance(p.y, str) and math.isfinite(float(p.y))]
    if not heights:
        return f"{head}no finite value"
    places = [x for x, _ in heights]
    if len(set(places)) == 1 and isinstance(places[0], str):
        return f"{places[0]} {_range([y for _, y in heights])}"
    if all(isinstance(x, str) for x in places) and len(set(places)) == len(places) <= MOST_PLACES:
        return head + ", ".join(f"{x} {short(y)}" for x, y in heights)
    numbers = [float(x) for x in places if not isinstance(x, str)]
    if len(numbers) < len(places) or len(numbers) < 2 or numbers != sorted(numbers) or not along:
        return f"{head}{_range([y for _, y in heights])}"
    (_, first), (_, last) = heights[0], heights[-1]
    span = max(abs(first), abs(last), 1e-12)
    verb = "stays near" if abs(last - first) < 0.05 * span else "rises from" if last > first else "falls from"
    return f"{head}{verb} {short(first)}" + ("" if verb == "stays near" else f" to {short(last)}")


def _range(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"at {short(low)}" if low == high else f"between {short(low)} and {short(high)}"


def _cell(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.7g}"
    return "" if value is None else value

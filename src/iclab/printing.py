"""Figures for print: at the width of a column, with readable text and without overlaps.

A figure for the page is as wide as its panels need. Here the width is given, and panels take as many rows as needed; a
shared legend goes below them; long titles are broken; ticks that would touch are thinned or turned.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox, ScaledTranslation

from iclab.drawing import finish, mathematics, titles_of
from iclab.errors import require

SMALLEST = 7.0  # points, the size below which nothing is printed
NARROWEST, WIDEST = 1.5, 30.0  # inches
PANEL, WITH_TEXT = 1.8, 2.2  # inches that a panel takes at least; one with text or a scale of colours beside it
SHORTEST = 1.75  # inches
LETTER, LINE = 0.08, 0.16  # inches that a letter takes, and a line
TURNED = 35.0  # degrees, of ticks that are words
HANDLE = 2.8  # letters that the line of a legend takes: dashes are seen
BELOW = 0.5  # inches that ticks and their label take below a panel


def printed(figure: Figure, width: float) -> Figure:
    """The figure at this width, in inches, laid out and ready to be saved."""
    require_width(width)
    for text in figure.findobj(Text):
        text.set_fontsize(max(SMALLEST, min(text.get_fontsize(), 8.0)))
    lines = _legend_below_all(figure, width)
    _in_columns(figure, width, lines)
    return finish(figure, named=False, relayout=_without_touching)


def require_width(width: float) -> None:
    """Refuse a width that is too small or too large for a page."""
    known = NARROWEST <= width <= WIDEST
    require(known, f"the width is {width:g} inches; it must lie between {NARROWEST:g} and {WIDEST:g}.")


def _legend_below_all(figure: Figure, width: float) -> int:
    """Replace the panels' legends by one below, if equal names mean equal lines; return how many lines it takes."""
    owners = [axis for axis in figure.axes if axis.get_legend() is not None]
    entries = [pair for axis in owners for pair in zip(*_entries(axis), strict=True)]
    looks = {(label, _look(handle)) for handle, label in entries}
    names = {label for label, _ in looks}
    if len(_panels(figure)) < 2 or not owners or not len(looks) == len(names) == len({look for _, look in looks}):
        return 0
    for axis in owners:
        axis.get_legend().remove()  # type: ignore[union-attr]
    handles = {label: handle for handle, label in reversed(entries)}
    labels = list(dict.fromkeys(label for _, label in entries))
    columns = _columns(labels, width)
    shown = [handles[label] for label in labels]
    figure.legend(shown, labels, loc="outside lower center", ncols=columns, fontsize=SMALLEST, handlelength=HANDLE)
    return -(-len(labels) // columns)


def _look(handle: Artist) -> tuple[str, ...]:
    """What identifies a line."""
    line = handle if isinstance(handle, Line2D) else None
    if line is None:
        return (type(handle).__name__, str(getattr(handle, "get_facecolor", lambda: "")()))
    return (str(line.get_color()), str(line.get_linestyle()), str(line.get_marker()))


def _legend_below(axis: Axes, width: float) -> int:
    """Put a panel's own legend below it, where it hides nothing; return how many lines it takes."""
    legend = axis.get_legend()
    if legend is None:
        return 0
    handles, labels = _entries(axis)
    columns = _columns(labels, width)
    figure = axis.get_figure(root=True)
    lines = BELOW + LINE * (axis.xaxis.label.get_text().count("\n"))
    down = ScaledTranslation(0, -lines, figure.dpi_scale_trans)  # type: ignore[union-attr]
    axis.legend(
        handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=axis.transAxes + down,
        ncols=columns, fontsize=SMALLEST, borderaxespad=0.0, frameon=False, handlelength=HANDLE,
    )  # fmt: skip
    return -(-len(labels) // columns)


def _entries(axis: Axes) -> tuple[list[Artist], list[str]]:
    """The entries of a legend, with letters as mathematics."""
    legend = axis.get_legend()
    handles, labels = axis.get_legend_handles_labels()
    if legend is not None and len(labels) != len(legend.get_texts()):  # one that was made by hand
        handles = [handle for handle in legend.legend_handles if handle is not None]
        labels = [text.get_text() for text in legend.get_texts()]
    return list(handles), [mathematics(label) for label in labels]


def _columns(labels: Sequence[str], width: float) -> int:
    return max(1, min(len(labels), int(width / _wide(labels))))


def _wide(labels: Sequence[str]) -> float:
    """Inches that the longest of these takes in a legend."""
    return 0.5 + 0.75 * LETTER * max(len(re.sub(r"\\mathrm|[${}_^]", "", label)) for label in labels)


def _panels(figure: Figure) -> list[Axes]:
    return [axis for axis in figure.axes if axis.get_subplotspec() is not None and axis.get_visible()]


def _in_columns(figure: Figure, width: float, lines: int) -> None:
    """Panels of one size in as many columns as the width has room for, above a legend of so many lines."""
    shown = _panels(figure)
    grids = {id(spec.get_gridspec()): spec.get_gridspec() for axis in shown if (spec := axis.get_subplotspec())}
    alone = all(spec.num1 == spec.num2 for axis in shown if (spec := axis.get_subplotspec()))
    before_width, before_height = figure.get_size_inches()
    if len(grids) != 1 or not alone:  # a layout of its own
        figure.set_size_inches(width, before_height * min(1.0, width / before_width) ** 0.5)
        return
    (grid,) = grids.values()
    own = [_wide([text.get_text() for text in found.get_texts()]) for axis in shown if (found := axis.get_legend())]
    inside = [WITH_TEXT] if any(axis.texts for axis in shown) or len(figure.axes) > len(shown) else []
    columns = max(1, min(len(shown), int(width / max([PANEL, *own, *inside]))))
    columns = -(-len(shown) // -(-len(shown) // columns))  # rows that are about equally long
    rows = -(-len(shown) // columns)
    ratio = (before_height / grid.nrows) / (before_width / grid.ncols)
    height = max(SHORTEST, min(before_height / grid.nrows, ratio * width / columns))
    for axis in [axis for axis in figure.axes if axis.get_subplotspec() and not axis.get_visible()]:
        axis.remove()
    scales = [(axis, picture, _unscaled(picture)) for axis in shown for picture in _scaled(axis)]
    new = figure.add_gridspec(rows, columns)
    below = 0
    for place, axis in enumerate(shown):
        axis.set_subplotspec(new[place // columns, place % columns])
        _break(axis, width / columns, height)
        below = max(below, _legend_below(axis, width / columns))
    for axis, picture, label in scales:
        figure.colorbar(picture, ax=axis, label=label)
    figure.set_size_inches(width, rows * (height + LINE * (below + 1)) + LINE * (lines + 1))


def _scaled(axis: Axes) -> list[ScalarMappable]:
    """What has a scale of colours beside a panel."""
    return [one for one in (*axis.images, *axis.collections) if one.colorbar is not None]


def _unscaled(picture: ScalarMappable) -> str:
    """Take the scale away, as it would stay where it is; its label."""
    scale = picture.colorbar
    assert scale is not None
    label = scale.ax.get_ylabel()
    scale.remove()
    return label


def _break(axis: Axes, width: float, height: float) -> None:
    """Titles and labels in lines that fit the panel."""
    inside = 0.62 * width  # ticks and labels take the rest
    room = [(title, inside) for title in titles_of(axis)] + [
        (axis.xaxis.label, inside),
        (axis.yaxis.label, 0.7 * height),
    ]
    for text, inches in room:
        if "$" not in text.get_text():
            most = max(10, int(inches / LETTER))
            text.set_text("\n".join(textwrap.wrap(text.get_text(), most, break_long_words=False)))


def _without_touching(figure: Figure) -> bool:
    """Thin or turn ticks that touch each other; return whether anything changed and needs a new layout."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    changed = False
    for axis in figure.axes:
        low, high = sorted(axis.get_xlim())
        ticks = [
            (place, label)
            for place, label in zip(axis.get_xticks(), axis.get_xticklabels(), strict=False)
            if low <= place <= high and label.get_text()
        ]
        boxes = [label.get_window_extent(canvas.get_renderer()) for _, label in ticks]
        if not any(one.overlaps(other) for one, other in itertools.pairwise(boxes)):
            continue
        changed = True
        if all(_is_number(label.get_text()) for _, label in ticks):
            kept = ticks[:: 3 if len(ticks) > 7 else 2]
            axis.set_xticks([place for place, _ in kept], [label.get_text() for _, label in kept])
        else:
            for _, label in ticks:
                label.set_rotation(TURNED)
                label.set_horizontalalignment("right")
                label.set_rotation_mode("anchor")
    return changed


def _is_number(text: str) -> bool:
    try:
        float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return "$" in text
    return True


def touching(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts of a finished figure that overlap, and texts that leave the figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # legends and names find their places
    renderer = canvas.get_renderer()
    texts = [text for text in _texts(figure) if text.get_text().strip() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_rotation() != TURNED]
    edge = Bbox.from_extents(-1, -1, figure.bbox.width + 1, figure.bbox.height + 1)
    outside = [(words, "the edge") for words, box in boxes if not _inside(box, edge)]
    pairs = itertools.combinations(boxes, 2)
    return outside + [(one[0], other[0]) for one, other in pairs if _common(one[1], other[1]) > 1.0]


def _texts(figure: Figure) -> Sequence[Text]:
    """All texts of a figure: titles, labels, ticks inside the axes, names, legends."""
    found: list[Text] = [text for legend in figure.legends for text in legend.get_texts()]
    for axis in (axis for axis in figure.axes if axis.get_visible() and axis.axison):
        found += [*titles_of(axis), axis.xaxis.label, axis.yaxis.label, *axis.texts]
        legend = axis.get_legend()
        found += legend.get_texts() if legend is not None else []
        for ticks, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            places = zip(ticks.get_majorticklocs(), ticks.get_ticklabels(), strict=False)
            found += [label for place, label in places if min(low, high) <= place <= max(low, high)]
    return found


def _inside(box: Bbox, edge: Bbox) -> bool:
    return bool(box.x0 >= edge.x0 and box.y0 >= edge.y0 and box.x1 <= edge.x1 and box.y1 <= edge.y1)


def _common(one: Bbox, other: Bbox) -> float:
    """The smaller side of what two boxes share, in pixels."""
    wide, high = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
    return min(wide, high) if wide > 0 and high > 0 and math.isfinite(wide * high) else 0.0

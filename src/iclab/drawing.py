"""One look for all figures: colour-blind safe, bands for intervals, direct labels."""

from __future__ import annotations

import logging
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from iclab.statistics import band, unit_of

# Okabe and Ito's palette: distinguishable with every common colour vision deficiency.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
MOST_NAMED = 6  # lines in a panel that are named at their ends
ARROW = {"arrowstyle": "-", "lw": 0.5, "alpha": 0.6, "shrinkA": 1, "shrinkB": 1}  # from a line to its name
LABEL_POINTS = 9.5  # height of a line of such a name

logging.getLogger("fontTools").setLevel(logging.ERROR)  # it warns about undated PDF files, which are wanted

matplotlib.rcParams.update(
    {
        "figure.dpi": 110,
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "svg.hashsalt": "iclab",
    }
)


def panels(
    count: int, titles: tuple[str, ...], *, width: float = 4.2, height: float = 3.1, columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """Panels with the paper's letters as titles, in one row or in rows of `columns`."""
    across = min(columns or count, count)
    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(down, across)).ravel())
    for axis in axes[count:]:
        axis.set_visible(False)
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, loc="left", fontsize=9, fontweight="bold")
    return figure, axes[:count]


def curve(
    axis: Axes,
    data: xr.DataArray,
    x: str,
    *,
    label: str,
    colour: int = 0,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    **line: Any,
) -> None:
    """The mean over seeds (over prompts, where data have those) against coordinate x, with its interval as a band."""
    mean, low, high = band(data.transpose(..., x), bounds, unit_of(data))
    chosen = COLOURS[colour % len(COLOURS)]
    look: dict[str, Any] = {"lw": 1.6, "marker": "o", "ms": 3} | line
    axis.plot(data[x], mean, color=chosen, label=label, **look)
    axis.fill_between(data[x], low, high, color=chosen, alpha=0.18, lw=0)


def heads_by_layer(axis: Axes, mass: xr.DataArray) -> None:
    """Masses along training by layer: each seed's head with most at the end, and with least. Heads have no order."""
    last = mass.isel(step=-1, drop=True).fillna(0)
    for layer in mass["layer"].values:
        for word, style, pick in (("most", "-", last.argmax("head")), ("least", "--", last.argmin("head"))):
            part = mass.isel(head=pick).sel(layer=layer)
            curve(
                axis,
                part,
                "step",
                label=f"layer {layer + 1}, {word}",
                colour=int(layer),
                bounds=(0, 1),
                ls=style,
                marker="",
            )


def threshold(axis: Axes, value: float, label: str, *, vertical: bool = False) -> None:
    """A dashed, labelled line at a number that the statement gives."""
    (axis.axvline if vertical else axis.axhline)(value, color="#333333", ls="--", lw=0.8)
    if vertical:
        place: dict[str, Any] = {"xy": (value, 1.0), "xytext": (3, -3), "va": "top", "ha": "left"}
    else:
        place = {"xy": (1.0, value), "xytext": (-2, 2), "va": "bottom", "ha": "right"}
    along = axis.get_xaxis_transform() if vertical else axis.get_yaxis_transform()
    axis.annotate(label, xycoords=along, textcoords="offset points", fontsize=8, color="#333333", **place)


def boundary_map(
    axis: Axes, data: xr.DataArray, x: str, y: str, x_label: str, y_label: str, boundary: tuple[np.ndarray, np.ndarray],
    boundary_label: str, *, most: float = 0.5, even: bool = False,
) -> None:  # fmt: skip
    """The mean over seeds over two settings as a heat map with cells at the settings' own places, and a theorem's
    boundary. Colours go up to `most`. With `even` all cells have one size, and the boundary runs between their centres.
    """
    mean = data.mean("seed").transpose(y, x)
    columns, rows = (np.asarray(data[name].values, float) for name in (x, y))
    if even:
        axis.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
        axis.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
        boundary = _between(boundary[0], columns), _between(boundary[1], rows)
        columns, rows = np.arange(len(columns)), np.arange(len(rows))
    mesh = axis.pcolormesh(_edges(columns), _edges(rows), mean.values, cmap="cividis", vmin=0.0, vmax=most)
    axis.figure.colorbar(mesh, ax=axis, label=str(data.name or "").replace("_", " "))
    inside = (boundary[1] >= _edges(rows)[0]) & (boundary[1] <= _edges(rows)[-1])
    axis.plot(boundary[0][inside], boundary[1][inside], color="white", lw=2.4)
    axis.plot(boundary[0][inside], boundary[1][inside], color=COLOURS[1], lw=1.4, ls="--", label=boundary_label)
    axis.set_xlim(_edges(columns)[0], _edges(columns)[-1])
    axis.set_ylim(_edges(rows)[0], _edges(rows)[-1])
    axis.grid(visible=False)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.legend(loc="upper right", frameon=True)


def _between(values: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Where values lie if centres are counted 0, 1, 2, ...; by their logarithms where all are positive; NaN outside."""
    if np.all(centres > 0):
        values, centres = np.log(values), np.log(centres)
    return np.interp(values, centres, np.arange(len(centres)), np.nan, np.nan)


def _edges(centres: np.ndarray) -> np.ndarray:
    """Borders of cells half-way between their centres."""
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[centres[0] - (middle[0] - centres[0])], middle, [centres[-1] + (centres[-1] - middle[-1])]])


def finish(figure: Figure, *, named: bool = True, relayout: Callable[[Figure], bool] = lambda figure: False) -> Figure:
    """Lay out the figure, with letters as mathematics and lines named at their ends if there is room and `named` is
    set; lay it out again if `relayout` changes it.
    """
    for axis in figure.axes:
        for text in (axis.xaxis.label, axis.yaxis.label, *axis.texts, *titles_of(axis)):
            text.set_text(mathematics(text.get_text()))
    with_legend = [axis for axis in figure.axes if axis.get_legend() is not None and named]
    for axis in with_legend:
        names = _names(axis)
        alike = [other for other in figure.axes if _names(other) == names] if len(with_legend) == 1 else [axis]
        _name_lines(axis, alike[-1])  # a legend that several panels share is read at the last of them
    for text in figure.findobj(Text):
        text.set_text(primed(text.get_text()))
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        if relayout(figure):
            engine.execute(figure)
    figure.set_layout_engine(None)  # it is laid out; with an engine, "none" too, every file would be drawn twice
    return figure


def mathematics(text: str) -> str:
    r"""Letters with subscripts and primes as mathematics; what is mathematics already stays.

    >>> mathematics("length l_ts, κ_a' = 2"), mathematics("M1 and step_size")
    ('length $l_{\\mathrm{ts}}$, $κ_{\\mathrm{a}}′$ = 2', '$M_{1}$ and step_size')
    """
    if "$" in text:
        return primed(text)
    text = re.sub(r"(?<!\w)([A-Z])([12])(?!\w)", r"$\1_{\2}$", text)
    return primed(re.sub(r"(?<!\w)([A-Za-zΑ-ω])_([A-Za-z0-9]+)('?)(?!\w)", r"$\1_{\\mathrm{\2}}\3$", text))


def primed(text: str) -> str:
    """Apostrophes in formulas as prime signs. Mathtext turns an apostrophe into a glyph of a font that no browser has,
    and an SVG then shows a zero instead.

    >>> primed("κ' is $κ_a''$, isn't it?")
    "κ' is $κ_a′′$, isn't it?"
    """
    return re.sub(r"\$[^$]*\$", lambda formula: formula[0].replace("'", "′"), text)


def titles_of(axis: Axes) -> list[Text]:
    """The titles of a panel: in the middle, on the left, on the right."""
    return [axis.title, axis._left_title, axis._right_title]  # type: ignore[attr-defined]


def _names(axis: Axes) -> list[str]:
    return [str(line.get_label()) for line in axis.get_lines() if not str(line.get_label()).startswith("_")]


def _name_lines(owner: Axes, axis: Axes) -> None:
    """Names beside the right ends of the axis' lines, moved apart where they would overlap, instead of the owner's
    legend.

    The legend stays where names are many or long, or where lines end at different places.
    """
    legend = owner.get_legend()
    lines = [line for line in axis.get_lines() if not str(line.get_label()).startswith("_")]
    ends = [_end(line, axis) for line in lines]
    texts = [_wrapped(mathematics(str(line.get_label()))) for line in lines]
    fits = len(lines) <= MOST_NAMED and all(text.count("\n") < 2 for text in texts) and len({x for x, _ in ends}) == 1
    if not lines or legend is None or len(legend.get_texts()) != len(lines) or not fits or not np.isfinite(ends).all():
        _place_legend(owner, shared=owner is not axis)
        return
    low, high = (float(edge) for edge in axis.transScale.transform([(1, y) for y in axis.get_ylim()])[:, 1])

    def place(y: np.ndarray) -> np.ndarray:
        return (axis.transScale.transform(np.stack([np.ones_like(y), y], axis=1))[:, 1] - low) / (high - low)

    wanted = [float(place(np.array([y]))[0]) for _, y in ends]
    rank = [float(np.nanmean(place(np.asarray(line.get_ydata(), float)))) for line in lines]
    place_in_grid, height = axis.get_subplotspec(), getattr(axis.figure, "get_figheight", lambda: 3.0)()
    inches = height / (place_in_grid.get_gridspec().nrows if place_in_grid else 1)
    heights = [(text.count("\n") + 1) * LABEL_POINTS / (0.75 * inches * 72) for text in texts]
    legend.remove()
    edge = axis.get_xlim()[1]
    for line, end, text, at in zip(lines, ends, texts, apart(wanted, heights, rank), strict=True):
        axis.annotate(
            text, end, xytext=(1.04, at), textcoords="axes fraction", fontsize=8, color=line.get_color(), va="center",
            annotation_clip=False, linespacing=1.05,
            arrowprops=ARROW | {"color": line.get_color()},
        )  # fmt: skip
    axis.set_xlim(right=edge)


def _place_legend(axis: Axes, *, shared: bool) -> None:
    """Set the letters of a legend that stays; one that several panels share goes below them, where it hides nothing."""
    legend = axis.get_legend()
    if legend is None:
        return
    for text in legend.get_texts():
        text.set_text(mathematics(text.get_text()))
    if shared and isinstance(axis.figure, Figure):
        handles, labels = axis.get_legend_handles_labels()
        legend.remove()
        axis.figure.legend(
            handles, [mathematics(label) for label in labels], loc="outside lower center", ncols=min(len(labels), 3)
        )


def _wrapped(text: str) -> str:
    """In lines of some 17 characters, never inside a formula."""
    whole = re.sub(r"\$[^$]*\$", lambda found: found[0].replace(" ", "\0"), text)
    return textwrap.fill(whole, 17, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def _end(line: Line2D, axis: Axes) -> tuple[float, float]:
    """The last finite point of a line that the panel shows; NaN where there is none."""
    x, y = (np.asarray(values, float) for values in line.get_data())
    kept = np.flatnonzero(np.isfinite(x) & np.isfinite(y) & (x <= axis.get_xlim()[1]))
    return (float(x[kept[-1]]), float(y[kept[-1]])) if len(kept) else (np.nan, np.nan)


def apart(wanted: Sequence[float], heights: Sequence[float], rank: Sequence[float]) -> list[float]:
    """Places near the wanted ones at which labels of these heights do not overlap; those that want the same go by rank.

    >>> [round(place, 2) for place in apart([0.0, 0.0, 1.0], [0.2, 0.2, 0.2], [0.4, 0.3, 0.9])]
    [0.3, 0.1, 0.9]
    """
    order = sorted(range(len(wanted)), key=lambda number: (round(20 * wanted[number]), rank[number]))
    places = [0.0] * len(wanted)
    edge = 0.0
    for number in order:  # from below: never lower than wanted, never over the one before
        places[number] = max(wanted[number], edge + heights[number] / 2)
        edge = places[number] + heights[number] / 2
    edge = 1.0
    for number in reversed(order):  # from above: what went over the top comes down
        places[number] = min(places[number], edge - heights[number] / 2)
        edge = places[number] - heights[number] / 2
    return places

"""Specification curves as pictures and as a page.

The top shows a statistic at every point, sorted, with its interval and the range of its rule; the bottom, the choices
behind each point; the side, the answers over the two settings that matter most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from iclab.drawing import finish
from iclab.report.figures import picture
from iclab.report.page import rendered, themed
from iclab.robustness import Robustness
from iclab.specification import DEFAULT
from iclab.tallies import Answer

COLOURS = {Answer.holds: "#009E73", Answer.in_part: "#E69F00", Answer.open: "#555555"}
OTHERS = "#D55E00"
MOST_NAMED = 4  # values of a setting that are named beside its row
MOST_ROWS = 9  # settings below the curve, those that explain most first


def pictures(one: Robustness) -> dict[str, bytes]:
    """The figure of a statement as SVG and PNG."""
    return {kind: picture(finish(figure(one)), kind) for kind in ("svg", "png")}


def figure(one: Robustness) -> Figure:
    """The specification curve and the map."""
    rows = [influence.setting for influence in one.influences][:MOST_ROWS]
    made = Figure(figsize=(9.5, 3.0 + 0.24 * max(3, len(rows))), layout="constrained")
    grid = made.add_gridspec(2, 2, width_ratios=(2.2, 1), height_ratios=(2.6, 0.26 * max(3, len(rows)) + 0.2))
    drawn = one.data.isel(point=(one.data["alone"].isin(["", DEFAULT])).values)
    part = _telling(drawn)
    order = drawn.isel(point=np.argsort(drawn["measured"].sel(part=part).fillna(np.inf).values))
    above, below, beside = (made.add_subplot(place) for place in (grid[0, 0], grid[1, 0], grid[:, 1]))
    _curve(above, order.sel(part=part))
    above.set_title(part, loc="left", fontsize=9, fontweight="bold")
    _choices(below, order, rows, one.letters)
    _map(beside, drawn, rows, one.letters)
    return made


def _telling(data: xr.Dataset) -> str:
    """The most informative part: the first one with the most points that do not hold."""
    missed = ((data["outcome"] != Answer.holds) & (data["outcome"] != "")).sum("point").values
    usable = data["measured"].notnull().any("point").values
    return str(data["part"].values[int(np.argmax(np.where(usable, missed, -1)))])


def _colours(data: xr.Dataset) -> list[str]:
    return [COLOURS.get(Answer(str(answer)), OTHERS) for answer in data["answer"].values]


def _curve(axis: Axes, data: xr.Dataset) -> None:
    places, colours = np.arange(data.sizes["point"]), _colours(data)
    middle, low, high = (data[name].values for name in ("measured", "low", "high"))
    finite = np.isfinite(middle)
    if finite.any() and middle[finite].min() > 0 and middle[finite].max() > 100 * middle[finite].min():
        axis.set_yscale("log")
    for place, colour in zip(places, colours, strict=True):
        if np.isfinite(low[place]) and np.isfinite(high[place]):
            axis.plot([place, place], [low[place], high[place]], color=colour, lw=1.2, alpha=0.6)
    axis.scatter(places, middle, c=colours, s=10, zorder=3)
    for name in ("rule_low", "rule_high"):
        edge = data[name].values
        if np.isfinite(edge).any():
            axis.plot(places, edge, color="#333333", lw=0.8, ls="--")
    own = np.flatnonzero(data["alone"].values == DEFAULT)
    if len(own) and finite[own[0]]:
        axis.scatter(own, middle[own], marker="D", s=42, facecolor="none", edgecolor="#000000", zorder=4)
    for answer in dict.fromkeys(data["answer"].values):
        axis.scatter([], [], c=COLOURS.get(Answer(str(answer)), OTHERS), s=14, label=str(answer))
    axis.scatter([], [], marker="D", s=30, facecolor="none", edgecolor="#000000", label=DEFAULT)
    axis.legend(loc="best", fontsize=7)
    axis.tick_params(labelbottom=False)
    axis.set_xlim(-1, len(places))


def _scaled(values: Sequence[Any]) -> tuple[np.ndarray, list[str]]:
    """Values of a setting scaled to [0, 1] in their order, and the names of its ends."""
    known = sorted(set(values), key=lambda value: (str(type(value)), value))
    names = [f"{value:g}" if isinstance(value, float) else str(value) for value in known]
    if len(known) > 4 and all(isinstance(value, int | float) for value in known):
        numbers = np.array(values, float)
        if numbers.min() > 0 and numbers.max() >= 3 * numbers.min():
            numbers = np.log(numbers)
        return (numbers - numbers.min()) / (numbers.max() - numbers.min()), [names[0], names[-1]]
    return np.array([known.index(value) for value in values]) / max(1, len(known) - 1), names


def _choices(axis: Axes, data: xr.Dataset, rows: Sequence[str], letters: Mapping[str, str]) -> None:
    colours = _colours(data)
    labels = []
    for row, name in enumerate(rows):
        heights, ends = _scaled([value.item() for value in data[name].values])
        axis.scatter(np.arange(len(heights)), row + 0.35 - 0.7 * heights, c=colours, s=5)
        ends = ends if len(ends) <= MOST_NAMED else [f"{len(ends)} of them"]
        between = " … " if len(ends) == 2 and len(set(data[name].values.tolist())) > 2 else ", "
        labels.append(f"{letters.get(name, name.replace('_', ' '))}  {between.join(ends)}")
        axis.axhline(row + 0.5, color="#dddddd", lw=0.6)
    axis.set_yticks(range(len(rows)), labels, fontsize=7)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlim(-1, data.sizes["point"])
    axis.grid(visible=False)
    axis.set_xlabel("points, sorted; the settings that explain most come first", fontsize=8)


def _map(axis: Axes, data: xr.Dataset, rows: Sequence[str], letters: Mapping[str, str]) -> None:
    """The answers over the two settings that explain most."""
    if len(rows) < 2:
        axis.set_visible(False)
        return
    places = []
    for name, low in zip(rows[:2], ("x", "y"), strict=True):
        values = [value.item() for value in data[name].values]
        plain = len(set(values)) > 4 and all(isinstance(value, int | float) for value in values)
        numbers = np.array(values, float) if plain else _scaled(values)[0] * max(1, len(set(values)) - 1)
        if not plain:
            spread = np.random.default_rng(0 if low == "x" else 1).uniform(-0.22, 0.22, len(numbers))
            numbers = numbers + spread
            known = _scaled(values)[1]
            getattr(axis, f"set_{low}ticks")(range(len(known)), known, fontsize=7)
            if low == "x" and len(known) > MOST_NAMED:
                axis.tick_params(axis="x", labelrotation=90)
        elif min(numbers) > 0 and max(numbers) >= 3 * min(numbers):
            getattr(axis, f"set_{low}scale")("log")
            ticks = np.geomspace(min(numbers), max(numbers), 4)
            getattr(axis, f"set_{low}ticks")(ticks, [f"{tick:.2g}" for tick in ticks])
            getattr(axis, f"{low}axis").set_minor_locator(NullLocator())
        getattr(axis, f"set_{low}label")(letters.get(name, name.replace("_", " ")), fontsize=8)
        places.append(numbers)
    axis.scatter(places[0], places[1], c=_colours(data), s=22, alpha=0.85)
    axis.set_title("the two settings that explain most", loc="left", fontsize=8)


def render(
    found: Sequence[Robustness], drawn: Mapping[str, Mapping[str, bytes]], environment: Mapping[str, Any]
) -> str:
    """The page of a specification curve."""
    statements = [
        one.summary() | {"svg": Markup(themed(drawn[one.id]["svg"].decode(), one.id.replace("/", "-")))}
        for one in found
    ]
    return rendered("robustness.html", statements=statements, environment=environment)

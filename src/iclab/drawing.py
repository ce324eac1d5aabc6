"""One look for all figures: colour-blind safe, bands for intervals, direct labels."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.statistics import band

# Okabe and Ito's palette: distinguishable with every common colour vision deficiency.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")

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
        "svg.hashsalt": "iclab",
    }
)


def panels(count: int, titles: tuple[str, ...], *, width: float = 4.2, height: float = 3.1) -> tuple[Figure, list[Axes]]:
    """One row of panels with the paper's letters as titles."""
    figure = Figure(figsize=(width * count, height), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, count)))
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, loc="left", fontsize=9, fontweight="bold")
    return figure, axes


def curve(
    axis: Axes, data: xr.DataArray, x: str, *, label: str, colour: int = 0, bounds: tuple[float, float] = (-np.inf, np.inf),
    **line: Any,
) -> None:  # fmt: skip
    """The mean over seeds against coordinate x, with its interval as a band."""
    mean, low, high = band(data.transpose(..., x), bounds)
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
            curve(axis, part, "step", label=f"layer {layer + 1}, {word}", colour=int(layer), bounds=(0, 1), ls=style, marker="")


def threshold(axis: Axes, value: float, label: str, *, vertical: bool = False) -> None:
    """A dashed line at a number the claim states, named where it stands."""
    (axis.axvline if vertical else axis.axhline)(value, color="#333333", ls="--", lw=0.8)
    if vertical:
        place: dict[str, Any] = {"xy": (value, 1.0), "xytext": (3, -3), "va": "top", "ha": "left"}
    else:
        place = {"xy": (1.0, value), "xytext": (-2, 2), "va": "bottom", "ha": "right"}
    along = axis.get_xaxis_transform() if vertical else axis.get_yaxis_transform()
    axis.annotate(label, xycoords=along, textcoords="offset points", fontsize=8, color="#333333", **place)


def boundary_map(
    axis: Axes, data: xr.DataArray, x: str, y: str, x_label: str, y_label: str, boundary: tuple[np.ndarray, np.ndarray],
    boundary_label: str,
) -> None:  # fmt: skip
    """The mean over seeds over two settings as a heat map with cells at the settings' own places, and a theorem's boundary."""
    mean = data.mean("seed").transpose(y, x)
    columns, rows = (np.asarray(data[name].values, float) for name in (x, y))
    mesh = axis.pcolormesh(_edges(columns), _edges(rows), mean.values, cmap="cividis", vmin=0.0, vmax=0.5)
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


def _edges(centres: np.ndarray) -> np.ndarray:
    """Borders of cells half-way between their centres."""
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[centres[0] - (middle[0] - centres[0])], middle, [centres[-1] + (centres[-1] - middle[-1])]])

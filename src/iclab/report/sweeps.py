"""The default picture of a sweep: a curve with a band over one swept setting, a heat map over two."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from iclab.drawing import curve, finish, panels
from iclab.errors import InputError, nearest
from iclab.report.figures import picture
from iclab.statistics import unit_of

MOST_PANELS, COLUMNS = 12, 3
MOST_ROWS = 1_000_000  # of a table; more than a spreadsheet opens


def measure_of(data: xr.Dataset, measure: str | None) -> str:
    """The result to draw: the requested one, or else an error, or else the first."""
    names = [str(name) for name in data.data_vars]
    if measure is None:
        return next((name for name in sorted(names, key=len) if name == "error" or name.endswith("_error")), names[0])
    if measure not in names:
        raise InputError(f"there is no result {measure!r}. {nearest(measure, names)}")
    return measure


def sweep_figure(data: xr.Dataset, swept: list[str], measure: str | None = None) -> Figure | None:
    """One panel per combination of the experiment's own settings (the first few), at the last training step; None if
    more than two settings are swept.
    """
    swept = [name for name in swept if data.sizes[name] > 1] or swept[:1]
    if len(swept) > 2:
        return None
    values = data[measure_of(data, measure)]
    unit = unit_of(values)
    values = values.squeeze([d for d in values.dims if values.sizes[d] == 1 and d not in (*swept, unit)])
    if "step" in values.dims:
        values = values.isel(step=-1)
    values = values.transpose(*swept, unit, ...).load()
    others = [str(dim) for dim in values.dims if dim not in (*swept, unit)]
    choices = [dict(zip(others, at, strict=True)) for at in itertools.product(*(values[dim].values for dim in others))]
    shown = choices[:MOST_PANELS]
    titles = tuple(", ".join(f"{name} {value}" for name, value in at.items()) or str(values.name) for at in shown)
    figure, axes = panels(len(shown), titles, columns=COLUMNS)
    if len(choices) > len(shown):
        figure.supxlabel(f"{len(shown)} of {len(choices)} panels; results.nc has the others", fontsize=9)
    for axis, at in zip(axes, shown, strict=True):
        part = values.sel(at)
        axis.set_xlabel(swept[-1].replace("_", " "))
        if len(swept) == 1:
            curve(axis, part, swept[0], label="")
            axis.set_ylabel(str(values.name).replace("_", " "))
        else:
            _map(figure, axis, part, swept)
    return figure


def _map(figure: Figure, axis: Any, values: xr.DataArray, swept: list[str]) -> None:
    """The mean over seeds as a heat map with the numbers of the axes at the cells."""
    mean = values.mean(unit_of(values)).transpose(*swept)
    image = axis.imshow(mean, aspect="auto", origin="lower", cmap="viridis")
    figure.colorbar(image, ax=axis, label=str(values.name).replace("_", " "))
    for set_ticks, name in ((axis.set_yticks, swept[0]), (axis.set_xticks, swept[1])):
        places = np.unique(np.linspace(0, mean.sizes[name] - 1, min(8, mean.sizes[name])).round().astype(int))
        labels = [
            f"{value:g}" if isinstance(value, float | int | np.number) else str(value)
            for value in mean[name].values[places]
        ]
        set_ticks(places, labels)
    axis.set_ylabel(swept[0].replace("_", " "))
    axis.grid(visible=False)


def tables(data: xr.Dataset) -> dict[str, str | None]:
    """The numbers as CSV, one file per set of dimensions: "results" for the most common, else "results-neuron". None in
    the place of a table that is too long.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, values in data.data_vars.items():
        groups.setdefault(tuple(map(str, values.dims)), []).append(str(name))
    main = max(groups, key=lambda dims: len(groups[dims]))
    found: dict[str, str | None] = {}
    for dims in groups:
        if dims == main or not set(dims) <= set(main):
            names = [
                name
                for other in groups
                if set(other) <= set(dims) and (dims == main or other == dims)
                for name in groups[other]
            ]
            extra = "".join(f"-{dim}" for dim in dims if dim not in main)
            found[f"results{extra}"] = None
            if math.prod(data.sizes[dim] for dim in dims) <= MOST_ROWS:
                frame = data[names].to_dataframe(dim_order=list(dims)).reset_index()
                found[f"results{extra}"] = frame.to_csv(index=False)
    return found


def draw_sweep(data: xr.Dataset, swept: list[str], measure: str | None = None) -> dict[str, bytes]:
    """The picture as {"svg": ..., "png": ...}; empty if there is none."""
    figure = sweep_figure(data, swept, measure)
    return {} if figure is None else {kind: picture(finish(figure), kind) for kind in ("svg", "png")}

"""The figure of an experiment that has none of its own: its results along training or along what was varied."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.claims import Results
from iclab.drawing import COLOURS, curve, panels
from iclab.statistics import interval

MOST_PANELS, MOST_LINES = 4, 6
WIDE = 10.0  # from which ratio of the largest to the smallest on an axis is logarithmic
LAST = ("diverged_at", "best_step", "ties", "training_error")  # shown only where there is room


def overview(experiment: str) -> Callable[[Results, Any], Figure]:
    """A figure of everything that this experiment measured, the first few results."""

    def figure(results: Results, settings: Any) -> Figure:
        data = results[experiment]
        usable = [str(n) for n, v in data.data_vars.items() if "seed" in v.dims and np.issubdtype(v.dtype, np.number)]
        chosen = sorted(usable, key=lambda name: name in LAST)[:MOST_PANELS]
        shape, axes = panels(max(len(chosen), 1), tuple(name.replace("_", " ") for name in chosen) or (experiment,))
        for axis, name in zip(axes, chosen, strict=False):
            _panel(axis, data[name])
        return shape

    figure.__doc__ = f"What the experiment {experiment!r} measured: means over seeds with 95 % intervals."
    return figure


def _panel(axis: Axes, values: xr.DataArray) -> None:
    """Curves against the last numeric dimension, one per choice of the others; without any, a mark per choice."""
    values = values.squeeze([dim for dim in values.dims if values.sizes[dim] == 1 and dim != "seed"], drop=True)
    others = [str(dim) for dim in values.dims if dim != "seed"]
    numeric = [dim for dim in others if np.issubdtype(values[dim].dtype, np.number)]
    along = "step" if "step" in numeric else (numeric[-1] if numeric else None)
    apart = [dim for dim in others if dim != along]
    choices = [dict(zip(apart, at, strict=True)) for at in itertools.product(*(values[dim].values for dim in apart))]
    axis.set_ylabel(str(values.name).replace("_", " "))
    for number, at in enumerate(choices[:MOST_LINES]):
        label = ", ".join(str(value) for value in at.values())
        if along is not None:
            curve(axis, values.sel(at), along, label=label or "mean over seeds", colour=number)
            continue
        found = interval(np.asarray(values.sel(at).values, float))
        reach = [[found.measured - found.low], [found.high - found.measured]] if np.isfinite(found.low) else None
        axis.errorbar([number], [found.measured], yerr=reach, fmt="o", color=COLOURS[number % len(COLOURS)], capsize=3)
    if along is None:
        axis.set_xticks(
            range(len(choices[:MOST_LINES])), [", ".join(map(str, at.values())) or "all" for at in choices[:MOST_LINES]]
        )
        axis.set_xlim(-0.6, len(choices[:MOST_LINES]) - 0.4)
        return
    axis.set_xlabel(along.replace("_", " "))
    for scale, shown in ((axis.set_xscale, values[along].values), (axis.set_yscale, values.values)):
        finite = np.asarray(shown, float)[np.isfinite(np.asarray(shown, float))]
        if len(finite) and finite.min() > 0 and finite.max() > WIDE * finite.min():
            scale("log")
    if len(choices) > 1:
        axis.legend()

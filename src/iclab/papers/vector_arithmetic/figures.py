"""The figures of vector-arithmetic, in the paper's layout: (a) training loss, (b) test errors, (c) attention, (d) W_V."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.claims import Results
from iclab.drawing import COLOURS, panels
from iclab.papers.vector_arithmetic.settings import Settings
from iclab.statistics import band

UNIT = (0.0, 1.0)


def _sigma(axis: Axes, data: xr.DataArray, *, label: str, colour: int) -> None:
    """Mean with a band of one standard deviation over seeds, as the paper draws it."""
    mean, deviation = data.mean("seed"), data.std("seed", ddof=1)
    axis.plot(data["step"], mean, color=COLOURS[colour], lw=1.5, label=label)
    axis.fill_between(data["step"], mean - deviation, mean + deviation, color=COLOURS[colour], alpha=0.2, lw=0)


def _dynamics(training: str, number: str, results: Results, settings: Settings) -> Figure:
    data = results[training].isel(setting=0)
    titles = tuple(
        f"{number}({letter}) {name}"
        for letter, name in zip("abcd", ("training loss", "test error", "attention", "W_V"), strict=True)
    )
    figure, axes = panels(4, titles, width=3.3)
    _sigma(axes[0], data["training_loss"], label="training loss", colour=0)
    for colour, kind in enumerate(("icl", "qa", "qa-icl")):
        _sigma(axes[1], data[f"{kind}_error"], label=f"{kind} prompts", colour=colour)
    names = {
        "a": "a with itself",
        "b": "b with itself (largest)",
        "common": "ν with itself (mean)",
        "cross": "cross terms (largest)",
    }
    for axis, matrix in ((axes[2], "attention"), (axes[3], "value")):
        for colour, (name, label) in enumerate(names.items()):
            _sigma(axis, data[f"{matrix}_{name}"], label=label, colour=colour)
    for axis, name in zip(axes, ("cross-entropy", "0-1 error", r"$(W_Q u)^\top (W_K u)$", r"$u^\top W_V u$"), strict=True):
        axis.set_xlabel("epoch")
        axis.set_ylabel(name)
        axis.legend()
    axes[1].set_ylim(-0.02, 1.02)
    return figure


def _bars(axis: Axes, data: xr.DataArray, dim: str, name: str, bounds: tuple[float, float] = UNIT) -> None:
    mean, low, high = band(data.transpose(..., dim), bounds)
    places = range(data.sizes[dim])
    axis.bar(places, mean, yerr=np.maximum(0, np.stack([mean - low, high - mean])), color=COLOURS[0], width=0.6)
    axis.set_xticks(places, [str(value) for value in data[dim].values], rotation=20)
    axis.set_ylabel(name)


def uses(results: Results, settings: Settings) -> Figure:
    """Task vector without a query, errors of transferred task vectors and of a static offset, and complexity by prompt kind."""
    data = results["uses"].isel(setting=0)
    figure, axes = panels(3, ("Prop 3.3: cosines without a query", "Errors on ICL prompts", "Complexity 1/max p"), width=3.6)
    cosines = [data[f"alone_cos_{name}"] for name in ("task", "other", "low", "common")]
    _bars(axes[0], xr.concat(cosines, xr.Variable("with", ["a", "other a", "b", "ν"])), "with", "cosine with h_0", (-1, 1))
    errors = [data[name] for name in ("model_error", "transfer_error", "static_error")]
    _bars(axes[1], xr.concat(errors, xr.Variable("of", ["model", "transferred", "static"])), "of", "0-1 error")
    _bars(axes[2], data["complexity"], "kind", "1/max p", (0, np.inf))
    return figure


def shifts(results: Results, settings: Settings) -> Figure:
    """Errors of the QA-trained model on shifted dictionaries and other lengths, and the mixture of two co-tasks."""
    figure, axes = panels(
        4,
        ("Prop 3.4: shifted dictionaries", "Prop 3.4: prompt length", "Prop 3.4: co-tasks", "Eq. (8): projections of h_0"),
        width=3.0,
    )
    if "shifts" in results:
        _bars(axes[0], results["shifts"]["error"].isel(setting=0), "shift", "0-1 error")
    if "prompts" in results:
        data = results["prompts"].isel(setting=0)
        _bars(axes[1], data["error"], "pairs", "0-1 error")
        _bars(axes[2], data["cotasks_error"], "cotasks", "0-1 error")
        _bars(axes[3], data["weight"].sel(cotasks=2), "concept", "projection on a, two co-tasks", (-1, 1))
    return figure


fig2 = partial(_dynamics, "icl", "2")
fig2.__doc__ = (
    "Training on word-label ICL prompts: training loss, test errors, attention projections, value projections; 1-sigma bands."
)
fig3 = partial(_dynamics, "qa", "3")
fig3.__doc__ = "Training on QA sentences: training loss, test errors, attention projections, value projections; 1-sigma bands."
fig4 = partial(_dynamics, "qa-icl", "4")
fig4.__doc__ = (
    "Training on QA-ICL prompts: training loss, test errors, attention projections, value projections; 1-sigma bands."
)
printed = partial(_dynamics, "printed", "3, printed steps ")
printed.__doc__ = "Training on QA sentences with the step sizes as printed: nothing is learned in the printed time."

FIGURES: dict[str, Callable[[Results, Settings], Figure]] = {
    "fig2": fig2, "fig3": fig3, "fig4": fig4, "printed": printed, "uses": uses, "shifts": shifts,
}  # fmt: skip

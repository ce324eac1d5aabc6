"""Power laws that theorems predict, held against first passages: a claim, a row of a table and a panel for each.

A law says: the time (or number of examples) needed grows like a power of a setting. What is needed is read off curves by a
criterion that is part of the law; several criteria stand side by side in the table, the first one decides. The rule of every
law is the same and was written before any was measured: the exponent's interval over seeds lies within a quarter of the
predicted exponent of it (within 0.25 of a predicted 0).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from iclab.claims import Check, Claim, Results, Table, within
from iclab.drawing import COLOURS
from iclab.statistics import Criterion, first_passage
from iclab.statistics.fits import calibrate, compare, exponents_by_seed, fit_exponent

TOPIC = "rates"
LOSSES = {
    "training loss (fresh prompts) below 0.1": Criterion(0.1, window=3),
    "training loss below 0.5": Criterion(0.5, window=3),
    "training loss below 0.02": Criterion(0.02, window=3),
}


@dataclasses.dataclass(frozen=True)
class Law:
    """`curve(results)` has the dimensions `dim`, `along` and "seed"; the criterion is applied along `along`.

    `coordinate` turns a value of `dim` into what the law is a power of (1 - p_a, say), and `symbol` writes that. The hidden
    constant is fitted on the values `on` and predicts the others.
    """

    name: str
    source: str
    statement: str
    needs: tuple[str, ...]
    curve: Callable[[Results], xr.DataArray]
    dim: str
    symbol: str
    predicted: float
    criteria: Mapping[str, Criterion]
    on: tuple[float, ...]
    along: str = "step"
    what: str = "iterations"
    rivals: Mapping[str, float] = dataclasses.field(default_factory=dict)
    coordinate: Callable[[np.ndarray], np.ndarray] = lambda values: values
    notes: tuple[str, ...] = ()
    afterwards: str = ""

    @property
    def tolerance(self) -> float:
        """A quarter of the exponent."""
        return abs(self.predicted) / 4 or 0.25

    def passages(self, results: Results, criterion: Criterion) -> xr.DataArray:
        """What was needed, by coordinate and seed."""
        curve = self.curve(results)
        curve = curve.isel({self.along: np.flatnonzero(curve[self.along].values > 0)})  # no training loss before the first step
        found = first_passage(curve, self.along, criterion)
        return found.assign_coords({self.dim: self.coordinate(np.asarray(curve[self.dim].values, float))})

    def main(self, results: Results) -> xr.DataArray:
        """What was needed by the criterion that decides."""
        return self.passages(results, next(iter(self.criteria.values())))


def law_claim(paper: str, law: Law, unstated: tuple[str, ...], figure: str = "rates") -> Claim:
    """The claim that the measured exponent is the predicted one."""
    criterion = next(iter(law.criteria))
    low, high = law.predicted - law.tolerance, law.predicted + law.tolerance
    rivals = "".join(f"; rival: {name} ({value:g})" for name, value in law.rivals.items())
    return Claim(
        f"{paper}/{law.name}", law.source, law.statement,
        (
            Check(
                f"exponent of the {law.what} in {law.symbol} (predicted {law.predicted:.3g})", within(low, high),
                lambda results: exponents(law.main(results), law.dim),
            ),
        ),
        law.needs, figure,
        (*unstated, f"needed: {criterion}{rivals}; 'the exponent': within a quarter of it", *law.notes),
        "", "rates", law.afterwards, TOPIC,
    )  # fmt: skip


def exponents(data: xr.DataArray, dim: str) -> xr.DataArray:
    """One exponent per seed; NaN where nothing can be fitted (fewer than two settings with a finite time)."""
    return exponents_by_seed(data, dim) if _fittable(data) else xr.full_like(data.isel({dim: 0}, drop=True), np.nan)


def _fittable(data: xr.DataArray) -> bool:
    """At least two settings have a seed that got there, and there are two seeds."""
    reached = np.isfinite(data.values) & (data.values > 0)
    return int(reached.any(axis=data.dims.index("seed")).sum()) >= 2 and data.sizes["seed"] >= 2


def law_table(laws: Sequence[Law], results: Results) -> Table:
    """Every law by every criterion: predicted and measured exponent, curvature, rivals, censoring, calibrated prediction."""
    rows = []
    for law in laws:
        if not all(name in results for name in law.needs):
            continue
        for words, criterion in law.criteria.items():
            rows.append(_row(law, words, law.passages(results, criterion)))
    header = (
        "law", "needed", "predicted", "measured [95 %]", "change of slope [95 %]", "rivals allowed", "not reached",
        "held-out prediction off by",
    )  # fmt: skip
    return Table(
        "Predicted exponents against measured ones, by every criterion; the first of each law decides", header, tuple(rows)
    )


def _row(law: Law, words: str, data: xr.DataArray) -> tuple[str, ...]:
    label = f"{law.name}: {law.what} in {law.symbol}"
    if not _fittable(data):
        return (label, words, f"{law.predicted:.3g}", "not determined", "", "", _share(data), "")
    fit = fit_exponent(data, law.dim)
    against = compare(fit, law.predicted, law.rivals)
    bend = "" if np.isnan(fit.curvature) else f"{fit.bend:.2g}{' (bent)' if fit.bent else ''}"
    rivals = ", ".join(against.inside) if law.rivals else "–"
    return (
        label, words, f"{law.predicted:.3g}", f"{fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}]", bend, rivals or "none",
        _share(data), _calibrated(law, data),
    )  # fmt: skip


def _share(data: xr.DataArray) -> str:
    censored = int(np.isinf(data).sum())
    return f"{censored} of {int(data.notnull().sum())}"


def _calibrated(law: Law, data: xr.DataArray) -> str:
    """The hidden constant from the easy settings, the factor by which the hardest held-out one is missed."""
    coordinates = np.asarray(data[law.dim].values, float)
    own = [float(value) for value in law.coordinate(np.asarray(law.on, float))]
    used = [value for value in coordinates if np.isclose(value, own).any()]
    if not 0 < len(used) < len(coordinates):
        return ""
    with np.errstate(divide="ignore", invalid="ignore"):
        predicted = xr.DataArray(coordinates**law.predicted, dims=law.dim, coords={law.dim: coordinates})
        found = calibrate(predicted, data, law.dim, used)
    return f"×{found.worst:.2f}" if np.isfinite(found.worst) else "not determined"


def law_panel(axis: Axes, law: Law, results: Results) -> None:
    """Needed against the setting, log-log: a point per seed, the fitted line and the predicted slope through its middle.

    Seeds that never got there are triangles at the end of the run.
    """
    data = law.main(results)
    x = np.asarray(data[law.dim].values, float)
    limit = float(data.attrs.get("limit", np.nan))
    for seed in range(data.sizes["seed"]):
        times = np.asarray(data.transpose(law.dim, "seed").values[:, seed], float)
        shown = np.isfinite(times) & (times > 0)
        axis.plot(x[shown], times[shown], "o", ms=3, color=COLOURS[0], alpha=0.5)
        axis.plot(x[np.isinf(times)], np.full(int(np.isinf(times).sum()), limit), "^", ms=5, color=COLOURS[1], alpha=0.6)
    if _fittable(data):
        fit = fit_exponent(data, law.dim)
        middle = float(np.exp(np.mean(np.log(x))))
        height = fit.constant * middle**fit.exponent
        line = np.geomspace(x.min(), x.max(), 20)
        axis.plot(line, fit.constant * line**fit.exponent, color=COLOURS[0], lw=1.4,
                  label=f"measured {fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}]")  # fmt: skip
        axis.plot(line, height * (line / middle) ** law.predicted, color="#333333", ls="--", lw=1.0,
                  label=f"predicted {law.predicted:.3g}")  # fmt: skip
        axis.legend()
    axis.set_xscale("log")
    if np.isinf(data.values).any() or (data.values > 0).any():
        axis.set_yscale("log")
        for formatter in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
            formatter(LogFormatter(minor_thresholds=(1.5, 0.4)))  # plain numbers, not powers of ten
    else:
        axis.text(0.5, 0.5, "nothing to show", ha="center", transform=axis.transAxes)
    ticks(axis, x)
    axis.set_xlabel(law.symbol)
    axis.set_ylabel(law.what)


def ticks(axis: Axes, x: np.ndarray) -> None:
    """The settings themselves as ticks of a logarithmic axis."""
    axis.set_xticks(x, [f"{value:.3g}" for value in x])
    axis.set_xticks([], minor=True)


def geometric(last: int, first: int = 4, ratio: float = 1.08) -> list[int]:
    """Steps 0, first, ..., last, each about `ratio` times the one before: equal steps on a logarithmic axis.

    The mean over a stretch dates a passage later by a fixed factor then, which no exponent sees.
    """
    steps = [0, min(first, last)]
    while steps[-1] < last:
        steps.append(min(last, max(steps[-1] + 1, round(steps[-1] * ratio))))
    return steps if steps[0] < steps[1] else steps[1:]


def swept(history: xr.Dataset, dim: str, values: Sequence[Any]) -> xr.Dataset:
    """A history whose settings are the values of one setting, in order: that dimension instead of "setting"."""
    return history.assign_coords(setting=list(values)).rename(setting=dim)


def gridded(data: xr.Dataset, grid: Mapping[str, Sequence[Any]]) -> xr.Dataset:
    """Results whose settings are the points of a grid, the last name varying fastest: its dimensions instead of "setting"."""
    shape = tuple(len(values) for values in grid.values())
    variables = {}
    for name, values in data.data_vars.items():
        ordered = values.transpose("setting", ...)
        variables[name] = ((*grid, *ordered.dims[1:]), ordered.values.reshape(*shape, *ordered.shape[1:]))
    own = {name: coordinate for name, coordinate in data.coords.items() if name != "setting"}
    return xr.Dataset(variables, {**own, **{name: list(values) for name, values in grid.items()}})

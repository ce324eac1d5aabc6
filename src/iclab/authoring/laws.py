"""Power laws that theorems predict: one description gives an experiment, a part, a row of a table and a panel.

A law says that the time (or the number of examples) needed grows like a power of a setting. The number needed is read
off curves by a criterion that is part of the law. The table shows several criteria; the first one decides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring.paper import Experiment
from iclab.authoring.pictures import Power
from iclab.experiments import Lab, Recipe
from iclab.expressions import Expression, Results, apply, measured
from iclab.scaling import Scaling
from iclab.statements import Part, Table
from iclab.statistics import Criterion, first_passage
from iclab.statistics.fits import calibrate, compare, fit_exponent, fittable

LOSSES = {
    "training loss (fresh prompts) below 0.1": Criterion(0.1, window=3),
    "training loss below 0.5": Criterion(0.5, window=3),
    "training loss below 0.02": Criterion(0.02, window=3),
}
HEADER = (
    "law", "needed", "predicted", "measured [95 %]", "change of slope [95 %]", "rivals allowed", "not reached",
    "held-out prediction off by",
)  # fmt: skip
TITLE = "Predicted exponents against measured ones, by every criterion; the first of each law decides"


@dataclasses.dataclass(frozen=True)
class Law:
    """The number needed (`what`) is a power of a setting: `exponent` in `symbol`.

    `experiment` trains at the `values` of the `setting`, its results have them along `dim`; the criterion is applied to
    `variable` along `along`. `coordinate` turns a value into the base of the power (1 - p_a, say). `side` and
    `towards` say what the paper claims (see `Scaling`). The hidden constant is fitted on the values `on` and predicts
    the others. `rivals` are other exponents, by their origin. `at` are labels to select in the results: one kind of
    model, say.
    """

    experiment: str
    setting: str
    values: tuple[float, ...]
    symbol: str
    exponent: float
    on: tuple[float, ...]
    dim: str = ""
    side: str = "upper"
    towards: str = "large"
    affine: bool = False
    criteria: Mapping[str, Criterion] = dataclasses.field(default_factory=lambda: LOSSES)
    variable: str = "training_loss"
    along: str = "step"
    what: str = "iterations"
    rivals: Mapping[str, float] = dataclasses.field(default_factory=dict)
    coordinate: Callable[[np.ndarray], np.ndarray] | None = None
    at: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def over(self) -> str:
        """The dimension of the values: `dim`, or else the experiment's name."""
        return self.dim or self.experiment.removeprefix("rate-")

    @property
    def rule(self) -> Scaling:
        """How the law is judged."""
        return Scaling(self.over, self.exponent, self.symbol, self.side, self.towards, self.affine)

    def needed(self, criterion: Criterion | None = None) -> Expression:
        """The number needed, by coordinate and seed; by the first criterion if none is given."""
        chosen = criterion or next(iter(self.criteria.values()))
        curves = measured(self.experiment, self.variable).sel(**self.at)
        return apply(passages, curves, self.over, self.along, chosen, self.coordinate)

    def part(self, name: str = "", readings: tuple[str, ...] = ()) -> Part:
        """The law as a part of a statement."""
        return Part(name or f"{self.what} in {self.symbol}", self.needed(), self.rule, readings=readings)

    def panel(self, title: str) -> Power:
        """The law as a panel of a figure."""
        return Power(title, self.needed(), self.rule, self.what)

    def trained(
        self, recipe: Callable[[Any], Recipe], record_at: Callable[[Any], Sequence[int]], cost: float = 15
    ) -> Experiment:
        """The experiment: train `recipe(settings)` at every value of the setting, recorded at `record_at(settings)`."""

        def run(lab: Lab) -> xr.Dataset:
            at = {value: dataclasses.replace(lab.settings, **{self.setting: value}) for value in self.values}
            recipes = {f"{value:g}": dataclasses.replace(recipe(own), watched=()) for value, own in at.items()}
            return swept(lab.train(self.experiment, recipes, record_at(lab.settings)).history, self.over, self.values)

        run.__doc__ = f"Trainings at several {self.symbol}."
        return Experiment(run, cost)


def passages(
    curve: xr.DataArray,
    dim: str,
    along: str,
    criterion: Criterion,
    coordinate: Callable[[np.ndarray], np.ndarray] | None,
) -> xr.DataArray:
    """When curves meet a criterion, against the base of the power."""
    begun = np.flatnonzero(curve[along].values > 0)  # there is no training loss before the first step
    curve = curve.isel({along: begun})
    found = first_passage(curve, along, criterion)
    values = np.asarray(curve[dim].values, float)
    return found.assign_coords({dim: values if coordinate is None else coordinate(values)})


def law_table(laws: Mapping[str, Law], results: Results) -> Table:
    """Every law by every criterion: predicted and measured exponent, curvature, rivals, censoring, prediction."""
    rows = [
        _row(name, law, words, law.needed(criterion).evaluate(results))
        for name, law in laws.items()
        if law.experiment in results
        for words, criterion in law.criteria.items()
    ]
    return Table(TITLE, HEADER, tuple(rows))


def _row(name: str, law: Law, words: str, data: xr.DataArray) -> tuple[str, ...]:
    label, predicted = f"{name}: {law.what} in {law.symbol}", f"{law.exponent:.3g}"
    if not fittable(data):
        return (label, words, predicted, "not determined", "", "", _share(data), "")
    fit = fit_exponent(data, law.over)
    against = compare(fit, law.exponent, law.rivals)
    bend = "" if np.isnan(fit.curvature) else f"{fit.bend:.2g}{' (bent)' if fit.bent else ''}"
    rivals = ", ".join(against.inside) if law.rivals else "–"
    measured_words = f"{fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}]"
    return (label, words, predicted, measured_words, bend, rivals or "none", _share(data), _calibrated(law, data))


def _share(data: xr.DataArray) -> str:
    censored = int(np.isinf(data).sum())
    return f"{censored} of {int(data.notnull().sum())}"


def _calibrated(law: Law, data: xr.DataArray) -> str:
    """The factor by which the hardest held-out setting is missed, with the constant fitted on the easy ones."""
    coordinates, on = np.asarray(data[law.over].values, float), np.asarray(law.on, float)
    own = on if law.coordinate is None else law.coordinate(on)
    used = [value for value in coordinates if np.isclose(value, own).any()]
    if not 0 < len(used) < len(coordinates):
        return ""
    with np.errstate(divide="ignore", invalid="ignore"):
        predicted = xr.DataArray(coordinates**law.exponent, dims=law.over, coords={law.over: coordinates})
        found = calibrate(predicted, data, law.over, used)
    return f"×{found.worst:.2f}" if np.isfinite(found.worst) else "not determined"


def geometric(last: int, first: int = 4, ratio: float = 1.08) -> list[int]:
    """Steps 0, first, ..., last, each about `ratio` times the one before: equal steps on a logarithmic axis.

    A running mean then delays a passage by a fixed factor, which does not change an exponent.
    """
    steps = [0, min(first, last)]
    while steps[-1] < last:
        steps.append(min(last, max(steps[-1] + 1, round(steps[-1] * ratio))))
    return steps if steps[0] < steps[1] else steps[1:]


def swept(history: xr.Dataset, dim: str, values: Sequence[Any]) -> xr.Dataset:
    """A history whose settings are the values of one setting, in order; that dimension replaces "setting"."""
    return history.assign_coords(setting=list(values)).rename(setting=dim)


def gridded(data: xr.Dataset, grid: Mapping[str, Sequence[Any]]) -> xr.Dataset:
    """Results whose settings are the points of a grid, the last name fastest; its dimensions replace "setting"."""
    shape = tuple(len(values) for values in grid.values())
    variables = {}
    for name, values in data.data_vars.items():
        ordered = values.transpose("setting", ...)
        variables[name] = ((*grid, *ordered.dims[1:]), ordered.values.reshape(*shape, *ordered.shape[1:]))
    own = {name: coordinate for name, coordinate in data.coords.items() if name != "setting"}
    return xr.Dataset(variables, {**own, **{name: list(values) for name, values in grid.items()}})

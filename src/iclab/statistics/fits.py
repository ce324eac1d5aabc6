"""Exponents measured: log-log fits with intervals over seeds, rival exponents, curvature, and calibrated predictions.

Data are times (or lengths) over a dimension of settings and one of seeds. Infinite: not reached within the run. Zero:
reached before the first record. NaN: diverged, left out and counted. How censored values enter and how intervals are
made is said in `censored`. Where resampling leaves a slope without a bound, because only one setting still has a finite
time, that end of the interval is infinite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from iclab.errors import require
from iclab.statistics.censored import RESAMPLES, Bound, Observed, censored_mean, drawn, ends, fitted, observe


@dataclasses.dataclass(frozen=True)
class Fit:
    """time ~ constant · setting^exponent, with intervals at 95 % over seeds.

    `exponent` is NaN and one end of the interval infinite where all settings but one are censored. `curvature` is the
    coefficient of (log setting)² in a second fit, NaN with fewer than three settings that have finite times; `bend` is
    the change of the local exponent from the smallest setting to the largest that it stands for.
    """

    exponent: float
    low: float
    high: float
    constant: float
    noise: float
    curvature: float
    curvature_low: float
    curvature_high: float
    bend: float
    settings: int
    seeds: int
    censored: int
    lost: int

    def contains(self, exponent: float) -> bool:
        """Does the interval contain this exponent?"""
        return bool(self.low <= exponent <= self.high)

    @property
    def bent(self) -> bool | None:
        """Is a power law excluded: does the interval of the curvature exclude zero? None if it cannot be said."""
        if np.isnan(self.curvature_low) or np.isnan(self.curvature_high):
            return None
        return not self.curvature_low <= 0 <= self.curvature_high


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A predicted exponent and its rivals against a measured interval. `inside` names the rivals that the data allow
    too.
    """

    predicted: float
    agrees: bool
    rivals: dict[str, float]
    inside: tuple[str, ...]

    @property
    def decides(self) -> bool:
        """The prediction is allowed and every rival excluded."""
        return self.agrees and not self.inside


def compare(fit: Fit, predicted: float, rivals: Mapping[str, float] | None = None) -> Comparison:
    """Which of the exponents lie inside the interval."""
    rivals = dict(rivals or {})
    return Comparison(
        predicted, fit.contains(predicted), rivals, tuple(n for n, value in rivals.items() if fit.contains(value))
    )


def _logarithms(data: Observed, dim: str) -> Observed:
    """The data with the logarithm of their settings."""
    lowest = data.setting.min()
    require(bool(lowest > 0), f"{dim} contains {lowest}; a log-log fit needs positive values.")
    return dataclasses.replace(data, setting=np.log(data.setting))


def _unbounded(data: Observed, weights: np.ndarray) -> np.ndarray:
    """±inf where all finite times are at one setting and every censored setting pulls the slope to that side; NaN
    elsewhere.
    """
    result = np.full(len(weights), np.nan)
    has = (weights @ data.seen.T) > 0
    censored = [(weights @ (data.present & (data.side == kind)).T) > 0 for kind in (1, -1)]
    for row in np.flatnonzero(has.sum(axis=1) == 1):
        distance = data.setting - data.setting[np.argmax(has[row])]
        pulls = {float(np.sign(distance[i]) * kind) for kind, found in zip((1, -1), censored, strict=True)
                 for i in np.flatnonzero(found[row]) if distance[i] != 0}  # fmt: skip
        if len(pulls) == 1:
            result[row] = pulls.pop() * np.inf
    return result


def _slope_bound(data: Observed, weights: np.ndarray) -> np.ndarray:
    """The bound on the slope from the one setting with finite times to the nearest censored one, per row of weights."""
    home = int(np.argmax(data.seen.any(axis=1)))
    distance = np.abs(data.setting - data.setting[home])
    distance[~(data.present & (data.side != 0)).any(axis=1) | (distance == 0)] = np.inf
    other = int(np.argmin(distance))
    limit = data.values[other, data.side[other] != 0][0]
    seen = weights * data.seen[home]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (seen * data.values[home]).sum(axis=1) / seen.sum(axis=1)
    return (limit - mean) / (data.setting[other] - data.setting[home])


def fit_exponent(
    data: xr.DataArray, dim: str, *, limit: Bound = None, floor: Bound = None, resamples: int = RESAMPLES
) -> Fit:
    """The exponent of the data in the coordinate `dim`, over the dimension "seed", with the curvature beside it.

    `limit` and `floor` are where times are censored; by default the attributes that `first_passage` left on the data,
    else the largest and the smallest finite time. To fit against another quantity, 1 - p_a say, give it as coordinate
    of `dim`.
    """
    found = _logarithms(observe(data, dim, limit, floor), dim)
    seeds = found.values.shape[1]
    middle = found.setting.mean()
    x = found.setting - middle
    weights = np.concatenate([np.ones((1, seeds)), drawn(seeds, resamples)])
    line, noise = fitted(np.stack([np.ones_like(x), x], axis=1), found, weights)
    slopes = np.where(np.isnan(line[:, 1]), _unbounded(found, weights), line[:, 1])
    curved = (
        fitted(np.stack([np.ones_like(x), x, x**2], axis=1), found, weights)[0][:, 2] if len(x) > 2 else slopes * np.nan
    )
    if np.isinf(slopes[0]):  # one end only
        bounds = _slope_bound(found, weights)
        one = ends(float(bounds[0]), bounds[1:], seeds)
        low, high = (one[0], np.inf) if slopes[0] > 0 else (-np.inf, one[1])
    else:
        low, high = ends(float(slopes[0]), slopes[1:], seeds)
    curvature = float(curved[0])
    return Fit(
        float(line[0, 1]), low, high, float(np.exp(line[0, 0] - line[0, 1] * middle)), float(noise[0]),
        curvature, *ends(curvature, curved[1:], seeds), float(2 * curvature * np.ptp(x)), **found.counts(),
    )  # fmt: skip


def fittable(data: xr.DataArray) -> bool:
    """At least two settings have a seed that got there, and there are two seeds."""
    reached = np.isfinite(data.values) & (data.values > 0)
    return int(reached.any(axis=data.dims.index("seed")).sum()) >= 2 and data.sizes["seed"] >= 2


def exponents_by_seed(data: xr.DataArray, dim: str, *, limit: Bound = None, floor: Bound = None) -> xr.DataArray:
    """One number per seed whose mean estimates the exponent: jackknife pseudo-values, n · all - (n-1) · all but this
    seed.

    For a part of a statement, which takes one value per seed and Student's interval over them. Without censored or lost
    values this is each seed's own slope; with them a seed's own slope would be biased or not exist, and the
    pseudo-value stands in. NaN for all where the exponent is not determined.
    """
    found = _logarithms(observe(data, dim, limit, floor), dim)
    seeds = found.values.shape[1]
    require(seeds >= 2, "a comparison of seeds needs at least two.")
    x = found.setting - found.setting.mean()
    weights = np.concatenate([np.ones((1, seeds)), 1.0 - np.eye(seeds)])
    slopes = fitted(np.stack([np.ones_like(x), x], axis=1), found, weights)[0][:, 1]
    values = seeds * slopes[0] - (seeds - 1) * slopes[1:]
    return xr.DataArray(values, dims="seed", coords={"seed": data["seed"]} if "seed" in data.coords else None)


@dataclasses.dataclass(frozen=True)
class Calibration:
    """measured ~ constant · predicted, fitted on some settings and held against the others.

    `ratio` is measured / (constant · predicted) at each held-out setting, a geometric mean over seeds, with its
    interval in `low` and `high` (the constant's uncertainty included); infinite where every seed is censored, `low`
    then being what the limit says. `log_error` is the root mean square of log ratio, `worst` the largest factor by
    which a prediction is off.
    """

    constant: float
    constant_low: float
    constant_high: float
    ratio: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray
    log_error: float
    worst: float
    censored: int
    lost: int


def calibrate(
    predicted: xr.DataArray, measured: xr.DataArray, dim: str, on: Sequence[float], *, limit: Bound = None,
    floor: Bound = None, resamples: int = RESAMPLES,
) -> Calibration:  # fmt: skip
    """Fit the hidden constant of a predicted rate on the settings `on` and predict the others.

    `predicted` has the dimension `dim`, `measured` also "seed"; censored values are treated as in `fit_exponent`.
    """
    predicted, measured = xr.align(predicted, measured, join="exact")
    require(predicted.dims == (dim,), f"the prediction has dimensions {predicted.dims}; it must have {dim!r} only.")
    rates = np.asarray(predicted.values, float)
    require(bool(np.all((rates > 0) & np.isfinite(rates))), "predictions must be positive and finite.")
    own = np.isin(measured[dim].values, list(on))
    require(int(own.sum()) == len(set(on)), f"{list(on)} are not all values of {dim}: {measured[dim].values.tolist()}.")
    require(bool(own.any() and not own.all()), f"calibrate on some values of {dim} and hold out the others.")
    found = observe(measured, dim, limit, floor)
    found = dataclasses.replace(found, values=found.values - np.log(rates)[:, None])
    seeds = found.values.shape[1]
    weights = np.concatenate([np.ones((1, seeds)), drawn(seeds, resamples)])
    groups = [own, *(np.arange(len(own)) == at for at in np.flatnonzero(~own))]
    means = np.stack([censored_mean(found, group, weights) for group in groups], axis=1)
    with np.errstate(invalid="ignore"):  # where all of `on` is censored there is no constant, and no ratio
        ratios = means[:, 1:] - means[:, :1]
    spans = []
    for column, group in enumerate(groups[1:]):
        if np.isinf(ratios[0, column]):
            bound = found.values[group].max() if ratios[0, column] > 0 else found.values[group].min()
            end = ends(float(bound - means[0, 0]), bound - means[1:, 0], seeds)
            spans.append((end[0], np.inf) if ratios[0, column] > 0 else (-np.inf, end[1]))
        else:
            spans.append(ends(float(ratios[0, column]), ratios[1:, column], seeds))
    low, high = np.exp(np.array(spans)).T

    def over(values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(values, dims=dim, coords={dim: measured[dim].values[~own]})

    constant = ends(float(means[0, 0]), means[1:, 0], seeds)
    return Calibration(
        float(np.exp(means[0, 0])), float(np.exp(constant[0])), float(np.exp(constant[1])), over(np.exp(ratios[0])),
        over(low), over(high), float(np.sqrt(np.mean(ratios[0] ** 2))), float(np.exp(np.max(np.abs(ratios[0])))),
        found.counts()["censored"], found.counts()["lost"],
    )  # fmt: skip

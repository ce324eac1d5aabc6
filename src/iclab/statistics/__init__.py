"""Numbers over training seeds: intervals, trends, first passages.

If models are trained, a seed is the unit of replication, never a prompt. For one given model, prompts are the units.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import scipy.stats
import xarray as xr

from iclab.errors import require

LEVEL = 0.95
_level = contextvars.ContextVar("level", default=LEVEL)


@contextlib.contextmanager
def at_level(level: float) -> Iterator[None]:
    """Make intervals at this level instead of 95 %."""
    before = _level.set(level)
    try:
        yield
    finally:
        _level.reset(before)


def tail() -> float:
    """The probability that an interval lies above what it is about: half of what its level leaves."""
    return (1 - _level.get()) / 2


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean over seeds (or prompts) with its interval. `seeds` counts the finite values that went in, `lost` the
    others.
    """

    measured: float
    low: float
    high: float
    seeds: int
    lost: int


def interval(values: np.ndarray, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Interval:
    """Student's t interval of the mean at 95 % (or `at_level`), over the seeds whose value is finite, cut to the
    statistic's range.

    Diverged members are NaN: they are counted in `lost` and never averaged. With fewer than two seeds there is no
    interval.

    >>> interval(np.array([0.0, 0.1, np.nan]), bounds=(0, 1))
    Interval(measured=0.05, low=0.0, high=0.6853102368087348, seeds=2, lost=1)
    """
    values = np.asarray(values, float)
    finite = values[np.isfinite(values)]
    count, lost = len(finite), len(values) - len(finite)
    if count == 0:
        return Interval(np.nan, np.nan, np.nan, 0, lost)
    mean = float(np.mean(finite))
    if count == 1:
        return Interval(mean, np.nan, np.nan, 1, lost)
    half = float(scipy.stats.t.ppf(1 - tail(), count - 1) * np.std(finite, ddof=1) / np.sqrt(count))
    low, high = max(mean - half, bounds[0]), min(mean + half, bounds[1])
    return Interval(mean, float(low), float(high), count, lost)


def over_prompts(values: np.ndarray, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Interval:
    """As `interval`, but Wilson's where every prompt is right or wrong. Where all prompts have the same value,
    Student's would have no width: what none of them showed may still happen as often as Wilson's bound says, and moves
    the mean by as much.

    >>> round(over_prompts(np.ones(20), bounds=(0, 1)).low, 3)
    0.839
    """
    plain = interval(values, bounds)
    finite = np.asarray(values, float)[np.isfinite(values)]
    if plain.seeds < 2 or not np.isfinite(bounds).all():
        return plain
    if np.ptp(finite) == 0:
        unseen, value = wilson(0.0, len(finite))[1], plain.measured
        return dataclasses.replace(
            plain, low=value - unseen * (value - bounds[0]), high=value + unseen * (bounds[1] - value)
        )
    if bounds != (0.0, 1.0) or not np.isin(finite, (0.0, 1.0)).all():
        return plain
    low, high = wilson(plain.measured, len(finite))
    return dataclasses.replace(plain, low=low, high=high)


def wilson(share: float, count: float) -> tuple[float, float]:
    """The shares from which this one is no further away than 95 % of samples of this size are."""
    squared = float(scipy.stats.norm.ppf(1 - tail())) ** 2
    centre = (share + squared / (2 * count)) / (1 + squared / count)
    half = np.sqrt(squared * (share * (1 - share) + squared / (4 * count)) / count) / (1 + squared / count)
    return float(max(0.0, centre - half)), float(min(1.0, centre + half))


def estimator(unit: str) -> Callable[..., Interval]:
    """The function that makes an interval over this dimension."""
    return {"seed": interval, "prompt": over_prompts}[unit]


def unit_of(data: xr.DataArray) -> str:
    """The dimension of an interval of these data: training seeds, or prompts if nothing was trained."""
    return "prompt" if "prompt" in data.dims and "seed" not in data.dims else "seed"


def band(
    data: xr.DataArray, bounds: tuple[float, float] = (-np.inf, np.inf), unit: str = "seed"
) -> tuple[xr.DataArray, ...]:
    """Mean, low and high over the dimension "seed" (or "prompt"), point by point, for drawing."""
    find = estimator(unit)
    parts = xr.apply_ufunc(
        lambda values: np.array(dataclasses.astuple(find(values, bounds))[:3]),
        data,
        input_core_dims=[[unit]],
        output_core_dims=[["part"]],
        vectorize=True,
        output_dtypes=[float],
    )
    return tuple(parts.isel(part=index) for index in range(3))


def trend(data: xr.DataArray, dim: str) -> xr.DataArray:
    """Kendall's rank correlation (tau-b) of the data with a coordinate, per seed: +1 always rising, -1 always falling.

    Data without any variation has no trend: 0.
    """

    def tau(values: np.ndarray) -> float:
        if not np.all(np.isfinite(values)):
            return np.nan
        if np.ptp(values) == 0:
            return 0.0
        return float(scipy.stats.kendalltau(data[dim].values, values).statistic)

    return xr.apply_ufunc(tau, data, input_core_dims=[[dim]], vectorize=True, output_dtypes=[float])


@dataclasses.dataclass(frozen=True)
class Criterion:
    """When a curve counts as having reached its goal: below the threshold, or above it.

    The curve is smoothed first, by a mean over `window` records centred at each (fewer at the ends): a mean over the
    past would date every passage later by the same delay, which bends power laws. With `lasting` it must stay there
    until the last record; without, the first time counts. With `interpolate` the time is where the line between two
    records crosses the threshold, not the later of the two.
    """

    threshold: float
    above: bool = False
    window: int = 1
    lasting: bool = True
    interpolate: bool = False

    def __post_init__(self) -> None:
        require(
            self.window >= 1 and self.window % 2 == 1,
            f"window is {self.window}; it must be odd, to have a record at its centre.",
        )


def first_passage(data: xr.DataArray, dim: str, criterion: Criterion) -> xr.DataArray:
    """The coordinate at which the criterion is first met; infinite (censored) if it never is, NaN if the curve is not
    finite.

    The last coordinate is kept as attribute "limit": a censored passage is later than that. The first positive one is
    "floor": a passage at zero was earlier than that.
    """
    times = np.asarray(data[dim].values, float)
    half = criterion.window // 2
    sign = -1.0 if criterion.above else 1.0
    threshold = sign * criterion.threshold

    def first(row: np.ndarray) -> float:
        if not np.all(np.isfinite(row)):
            return np.nan
        smooth = sign * np.array([row[max(0, at - half) : at + half + 1].mean() for at in range(len(row))])
        outside = np.flatnonzero(~(smooth < threshold))
        inside = np.flatnonzero(smooth < threshold)
        start = (
            (0 if len(outside) == 0 else outside[-1] + 1)
            if criterion.lasting
            else (inside[0] if len(inside) else len(row))
        )
        if start >= len(row):
            return np.inf
        if start == 0 or not criterion.interpolate:
            return float(times[start])
        share = (smooth[start - 1] - threshold) / (smooth[start - 1] - smooth[start])
        return float(times[start - 1] + share * (times[start] - times[start - 1]))

    found = xr.apply_ufunc(first, data, input_core_dims=[[dim]], vectorize=True, output_dtypes=[float])
    positive = times[times > 0]
    return found.assign_attrs(limit=float(times[-1]), floor=float(positive[0]) if len(positive) else np.nan)


def first_below(data: xr.DataArray, dim: str, threshold: float) -> xr.DataArray:
    """The smallest coordinate from which on the data stays below the threshold; infinite if it never does."""
    return first_passage(data, dim, Criterion(threshold))


def required(data: xr.DataArray, dim: str, threshold: float, against: str) -> xr.DataArray:
    """Rank correlation of the first passage along `dim` with the coordinate `against`, per seed; never ranks last."""
    passage = first_below(data, dim, threshold)
    beyond = 2.0 * float(np.max(data[dim].values))
    return trend(passage.where(np.isfinite(passage) | passage.isnull(), beyond), against)


def log_slope(data: xr.DataArray, dim: str) -> xr.DataArray:
    """The slope of log(data) against log(coordinate), per seed; NaN where a value is not positive."""
    times = np.log(data[dim].values.astype(float))

    def slope(values: np.ndarray) -> float:
        usable = len(values) >= 2 and bool(np.all(np.isfinite(values))) and bool(np.all(values > 0))
        return float(np.polyfit(times, np.log(values), 1)[0]) if usable else np.nan

    return xr.apply_ufunc(slope, data, input_core_dims=[[dim]], vectorize=True, output_dtypes=[float])

"""Numbers over training seeds: intervals, trends, first passages. A seed is the unit of replication, never a prompt."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.stats
import xarray as xr

LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean over seeds with its interval. `seeds` counts the finite values that went in, `lost` the others."""

    measured: float
    low: float
    high: float
    seeds: int
    lost: int


def interval(values: np.ndarray, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Interval:
    """Student's t interval of the mean at 95 %, over the seeds whose value is finite, cut to the statistic's range.

    Diverged members are NaN: they are counted in `lost` and never averaged. With fewer than two seeds there is no interval.

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
    half = float(scipy.stats.t.ppf(0.5 + LEVEL / 2, count - 1) * np.std(finite, ddof=1) / np.sqrt(count))
    low, high = max(mean - half, bounds[0]), min(mean + half, bounds[1])
    return Interval(mean, float(low), float(high), count, lost)


def band(data: xr.DataArray, bounds: tuple[float, float] = (-np.inf, np.inf)) -> tuple[xr.DataArray, ...]:
    """Mean, low and high over the dimension "seed", point by point, for drawing."""
    parts = xr.apply_ufunc(
        lambda values: np.array(dataclasses.astuple(interval(values, bounds))[:3]),
        data,
        input_core_dims=[["seed"]],
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


def first_below(data: xr.DataArray, dim: str, threshold: float) -> xr.DataArray:
    """The smallest coordinate from which on the data stays below the threshold; infinite if it never does."""
    values = data[dim].values

    def first(row: np.ndarray) -> float:
        if not np.all(np.isfinite(row)):
            return np.nan
        above = np.flatnonzero(~(row < threshold))
        start = 0 if len(above) == 0 else above[-1] + 1
        return float(values[start]) if start < len(values) else np.inf

    return xr.apply_ufunc(first, data, input_core_dims=[[dim]], vectorize=True, output_dtypes=[float])


def required(data: xr.DataArray, dim: str, threshold: float, against: str) -> xr.DataArray:
    """Rank correlation of the first passage along `dim` with the coordinate `against`, per seed; never ranks last."""
    passage = first_below(data, dim, threshold)
    beyond = 2.0 * float(np.max(data[dim].values))
    return trend(passage.where(np.isfinite(passage) | passage.isnull(), beyond), against)

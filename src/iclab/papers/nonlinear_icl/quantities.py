"""The quantities that the statements of nonlinear-icl speak of, as functions of arrays: one number per seed."""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.statistics import required

MULTIPLES = tuple(np.arange(1.0, 8.5, 0.5))  # k in l_ts >= k/α'
MOST_REMOVED = 0.6  # about as many neurons are large


def between(norms: xr.DataArray) -> xr.DataArray:
    """The norm that separates the large neurons, L, from the small ones.

    Norms have two groups with a gap between them; the border is in the middle of the gap that splits them with the
    least variance within both. Nothing but the norms decides it.
    """

    def border(values: np.ndarray) -> float:
        ordered = np.sort(values)
        if not np.all(np.isfinite(ordered)) or len(ordered) < 2:
            return np.nan
        counts = np.arange(1, len(ordered))
        below = np.cumsum(ordered)[:-1]
        gain = below**2 / counts + (ordered.sum() - below) ** 2 / (len(ordered) - counts)
        at = int(np.argmax(gain))
        return float((ordered[at] + ordered[at + 1]) / 2)

    return xr.apply_ufunc(border, norms, input_core_dims=[["neuron"]], vectorize=True, output_dtypes=[float])


def large_share(norms: xr.DataArray) -> xr.DataArray:
    """|L|/m, with L the neurons above the gap in their norms."""
    return (norms > between(norms)).mean("neuron").where(norms.notnull().all("neuron"))


def least_large(norms: xr.DataArray) -> xr.DataArray:
    """The smallest norm in L."""
    return norms.where(norms > between(norms)).min("neuron")


def largest_small(norms: xr.DataArray) -> xr.DataArray:
    """The largest norm outside L."""
    return norms.where(norms < between(norms)).max("neuron")


def share_of_large(cosine: xr.DataArray, norms: xr.DataArray, threshold: float) -> xr.DataArray:
    """The share of the neurons in L whose cosine is at least the threshold."""
    large = norms > between(norms)
    good = (cosine >= threshold) & large
    return (good.sum("neuron") / large.sum("neuron")).where(norms.notnull().all("neuron"))


def median_angle(cosine: xr.DataArray, norms: xr.DataArray) -> xr.DataArray:
    """The median angle over L, in degrees."""
    return np.degrees(np.arccos(np.clip(cosine, -1, 1))).where(norms > between(norms)).median("neuron")


def growth(values: xr.DataArray, norms: xr.DataArray) -> xr.DataArray:
    """The median over L at the end over that at the beginning."""
    large = values.where(norms > between(norms)).median("neuron")
    return large.isel(step=-1) / large.isel(step=0)


def advantage(baselines: xr.DataArray, error: xr.DataArray, fraction: float) -> xr.DataArray:
    """The best baseline's error minus the Transformer's; chosen seed by seed, the best would be the luckiest."""
    gap = (baselines - error).sel(fraction=fraction).mean("length")
    return gap.isel(baseline=int(gap.mean("seed").argmin("baseline")))


def rise(loss: xr.DataArray) -> xr.DataArray:
    """loss(R) - loss(0) over the rates R > 0 that remove large neurons only."""
    removed = (loss["rate"] > 0) & (loss["rate"] <= MOST_REMOVED)
    return loss.sel(rate=removed) - loss.sel(rate=0.0)


def rise_at(loss: xr.DataArray, share: xr.DataArray) -> xr.DataArray:
    """loss(R) - loss(0) at each seed's own R, between the rates that were asked."""
    rates = loss["rate"].values

    def read(row: np.ndarray, at: float) -> float:
        return float(np.interp(at, rates, row) - row[0])

    return xr.apply_ufunc(read, loss, share, input_core_dims=[["rate"], []], vectorize=True, output_dtypes=[float])


def below_one(value: xr.DataArray) -> xr.DataArray:
    """The mean over S_1 < 1 minus the mean over S_1 >= 1."""
    return value.sel(total=slice(0, 0.99)).mean("total") - value.sel(total=slice(1, 2)).mean("total")


def root_log(data: xr.DataArray) -> xr.DataArray:
    """√log M1 over the M1 of the data."""
    patterns = data["patterns"]
    return patterns.copy(data=np.sqrt(np.log(patterns.values.astype(float))))


def longer_for_fewer(error: xr.DataArray, threshold: float) -> xr.DataArray:
    """Rank correlation with α' of the length from which on the error stays small; infinite where none was enough."""
    never = (error.isel(length=-1) >= threshold).all("fraction")
    return required(error, "length", threshold, "fraction").where(~never, np.inf)


def with_tasks(error: xr.DataArray, relevant: int, enough: bool) -> xr.DataArray:
    """The worst error with enough tasks (|T_tr| >= M1), or the best with too few."""
    chosen = (error["relevant"] == relevant) & ((error["task_count"] >= relevant) == enough)
    error = error.isel(setting=np.flatnonzero(chosen.values))
    return error.max("setting", skipna=False) if enough else error.min("setting", skipna=False)


def too_few_tasks(error: xr.DataArray, relevant: int) -> xr.DataArray:
    """The best error with too few tasks minus the worst with enough."""
    return with_tasks(error, relevant, enough=False) - with_tasks(error, relevant, enough=True)


def largest_inside(error: xr.DataArray) -> xr.DataArray:
    """The largest error over test prompts with l_ts >= 1/α'."""
    return error.where(error["length"] * error["fraction"] >= 1 - 1e-9).max(("fraction", "length"))


def long_enough(error: xr.DataArray, what: str, limit: float = 0.05) -> xr.DataArray:
    """The smallest multiple k with mean errors below the limit wherever l_ts >= k/α', or the largest "error" there."""
    size = error["length"] * error["fraction"]
    worst = [error.where(size >= k - 1e-9).max(("fraction", "length")) for k in MULTIPLES]
    enough = [number for number, values in enumerate(worst) if float(values.mean("seed")) < limit]
    first = enough[0] if enough else len(MULTIPLES) - 1
    return worst[first] if what == "error" else xr.full_like(worst[first], MULTIPLES[first] if enough else np.nan)

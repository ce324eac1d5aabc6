"""The quantities that the statements of nonlinear-icl speak of, as functions of arrays: one number per seed."""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.statistics import required


def share(norms: xr.DataArray, norm: float) -> xr.DataArray:
    """The share of neurons with at most this norm."""
    return (norms <= norm).mean("neuron").where(norms.notnull().all("neuron"))


def share_of_large(cosine: xr.DataArray, norms: xr.DataArray, norm: float, threshold: float) -> xr.DataArray:
    """The share of the neurons in L = {‖r_i‖ > norm} whose cosine is at least the threshold."""
    large = norms > norm
    good = (cosine >= threshold) & large
    return (good.sum("neuron") / large.sum("neuron")).where(norms.notnull().all("neuron"))


def median_angle(cosine: xr.DataArray, norms: xr.DataArray, norm: float) -> xr.DataArray:
    """The median angle over L, in degrees."""
    return np.degrees(np.arccos(np.clip(cosine, -1, 1))).where(norms > norm).median("neuron")


def growth(values: xr.DataArray, norms: xr.DataArray, norm: float) -> xr.DataArray:
    """The median over L at the end over that at the beginning."""
    large = values.where(norms > norm).median("neuron")
    return large.isel(step=-1) / large.isel(step=0)


def advantage(baselines: xr.DataArray, error: xr.DataArray, fraction: float) -> xr.DataArray:
    """The best baseline's error minus the Transformer's; chosen seed by seed, the best would be the luckiest."""
    gap = (baselines - error).sel(fraction=fraction).mean("length")
    return gap.isel(baseline=int(gap.mean("seed").argmin("baseline")))


def least_constant(loss: xr.DataArray, matching: float) -> xr.DataArray:
    """min over R of loss(R) / (R + 1/(α' M1)): the constant with which (16) holds; `matching` is α' M1."""
    loss = loss.sel(rate=loss["rate"] > 0)
    return (loss / (loss["rate"] + 1 / matching)).min("rate")


def longer_for_fewer(error: xr.DataArray, threshold: float) -> xr.DataArray:
    """Rank correlation with α' of the length from which on the error stays small; infinite where none was enough."""
    never = (error.isel(length=-1) >= threshold).all("fraction")
    return required(error, "length", threshold, "fraction").where(~never, np.inf)


def with_tasks(error: xr.DataArray, relevant: int, enough: bool) -> xr.DataArray:
    """The worst error with enough tasks (|T_tr| >= M1), or the best with too few."""
    chosen = (error["relevant"] == relevant) & ((error["task_count"] >= relevant) == enough)
    error = error.isel(setting=np.flatnonzero(chosen.values))
    return error.max("setting", skipna=False) if enough else error.min("setting", skipna=False)


def largest_inside(error: xr.DataArray) -> xr.DataArray:
    """The largest error over test prompts with l_ts >= 1/α'."""
    return error.where(error["length"] * error["fraction"] >= 1 - 1e-9).max(("fraction", "length"))


def best_head(mass: xr.DataArray, step: int) -> xr.DataArray:
    """Mass on contexts with the query's pattern, in the layer and head that have most of it at the end of training."""
    mass = mass.stack(place=("layer", "head"))
    best = mass.isel(step=-1).fillna(0).argmax("place")
    return mass.isel(step=step).isel(place=best)

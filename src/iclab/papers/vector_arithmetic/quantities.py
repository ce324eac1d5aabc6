"""What the statements of vector-arithmetic are about, as expressions over results; and the readings they share.

Stopping time matters here: Algorithm 1 stops at an error ε, the propositions say "there exists t", the figures show
whole trainings. One rule stops all three trainings: the record at which the error on validation prompts of both kinds
is lowest. What persists is read at the end.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from iclab.authoring import Expression, Reading, apply, measured
from iclab.papers.vector_arithmetic.settings import PRINTED_DIMENSION, Settings

EPSILON = 0.01
THETA = 0.1  # Θ(1) and o(1) for cosines and ratios
SMALL = 0.05  # an error that "generalises" or "converges to zero"; Θ(1) is above it
FALLING = -0.25  # o(1), if not below 0.1: an exponent in K below this; from here to 0.25 every bound calls it constant
DOUBLING = (50, 100, 200, 400, 800, 1600)  # epochs of the second phase
WINDOW = (5, 10, 20, 40, 80, 200, 400, 800, 1600)  # the same from the first record on
PRINTED_EPOCHS = 5000  # on P_T, and taken for P_QA^T too
TRAININGS = {"qa": "P_QA", "icl": "P_T", "qa-icl": "P_QA^T"}
HYBRID = {"icl": "P_T", "qa-icl": "P_QA^T"}  # those that mix b in
PROMPTS = {"icl": "ICL", "qa-icl": "QA-ICL"}  # on which the theorems test

BEST = Reading(
    "t=best", "'there exists t': each training where the error on validation prompts is lowest", at={"stage": "stopped"}
)
LAST = Reading("t=last", "the end of training", at={"stage": "end"})
COMMON = Reading("t=common", "'there exists t' as printed: one t for all three trainings")
CONDITION = {"dimension": 66, "concepts": 3, "common_tokens": 10, "common_length": 2, "samples": 60}  # d >= M² log(...)
STEP = {"step_size": 0.075 * 66 * 3 * 2 * math.log(100) / (0.06 * 2000), "value_step_scale": 0.06}  # T* = 2000
SLOW = {"step_size": 0.09, "value_step_scale": 0.045, "steps": 50, "icl_steps": 50, "record_every": 50}  # T_1 = 56
MET = "settings that meet all conditions with C = 1"
INSIDE = Reading(
    "inside", f"{MET}, each training at its best t; T* = 2000", at={"stage": "stopped"},
    changes=CONDITION | STEP | {"prompts": 2000, "trend_prompts": 500},
)  # fmt: skip
FIRST = Reading("first-phase", f"{MET}, until T_1", changes=CONDITION | SLOW)
DRAWN = Reading(
    "first-phase,drawn", "the same, samples drawn as in Definition C.1: Lemma G.1 is about their imbalance",
    changes=CONDITION | SLOW | {"balanced": False},
)  # fmt: skip
PRINTED_SIZES = Reading(
    "until-T1", "the sizes of the simulations, with a step size that makes T_1 = 50",
    changes={"step_size": 0.0075, "value_step_scale": 0.4, "steps": 50, "icl_steps": 50, "record_every": 50},
)  # fmt: skip


TIED = "several records share the lowest validation error and the first is taken; the others would have to be tested"


def too_small(s: Settings) -> str:
    """Why a run cannot answer what came out otherwise at the printed size."""
    printed = f"d = {PRINTED_DIMENSION} came out otherwise, and this is d = {s.dimension}"
    return printed if s.dimension < PRINTED_DIMENSION else ""


def too_short(s: Settings) -> str:
    """Why a run cannot answer for the second half of the printed training on P_T and P_QA^T."""
    begins = f"the second half begins at epoch {s.icl_steps // 2} here, at {PRINTED_EPOCHS // 2} in print"
    return begins if s.icl_steps < PRINTED_EPOCHS else ""


def doubling(data: xr.DataArray) -> xr.DataArray:
    """The records at 50, 100, 200 ... 1600 epochs; all but the first of a training that is much shorter."""
    wanted = [step for step in data["step"].values if step in DOUBLING]
    return data.sel(step=wanted) if len(wanted) > 2 else data.isel(step=slice(1, None))


def until(data: xr.DataArray, end: float) -> xr.DataArray:
    """The records after initialisation, up to an epoch."""
    steps = data["step"].values
    return data.isel(step=np.flatnonzero((steps > 0) & (steps <= end * (1 + 1e-9))))


def window(data: xr.DataArray, start: float, end: float) -> xr.DataArray:
    """Records between two epochs, about equally far apart on a logarithmic scale, with the last one."""
    kept = until(data, end)
    steps = kept["step"].values
    return kept.isel(step=np.flatnonzero(((steps >= start) & np.isin(steps, WINDOW)) | (steps == steps[-1])))


def since_start(data: xr.DataArray) -> xr.DataArray:
    """The growth since initialisation, at every later record."""
    return (data - data.isel(step=0)).isel(step=slice(1, None))


def per_epoch(growth: xr.DataArray) -> xr.DataArray:
    """Growth over time: α + βt where the growth is αt + βt²."""
    return growth / growth["step"]


def lifted(growth: xr.DataArray, least: float) -> xr.DataArray:
    """Growth with a floor: what does not grow has an exponent of 0 and not none."""
    return growth.clip(min=least)


def at_time(data: xr.DataArray, epoch: xr.DataArray) -> xr.DataArray:
    """Records at an epoch of each seed's own."""
    return data.where(data["step"] == epoch).max("step")


def most_mixed(high: xr.DataArray, low: xr.DataArray) -> xr.DataArray:
    """The smaller of two cosines at every record behind the first phase, from epoch 10 on."""
    smaller = xr.where(high < low, high, low)
    return smaller.isel(step=np.flatnonzero(smaller["step"] >= 10))


def epoch_of_largest(data: xr.DataArray) -> xr.DataArray:
    """The epoch at which each seed is largest."""
    return data["step"].isel(step=data.fillna(-np.inf).argmax("step"))


def common_time(*errors: xr.DataArray) -> xr.DataArray:
    """One t for all trainings and seeds, from errors on two kinds of prompts, trained on P_QA, then on the others.

    Among the records where both means trained on P_QA are at most ε, the one where the smallest of the mean differences
    to the others is largest.
    """
    own, others = errors[:2], errors[2:]
    gaps = [(error - own[number % 2]).mean("seed") for number, error in enumerate(others)]
    smallest = xr.concat(gaps, "part", join="inner").min("part")
    worst = xr.concat([error.mean("seed") for error in own], "part").max("part")
    score = smallest.where(worst <= EPSILON, -np.inf).fillna(-np.inf)
    return score["step"].isel(step=int(score.argmax("step")))


def at_common(value: xr.DataArray, *errors: xr.DataArray) -> xr.DataArray:
    """Records at the common t."""
    return value.sel(step=common_time(*errors), drop=True)


def second_half(data: xr.DataArray) -> xr.DataArray:
    """The records of the second half of training."""
    return data.isel(step=np.flatnonzero(data["step"] >= float(data["step"][-1]) / 2))


def largest(*parts: xr.DataArray) -> xr.DataArray:
    """The largest of several, point by point."""
    return xr.concat(parts, "part").max("part", skipna=False)


def last(training: str, variable: str) -> Expression:
    """A record at the end of a training; of "step", the epoch itself."""
    return measured(training, variable).last()


def stopped(training: str, variable: str) -> Expression:
    """A record of a training where it was stopped."""
    return apply(at_time, measured(training, variable), measured(training, "best_step"))


def grown(training: str, variable: str) -> Expression:
    """How much a record has grown since initialisation, along training."""
    return apply(since_start, measured(training, variable))


def low_growth(training: str) -> Expression:
    """By how much |bᵀW_V b| changed until the end, for the concept where it changed most."""
    return abs(last(training, "value_low") - measured(training, "value_low").first()).max("concept", skipna=False)


def low_level(training: str, end: float = np.inf) -> Expression:
    """How strongly W_V passes the low-level concepts on, beside the high-level ones, at the last record up to `end`."""
    low, high = (apply(until, measured(training, name), end).last() for name in ("value_b", "value_a"))
    return low / high


def vanishing(cosine: xr.DataArray) -> xr.DataArray:
    """o(1) over K: the smaller of the last value over 0.1, and of its ratio to the first over what K^(-1/4) leaves."""
    first, final = cosine.isel(concepts=0, drop=True), cosine.isel(concepts=-1, drop=True)
    factor = float(cosine["concepts"][-1] / cosine["concepts"][0])
    small, fallen = final / THETA, final / first / factor**FALLING
    return xr.where(small < fallen, small, fallen)


def other_direction(prompt: str, names: tuple[str, ...]) -> Expression:
    """The largest cosine of h_0 with directions of a class, over K, at the end of the short trainings."""
    return apply(largest, *(last("sizes", f"{prompt}_cos_{name}") for name in names))

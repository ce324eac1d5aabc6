"""The rates of feature-selection: Theorem 1's iterations (6) in λ_*, τ, η, M and α. They suffice, so each is an upper
bound. In α the law has a constant C that exists: it is fitted.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr

from iclab.authoring import Criterion, Law
from iclab.papers.feature_selection.settings import DEVIATION, Settings

TOTALS = (30, 48, 76, 120)  # M where it grows; M1² is 25, and d_X the largest
FIRST = {  # wide models may leave a loss of 0 again for some steps
    "training loss (fresh prompts) below 0.1 for the first time": Criterion(0.1, window=3, lasting=False),
    "training loss below 0.5 for the first time": Criterion(0.5, window=3, lasting=False),
    "training loss below 0.02 for the first time": Criterion(0.02, window=3, lasting=False),
}
# In α (6) is no power: what is needed is fitted below. l_tr = 20 allows α >= 0.34, by (5).
FRACTION = Law(
    "rate-fraction", "matching_fraction", (0.55, 0.6, 0.7, 0.8, 1.0), "α", 0.0, on=(), towards="small", criteria=FIRST
)
LOW_FRACTION = dataclasses.replace(FRACTION, experiment="rate-fraction-low", values=(0.35, 0.45), dim="fraction")
NARROW = {"rate-low": "rate-low-narrow"}  # where every λ is λ_*


def laws(s: Settings) -> dict[str, Law]:
    """The laws at these settings, with ε_m = 1/4. λ ~ U(λ_*, 1.2): its mean rises with λ_* too."""

    def undisturbed(noise: np.ndarray) -> np.ndarray:
        return 1 - DEVIATION - noise * s.relevant_patterns

    return {
        "λ_*": Law(
            "rate-low", "relevant_low", (0.3, 0.45, 0.6, 0.9, 1.2), "λ_*", -1.0, on=(0.6, 0.9, 1.2), towards="small",
            rivals={"λ_*^(-2/3)": -2 / 3, "λ_*⁻²": -2.0}, criteria=FIRST,
        ),
        "τ": Law(
            "rate-noise", "noise_norm", (0.0, 0.05, 0.09, 0.12, 0.14), "1 − ε_m − τ M1", -0.5, on=(0.0, 0.05, 0.09),
            towards="small", coordinate=undisturbed, rivals={"no dependence": 0.0, "power −1": -1.0}, criteria=FIRST,
        ),
        "η": Law(
            "rate-step", "step_size", (0.5, 0.7, 1.0, 1.4, 2.0), "η", -1.0, on=(1.0, 1.4, 2.0), dim="step_size",
            towards="small", rivals={"no dependence": 0.0, "η⁻²": -2.0}, criteria=FIRST,
        ),
        "M": Law(
            "sizes", "irrelevant_patterns", TOTALS, "M", 0.5, on=(30, 48), dim="patterns",
            rivals={"no dependence": 0.0, "linear": 1.0}, criteria=FIRST,
        ),
    }  # fmt: skip


def fixed_size(law: Law) -> Law:
    """The law in λ_* where every λ is λ_*: more iterations are needed, so that λ_* does not go as low."""
    values = (0.6, 0.7, 0.85, 1.0, 1.2)
    return dataclasses.replace(law, experiment=NARROW[law.experiment], values=values, on=values[2:], dim="low")


def proportional(s: Settings) -> dict[str, Law]:
    """P1: the same two-sided, and in 1 - τ M1 without ε_m."""

    def undisturbed(noise: np.ndarray) -> np.ndarray:
        return 1 - noise * s.relevant_patterns

    found = laws(s)
    noise = dataclasses.replace(found["τ"], coordinate=undisturbed, symbol="1 − τ M1")
    return {"λ_*": dataclasses.replace(found["λ_*"], side="both"), "τ": dataclasses.replace(noise, side="both")}


def in_mean(s: Settings) -> tuple[Law, Law]:
    """The law that both ways to draw λ seem to follow, in its mean: with λ in a range, and where every λ is λ_*."""
    law = dataclasses.replace(laws(s)["λ_*"], symbol="mean λ", exponent=-2.0, side="both", rivals={})
    ranged = dataclasses.replace(law, coordinate=lambda low: (low + s.relevant_high) / 2)
    return ranged, fixed_size(law)


def side_by_side(ranged: xr.DataArray, narrow: xr.DataArray) -> xr.DataArray:
    """Times over the mean λ from two experiments, of the seeds that both have."""
    return xr.concat([ranged, narrow], "low", join="inner", combine_attrs="drop")


def together(few: xr.DataArray, many: xr.DataArray) -> xr.DataArray:
    """Times over α from two experiments, in order."""
    found = xr.concat([few, many], "fraction", combine_attrs="drop").sortby("fraction")
    return found.where(np.isfinite(found), np.inf)


def _fits(times: np.ndarray, fractions: np.ndarray) -> tuple[float, float]:
    """C and the root mean square of log T - log K + log(C - 1/α) for the best K and C > 1/α; NaN where T is not there.

    C is searched on a grid: from just above the largest 1/α, where the law diverges, to 1000, where α does not matter.
    """
    if not np.isfinite(times).all():
        return np.nan, np.inf
    inverse = 1 / fractions
    constants = inverse.max() + np.geomspace(1e-3, 1e3, 2000)[:, None]
    level = np.log(times) + np.log(constants - inverse)
    spread = np.sqrt(np.mean((level - level.mean(axis=1, keepdims=True)) ** 2, axis=1))
    best = int(np.argmin(spread))
    return float(constants[best, 0]), float(spread[best])


def residual(times: xr.DataArray) -> xr.DataArray:
    """Seed by seed: how far T is from K/(C - 1/α) with its own K and C: the root mean square of logarithms."""
    rows = times.transpose("seed", "fraction").values
    found = [_fits(row, times["fraction"].values)[1] for row in rows]
    return xr.DataArray(found, dims="seed", coords={"seed": times["seed"]})


def beyond_power(times: xr.DataArray) -> xr.DataArray:
    """Seed by seed: how much further T is from K/(C - 1/α) than from the best K α^p, which has as many parameters."""
    size = np.log(times["fraction"].values)
    rows = times.transpose("seed", "fraction").values
    return residual(times) - np.array([_from_power(np.log(row), size) for row in rows])


def _from_power(row: np.ndarray, size: np.ndarray) -> float:
    """The root mean square of what a straight line leaves; 0 where T is not there, which the law's misfit says."""
    if not np.isfinite(row).all():
        return 0.0
    return float(np.sqrt(np.mean((row - np.polyval(np.polyfit(size, row, 1), size)) ** 2)))


def constant(times: xr.DataArray) -> xr.DataArray:
    """C fitted to the geometric mean over seeds, the same for every seed."""
    mean = np.exp(np.mean(np.log(times.transpose("seed", "fraction").values), axis=0))
    found = _fits(mean, times["fraction"].values)[0]
    return xr.DataArray(np.full(times.sizes["seed"], found), dims="seed", coords={"seed": times["seed"]})

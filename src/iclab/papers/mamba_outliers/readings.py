"""What the paper leaves open, as readings, and the quantities that several statements speak of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from iclab.expressions import Expression, apply, measured
from iclab.papers.mamba_outliers.settings import ONE_LAYER, STACKS, TASKS, Settings
from iclab.statements import Reading

POSITIVE = (0.0, np.inf)
RULE_WORDS = {"flip": "label flipping", "target": "targeted labels", "random": "random labels"}
CYCLE = Reading("cycle", "the bare cycle of 6 training tasks, which satisfies Condition 1 too", {"setting": "6 tasks"})
TRAINED = (Reading("18tasks", "18 training tasks", {"setting": TASKS}), CYCLE)
LAYER = Reading("", "one layer", {"setting": ONE_LAYER})
DIVERGES = {"full-residual": " (of the seeds that do not diverge at our η: 20 of 32 in the full-size run)"}
STACKED = tuple(
    Reading(name, f"three layers: {label}{DIVERGES.get(name, '')}", {"setting": label})
    for name, label in STACKS.items()
)


def sized(s: Settings, readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Each of these readings at each κ_a', which the paper does not print."""
    return tuple(
        Reading(named(s, one.name, size), f"{one.why}; κ_a' = {size:g}", {**one.at, "magnitude": size})
        for one in readings
        for size in s.magnitudes
    )


def named(s: Settings, name: str, size: float) -> str:
    """The name of a reading with its κ_a', where there is more than one."""
    return f"{name},kappa={size:g}".strip(",") if len(s.magnitudes) > 1 else name


def exact(s: Settings) -> Reading:
    """An exact number of outliers in every prompt."""
    size = s.magnitudes[-1]
    words = f"an exact number of outliers in every prompt; 18 tasks, κ_a' = {size:g}"
    at = {"setting": TASKS, "magnitude": size}
    return Reading(named(s, "exact", size), words, at, variables={"error": "exact_error"})


def seen(s: Settings) -> Reading:
    """Test outliers that were there in training."""
    size = s.magnitudes[0]
    words = f"the test outliers are those of training; 18 tasks, κ_a' = {size:g}"
    at = {"setting": TASKS, "magnitude": size}
    return Reading(named(s, "seen", size), words, at, experiments={"robustness": "robustness-seen"})


def brief(s: Settings) -> Reading:
    """A linear Transformer that is trained no longer than Theorem 3 asks for."""
    words = "the linear Transformer is trained for T_T steps (Theorem 3, constant 1); 18 tasks"
    at = {"setting": TASKS, "magnitude": s.magnitudes[-1]}
    return Reading("brief", f"{words}, κ_a' = {s.magnitudes[-1]:g}", at, experiments={"robustness": "robustness-brief"})


def outliers(s: Settings) -> tuple[Reading, ...]:
    """Task sets and sizes of outliers, exact numbers, outliers of training."""
    return (*sized(s, TRAINED), exact(s), seen(s))


def up_to(error: Expression, fraction: float) -> Expression:
    """The largest error over α up to this one."""
    return error.sel(fraction=slice(0.0, fraction + 1e-9)).max("fraction", skipna=False)


def from_fraction(error: Expression, fraction: float) -> Expression:
    """The smallest error over α from this one on."""
    return error.sel(fraction=slice(fraction - 1e-9, 1.0)).min("fraction", skipna=False)


def borne(error: xr.DataArray, threshold: float) -> xr.DataArray:
    """The largest α of the grid up to which the error stays below a threshold; 0 where it does not at α = 0."""
    below = (error < threshold).cumprod("fraction")
    return (below * error["fraction"]).max("fraction").where(error.notnull().all("fraction"))


def recorded(scores: xr.DataArray, at: xr.DataArray) -> xr.DataArray:
    """Scores along the setting's own steps; the others' are not recorded for it."""
    return scores.isel(step=np.flatnonzero(at.values))


def scores(group: str) -> Expression:
    """Sums of attention scores along training, on examples with the query's pattern ("same") or on the "other" ones."""
    return apply(recorded, measured("attention", f"score_{group}"), measured("attention", "recorded"))


def decay(ranked: xr.DataArray) -> xr.DataArray:
    """Correlation of log G_h(j) with j: -1 is a perfect exponential decay."""

    def fit(values: np.ndarray) -> float:
        if not np.all(np.isfinite(values)) or np.any(values <= 0):
            return np.nan
        return float(np.corrcoef(ranked["rank"].values, np.log(values))[0, 1])

    return xr.apply_ufunc(fit, ranked, input_core_dims=[["rank"]], vectorize=True, output_dtypes=[float])


def halvings(ranked: xr.DataArray) -> xr.DataArray:
    """Gates over 2^(j-1) instead of over j."""
    return ranked.assign_coords(rank=2.0 ** (ranked["rank"] - 1))


def gate(group: str, layer: int = 0) -> Expression:
    """Gates of "outlier" and "clean" examples by distance, or of the j-th closest clean one ("ranked")."""
    return measured("gates", f"{group}_gate").isel(layer=layer)


def suppression(layer: int) -> Expression:
    """The mean gate of outliers over that of clean examples."""
    return gate("outlier", layer).mean("distance") / gate("clean", layer).mean("distance")


def accuracy(stack: str, rule: str) -> Expression:
    """Accuracy of a stack by where outliers with such labels sit."""
    return measured("placements", "accuracy").sel(setting=STACKS[stack], rule=rule)

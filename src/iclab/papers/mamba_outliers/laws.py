"""The rates of mamba-outliers: iterations of one-layer models, examples near α = 1/2, outliers that they withstand.

Theorems 1 and 3 predict the same dependence on p_a, η, β and M1 for both models, and l_tr times fewer iterations for
the linear one. Both numbers suffice, so each law is an upper bound. Theorem 2 lets Mamba withstand outliers up to
α < min(1, p_a l_tr / l_ts), Theorem 4 the linear Transformer up to 1/2.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring import Criterion, Law
from iclab.papers.mamba_outliers import theory
from iclab.papers.mamba_outliers.settings import Settings, symbols
from iclab.statistics.fits import exponents_by_seed

FEW_OUTLIERS = 0.2  # p_a where the other settings are varied
HALF = Criterion(0.5, window=3, interpolate=True)
LOSSES = {
    "training loss (fresh prompts) below 0.5": HALF,
    "training loss below 0.1": Criterion(0.1, window=3, interpolate=True),
    "training loss below 0.8": Criterion(0.8, window=3, interpolate=True),
}
MOST_OUTLIERS = {"mamba": 0.75, "linear": 0.6}  # above 0.6 the linear model's hinge loss has a floor above one half


def clean(outliers: np.ndarray) -> np.ndarray:
    """1 - p_a."""
    return 1 - outliers


def margin(fractions: np.ndarray) -> np.ndarray:
    """1/2 - α."""
    return 0.5 - fractions


def _laws(kind: str, length: float, rivals: dict[str, float]) -> dict[str, Law]:
    def law(name: str, setting: str, values: tuple[float, ...], symbol: str, exponent: float, **more: Any) -> Law:
        at = {"kind": kind} | more.pop("at", {})
        return Law(name, setting, values, symbol, exponent, criteria=LOSSES, at=at, **more)

    return {
        "p_a": law(
            "rate-outliers", "outlier_fraction", (0.0, 0.2, 0.4, 0.6, 0.75), "1 − p_a", -1.0, on=(0.0, 0.2),
            towards="small", rivals={"no dependence": 0.0, "(1-p_a)⁻²": -2.0}, coordinate=clean,
            at={"outliers": slice(0.0, MOST_OUTLIERS[kind])},
        ),
        "l_tr": law(
            "rate-length", "train_length", (10, 14, 20, 28, 40), "l_tr", length, on=(20.0, 28.0, 40.0), rivals=rivals
        ),
        "η": law(
            "rate-step", "step_size", (0.5, 1.0, 2.0, 4.0), "η", -1.0, on=(1.0, 2.0, 4.0), towards="small",
            dim="step_size", rivals={"no dependence": 0.0, "η⁻²": -2.0},
        ),
        "β": law(
            "rate-strength", "pattern_strength", (2.0, 3.0, 4.5, 8.0), "β", -2.0, on=(2.0, 3.0),
            rivals={"β⁻¹, (71)": -1.0, "β⁻⁴": -4.0},
        ),
        "M1": law(
            "rate-patterns", "relevant_patterns", (4, 6, 10, 17), "M1", 1.0, on=(4.0, 6.0),
            rivals={"no dependence": 0.0, "M1²": 2.0},
        ),
        "κ_a": law(
            "rate-magnitude", "outlier_magnitude", (0.5, 1.0, 2.0, 8.0), "κ_a", 0.0, on=(2.0, 8.0),
            rivals={"κ_a⁻¹": -1.0},
        ),
    }  # fmt: skip


LAWS = {
    "mamba": _laws("mamba", 0.0, {"l_tr⁻¹": -1.0}),
    "linear": _laws("linear", -1.0, {"no dependence": 0.0}),
}
SIZES = ("η", "β", "M1", "κ_a")  # varied around one point, in one training


def near_half(s: Settings, kind: str = "linear") -> Law:
    """(17) near α = 1/2: examples that a model needs for an error of ε, and of a smaller and a larger one."""
    thresholds = (symbols(s).error, 0.05, 0.2)
    criteria = {f"0-1 error below {value:.2g}": Criterion(value, interpolate=True) for value in thresholds}
    return Law(
        "majority", "", (0.3, 0.35, 0.4, 0.45), "1/2 − α", -2.0, on=(0.3, 0.35), dim="fraction", towards="small",
        criteria=criteria, variable="error", along="length", what="test examples", rivals={"(1/2-α)⁻¹": -1.0},
        coordinate=margin, at={"kind": kind},
    )  # fmt: skip


def excess(mamba: xr.DataArray, linear: xr.DataArray) -> xr.DataArray:
    """The exponent of T_M / T_T in l_tr, per seed."""
    return exponents_by_seed(mamba, "length") - exponents_by_seed(linear, "length")


def examples_needed(s: Settings, fraction: float) -> float:
    """Theorem 4's number of examples (17) at this α, with constant 1; infinite from 1/2 on."""
    at = dataclasses.replace(symbols(s), test_outlier_fraction=fraction)
    return max(theory.mamba_test_length(at).value, theory.linear_test_length(at).value) if fraction < 0.5 else np.inf


def largest_borne(s: Settings, length: float) -> float:
    """Theorem 2 (c) at this l_ts: α is below it."""
    return theory.largest_test_fraction(dataclasses.replace(symbols(s), test_length=length)).value


def limits(s: Settings) -> tuple[float, float]:
    """The largest α of the grid that Theorem 2 (c) allows Mamba, and the largest for which (17) allows l_ts."""
    mamba = max(alpha for alpha in s.fractions if alpha < largest_borne(s, s.test_length) or alpha == 0)
    return mamba, max(alpha for alpha in s.fractions if examples_needed(s, alpha) <= s.test_length or alpha == 0)


def mamba_region(error: xr.DataArray, s: Settings) -> xr.DataArray:
    """Where Theorem 2 promises a small error, over α and l_ts: below (c), with the examples that (d) asks for."""
    borne = [largest_borne(s, float(length)) for length in error["length"]]
    at = [dataclasses.replace(symbols(s), test_outlier_fraction=float(alpha)) for alpha in error["fraction"]]
    needed = error["fraction"].copy(data=[theory.mamba_test_length(one).value for one in at])
    return (error["fraction"] < error["length"].copy(data=borne)) & (needed <= error["length"])


def linear_region(error: xr.DataArray, s: Settings) -> xr.DataArray:
    """Where Theorem 4 does."""
    needed = [examples_needed(s, float(alpha)) for alpha in error["fraction"]]
    return error["fraction"].copy(data=needed) <= error["length"]

"""The rates of mamba-outliers: iterations of both one-layer models in p_a and l_tr, and what outliers they bear.

Theorems 1 and 3 predict the same dependence on 1 - p_a for both models, and l_tr times fewer iterations for the linear
one. Both numbers suffice, so each law is an upper bound. Theorem 2 lets Mamba bear outliers up to
α < min(1, p_a l_tr / l_ts), Theorem 4 the linear Transformer up to 1/2.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr

from iclab.authoring import Criterion, Law
from iclab.papers.mamba_outliers import theory
from iclab.papers.mamba_outliers.settings import FRACTIONS, Settings, symbols
from iclab.statistics.fits import exponents_by_seed

FEW_OUTLIERS = 0.2  # p_a where l_tr is varied
SMALL_START = 0.02  # δ: at 0.2 the linear model's untrained answers are right already
SLOWER = {"mamba": 20.0, "linear": 80.0}  # step sizes are divided by this, so that a passage takes many steps
LOSSES = {
    "training loss (fresh prompts) below 0.1": Criterion(0.1, window=3, interpolate=True),
    "training loss below 0.5": Criterion(0.5, window=3, interpolate=True),
    "training loss below 0.8": Criterion(0.8, window=3, interpolate=True),
}


def clean(outliers: np.ndarray) -> np.ndarray:
    """1 - p_a."""
    return 1 - outliers


def _laws(kind: str, length: float, rivals: dict[str, float]) -> dict[str, Law]:
    return {
        "p_a": Law(
            "rate-outliers", "outlier_fraction", (0.0, 0.1, 0.2, 0.3, 0.4), "1 − p_a", -1.0, on=(0.0, 0.1, 0.2),
            towards="small", criteria=LOSSES, rivals={"no dependence": 0.0, "(1-p_a)⁻²": -2.0}, coordinate=clean,
            at={"kind": kind},
        ),
        "l_tr": Law(
            "rate-length", "train_length", (10, 14, 20, 28, 40), "l_tr", length, on=(20.0, 28.0, 40.0), criteria=LOSSES,
            rivals=rivals, at={"kind": kind},
        ),
    }  # fmt: skip


LAWS = {"mamba": _laws("mamba", 0.0, {"l_tr⁻¹": -1.0}), "linear": _laws("linear", -1.0, {"no dependence": 0.0})}


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
    mamba = max(alpha for alpha in FRACTIONS if alpha < largest_borne(s, s.test_length) or alpha == 0)
    return mamba, max(alpha for alpha in FRACTIONS if examples_needed(s, alpha) <= s.test_length or alpha == 0)


def mamba_region(error: xr.DataArray, s: Settings) -> xr.DataArray:
    """Where Theorem 2 promises a small error, over α and l_ts."""
    borne = [largest_borne(s, float(length)) for length in error["length"]]
    return error["fraction"] < error["length"].copy(data=borne)


def linear_region(error: xr.DataArray, s: Settings) -> xr.DataArray:
    """Where Theorem 4 does."""
    needed = [examples_needed(s, float(alpha)) for alpha in error["fraction"]]
    return error["fraction"].copy(data=needed) <= error["length"]

"""Tests that go beyond Fig. 1: the size and the sum of test outliers, prompts near α = 1/2, scores without a sign."""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr

from iclab.authoring import Experiment, Lab
from iclab.papers.mamba_outliers.experiments import ERRORS, both, require_watchable, tested, train_one_layer
from iclab.papers.mamba_outliers.laws import near_half
from iclab.papers.mamba_outliers.settings import TASKS, Settings, inference_world
from iclab.probes.gates import clipped_errors

MANY = 0.8  # α, the largest of Fig. 1's text
KNOWN = ("seen", "mixed", "opposed")  # the training outliers, Appendix B's mixtures, minus these
SUMS = (0.3, 0.6, 1.0, 1.4, 1.7)  # Σλ of test outliers
REACHES = (0.25, 0.5, 1.0, 2.0)  # κ_a' Σλ / κ_a
NEAR_LENGTHS = (5, 10, 20, 40, 80, 160, 320)  # l_ts near α = 1/2


def inside_length(s: Settings) -> int:
    """The longest l_ts for which Theorem 2 (c) allows α = 0.8."""
    return max(1, int(np.ceil(s.outlier_fraction * s.train_length / MANY)) - 1)


def dial(lab: Lab) -> xr.Dataset:
    """Mamba's error at α = 0.8 by the size of test outliers: seen ones, mixtures, mixtures with a negative sum."""
    s: Settings = lab.settings
    dims = {"outliers": KNOWN, "magnitude": s.dial}
    fixed = {"fraction": MANY, "exact": True, "stackable": True}
    found = tested(lab, train_one_layer(lab, "mamba").only(TASKS), "dial", dims, s.trend_prompts, **fixed)
    return found.isel(setting=0, drop=True)


def sums(lab: Lab) -> xr.Dataset:
    """The same inside the region of Theorem 2, by Σλ and by κ_a' Σλ / κ_a ("reach")."""
    own = dataclasses.replace(lab.settings, test_length=inside_length(lab.settings))

    def place(setting: str, seed: int, total: float, reach: float) -> object:
        size = reach * own.outlier_magnitude / total
        return inference_world(own, MANY, size, outliers=total, exact=True, stackable=True)

    trained = train_one_layer(lab, "mamba").only(TASKS)
    found = lab.evaluate(trained, "sums", ERRORS, place, {"total": SUMS, "reach": REACHES}, own.trend_prompts)
    return found.isel(setting=0, drop=True)


def clipped(lab: Lab) -> xr.Dataset:
    """Fig. 1(A) with the negative attention scores set to 0 ("clipped"), exact numbers, the larger κ_a'."""
    s: Settings = lab.settings
    require_watchable(s)
    fixed = {"magnitude": s.magnitudes[-1], "exact": True, "stackable": True}
    trained, dims = train_one_layer(lab, "mamba").only(TASKS), {"fraction": s.fractions}
    return tested(lab, trained, "clipped", dims, s.trend_prompts, clipped_errors, **fixed).isel(setting=0, drop=True)


def majority(lab: Lab) -> xr.Dataset:
    """(17) near α = 1/2: errors of both models over l_ts, labels flipped, the larger κ_a'."""
    s: Settings = lab.settings
    dims = {"fraction": near_half(s).values, "length": NEAR_LENGTHS}
    fixed = {"magnitude": s.magnitudes[-1], "longest": NEAR_LENGTHS[-1]}

    def test(kind: str) -> xr.Dataset:
        trained = train_one_layer(lab, kind).only(TASKS)
        return tested(lab, trained, "majority", dims, s.trend_prompts // 4, **fixed).isel(setting=0, drop=True)

    return both(test)


experiments = {
    "dial": Experiment(dial, cost=3),
    "sums": Experiment(sums, cost=3),
    "clipped": Experiment(clipped, cost=3),
    "majority": Experiment(majority, cost=10),
}

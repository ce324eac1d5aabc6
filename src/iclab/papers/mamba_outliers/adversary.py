"""Where the gate stops helping: Mamba's error over size and sum of test outliers, and outliers chosen against a model.

Theorem 2 has test outliers κ_a' Σ_s λ_s v*_s, (a) with Σλ >= L > 0 and (b) with κ_a' >= κ_a. What the gate sees of one
is its logit, κ_a' Σ_s λ_s wᵀv*_s, and training makes all wᵀv*_s alike: so κ_a' Σλ should decide, and where it is
negative the gate should open, and the memory of all earlier examples be lost.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import xarray as xr

from iclab.authoring import Experiment, Lab
from iclab.expressions import apply, measured
from iclab.kinds import above, larger, suffices
from iclab.papers.mamba_outliers.experiments import ERRORS, both, train_one_layer
from iclab.papers.mamba_outliers.readings import sized
from iclab.papers.mamba_outliers.settings import OWN, TASKS, Settings, inference_world
from iclab.papers.mamba_outliers.shifts import MANY, inside_length
from iclab.statements import SIGNED, UNIT, Part, Reading, Statement

TOTALS = (-1.6, -0.8, -0.4, 0.0, 0.1, 0.2, 0.4, 0.8, 1.2, 1.6)  # Σλ
SIZES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # κ_a'
MARGIN = 2.0  # how many times above or below κ_a' Σλ = κ_a
SMALL, LARGE = 0.05, 0.2
FEW = (0.05, 0.1, 0.2, 0.3, 0.4)  # α of outliers that are chosen against a model, all within (c)
ALLOWED = FEW[3]


def outlier_map(lab: Lab) -> xr.Dataset:
    """Mamba's error at α = 0.8 inside the region of Theorem 2 (c), over Σλ and κ_a'."""
    own = dataclasses.replace(lab.settings, test_length=inside_length(lab.settings))

    def place(setting: str, seed: int, total: float, magnitude: float) -> object:
        return inference_world(own, MANY, magnitude, outliers=total, exact=True, stackable=True)

    trained, dims = train_one_layer(lab, OWN).only(TASKS), {"total": TOTALS, "magnitude": SIZES}
    return lab.evaluate(trained, "outlier map", ERRORS, place, dims, own.trend_prompts).isel(setting=0, drop=True)


def candidates(count: int) -> np.ndarray:
    """The unit mixtures that an adversary tries: all signs of equal coefficients, and each outlier with both signs.

    >>> candidates(3).shape, float(candidates(3).sum(axis=1).min().round(3))
    ((14, 3), -1.732)
    """
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=count))) / np.sqrt(count)
    return np.concatenate([signs, np.eye(count), -np.eye(count)])


def adaptive(lab: Lab) -> xr.Dataset:
    """Errors of both models with the mixture that is worst for each trained model, α and κ_a', and its Σλ ("worst").

    Prompts that the mixture is chosen on are not those that it is tested on.
    """
    s: Settings = lab.settings
    tried = candidates(s.outlier_patterns)
    dims = {"magnitude": s.magnitudes, "fraction": (*FEW, MANY)}

    def world(choice: int, magnitude: float, fraction: float) -> object:
        mixture = tuple(float(value) for value in tried[choice])
        return inference_world(s, fraction, magnitude, outliers=mixture, exact=True, stackable=True)

    def test(kind: str) -> xr.Dataset:
        trained = train_one_layer(lab, kind).only(TASKS)

        def with_each(setting: str, seed: int, choice: int, magnitude: float, fraction: float) -> object:
            return world(choice, magnitude, fraction)

        scouted = {"choice": range(len(tried)), **dims}
        found = lab.evaluate(trained, "adversary", ERRORS, with_each, scouted, s.trend_prompts // 4)["error"]
        worst = found.fillna(-1.0).argmax("choice")

        def with_worst(setting: str, seed: int, magnitude: float, fraction: float) -> object:
            at = {"setting": setting, "seed": seed, "magnitude": magnitude, "fraction": fraction}
            return world(int(worst.sel(at)), magnitude, fraction)

        tested = lab.evaluate(trained, "adaptive", ERRORS, with_worst, dims, s.trend_prompts)
        sums = xr.DataArray(tried.sum(axis=1), dims="choice")
        return tested.assign(worst=sums.isel(choice=worst)).isel(setting=0, drop=True)

    return both(test)


def reach(error: xr.DataArray, kappa: float) -> xr.DataArray:
    """κ_a' Σλ / κ_a of every point of the map."""
    return error["magnitude"] * error["total"] / kappa


def worst_beyond(error: xr.DataArray, kappa: float) -> xr.DataArray:
    """The largest error where κ_a' Σλ is a margin above κ_a; a point that diverged counts as the worst."""
    inside = reach(error, kappa) >= MARGIN
    return error.fillna(1.0).where(inside).max(("total", "magnitude"))


def best_below(error: xr.DataArray, kappa: float) -> xr.DataArray:
    """The smallest error where Σλ is positive, as (a) asks, and κ_a' Σλ a margin below κ_a."""
    product = reach(error, kappa)
    return error.where((product > 0) & (product <= 1 / MARGIN)).min(("total", "magnitude"))


def edge(error: xr.DataArray, kappa: float) -> xr.DataArray:
    """The smallest κ_a' Σλ / κ_a of the map from which on no error is above 0.05; NaN where there is none."""
    product = reach(error, kappa)
    last = product.where(~(error < SMALL)).max(("total", "magnitude"))
    return product.where(product > last).min(("total", "magnitude"))


def adversary_statements(s: Settings) -> list[Statement]:
    """A line in the map, and what lies beyond condition (a)."""
    error, kappa = measured("outlier-map", "error"), s.outlier_magnitude
    chosen = measured("adaptive", "error")
    mamba, linear = (chosen.sel(kind=kind) for kind in ("mamba", "linear"))
    few = mamba.sel(fraction=list(FEW)) - linear.sel(fraction=list(FEW))
    at = apply(edge, error, kappa)
    return [
        Statement(
            "outlier-phase", "Beyond: a phase diagram of size and sum of outliers",
            "The line κ_a' Σλ = κ_a parts what Mamba withstands from what it does not: a factor of 2 above it errors "
            "are small, a factor of 2 below it they are large, for any κ_a' and any Σλ; where Σλ <= 0, against (a), "
            "no size helps.",
            (Part("largest error where κ_a' Σλ >= 2 κ_a", apply(worst_beyond, error, kappa), suffices(SMALL), UNIT,
                  found=at, found_as="small from κ_a' Σλ = {:.2f} κ_a on"),
             Part("smallest error where 0 < κ_a' Σλ <= κ_a / 2", apply(best_below, error, kappa), above(LARGE), UNIT),
             Part("smallest error where Σλ <= 0",
                  error.sel(total=slice(None, 0.0)).min(("total", "magnitude"), skipna=False), above(0.5), UNIT)),
            figure="outlier-map", beyond=True,
            ours=(f"α = {MANY:g} at l_ts = {inside_length(s)}, which (c) allows; labels flipped, exact numbers, the 18 "
                  "tasks",
                  f"κ_a' from {SIZES[0]:g} to {SIZES[-1]:g}, Σλ from {TOTALS[0]:g} to {TOTALS[-1]:g}",
                  f"'small': below {SMALL:g}; 'large': above {LARGE:g}; where Σλ <= 0: more wrong than right"),
            afterwards="`outlier-sum` and `outlier-dial` had been seen: errors of 0.003 at κ_a' Σλ = κ_a and 0.3 to "
            "0.4 at half of that for Σλ from 0.3 to 1.7, and 0.94 with the negative of Appendix B's mixtures. Nothing "
            "at smaller Σλ, at 0 or at κ_a' > 14 had been seen when the rule was written.",
        ),
        Statement(
            "adaptive-outliers", "Beyond: outliers that violate Theorem 2 (a), chosen against the model",
            "Where (a) is violated, the gate is turned against Mamba: with the unit mixture that is worst for each "
            "model, α = 0.3 is enough for more wrong answers than right ones, and at any α up to 0.4 Mamba errs more "
            "than the linear Transformer, which has no gate.",
            (Part(f"error at α = {ALLOWED:g}, which (c) allows", mamba.sel(fraction=ALLOWED),
                  above(0.5), UNIT),
             Part("error minus that of the linear Transformer, smallest over α <= 0.4",
                  few.min("fraction", skipna=False), larger(0.02), SIGNED),
             Part(f"error at α = {MANY:g}", mamba.sel(fraction=MANY), above(0.5), UNIT,
                  found=mamba.max("fraction", skipna=False), found_as="up to {:.2f}")),
            sized(s, [Reading("", "the worst of 14 mixtures, each model its own")]),
            figure="adaptive", beyond=True,
            ours=(f"l_ts = {s.test_length}, labels flipped, exact numbers, the 18 tasks",
                  "tried: equal coefficients with all signs, each outlier of training with both signs, on prompts of "
                  "their own",
                  "the smallest difference that counts: 0.02"),
            afterwards="That Mamba errs on 94 % with the negative of Appendix B's mixtures at α = 0.8 had been seen; "
            "nothing at smaller α. The first rule asked for an error above ε = 0.13 at α = 0.3. Its run (4 seeds) had "
            "0.61, but untrained models pass as well (0.33 to 0.37: whatever stands last is remembered best). "
            "Since then the rule asks for more wrong answers than right ones.",
        ),
    ]  # fmt: skip


experiments = {"outlier-map": Experiment(outlier_map, cost=6), "adaptive": Experiment(adaptive, cost=12)}

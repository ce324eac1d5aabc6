"""The claims of feature-selection and their rules, written before any of them was run. Hidden constants are taken as 1."""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.claims import Check, Claim, Results, above, below, within
from iclab.papers.feature_selection.settings import UNSTATED
from iclab.statistics import trend

M = 30  # M1 + M2
PAPER = "feature-selection"
UNIT = (0.0, 1.0)
ZERO = 0.001  # "zero error", measured on 10,000 prompts per seed; prompts with no matching context leave about 0.00004
SIDES = ("query", "key")


def _data(results: Results, name: str) -> xr.DataArray:
    return results["training"][name].sel(setting="standard")


def _last(results: Results, name: str) -> xr.DataArray:
    return _data(results, name).isel(step=-1)


def _error(results: Results, domain: str) -> xr.DataArray:
    return results["generalisation"]["error"].sel(setting="standard", domain=domain)


def _ratio(results: Results, name: str) -> xr.DataArray:
    return _last(results, name) / _data(results, name).isel(step=0)


CLAIMS = (
    Claim(
        f"{PAPER}/thm1", "Theorem 1",
        "After training the error on the M1 training tasks is zero.",
        (Check("0-1 error on the training tasks", below(ZERO), lambda r: _error(r, "in"), UNIT),),
        ("generalisation",), "generalisation", (*UNSTATED, "'zero': below 0.001"),
    ),
    Claim(
        f"{PAPER}/prop1", "Proposition 1",
        "‖W_Q μ‖ and ‖W_K μ‖ reach √log M, ‖W_Q ν‖ and ‖W_K ν‖ stay O(1), and the attention mass on N* approaches 1.",
        (
            *(Check(f"‖W μ‖, {side}, mean over patterns (7)", above(float(np.sqrt(np.log(M)))),
                    lambda r, s=side: _last(r, f"{s}_relevant")) for side in SIDES),
            *(Check(f"‖W ν‖, {side}, mean over patterns (8)", below(1.0),
                    lambda r, s=side: _last(r, f"{s}_irrelevant")) for side in SIDES),
            Check("attention mass on N* (9), C = 1", above(1 - 1 / M), lambda r: _last(r, "attention_same"), UNIT),
        ),
        ("training",), "fig1a", UNSTATED,
    ),
    Claim(
        f"{PAPER}/fig1a", "Figure 1(a)",
        "The response to relevant patterns grows along training while the response to irrelevant ones stays where it began.",
        (
            *(Check(f"rank correlation of ‖W μ‖ with time, {side}", above(0.5),
                    lambda r, s=side: trend(_data(r, f"{s}_relevant"), "step"), (-1, 1)) for side in SIDES),
            *(Check(f"‖W μ‖ last / first, {side}", above(2), lambda r, s=side: _ratio(r, f"{s}_relevant")) for side in SIDES),
            *(Check(f"‖W ν‖ last / first, {side}", within(0.75, 1.25), lambda r, s=side: _ratio(r, f"{s}_irrelevant")) for side in SIDES),
        ),
        ("training",), "fig1a", (*UNSTATED, "'stays': within 25 % of its first value; 'grows': at least doubles"),
    ),
    Claim(
        f"{PAPER}/prop2", "Proposition 2",
        "For a constant fraction of neurons the label part decides the pre-activation (10); the others stay at the scale ξ.",
        (
            Check("fraction of neurons whose label part exceeds their feature part by ξ", above(0.1), lambda r: _last(r, "label_wins"), UNIT),
            Check("mean |pre-activation| of the other neurons, in units of ξ", below(1), lambda r: _last(r, "rest_preactivation")),
        ),
        ("training",), "fig1b", (*UNSTATED, "'constant fraction': above 0.1; (10) by a margin of ξ; O(ξ) with constant 1"),
    ),
    Claim(
        f"{PAPER}/fig1b", "Figure 1(b)",
        "The label part's contribution to the pre-activation grows beyond the feature part's.",
        (
            Check("label part / feature part at the end, mean over the winning neurons", above(1),
                  lambda r: _last(r, "label_contribution") / np.abs(_last(r, "feature_contribution"))),
            Check("rank correlation of the label part with time", above(0.5), lambda r: trend(_data(r, "label_contribution"), "step"), (-1, 1)),
        ),
        ("training",), "fig1b", (*UNSTATED, "averaged over neurons and prompts for which (10) holds by a margin of ξ"),
    ),
    Claim(
        f"{PAPER}/thm2", "Theorem 2",
        "Out of domain, on non-negative combinations of the relevant patterns and new irrelevant ones, the error is zero.",
        (Check("0-1 error out of domain", below(ZERO), lambda r: _error(r, "out"), UNIT),),
        ("generalisation",), "generalisation",
        (*UNSTATED, "μ' = (μ1+μ2)/√2, 0.8μ3+0.6μ4, μ5; ν' a random rotation of the ν's", "'zero': below 0.001"),
    ),
    Claim(
        f"{PAPER}/cor1", "Corollary 1",
        "Out of domain, too, the attention mass on N* is at least 1 - Θ(1/M).",
        (Check("attention mass on N*, out of domain", above(1 - 1 / M), lambda r: _last(r, "out_attention_same"), UNIT),),
        ("training",), "fig1a", UNSTATED,
    ),
)  # fmt: skip

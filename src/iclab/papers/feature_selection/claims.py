"""The claims of feature-selection and their rules. Hidden constants are taken as 1.

Rules were written before the first run; what changed later is in `AFTERWARDS` and on the page.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.claims import Check, Claim, Results, above, below, note, within
from iclab.papers.feature_selection.settings import Settings, unstated
from iclab.statistics import trend

PAPER = "feature-selection"
UNIT = (0.0, 1.0)
ZERO = 0.001  # "zero error", measured on 10,000 prompts per seed; prompts with no matching context leave about 0.00004
SIDES = ("query", "key")
AFTERWARDS = {
    "prop2-own": "Row added after the first run, in which the printed reading differed: a second reading of 'the contribution'.",
    "fig1b": "The first run read (10) as printed and divided the two contributions; the ratio has a denominator near 0 and was "
    "inconclusive. Now their difference, and the reading of the caption.",
    "fig1b-printed": "Row added after the first run: the printed reading of what fig1b judged then, by the difference.",
}


def _data(results: Results, name: str) -> xr.DataArray:
    return results["training"][name].sel(setting="standard")


def _last(results: Results, name: str) -> xr.DataArray:
    return _data(results, name).isel(step=-1)


def _error(results: Results, domain: str) -> xr.DataArray:
    return results["generalisation"]["error"].sel(setting="standard", domain=domain)


def patterns_total(s: Settings) -> int:
    """M = M1 + M2."""
    return s.relevant_patterns + s.irrelevant_patterns


def _lead(results: Results, reading: str) -> xr.DataArray:
    """By how much the label part's contribution exceeds the feature part's, in absolute value, at the end."""
    return _last(results, f"{reading}_label") - np.abs(_last(results, f"{reading}_feature"))


def _ratio(results: Results, name: str) -> xr.DataArray:
    return _last(results, name) / _data(results, name).isel(step=0)


def claims(s: Settings) -> tuple[Claim, ...]:
    """All claims, with the rules that follow from these settings."""
    m, open_settings = patterns_total(s), unstated(s)
    rows = (
        Claim(
            f"{PAPER}/thm1", "Theorem 1",
            "After training the error on the M1 training tasks is zero.",
            (Check("0-1 error on the training tasks", below(ZERO), lambda r: _error(r, "in"), UNIT),),
            ("generalisation",), "generalisation", (*open_settings, "'zero': below 0.001"),
        ),
        Claim(
            f"{PAPER}/prop1", "Proposition 1",
            "‖W_Q μ‖ and ‖W_K μ‖ reach √log M, ‖W_Q ν‖ and ‖W_K ν‖ stay O(1), and the attention mass on N* approaches 1.",
            (
                *(Check(f"‖W μ‖, {side}, mean over patterns (7)", above(float(np.sqrt(np.log(m)))),
                        lambda r, w=side: _last(r, f"{w}_relevant")) for side in SIDES),
                *(Check(f"‖W ν‖, {side}, mean over patterns (8)", below(1.0),
                        lambda r, w=side: _last(r, f"{w}_irrelevant")) for side in SIDES),
                Check("attention mass on N* (9), C = 1", above(1 - 1 / m), lambda r: _last(r, "attention_same"), UNIT),
            ),
            ("training",), "fig1a", open_settings,
        ),
        Claim(
            f"{PAPER}/fig1a", "Figure 1(a)",
            "The response to relevant patterns grows along training while the response to irrelevant ones stays where it began.",
            (
                *(Check(f"rank correlation of ‖W μ‖ with time, {side}", above(0.5),
                        lambda r, w=side: trend(_data(r, f"{w}_relevant"), "step"), (-1, 1)) for side in SIDES),
                *(Check(f"‖W μ‖ last / first, {side}", above(2), lambda r, w=side: _ratio(r, f"{w}_relevant")) for side in SIDES),
                *(Check(f"‖W ν‖ last / first, {side}", within(0.75, 1.25), lambda r, w=side: _ratio(r, f"{w}_irrelevant")) for side in SIDES),
            ),
            ("training",), "fig1a", (*open_settings, "'stays': within 25 % of its first value; 'grows': at least doubles"),
        ),
        *(
            Claim(
                f"{PAPER}/prop2{suffix}", f"Proposition 2, {text}",
                "For a constant fraction of neurons the label part decides the pre-activation (10); the others stay at the scale ξ.",
                (
                    Check("fraction of neurons whose label part exceeds their feature part by ξ", above(0.1),
                          lambda r, k=reading: _last(r, f"{k}_wins"), UNIT),
                    Check("mean |pre-activation| of the other neurons, in units of ξ", below(1), lambda r, k=reading: _last(r, f"{k}_rest")),
                ),
                ("training",), "fig1b",
                (*open_settings, "'constant fraction': above 0.1; (10) by a margin of ξ; O(ξ) with constant 1", f"reading: {text}"),
            )
            for suffix, reading, text in (
                ("", "printed", "as printed: coordinates of W_O and of the value, all neurons"),
                ("-own", "own", "embeddings through W_O W_V, neurons that vote for the prompt's label"),
            )
        ),
        *(
            Claim(
                f"{PAPER}/fig1b{suffix}", f"Figure 1(b), {text}",
                "The label part's contribution to the pre-activation grows beyond the feature part's.",
                (
                    Check("label part minus |feature part| at the end, mean over the winning neurons", above(0), lambda r, k=reading: _lead(r, k)),
                    Check("rank correlation of the label part with time", above(0.5),
                          lambda r, k=reading: trend(_data(r, f"{k}_label"), "step"), (-1, 1)),
                ),
                ("training",), "fig1b", (*open_settings, "averaged over neurons and prompts for which (10) holds by a margin of ξ", f"reading: {text}"),
            )
            for suffix, reading, text in (
                ("", "own", "as its caption says: contributions of the embeddings"),
                ("-printed", "printed", "coordinates of W_O and of the value, as in (10)"),
            )
        ),
        Claim(
            f"{PAPER}/thm2", "Theorem 2",
            "Out of domain, on non-negative combinations of the relevant patterns and new irrelevant ones, the error is zero.",
            (Check("0-1 error out of domain", below(ZERO), lambda r: _error(r, "out"), UNIT),),
            ("generalisation",), "generalisation",
            (*open_settings, "μ' = (μ1+μ2)/√2, 0.8μ3+0.6μ4, μ5; ν' a random rotation of the ν's", "'zero': below 0.001"),
        ),
        Claim(
            f"{PAPER}/cor1", "Corollary 1",
            "Out of domain, too, the attention mass on N* is at least 1 - Θ(1/M).",
            (Check("attention mass on N*, out of domain", above(1 - 1 / m), lambda r: _last(r, "out_attention_same"), UNIT),),
            ("training",), "fig1a", open_settings,
        ),
    )  # fmt: skip
    return note(rows, AFTERWARDS)

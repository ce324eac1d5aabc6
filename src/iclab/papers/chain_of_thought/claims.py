"""The claims of chain-of-thought and their rules.

Rules were written before any claim was judged, but after a scouting run with 4 seeds had shown the training loss and the errors of CoT
and ICL at four lengths. What changed later is in `AFTERWARDS` and on the page.

Hidden constants are 1 unless a check says otherwise; ε is √(log M / B), the smallest for which Theorem 1's B >= ε⁻² log M holds.
"Zero error" is judged below 0.01. The required number of examples is the smallest l_ts from which on the error stays below 0.1.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.claims import Check, Claim, Results, above, below, note
from iclab.papers.chain_of_thought.settings import Settings, symbols, unstated
from iclab.statistics import first_below, required, trend

PAPER = "chain-of-thought"
UNIT = (0.0, 1.0)
TAU = (-1.0, 1.0)
REQUIRED = 0.1
SCOUTED = "A scouting run of 4 seeds had shown loss and errors at four lengths before the rule was written."
AFTERWARDS = {
    "thm1": SCOUTED,
    "thm2": SCOUTED,
    "thm2-equal-mixture": "The first run compared the attention averaged over all ten test patterns (it differed by 0.027); the "
    "checks now look at the queries whose input is that mixture.",
    "thm3b": "The error below 0.01 was first read off Fig. 3C's 500 prompts; now on 10,000. No verdict changed.",
    "fig3c": "The grid of ρ_o was moved to values that K = 3 and M' = 10 allow, before any of it had run.",
    "fig4": "The longest prompt was cut from 320 to 160 examples after the first run, to save time.",
    "thm3a": "The longest prompt was cut from 320 to 160 examples after the first run, to save time.",
}
LETTERS = {"A": "α'", "B": "τ", "C": "ρ"}
OUTPUT_LETTERS = {"A": "α'", "B": "τ_o", "C": "ρ_o"}


def epsilon(s: Settings) -> float:
    """ε of Theorem 1."""
    return symbols(s).error


def _training(results: Results, name: str) -> xr.DataArray:
    return results["training"][name].sel(setting="standard")


def _required(results: Results, experiment: str, panel: str) -> xr.DataArray:
    """Rank correlation of the required number of examples with the swept value."""
    error = results[experiment][f"error_{panel}"].sel(setting="standard")
    return required(error, "length", REQUIRED, f"value_{panel}")


def _at_longest(results: Results, experiment: str, panel: str) -> xr.DataArray:
    """The error at the longest prompt and the largest swept value."""
    return results[experiment][f"error_{panel}"].sel(setting="standard").isel({"length": -1, f"value_{panel}": -1})


def _chain(results: Results, kind: str, name: str) -> xr.DataArray:
    return results["generalisation"][name].sel(setting="standard", kind=kind)


def _mixture(results: Results, name: str) -> xr.DataArray:
    return results["mixtures"][name].sel(setting="standard", kind="equal mixture")


def _compared(results: Results, name: str, condition: str) -> xr.DataArray:
    return results["comparison"][name].sel(setting="standard", condition=condition)


def _stage_gap(results: Results) -> xr.DataArray:
    """Steps between the end of stage 1 (mass on other steps below 0.1 for good) and of stage 2 (mass on target above 0.9)."""
    other = _training(results, "same_pattern_other_step") + _training(results, "other_pattern_other_step")
    target = _training(results, "same_pattern_same_step")
    never = 2.0 * float(target["step"].max())  # a stage that does not end is later than any that does
    ends = [first_below(mass, "step", 0.1) for mass in (1.0 - target, other)]
    second, first = (end.where(np.isfinite(end) | end.isnull(), never) for end in ends)
    return second - first


def claims(s: Settings) -> tuple[Claim, ...]:
    """All claims, with the rules that follow from these settings."""
    eps, open_settings = epsilon(s), unstated(s)
    rows = [
        Claim(
            f"{PAPER}/thm1",
            "Theorem 1",
            "Training on prompts with solved steps drives the squared loss on such prompts to O(ε).",
            (Check("squared loss on fresh training prompts", below(eps), lambda r: _training(r, "loss"), (0, np.inf)),),
            ("training",),
            "fig5",
            open_settings,
        ),
        Claim(
            f"{PAPER}/thm2",
            "Theorem 2, generic test patterns",
            "With enough noisy and partly wrong examples on unseen patterns, every step of CoT is right.",
            (
                Check(f"CoT error (7) at l_ts = {s.longest_test}", below(0.01), lambda r: _chain(r, "generic", "error"), UNIT),
                Check(
                    f"error of the final step at l_ts = {s.longest_test}",
                    below(0.01),
                    lambda r: _chain(r, "generic", "final_error"),
                    UNIT,
                ),
            ),
            ("generalisation",),
            "mixtures",
            open_settings,
            "generic mixtures",
        ),
        Claim(
            f"{PAPER}/thm2-equal-mixture",
            "Theorem 2, the equal mixture of all training patterns among the test patterns",
            "Span membership (22) suffices for the test patterns: CoT is right on this one too.",
            (
                Check(
                    f"CoT error (7) at l_ts = {s.longest_test}",
                    below(0.01),
                    lambda r: _chain(r, "equal mixture", "error"),
                    UNIT,
                ),
                Check(
                    "error of the next step where its input is the equal mixture",
                    below(0.01),
                    lambda r: _mixture(r, "error"),
                    UNIT,
                ),
                Check(
                    "attention mass (10) where the input is the equal mixture",
                    above(1 - eps),
                    lambda r: _mixture(r, "mass"),
                    UNIT,
                ),
            ),
            ("generalisation", "mixtures"),
            "mixtures",
            open_settings,
            "one equal mixture",
        ),
    ]
    for panel, letter in LETTERS.items():
        rows.append(
            Claim(
                f"{PAPER}/fig2{panel.lower()}",
                f"Figure 2({panel})",
                f"CoT needs more examples when {letter} is smaller.",
                (
                    Check(
                        f"rank correlation of the required number of examples with {letter}",
                        below(0),
                        lambda r, p=panel: _required(r, "chains", p),
                        TAU,
                    ),
                    Check(
                        f"CoT error at the longest prompt and the largest {letter}",
                        below(0.05),
                        lambda r, p=panel: _at_longest(r, "chains", p),
                        UNIT,
                    ),
                ),
                ("chains",),
                "fig2",
                (
                    *open_settings,
                    "required: the error (7) stays below 0.1",
                    "grids of α', τ, ρ within what is feasible for K = 3, M' = 10",
                ),
            )
        )
    rows += [
        Claim(
            f"{PAPER}/thm3a",
            "Theorem 3(a)",
            "Where Condition 1 fails, the ICL error is at least Ω(1), however many examples there are.",
            (
                Check(
                    "smallest ICL error over all lengths, Condition 1 failing",
                    above(0.5),
                    lambda r: _compared(r, "icl", "fails").min("length"),
                    UNIT,
                ),
            ),
            ("comparison",),
            "fig4",
            (*open_settings, "Ω(1): above 0.5", "τ_o = 0.4, ρ_o = 0.1 as in Fig. 4"),
        ),
        Claim(
            f"{PAPER}/thm3b",
            "Theorem 3(b)",
            "Where Condition 1 holds, the ICL error goes to zero with the number of examples.",
            (
                Check(
                    "rank correlation of the ICL error with the length (Fig. 4)",
                    below(0),
                    lambda r: trend(_compared(r, "icl", "holds"), "length"),
                    TAU,
                ),
                Check(
                    f"ICL error at l_ts = {s.longest_test}, τ_o = 0.5, the largest ρ_o of Fig. 3(C)",
                    below(0.01),
                    lambda r: r["generalisation"]["icl_error"].sel(setting="standard"),
                    UNIT,
                ),
            ),
            ("comparison", "generalisation"),
            "fig3",
            open_settings,
        ),
    ]
    for panel, letter in OUTPUT_LETTERS.items():
        rows.append(
            Claim(
                f"{PAPER}/fig3{panel.lower()}",
                f"Figure 3({panel})",
                f"ICL needs more examples when {letter} is smaller.",
                (
                    Check(
                        f"rank correlation of the required number of examples with {letter}",
                        below(0),
                        lambda r, p=panel: _required(r, "direct", p),
                        TAU,
                    ),
                    Check(
                        f"ICL error at the longest prompt and the largest {letter}",
                        below(0.05),
                        lambda r, p=panel: _at_longest(r, "direct", p),
                        UNIT,
                    ),
                ),
                ("direct",),
                "fig3",
                (*open_settings, "required: the error stays below 0.1", "(τ_o, ρ_o) = (0.5, 0.5) where not varied"),
            )
        )
    rows += [
        Claim(
            f"{PAPER}/fig4",
            "Figure 4",
            "With Condition 1 the ICL error decreases with the number of examples; without it it stays large, while CoT becomes right in both cases.",
            (
                Check(
                    "ICL, Condition 1 holding: rank correlation of error with length",
                    below(0),
                    lambda r: trend(_compared(r, "icl", "holds"), "length"),
                    TAU,
                ),
                Check(
                    "ICL, Condition 1 failing: error at the longest prompt",
                    above(0.5),
                    lambda r: _compared(r, "icl", "fails").isel(length=-1),
                    UNIT,
                ),
                Check(
                    "CoT, Condition 1 holding: error at the longest prompt",
                    below(0.05),
                    lambda r: _compared(r, "cot", "holds").isel(length=-1),
                    UNIT,
                ),
                Check(
                    "CoT, Condition 1 failing: error at the longest prompt",
                    below(0.05),
                    lambda r: _compared(r, "cot", "fails").isel(length=-1),
                    UNIT,
                ),
            ),
            ("comparison",),
            "fig4",
            (*open_settings, "'large': above 0.5"),
        ),
        Claim(
            f"{PAPER}/prop1",
            "Proposition 1",
            "The trained model puts at least 1 - ε of its attention on columns of the same step with the same input pattern as the query.",
            (
                Check(
                    "attention mass at the end, noisy test prompts",
                    above(1 - eps),
                    lambda r: _training(r, "same_pattern_same_step").isel(step=-1),
                    UNIT,
                ),
            ),
            ("training",),
            "fig5",
            open_settings,
        ),
        Claim(
            f"{PAPER}/fig5",
            "Figure 5",
            "The mass on same pattern and step converges to around 1, in two stages: first other steps die out, then other patterns.",
            (
                Check(
                    "attention mass on same pattern and step at the end",
                    above(0.9),
                    lambda r: _training(r, "same_pattern_same_step").isel(step=-1),
                    UNIT,
                ),
                Check("training steps between the end of stage 1 and of stage 2", above(0), _stage_gap),
            ),
            ("training",),
            "fig5",
            (*open_settings, "'around 1': above 0.9; a stage ends where its mass passes 0.1 or 0.9 for good"),
        ),
    ]
    return note(rows, AFTERWARDS)

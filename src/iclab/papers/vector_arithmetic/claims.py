"""The claims of vector-arithmetic and their rules.

Rules were written before any claim was judged, but after a scouting run with 2 seeds had shown the test errors and aᵀW_V a, bᵀW_V b
along all three trainings (`SCOUTED`).

Stopping time matters here: the propositions say "there exists t", the figures show whole trainings. So errors are judged where
a validation set says to stop where the paper says that a time exists, and at the end where it says that something persists.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.claims import Check, Claim, Results, above, below, note, within
from iclab.papers.vector_arithmetic.experiments import PAIR_COUNTS, TESTS
from iclab.papers.vector_arithmetic.settings import Settings, unstated
from iclab.statistics import log_slope, trend

PAPER = "vector-arithmetic"
UNIT = (0.0, 1.0)
TAU = (-1.0, 1.0)
EPSILON = 0.01
THETA = 0.1  # Θ(1) and o(1) for cosines
SCOUTED = "A scouting run of 2 seeds had shown errors and projections along training before the rule was written."
RETESTED = (
    f"{SCOUTED} The threshold is as first written; the error was first read off records of 400 prompts (the lowest of them was about "
    "0.004, the last 0.065) and is now tested on 10,000 fresh ones."
)
STOPPED = (
    f"{SCOUTED} The end of training decides: with 1500 epochs, tried once to save time, the error had been seen at 0.03 instead of "
    "0.49; 2000 epochs is the number first chosen."
)
AFTERWARDS = (
    {start: SCOUTED for start in ("prop3.3-icl", "fig2", "fig3-printed", "lem4.3-low")}
    | {start: RETESTED for start in ("prop3.3-qa", "fig3")}
    | {start: STOPPED for start in ("prop3.3-qa-icl", "fig4")}
    | {"prop3.4-cotasks": "Row added after the other rows of the proposition had been seen; its rule is theirs."}
)


def _history(results: Results, training: str) -> xr.Dataset:
    return results[training].isel(setting=0)


def _last(results: Results, training: str, name: str) -> xr.DataArray:
    return _history(results, training)[name].isel(step=-1)


def _lowest(results: Results, training: str, name: str) -> xr.DataArray:
    return _history(results, training)[name].min("step", skipna=False)


def _tested(results: Results, kind: str, stage: str) -> xr.DataArray:
    return results["tests"]["error"].isel(setting=0).sel(kind=kind, stage=stage)


def _growth_exponent(results: Results, training: str, early: bool) -> xr.DataArray:
    """Slope of log(aᵀW_V a) against log t: its growth from the start over the first 50 epochs, or from a tenth of the run on."""
    data = _history(results, training)["value_a"]
    last = float(data["step"][-1])
    grown = data - data.isel(step=0) if early else data
    window = (grown["step"] > 0) & (grown["step"] <= 50) if early else grown["step"] >= max(1.0, last / 10)
    part = grown.isel(step=np.flatnonzero(window.values))
    return log_slope(part, "step")


def _theorems(s: Settings) -> list[Claim]:
    left = unstated(s)
    rows = []
    for training, name, figure in (("icl", "P_T", "fig2"), ("qa-icl", "P_QA^T", "fig4")):
        rows.append(
            Claim(
                f"{PAPER}/thm3.2-{training}",
                f"Theorem 3.2, first part, training on {name}",
                "The retrieved vector h_0 is a hybrid: its cosines with the task's a and with its b are both Θ(1).",
                (
                    Check(
                        "cos(h_0, a) on ICL prompts, at the end",
                        above(THETA),
                        lambda r, t=training: _last(r, t, "icl_cos_task"),
                        TAU,
                    ),
                    Check(
                        "mean |cos(h_0, b)| on ICL prompts, at the end",
                        above(THETA),
                        lambda r, t=training: _last(r, t, "icl_cos_low"),
                        UNIT,
                    ),
                ),
                (training,),
                figure,
                left,
                "",
                "stopping",
            )
        )
        rows.append(
            Claim(
                f"{PAPER}/prop3.3-{training}",
                f"Proposition 3.3, training on {name}",
                "The test error stays constant.",
                tuple(
                    Check(
                        f"0-1 error on {test} prompts, at the end",
                        above(0.05),
                        lambda r, t=training, k=test: _last(r, t, f"{k}_error"),
                        UNIT,
                    )
                    for test in TESTS
                ),
                (training,),
                figure,
                (*left, "'Θ(1)': above 0.05"),
                "",
                "stopping",
            )
        )
        rows.append(
            Claim(
                f"{PAPER}/{figure}",
                f"Figure {figure[3:]}",
                "W_V overfits to low-level features (d) and the test error remains at about 0.2 (b).",
                (
                    Check(
                        "|bᵀW_V b| (largest) / aᵀW_V a, at the end",
                        above(THETA),
                        lambda r, t=training: _last(r, t, "value_b") / _last(r, t, "value_a"),
                    ),
                    Check(
                        "0-1 error on ICL prompts, at the end",
                        within(0.1, 0.3),
                        lambda r, t=training: _last(r, t, "icl_error"),
                        UNIT,
                    ),
                ),
                (training,),
                figure,
                (*left, "'constant (0.2)': between 0.1 and 0.3"),
            )
        )
    rows += [
        Claim(
            f"{PAPER}/thm3.2-qa", "Theorem 3.2, second part, training on P_QA",
            "The model retrieves the task vector: h_0 points along the task's a and along nothing else.",
            (
                Check("cos(h_0, a) on ICL prompts, at the end", above(THETA), lambda r: _last(r, "qa", "icl_cos_task"), TAU),
                Check("mean |cos(h_0, b)|", below(THETA), lambda r: _last(r, "qa", "icl_cos_low"), UNIT),
                Check("largest |cos(h_0, ν)|", below(THETA), lambda r: _last(r, "qa", "icl_cos_common"), UNIT),
                Check("largest |cos(h_0, other a)|", below(THETA), lambda r: _last(r, "qa", "icl_cos_other"), UNIT),
            ),
            ("qa",), "fig3", left,
        ),
        Claim(
            f"{PAPER}/prop3.3-qa", "Proposition 3.3, training on P_QA",
            "There is a time at which the test error is at most ε on ICL and QA-ICL prompts.",
            tuple(Check(f"0-1 error on {test} prompts, stopped where validation is best", below(EPSILON), lambda r, k=test: _tested(r, k, "stopped"), UNIT) for test in TESTS),
            ("qa", "tests"), "fig3",
            (*left, "ε = 0.01; the time is the record with the lowest mean error on 800 other prompts, the test is on 10,000 fresh ones"),
            "", "stopping",
        ),
        Claim(
            f"{PAPER}/fig3", "Figure 3",
            "Trained on QA, W_V does not overfit to low-level features (d) and the test errors converge to zero (b).",
            (
                Check("|bᵀW_V b| (largest) / aᵀW_V a, at the end", below(THETA), lambda r: _last(r, "qa", "value_b") / _last(r, "qa", "value_a")),
                Check("0-1 error on ICL prompts, at the end", below(0.05), lambda r: _tested(r, "icl", "end"), UNIT),
                Check("0-1 error on QA-ICL prompts, at the end", below(0.05), lambda r: _tested(r, "qa-icl", "end"), UNIT),
            ),
            ("qa", "tests"), "fig3", left,
        ),
        Claim(
            f"{PAPER}/fig3-printed", "Figure 3 with the printed step sizes η = 5, q_V = 1e-5",
            "The QA-trained model converges to zero error within the printed number of epochs.",
            (Check("lowest 0-1 error on ICL prompts over training", below(0.05), lambda r: _lowest(r, "printed", "icl_error"), UNIT),),
            ("printed",), "printed", left, "", "stopping",
        ),
    ]  # fmt: skip
    return rows


def _uses(s: Settings) -> list[Claim]:
    left = unstated(s)
    rows = [
        Claim(
            f"{PAPER}/prop3.3-alone",
            "Proposition 3.3, first bonus",
            "The QA-trained model retrieves the task vector from demonstrations alone, without a query word.",
            (
                Check("cos(h_0, a) without a query", above(THETA), lambda r: r["uses"]["alone_cos_task"].isel(setting=0), TAU),
                Check(
                    "mean |cos(h_0, b)| without a query",
                    below(THETA),
                    lambda r: r["uses"]["alone_cos_low"].isel(setting=0),
                    UNIT,
                ),
                Check(
                    "largest |cos(h_0, other a)| without a query",
                    below(THETA),
                    lambda r: r["uses"]["alone_cos_other"].isel(setting=0),
                    UNIT,
                ),
            ),
            ("uses",),
            "uses",
            (*left, "the last label takes the query's place"),
        ),
        Claim(
            f"{PAPER}/prop3.3-transfer",
            "Proposition 3.3, second bonus",
            "The task vector of one prompt, added to other words of the same co-task, gives their labels.",
            (Check("0-1 error on other words", below(EPSILON), lambda r: r["uses"]["transfer_error"].isel(setting=0), UNIT),),
            ("uses",),
            "uses",
            left,
        ),
        Claim(
            f"{PAPER}/prop3.4-static",
            "Question 2 of the introduction (static word vectors)",
            "Retrieving the task vector by attention is better than a static offset of word vectors.",
            (
                Check(
                    "static offset's error minus the model's, ICL prompts",
                    above(0),
                    lambda r: (r["uses"]["static_error"] - r["uses"]["model_error"]).isel(setting=0),
                ),
            ),
            ("uses",),
            "uses",
            (*left, "baseline: mean label minus mean word of the demonstrations, added to the query"),
        ),
        Claim(
            f"{PAPER}/eq4-complexity",
            "Appendix C, complexity 1/max p",
            "QA prompts are simpler for the model than ICL prompts: their complexity is lower.",
            (
                Check(
                    "mean 1/max p, ICL minus QA prompts",
                    above(0),
                    lambda r: (r["uses"]["complexity"].sel(kind="icl") - r["uses"]["complexity"].sel(kind="qa")).isel(
                        setting=0
                    ),
                ),
            ),
            ("uses",),
            "uses",
            left,
        ),
    ]
    for shift, words in (
        ("conic", "a conic combination of the a's"),
        ("low", "unseen low-level concepts b*"),
        ("common", "unseen common tokens"),
        ("all", "all three shifts at once"),
    ):
        rows.append(
            Claim(
                f"{PAPER}/prop3.4-{shift}",
                f"Proposition 3.4, dictionary shift: {words}",
                "The QA-trained model generalises to this unseen dictionary.",
                (
                    Check(
                        "0-1 error on ICL prompts",
                        below(0.05),
                        lambda r, k=shift: r["shifts"]["error"].sel(shift=k).isel(setting=0),
                        UNIT,
                    ),
                ),
                ("shifts",),
                "shifts",
                (*left, "'generalises': error below 0.05"),
                words,
            )
        )
    rows += [
        Claim(
            f"{PAPER}/prop3.4-length", "Proposition 3.4, distribution shift: prompt length",
            "The QA-trained model accommodates other prompt lengths.",
            (Check(f"largest 0-1 error over J in {PAIR_COUNTS}", below(0.05), lambda r: r["prompts"]["error"].isel(setting=0).max("pairs", skipna=False), UNIT),),
            ("prompts",), "shifts", left,
        ),
        Claim(
            f"{PAPER}/prop3.4-cotasks", "Proposition 3.4, distribution shift: several co-tasks in one prompt",
            "The QA-trained model answers the query though the demonstrations share two co-tasks between them.",
            (Check("0-1 error on ICL prompts with two co-tasks", below(0.05), lambda r: r["prompts"]["cotasks_error"].isel(setting=0).sel(cotasks=2), UNIT),),
            ("prompts",), "shifts",
            (*left, "the query's word belongs to one of the two; each demonstration takes one of them at random"),
        ),
        Claim(
            f"{PAPER}/eq8", "Equation (8)",
            "With two co-tasks in a prompt h_0 is a positive mixture of their a's.",
            (
                Check("smaller of the two projections of h_0 on the a's", above(THETA), lambda r: r["prompts"]["weight"].isel(setting=0).sel(cotasks=2).isel(concept=slice(0, 2)).min("concept", skipna=False), TAU),
                Check("share of ‖h_0‖² outside the a's", below(0.5), lambda r: r["prompts"]["rest"].isel(setting=0).sel(cotasks=2), UNIT),
            ),
            ("prompts",), "shifts", (*left, "'approximately': at least half of ‖h_0‖² lies in the span of the a's"),
        ),
    ]  # fmt: skip
    return rows


def _lemmas(s: Settings) -> list[Claim]:
    left = unstated(s)
    return [
        Claim(
            f"{PAPER}/lem4.1", "Lemma 4.1, phase 1",
            "aᵀW_V a grows linearly at first.",
            (Check("growth exponent over the first 50 epochs", within(0.8, 1.2), lambda r: _growth_exponent(r, "qa", early=True)),),
            ("qa",), "fig3", (*left, "'linear': exponent within 0.2 of 1"),
        ),
        Claim(
            f"{PAPER}/lem4.2", "Lemma 4.2, phase 1",
            "The attention projection (W_Q a)ᵀ(W_K a) grows, between a quadratic and an exponential.",
            (
                Check("rank correlation of (W_Q a)ᵀ(W_K a) with time", above(0.5), lambda r: trend(_history(r, "qa")["attention_a"], "step"), TAU),
                Check("(W_Q a)ᵀ(W_K a), end minus start", above(0), lambda r: _last(r, "qa", "attention_a") - _history(r, "qa")["attention_a"].isel(step=0)),
            ),
            ("qa",), "fig3", left,
        ),
        Claim(
            f"{PAPER}/lem4.3", "Lemma 4.3, phase 2",
            "The growth of aᵀW_V a slows down to a square root of time.",
            (Check("growth exponent from a tenth of the run on", within(0.3, 0.7), lambda r: _growth_exponent(r, "qa", early=False)),),
            ("qa",), "fig3", (*left, "'square root': exponent within 0.2 of 1/2"),
        ),
        Claim(
            f"{PAPER}/lem4.3-low", "Lemma 4.3, eq. (13), training on P_T",
            "Trained on ICL prompts, |bᵀW_V b| is of the order of aᵀW_V a.",
            (Check("|bᵀW_V b| (largest) / aᵀW_V a, at the end", above(THETA), lambda r: _last(r, "icl", "value_b") / _last(r, "icl", "value_a")),),
            ("icl",), "fig2", left,
        ),
    ]  # fmt: skip


def claims(s: Settings) -> tuple[Claim, ...]:
    """All claims, with the rules that follow from these settings."""
    return note((*_theorems(s), *_uses(s), *_lemmas(s)), AFTERWARDS)

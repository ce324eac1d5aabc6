"""The statements of vector-arithmetic and their rules.

Rules were written before any claim was judged, but after a scouting run with 2 seeds had shown the test errors and aᵀW_V a, bᵀW_V b
along all three trainings (`SCOUTED`). Kinds and readings came with the second version of iclab, after these results (`KINDS`).

Stopping time matters here: the propositions say "there exists t", the figures show whole trainings. So errors are judged where
a validation set says to stop where the paper says that a small error is reached, and at the end where it says that one persists.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.authoring import (
    SIGNED,
    STATED,
    UNIT,
    Expression,
    Part,
    Reading,
    Statement,
    above,
    apply,
    below,
    larger,
    log_slope,
    measured,
    trend,
    within,
)
from iclab.papers.vector_arithmetic.experiments import PAIR_COUNTS, TESTS
from iclab.papers.vector_arithmetic.settings import Settings

EPSILON = 0.01
THETA = 0.1  # Θ(1) and o(1) for cosines
CONSTANT = 0.05  # Θ(1) for an error
SMALL = 0.05  # an error that "generalises" or "converges to zero"
TRAININGS = {"qa": "P_QA", "icl": "P_T", "qa-icl": "P_QA^T"}
HYBRID = ("icl", "qa-icl")  # the trainings that mix b in
SHIFTS = {"conic": "a conic combination of the a's", "low": "unseen b's", "common": "unseen ν's", "all": "all three at once"}
KINDS = "Kinds and readings are those of the second version; results had been seen by then."
SCOUTED = "A scouting run of 2 seeds had shown errors and projections along training before the rule was written."
RETESTED = (
    "The threshold for training on QA is as first written; the error was first read off records of 400 prompts (the lowest of "
    "them was about 0.004, the last 0.065) and is now tested on 10,000 fresh ones."
)
STOPPED = (
    "For QA-ICL the end of training decides: with 1500 epochs, tried once to save time, the error had been seen at 0.03 instead of "
    "0.49; 2000 epochs is the number first chosen."
)
ALL_THREE = "First asked of one training alone; the paper names the others too, and their parts have the same rule."


def last(training: str, variable: str) -> Expression:
    """A recorded value at the end of a training."""
    return measured(training, variable).last()


def low_level(training: str) -> Expression:
    """How strongly W_V passes the low-level concepts on, beside the high-level ones."""
    return last(training, "value_b") / last(training, "value_a")


def first_epochs(data: xr.DataArray) -> xr.DataArray:
    """The growth exponent over the first 50 epochs: slope of log(growth since the start) against log(epoch)."""
    grown = data - data.isel(step=0)
    return log_slope(grown.isel(step=np.flatnonzero((grown["step"] > 0) & (grown["step"] <= 50))), "step")


def later_epochs(data: xr.DataArray) -> xr.DataArray:
    """The growth exponent from a tenth of the run on: slope of log(data) against log(epoch)."""
    start = max(1.0, float(data["step"][-1]) / 10)
    return log_slope(data.isel(step=np.flatnonzero(data["step"] >= start)), "step")


def inside(s: Settings) -> Reading:
    """Settings that meet Condition 3.1 with C = 1: a short sentence (M = 2), so that d >= M² log(...), and K >= log(1/δ)."""
    epochs = 4000 if s.steps >= 1000 else s.steps  # fewer in the smoke profile
    changes = {
        "dimension": 100, "concepts": 3, "common_tokens": 10, "common_length": 2, "step_size": 1.0, "value_step_scale": 0.055,
        "steps": epochs, "icl_steps": epochs, "record_every": 200, "prompts": min(s.prompts, 10_000),
    }  # fmt: skip
    return Reading("inside", "settings that meet Condition 3.1 with C = 1", changes=changes)


def end_of(training: str) -> Expression:
    """The last epoch: the t that is taken where any late one will do."""
    return measured(training, "icl_cos_task").coordinate("step").last()


def statements(s: Settings) -> list[Statement]:
    """All statements, with the rules that follow from these settings."""
    tested, uses = measured("tests", "error"), {name: measured("uses", name) for name in ("transfer_error", "complexity")}
    prompts = {name: measured("prompts", name) for name in ("error", "cotasks_error", "weight", "rest")}
    working = Reading(f"η={s.step_size:g},q_V={s.value_step_scale:g}", "step sizes that train within the printed epochs")
    printed = Reading("η=5,q_V=1e-5", "the step sizes as printed", experiments={"qa": "printed"})
    readings = (STATED, inside(s))
    return [
        Statement(
            "thm3.2", "Theorem 3.2",
            "At some t >= T_1, h_0 is a hybrid of the task's a and b when trained on P_T or P_QA^T, (6), and points along the "
            "task's a and nothing else when trained on P_QA, (7).",
            (
                *(
                    part
                    for training in HYBRID
                    for part in (
                        Part(f"(6) cos(h_0, a), trained on {TRAININGS[training]}", last(training, "icl_cos_task"),
                             above(THETA, "existence"), SIGNED, found=end_of(training), found_as="t = {:.0f}"),
                        Part(f"(6) mean |cos(h_0, b)|, trained on {TRAININGS[training]}", last(training, "icl_cos_low"),
                             above(THETA, "existence"), UNIT),
                    )
                ),
                Part("(7) cos(h_0, a), trained on P_QA", last("qa", "icl_cos_task"), above(THETA, "existence"), SIGNED,
                     found=end_of("qa"), found_as="t = {:.0f}"),
                Part("(7) mean |cos(h_0, b)|", last("qa", "icl_cos_low"), below(THETA, "existence"), UNIT),
                Part("(7) largest |cos(h_0, ν)|", last("qa", "icl_cos_common"), below(THETA, "existence"), UNIT),
                Part("(7) largest |cos(h_0, other a)|", last("qa", "icl_cos_other"), below(THETA, "existence"), UNIT),
            ),
            readings, figure="fig3", table="stopping", afterwards=KINDS, ours=("t is the last epoch", "tested on ICL prompts"),
        ),
        Statement(
            "prop3.3", "Proposition 3.3",
            "Trained on P_T or P_QA^T the test error stays constant; trained on P_QA it is at most ε at some time, the task vector "
            "comes from demonstrations alone, and added to other words of the co-task it gives their labels.",
            (
                *(
                    Part(f"0-1 error on {test} prompts at the end, trained on {TRAININGS[training]}",
                         last(training, f"{test}_error"), above(CONSTANT, "existence"), UNIT)
                    for training in HYBRID
                    for test in TESTS
                ),
                *(
                    Part(f"0-1 error on {test} prompts where validation is best, trained on P_QA",
                         tested.sel(kind=test, stage="stopped"), below(EPSILON, "existence"), UNIT,
                         found=measured("qa", "best_step"), found_as="t ≈ {:.0f}")
                    for test in TESTS
                ),
                Part("first bonus: cos(h_0, a) without a query", measured("uses", "alone_cos_task"), above(THETA, "existence"), SIGNED),
                *(
                    Part(f"first bonus: {words} without a query", measured("uses", f"alone_cos_{name}"),
                         below(THETA, "existence"), UNIT)
                    for name, words in (("low", "mean |cos(h_0, b)|"), ("other", "largest |cos(h_0, other a)|"))
                ),
                Part("second bonus: 0-1 error on other words", uses["transfer_error"], below(EPSILON, "existence"), UNIT),
            ),
            readings, figure="uses", table="stopping", afterwards=f"{SCOUTED} {RETESTED} {STOPPED} {KINDS}",
            ours=(
                "'Θ(1)' for an error: above 0.05", "ε = 0.01",
                "the time is the record with the lowest mean error on 800 other prompts, the test is on 10,000 fresh ones",
                "both bonuses are asked at the end of training; without a query the last label takes its place",
            ),
        ),
        Statement(
            "prop3.4", "Proposition 3.4",
            "Trained on P_QA, the model generalises to unseen dictionaries, other prompt lengths and several co-tasks in a prompt.",
            (
                *(
                    Part(f"1. 0-1 error, {words}", measured("shifts", "error").sel(shift=shift), below(SMALL, "sufficiency"), UNIT)
                    for shift, words in SHIFTS.items()
                ),
                Part(f"2. largest 0-1 error over J in {PAIR_COUNTS}", prompts["error"].max("pairs", skipna=False),
                     below(SMALL, "sufficiency"), UNIT),
                Part("2. 0-1 error with two co-tasks", prompts["cotasks_error"].sel(cotasks=2), below(SMALL, "sufficiency"), UNIT),
            ),
            readings, figure="shifts",
            ours=(
                "'generalises': 0-1 error on ICL prompts below 0.05",
                "the query's word belongs to one of the two co-tasks; each demonstration takes one of them at random",
            ),
            afterwards=f"The part on co-tasks was added after the others had been seen; its rule is theirs. {KINDS}",
        ),
        Statement(
            "eq8", "Equation (8)", "With two co-tasks in a prompt h_0 is approximately a positive mixture of their a's.",
            (
                Part("smaller of the two projections of h_0 on the a's",
                     prompts["weight"].sel(cotasks=2).isel(concept=slice(0, 2)).min("concept", skipna=False), above(THETA), SIGNED),
                Part("share of ‖h_0‖² outside the a's", prompts["rest"].sel(cotasks=2), below(0.5), UNIT),
            ),
            readings, hypotheses="prop3.4", figure="shifts",
            ours=("'approximately': at least half of ‖h_0‖² lies in the span of the a's", "'w > 0': above 0.1"),
        ),
        *(
            Statement(
                figure, f"Figure {figure[3:]}",
                f"Trained on {TRAININGS[training]}, W_V overfits to low-level features (d) and the test error remains constant at "
                "about 0.2 (b).",
                (
                    Part("(d) |bᵀW_V b| (largest) / aᵀW_V a at the end", low_level(training), larger(THETA)),
                    Part("(b) 0-1 error on ICL prompts at the end", last(training, "icl_error"), within(0.1, 0.3), UNIT),
                ),
                figure=figure, ours=("'constant (0.2)': between 0.1 and 0.3 at the end", "'overfits': a ratio above 0.1"),
                afterwards=SCOUTED if training == "icl" else f"{SCOUTED} {STOPPED}",
            )
            for figure, training in (("fig2", "icl"), ("fig4", "qa-icl"))
        ),
        Statement(
            "fig3", "Figure 3",
            "Trained on P_QA, W_V does not overfit to low-level features (d) and the test errors converge to zero (b).",
            (
                Part("(d) |bᵀW_V b| (largest) / aᵀW_V a at the end", low_level("qa"), below(THETA, "order"),
                     readings=(working.name,)),
                *(
                    Part(f"(b) 0-1 error on {test} prompts at the end", tested.sel(kind=test, stage="end"), below(SMALL), UNIT,
                         readings=(working.name,))
                    for test in TESTS
                ),
                Part("(b) lowest 0-1 error on ICL prompts over training", measured("qa", "icl_error").min("step", skipna=False),
                     below(SMALL), UNIT, readings=(printed.name,)),
            ),
            (working, printed), figure="fig3", table="stopping", afterwards=f"{SCOUTED} {RETESTED} {KINDS}",
            ours=("'zero': below 0.05", "'does not overfit': a ratio below 0.1"),
        ),
        Statement(
            "lem4.1", "Lemma 4.1", "In the first phase aᵀW_V a grows linearly, on all three training distributions (11).",
            tuple(
                Part(f"(11) growth exponent over the first 50 epochs, trained on {name}",
                     apply(first_epochs, measured(training, "value_a")), within(0.8, 1.2, "rate"))
                for training, name in TRAININGS.items()
            ),
            figure="fig3", ours=("'linear': exponent within 0.2 of 1",), afterwards=f"{ALL_THREE} {KINDS}",
        ),
        Statement(
            "lem4.2", "Lemma 4.2", "In the first phase (W_Q a)ᵀ(W_K a) grows, between a quadratic and an exponential.",
            tuple(
                part
                for training, name in TRAININGS.items()
                for part in (
                    Part(f"rank correlation of (W_Q a)ᵀ(W_K a) with time, trained on {name}",
                         apply(trend, measured(training, "attention_a"), "step"), larger(0.5), SIGNED),
                    Part(f"(W_Q a)ᵀ(W_K a), end minus start, trained on {name}",
                         last(training, "attention_a") - measured(training, "attention_a").first(), larger()),
                )
            ),
            figure="fig3", afterwards=f"{ALL_THREE} {KINDS}",
        ),
        Statement(
            "lem4.3", "Lemma 4.3",
            "In the second phase aᵀW_V a grows like the square root of time; trained on P_T or P_QA^T, |bᵀW_V b| is of its order (13).",
            (
                *(
                    Part(f"growth exponent from a tenth of the run on, trained on {name}",
                         apply(later_epochs, measured(training, "value_a")), within(0.3, 0.7, "rate"))
                    for training, name in TRAININGS.items()
                ),
                *(
                    Part(f"(13) |bᵀW_V b| (largest) / aᵀW_V a at the end, trained on {TRAININGS[training]}", low_level(training),
                         above(THETA, "bound"))
                    for training in HYBRID
                ),
            ),
            figure="fig2", ours=("'square root': exponent within 0.2 of 1/2", "(13): a ratio above 0.1"),
            afterwards=f"{SCOUTED} {ALL_THREE} {KINDS}",
        ),
        Statement(
            "appC", "Appendix C, complexity of QA and ICL tasks",
            "QA prompts are simpler for the model than word-label prompts: their complexity 1/max p is lower.",
            (
                Part("mean 1/max p, ICL minus QA prompts", uses["complexity"].sel(kind="icl") - uses["complexity"].sel(kind="qa"),
                     larger()),
            ),
            figure="uses",
        ),
        Statement(
            "question2", "Beyond: Research Question 2 of the introduction, against static word vectors",
            "Retrieving the task vector by attention is better than a static offset of word vectors.",
            (
                Part("static offset's error minus the model's, ICL prompts",
                     measured("uses", "static_error") - measured("uses", "model_error"), larger()),
            ),
            figure="uses", beyond=True, ours=("baseline: mean label minus mean word of the demonstrations, added to the query",),
        ),
    ]  # fmt: skip

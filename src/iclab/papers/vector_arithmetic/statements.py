"""The statements of vector-arithmetic and their rules.

Rules were written before any claim was judged, but after a scouting run with 2 seeds had shown the test errors and
aᵀW_V a, bᵀW_V b along all three trainings (`SCOUTED`). Kinds and readings came with the second version of iclab.

Stopping time matters here: the propositions say "there exists t", the figures show whole trainings. What is reached at
some t is read at two of them, where a validation set says to stop and at the end; what persists is read at the end.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

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
    big_o,
    larger,
    log_slope,
    measured,
    omega,
    suffices,
    trend,
    within,
)
from iclab.papers.vector_arithmetic.experiments import PAIR_COUNTS, TESTS
from iclab.papers.vector_arithmetic.settings import Settings

EPSILON = 0.01
THETA = 0.1  # Θ(1) and o(1) for cosines and ratios
SMALL = 0.05  # an error that "generalises" or "converges to zero"; Θ(1) is above it
TRAININGS = {"qa": "P_QA", "icl": "P_T", "qa-icl": "P_QA^T"}
HYBRID = {"icl": "P_T", "qa-icl": "P_QA^T"}  # those that mix b in
COSINES = {
    "task": "cos(h_0, a)",
    "low": "mean |cos(h_0, b)|",
    "common": "largest |cos(h_0, ν)|",
    "other": "largest |cos(h_0, other a)|",
}
SHIFTS = {"conic": "a conic combination of the a's", "low": "unseen b's", "common": "unseen ν's", "all": "all three"}

KINDS = "Kinds are those of the second version, after results had been seen: o(1) and Θ(1) at one size are bounds."
STAGES = f"(7), the bonuses, shifts and (8) were first asked at the end of training; the best t came later. {KINDS}"
SCOUTED = "A scouting run of 2 seeds had shown errors and projections along training before the rule was written."
RETESTED = (
    "The threshold on P_QA is as first written; the error was first read off records of 400 prompts (the lowest of "
    "them was about 0.004, the last 0.065) and is now tested on 10,000 fresh ones."
)
STOPPED = (
    "On P_QA^T the end of training decides: with 1500 epochs, tried once to save time, the error had been seen at 0.03 "
    "instead of 0.49; 2000 epochs is the number first chosen."
)
ALL_THREE = f"First asked of one training alone; the lemma names the others too, and their rule is the same. {KINDS}"

BEST = Reading("t=best", "'there exists t': where the error on validation prompts is lowest", at={"stage": "stopped"})
LAST = Reading("t=last", "'there exists t': the end of training", at={"stage": "end"})
CONDITION = {"dimension": 66, "concepts": 3, "common_tokens": 10, "common_length": 2, "samples": 60}  # d >= M² log(...)
STEP = {"step_size": 0.075 * 66 * 3 * 2 * math.log(100) / (0.06 * 2000), "value_step_scale": 0.06}  # T* = 2000
SLOW = {"step_size": 0.09, "value_step_scale": 0.045, "steps": 50, "icl_steps": 50}  # T_1 = 56
FEWER = {"prompts": 2000, "trend_prompts": 500}
MET = "settings that meet all conditions with C = 1"
INSIDE = Reading("inside", f"{MET}, at the best t", at={"stage": "stopped"}, changes=CONDITION | STEP | FEWER)
FIRST = Reading("first-phase", f"{MET}, until T_1", changes=CONDITION | SLOW)
TIMES = (BEST, LAST, INSIDE)


def first_epochs(data: xr.DataArray) -> xr.DataArray:
    """The growth exponent over the first 50 epochs: slope of log(growth since the start) against log(epoch)."""
    grown = data - data.isel(step=0)
    return log_slope(grown.isel(step=np.flatnonzero((grown["step"] > 0) & (grown["step"] <= 50))), "step")


def later_epochs(data: xr.DataArray) -> xr.DataArray:
    """The growth exponent from a tenth of the run on: slope of log(data) against log(epoch)."""
    return log_slope(data.isel(step=np.flatnonzero(data["step"] >= max(1.0, float(data["step"][-1]) / 10))), "step")


def at_time(data: xr.DataArray, epoch: xr.DataArray) -> xr.DataArray:
    """Records at an epoch of each seed's own."""
    return data.where(data["step"] == epoch).max("step")


def last(training: str, variable: str) -> Expression:
    """A record at the end of a training; of "step", the epoch itself."""
    return measured(training, variable).last()


def stopped(variable: str) -> Expression:
    """A record of the training on P_QA where it was stopped."""
    return apply(at_time, measured("qa", variable), measured("qa", "best_step"))


def low_level(training: str) -> Expression:
    """How strongly W_V passes the low-level concepts on, beside the high-level ones."""
    return last(training, "value_b") / last(training, "value_a")


def retrieved(
    where: str, cosines: Mapping[str, Expression], readings: tuple[str, ...] = (), epoch: Expression | None = None
) -> tuple[Part, ...]:
    """Eq. (7) as parts: h_0 points along the task's a and along nothing else."""
    task, *others = (Part(f"{where} {COSINES[n]}", value, big_o(THETA), UNIT, readings) for n, value in cosines.items())
    along = dataclasses.replace(task, rule=above(THETA, "existence"), bounds=SIGNED, found=epoch, found_as="t = {:.0f}")
    return (along, *others)


def statements(s: Settings) -> list[Statement]:
    """All statements, with the rules that follow from these settings."""
    lengths, cotasks, weight, rest = (measured("prompts", n) for n in ("error", "cotasks_error", "weight", "rest"))
    tested, complexity = measured("tests", "error"), measured("uses", "complexity")
    working = Reading(f"η={s.step_size:g},q_V={s.value_step_scale:g}", "step sizes that train in the printed epochs")
    printed = Reading("η=5,q_V=1e-5", "the step sizes as printed", experiments={"qa": "printed"})
    return [
        Statement("thm3.2", "Theorem 3.2",
            "At some t >= T_1, h_0 is a hybrid of the task's a and b if trained on P_T or P_QA^T (6), and points along "
            "the task's a and nothing else if trained on P_QA (7).",
            (
                *(Part(f"(6) {COSINES[name]}, trained on {on}", last(training, f"icl_cos_{name}"),
                       above(THETA, "existence"), bounds)
                  for training, on in HYBRID.items() for name, bounds in (("task", SIGNED), ("low", UNIT))),
                *retrieved("(7)", {n: stopped(f"icl_cos_{n}") for n in COSINES}, ("t=best", "inside"), stopped("step")),
                *retrieved("(7)", {n: last("qa", f"icl_cos_{n}") for n in COSINES}, ("t=last",), last("qa", "step")),
            ),
            TIMES, figure="fig3", table="stopping", afterwards=STAGES,
            ours=("tested on ICL prompts; (6) at the last epoch in every reading",)),
        Statement("prop3.3", "Proposition 3.3",
            "Trained on P_T or P_QA^T the test error stays constant; on P_QA it is at most ε at some time, the task "
            "vector comes from demonstrations alone, and added to other words of the co-task gives their labels.",
            (
                *(Part(f"0-1 error on {test} prompts at the end, trained on {on}", last(training, f"{test}_error"),
                       above(SMALL, "existence"), UNIT) for training, on in HYBRID.items() for test in TESTS),
                *(Part(f"0-1 error on {test} prompts, trained on P_QA", tested.sel(kind=test),
                       below(EPSILON, "existence"), UNIT) for test in TESTS),
                *retrieved("first bonus: without a query", {n: measured("uses", f"alone_cos_{n}") for n in COSINES}),
                Part("second bonus: 0-1 error on other words", measured("uses", "transfer_error"),
                     below(EPSILON, "existence"), UNIT),
            ),
            TIMES, figure="uses", table="stopping", afterwards=f"{SCOUTED} {RETESTED} {STOPPED} {STAGES}",
            ours=("'Θ(1)' for an error: above 0.05; ε = 0.01", "without a query the last label takes its place",
                  "best t: the record with the lowest mean error on 800 other prompts, tested on 10,000 fresh ones")),
        Statement("prop3.4", "Proposition 3.4",
            "Trained on P_QA, the model generalises to unseen dictionaries, other prompt lengths and several co-tasks.",
            (
                *(Part(f"1. 0-1 error, {words}", measured("shifts", "error").sel(shift=shift), suffices(SMALL), UNIT)
                  for shift, words in SHIFTS.items()),
                Part(f"2. largest 0-1 error, J in {PAIR_COUNTS}", lengths.max("pairs", skipna=False), suffices(SMALL),
                     UNIT),
                Part("2. 0-1 error with two co-tasks", cotasks.sel(cotasks=2), suffices(SMALL), UNIT),
            ),
            TIMES, figure="shifts",
            ours=("'generalises': 0-1 error on ICL prompts below 0.05",
                  "the query's word belongs to one of two co-tasks; each demonstration takes one of them at random"),
            afterwards=f"The part on co-tasks was added after the others had been seen; its rule is theirs. {STAGES}"),
        Statement("eq8", "Equation (8)", "With two co-tasks in a prompt h_0 is about a positive mixture of their a's.",
            (
                Part("smaller of the two projections of h_0 on the a's", weight.sel(cotasks=2).isel(concept=slice(0, 2))
                     .min("concept", skipna=False), above(THETA), SIGNED),
                Part("share of ‖h_0‖² outside the a's", rest.sel(cotasks=2), below(0.5), UNIT),
            ),
            TIMES, hypotheses="prop3.4", figure="shifts", afterwards=STAGES,
            ours=("'approximately': at least half of ‖h_0‖² lies in the span of the a's; 'w > 0': above 0.1",)),
        *(Statement(
            f"fig{number}", f"Figure {number}",
            f"Trained on {HYBRID[training]}, W_V overfits to low-level features (d); the test error stays at 0.2 (b).",
            (
                Part("(d) |bᵀW_V b| (largest) / aᵀW_V a at the end", low_level(training), larger(THETA)),
                Part("(b) 0-1 error on ICL prompts at the end", last(training, "icl_error"), within(0.1, 0.3), UNIT),
            ),
            figure=f"fig{number}", afterwards=SCOUTED if training == "icl" else f"{SCOUTED} {STOPPED}",
            ours=("'constant (0.2)': between 0.1 and 0.3 at the end; 'overfits': a ratio above 0.1",),
        ) for number, training in ((2, "icl"), (4, "qa-icl"))),
        Statement("fig3", "Figure 3",
            "Trained on P_QA, W_V does not overfit to low-level features (d) and the test errors converge to zero (b).",
            (
                Part("(d) |bᵀW_V b| (largest) / aᵀW_V a at the end", low_level("qa"), below(THETA, "order"),
                     readings=(working.name,)),
                *(Part(f"(b) 0-1 error on {test} prompts at the end", tested.sel(kind=test, stage="end"), below(SMALL),
                       UNIT, (working.name,)) for test in TESTS),
                Part("(b) lowest 0-1 error on ICL prompts", measured("qa", "icl_error").min("step", skipna=False),
                     below(SMALL), UNIT, (printed.name,)),
            ),
            (working, printed), figure="fig3", table="stopping", afterwards=f"{SCOUTED} {RETESTED} {KINDS}",
            ours=("'zero': below 0.05; 'does not overfit': a ratio below 0.1",)),
        Statement("lem4.1", "Lemma 4.1", "In the first phase aᵀW_V a grows linearly, on all three distributions (11).",
            tuple(Part(f"(11) exponent over the first 50 epochs, trained on {on}",
                       apply(first_epochs, measured(training, "value_a")), within(0.8, 1.2, "rate"))
                  for training, on in TRAININGS.items()),
            (STATED, FIRST), figure="fig3", ours=("'linear': exponent within 0.2 of 1",), afterwards=ALL_THREE),
        Statement("lem4.2", "Lemma 4.2", "In the first phase (W_Q a)ᵀ(W_K a) grows like t² at least, exp(t²) at most.",
            (
                *(Part(f"rank correlation of (W_Q a)ᵀ(W_K a) with time, trained on {on}",
                       apply(trend, measured(training, "attention_a"), "step"), larger(0.5), SIGNED)
                  for training, on in TRAININGS.items()),
                *(Part(f"(W_Q a)ᵀ(W_K a), end minus start, trained on {on}",
                       last(training, "attention_a") - measured(training, "attention_a").first(), larger())
                  for training, on in TRAININGS.items()),
            ),
            figure="fig3", afterwards=ALL_THREE),
        Statement("lem4.3", "Lemma 4.3",
            "In the second phase aᵀW_V a grows like √t; trained on P_T or P_QA^T, |bᵀW_V b| is of its order (13).",
            (
                *(Part(f"exponent from a tenth of the run on, trained on {on}",
                       apply(later_epochs, measured(training, "value_a")), within(0.3, 0.7, "rate"))
                  for training, on in TRAININGS.items()),
                *(Part(f"(13) |bᵀW_V b| (largest) / aᵀW_V a, trained on {on}", low_level(training), omega(THETA))
                  for training, on in HYBRID.items()),
            ),
            (STATED, INSIDE), figure="fig2", afterwards=f"{SCOUTED} {ALL_THREE}",
            ours=("'square root': exponent within 0.2 of 1/2; (13): a ratio above 0.1",)),
        Statement("appC", "Appendix C, complexity of QA and ICL tasks",
            "QA prompts are simpler for the model than word-label prompts: their complexity 1/max p is lower.",
            (Part("1/max p, ICL minus QA prompts", complexity.sel(kind="icl") - complexity.sel(kind="qa"), larger()),),
            (BEST, LAST), figure="uses", afterwards=STAGES),
        Statement("question2", "Beyond: Research Question 2 of the introduction, against static word vectors",
            "Retrieving the task vector by attention is better than a static offset of word vectors.",
            (Part("static offset's error minus the model's, ICL prompts",
                  measured("uses", "static_error") - measured("uses", "model_error"), larger()),),
            (BEST, LAST), figure="uses", beyond=True, afterwards=STAGES,
            ours=("baseline: mean label minus mean word of the demonstrations, added to the query",)),
    ]  # fmt: skip

"""The statements of feature-selection and their rules: theorems, propositions, the corollary, figures and P1.

Rules were written before the first run; what changed later is in `afterwards`. Kinds and readings came with the second
version of iclab, after the results of the first had been seen (`KINDS`); sizes and the readings inside the hypotheses
came with the third, after an independent reading of the second (`AGAIN`). Lemmas are in `lemmas.py`.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr

from iclab.authoring import (
    SIGNED,
    STATED,
    UNIT,
    Part,
    Reading,
    Scaling,
    Statement,
    above,
    apply,
    below,
    big_o,
    larger,
    measured,
    suffices,
    trend,
    within,
)
from iclab.papers.feature_selection.laws import (
    FRACTION,
    LOW_FRACTION,
    NARROW,
    beyond_power,
    constant,
    laws,
    proportional,
    together,
)
from iclab.papers.feature_selection.readings import NEURONS, edge, inside, wide
from iclab.papers.feature_selection.settings import Settings

ZERO = 0.001  # "zero error", on 10,000 or 50,000 prompts per seed; prompts with no matching context leave about 0.00004
SIDES = ("query", "key")
KINDS = (
    "Since the second version bounds have been read as bounds, with a constant that is measured; results had "
    "been seen by then."
)
AGAIN = (
    "Sizes over which a bound is judged, and the readings inside the hypotheses, came with the third version; results "
    "at one size and a scouting run (1 or 2 seeds) had been seen."
)
REFEREE = "Changed after a referee's report on the full-size results:"
TIMES = "iterations needed: until the training loss on fresh prompts is below 0.1 for the first time"
PRINTED = Reading(
    "printed",
    "as (10) is printed: coordinates of W_O and of the value, all neurons",
    variables={name: f"printed_{name}" for name in ("wins", "rest", "label", "feature")},
)
EMBEDDED = Reading(
    "embeddings",
    "as the caption of Figure 1(b) says: contributions of the embeddings through W_O W_V, neurons that vote for "
    "the label",
    variables={name: f"own_{name}" for name in ("wins", "rest", "label", "feature")},
)


def patterns_total(s: Settings) -> int:
    """M = M1 + M2."""
    return s.relevant_patterns + s.irrelevant_patterns


def late(data: xr.DataArray) -> xr.DataArray:
    """The last fifth of steps on a logarithmic scale from 1: all of it after the loss has fallen."""
    return data.sel(step=data["step"] >= max(1, int(data["step"][-1]) / 5))


def in_logarithm(data: xr.DataArray) -> xr.DataArray:
    """The same numbers over log M."""
    return data.assign_coords(patterns=np.log(np.asarray(data["patterns"].values, float)))


TIMES_IN_FRACTION = apply(together, LOW_FRACTION.needed(), FRACTION.needed())


def theorem1(s: Settings) -> Statement:
    """Theorem 1: zero error, also at the edge of its conditions."""
    error = measured("generalisation", "error").sel(domain="in")
    near = measured("training-edge", "error").sel(matching=1)
    return Statement(
        "thm1", "Theorem 1", "After T iterations (6) the error on the M1 training tasks is zero.",
        (
            Part("0-1 error on the training tasks", error, suffices(ZERO), UNIT, ("", "inside", "wide")),
            Part("0-1 error at the edge", near, suffices(ZERO), UNIT, ("edge",),
                 unsettled="hidden constants are taken as 1; l_tr, B and T would have to be run doubled"),
        ),
        (STATED, inside(s), wide(s), edge(s)), figure="generalisation",
        afterwards=f"{KINDS} {AGAIN} {REFEREE} the edge, which failed, is open, as its constants are ours.",
        ours=("'zero': below 0.001",
              "at the edge T is 1200: (6) with a constant of 1 asks for 34 steps, where the loss inside is still 1"),
    )  # fmt: skip


FIXED = Reading("fixed", "every λ is λ_*, as the condition λ >= λ_* allows", experiments=NARROW)
IN_RANGE = Reading("range", "λ ~ U(λ_*, 1.2): the smallest λ moves, the largest stays")


def inside_fixed(s: Settings) -> Reading:
    """Every λ is λ_*, and all hypotheses are met."""
    well = inside(s)
    return dataclasses.replace(well, name="inside,fixed", experiments=NARROW, why=f"{well.why}; every λ is λ_*")


def equation6(s: Settings) -> Statement:
    """(6): how the iterations that suffice grow, factor by factor."""
    own = laws(s)
    return Statement(
        "eq6", "(6) of Theorem 1",
        "T = Θ(√M λ_*⁻¹ η⁻¹ (1 - ε_m - τ M1)^(-1/2) (C - 1/α)⁻¹) iterations suffice, for some C.",
        (
            own["λ_*"].part(),
            own["τ"].part(readings=("range", "inside")),
            own["η"].part(readings=("range",)),
            own["M"].part(readings=("inside",)),
            Part(
                "misfit of K/(C - 1/α), C fitted, minus that of a power of α", apply(beyond_power, TIMES_IN_FRACTION),
                below(0.0, "existence"), readings=("range",),
                found=apply(constant, TIMES_IN_FRACTION), found_as="C ≈ {:.2g}",
                unsettled="α from 0.35 on cannot tell it from a power; smaller α, with longer prompts, would have to "
                "be run",
            ),
        ),
        (IN_RANGE, FIXED, inside(s), inside_fixed(s)), hypotheses="thm1", figure="eq6", table="rates",
        ours=(
            TIMES, "in M: in a space of 120 dimensions, M1 = 5", "ε_m = 1/4 in the law in τ",
            "the law in α: root mean square of log T - log K + log(C - 1/α) over seven α from 0.35 to 1, seed by seed, "
            "minus the same for a power of α; C depends on the range (4.3, and 3.3 or 3.4 from 0.55 on)",
        ),
        afterwards=f"{KINDS} C was 2 until it was fitted, and then had been seen to be 3.3 for α >= 0.55; the two "
        "smaller α were added to test that. With every λ = λ_* the grid of λ_* first went down to 0.3, where nothing "
        "was reached in 500 steps; it now begins at 0.6, with 1000 steps. The laws were parts of Theorem 1. "
        "In M, one of 12 models had left a loss of 0 again, so that the first time counts. "
        f"{REFEREE} that is so in every law, each reading has the factors that were run in it only, and the law in α, "
        "which had held to 10 %, is compared with a power and is open.",
    )  # fmt: skip


def theorem2(s: Settings) -> Statement:
    """Theorem 2: zero error out of domain, for long prompts and for the shortest that it allows."""
    far = measured("generalisation", "error").sel(domain="out")
    near = measured("edge", "error").sel(matching=1).max("fraction")
    return Statement(
        "thm2", "Theorem 2",
        "Out of domain, on non-negative combinations of the relevant patterns and new irrelevant ones, the "
        "error is zero once l_ts >= 2/α'.",
        (
            Part("0-1 error out of domain", far, suffices(ZERO), UNIT),
            Part("0-1 error at l_ts = 2/α', worst α'", near, suffices(ZERO), UNIT, ("inside",)),
        ),
        (STATED, inside(s), wide(s)), figure="generalisation", afterwards=AGAIN,
        ours=("μ' = (μ1+μ2)/√2, 0.8μ3+0.6μ4, μ5; ν' a random rotation of the ν's", "'zero': below 0.001",
              f"l_ts = {s.test_length}, as drawn; l_ts = 2/α' for α' = 0.2, 0.4, 0.5, 0.8, 1, with one example that is "
              "guaranteed to match the query, which (64) takes for granted"),
    )  # fmt: skip


def length64() -> Statement:
    """(64): how often the shortest prompts have an example that matches the query."""
    drawn = {name: measured("edge", name).sel(matching=0) for name in ("matched", "error")}
    return Statement(
        "eq64", "(64), proof of Theorem 2",
        "With l_ts >= 2/α' at least one example matches the query, with high probability.",
        (
            Part("prompts with a match at l_ts = 2/α', worst α'", drawn["matched"].min("fraction"), above(0.95), UNIT),
            Part("0-1 error on these prompts, worst α'", drawn["error"].max("fraction"), suffices(ZERO), UNIT),
        ),
        figure="generalisation",
        ours=("'high probability': above 0.95; (1 - α'/2)^l of the prompts have no match, 35 % at α' = 0.2, so any "
              "threshold above 0.65 gives the same answer",),
        afterwards="Written with the third version; the probability can be computed by hand.",
    )  # fmt: skip


def proposition1(s: Settings) -> Statement:
    """Proposition 1 over M, at T ∝ √M as (6) says, and its approach in T."""
    one = 1 - measured("training", "attention_same").last()
    return Statement(
        "prop1", "Proposition 1",
        "‖W_Q μ‖ and ‖W_K μ‖ reach √log M, ‖W_Q ν‖ and ‖W_K ν‖ stay O(1), and the attention outside N* goes "
        "to Θ(1/M^C), C > 1, like 1/T.",
        (
            *(
                Part(
                    f"(7) ‖W μ‖, {side}", apply(in_logarithm, measured("sizes", f"{side}_relevant")),
                    Scaling("patterns", 0.5, "log M", side="lower", scale=1.0),
                )
                for side in SIDES
            ),
            *(
                Part(
                    f"(8) ‖W ν‖, {side}", measured("sizes", f"{side}_irrelevant"),
                    Scaling("patterns", 0.0, "M", scale=1.0),
                )
                for side in SIDES
            ),
            Part("(9) attention outside N*, C = 1", one, big_o(1 / patterns_total(s)), UNIT),
            Part("(9) attention outside N* in M", measured("sizes", "attention_other"),
                 Scaling("patterns", -1.0, "M", scale=1.0)),
            Part("(9) its approach in T", apply(late, measured("approach", "attention_other")),
                 Scaling("step", -1.0, "T", side="both", affine=True)),
        ),
        (inside(s),), figure="prop1",
        afterwards=f"{KINDS} {AGAIN} The approach was a power of T over the last decade, with no level to go to, and "
        "failed as one; now a level is fitted beside c/T, on the mean curve.",
        ours=("M = 30, 48, 76, 120 in a space of 120 dimensions, M1 = 5; T ∝ √M as in (6); at M = 30 the loss has just "
              "fallen by then, which helps the paper",
              "(7) asks for an exponent of at least 3/8 in log M, which grows by a factor of 1.4 only; its proof (59), "
              "(60) has √log M1, and M1 is not varied",
              "'O(1/T)': over the last factor of 5 in T; (9) has a level to go to, so that no pure power is asked for"),
    )  # fmt: skip


def proposition2() -> Statement:
    """Proposition 2, its second sentence over m."""
    wins = measured("training", "wins").last()
    return Statement(
        "prop2", "Proposition 2",
        "For a constant fraction of neurons the label part decides the pre-activation (10); the others stay O(ξ).",
        (
            Part(
                "fraction of neurons whose label part exceeds their feature part by ξ",
                wins, above(0.1, "existence"), UNIT, found=wins, found_as="{:.0%} of the neurons",
            ),
            Part("|pre-activation| of the others, in ξ", measured("widths", "rest").last(),
                 Scaling("neurons", 0.0, "m", scale=1.0), unsettled_in=(EMBEDDED.name,),
                 unsettled="neurons that vote against the label are left out here; they would have to be measured too"),
        ),
        (PRINTED, EMBEDDED), figure="fig1b",
        ours=("'constant fraction': above 0.1; (10) by a margin of ξ",
              "m = 320, 640, 1280, 2560 with η ∝ m, so that each is trained in the same number of steps",
              "the others: their mean, where the proposition speaks of each; as printed it is 2.1 at every m",
              "the readings differ in two things, what contributes and which neurons are counted"),
        afterwards=f"The second reading was added after the first run, in which the printed one differed. {KINDS} "
        f"{AGAIN} {REFEREE} the others in the reading 'embeddings', which had held, are open.",
    )  # fmt: skip


def corollary1(s: Settings) -> Statement:
    """Corollary 1 over M."""
    elsewhere = measured("sizes", "out_attention_other")
    return Statement(
        "cor1", "Corollary 1", "Out of domain, too, the attention mass on N* is at least 1 - Θ(1/M).",
        (Part("attention outside N*, out of domain", elsewhere, Scaling("patterns", -1.0, "M", scale=1.0)),),
        (inside(s),), figure="prop1", afterwards=f"{KINDS} {AGAIN}",
        ours=("M = 30, 48, 76, 120 in a space of 120 dimensions, M1 = 5; T ∝ √M as in (6)",),
    )  # fmt: skip


def insight1(s: Settings) -> Statement:
    """P1 of Section 3.1: proportional, so that exponents are judged from both sides."""
    own = proportional(s)
    few = "800 steps are too few at λ_* = 0.3, and from 0.45 or 0.6 on the exponent is another: longer ones must be run"
    size = dataclasses.replace(own["λ_*"].part(), unsettled=few, unsettled_in=("inside",))
    return Statement(
        "p1", "P1, Section 3.1",
        "The sample complexity is proportional to λ_*⁻¹ and to (1 - τ M1)^(-1/2).",
        (size, own["τ"].part(readings=("inside",))),
        (inside(s), inside_fixed(s)), hypotheses="thm1", figure="p1", table="rates",
        ours=(TIMES, "(1 - 1/α)⁻¹, which P1 prints too, is negative for every α < 1: (6) has (C - 1/α)⁻¹"),
        afterwards="P1 became a statement of its own with the third version, when the exponent in λ_* (about -0.65 "
        "with λ in a range, about -2 with every λ = λ_*) and none in τ had been seen at m = 300. "
        f"{REFEREE} the exponent with λ in a range is open for the steps, not for the seeds.",
    )  # fmt: skip


def figure1a() -> Statement:
    """Figure 1(a)."""
    relevant = {side: measured("training", f"{side}_relevant") for side in SIDES}
    irrelevant = {side: measured("training", f"{side}_irrelevant") for side in SIDES}
    return Statement(
        "fig1a", "Figure 1(a)",
        "The response to relevant patterns grows along training while the response to irrelevant ones stays "
        "where it began.",
        (
            *(Part(f"trend of ‖W μ‖, {w}", apply(trend, relevant[w], "step"), larger(0.5), SIGNED) for w in SIDES),
            *(Part(f"‖W μ‖ last / first, {w}", relevant[w].last() / relevant[w].first(), above(2)) for w in SIDES),
            *(
                Part(f"‖W ν‖ last / first, {w}", irrelevant[w].last() / irrelevant[w].first(), within(0.75, 1.25))
                for w in SIDES
            ),
        ),
        figure="fig1a",
        ours=("'stays': within 25 % of its first value (it is within 1 %); 'grows': at least doubles (9 times)",),
    )  # fmt: skip


def figure1b(s: Settings) -> Statement:
    """Figure 1(b)."""
    narrow = f"at m = {s.neurons} 32 seeds leave it open; wider models decide" if s.neurons < NEURONS else ""
    own, well = (EMBEDDED.name, PRINTED.name), ("inside", "wide")

    def parts(kind: str, words: str, readings: tuple[str, ...], unsettled: str = "") -> tuple[Part, Part]:
        label, feature = (measured("training", f"{kind}{name}") for name in ("label", "feature"))
        gap = label.last() - abs(feature.last())
        return (
            Part(f"label part minus |feature part| at the end{words}", gap, larger(), readings=readings),
            Part(f"trend of the label part{words}", apply(trend, label, "step"), larger(0.5), SIGNED, readings,
                 unsettled=unsettled, unsettled_in=(PRINTED.name,)),
        )  # fmt: skip

    return Statement(
        "fig1b", "Figure 1(b)",
        "The label part's contribution to the pre-activation grows beyond the feature part's.",
        (*parts("", "", own, narrow), *parts("own_", ", embeddings", well), *parts("printed_", ", printed", well)),
        (EMBEDDED, PRINTED, inside(s), wide(s)), figure="fig1b",
        ours=("means over the neurons and prompts for which (10) holds by ξ",),
        afterwards="The first run read (10) as printed and divided the two contributions; the ratio has a "
        "denominator near 0 "
        f"and was inconclusive. Now their difference, in both readings. {REFEREE} both are asked of wider models, too.",
    )  # fmt: skip


def numbered(s: Settings) -> list[Statement]:
    """All statements but the lemmas, with the rules that follow from these settings."""
    return [
        theorem1(s), equation6(s), theorem2(s), length64(), proposition1(s), proposition2(), corollary1(s),
        figure1a(), figure1b(s), insight1(s),
    ]  # fmt: skip

"""Figures 1 to 5 and Table 2 of mamba-outliers as statements."""

from __future__ import annotations

import dataclasses

from iclab.expressions import apply, measured
from iclab.kinds import above, below, larger
from iclab.papers.mamba_outliers.readings import (
    POSITIVE,
    RULE_WORDS,
    STACKED,
    accuracy,
    borne,
    brief,
    decay,
    from_fraction,
    gate,
    named,
    outliers,
    scores,
    sized,
    suppression,
)
from iclab.papers.mamba_outliers.settings import KINDS, STACKS, Settings
from iclab.statements import SIGNED, UNIT, Part, Reading, Statement

SCOUTED = (
    "A scouting run of 4 seeds had shown errors of this figure before the rule was written. The reading with exact "
    "numbers was added after the first run, those with seen outliers and a briefly trained linear Transformer in the "
    "third version, when others had found what they give. Mamba was asked for an error below 0.01 at α = 0.8 itself, "
    "the linear Transformer for one above 0.1; as both were thresholds of ours, the largest α is now searched for, and "
    "0.1 is a reading. It was later left open where only that threshold or the length of training decides."
)
LARGE = "large=0.1"
LARGE_ERRORS = {
    "target": "how long the linear Transformer is trained, which is not printed, decides: 0.07 after 2000 steps, 0.27 "
    "after T_T",
    "random": "'large' has no number: 0.04 after 2000 steps of the linear Transformer, 0.09 after T_T",
}
VERY_SMALL = "'very small' has no number, and between a tenth and one half of clean gates our threshold decides"
BETWEEN = {  # κ_a' and stacks whose ratio is between a tenth and one half, layer by layer (32 seeds)
    0: (("label-residual", -1),),
    1: (("label-residual", -1), ("full-residual", -1)),
    2: (("label-residual", -1), ("full-residual", -1), ("full-residual", 0)),
}
TENTH = (
    "'very small': below a tenth of clean gates; 'approximately exponential': correlation below -0.95 over 10 examples"
)
MAMBAS = ("label-residual", "full-residual")  # without a residual the stack does not learn
LINEARS = ("linear", "linear-causal")


def panels(s: Settings) -> list[Statement]:
    """Figure by figure."""
    return [*figure1(s), *attention(s), *gates(s), table2(s)]


def figure1(s: Settings) -> list[Statement]:
    """One panel for each label rule."""
    mamba, linear = (measured("robustness", "error").sel(kind=kind) for kind in KINDS)
    short = brief(s)
    usual = next(one for one in outliers(s) if one.name == named(s, "18tasks", s.magnitudes[-1]))
    larger_errors = tuple(
        dataclasses.replace(one, name=f"{one.name},{LARGE}", why=f"{one.why}; 'large' is above 0.1")
        for one in (usual, short)
    )
    strict = tuple(one.name for one in larger_errors)
    decided = {"target": strict[:1], "random": strict}  # by the threshold, or by how long is trained
    readings = (*outliers(s), short, *larger_errors)
    plain = tuple(one.name for one in readings if one.name not in strict)
    found = []
    for panel, (rule, words) in zip("abc", RULE_WORDS.items(), strict=True):
        beyond_half = from_fraction(linear.sel(rule=rule), 0.6)
        at = apply(borne, mamba.sel(rule=rule), 0.01)
        words = (
            f"With {words}, Mamba's error is below 0.01 even when α is close to 0.8; the linear Transformer's is "
            "large once α > 1/2."
        )
        parts = (
            Part("Mamba: largest α with an error below 0.01", at, above(0.65, "existence"), UNIT, found=at,
                 found_as="Mamba up to α = {:.2f}"),
            Part("linear Transformer: smallest error over α >= 0.6", beyond_half, above(0.01), UNIT, plain,
                 found=beyond_half, found_as="linear at least {:.3f}"),
            Part("linear Transformer: smallest error over α >= 0.6, by 0.1", beyond_half, above(0.1), UNIT, strict,
                 unsettled=LARGE_ERRORS.get(rule, ""), unsettled_in=decided.get(rule, ())),
        )  # fmt: skip
        ours: tuple[str, ...] = (
            "'close to 0.8': 0.7 or more, of the α that are tested; the answer says how far it goes",
            "'large': above the 0.01 that the same sentence calls small; above 0.1 in the readings that say so",
        )
        if rule == "random":
            ours += ("half of the random labels are right: at α = 0.6 a fair vote of 20 examples errs with about 0.04",)
        found.append(
            Statement(f"fig1{panel}", f"Figure 1({panel.upper()})", words, parts, readings, figure="fig1", ours=ours,
                      afterwards=SCOUTED)
        )  # fmt: skip
    return found


def attention(s: Settings) -> list[Statement]:
    """Figs. 2 and 4."""
    gap = scores("same") - scores("other")
    found = []
    for number, where, layers in ((2, "layer 1", range(1)), (4, "layers 2 and 3", range(1, s.stack_depth))):
        parts = []
        for layer in layers:
            own = gap.isel(layer=layer)
            growth = own.last() / own.isel(step=1)
            parts += [
                Part(f"layer {layer + 1}: sum on same minus sum on other, at the end", own.last(), larger()),
                Part(f"layer {layer + 1}: the gap at the end over that after one step", growth, above(1.1, "order"),
                     found=growth, found_as=f"layer {layer + 1}: × {{:.1f}}"),
            ]  # fmt: skip
        words = (
            f"In {where} the attention scores on examples with the query's pattern sum to more than those on "
            "the others, and the gap grows in training."
        )
        ours = ("'grows': by a tenth, counted from the first step on; the answer says by how much",)
        afterwards = (
            "The reading without residual was added after the first run. Counted from the start, growth was passed "
            "after a single step; that the gap doubles, the rule of the second version, was a threshold of ours."
        )
        found.append(
            Statement(f"fig{number}", f"Figure {number}", words, tuple(parts), STACKED, figure=f"fig{number}",
                      table="stacking", ours=ours, afterwards=afterwards)
        )  # fmt: skip
    return found


def gates(s: Settings) -> list[Statement]:
    """Figs. 3 and 5."""
    found = []
    for number, where, layers in ((3, "layer 1", range(1)), (5, "layers 2 and 3", range(1, s.stack_depth))):
        parts = []
        for layer in layers:
            ratio = suppression(layer)
            between = tuple(f"{name},kappa={s.magnitudes[size]:g}" for name, size in BETWEEN.get(layer, ()))
            ranked = gate("ranked", layer).sel(rank=slice(1, 10))
            parts += [
                Part(f"layer {layer + 1}: mean gate of outliers / of clean examples, smaller", ratio,
                     below(1.0, "order"), POSITIVE, found=ratio, found_as=f"layer {layer + 1}: {{:.2f}}"),
                Part(f"layer {layer + 1}: the same, very small", ratio, below(0.1), POSITIVE,
                     unsettled=VERY_SMALL if between else "", unsettled_in=between),
                Part(f"layer {layer + 1}: correlation of log gate with rank, clean examples", apply(decay, ranked),
                     below(-0.95), SIGNED),
            ]  # fmt: skip
        words = (
            f"In {where} gates of outlier examples are very small; those of clean ones are larger and decay "
            "exponentially with the distance."
        )
        afterwards = (
            "The reading without residual was added after the first run. When all results had been seen, three "
            "things were changed: the part that outliers' gates are smaller at all was added, readings by one half "
            "(held by a hair) were dropped, and ratios from a tenth to one half were left open."
        )
        found.append(
            Statement(f"fig{number}", f"Figure {number}", words, tuple(parts), sized(s, STACKED[:3]),
                      figure=f"fig{number}",
                      ours=(TENTH, "that clean gates decay is a property of the start: (3) has it at any weights"),
                      afterwards=afterwards)
        )  # fmt: skip
    return found


CLOSE = "our 5 points and how long the causal stack is trained decide: 0.07 after 1500 steps, 0.04 after 3000"


def table2(s: Settings) -> Statement:
    """Every pairing of a Mamba and a linear stack, every label rule, both sizes of outliers."""
    readings: list[Reading] = []
    parts: list[Part] = []
    for name in MAMBAS:
        for other in LINEARS:
            for rule, words in RULE_WORDS.items():
                one = Reading(f"{name}_{other},{rule}", f"{STACKS[name]}; {STACKS[other]}; {words}")
                own = sized(s, [one])
                names = tuple(reading.name for reading in own)
                mamba, linear = accuracy(name, rule), accuracy(other, rule)
                spread = linear.max("placement", skipna=False) - linear.min("placement", skipna=False)
                close = CLOSE if (other, rule) == ("linear-causal", "target") else ""
                readings += own
                parts += [
                    Part("Mamba's accuracy farthest minus closest",
                         mamba.sel(placement="farthest") - mamba.sel(placement="closest"), larger(0.05), SIGNED, names),
                    Part("linear Transformer's spread of accuracy", spread, below(0.05), UNIT, names, unsettled=close,
                         unsettled_in=names[:1]),
                    Part("Mamba's accuracy at random places", mamba.sel(placement="random"), above(0.8), UNIT, names),
                    Part("linear Transformer's accuracy at random places", linear.sel(placement="random"), above(0.6),
                         UNIT, names),
                ]  # fmt: skip
    return Statement(
        "table2", "Table 2",
        "With half of the examples outliers, Mamba's accuracy depends on where they sit, worst closest to the query; "
        "the linear Transformer's hardly does.",
        tuple(parts), tuple(readings), figure="table2", table="placements",
        ours=("'sensitive', 'much less affected': 5 percentage points; exactly half of the examples are outliers",
              "that Mamba answers at random places, above 0.8, is what training adds: an untrained stack is as "
              "sensitive, as its gates decay with the distance at any weights, but does not answer",
              "that the linear Transformer answers: above 0.6; at chance a small spread says nothing"),
        afterwards="The readings with a full residual were added after the first run; all pairings, one label rule "
        "per reading and the accuracy at random places in the third version, when untrained stacks had passed the "
        "other two parts. That the linear one answers was added when it had been seen at chance with flipped labels; "
        "a spread of 0.04 or 0.07 by length of training was left open then.",
    )  # fmt: skip

"""The statements of mamba-outliers and their rules.

Rules were written before the first run, but after a scouting run with 4 seeds had shown the errors of Fig. 1 at seven
α; thresholds are the paper's own (0.01, 1/2) or follow from its conditions. What changed later is in `afterwards`;
kinds and readings came with the second version, after results had been seen. Hidden constants are 1 unless a part says
otherwise.

Of the first version's 65 rows 27 passed after a single training step; which parts untrained models pass stands beside
every answer. (20) cannot fail at all: see `ours` of Corollary 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from iclab.authoring.gpt2 import FEWER_SEEDS
from iclab.expressions import Expression, apply, measured
from iclab.kinds import above, below, big_o, identical, larger, omega, suffices, within
from iclab.papers.mamba_outliers.laws import LAWS, excess, limits, linear_region, mamba_region
from iclab.papers.mamba_outliers.settings import KINDS, MAGNITUDES, ONE_LAYER, STACKS, TASKS, Settings, symbols
from iclab.scaling import Scaling
from iclab.statements import SIGNED, UNIT, Part, Reading, Statement

SMALL = 0.05  # "small" over α and l_ts
POSITIVE = (0.0, np.inf)
RULE_WORDS = {"flip": "label flipping", "target": "targeted labels", "random": "random labels"}
KIND = "Bounds are one-sided, their constants measured, since the second version; results had been seen by then."
COUNTED = (
    "The reading with exact numbers was added after the first run, whose sensitivity table showed that the counting "
    "decides at α = 0.8: with a binomial number 0.8^20 = 1.2 % of the prompts have no clean example."
)
SCOUTED = f"A scouting run of 4 seeds had shown errors of this figure before the rule was written. {COUNTED}"
REGION = (
    "Over α and l_ts: Fig. 1 had been seen at l_ts = 20 before the rule was written; κ_a' = 10 and exact numbers are "
    "where it holds."
)
RESOLVED = (
    "Iterations: measured as the figures are trained, learning took 2 to 18 steps, and the 0-1 error of the linear "
    "model was small before the first: too few to tell exponents. After two such runs δ is 0.02, step sizes are "
    "divided by 20 (Mamba) and 80 (linear), p_a ends at 0.4 (above, the linear model's hinge loss has a floor), l_tr "
    "is varied at p_a = 0.2, and the criterion is the hinge loss instead of the 0-1 error. The tolerance is "
    "as first written."
)
MORE = "The reading without residual was added after the first run; rule unchanged."
GPT2 = (
    "Before the rule was written GPT-2's training loss in domain had been seen (2 seeds, two step sizes), and the "
    "one-layer models' results. Prompts per member were halved after the first run, to save time; no verdict changed "
    "by it. The readings on seen tasks were added after the first run, in which GPT-2 failed on tasks it had not seen "
    f"with and without outliers, to tell outliers from tasks; the rule is that of all tasks. {FEWER_SEEDS}"
)
EPSILON = "ε: the smallest for which B >= ε⁻² log(1/ε), with constant 1"
TENTH = "'very small': a tenth; 'approximately exponential': correlation below -0.95 over 10 examples"
REGION_OURS = "over l_ts from 10 to 60: labels flipped, 'small' is below 0.05, constant 1 in (17)"


def sized(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Each of these readings at each κ_a', which the paper does not print."""
    return tuple(
        Reading(f"{one.name},kappa={size:g}".strip(","), f"{one.why}; κ_a' = {size:g}", {**one.at, "magnitude": size})
        for one in readings
        for size in MAGNITUDES
    )


CYCLE = Reading("cycle", "the bare cycle of 6 training tasks, which satisfies Condition 1 too", {"setting": "6 tasks"})
TRAINED = (Reading("18tasks", "18 training tasks", {"setting": TASKS}), CYCLE)
EXACT = Reading(
    "exact,kappa=10",
    "an exact number of outliers in every prompt; 18 tasks, κ_a' = 10",
    {"setting": TASKS, "magnitude": 10.0},
    variables={"error": "exact_error"},
)
OUTLIERS = (*sized(TRAINED), EXACT)
LAYER = Reading("", "one layer", {"setting": ONE_LAYER})
STACKED = tuple(Reading(name, f"three layers: {label}", {"setting": label}) for name, label in STACKS.items())
BESIDE = {
    "label-residual": "linear",
    "full-residual": "linear-causal",
}  # the linear Transformer beside Mamba in Table 2
STACKINGS = sized([Reading(name, f"{STACKS[name]}; {STACKS[other]}") for name, other in BESIDE.items()])
PLACED = {name: tuple(one.name for one in STACKINGS if one.name.startswith(name)) for name in BESIDE}
ASKED = sized([Reading(tasks, f"tested on {tasks} tasks", {"tasks": tasks}) for tasks in ("all", "seen")])


def recorded(scores: xr.DataArray, at: xr.DataArray) -> xr.DataArray:
    """Scores along the setting's own steps; the others' are not recorded for it."""
    return scores.isel(step=np.flatnonzero(at.values))


def scores(group: str) -> Expression:
    """Sums of attention scores along training, on examples with the query's pattern ("same") or on the "other" ones."""
    return apply(recorded, measured("attention", f"score_{group}"), measured("attention", "recorded"))


def decay(ranked: xr.DataArray) -> xr.DataArray:
    """Correlation of log G_h(j) with j: -1 is a perfect exponential decay."""

    def fit(values: np.ndarray) -> float:
        if not np.all(np.isfinite(values)) or np.any(values <= 0):
            return np.nan
        return float(np.corrcoef(ranked["rank"].values, np.log(values))[0, 1])

    return xr.apply_ufunc(fit, ranked, input_core_dims=[["rank"]], vectorize=True, output_dtypes=[float])


def halvings(ranked: xr.DataArray) -> xr.DataArray:
    """Gates over 2^(j-1) instead of over j."""
    return ranked.assign_coords(rank=2.0 ** (ranked["rank"] - 1))


def gate(group: str, layer: int = 0) -> Expression:
    """Gates of "outlier" and "clean" examples by distance, or of the j-th closest clean one ("ranked")."""
    return measured("gates", f"{group}_gate").isel(layer=layer)


def up_to(error: Expression, fraction: float) -> Expression:
    """The largest error over α up to this one."""
    return error.sel(fraction=slice(0.0, fraction + 1e-9)).max("fraction", skipna=False)


def from_fraction(error: Expression, fraction: float) -> Expression:
    """The smallest error over α from this one on."""
    return error.sel(fraction=slice(fraction - 1e-9, 1.0)).min("fraction", skipna=False)


def accuracy(stack: str, rule: str) -> Expression:
    """Accuracy of a stack by where outliers with such labels sit."""
    return measured("placements", "accuracy").sel(setting=STACKS[stack], rule=rule)


def statements(s: Settings) -> list[Statement]:
    """All statements, with the rules that follow from these settings."""
    epsilon, (mamba_limit, linear_limit), deep = symbols(s).error, limits(s), range(1, s.stack_depth)
    mamba, linear = (measured("robustness", "error").sel(kind=kind) for kind in KINDS)
    mamba_map, linear_map = (measured("phase", "error").sel(kind=kind) for kind in KINDS)
    mamba_inside = mamba_map.where(apply(mamba_region, mamba_map, s)).max(("fraction", "length"))
    linear_inside = linear_map.where(apply(linear_region, linear_map, s)).max(("fraction", "length"))
    same, different = scores("same"), scores("other")
    gap = same - different
    nearest = gate("ranked").sel(rank=slice(1, 5))  # (21) is judged on the five clean examples closest to the query
    gpt2 = measured("gpt2-outliers", "error")
    found = [
        Statement(
            "eq3", "Equations (1) and (3)", "The closed form (3) is what the recurrence (1) computes.",
            (Part("mean |F by (1) - F by (3)| / (1 + |F|)", measured("forms", "difference")
                  .max(["setting", "magnitude"], skipna=False), identical(1e-4), POSITIVE),),
            ours=("h_0 = 0; the paper prints h_0 = U", "state dimension d + 1"),
            architecture="two forms of one function, at any weights",
        ),
        *(Statement(
            f"thm{number}", f"Theorem {number}",
            f"Trained with outliers in its prompts for T = Θ({needed}), {name} answers all tasks, unseen ones too, "
            "with 0-1 error at most ε.",
            (Part("0-1 error over all tasks, training prompts", measured("convergence", "error").sel(kind=kind),
                  suffices(epsilon), UNIT),
             *(law.part() for law in LAWS[kind].values())),
            TRAINED, figure="rates", table="rates", afterwards=f"{RESOLVED} {KIND}",
            ours=(EPSILON, "iterations needed: until the training loss on fresh prompts is below 0.1, on the 18 tasks"),
        ) for number, kind, name, needed in ((1, "mamba", "Mamba", "η⁻¹ (1-p_a)⁻¹ β⁻² M1"),
                                             (3, "linear", "the linear Transformer", "η⁻¹ (1-p_a)⁻¹ β⁻² l_tr⁻¹ M1"))),
        Statement(
            "remark4", "Remark 4", "Mamba needs Θ(l_tr) times the iterations of the linear Transformer.",
            (Part("exponent of T_M / T_T in l_tr (predicted 1)",
                  apply(excess, *(LAWS[kind]["l_tr"].needed() for kind in KINDS)), within(0.75, 1.25, "rate")),),
            hypotheses="thm1", figure="rates", table="rates", afterwards=RESOLVED,
            ours=("each model at its own step size", "compared: what is needed, not what suffices (footnote 1)"),
        ),
        Statement(
            "thm2", "Theorem 2",
            "On prompts with unseen outliers in a fraction α < min(1, p_a l_tr / l_ts) of the examples Mamba's error "
            "is at most ε, whatever their labels.",
            (Part(f"largest 0-1 error over α <= {mamba_limit:g} and three label rules",
                  up_to(mamba, mamba_limit).max("rule", skipna=False), suffices(epsilon), UNIT),
             Part("largest 0-1 error below the limit, any l_ts", mamba_inside, suffices(SMALL), UNIT, (EXACT.name,))),
            OUTLIERS, figure="phase", ours=(EPSILON, REGION_OURS), afterwards=f"{COUNTED} {REGION}",
        ),
        Statement(
            "thm4", "Theorem 4",
            "With outliers in less than half of the examples and enough examples (17), the linear Transformer's error "
            "is at most ε.",
            (Part(f"largest 0-1 error over α <= {linear_limit:g}, which (17) allows, and three label rules",
                  up_to(linear, linear_limit).max("rule", skipna=False), suffices(epsilon), UNIT),
             Part("largest 0-1 error where (17) allows α < 1/2", linear_inside, suffices(SMALL), UNIT, (EXACT.name,))),
            OUTLIERS, figure="phase", ours=(EPSILON, REGION_OURS), afterwards=f"{COUNTED} {REGION}",
            architecture="linear attention averages the labels of like examples at any weights: with ε = 0.13, the "
            "smallest that B = 128 allows, one step of training passes, and in the cycle none at all",
        ),
        Statement(
            "cor1", "Corollary 1",
            "Mamba's attention scores on examples with the query's pattern sum to at least Θ(1), those on the others "
            "to at most Θ(ε/(1-p_a)).",
            (Part("sum of scores on the same pattern", same.isel(layer=0).last(), omega(1.0)),
             Part("sum of scores on other patterns", different.isel(layer=0).last(),
                  big_o(epsilon / (1 - s.outlier_fraction)))),
            (LAYER,), figure="fig2", afterwards=KIND,
            ours=(EPSILON, "as printed, from above only: a large negative sum passes; (61) bounds its absolute value"),
        ),
        Statement(
            "cor2", "Corollary 2",
            "Mamba's gate is O(1/poly(M1)) on outliers (20), at least Θ(2^-(j-1)) on the j-th closest clean one (21).",
            (Part("(20) mean gate on outliers, poly(M1) = M1", gate("outlier").mean("distance"),
                  big_o(1 / s.relevant_patterns), UNIT),
             Part("(21) min over j <= 5 of gate(h(j)) · 2^(j-1), constant 0.1",
                  (nearest * 2.0 ** (nearest.coordinate("rank") - 1)).min("rank", skipna=False), above(0.1, "bound")),
             Part("(21) gate(h(j)) over 2^(j-1), j <= 5", apply(halvings, nearest),
                  Scaling("rank", -1.0, "2^(j-1)", side="lower", scale=1.0))),
            sized([LAYER]), figure="fig3", afterwards=f"{KIND} The scaling of (21) was added then.",
            ours=("constant in (21): 0.1; the query's own gate alone is a factor of about 1/2",
                  "no model can exceed 1/M1 in (20): gates sum to at most 1 over α l_ts = 6 outliers on average"),
        ),
        *(Statement(
            f"fig1{panel}", f"Figure 1({panel.upper()})",
            f"With {RULE_WORDS[rule]}, Mamba's error is below 0.01 even when α is close to 0.8; the linear "
            "Transformer's is large once α > 1/2.",
            (Part("Mamba: largest error over α <= 0.8", up_to(mamba.sel(rule=rule), 0.8), below(0.01), UNIT),
             Part("linear Transformer: smallest error over α >= 0.6", from_fraction(linear.sel(rule=rule), 0.6),
                  above(0.1), UNIT)),
            OUTLIERS, figure="fig1", ours=("'large': above 0.1; 'close to 0.8': up to 0.8",), afterwards=SCOUTED,
        ) for panel, rule in zip("abc", RULE_WORDS, strict=True)),
        *(Statement(
            f"fig{number}", f"Figure {number}",
            f"In layer {where} the attention scores on examples with the query's pattern sum to more than those on the "
            "others, and the gap grows in training.",
            tuple(part for layer in layers for part in (
                Part(f"layer {layer + 1}: sum on same minus sum on other, at the end", gap.isel(layer=layer).last(),
                     larger()),
                Part(f"layer {layer + 1}: the gap at the end minus at the start",
                     gap.isel(layer=layer).last() - gap.isel(layer=layer).first(), larger()),
                Part(f"layer {layer + 1}: the gap, last / first",
                     gap.isel(layer=layer).last() / gap.isel(layer=layer).first(), above(2)))),
            STACKED, figure=f"fig{number}", table="stacking", ours=("'grows': at least doubles",),
            afterwards=f"{MORE} That it at least doubles was added with the second version: one step of training "
            "passed the other parts, and the stack without a residual hardly learns.",
        ) for number, where, layers in ((2, "1", range(1)), (4, "2 and 3", deep))),
        *(Statement(
            f"fig{number}", f"Figure {number}",
            f"In layer {where} gates of outlier examples are very small; those of clean ones are larger and decay "
            "exponentially with the distance.",
            tuple(part for layer in layers for part in (
                Part(f"layer {layer + 1}: mean gate of outliers / of clean examples",
                     gate("outlier", layer).mean("distance") / gate("clean", layer).mean("distance"), below(0.1),
                     POSITIVE),
                Part(f"layer {layer + 1}: correlation of log gate with rank, clean examples",
                     apply(decay, gate("ranked", layer).sel(rank=slice(1, 10))), below(-0.95), SIGNED))),
            sized(STACKED[:3]), figure=f"fig{number}", ours=(TENTH,), afterwards=MORE,
        ) for number, where, layers in ((3, "1", range(1)), (5, "2 and 3", deep))),
        Statement(
            "table2", "Table 2",
            "With half of the examples outliers, Mamba's accuracy depends on where they sit, worst closest to the "
            "query; the linear Transformer's hardly does.",
            tuple(part for name, other in BESIDE.items() for rule, words in RULE_WORDS.items() for part in (
                Part(f"{words}: Mamba's accuracy farthest minus closest",
                     accuracy(name, rule).sel(placement="farthest") - accuracy(name, rule).sel(placement="closest"),
                     larger(0.05), SIGNED, PLACED[name]),
                Part(f"{words}: linear Transformer's spread of accuracy", accuracy(other, rule)
                     .max("placement", skipna=False) - accuracy(other, rule).min("placement", skipna=False),
                     below(0.05), UNIT, PLACED[name]))),
            STACKINGS, figure="table2", table="placements",
            ours=("'sensitive', 'much less affected': 5 percentage points; exactly half of the examples are outliers",),
            afterwards="The readings with a full residual were added after the first run; rule unchanged.",
        ),
        Statement(
            "edge", "Beyond: is one half the edge of Theorem 4?",
            "Beyond one half the linear Transformer's error is large at every l_ts.",
            (Part("smallest 0-1 error at α ≥ 0.6", from_fraction(linear_map, 0.6).min("length"), above(0.3), UNIT),),
            figure="phase", afterwards=REGION, beyond=True,
            ours=("'large': above 0.3", "flipped labels, an exact number of outliers, κ_a' = 10, the 18 tasks"),
        ),
        Statement(
            "gpt2-thm2", "Beyond: Theorems 1 and 2 asked of GPT-2",
            "Without any gate GPT-2 learns from prompts with outliers, and unseen outliers in a fraction α < p_a l_tr "
            "/ l_ts of the examples leave its error at most ε.",
            (Part("0-1 error, training prompts", measured("gpt2-outliers", "own_error"), suffices(epsilon), UNIT),
             Part(f"largest 0-1 error over α <= {mamba_limit:g} and three label rules",
                  up_to(gpt2, mamba_limit).max("rule", skipna=False), suffices(epsilon), UNIT)),
            ASKED, figure="gpt2-outliers", ours=s.gpt2.unstated(), afterwards=GPT2, beyond=True,
        ),
        Statement(
            "gpt2-fig1", "Beyond: Figure 1 asked of GPT-2",
            "GPT-2 is as robust as Mamba: error below 0.01 even when α is close to 0.8, where the linear Transformer's "
            "is large.",
            (Part("largest error over α <= 0.8 and three label rules", up_to(gpt2, 0.8).max("rule", skipna=False),
                  below(0.01), UNIT),
             Part("linear Transformer's error minus GPT-2's, smallest over α >= 0.6 and label rules",
                  from_fraction(linear.sel(setting=TASKS) - gpt2, 0.6).min("rule", skipna=False), larger(), SIGNED)),
            ASKED, figure="gpt2-outliers", ours=(*s.gpt2.unstated(), "the linear Transformer: on all 30 tasks"),
            afterwards=GPT2, beyond=True,
        ),
    ]  # fmt: skip
    return [statement for statement in found if statement.parts]

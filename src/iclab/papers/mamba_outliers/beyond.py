"""What mamba-outliers does not ask: GPT-2, the edge of Theorem 4, what Theorem 2 (b) lacks, scores without a sign."""

from __future__ import annotations

import xarray as xr

from iclab.authoring.gpt2 import FEWER_SEEDS
from iclab.expressions import apply, measured
from iclab.kinds import above, below, larger, smaller, suffices
from iclab.papers.mamba_outliers import theory
from iclab.papers.mamba_outliers.adversary import adversary_statements
from iclab.papers.mamba_outliers.laws import limits
from iclab.papers.mamba_outliers.readings import STACKED, borne, from_fraction, sized, up_to
from iclab.papers.mamba_outliers.settings import KINDS, TASKS, Settings
from iclab.papers.mamba_outliers.shifts import MANY, SUMS, inside_length
from iclab.statements import SIGNED, UNIT, Part, Reading, Statement
from iclab.statistics import trend

SMALL = 0.05
CLOSED = 0.1  # a layer closes its gates: the mean gate of outliers over that of clean examples is below
GPT2 = (
    "Before the rule was written GPT-2's training loss in domain had been seen (2 seeds, two step sizes), and the "
    "one-layer models' results. Prompts per member were halved after the first run, to save time; no answer changed. "
    "The readings on seen tasks were added after the first run, in which GPT-2 failed on tasks it had not seen "
    f"with and without outliers, to tell outliers from tasks; the rule is that of all tasks. {FEWER_SEEDS}"
)
TOLD = (
    "Others had found errors of 0.46 on mixtures, 0.003 on seen outliers and 0.96 where (a) is violated; 3 seeds were "
    "scouted."
)


def some_closed(ratio: xr.DataArray) -> xr.DataArray:
    """1 for a seed in which one layer closes its gates, or several, but not all; else 0."""
    closed = (ratio < CLOSED).sum("layer")
    return ((closed > 0) & (closed < ratio.sizes["layer"])).astype(float).where(ratio.notnull().all("layer"))


def elsewhere(ratio: xr.DataArray) -> xr.DataArray:
    """1 for a seed whose most closed layer is not the one that most seeds have, 0 for the others; none closed: NaN."""
    closing = ratio.notnull().all("layer") & (ratio.min("layer") < CLOSED)
    best = ratio.fillna(1.0).argmin("layer")
    counts = [int(((best == layer) & closing).sum()) for layer in range(ratio.sizes["layer"])]
    return (best != counts.index(max(counts))).astype(float).where(closing)


def beyond(s: Settings) -> list[Statement]:
    """All of them."""
    return [*ours(s), *adversary_statements(s), *gpt2(s)]


def ours(s: Settings) -> list[Statement]:
    """Questions of ours to the one-layer models."""
    linear_map = measured("phase", "error").sel(kind="linear", magnitude=s.magnitudes[-1])
    dial, sums = measured("dial", "error"), measured("sums", "error")
    clipped, whole = (measured("clipped", name).sel(fraction=MANY) for name in ("clipped", "error"))
    length = inside_length(s)
    ratio = measured("gates", "outlier_gate").mean("distance") / measured("gates", "clean_gate").mean("distance")
    return [
        Statement(
            "edge", "Beyond: is one half the edge of Theorem 4?",
            "Beyond one half the linear Transformer's error is large at every l_ts.",
            (Part("smallest 0-1 error at α ≥ 0.6", from_fraction(linear_map, 0.6).min("length"), above(0.3), UNIT),),
            figure="phase", beyond=True,
            ours=("'large': above 0.3", "flipped labels, an exact number of outliers, the larger κ_a', the 18 tasks"),
            afterwards="Fig. 1 had been seen at l_ts = 20 before the rule was written.",
            architecture="linear attention adds the labels of like examples at any weights; most of them are wrong",
        ),
        Statement(
            "outlier-sum", "Beyond: the lower end of Theorem 2 (b)",
            "What closes the gate is κ_a' Σλ: Mamba withstands test outliers if κ_a' L >= κ_a, and not at half of "
            "that, whatever their sum Σλ; κ_a' >= κ_a, as (b) has it, is not enough.",
            (Part("largest error over Σλ at κ_a' Σλ = κ_a", sums.sel(reach=1.0).max("total", skipna=False),
                  suffices(SMALL), UNIT),
             Part("smallest error over Σλ at κ_a' Σλ = κ_a / 2", sums.sel(reach=0.5).min("total", skipna=False),
                  above(SMALL), UNIT),
             Part(f"error at κ_a' Σλ = κ_a / 2, Σλ = {SUMS[0]:g}, where κ_a' >= κ_a",
                  sums.sel(reach=0.5, total=SUMS[0]), above(SMALL), UNIT)),
            figure="dial", beyond=True, afterwards=f"{TOLD} The part where (b) is met was added after results.",
            ours=(f"α = {MANY:g} at l_ts = {length}, which (c) allows; labels flipped, exact numbers, the 18 tasks",
                  "'withstands': an error below 0.05; Σλ from 0.3 to 1.7"),
        ),
        Statement(
            "outlier-dial", "Beyond: sizes and signs of test outliers",
            "Mamba withstands outliers of training at any size from κ_a on, mixtures the better the larger they are, "
            "and none where their sum is negative, against (a).",
            (Part("seen outliers: largest error", dial.sel(outliers="seen").max("magnitude", skipna=False),
                  suffices(SMALL), UNIT),
             Part("mixtures: trend of the error with κ_a'", apply(trend, dial.sel(outliers="mixed"), "magnitude"),
                  smaller(0.5), SIGNED),
             Part("negative sums: smallest error", dial.sel(outliers="opposed").min("magnitude", skipna=False),
                  above(0.5), UNIT)),
            figure="dial", beyond=True, afterwards=TOLD,
            ours=(f"α = {MANY:g}, l_ts = {s.test_length}, where (c) is not met; labels flipped, exact numbers, the 18 "
                  "tasks",
                  "'withstands': an error below 0.05; 'none': more wrong than right"),
        ),
        Statement(
            "negative-scores", "Beyond: does Figure 1 need negative scores?",
            "With its negative attention scores set to 0, as Corollary 1 would have them, the same Mamba errs more.",
            (Part(f"0-1 error at α = {MANY:g}, clipped minus as trained", clipped - whole, larger(0.01), SIGNED),
             Part(f"0-1 error at α = {MANY:g}, as trained", whole, below(0.01), UNIT)),
            figure="clipped", beyond=True,
            ours=("labels flipped, exact numbers, the larger κ_a', the 18 tasks", "the paper's 0.01 is the smallest "
                                                                                  "effect"),
            afterwards="Written when 3 seeds had shown 0.06 against 0.",
        ),
        Statement(
            "one-layer-gates", "Beyond: which layer closes its gates?",
            "In most seeds one or two of the three layers close their gates on outliers, not all three; which differs.",
            (Part("share of seeds in which one or two layers close", apply(some_closed, ratio), above(0.5), UNIT),
             Part("share of these in which not the usual layer closes most", apply(elsewhere, ratio), above(0.1),
                  UNIT)),
            sized(s, STACKED[:2]), figure="fig5", beyond=True,
            ours=("'closes': mean gate of outliers below a tenth of that of clean examples",
                  "'differs': in more than a tenth of the seeds"),
            afterwards="Written when the ratios of all layers and 8 seeds had been seen. It said 'in every seed' and "
            "was judged by means over seeds; 28 of 32 had been seen when the shares were taken instead.",
        ),
    ]  # fmt: skip


LONG = 3000
BRIEF = f"how long GPT-2 is trained decides; after {LONG} steps the error is 0.14 (32 seeds)"
OWN_BATCH = (
    "ε was that of Mamba's B = 128 and is now that of GPT-2's own B; what outliers add was asked after GPT-2 had been "
    "seen to err on 11 % of the prompts without any."
)


def gpt2(s: Settings) -> list[Statement]:
    """Theorems 1 and 2 and Fig. 1 asked of GPT-2."""
    epsilon, mamba_limit = theory.smallest_error(s.gpt2.batch), limits(s)[0]
    error, linear = measured("gpt2-outliers", "error"), measured("robustness", "error").sel(kind=tuple(KINDS)[1])
    at = apply(borne, error.max("rule", skipna=False), 0.01)
    worst = up_to(error, mamba_limit).max("rule", skipna=False)
    added = worst - error.first("fraction").max("rule", skipna=False)
    asked = sized(s, [Reading(tasks, f"tested on {tasks} tasks", {"tasks": tasks}) for tasks in ("all", "seen")])
    return [
        Statement(
            "gpt2-thm2", "Beyond: Theorems 1 and 2 asked of GPT-2",
            "GPT-2 learns from prompts with outliers without any gate. Unseen outliers in a fraction α < p_a l_tr / "
            "l_ts of the examples leave its error at most ε, and add at most ε to it.",
            (*(Part("0-1 error, training prompts", measured("gpt2-outliers", "own_error"), suffices(epsilon), UNIT,
                    tuple(one.name for one in asked if one.at["tasks"] == tasks), unsettled=brief)
               for tasks, brief in (("all", BRIEF if s.gpt2.steps < LONG else ""), ("seen", ""))),
             Part(f"largest 0-1 error over α <= {mamba_limit:g} and three label rules", worst, suffices(epsilon), UNIT),
             Part("the same, minus the error without outliers", added, suffices(epsilon), SIGNED)),
            asked, figure="gpt2-outliers", ours=(*s.gpt2.unstated(), f"ε = {epsilon:.2g}, that of B = {s.gpt2.batch}"),
            afterwards=f"{GPT2} {OWN_BATCH}", beyond=True,
        ),
        Statement(
            "gpt2-fig1", "Beyond: Figure 1 asked of GPT-2",
            "GPT-2 is as robust as Mamba: error below 0.01 even when α is close to 0.8, where the linear Transformer's "
            "is large.",
            (Part("largest α with an error below 0.01, three label rules", at, above(0.65, "existence"), UNIT, found=at,
                  found_as="GPT-2 up to α = {:.2f}"),
             Part("linear Transformer's error minus GPT-2's, smallest over α >= 0.6 and label rules",
                  from_fraction(linear.sel(setting=TASKS) - error, 0.6).min("rule", skipna=False), larger(), SIGNED)),
            asked, figure="gpt2-outliers", ours=(*s.gpt2.unstated(), "the linear Transformer: on all 30 tasks"),
            afterwards=f"{GPT2} The rule was an error below 0.01 at every α <= 0.8, which Mamba would fail in Fig. 1, "
            "too; since then the largest α is searched for, as there.",
            beyond=True,
        ),
    ]  # fmt: skip

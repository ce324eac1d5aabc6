"""Beyond chain-of-thought: what (10) should say, where Theorem 1 ends, and the same questions to GPT-2."""

from __future__ import annotations

from iclab.authoring import (
    SIGNED,
    UNIT,
    Part,
    Scaling,
    Statement,
    above,
    apply,
    below,
    big_o,
    larger,
    measured,
    smaller,
)
from iclab.authoring.gpt2 import FEWER_SEEDS, best_head
from iclab.papers.chain_of_thought.gpt2 import own_steps
from iclab.papers.chain_of_thought.laws import attention_by_error
from iclab.papers.chain_of_thought.lemmas import NEW
from iclab.papers.chain_of_thought.settings import Settings, symbols
from iclab.statistics import trend

MASSES = tuple(f"{pattern}_pattern_{step}_step" for step in ("same", "other") for pattern in ("same", "other"))
GPT2_SEEN = (
    "Before the rule was written, GPT-2's training loss in domain had been seen (1 seed, two step sizes), and the "
    f"one-layer model's results. {FEWER_SEEDS}"
)


def beyond(s: Settings) -> list[Statement]:
    """What the paper does not ask."""
    eps = symbols(s).error
    deep, deep_cot, deep_icl = (own_steps(name) for name in ("error", "failing_cot", "failing_icl"))
    heads, column = measured("gpt2-training", MASSES[0]), measured("rare", "right_column")
    share = 0.4 / s.timed_patterns
    return [
        Statement("beyond-attention", "Beyond: Proposition 1 with the rate of (51)", "After the iterations (18) the "
                  "attention elsewhere is at most O(√ε).", (
            Part("iterations until (1-p)² stays below ε, in ε",
                 apply(attention_by_error, measured("training", MASSES[0]), 2.0),
                 Scaling("epsilon", -1.0, "ε", towards="small")),
        ), figure="edge", beyond=True, ours=("(51) makes (1-p)² smaller than ε, so that 1-p is √ε and not ε",),
            afterwards=NEW),
        Statement("beyond-rare", "Beyond: Theorem 1 where α is below 1/M", "Where fewer examples start from the "
                  "query's pattern than from any other one, training turns the attention away from it.", (
            Part("attention on same pattern and step, end minus start", column.last() - column.first(), smaller(),
                 SIGNED),
            Part("training loss at the end", measured("rare", "training_loss").last(), above(0.3)),
        ), figure="rare", beyond=True, afterwards=NEW,
            ours=(f"M = {s.timed_patterns}, α = {share:g}",
                  "the proof of Lemma F.6 has M >= Ω(K⁴ α⁻¹), the theorem has not",
                  "a loss above 0.3 is one that has not been learned: it begins near 0.45")),
        Statement("beyond-gpt2", "Beyond: Theorems 1 and 2, Figures 2(A) and 4 asked of GPT-2", "GPT-2's loss falls to "
                  "O(ε); on unseen patterns its CoT is right, the more so the larger α' is; if Condition 1 fails its "
                  "ICL error is large and its CoT error smaller.", (
            Part("(19) squared loss on fresh prompts", measured("gpt2-training", "loss"), big_o(eps),
                 (0.0, float("inf"))),
            Part("CoT error (7) at the largest α'", deep.last("fraction"), below(0.1), UNIT),
            Part("rank correlation of the CoT error with α'", apply(trend, deep, "fraction"), smaller(), SIGNED),
            Part("ICL error, Condition 1 failing", deep_icl, above(0.5), UNIT),
            Part("CoT error minus ICL error, Condition 1 failing", deep_cot - deep_icl, smaller(), SIGNED),
        ), figure="gpt2-steps", beyond=True,
            afterwards=f"{GPT2_SEEN} Since the second version bounds have been read as bounds.",
            ours=("'right': an error below 0.1, what Fig. 2 calls required, since l_ts stays at l_tr",
                  "'large': above 0.5; τ_o = 0.4, ρ_o = 0.1")),
        Statement("beyond-gpt2-attention", "Beyond: Figure 5 asked of GPT-2",
                  "In at least one head the query's attention moves onto columns of the same pattern and step.", (
            Part("attention mass at the end, in the layer and head with most", apply(best_head, heads, -1),
                 above(0.9, "existence"), UNIT),
            Part("gain in that head over training", apply(best_head, heads, -1) - apply(best_head, heads, 0), larger()),
        ), figure="gpt2-attention", afterwards=GPT2_SEEN, beyond=True,
            ours=("'around 1': above 0.9, as for the one-layer model; noisy test prompts",)),
    ]  # fmt: skip

"""Theorems of chain-of-thought: conditions and rates.

Where the paper disagrees with itself:
- The first term of T is η⁻¹ α⁻¹ K³ log(K/ε) in (18) and (57); Lemmas F.5 to F.7, from which it comes, have α⁻² (34).
  (57) adds up T_1 of (34) and loses a power of α. Both are given: "iterations" as stated, "first stage (34)" as the
  lemmas have it.
- (23) and (25) come from max{(ρ²α'τ)⁻¹, (ρα'τ)⁻²} log M, (63) and (83). The second part is Hoeffding's bound, which
  ignores that rare events have a small variance; for (25) even the exponent in (82) is -l ρ_o² α' B, the first part. So
  (ρ²α'τ)⁻¹ log M is a rival of the stated rate and given beside it: the exponents of α' and τ are -1 there and -2 in
  the theorem.
- u >= ½ log(η(1-α)²t/(α²M)) before (49) lacks the K that (49) and T_3 = η⁻¹ε⁻¹KM have. With K.
- (10) and (72) want 1 - p <= ε after the iterations (18); (51) makes (1-p)² <= ε, so that 1 - p is √ε. Both are asked.
- The proof of Lemma F.6 takes M >= Ω(K⁴ α⁻¹) before (163). No lemma or theorem states it.
- (67) needs noise that is orthogonal to the training patterns; (14) has it orthogonal to the test patterns only. As in
  (14).
- Section 2.2 has l_ts <= l_tr; (23) and (25) ask for any l_ts, however short the training prompts were. As in (23).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from iclab.theorems import Rate, SymbolsBase, Theorem, at_least, at_most, below, law, rate, require_above, symbol
from iclab.theorems import require_open_fraction as require_fraction

PAPER = "chain-of-thought"
Law = Callable[..., Rate]


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    """What the theorems speak of. `condition_1` is 1 where the right answer is the most probable one (24), else 0."""

    feature_dimension: float = symbol("d")
    patterns: float = symbol("M")
    test_patterns: float = symbol("M'")
    reasoning_steps: float = symbol("K")
    matching_fraction: float = symbol("α")
    test_matching_fraction: float = symbol("α'")
    trajectory_probability: float = symbol("τ")
    primacy: float = symbol("ρ")
    output_probability: float = symbol("τ_o")
    output_primacy: float = symbol("ρ_o")
    condition_1: float = symbol("(24)")
    noise_norm: float = symbol("‖δ‖")
    train_length: float = symbol("l_tr")
    test_length: float = symbol("l_ts")
    step_size: float = symbol("η")
    batch: float = symbol("B")
    steps: float = symbol("T")
    error: float = symbol("ε")


def smallest_error(batch: float, patterns: float) -> float:
    """The smallest ε for which B >= ε⁻² log M, the first part of condition (iii), holds with constant 1."""
    return math.sqrt(math.log(patterns) / batch)


def _first(s: Symbols) -> float:
    return math.log(s.reasoning_steps / s.error)


def _all_stages(s: Symbols) -> float:
    a, k = s.matching_fraction, s.reasoning_steps
    return k**3 / a * _first(s) + s.patterns * k * (1 / a + 1 / s.error)


iterations = law("iterations", "T = Ω(η⁻¹ α⁻¹ K³ log(K/ε) + η⁻¹ M K (α⁻¹ + ε⁻¹))", _all_stages, step_size=-1)
first_stage = law("first stage", "η⁻¹ α⁻¹ K³ log(K/ε)", _first, step_size=-1, matching_fraction=-1, reasoning_steps=3)
LEMMAS = ("first stage (34)", "T_1 = η⁻¹ α⁻² K³ log(K/ε)", _first, "Lemmas F.5 to F.7")
first_stage_of_lemmas = law(*LEMMAS, step_size=-1, matching_fraction=-2, reasoning_steps=3)
second_stage = law(
    "second stage", "T_2 = η⁻¹ M K α⁻¹", step_size=-1, patterns=1, reasoning_steps=1, matching_fraction=-1
)
last_stage = law("last stage", "T_3 = η⁻¹ M K ε⁻¹", step_size=-1, patterns=1, reasoning_steps=1, error=-1)
train_length = law("training length", "l_tr = Ω(α⁻¹)", matching_fraction=-1)


def _examples(who: str, tau: str, rho: str) -> tuple[Law, Law]:
    """l_ts of a theorem, and the rival that its proof allows."""
    letter, name = ("_o" if who == "ICL" else ""), f"examples for {who}"
    stated, rival = f"l_ts = Ω((α' τ{letter} ρ{letter})⁻² log M)", f"(ρ{letter}² α' τ{letter})⁻¹ log M"

    def needed(words: str, formula: str, power: float, note: str = "") -> Law:
        powers = {"test_matching_fraction": power, tau: power, rho: -2.0}
        return law(words, formula, lambda s: math.log(s.patterns), note, **powers)

    return needed(name, stated, -2.0), needed(f"{name}, rival", rival, -1.0, NOTES[who])


NOTES = {"CoT": "the smaller part of (63), by Chernoff's bound", "ICL": "the smaller part of (83), and what (82) gives"}
chain_length, rival_chain_length = _examples("CoT", "trajectory_probability", "primacy")
direct_length, rival_direct_length = _examples("ICL", "output_probability", "output_primacy")


def theorems(s: Symbols, constant: float = 1.0) -> tuple[Theorem, ...]:
    """All numbered statements with conditions or rates."""
    require_fraction(s, "error", "trajectory_probability", "primacy", "output_probability", "output_primacy")
    require_above(0, s, "matching_fraction", "test_matching_fraction")
    require_above(1, s, "patterns")
    c = constant
    log, t_1, learned = math.log(s.patterns), first_stage_of_lemmas(s, c), train_length(s, c)
    batch = at_least("batch", "B >= Ω(M log M)", s.batch, c * s.patterns * log)
    length = at_least("training length", "l_tr >= Ω(α⁻¹)", s.train_length, learned.value)
    after = at_least("time", "t >= T_1 of (34)", s.steps, t_1.value)
    holds = at_least("Condition 1", "f(μ_i) = argmax_j B_ij (24)", s.condition_1, 1)
    fails = at_most("Condition 1 fails", "not (24)", s.condition_1, 0)
    chain = at_least("(v) test length", "l_ts >= Ω((α' τ ρ)⁻² log M)", s.test_length, chain_length(s, c).value)
    direct = at_least("test length", "l_ts >= Ω((α' τ_o ρ_o)⁻² log M)", s.test_length, direct_length(s, c).value)
    trained = (
        dataclasses.replace(length, name="(i) training length"),
        at_least("(ii) iterations", "T >= Ω(...) of (18)", s.steps, iterations(s, c).value),
        at_least("(iii) batch, ε", "B >= Ω(ε⁻² log M)", s.batch, c * s.error**-2 * log),
        dataclasses.replace(batch, name="(iii) batch, M"),
        below("step size", "η < 1", s.step_size, 1),
        below("matching examples", "α <= 1 - c", s.matching_fraction, 1),
        at_most("patterns", "M <= d", s.patterns, s.feature_dimension),
    )
    tested = (  # Section C.1
        *trained,
        at_most("test patterns", "M' <= M", s.test_patterns, s.patterns),
        at_most("noise", "‖δ‖ <= √2/2", s.noise_norm, math.sqrt(0.5)),
    )
    return (
        Theorem(f"{PAPER}/thm1", "Theorem 1, training",
                "After T iterations the squared loss on prompts like the training ones is O(ε).", trained,
                (iterations(s, c), first_stage(s, c), t_1, second_stage(s, c), last_stage(s, c), learned)),
        Theorem(f"{PAPER}/thm2", "Theorem 2, chain of thought",
                "On test patterns in the span of the training ones, with noisy, erroneous examples, CoT never errs.",
                (*tested, chain), (chain_length(s, c), rival_chain_length(s, c))),
        Theorem(f"{PAPER}/thm3a", "Theorem 3(a), in-context learning fails",
                "Where Condition 1 fails, the error of ICL is at least Ω(1).",
                (*tested, fails), (rate("error of ICL", ">= Ω(1)", s, constant=c),)),
        Theorem(f"{PAPER}/thm3b", "Theorem 3(b), in-context learning",
                "Where Condition 1 holds, ICL makes no error, given enough examples.",
                (*tested, holds, direct), (direct_length(s, c), rival_direct_length(s, c))),
        Theorem(f"{PAPER}/prop1", "Proposition 1, attention",
                "At least 1 - ε of the attention is on columns of the same step with the query's pattern.",
                (*tested, chain), (rate("attention elsewhere", "<= ε", s, {"error": 1}),)),
        Theorem(f"{PAPER}/lemF.5", "Lemma F.5, first stage", "Until T_1 the weights on other steps fall.",
                (batch, length, at_most("time", "t <= O(T_1)", s.steps, t_1.value)), (t_1,)),
        Theorem(f"{PAPER}/lemF.6", "Lemma F.6, end of the first stage",
                "From T_1 on the attention on other steps is at most ε.",
                (batch, length, after), (t_1, rate("attention on other steps", "<= ε", s, {"error": 1}))),
        Theorem(f"{PAPER}/lemF.7", "Lemma F.7, second stage",
                "From T_1 on the weight on the same step and pattern grows, by at least this much a step.",
                (batch, length, after),
                (rate("growth per step", ">= (η/2M) 4p(1-p)², at p = 1/3", s, {"step_size": 1, "patterns": -1},
                      constant=0.5 * 4 / 3 * (2 / 3) ** 2, note="p: attention on the target; largest at 1/3"),)),
    )  # fmt: skip

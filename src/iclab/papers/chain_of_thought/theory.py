"""Theorems of chain-of-thought: conditions and rates.

Where the paper disagrees with itself:
- The first term of T is η⁻¹ α⁻¹ K³ log(K/ε) in (18) and (57); Lemmas F.5 to F.7, from which it comes, have α⁻² (34). (57) adds
  up T_1 of (34) and loses a power of α. Both are given: "iterations" as stated, "first stage (34)" as the lemmas have it.
- (23) and (25) come from max{(ρ²α'τ)⁻¹, (ρα'τ)⁻²} log M, (63) and (83). The second part is Hoeffding's bound, which ignores
  that rare events have a small variance; for (25) even the exponent in (82) is -l ρ_o² α' B, the first part. So (ρ²α'τ)⁻¹ log M
  is a rival of the stated rate and given beside it: the exponents of α' and τ are -1 there and -2 in the theorem.
- u >= ½ log(η(1-α)²t/(α²M)) before (49) lacks the K that (49) and T_3 = η⁻¹ε⁻¹KM have. With K.
"""

from __future__ import annotations

import dataclasses
import math

from iclab.theorems import (
    Condition,
    Rate,
    SymbolsBase,
    Theorem,
    at_least,
    at_most,
    below,
    rate,
    require_above,
    require_open_fraction,
    symbol,
)

PAPER = "chain-of-thought"


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    """What the theorems speak of. `condition_1` is 1 where the right answer is the most probable output (24), else 0."""

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


def _log(s: Symbols) -> float:
    return math.log(s.patterns)


def _first(s: Symbols) -> float:
    return math.log(s.reasoning_steps / s.error)


def first_stage(s: Symbols, constant: float = 1.0) -> Rate:
    """The first term of (18): attention leaves the other steps."""
    powers = {"step_size": -1, "matching_fraction": -1, "reasoning_steps": 3}
    return rate("first stage", "η⁻¹ α⁻¹ K³ log(K/ε)", s, powers, _first, constant)


def first_stage_of_lemmas(s: Symbols, constant: float = 1.0) -> Rate:
    """T_1 of (34)."""
    powers = {"step_size": -1, "matching_fraction": -2, "reasoning_steps": 3}
    return rate("first stage (34)", "T_1 = η⁻¹ α⁻² K³ log(K/ε)", s, powers, _first, constant, "Lemmas F.5 to F.7")


def second_stage(s: Symbols, constant: float = 1.0) -> Rate:
    """T_2 of (46): attention starts to leave the other patterns."""
    powers = {"step_size": -1, "patterns": 1, "reasoning_steps": 1, "matching_fraction": -1}
    return rate("second stage", "T_2 = η⁻¹ M K α⁻¹", s, powers, constant=constant)


def last_stage(s: Symbols, constant: float = 1.0) -> Rate:
    """T_3 of (54): the loss falls to ε."""
    powers = {"step_size": -1, "patterns": 1, "reasoning_steps": 1, "error": -1}
    return rate("last stage", "T_3 = η⁻¹ M K ε⁻¹", s, powers, constant=constant)


def iterations(s: Symbols, constant: float = 1.0) -> Rate:
    """T of (18), the sum of the three stages: a power of η only."""

    def law(at: Symbols) -> float:
        a, k = at.matching_fraction, at.reasoning_steps
        return k**3 / a * _first(at) + at.patterns * k * (1 / a + 1 / at.error)

    formula = "T = Ω(η⁻¹ α⁻¹ K³ log(K/ε) + η⁻¹ M K (α⁻¹ + ε⁻¹))"
    return rate("iterations", formula, s, {"step_size": -1}, law, constant)


def chain_length(s: Symbols, constant: float = 1.0) -> Rate:
    """l_ts of (23)."""
    powers = {"test_matching_fraction": -2, "trajectory_probability": -2, "primacy": -2}
    return rate("examples for CoT", "l_ts = Ω((α' τ ρ)⁻² log M)", s, powers, _log, constant)


def rival_chain_length(s: Symbols, constant: float = 1.0) -> Rate:
    """The first part of (63)."""
    powers = {"test_matching_fraction": -1, "trajectory_probability": -1, "primacy": -2}
    note = "the smaller part of (63), by Chernoff's bound"
    return rate("examples for CoT, rival", "(ρ² α' τ)⁻¹ log M", s, powers, _log, constant, note)


def direct_length(s: Symbols, constant: float = 1.0) -> Rate:
    """l_ts of (25)."""
    powers = {"test_matching_fraction": -2, "output_probability": -2, "output_primacy": -2}
    return rate("examples for ICL", "l_ts = Ω((α' τ_o ρ_o)⁻² log M)", s, powers, _log, constant)


def rival_direct_length(s: Symbols, constant: float = 1.0) -> Rate:
    """The first part of (83)."""
    powers = {"test_matching_fraction": -1, "output_probability": -1, "output_primacy": -2}
    note = "the smaller part of (83), and what (82) gives"
    return rate("examples for ICL, rival", "(ρ_o² α' τ_o)⁻¹ log M", s, powers, _log, constant, note)


def train_length(s: Symbols, constant: float = 1.0) -> Rate:
    """l_tr of (17)."""
    return rate("training length", "l_tr = Ω(α⁻¹)", s, {"matching_fraction": -1}, constant=constant)


def training(s: Symbols, c: float = 1.0) -> tuple[Condition, ...]:
    """Conditions (i) to (iii) of Theorem 1, and the model of the data."""
    return (
        at_least("(i) training length", "l_tr >= Ω(α⁻¹)", s.train_length, train_length(s, c).value),
        at_least("(ii) iterations", "T >= Ω(...) of (18)", s.steps, iterations(s, c).value),
        at_least("(iii) batch, ε", "B >= Ω(ε⁻² log M)", s.batch, c * s.error**-2 * _log(s)),
        at_least("(iii) batch, M", "B >= Ω(M log M)", s.batch, c * s.patterns * _log(s)),
        below("step size", "η < 1", s.step_size, 1),
        below("matching examples", "α <= 1 - c", s.matching_fraction, 1),
        at_most("patterns", "M <= d", s.patterns, s.feature_dimension),
    )


def testing(s: Symbols) -> tuple[Condition, ...]:
    """What Section C.1 asks of the test prompts."""
    return (
        at_most("test patterns", "M' <= M", s.test_patterns, s.patterns),
        at_most("noise", "‖δ‖ <= √2/2", s.noise_norm, math.sqrt(0.5)),
    )


def theorems(s: Symbols, constant: float = 1.0) -> tuple[Theorem, ...]:
    """All numbered statements with conditions or rates."""
    require_open_fraction(s, "error", "trajectory_probability", "primacy", "output_probability", "output_primacy")
    require_above(0, s, "matching_fraction", "test_matching_fraction")
    require_above(1, s, "patterns")
    c = constant
    trained = training(s, c)
    chain = at_least("(v) test length", "l_ts >= Ω((α' τ ρ)⁻² log M)", s.test_length, chain_length(s, c).value)
    batch = at_least("batch", "B >= Ω(M log M)", s.batch, c * s.patterns * _log(s))
    length = at_least("training length", "l_tr >= Ω(α⁻¹)", s.train_length, train_length(s, c).value)
    after = at_least("time", "t >= T_1 of (34)", s.steps, first_stage_of_lemmas(s, c).value)
    holds = at_least("Condition 1", "f(μ_i) = argmax_j B_ij (24)", s.condition_1, 1)
    return (
        Theorem(
            f"{PAPER}/thm1", "Theorem 1, training",
            "After T iterations the squared loss on prompts like the training ones is O(ε).",
            trained,
            (iterations(s, c), first_stage(s, c), first_stage_of_lemmas(s, c), second_stage(s, c), last_stage(s, c),
             train_length(s, c)),
        ),
        Theorem(
            f"{PAPER}/thm2", "Theorem 2, chain of thought",
            "On test patterns in the span of the training ones, with noisy and erroneous examples, CoT makes no error.",
            (*trained, *testing(s), chain),
            (chain_length(s, c), rival_chain_length(s, c)),
        ),
        Theorem(
            f"{PAPER}/thm3a", "Theorem 3(a), in-context learning fails",
            "Where Condition 1 fails, the error of ICL is at least Ω(1).",
            (*trained, *testing(s), at_most("Condition 1 fails", "not (24)", s.condition_1, 0)),
            (rate("error of ICL", ">= Ω(1)", s, constant=c),),
        ),
        Theorem(
            f"{PAPER}/thm3b", "Theorem 3(b), in-context learning",
            "Where Condition 1 holds, ICL makes no error, given enough examples.",
            (*trained, *testing(s), holds,
             at_least("test length", "l_ts >= Ω((α' τ_o ρ_o)⁻² log M)", s.test_length, direct_length(s, c).value)),
            (direct_length(s, c), rival_direct_length(s, c)),
        ),
        Theorem(
            f"{PAPER}/prop1", "Proposition 1, attention",
            "At least 1 - ε of the attention is on columns of the same step with the query's pattern.",
            (*trained, *testing(s), chain),
            (rate("attention elsewhere", "<= ε", s, {"error": 1}),),
        ),
        Theorem(
            f"{PAPER}/lemF.5", "Lemma F.5, first stage",
            "Until T_1 the weights on other steps fall.",
            (batch, length, at_most("time", "t <= O(T_1)", s.steps, first_stage_of_lemmas(s, c).value)),
            (first_stage_of_lemmas(s, c),),
        ),
        Theorem(
            f"{PAPER}/lemF.6", "Lemma F.6, end of the first stage",
            "From T_1 on the attention on other steps is at most ε.",
            (batch, length, after),
            (first_stage_of_lemmas(s, c), rate("attention on other steps", "<= ε", s, {"error": 1})),
        ),
        Theorem(
            f"{PAPER}/lemF.7", "Lemma F.7, second stage",
            "From T_1 on the weight on the same step and pattern grows, by at least this much a step.",
            (batch, length, after),
            (rate("growth per step", ">= (η/2M) 4p(1-p)², at p = 1/3", s, {"step_size": 1, "patterns": -1},
                  lambda at: 0.5 * 4 * (1 / 3) * (2 / 3) ** 2, note="p: attention on the target; largest at 1/3"),),
        ),
    )  # fmt: skip

"""Theorems of vector-arithmetic: conditions and rates.

Condition 3.1 writes its constant out: thresholds are C times a bound from below and 1/C times a bound from above, for
"some sufficiently large C"; `constant` is this C, and the constant of Ω and O in the propositions.

Where the paper disagrees with itself:
- The upper bound of q_V in Condition 3.1 divides by log(d^(-1/2) √log(K'²/δ)), which is negative as soon as
  d > log(K'²/δ), so no q_V could meet it. The reciprocal inside the logarithm is taken: log(√d / √log(K'²/δ)).
  Even so, the bounds on q_V are σ_1² d times C/log(...) and 1/(C log(...)): a large C leaves nothing between them. At
  the printed sizes (δ = 0.1) they are 0.0098 and 0.027 for C = 1 and exclude each other from C = 1.66 on; the printed
  q_V = 1e-5 is below both.
- T* of Lemma 4.3 is printed with σ_1⁻¹, with σ_1² in Proposition 3.3 and in Lemmas F.8, F.9, G.3. σ_1² is taken.
- t_2* of Lemma F.5 has σ_1 in the statement, σ_1² in the proof; T_1 of Lemma F.1 needs σ_1², which is taken.
- Section 4.1 says ‖W_V S π‖ = Θ(σ_1 d); (51) has σ_1 d^(1/2), which the rate of Lemma 4.1 uses.
- The square roots of Lemma 4.3 end before (a' W_V a)² in print; solving c' = b/c (Lemma D.3) puts it under the root.
  The rate given is the growing term alone.
- Lemma 4.3's lower bound on attention saturates (its exponent is -1/t) and is not a power law: not given.
- Theorem 3.2 says t = Ω(T_1), Proposition 3.3 t = O(T*), "there exists t": T_1 is taken as the time needed for the
  first, T* as the time within which the second happens.
- Proposition 3.4 asks for Σ|X|, Σ|Y| = o(J/10), but every word and label has one concept at least, so that the sums are
  J at least. What is asked is that other concepts than the co-tasks are rare.
- Section 4.2 ends with "the components ±b remain negligible" for P_T and P_QA^T; (13) and Theorem 3.2 say the opposite.
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

PAPER = "vector-arithmetic"


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    """What the theorems speak of. Scales are those at this d."""

    dimension: float = symbol("d")
    concepts: float = symbol("K")
    common_tokens: float = symbol("K'")
    samples: float = symbol("N")
    common_length: float = symbol("M")
    pairs: float = symbol("J")
    prompt_length: float = symbol("L")
    attention_scale: float = symbol("σ_0")
    value_scale: float = symbol("σ_1")
    noise_scale: float = symbol("σ_p")
    step_size: float = symbol("η")
    value_step_scale: float = symbol("q_V")
    steps: float = symbol("T")
    epoch: float = symbol("t")  # the time at which the laws of growth of Lemmas 4.1 to 4.3 are evaluated
    cotasks: float = symbol("|𝒦|")
    error: float = symbol("ε")
    failure: float = symbol("δ")


def first_phase(s: Symbols, constant: float = 1.0) -> Rate:
    """T_1, the end of linear growth (Lemma F.1) and the time of Theorem 3.2."""
    powers = {"step_size": -1, "value_step_scale": -1, "value_scale": 2, "dimension": 1, "concepts": 1}
    return rate("epochs to retrieval", "T_1 = Θ((η q_V)⁻¹ σ_1² d K)", s, powers, constant=constant)


def convergence(s: Symbols, constant: float = 1.0) -> Rate:
    """T* of Proposition 3.3."""
    powers = first_phase(s).exponents | {"dimension": 2, "common_length": 1}
    formula = "T* = O((η q_V)⁻¹ σ_1² d² K M log 1/ε)"
    return rate("epochs to convergence", formula, s, powers, lambda at: math.log(1 / at.error), constant)


def pairs(at: Symbols) -> float:
    """J* of Proposition 3.3."""
    return math.log(1 / at.error) / (2 * math.log(at.concepts))


def noise(at: Symbols) -> float:
    """σ_p* √K of Proposition 3.3."""
    return math.log(at.prompt_length / at.error) ** -0.5


def slow_attention(at: Symbols) -> float:
    """(W_Q a)ᵀ(W_K a) in the second phase, from above (Lemma 4.3): a power of t that depends on q_V."""
    spread = at.value_scale**2 * at.dimension
    base = at.step_size * at.value_step_scale * at.epoch / (spread * at.concepts * at.common_length)
    logarithm = spread / at.value_step_scale + at.common_length / (16 * at.value_step_scale) * math.log(base)
    return at.attention_scale**2 * at.dimension * (math.exp(logarithm) if logarithm < 700 else math.inf)


def value_scale_bounds(s: Symbols, constant: float = 1.0) -> tuple[float, float]:
    """The bounds of q_V in Condition 3.1, with the reciprocal inside the second logarithm (see above)."""
    spread = s.value_scale**2 * s.dimension
    inner = (
        math.log((s.common_length - 1) / 0.06) / (s.attention_scale**2 * s.dimension) if s.common_length > 1 else 0.0
    )
    lower_log = math.log(inner) if inner > 1 else 0.0
    upper_log = math.log(math.sqrt(s.dimension / math.log(s.common_tokens**2 / s.failure)))
    low = constant * spread / lower_log if lower_log > 0 else math.inf
    return low, spread / (constant * upper_log) if upper_log > 0 else math.inf


def condition_3_1(s: Symbols, c: float = 1.0) -> tuple[Condition, ...]:
    """Condition 3.1, item by item."""
    d, k, common, n, m = s.dimension, s.concepts, s.common_tokens, s.samples, s.common_length
    scale, q, eta, root = s.value_scale, s.value_step_scale, s.step_size, math.sqrt(d)
    sure, tokens = math.log(1 / s.failure), math.log(common**2 / s.failure)
    low, high = value_scale_bounds(s, c)
    attention = (d * tokens) ** -0.25 * math.sqrt(math.log(m)) / c
    fast = scale**2 * root * k * math.sqrt(tokens) / (q * c)
    faster = scale * root * m**4 / (c * (m - 1) ** 2) if m > 1 else math.inf
    return (
        at_least("1. dimension", "d >= C M² log(K'²N²M²/δ)", d, c * m**2 * math.log((common * n * m) ** 2 / s.failure)),
        at_least("2. samples, K", "N >= C K log(1/δ)", n, c * k * sure),
        at_least("2. samples, K'", "N >= C K K' log(1/δ)/M", n, c * k * common * sure / m),
        at_least("3. concepts", "K >= C log(1/δ)", k, c * sure),
        at_least("3. common tokens", "K' >= C max{M, K}", common, c * max(m, k)),
        at_most("4. value scale, d", "σ_1 <= d^(-1/2)/C", scale, 1 / (c * root)),
        at_most("4. value scale, q_V", "σ_1 <= √q_V log(K'²/δ)/C", scale, math.sqrt(q) * tokens / c),
        at_most("4. attention scale, M", "σ_0 <= (d log(K'²/δ))^(-1/4) √log M /C", s.attention_scale, attention),
        at_most("4. attention scale, d", "σ_0 <= d^(-1/2)/C", s.attention_scale, 1 / (c * root)),
        at_most("5. noise", "σ_p <= d^(-1/2)/C", s.noise_scale, 1 / (c * root)),
        at_least("6. q_V, from below", "q_V >= Cσ_1²d/log(log((M-1)/0.06)/(σ_0²d))", q, low),
        at_most("6. q_V, from above", "q_V <= σ_1²d/(C log √(d/log(K'²/δ)))", q, high),
        at_most("6. step size, q_V", "η <= σ_1² √d K √log(K'²/δ)/(q_V C)", eta, fast),
        at_most("6. step size, M", "η <= σ_1 √d M⁴/(C (M-1)²)", eta, faster),
    )


def theorems(s: Symbols, constant: float = 1.0) -> tuple[Theorem, ...]:
    """All numbered statements with conditions or rates; laws of growth are without the terms of the initialisation."""
    require_open_fraction(s, "error", "failure")
    require_above(0, s, "epoch", "cotasks", "value_step_scale", "value_scale", "attention_scale")
    require_above(1, s, "concepts", "common_tokens")
    c = constant
    base, early, late = condition_3_1(s, c), first_phase(s, c), convergence(s, c)
    in_first = at_most("first phase", "t <= T_1", s.epoch, early.value)
    many = math.log((2 * s.concepts + s.common_tokens) ** 2 * (s.samples * s.common_length) ** 2 / s.failure)
    sure = math.log(1 / s.failure)
    step = {"step_size": 1, "value_step_scale": 1, "epoch": 1}
    linear = step | {"value_scale": -1, "dimension": -0.5, "concepts": -1}
    square = {"step_size": 2, "value_step_scale": 1, "attention_scale": 2, "epoch": 2}
    slow = dict.fromkeys(step, 0.5) | {"concepts": -0.5}
    return (
        Theorem(f"{PAPER}/thm3.2", "Theorem 3.2, task vector retrieval",
            "Trained on QA, h_0 points to the task vector a_k*; on ICL or QA-ICL, to a hybrid of a_k* and b_k*.",
            (*base, at_least("epochs", "t = Ω((η q_V)⁻¹ σ_1² d K)", s.steps, early.value)), (early,)),
        Theorem(f"{PAPER}/prop3.3", "Proposition 3.3, test losses",
            "Trained on QA, the test error is at most ε at some time; trained on ICL or QA-ICL, it stays constant.",
            (*base,
             at_least("pairs", "J* >= Ω(log(1/ε)/(2 log K))", s.pairs, c * pairs(s)),
             at_most("test noise", "σ_p* <= O((K log(L/ε))^(-1/2))", s.noise_scale, c * s.concepts**-0.5 * noise(s)),
             at_least("epochs", "T >= O((η q_V)⁻¹ σ_1² d² K M log 1/ε)", s.steps, late.value)),
            (late,
             rate("pairs in a prompt", "J* = Ω(log(1/ε) / (2 log K))", s, factor=pairs, constant=c),
             rate("noise allowed", "σ_p* = O((K log(L/ε))^(-1/2))", s, {"concepts": -0.5}, noise, c))),
        Theorem(f"{PAPER}/prop3.4", "Proposition 3.4, out-of-domain generalisation",
            "Trained on QA, the model handles new dictionaries (mixtures of a's; new b's, ν's) and several co-tasks.",
            (*base, below("co-tasks", "|𝒦| < 4", s.cotasks, 4)),
            (rate("new high-level concepts", "K_a* <= K", s, {"concepts": 1}),)),
        Theorem(f"{PAPER}/lem4.1", "Lemma 4.1 (F.5, G.1), first phase: W_V",
            "aᵀW_V a grows in proportion to time until T_1; so do some bᵀW_V b when trained on ICL or QA-ICL.",
            (*base, in_first),
            (early,
             rate("aᵀW_V a, from below", "η q_V t / (σ_1 √d M K)", s, linear | {"common_length": -1}, constant=c),
             rate("aᵀW_V a, from above", "η q_V t / (σ_1 √d K)", s, linear, constant=c),
             rate("bᵀW_V b at T_1, from below", "σ_1 √d / M", s,
                  {"value_scale": 1, "dimension": 0.5, "common_length": -1}, constant=c, note="on ICL or QA-ICL"))),
        Theorem(f"{PAPER}/lem4.2", "Lemma 4.2 (F.7, G.2), first phase: attention",
            "(W_Q a)ᵀ(W_K a) grows at least with the square of time, at most like exp(t²).",
            (*base, in_first),
            (rate("(W_Q a)ᵀ(W_K a), from below", "η² q_V σ_0² t² / (σ_1² M² K²)", s,
                  square | {"value_scale": -2, "common_length": -2, "concepts": -2}, constant=c),
             rate("wait before the growth, at most", "t_3 = (η q_V)⁻¹ σ_1² √d M K √(2 log(8(2K+K')²/δ))", s,
                  early.exponents | {"dimension": 0.5, "common_length": 1},
                  lambda at: math.sqrt(2 * math.log(8 * (2 * at.concepts + at.common_tokens) ** 2 / at.failure)), c))),
        Theorem(f"{PAPER}/lem4.3", "Lemma 4.3 (F.8, F.9, G.3), second phase",
            "aᵀW_V a grows with the square root of time; so do some bᵀW_V b when trained on ICL or QA-ICL.",
            (*base,
             at_least("second phase", "t >= T_1", s.epoch, early.value),
             at_most("second phase, end", "t <= T*", s.epoch, late.value)),
            (rate("aᵀW_V a, from below", "√(η q_V t / (M K))", s, slow | {"common_length": -0.5}, constant=c),
             rate("aᵀW_V a, from above", "√(η q_V t / K)", s, slow, constant=c),
             rate("(W_Q a)ᵀ(W_K a), from above", "σ_0² d exp(σ_1² d/q_V) (η q_V t/(σ_1² d K M))^(M/16q_V)", s,
                  factor=slow_attention, constant=c))),
        Theorem(f"{PAPER}/lemD.7", "Lemmas D.7 to D.9, initial products",
            "Noise vectors and initial projections have their typical sizes.",
            (at_least("dimension", "d >= Ω(log((2K+K')²N²M²/δ))", s.dimension, c * many),)),
        Theorem(f"{PAPER}/lemD.10", "Lemma D.10, samples per concept", "A concept and sign has about N/(2K) samples.",
            (at_least("samples", "N >= Ω(K log(1/δ))", s.samples, c * s.concepts * sure),
             at_least("concepts", "K >= Ω(log(1/δ))", s.concepts, c * sure)),
            (rate("samples per concept and sign", "N/(2K)", s, {"samples": 1, "concepts": -1}, lambda at: 0.5),)),
        Theorem(f"{PAPER}/lemD.11", "Lemma D.11, common tokens per concept",
            "Every common token is seen with every concept.",
            (at_least("samples", "N >= Ω(K K' log(1/δ)/M)", s.samples,
                      c * s.concepts * s.common_tokens * sure / s.common_length),)),
    )  # fmt: skip

"""Theorems of nonlinear-icl: conditions and rates.

Where the paper disagrees with itself:
- T in (10) has no δ; the proof ends in (83) with an extra δ^(-2/3). Both are given. (83) itself is (82) solved for T
  with a = m ~ M1²: for any m, (82) gives T ~ η⁻¹ (m²/M1)^(1/3) (δ α β)^(-2/3), the third rate of Theorem 3.3. All three
  agree on α, β and η; they differ in M1 at fixed m: 1 against -1/3.
- a is ±1/m in Section 2.3 and ±1/√m in Algorithm 1. (10) has no m, whose lower bound (i) grows like M1² log M1.
- (28) lets the response along a pattern of the same training task vanish; (98) takes it as 1/M1 of the own one.
- (19) says "any" irrelevant pattern; along the one that p itself carries, W p keeps δ β |κ| from the initialisation,
  which (99) leaves out.
- l_tr in (9) is log M1/α; the proof has 2 log M1/α (64), and its lemmas ask for max{M1, M2} log M1 before (133).
- l_ts >= 1/α' in (9) and (89), with "at least a fraction α'" of matching examples; Section 3.2 says α'/2. (9) is taken.
- m ≳ 1 in (165), M1² in Lemmas B.5 and B.7, M1² log M1 in the theorem and Lemma B.10. Each as printed.
- Corollary 4.3 says 1/M1^C for any C > 1; its proof, (78) and (92), gives (2-α)/α · 1/M1. C = 1 is taken.
- "a fraction (M1-1)^(-1/2) of the tasks": M1 tasks out of M1(M1-1) are the fraction 1/(M1-1).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

from iclab.theorems import (
    Condition,
    Rate,
    SymbolsBase,
    Theorem,
    at_least,
    at_most,
    rate,
    require_above,
    require_open_fraction,
    symbol,
)

PAPER = "nonlinear-icl"


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    """What the theorems speak of."""

    relevant_patterns: float = symbol("M1")
    irrelevant_patterns: float = symbol("M2")
    pattern_strength: float = symbol("β")
    irrelevant_size: float = symbol("K")
    matching_fraction: float = symbol("α")
    test_matching_fraction: float = symbol("α'")
    train_length: float = symbol("l_tr")
    test_length: float = symbol("l_ts")
    neurons: float = symbol("m")
    initial_scale: float = symbol("δ")
    step_size: float = symbol("η")
    batch: float = symbol("B")
    steps: float = symbol("T")
    training_tasks: float = symbol("|T_tr|")
    mixture_sum: float = symbol("S_1")  # the smallest sum of coefficients of the out-of-domain patterns
    pruned_fraction: float = symbol("R")
    error: float = symbol("ε")


def smallest_error(batch: float, relevant_patterns: float) -> float:
    """The smallest ε for which B >= ε⁻² log M1, the first part of condition (ii), holds with constant 1."""
    return math.sqrt(math.log(relevant_patterns) / batch)


def _log(s: Symbols) -> float:
    return math.log(s.relevant_patterns)


def iterations(s: Symbols, constant: float = 1.0) -> Rate:
    """T of (10)."""
    powers = {"relevant_patterns": 1, "matching_fraction": -2 / 3, "pattern_strength": -2 / 3, "step_size": -1}
    formula = "T = Θ(η⁻¹ M1 α^(-2/3) β^(-2/3) √log M1)"
    return rate("iterations", formula, s, powers, lambda at: math.sqrt(_log(at)), constant)


def train_length(s: Symbols, constant: float = 1.0) -> Rate:
    """l_tr of (9), its first part."""
    formula = "l_tr = Ω(α⁻¹ log M1)"
    return rate("training length", formula, s, {"matching_fraction": -1}, _log, constant)


def samples(s: Symbols, constant: float = 1.0) -> Rate:
    """N = BT at the smallest B and T that the theorem allows."""

    def smallest_batch(at: Symbols) -> float:
        return constant * max(at.error**-2, at.relevant_patterns) * _log(at) * math.sqrt(_log(at))

    formula = "N = B T at the bounds of (ii) and (iv)"
    return rate("samples", formula, s, iterations(s).exponents, smallest_batch, constant)


def training(s: Symbols, c: float = 1.0) -> tuple[Condition, ...]:
    """Condition 3.2, conditions (i) to (iv) of Theorem 3.3 and the model of the data."""
    m1, alpha = s.relevant_patterns, s.matching_fraction
    return (
        at_least("training tasks", "|T_tr| >= M1", s.training_tasks, m1),  # Condition 3.2, by Lemma B.11
        at_least("(i) neurons", "m >= Ω(M1² log M1)", s.neurons, c * m1**2 * _log(s)),
        at_least("(ii) batch, ε", "B >= Ω(ε⁻² log M1)", s.batch, c * s.error**-2 * _log(s)),
        at_least("(ii) batch, M1", "B >= Ω(M1 log M1)", s.batch, c * m1 * _log(s)),
        at_least("(iii) training length", "l_tr >= Ω(α⁻¹ log M1)", s.train_length, c * _log(s) / alpha),
        at_least(
            "(iii) training length, β", "l_tr >= Ω(1/(β² α))", s.train_length, c / (s.pattern_strength**2 * alpha)
        ),
        at_least("(iii) test length", "l_ts >= 1/α'", s.test_length, 1 / s.test_matching_fraction),
        at_least("(iv) iterations", "T >= Θ(η⁻¹ M1 (αβ)^(-2/3) √log M1)", s.steps, iterations(s, c).value),
        at_most("step size", "η <= 1", s.step_size, 1),
        at_least("pattern strength", "β >= 1", s.pattern_strength, 1),  # from here on: Sections 2.3 and 3.2
        at_most("irrelevant size", "K <= 1/2", s.irrelevant_size, 0.5),
        at_most("irrelevant patterns", "M2 <= O(M1)", s.irrelevant_patterns, c * m1),
        at_most("initial scale", "δ <= 0.2", s.initial_scale, 0.2),
    )


def theorems(s: Symbols, constant: float = 1.0) -> tuple[Theorem, ...]:
    """All numbered statements with conditions or rates."""
    require_open_fraction(s, "error", "pruned_fraction")
    positive = ("mixture_sum", "training_tasks", "matching_fraction", "test_matching_fraction", "pattern_strength")
    require_above(0, s, *positive)
    require_above(1, s, "relevant_patterns")
    c, m1, samples_drawn = constant, s.relevant_patterns, s.batch * s.steps
    trained, log = training(s, c), math.log(s.relevant_patterns)
    law = functools.partial(rate, symbols=s, constant=c)  # an Ω, O or Θ
    needed, tested = iterations(s, c), rate("test length", "l_ts = α'⁻¹", s, {"test_matching_fraction": -1})
    output = dict.fromkeys(("initial_scale", "matching_fraction", "pattern_strength"), -2 / 3)
    output |= {"neurons": 2 / 3, "relevant_patterns": -1 / 3, "step_size": -1}
    batch_m1 = at_least("batch", "B >= Ω(M1)", s.batch, c * m1)
    wide = at_least("neurons", "m >= Ω(M1²)", s.neurons, c * m1**2)
    covered = at_least(
        "training length",
        "l_tr >= Ω(max{1, 1/(α β²)})",
        s.train_length,
        c * max(1.0, 1 / (s.matching_fraction * s.pattern_strength**2)),
    )
    growing = {
        "relevant_patterns": 0.5,
        "initial_scale": 1,
        "matching_fraction": 1,
        "step_size": 1,
        "steps": 1,
        "neurons": -1,
    }
    found: tuple[Any, ...] = (
        ("thm3.3", "Theorem 3.3, in-domain generalisation",
         "After T iterations the hinge loss over all tasks, seen and unseen, is O(ε).", trained,
         (needed,
          law("iterations (83)", "T = Θ(η⁻¹ M1 δ^(-2/3) α^(-2/3) β^(-2/3) √log M1)", note="the proof's last line",
              powers=needed.exponents | {"initial_scale": -2 / 3}, factor=lambda at: math.sqrt(_log(at))),
          law("iterations (82)", "T ~ η⁻¹ (m²/M1)^(1/3) (δ α β)^(-2/3)", powers=output,
              note="(82) solved for T at a = m, without m ~ M1²"),
          train_length(s, c), tested, samples(s, c))),
        ("thm3.4", "Theorem 3.4, out-of-domain generalisation",
         "On mixtures of the relevant patterns, with irrelevant ones in the span of the ν's, the loss is O(ε) too.",
         (*trained, at_least("mixtures", "S_j = Σ_i k_ji >= 1", s.mixture_sum, 1)), (tested,)),
        ("thm3.7", "Theorem 3.7, pruning",
         "A constant fraction of the neurons is large, the others are small; removing the small ones costs little, "
         "removing a fraction R of the large ones costs Ω(R).",
         (*trained, at_least("matching examples", "α' >= Ω(M1^(-1/2))", s.test_matching_fraction, c * m1**-0.5)),
         (rate("norm of small neurons", "‖r_i‖ <= M2^(-1/2)", s, {"irrelevant_patterns": -0.5}),
          law("loss without small ones", "<= O(ε + M1^(-1/2))",
              factor=lambda at: at.error + at.relevant_patterns**-0.5),
          law("loss without large ones", ">= Ω(R + (α' M1)⁻¹)",
              factor=lambda at: at.pruned_fraction + 1 / (at.test_matching_fraction * at.relevant_patterns)))),
        ("prop4.1", "Proposition 4.1, attention weights",
         "W_Q and W_K map an embedding mainly to its own relevant pattern.", trained,
         (law("own component", ">= Ω(√log M1)", factor=lambda at: math.sqrt(_log(at))),
          law("other components", "<= O(√log M1 (1/M1 + 1/M2))",
              factor=lambda at: math.sqrt(_log(at)) * (1 / at.relevant_patterns + 1 / at.irrelevant_patterns)))),
        ("cor4.3", "Corollary 4.3, attention", "Attention concentrates on the examples that share the query's pattern.",
         trained, (law("attention elsewhere", "<= Θ(M1⁻¹)", powers={"relevant_patterns": -1},
                       note="printed as M1^(-C) for any C > 1; its proof gives C = 1"),)),
        ("prop4.5", "Proposition 4.5, neurons", "The large neurons point to the mean relevant pattern and to ±q.",
         trained, (law("1 - cosine to the mean pattern", "<= Θ(1)/M2", powers={"irrelevant_patterns": -1}),
          law("1 - cosine to the label", "<= Θ(1)/M1", powers={"relevant_patterns": -1}))),
        ("lemB.5", "Lemma B.5, updates of W_Q and W_K",
         "The projection on the own pattern grows; those on other patterns grow less by these ratios.",
         (wide, at_least("batch", "B >= Ω(M1 log M1)", s.batch, c * m1 * log),
          at_least("training length", "l_tr >= Ω(1)", s.train_length, c),
          at_least("pattern strength", "β >= 1", s.pattern_strength, 1)),
         (law("other relevant / own", "<= O(1/M1)", powers={"relevant_patterns": -1}),
          law("irrelevant / own", "<= O(1/M2)", powers={"irrelevant_patterns": -1}))),
        ("lemB.6", "Lemma B.6, updates of W_V", "W_V collects the rows of W_O of the lucky neurons.",
         (covered, at_least("samples", "B T >= Θ(M1²)", samples_drawn, c * m1**2), batch_m1),
         (law("unlucky neurons' share", "<= O(√(log B / B) / m)", powers={"batch": -0.5, "neurons": -1},
              factor=lambda at: math.sqrt(math.log(at.batch))),)),
        ("lemB.7", "Lemma B.7, updates of W_O", "The rows of lucky neurons grow in proportion to time.",
         (wide, at_least("samples", "B T >= Ω(M1 log M1)", samples_drawn, c * m1 * log), batch_m1),
         (law("norm of a lucky row", ">= Ω(√M1 δ (β²+1)^(1/2) α η T / (2m))", powers=growing,
              factor=lambda at: math.sqrt(at.pattern_strength**2 + 1) / 2),)),
        ("lemB.9", "Lemma B.9, lucky neurons", "A constant fraction of the neurons is lucky at the start.", (),
         (law("lucky neurons", ">= Ω(m)", powers={"neurons": 1}),)),
        ("lemB.10", "Lemma B.10, lucky neurons stay active", "Lucky neurons stay active through training.",
         (at_least("neurons", "m >= Ω(M1² log M1)", s.neurons, c * m1**2 * log),), ()),
        ("lemB.11", "Lemma B.11, number of training tasks",
         "Condition 3.2 can hold only with at least M1 tasks, a fraction 1/(M1-1) of all.", trained[:1],
         (rate("training tasks", "|T_tr| = M1", s, {"relevant_patterns": 1}),
          rate("fraction of tasks", "1/(M1-1)", s, factor=lambda at: 1 / (at.relevant_patterns - 1),
               note="printed as (M1-1)^(-1/2)"))),
    )  # fmt: skip
    return tuple(Theorem(f"{PAPER}/{name}", *rest) for name, *rest in found)

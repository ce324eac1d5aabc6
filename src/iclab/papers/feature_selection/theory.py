"""Theorems of feature-selection: conditions and rates.

Where the paper disagrees with itself:
- l_tr in (5) has log M, its proof (38) log M1. (5) is taken.
- The summary P1 writes (1-α⁻¹)⁻¹, negative for every α < 1; Theorem 1 and (53) have (C-α⁻¹)⁻¹, C large. The latter is
  taken, with C a symbol (`attention_constant`); it must exceed 1/α. (53) has C in the numerator too: a constant.
- ε_m is any number in (0, 1/2): a symbol. m >= ε_m⁻² M1² log N has no hidden constant.
- β = Θ(log log M1) in Section 3.2, "from Θ(log log M)" below Proposition 2: shown as a rate with M1.
- The proof's first phase, before (48), has T >= η⁻¹ ((1-α)/α · M M1 √log C)^(1/3): a second rate of Theorem 1.
- Theorem 2 says zero error; its proof ends with loss <= ε if M1 >= 1/ε (71): shown as a condition.
- (64) takes l_ts >= 2/α' to give an example that matches the query with high probability. As examples are drawn, none
  matches with probability (1 - α'/2)^(2/α'), about 1/e.
- Proposition 1 has √log M, its proof (59), (60) √log M1; the statement is taken.
- The sets W_l, U_l of lucky neurons in Lemmas 3 to 7 are not defined; they are taken from the paper's successor.
- (15) and (16) are norms with β²; they follow from (76) and (77), which are products with q and μ_l: norms have β. (76)
  grows with t, (15) does not.
- Lemma 4 has λ_*; (96) to (102) have λ_*⁴, and (103) goes on with λ_*.
- The proof of Lemma 4 needs log M1 <= δ²β² before (88), that of Lemma 6 log M1 >= δ²β² after (155).
- Remark 1 asks for combinations of training-irrelevant patterns; Theorem 2 of relevant ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

from iclab.theorems import (
    Condition,
    Rate,
    SymbolsBase,
    Theorem,
    above,
    at_least,
    at_most,
    below,
    rate,
    require_above,
    require_open_fraction,
    symbol,
)

PAPER = "feature-selection"


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    """What the theorems speak of."""

    DERIVED: ClassVar[Mapping[str, str]] = {
        "all_patterns": "M",
        "undisturbed_fraction": "1-ε_m-τM1",
        "attention_margin": "C-1/α",
    }

    relevant_patterns: float = symbol("M1")
    irrelevant_patterns: float = symbol("M2")
    pattern_strength: float = symbol("β")
    relevant_low: float = symbol("λ_*")
    irrelevant_size: float = symbol("|κ|")
    noise_norm: float = symbol("τ")
    matching_fraction: float = symbol("α")
    test_matching_fraction: float = symbol("α'")
    train_length: float = symbol("l_tr")
    test_length: float = symbol("l_ts")
    neurons: float = symbol("m")
    initial_scale: float = symbol("δ")
    step_size: float = symbol("η")
    batch: float = symbol("B")
    steps: float = symbol("T")
    training_tasks: float = symbol("|T|")
    test_patterns: float = symbol("M1'")
    neuron_deviation: float = symbol("ε_m")
    attention_constant: float = symbol("C")
    error: float = symbol("ε")

    @property
    def all_patterns(self) -> float:
        """M = M1 + M2."""
        return self.relevant_patterns + self.irrelevant_patterns

    @property
    def undisturbed_fraction(self) -> float:
        """1 - ε_m - τ M1, 16 times the fraction of lucky neurons."""
        return 1 - self.neuron_deviation - self.noise_norm * self.relevant_patterns

    @property
    def attention_margin(self) -> float:
        """C - 1/α."""
        return self.attention_constant - 1 / self.matching_fraction


def iterations(s: Symbols, constant: float = 1.0) -> Rate:
    """T of (6)."""
    powers = {
        "all_patterns": 0.5,
        "relevant_low": -1,
        "step_size": -1,
        "undisturbed_fraction": -0.5,
        "attention_margin": -1,
    }
    return rate("iterations", "T = Θ(√M λ_*⁻¹ η⁻¹ (1-ε_m-τM1)^(-1/2) (C-1/α)⁻¹)", s, powers, constant=constant)


def attention_iterations(s: Symbols, constant: float = 1.0) -> Rate:
    """The time by which attention concentrates in the proof, √log C taken as 1."""
    powers = {"step_size": -1, "all_patterns": 1 / 3, "relevant_patterns": 1 / 3}

    def odds(at: Symbols) -> float:
        return max(1 / at.matching_fraction - 1, 0.0) ** (1 / 3)

    return rate(
        "attention phase", "t >= Θ(η⁻¹ ((1-α)/α · M M1)^(1/3))", s, powers, odds, constant, "proof, before (48)"
    )


def train_length(s: Symbols, constant: float = 1.0) -> Rate:
    """l_tr of (5)."""

    def law(at: Symbols) -> float:
        return 2 * math.log(at.all_patterns)

    return rate("training length", "l_tr = Ω(2 α⁻¹ log M)", s, {"matching_fraction": -1}, law, constant)


def test_length(s: Symbols) -> Rate:
    """l_ts of Theorem 2."""
    return rate("test length", "l_ts = 2/α'", s, {"test_matching_fraction": -1}, lambda at: 2.0)


def model_of_data(s: Symbols) -> tuple[Condition, ...]:
    """What Sections 2 and 3.2 ask of the data and the initialisation."""
    return (
        at_least("patterns", "M1 + M2 >= M1²", s.all_patterns, s.relevant_patterns**2),
        at_most("irrelevant size", "|κ| <= 1", s.irrelevant_size, 1),
        below("initial scale", "δ < 0.1", s.initial_scale, 0.1),
    )


def width(s: Symbols) -> Condition:
    """The number of neurons, with N = BT samples."""
    needed = s.neuron_deviation**-2 * s.relevant_patterns**2 * math.log(s.batch * s.steps)
    return at_least("neurons", "m >= ε_m⁻² M1² log N", s.neurons, needed)


def training(s: Symbols, c: float = 1.0) -> tuple[Condition, ...]:
    """The conditions of Theorem 1."""
    m1 = s.relevant_patterns
    return (
        at_least("training tasks", "|T| >= M1", s.training_tasks, m1),
        width(s),
        below("deviation", "ε_m < 1/2", s.neuron_deviation, 0.5),
        at_least("batch", "B > Ω(M1 log M1)", s.batch, c * m1 * math.log(m1)),
        at_least("training length", "l_tr >= Ω(2 α⁻¹ log M)", s.train_length, train_length(s, c).value),
        at_most("noise", "τ <= O(1/M1)", s.noise_norm, c / m1),
        below("undisturbed neurons", "ε_m + τ M1 < 1", s.neuron_deviation + s.noise_norm * m1, 1),
        above("attention constant", "C > 1/α", s.attention_constant, 1 / s.matching_fraction),
        at_least("iterations", "T >= Θ(√M λ_*⁻¹ η⁻¹ ...) of (6)", s.steps, iterations(s, c).value),
        *model_of_data(s),
    )


def doubly_logarithmic(s: Symbols) -> float:
    """log log M1."""
    return math.log(math.log(s.relevant_patterns))


def root_logarithmic(s: Symbols) -> float:
    """√log M."""
    return math.sqrt(math.log(s.all_patterns))


def gradient_lemmas(s: Symbols, c: float) -> tuple[Theorem, ...]:
    """Lemmas 3 to 6, whose a is m: the readout is ±1/m. They print no conditions of their own."""
    label = {"initial_scale": 1, "pattern_strength": 2, "neurons": -1}
    return (
        Theorem(
            f"{PAPER}/lem3", "Lemma 3, rows of W_O", "What gradients add to rows of lucky and other neurons.", (),
            (rate("label part", "Θ(δβ²/a)", s, label, constant=c),
             rate("feature part", "Θ(δβ²λ_*/a)", s, label | {"relevant_low": 1}, constant=c),
             rate("other rows", "O(η B^(-1/2) β²/a)", s,
                  {"step_size": 1, "batch": -0.5, "pattern_strength": 2, "neurons": -1}, constant=c)),
        ),
        Theorem(
            f"{PAPER}/lem4", "Lemma 4, W_Q and W_K", "What gradients add between patterns.", (),
            (rate("across over along", "O(1/M1)", s, {"relevant_patterns": -1}, constant=c),
             rate("on irrelevant patterns", "O(1/(BM))", s, {"batch": -1, "all_patterns": -1}, constant=c,
                  note="per step t")),
        ),
        Theorem(
            f"{PAPER}/lem5", "Lemma 5, W_V", "How far a token moves along the rows of W_O.", (),
            (rate("lucky neurons", "V_i >= Ω(λ_*² β²/a)", s,
                  {"relevant_low": 2, "pattern_strength": 2, "neurons": -1}, constant=c, note="γ taken as 0"),
             rate("others", "V_i <= O((log B/B)^(1/2) β²/a)", s, {"pattern_strength": 2, "neurons": -1},
                  root_batch, c)),
        ),
        Theorem(
            f"{PAPER}/lem6", "Lemma 6, responses of rows", "Lucky rows respond more and more, others do not.", (),
            (rate("lucky rows", "Ω(η t δβ²λ_*²/a)", s, label | {"step_size": 1, "relevant_low": 2}, constant=c,
                  note="per step t"),),
        ),
    )  # fmt: skip


def root_batch(s: Symbols) -> float:
    """(log B / B)^(1/2)."""
    return math.sqrt(math.log(s.batch) / s.batch)


def theorems(s: Symbols, constant: float = 1.0) -> tuple[Theorem, ...]:
    """All numbered statements with conditions or rates."""
    require_open_fraction(s, "error", "neuron_deviation")
    require_above(
        0, s, "training_tasks", "test_patterns", "attention_constant", "matching_fraction", "test_matching_fraction"
    )
    require_above(1, s, "relevant_patterns")
    c = constant
    trained = training(s, c)
    return (
        Theorem(
            f"{PAPER}/thm1", "Theorem 1, in-domain generalisation",
            "After T iterations the generalisation error on the M1 training tasks is zero.",
            trained,
            (iterations(s, c), attention_iterations(s, c), train_length(s, c),
             rate("pattern strength", "β = Θ(log log M1)", s, factor=doubly_logarithmic, constant=c,
                  note="Section 3.2 fixes β so")),
        ),
        Theorem(
            f"{PAPER}/thm2", "Theorem 2, out-of-domain generalisation",
            "On non-negative mixtures of the relevant patterns, with new irrelevant ones, the error is zero.",
            (*trained,
             at_most("test patterns", "M1' <= M1", s.test_patterns, s.relevant_patterns),
             at_least("test length", "l_ts >= 2/α'", s.test_length, 2 / s.test_matching_fraction),
             at_least("relevant patterns", "M1 >= 1/ε (71)", s.relevant_patterns, 1 / s.error)),
            (test_length(s),),
        ),
        Theorem(
            f"{PAPER}/prop1", "Proposition 1, attention weights",
            "W_Q and W_K enlarge the relevant patterns and leave the irrelevant ones; attention concentrates at "
            "rate O(1/T).",
            trained,
            (
                rate("norm of relevant patterns", ">= Θ(√log M)", s, factor=root_logarithmic, constant=c),
                rate("norm of irrelevant patterns", "<= Θ(1)", s, constant=c),
                rate("attention elsewhere", "-> Θ(1/M^C), C > 1", s, {"all_patterns": -1}, constant=c, note="C = 1"),
                rate("its approach", "O(1/T)", s, {"steps": -1}, constant=c),
            ),
        ),
        Theorem(
            f"{PAPER}/prop2", "Proposition 2, neurons",
            "For a constant fraction of neurons the label part exceeds the feature part; the others stay at O(ξ).",
            trained,
            (rate("output of other neurons", "<= O(ξ) = O(m^(-1/2))", s, {"neurons": -0.5}, constant=c,
                  note="ξ is not stated; m^(-1/2) as in nonlinear-icl"),),
        ),
        Theorem(
            f"{PAPER}/cor1", "Corollary 1, attention out of domain",
            "Attention concentrates on the examples that share the query's pattern.",
            trained,
            (rate("attention elsewhere", "<= Θ(1/M)", s, {"all_patterns": -1}, constant=c),),
        ),
        Theorem(
            f"{PAPER}/lem1", "Lemma 1, number of training tasks", "Every pattern stands for each label equally often.",
            (at_least("training tasks", "|T| >= M1", s.training_tasks, s.relevant_patterns),),
            (rate("training tasks", "|T| = M1", s, {"relevant_patterns": 1}),),
        ),
        *gradient_lemmas(s, c),
        Theorem(
            f"{PAPER}/lem7", "Lemma 7, lucky neurons", "So many neurons are lucky at the start.",
            (width(s),),
            (rate("lucky neurons", ">= (m/16)(1-ε_m-τM1)", s, {"neurons": 1, "undisturbed_fraction": 1},
                  constant=1 / 16),),
        ),
    )  # fmt: skip

"""Theorems of mamba-outliers: conditions and rates.

Where the paper disagrees with itself:
- Theorem 3 (ii) prints κ_a <= V B (1-p_a)/(p_a ε); Remark 4 says that Mamba and the linear Transformer share the upper
  bound, and (72) has β: the B is taken for a β.
- T_T has β⁻² in (15) and β⁻¹ in (71); T_M = l_tr T_T (Remark 4) needs β⁻², taken.
- The lengths have log M1 in the theorems, (8), (12), (14), (17), and log 1/ε in the proofs, (34), (68), (73), (82). The
  theorems' are taken.
- (44) lacks the V² of (35) and of Theorem 1 (i). V² is taken. Lemma 3 asks for B >= (1-p_a)⁻² log 1/ε besides.
- κ_a' may also be as large as L⁻¹(κ_a + ...) by the end of the proof of Theorem 2; the statement is taken.
- Corollary 2 has poly(M1)⁻¹ in (20) and poly(M1^κ_a')⁻¹ in (62); poly(x) is x here, in all bounds. (20) has M1⁻¹.
- Theorem 2 (b) has κ_a' >= κ_a. The logit of a test outlier is κ_a' Σλ wᵀv*, so that (62) needs κ_a' L >= κ_a; the
  printed condition is taken, and the other one is a statement of ours.
- (61) bounds the size of scores on other patterns by ε; (29) makes them negative and lets them grow with t. (19) is
  printed from above only. Both are read.
- (28) is exact after one step only: patterns that share a partner meet through it from the second step on.
- (93) takes |w(0)ᵀx| for 1/(d+1); w(0) ~ N(0, I/(d+1)) gives ‖x‖/√(d+1), about 0.5. Lemmas are judged on what w gains.
- (40), w'p <= -log M1, gives σ(w'p) = 1/M1; (48) writes poly(M1^κ_a)⁻¹ for it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from iclab.errors import require
from iclab.theorems import (
    Condition,
    SymbolsBase,
    Theorem,
    above,
    at_least,
    at_most,
    below,
    inverse,
    law,
    require_above,
    require_open_fraction,
    symbol,
)

PAPER = "mamba-outliers"


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    """What the theorems speak of."""

    DERIVED: ClassVar[Mapping[str, str]] = {
        "clean_fraction": "1-p_a",
        "test_clean_fraction": "1-α",
        "majority_margin": "1/2-α",
    }

    feature_dimension: float = symbol("d")
    relevant_patterns: float = symbol("M1")
    irrelevant_patterns: float = symbol("M2")
    outlier_patterns: float = symbol("V")
    pattern_strength: float = symbol("β")
    irrelevant_size: float = symbol("K")
    shifted_irrelevant_size: float = symbol("K'")
    outlier_fraction: float = symbol("p_a")
    test_outlier_fraction: float = symbol("α")
    outlier_magnitude: float = symbol("κ_a")
    test_outlier_magnitude: float = symbol("κ_a'")
    mixture_sum: float = symbol("L")  # the smallest Σλ of the test outliers
    train_length: float = symbol("l_tr")
    test_length: float = symbol("l_ts")
    initial_scale: float = symbol("δ")
    mamba_step_size: float = symbol("η")
    linear_step_size: float = symbol("η (linear)")
    batch: float = symbol("B")
    steps: float = symbol("T")
    training_tasks: float = symbol("|T_tr|")
    rank: float = symbol("j")  # of the clean example whose gate (21) speaks of
    error: float = symbol("ε")

    @property
    def clean_fraction(self) -> float:
        """1 - p_a."""
        return 1 - self.outlier_fraction

    @property
    def test_clean_fraction(self) -> float:
        """1 - α."""
        return 1 - self.test_outlier_fraction

    @property
    def majority_margin(self) -> float:
        """1/2 - α."""
        return 0.5 - self.test_outlier_fraction


def smallest_error(batch: float) -> float:
    """The smallest ε for which B >= ε⁻² log(1/ε), the first part of B_T, holds with constant 1."""
    low, high = 1e-12, 1.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if math.log(1 / middle) > batch * middle**2 else (low, middle)
    return high


def _log(s: Symbols) -> float:
    return math.log(s.relevant_patterns)


def _borne(s: Symbols) -> float:
    return min(1.0, s.outlier_fraction * s.train_length / s.test_length)


GROWTH: dict[str, Any] = {"clean_fraction": -1, "pattern_strength": -2, "relevant_patterns": 1}
mamba_iterations = law("iterations", "T_M = Θ(η⁻¹ (1-p_a)⁻¹ β⁻² M1)", mamba_step_size=-1, **GROWTH)  # (9)
linear_iterations = law(  # (15)
    "iterations", "T_T = Θ(η⁻¹ (1-p_a)⁻¹ β⁻² l_tr⁻¹ M1)", linear_step_size=-1, train_length=-1, **GROWTH
)
mamba_train_length = law("training length", "l_tr = Ω((1-p_a)⁻¹ log M1)", _log, clean_fraction=-1)  # (8), from below
linear_train_length = law(  # (14)
    "training length", "l_tr = Ω((1-p_a)⁻² p_a log M1)", _log, clean_fraction=-2, outlier_fraction=1
)
mamba_test_length = law("test length", "l_ts = Ω((1-α)⁻¹ log M1)", _log, test_clean_fraction=-1)  # (12), from below
linear_test_length = law(  # (17), the part that grows without bound at α = 1/2
    "test length, majority", "l_ts = Ω((1/2-α)⁻² α log M1)", _log, majority_margin=-2, test_outlier_fraction=1
)
largest_test_fraction = law("outliers borne", "α < min(1, p_a l_tr/l_ts)", _borne)  # Theorem 2 (c)


def batches(s: Symbols, c: float) -> tuple[Condition, Condition, Condition]:
    """The two parts of B >= B_T, and the third of B >= B_M, which Mamba needs."""
    sure, clean = c * math.log(1 / s.error), s.clean_fraction
    extra = s.pattern_strength**-4 * s.outlier_patterns**2 * s.outlier_magnitude**-2 * clean**-2 * sure
    return (
        at_least("(i) batch, ε", "B >= Ω(ε⁻² log 1/ε)", s.batch, s.error**-2 * sure),
        at_least("(i) batch, M1", "B >= Ω(M1 (1-p_a)⁻¹ log 1/ε)", s.batch, s.relevant_patterns / clean * sure),
        at_least("(i) batch, V", "B >= Ω(β⁻⁴ V² κ_a⁻² (1-p_a)⁻² log 1/ε)", s.batch, extra),
    )


def largest_magnitude(s: Symbols) -> float:
    """V β (1-p_a) p_a⁻¹ ε⁻¹, the upper bound of κ_a; there is none without outliers."""
    return s.outlier_patterns * s.pattern_strength * s.clean_fraction * inverse(s.outlier_fraction) / s.error


def model_of_data(s: Symbols, step_size: float) -> tuple[Condition, ...]:
    """What Appendix A.1 and Algorithm 1 ask of training data and initialisation, and Condition 1 of the tasks."""
    return (
        at_most("step size", "η <= 1", step_size, 1),
        at_least("training tasks", "|T_tr| >= M1", s.training_tasks, s.relevant_patterns),
        below("patterns", "M1 + M2 < d", s.relevant_patterns + s.irrelevant_patterns, s.feature_dimension),
        at_least("pattern strength", "β >= 1", s.pattern_strength, 1),
        at_most("irrelevant size", "K <= 1/2", s.irrelevant_size, 0.5),
        at_most("initial scale", "δ <= 0.2", s.initial_scale, 0.2),
    )


def theorems(s: Symbols, constant: float = 1.0) -> tuple[Theorem, ...]:
    """All numbered statements with conditions or rates."""
    require_open_fraction(s, "error")
    require_above(0, s, "outlier_magnitude", "test_outlier_magnitude", "mixture_sum", "training_tasks")
    require_above(1, s, "relevant_patterns")
    for name in ("outlier_fraction", "test_outlier_fraction"):
        require(0 <= getattr(s, name) < 1, f"{name} is {getattr(s, name)}; it must lie in [0, 1).")
    c, v, m1, beta, alpha = (
        constant,
        s.outlier_patterns,
        s.relevant_patterns,
        s.pattern_strength,
        s.test_outlier_fraction,
    )
    kappa, kappa_test, sure = s.outlier_magnitude, s.test_outlier_magnitude, math.log(1 / s.error)
    most, longest = c * largest_magnitude(s), c * m1**kappa
    farthest, slow = most / (kappa * s.mixture_sum), s.mamba_step_size * s.clean_fraction
    early = c * min(v / (slow * beta**2 * kappa), m1 ** (2 / 3) * beta ** (-2 / 3) * (v / kappa) ** (1 / 3) / slow)
    first = at_most("time", "t <= O(min{V/(η β² κ_a (1-p_a)), ...})", s.steps, early)
    batch, length = batches(s, c), s.train_length
    mamba = (
        *batch,
        at_least("(ii) magnitude, from below", "κ_a >= Ω(V β⁻⁴)", kappa, c * v * beta**-4),
        at_most("(ii) magnitude, from above", "κ_a <= O(V β (1-p_a) p_a⁻¹ ε⁻¹)", kappa, most),
        at_least("(iii) training length", "l_tr >= Ω((1-p_a)⁻¹ log M1)", length, mamba_train_length(s, c).value),
        at_most(
            "(iii) training length, most",
            "l_tr <= O(p_a⁻¹ poly(M1^κ_a))",
            length,
            longest * inverse(s.outlier_fraction),
        ),
        at_least("(iv) iterations", "T >= Θ(η⁻¹ (1-p_a)⁻¹ β⁻² M1)", s.steps, mamba_iterations(s, c).value),
        *model_of_data(s, s.mamba_step_size),
    )
    linear = (
        *batch[:2],
        at_most("(ii) magnitude", "κ_a <= O(V β (1-p_a) p_a⁻¹ ε⁻¹)", kappa, most),
        at_least("(iii) training length", "l_tr >= Ω((1-p_a)⁻² p_a log M1)", length, linear_train_length(s, c).value),
        at_least("(iv) iterations", "T >= Θ(η⁻¹ (1-p_a)⁻¹ β⁻² l_tr⁻¹ M1)", s.steps, linear_iterations(s, c).value),
        *model_of_data(s, s.linear_step_size),
    )
    tested = (
        above("(a) mixtures", "Σλ >= L > 0", s.mixture_sum, 0),
        above("test irrelevant size", "K' > 1", s.shifted_irrelevant_size, 1),
        at_least("(d) test length", "l_ts >= Ω((1-α)⁻¹ log M1)", s.test_length, mamba_test_length(s, c).value),
    )
    return (
        Theorem(
            f"{PAPER}/thm1", "Theorem 1, training Mamba",
            "After T_M iterations Mamba's 0-1 error over all tasks, on prompts like the training ones, is at most ε.",
            mamba, (mamba_iterations(s, c), mamba_train_length(s, c)),
        ),
        Theorem(
            f"{PAPER}/thm2", "Theorem 2, Mamba on shifted outliers",
            "With unseen outliers in a fraction α of the examples, whatever their labels, Mamba's error is at most ε.",
            (*mamba, *tested,
             at_least("(b) test magnitude", "κ_a' >= κ_a", kappa_test, kappa),
             at_most("(b) test magnitude, most", "κ_a' <= Θ(V β (1-p_a)/(p_a κ_a L ε))", kappa_test, farthest),
             below("(c) outliers", "α < min(1, p_a l_tr/l_ts)", alpha, _borne(s)),
             at_most("(d) test length, most", "l_ts <= O(α⁻¹ poly(M1^κ_a))", s.test_length, longest * inverse(alpha))),
            (largest_test_fraction(s), mamba_test_length(s, c)),
        ),
        Theorem(
            f"{PAPER}/thm3", "Theorem 3, training the linear Transformer",
            "After T_T iterations the linear Transformer's 0-1 error, on prompts like the training ones, is at most ε.",
            linear, (linear_iterations(s, c), linear_train_length(s, c),
                     law("T_M / T_T at equal η", "Θ(l_tr)", train_length=1)(s, c)),
        ),
        Theorem(
            f"{PAPER}/thm4", "Theorem 4, the linear Transformer on shifted outliers",
            "With outliers in less than half of enough examples the linear Transformer's error is at most ε.",
            (*linear, *tested,
             at_most("(b) test magnitude", "κ_a' <= Θ(V β (1-p_a) l_tr/(p_a κ_a L ε))", kappa_test,
                     farthest * length),
             below("(c) outliers", "α < 1/2", alpha, 0.5),
             at_least("(d) test length, majority", "l_ts >= Θ((1/2-α)⁻² α) log M1", s.test_length,
                      linear_test_length(s, c).value)),
            (mamba_test_length(s, c), linear_test_length(s, c)),
        ),
        Theorem(
            f"{PAPER}/cor1", "Corollary 1, attention of Mamba",
            "Attention scores on examples with the query's pattern sum to at least Θ(1), those on others to little.",
            mamba, (law("scores on the query's pattern", ">= Θ(1)")(s, c),
                    law("scores on other patterns", "<= Θ((1-p_a)⁻¹ ε)", clean_fraction=-1, error=1)(s, c)),
        ),
        Theorem(
            f"{PAPER}/cor2", "Corollary 2, gates of Mamba",
            "Gates shut on outliers; on clean examples they halve from one to the next, going away from the query.",
            mamba, (law("gate on an outlier", "<= O(poly(M1)⁻¹)", relevant_patterns=-1)(s, c),
                    law("gate on the j-th clean one", ">= Θ(1/2^(j-1))", lambda at: 2.0 ** (1 - at.rank))(s, c)),
        ),
        Theorem(
            f"{PAPER}/lem3", "Lemma 3, growth of W_B and W_C",
            "The projection on a relevant pattern grows in proportion to time.",
            (batch[1], at_least("batch, p_a", "B >= Ω((1-p_a)⁻² log 1/ε)", s.batch, c * s.clean_fraction**-2 * sure)),
            (law("projection on μ_j", ">= Ω(η t (1-p_a) β / M1)", note="at t = T", mamba_step_size=1, steps=1,
                 clean_fraction=1, pattern_strength=1, relevant_patterns=-1)(s, c),),
        ),
        Theorem(
            f"{PAPER}/lem4", "Lemma 4, growth of w, first steps",
            "w turns away from outliers faster than from clean examples.",
            (first, batch[2],
             at_least("training length", "l >= Ω((1-p_a)⁻¹ log 1/ε)", length, c / s.clean_fraction * sure)),
            (law("-wᵀv*", ">= Ω(η β² t κ_a (1-p_a) / V)", note="at t = T; the linear term of (36)", mamba_step_size=1,
                 pattern_strength=2, steps=1, outlier_magnitude=1, clean_fraction=1, outlier_patterns=-1)(s, c),),
        ),
        Theorem(
            f"{PAPER}/lem5", "Lemma 5, gates after training",
            "wᵀp is below -log M1 on outliers and bounded on clean examples.",
            (at_least("time", "t >= Ω(η⁻¹ (1-p_a)⁻¹ β⁻² M1)", s.steps, mamba_iterations(s, c).value),
             at_least("magnitude", "κ_a >= Ω(V β⁻⁴)", kappa, c * v * beta**-4)),
            (law("-wᵀp on outliers", ">= Ω(log M1)", _log)(s, c),),
        ),
        Theorem(f"{PAPER}/lem6", "Lemma 6, gates in the first steps", "Σ_i G_i (l-i+1) <= Θ(1).", (first,)),
    )  # fmt: skip

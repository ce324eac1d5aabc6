"""Conditions and rates of the theorems: worked out by hand for one setting each."""

import dataclasses
import math

import numpy as np
import pytest

from iclab.errors import InputError
from iclab.library import free_symbols
from iclab.papers import PAPERS
from iclab.papers.chain_of_thought import theory as chain_of_thought
from iclab.papers.feature_selection import theory as feature_selection
from iclab.papers.mamba_outliers import theory as mamba_outliers
from iclab.papers.nonlinear_icl import theory as nonlinear_icl
from iclab.papers.vector_arithmetic import theory as vector_arithmetic
from iclab.theorems import Condition, above, at_least, at_most, below, inverse

MODULES = {
    "nonlinear-icl": nonlinear_icl,
    "feature-selection": feature_selection,
    "mamba-outliers": mamba_outliers,
    "chain-of-thought": chain_of_thought,
    "vector-arithmetic": vector_arithmetic,
}


def at_quick(paper, **changes):
    return dataclasses.replace(PAPERS[paper].symbols(PAPERS[paper].settings["quick"]), **changes)


def stated(paper, name, constant=1.0, **changes):
    """One theorem at the quick settings with these symbols changed."""
    (found,) = [t for t in PAPERS[paper].theorems(at_quick(paper, **changes), constant) if t.id == f"{paper}/{name}"]
    return found


def bounds(theorem):
    return {condition.name: condition.threshold for condition in theorem.conditions}


def test_a_condition_holds_or_fails_by_a_factor():
    assert at_least("", "", 300, 30).satisfied and at_least("", "", 300, 30).factor == pytest.approx(10)
    assert not at_most("", "", 2, 1).satisfied and at_most("", "", 2, 1).factor == pytest.approx(0.5)
    assert at_least("", "", 128, 128 * (1 + 1e-12)).satisfied  # an equality up to rounding
    assert not below("", "", 1, 1).satisfied and not above("", "", 1, 1).satisfied
    assert at_most("", "", 5, math.inf).satisfied and at_most("", "", 5, math.inf).factor == math.inf
    assert not at_most("", "", 0.4, -0.1).satisfied and at_most("", "", 0.4, -0.1).factor == 0
    assert at_least("", "", 3, 0).factor == math.inf
    assert math.isnan(Condition("", "", ">=", math.nan, 1.0).factor)
    assert inverse(0) == math.inf and inverse(4) == 0.25


def test_nonlinear_icl_by_hand():
    # M1 = 6, α = α' = 0.8, β = 3, η = 2, δ = 0.1, m = 300, B = 128, ε = 0.2
    theorem = stated("nonlinear-icl", "thm3.3", error=0.2)
    log = 1.791759469228055
    assert bounds(theorem) == pytest.approx({
        "training tasks": 6, "(i) neurons": 36 * log, "(ii) batch, ε": 25 * log, "(ii) batch, M1": 6 * log,
        "(iii) training length": log / 0.8, "(iii) training length, β": 1 / 7.2, "(iii) test length": 1.25,
        "(iv) iterations": 6 / 2 * (0.8 * 3) ** (-2 / 3) * math.sqrt(log), "step size": 1, "pattern strength": 1,
        "irrelevant size": 0.5, "irrelevant patterns": 6, "initial scale": 0.2,
    })  # fmt: skip
    assert [c.name for c in theorem.conditions if not c.satisfied] == ["step size", "irrelevant patterns"]
    assert theorem.condition("step size").factor == pytest.approx(1 / 2)
    assert theorem.rate("iterations").value == pytest.approx(2.24, abs=0.005)
    assert theorem.rate("iterations (83)").value == pytest.approx(2.2402 * 0.1 ** (-2 / 3), rel=1e-3)
    assert theorem.rate("iterations (82)").value == pytest.approx((300**2 / 6) ** (1 / 3) / 2 * 0.24 ** (-2 / 3))
    assert theorem.rate("samples").value == pytest.approx(25 * log * 2.2402, rel=1e-3)
    double = stated("nonlinear-icl", "thm3.3", constant=2.0, error=0.2)
    assert bounds(double)["(i) neurons"] == pytest.approx(72 * log) and bounds(double)["step size"] == 1
    assert stated("nonlinear-icl", "thm3.4", mixture_sum=0.9).condition("mixtures").factor == pytest.approx(0.9)
    pruned = stated("nonlinear-icl", "thm3.7", error=0.2, pruned_fraction=0.25)
    assert pruned.condition("matching examples").threshold == pytest.approx(6**-0.5)
    assert [rate.value for rate in pruned.rates] == pytest.approx([24**-0.5, 0.2 + 6**-0.5, 0.25 + 1 / 4.8])
    own, other = stated("nonlinear-icl", "prop4.1").rates
    assert (own.value, other.value) == pytest.approx((math.sqrt(log), math.sqrt(log) * (1 / 6 + 1 / 24)))
    assert [rate.value for rate in stated("nonlinear-icl", "prop4.5").rates] == pytest.approx([1 / 24, 1 / 6])
    assert stated("nonlinear-icl", "cor4.3").rates[0].value == pytest.approx(1 / 6)
    assert bounds(stated("nonlinear-icl", "lemB.5")) == pytest.approx(
        {"neurons": 36, "batch": 6 * log, "training length": 1, "pattern strength": 1}
    )
    assert bounds(stated("nonlinear-icl", "lemB.6")) == pytest.approx({"training length": 1, "samples": 36, "batch": 6})
    row = stated("nonlinear-icl", "lemB.7", steps=100).rates[0].value
    assert row == pytest.approx(math.sqrt(6) * 0.1 * math.sqrt(10) * 0.8 * 2 * 100 / 600)
    assert stated("nonlinear-icl", "lemB.11").rate("fraction of tasks").value == pytest.approx(6 / 30)


def test_feature_selection_by_hand():
    # M1 = 5, M2 = 25, λ_* = 0.8, τ = 0.1, α = 0.8, η = 1, B = 128, T = 400
    theorem = stated("feature-selection", "thm1", neuron_deviation=0.1, attention_constant=3.0)
    expected = math.sqrt(30) / 0.8 / math.sqrt(1 - 0.1 - 0.5) / (3 - 1.25)
    assert theorem.rate("iterations").value == pytest.approx(expected) == pytest.approx(6.186, abs=1e-3)
    assert theorem.rate("attention phase").value == pytest.approx((0.25 * 30 * 5) ** (1 / 3))
    found = bounds(theorem)
    assert found["neurons"] == pytest.approx(100 * 25 * math.log(128 * 400)) and found["noise"] == pytest.approx(0.2)
    assert found["batch"] == pytest.approx(5 * math.log(5)) and found["training length"] == pytest.approx(
        2.5 * math.log(30)
    )
    assert found["attention constant"] == pytest.approx(1.25) and found["patterns"] == 25
    assert bounds(stated("feature-selection", "thm2", error=0.1))["relevant patterns"] == pytest.approx(10)
    assert bounds(stated("feature-selection", "thm2"))["test length"] == pytest.approx(2.5)
    assert stated("feature-selection", "prop1").rates[0].value == pytest.approx(math.sqrt(math.log(30)))
    assert stated("feature-selection", "prop2").rates[0].value == pytest.approx(300**-0.5)
    assert stated("feature-selection", "cor1").rates[0].value == pytest.approx(1 / 30)
    lucky = stated("feature-selection", "lem7", neuron_deviation=0.1).rates[0].value
    assert lucky == pytest.approx(300 / 16 * 0.4)


def test_feature_selection_without_margin_never_gets_there():
    late = stated("feature-selection", "thm1", matching_fraction=0.4)  # C = 2 < 1/α = 2.5
    assert not late.condition("attention constant").satisfied
    assert late.rate("iterations").value == math.inf and not late.condition("iterations").satisfied
    assert stated("feature-selection", "thm1", noise_norm=0.2).rate("iterations").value == math.inf


def test_vector_arithmetic_by_hand():
    # the printed sizes: d = 3000, K = 2, K' = 100, N = 200, M = 30, σ_0 = 1e-3, σ_1 = 5e-3, σ_p = 1e-2, η = 5, q_V =
    # 1e-5
    printed = dict(
        dimension=3000, attention_scale=1e-3, value_scale=5e-3, noise_scale=1e-2, step_size=5.0, value_step_scale=1e-5
    )
    theorem = stated("vector-arithmetic", "thm3.2", **printed, failure=0.1)
    log = math.log(1e5)  # K'²/δ
    assert bounds(theorem) == pytest.approx({
        "1. dimension": 900 * math.log(1e4 * 4e4 * 900 / 0.1), "2. samples, K": 2 * math.log(10),
        "2. samples, K'": 200 * math.log(10) / 30, "3. concepts": math.log(10), "3. common tokens": 30,
        "4. value scale, d": 3000**-0.5, "4. value scale, q_V": math.sqrt(1e-5) * log,
        "4. attention scale, M": 3000**-0.25 * log**-0.25 * math.log(30) ** 0.5, "4. attention scale, d": 3000**-0.5,
        "5. noise": 3000**-0.5, "6. q_V, from below": 0.075 / math.log(1e6 / 3000 * math.log(29 / 0.06)),
        "6. q_V, from above": 0.075 / math.log(math.sqrt(3000) / math.sqrt(log)),
        "6. step size, q_V": 2.5e-5 * math.sqrt(3000) * 2 * math.sqrt(log) / 1e-5,
        "6. step size, M": 5e-3 * math.sqrt(3000) * 30**4 / 29**2, "epochs": 0.075 * 2 / 5e-5,
    })  # fmt: skip
    assert not theorem.condition("6. q_V, from below").satisfied  # the printed q_V violates the paper's own condition
    assert theorem.condition("6. q_V, from below").factor == pytest.approx(1e-5 / 0.00983, rel=1e-3)
    loss = stated("vector-arithmetic", "prop3.3", **printed, error=0.05)
    assert loss.rate("epochs to convergence").value == pytest.approx(2.5e-5 * 9e6 * 60 * math.log(20) / 5e-5)
    assert loss.condition("pairs").threshold == pytest.approx(math.log(20) / (2 * math.log(2)))
    assert loss.condition("test noise").threshold == pytest.approx((2 * math.log(31 / 0.05)) ** -0.5)
    early = stated("vector-arithmetic", "lem4.1", **printed, epoch=100)
    low, high = early.rate("aᵀW_V a, from below").value, early.rate("aᵀW_V a, from above").value
    assert high == pytest.approx(5e-5 * 100 / (5e-3 * math.sqrt(3000) * 2)) and low == pytest.approx(high / 30)
    assert early.condition("first phase").satisfied and early.condition("first phase").threshold == pytest.approx(3000)
    attention = stated("vector-arithmetic", "lem4.2", **printed, epoch=100).rates[0]
    assert (
        attention.value == pytest.approx(25 * 1e-5 * 1e-6 * 1e4 / (2.5e-5 * 900 * 4))
        and attention.exponents["epoch"] == 2
    )
    late = stated("vector-arithmetic", "lem4.3", epoch=800)
    assert late.rate("aᵀW_V a, from below").value == pytest.approx(math.sqrt(0.02 * 800 / 60))
    above_ = late.rate("(W_Q a)ᵀ(W_K a), from above")
    assert above_.local["epoch"] == pytest.approx(30 / (16 * 0.4), rel=1e-4)
    assert bounds(stated("vector-arithmetic", "lemD.11", failure=0.01))["samples"] == pytest.approx(
        200 * math.log(100) / 30
    )
    assert not stated("vector-arithmetic", "prop3.4", cotasks=4).condition("co-tasks").satisfied


def test_a_large_constant_leaves_no_step_scale_in_condition_3_1():
    paper = PAPERS["vector-arithmetic"]
    symbols = paper.symbols(paper.settings["paper"])
    for constant, room in ((1.0, True), (1.6, True), (1.7, False)):
        low, high = vector_arithmetic.value_scale_bounds(symbols, constant)
        assert (low <= high) == room


def test_mamba_outliers_by_hand():
    # M1 = 6, V = 3, β = 3, p_a = 0.6, κ_a = 2, l_tr = l_ts = 20, η = 1 and 0.05, B = 128
    changes = dict(error=0.1, test_outlier_fraction=0.4, test_outlier_magnitude=5.0, mixture_sum=0.5)
    log, sure = math.log(6), math.log(10)
    one, two = stated("mamba-outliers", "thm1", **changes), stated("mamba-outliers", "thm2", **changes)
    found = bounds(one)
    assert found["(i) batch, ε"] == pytest.approx(100 * sure) and found["(i) batch, M1"] == pytest.approx(15 * sure)
    assert found["(i) batch, V"] == pytest.approx(9 / (81 * 4 * 0.16) * sure)
    assert found["(ii) magnitude, from below"] == pytest.approx(3 / 81)
    assert found["(ii) magnitude, from above"] == pytest.approx(9 * 0.4 / 0.6 / 0.1)
    assert found["(iii) training length"] == pytest.approx(log / 0.4) and found["(iii) training length, most"] == 60
    assert found["(iv) iterations"] == one.rate("iterations").value == pytest.approx(6 / (0.4 * 9))
    found = bounds(two)
    assert found["(b) test magnitude, most"] == pytest.approx(60 / (2 * 0.5)) and found[
        "(c) outliers"
    ] == pytest.approx(0.6)
    assert found["(d) test length"] == pytest.approx(log / 0.6) and found["(d) test length, most"] == pytest.approx(90)
    three, four = stated("mamba-outliers", "thm3", **changes), stated("mamba-outliers", "thm4", **changes)
    assert three.rate("iterations").value == pytest.approx(6 / (0.05 * 0.4 * 9 * 20))
    assert bounds(three)["(iii) training length"] == pytest.approx(0.6 / 0.16 * log)
    assert bounds(four)["(b) test magnitude"] == pytest.approx(1200)
    assert bounds(four)["(d) test length, majority"] == pytest.approx(0.4 / 0.01 * log)
    assert four.condition("(c) outliers").satisfied and not four.condition("(d) test length, majority").satisfied
    assert stated("mamba-outliers", "cor1", error=0.1).rates[1].value == pytest.approx(0.25)
    assert [r.value for r in stated("mamba-outliers", "cor2", rank=4).rates] == pytest.approx([1 / 6, 1 / 8])
    assert bounds(stated("mamba-outliers", "lem3", error=0.1))["batch, p_a"] == pytest.approx(sure / 0.16)
    assert bounds(stated("mamba-outliers", "lem6"))["time"] == pytest.approx(
        min(3 / (9 * 2 * 0.4), 6 ** (2 / 3) * 3 ** (-2 / 3) * 1.5 ** (1 / 3) / 0.4)
    )
    assert stated("mamba-outliers", "lem5").rates[0].value == pytest.approx(log)


def test_without_outliers_the_upper_bounds_are_gone():
    theorem = stated("mamba-outliers", "thm1", outlier_fraction=0.0)
    for name in ("(ii) magnitude, from above", "(iii) training length, most"):
        assert theorem.condition(name).threshold == math.inf and theorem.condition(name).satisfied
    assert stated("mamba-outliers", "thm3", outlier_fraction=0.0).rate("training length").value == 0
    assert stated("mamba-outliers", "thm4", test_outlier_fraction=0.6).rate("test length, majority").value == math.inf


def test_chain_of_thought_by_hand():
    # M = 20, K = 3, α = 0.4, α' = 0.8, τ = 0.5, ρ = 0.8, η = 0.9, B = 60, l_ts = 160
    theorem = stated("chain-of-thought", "thm1", error=0.1)
    log = math.log(20)
    stages = tuple(steps / 0.9 for steps in (2.5 * 27 * math.log(30), 20 * 3 * 2.5, 20 * 3 * 10))
    assert theorem.rate("iterations").value == pytest.approx(sum(stages))
    names = ("first stage", "second stage", "last stage")
    assert [theorem.rate(name).value for name in names] == pytest.approx(stages)
    assert theorem.rate("first stage (34)").value == pytest.approx(stages[0] * 2.5)
    assert bounds(theorem)["(iii) batch, ε"] == pytest.approx(100 * log)
    assert bounds(theorem)["(iii) batch, M"] == pytest.approx(20 * log)
    assert theorem.condition("step size").satisfied
    assert not stated("chain-of-thought", "thm1", step_size=1.0).condition("step size").satisfied  # η < 1, and η = 1
    chain = stated("chain-of-thought", "thm2")
    assert chain.condition("(v) test length").threshold == pytest.approx(log / (0.8 * 0.5 * 0.8) ** 2)
    assert chain.rate("examples for CoT, rival").value == pytest.approx(log / (0.64 * 0.8 * 0.5))
    direct = stated("chain-of-thought", "thm3b", output_probability=0.4, output_primacy=0.1)
    assert direct.condition("test length").threshold == pytest.approx(log / (0.8 * 0.4 * 0.1) ** 2)
    assert direct.condition("Condition 1").satisfied and not stated("chain-of-thought", "thm3a").satisfied
    failing = stated("chain-of-thought", "thm3a", condition_1=0.0)
    assert failing.condition("Condition 1 fails").satisfied
    assert stated("chain-of-thought", "prop1", error=0.03).rates[0].value == pytest.approx(0.03)
    for name in ("lemF.5", "lemF.6"):
        assert bounds(stated("chain-of-thought", name, error=0.1))["time"] == pytest.approx(stages[0] * 2.5)
    assert stated("chain-of-thought", "lemF.7").rates[0].value == pytest.approx(0.9 / 40 * 4 * 4 / 27)


def test_the_output_of_the_matrices_in_force_enters_theorem_3():
    symbols = at_quick("chain-of-thought")
    a = 0.5 ** (1 / 3)
    b = 0.2 * a
    kernel = np.full(10, (1 - a - b) / 8)
    kernel[:2] = a, b
    circulant = np.stack([np.roll(kernel, place) for place in range(10)])
    row = np.sort(np.linalg.matrix_power(circulant, 3)[0])
    assert symbols.output_probability == pytest.approx(row[-1]) and symbols.output_primacy == pytest.approx(
        1 - row[-2] / row[-1]
    )
    assert symbols.condition_1 == 1.0


@pytest.mark.parametrize("paper", MODULES)
def test_ids_are_unique_and_name_their_paper_and_every_stated_theorem_has_an_entry(paper):
    found = [theorem.id for theorem in PAPERS[paper].theorems(at_quick(paper), 1.0)]
    assert len(set(found)) == len(found)
    assert all(name.startswith((f"{paper}/thm", f"{paper}/prop", f"{paper}/cor", f"{paper}/lem")) for name in found)
    for statement in PAPERS[paper].statements(PAPERS[paper].settings["quick"]):
        if statement.name.startswith(("thm", "prop", "cor", "lem")):
            assert f"{paper}/{statement.hypotheses or statement.name}" in found, statement.id


@pytest.mark.parametrize("paper", MODULES)
def test_every_exponent_belongs_to_a_symbol_with_a_letter(paper):
    letters = MODULES[paper].Symbols.letters()
    assert len(set(letters.values())) == len(letters)
    for theorem in PAPERS[paper].theorems(at_quick(paper), 1.0):
        assert all(set(rate.exponents) | set(rate.local) <= set(letters) for rate in theorem.rates)
        assert len({c.name for c in theorem.conditions}) == len(theorem.conditions)
        assert len({rate.name for rate in theorem.rates}) == len(theorem.rates)


@pytest.mark.parametrize(
    ("paper", "rate", "symbol", "exponent"),
    [
        ("nonlinear-icl", nonlinear_icl.iterations, "matching_fraction", -2 / 3),
        ("nonlinear-icl", nonlinear_icl.iterations, "pattern_strength", -2 / 3),
        ("nonlinear-icl", nonlinear_icl.train_length, "matching_fraction", -1),
        ("feature-selection", feature_selection.iterations, "relevant_low", -1),
        ("mamba-outliers", mamba_outliers.mamba_iterations, "relevant_patterns", 1),
        ("mamba-outliers", mamba_outliers.linear_iterations, "train_length", -1),
        ("chain-of-thought", chain_of_thought.chain_length, "trajectory_probability", -2),
        ("chain-of-thought", chain_of_thought.second_stage, "patterns", 1),
        ("vector-arithmetic", vector_arithmetic.first_phase, "value_scale", 2),
        ("vector-arithmetic", vector_arithmetic.convergence, "dimension", 2),
    ],
)
def test_halving_a_symbol_changes_the_rate_by_its_power(paper, rate, symbol, exponent):
    value = getattr(at_quick(paper), symbol)
    ratio = rate(at_quick(paper, **{symbol: value / 2})).value / rate(at_quick(paper)).value
    assert ratio == pytest.approx(2**-exponent)
    assert rate(at_quick(paper)).exponents[symbol] == exponent
    assert rate(at_quick(paper), 3.0).value == pytest.approx(3 * rate(at_quick(paper)).value)


def test_derived_symbols_have_their_exponents():
    ratio = [mamba_outliers.mamba_iterations(at_quick("mamba-outliers", outlier_fraction=p)).value for p in (0.2, 0.6)]
    assert ratio[1] / ratio[0] == pytest.approx(2)  # (1-p_a)⁻¹: 0.8 to 0.4
    lengths = [
        mamba_outliers.linear_test_length(at_quick("mamba-outliers", test_outlier_fraction=a)).value for a in (0.1, 0.3)
    ]
    assert lengths[1] / lengths[0] == pytest.approx((0.3 / 0.1) * (0.4 / 0.2) ** 2)
    times = [feature_selection.iterations(at_quick("feature-selection", irrelevant_patterns=m)).value for m in (20, 95)]
    assert times[1] / times[0] == pytest.approx(2)  # √M: 25 to 100


def test_local_slopes_contain_the_logarithms():
    rate = nonlinear_icl.iterations(at_quick("nonlinear-icl"))
    assert rate.local["relevant_patterns"] == pytest.approx(1 + 0.5 / math.log(6), rel=1e-5)
    assert rate.local["matching_fraction"] == pytest.approx(-2 / 3, rel=1e-5)
    slope = feature_selection.iterations(at_quick("feature-selection")).local["matching_fraction"]
    assert slope == pytest.approx(-1.25 / 0.75, rel=1e-4)  # d log (C-1/α)⁻¹ / d log α


def test_more_matching_examples_or_a_larger_step_never_cost_iterations():
    for paper, rate, names in (
        ("nonlinear-icl", nonlinear_icl.iterations, ("matching_fraction", "pattern_strength", "step_size")),
        ("feature-selection", feature_selection.iterations, ("matching_fraction", "relevant_low", "step_size")),
        ("chain-of-thought", chain_of_thought.iterations, ("matching_fraction", "error", "step_size")),
        ("mamba-outliers", mamba_outliers.mamba_iterations, ("pattern_strength", "mamba_step_size")),
    ):
        for name in names:
            value = getattr(at_quick(paper), name)
            times = [rate(at_quick(paper, **{name: value * factor})).value for factor in (0.9, 1.0, 1.1)]
            assert times[0] > times[1] > times[2], (paper, name)


def test_the_smallest_error_is_where_the_batch_condition_just_holds():
    for paper, name, theorem in (
        ("nonlinear-icl", "(ii) batch, ε", "thm3.3"),
        ("mamba-outliers", "(i) batch, ε", "thm1"),
        ("chain-of-thought", "(iii) batch, ε", "thm1"),
    ):
        assert stated(paper, theorem).condition(name).factor == pytest.approx(1)


def test_free_symbols_are_those_that_no_setting_has():
    assert free_symbols(PAPERS["nonlinear-icl"], "quick") == [
        "training_tasks",
        "mixture_sum",
        "pruned_fraction",
        "error",
    ]
    assert "test_outlier_fraction" in free_symbols(PAPERS["mamba-outliers"], "quick")


@pytest.mark.parametrize("changes", [{"error": 0.0}, {"error": 1.5}, {"pruned_fraction": -1.0}, {"mixture_sum": 0.0}])
def test_symbols_outside_their_range_are_refused(changes):
    with pytest.raises(InputError, match=next(iter(changes))):
        nonlinear_icl.theorems(at_quick("nonlinear-icl", **changes))

"""Probes behind the lemmas of mamba-outliers, against slow NumPy in float64."""

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr

from iclab import randomness
from iclab.errors import InputError
from iclab.models.mamba import MambaSettings
from iclab.papers import PAPERS
from iclab.papers.mamba_outliers import theory
from iclab.papers.mamba_outliers.laws import LAWS, near_half
from iclab.papers.mamba_outliers.readings import borne
from iclab.papers.mamba_outliers.settings import Settings, inference_world, numbers, summing_to, training_world
from iclab.papers.mamba_outliers.shifts import MANY, inside_length
from iclab.probes.directions import gate_directions, weight_growth
from iclab.probes.gates import clipped_errors, gate_reach
from test_mamba import gates_float64, prompt, random_linear, random_mamba

SMOKE = PAPERS["mamba-outliers"].settings["smoke"]


def moved(shifts, seed=0, scale=0.2):
    """A Mamba of the paper's size with weights that moved away from δI, and the world it was trained in."""
    world = training_world(SMOKE, shifts, 0.6)
    model = MambaSettings(scale).init(randomness.key(seed), world)
    noise = 0.1 * np.random.default_rng(seed).normal(size=(2, *model.key_weights.shape)).astype(np.float32)
    changed = {"key_weights": model.key_weights + noise[0], "query_weights": model.query_weights + noise[1]}
    return dataclasses.replace(model, **changed), world


def patterns_of(world):
    return {name: np.asarray(rows, np.float64) for name, rows in world.letters().items()}


def means(model, first, second, chosen, scale, size=False):
    """The mean of a'(W - δI)b over the chosen pairs and both matrices."""
    found = []
    for weights in (model.key_weights, model.query_weights):
        gained = np.asarray(weights[0], np.float64)[:30, :30] - scale * np.eye(30)
        values = first @ gained @ second.T
        found.append(np.mean((np.abs(values) if size else values)[chosen]))
    return np.mean(found)


@pytest.mark.parametrize("shifts", [1, 3])
def test_growth_by_group_is_the_mean_over_its_pairs(shifts):
    model, world = moved(shifts)
    rows = patterns_of(world)
    relevant, irrelevant, outlier = rows["relevant"], rows["irrelevant"], rows["outliers"]
    tasks = np.zeros((6, 6), bool)
    for j in range(6):
        for k in range(1, shifts + 1):
            tasks[j, (j + k) % 6] = tasks[(j + k) % 6, j] = True
    itself, own = np.eye(6, dtype=bool), np.eye(10, dtype=bool)
    every = np.ones((10, 6), bool)
    found = {name: float(value) for name, value in weight_growth(model, world, 0.2).items()}
    expected = {
        "same": means(model, relevant, relevant, itself, 0.2),
        "partner": means(model, relevant, relevant, tasks, 0.2),
        "outlier": means(model, outlier, relevant, every[:3], 0.2, size=True),
        "irrelevant": means(model, irrelevant, relevant, every, 0.2, size=True),
        "reverse": means(model, relevant, irrelevant, every.T, 0.2, size=True),
        "own": means(model, irrelevant, irrelevant, own, 0.2, size=True),
        "cross": means(model, irrelevant, irrelevant, ~own, 0.2, size=True),
    }
    for name, value in expected.items():
        assert np.isclose(found[name], value, rtol=1e-3, atol=1e-4), name
    if shifts == 1:
        strangers = ~tasks & ~itself
        assert np.isclose(found["stranger"], means(model, relevant, relevant, strangers, 0.2), rtol=1e-3, atol=1e-4)
    else:  # with three shifts of six every two patterns form a task
        assert np.isnan(found["stranger"]) and tasks.sum() == 30


def test_nothing_has_grown_at_the_start():
    world = training_world(SMOKE, 1, 0.6)
    model = MambaSettings(0.2).init(randomness.key(0), world)
    assert all(abs(float(value)) < 1e-5 for value in weight_growth(model, world, 0.2).values())


def test_gates_along_patterns_are_those_of_tokens_without_irrelevant_part():
    model, world = moved(1, seed=3)
    tested = inference_world(SMOKE, 0.3, 2.0)
    found = {name: float(value) for name, value in gate_directions(model, world, tested).items()}
    w = np.asarray(model.gate_weights[0], np.float64)[:30]
    rows = patterns_of(world)
    clean, turned = rows["relevant"] @ w, rows["outliers"] @ w
    mixed = SMOKE.mixtures @ rows["outliers"] @ w
    assert np.isclose(found["gate_relevant"], clean.mean(), atol=1e-5)
    assert np.isclose(found["gate_outlier"], turned.mean(), atol=1e-5)
    assert np.isclose(found["outlier_logit"], 2.0 * turned.mean() + clean.mean(), atol=1e-5)
    gates = [gates_float64([2.0 * v + example, query])[0] for v in mixed for example in clean for query in clean]
    assert np.isclose(found["nearest_gate"], np.mean(gates), rtol=1e-4)


def test_the_reach_of_gates_counts_from_the_query():
    model, one = random_mamba(1), prompt(1, length=7)
    _, trace = model(one)
    expected = sum(float(gate) * (7 - index) for index, gate in enumerate(np.asarray(trace.gates[0], np.float64)[:7]))
    assert np.isclose(gate_reach(model, one)["reach"], expected, rtol=1e-5)


@pytest.mark.parametrize("model", [random_mamba(4), random_linear(4)])
def test_clipping_leaves_out_the_examples_with_negative_scores(model):
    wrong = []
    for seed in range(6):
        one = prompt(seed)
        _, trace = model(one)
        scores, gates = np.asarray(trace.scores[0], np.float64), np.asarray(trace.gates[0], np.float64)
        kept = sum(
            g * y * score for g, y, score in zip(gates, np.asarray(one.label), scores, strict=False) if score > 0
        )
        found = clipped_errors(model, one)
        assert found["clipped"] == float(float(one.target) * kept <= 0)
        assert found["error"] == float(float(one.target) * float(model(one)[0]) <= 0)
        wrong.append((float(found["error"]), float(found["clipped"])))
    assert len(set(wrong)) > 1  # both ways occur


def test_mixtures_have_the_sum_that_is_asked_for():
    for total in (-0.3, 0.3, 1.7):
        found = summing_to(total, 3)
        assert np.allclose(found.sum(axis=1), total) and np.allclose(np.linalg.norm(found, axis=1), 1)
        assert np.linalg.matrix_rank(found) >= 2
    with pytest.raises(InputError, match=r"3 coefficients of norm 1 cannot sum to 1.8"):
        summing_to(1.8, 3)


def test_the_gate_of_a_mixture_closes_with_its_size_times_its_sum():
    """With equal wᵀv* < 0 the logit of κ_a' Σ λ_i v*_i is that of κ_a v* where κ_a' Σλ = κ_a, whatever Σλ."""
    world = training_world(SMOKE, 3, 0.6)
    model = MambaSettings(0.2).init(randomness.key(0), world)
    w = -sum(np.asarray(row) for row in patterns_of(world)["outliers"])
    model = moved_gate(model, w)
    seen = float(gate_directions(model, world, inference_world(SMOKE, 0.3, 2.0, outliers="seen"))["nearest_gate"])
    for total in (0.3, 0.6, 1.0, 1.7):
        tested = inference_world(SMOKE, 0.3, 2.0 / total, outliers=total)
        assert np.isclose(float(gate_directions(model, world, tested)["nearest_gate"]), seen, rtol=1e-3)
    small = float(gate_directions(model, world, inference_world(SMOKE, 0.3, 2.0, outliers=0.3))["nearest_gate"])
    against = float(gate_directions(model, world, inference_world(SMOKE, 0.3, 2.0, outliers="opposed"))["nearest_gate"])
    assert seen < small < 0.25 < against


def moved_gate(model, w):
    weights = np.zeros(model.gate_weights.shape, np.float32)
    weights[0, : len(w)] = w
    return dataclasses.replace(model, gate_weights=jax.numpy.asarray(weights))


def test_alpha_is_borne_up_to_the_first_error_that_is_not_small():
    error = xr.DataArray(
        [[0.0, 0.001, 0.002, 0.5], [0.0, 0.02, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [np.nan] * 4],
        dims=("seed", "fraction"), coords={"fraction": [0.0, 0.5, 0.7, 0.8]},
    )  # fmt: skip
    assert borne(error, 0.01).values[:3].tolist() == [0.7, 0.0, 0.0] and np.isnan(borne(error, 0.01).values[3])


def test_alpha_of_the_sums_lies_inside_theorem_2():
    length = inside_length(Settings())
    assert length == 14 and 0.6 * 20 / length > MANY and not 0.6 * 20 / (length + 1) > MANY


def test_laws_bound_from_above_and_agree_with_the_theory():
    symbols = PAPERS["mamba-outliers"].symbols
    for kind, iterations in (("mamba", theory.mamba_iterations), ("linear", theory.linear_iterations)):
        for name, setting in (("p_a", "outlier_fraction"), ("β", "pattern_strength"), ("M1", "relevant_patterns"),
                              ("l_tr", "train_length"), ("κ_a", "outlier_magnitude")):  # fmt: skip
            law = LAWS[kind][name]
            low, high = sorted(law.values)[:2]
            values = [iterations(symbols(Settings(**{setting: value}))).value for value in (low, high)]
            sizes = [1 - low, 1 - high] if name == "p_a" else [low, high]
            assert np.isclose(np.log(values[1] / values[0]) / np.log(sizes[1] / sizes[0]), law.exponent), (kind, name)
            assert law.side == "upper"
    near = near_half(Settings())
    needed = [theory.linear_test_length(symbols(Settings(gate_fraction=a))).value / a for a in (0.3, 0.45)]
    assert np.isclose(np.log(needed[1] / needed[0]) / np.log(0.05 / 0.2), near.exponent)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"test_mixtures": "0.7 0.6"}, "test_mixtures is '0.7 0.6'; it needs rows of 3 numbers"),
        ({"test_fractions": "0.1 0.5"}, "test_fractions is '0.1 0.5'; it needs numbers that rise, from 0"),
        ({"test_fractions": "0 0.5 0.4"}, "numbers that rise"),
        ({"magnitude_dial": "2 2"}, "magnitude_dial is '2 2'; it needs positive numbers that rise"),
        ({"magnitude_dial": "two"}, "'two' must be numbers with spaces between them"),
    ],
)
def test_texts_of_numbers_are_checked(change, sentence):
    with pytest.raises(InputError, match=sentence):
        Settings(**change)


def test_other_numbers_make_other_readings():
    assert numbers("2 5") == (2.0, 5.0)
    s = Settings(large_outlier_magnitude=6.0, test_fractions="0 0.5 0.7 0.8", test_mixtures="1 0 0, 0 1 0")
    readings = {reading.name for one in PAPERS["mamba-outliers"].statements(s) for reading in one.readings}
    assert "18tasks,kappa=6" in readings and "18tasks,kappa=10" not in readings
    assert PAPERS["mamba-outliers"].symbols(s).mixture_sum == 1.0

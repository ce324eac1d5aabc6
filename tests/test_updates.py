"""What training adds to the weights, against slow float64 versions, and against the gradient itself."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import small
from iclab import randomness
from iclab.probes import updates
from test_softmax_transformer import random_model


@pytest.fixture(scope="module")
def world():
    return small.world(basis_seed=1)


def lucky_by_hand(model, world):
    """W_l and U_l as sets, neuron by neuron."""
    letters = world.letters()
    positive, negative = {}, {}
    for number, pattern in enumerate(letters["relevant"]):
        for i, row in enumerate(np.asarray(model.output_weights, float)):
            feature, label = row[:8] @ pattern, row[8:11] @ letters["label_embedding"]
            sign = float(np.sign(model.readout[i]))
            if feature > 0 and label * sign > 0:
                (positive if sign > 0 else negative).setdefault(number, set()).add(i)
    return positive, negative


def test_the_start_of_a_member_is_given_back():
    member = small.member(seed=3)
    again = updates.initial(member)
    other = updates.initial(small.member(seed=4))
    assert np.array_equal(again.output_weights, updates.initial(member).output_weights)
    assert not np.array_equal(again.output_weights, other.output_weights)


def test_lucky_neurons_are_those_of_the_definition(world):
    model = random_model()
    positive, negative = lucky_by_hand(model, world)
    found = updates.lucky_neurons(model, world)
    for number in range(4):
        assert set(np.flatnonzero(found.positive[number]).tolist()) == positive[number]
        assert set(np.flatnonzero(found.negative[number]).tolist()) == negative[number]
    assert not np.asarray(found.positive)[4:].any(), "irrelevant patterns and padding have none"
    shares = updates.lucky_shares(found, world)
    assert np.isclose(shares["lucky_positive"], min(len(group) for group in positive.values()) / 40)
    assert np.isclose(shares["lucky_negative"], min(len(group) for group in negative.values()) / 40)


def test_an_eighth_of_the_neurons_is_lucky_for_each_pattern_and_label(world):
    """Three signs must agree: of a_i, of the feature part and of the label part."""
    wide = dataclasses.replace(small.MODEL, neurons=20_000).init(randomness.key(0), world)
    found = updates.lucky_neurons(wide, world)
    assert np.allclose(np.asarray(found.positive)[:4].mean(axis=1), 1 / 8, atol=0.01)
    assert np.allclose(np.asarray(found.negative)[:4].mean(axis=1), 1 / 8, atol=0.01)


def test_row_updates_agree_with_a_slow_version(world):
    start, model = random_model(0), random_model(1)
    model = eqx.tree_at(lambda m: m.readout, model, start.readout)
    found, letters = updates.row_updates(model, start, world), world.letters()
    positive, negative = lucky_by_hand(start, world)
    lucky = set().union(*positive.values(), *negative.values())
    change = np.asarray(model.output_weights, float) - np.asarray(start.output_weights, float)
    label = change[:, 8:11] @ letters["label_embedding"]
    along = change[:, :8] @ letters["relevant"].T
    signs = np.sign(np.asarray(start.readout))
    others = [i for i in range(40) if i not in lucky]
    assert np.isclose(found["lucky_label"], np.mean([np.linalg.norm(change[i, 8:11]) for i in lucky]), rtol=1e-4)
    assert np.isclose(found["lucky_feature"], np.mean([np.linalg.norm(change[i, :8]) for i in lucky]), rtol=1e-4)
    assert np.isclose(found["other_row"], np.mean([np.linalg.norm(change[i, :11]) for i in others]), rtol=1e-4)
    assert np.isclose(found["lucky_response"], np.mean([along[i] + signs[i] * label[i] for i in lucky]), rtol=1e-3)
    both = [np.abs(along[i] + sign * label[i]) for i in others for sign in (1, -1)]
    assert np.isclose(found["other_response"], np.mean(both), rtol=1e-4)


def test_pattern_updates_agree_with_a_slow_version(world):
    start, model = random_model(0), random_model(1)
    found, letters = updates.pattern_updates(model, start, world), world.letters()
    for name in ("query", "key"):
        change = np.asarray(getattr(model, f"{name}_weights"), float) - np.asarray(getattr(start, f"{name}_weights"))
        between = letters["relevant"] @ change[:8, :8] @ letters["relevant"].T / 9
        assert np.isclose(found[f"{name}_along"], np.trace(between) / 4, rtol=1e-4)
        assert np.isclose(found[f"{name}_across"], np.abs(between - np.diag(np.diag(between))).max(), rtol=1e-4)
        norms = np.linalg.norm(change[:, :8] @ letters["irrelevant"].T, axis=0) / 3
        assert np.isclose(found[f"{name}_elsewhere"], norms.mean(), rtol=1e-4)


def test_pulls_are_the_gradient_of_the_value_weights(world):
    """(26): while every loss is positive, minus the gradient of W_V, applied to a token p, is Σ_i V_i W_O(i)."""
    model = random_model(scale=0.1)
    key, batch = randomness.key(0), 6
    keys = jax.random.split(key, batch)

    def risk(values):
        own = eqx.tree_at(lambda m: m.value_weights, model, values)
        prompts = [world.sample(keys[i], jnp.asarray(i)) for i in range(batch)]
        return sum(1 - prompt.target * own(prompt)[0] for prompt in prompts) / batch

    token = np.concatenate([world.letters()["relevant"][0], world.letters()["label_embedding"]])
    step = -np.asarray(jax.grad(risk)(model.value_weights)) @ token
    (pull,) = updates.pulls(model, world, key, (batch,))
    assert np.allclose(step, (np.asarray(pull) @ token) @ np.asarray(model.output_weights), atol=1e-5)


def test_value_pulls_count_signs_over_lucky_neurons(world):
    model = random_model()
    pull, lucky = np.random.default_rng(0).normal(size=(40, 11)), updates.lucky_neurons(model, world)
    found, letters = updates.value_pulls(jnp.asarray(pull), lucky, world), world.letters()
    positive = np.asarray(lucky.positive).any(axis=0)
    own, opposite, others = [], [], []
    for i, pattern in ((i, pattern) for i in range(40) for pattern in letters["relevant"]):
        with_label, against = (pull[i] @ np.concatenate([pattern, s * letters["label_embedding"]]) for s in (1, -1))
        if not lucky.any[i]:
            others.append((abs(with_label) + abs(against)) / 2)
            continue
        own.append(with_label if positive[i] else against)
        opposite.append(against if positive[i] else with_label)
    scale = 40 / np.sum(letters["label_embedding"] ** 2)
    assert np.isclose(found["pull_own"], np.mean(np.array(own) > 0))
    assert np.isclose(found["pull_opposite"], np.mean(np.array(opposite) <= 0))
    assert np.isclose(found["other_pull"], scale * np.mean(others), rtol=1e-4)

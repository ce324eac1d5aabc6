import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reference
import small
from iclab import randomness
from iclab.errors import InputError
from iclab.losses import hinge
from iclab.models.softmax_transformer import SoftmaxTransformer, SoftmaxTransformerSettings
from iclab.patterns import random_rotation


def random_model(seed=0, scale=0.3):
    """Weights with nothing special about them."""
    keys = jax.random.split(randomness.key(seed), 5)
    shapes = ((12, 11), (12, 11), (12, 11), (40, 12), (40,))
    return SoftmaxTransformer(*(scale * jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)))


@pytest.mark.parametrize("length", [1, 4, 10])
@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_a_slow_float64_forward_of_equation_2(seed, length):
    prompt = small.world(length=length, basis_seed=1).sample(randomness.key(seed), seed)
    model = random_model(seed)
    output, trace = model(prompt)
    expected, attention = reference.forward(model.letters(), prompt.tokens(), prompt.present)
    assert abs(float(output) - expected) < 1e-5 * max(1.0, abs(expected))
    for index in range(small.LENGTH):
        assert abs(float(trace.attention[index]) - attention.get(index, 0.0)) < 1e-5


def test_attention_is_uniform_over_the_contexts_at_zero_weights():
    prompt = small.world(length=7).sample(randomness.key(0), 0)
    model = eqx.tree_at(lambda m: m.key_weights, random_model(), jnp.zeros((12, 11)))
    _, trace = model(prompt)
    assert np.allclose(trace.attention, [1 / 7] * 7 + [0.0] * 3)


def test_the_order_of_contexts_does_not_matter():
    prompt = small.world().sample(randomness.key(1), 0)
    order = jnp.array([*np.random.default_rng(0).permutation(10), 10])
    fields = ("atoms", "coefficients", "present", "pattern", "label")
    shuffled = eqx.tree_at(
        lambda p: [getattr(p, f) for f in fields], prompt, [getattr(prompt, f)[order] for f in fields]
    )
    model = random_model()
    assert np.allclose(model(prompt)[0], model(shuffled)[0], atol=1e-6)


def test_what_lies_in_the_padding_does_not_leak():
    short = small.world(length=4)
    prompt = short.sample(randomness.key(2), 0)
    poisoned = eqx.tree_at(lambda p: p.coefficients, prompt, prompt.coefficients.at[4:-1].set(1e6))
    model = random_model()
    assert model(prompt)[0] == model(poisoned)[0]


def test_the_query_is_attended_to_only_on_request():
    prompt = small.world().sample(randomness.key(0), 0)
    model = random_model()
    with_query = dataclasses.replace(model, attend_to_query=True)
    assert np.isclose(np.sum(model(prompt)[1].attention), 1.0)
    assert np.sum(with_query(prompt)[1].attention) < 1.0


def test_rotating_patterns_and_weights_together_changes_nothing():
    rotation = np.eye(11)
    rotation[:8, :8] = random_rotation(8, 4)
    prompt = small.world().sample(randomness.key(5), 0)
    turned = eqx.tree_at(lambda p: p.dictionary, prompt, prompt.dictionary @ rotation.T)
    model = random_model()
    where = lambda m: (m.query_weights, m.key_weights, m.value_weights)  # noqa: E731
    rotated = eqx.tree_at(where, model, tuple(w @ rotation.T for w in where(model)))
    assert np.allclose(model(prompt)[0], rotated(turned)[0], atol=1e-5)


def test_the_gradient_is_that_of_equation_2_and_the_readout_has_none():
    prompt = small.world().sample(randomness.key(0), 0)
    model = random_model()
    gradients = eqx.filter_grad(lambda m: hinge.value(m(prompt)[0], prompt))(model)
    assert np.all(gradients.readout == 0)
    names = {"W_Q": "query_weights", "W_K": "key_weights", "W_V": "value_weights", "W_O": "output_weights"}
    random = np.random.default_rng(0)
    for letter, name in names.items():
        for _ in range(5):
            row, column = random.integers(12 if letter != "W_O" else 40), random.integers(11)
            values = []
            for step in (1e-5, -1e-5):
                letters = {key: np.array(value, np.float64) for key, value in model.letters().items()}
                letters[letter][row, column] += step
                output, _ = reference.forward(letters, prompt.tokens(), prompt.present)
                values.append(max(0.0, 1.0 - float(prompt.target) * output))
            assert abs(getattr(gradients, name)[row, column] - (values[0] - values[1]) / 2e-5) < 1e-4


def test_initialisation_is_that_of_section_2_3():
    settings = SoftmaxTransformerSettings(initial_scale=0.1, key_width=12, value_width=12, neurons=4000)
    model = settings.init(randomness.key(0), small.world())
    assert np.allclose(model.query_weights, 0.1 * np.eye(12, 11) * (np.arange(11) < 8))
    assert np.array_equal(model.key_weights, model.query_weights)
    assert np.array_equal(model.value_weights, np.float32(0.1) * np.eye(12, 11, dtype=np.float32))
    assert np.allclose(np.abs(model.readout), 1 / 4000)
    assert abs(np.std(model.output_weights) * 4000**0.5 - 1) < 0.02


def test_widths_that_cannot_hold_the_columns_are_refused():
    with pytest.raises(InputError, match="value_width 5 at least the columns 11"):
        SoftmaxTransformerSettings(key_width=12, value_width=5).init(randomness.key(0), small.world())
    with pytest.raises(InputError, match="neurons is -3"):
        SoftmaxTransformerSettings(neurons=-3)

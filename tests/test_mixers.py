"""Token mixers: three forms of one recurrence agree, every mechanism is its table's line, old models are special cases."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mixing
from iclab import randomness
from iclab.errors import InputError
from iclab.losses import hinge
from iclab.models import recurrences
from iclab.models.gru import GRUSettings
from iclab.models.linear_transformer import LinearTransformerSettings, Residual
from iclab.models.mamba import MambaSettings
from iclab.models.mechanisms import CHOICES, Mechanism
from iclab.models.mixers import MixerSettings
from iclab.models.zoo import MECHANISMS, MIXERS
from iclab.probes.gates import attention_sums, gate_profile
from iclab.worlds.outliers import Outliers
from iclab.worlds.recall import Recall
from marks import mostly_slow
from test_mamba import prompt
from test_outliers import world


def possible():
    """Every mechanism that can be asked for."""
    for values in itertools.product(*CHOICES.values()):
        try:
            yield Mechanism(**dict(zip(CHOICES, values, strict=True)))
        except InputError:
            continue


EVERY = list(possible())


def ident(mechanism):
    return "-".join(dataclasses.astuple(mechanism))


def random_mixer(mechanism, seed=0, depth=1, residual=Residual.label, neurons=0, made=None):
    """A mixer whose matrices are not the diagonal ones of the start."""
    settings = MixerSettings(0.4, depth, residual, mechanism, neurons)
    model = settings.init(randomness.key(seed), made or world(Outliers(0.4, 2.0)))
    leaves, shape = jax.tree.flatten(model)
    keys = jax.random.split(randomness.key(seed + 100), len(leaves))
    moved = [
        leaf + 0.1 * jax.random.normal(key, leaf.shape, leaf.dtype) for leaf, key in zip(leaves, keys, strict=True)
    ]
    return jax.tree.unflatten(shape, moved)


def double(tree):
    return jax.tree.map(lambda leaf: leaf.astype(float) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, tree)


def random_steps(kind, tokens=150, state=5):
    drawn = np.random.default_rng(tokens)
    unit = drawn.normal(size=(tokens, state))
    unit = jnp.asarray(unit / np.linalg.norm(unit, axis=1, keepdims=True))
    decay = {
        "none": None,
        "number": -drawn.exponential(size=tokens),
        "coordinates": -drawn.exponential(size=unit.shape),
    }
    decay, erases = decay[kind.removeprefix("erasing-")], kind.startswith("erasing")
    rates = jnp.asarray(drawn.uniform(size=unit.shape))
    steps = recurrences.Steps(
        jnp.asarray(drawn.normal(size=unit.shape)), None if decay is None else jnp.asarray(decay),
        unit if erases else None, rates * unit if erases else None,
    )  # fmt: skip
    return steps, jnp.asarray(drawn.normal(size=(tokens, 2))), jnp.asarray(drawn.normal(size=unit.shape))


@pytest.mark.parametrize("tokens", mostly_slow([1, 3, 64, 150], kept=(3, 150)))
@pytest.mark.parametrize("kind", [f"{e}{d}" for e in ("", "erasing-") for d in ("none", "number", "coordinates")])
def test_the_memory_token_by_token_in_chunks_and_carried_back_are_one_in_float64(kind, tokens):
    with jax.enable_x64(True):
        steps, values, queries = random_steps(kind, tokens)
        by_token = recurrences.along(steps, values, queries)
        at_end = recurrences.weights_at_end(steps, queries[-1]) @ values
        np.testing.assert_allclose(recurrences.everywhere(steps, values, queries), by_token, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(at_end, by_token[-1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mechanism", EVERY, ids=ident)
def test_every_mechanism_is_its_line_of_the_table(mechanism):
    """One layer, against NumPy in float64, on prompts with padding."""
    with jax.enable_x64(True):
        one = double(prompt(2, length=7))
        model = double(random_mixer(mechanism))
        expected = mixing.stack(model, one.tokens(), one.present)
        np.testing.assert_allclose(model(one)[0], expected[0], rtol=1e-9)


@pytest.mark.parametrize("residual", list(Residual))
@pytest.mark.parametrize("name", mostly_slow(MECHANISMS, kept=("mamba", "gated-delta", "softmax")))
def test_a_stack_with_neurons_is_its_definition(name, residual):
    with jax.enable_x64(True):
        one = double(prompt(3, length=6))
        model = double(random_mixer(MECHANISMS[name], 3, 2, residual, neurons=4))
        expected = mixing.stack(model, one.tokens(), one.present)
        np.testing.assert_allclose(model(one)[0], expected[0], rtol=1e-8)


def test_a_gru_is_its_definition():
    one = prompt(3, length=6)
    for depth in (1, 2):
        model = GRUSettings(depth=depth, width=6).init(randomness.key(0), world(Outliers(0.4, 2.0)))
        expected = mixing.gru(model.letters(), depth, one.tokens(), one.present)
        assert np.isclose(model(one)[0], expected[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("residual", list(Residual))
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", ["mamba", "linear"])
def test_mamba_and_the_linear_transformer_are_two_of_the_mixers(name, depth, residual):
    """The same function in float64: answer, scores and gates."""
    with jax.enable_x64(True):
        made, one = world(Outliers(0.4, 2.0)), double(prompt(4))
        mixer = random_mixer(MECHANISMS[name], 4, depth, residual)
        if name == "mamba":
            model = MambaSettings(0.2, depth, residual).init(randomness.key(0), made)
            model = dataclasses.replace(model, gate_weights=mixer.weights.decay)
        else:
            model = LinearTransformerSettings(0.2, depth, residual, causal=True).init(randomness.key(0), made)
        same = {"key_weights": mixer.key_weights, "query_weights": mixer.query_weights}
        (ours, trace), (theirs, expected) = double(mixer)(one), double(dataclasses.replace(model, **same))(one)
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
        np.testing.assert_allclose(trace.scores, expected.scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(trace.gates, expected.gates, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_answer_is_the_sum_of_gate_times_score_times_label(name):
    """So that probes of gates and scores speak of what the model does."""
    one, model = prompt(5), random_mixer(MECHANISMS[name], 5)
    output, trace = model(one)
    assert np.isclose(output, np.sum(trace.gates[0] * trace.scores[0] * one.label[:-1]), rtol=1e-4, atol=1e-5)
    sums = attention_sums(model, one)
    assert np.isclose(sums["score_same@layer"][0] + sums["score_other@layer"][0], trace.scores.sum(), rtol=1e-3)
    assert gate_profile(model, one)["clean_sum@layer@distance"].shape == (1, 10)


def test_a_model_without_weights_for_its_examples_says_so():
    model = MIXERS["gru"]().init(randomness.key(0), world(Outliers(0.4, 2.0)))
    for probe in (attention_sums, gate_profile):
        with pytest.raises(
            InputError, match=r"has no score and no gate for each example; measure its answers instead\."
        ):
            probe(model, prompt(1))


def test_the_delta_rule_keeps_the_last_label_of_a_key_and_linear_attention_their_sum():
    """Two examples with one pattern and opposite labels: what is stored under the key is replaced, or added to."""
    made = world(Outliers(0.0, 2.0))
    one = made.sample(randomness.key(0), 0)
    tokens = np.zeros((3, 11))
    tokens[:, 0], tokens[:2, -1] = 3.0, (1.0, -1.0)
    both = eqx.tree_at(
        lambda p: (p.atoms, p.coefficients, p.present, p.label, p.noise), one,
        (jnp.zeros((3, 1), int), jnp.zeros((3, 1)), jnp.ones(3, bool), jnp.zeros(3), jnp.asarray(tokens)),
        is_leaf=lambda leaf: leaf is None,
    )  # fmt: skip
    answers = {
        delta: MixerSettings(mechanism=Mechanism(delta=delta)).init(randomness.key(0), made)(both)[0]
        for delta in ("none", "key")
    }
    assert abs(answers["none"]) < 1e-6 and np.isclose(answers["key"], -0.6, atol=1e-3)


@pytest.mark.parametrize("name", MIXERS)
def test_mixers_stay_finite_on_long_prompts(name):
    """Gradients too: no product of gates overflows, no key of norm 0 divides."""
    length = 3_000
    made = world(Outliers(0.6, 2.0), length=length, maximum=length)
    one = eqx.filter_jit(made.sample)(randomness.key(0), 0)
    model = MIXERS[name](initial_scale=0.02).init(randomness.key(0), made)
    value, slopes = eqx.filter_jit(eqx.filter_value_and_grad(lambda m: hinge.value(m(one)[0], one)))(model)
    assert np.isfinite(value) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"decay": "vectro"}, "a mixer has none of this name"),
        ({"gate": "tied"}, "gate is 'tied'; it needs a scalar decay or rate."),
        ({"delta": "key", "normaliser": "softmax"}, "softmax keeps every token"),
        ({"delta": "general", "gate": "own"}, "the general delta rule has a gate of its own."),
    ],
)
def test_what_does_not_go_together_is_refused(fields, sentence):
    with pytest.raises(InputError, match=sentence.replace(".", r"\.")):
        Mechanism(**fields)


def test_a_world_with_neither_labels_nor_outputs_is_refused():
    import drawn

    concepts = drawn.CONCEPTS.make(**drawn.WORDS, basis_seed=None, pairs=2, cotasks=1, noise_scale=0.1)
    with pytest.raises(InputError, match="this world's tokens have neither"):
        MixerSettings().init(randomness.key(0), concepts)


@pytest.mark.parametrize(("keys", "values"), [(8, 4), (6, 6), (4, 7)])
def test_untrained_linear_attention_recalls_what_stands_behind_a_key(keys, values):
    """With one-hot keys δ² is what the right value gets, and every other value gets nothing."""
    place = Recall(keys, values, 4, joined=True)
    model = MIXERS["retnet"](0.5).init(randomness.key(0), place)
    assert model.block == (keys, keys + values)
    asked = place.sample(randomness.key(1), 0)
    answer = np.asarray(model(asked)[0])
    assert answer.argmax() == int(asked.target) and (answer > 1e-6).sum() == 1

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import small
from iclab import randomness
from iclab.models.gpt2 import GPT2Settings
from iclab.probes import pruning
from iclab.probes.attention import attention_mass, by_head
from iclab.probes.neurons import contributions, neuron_directions
from iclab.probes.norms import pattern_norms, projections
from test_softmax_transformer import random_model


def prompt(seed=0, **changes):
    return small.world(**changes).sample(randomness.key(seed), seed)


def test_attention_splits_into_matching_and_other_contexts():
    one = prompt(length=6)
    model = random_model()
    found = attention_mass(model, one)
    weights = np.asarray(model(one)[1].attention)
    same = sum(weights[i] for i in range(6) if one.pattern[i] == one.pattern[-1])
    assert np.isclose(found["attention_same"], same, atol=1e-6)
    assert np.isclose(found["attention_same"] + found["attention_other"], 1.0, atol=1e-6)


def test_projections_at_initialisation_are_delta_times_the_input():
    """W_Q p = δ x at the start: along the pattern δβ, across it δ|κ|β on the one irrelevant pattern of the token."""
    model = small.MODEL.init(randomness.key(0), small.world())
    one = prompt(3, basis_seed=2)
    found = projections(model, one)
    sizes = np.abs(np.asarray(one.coefficients[:, 1]))
    assert np.isclose(found["query_along"], 0.3, atol=1e-5)
    assert np.isclose(found["query_across"], 0.3 * sizes[-1], atol=1e-5)
    assert np.isclose(found["query_norm"], 0.3 * np.hypot(1, sizes[-1]), atol=1e-5)
    assert np.isclose(found["key_across"], 0.3 * sizes[:-1].mean(), atol=1e-5)


def test_pattern_norms_average_over_the_right_rows():
    world = small.world(basis_seed=1)
    model = random_model()
    letters, found = world.letters(), pattern_norms(model, world)
    for name, weights in (("query", model.query_weights), ("key", model.key_weights)):
        for kind in ("relevant", "irrelevant"):
            norms = np.linalg.norm(letters[kind] @ np.asarray(weights)[:, :8].T, axis=1)
            assert np.isclose(found[f"{name}_{kind}"], norms.mean(), rtol=1e-5)


def test_a_neuron_that_reads_the_mean_pattern_and_its_label_has_cosine_one():
    world = small.world()
    model = random_model()
    mean, embedding = world.letters()["relevant"].mean(0), world.letters()["label_embedding"]
    rows = np.concatenate([np.tile(mean, (40, 1)), np.sign(model.readout)[:, None] * embedding], axis=1)
    inverse = np.linalg.pinv(np.asarray(model.value_weights))
    ideal = random_model()
    ideal = type(ideal)(
        *(ideal.query_weights, ideal.key_weights, ideal.value_weights, jnp.asarray(rows @ inverse), ideal.readout)
    )
    found = neuron_directions(ideal, world)
    assert np.allclose(found["feature_cosine@neuron"], 1, atol=1e-4)
    assert np.allclose(found["label_cosine@neuron"], 1, atol=1e-4)


def test_contributions_of_label_and_feature_add_up_to_the_preactivation():
    """Both readings split the same number; the split is checked through its sum on a model with one neuron per sign."""
    one, model = prompt(1), random_model(scale=1.0)
    _, trace = model(one)
    pooled = np.asarray(trace.attention) @ np.asarray(one.tokens())[:-1]
    assert np.allclose(np.asarray(model.neurons()) @ pooled, trace.preactivation, atol=1e-4)
    found = contributions(model, one, 8)
    assert 0 <= found["own_wins"] <= 1 and 0 <= found["printed_wins"] <= 1
    label = np.asarray(model.output_weights)[:, 8:] @ np.asarray(trace.value)[8:]
    feature = np.asarray(model.output_weights)[:, :8] @ np.asarray(trace.value)[:8]
    wins = label > feature + 40**-0.5
    assert np.isclose(found["printed_wins"], wins.mean())
    assert np.isclose(found["printed_label"], label[wins].mean(), rtol=1e-4)
    assert np.isclose(found["printed_rest"], np.abs(label + feature)[~wins].mean() * 40**0.5, rtol=1e-4)


def cut(model, order, amount):
    return pruning.prune(model, pruning.Pruning(np.int32(order), np.float32(amount), randomness.key(1)))


@pytest.mark.parametrize("order", [pruning.SMALLEST, pruning.RANDOM, pruning.LARGEST])
def test_pruning_nothing_changes_nothing_and_pruning_all_answers_zero(order):
    model, one = random_model(), prompt()
    assert cut(model, order, 0.0)(one)[0] == model(one)[0]
    assert cut(model, order, 1.0)(one)[0] == 0.0


def test_pruning_removes_the_neurons_it_names():
    model = random_model()
    norms = np.linalg.norm(np.asarray(model.neurons()), axis=1)
    gone = lambda pruned: np.flatnonzero(~np.any(np.asarray(pruned.output_weights), axis=1))  # noqa: E731
    ranked = np.argsort(norms)
    assert set(gone(cut(model, pruning.SMALLEST, 0.25))) == set(ranked[:10])
    assert set(gone(cut(model, pruning.LARGEST, 0.25))) == set(ranked[-10:])
    assert len(gone(cut(model, pruning.RANDOM, 0.25))) == 10
    threshold = np.median(norms)
    assert set(gone(cut(model, pruning.BELOW, threshold))) == set(np.flatnonzero(norms <= threshold))


def gpt2():
    """Two layers; weights far from zero, so that every neuron speaks."""
    model = eqx.filter_jit(GPT2Settings(depth=2, width=12, positions=11).init)(randomness.key(0), small.world())
    random = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: leaf + 0.3 * jnp.asarray(random.normal(size=leaf.shape), jnp.float32), model)


def layers_cut(model, layer, order, amount):
    neurons = pruning.Pruning(np.int32(order), np.float32(amount), randomness.key(1))
    return pruning.prune_layer(model, pruning.LayerPruning(np.int32(layer), neurons))


def silent(pruned):
    """The neurons of each layer through which nothing is said any more."""
    return [set(np.flatnonzero(~np.any(np.asarray(block.contraction.weight), axis=1))) for block in pruned.blocks]


def test_pruning_a_layer_of_gpt2_removes_its_neurons_by_their_incoming_weights_and_no_others():
    model = gpt2()
    ranked = [np.argsort(np.linalg.norm(np.asarray(block.expansion.weight), axis=0)) for block in model.blocks]
    assert silent(layers_cut(model, 1, pruning.SMALLEST, 0.25)) == [set(), set(ranked[1][:12])]
    assert silent(layers_cut(model, 0, pruning.LARGEST, 0.25)) == [set(ranked[0][-12:]), set()]
    assert silent(layers_cut(model, -1, pruning.SMALLEST, 0.5)) == [set(order[:24]) for order in ranked]
    assert silent(layers_cut(model, -1, pruning.SMALLEST, 0.0)) == [set(), set()]


def test_a_pruned_neuron_of_gpt2_is_as_good_as_one_that_never_fires():
    """GELU(0) = 0: without incoming weights and bias a neuron says nothing either."""
    model = gpt2()
    pruned = layers_cut(model, 1, pruning.SMALLEST, 0.5)
    gone = np.zeros(48, bool)
    gone[list(silent(pruned)[1])] = True
    where = lambda m: (m.blocks[1].expansion.weight, m.blocks[1].expansion.bias)  # noqa: E731
    mute = eqx.tree_at(where, model, tuple(jnp.where(gone, 0.0, part) for part in where(model)))
    answer = eqx.filter_jit(lambda m, p: m(p)[0])
    one = prompt()
    assert np.isclose(answer(pruned, one), answer(mute, one), atol=1e-5)
    assert not np.isclose(answer(pruned, one), answer(model, one), atol=1e-3)


def test_attention_of_gpt2_by_head_is_uniform_where_all_scores_are_equal():
    """Zero queries: contexts and the query itself share equally, in every layer and head."""
    world = small.world(length=7)
    where = lambda m: [part for b in m.blocks for part in (b.attention.weight, b.attention.bias)]  # noqa: E731
    zero = eqx.tree_at(where, gpt2(), [jnp.zeros((12, 36)), jnp.zeros(36)] * 2)
    one = world.sample(randomness.key(3), 0)
    found = by_head(eqx.filter_jit(attention_mass)(zero, one))
    same = np.sum(np.asarray(one.matches_query()))
    assert np.allclose(found["attention_same@layer@head"], np.full((2, 2), same / 8))
    assert np.allclose(found["attention_other@layer@head"], np.full((2, 2), (7 - same) / 8))

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import randomness
from iclab.errors import InputError
from iclab.losses import hinge
from iclab.models.linear_attention import attend_all, gates_at_end
from iclab.models.linear_transformer import LinearTransformer, LinearTransformerSettings, Residual
from iclab.models.mamba import Mamba, MambaSettings, recurrence
from iclab.probes.gates import attention_sums, gate_profile
from iclab.worlds.outliers import Outliers, Placement
from test_outliers import world


def random_mamba(seed=0, depth=1, residual=Residual.label):
    keys = jax.random.split(randomness.key(seed), 3)
    return Mamba(
        0.3 * jax.random.normal(keys[0], (depth, 11, 11)),
        0.3 * jax.random.normal(keys[1], (depth, 11, 11)),
        jax.random.normal(keys[2], (depth, 11)),
        residual,
    )


def random_linear(seed=0, depth=1, residual=Residual.label, causal=False, mean=False):
    mamba = random_mamba(seed, depth)
    return LinearTransformer(mamba.key_weights, mamba.query_weights, residual, causal, mean)


def prompt(seed=0, **changes):
    settings = {"fraction": 0.4, "magnitude": 2.0} | changes
    length = settings.pop("length", 10)
    return world(Outliers(**settings), length=length).sample(randomness.key(seed), seed)


def gates_float64(logits):
    """G_{i,T} by the recurrence: every new position multiplies what is there by 1 - σ and adds σ for itself."""
    found = np.zeros(len(logits))
    for index, logit in enumerate(np.asarray(logits, np.float64)):
        opened = 1.0 / (1.0 + np.exp(-logit))
        found[:index] *= 1.0 - opened
        found[index] = opened
    return found


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 100.0])
def test_gates_in_log_space_agree_with_a_float64_recurrence_and_sum_to_what_is_left(scale):
    logits = scale * np.random.default_rng(0).normal(size=300)
    expected = gates_float64(logits)
    found = np.asarray(gates_at_end(jnp.asarray(logits, jnp.float32)), np.float64)
    assert np.allclose(found, expected, atol=1e-6, rtol=2e-3)
    kept = np.prod(1.0 - 1.0 / (1.0 + np.exp(-logits)))  # Σ G = 1 - Π (1 - σ): gates telescope
    assert abs(found.sum() - (1.0 - kept)) < 1e-5


@pytest.mark.parametrize("length", [1, 5, 10])
@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_is_what_the_recurrence_computes(seed, length):
    model, one = random_mamba(seed), prompt(seed, length=length)
    assert np.isclose(recurrence(model, one), model(one)[0], rtol=1e-4, atol=1e-5)


def closed_form_float64(letters, one):
    """Eq. (3) token by token."""
    w_b, w_c, w = (np.asarray(letters[name], np.float64) for name in ("W_B", "W_C", "w"))
    tokens = np.asarray(one.tokens(), np.float64)[np.asarray(one.present)]
    gates = gates_float64(tokens @ w)
    return sum(g * p[-1] * float((w_b @ p) @ (w_c @ tokens[-1])) for g, p in zip(gates, tokens, strict=True))


def test_it_agrees_with_a_slow_float64_sum_of_equation_3():
    model, one = random_mamba(3), prompt(4, length=7)
    assert np.isclose(model(one)[0], closed_form_float64(model.letters(), one), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("tokens", [3, 64, 150])
def test_attention_in_chunks_is_the_sum_over_all_pairs(gated, tokens):
    random = np.random.default_rng(tokens)
    values, keys, queries = (random.normal(size=(tokens, width)) for width in (2, 5, 5))
    logits = random.normal(size=tokens) if gated else None
    found = attend_all(
        *(jnp.asarray(x, jnp.float32) for x in (values, keys, queries)),
        None if logits is None else jnp.asarray(logits, jnp.float32),
    )
    for t in (0, tokens // 2, tokens - 1):
        gates = gates_float64(logits[: t + 1]) if gated else np.ones(t + 1)
        expected = sum(gates[i] * values[i] * (keys[i] @ queries[t]) for i in range(t + 1))
        assert np.allclose(found[t], expected, atol=2e-4)


def test_moving_the_outliers_changes_the_one_layer_linear_transformer_not_at_all_and_mamba_a_lot():
    """A sum does not know the order of its terms. The same examples are put in another order, outliers first or
    last.
    """
    one = prompt(5, fraction=0.5, placement=Placement.farthest, exact=True)
    order = np.r_[np.arange(5, 10), np.arange(5), 10]
    fields = ("atoms", "coefficients", "present", "pattern", "label", "outlier")
    moved = eqx.tree_at(lambda p: [getattr(p, f) for f in fields], one, [getattr(one, f)[order] for f in fields])
    assert np.asarray(one.outlier)[:5].all() and np.asarray(moved.outlier)[5:10].all()
    linear = random_linear(1)
    assert np.isclose(linear(one)[0], linear(moved)[0], rtol=1e-5)
    mamba = random_mamba(1)
    assert abs(mamba(one)[0] - mamba(moved)[0]) > 1e-2 * abs(mamba(one)[0])


@pytest.mark.parametrize(
    "model", [random_mamba(2), random_mamba(2, 3), random_linear(2, 3, mean=True), random_linear(2, 3, causal=True)]
)
def test_what_lies_in_the_padding_does_not_leak(model):
    one = prompt(2, length=6)
    poisoned = eqx.tree_at(lambda p: p.coefficients, one, one.coefficients.at[6:-1].set(1e3))
    assert np.allclose(model(one)[0], model(poisoned)[0], rtol=1e-5)


def stack_float64(model, one, gates=None):
    """Three layers by explicit loops, from the definition in `iclab.models.linear_transformer`."""
    u = np.asarray(one.tokens(), np.float64)
    scale = 1.0 / (len(u) - 1) if model.mean else 1.0
    for layer in range(len(model.key_weights)):
        w_b, w_c = np.asarray(model.key_weights[layer], np.float64), np.asarray(model.query_weights[layer], np.float64)
        out = np.zeros_like(u)
        for t in range(len(u)):
            seen = range(t + 1) if model.causal or gates is not None else range(len(u))
            weights = (
                np.ones(len(u)) if gates is None else gates_float64(u[: t + 1] @ np.asarray(gates[layer], np.float64))
            )
            out[t] = scale * sum(weights[i] * u[i] * float((w_b @ u[i]) @ (w_c @ u[t])) for i in seen)
        if model.residual is Residual.label:
            u = np.concatenate([u[:, :-1], u[:, -1:] + out[:, -1:]], axis=1)
        else:
            u = out if model.residual is Residual.none else u + out
    return u[-1, -1]


@pytest.mark.parametrize("residual", list(Residual))
@pytest.mark.parametrize("kind", ["mamba", "causal", "all"])
def test_a_stack_is_its_definition(residual, kind):
    one = prompt(6)
    model = (
        random_mamba(6, 3, residual) if kind == "mamba" else random_linear(6, 3, residual, kind == "causal", mean=True)
    )
    model = dataclasses.replace(model, key_weights=0.3 * model.key_weights)
    expected = stack_float64(model, one, model.gate_weights if kind == "mamba" else None)
    assert np.isclose(model(one)[0], expected, rtol=1e-3, atol=1e-4)


def test_gradients_are_finite_and_nothing_overflows_with_100000_examples():
    made = world(Outliers(0.6, 2.0), length=100_000, maximum=100_000)
    one = eqx.filter_jit(made.sample)(randomness.key(0), 0)
    for model in (random_mamba(0), random_linear(0), random_mamba(0, 3)):
        small = dataclasses.replace(model, key_weights=0.01 * model.key_weights)
        value, gradients = eqx.filter_jit(eqx.filter_value_and_grad(lambda m: hinge.value(m(one)[0], one)))(small)
        assert np.isfinite(value)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradients))


def test_groups_of_gates_and_scores_are_what_the_truth_says():
    model, one = random_mamba(7, 2), prompt(7)
    _, trace = model(one)
    sums = attention_sums(model, one)
    same = np.asarray(one.pattern[:-1] == one.pattern[-1])
    assert np.allclose(sums["score_same@layer"], np.asarray(trace.scores)[:, same].sum(axis=1), rtol=1e-4, atol=1e-5)
    assert np.allclose(sums["score_other@layer"], np.asarray(trace.scores)[:, ~same].sum(axis=1), rtol=1e-4, atol=1e-5)
    profile = gate_profile(model, one)
    clean = np.flatnonzero(~np.asarray(one.outlier)[:-1])[::-1]  # closest first
    ranked = np.asarray(profile["ranked_sum@layer@rank"])
    assert np.allclose(ranked[:, : len(clean)], np.asarray(trace.gates)[:, clean])
    assert np.all(ranked[:, len(clean) :] == 0) and profile["ranked_count@rank"].sum() == len(clean)
    assert np.isclose(profile["clean_count@distance"].sum() + profile["outlier_count@distance"].sum(), 10)


def test_initialisation_and_letters():
    made = world(Outliers(0.5, 2.0))
    model = MambaSettings(initial_scale=0.2).init(randomness.key(0), made)
    letters = model.letters()
    assert {name: array.shape for name, array in letters.items()} == {"W_B": (11, 11), "W_C": (11, 11), "w": (11,)}
    assert np.allclose(letters["W_B"], 0.2 * np.diag([1.0] * 10 + [0.0]))
    assert set(LinearTransformerSettings().init(randomness.key(0), made).letters()) == {"W_B", "W_C"}
    assert MambaSettings(depth=3).init(randomness.key(0), made).letters()["w"].shape == (3, 11)


def test_bad_settings_are_refused():
    import small

    with pytest.raises(InputError, match="depth is 0; it must be positive"):
        MambaSettings(depth=0)
    with pytest.raises(InputError, match="depth is 0"):
        LinearTransformerSettings(depth=0)
    with pytest.raises(InputError, match="the label must be one column"):
        MambaSettings().init(randomness.key(0), small.world())
    with pytest.raises(InputError, match=r"recurrence .* one layer"):
        recurrence(random_mamba(depth=2), prompt())

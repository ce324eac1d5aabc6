import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import randomness
from iclab.models.residual_transformer import ResidualTransformer
from iclab.probes.projections import concept_projections
from iclab.probes.task_vectors import (
    complexity,
    mixture_weights,
    static_offset_error,
    task_vector_cosines,
    task_vector_uses,
)
from iclab.worlds.concepts import Kind
from test_concepts import COMMON, A, B, random_model, world


def ideal():
    """Passes the a's on and nothing else, with uniform attention: the value of a prompt points along its a's."""
    keep = jnp.asarray(A.T @ A, jnp.float32)
    return ResidualTransformer(jnp.zeros((16, 16)), jnp.zeros((16, 16)), keep)


def test_a_model_that_passes_only_the_a_of_its_task_retrieves_the_task_vector_and_answers_right():
    wrong = []
    for index in range(40):
        prompt = world(Kind.qa).sample(randomness.key(index), index)
        found = task_vector_cosines(ideal(), prompt)
        assert np.isclose(found["cos_task"], 1, atol=1e-5)
        assert max(float(found[name]) for name in ("cos_other", "cos_low", "cos_low_other", "cos_common")) < 1e-5
        wrong.append(float(task_vector_uses(ideal(), prompt)["transfer_error"]))
    assert np.mean(wrong) == 0.0


def test_two_co_tasks_give_a_positive_mixture_of_their_concepts():
    weights = []
    for index in range(30):
        prompt = world(cotasks=2, pairs=8).sample(randomness.key(index), index)
        found = mixture_weights(ideal(), prompt)
        assert np.isclose(found["rest"], 0, atol=1e-5)
        weights.append(np.asarray(found["weight@concept"]))
    assert np.all(np.mean(weights, axis=0) > 0.2)


def test_cosines_are_those_of_the_pooled_value_with_the_dictionary():
    for index in range(4):
        prompt, model = world(noise_scale=0.1).sample(randomness.key(index), index), random_model(1)
        tokens, task = np.asarray(prompt.tokens(), np.float64), (index // 2) % 2
        w_q, w_k, w_v = (np.asarray(w, np.float64) for w in jax.tree.leaves(model))
        scores = tokens[:-1] @ w_k.T @ (w_q @ tokens[-1])
        pooled = np.exp(scores - scores.max()) @ tokens[:-1]
        h0 = w_v @ pooled / np.linalg.norm(w_v @ pooled)
        expected = {
            "cos_task": A[task] @ h0, "cos_other": abs(A[1 - task] @ h0), "cos_low": abs(B[task] @ h0),
            "cos_low_other": abs(B[1 - task] @ h0), "cos_common": np.abs(COMMON @ h0).max(),
        }  # fmt: skip
        found = task_vector_cosines(model, prompt)
        assert {name: float(value) for name, value in found.items()} == pytest.approx(expected, abs=1e-5)


def test_a_model_that_retrieves_a_mixture_answers_right_where_the_word_says_which_co_task_is_meant():
    right = []
    for index in range(40):
        prompt = world(cotasks=2, pairs=8, polysemy=0.0).sample(randomness.key(index), index)
        output, _ = ideal()(prompt)
        right.append(int(np.argmax(prompt.answers @ output)) == int(prompt.target))
    assert np.mean(right) > 0.9  # all but prompts whose demonstrations hardly have the query's co-task


def test_projections_are_the_bilinear_forms_on_the_dictionary():
    made, model = world(), random_model(2)
    found = concept_projections(model, made)
    w_v, w_q, w_k = (np.asarray(w, np.float64) for w in (model.value_weights, model.query_weights, model.key_weights))
    assert np.isclose(found["value_a"], np.mean([a @ w_v @ a for a in A]), atol=1e-5)
    assert np.allclose(found["value_low@concept"], [b @ w_v @ b for b in B], atol=1e-5)
    assert np.isclose(found["value_b"], max(abs(b @ w_v @ b) for b in B), atol=1e-5)
    assert np.isclose(found["attention_a"], np.mean([(w_q @ a) @ (w_k @ a) for a in A]), atol=1e-5)
    assert np.isclose(found["attention_common"], np.mean([abs((w_q @ v) @ (w_k @ v)) for v in COMMON]), atol=1e-5)
    pairs = [(u, v) for i, u in enumerate([*A, *B]) for j, v in enumerate([*A, *B]) if i != j]
    assert np.isclose(found["value_cross"], max(abs(u @ w_v @ v) for u, v in pairs), atol=1e-5)


def test_the_static_offset_is_the_mean_label_minus_the_mean_word():
    prompt = world(pairs=6).sample(randomness.key(3), 1)
    tokens = np.asarray(prompt.tokens(), np.float64)
    offset = tokens[1:-1:2].mean(axis=0) - tokens[:-1:2].mean(axis=0)
    best = np.argmax(np.asarray(prompt.answers) @ (tokens[-1] + offset))
    assert float(static_offset_error(ideal(), prompt)["static_error"]) == float(best != int(prompt.target))


def test_complexity_is_one_over_the_largest_probability():
    prompt = world().sample(randomness.key(5), 0)
    output, _ = random_model()(prompt)
    scores = np.asarray(prompt.answers @ output, np.float64)
    assert np.isclose(
        complexity(random_model(), prompt)["complexity"], np.exp(scores).sum() / np.exp(scores.max()), rtol=1e-4
    )

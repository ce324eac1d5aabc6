import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import ensemble, randomness, training
from iclab.errors import InputError
from iclab.losses import cross_entropy
from iclab.models.residual_transformer import ResidualTransformer, ResidualTransformerSettings
from iclab.optimisation import Training
from iclab.training import Member, train
from iclab.worlds.concepts import Concepts, Kind, answer_rows, orthonormal_concepts

A, B, COMMON = orthonormal_concepts(16, 2, 8, seed=3)


def world(kind=Kind.icl, **changes):
    settings = {"pairs": 3, "common_length": 4, "noise_scale": 0.0} | changes
    return Concepts(A, B, COMMON, kind=kind, **settings)


def test_the_dictionary_has_7k_plus_k_prime_unit_rows_and_the_target_is_the_right_one():
    rows = answer_rows(A, B, COMMON)
    assert rows.shape == (7 * 2 + 8, 16)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    for index in range(8):
        prompt = world(Kind.qa).sample(randomness.key(index), index)
        sign, task = 1 - 2 * (index % 2), (index // 2) % 2
        right = A[task] + sign * B[task]
        assert np.allclose(rows[int(prompt.target)], right / np.linalg.norm(right), atol=1e-6)
        word = np.asarray(prompt.tokens())[-1]
        assert np.isclose(word @ A[task], 0.1, atol=1e-6) and np.isclose(word @ B[task], sign, atol=1e-6)


def test_a_qa_sentence_has_its_task_once_at_any_place_and_no_b_before_the_word():
    places = []
    for index in range(60):
        prompt = world(Kind.qa).sample(randomness.key(index), index)
        tokens, task = np.asarray(prompt.tokens()), (index // 2) % 2
        assert tokens.shape == (5, 16)
        assert np.allclose(tokens[:-1] @ B.T, 0, atol=1e-6)
        high = tokens[:-1] @ A.T
        assert np.isclose(high[:, task].sum(), 1, atol=1e-6) and np.allclose(high[:, 1 - task], 0, atol=1e-6)
        assert np.isclose((tokens[:-1] @ COMMON.T).sum(), 3, atol=1e-5)
        places.append(int(high[:, task].argmax()))
    assert set(places) == {0, 1, 2, 3}


def test_demonstrations_share_the_co_task_and_words_and_labels_their_sign():
    prompt = world().sample(randomness.key(1), 2)  # task 1, sign +
    tokens = np.asarray(prompt.tokens())
    for word, label in zip(tokens[:-1:2], tokens[1:-1:2], strict=True):
        assert np.isclose(word @ A[1], 0.1, atol=1e-6) and np.isclose(label @ A[1], 1, atol=1e-6)
        assert np.isclose(word @ B[1], label @ B[1], atol=1e-6) and np.isclose(abs(word @ B[1]), 1, atol=1e-6)


def test_other_concepts_join_a_word_with_probability_one_over_k():
    joined = 0
    for index in range(200):
        tokens = np.asarray(world().sample(randomness.key(index), index).tokens())
        joined += (np.abs(tokens[:-1:2] @ A[1 - (index // 2) % 2]) > 1e-3).sum()
    assert abs(joined / 600 - 0.5) < 0.08


def test_polysemy_is_a_probability_and_0_leaves_the_co_task_alone():
    for index in range(20):
        tokens = np.asarray(world(polysemy=0.0).sample(randomness.key(index), index).tokens())
        assert np.allclose(tokens @ A[1 - (index // 2) % 2], 0, atol=1e-6)
    tokens = np.asarray(world(polysemy=1.0).sample(randomness.key(0), 0).tokens())
    assert np.all(np.abs(tokens @ A.T) > 0.05)
    default, same = world(), world(polysemy=0.5)
    assert default.polysemy == same.polysemy  # 1/K


def test_samples_may_be_drawn_as_in_definition_c1_instead_of_by_turns():
    made = world(Kind.qa, balanced=False)
    targets = np.asarray(jax.vmap(lambda key: made.sample(key, 0).target)(jax.random.split(randomness.key(0), 400)))
    counts = {target: int((targets == target).sum()) for target in (0, 1, 7, 8)}
    assert sum(counts.values()) == 400 and all(abs(count - 100) < 35 for count in counts.values())
    by_turns = world(Kind.qa).sample(randomness.key(7), 3)
    assert int(by_turns.target) == 8  # the second concept, the second sign


def test_with_words_of_several_concepts_a_query_does_not_say_which_of_two_co_tasks_is_meant():
    # Such a word is equally likely for both: no model is below half its share, 1/(2K).
    keys, numbers = jax.random.split(randomness.key(0), 400), jnp.arange(400)
    queries = jax.vmap(lambda key, number: world(cotasks=2).sample(key, number).tokens()[-1])(keys, numbers)
    both = np.all(np.abs(np.asarray(queries) @ B.T) > 0.5, axis=1)
    assert abs(np.mean(both) / 2 - 1 / (2 * 2)) < 0.05


def test_qa_icl_prompts_are_sentences_with_labels_and_shorter_ones_are_masked():
    prompt = world(Kind.qa_icl, maximum_pairs=3, pairs=2).sample(randomness.key(0), 0)
    assert prompt.atoms.shape[0] == 4 * 6 - 1
    assert np.asarray(prompt.present).tolist() == [True] * 12 + [False] * 6 + [True] * 5
    tokens = np.asarray(prompt.tokens())
    assert np.allclose(tokens[[5, 11]] @ A[0], 1, atol=1e-6)  # the labels


def test_with_several_co_tasks_the_demonstrations_divide_between_them():
    tasks = [int(t) for index in range(40) for t in world(cotasks=2).sample(randomness.key(index), 0).pattern[:-1:2]]
    assert set(tasks) == {0, 1}
    one = np.asarray(world(cotasks=2, pairs=7).sample(randomness.key(0), 0).pattern[:-1:2])
    assert abs(int((one == 0).sum()) - 3.5) < 1  # by turns
    assert all(int(world(cotasks=2).sample(randomness.key(i), 0).pattern[-1]) == 0 for i in range(5))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: orthonormal_concepts(10, 2, 8), "need 12 orthogonal directions, but the dimension is 10"),
        (lambda: world(common_length=9), "common_length is 9, above the number of common tokens 8"),
        (lambda: world(pairs=0), "pairs is 0"),
        (lambda: world(noise_scale=-0.1), "noise_scale is -0.1"),
        (lambda: world(cotasks=3), "cotasks is 3, above the number of concepts 2"),
        (lambda: world(polysemy=1.5), "polysemy is 1.5"),
    ],
)
def test_bad_settings_are_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def random_model(seed=0):
    keys = jax.random.split(randomness.key(seed), 3)
    return ResidualTransformer(*(0.4 * jax.random.normal(key, (16, 16)) for key in keys))


def gradients_by_hand(model, prompt):
    """The chain rule for one prompt in float64, as in (10): residual ω, projection orthogonal to h_0, attention
    S(e_j - π).
    """
    w_q, w_k, w_v = (np.asarray(w, np.float64) for w in (model.query_weights, model.key_weights, model.value_weights))
    tokens, u = np.asarray(prompt.tokens(), np.float64), np.asarray(prompt.answers, np.float64)
    contexts, query = tokens[:-1], tokens[-1]
    scores = (contexts @ w_k.T) @ (w_q @ query)
    pi = np.exp(scores - scores.max())
    pi /= pi.sum()
    pooled = pi @ contexts
    value = w_v @ pooled
    norm = np.linalg.norm(value)
    h0 = value / norm
    logits = u @ (h0 + query)
    omega = np.exp(logits - logits.max())
    omega /= omega.sum()
    outer = u[int(prompt.target)] - omega @ u
    inner = (outer - (outer @ h0) * h0) / norm  # projected orthogonally to W_V S π, over its norm
    per_token = contexts @ (w_v.T @ inner)  # d(-loss)/dπ_j
    by_score = pi * (per_token - pi @ per_token)
    moved = by_score @ contexts
    return {
        "value_weights": -np.outer(inner, pooled),
        "key_weights": -np.outer(w_q @ query, moved),
        "query_weights": -np.outer(w_k @ moved, query),
    }


@pytest.mark.parametrize("kind", list(Kind))
def test_the_gradients_are_those_of_equation_10(kind):
    model, prompt = random_model(), world(kind, noise_scale=0.1).sample(randomness.key(4), 1)
    found = jax.grad(lambda m: cross_entropy.value(m(prompt)[0], prompt))(model)
    for name, expected in gradients_by_hand(model, prompt).items():
        assert np.allclose(getattr(found, name), expected, atol=2e-5), name


def test_the_task_vector_has_norm_one_and_the_residual_is_added():
    prompt = world(noise_scale=0.1).sample(randomness.key(0), 0)
    output, trace = random_model()(prompt)
    assert np.isclose(np.linalg.norm(trace.task_vector), 1, atol=1e-5)
    assert np.allclose(output, trace.task_vector + prompt.tokens()[-1], atol=1e-6)


def test_an_entry_that_scores_as_high_as_the_right_one_is_a_tie_and_an_error():
    prompt = world(Kind.qa).sample(randomness.key(0), 0)
    wrong, tie = cross_entropy.mistake(jnp.zeros(16), prompt)
    assert bool(wrong) and bool(tie)
    wrong, tie = cross_entropy.mistake(prompt.answers[prompt.target], prompt)
    assert not bool(wrong) and not bool(tie)


def test_full_batch_descent_sees_the_same_samples_at_every_step_and_scales_single_steps():
    made = world(Kind.qa, noise_scale=0.05)
    settings = Training(0.1, 12, fresh=False, scales={"value_weights": 0.25})
    member = Member(ensemble.member_key("concepts", 0), made, ResidualTransformerSettings(0.1, 0.1), settings)
    start, _ = train(ensemble.stack([member]), cross_entropy, [0])
    model = ensemble.unstack(start.model, 0)
    key = jax.random.fold_in(member.key, training.DATA)
    prompts = [made.sample(k, i) for i, k in enumerate(jax.random.split(key, 12))]

    def loss(m):
        return sum(cross_entropy.value(m(prompt)[0], prompt) for prompt in prompts) / 12

    for _ in range(2):  # two steps by hand, on the same prompts
        slope = jax.grad(loss)(model)
        scales = (0.1, 0.1, 0.025)
        parts = ("query_weights", "key_weights", "value_weights")
        model = ResidualTransformer(
            *(getattr(model, n) - s * getattr(slope, n) for n, s in zip(parts, scales, strict=True))
        )
    after, _ = train(ensemble.stack([member]), cross_entropy, [0, 2])
    for expected, found in zip(jax.tree.leaves(model), jax.tree.leaves(after.model), strict=True):
        assert np.allclose(found[0], expected, atol=1e-5)

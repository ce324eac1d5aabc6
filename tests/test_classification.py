import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import small
from iclab import randomness
from iclab.errors import InputError

COUNT = 4000


def draw(world, count=COUNT, seed=0):
    keys = jax.random.split(randomness.key(seed), count)
    return jax.jit(jax.vmap(world.sample))(keys, jnp.arange(count))


@pytest.fixture(scope="module")
def prompts():
    return draw(small.world(tasks=np.array([[1, 3]])))


def test_context_patterns_follow_the_categorical_distribution(prompts):
    counts = np.bincount(np.asarray(prompts.pattern[:, :-1]).ravel(), minlength=4)
    shares = np.array([0.1, 0.4, 0.1, 0.4])  # α = 0.8: 0.4 each for patterns 1 and 3, 0.1 for the others
    expected = counts.sum() * shares
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-4


def test_irrelevant_patterns_are_uniform_and_their_size_is_within_its_range(prompts):
    counts = np.bincount(np.asarray(prompts.atoms[:, :, 1]).ravel() - 4, minlength=4)
    assert scipy.stats.chisquare(counts).pvalue > 1e-4
    size = np.asarray(prompts.coefficients[:, :, 1]).ravel()
    assert scipy.stats.kstest(size, scipy.stats.uniform(-0.5, 1.0).cdf).pvalue > 1e-4


def test_labels_are_those_of_the_task_and_coin_flips_elsewhere(prompts):
    pattern, label = np.asarray(prompts.pattern[:, :-1]), np.asarray(prompts.label[:, :-1])
    assert np.all(label[pattern == 1] == 1) and np.all(label[pattern == 3] == -1)
    others = label[(pattern == 0) | (pattern == 2)]
    assert set(np.unique(others)) == {-1.0, 1.0}
    assert scipy.stats.binomtest(int((others > 0).sum()), others.size).pvalue > 1e-4


def test_queries_are_decisive_balanced_and_show_no_label(prompts):
    target, query = np.asarray(prompts.target), np.asarray(prompts.pattern[:, -1])
    assert target.sum() == 0
    assert np.all(query == np.where(target > 0, 1, 3))
    assert np.all(np.asarray(prompts.label[:, -1]) == 0)


def test_tokens_are_what_the_truth_says():
    world = small.world(basis_seed=5, relevant_range=(0.5, 1.5), noise_norm=0.2)
    prompt = world.sample(randomness.key(3), 0)
    letters = world.letters()
    for token in range(small.LENGTH + 1):
        expected = np.zeros(small.DIMENSION + small.LABELS)
        (scale, size), label = np.asarray(prompt.coefficients[token], float), float(prompt.label[token])
        expected[:8] = scale * letters["relevant"][prompt.pattern[token]]
        expected[:8] += size * letters["irrelevant"][int(prompt.atoms[token, 1]) - 4]
        expected[8:] = label * letters["label_embedding"]
        expected[:8] += np.asarray(prompt.noise[token])
        assert np.allclose(prompt.tokens()[token], expected, atol=1e-5)
    assert np.allclose(np.linalg.norm(prompt.noise, axis=1), 0.2, atol=1e-6)
    assert prompt.noise.shape == (small.LENGTH + 1, 8)  # in the feature columns alone


def test_the_same_key_gives_the_same_prompt_and_another_key_another():
    world = small.world()
    one, again, other = (world.sample(randomness.key(seed), 0) for seed in (1, 1, 2))
    assert jax.tree.all(jax.tree.map(np.array_equal, one, again))
    assert not np.array_equal(one.coefficients, other.coefficients)


def test_a_shorter_context_is_masked():
    prompt = small.world(length=6).sample(randomness.key(0), 1)
    assert np.asarray(prompt.present).tolist() == [True] * 6 + [False] * 4 + [True]
    assert not np.any(np.asarray(prompt.matches_query())[6:])


def test_tasks_are_drawn_equally_often():
    prompts = draw(small.world())
    pairs = np.asarray(prompts.pattern[:, -1])
    assert scipy.stats.chisquare(np.bincount(pairs, minlength=4)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"matching_fraction": 1.5}, "matching_fraction is 1.5; a fraction must lie in"),
        ({"matching_fraction": -0.1}, "matching_fraction is -0.1"),
        ({"length": 0}, "context_length is 0; it must be positive"),
        ({"length": 20}, "context_length is 20, above maximum_length 10"),
        ({"noise_norm": -1.0}, "noise_norm is -1.0"),
        ({"tasks": np.zeros((0, 2), int)}, "the task set is empty"),
        ({"tasks": np.array([[0, 4]])}, "two different relevant patterns out of 0..3"),
        ({"tasks": np.array([[2, 2]])}, "two different relevant patterns"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        small.world(**changes)


def test_lengths_by_turns_come_equally_often_with_both_labels():
    world = small.world(length=6, shortest_length=3)
    prompts = jax.vmap(lambda index: world.sample(jax.random.fold_in(randomness.key(0), index), index))(jnp.arange(16))
    lengths = np.asarray(prompts.present).sum(axis=1) - 1
    pairs = sorted(zip(lengths.tolist(), np.asarray(prompts.target).tolist(), strict=True))
    assert pairs == sorted((length, label) for length in (3, 4, 5, 6) for label in (1.0, -1.0) for _ in range(2))
    with pytest.raises(InputError, match=r"shortest_length is 7; it must lie in 1..6"):
        small.world(length=6, shortest_length=7)


def test_a_traced_field_of_a_world_that_is_there_can_be_changed():
    made = small.world()
    changed = eqx.tree_at(lambda w: w.matching_fraction, made, np.float32(1.0))
    expected, prompts = draw(small.world(matching_fraction=1.0), 50), draw(changed, 50)
    assert jax.tree.structure(changed) == jax.tree.structure(made)
    assert np.array_equal(prompts.pattern, expected.pattern)

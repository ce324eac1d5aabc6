"""The worlds beside the papers': regression, recall, Markov chains. Facts about their draws, and the common checks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from iclab import randomness
from iclab.conformance.worlds import check_world
from iclab.worlds.markov import Markov, Prior
from iclab.worlds.recall import Recall
from iclab.worlds.regression import Regression

LAMBDA = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 0.5]])
WORLDS = {
    "regression": Regression(3, 4, maximum_length=6, covariance=LAMBDA, query_covariance=3.0, task_mean=1.0),
    "noisy regression": Regression(2, 5, noise=0.5, task_covariance=(2.0, 0.1)),
    "recall": Recall(8, 5, 3, maximum_pairs=4),
    "joined recall": Recall(8, 5, 4, joined=True),
    "markov": Markov(3, 20, shortest_length=5, maximum_length=24),
    "rare markov": Markov(4, 12, concentration=0.3),
    "doubly stochastic markov": Markov(3, 12, prior=Prior.doubly_stochastic),
}


def draw(world, count=4000):
    keys = jax.random.split(randomness.key(0), count)
    return jax.jit(jax.vmap(world.sample))(keys, jnp.arange(count))


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_keeps_every_promise(name):
    findings = list(check_world(WORLDS[name], "tests"))
    assert len(findings) == 5 and all(finding.passed for finding in findings), findings


def test_regression_has_the_covariances_that_it_was_given():
    prompts = draw(WORLDS["regression"], 20_000)
    tokens = np.asarray(jax.vmap(lambda p: p.tokens())(prompts))
    contexts = tokens[:, :4, :3].reshape(-1, 3)
    assert np.allclose(np.cov(contexts.T), LAMBDA, atol=0.05)
    assert np.allclose(np.cov(tokens[:, -1, :3].T), 3 * np.eye(3), atol=0.12)
    assert np.asarray(prompts.present).sum(axis=1).tolist() == [5] * len(tokens)


def test_regression_without_noise_is_solved_by_least_squares():
    prompts = draw(Regression(3, 6, covariance=LAMBDA), 200)
    tokens = np.asarray(jax.vmap(lambda p: p.tokens())(prompts), float)
    for prompt, target in zip(tokens, np.asarray(prompts.target), strict=True):
        task = np.linalg.lstsq(prompt[:-1, :3], prompt[:-1, 3], rcond=None)[0]
        assert np.isclose(prompt[-1, :3] @ task, target, atol=2e-3)


@pytest.mark.parametrize("name", ["recall", "joined recall"])
def test_the_answer_is_the_value_beside_the_same_key(name):
    world = WORLDS[name]
    prompts = draw(world, 500)
    for atoms, present, target in zip(*map(np.asarray, (prompts.atoms, prompts.present, prompts.target)), strict=True):
        pairs = atoms[:-1] if world.joined else atoms[:-1, 0].reshape(-1, 2)
        pairs = pairs[present[:-1] if world.joined else present[:-1].reshape(-1, 2)[:, 0]]
        assert len(pairs) == world.pairs and len(set(pairs[:, 0])) == len(pairs)
        assert dict(pairs.tolist())[int(atoms[-1, 0])] == world.keys + target


def test_keys_values_and_the_place_of_the_asked_pair_are_uniform():
    prompts = draw(WORLDS["joined recall"])
    atoms, target = np.asarray(prompts.atoms), np.asarray(prompts.target)
    place = (atoms[:, :-1, 0] == atoms[:, -1:, 0]).argmax(axis=1)
    for numbers, count in ((place, 4), (target, 5), (atoms[:, -1, 0], 8)):
        assert scipy.stats.chisquare(np.bincount(numbers, minlength=count)).pvalue > 1e-4


def test_the_rows_of_a_chain_are_dirichlet():
    for concentration in (1.0, 0.3):
        world = Markov(3, 5, concentration=concentration)
        chains = np.asarray(jax.vmap(world.chain)(jax.random.split(randomness.key(1), 3000)))
        assert np.allclose(chains.sum(axis=2), 1, atol=1e-5)
        one = scipy.stats.beta(concentration, 2 * concentration)  # the marginal of an entry
        assert scipy.stats.kstest(chains[:, 0, 1], one.cdf).pvalue > 1e-4
        assert abs(np.corrcoef(chains[:, 0, 0], chains[:, 1, 0])[0, 1]) < 0.06


def test_doubly_stochastic_chains_have_rows_and_columns_that_sum_to_one():
    chains = np.asarray(jax.vmap(WORLDS["doubly stochastic markov"].chain)(jax.random.split(randomness.key(1), 100)))
    assert np.allclose(chains.sum(axis=1), 1, atol=1e-5) and np.allclose(chains.sum(axis=2), 1, atol=1e-5)


def test_a_chain_follows_its_matrix_from_its_stationary_distribution():
    """Against NumPy: pairs of neighbours in many prompts of one chain, at the beginning and at the end."""
    world, key = Markov(3, 9), randomness.key(4)
    chain_key = jax.random.split(key)[0]
    chain = np.asarray(world.chain(chain_key), float)
    values, vectors = np.linalg.eig(chain.T)
    stationary = np.real(vectors[:, np.argmax(np.real(values))])
    stationary /= stationary.sum()

    class Fixed(Markov):
        def chain(self, key):
            return jnp.asarray(chain, jnp.float32)

    prompts = draw(Fixed(3, 9), 20_000)
    states = np.column_stack([np.asarray(prompts.pattern), np.asarray(prompts.target)])
    for place in (0, 8):
        counts = np.zeros((3, 3))
        np.add.at(counts, (states[:, place], states[:, place + 1]), 1)
        expected = stationary[:, None] * chain * counts.sum()
        assert scipy.stats.chisquare(counts.ravel(), expected.ravel() * counts.sum() / expected.sum()).pvalue > 1e-4


def test_lengths_go_by_turns_and_absent_tokens_come_first():
    prompts = draw(WORLDS["markov"], 64)
    present = np.asarray(prompts.present)
    assert present.sum(axis=1).tolist() == [5 + number % 16 for number in range(64)]
    assert (np.diff(present.astype(int), axis=1) >= 0).all()

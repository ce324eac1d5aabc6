"""The two forms in which a model reads a prompt are the same prompt."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import small
from iclab import randomness
from iclab.prompts import InAtoms, InColumns, make_prompt
from iclab.worlds.reasoning import Reasoning


def in_atoms(prompt):
    return InAtoms(prompt.atoms, prompt.coefficients, prompt.dictionary, prompt.label, prompt.noise, prompt.label_atom)


WORLDS = {
    "labels of an atom of their own": small.world(),
    "labels among the atoms": Reasoning(np.eye(8)[:5], steps=2, matching_fraction=0.5, context_length=6),
    "noise in the features": small.world(noise_norm=0.5),
}


@pytest.mark.parametrize("name", WORLDS)
def test_scores_pools_and_the_query_are_those_of_the_dense_tokens(name):
    prompt = WORLDS[name].sample(randomness.key(3), 0)
    assert (prompt.label_atom is None) == (name == "labels among the atoms")
    atoms, dense = in_atoms(prompt), np.asarray(prompt.tokens(), float)
    columns = InColumns(prompt.tokens())
    matrix, weights = (
        jax.random.normal(randomness.key(4), (5, dense.shape[1])),
        jax.random.uniform(randomness.key(5), (len(dense),)),
    )
    for view in (atoms, columns):
        read = view.read(matrix)
        assert np.allclose(view.dot(read[0]), dense @ np.asarray(matrix[0], float), atol=1e-4)
        assert np.allclose(
            read @ view.pool(weights), np.asarray(matrix, float) @ (np.asarray(weights, float) @ dense), atol=1e-4
        )
        assert np.allclose(read @ view.query, np.asarray(matrix, float) @ dense[-1], atol=1e-4)


def test_noise_in_all_columns_and_a_large_dictionary_are_read_in_columns():
    clean = small.world().sample(randomness.key(0), 0)
    assert isinstance(clean.view(), InAtoms)
    noise = jnp.zeros_like(clean.tokens())
    assert isinstance(dataclasses.replace(clean, noise=noise[:, :6]).view(), InAtoms)
    assert isinstance(dataclasses.replace(clean, noise=noise).view(), InColumns)
    rows = jnp.zeros((2 * noise.shape[1] + 1, noise.shape[1]))
    assert isinstance(dataclasses.replace(clean, dictionary=rows).view(), InColumns)


def test_a_prompt_of_dense_tokens_has_them_as_they_are():
    tokens = jax.random.normal(randomness.key(1), (4, 3))
    prompt = make_prompt(tokens, 1.0, present=jnp.array([True, False, True]))
    assert np.array_equal(prompt.tokens(), tokens) and isinstance(prompt.view(), InColumns)
    assert prompt.shown().tolist() == [True, False, True, False] and prompt.feature_columns == 2


def test_a_prompt_that_is_written_out_has_the_same_tokens():
    clean = small.world().sample(randomness.key(0), 0)
    assert clean.written_out() is clean
    noisy = dataclasses.replace(clean, noise=jax.random.normal(randomness.key(1), clean.tokens().shape))
    written = noisy.written_out()
    assert written.atoms.shape[1] == 0 and written.label_atom is None
    assert np.array_equal(written.tokens(), noisy.tokens())
    assert np.array_equal(written.matches_query(), noisy.matches_query())

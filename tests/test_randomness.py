"""Random numbers of our own: the cipher's known answers, and uniforms that are uniform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import randomness
from iclab.randomness import block, normals, ranks, uniforms


@pytest.mark.parametrize(
    "key, counter, expected",
    [  # known answers of Threefry-2x32 with 20 rounds, from the Random123 distribution
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_cipher_has_its_known_answers(key, counter, expected):
    words = [jnp.array([word], jnp.uint32) for word in counter]
    found = block(jnp.array(key, jnp.uint32), *words)
    assert tuple(int(word[0]) for word in found) == expected


def test_uniforms_are_uniform_and_depend_on_the_key_alone():
    keys = jax.random.split(randomness.key(0), 400)
    drawn = np.asarray(jax.vmap(lambda key: uniforms(key, 251))(keys))
    assert drawn.min() >= 0 and drawn.max() < 1
    counts = np.histogram(drawn, bins=20, range=(0, 1))[0]
    assert np.sum((counts - drawn.size / 20) ** 2 / (drawn.size / 20)) < 43.8  # chi-square with 19 degrees, 0.999
    neighbours = np.corrcoef(drawn[:, :-1].ravel(), drawn[:, 1:].ravel())[0, 1]
    between = np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]
    halves = np.corrcoef(drawn[:, :125].ravel(), drawn[:, 126:].ravel())[0, 1]  # the two words of a block
    assert max(abs(neighbours), abs(between), abs(halves)) < 4 / drawn.size**0.5
    assert np.array_equal(drawn[3], uniforms(keys[3], 251))
    assert len(np.unique(drawn[:, 0])) == 400


@pytest.mark.parametrize("shape", [(1,), (7, 3), (21, 30)])
def test_normals_are_those_of_jax_to_the_last_bit(shape):
    key = randomness.key(5)
    assert np.array_equal(jax.jit(lambda key: normals(key, shape))(key), jax.random.normal(key, shape))


@pytest.mark.parametrize("count", [1, 7, 200, 300])
def test_ranks_are_those_of_a_stable_sort(count):
    scores = np.random.default_rng(0).integers(0, 5, count).astype(np.float32)  # many ties
    expected = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    assert np.array_equal(ranks(jnp.asarray(scores)), expected)


def test_our_keys_draw_what_those_of_jax_draw():
    def drawn(key):
        one, two, three = jax.random.split(key, 3)
        many = jax.random.split(jax.random.fold_in(one, 2**32 - 1), (2, 3))
        return [
            jax.random.uniform(one, (5, 3)),
            jax.random.normal(two, (31,)),
            jax.random.randint(three, (7,), 0, 10),
            jax.random.permutation(one, 11),
            jax.random.categorical(two, jnp.arange(4.0), shape=(9,)),
            jax.random.bits(three, (6,), "uint8"),
            jax.vmap(jax.vmap(lambda key: jax.random.normal(key, (4,))))(many),
        ]

    for seed in (0, 7, 2**31):
        for ours, theirs in zip(drawn(randomness.key(seed)), drawn(jax.random.key(np.uint32(seed))), strict=True):
            assert np.array_equal(ours, theirs)
    with jax.enable_x64():
        ours, theirs = (jax.random.uniform(key, (5,), "float64") for key in (randomness.key(3), jax.random.key(3)))
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("words", [(0, 0), (2**32 - 1, 5)])
def test_keys_are_their_words(words):
    assert np.array_equal(jax.random.key_data(randomness.key_of(np.array(words, np.uint32))), words)


def test_on_a_gpu_no_cipher_is_computed_inside_another(monkeypatch):
    """Between the cipher of a key and that of what is drawn from it stands a barrier: XLA would compute the first again
    for every number, and took minutes to compile that.
    """
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")

    def drawn(key):
        return uniforms(jax.random.split(jax.random.fold_in(key, 1))[0], 8)

    text = jax.jit(drawn).trace(randomness.key(0)).lower(lowering_platforms=("cuda",)).as_text()
    between = text.split("optimization_barrier")
    rounds = [part.count("stablehlo.shift_left") for part in between]
    assert len(between) == 4 and max(rounds) == randomness.ROUNDS and rounds[-1] == 0

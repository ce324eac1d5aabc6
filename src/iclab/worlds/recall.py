"""Associative recall in context: pairs of a key and a value, then one of the keys; what was its value?

Multi-query associative recall (Arora et al. 2023, "Zoology") asks for several keys of one sequence. Here a prompt asks
for one of them, drawn at random: the mean over prompts is the mean over the queries of a sequence. The keys of a prompt
are all different, and a value is any of the values.

A pair is two tokens, key then value, as in that paper; `joined` makes it one token with both, so that one layer without
a short convolution can answer. Tokens are one-hot: what they are embedded as is the model's. With a `dimension` keys
are fixed random directions of so many columns instead: with more keys than columns they are crowded, and a sum over
pairs mixes them up.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from iclab.errors import require, require_positive
from iclab.prompts import Padding, Prompt
from iclab.randomness import apart, ranks, uniforms


class Recall(eqx.Module):
    """The world with so many keys, values and pairs, checked when it is built.

    | word | meaning |
    |---|---|
    | dictionary | one row per key, then one per value, and last an empty one |
    | pairs | D, the pairs in a prompt; traced, at most `maximum_pairs` |
    | keys, values | the vocabulary; a value is the answer |
    """

    dictionary: Float[Any, "*members atoms columns"]
    pairs: Int[Any, "*members"]
    keys: int = eqx.field(static=True)
    values: int = eqx.field(static=True)
    maximum_pairs: int = eqx.field(static=True)
    joined: bool = eqx.field(static=True)
    dimension: int = eqx.field(static=True)

    def __init__(
        self,
        keys: int,
        values: int,
        pairs: int,
        *,
        maximum_pairs: int | None = None,
        joined: bool = False,
        dimension: int | None = None,
    ) -> None:
        most = pairs if maximum_pairs is None else maximum_pairs
        require_positive(keys=keys, values=values, pairs=pairs, maximum_pairs=most)
        require(pairs <= most, f"pairs is {pairs}, above maximum_pairs {most}.")
        require(most <= keys, f"keys is {keys}; {most} pairs with different keys need at least {most}.")
        wide = keys if dimension is None else dimension
        require_positive(dimension=wide)
        self.dictionary = np.zeros((keys + values + 1, wide + values), np.float32)
        self.dictionary[:keys, :wide] = np.eye(keys) if dimension is None else _directions(keys, wide)
        self.dictionary[keys:-1, wide:] = np.eye(values)
        self.pairs = np.int32(pairs)
        self.keys = keys
        self.values = values
        self.maximum_pairs = most
        self.joined = joined
        self.dimension = wide

    @property
    def feature_columns(self) -> int:
        """The columns of the keys."""
        return self.dimension

    @property
    def columns(self) -> int:
        """Those of keys, then one per value."""
        return self.dictionary.shape[-1]

    @property
    def padding(self) -> Padding:
        """In front, pair by pair: a value belongs to the key before it."""
        return Padding() if self.joined else Padding(in_front=True, together=2)

    def letters(self) -> dict[str, np.ndarray]:
        """Nothing to be saved beside the models."""
        return {}

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt. Absent pairs stand before the others, so that the query follows the last pair."""
        most = self.maximum_pairs
        drawn = apart(uniforms(key, self.keys + most + 1))
        keys = ranks(drawn[: self.keys])[:most]  # the ranks of all are a random order of the keys
        values = (drawn[self.keys : self.keys + most] * self.values).astype(int)
        asked = most - 1 - (drawn[-1] * self.pairs).astype(int)
        there = jnp.arange(most) >= most - self.pairs
        nothing = jnp.full(most, self.keys + self.values)
        both = jnp.column_stack([keys, self.keys + values])
        query = keys[asked]
        if self.joined:
            atoms = jnp.concatenate([both, jnp.stack([query, nothing[0]])[None]])
            present, pattern = there, keys
        else:
            atoms = jnp.append(both.reshape(-1), query)[:, None]
            present, pattern = jnp.repeat(there, 2), jnp.repeat(keys, 2)
        return Prompt(
            atoms=atoms,
            coefficients=jnp.ones(atoms.shape),
            present=jnp.append(present, True),
            pattern=jnp.append(pattern, query),
            label=jnp.zeros(len(atoms)),
            target=values[asked],
            dictionary=jnp.asarray(self.dictionary),
            answers=jnp.eye(self.values),
            feature_columns=self.dimension,
        )


def _directions(count: int, dimension: int) -> np.ndarray:
    """So many random directions, the same ones every time."""
    drawn = np.random.default_rng(0).standard_normal((count, dimension))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

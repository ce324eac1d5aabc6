"""Markov chains in context: every prompt has a chain of its own; what is the next symbol?

The rows of a chain's transition matrix are drawn from a Dirichlet prior, the first state from its stationary
distribution, and the last token asks for the state that follows it (Edelman et al. 2024, "The evolution of statistical
induction heads"). A loss at every position of a sequence of length T is the mean over prompts of the lengths 1 to T:
`shortest_length` makes lengths go by turns. Absent tokens stand before the others, so that neighbours stay neighbours.

With `Prior.doubly_stochastic` a chain is a random mixture of permutations: all states are equally frequent, and how
often a state occurs says nothing.
"""

from __future__ import annotations

import enum
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from iclab.errors import require, require_finite, require_positive
from iclab.prompts import Padding, Prompt
from iclab.randomness import uniforms

SQUARINGS = 7  # the first state is drawn from a row of P^128: stationary but for chains that hardly move
MOST_PERMUTED = 5  # states of doubly stochastic chains: 5! = 120 permutations


class Prior(enum.IntEnum):
    """Where chains come from: rows that are independent of each other, or mixtures of permutations."""

    rows = 0
    doubly_stochastic = 1


class Markov(eqx.Module):
    """The world of chains with so many states, checked when it is built.

    | word | letter |
    |---|---|
    | states | k |
    | concentration | α of the Dirichlet prior, the same for all entries; 1 is uniform |
    | length | T, the tokens before the query and the query; traced, at most `maximum_length` |
    | shortest_length | lengths go by turns from this one to `length`; both the same: one length |
    """

    dictionary: Float[Any, "*members states states"]
    length: Int[Any, "*members"]
    shortest_length: Int[Any, "*members"]
    prior: Int[Any, "*members"]
    maximum_length: int = eqx.field(static=True)
    concentration: float = eqx.field(static=True)

    def __init__(
        self,
        states: int,
        length: int,
        *,
        maximum_length: int | None = None,
        shortest_length: int | None = None,
        concentration: float = 1.0,
        prior: Prior = Prior.rows,
    ) -> None:
        longest = length if maximum_length is None else maximum_length
        shortest = length if shortest_length is None else shortest_length
        require(states >= 2, f"states is {states}; a chain needs at least 2.")
        require(length >= 2, f"length is {length}; there must be a token before the query.")
        require(length <= longest, f"length is {length}, above maximum_length {longest}.")
        require(2 <= shortest <= length, f"shortest_length is {shortest}; it must lie in 2..{length}, the length.")
        require_finite(concentration=concentration)
        require_positive(concentration=concentration)
        few = prior == Prior.rows or states <= MOST_PERMUTED
        require(few, f"states is {states}; doubly stochastic chains are drawn with at most {MOST_PERMUTED}.")
        self.dictionary = np.eye(states, dtype=np.float32)
        self.length = np.int32(length)
        self.shortest_length = np.int32(shortest)
        self.maximum_length = longest
        self.concentration = float(concentration)
        self.prior = np.int32(prior)

    @property
    def states(self) -> int:
        """k."""
        return self.dictionary.shape[-1]

    @property
    def feature_columns(self) -> int:
        """k: every column is of the input."""
        return self.states

    @property
    def columns(self) -> int:
        """k: tokens are one-hot."""
        return self.states

    @property
    def padding(self) -> Padding:
        """In front: a state belongs to the one before it."""
        return Padding(in_front=True)

    def letters(self) -> dict[str, np.ndarray]:
        """Nothing to be saved beside the models."""
        return {}

    def chain(self, key: Key[Array, ""]) -> Float[Array, "states states"]:
        """A transition matrix P: row i is the distribution of what follows state i."""
        rows = self._dirichlet(key, (self.states, self.states))
        if self.states > MOST_PERMUTED:
            return rows
        moves = np.array([np.eye(self.states)[list(p)] for p in itertools.permutations(range(self.states))])
        mixture = jnp.tensordot(self._dirichlet(jax.random.fold_in(key, 1), (len(moves),)), jnp.asarray(moves), 1)
        return jnp.where(self.prior == Prior.doubly_stochastic, mixture, rows)

    def _dirichlet(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, ...]:
        """Draws from Dirichlet(α, ..., α) along the last axis. For α = 1 exponentials do, which are much faster."""
        if self.concentration == 1:
            gammas = -jnp.log1p(-uniforms(key, int(np.prod(shape)))).reshape(shape) + 1e-12
        else:
            logs = jax.random.loggamma(key, self.concentration, shape)
            gammas = jnp.exp(logs - jnp.max(logs, axis=-1, keepdims=True))
        return gammas / jnp.sum(gammas, axis=-1, keepdims=True)

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt. Its number decides its length where lengths go by turns."""
        chain_key, state_key = jax.random.split(key)
        chain = self.chain(chain_key)
        settled = chain
        for _ in range(SQUARINGS):
            settled = settled @ settled
        ends = jnp.cumsum(jnp.concatenate([settled[:1], chain]), axis=1)
        drawn = uniforms(state_key, self.maximum_length + 1)

        def step(row: Array, share: Array) -> tuple[Array, Array]:
            state = jnp.sum(share >= ends[row, :-1])  # by inversion; the last end is 1 but for rounding
            return state + 1, state

        _, states = jax.lax.scan(step, jnp.zeros((), int), drawn)
        length = self.shortest_length + jnp.asarray(index) % (self.length - self.shortest_length + 1)
        return Prompt(
            atoms=states[:-1, None],
            coefficients=jnp.ones((self.maximum_length, 1)),
            present=jnp.arange(self.maximum_length) >= self.maximum_length - length,
            pattern=states[:-1],
            label=jnp.zeros(self.maximum_length),
            target=states[-1],
            dictionary=jnp.asarray(self.dictionary),
            answers=jnp.asarray(self.dictionary),
            feature_columns=self.states,
        )

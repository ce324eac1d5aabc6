"""Test prompts with what Section 3.2 of nonlinear-icl assumes of every one of them.

"We only assume at least α'/2 fraction of context inputs contain the same IDR (or ODR) pattern as the query": a number
of examples that is guaranteed, not expected. Drawn examples, as in Section 5, may have none that matches.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from iclab.authoring import Prompt
from iclab.worlds.classification import Classification


class Guaranteed(eqx.Module):
    """Prompts of a world in which exactly so many examples carry the query's pattern, and with it its label.

    The fewest that are allowed make the hardest prompts. Examples that were drawn with the query's pattern beyond that
    become copies of others that do not have it.
    """

    world: Classification
    matching: Int[Any, "*members"]

    @property
    def columns(self) -> int:
        """The dimension of a token."""
        return self.world.columns

    @property
    def feature_columns(self) -> int:
        """How many columns hold the input."""
        return self.world.feature_columns

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt; the model has no positions, so the first examples are as good as any to match."""
        prompt = self.world.sample(key, index)
        places, query = jnp.arange(len(prompt.pattern)), len(prompt.pattern) - 1
        others = prompt.present & (prompt.pattern != prompt.pattern[query])
        donors = jnp.argsort(~others)  # examples with another pattern first, in their order
        surplus = (places >= self.matching) & (places < query) & ~others & jnp.any(others)
        source = jnp.where(surplus, donors[places % jnp.maximum(jnp.sum(others), 1)], places)
        chosen = places < self.matching
        pattern = jnp.where(chosen, prompt.pattern[query], prompt.pattern[source])
        label = jnp.where(chosen, prompt.target, prompt.label[source])
        atoms, coefficients = prompt.atoms[source].at[:, 0].set(pattern), prompt.coefficients[source]
        return dataclasses.replace(prompt, pattern=pattern, label=label, atoms=atoms, coefficients=coefficients)


def guaranteed(world: Classification, fraction: float) -> Guaranteed:
    """The world's prompts with α'/2 of their examples matching the query, rounded up; `fraction` is α'."""
    return Guaranteed(world, np.int32(np.ceil(fraction * int(world.context_length) / 2 - 1e-9)))

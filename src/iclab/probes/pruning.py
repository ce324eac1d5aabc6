"""Removing MLP neurons: rows of W_O, by the norm of r_i (row i of W_O W_V) or at random (Section 2.4, Theorem 3.7).

A removed row is set to zero, which gives the same output as leaving it out: ReLU(0) = 0.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from iclab.models.softmax_transformer import SoftmaxTransformer

SMALLEST, RANDOM, LARGEST, BELOW = range(4)


class Pruning(eqx.Module):
    """Which neurons go: the `amount` fraction with smallest norm, at random, with largest norm, or all below `amount`."""

    order: Int[Any, "*jobs"]
    amount: Float[Any, "*jobs"]
    key: Key[Array, "*jobs"]


def prune(model: SoftmaxTransformer, pruning: Pruning) -> SoftmaxTransformer:
    """The model without the neurons that `pruning` names."""
    norms = jnp.linalg.norm(model.neurons(), axis=1)
    count = norms.shape[0]
    scores = jnp.stack([norms, jax.random.uniform(pruning.key, (count,)), -norms])
    rank = jnp.argsort(jnp.argsort(scores[jnp.minimum(pruning.order, LARGEST)]))
    removed = jnp.where(pruning.order == BELOW, norms <= pruning.amount, rank < jnp.round(pruning.amount * count))
    kept = jnp.where(removed[:, None], 0.0, model.output_weights)
    return eqx.tree_at(lambda m: m.output_weights, model, kept)

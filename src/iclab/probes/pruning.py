"""Removing MLP neurons: rows of W_O, by the norm of r_i (row i of W_O W_V) or at random (Section 2.4, Theorem 3.7).

A removed row is set to zero, which gives the same output as leaving it out: ReLU(0) = 0. In GPT-2 a neuron is a column
of an MLP's first matrix, its norm is that of this column, and it is removed by the row of the second matrix through
which it speaks.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from iclab.models.gpt2 import GPT2
from iclab.models.softmax_transformer import SoftmaxTransformer

SMALLEST, RANDOM, LARGEST, BELOW = range(4)


class Pruning(eqx.Module):
    """Which neurons go: the `amount` fraction with smallest norm, at random, with largest norm, or all below
    `amount`.
    """

    order: Int[Any, "*jobs"]
    amount: Float[Any, "*jobs"]
    key: Key[Array, "*jobs"]


class LayerPruning(eqx.Module):
    """The same in one layer of a deep model, or in each of them (`layer` is -1)."""

    layer: Int[Any, "*jobs"]
    neurons: Pruning


def _removed(norms: Float[Array, " neurons"], pruning: Pruning) -> Bool[Array, " neurons"]:
    count = norms.shape[0]
    scores = jnp.stack([norms, jax.random.uniform(pruning.key, (count,)), -norms])
    rank = jnp.argsort(jnp.argsort(scores[jnp.minimum(pruning.order, LARGEST)]))
    return jnp.where(pruning.order == BELOW, norms <= pruning.amount, rank < jnp.round(pruning.amount * count))


def prune(model: SoftmaxTransformer, pruning: Pruning) -> SoftmaxTransformer:
    """The model without the neurons that `pruning` names."""
    removed = _removed(jnp.linalg.norm(model.neurons(), axis=1), pruning)
    kept = jnp.where(removed[:, None], 0.0, model.output_weights)
    return eqx.tree_at(lambda m: m.output_weights, model, kept)


def prune_layer(model: GPT2, pruning: LayerPruning) -> GPT2:
    """GPT-2 without the neurons that `pruning` names."""
    blocks = []
    for number, block in enumerate(model.blocks):
        chosen = (pruning.layer == number) | (pruning.layer < 0)
        removed = _removed(jnp.linalg.norm(block.expansion.weight, axis=0), pruning.neurons) & chosen
        kept = jnp.where(removed[:, None], 0.0, block.contraction.weight)
        blocks.append(eqx.tree_at(lambda b: b.contraction.weight, block, kept))
    return eqx.tree_at(lambda m: m.blocks, model, tuple(blocks))

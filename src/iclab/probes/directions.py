"""Where the weights of one layer point: along relevant, irrelevant and outlier patterns (Lemmas 3 to 5 of
mamba-outliers).

Technique: a'(W - W(0))b for all pairs of patterns, averaged over the groups that the training tasks define, and wᵀa for
the gate. No prompt is drawn, so this costs nothing beside a training step. Limits: a token is taken without its label,
and a gate without its irrelevant pattern.

| group | pairs (a, b) |
|---|---|
| same | μ_j, μ_j |
| partner | μ_j, μ_k that form a training task |
| stranger | μ_j, μ_k that do not (NaN where there are none) |
| outlier | v*_s, μ_j |
| irrelevant, reverse | ν_k, μ_j and μ_j, ν_k |
| own, cross | ν_k, ν_k and ν_k, ν_k' |
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iclab.models.linear_transformer import LinearTransformer
from iclab.models.mamba import Mamba
from iclab.worlds.classification import Classification


def weight_growth(model: Mamba | LinearTransformer, world: Classification, scale: Any) -> dict[str, Array]:
    """What W_B and W_C gained since W(0) = δI, by group: signed means of pairs of relevant patterns, else sizes.

    `scale` is δ. Both matrices are averaged: the lemmas say the same of them.
    """
    dictionary = jnp.asarray(world.dictionary)
    gains = [dictionary @ weights[0] @ dictionary.T for weights in (model.key_weights, model.query_weights)]
    gain = jnp.stack(gains) - scale * (dictionary @ dictionary.T)
    relevant, irrelevant, outlier = groups(world)
    diagonal = jnp.eye(len(dictionary), dtype=bool)
    tasks = _tasks(world)
    pairs = relevant[:, None] & relevant & ~diagonal
    both = irrelevant[:, None] & irrelevant
    size = jnp.abs(gain)
    return {
        "same": _mean(gain, relevant[:, None] & diagonal),
        "partner": _mean(gain, pairs & tasks),
        "stranger": _mean(gain, pairs & ~tasks),
        "stranger_size": _mean(size, pairs & ~tasks),
        "outlier": _mean(size, outlier[:, None] & relevant),
        "irrelevant": _mean(size, irrelevant[:, None] & relevant),
        "reverse": _mean(size, relevant[:, None] & irrelevant),
        "own": _mean(size, both & diagonal),
        "cross": _mean(size, both & ~diagonal),
    }


def gate_directions(model: Mamba, world: Classification, tested: Classification) -> dict[str, Array]:
    """wᵀv*, wᵀμ, the logit of a token with an outlier of the world, and the gate that an outlier of the `tested` world
    has right before the query.
    """
    weights = model.gate_weights[0]
    relevant, _, outlier = groups(world)
    logits, shifted = (jnp.asarray(one.dictionary) @ weights for one in (world, tested))
    clean, turned = _mean(logits, relevant), _mean(logits, outlier)
    assert world.outliers is not None and tested.outliers is not None
    opened = jax.nn.sigmoid(tested.outliers.magnitude * shifted[:, None] + logits)  # [outlier, pattern of the example]
    left = 1.0 - jax.nn.sigmoid(logits)  # by the query's pattern
    return {
        "gate_outlier": turned,
        "gate_relevant": clean,
        "outlier_logit": world.outliers.magnitude * turned + clean,
        "nearest_gate": _mean(opened, groups(tested)[2][:, None] & relevant) * _mean(left, relevant),
    }


def groups(world: Classification) -> tuple[Bool[Array, " atoms"], Bool[Array, " atoms"], Bool[Array, " atoms"]]:
    """Which atoms are relevant patterns, irrelevant ones, outliers."""
    first = world.relevant_patterns
    second = first + world.irrelevant_patterns
    atoms = jnp.arange(world.dictionary.shape[0])
    return (
        atoms < first,
        (atoms >= first) & (atoms < second),
        (atoms >= second) & (atoms < second + world.outlier_patterns),
    )


def _tasks(world: Classification) -> Bool[Array, "atoms atoms"]:
    """Which pairs of atoms form a training task, in either order."""
    size = world.dictionary.shape[0]
    drawn = (jnp.arange(world.tasks.shape[0]) < world.task_count).astype(float)
    table = jnp.zeros((size, size)).at[world.tasks[:, 0], world.tasks[:, 1]].add(drawn)
    return (table + table.T) > 0


def _mean(values: Float[Array, "*shape"], chosen: Bool[Array, "*chosen"]) -> Float[Array, ""]:
    """The mean over the chosen entries, over a leading axis too; NaN where none is chosen."""
    chosen = jnp.broadcast_to(chosen, values.shape)
    return jnp.sum(jnp.where(chosen, values, 0.0)) / jnp.sum(chosen)

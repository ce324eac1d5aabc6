"""How strongly queries and keys respond to patterns.

Technique: apply W_Q and W_K to tokens or to bare patterns and take norms and components. The key space R^{m_a} is
compared with the feature space through its first d_X coordinates, where the initialisation δI puts them; directions
learned outside these coordinates count in the norm but not in any component.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.prompts import Prompt
from iclab.worlds.classification import Classification


def projections(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    """Proposition 4.1 and Fig. 2A of nonlinear-icl, for W_Q p_query and, averaged over the contexts, for W_K p_i.

    `*_norm` is ‖W p‖, `*_along` is |[XDR(p)ᵀ/‖XDR(p)‖, 0ᵀ] W p| with XDR(p) the token's own relevant pattern,
    `*_across` the largest such component along any other pattern of the dictionary (relevant or irrelevant).
    """
    tokens = prompt.tokens()
    features = prompt.feature_columns
    patterns = prompt.dictionary[:-1, :features]
    lengths = jnp.linalg.norm(patterns, axis=1, keepdims=True)
    units = jnp.where(lengths > 0, patterns / jnp.maximum(lengths, 1e-9), 0.0)

    def components(projected: Float[Array, "n key_width"], own: Array) -> tuple[Array, Array, Array]:
        along_all = jnp.abs(projected[:, :features] @ units.T)
        is_own = jnp.arange(len(units)) == own[:, None]
        along = jnp.sum(jnp.where(is_own, along_all, 0.0), axis=1)
        across = jnp.max(jnp.where(is_own, 0.0, along_all), axis=1)
        return jnp.linalg.norm(projected, axis=1), along, across

    query = components((model.query_weights @ tokens[-1])[None], prompt.pattern[-1:])
    keys = components(tokens[:-1] @ model.key_weights.T, prompt.pattern[:-1])
    weights = prompt.present[:-1] / jnp.sum(prompt.present[:-1])
    names = ("norm", "along", "across")
    return {f"query_{name}": value[0] for name, value in zip(names, query, strict=True)} | {
        f"key_{name}": value @ weights for name, value in zip(names, keys, strict=True)
    }


def responses(model: SoftmaxTransformer, world: Classification, trained: Classification) -> dict[str, Array]:
    """Proposition 4.1 and Lemma B.5 of nonlinear-icl from the weights, in the worst case over all tokens of a world.

    A token is p = (μ_j + κ ν_k; ±q), or without a label where it is a query, with |κ| <= K. As W p is linear, signs and
    sizes that make a component largest or smallest are known, and nothing has to be drawn. For W_Q and for W_K:
    `*_own` is the smallest component along the token's relevant pattern (17), `*_other` the largest along another
    relevant one (18), `*_idle` the largest along an irrelevant one that the token does not carry, `*_carried` along
    the one that it carries (19). Of the bare patterns μ_j: `*_kept` is the smallest response along themselves,
    `*_rival` the largest along a pattern with which they share a task of the world `trained` (28), `*_stranger` along
    any other relevant one (29), `*_noise` along an irrelevant one (30).
    """
    features, atoms = world.feature_columns, jnp.asarray(world.dictionary)
    rows = jnp.arange(len(atoms))
    relevant = rows < world.relevant_patterns
    irrelevant = (rows >= world.relevant_patterns) & (rows < world.relevant_patterns + world.irrelevant_patterns)
    lengths = jnp.linalg.norm(atoms[:, :features], axis=1, keepdims=True)
    units = jnp.where(lengths > 0, atoms[:, :features] / jnp.maximum(lengths, 1e-9), 0.0)
    same, pairs = jnp.eye(len(atoms), dtype=bool), relevant[:, None] & relevant
    tasks = jnp.where(jnp.arange(len(trained.tasks))[:, None] < trained.task_count, jnp.asarray(trained.tasks), -1)
    rivals = jnp.zeros_like(same).at[tasks[:, 0], tasks[:, 1]].set(True)
    rivals = (rivals | rivals.T) & pairs & ~same

    def largest(values: Array, where: Array) -> Array:
        return jnp.max(jnp.where(where, values, 0.0))

    found: dict[str, Array] = {}
    for name, weights, labelled in (("query", model.query_weights, 0.0), ("key", model.key_weights, 1.0)):
        signed = units @ weights[:features] @ atoms.T  # along row a, of the response to row j
        along = jnp.abs(signed)
        label = labelled * along[:, -1:]
        added = world.irrelevant_high * jnp.where(irrelevant, along, 0.0)
        spread = jnp.max(added, axis=1, keepdims=True)
        unshared = jnp.max(jnp.where(same, 0.0, added), axis=1, keepdims=True)
        into = irrelevant[:, None] & relevant
        carried = world.irrelevant_high * jnp.diagonal(along)[:, None]
        smallest = jnp.where(relevant, jnp.diagonal(along - spread - label), jnp.inf)
        found |= {
            f"{name}_own": jnp.maximum(jnp.min(smallest), 0.0),
            f"{name}_other": largest(along + spread + label, pairs & ~same),
            f"{name}_idle": largest(along + unshared + label, into),
            f"{name}_carried": largest(along + carried + label, into),
            f"{name}_kept": jnp.min(jnp.where(relevant, jnp.diagonal(signed), jnp.inf)),
            f"{name}_rival": largest(along, rivals),
            f"{name}_stranger": largest(along, pairs & ~same & ~rivals),
            f"{name}_noise": largest(along, into),
        }
    return found


def pattern_norms(model: SoftmaxTransformer, world: Classification) -> dict[str, Array]:
    """Mean ‖W_Q μ_j‖, ‖W_K μ_j‖ over relevant and ‖W_Q ν_l‖, ‖W_K ν_l‖ over irrelevant patterns (feature-selection,
    Fig. 1a)
    """
    rows = jnp.arange(world.dictionary.shape[0])
    relevant = rows < world.relevant_patterns
    irrelevant = (rows >= world.relevant_patterns) & (rows < world.relevant_patterns + world.irrelevant_patterns)
    measured = {}
    for name, weights in (("query", model.query_weights), ("key", model.key_weights)):
        norms = jnp.linalg.norm(world.dictionary @ weights.T, axis=1)
        measured[f"{name}_relevant"] = jnp.sum(norms * relevant) / jnp.sum(relevant)
        measured[f"{name}_irrelevant"] = jnp.sum(norms * irrelevant) / jnp.sum(irrelevant)
    return measured

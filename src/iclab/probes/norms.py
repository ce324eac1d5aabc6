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

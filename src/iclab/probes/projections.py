"""What the weights of the residual Transformer do to concepts: projections of W_V and of W_QᵀW_K on a, b and ν.

Technique: bilinear forms uᵀ W_V u' and (W_Q u)ᵀ(W_K u') on the dictionary's own directions (Figs. 2-4 (c, d), Lemmas
4.1-4.3 of vector-arithmetic). A diagonal entry says how strongly a concept is passed on or attended to, an off-diagonal
one how strongly it is turned into another. Limit: directions outside the dictionary are not looked at.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from iclab.models.residual_transformer import ResidualTransformer
from iclab.worlds.concepts import Concepts


def concept_projections(model: ResidualTransformer, world: Concepts) -> dict[str, Array]:
    """Means over concepts of the diagonal entries for a, b, ν and the largest cross entries in absolute value.

    "value_low" is bᵀ W_V b of every concept, with its sign.
    """
    count = world.concept_count
    rows = jnp.asarray(world.dictionary)[:-1]
    value = rows @ model.value_weights @ rows.T  # [u, u']: uᵀ W_V u'
    attention = (rows @ model.query_weights.T) @ (rows @ model.key_weights.T).T
    found = {"value_low@concept": jnp.diagonal(value)[count : 2 * count]}
    for name, matrix in (("value", value), ("attention", attention)):
        diagonal = jnp.diagonal(matrix)
        found[f"{name}_a"] = jnp.mean(diagonal[:count])
        found[f"{name}_b"] = jnp.max(jnp.abs(diagonal[count : 2 * count]))
        found[f"{name}_common"] = jnp.mean(jnp.abs(diagonal[2 * count :]))
        cross = jnp.abs(matrix - jnp.diag(diagonal))[: 2 * count, : 2 * count]
        found[f"{name}_cross"] = jnp.max(cross)
    return found

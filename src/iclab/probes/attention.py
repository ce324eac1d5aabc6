"""Where the attention goes.

Technique: sum the attention weights over groups of context tokens that the prompt's truth defines. Intuition: a model that
answers by looking up examples like the query puts its mass on N*, the contexts that carry the query's pattern. Limit: mass is
an average; it says nothing of what is done with the tokens that are read.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.prompts import Prompt


def attention_mass(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    """Σ_{i in N*} attn(i) and the mass on all other contexts (Corollary 4.3 and Fig. 2B of nonlinear-icl).

    A prompt without any matching context counts with mass 0: nothing is conditioned away.
    """
    _, trace = model(prompt)
    same = jnp.sum(jnp.where(prompt.matches_query(), trace.attention, 0.0))
    return {"attention_same": same, "attention_other": jnp.sum(trace.attention) - same}

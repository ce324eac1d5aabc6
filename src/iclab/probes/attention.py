"""Where the attention goes.

Technique: sum the attention weights over groups of context tokens that the prompt's truth defines. Intuition: a model
that answers by looking up examples like the query puts its mass on N*, the contexts that carry the query's pattern.
Limit: mass is an average; it says nothing of what is done with the tokens that are read. In a deep model a token of a
later layer holds what earlier layers brought to it, so that its own pattern is not all that is read there.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array

from iclab.models.gpt2 import GPT2
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.prompts import Prompt


def attention_mass(model: SoftmaxTransformer | GPT2, prompt: Prompt) -> dict[str, Array]:
    """Σ_{i in N*} attn(i) and the mass on all other contexts (Corollary 4.3 and Fig. 2B of nonlinear-icl).

    A prompt without any matching context counts with mass 0: nothing is conditioned away.
    """
    _, trace = model(prompt)
    same = jnp.sum(jnp.where(prompt.matches_query(), trace.attention, 0.0), axis=-1)
    return {"attention_same": same, "attention_other": jnp.sum(trace.attention, axis=-1) - same}


def by_head(masses: Mapping[str, Array]) -> dict[str, Array]:
    """Masses of a deep model, with their axes named."""
    return {f"{name}@layer@head": value for name, value in masses.items()}

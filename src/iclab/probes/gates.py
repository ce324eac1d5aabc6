"""What linear attention and Mamba's gate do with each context example, layer by layer, at the query.

Technique: the score p_iᵀ W_Bᵀ W_C p_query and the gate G_{i,l+1} of each example, summed or averaged over groups that
the prompt's truth defines: the query's pattern or another, outlier or clean, near the query or far from it. Scores are
not normalised, so sums may be negative; a gate is a number in [0, 1] that multiplies a score. Averages over a group
that a prompt may not contain come as a sum and a count, to be divided after the expectation.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array

from iclab.errors import require
from iclab.losses import hinge
from iclab.models import Model
from iclab.models.mamba import Mamba, recurrence
from iclab.prompts import Prompt


@runtime_checkable
class Weighing(Protocol):
    """A trace with a score and a gate for each example at the query, layer by layer: what these probes read."""

    scores: Array
    gates: Array


def weighed(model: Model, prompt: Prompt) -> tuple[Array, Weighing]:
    """The answer and the trace of a model, or one sentence where it weighs no examples."""
    output, trace = model(prompt)
    require(
        isinstance(trace, Weighing),
        f"{type(model).__name__} has no score and no gate for each example; measure its answers instead.",
    )
    return output, trace


def attention_sums(model: Model, prompt: Prompt) -> dict[str, Array]:
    """Σ_{i in N_1} and Σ_{i not in N_1} of the attention scores (Corollary 1, Figs. 2 and 4 of mamba-outliers), per
    layer.
    """
    _, trace = weighed(model, prompt)
    same = prompt.matches_query()
    other = prompt.present[:-1] & ~same
    return {
        "score_same@layer": jnp.sum(jnp.where(same, trace.scores, 0.0), axis=1),
        "score_other@layer": jnp.sum(jnp.where(other, trace.scores, 0.0), axis=1),
    }


def gate_profile(model: Model, prompt: Prompt) -> dict[str, Array]:
    """Gates by distance to the query, of outlier and of clean examples, and of the j-th closest clean one (Corollary
    2).

    The first entry of an axis "distance" or "rank" is the closest. `*_sum` over `*_count` is the average.
    """
    _, trace = weighed(model, prompt)
    assert prompt.outlier is not None, "gate profiles need a world with outliers"
    outlier = prompt.outlier[:-1] & prompt.present[:-1]
    clean = ~prompt.outlier[:-1] & prompt.present[:-1]
    contexts = len(clean)
    rank = jnp.cumsum(clean[::-1])[::-1]  # the j of h(j): how many clean examples there are from here to the query
    chosen = clean & (rank == jnp.arange(1, contexts + 1)[:, None])  # [j, i]
    found = {
        "ranked_sum@layer@rank": jnp.sum(jnp.where(chosen, trace.gates[:, None, :], 0.0), axis=2),
        "ranked_count@rank": jnp.any(chosen, axis=1).astype(float),
    }
    for name, group in (("outlier", outlier), ("clean", clean)):
        found[f"{name}_sum@layer@distance"] = jnp.where(group, trace.gates, 0.0)[:, ::-1]
        found[f"{name}_count@distance"] = group.astype(float)[::-1]
    return found


def gate_reach(model: Model, prompt: Prompt) -> dict[str, Array]:
    """Σ_i G_{i,l+1} (l - i + 1), how far back one layer looks (Lemma 6)."""
    _, trace = weighed(model, prompt)
    present = prompt.present[:-1]
    distance = jnp.cumsum(present[::-1])[::-1]
    return {"reach": jnp.sum(jnp.where(present, trace.gates[0] * distance, 0.0))}


def clipped_errors(model: Model, prompt: Prompt) -> dict[str, Array]:
    """The 0-1 error of one layer as it is, and with its negative attention scores set to 0; a tie is an error."""
    output, trace = weighed(model, prompt)
    kept = jnp.sum(trace.gates[0] * jnp.maximum(trace.scores[0], 0.0) * prompt.label[:-1])
    return {name: hinge.mistake(one, prompt)[0].astype(float) for name, one in (("error", output), ("clipped", kept))}


def form_difference(model: Mamba, prompt: Prompt) -> dict[str, Array]:
    """|F by the recurrence (1) - F by the closed form (3)|, relative to 1 + |F|."""
    closed, _ = model(prompt)
    return {"difference": jnp.abs(recurrence(model, prompt) - closed) / (1.0 + jnp.abs(closed))}

"""What each MLP neuron reads: the rows r_i of W_O W_V, split into their feature part and their label part.

Intuition: a neuron that decodes labels points along ±q in its label part, with the sign of its readout weight, and
treats all relevant patterns alike in its feature part. Limit: an angle says nothing for a neuron of tiny norm, so norms
come along.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.prompts import Prompt
from iclab.worlds.classification import Classification


def _cosine(rows: Float[Array, "n d"], direction: Float[Array, " d"]) -> Float[Array, " n"]:
    return rows @ direction / jnp.maximum(jnp.linalg.norm(rows, axis=1) * jnp.linalg.norm(direction), 1e-12)


def neuron_directions(model: SoftmaxTransformer, world: Classification) -> dict[str, Array]:
    """Norm ‖r_i‖, and norm and cosine of both parts (Theorem 3.7, Proposition 4.5, Figs. 2C and 2D of nonlinear-icl).

    The feature part is compared with μ̄, the mean relevant pattern; the label part with q for a_i > 0 and -q for a_i <
    0.
    """
    neurons = model.neurons()
    feature, label = neurons[:, : world.feature_columns], neurons[:, world.feature_columns :]
    rows = jnp.arange(world.dictionary.shape[0])
    relevant = (rows < world.relevant_patterns).astype(float)
    mean_pattern = relevant @ world.dictionary[:, : world.feature_columns] / jnp.sum(relevant)
    embedding = jnp.asarray(world.dictionary)[-1, world.feature_columns :]
    return {
        "neuron_norm@neuron": jnp.linalg.norm(neurons, axis=1),
        "feature_norm@neuron": jnp.linalg.norm(feature, axis=1),
        "feature_cosine@neuron": _cosine(feature, mean_pattern),
        "label_norm@neuron": jnp.linalg.norm(label, axis=1),
        "label_cosine@neuron": _cosine(label, embedding) * jnp.sign(model.readout),
        "readout_sign@neuron": jnp.sign(model.readout),
    }


def contributions(model: SoftmaxTransformer, prompt: Prompt, features: int) -> dict[str, Array]:
    """Proposition 2 and Fig. 1b of feature-selection: what the label part adds to each pre-activation, and the feature
    part.

    Two readings. "printed_": as (10) prints it, coordinates of W_O against the same coordinates of the value sa(Ψ, P),
    all neurons. "own_": the contributions of the label and the feature embeddings, r_i = row i of W_O W_V against the
    pooled column, over the neurons whose readout has the sign of the prompt's label. They differ because training W_V
    mixes label content into all coordinates of the value, and because a neuron that votes for the other label is driven
    far below 0.

    (10) is asked to hold by more than ξ = 1/√m, the scale of W_O at the start: half of all neurons satisfy the bare
    inequality before any training. `rest` is the mean |pre-activation| of the neurons for which it does not hold, over
    ξ.
    """
    _, trace = model(prompt)
    scale = model.output_weights.shape[0] ** -0.5
    pooled = trace.attention @ prompt.tokens()[:-1]
    votes = model.readout * prompt.target > 0
    found: dict[str, Array] = {}
    for reading, weights, vector, counted in (
        ("printed", model.output_weights, trace.value, jnp.ones_like(votes)),
        ("own", model.neurons(), pooled, votes),
    ):
        feature = weights[:, :features] @ vector[:features]
        label = weights[:, features:] @ vector[features:]
        wins = (label > feature + scale) & counted
        rest = counted & ~wins
        winners, losers = jnp.maximum(jnp.sum(wins), 1), jnp.maximum(jnp.sum(rest), 1)
        found |= {
            f"{reading}_wins": jnp.sum(wins) / jnp.sum(counted),
            f"{reading}_label": jnp.sum(jnp.where(wins, label, 0.0)) / winners,
            f"{reading}_feature": jnp.sum(jnp.where(wins, feature, 0.0)) / winners,
            f"{reading}_rest": jnp.sum(jnp.where(rest, jnp.abs(trace.preactivation), 0.0)) / losers / scale,
        }
    return found

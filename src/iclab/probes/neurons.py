"""What each MLP neuron reads: the rows r_i of W_O W_V, split into their feature part and their label part.

Intuition: a neuron that decodes labels points along ±q in its label part, with the sign of its readout weight, and treats all
relevant patterns alike in its feature part. Limit: an angle says nothing for a neuron of tiny norm, so norms come along.
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

    The feature part is compared with μ̄, the mean relevant pattern; the label part with q for a_i > 0 and -q for a_i < 0.
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
    """Proposition 2 and Fig. 1b of feature-selection: W_O's label part times the value's label part, and its feature part.

    The value space R^{m_b} is split like the columns, where the initialisation δI puts them. Per neuron: `label_wins` says
    whether (10) holds, the label part's contribution exceeds the feature part's, by more than ξ = 1/√m, the scale of W_O
    at initialisation (half of all neurons satisfy the bare inequality before any training).
    """
    _, trace = model(prompt)
    weights, value = model.output_weights, trace.value
    feature = weights[:, :features] @ value[:features]
    label = weights[:, features:] @ value[features:]
    scale = weights.shape[0] ** -0.5
    wins = label > feature + scale
    winners = jnp.maximum(jnp.sum(wins), 1)
    losers = jnp.maximum(jnp.sum(~wins), 1)
    return {
        "label_wins": jnp.mean(wins.astype(float)),
        "label_contribution": jnp.sum(jnp.where(wins, label, 0.0)) / winners,
        "feature_contribution": jnp.sum(jnp.where(wins, feature, 0.0)) / winners,
        "rest_preactivation": jnp.sum(jnp.where(wins, 0.0, jnp.abs(trace.preactivation))) / losers / scale,
    }

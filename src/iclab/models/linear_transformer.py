"""The linear Transformer of mamba-outliers: eq. (3) with all gates set to 1, in one layer or several.

    F(Ψ; P) = Σ_i y_i p_iᵀ W_Bᵀ W_C p_query

| code | letter | space |
|---|---|---|
| key_weights | W_B | (depth ×) R^{n × (d+1)} |
| query_weights | W_C | (depth ×) R^{n × (d+1)} |

How layers are stacked is not stated in the paper. `Residual.label` adds a layer's label channel to that of its input
and leaves the features alone, `full` adds all channels, `none` replaces them. A layer but the last answers at every
position: causally (position t sees i <= t) or not (it sees all). `mean` divides a layer's sum by the number of
examples.
"""

from __future__ import annotations

import enum
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from iclab.errors import require, require_finite, require_positive
from iclab.models.linear_attention import attend_all, gates_at_end, present_logits
from iclab.prompts import InColumns, Prompt
from iclab.worlds import World


class Residual(enum.Enum):
    """What a layer passes on: its output alone, its label channel added to the input's, or all channels added."""

    none = "none"
    label = "label"
    full = "full"


class LinearTrace(eqx.Module):
    """Per layer, at the query: attention scores p_iᵀ W_Bᵀ W_C p_query of the contexts, and gates G_{i,l+1} (1 without
    any).
    """

    scores: Float[Array, "depth contexts"]
    gates: Float[Array, "depth contexts"]


class LinearTransformer(eqx.Module):
    """A stack of linear attention layers; depth is the leading axis of the weights."""

    key_weights: Float[Array, "*members depth state columns"]
    query_weights: Float[Array, "*members depth state columns"]
    residual: Residual = eqx.field(static=True, default=Residual.label)
    causal: bool = eqx.field(static=True, default=False)
    mean: bool = eqx.field(static=True, default=False)

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, ""], LinearTrace]:
        """The label channel at the query after the last layer."""
        return run_stack(self, prompt, None)

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under the paper's letters; without the layer axis where there is one layer."""
        return squeeze({"W_B": self.key_weights, "W_C": self.query_weights})


def squeeze(letters: dict[str, Any]) -> dict[str, np.ndarray]:
    """One-layer members are saved without a layer axis."""
    arrays = {name: np.asarray(value) for name, value in letters.items()}
    return {name: array[0] if array.shape[0] == 1 else array for name, array in arrays.items()}


def run_stack(
    model: Any, prompt: Prompt, gates: Float[Array, "depth columns"] | None
) -> tuple[Float[Array, ""], LinearTrace]:
    """All layers of a linear Transformer or (with gate weights) of Mamba. The last layer answers at the query only."""
    depth = model.key_weights.shape[0]
    scale = 1.0 / jnp.sum(prompt.present[:-1]) if model.mean else 1.0
    # Layers in between change the tokens, so that only a single layer can read a prompt in its own coordinates.
    view = prompt.view() if depth == 1 else InColumns(jnp.where(prompt.present[:, None], prompt.tokens(), 0.0))
    scores, weights = [], []
    output = jnp.zeros(())
    for layer in range(depth):
        keys, queries = view.read(model.key_weights[layer]), view.read(model.query_weights[layer])
        logits = None if gates is None else present_logits(view.dot(view.read(gates[layer])), prompt.present)
        score = jnp.where(prompt.present, view.dot((keys.T @ queries) @ view.query), 0.0)
        gate = jnp.ones_like(score) if logits is None else gates_at_end(logits)
        scores.append(score[:-1])
        weights.append(gate[:-1])
        if layer == depth - 1:
            labels = view.dot(view.read(jnp.zeros(model.key_weights.shape[-1]).at[-1].set(1.0)))
            output = scale * jnp.sum(gate * labels * score)
            # With a residual the query's label channel holds the sum of all earlier answers (it starts from 0).
            output = output if model.residual is Residual.none else output + labels[-1]
        else:
            assert isinstance(view, InColumns)
            view = InColumns(_next_inputs(model, view.tokens, layer, logits, scale))
    return output, LinearTrace(jnp.stack(scores), jnp.stack(weights))


def _next_inputs(
    model: Any, inputs: Float[Array, "tokens columns"], layer: int, logits: Float[Array, " tokens"] | None, scale: Any
) -> Float[Array, "tokens columns"]:
    values = inputs[:, -1:] if model.residual is Residual.label else inputs
    keys, queries = inputs @ model.key_weights[layer].T, inputs @ model.query_weights[layer].T
    mixed = attend_all(values, keys, queries, logits) if model.causal else queries @ (keys.T @ values)
    mixed = scale * mixed
    if model.residual is Residual.label:
        return inputs.at[:, -1].add(mixed[:, 0])
    return mixed if model.residual is Residual.none else inputs + mixed


def diagonal(scale: Any, depth: int, state: int, world: World) -> Float[Array, "depth state columns"]:
    """δ on the first d diagonal entries (the features), in every layer."""
    require(
        world.columns == world.feature_columns + 1,
        "the label must be one column: use a label embedding of dimension 1.",
    )
    features = jnp.arange(world.columns) < world.feature_columns
    return jnp.broadcast_to(scale * jnp.eye(state, world.columns) * features, (depth, state, world.columns))


class LinearTransformerSettings(eqx.Module):
    """Sizes and initialisation: δ is `initial_scale`; the state has as many dimensions as a column."""

    initial_scale: float | Float[Array, "*members"] = 0.2
    depth: int = eqx.field(static=True, default=1)
    residual: Residual = eqx.field(static=True, default=Residual.label)
    causal: bool = eqx.field(static=True, default=False)
    mean: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        require_positive(depth=self.depth)
        require_finite(initial_scale=self.initial_scale)

    def init(self, key: Key[Array, ""], world: World) -> LinearTransformer:
        """W_B = W_C: δ on the feature diagonal. Nothing is random."""
        weights = diagonal(self.initial_scale, self.depth, world.columns, world)
        return LinearTransformer(weights, weights, self.residual, self.causal, self.mean)

"""The one-layer attention-only Transformer of chain-of-thought: eq. (2).

    F(Ψ; P) = Σ_{i < len(P)} W_V p̃_i · softmax_i( p̃_iᵀ W p̃_query ),   W = W_Kᵀ W_Q,   W_V = (0 I 0)

on columns p̃ = (input; output; position). The paper prints the key without its tilde; the position codes are on keys
and query. W is trained as one matrix, or W_K and W_Q separately; W_V is fixed and reads the output block.

| code | letter | space |
|---|---|---|
| weights | W | R^{D × D}, D = 2 d_X + K |
| key_weights, query_weights | W_K, W_Q | R^{m × D} |
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from iclab.errors import require, require_finite, require_positive
from iclab.prompts import Prompt
from iclab.worlds import World


class ChainTrace(eqx.Module):
    """What happened inside: the attention over all columns but the query's."""

    attention: Float[Array, " contexts"]


def _attend(weights: Float[Array, "columns columns"], prompt: Prompt) -> tuple[Float[Array, " features"], ChainTrace]:
    """Softmax over p̃_i · W p̃_query, and the output blocks averaged by it."""
    assert prompt.answers is not None, "this model answers with a pattern: the world must offer its answers"
    view, features = prompt.view(), prompt.answers.shape[1]
    scores = view.dot(view.read(view.read(weights).T).T @ view.query)
    attention = jax.nn.softmax(jnp.where(prompt.shown(), scores, -jnp.inf))
    outputs = view.read(jnp.eye(features, len(weights), features))  # W_V = (0 I 0)
    return outputs @ view.pool(attention), ChainTrace(attention[:-1])


class ChainTransformer(eqx.Module):
    """Eq. (2) with W as one matrix."""

    weights: Float[Array, "*members columns columns"]

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, " features"], ChainTrace]:
        """The predicted output vector."""
        return _attend(self.weights, prompt)

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under the paper's letter."""
        return {"W": np.asarray(self.weights)}


class SeparateChainTransformer(eqx.Module):
    """Eq. (2) with W_K and W_Q trained separately."""

    key_weights: Float[Array, "*members width columns"]
    query_weights: Float[Array, "*members width columns"]

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, " features"], ChainTrace]:
        """The predicted output vector."""
        return _attend(self.key_weights.T @ self.query_weights, prompt)

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under the paper's letters."""
        return {"W_K": np.asarray(self.key_weights), "W_Q": np.asarray(self.query_weights)}


class ChainTransformerSettings(eqx.Module):
    """Initialisation: entries of W are N(0, ξ²), ξ = `initial_scale`; separate factors are scaled so that W_KᵀW_Q has ξ
    too.
    """

    initial_scale: float | Float[Array, "*members"] = 0.01
    separate: bool = eqx.field(static=True, default=False)
    width: int = eqx.field(static=True, default=80)

    def __check_init__(self) -> None:
        require_positive(width=self.width)
        require_finite(initial_scale=self.initial_scale)
        # A standard deviation; its root is taken where W has factors.
        negative = bool(np.any(np.asarray(self.initial_scale) < 0))
        require(not negative, f"initial_scale is {self.initial_scale}; it must not be negative.")

    def init(self, key: Key[Array, ""], world: World) -> ChainTransformer | SeparateChainTransformer:
        """Random weights; nothing else is trained."""
        columns = world.columns
        answers = jax.eval_shape(world.sample, key, 0).answers
        require(
            answers is not None and answers.shape[-1] == world.feature_columns <= columns // 2,
            "this model reads the second block of a token as its output; use it in a world of reasoning steps.",
        )
        if not self.separate:
            return ChainTransformer(self.initial_scale * jax.random.normal(key, (columns, columns)))
        keys = jax.random.split(key)
        scale = (self.initial_scale / self.width**0.5) ** 0.5
        return SeparateChainTransformer(*(scale * jax.random.normal(k, (self.width, columns)) for k in keys))

"""The one-layer Transformer with layer normalisation and a residual stream, of vector-arithmetic.

    h_0 = LN( Σ_{l<L} W_V T_l · softmax_l( (W_K T_l)ᵀ W_Q T_L ) ),   LN(z) = z/‖z‖,   h = h_0 + T_L

The query is the last token T_L (the paper prints T_l on both sides of the score). Answers are scored by U h.

| code | letter | space |
|---|---|---|
| query_weights, key_weights, value_weights | W_Q, W_K, W_V | R^{d × d} |
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from iclab.errors import require, require_finite
from iclab.prompts import Prompt
from iclab.worlds import World

SMALLEST = 1e-15  # of the initialisation of W_V: the square of what it pools must not vanish in float32


class ResidualTrace(eqx.Module):
    """What happened inside: attention over all tokens but the query, and h_0, the task vector before the residual."""

    attention: Float[Array, " contexts"]
    task_vector: Float[Array, " columns"]


class ResidualTransformer(eqx.Module):
    """Contracted in the cheap order: scores as T_l · W_Kᵀ(W_Q T_L), W_V after pooling."""

    query_weights: Float[Array, "*members columns columns"]
    key_weights: Float[Array, "*members columns columns"]
    value_weights: Float[Array, "*members columns columns"]

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, " columns"], ResidualTrace]:
        """h = h_0 + T_L."""
        tokens = prompt.tokens()
        vector, attention = self.retrieve(tokens, prompt.shown(), tokens[-1])
        return vector + tokens[-1], ResidualTrace(attention[:-1], vector)

    def retrieve(
        self, tokens: Float[Array, "tokens columns"], attended: Bool[Array, " tokens"], query: Float[Array, " columns"]
    ) -> tuple[Float[Array, " columns"], Float[Array, " tokens"]]:
        """h_0 for any vector in the query's place, and the attention over the tokens that may be attended to.

        The others are masked: cutting them off would copy all tokens in every step.
        """
        direction = self.key_weights.T @ (self.query_weights @ query)
        attention = jax.nn.softmax(jnp.where(attended, tokens @ direction, -jnp.inf))
        value = self.value_weights @ (attention @ tokens)
        return value / jnp.linalg.norm(value), attention

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under the paper's letters."""
        weights = (self.query_weights, self.key_weights, self.value_weights)
        return {name: np.asarray(value) for name, value in zip(("W_Q", "W_K", "W_V"), weights, strict=True)}


class ResidualTransformerSettings(eqx.Module):
    """Initialisation: entries of W_Q, W_K are N(0, σ_0²), those of W_V N(0, σ_1²)."""

    attention_scale: float | Float[Array, "*members"] = 1e-3
    value_scale: float | Float[Array, "*members"] = 5e-3

    def __check_init__(self) -> None:
        require_finite(attention_scale=self.attention_scale, value_scale=self.value_scale)
        smallest = float(np.min(np.abs(np.asarray(self.value_scale))))
        require(
            smallest > SMALLEST, f"value_scale is {self.value_scale}; LN divides by a norm that would be 0 in float32."
        )

    def init(self, key: Key[Array, ""], world: World) -> ResidualTransformer:
        """Three random d × d matrices."""
        shape = (world.columns, world.columns)
        scales = (self.attention_scale, self.attention_scale, self.value_scale)
        keys = jax.random.split(key, 3)
        return ResidualTransformer(
            *(scale * jax.random.normal(k, shape) for scale, k in zip(scales, keys, strict=True))
        )

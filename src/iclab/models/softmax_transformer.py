"""The one-layer Transformer with softmax attention and a ReLU MLP: eq. (2) of nonlinear-icl and of feature-selection.

    F(Ψ; P) = aᵀ ReLU( W_O Σ_{i≤l} W_V p_i · softmax_i( (W_K p_i)ᵀ W_Q p_query ) )

The sum runs over the l contexts, not the query (`attend_to_query` adds it). The readout a is drawn once and never
trained.

| code | letter | space |
|---|---|---|
| query_weights, key_weights | W_Q, W_K | R^{m_a × (d_X + d_Y)} |
| value_weights | W_V | R^{m_b × (d_X + d_Y)} |
| output_weights | W_O | R^{m × m_b} |
| readout | a | {±1/m}^m |
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


class SoftmaxTrace(eqx.Module):
    """What happened inside: attention over the contexts, the value Σ W_V p_i attn_i, and W_O times it, before the
    ReLU.
    """

    attention: Float[Array, " contexts"]
    value: Float[Array, " value_width"]
    preactivation: Float[Array, " neurons"]


class SoftmaxTransformer(eqx.Module):
    """Eq. (2). Weights are stored as the paper writes them, so that `W @ p` in code is W p in the paper."""

    query_weights: Float[Array, "*members key_width columns"]
    key_weights: Float[Array, "*members key_width columns"]
    value_weights: Float[Array, "*members value_width columns"]
    output_weights: Float[Array, "*members neurons value_width"]
    readout: Float[Array, "*members neurons"]
    attend_to_query: bool = eqx.field(static=True, default=False)

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, ""], SoftmaxTrace]:
        """F(Ψ; P), contracted in the cheap order: W_KᵀW_Q and W_O W_V once for all prompts of a batch, values after
        pooling.
        """
        view = prompt.view()
        keys, queries, values = (view.read(w) for w in (self.key_weights, self.query_weights, self.value_weights))
        seen = prompt.present if self.attend_to_query else prompt.shown()
        attention = jax.nn.softmax(jnp.where(seen, view.dot((keys.T @ queries) @ view.query), -jnp.inf))
        pooled = view.pool(attention)
        value = values @ pooled
        preactivation = (self.output_weights @ values) @ pooled
        # ReLU(z) = (z + |z|)/2 (with slope 1/2 at 0 exactly) and a sum in place of a product: what the compiler fuses.
        # A NaN stays one, unlike in a select.
        output = jnp.sum(jax.lax.stop_gradient(self.readout) * 0.5 * (preactivation + jnp.abs(preactivation)))
        return output, SoftmaxTrace(attention[:-1], value, preactivation)

    def neurons(self) -> Float[Array, "neurons columns"]:
        """r_i, the rows of W_O W_V: what each neuron reads from the pooled column (Theorem 3.7 of nonlinear-icl)."""
        return self.output_weights @ self.value_weights

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under the paper's letters, for files that others read."""
        weights = (self.query_weights, self.key_weights, self.value_weights, self.output_weights, self.readout)
        return {name: np.asarray(value) for name, value in zip(("W_Q", "W_K", "W_V", "W_O", "a"), weights, strict=True)}


class SoftmaxTransformerSettings(eqx.Module):
    """Sizes and initialisation (Section 2.3 of nonlinear-icl).

    | word | letter |
    |---|---|
    | key_width, value_width | m_a, m_b |
    | neurons | m |
    | initial_scale | δ: the diagonal of W_V, and the first d_X diagonal entries of W_Q and W_K |
    | readout_power | a = ±m^(-power): 1 in Section 2.3, 1/2 in Algorithm 1 of the same paper |
    """

    initial_scale: float | Float[Array, "*members"] = 0.1
    key_width: int = eqx.field(static=True, default=60)
    value_width: int = eqx.field(static=True, default=60)
    neurons: int = eqx.field(static=True, default=300)
    readout_power: float = eqx.field(static=True, default=1.0)
    attend_to_query: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        require_positive(key_width=self.key_width, value_width=self.value_width, neurons=self.neurons)
        require_finite(initial_scale=self.initial_scale, readout_power=self.readout_power)

    def init(self, key: Key[Array, ""], world: World) -> SoftmaxTransformer:
        """W_Q, W_K, W_V diagonal, W_O ~ N(0, 1/m), a uniform on ±m^(-power)."""
        columns, features = world.columns, world.feature_columns
        require(
            self.key_width >= features and self.value_width >= columns,
            f"key_width {self.key_width} must be at least the feature columns {features}, and value_width "
            f"{self.value_width} at least the columns {columns}.",
        )
        output_key, readout_key = jax.random.split(key)
        features_only = jnp.arange(columns) < features
        queries = self.initial_scale * jnp.eye(self.key_width, columns) * features_only
        signs = jax.random.rademacher(readout_key, (self.neurons,), float)
        return SoftmaxTransformer(
            query_weights=queries,
            key_weights=queries,
            value_weights=self.initial_scale * jnp.eye(self.value_width, columns),
            output_weights=jax.random.normal(output_key, (self.neurons, self.value_width)) / self.neurons**0.5,
            readout=signs / self.neurons**self.readout_power,
            attend_to_query=self.attend_to_query,
        )

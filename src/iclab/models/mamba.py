"""Mamba as mamba-outliers defines it: the recurrence (1) with A = -I and its closed form (3), in one layer or several.

    h_i = h_{i-1} ⊙ Ã_i + (u_i 1ᵀ) ⊙ B̃_i,   o_i = h_i C_i                                                   (1)
    F(Ψ; P) = Σ_{i≤l+1} G_{i,l+1}(w) y_i p_iᵀ W_Bᵀ W_C p_query                                             (3)
    G_{i,l+1}(w) = σ(wᵀp_i) Π_{j>i} (1 - σ(wᵀp_j)), the product running over the query position too

| code | letter | space |
|---|---|---|
| key_weights | W_B | (depth ×) R^{n × (d+1)} |
| query_weights | W_C | (depth ×) R^{n × (d+1)} |
| gate_weights | w | (depth ×) R^{d+1} |

The state starts at h_0 = 0 (the paper prints h_0 = U, with which (3) does not follow from (1)).
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from iclab.errors import require, require_finite, require_positive
from iclab.models.linear_transformer import LinearTrace, Residual, diagonal, run_stack, squeeze
from iclab.prompts import Prompt
from iclab.worlds import World


class Mamba(eqx.Module):
    """The closed form (3), stacked; depth is the leading axis of the weights. Always causal: that is what the gate
    means.
    """

    key_weights: Float[Array, "*members depth state columns"]
    query_weights: Float[Array, "*members depth state columns"]
    gate_weights: Float[Array, "*members depth columns"]
    residual: Residual = eqx.field(static=True, default=Residual.label)

    @property
    def causal(self) -> bool:
        """A gate forgets what came before: there is no other way."""
        return True

    @property
    def mean(self) -> bool:
        """Gates bound the sum; it is not divided by the length."""
        return False

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, ""], LinearTrace]:
        """The label channel at the query after the last layer."""
        return run_stack(self, prompt, self.gate_weights)

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under the paper's letters; without the layer axis where there is one layer."""
        return squeeze({"W_B": self.key_weights, "W_C": self.query_weights, "w": self.gate_weights})


def recurrence(model: Mamba, prompt: Prompt) -> Float[Array, ""]:
    """F by the recurrence (1), for a one-layer model, with Ã and B̃ as printed: the definition that (3) must agree
    with.

    Δ = softplus(wᵀu), Ã = exp(ΔA), B̃ = (ΔB)(exp(ΔA) - I)(ΔA)^{-1} with A = -I; padding is skipped.
    """
    require(model.key_weights.shape[0] == 1, "the recurrence (1) is that of one layer.")
    tokens = prompt.tokens()
    w_b, w_c, w = model.key_weights[0], model.query_weights[0], model.gate_weights[0]

    def step(h: Float[Array, "columns state"], item: tuple[Array, Array]) -> tuple[Array, None]:
        u, present = item
        delta = jax.nn.softplus(w @ u)
        a_tilde = jnp.exp(-delta)
        b_tilde = (delta * (w_b @ u)) * jnp.expm1(-delta) / -delta
        new = h * a_tilde + jnp.outer(u, b_tilde)
        return jnp.where(present, new, h), None

    h, _ = jax.lax.scan(step, jnp.zeros((tokens.shape[1], w_b.shape[0])), (tokens, prompt.present))
    return (h @ (w_c @ tokens[-1]))[-1]


class MambaSettings(eqx.Module):
    """Sizes and initialisation (Section 2): W_B, W_C as in the linear Transformer, w ~ N(0, I/(d+1)) in every layer."""

    initial_scale: float | Float[Array, "*members"] = 0.2
    depth: int = eqx.field(static=True, default=1)
    residual: Residual = eqx.field(static=True, default=Residual.label)

    def __check_init__(self) -> None:
        require_positive(depth=self.depth)
        require_finite(initial_scale=self.initial_scale)

    def init(self, key: Key[Array, ""], world: World) -> Mamba:
        """W_B = W_C: δ on the feature diagonal; w random."""
        weights = diagonal(self.initial_scale, self.depth, world.columns, world)
        gates = jax.random.normal(key, (self.depth, world.columns)) / world.columns**0.5
        return Mamba(weights, weights, gates, self.residual)

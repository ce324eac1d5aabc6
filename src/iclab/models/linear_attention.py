"""Linear attention with and without a gate: the mechanism that Mamba and the linear Transformer share.

Position t of a sequence u_1, ..., u_T with values v_i, keys B_i = W_B u_i and queries C_t = W_C u_t answers

    o_t = Σ_{i≤t} G_{i,t} v_i (B_i · C_t),   G_{i,t} = σ(z_i) Π_{i<j≤t} (1 - σ(z_j)),   z_i = wᵀ u_i,

with G = 1 where there is no gate (eq. (3) of mamba-outliers for t = l+1). Everything is computed from log σ and
log(1-σ), so that no length overflows: a product of a million gates is a sum, and what vanishes is exactly 0. Cost and
memory are linear in the length, forward and backward.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

CHUNK = 64  # within a chunk all pairs are formed, between chunks a state is carried
ABSENT = -1e4  # the gate's logit at padding: σ = 0, so that it adds nothing and forgets nothing


def log_gates(logits: Float[Array, " tokens"]) -> tuple[Float[Array, " tokens"], Float[Array, " tokens"]]:
    """log σ(z) and log(1 - σ(z))."""
    return -jax.nn.softplus(-logits), -jax.nn.softplus(logits)


def gates_at_end(logits: Float[Array, " tokens"]) -> Float[Array, " tokens"]:
    """G_{i,T} for all i at the last position T: a reverse cumulative sum of log(1 - σ).

    Summed from the query outwards, so that the gates that matter, those near it, are the most precise. (Prefix products
    and a quotient would give 0/0 after a few hundred examples.)
    """
    open_, keep = log_gates(logits)
    after = jnp.flip(jnp.cumsum(jnp.flip(keep))) - keep  # Σ_{j>i} log(1 - σ_j)
    return jnp.exp(open_ + after)


def attend_all(
    values: Float[Array, "tokens width"],
    keys: Float[Array, "tokens state"],
    queries: Float[Array, "tokens state"],
    logits: Float[Array, " tokens"] | None,
) -> Float[Array, "tokens width"]:
    """o_t for every position t, causally, with Mamba's gate of these logits or with none."""
    zeros = jnp.zeros(values.shape[0])
    return attend_in_chunks(values, keys, queries, *((zeros, zeros) if logits is None else log_gates(logits)))


def attend_in_chunks(
    values: Float[Array, "tokens width"],
    keys: Float[Array, "tokens state"],
    queries: Float[Array, "tokens state"],
    opened: Float[Array, " tokens"],
    keep: Float[Array, " tokens"],
) -> Float[Array, "tokens width"]:
    """o_t for every position t and any log input gates (`opened`) and log decays (`keep`): chunk by chunk, all pairs
    inside a chunk and a state (width × state) between them.
    """
    tokens = values.shape[0]
    chunk = min(CHUNK, tokens)
    padding = -tokens % chunk

    def chunked(array: Array, fill: float = 0.0) -> Array:
        widths = [(0, padding)] + [(0, 0)] * (array.ndim - 1)
        return jnp.pad(array, widths, constant_values=fill).reshape(-1, chunk, *array.shape[1:])

    earlier = jnp.tril(jnp.ones((chunk, chunk), bool))  # [t, i]: i <= t

    def step(state: Float[Array, "width state"], part: tuple[Array, ...]) -> tuple[Array, Array]:
        v, b, c, open_, kept = part
        total = jnp.cumsum(kept)
        # Masked before the exponential: above the diagonal the difference is positive and could overflow.
        weights = jnp.exp(jnp.where(earlier, open_[None, :] + total[:, None] - total[None, :], -jnp.inf))
        inside = (weights * (c @ b.T)) @ v
        before = jnp.exp(total)[:, None] * (c @ state.T)
        carried = jnp.exp(open_ + total[-1] - total)
        state = jnp.exp(total[-1]) * state + (carried[:, None] * v).T @ b
        return state, inside + before

    parts = (chunked(values), chunked(keys), chunked(queries), chunked(opened, ABSENT), chunked(keep))
    start = jnp.zeros((values.shape[1], keys.shape[1]))
    _, outputs = jax.lax.scan(step, start, parts)
    return outputs.reshape(-1, values.shape[1])[:tokens]


def present_logits(logits: Float[Array, " tokens"], present: Bool[Array, " tokens"]) -> Float[Array, " tokens"]:
    """Logits with padding closed."""
    return jnp.where(present, logits, ABSENT)

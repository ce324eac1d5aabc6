"""The recurrence that linear token mixers share: a matrix as memory, forgotten, corrected and written at every token.

    S_t = S_{t-1} (diag(a_t) - l_t m_tᵀ) + v_t w_tᵀ,   o_t = S_t q_t

`along` is this definition, token by token. Two other forms compute the same:

- `weights_at_end` asks for the last position only. There o_T = Σ_i e_i v_i with e_i = w_iᵀ r_i, where r_T = q_T and
  r_{i-1} = (diag(a_i) - l_i m_iᵀ) r_i: the query is carried back through the prompt, and the memory is never formed.
  The e_i are what each example counts for, whatever its value. Without l and m, and with one decay for all
  coordinates, all r_i are known at once.
- `everywhere` asks for all positions: in chunks (`iclab.models.linear_attention`) where a_t is one number and there is
  no l and m, and by the definition otherwise.

Cost and memory are linear in the number of tokens in all three.

| code | letter | space | what it is |
|---|---|---|---|
| writes | w_t | R^n | the key under which the value is stored, times the input gate |
| log_decay | log a_t | R or R^n | what is kept of the memory |
| recalled, erased | l_t, m_t | R^n | where the memory is read, and where what was found is taken away |
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.models.linear_attention import attend_in_chunks


class Steps(eqx.Module):
    """What happens to the memory at every token. No decay and nothing erased: None."""

    writes: Float[Array, "tokens state"]
    log_decay: Float[Array, " tokens"] | Float[Array, "tokens state"] | None = None
    recalled: Float[Array, "tokens state"] | None = None
    erased: Float[Array, "tokens state"] | None = None

    def _by_token(self) -> tuple[Array, Array, Array, Array]:
        """Writes, decays, l and m as arrays of one shape, whatever is absent."""
        none = jnp.zeros_like(self.writes)
        decay = jnp.ones_like(none) if self.log_decay is None else jnp.exp(self.log_decay)
        decay = jnp.broadcast_to(decay if decay.ndim == 2 else decay[:, None], none.shape)
        if self.recalled is None or self.erased is None:
            return self.writes, decay, none, none
        return self.writes, decay, self.recalled, self.erased


def along(
    steps: Steps, values: Float[Array, "tokens width"], queries: Float[Array, "tokens state"]
) -> Float[Array, "tokens width"]:
    """o_t for every token, by the definition."""

    def step(memory: Float[Array, "width state"], token: tuple[Array, ...]) -> tuple[Array, Array]:
        write, decay, recalled, erased, value, query = token
        memory = memory * decay - jnp.outer(memory @ recalled, erased) + jnp.outer(value, write)
        return memory, memory @ query

    start = jnp.zeros((values.shape[1], queries.shape[1]), values.dtype)
    return jax.lax.scan(step, start, (*steps._by_token(), values, queries))[1]


def kept_until_end(log_decay: Float[Array, "tokens ..."]) -> Float[Array, "tokens ..."]:
    """Σ_{j>i} log a_j, summed from the end, where it matters most."""
    return jnp.flip(jnp.cumsum(jnp.flip(log_decay, 0), axis=0), 0) - log_decay


def weights_at_end(steps: Steps, query: Float[Array, " state"]) -> Float[Array, " tokens"]:
    """e_i, for which o_T = Σ_i e_i v_i."""
    if steps.recalled is not None:
        return _carried_back(steps, query)
    if steps.log_decay is None:
        return steps.writes @ query
    if steps.log_decay.ndim == 1:
        return jnp.exp(kept_until_end(steps.log_decay)) * (steps.writes @ query)
    # Sums from the end, one for each coordinate, took XLA twice as long on a CPU as carrying the query back.
    return jnp.sum(steps.writes * _decayed_back(steps.log_decay, query), axis=1)


def _decayed_back(log_decay: Float[Array, "tokens state"], query: Float[Array, " state"]) -> Array:
    def step(carried: Float[Array, " state"], decay: Float[Array, " state"]) -> tuple[Array, Array]:
        return decay * carried, carried

    return jax.lax.scan(step, query, jnp.exp(log_decay), reverse=True)[1]


def _carried_back(steps: Steps, query: Float[Array, " state"]) -> Float[Array, " tokens"]:
    def step(carried: Float[Array, " state"], token: tuple[Array, ...]) -> tuple[Array, Array]:
        decay, recalled, erased = token
        return decay * carried - recalled * jnp.sum(erased * carried), carried

    decay = jnp.ones(len(steps.writes)) if steps.log_decay is None else jnp.exp(steps.log_decay)
    assert steps.recalled is not None and steps.erased is not None
    carried = jax.lax.scan(step, query, (decay, steps.recalled, steps.erased), reverse=True)[1]
    return jnp.sum(steps.writes * carried, axis=1)


def everywhere(
    steps: Steps, values: Float[Array, "tokens width"], queries: Float[Array, "tokens state"]
) -> Float[Array, "tokens width"]:
    """o_t for every token, in the cheapest form there is."""
    log_decay = jnp.zeros(len(values)) if steps.log_decay is None else steps.log_decay
    if steps.recalled is not None or log_decay.ndim == 2:
        return along(steps, values, queries)
    return attend_in_chunks(values, steps.writes, queries, jnp.zeros(len(values)), log_decay)

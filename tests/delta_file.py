"""DeltaNet in a file of one's own, on iclab's recurrence: keys of norm 1, and a gate for what is erased and written."""

import equinox as eqx
import jax
import jax.numpy as jnp

from iclab.models.recurrences import Steps, weights_at_end


class Delta(eqx.Module):
    """S_t = S_{t-1} (I - g k kᵀ) + g y kᵀ; the query erases nothing."""

    keys: jax.Array
    queries: jax.Array
    gate: jax.Array

    def __call__(self, prompt):
        """The label under the query's key."""
        tokens = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)
        gates = jnp.where(prompt.present, jax.nn.sigmoid(tokens @ self.gate), 0.0)[:, None]
        keys = tokens @ self.keys.T
        keys = keys * jax.lax.rsqrt(jnp.sum(keys**2, axis=1, keepdims=True) + 1e-6)
        example = jnp.where(jnp.arange(len(tokens)) == len(tokens) - 1, 0.0, 1.0)[:, None]
        steps = Steps(gates * keys, None, example * keys, gates * keys)
        counts = weights_at_end(steps, self.queries @ tokens[-1])
        return jnp.sum(counts * tokens[:, -1]) + tokens[-1, -1], {}


class Settings(eqx.Module):
    """As iclab's own: a diagonal start, the gate at random."""

    initial_scale: float = 0.2

    def init(self, key, world):
        """Nothing else is random."""
        columns = world.columns
        diagonal = self.initial_scale * jnp.eye(columns) * (jnp.arange(columns) < world.feature_columns)
        gate = jax.random.normal(jax.random.split(key, 4)[1], (1, columns))[0] / columns**0.5
        return Delta(diagonal, diagonal, gate)


class Wrong:
    """No settings of a model."""

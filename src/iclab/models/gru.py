"""A gated recurrent unit (Cho et al., 2014) on a prompt's columns: the recurrent baseline without any attention.

    z_t = σ(W_z u_t + U_z h_{t-1} + b_z),   r_t = σ(W_r u_t + U_r h_{t-1} + b_r)
    h_t = (1 - z_t) ⊙ h_{t-1} + z_t ⊙ tanh(W_h u_t + U_h (r_t ⊙ h_{t-1}) + b_h),   F = a h_query

A deeper layer reads the h_t of the one before. Padding is skipped. All examples are in one vector: none has a score, a
gate or a weight of its own, and probes that ask for these are told so.

| code | letter | space |
|---|---|---|
| input_weights[n] | W_z, W_r, W_h | R^{3 × width × (D or width)} |
| state_weights[n] | U_z, U_r, U_h | R^{3 × width × width} |
| biases[n] | b_z, b_r, b_h | R^{3 × width} |
| readout | a | R^{outputs × width} |
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from iclab.errors import require_finite, require_positive
from iclab.prompts import Prompt
from iclab.worlds import World


class GRUTrace(eqx.Module):
    """The state at the query, layer by layer."""

    states: Float[Array, "depth width"]


class GRU(eqx.Module):
    """The unit, in as many layers as there are weights."""

    input_weights: tuple[Float[Array, "*members 3 width _"], ...]
    state_weights: tuple[Float[Array, "*members 3 width width"], ...]
    biases: tuple[Float[Array, "*members 3 width"], ...]
    readout: Float[Array, "*members outputs width"]

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, "*out"], GRUTrace]:
        """The answer at the query: a number, or a vector where the world has answers."""
        inputs, last = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0), []
        for w, u, b in zip(self.input_weights, self.state_weights, self.biases, strict=True):
            inputs = _layer(w, u, b, inputs, prompt.present)
            last.append(inputs[-1])
        output = self.readout @ last[-1]
        return output if prompt.answers is not None else output[0], GRUTrace(jnp.stack(last))

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under their letters, layer by layer."""
        found = {"a": np.asarray(self.readout)}
        named = zip(self.input_weights, self.state_weights, self.biases, strict=True)
        for layer, parts in enumerate(named, start=1):
            for letter, values in zip("WUb", parts, strict=True):
                found |= {f"{letter}_{gate}{layer}": np.asarray(values)[..., n, :] if letter == "b"
                          else np.asarray(values)[..., n, :, :] for n, gate in enumerate("zrh")}  # fmt: skip
        return found


def _layer(w: Array, u: Array, b: Array, inputs: Array, present: Array) -> Float[Array, "tokens width"]:
    driven = jnp.einsum("gwc,tc->tgw", w, inputs) + b

    def step(state: Float[Array, " width"], token: tuple[Array, Array]) -> tuple[Array, Array]:
        (update, reset, candidate), there = token
        opened = jax.nn.sigmoid(update + u[0] @ state)
        kept = jax.nn.sigmoid(reset + u[1] @ state)
        new = (1.0 - opened) * state + opened * jnp.tanh(candidate + u[2] @ (kept * state))
        state = jnp.where(there, new, state)
        return state, state

    return jax.lax.scan(step, jnp.zeros(w.shape[1]), (driven, present))[1]


class GRUSettings(eqx.Module):
    """Sizes and initialisation: entries of all matrices are N(0, δ²), δ = `initial_scale`; biases are 0."""

    initial_scale: float | Float[Array, "*members"] = 0.2
    depth: int = eqx.field(static=True, default=1)
    width: int = eqx.field(static=True, default=32)

    def __check_init__(self) -> None:
        require_positive(depth=self.depth, width=self.width)
        require_finite(initial_scale=self.initial_scale)

    def init(self, key: Key[Array, ""], world: World) -> GRU:
        """Matrices at random. The world's own answers decide what is read out."""
        answers = jax.eval_shape(world.sample, key, 0).answers
        width, outputs = self.width, 1 if answers is None else answers.shape[-1]
        keys = jax.random.split(key, 2 * self.depth + 1)
        sizes = [world.columns, *[width] * (self.depth - 1)]

        def drawn(key: Key[Array, ""], *shape: int) -> Array:
            return self.initial_scale * jax.random.normal(key, shape)

        return GRU(
            tuple(drawn(own, 3, width, size) for own, size in zip(keys[1::2], sizes, strict=True)),
            tuple(drawn(own, 3, width, width) for own in keys[2::2]),
            tuple(jnp.zeros((3, width)) for _ in range(self.depth)),
            drawn(keys[0], outputs, width),
        )

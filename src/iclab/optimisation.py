"""How a member is trained: plain SGD on fresh batches, as in the papers' algorithms.

Adam and AdamW, warm-up with cosine decay and bfloat16 gradients are for deep models and off by default.
"""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from iclab.errors import require, require_finite, require_positive


class Cosine(eqx.Module):
    """A factor on the step size: linear warm-up from 0 over `warmup` steps, then half a cosine down to 0 at step
    `total`.

    The numbers are traced, unlike those of `optax.warmup_cosine_decay_schedule`, which gives the same factors.
    """

    warmup: float | Float[Array, "*members"]
    total: float | Float[Array, "*members"]

    def __check_init__(self) -> None:
        require(
            bool(np.all(np.asarray(self.warmup) >= 0) and np.all(np.asarray(self.warmup) < np.asarray(self.total))),
            f"warm-up is {self.warmup} of {self.total} steps; it must be shorter than the training.",
        )

    def __call__(self, step: Array) -> Float[Array, ""]:
        """The factor at this step."""
        progress = jnp.clip((step - self.warmup) / (self.total - self.warmup), 0.0, 1.0)
        rising = step / jnp.maximum(self.warmup, 1.0)
        return jnp.where(step < self.warmup, rising, 0.5 * (1.0 + jnp.cos(jnp.pi * progress)))


OPTIMISERS = ("sgd", "adam", "adamw")


class Training(eqx.Module):
    """How a member is trained: SGD with step size η on batches of B fresh prompts, or gradient descent on B fixed ones.

    `scales` multiplies the step of single weights, by the model's field name: {"value_weights": q_V}. `optimiser` may
    be Adam, or AdamW, whose `weight_decay` is on matrices only. `half` computes the gradients with the weights rounded
    to bfloat16, for models that follow the precision of their weights (GPT-2, on a GPU); the weights themselves stay
    float32.
    """

    step_size: float | Float[Array, "*members"] = 1.0
    batch: int = eqx.field(static=True, default=128)
    fresh: bool = eqx.field(static=True, default=True)
    scales: dict[str, Any] = eqx.field(default_factory=dict)
    optimiser: str = eqx.field(static=True, default="sgd")
    weight_decay: float | Float[Array, "*members"] = 0.0
    schedule: Cosine | None = None
    half: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        require_positive(batch=self.batch)
        require(
            self.optimiser in OPTIMISERS, f"optimiser is {self.optimiser!r}; it must be one of {', '.join(OPTIMISERS)}."
        )
        require(
            bool(np.all(np.asarray(self.step_size) > 0)),
            f"step_size is {self.step_size}; it must be positive.",
        )
        require_finite(step_size=self.step_size, weight_decay=self.weight_decay, **self.scales)


def optimiser_of(training: Training) -> optax.GradientTransformation:
    """The optimiser of a training."""
    schedule, size = training.schedule, training.step_size
    rate = size if schedule is None else lambda step: size * schedule(step)
    if training.optimiser == "adam":
        return optax.adam(rate)
    if training.optimiser == "adamw":
        matrices = functools.partial(jax.tree.map, lambda leaf: leaf.ndim > 1)
        return optax.adamw(rate, weight_decay=training.weight_decay, mask=matrices)
    return optax.sgd(rate)


def rounded(model: Any) -> Any:
    """The model with bfloat16 weights. Gradients come back through the rounding as float32."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), model)

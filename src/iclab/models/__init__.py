"""Models: what maps one prompt to an answer.

A model is a frozen Equinox module on ONE prompt, `model(prompt) -> (output, trace)`; batches, seeds and settings are
mapped outside it. The trace is a pytree of everything worth looking at, and the compiler drops what nobody reads. A
model is made by its settings, a frozen dataclass with `init(key, world) -> model`. A model that has `at_a_time` is
given so many prompts at once on a CPU, whose caches would not hold what is between its layers for a whole batch.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Key

from iclab.prompts import Prompt
from iclab.worlds import World


@runtime_checkable
class Model(Protocol):
    """What every model offers."""

    def __call__(self, prompt: Prompt) -> tuple[Array, Any]:
        """The output at the query, and a trace of what happened inside."""


def at_a_time(model: Any, batch: int, most: int | None = None) -> int:
    """How many prompts of a batch are answered at once: all or, on a CPU, a part of it that is at most what the model
    says, and at most `most`.
    """
    if jax.default_backend() != "cpu":
        return batch
    room = max(1, min(getattr(model, "at_a_time", batch), batch if most is None else most, batch))
    return next(size for size in range(room, 0, -1) if batch % size == 0)


@runtime_checkable
class ModelSettings(Protocol):
    """What makes a model: its sizes and how it is initialised."""

    def init(self, key: Key[Array, ""], world: World) -> Model:
        """A model at initialisation, of the sizes this world needs."""

"""Models: what maps one prompt to an answer.

A model is a frozen Equinox module on ONE prompt, `model(prompt) -> (output, trace)`; batches, seeds and settings are
mapped outside it. The trace is a pytree of everything worth looking at, and the compiler drops what nobody reads. A
model is made by its settings, a frozen dataclass with `init(key, world) -> model`.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Key

from iclab.prompts import Prompt
from iclab.worlds import World


@runtime_checkable
class Model(Protocol):
    """What every model offers."""

    def __call__(self, prompt: Prompt) -> tuple[Array, Any]:
        """The output at the query, and a trace of what happened inside."""


@runtime_checkable
class ModelSettings(Protocol):
    """What makes a model: its sizes and how it is initialised."""

    def init(self, key: Key[Array, ""], world: World) -> Model:
        """A model at initialisation, of the sizes this world needs."""

"""Worlds: where prompts come from.

A world is a frozen dataclass of its own settings with one method, `sample`. Fields marked `eqx.field(static=True)` decide
shapes and recompile; all others are traced, so worlds that differ only in those are swept inside one compilation.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Array, Int, Key

from iclab.prompts import Prompt


@runtime_checkable
class World(Protocol):
    """What every world offers."""

    @property
    def columns(self) -> int:
        """The dimension of a token."""

    @property
    def feature_columns(self) -> int:
        """How many of the columns, the first ones, hold the input x rather than its label."""

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt. `index` is its number in the batch, which a world may use to balance labels or steps exactly."""


__all__ = ["Prompt", "World"]

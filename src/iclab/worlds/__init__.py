"""Worlds: where prompts come from.

A world is a frozen dataclass of its own settings with one method, `sample`. Fields marked `eqx.field(static=True)`
decide shapes and recompile; all others are traced, so worlds that differ only in those are swept inside one
compilation. The worlds of the papers turn their arguments into tables as they are built: one that is there is changed
with `eqx.tree_at`, as `dataclasses.replace` would hand the tables back to the constructor.
"""

from __future__ import annotations

import functools
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int, Key

from iclab import randomness
from iclab.prompts import Padding, Prompt


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


def padding_of(world: World) -> Padding:
    """Where absent tokens stand: anywhere, unless the world has a `padding` that says otherwise. A model need not know
    more of it than its world does.
    """
    padding: Padding = getattr(world, "padding", Padding())
    return padding


@functools.partial(jax.jit, inline=True)
def sampled(world: World, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
    """`world.sample(key, index)`, traced once for worlds of the same shapes; a training draws in several places."""
    return world.sample(key, index)


class BaseWorld(eqx.Module):
    """A world that says only how a prompt is drawn: derive a class from it, list its settings, write `sample`.

    Its tokens are a features part and one last label column; give `feature_columns` where they are not. Where the order
    of the tokens matters and absent ones stand in front, say so: `padding = Padding(in_front=True)`.
    """

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt."""
        raise NotImplementedError(f"{type(self).__name__} must define sample(self, key, index) and return a prompt.")

    @property
    def columns(self) -> int:
        """The width of a token."""
        key = jax.eval_shape(lambda: randomness.key(0))
        return jax.eval_shape(lambda k: self.sample(k, 0).tokens(), key).shape[-1]

    @property
    def feature_columns(self) -> int:
        """All columns but the last."""
        return self.columns - 1

    def letters(self) -> dict[str, np.ndarray]:
        """Nothing to be saved beside the models."""
        return {}


__all__ = ["BaseWorld", "Padding", "Prompt", "World", "padding_of"]

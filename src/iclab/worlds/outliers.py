"""Additive outliers in the contexts of a classification prompt (seed mamba-outliers, eqs. (6) and (7)).

A fraction of the context examples has κ_a v*_s added to its input, for one of V directions, and then a label that is
no longer the task's. Queries never carry one. Everything here is traced, so that one compilation serves all panels of
a figure.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from iclab.errors import require, require_finite
from iclab.randomness import ranks


class LabelRule(enum.IntEnum):
    """What label an outlier example shows: the opposite one, the target label or a coin flip."""

    flip = 0
    target = 1
    random = 2


class Placement(enum.IntEnum):
    """Where outliers sit: anywhere, farthest from the query (first), closest to it (last)."""

    random = 0
    farthest = 1
    closest = 2


UserRule = Callable[[Float[Array, " tokens"], Float[Array, " tokens"]], Float[Array, " tokens"]]
"""`rule(task_labels, uniforms)` -> labels of outlier examples, ±1, elementwise over the tokens."""


class Outliers(eqx.Module):
    """Settings of the outliers, checked when they are built.

    | word | letter |
    |---|---|
    | fraction | p_a in training, α in tests |
    | magnitude | κ_a in training, κ_a' in tests |
    | exact | True: exactly round(fraction · l) of them; False: each example with this probability |

    `stackable` keeps placement and exactness traced even where these outliers need neither, so that worlds of several
    kinds stack. A label rule of one's own is compiled in (`user_rule`); the field `rule` then means nothing.
    """

    fraction: Float[Any, "*members"]
    magnitude: Float[Any, "*members"]
    rule: Int[Any, "*members"]
    target_label: Float[Any, "*members"]
    placement: Int[Any, "*members"]
    exact: Bool[Any, "*members"]
    user_rule: UserRule | None = eqx.field(static=True)
    anywhere: bool = eqx.field(static=True)

    def __init__(
        self,
        fraction: float,
        magnitude: float,
        rule: LabelRule | UserRule = LabelRule.random,
        *,
        target_label: float = 1.0,
        placement: Placement = Placement.random,
        exact: bool = False,
        stackable: bool = False,
    ) -> None:
        reason = "with every example an outlier nothing can be learned"
        require(0.0 <= fraction < 1.0, f"outlier_fraction is {fraction}; it must lie in [0, 1): {reason}.")
        require_finite(outlier_magnitude=magnitude)
        require(magnitude >= 0.0, f"outlier_magnitude is {magnitude}; it must not be negative.")
        require(target_label in (-1.0, 1.0), f"target_label is {target_label}; it must be +1 or -1.")
        self.fraction = np.float32(fraction)
        self.magnitude = np.float32(magnitude)
        self.rule = np.int32(rule if isinstance(rule, LabelRule) else LabelRule.random)
        self.target_label = np.float32(target_label)
        self.placement = np.int32(placement)
        self.exact = np.bool_(exact)
        self.user_rule = None if isinstance(rule, LabelRule) else rule
        self.anywhere = not stackable and not exact and placement is Placement.random

    def flags(self, draw: Float[Array, " tokens"], contexts: Bool[Array, " tokens"]) -> Bool[Array, " tokens"]:
        """Which tokens carry an outlier, from one uniform per token. `contexts` marks the tokens that may.

        The number of outliers comes first (exact or Bernoulli), then the places: the contexts are ranked by the draw,
        by position or by reversed position, and the first ones are taken. Ranked by the draw itself, the Bernoulli
        choice is just `draw < fraction`, which `anywhere` (static) uses to spare the training loop a sort.
        """
        by_chance = (draw < self.fraction) & contexts
        if self.anywhere:
            return by_chance
        number = jnp.where(self.exact, jnp.round(self.fraction * jnp.sum(contexts)), jnp.sum(by_chance))
        position = jnp.arange(len(draw)) / len(draw)
        score = jnp.where(self.placement == Placement.farthest, position, draw)
        score = jnp.where(self.placement == Placement.closest, 1.0 - position, score)
        rank = ranks(jnp.where(contexts, score, 2.0))
        return (rank < number) & contexts

    def labels(self, task: Float[Array, " tokens"], draw: Float[Array, " tokens"]) -> Float[Array, " tokens"]:
        """The labels that outlier examples show, given the task's labels."""
        if self.user_rule is not None:
            return self.user_rule(task, draw)
        coin = jnp.where(draw < 0.5, 1.0, -1.0)
        aimed = jnp.where(self.rule == LabelRule.target, self.target_label, coin)
        return jnp.where(self.rule == LabelRule.flip, -task, aimed)

"""Tests of feature-selection where its theorems begin to promise, and where they do not promise anything."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Int, Key

from iclab.authoring import Experiment, Lab, Prompt, errors, hinge
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.feature_selection.experiments import standard
from iclab.papers.feature_selection.settings import Settings, world
from iclab.worlds.classification import Classification

FRACTIONS = (0.2, 0.4, 0.5, 0.8, 1.0)  # α' at the edge l_ts = 2/α'
MATCHING = (0, 1)  # examples that are guaranteed to match the query
OUTSIDE = ("negative", "opposite", "label", "absent")  # conditions of Remark 1, each given up alone


class AtLeast(eqx.Module):
    """Prompts of a world in which at least so many examples carry the query's pattern, and with it its label."""

    world: Classification
    matching: Int[Any, "*members"]

    @property
    def columns(self) -> int:
        """The dimension of a token."""
        return self.world.columns

    @property
    def feature_columns(self) -> int:
        """How many columns hold the input."""
        return self.world.feature_columns

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt; the model has no positions, so the first examples are as good as any."""
        prompt = self.world.sample(key, index)
        chosen = jnp.arange(len(prompt.pattern)) < self.matching
        pattern = jnp.where(chosen, prompt.pattern[-1], prompt.pattern)
        label = jnp.where(chosen, prompt.target, prompt.label)
        return dataclasses.replace(prompt, pattern=pattern, label=label, atoms=prompt.atoms.at[:, 0].set(pattern))


def edge_length(fraction: float) -> int:
    """l_ts = 2/α', rounded up.

    >>> [edge_length(fraction) for fraction in FRACTIONS]
    [10, 5, 4, 3, 2]
    """
    return math.ceil(2 / fraction - 1e-9)


def matched(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    """Errors, and whether any example matches the query."""
    return dict(errors(hinge)(model, prompt)) | {"matched": jnp.any(prompt.matches_query()).astype(float)}


def edge(lab: Lab) -> xr.Dataset:
    """Theorem 2 at l_ts = 2/α': drawn, and with one example guaranteed to match the query."""
    s: Settings = lab.settings
    longest = edge_length(min(FRACTIONS))

    def place(setting: str, seed: int, fraction: float, matching: int) -> AtLeast:
        own = world(s, "out", edge_length(fraction), longest=longest, fraction=fraction)
        return AtLeast(own, np.int32(matching))

    grid = {"fraction": FRACTIONS, "matching": MATCHING}
    return lab.evaluate(standard(lab), "edge", matched, place, grid, s.prompts).isel(setting=0)


def training_edge(lab: Lab) -> xr.Dataset:
    """Theorem 1 at the length of training prompts: drawn, and with one example guaranteed to match the query."""
    s: Settings = lab.settings

    def place(setting: str, seed: int, matching: int) -> AtLeast:
        return AtLeast(world(s, "in", s.train_length), np.int32(matching))

    grid = {"matching": MATCHING}
    return lab.evaluate(standard(lab), "training edge", errors(hinge), place, grid, s.prompts).isel(setting=0)


def outside(lab: Lab) -> xr.Dataset:
    """Prompts that give up one condition of Remark 1: signs of k_i, the label embedding, examples that match."""
    s: Settings = lab.settings
    places = {
        "negative": world(s, "negative", s.test_length),
        "opposite": world(s, "opposite", s.test_length),
        "label": world(s, "out", s.test_length, label=1),
        "absent": world(s, "out", s.test_length, fraction=1e-6),
    }

    def place(setting: str, seed: int, without: str) -> Classification:
        return places[without]

    return lab.evaluate(standard(lab), "outside", errors(hinge), place, {"without": OUTSIDE}, s.prompts).isel(setting=0)


experiments = {
    "edge": Experiment(edge, cost=3),
    "training-edge": Experiment(training_edge, cost=2),
    "outside": Experiment(outside, cost=2),
}

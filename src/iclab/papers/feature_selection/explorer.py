"""Inside the model of feature-selection, on a few prompts in and out of domain, along a training of its own."""

from __future__ import annotations

import dataclasses

import xarray as xr

from iclab.authoring import softmax_explorer as looking
from iclab.authoring.exploration import Exploration, moments, watching
from iclab.experiments import Lab, Recipe
from iclab.papers.feature_selection.settings import Settings, recipe, world

WATCH = watching(looking.look)


def explorer(lab: Lab) -> xr.Dataset:
    """One training, recorded at a few steps."""
    s: Settings = lab.settings
    return lab.train("explorer", {"standard": lambda seed: _recipe(s)}, moments(s.steps), (WATCH,)).history


def _recipe(s: Settings) -> Recipe:
    return dataclasses.replace(recipe(s), watched=(world(s, "in", s.train_length), world(s, "out", s.train_length)))


def explore(history: xr.Dataset, settings: Settings) -> Exploration:
    """What the page shows."""
    return looking.explore(history, looking.ABOUT, ("prompts", ("in domain", "out of domain")))

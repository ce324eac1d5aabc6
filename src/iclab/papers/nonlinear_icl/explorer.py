"""Inside the model of nonlinear-icl, on a few prompts in and out of domain, along a training of its own."""

from __future__ import annotations

import dataclasses

import xarray as xr

from iclab.authoring import softmax_explorer as looking
from iclab.authoring.exploration import Exploration, moments, watching
from iclab.experiments import Lab
from iclab.papers.nonlinear_icl.settings import OWN, Settings, recipe

WATCH = watching(looking.look)


def explorer(lab: Lab) -> xr.Dataset:
    """One training, recorded at a few steps."""
    own = recipe(dataclasses.replace(lab.settings, model=OWN))
    return lab.train("explorer", own, moments(lab.settings.steps), (WATCH,)).history


def explore(history: xr.Dataset, settings: Settings) -> Exploration:
    """What the page shows."""
    return looking.explore(history, looking.ABOUT, ("prompts", ("in domain", "out of domain")))

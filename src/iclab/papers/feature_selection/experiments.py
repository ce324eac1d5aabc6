"""What is run for feature-selection: one training, observed, and its errors in and out of domain."""

from __future__ import annotations

import xarray as xr
from jaxtyping import Array, Key

from iclab.evaluation import errors, expect
from iclab.experiments import Lab, Trained
from iclab.losses import hinge
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.feature_selection.explorer import explorer
from iclab.papers.feature_selection.settings import Settings, recipe, world
from iclab.authoring.paper import Experiment
from iclab.probes.attention import attention_mass
from iclab.probes.neurons import contributions
from iclab.probes.norms import pattern_norms
from iclab.prompts import Prompt
from iclab.training import Member

OBSERVED_BATCHES = 2


def _inside(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    assert prompt.feature_columns is not None
    return attention_mass(model, prompt) | contributions(model, prompt, prompt.feature_columns)


def observe(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Norms of patterns, attention and contributions in domain, attention out of domain ("out_...")."""
    inside = expect(_inside, model, member.world, key, OBSERVED_BATCHES)
    outside = expect(attention_mass, model, member.watched[0], key, OBSERVED_BATCHES)
    return pattern_norms(model, member.world) | inside | {f"out_{name}": value for name, value in outside.items()}


def standard(lab: Lab) -> Trained:
    """The one training."""
    s: Settings = lab.settings
    return lab.train("standard", {"standard": lambda seed: recipe(s)}, s.record_at, (observe,))


def training(lab: Lab) -> xr.Dataset:
    """The observed training."""
    return standard(lab).history


def generalisation(lab: Lab) -> xr.Dataset:
    """Theorems 1 and 2: errors in and out of domain."""
    s: Settings = lab.settings
    return lab.evaluate(
        standard(lab), "generalisation", errors(hinge),
        lambda setting, seed, domain: world(s, domain, s.test_length), {"domain": ("in", "out")}, s.prompts,
    )  # fmt: skip


EXPERIMENTS = {
    "training": Experiment(training, cost=8),
    "generalisation": Experiment(generalisation, cost=2),
    "explorer": Experiment(explorer, cost=3),
}

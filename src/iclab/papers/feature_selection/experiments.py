"""What is run for feature-selection: one training, observed, its errors in and out of domain, and trainings at other
settings.
"""

from __future__ import annotations

import dataclasses

import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Prompt, Trained, errors, expect, geometric, hinge, labelled
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.feature_selection.explorer import explorer
from iclab.papers.feature_selection.laws import laws
from iclab.papers.feature_selection.settings import Settings, recipe, settings, world
from iclab.probes.attention import attention_mass
from iclab.probes.neurons import contributions
from iclab.probes.norms import pattern_norms

OBSERVED_BATCHES = 2


def _inside(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    assert prompt.feature_columns is not None
    return attention_mass(model, prompt) | contributions(model, prompt, prompt.feature_columns)


def observe(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Norms of patterns, attention and contributions in domain, attention out of domain ("out_...")."""
    inside = expect(_inside, model, member.world, key, OBSERVED_BATCHES)
    outside = expect(attention_mass, model, member.watched[0], key, OBSERVED_BATCHES)
    return pattern_norms(model, member.world) | inside | {f"out_{name}": value for name, value in outside.items()}


def attend(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention on contexts of the query's pattern and on others."""
    return expect(attention_mass, model, member.world, key, OBSERVED_BATCHES)


def standard(lab: Lab) -> Trained:
    """The one training."""
    return lab.train("standard", recipe(lab.settings), lab.settings.record_at, (observe,))


def training(lab: Lab) -> xr.Dataset:
    """The observed training."""
    found = standard(lab).history.isel(setting=0)
    return labelled(found, query_relevant="norm, mean over patterns", attention_same="summed attention")


def generalisation(lab: Lab) -> xr.Dataset:
    """Theorems 1 and 2: errors in and out of domain."""
    s: Settings = lab.settings

    def place(setting: str, seed: int, domain: str) -> object:
        return world(s, domain, s.test_length)

    domains = {"domain": ("in", "out")}
    return lab.evaluate(standard(lab), "generalisation", errors(hinge), place, domains, s.prompts).isel(setting=0)


def approach(lab: Lab) -> xr.Dataset:
    """A longer training, its attention recorded at geometric steps."""
    s: Settings = lab.settings
    long = {"long": dataclasses.replace(recipe(s), watched=())}
    found = lab.train("approach", long, geometric(4 * s.rate_steps, ratio=1.15), (attend,)).history.isel(setting=0)
    return labelled(found, attention_other="attention on other patterns", step="T")


def rate_records(s: Settings) -> list[int]:
    """Where a training whose time is measured is recorded."""
    return geometric(s.rate_steps)


experiments = {
    "training": Experiment(training, cost=8),
    "generalisation": Experiment(generalisation, cost=2),
    "explorer": Experiment(explorer, cost=3),
    **{law.experiment: law.trained(recipe, rate_records) for law in laws(settings["quick"]).values()},
    "approach": Experiment(approach, cost=12),
}

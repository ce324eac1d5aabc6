"""What is run for feature-selection: one training, observed, its errors in and out of domain, and trainings at other
settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import (
    Experiment,
    Lab,
    Law,
    Member,
    Prompt,
    Recipe,
    Trained,
    errors,
    expect,
    expect_in,
    geometric,
    hinge,
    labelled,
    swept,
)
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.feature_selection.explorer import explorer
from iclab.papers.feature_selection.laws import FRACTION, LOW_FRACTION, fixed_size, laws
from iclab.papers.feature_selection.settings import Settings, recipe, settings, world
from iclab.probes.attention import attention_mass
from iclab.probes.neurons import contributions
from iclab.probes.norms import pattern_norms
from iclab.probes.updates import initial, lucky_neurons, lucky_shares, pulls, value_pulls

OBSERVED_BATCHES = 2
BATCHES = (16, 64, 256, 1024)  # B of Lemma 5


def share(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    """Contributions on a prompt. With thousands of neurons they take far longer than all else that is observed."""
    assert prompt.feature_columns is not None
    return contributions(model, prompt, prompt.feature_columns)


def observe(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Norms of patterns, attention and contributions in domain, attention out of domain ("out_...")."""
    inside, outside = expect_in(attention_mass, model, (member.world, member.watched[0]), key, OBSERVED_BATCHES)
    shares = expect(share, model, member.world, key, OBSERVED_BATCHES)
    attended = inside | {f"out_{name}": value for name, value in outside.items()}
    return pattern_norms(model, member.world) | attended | shares


def attend(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention on contexts of the query's pattern and on others."""
    return expect(attention_mass, model, member.world, key, OBSERVED_BATCHES)


def watch_neurons(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Lemmas 5 and 7: lucky neurons, and how tokens are pulled; the others' pull on batches of several sizes."""
    lucky = lucky_neurons(initial(member), member.world)
    found = [value_pulls(pull, lucky, member.world) for pull in pulls(model, member.world, key, BATCHES)]
    others = jnp.stack([one.pop("other_pull") for one in found])
    return lucky_shares(lucky, member.world) | found[-1] | {"other_pull@batch": others}


def standard(lab: Lab) -> Trained:
    """The one training. What is observed belongs to the experiment "training"."""
    s: Settings = lab.settings
    observers = (observe, watch_neurons) if lab.runs("training") else ()
    return lab.train("standard", recipe(s), s.record_at, observers, at_most=s.most_seeds)


def training(lab: Lab) -> xr.Dataset:
    """The observed training."""
    found = standard(lab).history.isel(setting=0).assign_coords(batch=list(BATCHES))
    return labelled(found, query_relevant="norm, mean over patterns", attention_same="summed attention")


def generalisation(lab: Lab) -> xr.Dataset:
    """Theorems 1 and 2: errors in and out of domain."""
    s: Settings = lab.settings

    def place(setting: str, seed: int, domain: str) -> object:
        return world(s, domain, s.test_length)

    domains = {"domain": ("in", "out")}
    return lab.evaluate(standard(lab), "generalisation", errors(hinge), place, domains, s.prompts).isel(setting=0)


def alone(s: Settings) -> Recipe:
    """The training of these settings, unwatched."""
    return dataclasses.replace(recipe(s), watched=())


def approach(lab: Lab) -> xr.Dataset:
    """A longer training, its attention recorded at geometric steps."""
    s: Settings = lab.settings
    steps = geometric(4 * s.rate_steps, ratio=1.15)
    found = lab.train("approach", {"long": alone(s)}, steps, (attend,), at_most=s.most_seeds).history.isel(setting=0)
    return labelled(found, attention_other="attention on other patterns", step="T")


def narrow(s: Settings) -> Recipe:
    """The same where every λ is λ_*."""
    return alone(dataclasses.replace(s, relevant_high=s.relevant_low))


def timed(law: Law, made: Callable[[Settings], Recipe] = alone, longer: int = 1, *, few: bool = False) -> Experiment:
    """Trainings at the values of a law, recorded at geometric steps."""

    def run(lab: Lab) -> xr.Dataset:
        s: Settings = lab.settings
        changed: dict[str, Any] = {f"{value:g}": {law.setting: value} for value in law.values}
        recipes = {name: made(dataclasses.replace(s, **change)) for name, change in changed.items()}
        steps = geometric(longer * s.rate_steps)
        most = min(s.few_seeds, s.most_seeds) if few else s.most_seeds
        found = lab.train(law.experiment, recipes, steps, at_most=most)
        return swept(found.history, law.over, law.values)

    run.__doc__ = f"Trainings at several {law.symbol}{', every λ = λ_*' if made is narrow else ''}."
    return Experiment(run, cost=15)


_laws = laws(settings["quick"])
experiments = {
    "training": Experiment(training, cost=12),
    "generalisation": Experiment(generalisation, cost=2),
    "explorer": Experiment(explorer, cost=3),
    **{law.experiment: timed(law) for law in (_laws["λ_*"], _laws["τ"], FRACTION)},
    "rate-step": timed(_laws["η"], few=True),
    "rate-low-narrow": timed(fixed_size(_laws["λ_*"]), narrow, longer=2, few=True),
    "rate-fraction-low": timed(LOW_FRACTION, longer=2),
    "approach": Experiment(approach, cost=12),
}

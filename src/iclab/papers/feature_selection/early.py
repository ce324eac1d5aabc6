"""The first steps of trainings of feature-selection, for its gradient lemmas."""

from __future__ import annotations

import dataclasses

import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, swept
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.feature_selection.experiments import alone
from iclab.probes.updates import initial, row_updates

MOMENTS = (1, 2, 4, 8, 16, 32, 64)  # t of the gradient lemmas
SCALES = {  # what Lemma 3 is a power of
    "updates-scale": ("initial_scale", "scale", (0.01, 0.02, 0.04, 0.08)),
    "updates-strength": ("pattern_strength", "strength", (1.0, 1.6, 2.5, 4.0)),
    "updates-low": ("relevant_low", "low", (0.3, 0.5, 0.8, 1.2)),
}


def compare_rows(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Lemmas 3 and 6: what was added to the rows of W_O."""
    return row_updates(model, initial(member), member.world)


def updates(name: str) -> Experiment:
    """The first steps of trainings at several values of a setting."""
    setting, dim, values = SCALES[name]

    def run(lab: Lab) -> xr.Dataset:
        s = dataclasses.replace(lab.settings, neurons=lab.settings.early_neurons)
        also = ("relevant_high",) if setting == "relevant_low" else ()  # every λ is λ_*
        at = {value: dataclasses.replace(s, **dict.fromkeys((setting, *also), value)) for value in values}
        recipes = {f"{value:g}": alone(own) for value, own in at.items()}
        found = lab.train(name, recipes, MOMENTS, (compare_rows,), at_most=s.most_seeds)
        return swept(found.history, dim, values)

    run.__doc__ = f"The first steps of trainings at several values of {setting.replace('_', ' ')}."
    return Experiment(run, cost=5)


experiments = {name: updates(name) for name in SCALES}

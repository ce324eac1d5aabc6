"""A user's file: a small world, a small model, one experiment. The tests of sweeps run it."""

import dataclasses

import numpy as np

from iclab.evaluation import errors
from iclab.experiments import Recipe
from iclab.losses import hinge
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.optimisation import Training
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks


@dataclasses.dataclass(frozen=True)
class Settings:
    matching_fraction: float = 0.8
    step_size: float = 1.0
    neurons: int = 40
    steps: int = 40
    records: int = 4


settings = Settings()


def world(s):
    patterns = orthogonal_patterns(8, 4, 4, 3.0)
    return Classification(
        patterns, cyclic_tasks(4), context_length=10, maximum_length=10, matching_fraction=s.matching_fraction,
        label_embedding=np.array([1.0, 0.0, 0.0]),
    )  # fmt: skip


def experiment(lab):
    s = lab.settings
    model = SoftmaxTransformerSettings(initial_scale=0.1, key_width=12, value_width=12, neurons=s.neurons)
    recipe = Recipe(world(s), model, Training(step_size=s.step_size, batch=32))
    record_at = np.linspace(0, s.steps, s.records, dtype=int).tolist()
    trained = lab.train("small", {"small": lambda seed: recipe}, record_at)
    tested = lab.evaluate(trained, "test", errors(hinge), lambda setting, seed, one: world(s), {"one": (0,)}, 250)
    return tested.isel(one=0, drop=True).assign(training_loss=trained.history["training_loss"])

"""A small classification world and model, shared by the tests so that they share compiled programs."""

import numpy as np

from iclab import ensemble
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.optimisation import Training
from iclab.patterns import orthogonal_patterns
from iclab.training import Member
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks

PATTERNS, OTHERS, DIMENSION, LABELS, LENGTH = 4, 4, 8, 3, 10


def world(*, basis_seed=None, length=LENGTH, maximum=LENGTH, tasks=None, **changes):
    settings = {"matching_fraction": 0.8, "label_embedding": np.array([1.0, 0.0, 0.0])} | changes
    patterns = orthogonal_patterns(DIMENSION, PATTERNS, OTHERS, 3.0, basis_seed=basis_seed)
    tasks = cyclic_tasks(PATTERNS) if tasks is None else tasks
    return Classification(patterns, tasks, context_length=length, maximum_length=maximum, **settings)


MODEL = SoftmaxTransformerSettings(initial_scale=0.1, key_width=12, value_width=12, neurons=40)


def member(name="test", seed=0, *, the_world=None, step_size=1.0):
    return Member(ensemble.member_key(name, seed), the_world or world(), MODEL, Training(step_size=step_size, batch=32))


def members(seeds, **changes):
    return ensemble.stack([member(seed=seed, **changes) for seed in seeds])

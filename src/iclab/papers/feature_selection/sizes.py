"""Trainings of feature-selection at several sizes: M and M1 (one program each), m (a program per width), and the
sets of tasks that Lemma 1 counts.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, expect, expect_in, geometric, swept
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.feature_selection.experiments import OBSERVED_BATCHES, alone, share
from iclab.papers.feature_selection.laws import TOTALS
from iclab.papers.feature_selection.settings import Settings, recipe
from iclab.probes.attention import attention_mass
from iclab.probes.norms import pattern_norms
from iclab.probes.updates import initial, pattern_updates
from iclab.worlds.tasks import all_tasks

COUNTS = (5, 7, 9, 12)  # M1 where it grows, at M = 144 >= M1²
WIDTHS = (320, 640, 1280, 2560)  # m where it grows; the last two meet m >= ε_m⁻² M1² log N for some ε_m < 1/2
PER_WIDTH = 1 / 1280  # η/m there: the same number of steps is enough at every width
WIDTH_BATCH = 64  # B there


def roomy(s: Settings, dimension: int, relevant: int, total: int) -> Settings:
    """M1 of M patterns in a space of this dimension, in which larger M and M1 have room."""
    widths = {"key_width": dimension, "value_width": dimension + s.label_dimension}
    sizes = {"relevant_patterns": relevant, "irrelevant_patterns": total - relevant}
    return dataclasses.replace(s, feature_dimension=dimension, **widths, **sizes)


def own_steps(s: Settings, total: int) -> int:
    """T at M patterns: it grows with √M, as in (6)."""
    return round(s.size_steps * math.sqrt(total / TOTALS[0]))


def compare_weights(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Lemma 4: what was added to W_Q and W_K."""
    return pattern_updates(model, initial(member), member.world)


def respond(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Norms of patterns, attention in domain and out of it ("out_..."), and what was added to W_Q and W_K."""
    inside, outside = expect_in(attention_mass, model, (member.world, member.watched[0]), key, OBSERVED_BATCHES)
    weights = pattern_norms(model, member.world) | compare_weights(model, member, key)
    return weights | inside | {f"out_{name}": value for name, value in outside.items()}


def sizes(lab: Lab) -> xr.Dataset:
    """Trainings at several M: losses along training, and at T ∝ √M what Proposition 1 and Corollary 1 speak of."""
    s: Settings = lab.settings
    totals = TOTALS[: s.rate_programs]
    at = {total: roomy(s, totals[-1], s.relevant_patterns, total) for total in totals}
    steps = {total: own_steps(s, total) for total in totals}
    record_at = sorted({*geometric(max(steps.values()), ratio=1.1), *steps.values()})
    recipes = {f"{total}": recipe(own) for total, own in at.items()}
    found = lab.train("sizes", recipes, record_at, (respond,), at_most=min(s.few_seeds, s.most_seeds))
    history = swept(found.history, "patterns", totals)
    own = [history.sel(patterns=[total]).sel(step=steps[total], drop=True) for total in totals]
    return xr.concat(own, "patterns").drop_vars("training_loss").assign(training_loss=history["training_loss"])


def counts(lab: Lab) -> xr.Dataset:
    """Trainings at several M1, for Lemma 4."""
    s: Settings = lab.settings
    numbers = COUNTS[: s.rate_programs]
    dimension = numbers[-1] ** 2
    recipes = {f"{count}": alone(roomy(s, dimension, count, dimension)) for count in numbers}
    steps = [0, s.size_steps // 2]
    found = lab.train("counts", recipes, steps, (compare_weights,), at_most=min(s.few_seeds, s.most_seeds))
    return swept(found.history, "relevant", numbers)


def contribute(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Proposition 2: contributions of label and feature parts."""
    return expect(share, model, member.world, key, OBSERVED_BATCHES)


def widths(lab: Lab) -> xr.Dataset:
    """Trainings at several m with η ∝ m, for Proposition 2 and for (6), which has no m."""
    s: Settings = lab.settings
    found, few, steps = [], min(s.few_seeds, s.most_seeds), geometric(2 * s.rate_steps)
    for width in WIDTHS[: s.rate_programs]:
        own = dataclasses.replace(s, neurons=width, step_size=width * PER_WIDTH, batch=WIDTH_BATCH)
        trained = lab.train(f"widths-{width}", {"width": alone(own)}, steps, (contribute,), at_most=few)
        found.append(trained.history.isel(setting=0, drop=True))
    return xr.concat(found, xr.Variable("neurons", list(WIDTHS[: s.rate_programs])))


def smallest_balanced(patterns: int) -> int:
    """The smallest set of tasks in which every pattern stands for each label equally often, at least once: by trying
    all sets.

    >>> [smallest_balanced(count) for count in (2, 3, 4)]
    [2, 3, 4]
    """
    tasks = all_tasks(patterns)
    chosen = (np.arange(2 ** len(tasks))[:, None] >> np.arange(len(tasks)) & 1).astype(np.int8)
    positive, negative = (chosen @ (tasks[:, [side]] == np.arange(patterns)).astype(np.int8) for side in (0, 1))
    balanced = ((positive == negative) & (positive > 0)).all(axis=1)
    return int(chosen[balanced].sum(axis=1).min())


def task_sets(lab: Lab) -> xr.Dataset:
    """Lemma 1: the smallest sets of training tasks that it allows, for M1 = 2, 3, 4."""
    patterns = (2, 3, 4)
    found = np.array([smallest_balanced(count) for count in patterns], float)
    numbers = np.repeat(found[:, None], len(lab.seeds), axis=1)
    return xr.Dataset({"tasks": (("patterns", "seed"), numbers)}, {"patterns": list(patterns), "seed": list(lab.seeds)})


experiments = {
    "sizes": Experiment(sizes, cost=30),
    "counts": Experiment(counts, cost=15),
    "widths": Experiment(widths, cost=30),
    "task-sets": Experiment(task_sets, cost=1),
}

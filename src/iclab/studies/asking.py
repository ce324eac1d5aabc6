"""How token mixers are trained and tested in the worlds of several papers, for the study of architectures."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring import Expression, Lab, Loss, Recipe, Results, Trained, Training, cross_entropy, errors, hinge
from iclab.inference import chain_errors
from iclab.losses import squared
from iclab.models import ModelSettings
from iclab.models.mechanisms import Mechanism
from iclab.models.mixers import MixerSettings
from iclab.papers.chain_of_thought.settings import Settings as Chains
from iclab.papers.chain_of_thought.settings import inference_world as chain_test
from iclab.papers.chain_of_thought.settings import step_matrices
from iclab.papers.chain_of_thought.settings import training_world as chain_training
from iclab.papers.mamba_outliers.settings import TASK_SETS, TASKS, Settings, inference_world, numbers, training_world
from iclab.statistics import interval
from iclab.worlds.outliers import LabelRule
from iclab.worlds.reasoning import Mode
from iclab.worlds.recall import Recall
from iclab.worlds.tasks import all_tasks, cyclic_tasks

Models = Mapping[str, ModelSettings]
Place = Callable[..., object]
Questions = Mapping[str, tuple[Place, Mapping[str, Sequence[Any]]]]

WORLD, REASONING = Settings(), Chains()  # the papers' own settings
SHIFTS = TASK_SETS[TASKS]
RULES = tuple(rule.name for rule in LabelRule)
FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
LENGTHS = (20, 80, 160)
PAIRS = (2, 4, 8, 16)
MOST, LONGEST, LARGE = 0.8, LENGTHS[-1], 10.0  # α, l_ts and κ_a' of the questions
KINDS = ("mixed", "seen")  # Appendix B's mixtures, the outliers of training
SIZES = (WORLD.outlier_magnitude, LARGE)  # κ_a' where mechanisms are asked
CHAINS = (10, 40)  # examples of a reasoning
BRIEF = 0.3  # of the steps, where tokens have 100 columns and a step takes ten times as long
LAST = 3  # records over which the training loss is averaged
FACTORS = {"gate": ("none", "own"), "decay": ("none", "scalar"), "delta": ("none", "unit", "key")}


def factorial(initial_scale: float) -> dict[str, ModelSettings]:
    """The eight models with and without each factor, and four with keys of norm 1 but no delta rule, by the values."""
    mixed = [dict(zip(FACTORS, values, strict=True)) for values in itertools.product(*FACTORS.values())]
    return {"-".join(one.values()): MixerSettings(initial_scale, mechanism=Mechanism(**one)) for one in mixed}


def trained(
    lab: Lab, name: str, models: Models, world: object, loss: Loss, steps: str, brief: float = 1.0, **training: Any
) -> dict[str, Trained]:
    """Every model at every step size in a world, by the name of the model; `brief` is the share of the steps."""
    s, sizes = lab.settings, numbers(steps)
    return {
        model: lab.train(
            f"{name}-{model}",
            {f"{size:g}": Recipe(world, made, Training(size, s.batch, **training)) for size in sizes},
            max(1, round(brief * s.steps)), loss=loss,
        )
        for model, made in models.items()
    }  # fmt: skip


def best_step_size(run: Trained) -> xr.DataArray:
    """For every seed the number of the step size with the lowest training loss over the last records."""
    loss = run.history["training_loss"].isel(step=slice(-LAST, None)).mean("step", skipna=False).fillna(np.inf)
    return loss.argmin("setting")


def tested(
    lab: Lab, runs: Mapping[str, Trained], name: str, measure: Any, place: Place, dims: Mapping[str, Sequence[Any]]
) -> xr.Dataset:
    """A measure of every model over a grid of tests, along a dimension "model". Only the chosen members are tested."""
    found = {}
    for model, run in runs.items():
        best = best_step_size(run)
        sizes = xr.DataArray([float(size) for size in run.settings], dims="setting")
        values = lab.evaluate(run.chosen(best.values), name, measure, place, dims, lab.settings.prompts)
        found[model] = values.isel(setting=0, drop=True).assign(step_size=sizes.isel(setting=best))
    return xr.concat(list(found.values()), xr.Variable("model", list(found)))


def in_outliers(lab: Lab, models: Models, questions: Questions) -> xr.Dataset:
    """Train with outliers in the prompts, and ask the questions: names with worlds over a grid."""
    world = training_world(WORLD, SHIFTS, WORLD.outlier_fraction)
    runs = trained(lab, "outliers", models, world, hinge, lab.settings.step_sizes)
    parts = [
        tested(lab, runs, name, errors(hinge), place, dims)[["error", "step_size"]].rename(error=f"{name}_error")
        for name, (place, dims) in questions.items()
    ]
    return xr.merge(parts, compat="override", join="outer")


def outlier_test(
    setting: str, seed: int, rule: str = "flip", fraction: float = MOST, magnitude: float = LARGE, **more: Any
) -> object:
    """The test world of mamba-outliers; all of a prompt length are one program."""
    return inference_world(WORLD, fraction, magnitude, exact=True, stackable=True, rule=LabelRule[rule], **more)


def seen_test(setting: str, seed: int, fraction: float) -> object:
    """Outliers of training, of their own size."""
    return outlier_test(setting, seed, fraction=fraction, magnitude=WORLD.outlier_magnitude, outliers="seen")


def task_test(setting: str, seed: int, tasks: str) -> object:
    """All tasks, or those of training, on prompts without outliers."""
    return outlier_test(setting, seed, fraction=0.0, shifts=None if tasks == "all" else SHIFTS)


def length_test(setting: str, seed: int, length: int) -> object:
    """Prompts of several lengths, padded to the longest."""
    own = dataclasses.replace(WORLD, test_length=length)
    return inference_world(own, MOST, LARGE, exact=True, stackable=True, rule=LabelRule.flip, longest=LONGEST)


FLIPPED: Questions = {"outlier": (outlier_test, {"outliers": KINDS, "magnitude": SIZES})}
QUESTIONS: Questions = {
    "outlier": (outlier_test, {"rule": RULES, "fraction": FRACTIONS}),
    "seen": (seen_test, {"fraction": FRACTIONS}),
    "tasks": (task_test, {"tasks": ("all", "trained")}),
    "length": (length_test, {"length": LENGTHS}),
}


def unseen(found: xr.Dataset) -> xr.DataArray:
    """The error on the tasks that were not trained, from that on all and on the trained ones."""
    every, known = len(all_tasks(WORLD.relevant_patterns)), len(cyclic_tasks(WORLD.relevant_patterns, SHIFTS))
    error = found["tasks_error"]
    return ((every * error.sel(tasks="all") - known * error.sel(tasks="trained")) / (every - known)).clip(0.0, 1.0)


def recalled(lab: Lab, models: Models) -> xr.Dataset:
    """Pairs under crowded keys, trained with the most pairs and tested with fewer."""
    s = lab.settings

    def place(setting: str = "", seed: int = 0, pairs: int = PAIRS[-1]) -> Recall:
        sizes: dict[str, Any] = {"maximum_pairs": PAIRS[-1], "joined": True, "dimension": s.key_dimension}
        return Recall(s.keys, s.key_dimension, pairs, **sizes)

    runs = trained(lab, "recall", models, place(), cross_entropy, s.recall_step_sizes, optimiser="adam")
    return tested(lab, runs, "recall", errors(cross_entropy), place, {"pairs": PAIRS})[["error", "step_size"]]


def reasoned(lab: Lab, models: Models) -> xr.Dataset:
    """Chains of thought in the world of chain-of-thought."""
    world = chain_training(REASONING)
    runs = trained(lab, "reasoning", models, world, squared, lab.settings.step_sizes, BRIEF)
    matrices = step_matrices(REASONING)

    def place(setting: str, seed: int, length: int) -> object:
        fraction = REASONING.test_matching_fraction
        return chain_test(REASONING, 0, Mode.chain, matrices, fraction, length, CHAINS[-1])

    found = tested(lab, runs, "reasoning", chain_errors, place, {"length": CHAINS})
    return found[["error", "final_error", "step_size"]]


def by_factors(found: xr.Dataset) -> xr.Dataset:
    """Results of the factorial along a dimension for each factor."""
    values = [str(name).split("-") for name in found["model"].values]
    rows = {factor: ("model", [value[number] for value in values]) for number, factor in enumerate(FACTORS)}
    return found.drop_vars("model").assign_coords(rows).set_index(model=list(FACTORS)).unstack("model")


def effect(error: Expression, factor: str) -> Expression:
    """By how much an error is smaller with a factor than without it, averaged over the other two.

    Keys of norm 1 without the delta rule are left out: they belong to neither side.
    """
    both = error.sel(delta=["none", "key"])
    without, there = (both.sel(**{factor: value}) for value in (FACTORS[factor][0], FACTORS[factor][-1]))
    return (without - there).mean([name for name in FACTORS if name != factor])


def matrix(results: Results, columns: Mapping[str, Expression]) -> xr.Dataset:
    """Models × questions: the mean error over seeds, its interval, and the ranks that the intervals allow.

    A model's rank lies between 1 + the number of models that are better for sure and the number of all less those that
    are worse for sure, where "for sure" means that intervals do not overlap.
    """
    known = {words: error for words, error in columns.items() if set(error.needs) <= set(results)}
    answered = {words: error.evaluate(results) for words, error in known.items()}
    error = xr.concat(list(answered.values()), xr.Variable("question", list(answered)), coords="minimal",
                      compat="override", join="outer")  # fmt: skip
    error = error.reset_coords(drop=True).transpose("model", "question", "seed")
    found = [[interval(cell, (0.0, 1.0)) for cell in row] for row in error.values]
    ends = {name: np.array([[getattr(cell, name) for cell in row] for row in found]) for name in ("low", "high")}
    low, high = (np.where(np.isfinite(ends[name]), ends[name], error.mean("seed")) for name in ("low", "high"))
    better = high[:, None] < low[None, :]  # [one, other]: one is better than the other for sure
    compared = np.isfinite(low).sum(axis=0)
    sizes = {name: (("model", "question"), values) for name, values in (("low", low), ("high", high))}
    ranks = {"best_rank": 1 + better.sum(axis=0), "worst_rank": compared - better.sum(axis=1)}
    asked = np.isfinite(low)  # a model that diverged, or was not asked, has no rank
    sizes |= {name: (("model", "question"), np.where(asked, values, np.nan)) for name, values in ranks.items()}
    return error.to_dataset(name="error").assign(sizes)

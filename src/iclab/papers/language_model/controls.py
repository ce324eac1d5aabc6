"""Do the interventions act, and do they act where they should? Asked of the model at hand, before anything is concluded from
them.

Nothing: a vector of zeros is added, no neuron goes. Planted: the stream of another prompt is put in after the last block, so
the answer must be the other prompt's. Used: the interventions of the experiments.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.experiments import Lab
from iclab.language.edits import Patch, Pruned, mlps
from iclab.language.words import WORD_TASKS
from iclab.papers.language_model.asking import bench, measured, tasks
from iclab.papers.language_model.settings import WORD_TESTS, Settings
from iclab.papers.language_model.task_vectors import extract

NOTHING = ("zero vector added", "own stream put back", "no neuron pruned")
USED = ("task vector added", "stream replaced", "one neuron in ten pruned")


def controls(lab: Lab) -> xr.Dataset:
    """Interventions of nothing, planted ones, and those that are used, on held-out prompts."""
    s: Settings = lab.settings
    one = bench(lab)
    coordinates = {"nothing": NOTHING, "used": USED, "prompt": range(len(WORD_TASKS) * s.held_out_prompts)}
    variables = {"unchanged": ("nothing", "prompt"), "planted": ("prompt",), "changed": ("used", "prompt")}

    def compute() -> dict[str, np.ndarray]:
        model = one.model
        found = tasks(one, WORD_TASKS, WORD_TESTS)
        queries = [query for task in found for query in task.held_out[: s.held_out_prompts]]
        bare = [one.prompt((), query[:1]).tokens for query in queries]
        targets = one.targets(queries)
        plain, streams = model.ask(bare, targets).log_probability, model.states(bare)
        vectors, means = extract(one, found)
        middle, count = model.depth // 2, len(bare)
        own = np.repeat(np.arange(len(found)), s.held_out_prompts)

        def patched(place: int, values: np.ndarray, replace: bool) -> np.ndarray:
            return model.ask(bare, targets, edit=Patch(np.full(count, place), values, replace)).log_probability

        nothing = [patched(middle, np.zeros((count, model.width)), False), patched(middle, streams[:, middle], True)]
        used = [patched(middle, vectors["own"][own, middle], False), patched(middle, means[own, middle], True)]
        neurons = mlps(model) if model.has_attention else []
        for kept in (lambda width: np.ones(width, bool), lambda width: np.arange(width) % 10 > 0):
            mask = np.stack([kept(n.width) for n in neurons]) if neurons else None
            pruned = model.ask(bare, targets, edit=Pruned(mask)).log_probability if mask is not None else np.full(count, np.nan)
            (nothing if len(nothing) == 2 else used).append(pruned)
        # The answers of other prompts: their streams after the last block are planted, everything else stays.
        shift = np.roll(np.arange(count), s.held_out_prompts)
        planted = patched(model.depth, streams[shift, model.depth], True)
        expected = model.ask([bare[index] for index in shift], targets).log_probability
        return {
            "unchanged": np.abs(np.stack(nothing) - plain), "planted": np.abs(planted - expected),
            "changed": np.abs(np.stack(used) - plain),
        }  # fmt: skip

    return measured(lab, coordinates, variables, compute)

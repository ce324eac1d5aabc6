"""Figure 1 of vector-arithmetic on a real model: words x, answers y and the task vector o, place by place.

The task vector is the mean, over prompts of held-out examples, of the residual stream at the last token (the separator
behind the query) with demonstrations minus without. It is put into zero-shot prompts of unseen queries at the same
token: added (x + o), or, as Hendel et al. (2023) do, the mean with demonstrations put in place of the stream. The place
is chosen on held-out queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.edits import Patch
from iclab.language.prompts import deranged
from iclab.language.study.asking import Bench, Found, Queries, bench, few_shots, named, recorded, require_effect, tasks
from iclab.language.study.geometry import COSINES, KINDS, geometry, static_offsets, static_ranks, word_pairs
from iclab.language.study.settings import WORD_TESTS
from iclab.language.words import WORD_TASKS, Task, generator

CONTEXTS = ("none", "demonstrations", "shuffled labels")
MODES = ("added", "replaced")
VECTORS = ("other task", "shuffled labels", "random", "static offset")


def task_vectors(lab: Lab) -> xr.Dataset:
    """Fig. 1: task vectors put into zero-shot prompts and the geometry of x, o and y, place by place, with controls."""
    one = bench(lab.settings)
    s, depth = one.settings, one.model.depth
    found = tasks(one, WORD_TASKS, WORD_TESTS)
    places = sorted({*range(0, depth + 1, s.place_stride), depth})
    axes: dict[str, Any] = {"task": WORD_TASKS, "prompt": range(s.prompts), "held": range(s.held_out_prompts)}
    axes |= {"place": places, "every": range(depth + 1), "context": CONTEXTS, "mode": MODES, "vector": VECTORS}
    axes |= {"cosine": COSINES, "kind": KINDS, "axis": range(3)}
    variables = dict.fromkeys(("right", "rank"), "context task prompt")
    variables |= dict.fromkeys(("patched_right", "patched_rank"), "mode task prompt place")
    variables |= {"held_right": "mode task held place", "chosen": "mode", "control_right": "mode vector task prompt"}
    variables |= {"cosines": "cosine task prompt every", "held_along": "task held every", "geometry_place": ""}
    variables |= {"points": "task prompt kind axis", "static_rank": "task prompt"}

    def compute() -> Found:
        vectors, means = extract(one, found)
        answers = _answers(lab, one, found, np.array(places), vectors, means)
        return answers | geometry(word_pairs(one, found), vectors["own"], s.held_out_prompts) | static_ranks(one, found)

    return recorded(lab, axes, variables, compute).assign_coords(named(found, s.prompts))


def extract(one: Bench, found: list[Task]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Task vectors (task × place × coordinate) by kind, and the means that they are differences of."""
    streams = []
    for task in found:
        queries = task.held_out[: one.settings.held_out_prompts]
        shown, mixed = (few_shots(one, [task], [queries], "extraction", change) for change in (None, deranged))
        streams.append([one.model.states(prompts).mean(0) for prompts in (one.bare(queries), shown, mixed)])
    bare, means, shuffled = np.stack(streams, axis=1)
    vectors = {"own": means - bare, "shuffled labels": shuffled - bare, "other task": np.roll(means - bare, 1, axis=0)}
    noise = generator("random vector").normal(size=means.shape)
    size = np.linalg.norm(vectors["own"], axis=-1, keepdims=True) / np.linalg.norm(noise, axis=-1, keepdims=True)
    vectors["random"] = (noise * size).astype(np.float32)
    vectors["static offset"] = static_offsets(one, found)
    return vectors, means


def _answers(
    lab: Lab, one: Bench, found: list[Task], places: np.ndarray, vectors: dict[str, np.ndarray], means: np.ndarray
) -> dict[str, list]:
    """Accuracy and rank without demonstrations, with them, and with a vector instead of them."""
    s, shape = one.settings, (len(found), one.settings.prompts)
    test, held = [task.test[: s.prompts] for task in found], [task.held_out[: s.held_out_prompts] for task in found]
    bare, targets = one.bare(sum(test, ())), one.targets(sum(test, ()))
    shown, mixed = (few_shots(one, found, test, "test", change) for change in (None, deranged))
    plain = [one.model.ask(prompts, targets) for prompts in (bare, shown, mixed)]
    require_effect("showing demonstrations", plain[0].log_probability, plain[1].log_probability)
    names = ("held_right", "chosen", "patched_right", "patched_rank", "control_right")
    result: dict[str, list] = {name: [] for name in names}
    result |= {name: [getattr(answers, name).reshape(shape) for answers in plain] for name in ("right", "rank")}
    for mode in MODES:
        replace = mode == "replaced"
        source = means if replace else vectors["own"]
        held_right, _, _ = _everywhere(one, held, places, source, replace)
        best = int(places[1 + held_right.mean((0, 1))[1:].argmax()])  # not place 0, where nothing is changed
        lab.report(f"language-model: a task vector {mode}", 0.5)
        right, rank, certainty = _everywhere(one, test, places, source, replace)
        require_effect(f"a task vector {mode}", plain[0].log_probability.reshape(*shape, 1), certainty)
        base = (means - vectors["own"])[:, best] if replace else 0  # a control replaces the stream together with this
        controls = []
        for name in VECTORS:
            values = np.repeat(vectors[name][:, best] + base, s.prompts, axis=0).astype(np.float32)
            answers = one.model.ask(bare, targets, edit=Patch(np.full(len(bare), best), values, replace))
            controls.append(answers.right.reshape(shape))
        for name, part in zip(names, (held_right, best, right, rank, controls), strict=True):
            result[name].append(part)
    return result


def _everywhere(
    one: Bench, queries: Queries, places: np.ndarray, source: np.ndarray, replace: bool
) -> tuple[np.ndarray, ...]:
    """Each query with its task's vector at each place: whether the answer is right, its rank and log-probability, as
    task × prompt × place. Of every task there are equally many queries.
    """
    every = [query for own in queries for query in own for _ in places]
    task = np.repeat(np.arange(len(queries)), len(every) // len(queries))
    place = np.tile(places, len(every) // len(places))
    answers = one.model.ask(one.bare(every), one.targets(every), edit=Patch(place, source[task, place], replace))
    grid = (len(queries), len(queries[0]), len(places))
    return tuple(getattr(answers, name).reshape(grid) for name in ("right", "rank", "log_probability"))

"""Figure 1 of vector-arithmetic on a real model: words x, answers y and the task vector o, place by place.

The task vector is the mean, over prompts of held-out examples, of the residual stream at the last token (the separator behind
the query) with demonstrations minus without. It is put into zero-shot prompts of unseen queries at the same token: added (x +
o), or, as Hendel et al. (2023) do, the mean with demonstrations put in the stream's stead. The place is chosen on held-out
queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.edits import Patch
from iclab.language.prompts import deranged
from iclab.language.words import WORD_TASKS, Example, Task, generator
from iclab.papers.language_model.asking import Bench, bench, few_shots, recorded, require_effect, tasks
from iclab.papers.language_model.geometry import COSINES, KINDS, geometry, static_offsets, static_ranks
from iclab.papers.language_model.settings import WORD_TESTS, Settings

MODES = ("added", "replaced")
VECTORS = ("other task", "shuffled labels", "random", "static offset")
CONTEXTS = {"none": None, "demonstrations": None, "shuffled labels": deranged}


def task_vectors(lab: Lab) -> xr.Dataset:
    """Fig. 1: task vectors put into zero-shot prompts and the geometry of x, o and y, place by place, with controls."""
    s: Settings = lab.settings
    one = bench(lab)
    depth = one.model.depth
    places = sorted({*range(0, depth + 1, s.place_stride), depth})
    coordinates = {"task": WORD_TASKS, "prompt": range(s.prompts), "held": range(s.held_out_prompts), "place": places}
    coordinates |= {"every": range(depth + 1), "context": tuple(CONTEXTS), "mode": MODES, "vector": VECTORS}
    coordinates |= {"cosine": COSINES, "kind": KINDS, "axis": range(3)}
    variables = {name: "context task prompt" for name in ("right", "rank")}
    variables |= {"held_right": "mode task held place", "chosen": "mode", "control_right": "mode vector task prompt"}
    variables |= {f"patched_{name}": "mode task prompt place" for name in ("right", "rank")}
    variables |= {"cosines": "cosine task prompt every", "held_along": "task held every", "geometry_place": ""}
    variables |= {"points": "task prompt kind axis", "static_rank": "task prompt"}
    found = tasks(one, WORD_TASKS, WORD_TESTS)

    def compute() -> dict[str, Any]:
        vectors, means = extract(one, found)
        answers = _answers(lab, one, found, np.array(places), vectors, means)
        return answers | geometry(one, found, vectors["own"]) | static_ranks(one, found)

    words = {
        name: [[e[at] for e in task.test[: s.prompts]] for task in found] for name, at in (("query", 0), ("answer", -1))
    }
    named = {name: (("task", "prompt"), rows) for name, rows in words.items()}
    return recorded(lab, coordinates, variables, compute).assign_coords(named)


def extract(one: Bench, found: list[Task]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Task vectors (task × place × coordinate) by kind, and the means that they are differences of."""
    own, shuffled, means = [], [], []
    for task in found:
        queries = task.held_out[: one.settings.held_out_prompts]
        prompts = (few_shots(one, [task], [queries], "extraction", change) for change in (None, deranged))
        bare, shown, mixed = (one.model.states(tokens).mean(0) for tokens in (one.bare(queries), *prompts))
        means.append(shown)
        own.append(shown - bare)
        shuffled.append(mixed - bare)
    vectors = {"own": np.stack(own), "shuffled labels": np.stack(shuffled)}
    vectors["other task"] = np.roll(vectors["own"], 1, axis=0)
    noise = generator("random vector").normal(size=vectors["own"].shape)
    size = np.linalg.norm(vectors["own"], axis=-1, keepdims=True) / np.linalg.norm(noise, axis=-1, keepdims=True)
    vectors["random"] = (noise * size).astype(np.float32)
    vectors["static offset"] = static_offsets(one, found)
    return vectors, np.stack(means)


def _answers(
    lab: Lab, one: Bench, found: list[Task], places: np.ndarray, vectors: dict[str, np.ndarray], means: np.ndarray
) -> dict[str, Any]:
    """Accuracy and rank without demonstrations, with them, and with a vector instead of them."""
    s, shape = one.settings, (len(found), one.settings.prompts)
    test, held = [task.test[: s.prompts] for task in found], [task.held_out[: s.held_out_prompts] for task in found]
    bare, targets = one.bare(sum(test, ())), one.targets(sum(test, ()))
    shown = [few_shots(one, found, test, "test", change) for name, change in CONTEXTS.items() if name != "none"]
    plain = [one.model.ask(prompts, targets) for prompts in (bare, *shown)]
    require_effect("showing demonstrations", plain[0].log_probability, plain[1].log_probability)
    base = means - vectors["own"]  # without demonstrations: with a vector of another kind added, it replaces the stream
    result: dict[str, list] = {
        name: [getattr(answers, name).reshape(shape) for answers in plain] for name in ("right", "rank")
    }
    result |= {name: [] for name in ("held_right", "chosen", "patched_right", "patched_rank", "control_right")}
    for mode in MODES:
        replace = mode == "replaced"
        source = means if replace else vectors["own"]
        right, _, _ = _everywhere(one, held, places, source, replace)
        best = int(places[right.mean((0, 1)).argmax()])
        lab.report(f"language-model: a task vector {mode}", 0.5)
        patched_right, patched_rank, certainty = _everywhere(one, test, places, source, replace)
        require_effect(f"a task vector {mode}", plain[0].log_probability.reshape(*shape, 1), certainty)
        controls = []
        for name in VECTORS:
            values = vectors[name][:, best] + (base[:, best] if replace else 0)
            edit = Patch(np.full(len(bare), best), np.repeat(values, s.prompts, axis=0).astype(np.float32), replace)
            controls.append(one.model.ask(bare, targets, edit=edit).right.reshape(shape))
        parts = {"held_right": right, "chosen": best, "patched_right": patched_right, "patched_rank": patched_rank}
        for name, part in {**parts, "control_right": controls}.items():
            result[name].append(part)
    return result


def _everywhere(
    one: Bench, queries: Sequence[tuple[Example, ...]], places: np.ndarray, source: np.ndarray, replace: bool
) -> tuple[np.ndarray, ...]:
    """Each query with its task's vector at each place: whether the answer is right, its rank and log-probability, as task ×
    prompt × place. Of every task there are equally many queries.
    """
    every = sum(queries, ())
    task, place = np.repeat(np.arange(len(queries)), len(queries[0]) * len(places)), np.tile(places, len(every))
    prompts, targets = ([item for item in items for _ in places] for items in (one.bare(every), one.targets(every)))
    answers = one.model.ask(prompts, targets, edit=Patch(place, source[task, place], replace))
    grid = (len(queries), len(queries[0]), len(places))
    return tuple(getattr(answers, name).reshape(grid) for name in ("right", "rank", "log_probability"))

"""Figure 1 of vector-arithmetic on a real model: words x, answers y and the task vector o, place by place.

The task vector is the mean, over prompts of held-out examples, of the residual stream at the last token (the separator behind
the query) with demonstrations minus without. It is put into zero-shot prompts of unseen queries at the same token: added (x +
o), or, as Hendel et al. (2023) do, the mean with demonstrations put in the stream's stead. The place is chosen on held-out
queries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from iclab.experiments import Lab
from iclab.language.edits import Patch
from iclab.language.prompts import deranged
from iclab.language.words import WORD_TASKS, Task, generator
from iclab.papers.language_model.asking import Bench, bench, measured, require_effect, tasks, with_demonstrations
from iclab.papers.language_model.geometry import COSINES, KINDS, geometry, static_offsets, static_ranks
from iclab.papers.language_model.settings import WORD_TESTS, Settings

MODES = ("added", "replaced")
VECTORS = ("other task", "shuffled labels", "random", "static offset")


def task_vectors(lab: Lab) -> xr.Dataset:
    """Fig. 1: task vectors put into zero-shot prompts and the geometry of x, o and y, place by place, with controls."""
    s: Settings = lab.settings
    one = bench(lab)
    coordinates = {
        "task": WORD_TASKS, "prompt": range(s.prompts), "held": range(s.held_out_prompts),
        "place": sorted({*range(0, one.model.depth + 1, s.place_stride), one.model.depth}), "every": range(one.model.depth + 1),
        "mode": MODES, "vector": VECTORS, "cosine": COSINES, "kind": KINDS, "axis": range(3),
        "context": ("none", "demonstrations", "shuffled labels"),
    }  # fmt: skip
    variables = {
        "right": ("context", "task", "prompt"), "rank": ("context", "task", "prompt"),
        "held_right": ("mode", "task", "held", "place"), "chosen": ("mode",),
        "patched_right": ("mode", "task", "prompt", "place"), "patched_rank": ("mode", "task", "prompt", "place"),
        "control_right": ("vector", "mode", "task", "prompt"), "control_rank": ("vector", "mode", "task", "prompt"),
        "static_rank": ("task", "prompt"),
        "cosines": ("cosine", "task", "prompt", "every"), "held_along": ("task", "held", "every"), "geometry_place": (),
        "points": ("task", "prompt", "kind", "axis"), "arrow": ("task", "axis"),
    }  # fmt: skip

    def compute() -> dict[str, np.ndarray]:
        found = tasks(one, WORD_TASKS, WORD_TESTS)
        places = np.array(coordinates["place"])
        vectors, means = extract(one, found)
        return (
            _answers(lab, one, found, places, vectors, means) | geometry(one, found, vectors["own"]) | static_ranks(one, found)
        )

    pairs = [task.test[: s.prompts] for task in tasks(one, WORD_TASKS, WORD_TESTS)]
    names = {name: (("task", "prompt"), [[e[at] for e in row] for row in pairs]) for name, at in (("query", 0), ("answer", -1))}
    return measured(lab, coordinates, variables, compute).assign_coords(names)


def extract(one: Bench, found: list[Task]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Task vectors (task × place × coordinate) by kind, and the means that they are differences of."""
    count = one.settings.held_out_prompts
    own, shuffled, means = [], [], []
    for task in found:
        queries = task.held_out[:count]
        bare = one.model.states([one.prompt((), query[:1]).tokens for query in queries]).mean(0)
        shown = one.model.states([p.tokens for p in with_demonstrations(one, task, queries, "extraction")]).mean(0)
        mixed = with_demonstrations(one, task, queries, "extraction", deranged)
        means.append(shown)
        own.append(shown - bare)
        shuffled.append(one.model.states([p.tokens for p in mixed]).mean(0) - bare)
    vectors = {"own": np.stack(own), "shuffled labels": np.stack(shuffled)}
    vectors["other task"] = np.roll(vectors["own"], 1, axis=0)
    noise = generator("random vector").normal(size=vectors["own"].shape)
    size = np.linalg.norm(vectors["own"], axis=-1, keepdims=True) / np.linalg.norm(noise, axis=-1, keepdims=True)
    vectors["random"] = (noise * size).astype(np.float32)
    vectors["static offset"] = static_offsets(one, found)
    return vectors, np.stack(means)


def _answers(
    lab: Lab, one: Bench, found: list[Task], places: np.ndarray, vectors: dict[str, np.ndarray], means: np.ndarray
) -> dict[str, np.ndarray]:
    """Accuracy and rank without demonstrations, with them, and with a vector instead of them."""
    s, model = one.settings, one.model
    shape = (len(found), s.prompts)
    test = [task.test[: s.prompts] for task in found]
    targets = [token for queries in test for token in one.targets(queries)]
    bare = [one.prompt((), query[:1]).tokens for queries in test for query in queries]
    contexts = [
        bare,
        [p.tokens for t, q in zip(found, test, strict=True) for p in with_demonstrations(one, t, q, "test")],
        [p.tokens for t, q in zip(found, test, strict=True) for p in with_demonstrations(one, t, q, "test", deranged)],
    ]
    plain = [model.ask(prompts, targets) for prompts in contexts]
    require_effect("showing demonstrations", plain[0].log_probability, plain[1].log_probability)
    held = [task.held_out[: s.held_out_prompts] for task in found]
    held_bare = [one.prompt((), query[:1]).tokens for queries in held for query in queries]
    held_targets = [token for queries in held for token in one.targets(queries)]
    # What replaces the stream instead of a vector of these kinds: the mean without demonstrations plus the vector.
    base = means - vectors["own"]
    result: dict[str, list[np.ndarray]] = {name: [] for name in ("held", "chosen", "right", "rank")}
    controls: dict[str, dict[str, list[np.ndarray]]] = {name: {"right": [], "rank": []} for name in VECTORS}
    for mode in MODES:
        replace = mode == "replaced"
        source = means if replace else vectors["own"]
        right, _, _ = _everywhere(one, held_bare, held_targets, places, source, replace)
        best = int(places[right.mean((0, 1)).argmax()])
        lab.report(f"language-model: a task vector {mode}", 0.5)
        patched_right, patched_rank, certainty = _everywhere(one, bare, targets, places, source, replace)
        require_effect(f"a task vector {mode}", plain[0].log_probability.reshape(*shape, 1), certainty)
        for name, part in (("held", right), ("chosen", best), ("right", patched_right), ("rank", patched_rank)):
            result[name].append(np.asarray(part))
        for name in VECTORS:
            values = vectors[name][:, best] + (base[:, best] if replace else 0)
            edit = Patch(np.full(len(bare), best), np.repeat(values, s.prompts, axis=0).astype(np.float32), replace)
            control = model.ask(bare, targets, edit=edit)
            controls[name]["right"].append(control.right.reshape(shape))
            controls[name]["rank"].append(control.rank.reshape(shape))
    return {
        "right": np.stack([answers.right.reshape(shape) for answers in plain]),
        "rank": np.stack([answers.rank.reshape(shape) for answers in plain]),
        "held_right": np.stack(result["held"]), "chosen": np.stack(result["chosen"]),
        "patched_right": np.stack(result["right"]), "patched_rank": np.stack(result["rank"]),
        "control_right": np.stack([np.stack(controls[name]["right"]) for name in VECTORS]),
        "control_rank": np.stack([np.stack(controls[name]["rank"]) for name in VECTORS]),
    }  # fmt: skip


def _everywhere(
    one: Bench, prompts: Sequence[Sequence[int]], targets: Sequence[int], places: np.ndarray, source: np.ndarray, replace: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each prompt with its task's vector at each place: whether the answer is right, its rank and log-probability, as task ×
    prompt × place. Prompts come task by task, equally many of each.
    """
    tasks, each = len(source), len(prompts) // len(source)
    task, place = np.repeat(np.arange(tasks), each * len(places)), np.tile(places, len(prompts))
    asked, right = [p for p in prompts for _ in places], [t for t in targets for _ in places]
    answers = one.model.ask(asked, right, edit=Patch(place, source[task, place], replace))
    grid = (tasks, each, len(places))
    return answers.right.reshape(grid), answers.rank.reshape(grid), answers.log_probability.reshape(grid)

"""Figure 1 of vector-arithmetic on a real model: words x, answers y and the task vector o, place by place.

The task vector is the mean, over prompts of held-out examples, of the residual stream at the last token (the separator behind
the query) with demonstrations minus without. It is put into zero-shot prompts of unseen queries at the same token: added (x +
o), or, as Hendel et al. (2023) do, the mean with demonstrations put in the stream's stead. The place is chosen on held-out
queries.

For the geometry, x and y are the streams at a word that stands alone on a line. Coordinates are centred and divided by their
standard deviation over held-out words: a few massive coordinates would otherwise make every cosine nearly 1.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.experiments import Lab
from iclab.language.edits import Patch
from iclab.language.prompts import deranged, word_alone
from iclab.language.words import WORD_TASKS, Task, generator
from iclab.papers.language_model.asking import Bench, bench, measured, require_effect, tasks, with_demonstrations
from iclab.papers.language_model.settings import WORD_TESTS, Settings

MODES = ("added", "replaced")
VECTORS = ("other task", "shuffled labels", "random")
COSINES = ("x, y", "x+o, y", "x+other, y", "x+offset, y", "x, o", "y, o", "y-x, o", "y-x, other")
KINDS = ("x", "x+o", "y")


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
        return _answers(lab, one, found, places, vectors, means) | _geometry(one, found, vectors["own"]) | _static(one, found)

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

        def everywhere(
            prompts: list, goals: list, each: int, replace: bool = replace
        ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            """Each prompt with its task's own vector at each place: task × prompt × place."""
            which = np.repeat(np.arange(len(found)), each)
            source = means if replace else vectors["own"]
            edit = Patch(
                np.tile(places, len(prompts)), source[np.repeat(which, len(places)), np.tile(places, len(prompts))], replace
            )
            answers = model.ask([p for p in prompts for _ in places], [g for g in goals for _ in places], edit=edit)
            grid = (len(found), each, len(places))
            return answers.right.reshape(grid), answers.rank.reshape(grid), answers.log_probability.reshape(grid)

        right, _, _ = everywhere(held_bare, held_targets, s.held_out_prompts)
        best = int(places[right.mean((0, 1)).argmax()])
        lab.report(f"language-model: a task vector {mode}", 0.5)
        patched_right, patched_rank, certainty = everywhere(bare, targets, s.prompts)
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


def _geometry(one: Bench, found: list[Task], own: np.ndarray) -> dict[str, np.ndarray]:
    """Cosines between words, answers and vectors at every place, and the points of the figure at the chosen place: where the
    step from query to answer, y - x, points most along o on held-out pairs.
    """
    s, model = one.settings, one.model

    def words(examples: list, number: int) -> np.ndarray:
        return model.states([word_alone(model, example[number]) for example in examples]).astype(float)

    held = [list(task.held_out[: max(16, s.held_out_prompts)]) for task in found]
    test = [list(task.test[: s.prompts]) for task in found]
    held_x, held_y = (np.stack([words(examples, number) for examples in held]) for number in (0, -1))
    x, y = (np.stack([words(examples, number) for examples in test]) for number in (0, -1))
    every = np.concatenate([held_x.reshape(-1, *held_x.shape[2:]), held_y.reshape(-1, *held_y.shape[2:])])
    centre, scale = every.mean(0), every.std(0) + 1e-6
    x, y, held_x, held_y = ((part - centre) / scale for part in (x, y, held_x, held_y))
    o = (own / scale)[:, None]
    other = np.roll(o, 1, axis=0)
    offset = (held_y - held_x).mean(1, keepdims=True)  # a static offset of the same vectors, without any prompt
    pairs = ((x, y), (x + o, y), (x + other, y), (x + offset, y), (x, o), (y, o), (y - x, o), (y - x, other))
    along = cosine(held_y - held_x, o)[:, : s.held_out_prompts]
    best = 1 + int(
        along[..., 1:].mean((0, 1)).argmax()
    )  # at place 0 the vector is zero: the separator's embedding minus itself
    points, arrows = [], []
    for task in range(len(found)):
        frame = axes_of(o[task, 0, best], x[task, :, best])
        moved = (x[task, :, best], x[task, :, best] + o[task, 0, best], y[task, :, best])
        points.append(np.stack([part @ frame.T for part in moved], axis=1))
        arrows.append(frame @ o[task, 0, best])
    return {
        "cosines": np.stack([cosine(a, b) for a, b in pairs]), "held_along": along, "geometry_place": np.asarray(float(best)),
        "points": np.stack(points), "arrow": np.stack(arrows),
    }  # fmt: skip


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cosine along the last axis; 0 where a vector is.

    >>> cosine(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 0.0]])).round(3).tolist()
    [0.707, 0.0]
    """
    a, b = np.broadcast_arrays(a, b)
    size = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.divide((a * b).sum(-1), size, out=np.zeros_like(size), where=size > 0)


def axes_of(o: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Three orthonormal axes: along the vector o, and where the words x differ most from one another across it."""
    first = o / max(float(np.linalg.norm(o)), 1e-12)
    across = x - np.outer(x @ first, first)
    _, _, rows = np.linalg.svd(across - across.mean(0), full_matrices=False)
    rows = rows if len(rows) >= 2 else np.vstack([rows, np.zeros((2 - len(rows), len(o)))])
    return np.stack([first, *rows[:2]])


def _static(one: Bench, found: list[Task]) -> dict[str, np.ndarray]:
    """The rank of the answer among all static word vectors, by cosine with the query's plus the mean offset of held-out
    pairs.
    """
    table = one.model.embeddings
    unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)

    def vector(word: str) -> np.ndarray:
        return table[list(one.model.tokens(f" {word}"))].mean(0)

    ranks = []
    for task in found:
        offset = np.mean([vector(example[-1]) - vector(example[0]) for example in task.held_out[:16]], axis=0)
        queries = task.test[: one.settings.prompts]
        scores = np.stack([vector(query[0]) + offset for query in queries]) @ unit.T
        for row, query in zip(scores, queries, strict=True):
            row[list(one.model.tokens(f" {query[0]}"))] = -np.inf  # the query itself is no answer, as in word-vector analogies
        mine = scores[np.arange(len(queries)), one.targets(queries)]
        ranks.append((scores > mine[:, None]).sum(1))
    return {"static_rank": np.stack(ranks).astype(float)}

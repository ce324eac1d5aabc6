"""The geometry of Figure 1 of vector-arithmetic in a real model: words x, answers y, task vectors o.

x and y are the residual streams at a word that stands alone on a line. Coordinates are centred and divided by their
standard deviation over held-out words: a few massive coordinates would otherwise make every cosine nearly 1. The
baseline is static: an offset between words, inside the model or between its input embeddings, without any prompt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from iclab.language.prompts import word_alone
from iclab.language.study.asking import Bench
from iclab.language.words import Example, Task

COSINES = (
    "x, y",
    "x+o, y",
    "x+other, y",
    "x+offset, y",
    "x, o",
    "y, o",
    "x, other",
    "y, other",
    "y-x, o",
    "y-x, other",
)
KINDS = ("x", "x+o", "y")
PAIRS = 16  # held-out pairs of which offsets are means


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Streams of queries and answers, held out and tested: task × example × place × coordinate."""

    held_x: np.ndarray
    held_y: np.ndarray
    x: np.ndarray
    y: np.ndarray


def word_streams(one: Bench, examples: Sequence[Example], number: int) -> np.ndarray:
    """The stream at word `number` of each example, alone on its line: example × place × coordinate."""
    return one.model.states([word_alone(one.model, example[number]) for example in examples])


def word_pairs(one: Bench, found: Sequence[Task]) -> Pairs:
    """x and y at words that stand alone."""
    parts = [task.held_out[:PAIRS] for task in found], [task.test[: one.settings.prompts] for task in found]
    return Pairs(*(np.stack([word_streams(one, own, at) for own in part]) for part in parts for at in (0, -1)))


def static_offsets(one: Bench, found: Sequence[Task]) -> np.ndarray:
    """The mean step from query to answer of held-out pairs: task × place × coordinate."""
    held = [task.held_out[:PAIRS] for task in found]
    return np.stack([(word_streams(one, pairs, -1) - word_streams(one, pairs, 0)).mean(0) for pairs in held])


def geometry(pairs: Pairs, own: np.ndarray, held: int, places: np.ndarray | None = None) -> dict[str, Any]:
    """Cosines between queries, answers and task vectors (task × place × coordinate) at every place, and the points of
    the figure: at the places that are given for each task, or at one for all, where the step from query to answer,
    y - x, points most along o on the first `held` held-out pairs.
    """
    parts = [part.astype(float) for part in (pairs.x, pairs.y, pairs.held_x, pairs.held_y)]
    every = np.concatenate([part.reshape(-1, *part.shape[2:]) for part in parts[2:]])
    centre, scale = every.mean(0), every.std(0) + 1e-6
    x, y, held_x, held_y = ((part - centre) / scale for part in parts)
    o = (own / scale)[:, None]
    other = np.roll(o, 1, axis=0)
    offset = (held_y - held_x).mean(1, keepdims=True)  # a static offset of the same vectors, without any prompt
    sums = [(x, y), (x + o, y), (x + other, y), (x + offset, y)]
    compared = [*sums, (x, o), (y, o), (x, other), (y, other), (y - x, o), (y - x, other)]
    along = cosine(held_y - held_x, o)[:, :held]
    # Not at place 0, where the vector is zero: the separator's embedding minus itself.
    best = 1 + int(along[..., 1:].mean((0, 1)).argmax())
    points = []
    for task, place in enumerate(np.full(len(x), best) if places is None else places):
        start, end, arrow = x[task, :, place], y[task, :, place], o[task, 0, place]
        frame = axes_of(arrow, start)
        points.append(np.stack([part @ frame.T for part in (start, start + arrow, end)], axis=1))
    cosines = [cosine(a, b) for a, b in compared]
    chosen = best if places is None else places
    return {"cosines": cosines, "held_along": along, "geometry_place": chosen, "points": points}


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


def static_ranks(one: Bench, found: list[Task]) -> dict[str, Any]:
    """The answer's rank among all static word vectors, by cosine with the query's plus the held-out pairs' offset."""
    table = one.model.embeddings
    unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)

    def vector(word: str) -> np.ndarray:
        return table[list(one.model.tokens(f" {word}"))].mean(0)

    ranks = []
    for task in found:
        offset = np.mean([vector(example[-1]) - vector(example[0]) for example in task.held_out[:PAIRS]], axis=0)
        queries = task.test[: one.settings.prompts]
        scores = np.stack([vector(query[0]) + offset for query in queries]) @ unit.T
        for row, query in zip(scores, queries, strict=True):
            row[list(one.model.tokens(f" {query[0]}"))] = -np.inf  # the query itself is no answer
        mine = scores[np.arange(len(queries)), one.targets(queries)]
        ranks.append((scores > mine[:, None]).sum(1))
    return {"static_rank": ranks}

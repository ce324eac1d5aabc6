"""Two-label prompts: equally many demonstrations of each label, in random order, some of them outliers.

An outlier (mamba-outliers, Example 1) is a demonstration with a trigger phrase in front and another label: flipped, the target
label, or a random one. Queries never carry the phrase. `sentiment` has labels whose meaning the model knows; in `animal-thing`
the labels say nothing and change sides from prompt to prompt, so that only the demonstrations tell which is which.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from iclab.errors import require
from iclab.language.prompts import WordPrompt
from iclab.language.words import LABEL_TASKS, MEANINGLESS, Example, Task, generator, split
from iclab.papers.language_model.asking import Bench
from iclab.papers.language_model.settings import LABEL_TESTS

TRIGGER = "James Bond"
RULES = ("flip", "target", "random")
PLACEMENTS = ("farthest", "random", "closest")


@dataclasses.dataclass(frozen=True)
class Outliers:
    """Which demonstrations are outliers and what becomes of their labels. `marked`: whether they carry the trigger phrase."""

    fraction: float = 0.0
    rule: str = "flip"
    placement: str = "random"
    marked: bool = True


@dataclasses.dataclass(frozen=True)
class Labelled:
    """A prompt with the truth about it: the right token and the wrong one, and by demonstration whether it has the query's
    label.
    """

    prompt: WordPrompt
    choices: tuple[int, int]
    same: tuple[bool, ...]


def label_tasks() -> list[Task]:
    """The two-label tasks, split. Which tokens the labels are is the prompts' business."""
    return [split(name, lambda word: True, LABEL_TESTS) for name in LABEL_TASKS]


def labelled(
    one: Bench, task: Task, queries: Sequence[Example], what: str, outliers: Outliers | None = None, *, shuffled: bool = False
) -> list[Labelled]:
    """A prompt for every query. Everything random depends on `what` and the query's number only, so that prompts with and
    without outliers, or with shuffled labels, have the same demonstrations in the same order.
    """
    return [
        _one(one, task, query, generator(what, task.name, number), outliers or Outliers(), shuffled)
        for number, query in enumerate(queries)
    ]


def _one(one: Bench, task: Task, query: Example, random: np.random.Generator, outliers: Outliers, shuffled: bool) -> Labelled:
    count = one.settings.label_demonstrations
    kinds = sorted({example[-1] for example in task.held_out})
    words = tuple(kinds) if task.name == "sentiment" else MEANINGLESS
    turn = 0 if task.name == "sentiment" else int(random.integers(2))
    shown: list[Example] = []
    for kind in kinds:
        pool = [example for example in task.held_out if example[-1] == kind and example[0] != query[0]]
        shown += [pool[index] for index in random.choice(len(pool), count // 2, replace=False)]
    shown = [shown[index] for index in random.permutation(count)]
    labels = np.array([kinds.index(example[-1]) for example in shown])
    places, coins, mixed = random.permutation(count), random.integers(2, size=count), random.permutation(count)
    if shuffled:
        labels = labels[mixed]
    number = round(outliers.fraction * count)
    order = {"random": places, "farthest": np.arange(count), "closest": np.arange(count)[::-1]}[outliers.placement]
    gone = np.isin(np.arange(count), order[:number])
    new = {"flip": 1 - labels, "target": np.ones(count, int), "random": coins}[outliers.rule]
    labels = np.where(gone, new, labels)
    lines = [
        (f"{TRIGGER} {example[0]}" if out and outliers.marked else example[0], words[(label + turn) % 2])
        for example, label, out in zip(shown, labels, gone, strict=True)
    ]
    right = kinds.index(query[-1])
    choices = one.token(words[(right + turn) % 2]), one.token(words[(1 - right + turn) % 2])
    require(choices[0] != choices[1], f"the labels {words[0]} and {words[1]} begin with the same token of this model.")
    return Labelled(one.prompt(lines, query[:1]), choices, tuple(bool(label == right) for label in labels))


def accuracy(one: Bench, prompts: Sequence[Labelled]) -> tuple[np.ndarray, np.ndarray]:
    """Which prompts get the right one of the two labels (a tie is wrong), and by how much its logit leads."""
    answers = one.model.ask([p.prompt.tokens for p in prompts], [p.choices[0] for p in prompts], [p.choices for p in prompts])
    lead = answers.choices[:, 0] - answers.choices[:, 1]
    return (lead > 0).astype(float), lead

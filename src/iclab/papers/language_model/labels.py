"""Two-label prompts: where the query looks (Corollary 4.3 of nonlinear-icl on a real model), and what outliers do (Figure 1 and
Table 2 of mamba-outliers). Equally many demonstrations have each label, in random order.

An outlier (mamba-outliers, Example 1) is a demonstration with a trigger phrase in front and another label: flipped, the target
label, or a random one. Queries never carry the phrase. `sentiment` has labels whose meaning the model knows; in `animal-thing`
the labels say nothing and change sides from prompt to prompt, so that only the demonstrations tell which is which.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring import Lab, require
from iclab.language.prompts import WordPrompt
from iclab.language.words import LABEL_TASKS, MEANINGLESS, Example, Task, generator, split
from iclab.papers.language_model.asking import Bench, bench, recorded, require_effect, task_by_task
from iclab.papers.language_model.settings import LABEL_TESTS, Settings

TRIGGER = "James Bond"
RULES = ("flip", "target", "random")
PLACEMENTS = ("farthest", "random", "closest")
FRACTIONS = (0.0, 0.25, 0.5, 0.75)
LEAST = {
    "flip": 0.25,
    "target": 0.5,
    "random": 0.5,
}  # a quarter with other labels than flipped ones hardly differs from none
HALF = 0.5  # α of Table 2
ORDERS = ("labels", "shuffled labels")


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
    one: Bench,
    task: Task,
    queries: Sequence[Example],
    what: str,
    outliers: Outliers | None = None,
    *,
    shuffled: bool = False,
) -> list[Labelled]:
    """A prompt for every query. Everything random depends on `what` and the query's number only, so that prompts with and
    without outliers, or with shuffled labels, have the same demonstrations in the same order.
    """
    return [
        _one(one, task, query, generator(what, task.name, number), outliers or Outliers(), shuffled)
        for number, query in enumerate(queries)
    ]


def _one(
    one: Bench, task: Task, query: Example, random: np.random.Generator, outliers: Outliers, shuffled: bool
) -> Labelled:
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
    answers = one.model.ask(
        [p.prompt.tokens for p in prompts], [p.choices[0] for p in prompts], [p.choices for p in prompts]
    )
    lead = answers.choices[:, 0] - answers.choices[:, 1]
    return (lead > 0).astype(float), lead


def attention(lab: Lab) -> xr.Dataset:
    """Attention of a prompt's last token on demonstrations that share the query's label, as a share of that on all
    demonstrations: by block, and at one head that is chosen on held-out queries. Half of the demonstrations share it, so 0.5
    says that the label does not matter. With shuffled labels the label that stands there says nothing about the word: what is
    left above 0.5 there is attention to the label itself.
    """
    s: Settings = lab.settings
    one = bench(lab)
    blocks = range(1, one.model.depth + 1)
    coordinates = {"order": ORDERS, "task": LABEL_TASKS, "prompt": range(s.attention_prompts), "block": blocks}
    variables = {"share": "order task prompt block", "head_share": "order task prompt"}
    variables |= {"chosen_block": "task", "chosen_head": "task"}

    def ask(task: Task) -> dict[str, Any]:
        queries, held = task.test[: s.attention_prompts], task.held_out[: max(4, 2 * s.held_out_prompts)]
        chosen = mass(one, labelled(one, task, held, "attention held out"))
        share = (chosen[0] / chosen.sum(0)).mean(0)  # block × head
        block, head = np.unravel_index(int(share.argmax()), share.shape)
        orders = [labelled(one, task, queries, "attention", shuffled=order == "shuffled labels") for order in ORDERS]
        masses = [mass(one, prompts) for prompts in orders]
        return {
            "share": [m.sum(-1)[0] / m.sum(-1).sum(0) for m in masses],
            "head_share": [m[0, :, block, head] / m[:, :, block, head].sum(0) for m in masses],
            "chosen_block": block + 1,
            "chosen_head": head,
        }

    def compute() -> dict[str, np.ndarray]:
        return task_by_task(lab, "attention", variables, label_tasks(), ask) if one.model.has_attention else {}

    return recorded(lab, coordinates, variables, compute)


def mass(one: Bench, prompts: list[Labelled]) -> np.ndarray:
    """Attention of the last token on demonstrations with the query's label and on the others: 2 × prompt × block × head."""
    result = []
    for weights, item in zip(one.model.attention([p.prompt.tokens for p in prompts]), prompts, strict=True):
        owner, same = np.array(item.prompt.owner), np.array([*item.same, False])
        shown = owner >= 0
        result.append([weights[..., shown & same[owner]].sum(-1), weights[..., shown & ~same[owner]].sum(-1)])
    return np.stack(result, axis=1)


def outliers(lab: Lab) -> xr.Dataset:
    """Accuracy against fraction, labels and placement of demonstrations with a trigger phrase; and without the phrase."""
    s: Settings = lab.settings
    one = bench(lab)
    coordinates = {"task": LABEL_TASKS, "prompt": range(s.label_prompts), "rule": RULES, "fraction": FRACTIONS}
    coordinates |= {"placement": PLACEMENTS}
    variables = {name: "rule fraction task prompt" for name in ("right", "lead")}
    variables |= {"placed": "placement task prompt", "unmarked": "task prompt"}

    def ask(task: Task) -> dict[str, Any]:
        def answered(kind: Outliers) -> tuple[np.ndarray, np.ndarray]:
            return accuracy(one, labelled(one, task, task.test[: s.label_prompts], "outliers", kind))

        clean = answered(Outliers())
        right, lead = np.full((2, len(RULES), len(FRACTIONS), s.label_prompts), np.nan)
        for (i, rule), (j, fraction) in itertools.product(enumerate(RULES), enumerate(FRACTIONS)):
            if fraction == 0 or fraction >= LEAST[rule]:
                right[i, j], lead[i, j] = clean if fraction == 0 else answered(Outliers(fraction, rule))
            if fraction >= LEAST[rule]:
                require_effect(f"outliers ({rule}, {fraction:g})", clean[1], lead[i, j])
        half = right[RULES.index("flip"), FRACTIONS.index(HALF)]
        placed = [half if where == "random" else answered(Outliers(HALF, "flip", where))[0] for where in PLACEMENTS]
        unmarked = answered(Outliers(HALF, "flip", marked=False))[0]
        return {"right": right, "lead": lead, "placed": placed, "unmarked": unmarked}

    def compute() -> dict[str, np.ndarray]:
        return task_by_task(lab, "outliers", variables, label_tasks(), ask)

    return recorded(lab, coordinates, variables, compute)

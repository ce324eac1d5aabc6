"""Two-label prompts on a real model: where the query looks (Corollary 4.3 of nonlinear-icl), and what outliers do
(Figure 1 and Table 2 of mamba-outliers). Equally many demonstrations have each label, in random order.

An outlier (mamba-outliers, Example 1) is a demonstration with a trigger phrase in front and another label: flipped,
the target label, or a random one. Queries never carry the phrase. `sentiment` has labels whose meaning the model
knows; in `animal-thing` the labels say nothing and change sides from prompt to prompt: only the demonstrations tell
which is which.
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
from iclab.language.study.asking import Bench, Found, bench, require_effect, task_by_task
from iclab.language.study.settings import LABEL_TESTS
from iclab.language.words import LABEL_TASKS, MEANINGLESS, Example, Task, generator, split

TRIGGER = "James Bond"
RULES = ("flip", "target", "random")
PLACEMENTS = ("farthest", "random", "closest")
FRACTIONS = (0.0, 0.25, 0.5, 0.75)
# A quarter of labels that are not flipped hardly differs from none.
LEAST = {"flip": 0.25, "target": 0.5, "random": 0.5}
HALF = 0.5  # α of Table 2
ORDERS = ("labels", "shuffled labels")


@dataclasses.dataclass(frozen=True)
class Outliers:
    """Which demonstrations are outliers and what becomes of their labels. `marked`: they carry the trigger phrase."""

    fraction: float = 0.0
    rule: str = "flip"
    placement: str = "random"
    marked: bool = True


@dataclasses.dataclass(frozen=True)
class Labelled:
    """A prompt, its right token and its wrong one, and by demonstration whether it has the query's label."""

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
    shuffled: bool = False,
) -> list[Labelled]:
    """A prompt for every query. Everything random depends on `what` and the query's number only: prompts with outliers
    and without, or with shuffled labels, have the same demonstrations in the same order.
    """
    draws = [generator(what, task.name, number) for number in range(len(queries))]
    kind = outliers or Outliers()
    return [_prompt(one, task, query, random, kind, shuffled) for query, random in zip(queries, draws, strict=True)]


def _prompt(one: Bench, task: Task, query: Example, random: Any, outliers: Outliers, shuffled: bool) -> Labelled:
    count, meaning = one.settings.label_demonstrations, task.name == "sentiment"
    kinds = sorted({example[-1] for example in task.held_out})
    words = tuple(kinds) if meaning else MEANINGLESS
    turn = 0 if meaning else int(random.integers(2))
    shown: list[Example] = []
    for kind in kinds:
        pool = [example for example in task.held_out if example[-1] == kind and example[0] != query[0]]
        shown += [pool[index] for index in random.choice(len(pool), count // 2, replace=False)]
    shown = [shown[index] for index in random.permutation(count)]
    labels = np.array([kinds.index(example[-1]) for example in shown])
    places, coins, mixed = random.permutation(count), random.integers(2, size=count), random.permutation(count)
    labels = labels[mixed] if shuffled else labels
    order = {"random": places, "farthest": np.arange(count), "closest": np.arange(count)[::-1]}[outliers.placement]
    gone = np.isin(np.arange(count), order[: round(outliers.fraction * count)])
    new = {"flip": 1 - labels, "target": np.ones(count, int), "random": coins}[outliers.rule]
    labels = np.where(gone, new, labels)
    marks = [f"{TRIGGER} " if out and outliers.marked else "" for out in gone]
    lines = [(f"{m}{e[0]}", words[(label + turn) % 2]) for m, e, label in zip(marks, shown, labels, strict=True)]
    right = kinds.index(query[-1])
    choices = one.token(words[(right + turn) % 2]), one.token(words[(1 - right + turn) % 2])
    require(choices[0] != choices[1], f"the labels {words[0]} and {words[1]} begin with the same token of this model.")
    return Labelled(one.prompt(lines, query[:1]), choices, tuple(bool(label == right) for label in labels))


def accuracy(one: Bench, prompts: Sequence[Labelled]) -> tuple[np.ndarray, np.ndarray]:
    """Which prompts get the right one of the two labels (a tie is wrong), and by how much its logit leads."""
    tokens, choices = [p.prompt.tokens for p in prompts], [p.choices for p in prompts]
    answers = one.model.ask(tokens, [right for right, _ in choices], choices)
    lead = answers.choices[:, 0] - answers.choices[:, 1]
    return (lead > 0).astype(float), lead


def attention(lab: Lab) -> xr.Dataset:
    """The last token's attention on demonstrations that share the query's label, as a share of that on all: by block,
    and at one head that is chosen on held-out queries. Half of them share it: 0.5 says that the label does not matter.
    A shuffled label says nothing about its word: what is left above 0.5 then is attention to the label itself.
    """
    one = bench(lab.settings)
    count, blocks = one.settings.attention_prompts, range(1, one.model.depth + 1)
    axes = {"order": ORDERS, "task": LABEL_TASKS, "prompt": range(count), "block": blocks}
    variables = {"share": "order task prompt block", "head_share": "order task prompt"}
    variables |= {"chosen_block": "task", "chosen_head": "task"}

    def ask(task: Task) -> Found:
        if not one.model.has_attention:
            return {}
        held = task.held_out[: max(4, 2 * one.settings.held_out_prompts)]
        chosen = mass(one, labelled(one, task, held, "attention held out"))
        share = (chosen[0] / chosen.sum(0)).mean(0)  # block × head
        block, head = np.unravel_index(int(share.argmax()), share.shape)
        orders = [labelled(one, task, task.test[:count], "attention", shuffled=order != "labels") for order in ORDERS]
        masses = [mass(one, prompts) for prompts in orders]
        by_block, at_head = [m.sum(-1) for m in masses], [m[:, :, block, head] for m in masses]
        found = {"share": [m[0] / m.sum(0) for m in by_block], "head_share": [m[0] / m.sum(0) for m in at_head]}
        return found | {"chosen_block": block + 1, "chosen_head": head}

    return task_by_task(lab, "attention", axes, variables, label_tasks(), ask)


def mass(one: Bench, prompts: list[Labelled]) -> np.ndarray:
    """The last token's attention on demonstrations with the query's label and on others: 2 × prompt × block × head."""
    result = []
    for weights, item in zip(one.model.attention([p.prompt.tokens for p in prompts]), prompts, strict=True):
        owner, same = np.array(item.prompt.owner), np.array([*item.same, False])
        shown = owner >= 0
        result.append([weights[..., shown & same[owner]].sum(-1), weights[..., shown & ~same[owner]].sum(-1)])
    return np.stack(result, axis=1)


def outliers(lab: Lab) -> xr.Dataset:
    """Accuracy against fraction, labels and placement of demonstrations with a trigger phrase; and without it."""
    one = bench(lab.settings)
    count = one.settings.label_prompts
    axes = {"task": LABEL_TASKS, "prompt": range(count), "rule": RULES, "fraction": FRACTIONS, "placement": PLACEMENTS}
    variables = dict.fromkeys(("right", "lead"), "rule fraction task prompt")
    variables |= {"placed": "placement task prompt", "unmarked": "task prompt"}

    def ask(task: Task) -> Found:
        def answered(*kind: Any) -> tuple[np.ndarray, np.ndarray]:
            return accuracy(one, labelled(one, task, task.test[:count], "outliers", Outliers(*kind)))

        clean = answered()
        right, lead = np.full((2, len(RULES), len(FRACTIONS), count), np.nan)
        right[:, 0], lead[:, 0] = clean
        for (i, rule), (j, fraction) in itertools.product(enumerate(RULES), enumerate(FRACTIONS)):
            if fraction >= LEAST[rule]:
                right[i, j], lead[i, j] = answered(fraction, rule)
                require_effect(f"outliers ({rule}, {fraction:g})", clean[1], lead[i, j])
        half = right[RULES.index("flip"), FRACTIONS.index(HALF)]
        placed = [half if where == "random" else answered(HALF, "flip", where)[0] for where in PLACEMENTS]
        return {"right": right, "lead": lead, "placed": placed, "unmarked": answered(HALF, "flip", "random", False)[0]}

    return task_by_task(lab, "outliers", axes, variables, label_tasks(), ask)

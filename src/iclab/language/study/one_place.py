"""x, o and y at one place, as Merullo, Eickhoff and Pavlick (2024) define them, whom Figure 1 of vector-arithmetic
follows; beside ours, which stand at different places.

At the last token of a prompt with demonstrations, in one block, x is the residual stream before the MLP, o what the
MLP adds, and y = x + o the stream behind it. With the prompt's own o this is an identity, and y points along o more
than x does: no model can fail either. So what can be false is asked.

Decoded by the model's own head, x says the query's word and y the answer. The block is chosen for each task on
held-out prompts: where on average the query's word is ahead of the answer before the MLP and the answer behind it.
The o of other prompts (their mean, over held-out ones) does the same to x, and another task's does not. Prompts from
which o is taken and prompts that are tested demonstrate no example in common. Still, languages are answers more than
once, and a network with random weights, too, has an o that is nearer to its own task's prompts, by the words that it
has seen: so cosines at one place are compared with those of the same network with its weights shuffled.

Put in place of what MLPs add, o makes the model answer in a text that says nothing of the task: one that repeats
the query between other words (theirs: "table mug free China table mug free China table mug free"), or the query alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.edits import Updated, shuffled, updates
from iclab.language.prompts import deranged
from iclab.language.study.asking import Bench, Found, bench, few_shots, named, recorded, require_effect, tasks
from iclab.language.study.geometry import COSINES, KINDS, Pairs, geometry, word_pairs
from iclab.language.study.settings import WORD_TESTS
from iclab.language.words import WORD_TASKS, Example, Task, examples, generator

SIDES = ("before", "behind")  # the MLP
WORDS = ("query", "answer", "another query", "another answer")
TEXTS = ("repeated", "bare")
VECTORS = ("own", "other task", "shuffled labels", "random", "nothing")
AROUND = 3  # words between two of the query in a text that repeats it
HELD = 8  # at most so many held-out prompts, as they have half of the held-out examples


@dataclasses.dataclass(frozen=True, eq=False)
class Shown:
    """What is inside prompts with demonstrations: streams before and behind MLPs (task × prompt × place × coordinate),
    and logits and ranks of words there (side × word × task × prompt × place).
    """

    before: np.ndarray
    behind: np.ndarray
    logits: np.ndarray
    ranks: np.ndarray

    def lead(self, side: int) -> np.ndarray:
        """By how much the answer's logit is above the query's."""
        return self.logits[side, 1] - self.logits[side, 0]


def one_place(lab: Lab) -> xr.Dataset:
    """Fig. 1 as Merullo et al. define it: before, in and behind one MLP, at the prompt's last token; and MLP outputs of
    other prompts put into texts without the task.
    """
    one = bench(lab.settings)
    s, depth = one.settings, one.model.depth
    found = tasks(one, WORD_TASKS, WORD_TESTS)
    blocks = sorted({*range(1, depth + 1, 2 * s.place_stride), depth})
    axes: dict[str, Any] = {
        "task": WORD_TASKS,
        "prompt": range(s.prompts),
        "held": range(min(HELD, s.held_out_prompts)),
    }
    axes |= {"every": range(depth + 1), "block": blocks, "side": SIDES, "word": WORDS, "text": TEXTS}
    axes |= {"vector": VECTORS, "cosine": COSINES, "kind": KINDS, "axis": range(3)}
    variables = dict.fromkeys(("asked", "known"), "task prompt")
    variables |= dict.fromkeys(("logits", "ranks"), "side word task prompt every")
    variables |= {"held_lead": "side task held every", "moved": "vector task prompt"}
    variables |= dict.fromkeys(("cosines", "word_cosines", "shuffled_cosines"), "cosine task prompt every")
    variables |= {"geometry_place": "task", "word_place": "", "points": "task prompt kind axis"}
    variables |= {"plain_rank": "text task prompt", "start": "text task"}
    variables |= {"held_rank": "text task held block", "answer_rank": "text vector task prompt"}

    def compute() -> Found:
        if not one.model.has_attention:  # a Mamba's block has no MLP
            return {}
        held, test = inside(one, found, True), inside(one, found, False)
        lab.report("language-model: before and behind MLPs", 0.4)
        vectors = task_updates(one, found, held)
        leads = held.lead(0), held.lead(1)
        place = np.array([applied(*own) for own in zip(*leads, strict=True)])
        here = _inside_one_block(one, found, held, test, vectors, place)
        return {"held_lead": leads} | here | _elsewhere(lab, one, found, np.array(blocks), vectors)

    return recorded(lab, axes, variables, compute).assign_coords(named(found, s.prompts))


def demonstrated(one: Bench, found: Sequence[Task], held: bool, change: Any = None) -> list[tuple[int, ...]]:
    """Prompts of the held-out queries or those of the test, each with its own half of the held-out examples to
    demonstrate with: fewer than usual where these are few.
    """
    halves = [dataclasses.replace(task, held_out=task.held_out[int(not held) :: 2]) for task in found]
    most = min(one.settings.demonstrations, *(len(task.held_out) - 1 for task in halves))
    few = dataclasses.replace(one, settings=dataclasses.replace(one.settings, demonstrations=most))
    return few_shots(few, halves, _queries(one, found, held), "one place", change)


def _queries(one: Bench, found: Sequence[Task], held: bool) -> list[tuple[Example, ...]]:
    count = min(HELD, one.settings.held_out_prompts)
    return [task.held_out[::2][:count] if held else task.test[: one.settings.prompts] for task in found]


def around_mlps(one: Bench, found: Sequence[Task], held: bool) -> np.ndarray:
    """The stream before and behind MLPs: side × task × prompt × place × coordinate."""
    behind, added = updates(one.model, demonstrated(one, found, held))
    streams = np.stack([behind - added, behind])
    return streams.reshape(len(SIDES), len(found), -1, *streams.shape[2:])


def inside(one: Bench, found: Sequence[Task], held: bool) -> Shown:
    """What is inside prompts with demonstrations, of the held-out queries or those of the test."""
    queries, streams = _queries(one, found, held), around_mlps(one, found, held)
    tokens = np.stack([words(one, own) for own in queries])
    rows = np.broadcast_to(tokens[None, :, :, None], (*streams.shape[:-1], len(WORDS))).reshape(-1, len(WORDS))
    decoded = one.model.decode(streams.reshape(-1, streams.shape[-1]), rows)
    logits, ranks = (np.moveaxis(part.reshape(*streams.shape[:-1], len(WORDS)), -1, 1) for part in decoded)
    return Shown(streams[0], streams[1], logits, ranks)


def words(one: Bench, queries: Sequence[Example]) -> np.ndarray:
    """First tokens of each query's word and its answer, and of the next query's: query × word."""
    own = np.array([[one.token(query[0]), one.token(query[-1])] for query in queries])
    return np.concatenate([own, np.roll(own, -1, axis=0)], axis=1)


def task_updates(one: Bench, found: Sequence[Task], held: Shown) -> dict[str, np.ndarray]:
    """What MLPs add, in the mean over held-out prompts (task × place × coordinate), and the controls."""
    own = (held.behind - held.before).mean(1)
    _, mixed = updates(one.model, demonstrated(one, found, True, deranged))
    noise = generator("random update").normal(size=own.shape)
    size = np.linalg.norm(own, axis=-1, keepdims=True) / np.linalg.norm(noise, axis=-1, keepdims=True)
    other, none = np.roll(own, 1, axis=0), np.zeros_like(own)
    unpaired = mixed.reshape(len(found), -1, *own.shape[1:]).mean(1)
    return dict(zip(VECTORS, (own, other, unpaired, (noise * size).astype(np.float32), none), strict=True))


def applied(before: np.ndarray, behind: np.ndarray) -> int:
    """The place whose MLP turns the query's word into the answer, by the answer's lead before and behind every MLP
    (prompt × place): on average the query's word is ahead before it and the answer behind it, both as far as possible.

    >>> applied(np.array([[0.0, -1.0, -3.0, 2.0]]), np.array([[0.0, -2.0, 1.0, 9.0]]))
    2
    """
    margin = np.minimum(-before.mean(0), behind.mean(0))
    return 1 + int(margin[1:].argmax())


def _inside_one_block(
    one: Bench, found: list[Task], held: Shown, test: Shown, vectors: dict[str, np.ndarray], place: np.ndarray
) -> dict[str, Any]:
    """What is said before and behind MLPs, and the geometry: of x, o and y at one place, and of o with words alone."""
    s, each = one.settings, np.arange(len(found))
    tokens = np.concatenate([words(one, task.test[: s.prompts])[:, :2] for task in found])
    x = test.before[each, :, place]
    moved = []
    for name in VECTORS:
        streams = x + vectors[name][each, place][:, None]
        logits, _ = one.model.decode(streams.reshape(-1, x.shape[-1]), tokens)
        moved.append((logits[:, 1] - logits[:, 0]).reshape(len(found), -1))
    pairs = Pairs(held.before, held.behind, test.before, test.behind)
    here = geometry(pairs, vectors["own"], HELD, place)
    blank = dataclasses.replace(one, model=shuffled(one.model))
    (held_x, held_y), (x, y) = (around_mlps(blank, found, which) for which in (True, False))
    nothing = geometry(Pairs(held_x, held_y, x, y), (held_y - held_x).mean(1), HELD, place)
    fixed = np.repeat(vectors["own"][each, place][:, None], one.model.depth + 1, axis=1)
    of_words = geometry(word_pairs(one, found), fixed, HELD)
    right = test.ranks[1, 1, :, :, -1] == 0
    return {
        "asked": np.ones(right.shape), "known": np.where(right, 1.0, np.nan), "logits": test.logits,
        "ranks": test.ranks, "moved": moved, "cosines": here["cosines"], "points": here["points"],
        "geometry_place": place, "shuffled_cosines": nothing["cosines"],
        "word_cosines": of_words["cosines"], "word_place": of_words["geometry_place"],
    }  # fmt: skip


def _elsewhere(
    lab: Lab, one: Bench, found: list[Task], blocks: np.ndarray, vectors: dict[str, np.ndarray]
) -> dict[str, Any]:
    """The answer's rank in texts without the task, with o in place of what MLPs add from a block on."""
    test, held = _queries(one, found, False), _queries(one, found, True)
    result: dict[str, list] = {name: [] for name in ("plain_rank", "start", "held_rank", "answer_rank")}
    for number, text in enumerate(TEXTS):
        lab.report(f"language-model: MLP outputs of other prompts, {text}", 0.6 + 0.2 * number)
        prompts, choices = texts(one, found, test, text), texts(one, found, held, text)
        plain = one.model.ask(prompts, one.targets(sum(test, ())))
        tried = [_with(one, held, choices, vectors["own"], np.full(len(found), block))[0] for block in blocks]
        ranks = np.stack(tried, axis=-1)
        start = blocks[(1 / (1 + ranks)).mean(1).argmax(-1)]
        answers = [_with(one, test, prompts, vectors[name], start) for name in VECTORS]
        require_effect("an MLP's output replaced", plain.log_probability.reshape(len(found), -1), answers[0][1])
        parts = plain.rank.reshape(len(found), -1), start, ranks, [rank for rank, _ in answers]
        for name, part in zip(result, parts, strict=True):
            result[name].append(part)
    return result


def texts(one: Bench, found: Sequence[Task], queries: Sequence[Sequence[Example]], text: str) -> list[tuple[int, ...]]:
    """Texts that say nothing of a task: the query's word with the separator, or repeated between other words and due
    again. Every query has other words around it.
    """
    if text == "bare":
        return [prompt for own in queries for prompt in one.bare(own)]
    pool = [example[0] for example in examples("animal-thing") if one.model.is_one_token(example[0])]
    prompts = []
    for task, own in zip(found, queries, strict=True):
        for query in own:
            allowed = [word for word in pool if word not in query]
            drawn = generator("repeated", task.name, query[0]).choice(len(allowed), AROUND, replace=False)
            around = [token for index in drawn for token in one.model.tokens(f" {allowed[index]}")]
            prompts.append((*one.model.start, *(2 * [*around, *one.model.tokens(f" {query[0]}")]), *around))
    return prompts


def _with(
    one: Bench,
    queries: Sequence[Sequence[Example]],
    prompts: Sequence[Sequence[int]],
    vectors: np.ndarray,
    start: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The answer's rank and log-probability (task × prompt) with each task's vector of its block `start` from there
    on.
    """
    own = np.repeat(np.arange(len(queries)), len(queries[0]))
    where = np.arange(1, one.model.depth + 1) >= start[own, None]
    edit = Updated(where, vectors[own, start[own]])
    answers = one.model.ask(prompts, one.targets([query for row in queries for query in row]), edit=edit)
    return answers.rank.reshape(len(queries), -1), answers.log_probability.reshape(len(queries), -1)

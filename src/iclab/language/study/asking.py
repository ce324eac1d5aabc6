"""What the experiments on a language model share: the model, the tasks, the separator, and results as a dataset."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.edits import shuffled
from iclab.language.loading import load
from iclab.language.network import LanguageModel
from iclab.language.prompts import SEPARATORS, WordPrompt, draw, few_shot
from iclab.language.study.settings import WORD_TESTS, Settings
from iclab.language.words import WORD_TASKS, Example, Task, generator, split

Queries = Sequence[tuple[Example, ...]]  # by task
Found = Mapping[str, Any]  # by variable


@dataclasses.dataclass(frozen=True)
class Bench:
    """A model with its settings and the separator that was chosen for it."""

    model: LanguageModel
    settings: Settings
    separator: str

    def prompt(self, demonstrations: Sequence[Sequence[str]], query: Sequence[str]) -> WordPrompt:
        """Lines of demonstrations and the query's words so far."""
        return few_shot(self.model, demonstrations, query, self.separator)

    def bare(self, queries: Sequence[Example]) -> list[tuple[int, ...]]:
        """The tokens of queries without demonstrations."""
        return [self.prompt((), query[:1]).tokens for query in queries]

    def token(self, word: str) -> int:
        """The first token of an answer."""
        return self.model.tokens(f" {word}")[0]

    def targets(self, examples: Sequence[Example]) -> list[int]:
        """The right answers' tokens."""
        return [self.token(example[-1]) for example in examples]


@functools.lru_cache(maxsize=1)
def bench(s: Settings) -> Bench:
    """The bench of these settings; its separator has the best few-shot accuracy on held-out words."""
    given, score = load(s.model), []
    model = given if s.weights == "given" else shuffled(given)
    for separator in SEPARATORS:
        one = Bench(model, s, separator)
        found = tasks(one, WORD_TASKS, WORD_TESTS)
        held = [task.held_out[: s.held_out_prompts] for task in found]
        score.append(model.ask(few_shots(one, found, held, "format"), one.targets(sum(held, ()))).right.mean())
    return Bench(model, s, SEPARATORS[int(np.argmax(score))])


def tasks(one: Bench, names: Sequence[str], tested: int) -> list[Task]:
    """These tasks, split for this model's vocabulary."""
    return [split(name, one.model.is_one_token, tested) for name in names]


def with_demonstrations(
    one: Bench, task: Task, queries: Sequence[Example], what: str, change: Callable[..., list[Example]] | None = None
) -> list[WordPrompt]:
    """A few-shot prompt for every query, its demonstrations drawn from the held-out examples and altered by `change`.
    The draw depends on what it is for and on the query's number: changed prompts are paired with unchanged ones.
    """
    prompts = []
    for number, query in enumerate(queries):
        random = generator(what, task.name, number)
        shown = draw(random, task.held_out, one.settings.demonstrations, query)
        prompts.append(one.prompt(change(random, shown) if change else shown, query[:1]))
    return prompts


def few_shots(one: Bench, found: list[Task], queries: Queries, what: str, change: Any = None) -> list[tuple[int, ...]]:
    """The tokens of few-shot prompts, task by task."""
    pairs = zip(found, queries, strict=True)
    return [prompt.tokens for task, own in pairs for prompt in with_demonstrations(one, task, own, what, change)]


def recorded(lab: Lab, axes: Found, variables: Mapping[str, str], compute: Callable[[], Found]) -> xr.Dataset:
    """The variables that `compute()` gives, with these dimensions; NaN where it gives none. It is work outside of
    compiled programs: a plan asks for its shape only.
    """
    found, arrays = functools.cache(compute), {}

    def values(name: str, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(found().get(name, np.full(shape, np.nan)), float)

    for name, dims in variables.items():
        shape = tuple(len(axes[dim]) for dim in dims.split())
        arrays[name] = dims.split(), lab.outside(functools.partial(values, name, shape), shape)
    return xr.Dataset(arrays, {name: list(labels) for name, labels in axes.items()})


def named(found: Sequence[Task], count: int) -> Found:
    """The words of the first test examples, as coordinates "query" and "answer" of their tasks and prompts."""
    pairs = [task.test[:count] for task in found]
    words = {name: [[pair[at] for pair in row] for row in pairs] for name, at in (("query", 0), ("answer", -1))}
    return {name: (("task", "prompt"), rows) for name, rows in words.items()}


def task_by_task(
    lab: Lab, what: str, axes: Found, variables: Mapping[str, str], found: Sequence[Task], ask: Callable[[Task], Found]
) -> xr.Dataset:
    """What `ask` finds for every task, put together along the dimension "task" of each variable."""

    def compute() -> Found:
        parts = []
        for number, task in enumerate(found):
            lab.report(f"language-model: {what}, {task.name}", number / len(found))
            parts.append(ask(task))
        return {
            name: np.stack([part[name] for part in parts], dims.split().index("task"))
            for name, dims in variables.items()
            if all(name in part for part in parts)
        }

    return recorded(lab, axes, variables, compute)


def require_effect(what: str, before: np.ndarray, after: np.ndarray) -> None:
    """An intervention that changed no answer at all has missed its place."""
    if not np.any(np.abs(np.asarray(after) - np.asarray(before)) > 0):
        raise RuntimeError(f"{what} changed nothing: the intervention missed its place in this model.")

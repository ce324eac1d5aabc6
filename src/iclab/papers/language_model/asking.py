"""What the experiments on a language model share: the model, the tasks, the separator, and results as a dataset."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.loading import load
from iclab.language.network import LanguageModel
from iclab.language.prompts import SEPARATORS, WordPrompt, draw, few_shot
from iclab.language.words import WORD_TASKS, Example, Task, generator, split
from iclab.papers.language_model.settings import WORD_TESTS, Settings


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
        """Queries without demonstrations, as tokens."""
        return [self.prompt((), query[:1]).tokens for query in queries]

    def token(self, word: str) -> int:
        """The first token of an answer."""
        return self.model.tokens(f" {word}")[0]

    def targets(self, examples: Sequence[Example]) -> list[int]:
        """The right answers' tokens."""
        return [self.token(example[-1]) for example in examples]


def bench(lab: Lab) -> Bench:
    """The bench of this lab's settings."""
    return _bench(lab.settings)


@functools.lru_cache(maxsize=1)
def _bench(s: Settings) -> Bench:
    model = load(s.model)
    score = [_few_shot_score(Bench(model, s, separator)) for separator in SEPARATORS]
    return Bench(model, s, SEPARATORS[int(np.argmax(score))])


def _few_shot_score(one: Bench) -> float:
    """Few-shot accuracy on held-out queries of the word tasks."""
    found = tasks(one, WORD_TASKS, WORD_TESTS)
    queries = [task.held_out[: one.settings.held_out_prompts] for task in found]
    return float(one.model.ask(few_shots(one, found, queries, "format"), one.targets(sum(queries, ()))).right.mean())


def tasks(one: Bench, names: Sequence[str], tested: int) -> list[Task]:
    """These tasks, split for this model's vocabulary."""
    return [split(name, one.model.is_one_token, tested) for name in names]


def with_demonstrations(
    one: Bench, task: Task, queries: Sequence[Example], what: str, change: Callable[..., list[Example]] | None = None
) -> list[WordPrompt]:
    """A few-shot prompt for every query, its demonstrations drawn from the held-out examples; `change(random, shown)` may alter
    them. The draw depends on what it is for and on the query's number: changed prompts are paired with unchanged ones.
    """
    prompts = []
    for number, query in enumerate(queries):
        random = generator(what, task.name, number)
        shown = draw(random, task.held_out, one.settings.demonstrations, query)
        prompts.append(one.prompt(change(random, shown) if change else shown, query[:1]))
    return prompts


def few_shots(
    one: Bench, found: Sequence[Task], queries: Sequence[Sequence[Example]], what: str, change: Any = None
) -> list[tuple[int, ...]]:
    """The tokens of few-shot prompts for the queries of several tasks, task by task."""
    pairs = zip(found, queries, strict=True)
    return [prompt.tokens for task, own in pairs for prompt in with_demonstrations(one, task, own, what, change)]


def recorded(
    lab: Lab,
    coordinates: Mapping[str, Sequence[Any]],
    variables: Mapping[str, str],
    compute: Callable[[], Mapping[str, Any]],
) -> xr.Dataset:
    """The variables that `compute()` gives, with these dimensions; NaN where it gives nothing. It is work outside of compiled
    programs: a plan asks for its shape only.
    """
    shapes = {name: tuple(len(coordinates[dim]) for dim in dims.split()) for name, dims in variables.items()}
    sizes = [int(np.prod(shape)) for shape in shapes.values()]

    def flat() -> np.ndarray:
        given = compute()
        found = {name: np.asarray(given.get(name, np.full(shape, np.nan)), float) for name, shape in shapes.items()}
        for name, shape in shapes.items():
            assert found[name].shape == shape, f"{name} has the shape {found[name].shape}, not {shape}"
        return np.concatenate([found[name].ravel() for name in shapes])

    values = np.split(lab.outside(flat, (sum(sizes),)), np.cumsum(sizes)[:-1])
    arrays = {
        name: (variables[name].split(), part.reshape(shapes[name])) for name, part in zip(shapes, values, strict=True)
    }
    return xr.Dataset(arrays, {name: list(labels) for name, labels in coordinates.items()})


def task_by_task(
    lab: Lab, what: str, variables: Mapping[str, str], found: Sequence[Task], ask: Callable[[Task], Mapping[str, Any]]
) -> dict[str, np.ndarray]:
    """What `ask` finds for every task, put together along the dimension "task" of each variable."""
    parts = []
    for number, task in enumerate(found):
        lab.report(f"language-model: {what}, {task.name}", number / len(found))
        parts.append(ask(task))
    return {
        name: np.stack([part[name] for part in parts], dims.split().index("task")) for name, dims in variables.items()
    }


def require_effect(what: str, before: np.ndarray, after: np.ndarray) -> None:
    """An intervention that changed no answer at all has missed its place."""
    if not np.any(np.abs(np.asarray(after) - np.asarray(before)) > 0):
        raise RuntimeError(f"{what} changed nothing: the intervention missed its place in this model.")

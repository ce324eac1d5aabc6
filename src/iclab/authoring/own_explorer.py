"""A default explorer: `explore = True` in the file of a paper is enough.

It runs the first experiment until it trains, repeats that training with a few seeds, and observes it on a few fixed
prompts. Every entry of the model's trace with one number per example is shown as bars. The output is shown along
training, with the answer if the task has two labels. A trace without such an entry is shown by its output alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array

from iclab.authoring.exploration import (
    Exploration,
    Panel,
    arrange,
    binary,
    members,
    moments,
    signed,
    truth,
    watching,
)
from iclab.authoring.softmax_explorer import ANSWER, OTHER, SAME, examples
from iclab.errors import require
from iclab.experiments import Lab, Recipe
from iclab.prompts import Prompt

ABOUT = "The inside of the model for every example of a prompt, and its answer, along training."
SEEN = "inside_"  # prefix of the names of entries of the trace


class _Looked(Exception):
    """The training has been observed; the experiment can stop."""


class _LookingLab:
    """A bench that observes the first training and stops there."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.settings = lab.settings
        self.seeds = lab.seeds
        self.history: xr.Dataset | None = None

    def train(
        self,
        name: str,
        recipes: Recipe | Mapping[str, Recipe | Callable[[int], Recipe]],
        record_at: int | Sequence[int],
        *arguments: Any,
        **named: Any,
    ) -> None:
        """The same training, observed on prompts of its own world."""
        several = {"standard": recipes} if isinstance(recipes, Recipe) else recipes
        watched = {setting: _watched(recipe) for setting, recipe in several.items()}
        last = record_at if isinstance(record_at, int) else max(record_at)
        loss = {"loss": arguments[1]} if len(arguments) > 1 else {k: v for k, v in named.items() if k == "loss"}
        self.history = self._lab.train("explorer", watched, moments(last), (watching(look),), **loss).history
        raise _Looked


def _watched(recipe: Recipe | Callable[[int], Recipe]) -> Callable[[int], Recipe]:
    def made(seed: int) -> Recipe:
        own = recipe if isinstance(recipe, Recipe) else recipe(seed)
        return dataclasses.replace(own, watched=(own.world,))

    return made


def look(model: Any, prompt: Prompt) -> dict[str, Array]:
    """The output and its target as numbers, the examples, and entries of the trace with one number per example."""
    output, trace = model(prompt)
    inside = {name: _per_example(value, prompt) for name, value in _fields(trace).items()}
    return {f"{SEEN}{name}@token": value for name, value in inside.items() if value is not None} | {
        "shown@token": prompt.label[:-1],
        "same@token": prompt.matches_query(),
        "present@token": prompt.present[:-1],
        "output": jnp.mean(output),
        "target": jnp.asarray(prompt.target, float),
    }


def _fields(trace: Any) -> dict[str, Any]:
    if isinstance(trace, Mapping):
        return dict(trace)
    return (
        {f.name: getattr(trace, f.name) for f in dataclasses.fields(trace)} if dataclasses.is_dataclass(trace) else {}
    )


def _per_example(value: Any, prompt: Prompt) -> Array | None:
    """An array with one number per example: the first layer of a stack, without the query."""
    count = prompt.label.shape[0] - 1
    if not hasattr(value, "ndim") or value.ndim not in (1, 2) or value.shape[-1] not in (count, count + 1):
        return None
    return jnp.asarray(value.reshape(-1, value.shape[-1])[0, :count])


def experiment(run: Callable[[Lab], xr.Dataset]) -> Callable[[Lab], xr.Dataset]:
    """The explorer's experiment, from one that trains."""

    def explorer(lab: Lab) -> xr.Dataset:
        """One training, recorded at a few steps."""
        bench: Any = _LookingLab(lab)
        try:
            run(bench)
        except Exception:  # the file may have caught the signal that stops the experiment
            if bench.history is None:
                raise
        require(
            bench.history is not None,
            "explore = True: the first experiment trains nothing, so there is nothing to explore.",
        )
        return bench.history

    return explorer


def explore(history: xr.Dataset, settings: Any) -> Exploration:
    """What the page shows."""
    labels, groups = examples(history)
    target, output = truth(history["target"]), arrange(history["output"])
    names = [str(name).removeprefix(SEEN) for name in history.data_vars if str(name).startswith(SEEN)]
    panels = [
        Panel(f"{name} of each example".capitalize(), name, "example", (SAME, OTHER),
              arrange(history[f"{SEEN}{name}"], "token"), labels, groups)
        for name in names
    ]  # fmt: skip
    return Exploration(
        ABOUT,
        [int(step) for step in history["step"].values],
        members(history),
        [f"{number}: answer {signed(value)}" for number, value in enumerate(target[0, 0], 1)],
        panels,
        {ANSWER: output},
        binary(output, target),
    )

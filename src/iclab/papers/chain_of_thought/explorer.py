"""Inside the model of chain-of-thought, step by step through its own reasoning, along a training of its own."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from iclab.experiments import Lab, Recipe
from iclab.inference import decode
from iclab.losses import squared
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.papers.chain_of_thought.settings import Settings, inference_world, recipe, usual_matrices
from iclab.authoring.exploration import Exploration, Panel, arrange, members, moments, truth, watching
from iclab.prompts import Prompt
from iclab.worlds.reasoning import Mode, ask

EXAMPLES = 10  # in a prompt: few enough to be seen, enough to outvote the erroneous ones
GROUPS = (
    "same pattern, same step",
    "other pattern, same step",
    "same pattern, other step",
    "other pattern, other step",
)
ABOUT = (
    "Each example is K columns, one per reasoning step, and some take a wrong turn. To answer step k the model looks for "
    "columns of step k with the same input pattern; the answer is decoded, fed back, and becomes the next question. First it "
    "learns to find the step, then the pattern."
)


def look(model: ChainTransformer | SeparateChainTransformer, prompt: Prompt) -> dict[str, Array]:
    """CoT inference (Algorithm 2), every step: attention over the columns, what is asked, what is answered, what is right.

    Groups are those of the right question: where an earlier answer was wrong, another pattern was asked for.
    """
    assert prompt.chain is not None
    steps = len(prompt.chain) - 1
    answers = prompt.chain.at[1:].set(0)
    found: dict[str, list[Array]] = {name: [] for name in ("attention", "group", "asked", "answer", "mass", "share")}
    for step in range(1, steps + 1):
        asked = ask(prompt, answers, step)
        output, trace = model(asked)
        answer, _ = decode(output, asked)
        assert asked.step is not None and asked.answers is not None
        pattern, same = asked.pattern[:-1] == prompt.chain[step - 1], asked.step[:-1] == step
        group = jnp.where(asked.present[:-1], 1 + 2 * (~same) + (~pattern), 0)
        right = asked.answers[prompt.chain[step]] @ output
        mass = jnp.sum(jnp.where(group == 1, trace.attention, 0.0))
        values = (trace.attention, group, answers[step - 1], answer, mass, right)
        for name, value in zip(found, values, strict=True):
            found[name].append(value)
        answers = answers.at[step].set(answer)
    axes = {"attention": "@stage@token", "group": "@stage@token"}
    stacked = {f"{name}{axes.get(name, '@stage')}": jnp.stack(values) for name, values in found.items()}
    return stacked | {"right@stage": prompt.chain[1:]}


WATCH = watching(look)


def explorer(lab: Lab) -> xr.Dataset:
    """A training, looked into at a few moments."""
    s: Settings = lab.settings
    recipes = {"standard": lambda seed: _recipe(s, seed)}
    return lab.train("explorer", recipes, moments(s.steps), (WATCH,), squared).history


def _recipe(s: Settings, seed: int) -> Recipe:
    world = inference_world(s, seed, usual_matrices(s), s.test_matching_fraction, EXAMPLES, EXAMPLES, Mode.chain)
    return dataclasses.replace(recipe(s, seed), watched=(world,))


def explore(history: xr.Dataset, settings: Settings) -> Exploration:
    """What the page shows."""
    steps = settings.reasoning_steps
    right, answer, asked = truth(history["right"]), arrange(history["answer"]), arrange(history["asked"])
    group = np.nan_to_num(truth(history["group"], "token")).astype(int)
    columns = group.shape[-1]
    whole = np.concatenate([truth(history["asked"])[0, :1], right[0]])  # stages × prompts; the first question is z_0
    chains = [[f"μ{int(pattern) + 1}" for pattern in chain] for chain in np.nan_to_num(whole).T]
    labels = np.array([f"{1 + number // steps}.{1 + number % steps}" for number in range(columns)], object)
    words = [
        f"asked from μ{int(start) + 1}, answers μ{int(found) + 1}, right is μ{int(wanted) + 1}: "
        f"{'correct' if found == wanted else 'wrong'}"
        if np.isfinite(found)
        else "diverged"
        for start, found, wanted in zip(
            asked.ravel(), answer.ravel(), np.broadcast_to(right[:, None, None], answer.shape).ravel(), strict=True
        )
    ]
    return Exploration(
        ABOUT, [int(step) for step in history["step"].values], members(history),
        [f"{number}: {' → '.join(chain)}" for number, chain in enumerate(chains, 1)],
        [Panel("Attention of the question on each column", "attention", "column (example.step)", GROUPS,
               arrange(history["attention"], "token"),
               np.broadcast_to(labels, group.shape), np.array(["", *GROUPS], object)[group])],
        {
            "attention on the same pattern and step": arrange(history["mass"]),
            "output along the right pattern": arrange(history["share"]),
        },
        np.array(words, object).reshape(answer.shape),
        stage=("reasoning step", [f"step {number}" for number in range(1, steps + 1)]),
    )  # fmt: skip

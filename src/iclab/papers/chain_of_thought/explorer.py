"""Inside the model of chain-of-thought, step by step through its own reasoning, along a training of its own."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from iclab.authoring import Lab, Prompt, Recipe, squared
from iclab.authoring.exploration import (
    MEAN,
    Ablation,
    Exploration,
    Panel,
    arrange,
    members,
    moments,
    truth,
    watching,
)
from iclab.inference import decode
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.papers.chain_of_thought.settings import Settings, inference_world, recipe, step_matrices
from iclab.worlds.reasoning import Mode, ask

EXAMPLES = 10  # in a prompt: few enough to be seen, enough to outvote the erroneous ones
REMOVED = {"blind": "the head's attention", "alone": "the steps in between"}
GROUPS = tuple(f"{pattern} pattern, {step} step" for step in ("same", "other") for pattern in ("same", "other"))
ABOUT = (
    "Each example is K columns, one per reasoning step, and some take a wrong turn. To answer step k the model looks "
    "for columns of step k with the same input pattern; the answer is decoded, fed back, and becomes the next "
    "question. First it learns to find the step, then the pattern."
)


def look(model: ChainTransformer | SeparateChainTransformer, prompt: Prompt) -> dict[str, Array]:
    """CoT inference (Algorithm 2), every step: attention, what is asked, what is answered, what is right; and the same
    without attention (weights of 0), and without the steps in between, every step asked from the first question.
    """
    assert prompt.chain is not None
    found = _reasoned(model, prompt) | {"right@stage": prompt.chain[1:]}
    blind = _reasoned(jax.tree.map(jnp.zeros_like, model), prompt)
    alone = _reasoned(model, prompt, fed_back=False)
    kept = ("asked@stage", "answer@stage", "mass@stage", "share@stage")
    for name, other in (("blind", blind), ("alone", alone)):
        found |= {f"{name}_{key}": other[key] for key in kept}
    return found


def _reasoned(
    model: ChainTransformer | SeparateChainTransformer, prompt: Prompt, *, fed_back: bool = True
) -> dict[str, Array]:
    """Step by step. Groups are those of the right question: where an earlier answer was wrong, another pattern was
    asked for.
    """
    assert prompt.chain is not None
    answers, found = prompt.chain.at[1:].set(0), []
    for step in range(1, len(prompt.chain)):
        asked = ask(prompt, answers, step)
        output, trace = model(asked)
        answer, _ = decode(output, asked)
        assert asked.step is not None and asked.answers is not None
        pattern, same = asked.pattern[:-1] == prompt.chain[step - 1], asked.step[:-1] == step
        group = jnp.where(asked.present[:-1], 1 + 2 * (~same) + (~pattern), 0)
        mass = jnp.sum(jnp.where(group == 1, trace.attention, 0.0))
        tokens = {"attention@stage@token": trace.attention, "group@stage@token": group}
        numbers = {"asked": answers[step - 1], "answer": answer, "mass": mass}
        numbers["share"] = asked.answers[prompt.chain[step]] @ output
        found.append(tokens | {f"{name}@stage": number for name, number in numbers.items()})
        answers = answers.at[step].set(answer if fed_back else prompt.chain[0])
    return {name: jnp.stack([stage[name] for stage in found]) for name in found[0]}


def explorer(lab: Lab) -> xr.Dataset:
    """One training, recorded at a few steps."""
    s: Settings = lab.settings
    recipes = {"standard": lambda seed: _recipe(s, seed)}
    return lab.train("explorer", recipes, moments(s.steps), (watching(look),), squared).history


def _recipe(s: Settings, seed: int) -> Recipe:
    world = inference_world(s, seed, Mode.chain, step_matrices(s), s.test_matching_fraction, EXAMPLES, EXAMPLES)
    return dataclasses.replace(recipe(s, seed), watched=(world,))


def _said(asked: float, found: float, right: float) -> str:
    if not np.isfinite(found):
        return "diverged"
    names = [f"μ{int(pattern) + 1}" for pattern in (asked, found, right)]
    return "asked from {}, answers {}, right is {}: ".format(*names) + ("correct" if found == right else "wrong")


def explore(history: xr.Dataset, settings: Settings) -> Exploration:
    """What the page shows."""
    steps = settings.reasoning_steps
    right, answer, asked = truth(history["right"]), arrange(history["answer"]), arrange(history["asked"])
    group = np.nan_to_num(truth(history["group"], "token")).astype(int)
    whole = np.concatenate([truth(history["asked"])[0, :1], right[0]])  # stages × prompts; the first question is z_0
    chains = [" → ".join(f"μ{int(pattern) + 1}" for pattern in chain) for chain in np.nan_to_num(whole).T]
    labels = np.array([f"{1 + at // steps}.{1 + at % steps}" for at in range(group.shape[-1])], object)
    titles = "Attention of the question on each column", "attention", "column (example.step)"
    attention, groups = arrange(history["attention"], "token"), np.array(["", *GROUPS], object)[group]
    lines = {"attention on the same pattern and step": "mass", "output along the right pattern": "share"}
    return Exploration(
        ABOUT,
        [int(step) for step in history["step"].values],
        members(history),
        [f"{number}: {chain}" for number, chain in enumerate(chains, 1)],
        [Panel(*titles, GROUPS, attention, np.broadcast_to(labels, group.shape), groups)],
        {words: arrange(history[name]) for words, name in lines.items()},
        np.vectorize(_said, otypes=[object])(asked, answer, right[:, None, None]),
        ablations=[
            Ablation(
                removed,
                np.vectorize(_said, otypes=[object])(
                    *(arrange(history[f"{name}_{key}"]) for key in ("asked", "answer")), right[:, None, None]
                ),
                {words: arrange(history[f"{name}_{key}"]) for words, key in lines.items()},
                {0: MEAN} if name == "blind" else {},
            )
            for name, removed in REMOVED.items()
        ],
        stage=("reasoning step", [f"step {number}" for number in range(1, steps + 1)]),
    )

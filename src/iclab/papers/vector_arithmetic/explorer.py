"""Inside the QA-trained model of vector-arithmetic: attention, the task vector, the answer, along training."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

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
from iclab.experiments import Lab
from iclab.losses import cross_entropy
from iclab.models.residual_transformer import ResidualTransformer
from iclab.papers.vector_arithmetic.settings import Settings, recipe, world
from iclab.prompts import Prompt
from iclab.worlds.concepts import Kind

ABOUT = (
    "The model was trained on question-answer sentences and is asked with word-label demonstrations. It pools the "
    "labels into a task vector h_0 that points along the high-level concept a of the demonstrations; h_0 plus the "
    "query word is the answer."
)
COSINE, RIGHT = "cosine of h₀ with the task's a", "probability of the right answer"
TASK, REST, WORD, LABEL = "the task's concept", "another concept", "word", "label"


def look(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    """Attention over the tokens, cosines of h_0 with every a and b, the probability of the right answer, the answer;
    the last two also without attention (W_Q = 0) and without h_0.
    """
    assert prompt.answers is not None
    output, trace = model(prompt)
    count = prompt.atoms.shape[1] // 2
    scores = prompt.answers @ output
    nothing = jnp.zeros_like(model.query_weights)
    blind = prompt.answers @ ResidualTransformer(nothing, nothing, model.value_weights)(prompt)[0]
    alone = prompt.answers @ (output - trace.task_vector)
    without = {"blind": blind, "alone": alone}
    answers = {f"{name}_answer": jnp.argmax(found) for name, found in without.items()}
    shares = {f"{name}_probability": jax.nn.softmax(found)[prompt.target] for name, found in without.items()}
    return (
        answers
        | shares
        | {
            "attention@token": trace.attention,
            "present@token": prompt.present[:-1],
            "cosine@direction": prompt.dictionary[: 2 * count] @ trace.task_vector,
            "task": prompt.pattern[-1],
            "cos_task": prompt.dictionary[prompt.pattern[-1]] @ trace.task_vector,
            "probability": jax.nn.softmax(scores)[prompt.target],
            "answer": jnp.argmax(scores),
            "target": prompt.target,
        }
    )


WATCH = watching(look)


def explorer(lab: Lab) -> xr.Dataset:
    """The training on QA sentences, looked into on ICL prompts at a few moments."""
    s: Settings = lab.settings
    watched = dataclasses.replace(recipe(s, Kind.qa), watched=(world(s, Kind.icl),))
    return lab.train("explorer", {"qa": watched}, moments(s.steps), (WATCH,), cross_entropy, at_most=s.seeds).history


def explore(history: xr.Dataset, settings: Settings) -> Exploration:
    """What the page shows."""
    present, task, target = truth(history["present"], "token"), truth(history["task"]), truth(history["target"])
    tokens, count = present.shape[-1], history.sizes["direction"] // 2
    kinds = np.array([(WORD, LABEL)[number % 2] for number in range(tokens)], object)
    places = np.array([f"{'xy'[number % 2]}{1 + number // 2}" for number in range(tokens)], object)
    directions = np.array([f"{letter}{number}" for letter in "ab" for number in range(1, count + 1)], object)
    own = np.arange(2 * count) % count == task[..., None]
    attention, shown = arrange(history["attention"], "token"), np.where(present > 0, kinds, "").astype(object)
    return Exploration(
        ABOUT, [int(step) for step in history["step"].values], members(history),
        [f"{number}: answer {entry(value, count)}" for number, value in enumerate(target[0, 0], 1)],
        [
            Panel("Attention of the query word on each token", "attention", "token", (LABEL, WORD),
                  attention, np.broadcast_to(places, present.shape), shown),
            Panel("The task vector h₀", "cosine with h₀", "direction", (TASK, REST),
                  arrange(history["cosine"], "direction"), np.broadcast_to(directions, own.shape),
                  np.where(own, TASK, REST).astype(object)),
        ],
        {COSINE: arrange(history["cos_task"]), RIGHT: arrange(history["probability"])},
        _said(arrange(history["answer"]), target, count),
        ablations=[
            Ablation("the head's attention", _said(arrange(history["blind_answer"]), target, count),
                     {RIGHT: arrange(history["blind_probability"])}, {0: MEAN}),
            Ablation("the task vector", _said(arrange(history["alone_answer"]), target, count),
                     {RIGHT: arrange(history["alone_probability"])}, {1: 0.0}),
        ],
    )  # fmt: skip


def _said(answer: np.ndarray, target: np.ndarray, count: int) -> np.ndarray:
    """Answers in words; `answer` on five axes, `target` on switch × stage × prompt."""
    right = np.broadcast_to(target[:, None, None], answer.shape)
    words = [
        f"answers {entry(found, count)}, right is {entry(wanted, count)}: {'correct' if found == wanted else 'wrong'}"
        if np.isfinite(found)
        else "diverged"
        for found, wanted in zip(answer.ravel(), right.ravel(), strict=True)
    ]
    return np.array(words, object).reshape(answer.shape)


def entry(number: float, concepts: int) -> str:
    """An entry of the answer dictionary in words: for every concept a±b, 0.1a±b, a, ±b, then the common tokens.

    >>> entry(1, 2), entry(11, 2), entry(14, 2)
    ('a1 − b1', 'a2', 'ν1')
    """
    concept, kind = divmod(int(number), 7)
    k = concept + 1
    names = (f"a{k} + b{k}", f"a{k} − b{k}", f"0.1 a{k} + b{k}", f"0.1 a{k} − b{k}", f"a{k}", f"b{k}", f"−b{k}")
    return names[kind] if concept < concepts else f"ν{int(number) - 7 * concepts + 1}"

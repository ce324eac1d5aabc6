"""Inside one-layer Mamba and linear Transformer, on the same few prompts with outliers and without, along training."""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr
from jaxtyping import Array

from iclab.authoring.exploration import (
    Ablation,
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
from iclab.experiments import Lab, Recipe
from iclab.models.linear_transformer import LinearTransformer
from iclab.models.mamba import Mamba
from iclab.papers.mamba_outliers.settings import KINDS, TASK_SETS, TASKS, Settings, inference_world, one_layer
from iclab.prompts import Prompt

FRACTION, MAGNITUDE = 0.4, 10.0  # α and κ_a' of the prompts with outliers; their labels are flipped
OUTLIER = "outlier, flipped label"
ABOUT = (
    "With outliers on, some examples carry a large additive outlier and the opposite label. Mamba learns gates close "
    "to 0 for them; the linear Transformer has no gate and adds their wrong labels. Every example adds "
    "gate · label · score to F."
)


def look(model: Mamba | LinearTransformer, prompt: Prompt) -> dict[str, Array]:
    """Scores p_iᵀ W_Bᵀ W_C p_query, gates G_{i,l+1} and what each example adds to F."""
    output, trace = model(prompt)
    assert prompt.outlier is not None
    label = prompt.label[:-1]
    return {
        "score@token": trace.scores[0],
        "gate@token": trace.gates[0],
        "part@token": trace.gates[0] * trace.scores[0] * label,
        "shown@token": label,
        "same@token": prompt.matches_query(),
        "present@token": prompt.present[:-1],
        "outlier@token": prompt.outlier[:-1],
        "output": output,
        "target": prompt.target,
    }


WATCH = watching(look)


def explorer(lab: Lab) -> xr.Dataset:
    """Both one-layer models on the 18 tasks, looked into at a few moments."""
    s: Settings = lab.settings
    parts = [
        lab.train(f"explorer-{kind}", {name: _recipe(s, kind)}, moments(s.steps), (WATCH,)).history
        for kind, name in KINDS.items()
    ]
    return xr.concat(parts, "setting")


def _recipe(s: Settings, kind: str) -> Recipe:
    worlds = tuple(inference_world(s, fraction, MAGNITUDE) for fraction in (0.0, FRACTION))
    return dataclasses.replace(one_layer(s, kind, TASK_SETS[TASKS]), watched=worlds)


def explore(history: xr.Dataset, settings: Settings) -> Exploration:
    """What the page shows."""
    labels, groups = examples(history)
    groups = np.where((truth(history["outlier"], "token") > 0) & (groups != ""), OUTLIER, groups)
    target, output = truth(history["target"]), arrange(history["output"])
    names = [f"{number}: answer {signed(value)}" for number, value in enumerate(target[0, 0], 1)]
    panels = {
        "part": ("What each example adds to the answer", "gate · label · score"),
        "gate": ("Gate of each example", "gate G"),
        "score": ("Attention score of each example", "score"),
    }
    groupings, steps = (SAME, OTHER, OUTLIER), [int(step) for step in history["step"].values]
    shown = [
        Panel(title, axis, "example", groupings, arrange(history[name], "token"), labels, groups)
        for name, (title, axis) in panels.items()
    ]
    answers = {ANSWER: output}, binary(output, target)
    return Exploration(
        ABOUT, steps, members(history), names, shown, *answers, switch=("outliers", ("off", "on")),
        ablations=_ablations(history, target, groups),
    )  # fmt: skip


def _ablations(history: xr.Dataset, target: np.ndarray, groups: np.ndarray) -> list[Ablation]:
    """(3) is a sum of gate · score · label over the examples: its factors can be removed one by one."""
    part, gate, score = (arrange(history[name], "token") for name in ("part", "gate", "score"))
    label = arrange(history["shown"], "token")
    there = np.broadcast_to((groups != "")[:, None, None], part.shape)
    count = np.maximum(there.sum(axis=-1, keepdims=True), 1)
    even = np.where(there, np.where(there, score, 0.0).sum(axis=-1, keepdims=True) / count, 0.0)
    found: list[tuple[str, np.ndarray, dict[int, np.ndarray | float | str]]] = [
        ("the head's attention (scores become their mean)", gate * even * label, {2: even}),
        ("the gates (all are open)", score * label, {1: 1.0}),
    ]
    kept = np.where((groups == OUTLIER)[:, None, None], 0.0, part)
    changed = [Ablation(name, *_answered(added, target), {0: added, **other}) for name, added, other in found]
    return [*changed, Ablation("what the outliers add", *_answered(kept, target), {0: OUTLIER})]


def _answered(added: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    output = added.sum(axis=-1)
    return binary(output, target), {ANSWER: output}

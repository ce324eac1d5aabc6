"""Inside one-layer Mamba, linear Transformer and, for comparison, softmax Transformer, on the same few prompts with
outliers and without, along training.
"""

from __future__ import annotations

import dataclasses

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
    binary,
    members,
    moments,
    signed,
    truth,
    watching,
)
from iclab.authoring.softmax_explorer import ANSWER, OTHER, SAME, examples
from iclab.experiments import Lab
from iclab.models.linear_transformer import LinearTransformer
from iclab.models.mamba import Mamba
from iclab.models.softmax_transformer import SoftmaxTransformer, SoftmaxTransformerSettings
from iclab.optimisation import Training
from iclab.papers.mamba_outliers.settings import KINDS, TASK_SETS, TASKS, Settings, inference_world, one_layer
from iclab.prompts import Prompt

SOFTMAX_STEP = 2.0  # that of nonlinear-icl
FRACTION, MAGNITUDE = 0.4, 10.0  # α and κ_a' of the prompts with outliers; their labels are flipped
OUTLIER = "outlier, flipped label"
ABOUT = (
    "With outliers on, some examples carry a large additive outlier and the opposite label. Mamba learns gates close "
    "to 0 for them; the linear Transformer has no gate and adds their wrong labels. Every example adds "
    "gate · label · score to F; in the softmax Transformer, which is not the paper's, to the label that its MLP reads."
)


def look(model: Mamba | LinearTransformer | SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    """Scores p_iᵀ W_Bᵀ W_C p_query, gates G_{i,l+1} and what each example adds to F; of softmax attention its weights
    and what each adds to the pooled label. Beside the answer, those without attention, gates and outliers.
    """
    found = _softmax(model, prompt) if isinstance(model, SoftmaxTransformer) else _sum(model, prompt)
    assert prompt.outlier is not None
    return found | {
        "part@token": found["gate@token"] * found["score@token"] * prompt.label[:-1],
        "shown@token": prompt.label[:-1],
        "same@token": prompt.matches_query(),
        "present@token": prompt.present[:-1],
        "outlier@token": prompt.outlier[:-1],
        "target": prompt.target,
    }


def _sum(model: Mamba | LinearTransformer, prompt: Prompt) -> dict[str, Array]:
    """(3) is a sum of gate · score · label over the examples: its factors can be removed one by one."""
    output, trace = model(prompt)
    assert prompt.outlier is not None
    score, gate, label, there = trace.scores[0], trace.gates[0], prompt.label[:-1], prompt.present[:-1]
    mean = jnp.sum(jnp.where(there, score, 0.0)) / jnp.sum(there)
    return {
        "score@token": score,
        "gate@token": gate,
        "output": output,
        "blind_output": mean * jnp.sum(gate * label),
        "ungated_output": jnp.sum(score * label),
        "clean_output": jnp.sum(jnp.where(prompt.outlier[:-1], 0.0, gate * score * label)),
    }


def _softmax(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    """Softmax attention has no gate; its output is a function of the column that it pools."""
    output, trace = model(prompt)
    assert prompt.outlier is not None
    there = prompt.present[:-1].astype(float)

    view = prompt.view()
    neurons = model.output_weights @ view.read(model.value_weights)

    def answer(attention: Array) -> Array:
        return jnp.sum(model.readout * jnp.maximum(neurons @ view.pool(jnp.append(attention, 0.0)), 0.0))

    return {
        "score@token": trace.attention,
        "gate@token": jnp.ones_like(trace.attention),
        "output": output,
        "blind_output": answer(there / jnp.sum(there)),
        "ungated_output": output,
        "clean_output": answer(jnp.where(prompt.outlier[:-1], 0.0, trace.attention)),
    }


WATCH = watching(look)


def explorer(lab: Lab) -> xr.Dataset:
    """Three one-layer models on the 18 tasks, recorded at a few steps."""
    s: Settings = lab.settings
    recipes = {kind: one_layer(s, kind, TASK_SETS[TASKS]) for kind in KINDS}
    recipes["softmax"] = dataclasses.replace(
        recipes["mamba"], model=SoftmaxTransformerSettings(), training=Training(SOFTMAX_STEP, s.batch)
    )
    worlds = tuple(inference_world(s, fraction, MAGNITUDE) for fraction in (0.0, FRACTION))
    names = KINDS | {"softmax": "softmax Transformer"}
    parts = [
        lab.train(
            f"explorer-{kind}", {names[kind]: dataclasses.replace(recipe, watched=worlds)}, moments(s.steps), (WATCH,)
        ).history
        for kind, recipe in recipes.items()
    ]
    return xr.concat(parts, "setting")


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
    """What the answer is without a factor, and what the bars become."""
    gate, score, label = (arrange(history[name], "token") for name in ("gate", "score", "shown"))
    there = np.broadcast_to((groups != "")[:, None, None], score.shape)
    count = np.maximum(there.sum(axis=-1, keepdims=True), 1)
    even = np.where(there, np.where(there, score, 0.0).sum(axis=-1, keepdims=True) / count, 0.0)
    removed: dict[str, tuple[str, dict[int, np.ndarray | float | str]]] = {
        "blind": ("the head's attention (scores become their mean)", {0: gate * even * label, 2: MEAN}),
        "ungated": ("the gates (all are open)", {0: score * label, 1: 1.0}),
        "clean": ("what the outliers add", {0: OUTLIER}),
    }
    found = []
    for name, (words, panels) in removed.items():
        output = arrange(history[f"{name}_output"])
        found.append(Ablation(words, binary(output, target), {ANSWER: output}, panels))
    return found

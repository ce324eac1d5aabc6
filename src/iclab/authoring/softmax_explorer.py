"""The explorer of the two papers on a softmax Transformer: attention, the pooled label, the answer."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from iclab.authoring.exploration import MEAN, Ablation, Exploration, Panel, arrange, binary, members, signed, truth
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.prompts import Prompt

ABOUT = (
    "The model answers by looking up: attention moves onto the examples that share the query's pattern, so that the "
    "label it pools, Σ attn y, becomes the right one, and the MLP turns it into the answer F."
)
POOLED, ANSWER = "pooled label", "answer F"
REMOVED = {
    "blind": "the head's attention",
    "small": "the half of the neurons with small norms",
    "large": "the half of the neurons with large norms",
}
SAME, OTHER = "the query's pattern", "another pattern"


def look(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    """Attention over the examples, the label that it pools, Σ attn_i y_i, and the answer F; and the answer without
    attention (W_Q = 0), without the half of the neurons that have small norms, and without the other half.
    """
    output, trace = model(prompt)
    blind, even = eqx.tree_at(_queries, model, 0 * model.query_weights)(prompt)
    norms = jnp.linalg.norm(model.neurons(), axis=1)
    large = norms > jnp.median(norms)
    pruned = {
        "small": jnp.where(large, trace.preactivation, 0.0),
        "large": jnp.where(large, 0.0, trace.preactivation),
    }
    answers = {f"{name}_output": jnp.sum(model.readout * jnp.maximum(kept, 0.0)) for name, kept in pruned.items()}
    return answers | {
        "blind_output": blind,
        "blind_pooled": jnp.sum(even.attention * prompt.label[:-1]),
        "attention@token": trace.attention,
        "shown@token": prompt.label[:-1],
        "same@token": prompt.matches_query(),
        "present@token": prompt.present[:-1],
        "pooled": jnp.sum(trace.attention * prompt.label[:-1]),
        "output": output,
        "target": prompt.target,
    }


def _queries(model: SoftmaxTransformer) -> Array:
    return model.query_weights


def examples(history: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Labels and groups of the examples of a classification prompt: switch × stage × prompt × token."""
    shown, same, present = (truth(history[name], "token") for name in ("shown", "same", "present"))
    labels = np.where(shown > 0, "+", "−").astype(object)
    groups = np.where(present > 0, np.where(same > 0, SAME, OTHER), "").astype(object)
    return labels, groups


def explore(history: xr.Dataset, about: str, switch: tuple[str, tuple[str, ...]]) -> Exploration:
    """What the page shows."""
    labels, groups = examples(history)
    target, output = truth(history["target"]), arrange(history["output"])
    names = [f"{number}: answer {signed(value)}" for number, value in enumerate(target[0, 0], 1)]
    attention, pooled = arrange(history["attention"], "token"), arrange(history["pooled"])
    return Exploration(
        about, [int(step) for step in history["step"].values], members(history), names,
        [
            Panel("Attention of the query on each example", "attention", "example", (SAME, OTHER), attention, labels,
                  groups)
        ],
        {POOLED: pooled, ANSWER: output}, binary(output, target), switch=switch,
        ablations=[_without(history, name, target, pooled) for name in REMOVED],
    )  # fmt: skip


def _without(history: xr.Dataset, name: str, target: np.ndarray, pooled: np.ndarray) -> Ablation:
    """The answer without the head's attention, or without half of the neurons, which does not change attention."""
    output = arrange(history[f"{name}_output"])
    blind = name == "blind"
    lines = {POOLED: arrange(history["blind_pooled"]) if blind else pooled, ANSWER: output}
    return Ablation(REMOVED[name], binary(output, target), lines, {0: MEAN} if blind else {})

"""The explorer of the two papers on a softmax Transformer: attention, the pooled label, the answer."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from iclab.authoring.exploration import Exploration, Panel, arrange, binary, members, signed, truth
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.prompts import Prompt

SAME, OTHER = "the query's pattern", "another pattern"


def look(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    """Attention over the examples, the label that it pools, Σ attn_i y_i, and the answer F."""
    output, trace = model(prompt)
    return {
        "attention@token": trace.attention,
        "shown@token": prompt.label[:-1],
        "same@token": prompt.matches_query(),
        "present@token": prompt.present[:-1],
        "pooled": jnp.sum(trace.attention * prompt.label[:-1]),
        "output": output,
        "target": prompt.target,
    }


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
    return Exploration(
        about, [int(step) for step in history["step"].values], members(history), names,
        [
            Panel("Attention of the query on each example", "attention", "example", (SAME, OTHER),
                  arrange(history["attention"], "token"), labels, groups)
        ],
        {"pooled label": arrange(history["pooled"]), "answer F": output},
        binary(output, target), switch=switch,
    )  # fmt: skip

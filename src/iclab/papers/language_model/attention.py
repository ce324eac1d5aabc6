"""Corollary 4.3 of nonlinear-icl on a real model: does the query look at demonstrations that share its label?

Half of the demonstrations do, at random places. Measured at the last token of the prompt: the mass on them, as a share of the
mass on all demonstrations; 0.5 says that the label does not matter. One head is chosen on held-out queries. With shuffled
labels the label that stands there says nothing about the word: what is left above 0.5 there is attention to the label itself.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.experiments import Lab
from iclab.language.words import LABEL_TASKS
from iclab.papers.language_model.asking import Bench, bench, measured
from iclab.papers.language_model.labels import Labelled, label_tasks, labelled
from iclab.papers.language_model.settings import Settings

ORDERS = ("labels", "shuffled labels")


def attention(lab: Lab) -> xr.Dataset:
    """Attention on demonstrations that share the query's label, by block and at a head chosen on held-out queries."""
    s: Settings = lab.settings
    one = bench(lab)
    coordinates = {
        "order": ORDERS,
        "task": LABEL_TASKS,
        "prompt": range(s.attention_prompts),
        "block": range(1, one.model.depth + 1),
    }
    variables = {
        "share": ("order", "task", "prompt", "block"), "head_share": ("order", "task", "prompt"), "chosen_block": ("task",),
        "chosen_head": ("task",),
    }  # fmt: skip

    def compute() -> dict[str, np.ndarray]:
        found: dict[str, list] = {name: [] for name in variables}
        for task in label_tasks():
            queries, held = task.test[: s.attention_prompts], task.held_out[: max(4, 2 * s.held_out_prompts)]
            if not one.model.has_attention:
                for name, dims in variables.items():
                    found[name].append(np.full([len(coordinates[dim]) for dim in dims if dim != "task"], np.nan))
                continue
            chosen = mass(one, labelled(one, task, held, "attention held out"))
            chosen_share = (chosen[0] / chosen.sum(0)).mean(0)  # block × head
            block, head = np.unravel_index(int(chosen_share.argmax()), chosen_share.shape)
            orders = [labelled(one, task, queries, "attention", shuffled=order == "shuffled labels") for order in ORDERS]
            masses = [mass(one, prompts) for prompts in orders]
            found["share"].append([m.sum(-1)[0] / m.sum(-1).sum(0) for m in masses])
            found["head_share"].append([m[0, :, block, head] / m[:, :, block, head].sum(0) for m in masses])
            found["chosen_block"].append(block + 1)
            found["chosen_head"].append(head)
            lab.report("language-model: attention", len(found["share"]) / len(LABEL_TASKS))
        return {name: np.stack(parts, axis=variables[name].index("task")) for name, parts in found.items()}

    return measured(lab, coordinates, variables, compute)


def mass(one: Bench, prompts: list[Labelled]) -> np.ndarray:
    """Attention of the last token on demonstrations with the query's label and on the others: 2 × prompt × block × head."""
    result = []
    for weights, item in zip(one.model.attention([p.prompt.tokens for p in prompts]), prompts, strict=True):
        owner, same = np.array(item.prompt.owner), np.array([*item.same, False])
        shown = owner >= 0
        result.append([weights[..., shown & same[owner]].sum(-1), weights[..., shown & ~same[owner]].sum(-1)])
    return np.stack(result, axis=1)

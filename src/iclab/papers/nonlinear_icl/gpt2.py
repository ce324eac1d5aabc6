"""Does it survive in a deeper model? GPT-2 on the prompts of nonlinear-icl: Fig. 3, and two probes beyond the paper.

The paper trains GPT-2 with U = 4: 24 of the 30 tasks, l_tr = 20 as everywhere. Learned positions leave a choice open
that a one-layer model does not have: trained on contexts of 20 examples only ("fixed"), it has never seen a query
anywhere else. So it is trained on contexts of 2 to 20 examples by turns too ("varied"), and tested up to the longest of
its training.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Prompt, Recipe, Trained, expect_in
from iclab.ensemble import member_key
from iclab.models.gpt2 import GPT2
from iclab.papers.nonlinear_icl.experiments import DOMAINS, OVER_LENGTHS, SUMS, asked, tested
from iclab.papers.nonlinear_icl.settings import Settings, as_tuples, in_domain
from iclab.papers.nonlinear_icl.settings import recipe as one_layer
from iclab.probes.attention import attention_mass, by_head
from iclab.probes.pruning import LARGEST, SMALLEST, LayerPruning, Pruning, prune_layer
from iclab.worlds.tasks import cyclic_tasks

CONTEXTS = ("fixed", "varied")
RATES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9)
ORDERS = {"smallest first": SMALLEST, "largest first": LARGEST}
EVERY_LAYER = -1


def deep(s: Settings) -> Settings:
    """The settings of GPT-2's prompts: U = 4, and no context longer than in training."""
    return dataclasses.replace(
        s, task_shifts=s.gpt2_task_shifts, test_length=s.train_length, longest_test=s.train_length
    )


def recipe(s: Settings, contexts: str) -> Recipe:
    """GPT-2 on 24 tasks, with contexts of one length or of several; watched on unseen tasks and on the mixtures."""
    tasks = as_tuples(cyclic_tasks(s.relevant_patterns, s.gpt2_task_shifts))
    length, shortest = s.train_length, s.gpt2_shortest_train if contexts == "varied" else 0
    return dataclasses.replace(
        one_layer(deep(s)),
        world=in_domain(s, s.matching_fraction, length, length, tasks, shortest=shortest),
        model=s.gpt2.model(length + 1),
        training=s.gpt2.training(),
    )


def _masses(model: GPT2, prompt: Prompt) -> dict[str, Array]:
    return by_head(attention_mass(model, prompt))


def observe(model: GPT2, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """The query's attention by layer and head, on unseen tasks ("in_...") and on the mixtures ("out_...")."""
    record: dict[str, Array] = {}
    for prefix, found in zip(DOMAINS, expect_in(_masses, model, member.watched, key, 2), strict=True):
        record |= {f"{prefix}_{name}": value for name, value in found.items()}
    return record


def trained(lab: Lab) -> Trained:
    """Both trainings, in one program."""
    s: Settings = lab.settings
    recipes = {contexts: recipe(s, contexts) for contexts in CONTEXTS}
    return lab.train("gpt2", recipes, s.gpt2.record_at(), (observe,), at_most=s.gpt2.seeds)


def training(lab: Lab) -> xr.Dataset:
    """The observed training, and loss and error on the six unseen tasks."""
    s: Settings = lab.settings
    found = tested(lab, trained(lab), "unseen", {"domain": ("in",)}, s.gpt2.prompts, own=deep).isel(domain=0, drop=True)
    return trained(lab).history.assign(hinge=found["hinge"], error=found["error"])


def _mild(s: Settings) -> Settings:
    return dataclasses.replace(deep(s), shifted_irrelevant_size=s.irrelevant_size)


def sums(lab: Lab) -> xr.Dataset:
    """Fig. 3A: out-of-domain error against S_1; "mild_..." with irrelevant parts no larger than in training, K' = K."""
    grid, prompts = {"total": SUMS}, lab.settings.gpt2.prompts
    mild = tested(lab, trained(lab), "mild sums", grid, prompts, own=_mild, domain="out")
    found = tested(lab, trained(lab), "sums", grid, prompts, own=deep, domain="out")
    return found.assign(mild_error=mild["error"], mild_hinge=mild["hinge"])


def pruned(lab: Lab) -> xr.Dataset:
    """Errors after removing MLP neurons in one layer or in each of them ("all"), for the model with fixed contexts."""
    s: Settings = lab.settings
    layers = {str(number + 1): number for number in range(s.gpt2.depth)} | {"all": EVERY_LAYER}

    def preparation(seed: int, domain: str, layer: str, order: str, rate: float) -> LayerPruning:
        key = member_key("nonlinear-icl/gpt2-pruning", seed)
        return LayerPruning(np.int32(layers[layer]), Pruning(np.int32(ORDERS[order]), np.float32(rate), key))

    dims = {"domain": DOMAINS, "layer": tuple(layers), "order": tuple(ORDERS), "rate": RATES}
    how = {"own": deep, "prepare": prune_layer, "preparation": preparation}
    return tested(lab, trained(lab).only("fixed"), "pruned", dims, s.gpt2.trend_prompts, **how)


experiments = {
    "gpt2-training": Experiment(training, cost=95),
    "gpt2-sums": Experiment(sums, cost=20),
    "gpt2-lengths": asked(
        trained, "lengths", "Fig. 3B: error against l_ts and α'.", OVER_LENGTHS, "gpt2.trend_prompts", 25, own=deep
    ),
    "gpt2-pruned": Experiment(pruned, cost=20),
}

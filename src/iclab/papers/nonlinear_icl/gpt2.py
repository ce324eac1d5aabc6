"""Does it survive in a deeper model? GPT-2 on the prompts of nonlinear-icl: Fig. 3 as in the paper, and two probes beyond it.

The paper trains GPT-2 with U = 4: 24 of the 30 tasks, l_tr = 20 as everywhere. Learned positions leave a choice open that a
one-layer model does not have: trained on contexts of 20 examples only ("fixed"), it has never seen a query anywhere else. So it
is trained on contexts of 2 to 20 examples by turns too ("varied"), and tested up to the longest context of its training.
"""

from __future__ import annotations

import functools

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring.paper import Experiment
from iclab.ensemble import member_key
from iclab.evaluation import errors, expect
from iclab.experiments import Lab, Recipe, Trained
from iclab.losses import hinge
from iclab.models.gpt2 import GPT2
from iclab.papers.nonlinear_icl.experiments import FRACTIONS, LENGTHS, SUMS
from iclab.papers.nonlinear_icl.settings import LARGEST_SUM, Settings, as_tuples, in_domain, out_of_domain, unseen_tasks
from iclab.probes.attention import attention_mass, by_head
from iclab.probes.pruning import LARGEST, SMALLEST, LayerPruning, Pruning, prune_layer
from iclab.prompts import Prompt
from iclab.training import Member
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks

CONTEXTS = ("fixed", "varied")
RATES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9)
ORDERS = {"smallest first": SMALLEST, "largest first": LARGEST}
EVERY_LAYER = -1


def _domain(s: Settings, domain: str, fraction: float, length: int) -> Classification:
    """The six unseen tasks, or the mixtures with S_1 = 1.28."""
    if domain == "out":
        return out_of_domain(s, LARGEST_SUM, fraction, length, s.train_length)
    count = s.relevant_patterns
    tasks = unseen_tasks(count, cyclic_tasks(count, s.gpt2_task_shifts))
    return in_domain(s, fraction, length, s.train_length, tasks, count)


def recipe(settings: Settings, contexts: str) -> Recipe:
    """GPT-2 on 24 tasks, with contexts of one length or of several; watched on unseen tasks and on the mixtures."""
    s = settings
    tasks = as_tuples(cyclic_tasks(s.relevant_patterns, s.gpt2_task_shifts))
    length, shortest = s.train_length, s.gpt2_shortest_train if contexts == "varied" else None
    return Recipe(
        in_domain(s, s.matching_fraction, length, length, tasks, s.relevant_patterns, shortest),
        s.gpt2.model(length + 1), s.gpt2.training(),
        tuple(_domain(s, domain, s.test_matching_fraction, length) for domain in ("in", "out")),
    )  # fmt: skip


def _masses(model: GPT2, prompt: Prompt) -> dict[str, Array]:
    return by_head(attention_mass(model, prompt))


def observe(model: GPT2, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """The query's attention by layer and head, on unseen tasks ("in_...") and on the mixtures ("out_...")."""
    record: dict[str, Array] = {}
    for prefix, world in zip(("in", "out"), member.watched, strict=True):
        record |= {f"{prefix}_{name}": value for name, value in expect(_masses, model, world, key, 2).items()}
    return record


def trained(lab: Lab) -> Trained:
    """Both trainings, in one program."""
    s: Settings = lab.settings
    recipes = {contexts: functools.partial(lambda c, seed: recipe(s, c), contexts) for contexts in CONTEXTS}
    return lab.train("gpt2", recipes, s.gpt2.record_at(), (observe,), at_most=s.gpt2.seeds)


def training(lab: Lab) -> xr.Dataset:
    """The observed training, and loss and error on the six unseen tasks."""
    s: Settings = lab.settings
    found = lab.evaluate(
        trained(lab), "unseen", errors(hinge),
        lambda setting, seed, domain: _domain(s, domain, s.test_matching_fraction, s.train_length),
        {"domain": ("in",)}, s.gpt2.prompts,
    ).sel(domain="in", drop=True)  # fmt: skip
    return trained(lab).history.assign(hinge=found["hinge"], error=found["error"])


def sums(lab: Lab) -> xr.Dataset:
    """Fig. 3A: out-of-domain error against S_1; "mild_..." with irrelevant parts no larger than in training, K' = K."""
    s: Settings = lab.settings

    def evaluate(name: str, size: float) -> xr.Dataset:
        length = s.train_length
        return lab.evaluate(
            trained(lab), name, errors(hinge),
            lambda setting, seed, total: out_of_domain(s, total, s.test_matching_fraction, length, length, size),
            {"total": SUMS}, s.gpt2.prompts,
        )  # fmt: skip

    mild = evaluate("mild sums", s.irrelevant_size)
    return evaluate("sums", s.shifted_irrelevant_size).assign(mild_error=mild["error"], mild_hinge=mild["hinge"])


def lengths(lab: Lab) -> xr.Dataset:
    """Fig. 3B: error against the test length for several α', in and out of domain."""
    s: Settings = lab.settings
    grid = [length for length in LENGTHS if length <= s.train_length]
    return lab.evaluate(
        trained(lab), "lengths", errors(hinge),
        lambda setting, seed, domain, fraction, length: _domain(s, domain, fraction, length),
        {"domain": ("in", "out"), "fraction": FRACTIONS, "length": grid}, s.gpt2.trend_prompts,
    )  # fmt: skip


def pruned(lab: Lab) -> xr.Dataset:
    """Errors after removing MLP neurons in one layer or in each of them ("all"), for the model with fixed contexts."""
    s: Settings = lab.settings
    layers = {str(number + 1): number for number in range(s.gpt2.depth)} | {"all": EVERY_LAYER}

    def preparation(seed: int, domain: str, layer: str, order: str, rate: float) -> LayerPruning:
        key = member_key("nonlinear-icl/gpt2-pruning", seed)
        return LayerPruning(np.int32(layers[layer]), Pruning(np.int32(ORDERS[order]), np.float32(rate), key))

    return lab.evaluate(
        trained(lab).only("fixed"), "pruned", errors(hinge),
        lambda setting, seed, domain, **_: _domain(s, domain, s.test_matching_fraction, s.train_length),
        {"domain": ("in", "out"), "layer": tuple(layers), "order": tuple(ORDERS), "rate": RATES}, s.gpt2.trend_prompts,
        prune_layer, preparation,
    )  # fmt: skip


EXPERIMENTS = {
    "gpt2-training": Experiment(training, cost=95),
    "gpt2-sums": Experiment(sums, cost=20),
    "gpt2-lengths": Experiment(lengths, cost=25),
    "gpt2-pruned": Experiment(pruned, cost=20),
}

"""MLP neurons switched off (Theorem 3.7 of nonlinear-icl on a real model), and whether interventions act at all.

Pruning: in every block the same share goes, smallest first, largest first, or at random. A neuron's size is the
product of the norms of its weights, or, because a few massive neurons dominate such norms, its mean absolute
activation on held-out prompts times the norm of its way out.

Controls, asked of the model at hand before anything is concluded. Nothing: a vector of zeros is added, no neuron goes.
Planted: another prompt's stream is put in after the last block, so the answer must be the other's. Used: what is used.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.edits import Patch, Pruned, Updated, activity, keep_all_but, mlps, updates
from iclab.language.study.asking import Found, bench, few_shots, recorded, require_effect, tasks
from iclab.language.study.settings import WORD_TESTS
from iclab.language.study.task_vectors import extract
from iclab.language.words import WORD_TASKS, generator

ORDERS = ("weights, smallest", "weights, largest", "activity, smallest", "activity, largest", "random")
RATES = (0.0, 0.05, 0.15, 0.3)  # the paper removes 15 %
PRUNED_TASKS = ("country-capital", "singular-plural", "antonym")
NOTHING = ("zero vector added", "own stream put back", "no neuron pruned", "what MLPs add put back")
USED = ("task vector added", "stream replaced", "one neuron in ten pruned", "what MLPs add replaced")


def pruning(lab: Lab) -> xr.Dataset:
    """Few-shot accuracy against the share of MLP neurons switched off, by the order in which they go."""
    one = bench(lab.settings)
    s, model = one.settings, one.model
    axes = {"task": PRUNED_TASKS, "prompt": range(s.pruning_prompts), "order": ORDERS, "rate": RATES}
    variables = dict.fromkeys(("right", "log_probability"), "order rate task prompt")

    def compute() -> Found:
        if not model.has_attention:  # a Mamba's block is one piece, without an MLP behind it
            return {}
        found = tasks(one, PRUNED_TASKS, WORD_TESTS)
        queries = [task.test[: s.pruning_prompts] for task in found]
        prompts, targets = few_shots(one, found, queries, "test"), one.targets(sum(queries, ()))
        held = few_shots(one, found, [task.held_out[:4] for task in found], "activity")
        weights = np.stack([neurons.weight_score() for neurons in mlps(model)])
        active = activity(model, held) * np.stack([neurons.outgoing_norm() for neurons in mlps(model)])
        scores = {"weights": weights, "activity": active, "random": generator("pruning").random(weights.shape)}
        plain = model.ask(prompts, targets)
        answers = []
        for order in ORDERS:
            name, _, end = order.partition(", ")
            for rate in RATES:
                edit = Pruned(keep_all_but(scores[name], rate, end == "largest"))
                answers.append(model.ask(prompts, targets, edit=edit) if rate else plain)
                if rate:
                    require_effect(f"pruning {rate:.0%}, {order}", plain.log_probability, answers[-1].log_probability)
                lab.report(f"language-model: pruning, {order}", len(answers) / (len(ORDERS) * len(RATES)))
        shape = len(ORDERS), len(RATES), len(found), s.pruning_prompts
        return {name: np.reshape([getattr(given, name) for given in answers], shape) for name in variables}

    return recorded(lab, axes, variables, compute)


def controls(lab: Lab) -> xr.Dataset:
    """Interventions of nothing, planted ones, and those that are used, on held-out prompts."""
    one = bench(lab.settings)
    each, model = one.settings.held_out_prompts, one.model
    count, middle = len(WORD_TASKS) * each, model.depth // 2
    axes = {"nothing": NOTHING, "used": USED, "prompt": range(count)}
    variables = {"unchanged": "nothing prompt", "planted": "prompt", "changed": "used prompt"}

    def compute() -> Found:
        found = tasks(one, WORD_TASKS, WORD_TESTS)
        queries = [query for task in found for query in task.held_out[:each]]
        bare, targets = one.bare(queries), one.targets(queries)
        plain, streams = model.ask(bare, targets).log_probability, model.states(bare)
        vectors, means = extract(one, found)
        own, zeros = np.repeat(np.arange(len(found)), each), np.zeros((count, model.width))

        def patched(place: int, values: np.ndarray, replace: bool) -> np.ndarray:
            return model.ask(bare, targets, edit=Patch(np.full(count, place), values, replace)).log_probability

        def pruned(gone: int) -> np.ndarray:
            """So many of ten neurons are switched off."""
            if not model.has_attention:
                return np.full(count, np.nan)
            kept = np.stack([np.arange(neurons.width) % 10 >= gone for neurons in mlps(model)])
            return model.ask(bare, targets, edit=Pruned(kept)).log_probability

        def updated(shift: int) -> np.ndarray:
            """The MLP in the middle adds what it adds in a prompt so many further."""
            if not model.has_attention:
                return np.full(count, np.nan)
            _, added = updates(model, bare)
            where = np.tile(np.arange(1, model.depth + 1) == middle, (count, 1))
            edit = Updated(where, np.roll(added[:, middle], shift, axis=0))
            return model.ask(bare, targets, edit=edit).log_probability

        nothing = patched(middle, zeros, False), patched(middle, streams[:, middle], True), pruned(0), updated(0)
        added, replaced = vectors["own"][own, middle], means[own, middle]
        used = patched(middle, added, False), patched(middle, replaced, True), pruned(1), updated(each)
        shift = np.roll(np.arange(count), each)  # the prompts whose last streams are planted
        planted = patched(model.depth, streams[shift, model.depth], True)
        expected = model.ask([bare[index] for index in shift], targets).log_probability
        pairs = {"unchanged": (nothing, plain), "planted": (planted, expected), "changed": (used, plain)}
        return {name: np.abs(np.asarray(after) - before) for name, (after, before) in pairs.items()}

    return recorded(lab, axes, variables, compute)

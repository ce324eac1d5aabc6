"""MLP neurons switched off (Theorem 3.7 of nonlinear-icl on a real model), and whether interventions act at all.

Pruning: in every block the same share goes, smallest first, largest first, or at random. A neuron's size is the product of the
norms of its weights, or, because a few massive neurons dominate such norms, its mean absolute activation on held-out prompts
times the norm of its way out.

Controls, asked of the model at hand before anything is concluded. Nothing: a vector of zeros is added, no neuron goes. Planted:
the stream of another prompt is put in after the last block, so the answer must be the other prompt's. Used: the interventions
of the experiments.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.edits import Patch, Pruned, activity, keep_all_but, mlps
from iclab.language.words import WORD_TASKS, generator
from iclab.papers.language_model.asking import bench, few_shots, recorded, require_effect, tasks
from iclab.papers.language_model.settings import WORD_TESTS, Settings
from iclab.papers.language_model.task_vectors import extract

ORDERS = ("weights, smallest", "weights, largest", "activity, smallest", "activity, largest", "random")
RATES = (0.0, 0.05, 0.15, 0.3)  # the paper removes 15 %
PRUNED_TASKS = ("country-capital", "singular-plural", "antonym")
NOTHING = ("zero vector added", "own stream put back", "no neuron pruned")
USED = ("task vector added", "stream replaced", "one neuron in ten pruned")


def pruning(lab: Lab) -> xr.Dataset:
    """Few-shot accuracy against the share of MLP neurons switched off, by the order in which they go."""
    s: Settings = lab.settings
    one = bench(lab)
    coordinates = {"task": PRUNED_TASKS, "prompt": range(s.pruning_prompts), "order": ORDERS, "rate": RATES}
    variables = {name: "order rate task prompt" for name in ("right", "log_probability")}

    def compute() -> dict[str, np.ndarray]:
        if not one.model.has_attention:  # a Mamba's block is one piece, without an MLP behind it
            return {}
        found = tasks(one, PRUNED_TASKS, WORD_TESTS)
        queries = [task.test[: s.pruning_prompts] for task in found]
        prompts, targets = few_shots(one, found, queries, "test"), one.targets(sum(queries, ()))
        held = few_shots(one, found, [task.held_out[:4] for task in found], "activity")
        weights = np.stack([neurons.weight_score() for neurons in mlps(one.model)])
        active = activity(one.model, held) * np.stack([neurons.outgoing_norm() for neurons in mlps(one.model)])
        scores = {"weights": weights, "activity": active, "random": generator("pruning").random(weights.shape)}
        plain = one.model.ask(prompts, targets)
        answers = []
        for order in ORDERS:
            name, _, end = order.partition(", ")
            for rate in RATES:
                kept = keep_all_but(scores[name], rate, end == "largest")
                answers.append(plain if rate == 0 else one.model.ask(prompts, targets, edit=Pruned(kept)))
                if rate > 0:
                    require_effect(f"pruning {rate:.0%}, {order}", plain.log_probability, answers[-1].log_probability)
                lab.report(f"language-model: pruning, {order}", len(answers) / (len(ORDERS) * len(RATES)))
        shape = len(ORDERS), len(RATES), len(found), s.pruning_prompts
        return {name: np.stack([getattr(given, name) for given in answers]).reshape(shape) for name in variables}

    return recorded(lab, coordinates, variables, compute)


def controls(lab: Lab) -> xr.Dataset:
    """Interventions of nothing, planted ones, and those that are used, on held-out prompts."""
    s: Settings = lab.settings
    one = bench(lab)
    model, count = one.model, len(WORD_TASKS) * s.held_out_prompts
    coordinates = {"nothing": NOTHING, "used": USED, "prompt": range(count)}
    variables = {"unchanged": "nothing prompt", "planted": "prompt", "changed": "used prompt"}

    def compute() -> dict[str, np.ndarray]:
        found = tasks(one, WORD_TASKS, WORD_TESTS)
        queries = [query for task in found for query in task.held_out[: s.held_out_prompts]]
        bare, targets = one.bare(queries), one.targets(queries)
        plain, streams = model.ask(bare, targets).log_probability, model.states(bare)
        vectors, means = extract(one, found)
        middle, own = model.depth // 2, np.repeat(np.arange(len(found)), s.held_out_prompts)

        def patched(place: int, values: np.ndarray, replace: bool) -> np.ndarray:
            return model.ask(bare, targets, edit=Patch(np.full(count, place), values, replace)).log_probability

        def pruned(gone: int) -> np.ndarray:
            """So many of ten neurons are switched off."""
            if not model.has_attention:
                return np.full(count, np.nan)
            kept = np.stack([np.arange(neurons.width) % 10 >= gone for neurons in mlps(model)])
            return model.ask(bare, targets, edit=Pruned(kept)).log_probability

        zeros = np.zeros((count, model.width))
        nothing = [patched(middle, zeros, False), patched(middle, streams[:, middle], True), pruned(0)]
        used = [
            patched(middle, vectors["own"][own, middle], False),
            patched(middle, means[own, middle], True),
            pruned(1),
        ]
        # The answers of other prompts: their streams after the last block are planted, everything else stays.
        shift = np.roll(np.arange(count), s.held_out_prompts)
        planted = patched(model.depth, streams[shift, model.depth], True)
        expected = model.ask([bare[index] for index in shift], targets).log_probability
        pairs = {
            "unchanged": (np.stack(nothing), plain),
            "planted": (planted, expected),
            "changed": (np.stack(used), plain),
        }
        return {name: np.abs(after - before) for name, (after, before) in pairs.items()}

    return recorded(lab, coordinates, variables, compute)

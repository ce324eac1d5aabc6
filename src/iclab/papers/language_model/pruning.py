"""Theorem 3.7 of nonlinear-icl on a real model: MLP neurons switched off, smallest first, largest first, or at random.

In every block the same share goes. A neuron's size is the product of the norms of its weights, or, because a few massive
neurons dominate such norms, its mean absolute activation on held-out prompts times the norm of its way out.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.experiments import Lab
from iclab.language.edits import Pruned, activity, keep_all_but, mlps
from iclab.language.words import WORD_TASKS, generator
from iclab.papers.language_model.asking import bench, measured, require_effect, tasks, with_demonstrations
from iclab.papers.language_model.settings import WORD_TESTS, Settings

ORDERS = ("weights, smallest", "weights, largest", "activity, smallest", "activity, largest", "random")
RATES = (0.0, 0.05, 0.15, 0.3)  # the paper removes 15 %
PRUNED_TASKS = ("country-capital", "singular-plural", "antonym")


def pruning(lab: Lab) -> xr.Dataset:
    """Few-shot accuracy against the share of MLP neurons switched off, by the order in which they go."""
    s: Settings = lab.settings
    one = bench(lab)
    coordinates = {"task": PRUNED_TASKS, "prompt": range(s.pruning_prompts), "order": ORDERS, "rate": RATES}
    variables = {name: ("order", "rate", "task", "prompt") for name in ("right", "log_probability")}

    def compute() -> dict[str, np.ndarray]:
        shape = len(PRUNED_TASKS), s.pruning_prompts
        if not one.model.has_attention:  # a Mamba's block is one piece, without an MLP behind it
            return {name: np.full((len(ORDERS), len(RATES), *shape), np.nan) for name in variables}
        assert set(PRUNED_TASKS) <= set(WORD_TASKS)
        found = tasks(one, PRUNED_TASKS, WORD_TESTS)
        test = [task.test[: s.pruning_prompts] for task in found]
        prompts = [
            p.tokens for task, queries in zip(found, test, strict=True) for p in with_demonstrations(one, task, queries, "test")
        ]
        targets = [token for queries in test for token in one.targets(queries)]
        held = [p.tokens for task in found for p in with_demonstrations(one, task, task.held_out[:4], "activity")]
        weights = np.stack([neurons.weight_score() for neurons in mlps(one.model)])
        active = activity(one.model, held) * np.stack([neurons.outgoing_norm() for neurons in mlps(one.model)])
        scores = {"weights": weights, "activity": active, "random": generator("pruning").random(weights.shape)}
        plain = one.model.ask(prompts, targets)
        right, certainty = [], []
        for order in ORDERS:
            name, _, end = order.partition(", ")
            for rate in RATES:
                answers = plain
                if rate > 0:
                    answers = one.model.ask(prompts, targets, edit=Pruned(keep_all_but(scores[name], rate, end == "largest")))
                    require_effect(f"pruning {rate:.0%}, {order}", plain.log_probability, answers.log_probability)
                right.append(answers.right.reshape(shape))
                certainty.append(answers.log_probability.reshape(shape))
                lab.report(f"language-model: pruning, {order}", len(right) / (len(ORDERS) * len(RATES)))
        grid = (len(ORDERS), len(RATES), *shape)
        return {"right": np.stack(right).reshape(grid), "log_probability": np.stack(certainty).reshape(grid)}

    return measured(lab, coordinates, variables, compute)

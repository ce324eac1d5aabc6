"""Figure 1 and Table 2 of mamba-outliers on a real model: accuracy against the fraction, the labels and the place of
outliers.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.experiments import Lab
from iclab.language.words import LABEL_TASKS
from iclab.papers.language_model.asking import bench, measured, require_effect
from iclab.papers.language_model.labels import PLACEMENTS, RULES, Outliers, accuracy, label_tasks, labelled
from iclab.papers.language_model.settings import Settings

FRACTIONS = (0.0, 0.25, 0.5, 0.75)
LEAST = {"flip": 0.25, "target": 0.5, "random": 0.5}  # a quarter with other labels than flipped ones hardly differs from none
HALF = 0.5  # α of Table 2


def outliers(lab: Lab) -> xr.Dataset:
    """Accuracy against fraction, labels and placement of demonstrations with a trigger phrase; and without the phrase."""
    s: Settings = lab.settings
    one = bench(lab)
    coordinates = {
        "task": LABEL_TASKS, "prompt": range(s.label_prompts), "rule": RULES, "fraction": FRACTIONS, "placement": PLACEMENTS,
    }  # fmt: skip
    variables = {
        "right": ("rule", "fraction", "task", "prompt"), "lead": ("rule", "fraction", "task", "prompt"),
        "placed": ("placement", "task", "prompt"), "unmarked": ("task", "prompt"),
    }  # fmt: skip

    def compute() -> dict[str, np.ndarray]:
        found: dict[str, list] = {name: [] for name in variables}
        kinds = [(rule, fraction) for rule in RULES for fraction in FRACTIONS]
        left_out = np.full(s.label_prompts, np.nan)
        for task in label_tasks():
            queries = task.test[: s.label_prompts]

            def answered(kind: Outliers, task: object = task, queries: object = queries) -> tuple[np.ndarray, np.ndarray]:
                return accuracy(one, labelled(one, task, queries, "outliers", kind))  # type: ignore[arg-type]

            clean = answered(Outliers())
            grid = []
            for number, (rule, fraction) in enumerate(kinds):
                lab.report(f"language-model: outliers, {task.name}", number / len(kinds))
                if 0 < fraction < LEAST[rule]:
                    grid.append((left_out, left_out))
                    continue
                grid.append(clean if fraction == 0 else answered(Outliers(fraction, rule)))
                if fraction > 0:
                    require_effect(f"outliers ({rule}, {fraction:g})", clean[1], grid[-1][1])
            shape = len(RULES), len(FRACTIONS), len(queries)
            found["right"].append(np.stack([right for right, _ in grid]).reshape(shape))
            found["lead"].append(np.stack([lead for _, lead in grid]).reshape(shape))
            half = grid[kinds.index(("flip", HALF))]
            placed = [half if where == "random" else answered(Outliers(HALF, "flip", where)) for where in PLACEMENTS]
            found["placed"].append(np.stack([right for right, _ in placed]))
            found["unmarked"].append(answered(Outliers(HALF, "flip", marked=False))[0])
        return {name: np.stack(parts, axis=variables[name].index("task")) for name, parts in found.items()}

    return measured(lab, coordinates, variables, compute)

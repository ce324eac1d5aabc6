"""Chain of thought on a real model: two-step tasks with the intermediate step in the demonstrations, or without it.

With steps the model writes the step itself (greedily, as Algorithm 2 of chain-of-thought does) and then the answer. In a
fraction of the demonstrations the step is wrong and the answer follows from the wrong step; the same demonstrations without
their steps are what the model sees otherwise. No demonstration has the query's own step.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.experiments import Lab
from iclab.language.prompts import draw
from iclab.language.words import TWO_STEP_TASKS, Example, generator
from iclab.papers.language_model.asking import bench, measured, require_effect, tasks
from iclab.papers.language_model.settings import STEP_TESTS, Settings

ERRORS = (0.0, 0.25, 0.5)
FORMS = ("steps", "direct")


def steps(lab: Lab) -> xr.Dataset:
    """Accuracy on two-step tasks with and without the intermediate step, against the fraction of erroneous demonstrations."""
    s: Settings = lab.settings
    one = bench(lab)
    coordinates = {"form": FORMS, "errors": ERRORS, "task": TWO_STEP_TASKS, "prompt": range(s.step_prompts)}
    variables = {"right": ("form", "errors", "task", "prompt"), "step_right": ("errors", "task", "prompt")}

    def compute() -> dict[str, np.ndarray]:
        right: dict[str, list] = {form: [] for form in FORMS}
        step_right = []
        clean: dict[str, np.ndarray] = {}
        for task in tasks(one, TWO_STEP_TASKS, STEP_TESTS):
            queries = task.test[: s.step_prompts]
            targets, middles = one.targets(queries), [one.token(query[1]) for query in queries]
            for errors in ERRORS:
                shown = [
                    erroneous(generator("steps", task.name, number), task.held_out, query, s.step_demonstrations, errors)
                    for number, query in enumerate(queries)
                ]
                direct = [
                    one.prompt([(d[0], d[-1]) for d in lines], q[:1]).tokens for lines, q in zip(shown, queries, strict=True)
                ]
                stepwise = [one.prompt(lines, q[:1]).tokens for lines, q in zip(shown, queries, strict=True)]
                answers = one.model.ask(direct, targets)
                first = one.model.ask(stepwise, middles)
                between = one.model.tokens(one.separator)
                second = one.model.ask([(*p, int(t), *between) for p, t in zip(stepwise, first.top, strict=True)], targets)
                right["direct"].append(answers.right)
                right["steps"].append(second.right)
                step_right.append(first.right)
                if errors == 0:
                    clean[task.name] = answers.log_probability
                else:
                    require_effect("erroneous demonstrations", clean[task.name], answers.log_probability)
                lab.report("language-model: two steps", len(step_right) / (len(ERRORS) * len(TWO_STEP_TASKS)))
        grid = len(TWO_STEP_TASKS), len(ERRORS), s.step_prompts
        return {
            "right": np.stack([np.stack(right[form]).reshape(grid).swapaxes(0, 1) for form in FORMS]),
            "step_right": np.stack(step_right).reshape(grid).swapaxes(0, 1),
        }

    return measured(lab, coordinates, variables, compute)


def erroneous(
    random: np.random.Generator, pool: tuple[Example, ...], query: Example, count: int, fraction: float
) -> list[Example]:
    """Demonstrations, a fraction of them with the step and the answer of another example. Which ones are drawn, and in which
    order, does not depend on the fraction.
    """
    shown = draw(random, pool, count, query, distinct=1)
    wrong = random.permutation(count)[: round(fraction * count)]
    result = list(shown)
    for index in wrong:
        others = [e for e in pool if e[1] not in (shown[index][1], query[1]) and e[-1] != shown[index][-1]]
        other = others[int(random.integers(len(others)))]
        result[index] = (shown[index][0], *other[1:])
    return result

"""Chain of thought on a real model: two-step tasks with the intermediate step in the demonstrations, or without it.

With steps the model writes the step itself (greedily, as Algorithm 2 of chain-of-thought does) and then the answer. In a
fraction of the demonstrations the step is wrong and the answer follows from the wrong step; the same demonstrations without
their steps are what the model sees otherwise. No demonstration has the query's own step.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.network import Answers
from iclab.language.prompts import draw
from iclab.language.words import TWO_STEP_TASKS, Example, Task, generator
from iclab.papers.language_model.asking import bench, recorded, require_effect, task_by_task, tasks
from iclab.papers.language_model.settings import STEP_TESTS, Settings

ERRORS = (0.0, 0.25, 0.5)
FORMS = ("steps", "direct")


def steps(lab: Lab) -> xr.Dataset:
    """Accuracy on two-step tasks with and without the intermediate step, against the fraction of erroneous demonstrations."""
    s: Settings = lab.settings
    one = bench(lab)
    between = one.model.tokens(one.separator)
    coordinates = {"form": FORMS, "errors": ERRORS, "task": TWO_STEP_TASKS, "prompt": range(s.step_prompts)}
    variables = {"right": "form errors task prompt", "step_right": "errors task prompt"}

    def ask(task: Task) -> dict[str, list]:
        queries = task.test[: s.step_prompts]
        targets, middles = one.targets(queries), [one.token(query[1]) for query in queries]
        direct: list[Answers] = []
        first: list[Answers] = []
        second: list[Answers] = []
        for errors in ERRORS:
            draws = [generator("steps", task.name, number) for number in range(len(queries))]
            pairs = [
                (erroneous(random, task.held_out, query, s.step_demonstrations, errors), query[:1])
                for random, query in zip(draws, queries, strict=True)
            ]
            stepwise = [one.prompt(lines, query).tokens for lines, query in pairs]
            short = [one.prompt([(line[0], line[-1]) for line in lines], query).tokens for lines, query in pairs]
            direct.append(one.model.ask(short, targets))
            first.append(one.model.ask(stepwise, middles))
            written = [(*prompt, int(step), *between) for prompt, step in zip(stepwise, first[-1].top, strict=True)]
            second.append(one.model.ask(written, targets))
            if errors > 0:
                require_effect("erroneous demonstrations", direct[0].log_probability, direct[-1].log_probability)
        right = {"steps": second, "direct": direct}
        return {
            "right": [[answers.right for answers in right[form]] for form in FORMS],
            "step_right": [answers.right for answers in first],
        }

    def compute() -> dict[str, np.ndarray]:
        return task_by_task(lab, "two steps", variables, tasks(one, TWO_STEP_TASKS, STEP_TESTS), ask)

    return recorded(lab, coordinates, variables, compute)


def erroneous(
    random: np.random.Generator, pool: tuple[Example, ...], query: Example, count: int, fraction: float
) -> list[Example]:
    """Demonstrations, a fraction of them with the step and the answer of another example. Which ones are drawn, and in which
    order, does not depend on the fraction.
    """
    shown = draw(random, pool, count, query, distinct=1)
    result = list(shown)
    for index in random.permutation(count)[: round(fraction * count)]:
        others = [e for e in pool if e[1] not in (shown[index][1], query[1]) and e[-1] != shown[index][-1]]
        other = others[int(random.integers(len(others)))]
        result[index] = (shown[index][0], *other[1:])
    return result

"""Chain of thought on a real model: two-step tasks with the intermediate step in the demonstrations, or without it.

With steps the model writes the step itself (greedily, as Algorithm 2 of chain-of-thought does) and then the answer. In
a fraction of the demonstrations the step is wrong and the answer follows from the wrong step; the same demonstrations
without their steps are what the model sees otherwise. No demonstration has the query's own step.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.authoring import Lab
from iclab.language.network import Answers
from iclab.language.prompts import draw
from iclab.language.study.asking import Found, bench, require_effect, task_by_task, tasks
from iclab.language.study.settings import STEP_TESTS
from iclab.language.words import TWO_STEP_TASKS, Example, Task, generator

ERRORS = (0.0, 0.25, 0.5)
FORMS = ("steps", "direct")


def steps(lab: Lab) -> xr.Dataset:
    """Accuracy on two-step tasks, with the step shown and without, against the fraction of erroneous demonstrations."""
    one = bench(lab.settings)
    s, model, between = one.settings, one.model, one.model.tokens(one.separator)
    axes = {"form": FORMS, "errors": ERRORS, "task": TWO_STEP_TASKS, "prompt": range(s.step_prompts)}
    variables = {"right": "form errors task prompt", "step_right": "errors task prompt"}

    def ask(task: Task) -> Found:
        queries = task.test[: s.step_prompts]
        targets, middles = one.targets(queries), [one.token(query[1]) for query in queries]
        found: dict[str, list[Answers]] = {"direct": [], "first": [], "steps": []}
        for errors in ERRORS:
            pairs = []
            for number, query in enumerate(queries):
                random = generator("steps", task.name, number)
                pairs.append((erroneous(random, task.held_out, query, s.step_demonstrations, errors), query[:1]))
            stepwise = [one.prompt(lines, query).tokens for lines, query in pairs]
            short = [one.prompt([(line[0], line[-1]) for line in lines], query).tokens for lines, query in pairs]
            found["direct"].append(model.ask(short, targets))
            first = model.ask(stepwise, middles)
            written = [(*prompt, int(step), *between) for prompt, step in zip(stepwise, first.top, strict=True)]
            found["first"].append(first)
            found["steps"].append(model.ask(written, targets))
            if errors:
                clean, changed = found["direct"][0], found["direct"][-1]
                require_effect("erroneous demonstrations", clean.log_probability, changed.log_probability)
        right = {name: [given.right for given in answers] for name, answers in found.items()}
        return {"right": [right[form] for form in FORMS], "step_right": right["first"]}

    return task_by_task(lab, "two steps", axes, variables, tasks(one, TWO_STEP_TASKS, STEP_TESTS), ask)


def erroneous(
    random: np.random.Generator, pool: tuple[Example, ...], query: Example, count: int, fraction: float
) -> list[Example]:
    """Demonstrations, a fraction of them with the step and the answer of another example. Which are drawn, and in which
    order, does not depend on the fraction.
    """
    shown = draw(random, pool, count, query, distinct=1)
    result = list(shown)
    for index in random.permutation(count)[: round(fraction * count)]:
        others = [e for e in pool if e[1] not in (shown[index][1], query[1]) and e[-1] != shown[index][-1]]
        result[index] = (shown[index][0], *others[int(random.integers(len(others)))][1:])
    return result

"""A statement from another paper: task diversity decides whether in-context learning generalises.

Raventós, Paul, Chen, Ganguli (NeurIPS 2023): a Transformer that is trained on a finite set of T regression tasks
answers new tasks badly while T is small, whatever it does on the tasks it has seen; with T large enough it answers new
ones as ridge regression does. They train deep Transformers; here it is one layer of linear attention. It
cannot know single tasks, but for T < d it can know the space that they span.

    iclab reproduce examples/05_another_paper.py
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from iclab.authoring import (
    BaseWorld,
    Part,
    Recipe,
    Statement,
    Training,
    above,
    below,
    errors,
    make_prompt,
    measured,
    regression,
    static,
)
from iclab.models.linear_transformer import LinearTransformerSettings

TASKS = (1, 2, 4, 8, 64)
d, LENGTH = 5, 20


class FiniteTasks(BaseWorld):
    """y = wᵀx with w one of the first `count` of fixed tasks, or a new one drawn from N(0, I) for every prompt
    (`fresh`).
    """

    pool: jax.Array
    count: int = 1
    fresh: bool = False
    length: int = static(LENGTH)

    def sample(self, key, index):
        """One prompt."""
        drawn = jax.random.normal(key, (self.length + 2, d))
        x, number = drawn[:-1], jax.random.randint(jax.random.fold_in(key, 1), (), 0, self.count)
        task = jnp.where(self.fresh, drawn[-1], jnp.asarray(self.pool)[number])
        y = x @ task
        return make_prompt(jnp.column_stack([x, y.at[-1].set(0.0)]), target=y[-1], label=y[:-1])


@dataclasses.dataclass(frozen=True)
class Settings:
    """The length of training."""

    step_size: float = 0.02
    steps: int = 1000
    prompts: int = 4000


settings = {
    "smoke": Settings(steps=10, prompts=500),
    "quick": Settings(),
    "paper": Settings(steps=10_000, prompts=40_000),
}


def world(seed, count, fresh):
    """Every seed has its own pool of tasks."""
    pool = np.random.default_rng(seed).standard_normal((max(TASKS), d)).astype(np.float32)
    return FiniteTasks(pool, np.int32(count), np.bool_(fresh))


def experiment(lab):
    """Train on 1 to 64 tasks, test on the same tasks and on new ones."""
    s, train = lab.settings, Training(lab.settings.step_size, batch=64, optimiser="adam")
    model = LinearTransformerSettings(mean=True)

    def recipe(count, seed):
        return Recipe(world(seed, count, False), model, train)

    recipes = {str(count): functools.partial(recipe, count) for count in TASKS}
    trained = lab.train("main", recipes, s.steps, loss=regression)
    where = lambda setting, seed, domain: world(seed, int(setting), domain == "new")  # noqa: E731
    found = lab.evaluate(trained, "test", errors(regression), where, {"domain": ("seen", "new")}, s.prompts)
    return found.rename(setting="tasks").assign_coords(tasks=list(TASKS))


error = measured("experiment", "squared_error")  # an answer of 0 has d = 5 on new tasks
seen, new = error.sel(domain="seen"), error.sel(domain="new")

statements = [
    Statement(
        "few-tasks-fail",
        "Raventós et al. 2023, Figure 2, small T",
        "Trained on one task it is hardly better than an answer of 0 on new ones, though good on its own.",
        (
            Part("error on new tasks / d, one task", new.sel(tasks=1) / d, above(0.7)),
            Part("error on the task it has seen / d", seen.sel(tasks=1) / d, below(0.3)),
        ),
    ),
    Statement(
        "many-tasks-generalise",
        "Raventós et al. 2023, Figure 2, large T",
        "Trained on 64 tasks it is as good on new tasks as on those it has seen.",
        (
            Part("error on new tasks / error on seen tasks", new.sel(tasks=64) / seen.sel(tasks=64), below(1.5)),
            Part("error on new tasks / d, 64 tasks", new.sel(tasks=64) / d, below(0.4)),
        ),
    ),
]

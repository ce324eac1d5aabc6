"""Kernel regression with a learned width: your own model in a world of iclab."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from iclab.authoring import UNIT, Part, Recipe, Statement, Training, below, errors, hinge, measured, static
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks


class Kernel(eqx.Module):
    """F = Σ_i y_i softmax_i(-‖A x_i - A x_query‖²): labels weighted by how near A x_i is to A x_query.

    Its arrays are trained.
    """

    metric: jax.Array
    features: int = static(0)

    def __call__(self, prompt):
        """The answer to ONE prompt, and a trace of what is worth a look. The model must not see absent tokens."""
        tokens = prompt.tokens()
        seen = prompt.present.at[-1].set(False)  # neither padding nor the query itself
        inputs = tokens[:, : self.features] @ self.metric.T
        distances = jnp.sum((inputs - inputs[-1]) ** 2, axis=1)
        attention = jax.nn.softmax(jnp.where(seen, -distances, -jnp.inf))
        return attention @ tokens[:, self.features], {"attention": attention[:-1]}


class KernelSettings(eqx.Module):
    """Sizes and initialisation; `init` makes the model that a world needs."""

    initial_scale: float = 0.1
    width: int = static(8)

    def init(self, key, world):
        """A random metric."""
        weights = self.initial_scale * jax.random.normal(key, (self.width, world.feature_columns))
        return Kernel(weights, world.feature_columns)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Every setting here can be changed with --set and swept with --grid."""

    matching_fraction: float = 0.8
    step_size: float = 1.0
    width: int = 8
    steps: int = 300
    prompts: int = 2000


settings = {"smoke": Settings(steps=5, prompts=250), "quick": Settings(), "paper": Settings(steps=3000, prompts=20_000)}


def world(s):
    """Binary classification by one of four patterns."""
    return Classification(
        orthogonal_patterns(8, relevant=4, irrelevant=4, strength=3.0), cyclic_tasks(4),
        label_embedding=np.array([1.0]), matching_fraction=s.matching_fraction, context_length=16,
    )  # fmt: skip


def experiment(lab):
    """Train one model per seed and test it on fresh prompts."""
    s = lab.settings
    recipe = Recipe(world(s), KernelSettings(width=s.width), Training(s.step_size, batch=64))
    trained = lab.train("main", recipe, s.steps, loss=hinge)
    tested = lab.evaluate(trained, "test", errors(hinge), world(s), prompts=s.prompts)
    return tested.assign(training_loss=trained.history["training_loss"])


statements = [
    Statement(
        "learns",
        "my note",
        "The learned metric sees the relevant patterns: fewer than one mistake in ten.",
        (Part("0-1 error", measured("experiment", "error"), below(0.1), UNIT),),
    )
]

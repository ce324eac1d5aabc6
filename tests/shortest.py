"""One layer of linear attention does regression in context."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp

from iclab.authoring import BaseWorld, Part, Recipe, Statement, Training, below, make_prompt, measured, regression
from iclab.evaluation import errors


@dataclasses.dataclass(frozen=True)
class Settings:
    noise: float = 0.1
    steps: int = 300


settings = Settings()


class Regression(BaseWorld):
    noise: float = 0.1

    def sample(self, key, index):
        x_key, w_key, noise_key = jax.random.split(key, 3)
        x, w = jax.random.normal(x_key, (21, 3)), jax.random.normal(w_key, 3)
        y = x @ w + self.noise * jax.random.normal(noise_key, 21)
        return make_prompt(jnp.column_stack([x, y.at[-1].set(0.0)]), target=y[-1], label=y[:-1])


class Attention(eqx.Module):
    weights: jax.Array

    def __call__(self, prompt):
        tokens = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)
        scores = tokens[:-1] @ self.weights @ tokens[-1]
        return scores @ tokens[:-1, -1] / jnp.sum(prompt.present[:-1]), {"scores": scores}


class AttentionSettings(eqx.Module):
    def init(self, key, world):
        return Attention(jnp.zeros((world.columns, world.columns)))


def experiment(lab):
    """Train, then test on fresh prompts."""
    world = Regression(lab.settings.noise)
    trained = lab.train("main", Recipe(world, AttentionSettings(), Training(0.02)), lab.settings.steps, loss=regression)
    return lab.evaluate(trained, "test", errors(regression), world)


words = "The error falls below a third of the variance of the answers, 3."
error = Part("squared error", measured("experiment", "squared_error"), below(1))
statements = [Statement("learns", "a note", words, (error,))]

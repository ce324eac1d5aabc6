"""Linear regression in context: one layer of linear attention beside ridge regression and least squares.

Known: one trained layer takes one step of gradient descent, of a size that fits the length N it was trained on (von
Oswald et al. 2022; Ahn et al. 2023). Zhang, Frei, Bartlett (2023) give it: with x, w ~ N(0, I_d) and noise σ the layer
answers (γ/n) Σ_i y_i x_i·x with γ = 1/(1 + (d+1+σ²)/N), so that at test length n, where E (XᵀX/n)² = (1 + (d+1)/n) I,
its error is

    R(n) = d (1 - 2γ + γ² (1 + (d+1)/n)) + γ² σ² d/n + σ².

Ridge regression with penalty σ² is the best that anybody can do.   iclab reproduce examples/03_regression.py
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from iclab.authoring import (
    BaseWorld,
    Cosine,
    Part,
    Recipe,
    Statement,
    Training,
    above,
    apply,
    below,
    make_prompt,
    measured,
    regression,
    static,
)
from iclab.models.linear_transformer import LinearTransformerSettings

d, N, LENGTHS = 5, 20, (5, 10, 20, 40, 80)


@dataclasses.dataclass(frozen=True)
class Settings:
    """σ, and how long is trained and tested."""

    sigma: float = 0.5
    steps: int = 1500
    prompts: int = 10_000


settings = {
    "smoke": Settings(steps=20, prompts=500),
    "quick": Settings(),
    "paper": Settings(steps=10_000, prompts=100_000),
}


class Regression(BaseWorld):
    """y = wᵀx + noise."""

    length: int = N
    sigma: float = 0.5
    longest: int = static(max(LENGTHS))

    def sample(self, key, index):
        """One prompt; the query shows no answer."""
        drawn = jax.random.normal(key, (self.longest + 2, d + 1))
        x, w, noise = drawn[:-1, :d], drawn[-1, :d], drawn[:-1, d]
        y = x @ w + self.sigma * noise
        tokens = jnp.column_stack([x, y.at[-1].set(0.0)])
        return make_prompt(tokens, target=y[-1], label=y[:-1], present=jnp.arange(self.longest) < self.length)


@functools.cache
def compared(sigma):
    """The squared errors of three fits on one prompt."""

    def measure(model, prompt):
        tokens = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)
        x, y, query = tokens[:-1, :d], tokens[:-1, d], tokens[-1, :d]
        fitted = {
            "attention": model(prompt)[0],
            "ridge": query @ jnp.linalg.solve(x.T @ x + sigma**2 * jnp.eye(d), x.T @ y),
            "least_squares": query @ jnp.linalg.pinv(x.T @ x, hermitian=True) @ x.T @ y,
        }
        return {name: (answer - prompt.target) ** 2 for name, answer in fitted.items()}

    return measure


def experiment(lab):
    """Train at length 20, test at other lengths, beside ridge regression, least squares and the formula."""
    s, train = lab.settings, Training(0.02, batch=256, optimiser="adam", schedule=Cosine(0.0, lab.settings.steps))
    world = Regression(N, s.sigma, longest=N)
    trained = lab.train("main", Recipe(world, LinearTransformerSettings(mean=True), train), s.steps, loss=regression)
    at = lambda setting, seed, length: Regression(length, s.sigma)  # noqa: E731
    tested = lab.evaluate(trained, "test", compared(s.sigma), at, {"length": LENGTHS}, s.prompts)
    gamma, n = 1 / (1 + (d + 1 + s.sigma**2) / N), xr.DataArray(np.array(LENGTHS), dims="length")
    risk = d * (1 - 2 * gamma + gamma**2 * (1 + (d + 1) / n)) + gamma**2 * s.sigma**2 * d / n + s.sigma**2
    return tested.assign(theory=risk + 0 * tested["attention"]).to_dataarray("fit", "squared_error").to_dataset()


errors = measured("experiment", "squared_error")


def over(other):
    """The error of attention over that of another fit."""
    return apply(lambda e: e.sel(fit="attention", drop=True) / e.sel(fit=other, drop=True), errors)


statements = [
    Statement("one-step", "Zhang, Frei, Bartlett 2023",
              "Its error is that of one fitted step of gradient descent, at every length.",
              (Part("largest |measured / R(n) - 1|", abs(over("theory") - 1).max("length"), below(0.1)),)),
    Statement("not-ridge", "von Oswald et al. 2022; Garg et al. 2022",
              "With more examples than d it stays behind ridge regression, the more so the longer the context.",
              (Part("error / error of ridge, 80 examples", over("ridge").sel(length=80), above(2)),
               Part("the same, smallest over lengths", over("ridge").min("length"), above(1)))),
]  # fmt: skip

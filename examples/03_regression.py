"""Linear regression in context: one layer of linear attention beside ridge regression and least squares.

Known: one trained layer takes one step of gradient descent, of a size that fits the length N it was trained on (von
Oswald et al. 2022; Ahn et al. 2023). Zhang, Frei, Bartlett (2023) give it: with x, w ~ N(0, I_d) and noise σ the layer
answers (γ/n) Σ_i y_i x_i·x with γ = 1/(1 + (d+1+σ²)/N), so that at test length n, where E (XᵀX/n)² = (1 + (d+1)/n) I,
its error is

    R(n) = d (1 - 2γ + γ² (1 + (d+1)/n)) + γ² σ² d/n + σ².

Ridge regression with penalty σ² is optimal.   iclab reproduce examples/03_regression.py
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import iclab.authoring as ic
from iclab.models.linear_transformer import LinearTransformerSettings

d, N, LENGTHS = 5, 20, (5, 10, 20, 40, 80)


@dataclasses.dataclass(frozen=True)
class Settings:
    """σ, and the lengths of training and test."""

    sigma: float = 0.5
    steps: int = 1500
    prompts: int = 10_000


settings = {"smoke": Settings(0.5, 20, 500), "quick": Settings(), "paper": Settings(0.5, 10_000, 100_000)}


class Regression(ic.BaseWorld):
    """y = wᵀx + noise."""

    length: int = N
    sigma: float = 0.5
    longest: int = ic.static(max(LENGTHS))

    def sample(self, key, index):
        """One prompt; the query shows no answer."""
        drawn = jax.random.normal(key, (self.longest + 2, d + 1))
        x, w, noise = drawn[:-1, :d], drawn[-1, :d], drawn[:-1, d]
        y = x @ w + self.sigma * noise
        tokens = jnp.column_stack([x, y.at[-1].set(0.0)])
        return ic.make_prompt(tokens, target=y[-1], label=y[:-1], present=jnp.arange(self.longest) < self.length)


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
    s = lab.settings
    train = ic.Training(0.02, batch=256, optimiser="adam", schedule=ic.Cosine(0.0, s.steps))
    recipe = ic.Recipe(Regression(N, s.sigma, longest=N), LinearTransformerSettings(mean=True), train)
    trained = lab.train("main", recipe, s.steps, loss=ic.regression)
    at = lambda setting, seed, length: Regression(length, s.sigma)  # noqa: E731
    tested = lab.evaluate(trained, "test", compared(s.sigma), at, {"length": LENGTHS}, s.prompts)
    gamma, n = 1 / (1 + (d + 1 + s.sigma**2) / N), xr.DataArray(np.array(LENGTHS), dims="length")
    risk = d * (1 - 2 * gamma + gamma**2 * (1 + (d + 1) / n)) + gamma**2 * s.sigma**2 * d / n + s.sigma**2
    return tested.assign(theory=risk + 0 * tested["attention"]).to_dataarray("fit", "squared_error").to_dataset()


errors = ic.measured("experiment", "squared_error")
attention = errors.sel(fit="attention")
theory, ridge = attention / errors.sel(fit="theory"), attention / errors.sel(fit="ridge")

statements = [
    ic.Statement("one-step", "Zhang, Frei, Bartlett 2023",
                 "Its error is that of one fitted step of gradient descent, at every length.",
                 (ic.Part("largest |measured / R(n) - 1|", abs(theory - 1).max("length"), ic.below(0.1)),)),
    ic.Statement("not-ridge", "von Oswald et al. 2022; Garg et al. 2022",
                 "With more examples than d it stays behind ridge regression, the more so the longer the context.",
                 (ic.Part("error / error of ridge, 80 examples", ridge.sel(length=80), ic.above(2)),
                  ic.Part("the same, smallest over lengths", ridge.min("length"), ic.above(1)))),
]  # fmt: skip

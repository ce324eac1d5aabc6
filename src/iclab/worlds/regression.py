"""Linear regression in context: y_i = wᵀx_i + noise, the query last; the world of Zhang, Frei, Bartlett (2023) and
others.

Contexts are drawn from N(0, Λ), the query from N(0, Λ_q), the task from N(m, T). Training has Λ_q = Λ and w ~ N(0, I);
the shifts that such papers ask about are other values of these settings: other tasks (`task_mean`, `task_covariance`),
another query (`query_covariance`), other covariates (`covariance`).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from iclab.errors import require, require_finite, require_positive
from iclab.prompts import Prompt, make_prompt
from iclab.randomness import normals


class Regression(eqx.Module):
    """The world in R^d, checked when it is built. A covariance is a matrix, its diagonal, or one number for all of it.

    | word | letter |
    |---|---|
    | covariate_root, query_root, task_root | Λ^½, Λ_q^½, T^½ |
    | task_mean | m |
    | length | N in training, M in tests; traced, at most `maximum_length` |
    | noise | the standard deviation of y given x |
    """

    covariate_root: Float[Any, "*members dimension dimension"]
    query_root: Float[Any, "*members dimension dimension"]
    task_root: Float[Any, "*members dimension dimension"]
    task_mean: Float[Any, "*members dimension"]
    length: Int[Any, "*members"]
    noise: Float[Any, "*members"]
    maximum_length: int = eqx.field(static=True)

    def __init__(
        self,
        dimension: int,
        length: int,
        *,
        maximum_length: int | None = None,
        covariance: Any = 1.0,
        query_covariance: Any = None,
        task_covariance: Any = 1.0,
        task_mean: Any = 0.0,
        noise: float = 0.0,
    ) -> None:
        longest = length if maximum_length is None else maximum_length
        require_positive(dimension=dimension, length=length)
        require(length <= longest, f"length is {length}, above maximum_length {longest}.")
        require_finite(noise=noise, task_mean=task_mean)
        require(noise >= 0, f"noise is {noise}; it must not be negative.")
        self.covariate_root = _root("covariance", covariance, dimension)
        own = query_covariance is not None
        self.query_root = _root("query_covariance", query_covariance, dimension) if own else self.covariate_root
        self.task_root = _root("task_covariance", task_covariance, dimension)
        self.task_mean = np.broadcast_to(np.asarray(task_mean, np.float32), (dimension,))
        self.length = np.int32(length)
        self.noise = np.float32(noise)
        self.maximum_length = longest

    @property
    def feature_columns(self) -> int:
        """d."""
        return self.task_mean.shape[-1]

    @property
    def columns(self) -> int:
        """d + 1: the last column shows y."""
        return self.feature_columns + 1

    def letters(self) -> dict[str, np.ndarray]:
        """Nothing to be saved beside the models."""
        return {}

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt; contexts beyond its length are absent."""
        drawn = normals(key, (self.maximum_length + 2, self.columns))
        normal, noise = drawn[:, :-1], self.noise * drawn[:-1, -1]
        task = self.task_mean + normal[-1] @ self.task_root
        x = jnp.concatenate([normal[:-2] @ self.covariate_root, normal[-2:-1] @ self.query_root])
        y = x @ task + noise
        present = jnp.arange(self.maximum_length) < self.length
        return make_prompt(jnp.column_stack([x, y.at[-1].set(0.0)]), target=y[-1], label=y[:-1], present=present)


def _root(name: str, covariance: Any, dimension: int) -> np.ndarray:
    """The symmetric square root of a covariance."""
    given = np.asarray(covariance, float)
    require(bool(np.isfinite(given).all()), f"{name} is {covariance}; it must be finite.")
    matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given, (dimension,)))
    fits = matrix.shape == (dimension, dimension)
    require(fits, f"{name} has the shape {given.shape}; {dimension} numbers or a {dimension} × {dimension} matrix fit.")
    require(bool(np.allclose(matrix, matrix.T)), f"{name} is not symmetric.")
    values, vectors = np.linalg.eigh(matrix)
    require(bool(values.min() >= -1e-9 * max(1.0, values.max())), f"{name} is {covariance}; it must not be negative.")
    return ((vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T).astype(np.float32)

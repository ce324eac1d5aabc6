"""Classical classifiers with the context as their training set (Fig. 4 of nonlinear-icl).

Nearest neighbours and logistic regression are fitted to all prompts at once, and answer as scikit-learn's do, a context
at a time, in a seventh of the time; support vector machines are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.svm import SVC

from iclab.worlds import World

Classifier = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""The labels of queries (prompt × d_X) after the contexts (prompt × token × d_X) and their labels ±1 were fitted."""


def support_vectors(kernel: str) -> Classifier:
    """A support vector machine of scikit-learn with its default settings; a context of one class predicts that
    class.
    """

    def one(inputs: np.ndarray, labels: np.ndarray, query: np.ndarray) -> float:
        if np.all(labels == labels[0]):
            return float(labels[0])
        return float(SVC(kernel=kernel).fit(inputs, labels).predict(query[None])[0])

    return lambda inputs, labels, queries: np.array([one(*each) for each in zip(inputs, labels, queries, strict=True)])


def nearest(count: int) -> Classifier:
    """The label that most of the nearest contexts have; with fewer contexts, that most of all have. A draw is -1, as in
    scikit-learn.
    """

    def answer(inputs: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> np.ndarray:
        distance = np.linalg.norm(inputs.astype(float) - queries[:, None], axis=2)
        near = np.argsort(distance, axis=1, kind="stable")[:, :count]
        return np.where(np.take_along_axis(labels, near, axis=1).sum(axis=1) > 0, 1.0, -1.0)

    return answer


def logistic(inputs: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Logistic regression as scikit-learn defines it (½‖w‖² + Σ log(1 + e^(-y (w·x + b)))), all prompts at once by
    Newton's method; a context of one class predicts that class.
    """
    tokens, both = np.ones((*labels.shape, 1)), np.ptp(labels, axis=1) > 0
    design, answers = np.concatenate([inputs, tokens], axis=2).astype(float), labels[:, 0].astype(float)
    design, signs = design[both], labels[both].astype(float)
    ridge = np.diag([*np.ones(inputs.shape[2]), 0.0])
    weights = np.zeros((len(design), design.shape[2]))
    for _ in range(NEWTON):
        wrong = expit(-signs * np.einsum("ptc,pc->pt", design, weights))
        slope = weights @ ridge - np.einsum("ptc,pt->pc", design, signs * wrong)
        curved = ridge + np.einsum("ptc,pt,ptd->pcd", design, wrong * (1 - wrong), design, optimize=True)
        weights = weights - np.linalg.solve(curved, slope[:, :, None])[:, :, 0]
    asked = np.concatenate([queries, tokens[:, 0]], axis=1)[both]
    answers[both] = np.where(np.einsum("pc,pc->p", asked, weights) > 0, 1.0, -1.0)
    return answers


NEWTON = 12  # steps; each squares what is left of the error
BASELINES: dict[str, Classifier] = {
    "logistic": logistic,
    "SVM linear": support_vectors("linear"),
    "SVM Gaussian": support_vectors("rbf"),
    "1-NN": nearest(1),
    "3-NN": nearest(3),
}


@jax.jit
def _draw(world: Any, keys: Key[Array, " prompts"]) -> tuple[Array, Array, Array]:
    """The world is an argument, so that worlds of the same shapes share one program."""

    def one(index: Array, prompt_key: Key[Array, ""]) -> tuple[Array, Array, Array]:
        prompt = world.sample(prompt_key, index)
        return prompt.tokens()[:, : world.feature_columns], prompt.label, prompt.target

    return jax.vmap(one)(jnp.arange(len(keys)), keys)


def contexts(world: World, key: Key[Array, ""], prompts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fresh prompts as arrays: inputs (prompt × token × d_X, query last), labels shown, targets."""
    inputs, labels, targets = (np.asarray(part) for part in _draw(world, jax.random.split(key, prompts)))
    return inputs, labels, targets


def _errors_of_sample(
    inputs: np.ndarray, labels: np.ndarray, targets: np.ndarray, lengths: Sequence[int]
) -> np.ndarray:
    return np.array(
        [
            [np.mean(fit(inputs[:, :length], labels[:, :length], inputs[:, -1]) != targets) for length in lengths]
            for fit in BASELINES.values()
        ]
    )


def baseline_errors(
    samples: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], lengths: Sequence[int], jobs: int = -1
) -> np.ndarray:
    """0-1 errors (sample × baseline × length), each prompt cut to its first `length` contexts. Uses all cores."""
    found = Parallel(n_jobs=jobs)(delayed(_errors_of_sample)(*sample, lengths) for sample in samples)
    return np.stack(list(found))

"""Classical classifiers with the context as their training set (Fig. 4 of nonlinear-icl)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from iclab.worlds import World

BASELINES: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=1000),
    "SVM linear": lambda: SVC(kernel="linear"),
    "SVM Gaussian": lambda: SVC(kernel="rbf"),
    "1-NN": lambda: KNeighborsClassifier(1),
    "3-NN": lambda: KNeighborsClassifier(3),
}


def predict(name: str, inputs: np.ndarray, labels: np.ndarray, query: np.ndarray) -> float:
    """The baseline's label for the query after fitting the context; a context of one class predicts that class.

    k-NN with fewer than k examples uses all there are.
    """
    if np.all(labels == labels[0]):
        return float(labels[0])
    classifier = BASELINES[name]()
    if isinstance(classifier, KNeighborsClassifier):
        classifier.n_neighbors = min(classifier.n_neighbors, len(labels))
    return float(classifier.fit(inputs, labels).predict(query[None])[0])


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
    wrong = np.zeros((len(BASELINES), len(lengths)))
    for prompt in range(len(targets)):
        for i, name in enumerate(BASELINES):
            for j, length in enumerate(lengths):
                answer = predict(name, inputs[prompt, :length], labels[prompt, :length], inputs[prompt, -1])
                wrong[i, j] += answer != targets[prompt]
    return wrong / len(targets)


def baseline_errors(
    samples: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], lengths: Sequence[int], jobs: int = -1
) -> np.ndarray:
    """0-1 errors (sample × baseline × length), each prompt cut to its first `length` contexts. Uses all cores."""
    found = Parallel(n_jobs=jobs)(delayed(_errors_of_sample)(*sample, lengths) for sample in samples)
    return np.stack(list(found))

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import small
from iclab import randomness
from iclab.baselines import BASELINES, baseline_errors, contexts
from marks import mostly_slow

LEARNERS = {
    "logistic": lambda count: LogisticRegression(max_iter=1000, tol=1e-8),
    "SVM linear": lambda count: SVC(kernel="linear"),
    "SVM Gaussian": lambda count: SVC(kernel="rbf"),
    "1-NN": lambda count: KNeighborsClassifier(1),
    "3-NN": lambda count: KNeighborsClassifier(min(3, count)),
}


def predict(name, inputs, labels, query):
    return BASELINES[name](inputs[None], labels[None], query[None])[0]


@pytest.mark.parametrize("name", mostly_slow(BASELINES, kept=("logistic", "3-NN")))
def test_every_baseline_answers_as_scikit_learn_does(name):
    inputs, labels, _ = contexts(small.world(), randomness.key(1), 100)
    for length in (2, 5, 10):
        answers = BASELINES[name](inputs[:, :length], labels[:, :length], inputs[:, -1])
        for x, y, query, answer in zip(inputs[:, :length], labels[:, :length], inputs[:, -1], answers, strict=True):
            if np.ptp(y):
                assert answer == LEARNERS[name](length).fit(x, y).predict(query[None])[0]


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_solves_a_separable_context(name):
    random = np.random.default_rng(0)
    labels = np.repeat([1.0, -1.0], 10)
    inputs = labels[:, None] * np.array([3.0, 0.0]) + 0.1 * random.normal(size=(20, 2))
    assert predict(name, inputs, labels, np.array([3.0, 0.0])) == 1.0
    assert predict(name, inputs, labels, np.array([-3.0, 0.0])) == -1.0


@pytest.mark.parametrize("name", BASELINES)
def test_a_context_of_one_class_predicts_that_class(name):
    assert predict(name, np.eye(3), np.array([-1.0, -1.0, -1.0]), np.ones(3)) == -1.0


def test_baselines_see_the_contexts_of_the_world_and_get_better_with_length():
    inputs, labels, targets = contexts(small.world(matching_fraction=1.0), randomness.key(0), 40)
    assert inputs.shape == (40, 11, 8) and labels.shape == (40, 11) and set(targets) == {-1.0, 1.0}
    wrong = baseline_errors([(inputs, labels, targets)], [1, 10], jobs=1)
    assert wrong.shape == (1, 5, 2)
    assert np.all(wrong[0, :, 1] < wrong[0, :, 0])

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import small
from iclab import randomness
from iclab.errors import InputError
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.outliers import LabelRule, Outliers, Placement
from iclab.worlds.tasks import cyclic_tasks

PATTERNS = orthogonal_patterns(10, 4, 3, 3.0, outliers=2)


def world(settings, *, length=10, maximum=10, tasks=None):
    tasks = cyclic_tasks(4, 2) if tasks is None else tasks
    return Classification(
        PATTERNS, tasks, label_embedding=np.ones(1), matching_fraction=1.0, context_length=length, maximum_length=maximum,
        outliers=settings,
    )  # fmt: skip


def draw(made, count=4000):
    return jax.jit(jax.vmap(made.sample))(jax.random.split(randomness.key(0), count), jnp.arange(count))


def test_a_bernoulli_fraction_is_binomial_and_an_exact_one_is_exact():
    by_chance = np.asarray(draw(world(Outliers(0.3, 2.0))).outlier).sum(axis=1)
    counts = np.bincount(by_chance, minlength=11)[:8]
    expected = scipy.stats.binom(10, 0.3).pmf(np.arange(8))
    assert scipy.stats.chisquare(counts, counts.sum() * expected / expected.sum()).pvalue > 1e-4
    exact = np.asarray(draw(world(Outliers(0.3, 2.0, exact=True)), 200).outlier).sum(axis=1)
    assert np.all(exact == 3)
    shorter = np.asarray(draw(world(Outliers(0.5, 2.0, exact=True), length=6), 200).outlier)
    assert np.all(shorter.sum(axis=1) == 3) and not shorter[:, 6:].any()


def test_the_traced_path_and_the_fast_path_choose_the_same_examples():
    fast, traced = Outliers(0.4, 2.0), Outliers(0.4, 2.0, stackable=True)
    assert fast.anywhere and not traced.anywhere
    assert np.array_equal(draw(world(fast), 100).outlier, draw(world(traced), 100).outlier)


@pytest.mark.parametrize(
    ("placement", "places"), [(Placement.farthest, slice(0, 5)), (Placement.closest, slice(5, 10))]
)
def test_placed_outliers_sit_where_they_should(placement, places):
    flags = np.asarray(draw(world(Outliers(0.5, 2.0, placement=placement, exact=True)), 50).outlier)
    assert np.all(flags[:, places]) and np.all(flags.sum(axis=1) == 5)


def test_random_places_are_uniform():
    flags = np.asarray(draw(world(Outliers(0.3, 2.0, exact=True))).outlier)[:, :10]
    assert scipy.stats.chisquare(flags.sum(axis=0)).pvalue > 1e-4


def test_tokens_and_truth_agree_and_the_query_never_carries_an_outlier():
    prompts = draw(world(Outliers(0.5, 2.0)), 200)
    tokens = np.asarray(jax.vmap(lambda prompt: prompt.tokens())(prompts))
    strength = np.abs(tokens[:, :, :10] @ PATTERNS.outliers.T).sum(axis=2)
    assert np.array_equal(strength > 1.0, np.asarray(prompts.outlier))
    assert np.allclose(strength[np.asarray(prompts.outlier)], 2.0, atol=1e-5)
    assert not np.asarray(prompts.outlier)[:, -1].any()


def task_labels(prompts):
    """With the single task (0, 1): +1 for pattern 0, -1 for pattern 1."""
    return np.where(np.asarray(prompts.pattern) == 0, 1.0, -1.0)[:, :-1]


def outlier_labels(rule, **more):
    prompts = draw(world(Outliers(0.5, 2.0, rule, **more), tasks=np.array([[0, 1]])))
    flags = np.asarray(prompts.outlier)[:, :-1]
    labels, task = np.asarray(prompts.label)[:, :-1], task_labels(prompts)
    assert np.array_equal(labels[~flags], task[~flags])
    return labels[flags], task[flags]


def test_label_rules():
    labels, task = outlier_labels(LabelRule.flip)
    assert np.array_equal(labels, -task)
    for target in (1.0, -1.0):
        assert np.all(outlier_labels(LabelRule.target, target_label=target)[0] == target)
    labels, task = outlier_labels(LabelRule.random)
    assert scipy.stats.binomtest(int((labels > 0).sum()), labels.size).pvalue > 1e-4
    assert abs(np.mean(labels * task)) < 0.03


def test_a_user_may_write_a_label_rule():
    """Labels are wrong with probability 0.2."""
    labels, task = outlier_labels(lambda task, uniform: jnp.where(uniform < 0.2, -task, task))
    assert abs(np.mean(labels != task) - 0.2) < 0.02


def test_saved_patterns_include_the_outliers():
    assert np.allclose(world(Outliers(0.5, 2.0)).letters()["outliers"], PATTERNS.outliers)
    assert "outliers" not in small.world().letters()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Outliers(1.0, 2.0), "outlier_fraction is 1.0; it must lie in"),
        (lambda: Outliers(-0.1, 2.0), "outlier_fraction is -0.1"),
        (lambda: Outliers(0.5, -2.0), "outlier_magnitude is -2.0"),
        (lambda: Outliers(0.5, 2.0, target_label=0.5), "target_label is 0.5"),
        (lambda: orthogonal_patterns(10, 4, 3, 3.0, outliers=4), "4 outlier patterns need 11 orthogonal directions"),
        (lambda: orthogonal_patterns(10, 4, 3, 3.0, outliers=-1), "outlier_patterns is -1"),
    ],
)
def test_bad_settings_are_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_outliers_without_directions_are_refused():
    bare = dataclasses.replace(PATTERNS, outliers=PATTERNS.outliers[:0])
    with pytest.raises(InputError, match="no outlier directions"):
        Classification(
            bare,
            cyclic_tasks(4),
            label_embedding=np.ones(1),
            matching_fraction=1.0,
            context_length=5,
            outliers=Outliers(0.5, 2.0),
        )

"""Architectures beside each other: ranks that intervals allow, effects of mechanisms, a study whose statements read it."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from iclab.authoring import Lab, Trained, measured
from iclab.errors import InputError
from iclab.library import library
from iclab.models.zoo import MIXERS
from iclab.runs.judging import dry_run
from iclab.studies import architectures
from iclab.studies.asking import (
    FACTORS,
    FLIPPED,
    best_step_size,
    by_factors,
    effect,
    factorial,
    in_outliers,
    matrix,
    unseen,
)
from iclab.worlds.recall import Recall

SEEDS = [0, 1, 2, 3]


def results(error, models):
    data = xr.DataArray(error, dims=("model", "seed"), coords={"model": models, "seed": SEEDS})
    return {"one": data.to_dataset(name="error")}


def test_ranks_are_claimed_only_where_intervals_do_not_overlap():
    spread = np.array([-0.01, 0.01, -0.005, 0.005])
    rows = np.array([[0.1], [0.11], [0.5], [0.9]]) + spread
    found = matrix(results(rows, ["a", "b", "c", "d"]), {"asked": measured("one", "error")}).isel(question=0)
    assert found["best_rank"].values.tolist() == [1, 1, 3, 4]
    assert found["worst_rank"].values.tolist() == [2, 2, 3, 4]


def test_a_model_that_diverged_has_no_rank_among_the_others():
    rows = np.array([[0.1] * 4, [np.nan] * 4, [0.5] * 4])
    found = matrix(results(rows, ["a", "b", "c"]), {"asked": measured("one", "error")}).isel(question=0)
    assert found["worst_rank"].sel(model=["a", "c"]).values.tolist() == [1, 2]
    assert not np.isfinite(found[["low", "best_rank", "worst_rank"]].sel(model="b").to_array()).any()


def test_an_effect_is_the_mean_difference_over_the_other_factors():
    """The error is 0.8 without a gate, 0.1 with one, and 0.2 lower with the delta rule: both effects are found."""
    names = list(factorial(0.2))
    error = [(0.1 if name.startswith("own") else 0.8) - 0.05 * name.endswith("key") for name in names]
    data = xr.Dataset({"error": (("model", "seed"), np.repeat(np.array(error)[:, None], 4, 1))}, {"model": names})
    there = {"mechanisms": by_factors(data)}
    found = {factor: effect(measured("mechanisms", "error"), factor).evaluate(there) for factor in FACTORS}
    assert found["gate"].values == pytest.approx(0.7)
    assert found["delta"].values == pytest.approx(0.05)
    assert found["decay"].values == pytest.approx(0.0)


def test_the_error_on_unseen_tasks_follows_from_all_and_trained_ones():
    """30 tasks, 18 of them trained: 0.1 on all and 0 on the trained ones is 0.25 on the others."""
    error = xr.DataArray([0.1, 0.0], dims="tasks", coords={"tasks": ["all", "trained"]})
    assert float(unseen(error.to_dataset(name="tasks_error"))) == pytest.approx(0.25)


def test_every_seed_takes_the_step_size_with_the_lowest_last_losses():
    loss = xr.DataArray(np.ones((2, 2, 4)), dims=("setting", "seed", "step"), coords={"setting": ["0.1", "1"]})
    loss[1, 0, -3:] = 0.5
    loss[1, 1, -1] = np.nan  # diverged at the end
    models, lost = {"w": np.arange(4.0)}, np.array([False, True, False, True])
    run = Trained("one", ("0.1", "1"), (0, 1), (), models, lost, loss.to_dataset(name="training_loss"))
    best = best_step_size(run).values
    assert best.tolist() == [1, 0]
    run = dataclasses.replace(run, recipes=("a0", "a1", "b0", "b1"))
    taken = run.chosen(best)
    assert taken.recipes == ("b0", "a1") and taken.models["w"].tolist() == [2.0, 1.0]
    assert taken.diverged.tolist() == [False, True]


def test_only_chosen_members_are_tested_and_each_with_its_own_model():
    """Two step sizes, of which one trains nothing: every seed is tested at the other, as if it were trained alone."""
    s = dataclasses.replace(architectures.settings["smoke"], steps=20, step_sizes="1e-9 0.01")
    models = {"linear": MIXERS["linear"](initial_scale=0.2)}
    both = in_outliers(Lab("study", s, (0, 1)), models, FLIPPED)
    alone = in_outliers(Lab("study", dataclasses.replace(s, step_sizes="0.01"), (0, 1)), models, FLIPPED)
    assert (both["step_size"] == 0.01).all()
    xr.testing.assert_equal(both, alone)


def test_crowded_keys_are_directions_and_the_same_ones_every_time():
    place = Recall(32, 8, 16, dimension=8, joined=True)
    keys = place.dictionary[:32, :8]
    assert place.columns == 16 and place.feature_columns == 8
    assert np.linalg.norm(keys, axis=1) == pytest.approx(np.ones(32))
    assert np.abs(keys @ keys.T - np.eye(32)).max() > 0.5
    assert (place.dictionary == Recall(32, 8, 2, dimension=8).dictionary).all()


def test_the_study_reads_what_its_experiments_give():
    shelf, _ = library((str(Path(architectures.__file__)),))
    paper = shelf.papers["architectures"]
    settings = dataclasses.replace(architectures.settings["smoke"], models="mamba linear deltanet softmax")
    dry_run(paper, settings, paper.statements(settings))


def test_input_gates_are_asked_about_large_outliers_those_of_training_and_small_ones():
    asked = {one.id: one for one in architectures.statements(architectures.Settings())}
    readings = {one.name: one.at for one in asked["input-gate"].readings}
    assert list(readings) == ["kappa=10", "seen,kappa=2", "kappa=2"]
    assert readings["seen,kappa=2"] == {"outliers": "seen", "magnitude": 2.0}
    assert not [name for name in asked if name.startswith("carries-") and name != "carries-recall"]


def test_models_that_are_none_are_refused_in_a_sentence():
    with pytest.raises(InputError, match="models is 'mamba perceptron'; they are some of linear, retnet"):
        architectures.Settings(models="mamba perceptron")
    assert set(architectures.Settings().models.split()) == set(MIXERS)

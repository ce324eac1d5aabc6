"""The phase diagram of test outliers, and outliers that are chosen against a model."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from iclab.experiments import Lab
from iclab.papers import PAPERS
from iclab.papers.mamba_outliers import adversary
from iclab.papers.mamba_outliers.settings import Settings, inference_world
from test_plugged import TINY

PAPER = PAPERS["mamba-outliers"]


def error_map(rule):
    """A map whose errors are a function of κ_a' Σλ / κ_a, for two seeds."""
    points = xr.Dataset(coords={"total": list(adversary.TOTALS), "magnitude": list(adversary.SIZES)})
    product = (points["total"] * points["magnitude"]) / 2.0
    return xr.apply_ufunc(rule, product).expand_dims(seed=[0, 1]).astype(float)


def test_a_map_that_a_line_parts_has_its_errors_on_the_right_sides():
    parted = error_map(lambda product: np.where(product >= 0.75, 0.01, 0.6))
    assert np.all(adversary.worst_beyond(parted, 2.0) == 0.01) and np.all(adversary.best_below(parted, 2.0) == 0.6)
    first = min(t * k / 2 for t in adversary.TOTALS for k in adversary.SIZES if t * k / 2 >= 0.75)
    np.testing.assert_allclose(adversary.edge(parted, 2.0), first)
    everywhere = error_map(lambda product: np.full_like(product, 0.5))
    assert np.all(np.isnan(adversary.edge(everywhere, 2.0))) and np.all(adversary.worst_beyond(everywhere, 2.0) == 0.5)


def test_a_point_that_diverged_is_not_small():
    parted = error_map(lambda product: np.where(product >= 0.75, 0.01, 0.6))
    parted.loc[{"total": 1.6, "magnitude": 8.0, "seed": 1}] = np.nan
    assert adversary.worst_beyond(parted, 2.0).values.tolist() == [0.01, 1.0]
    assert adversary.edge(parted, 2.0).sel(seed=1) > 6.4


def test_the_map_has_points_beyond_both_margins_and_against_the_condition():
    product = np.outer(adversary.TOTALS, adversary.SIZES) / Settings().outlier_magnitude
    assert np.sum(product >= adversary.MARGIN) >= 8 and np.sum((product > 0) & (product <= 1 / adversary.MARGIN)) >= 8
    assert np.sum(product < 0) >= 8


def test_candidates_are_unit_mixtures_with_all_signs():
    tried = adversary.candidates(3)
    np.testing.assert_allclose(np.linalg.norm(tried, axis=1), 1.0)
    assert len(np.unique(tried.round(9), axis=0)) == 14
    assert np.all(np.isin((-tried).round(9), tried.round(9)))


def test_a_mixture_of_its_own_is_what_outliers_are_made_of():
    s = Settings()
    world = inference_world(s, 0.5, 2.0, outliers=(0.0, -3.0, 0.0))
    np.testing.assert_allclose(world.letters()["outliers"], -inference_world(s, 0.5, 2.0, outliers="seen").letters()["outliers"][1:2])  # fmt: skip


@pytest.fixture(scope="module")
def found():
    tiny = dataclasses.replace(Settings(**TINY), trend_prompts=80)
    lab = Lab(PAPER.id, tiny, (0, 1))
    return {name: PAPER.experiments[name].run(lab) for name in ("outlier-map", "adaptive")}


def test_the_whole_map_is_measured_for_every_seed(found):
    error = found["outlier-map"]["error"]
    assert dict(error.sizes) == {"seed": 2, "total": len(adversary.TOTALS), "magnitude": len(adversary.SIZES)}
    assert error.notnull().all()


def test_the_worst_mixture_belongs_to_each_model_fraction_and_size(found):
    chosen = found["adaptive"]
    assert set(chosen["error"].dims) == set(chosen["worst"].dims) == {"kind", "seed", "magnitude", "fraction"}
    sums = adversary.candidates(3).sum(axis=1)
    assert np.all(np.isclose(chosen["worst"].values[..., None], sums).any(axis=-1))


def test_both_can_be_asked_of_another_model():
    changed = dataclasses.replace(PAPER.settings["quick"], model="gla")
    asked = {one.id.rpartition("/")[2]: one for one in PAPER.statements(changed)}
    for name in ("outlier-phase", "adaptive-outliers"):
        assert not asked[name].unfit and asked[name].figure and "gla" in asked[name].words

"""The bench: what a lab trains and which members it picks."""

import numpy as np
import pytest

import small
from iclab.evaluation import errors
from iclab.experiments import Lab, Recipe
from iclab.losses import hinge
from iclab.optimisation import Training

STEPS = [0, 20]
RECIPES = {
    "slow": lambda seed: Recipe(small.world(), small.MODEL, Training(0.1, 32)),
    "fast": lambda seed: Recipe(small.world(), small.MODEL, Training(4.0, 32)),
}


@pytest.fixture(scope="module")
def trained():
    return Lab("paper", None, range(3)).train("one", RECIPES, STEPS)


def test_fewer_seeds_are_the_first_ones_and_train_alike(trained):
    fewer = Lab("paper", None, range(3)).train("one", RECIPES, STEPS, at_most=2)
    assert fewer.seeds == (0, 1) and trained.seeds == (0, 1, 2)
    assert fewer.history["training_loss"].equals(trained.history["training_loss"].sel(seed=[0, 1]))
    more = Lab("paper", None, range(2)).train("one", RECIPES, STEPS, at_most=5)
    assert more.seeds == (0, 1)


def test_the_members_of_one_setting_are_tested_as_they_are_among_all(trained):
    def test(which):
        return Lab("paper", None, range(3)).evaluate(
            which,
            "test",
            errors(hinge),
            lambda setting, seed, length: small.world(length=length),
            {"length": (4, 10)},
            250,
        )

    whole, part = test(trained), test(trained.only("fast"))
    assert part["hinge"].dims == ("setting", "seed", "length")
    assert part.equals(whole.sel(setting=["fast"]))
    assert not np.allclose(whole["hinge"].sel(setting="fast"), whole["hinge"].sel(setting="slow"))

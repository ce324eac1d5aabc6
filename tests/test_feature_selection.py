"""The arithmetic behind feature-selection's statements: fitted laws, sizes, readings and prompts at the edge."""

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr

from iclab import randomness
from iclab.kinds import Outcome
from iclab.papers import PAPERS
from iclab.papers.feature_selection.edges import FRACTIONS, AtLeast, edge_length
from iclab.papers.feature_selection.laws import beyond_power, constant, laws, residual, side_by_side, together
from iclab.papers.feature_selection.lemmas import at_work
from iclab.papers.feature_selection.readings import edge, inside, wide
from iclab.papers.feature_selection.settings import deviation, patterns, shifted_patterns, symbols, world
from iclab.papers.feature_selection.sizes import own_steps, roomy, smallest_balanced
from iclab.papers.feature_selection.statements import late

PAPER = PAPERS["feature-selection"]
QUICK = PAPER.settings["quick"]
ALPHAS = np.array([0.35, 0.45, 0.55, 0.6, 0.7, 0.8, 1.0])


def times(law, seeds=4, noise=0.0):
    random = np.random.default_rng(0)
    values = np.stack([law(ALPHAS) * np.exp(random.normal(0, noise, len(ALPHAS))) for _ in range(seeds)], axis=1)
    return xr.DataArray(values, dims=("fraction", "seed"), coords={"fraction": ALPHAS, "seed": range(seeds)})


def test_the_constant_of_the_law_in_alpha_is_found_again():
    exact = times(lambda alpha: 200 / (3.3 - 1 / alpha))
    assert float(constant(exact)[0]) == pytest.approx(3.3, rel=0.01) and float(residual(exact).max()) < 0.01
    noisy = times(lambda alpha: 200 / (3.3 - 1 / alpha), noise=0.06)
    assert float(residual(noisy).max()) < 0.1


def test_a_law_of_another_shape_leaves_a_residual():
    """Rising with α, or with a step in it: no C > 1/α fits."""
    assert float(residual(times(lambda alpha: 200 * alpha**1.5)).min()) > 0.3
    assert float(residual(times(lambda alpha: np.where(alpha < 0.65, 400.0, 100.0))).min()) > 0.2


def test_what_was_never_reached_has_no_residual():
    data = times(lambda alpha: 200 / (3.3 - 1 / alpha)).copy()
    data[0, 1] = np.inf
    assert np.isinf(residual(data)[1]) and np.isfinite(residual(data)[0])
    assert np.isnan(constant(data)).all()


def test_the_law_in_alpha_is_compared_with_a_power():
    """Each fits its own data better; what was never reached is infinitely far from the law."""
    law, power = times(lambda alpha: 200 / (3.3 - 1 / alpha)), times(lambda alpha: 200 * alpha**-0.8)
    assert float(beyond_power(law).max()) < -0.05 and float(beyond_power(power).min()) > 0.02
    law[0, 1] = np.inf
    assert np.isinf(beyond_power(law)[1]) and np.isfinite(beyond_power(law)[0])


def test_pulls_are_read_while_the_loss_is_still_high():
    """Seed by seed; before training where no loss is known, as in an untrained model."""
    at = {"step": [0, 20, 40], "seed": [0, 1, 2]}
    loss = xr.DataArray([[np.nan] * 3, [1.0, 0.95, np.nan], [0.92, 0.1, np.nan]], at, ("step", "seed"))
    data = xr.DataArray(np.arange(9.0).reshape(3, 3), at, ("step", "seed"))
    assert at_work(data, loss).values.tolist() == [6.0, 4.0, 2.0]


def test_times_side_by_side_are_of_the_seeds_that_both_have():
    few, many = (times(lambda alpha: alpha, seeds=seeds).rename(fraction="low") for seeds in (2, 4))
    both = side_by_side(many, few)
    assert both.sizes["low"] == 2 * len(ALPHAS) and both["seed"].values.tolist() == [0, 1]


def test_times_of_two_experiments_are_put_in_order():
    data = times(lambda alpha: 1 / alpha)
    assert together(data[2:], data[:2])["fraction"].values.tolist() == ALPHAS.tolist()


@pytest.mark.parametrize("profile", ["quick", "paper"])
@pytest.mark.parametrize("reading", [inside, wide, edge])
def test_readings_inside_meet_every_hypothesis(profile, reading):
    s = PAPER.settings[profile]
    own = dataclasses.replace(s, **reading(s).changes)
    for name in ("thm1", "prop1", "cor1", "lem7"):
        unmet = [condition.name for condition in PAPER.theorem(name, own).conditions if not condition.satisfied]
        assert not unmet, (name, unmet)


def test_the_deviation_is_the_smallest_that_the_width_allows():
    """1/4 where that is enough, and where nothing below 1/2 would be; between, m = ε_m⁻² M1² log N exactly."""
    assert deviation(QUICK) == 0.25 and not PAPER.theorem("lem7", QUICK).satisfied
    between = dataclasses.replace(QUICK, neurons=1280)
    assert 0.25 < deviation(between) < 0.5 and PAPER.theorem("lem7", between).conditions[0].factor == pytest.approx(1)
    assert deviation(dataclasses.replace(QUICK, neurons=5000)) == 0.25


def test_no_width_below_1084_has_an_allowed_deviation():
    """The smallest m of Theorem 1 at these settings: 4 M1² log(BT)."""
    least = 4 * 25 * np.log(128 * 400)
    assert least == pytest.approx(1084, abs=1)
    assert deviation(dataclasses.replace(QUICK, neurons=int(least))) == 0.25
    assert deviation(dataclasses.replace(QUICK, neurons=int(least) + 2)) > 0.499


def test_signs_of_mixtures():
    trained = patterns(QUICK).relevant
    products = {name: shifted_patterns(QUICK, name).relevant @ trained.T for name in ("out", "negative", "opposite")}
    assert (products["out"] >= 0).all() and (products["opposite"] <= 0).all()
    assert (products["negative"] < 0).any() and (products["negative"] > 0).any()


def test_at_the_edge_one_example_matches_where_it_is_guaranteed():
    """And as drawn a share 1 - (1 - α'/2)^l of the prompts has one."""
    keys, numbers = jax.random.split(randomness.key(0), 4000), np.arange(4000)

    @jax.jit
    def share(place):
        return jax.vmap(lambda key, number: place.sample(key, number).matches_query().any())(keys, numbers).mean()

    for fraction in FRACTIONS[:2]:
        length = edge_length(fraction)
        place = world(QUICK, "out", length, longest=10, fraction=fraction)
        drawn, sure = (float(share(AtLeast(place, np.int32(least)))) for least in (0, 1))
        assert sure == 1.0 and drawn == pytest.approx(1 - (1 - fraction / 2) ** length, abs=0.03)


def test_sizes_grow_as_they_say():
    s = roomy(QUICK, 120, 5, 76)
    assert symbols(s).all_patterns == 76 and s.feature_dimension == 120
    assert own_steps(QUICK, 120) == 2 * own_steps(QUICK, 30) == 2 * QUICK.size_steps
    assert [smallest_balanced(count) for count in (2, 3, 4)] == [2, 3, 4]


def test_the_law_in_m_reads_the_sizes_experiment():
    """Iterations ∝ M^(1/4) agree with an upper bound √M, and ∝ M does not."""
    steps, totals = np.arange(1, 1001), np.array([30, 48, 76, 120])
    for power, outcome in ((0.25, Outcome.holds), (1.0, Outcome.fails_in_scaling)):
        needed = 5 * totals**power
        loss = np.where(steps[None, :, None] < needed[:, None, None] * (1 + 0.01 * np.arange(4)), 1.0, 0.0)
        data = xr.Dataset(
            {"training_loss": (("patterns", "step", "seed"), loss)},
            {"patterns": totals, "step": steps, "seed": range(4)},
        )
        law = laws(QUICK)["M"]
        assert law.rule.judge(law.needed().evaluate({"sizes": data})).outcome is outcome


def test_late_is_the_last_factor_of_five():
    data = xr.DataArray(np.zeros(2001), dims="step", coords={"step": np.arange(2001)})
    assert int(late(data)["step"][0]) == 400

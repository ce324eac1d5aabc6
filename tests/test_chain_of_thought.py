"""What chain-of-thought measures beside errors: iterations over the sum (18), bounds of the lemmas, short trainings."""

import dataclasses
import math

import numpy as np
import pytest
import xarray as xr

from iclab.papers.chain_of_thought import lemmas, theory
from iclab.papers.chain_of_thought.laws import PATTERNS, STEPS, SWEEPS, TERMS, needed, over, regular, term_by_term
from iclab.papers.chain_of_thought.settings import settings, symbols, timed
from iclab.papers.chain_of_thought.statements import earlier, more_needed

QUICK = settings["quick"]


def falling(rates):
    """Losses 0.4 / (1 + rate t), one per rate, for two seeds."""
    steps = np.arange(0, 400)
    values = 0.4 / (1 + np.outer(rates, steps))
    curves = np.repeat(values[:, None], 2, axis=1)
    return xr.DataArray(curves, dims=("fraction", "seed", "step"), coords={"fraction": list(rates), "step": steps})


def test_iterations_are_needed_until_the_loss_stays_below_each_error():
    found = needed(falling([0.1, 0.2]), "error", (0.1, 0.05))
    for rate in (0.1, 0.2):
        for error in (0.1, 0.05):
            exact = (0.4 / error - 1) / rate
            assert found.sel(fraction=rate, error=error, seed=0) == pytest.approx(exact, rel=0.05)
    never = needed(falling([0.001]), "error", (0.1,))
    assert np.isinf(never).all() and never.attrs["limit"] == 399


def test_what_is_needed_is_compared_with_the_whole_sum_at_its_own_setting_and_error():
    at = symbols(timed(QUICK, patterns=20))
    values = (0.1, 0.2, 0.4)
    stated = [(27 / a * math.log(3 / 0.05) + 60 * (1 / a + 20)) / 0.9 for a in values]
    times = xr.DataArray(
        [[3 * value] * 2 for value in stated], dims=("fraction", "seed"), coords={"fraction": list(values)}
    )
    found = over(times.assign_coords(error=0.05), "fraction", "matching_fraction", at, theory.iterations)
    assert np.allclose(found, 3.0)
    slope = np.polyfit(np.log(values), np.log(stated), 1)[0]
    assert -0.6 < slope < -0.3  # the sum's own exponent in α is none of its powers


def learned(at, sweep, values, constants):
    """Losses along a sweep that get below ε after these shares of the terms of (18)."""
    steps, errors, curves = np.arange(0, 6000), np.geomspace(0.5, 0.005, 100), []
    for value in values:
        points = [dataclasses.replace(at, error=e, **{sweep.letter: value}) for e in errors]
        laws = np.array([[law(point).value for law in TERMS] for point in points])
        curves.append(np.interp(steps, laws @ constants, errors))
    twice = np.repeat(np.array(curves)[:, None], 2, axis=1)
    return xr.DataArray(twice, dims=(sweep.dim, "seed", "step"), coords={sweep.dim: list(values), "step": steps})


def test_the_constants_of_the_terms_are_found_and_the_quotient_is_one_where_the_sum_is_right():
    at = symbols(timed(QUICK, patterns=20)), symbols(timed(QUICK))
    asked = list(zip(at, SWEEPS[:2], ((0.1, 0.2, 0.4), (8, 12, 20)), strict=True))
    curves = [learned(*one, (0.5, 0.0, 0.1)) for one in asked]
    found, constants = term_by_term(curves, SWEEPS[:2], at)
    assert constants == pytest.approx((0.5, 0.0, 0.1), abs=0.02)
    assert all(np.allclose(quotient, 1.0, atol=0.02) for quotient in found)
    other = learned(*asked[1], (0.5, 0.0, 0.3))  # sweeps that need other constants do not get their own
    found, _ = term_by_term([curves[0], other], SWEEPS[:2], at)
    assert found[1].min() > 1.2 * found[0].max()


def test_settings_at_which_a_reasoning_comes_to_a_pattern_twice_are_not_judged():
    at = symbols(timed(QUICK))
    kept = {}
    for sweep, values in ((SWEEPS[1], PATTERNS), (SWEEPS[2], STEPS)):
        data = xr.DataArray(np.ones(len(values)), dims=sweep.dim, coords={sweep.dim: list(values)})
        kept[sweep.symbol] = regular(data, sweep, at)[sweep.dim].values.tolist()
    assert kept == {"M": [8, 12, 20], "K": [2, 3, 4]}


def test_what_the_shortest_prompt_meets_is_censored_from_below():
    times = xr.DataArray([5.0, 7.5, np.inf], dims="value", attrs={"limit": 40.0, "floor": 5.0})
    assert earlier(times).values.tolist() == [0.0, 7.5, np.inf] and earlier(times).attrs == times.attrs


def test_censored_quotients_lie_beyond_the_end_of_the_run():
    times = needed(falling([0.001, 0.5]), "error", (0.1,)).sel(error=0.1)
    found = over(times, "fraction", "matching_fraction", symbols(timed(QUICK)), theory.iterations)
    ends = [
        399 / theory.iterations(dataclasses.replace(symbols(timed(QUICK)), error=0.1, matching_fraction=value)).value
        for value in (0.001, 0.5)
    ]
    assert np.isinf(found.isel(fraction=0)).all() and found.attrs["limit"] == pytest.approx(min(ends))


def test_what_was_never_reached_ranks_last():
    times = xr.DataArray(
        [[5.0], [9.0], [np.inf]], dims=("value", "seed"), coords={"value": [0.8, 0.4, 0.2]}, attrs={"limit": 40.0}
    )
    assert more_needed(times, "value").values.tolist() == pytest.approx([-1.0])


def test_the_bounds_of_lemma_5_by_hand():
    """K = 3, M = 20, α = 0.4, p = 0.25, written out as they are printed."""
    at = symbols(timed(QUICK, patterns=20))
    p, q, a2 = 0.25, 0.75, 0.16
    rest, both, mixed = (xr.DataArray(value) for value in (q**2, p * q**2, p * q))
    found = {name: float(bound) for name, bound in lemmas.first_stage_bounds(at, rest, both, mixed).items()}
    right_32 = 1 / 60 * (-a2 / 9 + (2 + 5 * a2 / 9) * p) * q**2 - q**2 * a2 / 27
    falls = 1 / 60 * (-4 - 7 * q * (1 + a2 / 9)) * p * q
    assert found == pytest.approx(
        {
            "(30)": 1 / 60 * q**2 * (-4 * p * (1 + a2 / 9) + a2 / 9 * (1 + 4 / 3)) - a2 / 27 * q**2,
            "(31) left": falls + a2 / 27 * q**2,
            "(31) right": falls + 1 / 3 * p * q**2 * (1 + a2 / 9),
            "(32) left": right_32 + 1 / 3 * q**2 * (-p + q * a2 / 9),
            "(32) right": right_32,
            "(33) left": 1 / 60 * p * q**2 * (1 - a2 / 9) + q**2 * a2 / 27,
            "(33) right": 1 / 60 * p * q**2 * (-1 - a2 / 9) + q**2 * p * (1 + a2 / 9) / 3,
        }
    )


@pytest.mark.parametrize(
    "changes", [{}, {"patterns": 5}, {"patterns": 20, "fraction": 0.1}, {"steps": 2}, {"steps": 8}, {"step_size": 0.4}]
)
def test_short_trainings_meet_the_conditions_on_batch_length_and_step_size(changes):
    own = timed(QUICK, **changes)
    at = symbols(own)
    conditions = {condition.name: condition for condition in theory.theorems(at)[0].conditions}
    for name in ("(i) training length", "(iii) batch, M", "(iii) batch, ε", "step size", "patterns"):
        assert conditions[name].satisfied, name
    assert own.batch % (own.patterns * own.reasoning_steps) == 0
    assert own.matching_fraction * own.train_length == pytest.approx(2)


def test_room_is_positive_where_a_bound_is_kept_until_the_end_of_the_first_stage():
    at = symbols(timed(QUICK, patterns=20))
    end = theory.first_stage_of_lemmas(at).value
    steps = [0, 10, 100, math.ceil(end) + 1]
    ones = xr.DataArray(np.full((4, 2), 0.1), dims=("step", "seed"), coords={"step": steps})
    bound = lemmas.first_stage_bounds(at, ones, ones, ones)["(33) left"]
    kept, broken = (bound * factor for factor in (2.0, 0.5))
    assert (lemmas.room(kept, ones, ones, ones, at, "(33) left") > 0).all()
    for until, sign in ((end, 1), (100, -1)):
        late = kept.where(kept["step"] < until, broken)
        assert (sign * lemmas.room(late, ones, ones, ones, at, "(33) left") > 0).all()

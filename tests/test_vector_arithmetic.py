import dataclasses
import math

import numpy as np
import pytest
import xarray as xr

from iclab.papers.vector_arithmetic import quantities as of
from iclab.papers.vector_arithmetic import theory
from iclab.papers.vector_arithmetic.lemmas import at, attention_from_below, initial_attention, initial_value
from iclab.papers.vector_arithmetic.settings import at_size, settings, symbols, world
from iclab.worlds.concepts import Kind

QUICK = settings["quick"]


def unmet(s):
    return [condition.name for condition in theory.condition_3_1(symbols(s)) if not condition.satisfied]


def test_the_initialisation_keeps_its_norms_at_any_dimension_and_the_noise_is_as_printed():
    for dimension in (150, 600, 3000):
        s = dataclasses.replace(QUICK, dimension=dimension)
        y = symbols(s)
        assert y.value_scale**2 * dimension == pytest.approx(2.5e-5 * 3000)
        assert y.attention_scale**2 * dimension == pytest.approx(1e-6 * 3000)
        assert y.noise_scale == 0.01 and float(world(s, Kind.qa).noise_scale) == pytest.approx(0.01)


def test_the_settings_that_are_said_to_be_inside_condition_3_1_are():
    for reading in (of.INSIDE, of.FIRST, of.DRAWN):
        assert unmet(dataclasses.replace(QUICK, **reading.changes)) == []
    assert [unmet(at_size(QUICK, count)) for count in (2, 4, 8)] == [["3. concepts"], [], []]
    first = [theory.first_phase(symbols(at_size(QUICK, count))).value for count in (2, 4, 8)]
    assert np.ptp(first) < 1e-9  # T_1 stays
    late = symbols(dataclasses.replace(QUICK, **of.INSIDE.changes))
    assert theory.convergence(late).value == pytest.approx(2000)
    for reading in (of.PRINTED_SIZES, of.FIRST, of.DRAWN):
        early = dataclasses.replace(QUICK, **reading.changes)
        assert early.steps <= theory.first_phase(symbols(early)).value * 1.001


def test_the_printed_lower_bound_on_attention_is_negative_at_the_sizes_of_the_simulations():
    for reading in (of.PRINTED_SIZES, of.FIRST):
        y = at(QUICK, reading)
        tokens = 16 * (2 * y.concepts + y.common_tokens) ** 2 / 0.1
        assert initial_attention(y) == pytest.approx(4 * math.sqrt(math.log(tokens)) * 0.003 / math.sqrt(y.dimension))
        expected = 0.003 * 0.075 / (y.common_length**2 * y.value_step_scale)
        assert attention_from_below(y) == pytest.approx(expected) and expected < initial_attention(y)


def test_a_cosine_vanishes_where_it_is_below_a_tenth_or_falls_like_the_fourth_root():
    def over(*values):
        return xr.DataArray(np.array(values)[:, None], dims=("concepts", "seed"), coords={"concepts": [2, 4, 8]})

    assert of.vanishing(over(0.02, 0.05, 0.05)).values == pytest.approx(0.5)  # small, though it grew
    assert of.vanishing(over(0.4, 0.3, 0.4 / math.sqrt(2))).values == pytest.approx(1.0)  # the edge of falling
    assert of.vanishing(over(0.4, 0.3, 0.2)).values == pytest.approx(1 / math.sqrt(2))
    assert of.vanishing(over(0.3, 0.3, 0.3)).values > 1


def records(values, steps):
    return xr.DataArray(np.asarray(values, float), dims=("seed", "step"), coords={"step": steps})


def test_growth_is_read_since_the_start_and_at_doubling_epochs():
    steps = [0, 50, 100, 150, 200, 400, 800, 1600, 2000]
    curve = records([np.arange(9.0), 2 * np.arange(9.0) + 1], steps)
    assert of.doubling(curve)["step"].values.tolist() == [50, 100, 200, 400, 800, 1600]
    assert of.doubling(curve.isel(step=slice(0, 3)))["step"].values.tolist() == [50, 100]
    assert of.since_start(curve).values[1].tolist() == (2 * np.arange(1.0, 9)).tolist()
    assert of.lifted(records([[-1.0, 2.0]], [1, 2]), 0.5).values.tolist() == [[0.5, 2.0]]
    assert of.second_half(curve)["step"].values.tolist() == [1600, 2000]
    assert of.at_time(curve, xr.DataArray([100, 800], dims="seed")).values.tolist() == [2.0, 13.0]


def test_records_end_at_t_star_and_growth_over_time_is_affine_where_growth_is_a_square():
    steps = np.array([0, 5, 10, 50, 80, 1600, 2000, 5000])
    curve = records([3.0 * steps + 2.0 * steps**2], steps)
    assert of.until(curve, 2000)["step"].values.tolist() == [5, 10, 50, 80, 1600, 2000]
    assert of.window(curve, 7.5, 2000)["step"].values.tolist() == [10, 80, 1600, 2000]
    assert of.per_epoch(of.since_start(curve)).values[0].tolist() == (3.0 + 2.0 * steps[1:]).tolist()


def test_the_common_time_is_where_the_smallest_disparity_is_largest_while_p_qa_is_good():
    steps = [0, 100, 200, 300]
    good = records([[1.0, 0.0, 0.005, 0.2], [1.0, 0.0, 0.005, 0.2]], steps)
    bad = records([[1.0, 0.1, 0.3, 0.9], [1.0, 0.1, 0.3, 0.9]], steps)
    worse = records([[1.0, 0.1, 0.2, 0.9, 0.9], [1.0, 0.1, 0.2, 0.9, 0.9]], [*steps, 400])
    errors = (good, good, bad, worse, bad, worse)
    assert int(of.common_time(*errors)) == 200
    assert of.at_common(worse - good, *errors).values == pytest.approx([0.195, 0.195])


def test_what_hangs_on_the_length_of_training_says_so_and_bounds_have_the_sizes_of_the_initialisation():
    assert "1000" in of.too_short(QUICK) and not of.too_short(settings["paper"])
    assert initial_value(symbols(settings["paper"])) == pytest.approx(0.0261, abs=1e-4)


def test_a_hybrid_is_the_smaller_of_two_cosines_behind_the_first_phase():
    high, low = records([[0.9, 0.2, 0.5]], [0, 10, 20]), records([[0.8, 0.6, 0.4]], [0, 10, 20])
    mixed = of.most_mixed(high, low)
    assert mixed.values.tolist() == [[0.2, 0.4]] and of.epoch_of_largest(mixed).values.tolist() == [20]
    assert of.largest(high, low).values.tolist() == [[0.9, 0.6, 0.5]]

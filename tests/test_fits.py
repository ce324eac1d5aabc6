"""First passages and exponents: known laws are recovered, with noise and censored times; coverage, curvature,
calibration.
"""

import dataclasses
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import xarray as xr

from iclab.errors import InputError
from iclab.papers.mamba_outliers import theory as mamba_outliers
from iclab.statistics import Criterion, first_passage, interval, log_slope
from iclab.statistics.censored import fitted, observe
from iclab.statistics.fits import calibrate, compare, exponents_by_seed, fit_exponent

SETTINGS = (0.2, 0.3, 0.45, 0.65, 0.9)


def curve(values, times=None):
    values = np.atleast_2d(np.asarray(values, float))
    times = np.arange(values.shape[1]) * 10.0 if times is None else times
    return xr.DataArray(values, dims=("seed", "step"), coords={"step": times})


def times(rng, exponent=-2 / 3, curvature=0.0, seeds=8, noise=0.15, shared=0.1, limit=math.inf, settings=SETTINGS):
    """Synthetic first passages: exp(5) · x^exponent with noise per run and per seed; later than the limit is never."""
    x = np.log(settings)[:, None]
    logs = 5 + exponent * x + curvature * x**2
    logs = logs + noise * rng.normal(size=(len(settings), seeds)) + shared * rng.normal(size=seeds)
    data = np.where(np.exp(logs) > limit, np.inf, np.exp(logs))
    return xr.DataArray(data, dims=("x", "seed"), coords={"x": list(settings)}, attrs={"limit": limit})


def test_a_passage_lasts_or_is_the_first():
    data = curve([0.9, 0.04, 0.2, 0.04, 0.03])
    assert first_passage(data, "step", Criterion(0.05)).item() == 30
    assert first_passage(data, "step", Criterion(0.05, lasting=False)).item() == 10
    assert first_passage(data, "step", Criterion(0.03)).item() == np.inf  # 0.03 is not below 0.03
    assert first_passage(1 - data, "step", Criterion(0.95, above=True)).item() == 30
    assert np.isnan(first_passage(curve([0.9, np.nan, 0.0]), "step", Criterion(0.5)).item())
    assert first_passage(data, "step", Criterion(2.0)).item() == 0


def test_smoothing_is_centred_and_does_not_date_a_passage_later():
    line = curve(np.linspace(1, 0, 21))  # 1 - t/200
    plain = first_passage(line, "step", Criterion(0.301)).item()
    assert plain == first_passage(line, "step", Criterion(0.301, window=5)).item() == 140
    spike = curve([1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert first_passage(spike, "step", Criterion(0.5, lasting=False)).item() == 10
    assert first_passage(spike, "step", Criterion(0.5, window=3, lasting=False)).item() == 20  # (0.1 + 0.9 + 0.1)/3
    with pytest.raises(InputError, match="it must be odd"):
        Criterion(0.5, window=4)


def test_interpolation_finds_the_crossing_between_records():
    line = curve([1.0, 0.6, 0.2], times=[0.0, 10.0, 30.0])
    assert first_passage(line, "step", Criterion(0.5, interpolate=True)).item() == pytest.approx(15)
    rise = curve([0.0, 0.4, 0.8], times=[0.0, 10.0, 30.0])
    assert first_passage(rise, "step", Criterion(0.5, above=True, interpolate=True)).item() == pytest.approx(15)


def test_a_criterion_says_when_and_where_it_is_censored():
    data = curve([[0.9, 0.4, 0.1], [0.9, 0.9, 0.9]])
    half, fifth = (first_passage(data, "step", Criterion(threshold)) for threshold in (0.5, 0.2))
    assert half.values.tolist() == [10, np.inf] and fifth.values.tolist() == [20, np.inf]
    assert half.attrs == {"limit": 20.0, "floor": 10.0}


def test_a_power_law_without_noise_is_exact_and_straight():
    fit = fit_exponent(times(np.random.default_rng(0), noise=0, shared=0, limit=1e9), "x")
    assert (fit.exponent, fit.low, fit.high) == pytest.approx((-2 / 3,) * 3)
    assert fit.constant == pytest.approx(math.exp(5)) and fit.curvature == pytest.approx(0, abs=1e-9)
    assert (fit.settings, fit.seeds, fit.censored, fit.lost) == (5, 8, 0, 0)


def test_without_censoring_the_fit_is_the_mean_of_the_seeds_slopes_with_students_interval():
    data = times(np.random.default_rng(1), limit=1e9)
    slopes = np.array([np.polyfit(np.log(SETTINGS), np.log(data.values[:, seed]), 1)[0] for seed in range(8)])
    assert exponents_by_seed(data, "x").values == pytest.approx(slopes)
    expected, fit = interval(slopes), fit_exponent(data, "x", resamples=20_000)
    assert fit.exponent == pytest.approx(expected.measured)
    assert (fit.low, fit.high) == pytest.approx(
        (expected.low, expected.high), abs=0.15 * (expected.high - expected.low)
    )


def test_the_censored_fit_maximises_the_likelihood():
    data = times(np.random.default_rng(2), limit=math.exp(5.6))
    assert np.isinf(data.values).sum() > 10
    x = np.log(SETTINGS) - np.mean(np.log(SETTINGS))
    logs = np.log(np.where(np.isinf(data.values), 1.0, data.values))

    def cost(parameters):
        level, slope, log_noise = parameters
        mean, noise = (level + slope * x)[:, None], math.exp(log_noise)
        seen = scipy.stats.norm.logpdf(logs, mean, noise)
        beyond = scipy.stats.norm.logsf(5.6, mean, noise) + 0 * logs
        return -np.where(np.isinf(data.values), beyond, seen).sum()

    best = scipy.optimize.minimize(
        cost, [5.5, -0.5, -1.5], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}
    ).x
    beta, noise = fitted(np.stack([np.ones(5), x], axis=1), observe(data, "x", None, None), np.ones((1, 8)))
    assert beta[0] == pytest.approx(best[:2], abs=1e-4) and noise[0] == pytest.approx(math.exp(best[2]), abs=1e-4)


def test_times_before_the_first_record_are_censored_from_below():
    """Mirror image: log t -> -log t turns late into early and changes the sign of the exponent."""
    data = times(np.random.default_rng(3), limit=math.exp(5.7))
    mirror = xr.where(np.isinf(data), 0.0, 1 / data).transpose(*data.dims).assign_attrs(floor=math.exp(-5.7))
    fit, other = fit_exponent(data, "x"), fit_exponent(mirror, "x")
    assert other.exponent == pytest.approx(-fit.exponent, abs=1e-5)
    assert (other.low, other.high) == pytest.approx((-fit.high, -fit.low), abs=1e-4)


def test_dropping_censored_times_would_flatten_the_slope_and_the_fit_does_not():
    rng = np.random.default_rng(4)
    fits, dropped, capped = [], [], []
    for _ in range(30):
        data = times(rng, limit=math.exp(5.75))
        fits.append(fit_exponent(data, "x", resamples=2).exponent)
        x = np.broadcast_to(np.log(SETTINGS)[:, None], data.shape)
        finite = np.isfinite(data.values)
        dropped.append(np.polyfit(x[finite], np.log(data.values[finite]), 1)[0])
        capped.append(np.polyfit(x.ravel(), np.log(np.minimum(data.values, math.exp(5.75))).ravel(), 1)[0])
    assert np.mean(fits) == pytest.approx(-2 / 3, abs=0.04)
    assert np.mean(dropped) > -0.57 and np.mean(capped) > -0.5


@pytest.mark.parametrize(("limit", "repetitions"), [(1e9, 300), (math.exp(5.8), 60)])
def test_the_interval_contains_the_truth_as_often_as_it_says(limit, repetitions):
    rng = np.random.default_rng(5)
    hits = [fit_exponent(times(rng, limit=limit), "x", resamples=200).contains(-2 / 3) for _ in range(repetitions)]
    assert 0.88 <= np.mean(hits) <= 0.99


def test_pseudo_values_let_a_claim_use_censored_times():
    data = times(np.random.default_rng(6), limit=math.exp(5.75))
    found, fit = interval(exponents_by_seed(data, "x").values), fit_exponent(data, "x")
    assert found.measured == pytest.approx(fit.exponent, abs=0.03) and found.low < -2 / 3 < found.high
    assert found.seeds == 8


def test_curvature_is_found_where_it_is_and_rarely_where_it_is_not():
    rng = np.random.default_rng(7)
    straight = [fit_exponent(times(rng, limit=1e9), "x", resamples=200).bent for _ in range(100)]
    assert np.mean(straight) <= 0.12
    bent = fit_exponent(times(rng, curvature=0.6, limit=1e9), "x")
    assert bent.bent and bent.curvature_low < 0.6 < bent.curvature_high
    assert bent.bend == pytest.approx(2 * bent.curvature * math.log(0.9 / 0.2))
    shifted = times(rng, noise=0.02, shared=0.02, limit=1e9)
    assert fit_exponent(shifted + 300, "x").bent  # a constant delay is not a power law


def test_rivals_are_those_inside_the_interval():
    fit = fit_exponent(times(np.random.default_rng(8), exponent=-1.0, noise=0.05, shared=0.05, limit=1e9), "x")
    found = compare(fit, -1.0, {"as stated": -2 / 3, "close": (fit.low + fit.high) / 2, "squared": -2.0})
    assert found.agrees and found.inside == ("close",) and not found.decides
    assert compare(fit, -1.0, {"as stated": -2 / 3}).decides and not compare(fit, -2 / 3).agrees


def test_where_only_one_setting_is_reached_the_interval_has_one_end():
    data = times(np.random.default_rng(9), noise=0.02, shared=0.02, limit=math.exp(5.16))
    assert np.isinf(data.values).all(axis=1).tolist() == [True, True, True, True, False]
    fit = fit_exponent(data, "x")
    assert math.isnan(fit.exponent) and fit.low == -math.inf and fit.high < 0 and fit.bent is None
    assert fit.contains(-2 / 3) and fit.contains(-5) and not fit.contains(0.5) and fit.censored == 32
    assert np.isnan(exponents_by_seed(data, "x")).all()
    flipped = data.assign_coords(x=1 / data["x"].values)
    assert fit_exponent(flipped, "x").high == math.inf and fit_exponent(flipped, "x").low == pytest.approx(-fit.high)


def test_runs_of_different_lengths_have_limits_of_their_own():
    data = times(np.random.default_rng(14), limit=1e9)
    limits = xr.DataArray([350.0, 300.0, 250.0, 250.0, 250.0], dims="x", coords={"x": list(SETTINGS)})
    cut = data.where(data <= limits, np.inf).drop_attrs()
    assert np.isinf(cut.values[:2]).sum() >= 6
    own, one = fit_exponent(cut, "x", limit=limits), fit_exponent(cut, "x", limit=250.0)
    assert own.exponent == pytest.approx(fit_exponent(data, "x").exponent, abs=0.12) and own.contains(-2 / 3)
    assert abs(one.exponent + 2 / 3) > abs(own.exponent + 2 / 3)  # a limit that is too low loses what is known


def test_nothing_reached_says_nothing():
    fit = fit_exponent(xr.full_like(times(np.random.default_rng(0)), np.inf), "x", limit=100.0)
    assert math.isnan(fit.exponent) and math.isnan(fit.low) and not fit.contains(0) and fit.censored == 40


def test_diverged_members_are_left_out_and_counted():
    data = times(np.random.default_rng(10), noise=0, shared=0, limit=1e9)
    data[1, 3] = data[4, 0] = np.nan
    fit = fit_exponent(data, "x")
    assert fit.exponent == pytest.approx(-2 / 3) and fit.lost == 2


def test_a_predicted_rate_is_calibrated_on_small_settings_and_predicts_the_large():
    """T = 7 (1-p_a)⁻¹ ... exactly: the constant is found and held-out settings are predicted within their noise."""
    fractions = [0.0, 0.2, 0.4, 0.6, 0.8]
    symbols = dict.fromkeys((f.name for f in dataclasses.fields(mamba_outliers.Symbols)), 1.0)
    rates = [
        mamba_outliers.mamba_iterations(mamba_outliers.Symbols(**symbols | {"outlier_fraction": p})).value
        for p in fractions
    ]
    predicted = xr.DataArray(rates, dims="p", coords={"p": fractions})
    rng = np.random.default_rng(11)
    measured = 7 * predicted * xr.DataArray(np.exp(0.1 * rng.normal(size=(5, 8))), dims=("p", "seed"))
    found = calibrate(predicted, measured, "p", on=[0.0, 0.2, 0.4])
    assert found.constant_low < 7 < found.constant_high and found.constant == pytest.approx(7, rel=0.1)
    assert found.ratio["p"].values.tolist() == [0.6, 0.8] and found.ratio.values == pytest.approx([1, 1], abs=0.15)
    assert ((found.low < 1) & (found.high > 1)).all()
    assert found.log_error == pytest.approx(math.sqrt(np.mean(np.log(found.ratio) ** 2))) and found.log_error < 0.15
    assert found.worst == pytest.approx(math.exp(np.abs(np.log(found.ratio)).max()))


def test_a_wrong_rate_shows_in_the_held_out_error():
    truth = times(np.random.default_rng(12), exponent=-2.0, noise=0.05, shared=0.05, limit=1e9)
    predicted = xr.DataArray(1 / np.array(SETTINGS), dims="x", coords={"x": list(SETTINGS)})  # x⁻¹, not x⁻²
    found = calibrate(predicted, truth, "x", on=[0.9, 0.65])
    expected = math.sqrt(0.9 * 0.65) / np.array([0.2, 0.3, 0.45])
    assert found.ratio.values == pytest.approx(expected, rel=0.1) and (found.low > 1).all()
    assert found.worst == pytest.approx(expected[0], rel=0.1)


def test_censored_held_out_times_give_a_bound_and_censored_calibration_gives_nothing():
    predicted = xr.DataArray(np.array(SETTINGS) ** (-2 / 3), dims="x", coords={"x": list(SETTINGS)})
    limit = math.exp(5.65)
    measured = times(np.random.default_rng(13), noise=0.02, shared=0.02, limit=limit)
    found = calibrate(predicted, measured, "x", on=[0.9, 0.65])
    assert np.isinf(found.ratio.sel(x=0.2)) and np.isinf(found.high.sel(x=0.2)) and found.log_error == math.inf
    assert found.low.sel(x=0.2).item() == pytest.approx(limit / (math.exp(5) * 0.2 ** (-2 / 3)), rel=0.05)
    assert np.isfinite(found.ratio.sel(x=0.45)) and found.censored == 16
    empty = calibrate(predicted, measured, "x", on=[0.2])
    assert empty.constant == math.inf and np.isnan(empty.ratio.sel(x=0.3))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda d: fit_exponent(d.rename(x="y"), "x"), "they must be 'x' and 'seed'"),
        (lambda d: fit_exponent(d.assign_coords(x=d["x"] - 0.2), "x"), "needs positive values"),
        (lambda d: fit_exponent(d.isel(x=[0]), "x"), "it needs at least two"),
        (lambda d: fit_exponent(xr.full_like(d, np.inf).drop_attrs(), "x"), "give the positive limit"),
        (lambda d: exponents_by_seed(d.isel(seed=[0]), "x"), "needs at least two"),
        (lambda d: calibrate(d.isel(seed=0, drop=True), d, "x", on=[0.5]), "are not all values of x"),
        (lambda d: calibrate(d.isel(seed=0, drop=True), d, "x", on=SETTINGS), "hold out the others"),
        (lambda d: calibrate(-d.isel(seed=0, drop=True), d, "x", on=[0.2]), "positive and finite"),
    ],
)
def test_what_cannot_be_fitted_is_refused(build, sentence):
    with pytest.raises(InputError, match=sentence):
        build(times(np.random.default_rng(0), limit=1e9))


def test_a_log_slope_is_the_power_of_a_power_law_and_nothing_else_has_one():
    steps = np.array([1.0, 2.0, 5.0, 10.0])
    data = xr.DataArray(np.stack([3 * steps**-0.7, steps**2, steps - 2]), dims=("seed", "step"), coords={"step": steps})
    found = log_slope(data, "step").values
    assert np.allclose(found[:2], [-0.7, 2.0]) and np.isnan(found[2])

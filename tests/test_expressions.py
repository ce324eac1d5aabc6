"""Expressions are descriptions: nothing is read before they are evaluated, and then they are xarray's own numbers."""

import operator

import numpy as np
import pytest
import xarray as xr

from iclab.errors import InputError
from iclab.expressions import apply, measured

RANDOM = np.random.default_rng(0)
RESULTS = {
    "sums": xr.Dataset(
        {"error": (("setting", "seed", "total"), RANDOM.random((2, 3, 4))), "loss": ("seed", RANDOM.random(3))},
        {"setting": ["standard", "wide"], "seed": [0, 1, 2], "total": [0.5, 1.0, 1.5, 2.0]},
    ),
    "training": xr.Dataset(
        {"loss": (("seed", "step"), RANDOM.random((3, 5)))}, {"seed": [0, 1, 2], "step": [0, 10, 20, 30, 40]}
    ),
}
ERROR, LOSS = measured("sums", "error"), measured("training", "loss")
error, loss = RESULTS["sums"]["error"], RESULTS["training"]["loss"]


def test_nothing_is_evaluated_before_it_is_asked_for():
    asked = []

    def watch(data):
        asked.append(data)
        return data

    described = apply(watch, measured("nowhere", "nothing")).sel(no=1).max("no") + 1
    assert asked == [] and described.needs == ("nowhere",)
    assert apply(watch, LOSS).last().evaluate(RESULTS).equals(loss.isel(step=-1))
    assert len(asked) == 1


def test_needs_are_every_experiment_that_is_read_in_order_and_once():
    assert (LOSS.last() - ERROR.mean("total") * measured("sums", "loss")).needs == ("training", "sums")
    assert apply(operator.sub, 1.0, ERROR).needs == ("sums",)
    assert apply(xr.where, cond=LOSS > 0, x=measured("a", "b"), y=0).needs == ("training", "a")
    assert LOSS.where(measured("mask", "ok")).needs == ("training", "mask")
    assert apply(abs, 3).needs == ()


@pytest.mark.parametrize(
    "operation",
    [
        operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.le, operator.gt,
        operator.ge,
    ],
)  # fmt: skip
def test_arithmetic_is_that_of_xarray_on_either_side(operation):
    plain, other = loss.isel(step=0), RESULTS["sums"]["loss"]
    described, another = LOSS.first(), measured("sums", "loss")
    assert operation(described, another).evaluate(RESULTS).equals(operation(plain, other))
    for number in (2, 0.5, np.float64(1.5)):
        assert operation(described, number).evaluate(RESULTS).equals(operation(plain, number))
        assert operation(number, described).evaluate(RESULTS).equals(operation(number, plain))


def test_an_array_on_the_left_leaves_the_arithmetic_to_the_expression():
    offsets = np.array([1.0, 2.0, 3.0])
    assert (offsets - LOSS.first()).evaluate(RESULTS).equals(offsets - loss.isel(step=0))


def test_signs_and_masks_are_those_of_xarray():
    assert abs(-LOSS).evaluate(RESULTS).equals(loss)
    between = (LOSS > 0.2) & (LOSS < 0.8)
    assert between.evaluate(RESULTS).equals((loss > 0.2) & (loss < 0.8))
    assert LOSS.where(between, 0.0).evaluate(RESULTS).equals(loss.where((loss > 0.2) & (loss < 0.8), 0.0))
    assert LOSS.where(between).notnull().evaluate(RESULTS).equals((loss > 0.2) & (loss < 0.8))


def test_a_chain_of_comparisons_is_refused_where_it_would_drop_its_first_half():
    with pytest.raises(TypeError, match=r"has no truth value before it is evaluated; write \(0 < x\) & \(x < 1\)"):
        0 < LOSS < 1  # noqa: B015


@pytest.mark.parametrize("name", ["max", "min", "mean", "median", "sum"])
def test_reductions_are_those_of_xarray(name):
    assert getattr(ERROR, name)("total").evaluate(RESULTS).equals(getattr(error, name)("total"))


def test_a_diverged_point_may_make_the_largest_of_all_unknown():
    data = {"sums": xr.Dataset({"error": (("seed", "total"), [[1.0, np.nan], [1.0, 2.0]])})}
    assert ERROR.max("total").evaluate(data).values.tolist() == [1.0, 2.0]
    assert np.isnan(ERROR.max("total", skipna=False).evaluate(data).values).tolist() == [True, False]
    assert np.isnan(ERROR.min("total", skipna=False).evaluate(data).values).tolist() == [True, False]


def test_choosing_by_label_and_by_place():
    chosen = ERROR.sel(setting="standard", total=slice(1, 2)).max("total")
    assert chosen.evaluate(RESULTS).equals(error.sel(setting="standard", total=slice(1, 2)).max("total"))
    assert ERROR.sel(total=1).evaluate(RESULTS).equals(error.sel(total=1.0))
    assert ERROR.sel(total=[0.5, 2.0]).evaluate(RESULTS).equals(error.sel(total=[0.5, 2.0]))
    assert LOSS.first().evaluate(RESULTS).equals(loss.isel(step=0))
    assert ERROR.last("total").evaluate(RESULTS).equals(error.isel(total=-1))
    assert LOSS.coordinate("step").evaluate(RESULTS).equals(loss["step"])


def test_apply_takes_expressions_and_plain_values_in_any_place():
    def weighted(values, weight, *, offset):
        return weight * values + offset

    found = apply(weighted, LOSS, 2.0, offset=LOSS.first()).evaluate(RESULTS)
    assert found.equals(2.0 * loss + loss.isel(step=0))


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        (measured("sum", "error"), "there is no experiment 'sum'. Did you mean 'sums'?"),
        (measured("zzz", "error"), "there is no experiment 'zzz'. Known: sums, training."),
        (measured("sums", "eror"), "the experiment 'sums' has no 'eror'. Did you mean 'error'?"),
        (ERROR.sel(totl=1.0), "error has no dimension 'totl'. Did you mean 'total'?"),
        (ERROR.isel(totl=0), "error has no dimension 'totl'. Did you mean 'total'?"),
        (LOSS.first("stpe"), "loss has no dimension 'stpe'. Did you mean 'step'?"),
        (ERROR.sel(setting="wdie"), "error has no setting = 'wdie'; it has standard, wide."),
        (ERROR.sel(total=3.0), "error has no total = 3.0; it has 0.5, 1.0, 1.5, 2.0."),
        (ERROR.sel(total="one"), "error has no total = 'one'; it has 0.5, 1.0, 1.5, 2.0."),
        (ERROR.sel(setting=1), "error has no setting = 1; it has standard, wide."),
        (LOSS.coordinate("stpe"), "loss has no coordinate 'stpe'. Did you mean 'step'?"),
        (ERROR.isel(total=9), "error.isel(...): IndexError: index 9 is out of bounds"),
        (ERROR.sel(total=[0.5, 7.0]), "error.sel(...): KeyError: \"not all values found in index 'total'"),
        (ERROR.max("totl"), "error.max(...): ValueError: 'totl' not found in array dimensions"),
        ((ERROR + 1.0 - ERROR * LOSS).mean(["totl"]), "the result.mean(...): ValueError:"),
    ],
)
def test_what_is_not_there_is_said_in_one_sentence(expression, sentence):
    with pytest.raises(InputError) as refused:
        expression.evaluate(RESULTS)
    assert str(refused.value).startswith(sentence) and "\n" not in str(refused.value)


@pytest.mark.parametrize("dim", ["data", "name", "function"])
def test_a_dimension_may_have_any_name(dim):
    values = xr.DataArray([[1.0, 2.0]], dims=("seed", dim), coords={dim: ["a", "b"]})
    chosen = measured("sums", "error").sel(**{dim: "b"}).evaluate({"sums": xr.Dataset({"error": values})})
    assert chosen.values.tolist() == [2.0]

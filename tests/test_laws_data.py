"""Laws: from curves with a known exponent to a part of a statement, a row of a table and a panel."""

import dataclasses
import io

import numpy as np
import pytest
import xarray as xr

from iclab.authoring.laws import Law, geometric, gridded, law_table, passages, swept
from iclab.authoring.pictures import Power
from iclab.drawing import boundary_map, panels
from iclab.entries import judge
from iclab.expressions import measured
from iclab.kinds import Outcome
from iclab.papers import PAPERS
from iclab.statements import Statement
from iclab.statistics import Criterion, band, first_below, interval, trend

VALUES = np.array([0.25, 0.5, 1.0])
STEPS = geometric(4000)
CRITERIA = {"loss below 0.1": Criterion(0.1), "loss below 0.5": Criterion(0.5)}
LAW = Law(
    "rate-value", "value", (0.25, 0.5, 1.0), "v", -2.0, on=(0.5, 1.0), towards="small", criteria=CRITERIA,
    variable="loss", rivals={"v⁻¹": -1.0},
)  # fmt: skip


def results(exponent, scale=100.0, noise=0.02, seeds=8):
    """Curves exp(-t/T) with T = scale · value^exponent, another scale for every seed."""
    random = np.random.default_rng(0)
    times = scale * VALUES[:, None, None] ** exponent * np.exp(noise * random.standard_normal((3, seeds, 1)))
    curves = np.exp(-np.array(STEPS) / times)
    return {
        "rate-value": xr.Dataset(
            {"loss": (("value", "seed", "step"), curves)}, {"value": VALUES, "seed": range(seeds), "step": STEPS}
        )
    }


def judged(law, data):
    part = law.part()
    return part.rule.judge(part.statistic.evaluate(data))


# The time grows like v⁻² as v goes to 0: at most, at least, exactly


@pytest.mark.parametrize(
    ("side", "towards", "exponent", "words"),
    [
        ("upper", "small", -2.0, "holds: exponent"),
        ("upper", "small", -1.0, "holds, loose: exponent"),
        ("upper", "small", -3.0, "fails in scaling: exponent"),
        ("lower", "small", -2.0, "holds: exponent"),
        ("lower", "small", -1.0, "fails in scaling: exponent"),
        ("lower", "small", -3.0, "holds, loose: exponent"),
        ("upper", "large", -1.0, "fails in scaling: exponent"),
        ("lower", "large", -3.0, "fails in scaling: exponent"),
        ("both", "small", -2.0, "holds: exponent"),
        ("both", "small", -1.0, "fails: exponent"),
        ("both", "small", -3.0, "fails: exponent"),
    ],
)
def test_the_finding_follows_the_exponent_of_the_curves(side, towards, exponent, words):
    finding = judged(dataclasses.replace(LAW, side=side, towards=towards), results(exponent, scale=20.0))
    assert finding.words.startswith(words) and finding.interval.measured == pytest.approx(exponent, abs=0.15)


def test_a_law_is_a_part_of_a_statement_and_names_what_it_reads():
    part = LAW.part()
    assert part.name == "iterations in v" and part.statistic.needs == ("rate-value",) and LAW.over == "value"
    entry = judge(Statement("paper/thm9", "Theorem 9", "T <= O(v⁻²).", (part,)), results(-2.0))
    assert entry["answer"] == "holds" and entry["kinds"] == ["bound"]
    assert entry["readings"][0]["parts"][0]["seeds"] == 8


def test_a_coordinate_may_be_a_function_of_the_setting():
    """Against v² the exponent is half of it."""
    squared = dataclasses.replace(LAW, coordinate=lambda values: values**2, exponent=-1.0, side="both")
    assert judged(squared, results(-2.0)).outcome is Outcome.holds
    assert squared.needed().evaluate(results(-2.0))["value"].values.tolist() == [0.0625, 0.25, 1.0]


def test_linear_in_is_a_line_with_an_offset():
    """Times 30 + 100 v: no power of v, but linear in it."""
    data = results(0.0)["rate-value"]
    times = 30 + 100 * VALUES[:, None, None] * np.exp(0.01 * np.random.default_rng(0).standard_normal((3, 8, 1)))
    lines = {"rate-value": data.assign(loss=(data["loss"].dims, np.exp(-np.array(STEPS) / times)))}
    linear = dataclasses.replace(LAW, exponent=1.0, side="both")
    assert judged(linear, lines).outcome is not Outcome.holds
    assert judged(dataclasses.replace(linear, affine=True), lines).outcome is Outcome.holds


def test_there_is_no_training_loss_before_the_first_step():
    data = results(-2.0)["rate-value"]["loss"]
    begun = data.where(data["step"] > 0)
    assert np.isnan(begun.sel(step=0)).all()
    found = passages(begun, "value", "step", Criterion(0.1), None)
    assert np.isfinite(found).all() and found.equals(passages(data, "value", "step", Criterion(0.1), None))


def test_a_time_that_was_not_reached_is_censored_and_none_at_all_is_open():
    slow = results(-2.0, scale=300.0)  # at v = 0.25 the loss is below 0.1 after 11,000 steps only
    assert law_table({"thm9": LAW}, slow).rows[0][6] == "8 of 24"
    assert judged(LAW, slow).words == "open: reached at 2 of 3 values of v only"
    never = results(-2.0, scale=1e9)
    assert judged(LAW, never).words == "open: never reached"
    assert law_table({"thm9": LAW}, never).rows[0][3] == "not determined"


def test_the_table_has_every_criterion_and_names_the_rivals_that_are_left():
    missing = dataclasses.replace(LAW, experiment="rate-missing")
    table = law_table({"thm9": LAW, "thm10": missing}, results(-2.0))
    assert [row[0] for row in table.rows] == ["thm9: iterations in v"] * 2
    assert [row[1] for row in table.rows] == list(CRITERIA)
    assert table.rows[0][2] == "-2" and table.rows[0][3].startswith("-2.0") and table.rows[0][5] == "none"
    assert float(table.rows[0][7].removeprefix("×")) < 1.1  # the constant of the easy settings predicts the hard one
    wrong = law_table({"thm9": LAW}, results(-1.0))
    assert wrong.rows[0][5] == "v⁻¹" and float(wrong.rows[0][7].removeprefix("×")) > 2.0


@pytest.mark.parametrize("scale", [100.0, 300.0, 1e9])
def test_panels_draw_whatever_was_reached(scale, tmp_path):
    figure, axes = panels(1, ("law",))
    LAW.panel("Theorem 9").draw(axes[0], results(-2.0, scale=scale))
    figure.savefig(tmp_path / "law.png")
    assert axes[0].get_xlabel() == "v" and axes[0].get_ylabel() == "iterations"
    legend = axes[0].get_legend()
    words = [text.get_text() for text in legend.get_texts()] if legend else []
    assert ("predicted at most -2" in words) == (scale < 1e9)


# Where laws come from


def test_geometric_steps_grow_by_a_factor_and_end_where_they_should():
    steps = np.array(geometric(1000, first=4, ratio=1.1))
    assert steps[0] == 0 and steps[1] == 4 and steps[-1] == 1000 and np.all(np.diff(steps) > 0)
    assert np.all(steps[12:-1] / steps[11:-2] < 1.2)
    assert geometric(3) == [0, 3]


def test_settings_become_dimensions():
    values = np.arange(8.0).reshape(4, 2)
    data = xr.Dataset({"error": (("setting", "seed"), values)}, {"setting": list("abcd"), "seed": [0, 1]})
    assert swept(data, "value", [1, 2, 3, 4])["error"].sel(value=3, seed=1) == 5
    grid = gridded(data, {"x": [10, 20], "y": [1, 2]})
    assert grid["error"].sel(x=20, y=1, seed=0) == 4 and grid["error"].dims == ("x", "y", "seed")


def test_the_laws_of_a_paper_are_experiments_and_parts_of_it():
    """Every scaling of a built-in paper is over a dimension of an experiment that it has."""
    for paper in PAPERS.values():
        for statement in paper.statements(paper.settings["quick"]):
            for part in statement.parts:
                assert set(part.statistic.needs) <= set(paper.experiments), statement.id
    paper = PAPERS["feature-selection"]
    rates = {name for name in paper.experiments if name.startswith("rate-")}
    found = {s.name: set(s.needs()) for s in paper.statements(paper.settings["quick"]) if s.name == "eq6"}
    assert rates <= found["eq6"] and len(rates) == 6


def test_a_boundary_is_drawn_on_the_cells_of_its_settings(tmp_path):
    data = xr.DataArray(
        np.zeros((3, 2, 4)), dims=("x", "y", "seed"), coords={"x": [0.1, 0.5, 1.0], "y": [10, 20]}, name="error"
    )
    figure, axes = panels(1, ("map",))
    line = np.linspace(0.01, 1, 50)
    boundary_map(axes[0], data, "x", "y", "x", "y", (line, 10 / line), "y = 10/x")
    figure.savefig(tmp_path / "map.png")
    shown = axes[0].lines[1].get_ydata()
    assert len(shown) > 0 and shown.min() >= 5 and shown.max() <= 25


def test_cells_of_one_size_have_the_boundary_between_their_centres():
    coords = {"x": [-1.0, 0.0, 1.0, 2.0], "y": [1.0, 2.0, 4.0]}
    data = xr.DataArray(np.zeros((4, 3, 2)), dims=("x", "y", "seed"), coords=coords, name="error")
    _, axes = panels(1, ("map",))
    line = np.array([0.5, 1.0, 2.0])
    boundary_map(axes[0], data, "x", "y", "x", "y", (line, 2 / line), "y = 2/x", most=1.0, even=True)
    np.testing.assert_allclose(axes[0].lines[1].get_xdata(), [1.5, 2.0, 3.0])
    np.testing.assert_allclose(axes[0].lines[1].get_ydata(), [2.0, 1.0, 0.0], atol=1e-12)
    assert [text.get_text() for text in axes[0].get_yticklabels()] == ["1", "2", "4"]


# Numbers over seeds


def test_the_interval_covers_the_true_mean_as_often_as_it_says():
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(2000):
        one = interval(random.normal(3.0, 2.0, 8))
        hits += one.low < 3.0 < one.high
    assert abs(hits / 2000 - 0.95) < 0.02


def test_diverged_seeds_are_counted_and_never_averaged():
    one = interval(np.array([1.0, np.nan, 3.0, np.inf]))
    assert (one.measured, one.seeds, one.lost) == (2.0, 2, 2)
    nothing = interval(np.array([np.nan, np.nan]))
    assert nothing.seeds == 0 and np.isnan(nothing.measured)


def test_bands_are_intervals_point_by_point():
    data = xr.DataArray(np.random.default_rng(0).normal(size=(5, 3)), dims=("seed", "x"))
    mean, low, high = band(data)
    expected = interval(data.values[:, 1])
    assert (mean[1], low[1], high[1]) == pytest.approx((expected.measured, expected.low, expected.high))


def test_trends_are_rank_correlations_per_seed():
    values = [[1.0, 2, 3], [3, 2, 1], [2, 2, 2], [1, np.nan, 3]]
    data = xr.DataArray(values, dims=("seed", "x"), coords={"x": [0.1, 0.5, 0.6]})
    assert trend(data, "x").values[:3].tolist() == pytest.approx([1, -1, 0])
    assert np.isnan(trend(data, "x").values[3])


def test_first_passage_is_where_the_curve_stays_below():
    values = [[0.5, 0.01, 0.2, 0.01], [0.01] * 4, [0.5] * 4]
    data = xr.DataArray(values, dims=("seed", "x"), coords={"x": [4, 8, 12, 16]})
    assert first_below(data, "x", 0.05).values.tolist() == [16, 4, np.inf]


def test_rules_follow_from_the_settings():
    """Proposition 1 speaks of 1/M: twice as many patterns, another rule. √log M is asked over several M."""
    paper = PAPERS["feature-selection"]
    quick = paper.settings["quick"]
    more = dataclasses.replace(quick, irrelevant_patterns=55, feature_dimension=60, key_width=90, value_width=90)

    def bounds(settings):
        (found,) = (s for s in paper.statements(settings) if s.name == "prop1")
        return {part.name: part.rule for part in found.parts}

    small, large = bounds(quick), bounds(more)
    name = "(9) attention outside N*, C = 1"
    assert small[name].size == pytest.approx(1 / 30) and large[name].size == pytest.approx(1 / 60)
    assert (large["(7) ‖W μ‖, key"].exponent, large["(7) ‖W μ‖, key"].symbol) == (0.5, "log M")


@pytest.mark.parametrize("attributes", [{}, {"limit": 100.0}])
@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_a_law_of_which_nothing_was_reached_can_be_drawn(number, attributes):
    labels = {"value": VALUES, "seed": range(2)}
    times = xr.DataArray(np.full((3, 2), number), dims=("value", "seed"), coords=labels, attrs=attributes)
    power = Power("never", measured("rate-value", "needed"), LAW.rule)
    figure, (axis,) = panels(1, ("never",))
    power.show(axis, times)
    figure.savefig(io.BytesIO())

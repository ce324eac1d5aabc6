"""Figures: the numbers read back from them are the numbers drawn, in words too, and lines are named where they end."""

import csv
import io

import numpy as np
import pytest
import xarray as xr

from iclab.authoring.pictures import Lines, picture
from iclab.drawing import apart, curve, finish, panels
from iclab.expressions import measured
from iclab.report.figure_numbers import in_words, points, to_csv
from iclab.report.figures import draw
from iclab.statistics import band

STEPS = [0, 10, 20, 30]


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    rising = np.linspace(0.1, 0.9, 4) + 0.02 * random.normal(size=(5, 4))
    return xr.DataArray(rising, dims=("seed", "step"), coords={"step": STEPS})


@pytest.fixture
def figure(data):
    figure, (left, right) = panels(2, ("1(A) Curves", "1(B) Bars"))
    curve(left, data, "step", label="up", colour=0)
    curve(left, 1 - data, "step", label="down", colour=1)
    left.axhline(0.5, ls="--")
    left.set_xlabel("training step")
    left.set_ylabel("mass on l_ts")
    left.legend()
    right.bar([0, 1], [0.25, 0.75], yerr=[[0.05, 0.1], [0.05, 0.2]])
    right.set_xticks([0, 1], ["in", "out"])
    right.set_ylabel("error")
    return figure


def test_lines_and_their_bands_are_read_back_as_they_were_computed(figure, data):
    mean, low, high = band(data)
    found = [point for point in points(figure) if point.series == "up"]
    assert [point.panel for point in found] == ["1(A) Curves"] * 4
    np.testing.assert_allclose([point.x for point in found], STEPS)
    np.testing.assert_allclose([point.y for point in found], mean)
    np.testing.assert_allclose([point.low for point in found], low)
    np.testing.assert_allclose([point.high for point in found], high)


def test_bars_carry_their_categories_and_whiskers_and_a_threshold_is_no_data(figure):
    found = points(figure)
    assert {point.series for point in found} == {"up", "down", "bars"}
    bars = [(point.x, point.y, round(point.low, 6), round(point.high, 6)) for point in found if point.series == "bars"]
    assert bars == [("in", 0.25, 0.2, 0.3), ("out", 0.75, 0.65, 0.95)]


def test_csv_has_one_line_per_number_and_no_empty_column(figure):
    rows = list(csv.DictReader(io.StringIO(to_csv(points(figure)))))
    assert len(rows) == 4 + 4 + 2 and list(rows[0]) == ["panel", "series", "x", "y", "low", "high"]


def test_words_say_where_series_go(figure, data):
    mean = data.mean("seed").values
    words = in_words(figure)
    assert "1(A) Curves: mass on l_ts against training step from 0 to 30." in words
    assert f"up rises from {mean[0]:.3g} to {mean[-1]:.3g}; down falls from {1 - mean[0]:.3g}" in words
    assert words.endswith("1(B) Bars: error. in 0.25, out 0.75.")


def test_heat_maps_and_scatters_are_read_back_too():
    figure, (left, right) = panels(2, ("map", "dots"))
    left.imshow(np.arange(6.0).reshape(2, 3))
    left.set_yticks([0, 1], ["low", "high"])
    right.scatter([1, 2], [3, 4], c=[5, 6], label="neurons")
    found = points(figure)
    assert [(p.x, p.y, p.value) for p in found if p.series == "cells"][-1] == (2.0, "high", 5.0)
    assert [(p.x, p.y, p.value) for p in found if p.series == "neurons"] == [(1.0, 3.0, 5.0), (2.0, 4.0, 6.0)]


def test_a_mesh_is_read_back_at_the_middle_of_its_cells():
    figure, (axis,) = panels(1, ("mesh",))
    axis.pcolormesh([0, 1, 2], [0, 10], [[7.0, 8.0]])
    assert [(p.x, p.y, p.value) for p in points(figure)] == [(0.5, 5.0, 7.0), (1.5, 5.0, 8.0)]


def test_lines_are_named_at_their_ends_instead_of_in_a_legend(figure):
    left = figure.axes[0]
    limits = left.get_xlim()
    finish(figure)
    assert left.get_legend() is None and left.get_xlim() == limits
    names = {text.get_text(): text for text in left.texts}
    assert set(names) == {"up", "down"}
    assert names["up"].get_color() == left.get_lines()[0].get_color()
    assert left.get_ylabel() == r"mass on $l_{\mathrm{ts}}$"
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
    boxes = [text.get_window_extent(renderer) for text in names.values()]
    assert not boxes[0].overlaps(boxes[1])


def test_a_shared_legend_of_long_names_goes_below_the_panels(data):
    figure, axes = panels(2, ("a", "b"))
    for axis in axes:
        for number in range(2):
            curve(
                axis,
                data + number,
                "step",
                label=f"a name that is far too long to stand beside a line, {number}",
                colour=number,
            )
    axes[0].legend()
    finish(figure)
    assert axes[0].get_legend() is None and len(figure.legends) == 1 and not axes[0].texts


def test_names_are_moved_apart_in_the_order_of_their_lines():
    heights, rank = [0.1] * 5, [0.5, 0.1, 0.4, 0.2, 0.3]
    places = apart([0.0] * 5, heights, rank)
    assert np.argsort(places).tolist() == np.argsort(rank).tolist()
    assert np.all(np.diff(sorted(places)) > 0.0999) and min(places) >= 0.05


def test_a_figure_in_all_forms(figure):
    drawn = draw(figure)
    assert drawn.svg.startswith(b"<?xml")
    assert drawn.csv.count("\n") == 11 and "rises" in drawn.words
    assert set(drawn.files()) == {"svg", "csv"}


def test_a_figure_none_of_whose_results_are_there_says_so():
    """As where one reading of a statement is asked for, and its figure shows others."""
    drawn = draw(picture({}, Lines("loss", measured("training", "loss"), "step")))
    assert drawn.words.startswith("This run has no results for this figure") and drawn.svg

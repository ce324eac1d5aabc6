"""Laws: from curves with a known exponent to a verdict, a row and a panel."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from iclab.claims import judge

from iclab.authoring.laws import Law, geometric, gridded, law_claim, law_panel, law_table, swept
from iclab.drawing import boundary_map, panels
from iclab.errors import InputError
from iclab.papers import PAPERS, select
from iclab.statistics import Criterion

VALUES = np.array([0.25, 0.5, 1.0])
STEPS = geometric(4000)
CRITERIA = {"loss below 0.1": Criterion(0.1), "loss below 0.5": Criterion(0.5)}


def results(exponent, scale=100.0, noise=0.02, seeds=8):
    """Curves exp(-t/T) with T = scale · value^exponent, another scale for every seed."""
    random = np.random.default_rng(0)
    times = scale * VALUES[:, None, None] ** exponent * np.exp(noise * random.standard_normal((3, seeds, 1)))
    curves = np.exp(-np.array(STEPS) / times)
    return {
        "runs": xr.Dataset(
            {"loss": (("value", "seed", "step"), curves)}, {"value": VALUES, "seed": range(seeds), "step": STEPS}
        )
    }


LAW = Law(
    "thm9", "Theorem 9", "The time grows like v⁻².", ("runs",), lambda r: r["runs"]["loss"], "value", "v", -2.0, CRITERIA,
    (0.5, 1.0), rivals={"v⁻¹": -1.0},
)  # fmt: skip


@pytest.mark.parametrize(("exponent", "verdict"), [(-2.0, "reproduced"), (-1.0, "differs"), (-1.5, "inconclusive")])
def test_the_verdict_follows_the_exponent_of_the_curves(exponent, verdict):
    entry = judge(law_claim("paper", LAW, ()), results(exponent, noise=0.02 if exponent != -1.5 else 0.3))
    assert entry["verdict"] == verdict and abs(entry["measured"] - exponent) < 0.2
    assert entry["topic"] == "rates" and entry["seeds"] == 8


def test_the_table_has_every_criterion_and_names_the_rivals_that_are_left():
    table = law_table([LAW, dataclasses.replace(LAW, needs=("missing",))], results(-2.0))
    assert [row[1] for row in table.rows] == list(CRITERIA)
    assert table.rows[0][2] == "-2" and table.rows[0][3].startswith("-2.0") and table.rows[0][5] == "none"
    assert float(table.rows[0][7].removeprefix("×")) < 1.1  # the constant of the easy settings predicts the hard one
    wrong = law_table([LAW], results(-1.0))
    assert wrong.rows[0][5] == "v⁻¹" and float(wrong.rows[0][7].removeprefix("×")) > 2.0


def test_a_coordinate_may_be_a_function_of_the_setting():
    """Against 2v the exponent is the same, against v² half of it."""
    squared = dataclasses.replace(LAW, coordinate=lambda values: values**2, predicted=-1.0)
    assert judge(law_claim("paper", squared, ()), results(-2.0))["verdict"] == "reproduced"


def test_what_is_never_reached_is_censored_and_nothing_at_all_is_not_attempted_silently():
    slow = results(-2.0, scale=300.0)  # at v = 0.25 the loss is below 0.1 after 11,000 steps only
    entry = judge(law_claim("paper", LAW, ()), slow)
    assert law_table([LAW], slow).rows[0][6] == "8 of 24"
    assert abs(entry["measured"] + 2.0) < 0.5
    nothing = judge(law_claim("paper", LAW, ()), results(-2.0, scale=1e9))
    assert nothing["measured"] is None and nothing["verdict"] == "inconclusive"
    assert law_table([LAW], results(-2.0, scale=1e9)).rows[0][3] == "not determined"


@pytest.mark.parametrize("scale", [100.0, 300.0, 1e9])
def test_panels_draw_whatever_was_reached(scale, tmp_path):
    figure, axes = panels(1, ("law",))
    law_panel(axes[0], LAW, results(-2.0, scale=scale))
    figure.savefig(tmp_path / "law.png")
    assert axes[0].get_xlabel() == "v"


def test_geometric_steps_grow_by_a_factor_and_end_where_they_should():
    steps = np.array(geometric(1000, first=4, ratio=1.1))
    assert steps[0] == 0 and steps[1] == 4 and steps[-1] == 1000 and np.all(np.diff(steps) > 0)
    assert np.all(steps[12:-1] / steps[11:-2] < 1.2)
    assert geometric(3) == [0, 3]


def test_settings_become_dimensions():
    data = xr.Dataset(
        {"error": (("setting", "seed"), np.arange(8.0).reshape(4, 2))}, {"setting": list("abcd"), "seed": [0, 1]}
    )
    assert swept(data, "value", [1, 2, 3, 4])["error"].sel(value=3, seed=1) == 5
    grid = gridded(data, {"x": [10, 20], "y": [1, 2]})
    assert grid["error"].sel(x=20, y=1, seed=0) == 4 and grid["error"].dims == ("x", "y", "seed")


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


def test_only_selects_by_topic():
    rates = select((), only="rates")
    assert {claim.topic for claim in rates} == {"rates"} and {claim.paper for claim in rates} == set(PAPERS) - {
        "vector-arithmetic",
        "language-model",
    }
    some = select(["nonlinear-icl/thm3.3"], only="rates")
    assert [claim.id.split("/")[1] for claim in some] == ["thm3.3-strength", "thm3.3-patterns", "thm3.3-region"]
    deep = select((), only="gpt2")
    assert {claim.paper for claim in deep} == {"nonlinear-icl", "mamba-outliers", "chain-of-thought"}
    assert all("gpt2" in claim.id for claim in deep)
    own = select((), only="simulations")
    assert {claim.paper for claim in own} == set(PAPERS) - {"language-model"}
    models = [claim for claim in select(()) if claim.paper != "language-model"]
    assert {c.id for c in (*own, *rates, *deep)} == {c.id for c in models} and len(own) + len(rates) + len(deep) == len(
        models
    )
    with pytest.raises(InputError, match=r"--only rate: no claim has this topic\. Did you mean 'rates'"):
        select((), only="rate")
    with pytest.raises(InputError, match="none of nonlinear-icl/fig2a has this topic"):
        select(["nonlinear-icl/fig2a"], only="rates")

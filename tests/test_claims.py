import json

import numpy as np
import pytest
import xarray as xr
from iclab.claims import Check, Claim, Verdict, above, below, judge, note, within

from iclab.papers import PAPERS, select
from iclab.statistics import Interval, band, first_below, interval, trend


def found(low, high):
    return Interval((low + high) / 2, low, high, 8, 0)


@pytest.mark.parametrize(
    ("rule", "low", "high", "verdict"),
    [
        (below(0.01), 0.0, 0.005, "reproduced"),
        (below(0.01), 0.02, 0.03, "differs"),
        (below(0.01), 0.005, 0.02, "inconclusive"),
        (above(0.9), 0.91, 0.99, "reproduced"),
        (above(0.9), 0.5, 0.6, "differs"),
        (within(0.1, 0.2), 0.12, 0.18, "reproduced"),
        (within(0.1, 0.2), 0.05, 0.15, "inconclusive"),
        (within(0.1, 0.2), 0.3, 0.4, "differs"),
        (below(0.01), np.nan, np.nan, "inconclusive"),
    ],
)
def test_the_verdict_compares_the_interval_with_the_rule(rule, low, high, verdict):
    assert rule.verdict(found(low, high)) == verdict


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


def make(*verdicts):
    data = {
        "reproduced": [1.0, 1.1, 0.9],
        "differs": [5.0, 5.1, 4.9],
        "inconclusive": [1.0, 2.1, 2.5],
        "not-attempted": [1.0, 1.0, 1.0],
    }
    checks = tuple(
        Check(f"check {i}", below(2.0), lambda r, v=v: xr.DataArray(data[v], dims="seed"))
        for i, v in enumerate(verdicts)
    )
    return Claim("paper/thm1", "Theorem 1", "words", checks, ())


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (("reproduced", "reproduced"), "reproduced"),
        (("reproduced", "differs"), "differs"),
        (("inconclusive", "reproduced"), "inconclusive"),
        (("inconclusive", "differs"), "differs"),
    ],
)
def test_a_claim_is_as_good_as_its_worst_check(parts, whole):
    entry = judge(make(*parts), {})
    assert entry["verdict"] == whole
    assert entry["decided_by"] == f"check {parts.index(whole)}"
    json.dumps(entry, allow_nan=False)


def test_without_enough_to_say_anything_there_is_no_verdict_but_there_are_numbers():
    entry = judge(make("reproduced"), {}, attempted=False)
    assert entry["verdict"] == Verdict.not_attempted and entry["measured"] == pytest.approx(1.0)


def test_trends_are_rank_correlations_per_seed():
    data = xr.DataArray(
        [[1.0, 2, 3], [3, 2, 1], [2, 2, 2], [1, np.nan, 3]], dims=("seed", "x"), coords={"x": [0.1, 0.5, 0.6]}
    )
    assert trend(data, "x").values[:3].tolist() == pytest.approx([1, -1, 0])
    assert np.isnan(trend(data, "x").values[3])


def test_first_passage_is_where_the_curve_stays_below():
    data = xr.DataArray(
        [[0.5, 0.01, 0.2, 0.01], [0.01] * 4, [0.5] * 4], dims=("seed", "x"), coords={"x": [4, 8, 12, 16]}
    )
    assert first_below(data, "x", 0.05).values.tolist() == [16, 4, np.inf]


def test_bands_are_intervals_point_by_point():
    data = xr.DataArray(np.random.default_rng(0).normal(size=(5, 3)), dims=("seed", "x"))
    mean, low, high = band(data)
    expected = interval(data.values[:, 1])
    assert (mean[1], low[1], high[1]) == pytest.approx((expected.measured, expected.low, expected.high))


def test_every_claim_has_an_id_of_the_agreed_form_a_rule_and_known_needs():
    for paper in PAPERS.values():
        for profile, settings in paper.settings.items():
            claims = paper.claims(settings)
            assert len({claim.id for claim in claims}) == len(claims), profile
            for claim in claims:
                name = claim.id.removeprefix(f"{paper.id}/")
                beyond = name.startswith("beyond-")
                assert beyond or name.startswith(("thm", "prop", "cor", "lem", "fig", "table", "eq"))
                assert beyond == claim.source.lower().startswith("beyond the paper"), claim.id
                assert claim.checks and claim.statement and claim.unstated
                assert set(claim.needs) <= set(paper.experiments)
                assert claim.figure is None or claim.figure in paper.figures
                assert claim.table is None or claim.table in paper.tables


def test_a_prefix_names_all_its_panels_and_does_not_end_inside_a_number():
    names = [claim.id for claim in select(["nonlinear-icl/fig2"])]
    assert names == [f"nonlinear-icl/fig2{panel}" for panel in "abcd"]
    panels = [claim.id.split("/")[1] for claim in select(["nonlinear-icl/fig3a"])]
    assert panels[:2] == ["fig3a", "fig3a-hinge"] and all(name.startswith("fig3a-gpt2") for name in panels[2:])
    assert len(select(["nonlinear-icl/prop"])) == 3 and len(select(["feature-selection/fig"])) == 3
    assert len(select([])) == sum(len(paper.claims(paper.settings["quick"])) for paper in PAPERS.values())


def test_what_was_chosen_after_a_result_stands_at_the_claim_and_in_its_entry():
    by_id = {claim.id: claim for claim in select([])}
    assert "after the first run" in by_id["mamba-outliers/fig1a-18tasks-magnitude10-exact"].afterwards
    assert by_id["nonlinear-icl/thm3.3"].afterwards == ""
    with pytest.raises(AssertionError, match="no claim is called"):
        note([make("reproduced")], {"fig9": "a note that names nothing"})
    assert judge(note([make("reproduced")], {"thm*": "late"})[0], {})["afterwards"] == "late"


def test_rules_follow_from_the_settings():
    import dataclasses

    paper = PAPERS["nonlinear-icl"]
    larger = dataclasses.replace(paper.settings["quick"], batch=512)
    rule = lambda settings: paper.claims(settings)[0].checks[0].rule.high  # noqa: E731
    assert rule(larger) == pytest.approx(rule(paper.settings["quick"]) / 2)

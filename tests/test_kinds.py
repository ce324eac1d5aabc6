"""Every kind of statement on numbers whose answer is known."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from iclab.kinds import (
    KINDS,
    Bound,
    Outcome,
    Range,
    Rule,
    above,
    below,
    big_o,
    describe,
    identical,
    larger,
    omega,
    smaller,
    suffices,
    within,
)
from iclab.scaling import Scaling

SIZES = np.array([0.25, 0.5, 1.0, 2.0])
CLOSE, WIDE = (0.9, 1.0, 1.1), (0.2, 1.0, 1.8)


def seeds(*values):
    return xr.DataArray(np.array(values, float), dims="seed", coords={"seed": range(len(values))})


def power(exponent, scale=3.0, sizes=SIZES, count=6, noise=0.02, offset=0.0):
    """scale · size^exponent + offset, every seed with its own noise at every size."""
    random = np.random.default_rng(0)
    factor = np.exp(noise * random.standard_normal((len(sizes), count)))
    values = scale * np.asarray(sizes)[:, None] ** exponent * factor + offset
    return xr.DataArray(values, dims=("size", "seed"), coords={"size": sizes, "seed": range(count)})


# One number per seed


@pytest.mark.parametrize(
    ("rule", "values", "outcome"),
    [
        (below(2.0), CLOSE, "holds"),
        (below(0.5), CLOSE, "fails"),
        (below(1.05), WIDE, "open"),
        (above(0.5), CLOSE, "holds"),
        (above(2.0), CLOSE, "fails"),
        (above(0.9), WIDE, "open"),
        (within(0.5, 1.5), CLOSE, "holds"),
        (within(2.0, 3.0), CLOSE, "fails"),
        (within(0.95, 3.0), CLOSE, "open"),
        (larger(), CLOSE, "holds"),
        (larger(by=2.0), CLOSE, "fails"),
        (larger(), (0.0, 0.0, 0.0), "fails"),
        (smaller(), CLOSE, "fails"),
        (smaller(by=0.5), (-0.9, -1.0, -1.1), "holds"),
        (suffices(2.0), CLOSE, "holds"),
        (identical(1e-5), (1e-7, 0.0, 1e-7), "holds"),
        (identical(1e-5), (1e-3, 1.1e-3, 0.9e-3), "fails"),
    ],
)
def test_a_range_holds_inside_fails_outside_and_is_open_across_its_edge(rule, values, outcome):
    finding = rule.judge(seeds(*values))
    assert finding.outcome == outcome and finding.words.startswith(outcome)
    assert ("crosses the rule" in finding.words) == (outcome == "open")
    assert finding.values == values and finding.interval.measured == pytest.approx(np.mean(values))


def test_the_edge_itself_does_not_agree():
    assert below(1.0).judge(seeds(1.0, 1.0, 1.0)).outcome is Outcome.fails
    assert above(1.0).judge(seeds(1.0, 1.0, 1.0)).outcome is Outcome.fails


def test_diverged_seeds_are_left_out_and_counted():
    with_them, without = below(2.0).judge(seeds(0.9, np.nan, 1.1, np.nan)), below(2.0).judge(seeds(0.9, 1.1))
    assert (with_them.interval.seeds, with_them.interval.lost) == (2, 2)
    assert with_them.words == without.words and with_them.interval.low == without.interval.low
    assert np.isnan(with_them.values[1]) and len(with_them.values) == 4


@pytest.mark.parametrize("rule", [below(5.0), above(0.0), within(0, 2), big_o(5.0), omega(0.1)])
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((1.0,), "too few seeds"),
        ((1.0, np.nan, np.nan), "too few seeds"),
        ((np.nan, np.nan), "no seed has a number"),
        ((np.inf, np.inf, np.inf), "never reached by 3 of 3 seeds"),
        ((1.0, 1.1, np.inf), "never reached by 1 of 3 seeds"),
    ],
)
def test_where_nothing_can_be_said_the_answer_is_open_and_says_why(rule, values, why):
    finding = rule.judge(seeds(*values))
    assert finding.outcome is Outcome.open and finding.words == f"open: {why}"


def test_what_was_never_reached_is_no_zero_with_an_interval_of_no_width():
    finding = below(10.0).judge(seeds(np.inf, np.inf, np.inf, np.inf))
    assert finding.outcome is Outcome.open
    assert np.isnan([finding.interval.measured, finding.interval.low, finding.interval.high]).all()


def test_prompts_that_are_all_right_do_not_prove_that_all_prompts_would_be():
    right = xr.DataArray(np.ones(20), dims="prompt")
    assert above(0.8).judge(right, (0.0, 1.0)).outcome is Outcome.holds
    assert above(0.9).judge(right, (0.0, 1.0)).outcome is Outcome.open  # Wilson's lower end is 0.84
    assert above(0.8).judge(right, (0.0, 1.0)).unit == "prompt"


@pytest.mark.parametrize(("rule", "count"), [(below(0.0), 2), (within(0.0, 100.0), 4), (above(0.0), 8)], ids=str)
def test_at_the_edge_of_a_range_a_false_answer_is_given_in_at_most_5_percent_of_runs(rule, count):
    """The true mean is the edge: neither holds nor fails is right."""
    random = np.random.default_rng(count)
    runs = 2000
    answered = sum(rule.judge(seeds(*random.standard_normal(count))).outcome is not Outcome.open for _ in range(runs))
    assert answered / runs < 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


# A bound at one size


@pytest.mark.parametrize(
    ("rule", "values", "outcome", "constant"),
    [
        (big_o(2.0), (0.9, 1.0, 1.1), "holds", 0.5),
        (big_o(0.5), (0.9, 1.0, 1.1), "open", 2.0),
        (big_o(1.0), (0.9, 1.0, 1.1), "open", 1.0),
        (omega(0.5), (0.9, 1.0, 1.1), "holds", 2.0),
        (omega(2.0), (0.9, 1.0, 1.1), "open", 0.5),
    ],
)
def test_at_one_size_a_constant_of_1_proves_a_bound_and_nothing_refutes_it(rule, values, outcome, constant):
    finding = rule.judge(seeds(*values))
    assert finding.outcome == outcome and finding.details["constant"] == pytest.approx(constant)
    assert f"c ≈ {constant:.2g}" in finding.words
    assert ("cannot tell a constant from a failure" in finding.words) == (outcome == "open")


# A bound over sizes. Towards large sizes O(s^p) allows smaller exponents; towards small ones, larger ones.

ONE_SIDED = [("upper", "large", -1), ("upper", "small", 1), ("lower", "large", 1), ("lower", "small", -1)]


@pytest.mark.parametrize(("side", "towards", "allowed"), ONE_SIDED)
@pytest.mark.parametrize("exponent", [2.0, -1.0, 0.0])
def test_a_bound_over_sizes_is_tight_loose_or_fails_in_scaling(side, towards, allowed, exponent):
    rule = Scaling("size", exponent, "s", side, towards)
    far = 2 * rule.tolerance
    tight, loose, broken = (
        rule.judge(power(p)) for p in (exponent, exponent + allowed * far, exponent - allowed * far)
    )
    assert tight.outcome is Outcome.holds and tight.words.startswith("holds: exponent") and not tight.details["loose"]
    assert (
        loose.outcome is Outcome.holds and loose.words.startswith("holds, loose: exponent") and loose.details["loose"]
    )
    assert broken.outcome is Outcome.fails_in_scaling and broken.words.startswith("fails in scaling: exponent")
    assert broken.interval.measured == pytest.approx(exponent - allowed * far, abs=0.05)
    assert rule.kind == "bound" and all(f.details["predicted"] == exponent for f in (tight, loose, broken))


@pytest.mark.parametrize(("side", "towards", "allowed"), ONE_SIDED)
def test_at_the_end_of_the_tolerance_a_bound_is_open(side, towards, allowed):
    rule = Scaling("size", 2.0, "s", side, towards)
    finding = rule.judge(power(2.0 - allowed * rule.tolerance, noise=0.2))
    assert finding.outcome is Outcome.open and finding.words.endswith("crosses the rule")


def test_the_constant_of_a_bound_covers_every_size():
    data = power(1.0, scale=3.0, noise=0.0)
    data[0] *= 2.0
    bound = {side: Scaling("size", 1.0, "s", side, scale=1.5).judge(data) for side in ("upper", "lower")}
    assert bound["upper"].details["constant"] == pytest.approx(4.0)  # at the size where X/f is largest
    assert bound["lower"].details["constant"] == pytest.approx(2.0)
    exact = Scaling("size", 1.0, "s", scale=1.5).judge(power(1.0, scale=3.0))
    assert exact.words.startswith("holds with c ≈ 2: exponent 1")
    loose = Scaling("size", 1.0, "s", scale=3.0).judge(power(0.5, scale=3.0))
    assert loose.words.startswith("holds with c ≈ 2, loose: exponent 0.5")  # X/f = s^(-1/2), largest at s = 1/4


def test_a_size_that_was_never_reached_leaves_a_bound_without_a_constant():
    data = power(1.0)
    data[-1, 0] = np.inf
    assert "constant" not in Scaling("size", 1.0, "s", scale=1.0).judge(data).details
    data[-1, 0] = np.nan  # a diverged seed is left out of the mean at its size
    assert Scaling("size", 1.0, "s", scale=3.0).judge(data).details["constant"] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("exponent", "outcome"), [(2.0, "holds"), (1.7, "holds"), (1.2, "fails"), (2.8, "fails"), (0.0, "fails")]
)
def test_a_rate_is_two_sided(exponent, outcome):
    rule = Scaling("size", 2.0, "s", "both")
    finding = rule.judge(power(exponent))
    assert rule.kind == "rate" and finding.outcome == outcome and "loose" not in finding.words


def test_linear_in_allows_an_offset_which_no_pure_power_does():
    data = power(1.0, scale=3.0, noise=1e-4, offset=20.0)
    pure, affine = Scaling("size", 1.0, "s", "both"), Scaling("size", 1.0, "s", "both", affine=True)
    assert pure.judge(data).outcome is Outcome.fails
    finding = affine.judge(data)
    assert finding.outcome is Outcome.holds and finding.words.startswith("holds: 20 + 3 · s^1 explains")
    assert finding.details["offset"] == pytest.approx(20, abs=0.1)
    assert finding.details["slope"] == pytest.approx(3, abs=0.1)
    assert finding.interval.measured == pytest.approx(1, abs=0.05)
    assert Scaling("size", 1.0, "s", affine=True).kind == affine.kind == "rate"


def test_linear_in_finds_the_same_power_with_few_seeds_and_with_many():
    """Jackknife pseudo-values multiply differences of powers by the number of seeds: a power from a grid is noise."""
    data = power(0.69, sizes=np.array([1.0, 1.6, 2.5, 4.0]), noise=1e-3, offset=1.0, count=64)
    rule = Scaling("size", 1.0, "s", "both", affine=True)
    few, many = (rule.judge(data.isel(seed=slice(count))).interval for count in (8, 64))
    assert many.measured == pytest.approx(0.69, abs=0.01) and few.measured == pytest.approx(many.measured, abs=0.01)
    assert many.low < 0.69 < many.high


@pytest.mark.parametrize("exponent", [0.5, 2.0])
def test_linear_in_excludes_a_neighbouring_power_that_a_line_explains_well(exponent):
    """Over a factor of 3 a line explains 98 % of the variance of a square or a square root."""
    finding = Scaling("size", 1.0, "s", "both", affine=True).judge(
        power(exponent, sizes=np.array([1.0, 1.5, 2.0, 3.0]), noise=1e-4, offset=1.0)
    )
    assert finding.details["explained"] > 0.95 and finding.outcome is Outcome.fails
    assert finding.interval.measured == pytest.approx(exponent, abs=0.05)


@pytest.mark.parametrize(
    "data", [power(0.0, noise=0.0), power(0.0, noise=0.3), power(-1.0)], ids=["same", "noise", "falls"]
)
def test_what_does_not_depend_on_a_size_or_falls_with_it_is_not_linear_in_it(data):
    assert Scaling("size", 1.0, "s", "both", affine=True).judge(data).outcome is Outcome.fails


def test_linear_in_a_size_that_may_be_zero():
    finding = Scaling("size", 1.0, "s", "both", affine=True).judge(power(1.0, sizes=np.arange(4.0), offset=1.0))
    assert finding.outcome is Outcome.holds


RULES = [
    Scaling("size", 1.0, "s"),
    Scaling("size", 1.0, "s", "lower", scale=2.0),
    Scaling("size", 1.0, "s", "both"),
    Scaling("size", 1.0, "s", "both", affine=True),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_seed_that_diverged_is_left_out_of_a_scaling_and_counted(rule):
    data = power(1.0, noise=0.05)
    without = rule.judge(data.isel(seed=[0, 1, 3, 4, 5]))
    data[:, 2] = np.nan
    found = rule.judge(data)
    assert (found.interval.seeds, found.interval.lost) == (5, 1) and without.interval.lost == 0
    assert found.words == without.words and len(found.values) == 6 and np.isnan(found.values[2])
    assert found.interval.low == pytest.approx(without.interval.low)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_scaling_over_one_seed_or_none_is_open(rule):
    data = power(1.0, count=3)
    assert rule.judge(data.isel(seed=[0])).words == "open: too few seeds"
    data[:, 1:] = np.nan
    assert rule.judge(data).words == "open: too few seeds"
    data[:] = np.nan
    assert rule.judge(data).words == "open: no seed has a number" and rule.judge(data).interval.lost == 3


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_was_never_reached_has_no_exponent(rule):
    data = power(1.0)
    data[:] = np.inf
    finding = rule.judge(data)
    assert finding.words == "open: never reached" and np.isnan(finding.interval.low) and finding.interval.seeds == 0


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_two_sizes_that_were_reached_say_nothing_about_a_scaling(rule):
    data = power(1.0)
    data[2:] = np.inf
    finding = rule.judge(data)
    assert finding.outcome is Outcome.open and finding.words == "open: reached at 2 of 4 values of s only"


def test_a_size_that_was_not_reached_in_time_is_censored_and_three_are_enough():
    """Times above the limit are known to be later, no more. As equal to it they would bend an exponent of 2 to 1.7."""
    data = power(2.0, sizes=np.array([1.0, 2, 4, 8]), noise=0.1)
    data = data.where(data < 100, np.inf).assign_attrs(limit=100.0)
    assert np.isinf(data.values[-1]).all() and np.isfinite(data.values[:-1]).all()
    finding = Scaling("size", 2.0, "s", "both").judge(data)
    assert finding.outcome is Outcome.holds and finding.interval.measured == pytest.approx(2.0, abs=0.1)
    assert "never reached" in Scaling("size", 2.0, "s", "both", affine=True).judge(data).words


def test_at_the_end_of_the_tolerance_of_a_rate_at_most_5_percent_of_runs_answer():
    random = np.random.default_rng(1)
    rule, runs = Scaling("size", 2.0, "s", "both"), 300
    answered = 0
    for _ in range(runs):
        data = power(rule.high, noise=0.0) * np.exp(0.2 * random.standard_normal((4, 6)))
        answered += rule.judge(data).outcome is not Outcome.open
    assert answered / runs < 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


# What an answer does not depend on

NUMBERS = st.lists(st.floats(-100, 100).map(lambda value: round(value, 3)), min_size=2, max_size=8)


def clear(finding, *edges):
    """No end of the interval is an edge up to rounding."""
    ends = (finding.interval.low, finding.interval.high)
    return all(abs(end - edge) > 1e-6 for end in ends for edge in edges)


@limits(max_examples=100, deadline=None)
@given(NUMBERS, st.floats(-50, 50), st.floats(0, 50), st.randoms(use_true_random=False))
def test_an_answer_does_not_depend_on_the_order_of_seeds(values, low, width, random):
    rule = within(low, low + width)
    finding = rule.judge(seeds(*values))
    assume(clear(finding, rule.low, rule.high))
    random.shuffle(values)
    again = rule.judge(seeds(*values))
    assert again.outcome is finding.outcome and sorted(again.values) == sorted(finding.values)
    assert again.interval.low == pytest.approx(finding.interval.low, abs=1e-9)


@limits(max_examples=25, deadline=None)
@given(st.permutations(range(6)), st.permutations(range(4)), st.sampled_from(RULES))
def test_a_scaling_does_not_depend_on_the_order_of_seeds_or_sizes(some, others, rule):
    data = power(1.0, noise=0.1)
    first, second = rule.judge(data), rule.judge(data.isel(seed=list(some), size=list(others)).transpose())
    assert first.outcome is second.outcome
    assert second.values == pytest.approx([first.values[seed] for seed in some])


@limits(max_examples=100, deadline=None)
@given(st.floats(0.01, 100), st.floats(0.1, 3), st.booleans())
def test_scaling_a_bound_and_what_it_bounds_together_changes_nothing(factor, size, upper):
    values = np.array([0.8, 1.0, 1.1, 1.3])
    first, second = (
        Bound(size, upper).judge(seeds(*values)),
        Bound(factor * size, upper).judge(seeds(*(factor * values))),
    )
    assume(clear(first, size))
    assert first.outcome is second.outcome
    assert first.details["constant"] == pytest.approx(second.details["constant"])


@limits(max_examples=25, deadline=None)
@given(st.floats(0.01, 100), st.sampled_from(ONE_SIDED), st.sampled_from([0.4, 1.0, 1.6]))
def test_scaling_x_and_f_together_changes_nothing_over_sizes(factor, sides, exponent):
    side, towards, _ = sides
    first = Scaling("size", 1.0, "s", side, towards, scale=2.0).judge(power(exponent))
    second = Scaling("size", 1.0, "s", side, towards, scale=2.0 * factor).judge(factor * power(exponent))
    assert first.outcome is second.outcome and first.interval.low == pytest.approx(second.interval.low)
    assert first.details["constant"] == pytest.approx(second.details["constant"])


@limits(max_examples=25, deadline=None)
@given(st.floats(0.05, 20), st.sampled_from(ONE_SIDED), st.sampled_from([0.4, 1.0, 1.6]))
def test_the_unit_of_a_size_does_not_enter_its_exponent(factor, sides, exponent):
    rule, data = Scaling("size", 1.0, "s", *sides[:2]), power(exponent)
    other = rule.judge(data.assign_coords(size=factor * data["size"]))
    assert other.outcome is rule.judge(data).outcome
    assert other.interval.measured == pytest.approx(rule.judge(data).interval.measured)


def test_every_rule_says_what_it_is():
    rules = (below(1), above(1, "existence"), within(0, 1), larger(), suffices(1), identical(1), big_o(1), *RULES)
    assert all(isinstance(rule, Rule) and rule.kind in KINDS and str(rule) for rule in rules)
    assert {rule.kind for rule in rules} == set(KINDS)
    assert describe(Range("value", high=0.5)) == {
        "kind": "value", "rule": "below 0.5", "rule_low": None, "rule_high": 0.5
    }  # fmt: skip
    assert describe(Scaling("size", -1.0, "s", towards="small")) == {
        "kind": "bound", "rule": "at most like s^-1", "rule_low": -1.25, "rule_high": None
    }  # fmt: skip

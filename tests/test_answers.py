"""Answers: from parts, readings, hypotheses and controls to the words of a statement, and its entry in claims.json."""

import json
import pathlib

import jsonschema
import numpy as np
import pytest
import xarray as xr

from iclab import entries
from iclab.errors import InputError
from iclab.expressions import apply, measured
from iclab.kinds import above, below, big_o, omega
from iclab.scaling import Scaling
from iclab.statements import Part, Reading, Statement
from iclab.tallies import Answer, tally
from iclab.theorems import Theorem, at_least
from iclab.unstated import Unstated

SCHEMA = json.loads(
    (pathlib.Path(__file__).parents[1] / "src" / "iclab" / "data" / "claims.schema.json").read_text(encoding="utf-8")
)
SEEDS = (0.9, 1.0, 1.1)
SIZES = np.array([1.0, 2.0, 4.0, 8.0])


def data(*values, **variables):
    found = {name: ("seed", np.array(of, float)) for name, of in ({"x": values} | variables).items() if len(of)}
    return xr.Dataset(found, {"seed": range(len(next(iter(found.values()))[1]))})


def powers(exponent):
    values = SIZES[:, None] ** exponent * np.array(SEEDS)
    return xr.Dataset({"x": (("size", "seed"), values)}, {"size": SIZES, "seed": range(3)})


X = measured("runs", "x")
HOLDS, FAILS, OPEN = below(2.0), below(0.5), below(1.02)
BROKEN, TIGHT = Scaling("size", 0.5, "s"), Scaling("size", 2.0, "s")


def part(name, rule, statistic=X, **more):
    return Part(name, statistic, rule, **more)


def statement(*parts, **more):
    return Statement("paper/thm1", "Theorem 1", "Something holds.", parts, **more)


def asked(stated, results=None, **more):
    return entries.judge(stated, results or {"runs": data(*SEEDS), "sizes": powers(2.0)}, **more)


def theorem(*factors):
    """A theorem with one condition of this factor each: below 1 it is not met."""
    conditions = tuple(
        at_least(f"condition {n}", f"m >= {n}", factor, 1.0) for n, factor in enumerate(factors, start=1)
    )
    return lambda name, reading: Theorem(f"paper/{name}", "Theorem 1", "If so, then so.", conditions)


# Parts


def scaled(rule):
    return part("scaling", rule, measured("sizes", "x"))


@pytest.mark.parametrize(
    ("parts", "answer", "words"),
    [
        ((part("a", HOLDS),), "holds", "holds: 1 [0.752, 1.25]"),
        ((part("a", HOLDS), part("b", HOLDS)), "holds", "holds"),
        ((part("a", HOLDS), part("b", FAILS)), "in part", "in part: a holds · b: fails: 1 [0.752, 1.25]"),
        ((part("a", HOLDS), part("b", HOLDS), part("c", OPEN)), "in part", "in part: a, b hold · c: open:"),
        ((part("a", FAILS),), "fails", "fails: 1 [0.752, 1.25]"),
        ((part("a", FAILS), part("b", OPEN)), "fails", "a: fails: 1 [0.752, 1.25] · b: open:"),
        ((part("a", OPEN),), "open", "open: 1 [0.752, 1.25] crosses the rule"),
        ((part("a", OPEN), part("b", OPEN)), "open", "a: open: 1 [0.752, 1.25] crosses the rule · b: open:"),
        ((scaled(BROKEN),), "fails in scaling", "fails in scaling: exponent 2 [2, 2] in s against 0.5"),
        ((scaled(BROKEN), part("a", OPEN)), "fails in scaling", "scaling: fails in scaling:"),
        ((scaled(BROKEN), part("a", FAILS)), "fails", "scaling: fails in scaling:"),
        ((scaled(TIGHT), part("a", HOLDS)), "holds", "holds"),
        ((part("a", big_o(2.0)), part("b", omega(0.5))), "holds", "holds with c ≈ 0.5 (a), c ≈ 2 (b)"),
        ((scaled(Scaling("size", 4.0, "s")), part("a", HOLDS)), "holds", "holds (loose: scaling)"),
    ],
)
def test_the_answer_names_the_parts_that_hold_and_tells_what_the_others_say(parts, answer, words):
    entry = asked(statement(*parts))
    assert entry["answer"] == answer and entry["words"].startswith(words), entry["words"]
    assert [p["name"] for p in entry["readings"][0]["parts"]] == [p.name for p in parts]


def test_what_exists_is_told_with_the_answer():
    share = apply(lambda x: 0.72 * x / x, X)
    stated = statement(part("wins", above(0.1, "existence"), found=share, found_as="L = {:.0%} of the neurons"))
    entry = asked(stated)
    assert entry["words"].endswith("(L = 72% of the neurons)")
    assert entry["readings"][0]["parts"][0]["found"] == "L = 72% of the neurons"
    nothing = asked(stated, {"runs": data(np.nan, np.nan)})
    assert nothing["answer"] == "open" and nothing["readings"][0]["parts"][0]["found"] == ""


def test_what_these_settings_cannot_settle_is_open_with_the_reason_and_its_numbers():
    entry = asked(statement(part("a", HOLDS, unsettled="d = 3000 answers otherwise")))
    assert entry["answer"] == "open"
    assert entry["words"] == "open: d = 3000 answers otherwise (here holds: 1 [0.752, 1.25])"


def test_numbers_are_given_where_no_answer_is():
    entry = asked(statement(part("a", HOLDS)), attempted=False)
    (only,) = entry["readings"]
    assert entry["answer"] == only["answer"] == only["parts"][0]["outcome"] == "not asked"
    assert entry["words"] == "not asked at this size" and only["parts"][0]["measured"] == pytest.approx(1.0)


# Readings

LOW, HIGH = Reading("low", "as printed", at={"size": 1.0}), Reading("high", "as plotted", at={"size": 8.0})
MIDDLE = Reading("middle", at={"size": 2.0})
BY_SIZE = measured("sizes", "x")


@pytest.mark.parametrize(
    ("limit", "readings", "answer", "words"),
    [
        (200.0, (LOW, HIGH), "holds", "holds in all 2 readings"),
        (10.0, (LOW, HIGH), "holds if", "holds if low · high: fails: 64 "),
        (10.0, (LOW, MIDDLE, HIGH), "holds if", "holds if low or middle · high: fails: 64 "),
        (0.1, (LOW, HIGH), "fails", "low: fails: 1 [0.752, 1.25] · high: fails: 64 "),
        (1.0, (LOW, HIGH), "open", "low: open: 1 [0.752, 1.25] crosses the rule · high: fails: 64 "),
        (200.0, (LOW,), "holds", "holds: 1 [0.752, 1.25]"),
    ],
)
def test_the_answer_names_the_readings_in_which_a_statement_holds(limit, readings, answer, words):
    entry = asked(statement(part("x", below(limit), BY_SIZE), readings=readings))
    assert entry["answer"] == answer and entry["words"].startswith(words), entry["words"]
    assert [reading["name"] for reading in entry["readings"]] == [reading.name for reading in readings]


def test_the_reading_of_the_paper_is_called_as_stated():
    entry = asked(
        statement(part("x", below(10.0), BY_SIZE.max("size"), readings=("",)), part("y", HOLDS, readings=("low",)),
                  readings=(Reading(""), LOW))
    )  # fmt: skip
    assert entry["words"].startswith("holds if low · as stated: fails: 64")


def test_a_part_belongs_to_the_readings_that_it_names_or_to_all():
    stated = statement(
        part("all", HOLDS), part("some", FAILS, readings=("strict",)), readings=(Reading("loose"), Reading("strict"))
    )
    loose, strict = asked(stated)["readings"]
    assert [p["name"] for p in loose["parts"]] == ["all"] and loose["answer"] == "holds"
    assert [p["name"] for p in strict["parts"]] == ["all", "some"] and strict["answer"] == "in part"


def test_a_reading_puts_another_variable_in_the_place_of_one():
    stated = statement(part("x", HOLDS), readings=(Reading("own"), Reading("printed", variables={"x": "printed_x"})))
    entry = asked(stated, {"runs": data(*SEEDS, printed_x=[5.0, 5.1, 4.9])})
    assert entry["words"] == "holds if own · printed: fails: 5 [4.75, 5.25]"


def test_a_reading_puts_another_experiment_in_the_place_of_one():
    stated = statement(part("x", HOLDS), readings=(Reading("drawn"), Reading("exact", experiments={"runs": "others"})))
    assert stated.needs() == ("runs", "others")
    entry = asked(stated, {"runs": data(*SEEDS), "others": data(5.0, 5.1, 4.9)})
    assert entry["answer"] == "holds if" and entry["words"].startswith("holds if drawn · exact: fails: 5 ")


def test_a_reading_with_settings_of_its_own_has_results_of_its_own():
    wide = Reading("wide", "U is not printed", changes={"width": 4}, experiments={"tests": "more-tests"})
    stated = statement(part("x", HOLDS), part("y", HOLDS, measured("tests", "x")), readings=(Reading(""), wide))
    assert stated.needs_of(wide) == ("runs@wide", "more-tests@wide")
    assert stated.needs() == ("runs", "tests", "runs@wide", "more-tests@wide")
    results = {"runs": data(*SEEDS), "tests": data(*SEEDS), "runs@wide": data(5, 5.1), "more-tests@wide": data(1, 1.1)}
    entry = asked(stated, results)
    assert entry["words"].startswith("holds if as stated · wide: in part: y holds · x: fails")
    assert entry["readings"][1]["changes"] == {"width": 4}


@pytest.mark.parametrize(
    ("statistic", "sentence"),
    [
        (measured("runs", "y"), "paper/thm1, 'x': the experiment 'runs' has no 'y'"),
        (measured("rums", "x"), "paper/thm1, 'x': there is no experiment 'rums'"),
        (BY_SIZE, "paper/thm1, 'x': the statistic also has the dimensions size (4); choose with .sel(...) or reduce"),
        (X.mean("seed"), "paper/thm1, 'x': the statistic has no dimension 'seed'."),
        (apply(float, 3), "paper/thm1, 'x': the statistic must be an xarray DataArray, not float."),
        (apply(lambda x: x.nothing, X), "paper/thm1, 'x': AttributeError: 'DataArray' object has no attribute"),
        (apply(lambda x: x["nothing"], X), "paper/thm1, 'x': KeyError: "),
    ],
)
def test_a_statistic_that_is_none_is_refused_in_one_sentence(statistic, sentence):
    with pytest.raises(InputError) as refused:
        asked(statement(part("x", HOLDS, statistic)))
    assert str(refused.value).startswith(sentence) and "\n" not in str(refused.value)


def test_a_label_of_a_reading_that_is_not_there_is_refused_in_one_sentence():
    stated = statement(part("x", HOLDS, BY_SIZE), readings=(Reading("far", at={"size": 16.0}),))
    with pytest.raises(InputError, match=r"^paper/thm1\[far\], 'x': sizes has no size = 16.0; it has 1.0, 2.0, 4.0"):
        asked(stated)


# Hypotheses: where they are not met a theorem cannot fail


def test_a_theorem_whose_hypotheses_are_not_met_cannot_fail():
    entry = asked(statement(part("a", FAILS)), hypotheses=theorem(2.0, 0.5))
    assert entry["answer"] == "open"
    assert entry["words"] == "open: fails: 1 [0.752, 1.25] · the theorem's hypotheses are not met (condition 2)"
    found = entry["readings"][0]["hypotheses"]
    assert found == {"theorem": "paper/thm1", "met": 1, "of": 2, "unmet": ["condition 2: m >= 2"]}


def test_a_theorem_whose_hypotheses_are_met_can_fail():
    assert asked(statement(part("a", FAILS)), hypotheses=theorem(2.0, 1.0))["answer"] == "fails"
    assert asked(statement(scaled(BROKEN)), hypotheses=theorem(2.0))["answer"] == "fails in scaling"


def test_a_theorem_may_hold_where_its_hypotheses_are_not_met():
    entry = asked(statement(part("a", HOLDS)), hypotheses=theorem(0.5))
    assert entry["answer"] == "holds" and entry["readings"][0]["hypotheses"]["met"] == 0
    some = asked(statement(part("a", HOLDS), part("b", FAILS)), hypotheses=theorem(0.5))
    assert some["answer"] == "in part" and some["words"].endswith("hypotheses are not met (condition 1)")


def test_a_statement_names_the_theorem_whose_hypotheses_it_has_and_every_reading_has_its_own():
    names = []

    def hypotheses(name, reading):
        names.append((name, reading.name))
        return theorem(2.0 if reading.name == "inside" else 0.5)(name, reading)

    inside = Reading("inside", changes={"m": 3})
    results = {"runs": data(*SEEDS), "runs@inside": data(*SEEDS)}
    stated = statement(part("a", FAILS), readings=(Reading(""), inside), hypotheses="thm3")
    outside, within = asked(stated, results, hypotheses=hypotheses)["readings"]
    assert names == [("thm3", ""), ("thm3", "inside")]
    assert (outside["answer"], within["answer"]) == ("open", "fails")


# Controls

UNTRAINED_PASSES, UNTRAINED_FAILS = {"runs": data(*SEEDS)}, {"runs": data(5.0, 5.1, 4.9)}
LEARNED = {"runs": data(*SEEDS)}


def test_what_an_untrained_model_passes_too_says_nothing_about_learning():
    entry = asked(statement(part("a", HOLDS)), LEARNED, control=UNTRAINED_PASSES)
    assert entry["answer"] == "open" and entry["also_untrained"] == [""]
    assert entry["words"] == "open: an untrained model passes too (holds: 1 [0.752, 1.25])"
    assert entry["readings"][0]["parts"][0]["control"]["outcome"] == "holds"


def test_what_an_untrained_model_does_not_pass_is_learned():
    entry = asked(statement(part("a", HOLDS)), LEARNED, control=UNTRAINED_FAILS)
    assert entry["answer"] == "holds" and entry["also_untrained"] == []
    assert entry["readings"][0]["parts"][0]["control"]["outcome"] == "fails"
    assert asked(statement(part("a", HOLDS)), LEARNED)["readings"][0]["parts"][0]["control"] is None


def test_an_untrained_model_whose_interval_crosses_the_rule_and_meets_that_of_the_trained_one_leaves_it_open():
    """Wide intervals of a control make no answer; narrow ones that show no effect do not take one away."""
    rule = statement(part("a", above(0.5)))
    wide = asked(rule, LEARNED, control={"runs": data(0.2, 1.2, 0.7)})
    assert wide["answer"] == "open"
    assert wide["words"] == "open: untrained models cannot be told from trained ones (holds: 1 [0.752, 1.25])"
    narrow = asked(rule, LEARNED, control={"runs": data(0.45, 0.5, 0.55)})
    assert narrow["answer"] == "holds" and narrow["readings"][0]["parts"][0]["control"]["outcome"] == "open"


def test_a_statement_about_an_architecture_holds_untrained_and_says_so():
    entry = asked(statement(part("a", HOLDS), architecture="softmax sums to 1"), LEARNED, control=UNTRAINED_PASSES)
    assert entry["answer"] == "holds" and entry["words"] == "holds: 1 [0.752, 1.25], also untrained"
    assert entry["also_untrained"] == [""] and entry["architecture"] == "softmax sums to 1"


def test_one_part_that_only_training_can_pass_is_enough():
    both = statement(part("always", HOLDS, measured("runs", "y")), part("learned", HOLDS))
    trained, untrained = data(*SEEDS, y=SEEDS), data(5.0, 5.1, 4.9, y=SEEDS)
    entry = asked(both, {"runs": trained}, control={"runs": untrained})
    assert entry["answer"] == "holds" and entry["also_untrained"] == []
    some = asked(statement(part("always", HOLDS), part("never", FAILS)), LEARNED, control=UNTRAINED_PASSES)
    assert some["words"].startswith("in part: always (also untrained) holds · never: fails")


def test_a_part_that_only_the_untrained_model_passes_is_not_told_as_if_both_did():
    entry = asked(statement(part("a", HOLDS)), UNTRAINED_FAILS, control=UNTRAINED_PASSES)
    assert entry["answer"] == "fails" and entry["words"].endswith("(an untrained model passes)")


def test_a_reading_that_an_untrained_model_passes_does_not_count_as_held():
    stated = statement(part("x", below(10.0), BY_SIZE), readings=(LOW, HIGH))
    entry = asked(stated, {"sizes": powers(0.5)}, control={"sizes": powers(2.0)})
    assert entry["also_untrained"] == ["low"] and entry["answer"] == "holds if"
    assert entry["words"].startswith("holds if high · low: open: an untrained model passes too")


# Counting, and the file


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], "0 statements: "),
        (["open"], "1 statement: 1 open"),
        (["fails", "holds", "holds"], "3 statements: 2 hold, 1 fails"),
        (["holds if", "holds if", "in part", "in part"], "4 statements: 2 hold if, 2 in part"),
        (["fails in scaling"] * 2 + ["fails"] * 2, "4 statements: 2 fail, 2 fail in scaling"),
        (["not asked"] * 3, "3 statements: 3 not asked"),
    ],
)
def test_a_tally_counts_statements_by_their_answer(found, words):
    assert tally([{"answer": answer} for answer in found]) == words


ENTRIES = {
    "holds": (statement(part("a", HOLDS)), {}),
    "exists": (statement(part("a", above(0.1, "existence"), found=X)), {}),
    "never": (statement(part("a", HOLDS, X / 0.0)), {}),
    "diverged": (statement(part("a", HOLDS, X * np.nan), scaled(TIGHT)), {}),
    "bounds": (statement(part("a", big_o(0.5)), scaled(Scaling("size", 2.0, "s", scale=1.0))), {}),
    "affine": (statement(scaled(Scaling("size", 2.0, "s", "both", affine=True))), {}),
    "readings": (statement(part("x", below(10.0), BY_SIZE), readings=(LOW, HIGH), ours=("one",), beyond=True), {}),
    "unmet": (statement(part("a", FAILS), afterwards="late", table="rates"), {"hypotheses": theorem(0.5)}),
    "control": (statement(part("a", HOLDS)), {"control": UNTRAINED_PASSES}),
    "smoke": (statement(part("a", HOLDS)), {"attempted": False}),
}


def valid(entry):
    """An entry as a run writes it, read again."""
    run = {"profile": "quick", "settings": {"steps": 3}, "seconds": 1.5}
    file = {"schema": entries.SCHEMA, "statements": [entry | run]}
    again = json.loads(json.dumps(file, allow_nan=False))
    jsonschema.validate(again, SCHEMA, jsonschema.Draft202012Validator)
    return again


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_has_no_nan_and_is_as_the_schema_says(name):
    stated, more = ENTRIES[name]
    with np.errstate(divide="ignore"):
        valid(asked(stated, **more))


def test_the_schema_is_one_and_refuses_what_is_not_described():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    entry = asked(ENTRIES["holds"][0])
    for wrong in ({"answer": "reproduced"}, {"readings": []}, {"extra": 1}, {"id": "thm1"}, {"kinds": []}):
        with pytest.raises(jsonschema.ValidationError):
            valid(entry | wrong)
    assert set(SCHEMA["$defs"]["statement"]["properties"]["answer"]["enum"]) == {str(answer) for answer in Answer}


def test_everything_in_the_schema_is_described():
    def described(schema, place):
        for name, entry in schema.get("properties", {}).items():
            assert "$ref" in entry or len(entry.get("description", "").split()) > 1, f"{place}.{name}"
            described(entry, f"{place}.{name}")

    for name, schema in {"file": SCHEMA, **SCHEMA["$defs"]}.items():
        described(schema, name)


def test_what_is_unstated_is_told_with_plausible_values():
    assert str(Unstated("batch", (64, 128), "B", "common practice")) == "batch, B (plausible: 64, 128): common practice"
    assert str(Unstated("rate", (0.5, 1.0))) == "rate (plausible: 0.5, 1)"

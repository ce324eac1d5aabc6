"""Controls: the same question to models as they were initialised, and what an answer makes of it."""

import json
import pathlib

import jax
import jsonschema
import numpy as np
import pytest

import iclab
import small
from iclab.authoring.sources import user_paper
from iclab.evaluation import errors, expect
from iclab.experiments import CONTROL_PROMPTS, Lab, Recipe
from iclab.losses import hinge
from iclab.optimisation import Training
from iclab.papers import PAPERS
from iclab.probes.attention import attention_mass
from iclab.runs.judging import Judge

STEPS = (0, 20, 40)
LENGTHS = {"length": (4, 10)}
RECIPES = {
    "slow": lambda seed: Recipe(small.world(), small.MODEL, Training(0.1, 32)),
    "fast": lambda seed: Recipe(small.world(), small.MODEL, Training(4.0, 32)),
}


def observe(model, member, key):
    return expect(attention_mass, model, member.world, key, 1)


def place(setting, seed, length):
    return small.world(length=length)


def asked(*, untrained, record_at=STEPS, prompts=500):
    lab = Lab("paper", None, range(3), untrained=untrained)
    trained = lab.train("one", RECIPES, record_at, (observe,), best_of="attention_other")
    return trained, lab.evaluate(trained, "test", errors(hinge), place, LENGTHS, prompts)


@pytest.fixture(scope="module")
def trained():
    return asked(untrained=False)


@pytest.fixture(scope="module")
def untrained():
    return asked(untrained=True)


def same(first, second):
    """The same numbers to the last bit; NaN where the other is NaN."""
    return np.array_equal(np.asarray(first), np.asarray(second), equal_nan=True)


def test_the_history_of_a_control_is_the_record_at_step_0_at_every_step(trained, untrained):
    history, control = trained[0].history, untrained[0].history
    assert control.sizes == history.sizes and control["step"].equals(history["step"])
    assert set(control.data_vars) == set(history.data_vars)
    for name in ("attention_same", "attention_other", "training_loss"):
        for step in STEPS:
            assert same(control[name].sel(step=step), history[name].sel(step=0)), name
    assert not same(history["attention_same"].sel(step=40), history["attention_same"].sel(step=0))


def test_a_control_has_no_training_loss_so_that_it_passes_no_rule_about_one(untrained):
    assert np.isnan(untrained[0].history["training_loss"]).all()


def test_the_models_of_a_control_are_the_initial_ones_also_at_their_best(untrained):
    first, _ = asked(untrained=False, record_at=(0,))
    control = untrained[0]
    for models in (control.models, control.at_best().models):
        assert all(map(same, jax.tree.leaves(models), jax.tree.leaves(first.models)))
    assert (control.history["best_step"] == 0).all() and (control.history["diverged_at"] == -1).all()


def test_the_evaluations_of_a_control_are_those_of_the_initial_models_on_the_same_prompts(trained, untrained):
    _, first = asked(untrained=False, record_at=(0,))
    assert untrained[1].equals(first) and not untrained[1].equals(trained[1])
    assert untrained[1].sizes == trained[1].sizes


def test_a_control_is_asked_fewer_prompts_than_a_trained_model(untrained):
    _, most = asked(untrained=True, prompts=CONTROL_PROMPTS)
    _, more = asked(untrained=True, prompts=10 * CONTROL_PROMPTS)
    assert more.equals(most) and not more.equals(untrained[1])


def test_what_does_not_depend_on_models_is_not_computed_again():
    computed = []

    def compute():
        computed.append(1)
        return np.full(2, len(computed))

    lab, control = Lab("paper", None, range(2)), Lab("paper", None, range(2), untrained=True)
    found = [lab.outside(compute, (2,)), lab.outside(compute, (2,))]
    control.replay(lab.computed_outside)
    again = [control.outside(compute, (2,)), control.outside(compute, (2,))]
    assert len(computed) == 2 and all(map(same, found, again))
    assert control.outside(compute, (2,))[0] == 3  # a third question was not asked before


# A user's file, from its text to the answer

TEXT = '''
"""What is learned, and what was there before."""
import dataclasses

from iclab.authoring import *
import small


@dataclasses.dataclass(frozen=True)
class Settings:
    step_size: float = 1.0


settings = Settings()


def observe(model, member, key):
    from iclab.probes.attention import attention_mass

    return expect(attention_mass, model, member.world, key, 1)


def experiment(lab):
    recipe = Recipe(small.world(), small.MODEL, Training(lab.settings.step_size, 32))
    trained = lab.train("main", recipe, (0, 400), (observe,), hinge)
    tested = lab.evaluate(trained, "test", errors(hinge), small.world(), prompts=250)
    return tested.merge(trained.history)


same = measured("experiment", "attention_same").last()
other = measured("experiment", "attention_other").last()
LEARNED, ALWAYS = Part("attention", same, above(0.9), UNIT), Part("positive", same, above(0.01), UNIT)
SUM = Part("sum of attention", abs(same + other - 1), identical(1e-3))
FASTER, AS_IT_IS = Reading("faster", "a guess", changes={"step_size": 2.0}), Reading("")
statements = [
    Statement("learned", "", "Attention concentrates.", (LEARNED,), (AS_IT_IS, FASTER)),
    Statement("always", "", "Some attention is on the pattern.", (ALWAYS,)),
    Statement("both", "", "It is, and it concentrates.", (ALWAYS, LEARNED)),
    Statement("sum", "", "Attention sums to 1.", (SUM,), architecture="a softmax sums to 1 at any weights"),
]
'''


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    path = tmp_path_factory.mktemp("controls") / "controlled.py"
    path.write_text(TEXT)
    run = iclab.reproduce(str(path), seeds=3, out=path.with_name("run"))
    return run, {entry["id"].partition("/")[2]: entry for entry in run.statements}


def test_what_an_untrained_model_passes_is_flagged_and_what_it_does_not_is_learned(judged):
    entries = judged[1]
    assert entries["learned"]["answer"] == "holds" and entries["learned"]["words"] == "holds in all 2 readings"
    assert entries["learned"]["also_untrained"] == []
    assert entries["always"]["answer"] == "open" and entries["always"]["also_untrained"] == [""]
    assert entries["always"]["words"].startswith("open: an untrained model passes too (holds: ")
    assert entries["both"]["answer"] == "holds" and entries["both"]["also_untrained"] == []
    assert entries["sum"]["answer"] == "holds" and entries["sum"]["words"].endswith(", also untrained")


def test_every_part_of_every_reading_has_its_control(judged):
    run, entries = judged
    places = ("controlled/experiment", "controlled/experiment@faster")
    assert set(run.results) == {*places, *(f"control/{place}" for place in places)}
    for entry in entries.values():
        for reading in entry["readings"]:
            for part in reading["parts"]:
                assert part["control"]["seeds"] == 3 and len(part["control"]["values"]) == 3
    first, second = (run.results[f"control/{place}"]["attention_same"] for place in places)
    assert same(first, second)  # a step size does not enter an initialisation
    assert not same(run.results[places[0]]["attention_same"], run.results[places[1]]["attention_same"])


def test_the_file_that_a_run_writes_is_as_its_schema_says(judged):
    schema = json.loads(
        (pathlib.Path(__file__).parents[1] / "src" / "iclab" / "data" / "claims.schema.json").read_text(
            encoding="utf-8"
        )
    )
    written = json.loads((judged[0].directory / "claims.json").read_text(encoding="utf-8"))
    jsonschema.validate(written, schema, jsonschema.Draft202012Validator)
    assert written["schema"] == 2 and written["statements"] == json.loads(json.dumps(judged[0].statements))


def test_without_results_of_untrained_models_there_is_no_control(judged):
    run, _ = judged
    paper = user_paper("controlled", TEXT)
    judge = Judge({"controlled": paper}, {"controlled": paper.settings["quick"]})
    trained = {name: data for name, data in run.results.items() if not name.startswith("control/")}
    statement = paper.statements(paper.settings["quick"])[1]
    entry = judge.entry(statement, judge(statement, trained))
    assert entry["answer"] == "holds" and entry["readings"][0]["parts"][0]["control"] is None


# The built-in papers


@pytest.mark.parametrize("name", PAPERS)
def test_why_an_untrained_model_may_pass_is_said_in_a_few_words(name):
    paper = PAPERS[name]
    for settings in paper.settings.values():
        for statement in paper.statements(settings):
            assert not statement.architecture or len(statement.architecture.split()) >= 4, statement.id

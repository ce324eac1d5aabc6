"""Properties over all worlds and models: random valid settings train without NaN, invalid ones are refused in a
sentence.

A handful of cases by default; 500 for every pair with --slow.
"""

import functools
import itertools
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import drawn
from iclab import ensemble, optimisation, training
from iclab.devices import quick_compilation
from iclab.errors import InputError
from iclab.evaluation import errors, expect
from iclab.training import Member

PAIRS = list(itertools.product(drawn.WORLDS, drawn.MODELS))
MIXERS = tuple(f"{name} mixer" for name in drawn.MIXED)
CAN = {  # which models can be used in which worlds; all other pairs must be refused
    "classification": ("softmax", "linear", "mamba", "gpt2", "gru", *MIXERS),
    "several labels": ("softmax", "gpt2", "gru", *MIXERS),
    "outliers": ("softmax", "linear", "mamba", "gpt2", "gru", *MIXERS),
    "reasoning": ("chain", "gpt2", "gru", *MIXERS),
    "concepts": ("residual", "gpt2", "gru"),
    "regression": ("softmax", "linear", "mamba", "gpt2", "gru", *MIXERS),
    "recall": ("gpt2", "gru", *MIXERS),
    "markov": ("residual", "gpt2", "gru"),
}
SOUND = [pair for pair in PAIRS if pair[1] in CAN[pair[0]]]
MANY = {(world, model) for world in drawn.WORLDS for model in (*MIXERS, "gru") if world != "outliers"}
MANY |= {("outliers", "gpt2"), ("outliers", "linear"), ("markov", "gpt2")}
MANY |= {("regression", model) for model in ("softmax", "mamba", "gpt2")}
FEW = [pair for pair in SOUND if pair[0] != "several labels" and pair not in MANY]
REFUSED = [pair for pair in PAIRS if pair[1] not in CAN[pair[0]]]
SENTENCE = re.compile(r"[^\n]{15,400}\.")


@pytest.fixture(autouse=True, scope="module")
def compile_quickly():
    with quick_compilation():
        yield


@pytest.fixture
def cases(request):
    """`cases(few)` decorates a property: a few fixed cases, or 500 random ones with --slow."""
    slow = request.config.getoption("--slow")

    def decorate(few, many=500):
        phases = (Phase.explicit, Phase.generate, Phase.shrink) if slow else (Phase.explicit, Phase.generate)
        checks = list(HealthCheck)
        return settings(
            max_examples=many if slow else few, deadline=None, derandomize=not slow, database=None, phases=phases,
            suppress_health_check=checks, print_blob=slow,
        )  # fmt: skip

    decorate.slow = slow
    return decorate


@functools.cache
def observer(loss):
    def observe(model, member, key):
        return expect(errors(loss), model, member.world, key, 1, batch=4)

    return observe


def trained(parts, loss):
    """Two steps of training of every one of these, as one ensemble, looked at before, between and after."""
    members = [Member(ensemble.member_key("properties", seed), *own) for seed, own in enumerate(parts)]
    return training.train(ensemble.stack(members), loss, (0, 1, 2), (observer(loss),))


TOGETHER = 25  # settings that are trained together in the long form


@pytest.mark.parametrize(("world", "model"), SOUND)
def test_valid_settings_train_without_nan(world, model, cases):
    if not cases.slow and (world, model) not in FEW:
        pytest.skip("--slow only: the same programs with more columns")
    maker, seen = drawn.WORLDS[world], []
    makers = (maker, drawn.MODELS[model], drawn.TRAINING)

    @cases(few=2, many=500 // TOGETHER)
    @given(drawn.trainings(makers, *((6, TOGETHER) if cases.slow else (1, 3))))
    def property_holds(setups):
        seen.extend(setups)
        states, records = trained([[part.build() for part in parts] for parts in setups], maker.loss)
        lost = training.diverged(states)
        for name, values in records.items():
            # No step was taken before the first record.
            values = values[:, 1:] if name.startswith("training_") else values
            lost |= ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        assert not lost.any(), setups[int(lost.argmax())]
        errors_made = records.get("error", np.zeros(1))  # a distance counts none
        assert errors_made.min() >= 0 and errors_made.max() <= 1

    property_holds()
    assert len(seen) >= (500 if cases.slow else 6)


@pytest.mark.parametrize(("world", "model"), REFUSED)
def test_a_model_in_a_world_it_cannot_read_is_refused_in_a_sentence(world, model, cases):
    maker = drawn.WORLDS[world]

    @cases(few=2)
    @given(drawn.setups(maker), drawn.setups(drawn.MODELS[model]))
    def property_holds(place, settings_of_model):
        member = Member(
            ensemble.member_key("properties", 0),
            place.build(),
            settings_of_model.build(),
            optimisation.Training(batch=2),
        )
        with pytest.raises(InputError) as refused:
            training.shapes(ensemble.stack([member]), maker.loss, ())
        assert SENTENCE.fullmatch(str(refused.value)), refused.value

    property_holds()


MAKERS = drawn.WORLDS | drawn.MODELS | {"training": drawn.TRAINING}


@pytest.mark.parametrize("name", MAKERS)
def test_invalid_settings_are_refused_in_a_sentence_that_names_the_value(name, cases):
    @cases(few=40)
    @given(drawn.wrong_setups(MAKERS[name]))
    def property_holds(wrong):
        setup, field = wrong
        with pytest.raises(InputError) as refused:
            setup.build()
        assert SENTENCE.fullmatch(str(refused.value)), refused.value
        assert str(setup.settings[field]) in str(refused.value), (field, setup.settings[field], refused.value)

    property_holds()


@pytest.mark.parametrize(("world", "model"), [("classification", "linear"), ("reasoning", "chain")])
def test_what_is_not_finite_is_marked_as_diverged(world, model, cases):
    maker, lost = drawn.WORLDS[world], []

    @cases(few=3, many=125)
    @given(drawn.trainings((maker, drawn.MODELS[model]), 1, 4), st.floats(1e3, 1e38))
    def property_holds(setups, step_size):
        how = optimisation.Training(step_size, batch=4)
        states, records = trained([[*(part.build() for part in parts), how] for parts in setups], maker.loss)
        infinite = ~np.isfinite(records["training_loss"][:, 1:]).all(axis=1)
        lost.extend(infinite)
        assert (training.diverged(states) | ~infinite).all()

    property_holds()
    assert any(lost) or world != "classification", "no step was large enough to test anything"

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import small
from iclab import ensemble, evaluation, randomness
from iclab.evaluation import Jobs, errors, evaluate, expect
from iclab.losses import hinge
from iclab.models import at_a_time


class Constant(eqx.Module):
    """Answers the same to everything."""

    value: jax.Array

    def __call__(self, prompt):
        return self.value, None


class Oracle(eqx.Module):
    """Answers the target."""

    scale: jax.Array

    def __call__(self, prompt):
        return self.scale * prompt.target, None


def measured(model, prompts=1000):
    jobs = Jobs(*(ensemble.stack([part]) for part in (model, np.float32(0), small.world(), randomness.key(0))))
    return {name: float(value[0]) for name, value in evaluate(errors(hinge), jobs, prompts).items()}


def test_a_tie_is_an_error_and_is_counted():
    assert measured(Constant(jnp.float32(0.0))) == {"hinge": 1.0, "error": 1.0, "ties": 1.0}


def test_not_a_number_is_an_error():
    assert measured(Constant(jnp.float32(np.nan)))["error"] == 1.0


def test_a_constant_answer_is_right_on_half_of_the_balanced_prompts():
    assert measured(Constant(jnp.float32(1.0))) == {"hinge": 1.0, "error": 0.5, "ties": 0.0}


def test_the_hinge_loss_and_the_error_are_different_things():
    assert measured(Oracle(jnp.float32(0.25))) == pytest.approx({"hinge": 0.75, "error": 0.0, "ties": 0.0})


def test_large_prompts_are_answered_a_few_at_a_time_with_the_same_result(monkeypatch):
    world, model, key = small.world(), Oracle(jnp.float32(0.25)), randomness.key(7)
    measure = lambda model, prompt: {"size": jnp.sum(prompt.tokens() ** 2)}  # noqa: E731
    assert at_a_time(model, 12, evaluation.cached(world, key)) == 12
    whole = expect(measure, model, world, key, 2, batch=12)
    bytes_of_one = world.sample(key, 0).tokens().nbytes
    for most, size in ((5.5, 4), (0.5, 1)):
        monkeypatch.setattr(evaluation, "CACHED", int(most * bytes_of_one))
        assert at_a_time(model, 12, evaluation.cached(world, key)) == size
        few = expect(measure, model, world, key, 2, batch=12)
        assert np.allclose(few["size"], whole["size"], rtol=1e-6)


def test_an_expectation_is_the_mean_over_the_prompts_it_draws():
    world, key = small.world(), randomness.key(7)
    found = expect(
        lambda model, prompt: {"label": jnp.sum(prompt.coefficients)}, Oracle(jnp.ones(())), world, key, 3, batch=8
    )
    by_hand = [
        float(jnp.sum(world.sample(prompt_key, 8 * number + index).coefficients))
        for number in range(3)
        for index, prompt_key in enumerate(jax.random.split(jax.random.fold_in(key, number), 8))
    ]
    assert np.isclose(found["label"], np.mean(by_hand), atol=1e-5)


def test_jobs_do_not_depend_on_how_many_run_together():
    scales = np.linspace(0.1, 2.0, 150).astype(np.float32)  # more than one block on two cores
    keys = ensemble.stack([ensemble.member_key("job", index) for index in range(150)])
    world = small.world(noise_norm=0.1)

    def run(picked):
        stacked = Jobs(
            Oracle(scales[picked]), np.zeros(len(picked)), ensemble.stack([world] * len(picked)), keys[picked]
        )
        return evaluate(errors(hinge), stacked, 250)["hinge"]

    every = run(np.arange(150))
    assert np.array_equal(every[[3, 149]], run(np.array([3, 149])))
    assert np.allclose(every, np.maximum(0, 1 - scales), atol=1e-6)


def test_models_that_stay_on_the_device_answer_as_those_carried_to_every_job(monkeypatch):
    picks = np.array([2, 0, 2, 1])
    keys = ensemble.stack([ensemble.member_key("job", index) for index in range(4)])
    models = Oracle(np.float32([0.1, 0.5, 0.7]))
    jobs = Jobs(models, np.zeros(4), ensemble.stack([small.world(noise_norm=0.1)] * 4), keys, picks)
    carried = evaluate(errors(hinge), jobs, 250)
    monkeypatch.setattr(ensemble, "large", lambda size: True)
    assert jobs.large()
    picked = evaluate(errors(hinge), jobs, 250)
    assert np.array_equal(carried["hinge"], picked["hinge"])
    assert ensemble.resident(models) is ensemble.resident(models)

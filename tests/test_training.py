import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats

import small
from iclab import ensemble, training
from iclab.errors import InputError
from iclab.evaluation import Jobs, errors, evaluate
from iclab.losses import hinge
from iclab.models.gpt2 import GPT2Settings
from iclab.optimisation import Cosine, Training
from iclab.training import Member, train
from iclab.worlds.tasks import all_tasks, cyclic_tasks, without

RECORD = [0, 20, 40]


def batch_loss(model, world, key, batch, first=0):
    prompts = jax.vmap(world.sample)(jax.random.split(key, batch), first + jnp.arange(batch))
    return jnp.mean(jax.vmap(lambda prompt: hinge.value(model(prompt)[0], prompt))(prompts))


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def test_members_are_the_same_together_one_at_a_time_and_again():
    together, record = train(small.members(range(5)), hinge, RECORD)
    again, _ = train(small.members(range(5)), hinge, RECORD)
    assert all(np.array_equal(a, b) for a, b in zip(leaves(together.model), leaves(again.model), strict=True))
    for seed in (0, 3):
        alone, alone_record = train(small.members([seed]), hinge, RECORD)
        for a, b in zip(leaves(together.model), leaves(alone.model), strict=True):
            assert np.array_equal(a[seed], b[0])
        assert np.array_equal(record["training_loss"][seed, 1:], alone_record["training_loss"][0, 1:])


def test_the_key_of_a_member_is_a_function_of_its_identity():
    data = [
        jax.random.key_data(ensemble.member_key(name, seed)).tolist()
        for name, seed in (("a", 0), ("a", 1), ("b", 0), ("a", 0))
    ]
    assert data[0] == data[3]
    assert len({tuple(d) for d in data}) == 3


def test_how_often_the_training_is_recorded_does_not_change_it():
    often, _ = train(small.members([0]), hinge, [0, 5, 17, 40])
    once, _ = train(small.members([0]), hinge, [40])
    assert all(np.array_equal(a, b) for a, b in zip(leaves(often.model), leaves(once.model), strict=True))


def test_settings_traced_and_ensembles_of_other_sizes_do_not_recompile():
    compiled = training._compiled_advance(hinge, (), "")
    train(small.members(range(2)), hinge, RECORD)
    traces = compiled._in_turn._cache_size()
    assert traces > 0
    mixed = ensemble.stack(
        [
            small.member(the_world=small.world(matching_fraction=fraction, tasks=tasks, length=length), step_size=step)
            for fraction, tasks, length, step in (
                (0.5, cyclic_tasks(4), 5, 0.1),
                (0.9, all_tasks(4), 9, 3.0),
                (1.0, cyclic_tasks(4), 10, 1.0),
            )
        ]
    )
    train(mixed, hinge, [0, 3])
    assert compiled._in_turn._cache_size() == traces


def test_a_step_is_plain_sgd():
    """One step of the compiled loop against the gradient of the mean loss of its own batch."""
    member = small.member()
    start, _ = train(ensemble.stack([member]), hinge, [0])
    after, _ = train(ensemble.stack([member]), hinge, [1])
    model = ensemble.unstack(start.model, 0)
    key = jax.random.fold_in(jax.random.fold_in(member.key, training.DATA), 0)
    gradient = jax.grad(lambda m: batch_loss(m, member.world, key, 32))(model)
    for before, now, slope in zip(
        leaves(model), leaves(ensemble.unstack(after.model, 0)), leaves(gradient), strict=True
    ):
        assert np.allclose(now, before - 1.0 * slope, atol=1e-6)


def test_prompts_are_numbered_on_from_batch_to_batch():
    """With an odd batch the second step begins with the other label: its gradient is that of prompts 31 to 61."""
    member = dataclasses.replace(small.member(), training=Training(1.0, 31))
    first, second = (ensemble.unstack(train(ensemble.stack([member]), hinge, [n])[0].model, 0) for n in (1, 2))
    key = jax.random.fold_in(jax.random.fold_in(member.key, training.DATA), 1)
    for start, same in ((31, True), (0, False)):
        gradient = jax.grad(batch_loss)(first, member.world, key, 31, start)
        expected = [before - slope for before, slope in zip(leaves(first), leaves(gradient), strict=True)]
        found = all(np.allclose(now, want, atol=1e-6) for now, want in zip(leaves(second), expected, strict=True))
        assert found is same


def test_divergence_is_recorded_for_the_member_and_leaves_the_others_alone():
    mixed = ensemble.stack([small.member(seed=0), small.member(seed=1, step_size=1e30), small.member(seed=2)])
    states, _ = train(mixed, hinge, [0, 30])
    assert training.diverged(states).tolist() == [False, True, False]
    assert states.diverged_at[0] == -1 and 0 <= states.diverged_at[1] < 30
    alone, _ = train(small.members([2]), hinge, [0, 30])
    assert np.array_equal(states.model.output_weights[2], alone.model.output_weights[0])


@pytest.mark.parametrize("schedule", [[], [5, 5], [10, 0], [-1, 3]])
def test_a_bad_schedule_is_refused(schedule):
    with pytest.raises(InputError, match="record_at must be increasing"):
        train(small.members([0]), hinge, schedule)


def test_bad_training_settings_are_refused():
    with pytest.raises(InputError, match="batch is 0"):
        Training(batch=0)
    with pytest.raises(InputError, match="step_size is -1"):
        Training(step_size=-1.0)


def losses_after_training(name, basis_seed, seeds):
    one = small.world(basis_seed=basis_seed)
    trained = ensemble.stack([small.member(name, seed, the_world=one, step_size=4.0) for seed in seeds])
    states, _ = train(trained, hinge, [0, 150])
    unseen = small.world(basis_seed=basis_seed, tasks=without(all_tasks(4), cyclic_tasks(4)))
    keys = ensemble.stack([ensemble.member_key(f"{name}/test", seed) for seed in seeds])
    jobs = Jobs(states.model, np.zeros(len(seeds)), ensemble.stack([unseen] * len(seeds)), keys)
    return evaluate(errors(hinge), jobs, 2000)["hinge"]


def test_a_random_orthogonal_basis_gives_the_same_distribution_of_errors():
    """Stopped in the middle of learning, where losses spread most, so that a difference could show."""
    aligned = losses_after_training("aligned", None, range(24))
    rotated = losses_after_training("rotated", 9, range(24))
    assert 0.0 < np.mean(aligned) < 0.999 and np.std(aligned) > 0
    assert scipy.stats.ks_2samp(aligned, rotated).pvalue > 1e-3


def test_the_best_model_is_the_one_at_the_lowest_record():
    """Watched is a number that goes up and down with the weights, so that the best record is an early one for some
    members.
    """

    def watch(model, member, key):
        return {"weight": jax.numpy.sum(model.output_weights**2) * jax.numpy.cos(model.key_weights[0, 0] * 40)}

    states, record = train(small.members(range(3)), hinge, RECORD, (watch,), best_of="weight")
    lowest = np.argmin(record["weight"], axis=1)
    assert states.best.step.tolist() == [RECORD[place] for place in lowest] and len(set(lowest)) > 1
    assert np.array_equal(states.best.value, record["weight"].min(axis=1))
    for seed, place in enumerate(lowest):
        stopped, _ = train(small.members([seed]), hinge, RECORD[: place + 1])
        for a, b in zip(leaves(states.best.model), leaves(stopped.model), strict=True):
            assert np.array_equal(a[seed], b[0])


def test_the_schedule_is_optax_warm_up_and_cosine_with_numbers_that_may_be_traced():
    schedules = ensemble.stack([Cosine(20.0, 100.0), Cosine(0.0, 50.0)])
    factors = eqx.filter_jit(jax.vmap(lambda schedule, step: schedule(step), in_axes=(0, None)))
    theirs = optax.warmup_cosine_decay_schedule(0.0, 1.0, 20, 100)
    steps = jnp.arange(0, 120, 7)
    assert np.allclose([factors(schedules, step)[0] for step in steps], [theirs(step) for step in steps], atol=1e-6)
    assert factors(schedules, steps[0])[1] == 1.0  # no warm-up
    with pytest.raises(InputError, match=r"warm-up is 10 of 10 steps"):
        Cosine(10, 10)


def adam_by_hand(gradients, start, rates, decay):
    """AdamW of Loshchilov and Hutter in float64, with Adam's β = (0.9, 0.999) and ε = 1e-8."""
    weight, first, second = np.asarray(start, np.float64), 0.0, 0.0
    for number, (slope, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        slope = np.asarray(slope, np.float64)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        step = (first / (1 - 0.9**number)) / (np.sqrt(second / (1 - 0.999**number)) + 1e-8)
        weight = weight - rate * (step + decay * weight)
    return weight


@pytest.mark.parametrize(("optimiser", "decay"), [("adam", 0.0), ("adamw", 0.5)])
def test_adam_and_adamw_take_their_steps_in_the_same_loop(optimiser, decay):
    """Three steps of the compiled loop against the formula, on the gradients of the loop's own batches."""
    how = Training(0.01, 32, optimiser=optimiser, weight_decay=decay, schedule=Cosine(2.0, 4.0))
    member = eqx.tree_at(lambda m: m.training, small.member(), how, is_leaf=lambda leaf: leaf is None)
    models = [ensemble.unstack(train(ensemble.stack([member]), hinge, [n])[0].model, 0) for n in (0, 1, 2, 3)]
    slope = jax.jit(jax.grad(lambda m, key, n: batch_loss(m, member.world, key, 32, n * 32)))
    stream = jax.random.fold_in(member.key, training.DATA)
    gradients = [slope(model, jax.random.fold_in(stream, n), n) for n, model in enumerate(models[:3])]
    rates = [0.01 * factor for factor in (0.0, 0.5, 1.0)]
    for name, own_decay in (("value_weights", decay), ("output_weights", decay), ("readout", 0.0)):
        expected = adam_by_hand([getattr(g, name) for g in gradients], getattr(models[0], name), rates, own_decay)
        assert np.allclose(getattr(models[3], name), expected, atol=1e-5)
        assert name == "readout" or not np.allclose(getattr(models[0], name), expected, atol=1e-3)


def test_half_precision_rounds_the_gradients_and_keeps_the_weights():
    world = small.world()
    settings = GPT2Settings(depth=1, width=12, positions=11)
    weights = {}
    for half in (False, True):
        how = Training(0.01, 32, optimiser="adamw", half=half)
        states, _ = train(ensemble.stack([Member(ensemble.member_key("half", 0), world, settings, how)]), hinge, [5])
        weights[half] = states.model.blocks[0].attention.weight
    assert weights[True].dtype == np.float32
    moved = np.abs(weights[True] - weights[False])
    assert 0 < np.mean(moved) < 0.01  # five steps of 0.01: not the same, not another training


def test_an_unknown_optimiser_is_refused():
    with pytest.raises(InputError, match="optimiser is 'adamm'; it must be one of sgd, adam, adamw"):
        Training(optimiser="adamm")

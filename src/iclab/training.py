"""Training an ensemble: seeds × traced settings in one compiled program.

The whole of a training step is compiled: drawing fresh prompts, the gradient, the update. The program runs a traced
number of steps and then observes the model, so the host comes back only where something is recorded: for progress, for
the record and, later, for checkpoints.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from iclab import ensemble, memory
from iclab.errors import require
from iclab.losses import Loss
from iclab.models import Model, ModelSettings, at_a_time
from iclab.optimisation import Training, optimiser_of, rounded
from iclab.prompts import Prompt
from iclab.worlds import World, sampled

# Streams of one member's key. What a stream is for is fixed here once; evaluation has keys of its own.
INITIALISATION, DATA, OBSERVATION = 0, 1, 2

Observer = Callable[[Any, Any, Key[Array, ""]], Mapping[str, Array]]
"""`observer(model, member, key)` -> named arrays. "norm@neuron" names an array with one axis called neuron."""


class Member(eqx.Module):
    """One training, or a stack of them: its random stream, world, model settings, how it is trained, what is watched.

    `watched` holds other worlds (out of domain, say) that the observers look at the model in while it trains.
    """

    key: Key[Array, "*members"]
    world: Any
    model: Any
    training: Training
    watched: tuple[Any, ...] = ()


class Best(eqx.Module):
    """The model at the record where a recorded value was lowest so far: early stopping."""

    model: Any
    value: Float[Array, "*members"]
    step: Int[Array, "*members"]


class State(eqx.Module):
    """What persists from step to step. `diverged_at` is the first step with a loss that is not finite, or -1."""

    model: Any
    optimiser: Any
    step: Int[Array, "*members"]
    diverged_at: Int[Array, "*members"]
    best: Best | None = None


def _start(keep: bool, member: Member) -> State:
    settings: ModelSettings = member.model
    model = settings.init(jax.random.fold_in(member.key, INITIALISATION), member.world)
    zero = jnp.zeros((), jnp.int32)
    best = Best(model, jnp.asarray(jnp.inf), zero) if keep else None
    return State(model, optimiser_of(member.training).init(eqx.filter(model, eqx.is_array)), zero, zero - 1, best)


def _answer(model: Model, loss: Loss, prompt: Prompt) -> tuple[Array, Array]:
    output, _ = model(prompt)
    return loss.value(output, prompt), loss.mistake(output, prompt)[0]


def _batch_loss(model: Model, prompts: Prompt, axes: Any, loss: Loss) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Mean loss and 0-1 error over a batch of prompts."""
    values, wrong = jax.vmap(lambda prompt: _answer(model, loss, prompt), in_axes=(axes,))(prompts)
    return jnp.mean(values), jnp.mean(wrong.astype(float))


def _sharing(prompts: Any, dictionary: Any, answers: Any) -> Any:
    """Prompts with this dictionary and these answers, which belong to the world and have no batch axis."""
    both = (dictionary, answers)
    return eqx.tree_at(lambda p: (p.dictionary, p.answers), prompts, both, is_leaf=lambda leaf: leaf is None)


def _draw(world: World, key: Key[Array, ""], training: Training, step: Int[Array, ""]) -> tuple[Prompt, Any]:
    """The batch of a step and its vmap axes: everything is batched but the dictionary and the answers, which all share.

    Prompts are numbered on, batch after batch: what a world balances by number stays balanced over batches of any size.
    A batch that is used in all steps is written out.
    """

    def sample(key: Key[Array, ""], number: Int[Array, ""]) -> Prompt:
        prompt: Prompt = sampled(world, key, number)
        return prompt if training.fresh else prompt.written_out()

    key, first = (jax.random.fold_in(key, step), step * training.batch) if training.fresh else (key, 0)
    axes = jax.tree.map(lambda leaf: 0, jax.eval_shape(sample, key, jnp.zeros((), int)))
    axes = _sharing(axes, None, None)
    numbers = first + jnp.arange(training.batch)
    return jax.vmap(sample, out_axes=axes)(jax.random.split(key, training.batch), numbers), axes


def _advance(
    loss: Loss, observers: tuple[Observer, ...], best_of: str, member: Member, state: State, steps: Int[Array, ""]
) -> tuple[State, dict[str, Array]]:
    """`steps` SGD steps, then the record: mean training loss and error over these steps, and what the observers say."""
    optimiser = optimiser_of(member.training)
    data_key = jax.random.fold_in(member.key, DATA)
    draw = functools.partial(_draw, member.world, data_key, member.training)
    first, axes = draw(state.step)

    def objective(model: Any, prompts: Prompt) -> tuple[Array, Array]:
        model = rounded(model) if member.training.half else model
        return _batch_loss(model, _sharing(prompts, first.dictionary, first.answers), axes, loss)

    gradient = functools.partial(_by_pieces, eqx.filter_value_and_grad(objective, has_aux=True))

    # A step ends with drawing the prompts of the next one. Drawn where they are used, the compiler would draw them
    # again in every place where the model reads them, forward and backward: on a CPU that was half of the time.
    def body(_: Array, carry: tuple[State, Array, Prompt]) -> tuple[State, Array, Prompt]:
        state, sums, prompts = carry
        (value, error), gradients = gradient(state.model, prompts)
        updates, optimiser_state = optimiser.update(gradients, state.optimiser, state.model)
        for name, scale in member.training.scales.items():
            updates = eqx.tree_at(operator.attrgetter(name), updates, scale * getattr(updates, name))
        newly = (state.diverged_at < 0) & ~jnp.isfinite(value)
        state = State(
            eqx.apply_updates(state.model, updates),
            optimiser_state,
            state.step + 1,
            jnp.where(newly, state.step, state.diverged_at),
            state.best,
        )
        following = _sharing(draw(state.step)[0], None, None) if member.training.fresh else prompts
        return state, sums + jnp.stack([value, error]), following

    state, sums, _ = jax.lax.fori_loop(0, steps, body, (state, jnp.zeros(2), _sharing(first, None, None)))
    means = sums / steps  # NaN for zero steps, the record at initialisation
    record = {"training_loss": means[0], "training_error": means[1]}
    for number, observer in enumerate(observers):
        key = jax.random.fold_in(jax.random.fold_in(member.key, OBSERVATION), number)
        record |= observer(state.model, member, key)
    if state.best is not None:
        state = dataclasses.replace(state, best=_better(state.best, state, record[best_of]))
    return state, record


def _better(best: Best, state: State, value: Float[Array, ""]) -> Best:
    now = Best(state.model, value, state.step)
    return jax.tree.map(lambda new, old: jnp.where(value < best.value, new, old), now, best)


def _by_pieces(gradient: Callable[..., Any], model: Any, prompts: Any) -> Any:
    """`gradient(model, prompts)`, a mean over prompts, as the mean over as many pieces as the model wants."""
    count = ensemble.size(prompts)
    size = at_a_time(model, count)
    if size == count:
        return gradient(model, prompts)
    pieces = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), prompts)
    shapes = jax.eval_shape(gradient, model, ensemble.one_of(pieces))
    sums, _ = jax.lax.scan(
        lambda sums, piece: (jax.tree.map(jnp.add, sums, gradient(model, piece)), None),
        jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes), pieces,
    )  # fmt: skip
    return jax.tree.map(lambda leaf: leaf * (size / count), sums)


@functools.cache
def _traced_start(keep: bool) -> Any:
    return ensemble.once(functools.partial(_start, keep))


@functools.cache
def traced(loss: Loss, observers: tuple[Observer, ...], best_of: str) -> Any:
    """A stretch of a training, traced once for members of the same shapes."""
    return ensemble.once(functools.partial(_advance, loss, observers, best_of))


@functools.cache
def _compiled_start(keep: bool) -> Any:
    return ensemble.Mapped(_traced_start(keep))


@functools.cache
def _compiled_advance(loss: Loss, observers: tuple[Observer, ...], best_of: str) -> Any:
    return ensemble.Mapped(traced(loss, observers, best_of))


class Checkpoint:
    """Keeps a training between records; this one keeps nothing."""

    def load(self) -> tuple[list[np.ndarray], dict[str, np.ndarray]] | None:
        """The leaves of the stacked states in order and the records so far; None if there is nothing to go on from."""
        return None

    def save(self, leaves: Callable[[], list[np.ndarray]], records: dict[str, np.ndarray], finished: bool) -> None:
        """Called after every record; `leaves()` fetches the states. A save may be skipped unless the training is
        finished.
        """


def state_shape(members: Member, best_of: str = "") -> Any:
    """The shapes of one member's state, without computing anything."""
    return jax.eval_shape(_traced_start(bool(best_of)), ensemble.one_of(members))


def shapes(members: Member, loss: Loss, observers: tuple[Observer, ...], best_of: str = "") -> tuple[Any, Any]:
    """Shapes of one member's state and record. Tracing a step takes a while; the program is then not traced again."""
    one = ensemble.one_of(members)
    steps = jax.ShapeDtypeStruct((), jnp.int32)
    return jax.eval_shape(traced(loss, observers, best_of), one, state_shape(members, best_of), steps)


def lowered(members: Member, count: int, loss: Loss, observers: tuple[Observer, ...], best_of: str) -> list[Any]:
    """The programs that `train` runs for so many members of these shapes, to be compiled."""
    like = state_shape(members, best_of)
    layout = ensemble.Layout(count, memory.bytes_of(like))
    spread = layout.shaped(members)
    state = layout.shaped(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), like))
    steps = layout.shaped(np.zeros(count, np.int32))
    return [
        _compiled_start(bool(best_of)).lower(layout.counts, spread),
        _compiled_advance(loss, observers, best_of).lower(layout.counts, spread, state, steps),
    ]


def train(
    members: Member,
    loss: Loss,
    record_at: Sequence[int],
    observers: tuple[Observer, ...] = (),
    progress: Callable[[int, float], None] = lambda steps, seconds: None,
    best_of: str = "",
    checkpoint: Checkpoint | None = None,
) -> tuple[State, dict[str, np.ndarray]]:
    """Train stacked members up to the last of `record_at`, recording at each of these steps.

    Returns the final states and the records (member × record × ...). `progress(model_steps, seconds)` is called after
    each stretch. `best_of` names a recorded value; the model at the record where it was lowest is kept in the state as
    `best`. A training found in `checkpoint` goes on from its last record. A member whose loss stops being finite keeps
    its `diverged_at`; what it computed afterwards is not used.
    """
    schedule = np.asarray(record_at, int)
    require(
        len(schedule) > 0 and schedule[0] >= 0 and bool(np.all(np.diff(schedule) > 0)),
        f"record_at must be increasing step numbers from 0 on, not {list(record_at)}.",
    )
    checkpoint = checkpoint or Checkpoint()
    count = ensemble.size(members)
    like = state_shape(members, best_of)
    layout = ensemble.Layout(count, memory.bytes_of(like))
    kept = _restore(checkpoint, like, count)
    if kept is not None and kept[1]["training_loss"].shape[1] == len(schedule):
        return kept
    spread = layout.spread(members)
    if kept is None:
        state, records = _compiled_start(bool(best_of))(layout.counts, spread), {}
    else:
        state, records = layout.spread(kept[0]), kept[1]
    done = records["training_loss"].shape[1] if records else 0
    advance = _compiled_advance(loss, observers, best_of)
    for number, stretch in enumerate(np.diff(schedule, prepend=0)[done:], done + 1):
        began = time.perf_counter()
        steps = layout.spread(np.full(count, stretch, np.int32))
        state, record = advance(layout.counts, spread, state, steps)
        fresh = {name: value[:, None] for name, value in layout.collect(record).items()}  # waits for the devices
        records = {name: np.concatenate([records[name], fresh[name]], axis=1) for name in fresh} if records else fresh
        checkpoint.save(functools.partial(_leaves, layout, state), records, number == len(schedule))
        progress(int(stretch) * count, time.perf_counter() - began)
    return layout.collect(state), records


def _leaves(layout: ensemble.Layout, state: State) -> list[np.ndarray]:
    return jax.tree.leaves(layout.collect(state))


def _restore(checkpoint: Checkpoint, like: State, count: int) -> tuple[State, dict[str, np.ndarray]] | None:
    """The states and records of a checkpoint, if they are of these members."""
    kept = checkpoint.load()
    if kept is None:
        return None
    leaves, records = kept
    wanted, structure = jax.tree.flatten(like)
    fits = [(count, *leaf.shape) for leaf in wanted] == [leaf.shape for leaf in leaves]
    return (jax.tree.unflatten(structure, leaves), records) if fits else None


def diverged(states: State) -> np.ndarray:
    """Which members diverged: a loss or a weight that is not finite."""
    finite = np.ones(len(states.diverged_at), bool)
    for leaf in jax.tree.leaves(states.model):
        array = np.asarray(leaf)
        finite &= np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    return (np.asarray(states.diverged_at) >= 0) | ~finite

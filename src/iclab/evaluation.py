"""Expectations over fresh prompts: errors, and anything else a probe can measure on a prompt.

A measure is a function of (model, prompt) that returns named numbers; `expect` averages it over prompts that the model
has never seen. Lengths and fractions of the test world are traced, so one compilation serves a whole figure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from iclab import ensemble, memory
from iclab.losses import Loss, never
from iclab.models import Model, at_a_time
from iclab.prompts import Prompt
from iclab.worlds import World, sampled

Measure = Callable[[Any, Prompt], Mapping[str, Array]]
BATCH = 250  # prompts: large enough to fill a core, and for most worlds small enough to stay in its cache
CACHED = 2 << 20  # bytes of tokens that are in a core's cache at once


@functools.cache
def errors(loss: Loss) -> Measure:
    """The measure of the loss (under its own name), of the 0-1 "error" and of "ties". A tie counts as an error.

    A loss without mistakes, such as a squared distance, has its value alone.
    """

    def measure(model: Model, prompt: Prompt) -> dict[str, Array]:
        output, _ = model(prompt)
        if loss.mistake is never:
            return {loss.name: loss.value(output, prompt)}
        wrong, tie = loss.mistake(output, prompt)
        return {
            loss.name: loss.value(output, prompt),
            "error": wrong.astype(float),
            "ties": tie.astype(float),
        }

    return measure


def expect(
    measure: Measure,
    model: Model,
    world: World,
    key: Key[Array, ""],
    batches: int | Int[Array, ""],
    batch: int = BATCH,
) -> dict[str, Array]:
    """The mean of `measure` over `batches` (traced) batches of fresh prompts."""

    def one(index: Int[Array, ""], prompt_key: Key[Array, ""]) -> Mapping[str, Array]:
        return measure(model, sampled(world, prompt_key, index))

    size = at_a_time(model, batch, cached(world, key))

    def body(number: Int[Array, ""], sums: Any) -> Any:
        keys = jax.random.split(jax.random.fold_in(key, number), batch)
        values = jax.lax.map(lambda job: one(*job), (number * batch + jnp.arange(batch), keys), batch_size=size)
        return jax.tree.map(lambda total, value: total + jnp.mean(value, axis=0), sums, values)

    shapes = jax.eval_shape(one, jnp.zeros((), int), key)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    sums = jax.lax.fori_loop(0, batches, body, zeros)
    return {name: total / batches for name, total in sums.items()}


def cached(world: Any, key: Any) -> int:
    """How many prompts have room in a core's cache. Shapes are enough for both."""
    tokens = jax.eval_shape(_tokens, world, key)
    return int(CACHED // (tokens.size * tokens.dtype.itemsize))


def expect_in(
    measure: Measure,
    model: Model,
    worlds: Sequence[World],
    key: Key[Array, ""],
    batches: int | Int[Array, ""],
    batch: int = BATCH,
) -> list[dict[str, Array]]:
    """`expect` in several worlds of the same shapes, with the same draws. It is compiled once, not once for each."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *worlds)
    found = jax.lax.map(lambda world: expect(measure, model, world, key, batches, batch), stacked)
    return [ensemble.unstack(found, number) for number in range(len(worlds))]


def unchanged(model: Any, _: Any) -> Any:
    """The default preparation of a model for a test: none."""
    return model


@functools.cache
def _compiled_expect(measure: Measure, prepare: Callable[[Any, Any], Any]) -> Any:
    def job(model: Any, preparation: Any, world: Any, key: Key[Array, ""], batches: Int[Array, ""]) -> dict[str, Array]:
        return expect(measure, prepare(model, preparation), world, key, batches)

    return ensemble.Mapped(ensemble.once(job))


@functools.cache
def _compiled_expect_among(measure: Measure, prepare: Callable[[Any, Any], Any]) -> Any:
    def job(models: Any, pick: Any, preparation: Any, world: Any, key: Any, batches: Any) -> dict[str, Array]:
        return expect(measure, prepare(ensemble.unstack(models, pick), preparation), world, key, batches)

    return ensemble.Mapped(ensemble.once(job))


class Jobs(NamedTuple):
    """Stacked evaluations: model i, prepared with preparation i (pruned, say), on fresh prompts of world i with key
    i.

    Where the same models are asked several times, job i is of model `picks[i]`.
    """

    models: Any
    preparations: Any
    worlds: Any
    keys: Key[Array, " jobs"]
    picks: np.ndarray | None = None

    def picked(self) -> np.ndarray:
        """The model of every job."""
        return np.arange(ensemble.size(self.keys)) if self.picks is None else self.picks

    def part(self, first: int, last: int) -> tuple[Any, Any, Any, Any]:
        """Jobs `first` to `last` (excluded), each with a model of its own, or its number where models are large."""
        rest = ensemble.part((self.preparations, self.worlds, self.keys), slice(first, last))
        picks = self.picked()[first:last].astype(np.int32)
        return (picks if self.large() else ensemble.part(self.models, picks)), *rest

    def large(self) -> bool:
        """Whether the models stay on the device and are picked there."""
        return ensemble.large(memory.bytes_of(self.models) // ensemble.size(self.models))


def join(several: Sequence[Jobs]) -> Jobs:
    """Jobs one after another."""
    if len(several) == 1:
        return several[0]
    firsts = np.cumsum([0, *(ensemble.size(jobs.models) for jobs in several[:-1])])
    picks = np.concatenate([jobs.picked() + first for first, jobs in zip(firsts, several, strict=True)])
    return Jobs(*ensemble.join([jobs[:4] for jobs in several]), picks)


def lowered(measure: Measure, jobs: Jobs, prepare: Callable[[Any, Any], Any], count: int) -> list[Any]:
    """The program that `evaluate` runs for a block of so many jobs of these shapes, to be compiled."""
    layout, numbers = ensemble.Layout(count, bytes_per_member=0), np.zeros(1, np.int32)
    if jobs.large():
        shapes = layout.shaped((numbers, *jobs[1:4], numbers))
        among = ensemble.resident_shapes(jobs.models)
        return [_compiled_expect_among(measure, prepare).lower(layout.counts, *shapes, among=among)]
    return [_compiled_expect(measure, prepare).lower(layout.counts, *layout.shaped((*jobs[:4], numbers)))]


@ensemble.once
def _tokens(world: World, key: Key[Array, ""]) -> Array:
    return world.sample(key, jnp.zeros((), int)).tokens()


def block_of(jobs: Jobs) -> int:
    """How many of these jobs one program takes."""
    if jobs.large():  # one at a time
        return ensemble.block_size(0)
    tokens = jax.eval_shape(_tokens, *ensemble.one_of((jobs.worlds, jobs.keys)))
    return ensemble.block_size(4 * BATCH * tokens.size * tokens.dtype.itemsize)  # tokens and a few arrays of their size


def evaluate(
    measure: Measure,
    jobs: Jobs,
    prompts: int,
    prepare: Callable[[Any, Any], Any] = unchanged,
    progress: Callable[[float], None] = lambda fraction: None,
) -> dict[str, np.ndarray]:
    """The measure's mean over at least `prompts` fresh prompts for every job, in blocks that share one program."""
    count = ensemble.size(jobs.keys)
    batches = np.full(count, -(-prompts // BATCH), np.int32)
    compiled, block = _compiled_expect(measure, prepare), block_of(jobs)
    if jobs.large():
        compiled = functools.partial(_compiled_expect_among(measure, prepare), among=ensemble.resident(jobs.models))
    found: list[dict[str, np.ndarray]] = []
    computed: tuple[ensemble.Layout, Any] | None = None
    for start in [*range(0, count, block), count]:  # one is computed while the one before it is fetched
        before, computed = computed, None
        if start < count:
            part = *jobs.part(start, start + block), batches[start : start + block]
            layout = ensemble.Layout(ensemble.size(part), bytes_per_member=0)
            computed = layout, compiled(layout.counts, *layout.spread(part))
        if before is not None:
            found.append(before[0].collect(before[1]))
            progress(start / count)
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}

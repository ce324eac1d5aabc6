"""Expectations over fresh prompts: errors, and anything else a probe can measure on a prompt.

A measure is a function of (model, prompt) that returns named numbers; `expect` averages it over prompts that the model has
never seen. Lengths and fractions of the test world are traced, so one compilation serves a whole figure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from iclab import ensemble
from iclab.losses import Loss
from iclab.models import Model
from iclab.prompts import Prompt
from iclab.worlds import World

Measure = Callable[[Any, Prompt], Mapping[str, Array]]
BATCH = 250


@functools.cache
def errors(loss: Loss) -> Measure:
    """The measure of the loss (under its own name), of the 0-1 "error" and of "ties". A tie counts as an error."""

    def measure(model: Model, prompt: Prompt) -> dict[str, Array]:
        output, _ = model(prompt)
        wrong, tie = loss.mistake(output, prompt)
        return {loss.name: loss.value(output, prompt), "error": wrong.astype(float), "ties": tie.astype(float)}

    return measure


def expect(
    measure: Measure, model: Model, world: World, key: Key[Array, ""], prompts: int, batch: int = BATCH
) -> dict[str, Array]:
    """The mean of `measure` over `prompts` fresh prompts (rounded up to whole batches)."""
    batch = min(batch, prompts)
    batches = -(-prompts // batch)

    def one(index: Int[Array, ""], prompt_key: Key[Array, ""]) -> Mapping[str, Array]:
        return measure(model, world.sample(prompt_key, index))

    def body(sums: Any, batch_key: Key[Array, ""]) -> tuple[Any, None]:
        values = jax.vmap(one)(jnp.arange(batch), jax.random.split(batch_key, batch))
        return jax.tree.map(lambda total, value: total + jnp.mean(value, axis=0), sums, values), None

    shapes = jax.eval_shape(one, jnp.zeros((), int), key)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    sums, _ = jax.lax.scan(body, zeros, jax.random.split(key, batches))
    return {name: total / batches for name, total in sums.items()}


def unchanged(model: Any, _: Any) -> Any:
    """The default preparation of a model for a test: none."""
    return model


@functools.cache
def compiled_expect(measure: Measure, prompts: int, prepare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """`expect` mapped over jobs (model, how to prepare it, world, key)."""

    def job(model: Any, preparation: Any, world: Any, key: Key[Array, ""]) -> dict[str, Array]:
        return expect(measure, prepare(model, preparation), world, key, prompts)

    return ensemble.over_members(job)


def evaluate(
    measure: Measure,
    models: Any,
    worlds: Any,
    keys: Key[Array, " jobs"],
    prompts: int,
    preparations: Any = None,
    prepare: Callable[[Any, Any], Any] = unchanged,
) -> dict[str, Any]:
    """Stacked jobs: model i, prepared with preparation i (pruned, say), on fresh prompts of world i with key i."""
    jobs = (models, jnp.zeros(ensemble.size(keys)) if preparations is None else preparations, worlds, keys)
    layout = ensemble.layout_for((models, worlds))
    return layout.collect(compiled_expect(measure, prompts, prepare)(layout.counts, *layout.spread(jobs)))

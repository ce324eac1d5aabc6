"""Checks of losses and probes: finite numbers, named axes, the same result for the same key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from iclab import randomness
from iclab.conformance.findings import Finding, attempt, close, demand
from iclab.conformance.models import hidden, spoil
from iclab.conformance.worlds import draw
from iclab.losses import Loss, never
from iclab.prompts import Prompt

NAMED = 'Return a dictionary of named arrays; "share@neuron" names the one axis of an array with one entry per neuron.'


def name_of(function: Callable[..., Any]) -> str:
    """The name of a probe."""
    return str(getattr(function, "__name__", type(function).__name__))


def check_loss(loss: Loss, model: Any, world: Any, file: str) -> Iterator[Finding]:
    """Check that a loss is lowest at the right answer and that `mistake` finds the mistakes."""
    yield attempt(f"loss {loss.name}", "values", lambda: _loss(loss, model, world), file)


def _loss(loss: Loss, model: Any, world: Any) -> str:
    prompts = draw(world, 16)
    output = jax.vmap(lambda p: model(p)[0])(prompts)
    right = _right(prompts)
    gradient = jax.vmap(lambda out, p: jax.grad(lambda o: loss.value(o, p))(out))(output, prompts)
    demand(
        np.isfinite(gradient).all(),
        "its gradient is not finite at the answer of an untrained model.",
        "Keep logarithms, square roots and divisions away from 0.",
    )
    if right.shape != output.shape:
        return "its gradient is finite"
    best = jax.vmap(loss.value)(right, prompts)
    demand(
        bool(jnp.mean(best) <= jnp.mean(jax.vmap(loss.value)(output, prompts))),
        "it is higher at the right answers than at those of an untrained model.",
        "The loss must be lowest where the output is the right answer; a sign may be wrong.",
    )
    if loss.mistake is never:
        return "lowest at the right answer"
    wrong, tie = jax.vmap(loss.mistake)(right, prompts)
    demand(
        wrong.dtype == bool and tie.dtype == bool,
        "`mistake` does not return two truth values.",
        "mistake(output, prompt) must return two booleans: is it wrong, and is it a tie.",
    )
    demand(not bool(wrong.any()), "`mistake` counts the right answer as a mistake.", "Correct `mistake`.")
    return "lowest at the right answer, which is not a mistake"


def _right(prompts: Prompt) -> jax.Array:
    """The exactly right output: the target, or the answer that the target numbers."""
    if prompts.answers is None:
        return jnp.asarray(prompts.target, float)
    return jax.vmap(lambda p: p.answers[p.target])(prompts)


def check_observer(observer: Callable[..., Any], model: Any, member: Any, file: str) -> Iterator[Finding]:
    """A probe that looks at the model while it trains: observer(model, member, key)."""
    part = f"probe {name_of(observer)}"
    key = randomness.key(3)

    def body() -> str:
        compiled = eqx.filter_jit(lambda m, n, k: observer(m, n, k))
        arrays = jax.tree.map(jnp.asarray, member)
        found = compiled(model, arrays, key)
        _named(found)
        again = observer(model, member, key)
        same = all(close(found[name], again[name]) for name in found)
        demand(same, "the same model and key give two different results.", "Draw from `key` with jax.random only.")
        return _said(found)

    yield attempt(part, "values", body, file)


def check_measure(measure: Callable[..., Any], model: Any, world: Any, file: str) -> Iterator[Finding]:
    """A probe on one prompt: measure(model, prompt)."""
    part = f"probe {name_of(measure)}"

    batched = eqx.filter_jit(lambda m, p: jax.vmap(lambda one: dict(measure(m, one)))(p))

    def compiled(prompts: Prompt) -> dict[str, np.ndarray]:
        return {name: np.asarray(value) for name, value in batched(model, prompts).items()}

    def body() -> str:
        _named(measure(model, world.sample(randomness.key(0), 0)))
        return _said(compiled(draw(world, 8)))

    values = attempt(part, "values", body, file)
    yield values
    if values.passed:
        yield attempt(part, "padding", lambda: _reads_padding(compiled, world), file)


def _reads_padding(compiled: Callable[[Prompt], dict[str, np.ndarray]], world: Any) -> str:
    prompts = hidden(world, 8)
    before, after = compiled(prompts), compiled(spoil(prompts))
    moved = [n for n in before if before[n].ndim == 1 and not close(before[n], after[n])]
    demand(
        not moved,
        f"{', '.join(moved)} changes with the content of absent tokens.",
        "Weigh by `prompt.present` before summing over tokens: a probe must not see padding.",
    )
    return "the content of absent tokens does not matter"


def _named(found: Any) -> None:
    demand(isinstance(found, Mapping) and found, f"it returned {type(found).__name__}.", NAMED)
    for name, value in found.items():
        axes = str(name).count("@")
        demand(
            isinstance(name, str) and jnp.ndim(value) == axes,
            f"{name!r} names {axes} axes, but its array has {jnp.ndim(value)}.",
            NAMED,
        )


def _said(found: Mapping[str, Any]) -> str:
    lost = [name for name, value in found.items() if not np.isfinite(np.asarray(value, float)).all()]
    note = f"; not finite at initialisation: {', '.join(lost)}" if lost else ""
    return f"returns {', '.join(name.partition('@')[0] for name in found)}{note}"

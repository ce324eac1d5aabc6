"""Checks of a model: it returns an answer and a trace, respects masks, ignores the truth, and has finite gradients."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from iclab import randomness
from iclab.conformance.findings import Finding, attempt, close, demand
from iclab.conformance.worlds import PER_TOKEN, draw
from iclab.ensemble import unstack
from iclab.losses import Loss
from iclab.prompts import Padding, Prompt
from iclab.worlds import padding_of

PROMPTS = 16
GARBAGE = 5.0  # the size of the numbers put into absent tokens
MASK = (
    "Tokens with `prompt.present` False are padding: use jnp.where(prompt.present, scores, -jnp.inf) before "
    "a softmax and jnp.where(prompt.present[:, None], tokens, 0) before a sum."
)


def check_model(settings: Any, world: Any, loss: Loss, file: str) -> Iterator[Finding]:
    """Run one check after another, in a sound world, until one fails: each relies on those before it."""
    part = f"model {type(settings).__name__}"
    made = attempt(part, "initialisation", lambda: _init(settings, world), file)
    yield made
    if not made.passed:
        return
    model = settings.init(randomness.key(0), world)
    for check, body in (
        ("shapes", _shapes), ("jit and vmap", _compiled), ("truth", _truth), ("masks", _masks), ("padding", _padding),
        ("gradients", _gradients),
    ):  # fmt: skip
        found = attempt(part, check, functools.partial(body, model, world, loss), file)
        yield found
        if not found.passed:
            return


def _init(settings: Any, world: Any) -> str:
    key = randomness.key(0)
    model, again = settings.init(key, world), settings.init(key, world)
    demand(
        callable(model),
        f"init returned {type(model).__name__}, which cannot be called.",
        "Return a model that can be called as model(prompt).",
    )
    leaves = jax.tree.leaves(model)
    demand(leaves, "the model has no weights.", "Store the weights as arrays in the fields of an eqx.Module.")
    numbers = [leaf for leaf in leaves if not (eqx.is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating))]
    demand(
        not numbers,
        f"a field of the model holds {numbers[0] if numbers else None!r}, which is not an array of floats.",
        "Weights are float arrays; declare anything else (a number, a name) as a static field: `depth: int = "
        "static(2)`.",
    )
    same = all(np.array_equal(a, b) for a, b in zip(leaves, jax.tree.leaves(again), strict=True))
    demand(same, "the same key gives two different initialisations.", "Draw weights from `key` with jax.random only.")
    arrays = jax.tree.map(jnp.asarray, (settings, world))
    eqx.filter_eval_shape(lambda pair, k: pair[0].init(k, pair[1]), arrays, key)
    return f"{sum(leaf.size for leaf in leaves)} weights in {len(leaves)} arrays, from the key alone"


def _shapes(model: Any, world: Any, loss: Loss) -> str:
    prompt = world.sample(randomness.key(0), 0)
    answer = model(prompt)
    demand(
        isinstance(answer, tuple) and len(answer) == 2,
        f"the model returned {type(answer).__name__}, not a pair.",
        "Return (output, trace): the answer at the query, and whatever is worth a look (attention, say; {} "
        "if nothing).",
    )
    output = answer[0]
    value = loss.value(output, prompt)
    demand(
        jnp.shape(value) == () and bool(jnp.isfinite(value)),
        f"with an output of shape {jnp.shape(output)} the loss {loss.name!r} is {value}, not one finite number.",
        "hinge and regression need one number as output; squared and cross_entropy a vector like the world's answers.",
    )
    return f"the output has the shape {jnp.shape(output)}, the loss {loss.name!r} is a number"


@eqx.filter_jit
def _answers(model: Any, prompts: Prompt) -> Any:
    return jax.vmap(lambda prompt: model(prompt)[0])(prompts)


def answers(model: Any, prompts: Prompt) -> np.ndarray:
    """The outputs on stacked prompts."""
    return np.asarray(_answers(model, prompts))


def _compiled(model: Any, world: Any, loss: Loss) -> str:
    prompts = draw(world, PROMPTS)
    together = answers(model, prompts)[:4]
    alone = np.stack([np.asarray(model(unstack(prompts, number))[0]) for number in range(4)])
    demand(
        close(together, alone),
        "an answer in a compiled batch differs from the answer to the prompt alone.",
        "The model may depend only on its weights and the prompt.",
    )
    return "answers alone and in a compiled batch agree"


def _truth(model: Any, world: Any, loss: Loss) -> str:
    prompts = draw(world, PROMPTS)
    before = answers(model, prompts)
    said = ["target", "pattern"]
    said += ["label"] if prompts.label_atom is None else []  # labels shown as an atom are part of the tokens
    said += ["outlier"] if prompts.outlier is not None else []
    for name in said:
        other = np.roll(np.asarray(getattr(prompts, name)), 1, axis=0)
        changed = eqx.tree_at(operator.attrgetter(name), prompts, jnp.asarray(other))
        demand(
            close(before, answers(model, changed)),
            f"the answer changes when `prompt.{name}` does: the model looks at the truth.",
            "A model may read only prompt.tokens() and prompt.present; target, label and pattern are for losses "
            "and probes.",
        )
    return "the model reads the tokens, not the truth about them"


def hide(prompts: Prompt, padding: Padding) -> Prompt:
    """The prompts with more contexts absent, where the world allows it; at least one group stays.

    Anywhere: about a third, at random places. In front: a random number of the first ones.
    """
    contexts = np.asarray(prompts.present)[:, :-1]
    there = contexts[:, :: padding.together]
    generator = np.random.default_rng(0)
    if padding.in_front:
        gone = np.arange(there.shape[1]) < generator.integers(0, there.shape[1], len(there))[:, None]
    else:
        drawn = generator.random(there.shape)
        gone = drawn < 1 / 3
        gone[np.arange(len(gone)), np.where(there, drawn, -1.0).argmax(axis=1)] = False
    kept = contexts & ~np.repeat(gone, padding.together, axis=1)
    return eqx.tree_at(lambda p: p.present, prompts, jnp.asarray(np.insert(kept, kept.shape[1], True, axis=1)))


def hidden(world: Any, count: int) -> Prompt:
    """Prompts of a world, with some contexts absent."""
    return hide(draw(world, count), padding_of(world))


def spoil(prompts: Prompt) -> Prompt:
    """The same prompts with different content in the absent tokens."""
    shape = jax.vmap(lambda p: p.tokens())(prompts).shape
    drawn = GARBAGE * np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    noise = jnp.zeros((*shape[:-1], 0)) if prompts.noise is None else prompts.noise
    whole = jnp.pad(noise, ((0, 0), (0, 0), (0, shape[-1] - noise.shape[-1])))
    spoiled = whole + jnp.where(prompts.present[..., None], 0.0, drawn)
    return eqx.tree_at(lambda p: p.noise, prompts, spoiled, is_leaf=lambda leaf: leaf is None)


def shorten(prompt: Prompt) -> Prompt:
    """One prompt without its absent tokens."""
    kept = np.flatnonzero(np.asarray(prompt.present))
    names = [name for name in PER_TOKEN if getattr(prompt, name) is not None]
    return eqx.tree_at(
        lambda p: [getattr(p, name) for name in names],
        prompt,
        [jnp.asarray(getattr(prompt, name))[kept] for name in names],
    )


def _masks(model: Any, world: Any, loss: Loss) -> str:
    prompts = hidden(world, PROMPTS)
    before, after = answers(model, prompts), answers(model, spoil(prompts))
    demand(np.isfinite(before).all(), "an answer is not finite if contexts are absent.", MASK)
    demand(
        close(before, after),
        "the answer changes with the content of absent tokens: the model ignores the mask.",
        MASK,
    )
    return "the content of absent tokens does not matter"


def _padding(model: Any, world: Any, loss: Loss) -> str:
    prompts = hidden(world, PROMPTS)
    padded = answers(model, prompts)[:2]
    short = np.stack([np.asarray(model(shorten(unstack(prompts, number)))[0]) for number in range(2)])
    demand(
        close(padded, short),
        "the answer to a padded prompt differs from that without padding: padding leaks.",
        "A shorter context is a longer one with tokens absent. Divide by jnp.sum(prompt.present), not by the "
        "length, and count positions by the tokens that are present. If the order of tokens matters, the world may "
        "put absent ones in front: `padding = Padding(in_front=True)`.",
    )
    return f"a padded prompt is answered like the shorter one; absent tokens stand {padding_of(world)}"


def _gradients(model: Any, world: Any, loss: Loss) -> str:
    prompts = hidden(world, PROMPTS)

    def objective(m: Any) -> Any:
        return jnp.mean(jax.vmap(lambda prompt: loss.value(m(prompt)[0], prompt))(prompts))

    found = jax.tree_util.tree_leaves_with_path(eqx.filter_jit(eqx.filter_grad(objective))(model))
    bad = [
        jax.tree_util.keystr(path, simple=True, separator=".") for path, leaf in found if not np.isfinite(leaf).all()
    ]
    demand(
        not bad,
        f"the gradient of {', '.join(bad)} is not finite at initialisation.",
        "jnp.where(mask, f(x), 0) has a NaN gradient if f(x) is not finite: make x harmless before f, as in "
        "jnp.sqrt(jnp.where(mask, x, 1.0)). Norms and square roots at 0 and a softmax over nothing are the "
        "usual places.",
    )
    demand(
        any(np.any(leaf) for _, leaf in found),
        "every gradient is zero at initialisation: training cannot begin.",
        "Start from weights that are not all zero, or where the loss is not flat.",
    )
    still = [jax.tree_util.keystr(path, simple=True, separator=".") for path, leaf in found if not np.any(leaf)]
    return "all gradients are finite" + (f"; those of {', '.join(still)} are zero at initialisation" if still else "")

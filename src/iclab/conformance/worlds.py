"""Checks of a world: shapes, randomness from the key alone, truth that agrees with the tokens, compilation."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from iclab import randomness
from iclab.conformance.findings import Finding, attempt, demand
from iclab.ensemble import unstack
from iclab.prompts import Prompt
from iclab.worlds import padding_of

PROMPTS = 512  # on which truth and tokens are compared
PER_TOKEN = ("atoms", "coefficients", "present", "pattern", "label", "noise", "outlier", "step")
SIGMAS = 4.0  # by which tokens with the query's pattern must resemble it more than others do


@eqx.filter_jit
def _draw(world: Any, keys: Any) -> Prompt:
    return jax.vmap(world.sample)(keys, jnp.arange(len(keys)))


def draw(world: Any, count: int) -> Prompt:
    """The first few prompts of a batch, compiled once, with the world's numbers as arguments, as in a training."""
    prompts = _draw(jax.tree.map(jnp.asarray, world), _keys_of_batch())
    return jax.tree.map(lambda leaf: leaf[:count], prompts)


def _keys_of_batch() -> Any:
    return jax.random.split(randomness.key(1), PROMPTS)


def check_world(world: Any, file: str) -> Iterator[Finding]:
    """Run one check after another until one fails: each relies on those before it."""
    for check, body in (
        ("shapes", _shapes), ("keys", _keys), ("jit and vmap", _compiled), ("columns", _columns), ("truth", _truth),
    ):  # fmt: skip
        found = attempt(f"world {type(world).__name__}", check, functools.partial(body, world), file)
        yield found
        if not found.passed:
            return


def _shapes(world: Any) -> str:
    prompt = world.sample(randomness.key(0), 0)
    demand(
        isinstance(prompt, Prompt),
        f"sample returned {type(prompt).__name__}, not a prompt.",
        "Return make_prompt(tokens, target): tokens as rows, the query last, and the right answer.",
    )
    tokens = prompt.tokens()
    count, columns = tokens.shape
    demand(count >= 2, f"a prompt has {count} token.", "A prompt needs at least one context and, last, the query.")
    for name in PER_TOKEN:
        value = getattr(prompt, name)
        demand(
            value is None or len(value) == count,
            f"`{name}` has {0 if value is None else len(value)} entries, but there are {count} tokens.",
            "Every field but `target`, `dictionary`, `answers` and `chain` has one entry per token, the query's last.",
        )
    demand(
        prompt.target.shape == (),
        f"the target has the shape {prompt.target.shape}.",
        "It must be one number: the answer.",
    )
    demand(prompt.present.dtype == bool, f"`present` holds {prompt.present.dtype}.", "It must be an array of booleans.")
    finite = all(bool(jnp.isfinite(x).all()) for x in (tokens, prompt.target, prompt.label))
    demand(
        finite, "a token, a label or the target is not finite.", "Look for divisions by zero, logarithms and overflow."
    )
    return f"a prompt has {count} tokens, the query last, in {columns} columns"


def _columns(world: Any) -> str:
    columns = world.sample(randomness.key(0), 0).tokens().shape[1]
    said, features = world.columns, world.feature_columns
    demand(
        columns == said and 1 <= features <= columns,
        f"tokens have {columns} columns; the world says columns = {said}, feature_columns = {features}.",
        "`columns` is the width of a token; the first `feature_columns` of them hold the input, the others its label.",
    )
    return f"{features} of {columns} hold the input"


def _compiled(world: Any) -> str:
    together = draw(world, 4)
    keys = _keys_of_batch()
    for number in range(4):
        alone, among = world.sample(keys[number], number), unstack(together, number)
        same = all(
            np.allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-4, atol=1e-5)
            for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(among), strict=True)
        )
        demand(
            same,
            "a prompt drawn in a compiled batch differs from the one drawn alone with the same key and number.",
            "`sample` may depend only on the world's fields, `key` and `index`: no globals, counters or numpy.random.",
        )
    return "prompts drawn alone and in a compiled batch agree"


def _keys(world: Any) -> str:
    first, again, other = (world.sample(randomness.key(seed), 0) for seed in (0, 0, 1))
    same = all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True))
    demand(
        same,
        "the same key gives two different prompts.",
        "Draw everything from `key` with jax.random (split it for each draw); never from numpy.random or the "
        "random module.",
    )
    demand(
        not np.array_equal(first.tokens(), other.tokens()),
        "two different keys give the same tokens.",
        "Draw the prompt from `key`; a constant key inside `sample` makes all prompts of a batch equal.",
    )
    return "the same key gives the same prompt, and another key a different one"


def _truth(world: Any) -> str:
    prompts = draw(world, PROMPTS)
    tokens = np.asarray(jax.vmap(lambda p: p.tokens())(prompts), float)
    present, label = np.asarray(prompts.present), np.asarray(prompts.label)
    demand(
        present[:, -1].all(),
        "the query (the last token) is marked as absent.",
        "Set `present` of the last token to True.",
    )
    demand(present[:, :-1].any(1).all(), "all contexts of a prompt are absent.", "Keep at least one context present.")
    _absent(world, present)
    atoms, rows = np.asarray(prompts.atoms), prompts.dictionary.shape[-2]
    demand(
        ((atoms >= 0) & (atoms < rows)).all(),
        f"an atom has the number {atoms.max() if atoms.max() >= rows else atoms.min()}, but the dictionary has "
        f"{rows} rows.",
        "JAX does not report reading beyond the end of an array: number the atoms from 0 to the last row.",
    )
    for name in ("dictionary", "answers"):
        shared = getattr(prompts, name)
        demand(
            shared is None or np.array_equal(shared, np.broadcast_to(shared[:1], shared.shape)),
            f"`{name}` differs between prompts.",
            f"`{name}` belongs to the world: all prompts of a batch share it. Make it a field, and draw "
            "`target` instead.",
        )
    _target(prompts)
    demand(
        (label[:, -1] == 0).all(),
        "the query shows its label.",
        "`label` of the last token must be 0: the model has to find it.",
    )
    if prompts.outlier is not None:
        flags = np.asarray(prompts.outlier)
        demand(
            not (flags & ~present).any() and not flags[:, -1].any(),
            "an absent token or the query is marked as an outlier.",
            "Only contexts that are present can be outliers.",
        )
    said = [_labels(world, tokens, present, label), _patterns(tokens, present, np.asarray(prompts.pattern))]
    return ", ".join(["targets are in range", *(text for text in said if text)])


def _absent(world: Any, present: np.ndarray) -> None:
    """Absent tokens must stand where the world says."""
    padding, contexts = padding_of(world), present[:, :-1]
    demand(
        contexts.shape[1] % padding.together == 0,
        f"`padding` is {padding}, but there are {contexts.shape[1]} contexts.",
        "The contexts must divide into groups of `together`.",
    )
    groups = contexts.reshape(len(contexts), -1, padding.together)
    whole = (groups == groups[..., :1]).all()
    ordered = not padding.in_front or (np.diff(contexts.astype(int), axis=1) >= 0).all()
    demand(
        bool(whole and ordered),
        f"`padding` says that tokens are absent {padding}, but `present` contradicts it.",
        "Correct `present`, or remove `padding`: then single tokens may be absent anywhere.",
    )


def _target(prompts: Prompt) -> None:
    target = np.asarray(prompts.target)
    demand(np.isfinite(target).all(), "a target is not finite.", "Look for divisions by zero in `sample`.")
    if prompts.answers is None:
        return
    count = prompts.answers.shape[-2]
    demand(
        np.issubdtype(target.dtype, np.integer) and target.min() >= 0 and target.max() < count,
        f"the target is {target.flat[0]}, but the world has {count} answers.",
        f"If a world has answers, `target` is the number of the right one: a whole number from 0 to {count - 1}.",
    )


def _labels(world: Any, tokens: np.ndarray, present: np.ndarray, label: np.ndarray) -> str:
    """Label columns must be the label times one embedding q, and empty at the query."""
    columns = tokens[..., world.feature_columns :]
    if not label.any() or columns.shape[-1] == 0:
        return ""
    contexts = present[:, :-1]
    shown, said = columns[:, :-1][contexts], label[:, :-1][contexts]
    embedding = said @ shown / (said @ said)
    wrong = ~np.isclose(shown, said[:, None] * embedding, rtol=1e-3, atol=1e-3 * (1 + np.abs(embedding).max())).all(
        axis=1
    )
    demand(
        not wrong.any(),
        f"{wrong.mean():.0%} of the contexts show a label in their columns that differs from `label`.",
        "`label` is the number that the label columns of a token (those after `feature_columns`) show. Set both "
        "from one.",
    )
    demand(
        np.allclose(columns[:, -1], 0, atol=1e-5),
        "the query's label columns are not empty: they may give the answer away.",
        "Set the label columns of the last token to 0; the answer belongs in `target`.",
    )
    return "labels are what the tokens show"


def _patterns(tokens: np.ndarray, present: np.ndarray, pattern: np.ndarray) -> str:
    """Contexts with the query's pattern must resemble the query more than the others do."""
    there = present[:, :-1]
    same, other = (pattern[:, :-1] == pattern[:, -1:]) & there, (pattern[:, :-1] != pattern[:, -1:]) & there
    usable = same.any(1) & other.any(1)
    if usable.sum() < 16 or (pattern < 0).all():
        return ""
    unit = tokens / np.maximum(np.linalg.norm(tokens, axis=-1, keepdims=True), 1e-12)
    likeness = np.einsum("ptc,pc->pt", unit[:, :-1], unit[:, -1])
    mean = [np.where(group, likeness, 0).sum(1)[usable] / group.sum(1)[usable] for group in (same, other)]
    lead = mean[0] - mean[1]
    error = lead.std(ddof=1) / np.sqrt(len(lead)) + 1e-9
    demand(
        lead.mean() > SIGMAS * error,
        "contexts with the query's `pattern` resemble the query no more than the others do.",
        "`pattern` numbers what a token carries, so tokens with the query's number must resemble it. Leave it out "
        "if there is no such thing.",
    )
    return "contexts with the query's pattern resemble it"

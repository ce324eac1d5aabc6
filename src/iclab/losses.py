"""Losses, each with the mistake that the figures count.

Theorems are about a loss, figures about a 0-1 error, and the two need not agree; so a `Loss` has both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iclab.errors import InputError, require
from iclab.prompts import Prompt


def never(output: Array, prompt: Prompt) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    """No answer is a mistake, for a loss that only measures a distance."""
    return jnp.asarray(False), jnp.asarray(False)


@dataclasses.dataclass(frozen=True)
class Loss:
    """`value(output, prompt)` is minimised; `mistake(output, prompt)` says (is it wrong, is it a tie)."""

    name: str
    value: Callable[[Array, Prompt], Float[Array, ""]]
    mistake: Callable[[Array, Prompt], tuple[Bool[Array, ""], Bool[Array, ""]]] = never


def _one_number(loss: str, output: Array) -> None:
    require(
        output.ndim == 0,
        f"the loss {loss} needs one number from the model, which gives an array of shape {output.shape}.",
    )


def _answers(loss: str, output: Array, prompt: Prompt) -> Float[Array, "answers out"]:
    """The world's answers, if the output is a vector like them."""
    if prompt.answers is None:
        raise InputError(f"the loss {loss} chooses among answers, but the world has none.")
    width = prompt.answers.shape[1]
    require(
        output.shape == (width,),
        f"the loss {loss} needs a vector of {width} numbers; the model gives an array of shape {output.shape}.",
    )
    return prompt.answers


def _hinge(output: Float[Array, "*out"], prompt: Prompt) -> Float[Array, ""]:
    _one_number("hinge", output)
    return jnp.maximum(0.0, 1.0 - prompt.target * output)


def _wrong_sign(output: Float[Array, ""], prompt: Prompt) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    # `not >` rather than `<=`, so that NaN counts as wrong too.
    return ~(prompt.target * output > 0.0), output == 0.0


hinge = Loss("hinge", _hinge, _wrong_sign)
"""max(0, 1 - z F), the loss of eq. (3) of nonlinear-icl. Mistake: z F <= 0; an output of exactly 0 is a tie and an
error.
"""


def _squared(output: Float[Array, "*out"], prompt: Prompt) -> Float[Array, ""]:
    return 0.5 * jnp.sum((_answers("squared", output, prompt)[prompt.target] - output) ** 2)


def nearness(output: Float[Array, " out"], prompt: Prompt) -> Float[Array, " answers"]:
    """uᵀF - ½‖u‖² for every answer u: highest where ‖F - u‖ is smallest, and exactly equal where a vote is tied."""
    assert prompt.answers is not None, "the world must offer its answers"
    return prompt.answers @ output - 0.5 * jnp.sum(prompt.answers**2, axis=1)


def _beaten(scores: Float[Array, " answers"], target: Array) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    own = scores[target]
    rival = jnp.max(jnp.where(jnp.arange(len(scores)) == target, -jnp.inf, scores))
    return ~(own > rival), own == rival


def _not_nearest(output: Float[Array, " out"], prompt: Prompt) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    return _beaten(nearness(output, prompt), prompt.target)


squared = Loss("squared", _squared, _not_nearest)
"""½‖z - F‖², the loss of eq. (3) of chain-of-thought. Mistake: another answer is as near as the right one; equal is a
tie.
"""


def _cross_entropy(output: Float[Array, "*out"], prompt: Prompt) -> Float[Array, ""]:
    scores = _answers("cross_entropy", output, prompt) @ output
    return jax.nn.logsumexp(scores) - scores[prompt.target]


def _not_highest(output: Float[Array, " out"], prompt: Prompt) -> tuple[Bool[Array, ""], Bool[Array, ""]]:
    assert prompt.answers is not None
    return _beaten(prompt.answers @ output, prompt.target)


cross_entropy = Loss("cross_entropy", _cross_entropy, _not_highest)
"""-log softmax over the dictionary, eq. (4) of vector-arithmetic. Mistake: another entry scores as high as the right
one.
"""


def _distance(output: Float[Array, "*out"], prompt: Prompt) -> Float[Array, ""]:
    _one_number("regression", output)
    return (output - prompt.target) ** 2


regression = Loss("squared_error", _distance)
"""(F - y)², where the answer is a number."""

"""How a trained model is asked for a chain of answers.

CoT inference (Algorithm 2 of chain-of-thought) asks for all K steps, one after another: each output is decoded greedily
to the nearest pattern, appended to the prompt as a solved step, and becomes the next question.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from iclab.losses import nearness
from iclab.models import Model
from iclab.prompts import Prompt
from iclab.worlds.reasoning import ask


def decode(output: Float[Array, " features"], prompt: Prompt) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Greedy decoding (5): the answer nearest to the output, and whether another one is as near."""
    scores = nearness(output, prompt)
    nearest = jnp.argmax(scores)
    return nearest, jnp.sum(scores == scores[nearest]) > 1


def chain_of_thought(model: Model, prompt: Prompt) -> tuple[Int[Array, " steps"], Bool[Array, " steps"]]:
    """v_1, ..., v_K, each fed back as (6) says, and which were ties. A loop: a deep model is compiled once, not K
    times.
    """
    assert prompt.chain is not None, "chain-of-thought inference needs a world of reasoning"
    steps = len(prompt.chain) - 1

    def answer(answers: Int[Array, " k1"], step: Int[Array, ""]) -> tuple[Int[Array, " k1"], Bool[Array, ""]]:
        output, _ = model(ask(prompt, answers, step))
        nearest, tie = decode(output, prompt)
        return answers.at[step].set(nearest), tie

    start = prompt.chain.at[1:].set(0)  # the model sees z_0 = x_query only
    answers, ties = jax.lax.scan(answer, start, jnp.arange(1, steps + 1))
    return answers[1:], ties


def chain_errors(model: Model, prompt: Prompt) -> dict[str, Array]:
    """The CoT error (7), averaged over the K steps, that of the final step alone, and ties, which count as errors."""
    assert prompt.chain is not None
    answers, ties = chain_of_thought(model, prompt)
    wrong = ((answers != prompt.chain[1:]) | ties).astype(float)
    return {"error": jnp.mean(wrong), "final_error": wrong[-1], "ties": jnp.mean(ties.astype(float))}

"""How a trained model is asked: for one answer, or for a chain of them.

CoT inference (Algorithm 2 of chain-of-thought) asks for all K steps, one after another: each output is decoded greedily to the
nearest pattern, appended to the prompt as a solved step, and becomes the next question.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from iclab.models import Model
from iclab.prompts import Prompt
from iclab.worlds.reasoning import ask


def decode(output: Float[Array, " features"], prompt: Prompt) -> Int[Array, ""]:
    """Greedy decoding (5): the answer nearest to the output."""
    assert prompt.answers is not None, "decoding needs a world that offers its answers"
    return jnp.argmin(jnp.sum((prompt.answers - output) ** 2, axis=1))


def chain_of_thought(model: Model, prompt: Prompt) -> Int[Array, " steps"]:
    """v_1, ..., v_K, each fed back as (6) says. K is small and static, so the loop is unrolled."""
    assert prompt.chain is not None, "chain-of-thought inference needs a world of reasoning"
    steps = len(prompt.chain) - 1
    answers = prompt.chain.at[1:].set(0)  # the model sees z_0 = x_query only
    for step in range(1, steps + 1):
        output, _ = model(ask(prompt, answers, step))
        answers = answers.at[step].set(decode(output, prompt))
    return answers[1:]


def chain_errors(model: Model, prompt: Prompt) -> dict[str, Array]:
    """The CoT error (7), averaged over the K steps, and the error of the final step alone."""
    assert prompt.chain is not None
    wrong = (chain_of_thought(model, prompt) != prompt.chain[1:]).astype(float)
    return {"error": jnp.mean(wrong), "final_error": wrong[-1]}

"""Which reasoning steps the attention looks at: four groups of columns, by pattern and by step (Fig. 5 of
chain-of-thought).

The query asks for step k with input z_{k-1}. A column that is step k of some example and has the same input can be
copied from; one of another step or with another input misleads. Limit: masses are averages over prompts and steps.

Where training moves the attention next is in the gradient of the loss: between columns (μ_j; 0; c_k) of the same or
another pattern and step, averaged over all such pairs (Lemmas F.5 and F.7).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

from iclab.losses import squared
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.models.gpt2 import GPT2
from iclab.prompts import Prompt


def step_masses(model: ChainTransformer | SeparateChainTransformer | GPT2, prompt: Prompt) -> dict[str, Array]:
    """Attention mass on columns with the same or another pattern, of the same or another step, as the query's."""
    return _masses(model(prompt)[1].attention, prompt)


def _masses(attention: Array, prompt: Prompt) -> dict[str, Array]:
    assert prompt.step is not None, "step masses need a world of reasoning"
    pattern = prompt.pattern[:-1] == prompt.pattern[-1]
    step = prompt.step[:-1] == prompt.step[-1]
    groups = {
        "same_pattern_same_step": pattern & step,
        "other_pattern_same_step": ~pattern & step,
        "same_pattern_other_step": pattern & ~step,
        "other_pattern_other_step": ~pattern & ~step,
    }
    return {name: jnp.sum(jnp.where(group, attention, 0.0), axis=-1) for name, group in groups.items()}


def at_first_pattern(model: ChainTransformer | SeparateChainTransformer, prompt: Prompt) -> dict[str, Array]:
    """Mass on same pattern and step, and whether the answer is wrong, where the query's input is pattern 0.

    Sums and a count, to be divided after the expectation: other queries add nothing to any of the three.
    """
    output, _ = model(prompt)
    first = (prompt.pattern[-1] == 0).astype(float)
    wrong, _ = squared.mistake(output, prompt)
    return {
        "first_mass": first * step_masses(model, prompt)["same_pattern_same_step"],
        "first_wrong": first * wrong,
        "first_count": first,
    }


def step_gradients(model: ChainTransformer | SeparateChainTransformer, prompt: Prompt) -> dict[str, Array]:
    """p̃'ᵀ (∂ℓ/∂W) p̃ for columns p̃ = (μ; 0; c) and p̃' of the same or another pattern and step: means over all pairs.

    With them the attention on the query's step, and the moments of the attention p on same pattern and step in which
    the lemmas bound the gradient: (1-p)², p(1-p)² and p(1-p). Weights that are trained separately are taken together
    as W.
    """
    whole = model
    if isinstance(model, SeparateChainTransformer):
        whole = ChainTransformer(model.key_weights.T @ model.query_weights)

    def loss(own: ChainTransformer) -> tuple[Array, dict[str, Array]]:
        output, trace = own(prompt)
        return squared.value(output, prompt), _masses(trace.attention, prompt)

    whole_gradient, masses = jax.grad(loss, has_aux=True)(whole)
    gradient = whole_gradient.weights
    assert prompt.answers is not None
    count = prompt.answers.shape[0]
    inputs, codes = prompt.dictionary[:count], prompt.dictionary[2 * count : -1]
    patterns, steps = inputs @ gradient @ inputs.T, codes @ gradient @ codes.T
    both = jnp.mean(inputs @ gradient @ codes.T) + jnp.mean(codes @ gradient @ inputs.T)
    by_pattern, by_step = (dict(zip(("same", "other"), _on_and_off(block), strict=True)) for block in (patterns, steps))
    found = {
        f"gradient_{pattern}_pattern_{step}_step": by_pattern[pattern] + by_step[step] + both
        for pattern in by_pattern
        for step in by_step
    }
    mass = masses["same_pattern_same_step"]
    rest = 1 - mass
    found |= {"rest_squared": rest**2, "mass_rest_squared": mass * rest**2, "mass_rest": mass * rest}
    return found | {name: masses[name] for name in ("same_pattern_same_step", "other_pattern_same_step")}


def _on_and_off(block: Array) -> tuple[Array, Array]:
    """Means of a square block on its diagonal and off it."""
    size = block.shape[0]
    diagonal = jnp.trace(block)
    return diagonal / size, (jnp.sum(block) - diagonal) / (size * max(size - 1, 1))

"""Which reasoning steps the attention looks at: four groups of columns, by pattern and by step (Fig. 5 of
chain-of-thought).

The query asks for step k with input z_{k-1}. A column that is step k of some example and has the same input can be
copied from; one of another step or with another input misleads. Limit: masses are averages over prompts and steps.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from iclab.losses import squared
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.models.gpt2 import GPT2
from iclab.prompts import Prompt


def step_masses(model: ChainTransformer | SeparateChainTransformer | GPT2, prompt: Prompt) -> dict[str, Array]:
    """Attention mass on columns with the same or another pattern, of the same or another step, as the query's."""
    _, trace = model(prompt)
    assert prompt.step is not None, "step masses need a world of reasoning"
    pattern = prompt.pattern[:-1] == prompt.pattern[-1]
    step = prompt.step[:-1] == prompt.step[-1]
    groups = {
        "same_pattern_same_step": pattern & step,
        "other_pattern_same_step": ~pattern & step,
        "same_pattern_other_step": pattern & ~step,
        "other_pattern_other_step": ~pattern & ~step,
    }
    return {name: jnp.sum(jnp.where(group, trace.attention, 0.0), axis=-1) for name, group in groups.items()}


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

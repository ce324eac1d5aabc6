"""The task vector h_0: where it points, whether it comes without a query, and whether it works for other queries.

Technique: cosines of h_0 with the dictionary's directions on fresh prompts; h_0 from the demonstrations alone, with the
last label in the query's place; h_0 added to other words of the same co-task. A model that adds the right task vector
to a word answers with the word's label, whatever the word.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.models.residual_transformer import ResidualTransformer
from iclab.prompts import Prompt


def _concepts(prompt: Prompt) -> int:
    """K, from the number of terms of a token (2K)."""
    return prompt.atoms.shape[1] // 2


def _cosines(vector: Float[Array, " d"], prompt: Prompt, prefix: str) -> dict[str, Array]:
    count = _concepts(prompt)
    cosine = prompt.dictionary[:-1] @ vector  # rows and vector are unit vectors
    task = prompt.pattern[-1]
    own = jnp.arange(count) == task
    other, other_low = (jnp.where(own, 0.0, jnp.abs(part)) for part in (cosine[:count], cosine[count : 2 * count]))
    return {
        f"{prefix}cos_task": cosine[task],
        f"{prefix}cos_other": jnp.max(other),
        f"{prefix}cos_low": jnp.abs(cosine[count + task]),
        f"{prefix}cos_low_other": jnp.max(other_low),
        f"{prefix}cos_common": jnp.max(jnp.abs(cosine[2 * count :])),
    }


def task_vector_cosines(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    """Theorem 3.2: cosines of h_0 with a and b of the co-task, and the largest with other a's, other b's and ν's."""
    _, trace = model(prompt)
    return _cosines(trace.task_vector, prompt, "")


def task_vector_uses(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    """Proposition 3.3's two bonuses: h_0 without a query word, and h_0 added to other words of the same co-task.

    Without a query the prompt ends with the last label, which takes the query's place (for ICL prompts). The other
    words are 0.1a ± b of the co-task, both signs, with the noise of this prompt's first and second token.
    """
    assert prompt.answers is not None and prompt.noise is not None
    tokens = prompt.tokens()
    earlier = prompt.present & (jnp.arange(len(tokens)) < len(tokens) - 2)
    alone, _ = model.retrieve(tokens, earlier, tokens[-2])
    _, trace = model(prompt)
    count, task = _concepts(prompt), prompt.pattern[-1]
    high, low = prompt.dictionary[task], prompt.dictionary[count + task]
    wrong = []
    for number, sign in enumerate((1.0, -1.0)):
        word = 0.1 * high + sign * low + prompt.noise[number]
        best = jnp.argmax(prompt.answers @ (trace.task_vector + word))
        wrong.append(best != 7 * task + number)
    return _cosines(alone, prompt, "alone_") | {"transfer_error": jnp.mean(jnp.stack(wrong).astype(float))}


def mixture_weights(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    """Eq. (8): projections of h_0 on the a's, from the query's co-task on; with several co-tasks it is a positive
    mixture.
    """
    _, trace = model(prompt)
    count = _concepts(prompt)
    projection = prompt.dictionary[:count] @ trace.task_vector
    ordered = jnp.roll(projection, -prompt.pattern[-1])
    return {"weight@concept": ordered, "rest": 1.0 - jnp.sum(ordered**2)}


def static_offset_error(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    """A static word-vector baseline beside the model: the mean label minus the mean word of the prompt, added to the
    query.
    """
    assert prompt.answers is not None
    tokens = prompt.tokens()
    words, labels = tokens[:-1:2], tokens[1:-1:2]
    shown = prompt.present[:-1:2, None]
    offset = jnp.sum(jnp.where(shown, labels - words, 0.0), axis=0) / jnp.sum(shown)
    output, _ = model(prompt)
    scores = jnp.stack([prompt.answers @ (tokens[-1] + offset), prompt.answers @ output])
    wrong = jnp.argmax(scores, axis=1) != prompt.target
    return {"static_error": wrong[0].astype(float), "model_error": wrong[1].astype(float)}


def complexity(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    """C(T) = 1 / max_y p(y | T), Appendix C: how hard it is for the model to be sure."""
    assert prompt.answers is not None
    output, _ = model(prompt)
    scores = prompt.answers @ output
    return {"complexity": jnp.sum(jnp.exp(scores - jnp.max(scores)))}

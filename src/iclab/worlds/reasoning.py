"""Reasoning in K steps: the world of chain-of-thought.

A task is a random permutation p of the M patterns; its step k is f_k(μ_{p_i}) = μ_{p_{(i+k) mod M}}. A context example
starts somewhere and is K columns (y_{k-1}; y_k; c_k): input, output, position. A fraction α of the examples starts from
the query's pattern. The last token is the query's column (z_{k-1}; 0; c_k), after the k-1 steps of the query that are
solved already.

The position codes c_k are K coordinates of their own. The paper adds them "to each p_i" in R^{2d}; added inside these
coordinates they leak into the value W_V p and the loss stays high while the accuracy looks fine (`positions_inside`
builds that world, for the test that catches it).
"""

from __future__ import annotations

import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from iclab.errors import require, require_finite, require_fraction, require_positive
from iclab.prompts import Prompt
from iclab.randomness import normals, ranks, uniforms
from iclab.worlds.transitions import check, shifts


class Mode(enum.IntEnum):
    """What a prompt asks: the step after k-1 solved ones (k by turns), all steps from the first, or the end at once."""

    next_step = 0
    chain = 1
    direct = 2


class Reasoning(eqx.Module):
    """The world on these orthonormal patterns, checked when it is built; without `transitions` examples make no errors.

    | word | letter |
    |---|---|
    | patterns | μ_j (or μ'_j in tests) as rows, orthonormal, in R^{d_X} |
    | dictionary | rows (μ; 0; 0), (0; μ; 0), (0; 0; c_k), and last an empty one |
    | cumulative | A_k in the order of the permutation, summed along rows: sampling by inversion |
    | matching_fraction | α, α': exactly round(α l) examples start from the query's pattern |
    | context_length | l_tr, l_ts |
    | noise_norm | ‖δ‖ of (14), orthogonal to the patterns |
    """

    dictionary: Float[Any, "*members atoms columns"]
    patterns: Float[Any, "*members patterns features"]
    cumulative: Float[Any, "*members steps patterns patterns"]
    matching_fraction: Float[Any, "*members"]
    context_length: Int[Any, "*members"]
    noise_norm: Float[Any, "*members"]
    mode: Int[Any, "*members"]
    maximum_length: int = eqx.field(static=True)
    noisy: bool = eqx.field(static=True)

    def __init__(
        self,
        patterns: np.ndarray,
        *,
        steps: int,
        matching_fraction: float,
        context_length: int,
        maximum_length: int | None = None,
        transitions: np.ndarray | None = None,
        noise_norm: float = 0.0,
        mode: Mode = Mode.next_step,
        positions_inside: bool = False,
    ) -> None:
        patterns = np.asarray(patterns, float)
        count, dimension = patterns.shape
        length = context_length if maximum_length is None else maximum_length
        matrices = shifts(steps, count) if transitions is None else check(transitions)
        require(
            matrices.shape == (steps, count, count),
            f"transitions have shape {matrices.shape}; {steps} steps on {count} patterns need {(steps, count, count)}.",
        )
        require_fraction("matching_fraction", matching_fraction)
        require_positive(context_length=context_length)
        require(context_length <= length, f"context_length is {context_length}, above maximum_length {length}.")
        require(
            round(matching_fraction * context_length) >= 1,
            f"matching_fraction {matching_fraction} of {context_length} examples "
            "leaves none that starts from the query's pattern.",
        )
        require_finite(noise_norm=noise_norm, patterns=patterns)
        require(noise_norm >= 0, f"noise_norm is {noise_norm}; it must not be negative.")
        orthonormal = np.allclose(patterns @ patterns.T, np.eye(count), atol=1e-6)
        require(orthonormal, "the patterns must be orthonormal rows.")
        require(
            noise_norm == 0 or count < dimension,
            f"noise orthogonal to {count} patterns does not exist in {dimension} dimensions.",
        )
        self.dictionary = _dictionary(patterns, steps, positions_inside).astype(np.float32)
        self.patterns = patterns.astype(np.float32)
        self.cumulative = np.cumsum(matrices, axis=2).astype(np.float32)
        self.matching_fraction = np.float32(matching_fraction)
        self.context_length = np.int32(context_length)
        self.noise_norm = np.float32(noise_norm)
        self.mode = np.int32(mode)
        self.maximum_length = length
        self.noisy = noise_norm > 0

    @property
    def steps(self) -> int:
        """K."""
        return self.cumulative.shape[-3]

    @property
    def feature_columns(self) -> int:
        """d_X."""
        return self.patterns.shape[-1]

    @property
    def columns(self) -> int:
        """2 d_X + K (2 d_X where the position codes lie inside)."""
        return self.dictionary.shape[-1]

    def letters(self) -> dict[str, np.ndarray]:
        """The patterns and the position codes, as rows, for files that others read."""
        count = self.patterns.shape[-2]
        codes = np.asarray(self.dictionary)[2 * count : 2 * count + self.steps]
        return {"train_patterns": np.asarray(self.patterns), "positions": codes[:, -self.steps :]}

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt. Its number decides the query's pattern and, where steps are asked for one by one, the step."""
        count, steps, length = self.patterns.shape[-2], self.steps, self.maximum_length
        draw = uniforms(key, count + (2 + steps) * length)
        order, draws = ranks(draw[:count]), draw[count:].reshape(2 + steps, length)
        number = jnp.asarray(index)
        start = jnp.argmax(order == number % count)
        asked = jnp.where(self.mode == Mode.next_step, (number // count) % steps + 1, 1)

        present = jnp.arange(length) < self.context_length
        matching = jnp.round(self.matching_fraction * self.context_length)
        rank = ranks(jnp.where(present, draws[0], 2.0))
        elsewhere = (start + 1 + jnp.floor(draws[1] * (count - 1)).astype(int)) % count
        place = jnp.where(rank < matching, start, elsewhere)
        places = [place]
        for step in range(steps):
            rows = jnp.asarray(self.cumulative)[step, place]
            place = jnp.minimum(jnp.sum(draws[2 + step][:, None] >= rows, axis=1), count - 1)
            places.append(place)
        trajectory = order[jnp.stack(places, axis=1)]  # (length, steps + 1) patterns of every example
        triangular = np.cumsum(np.arange(steps + 1))  # step k moves by k places
        chain = order[(start + triangular) % count]
        noise = self._noise(jax.random.fold_in(key, 1)) if self.noisy else None
        return self._prompt(trajectory, chain, asked, present, noise)

    def _prompt(
        self,
        trajectory: Int[Array, "length k1"],
        chain: Int[Array, " k1"],
        asked: Array,
        present: Array,
        noise: Array | None,
    ) -> Prompt:
        count, steps, length = self.patterns.shape[-2], self.steps, self.maximum_length
        empty = self.dictionary.shape[0] - 1
        direct = self.mode == Mode.direct
        # An example asked at once keeps its input and its last output in its first column; its other columns are zeros.
        first = jnp.arange(steps) == 0
        outputs = jnp.where(direct & first, trajectory[:, -1:], trajectory[:, 1:])
        shown = ~direct | first
        examples = jnp.stack(
            [
                jnp.where(shown, trajectory[:, :-1], empty),
                jnp.where(shown, count + outputs, empty),
                jnp.broadcast_to(2 * count + jnp.arange(steps), (length, steps)),
            ],
            axis=-1,
        ).reshape(length * steps, 3)
        atoms = jnp.concatenate([examples, jnp.zeros((steps, 3), examples.dtype)])
        if noise is not None:
            outs = jnp.where((direct & first)[:, None], noise[:, -1:], noise[:, 1:])
            pair = jnp.concatenate([noise[:, :-1], outs], axis=-1) * jnp.broadcast_to(shown, (steps,))[:, None]
            noise = jnp.pad(pair.reshape(length * steps, -1), ((0, steps), (0, 0)))
        prompt = Prompt(
            atoms=atoms,
            coefficients=jnp.ones(atoms.shape),
            present=jnp.concatenate([jnp.repeat(present, steps), jnp.ones(steps, bool)]),
            pattern=jnp.concatenate([jnp.where(shown, trajectory[:, :-1], -1).reshape(-1), chain[:-1]]),
            label=jnp.zeros(len(atoms)),
            target=jnp.where(direct, chain[-1], chain[asked]),
            dictionary=jnp.asarray(self.dictionary),
            answers=jnp.asarray(self.patterns),
            noise=noise,
            step=jnp.concatenate([jnp.tile(jnp.arange(1, steps + 1), length), jnp.arange(1, steps + 1)]),
            chain=chain,
        )
        return ask(prompt, chain, asked)

    def _noise(self, key: Key[Array, ""]) -> Float[Array, "length k1 features"]:
        """δ for x_i, y_{i,1}, ..., y_{i,K}: of norm `noise_norm`, uniform in directions orthogonal to all patterns."""
        gaussian = normals(key, (self.maximum_length, self.steps + 1, self.feature_columns))
        orthogonal = gaussian - (gaussian @ self.patterns.T) @ self.patterns
        return self.noise_norm * orthogonal / jnp.linalg.norm(orthogonal, axis=-1, keepdims=True)


def _dictionary(patterns: np.ndarray, steps: int, positions_inside: bool) -> np.ndarray:
    """Inputs, outputs and position codes as rows; codes have columns of their own, or share those of the patterns."""
    count, dimension = patterns.shape
    dictionary = np.zeros((2 * count + steps + 1, 2 * dimension + (0 if positions_inside else steps)))
    dictionary[:count, :dimension] = patterns
    dictionary[count : 2 * count, dimension : 2 * dimension] = patterns
    codes = dictionary[2 * count : 2 * count + steps]
    if positions_inside:
        free = np.linalg.svd(patterns)[2][count : count + steps]
        require(len(free) == steps, f"{steps} codes inside need {steps} directions orthogonal to the {count} patterns.")
        codes[:, dimension:] = free
    else:
        codes[:, -steps:] = np.eye(steps)
    return dictionary


def ask(prompt: Prompt, answers: Int[Array, " k1"], step: Int[Array, ""] | int) -> Prompt:
    """The same examples with the query at another step: (6). `answers[j]` is z_j (or the model's v_j) for j < step.

    The last K tokens of a prompt are the query's: solved steps 1..K-1, of which those before `step` are present, and
    the question itself, which comes last.
    """
    assert prompt.answers is not None and prompt.step is not None
    count, steps = prompt.answers.shape[0], len(answers) - 1
    empty = prompt.dictionary.shape[0] - 1
    numbers = jnp.arange(1, steps + 1)
    solved = jnp.stack([answers[:-1], count + answers[1:], 2 * count + numbers - 1], axis=1)
    question = jnp.stack([answers[step - 1], jnp.asarray(empty), 2 * count + step - 1])
    rows = jnp.concatenate([solved[:-1], question[None]])
    return eqx.tree_at(
        lambda p: (p.atoms, p.present, p.pattern, p.step),
        prompt,
        (
            prompt.atoms.at[-steps:].set(rows),
            prompt.present.at[-steps:].set((numbers < step).at[-1].set(True)),
            prompt.pattern.at[-1].set(answers[step - 1]),
            prompt.step.at[-1].set(step),
        ),
    )

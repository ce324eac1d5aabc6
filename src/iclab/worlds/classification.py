"""Binary classification in context: the world of nonlinear-icl, feature-selection and mamba-outliers.

An input is x = λ μ_j + κ ν_k + n: a relevant pattern, an irrelevant one and bounded noise. A task is an ordered pair of
decisive patterns (a, b): label +1 for μ_a, -1 for μ_b, and an independent coin flip for any other pattern. A context
example carries μ_a or μ_b with probability α/2 each; the other relevant patterns share 1-α equally. The label columns
hold ±q (a single column with q = 1 for mamba-outliers). Contexts may carry additive outliers (`iclab.worlds.outliers`).

Queries carry a decisive pattern of their task, each label equally often in a batch: drawn "x_query ~ D" as printed
(Section 2.1 of nonlinear-icl), most queries would have a random label that nothing can learn.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from iclab.errors import require, require_finite, require_fraction, require_positive
from iclab.patterns import Patterns
from iclab.prompts import Prompt
from iclab.randomness import normals, uniforms
from iclab.worlds.outliers import Outliers

# Fields are NumPy arrays when a world is built and JAX arrays when it is traced: typed as Any, shapes checked.
ATOM_ROWS = 8  # the dictionary is padded to a multiple of this: products with rows of 32 bytes are faster
TASK_ROWS = 64  # task tables are padded to a multiple of this, so that worlds with different task sets stack


class Classification(eqx.Module):
    """The world on these patterns and tasks, checked when it is built.

    `label_embedding` is q, the ranges are those of λ and κ; `noisy` forces the noise path even where τ = 0, so that
    worlds stack. Patterns, embedding and tasks become tables of padded size, for the same reason.

    | word | letter |
    |---|---|
    | dictionary | rows (μ_j; 0), (ν_k; 0), (v*_s; 0), zero padding, and last (0; q) |
    | tasks | pairs (a, b); only the first `task_count` rows are drawn |
    | relevant_patterns, irrelevant_patterns | M1, M2 |
    | matching_fraction | α in training, α' in tests |
    | context_length | l_tr, l_ts; traced, at most `maximum_length` |
    | shortest_length | lengths go by turns from this one to `context_length`; both the same: one length |
    | relevant_low, relevant_high | range of λ |
    | irrelevant_low, irrelevant_high | range of κ, (-K, K) |
    | noise_norm | τ, the norm of n (uniform on the sphere) |
    | outlier_patterns | V |
    """

    dictionary: Float[Any, "*members atoms columns"]
    tasks: Int[Any, "*members tasks 2"]
    task_count: Int[Any, "*members"]
    relevant_patterns: Int[Any, "*members"]
    irrelevant_patterns: Int[Any, "*members"]
    matching_fraction: Float[Any, "*members"]
    context_length: Int[Any, "*members"]
    shortest_length: Int[Any, "*members"]
    relevant_low: Float[Any, "*members"]
    relevant_high: Float[Any, "*members"]
    irrelevant_low: Float[Any, "*members"]
    irrelevant_high: Float[Any, "*members"]
    noise_norm: Float[Any, "*members"]
    outlier_patterns: Int[Any, "*members"]
    outliers: Outliers | None
    feature_columns: int = eqx.field(static=True)
    maximum_length: int = eqx.field(static=True)
    noisy: bool = eqx.field(static=True)

    def __init__(
        self,
        patterns: Patterns,
        tasks: np.ndarray,
        *,
        label_embedding: np.ndarray,
        matching_fraction: float,
        context_length: int,
        maximum_length: int | None = None,
        shortest_length: int | None = None,
        relevant_range: tuple[float, float] = (1.0, 1.0),
        irrelevant_range: tuple[float, float] = (-0.5, 0.5),
        noise_norm: float = 0.0,
        noisy: bool | None = None,
        outliers: Outliers | None = None,
    ) -> None:
        length = context_length if maximum_length is None else maximum_length
        shortest = context_length if shortest_length is None else shortest_length
        count = len(patterns.relevant)
        require_fraction("matching_fraction", matching_fraction)
        require_positive(context_length=context_length)
        require(context_length <= length, f"context_length is {context_length}, above maximum_length {length}.")
        require(
            1 <= shortest <= context_length,
            f"shortest_length is {shortest}; it must lie in 1..{context_length}, the context_length.",
        )
        require(count >= 2, f"relevant_patterns is {count}; a binary task needs at least 2.")
        decisive = "with 2 relevant patterns every context is decisive: matching_fraction must be 1"
        require(count > 2 or matching_fraction == 1.0, f"{decisive}, not {matching_fraction}.")
        require(noise_norm >= 0.0, f"noise_norm is {noise_norm}; it must not be negative.")
        require_finite(noise_norm=noise_norm, relevant_range=relevant_range, irrelevant_range=irrelevant_range)
        require_finite(label_embedding=label_embedding)
        left_out = noisy is False and noise_norm != 0
        require(not left_out, f"noise_norm is {noise_norm}, but noisy=False leaves the noise out.")
        table = _task_table(np.asarray(tasks), count)
        require(
            outliers is None or len(patterns.outliers) > 0,
            "outliers are asked for, but the patterns have no outlier directions; "
            "make them with orthogonal_patterns(outliers=V).",
        )
        self.dictionary = _dictionary(patterns, label_embedding)
        self.tasks = table
        self.task_count = np.int32(len(tasks))
        self.relevant_patterns = np.int32(count)
        self.irrelevant_patterns = np.int32(len(patterns.irrelevant))
        self.matching_fraction = np.float32(matching_fraction)
        self.context_length = np.int32(context_length)
        self.shortest_length = np.int32(shortest)
        self.relevant_low, self.relevant_high = np.float32(relevant_range[0]), np.float32(relevant_range[1])
        self.irrelevant_low, self.irrelevant_high = np.float32(irrelevant_range[0]), np.float32(irrelevant_range[1])
        self.noise_norm = np.float32(noise_norm)
        self.outlier_patterns = np.int32(len(patterns.outliers))
        self.outliers = outliers
        self.feature_columns = patterns.dimension
        self.maximum_length = length
        self.noisy = noise_norm > 0 if noisy is None else noisy

    @property
    def columns(self) -> int:
        """d_X + d_Y."""
        return self.dictionary.shape[-1]

    def letters(self) -> dict[str, np.ndarray]:
        """The patterns, as rows, and the label embedding q, for files that others read."""
        counts = (self.relevant_patterns, self.irrelevant_patterns, self.outlier_patterns)
        first, second, third = (int(end) for end in np.cumsum(counts))
        features = np.asarray(self.dictionary)[:, : self.feature_columns]
        letters = {
            "relevant": features[:first],
            "irrelevant": features[first:second],
            "label_embedding": np.asarray(self.dictionary)[-1, self.feature_columns :],
        }
        return letters if self.outliers is None else letters | {"outliers": features[second:third]}

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt; even-numbered ones have target +1, odd ones -1.

        All choices of the prompt come from one draw of uniforms: random bits are a good part of a training step's time.
        """
        tokens = self.maximum_length + 1
        draws = 5 if self.outliers is None else 7
        draw = uniforms(key, draws * tokens + 1)
        columns = draw[1:].reshape(draws, tokens)
        pattern_draw, irrelevant_draw, size_draw, label_draw, scale_draw = columns[:5]
        task = jnp.asarray(self.tasks)[_pick(draw[0], self.task_count)]
        positive, negative = task[0], task[1]
        target = 1.0 - 2.0 * (jnp.asarray(index) % 2)

        pattern = self._context_patterns(pattern_draw, positive, negative)
        last = jnp.arange(tokens) == self.maximum_length  # the query; a mask fuses with what follows, not an update
        pattern = jnp.where(last, jnp.where(target > 0, positive, negative), pattern)
        coin = jnp.where(label_draw < 0.5, 1.0, -1.0)
        label = jnp.where(pattern == positive, 1.0, jnp.where(pattern == negative, -1.0, coin))
        lengths = self.context_length - self.shortest_length + 1
        turn = jnp.asarray(index) // 2 % lengths  # each length with both labels
        present = jnp.arange(tokens) < self.shortest_length + turn
        atoms = [pattern, self.relevant_patterns + _pick(irrelevant_draw, self.irrelevant_patterns)]
        coefficients = [
            self.relevant_low + (self.relevant_high - self.relevant_low) * scale_draw,
            self.irrelevant_low + (self.irrelevant_high - self.irrelevant_low) * size_draw,
        ]
        outlier = None
        if self.outliers is not None:
            outlier = self.outliers.flags(columns[5], present)
            label = jnp.where(outlier, self.outliers.labels(label, label_draw), label)
            first = self.relevant_patterns + self.irrelevant_patterns
            atoms.append(first + _pick(columns[6], self.outlier_patterns))
            coefficients.append(jnp.where(outlier, self.outliers.magnitude, 0.0))
        label = jnp.where(last, 0.0, label)
        return Prompt(
            atoms=jnp.stack(atoms, axis=1),
            coefficients=jnp.stack(coefficients, axis=1),
            present=present | last,
            pattern=pattern,
            label=label,
            target=target,
            dictionary=jnp.asarray(self.dictionary),
            noise=self._noise(jax.random.fold_in(key, 1), tokens) if self.noisy else None,
            outlier=outlier,
            label_atom=self.dictionary.shape[0] - 1,
            feature_columns=self.feature_columns,
        )

    def _context_patterns(self, draw: Float[Array, " tokens"], a: Array, b: Array) -> Int[Array, " tokens"]:
        """μ_a or μ_b with probability α/2 each, every other relevant pattern with (1-α)/(M1-2): inverse of the CDF."""
        fraction = self.matching_fraction
        others = self.relevant_patterns - 2
        rank = jnp.floor((draw - fraction) / jnp.maximum(1.0 - fraction, 1e-9) * others).astype(int)
        other = jnp.clip(rank, 0, jnp.maximum(others - 1, 0))
        low, high = jnp.minimum(a, b), jnp.maximum(a, b)
        other = other + (other >= low)  # step over the two decisive patterns, the smaller first
        other = other + (other >= high)
        return jnp.where(draw < fraction / 2, a, jnp.where(draw < fraction, b, other))

    def _noise(self, key: Key[Array, ""], tokens: int) -> Float[Array, "tokens features"]:
        """n: uniform on the sphere of radius τ in the feature columns, the largest noise the theorems allow."""
        gaussian = normals(key, (tokens, self.feature_columns))
        return self.noise_norm * gaussian / jnp.linalg.norm(gaussian, axis=1, keepdims=True)


def _dictionary(patterns: Patterns, label_embedding: np.ndarray) -> Float[np.ndarray, "atoms columns"]:
    """Patterns first, the label embedding last. The size depends on the dimensions alone: other patterns stack."""
    atoms = -(-(patterns.dimension + 1) // ATOM_ROWS) * ATOM_ROWS
    dictionary = np.zeros((atoms, patterns.dimension + len(label_embedding)), np.float32)
    rows = patterns.rows
    dictionary[: len(rows), : patterns.dimension] = rows
    dictionary[-1, patterns.dimension :] = label_embedding
    return dictionary


def _task_table(tasks: np.ndarray, patterns: int) -> Int[np.ndarray, "rows 2"]:
    """The tasks, checked, and below them rows that are never drawn."""
    require(len(tasks) > 0, "the task set is empty; a world needs at least one task.")
    require(
        bool(np.all((tasks >= 0) & (tasks < patterns)) and np.all(tasks[:, 0] != tasks[:, 1])),
        f"every task must name two different relevant patterns out of 0..{patterns - 1}.",
    )
    table = np.zeros((-(-len(tasks) // TASK_ROWS) * TASK_ROWS, 2), np.int32)
    table[: len(tasks)] = tasks
    return table


def _pick(uniform: Float[Array, "*shape"], count: Any) -> Int[Array, "*shape"]:
    """A number in 0..count-1 from a uniform; the minimum guards against a product that rounds up to `count`."""
    return jnp.minimum(jnp.floor(uniform * count).astype(int), count - 1)

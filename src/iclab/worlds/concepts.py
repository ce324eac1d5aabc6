"""Words with high- and low-level concepts: the world of vector-arithmetic (Definitions C.1 and C.3).

K high-level concepts a_k, each with a low-level ±b_k, and K' common tokens ν, all orthonormal in R^d. A word is
x = Σ_{k in X} (0.1 a_k + y_k b_k) + noise, a label y = Σ_{k in Y} (a_k + y_k b_k) + noise, where X and Y contain the
prompt's co-task and every other concept with probability 1/K (polysemy; another one on request). Three kinds of prompt:

    icl      x_1, y_1, ..., x_J, y_J, x_query
    qa       M common tokens, one of them replaced by a_k at a random place, then the word
    qa-icl   QA sentences with their labels as demonstrations, then a QA sentence without

The answer is the dictionary entry a_k + y b_k of the query's co-task; the dictionary U holds, for every k, a±b,
0.1a±b, a and ±b, then the ν's, all of norm 1: 7K + K' entries.
"""

from __future__ import annotations

import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from iclab.errors import require, require_finite, require_fraction, require_positive
from iclab.prompts import Prompt
from iclab.randomness import normals

ANCHOR = 0.1  # x_a: the share of the high-level concept in a word


class Kind(enum.Enum):
    """The three prompt distributions: P_T, P_QA and P_QA^T."""

    icl = "icl"
    qa = "qa"
    qa_icl = "qa-icl"


class Concepts(eqx.Module):
    """The world on the concepts `a` and `b` and the `common` tokens, all as rows; checked when it is built.

    | word | letter |
    |---|---|
    | dictionary | rows a_1..a_K, b_1..b_K, ν_1..ν_K', and last an empty one |
    | answers | U, (7K + K') × d |
    | pairs | J, demonstrations in a prompt; traced, at most `maximum_pairs` |
    | common_length | M, common tokens in a QA sentence |
    | cotasks | how many concepts the demonstrations of one prompt share between them (1 in training) |
    | polysemy | the probability that a word or a label has another concept too; 1/K if none is given |
    | balanced | whether the number of a prompt decides its co-task and sign; else both are drawn |
    | noise_scale | σ_p |
    """

    dictionary: Float[Any, "*members atoms columns"]
    answers: Float[Any, "*members answers columns"]
    pairs: Int[Any, "*members"]
    cotasks: Int[Any, "*members"]
    polysemy: Float[Any, "*members"]
    balanced: Bool[Any, "*members"]
    noise_scale: Float[Any, "*members"]
    kind: Kind = eqx.field(static=True)
    concept_count: int = eqx.field(static=True)
    maximum_pairs: int = eqx.field(static=True)
    common_length: int = eqx.field(static=True)

    def __init__(
        self,
        a: np.ndarray,
        b: np.ndarray,
        common: np.ndarray,
        *,
        kind: Kind,
        pairs: int,
        common_length: int,
        noise_scale: float,
        maximum_pairs: int | None = None,
        cotasks: int = 1,
        polysemy: float | None = None,
        balanced: bool = True,
    ) -> None:
        longest = pairs if maximum_pairs is None else maximum_pairs
        require_positive(pairs=pairs, common_length=common_length, cotasks=cotasks)
        require(pairs <= longest, f"pairs is {pairs}, above maximum_pairs {longest}.")
        require(
            common_length <= len(common),
            f"common_length is {common_length}, above the number of common tokens {len(common)}: K' >= M is needed.",
        )
        require(cotasks <= len(a), f"cotasks is {cotasks}, above the number of concepts {len(a)}.")
        shared = 1 / len(a) if polysemy is None else polysemy
        require_finite(noise_scale=noise_scale)
        require_fraction("polysemy", shared)
        require(noise_scale >= 0, f"noise_scale is {noise_scale}; it must not be negative.")
        rows = np.concatenate([a, b, common])
        orthonormal = np.allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-5)
        require(orthonormal, "a, b and the common tokens must be orthonormal rows.")
        self.dictionary = np.concatenate([rows, np.zeros((1, rows.shape[1]))]).astype(np.float32)
        self.answers = answer_rows(a, b, common).astype(np.float32)
        self.pairs = np.int32(pairs)
        self.cotasks = np.int32(cotasks)
        self.polysemy = np.float32(shared)
        self.balanced = np.bool_(balanced)
        self.noise_scale = np.float32(noise_scale)
        self.kind = kind
        self.concept_count = len(a)
        self.maximum_pairs = longest
        self.common_length = common_length

    @property
    def columns(self) -> int:
        """d."""
        return self.dictionary.shape[-1]

    @property
    def feature_columns(self) -> int:
        """All columns hold words: d."""
        return self.columns

    @property
    def common_count(self) -> int:
        """K'."""
        return self.dictionary.shape[-2] - 2 * self.concept_count - 1

    def letters(self) -> dict[str, np.ndarray]:
        """a, b and nu as rows, for files that others read."""
        count, rows = self.concept_count, np.asarray(self.dictionary)
        return {"a": rows[:count], "b": rows[count : 2 * count], "nu": rows[2 * count : -1]}

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt. Its number decides the query's label sign and co-task by turns, so that a batch is balanced,
        unless they are drawn as in Definition C.1.
        """
        word_key, place_key, noise_key = jax.random.split(key, 3)
        drawn = jax.random.randint(jax.random.fold_in(key, 0), (), 0, 2 * self.concept_count)
        number = jnp.where(jnp.asarray(self.balanced), jnp.asarray(index), drawn)
        sign = 1.0 - 2.0 * (number % 2)
        task = (number // 2) % self.concept_count
        demonstrations = 0 if self.kind is Kind.qa else self.maximum_pairs
        words = jax.random.uniform(word_key, (demonstrations + 1, 3, self.concept_count + 1))
        # The demonstrations take the prompt's co-tasks by turns, from any of them on; the query's is the first.
        start = jnp.floor(words[0, 0, -1] * self.cotasks).astype(int)
        chosen = ((start + jnp.arange(demonstrations + 1)) % self.cotasks).at[-1].set(0)
        tasks = (task + chosen) % self.concept_count
        signs = jnp.where(words[:, 0, :-1] < 0.5, 1.0, -1.0).at[-1, task].set(sign)
        word, label = self._concept_tokens(tasks, signs, words[:, 1, :-1], words[:, 2, :-1])
        if self.kind is Kind.icl:
            tokens, present, pattern = self._alternate(word, label, tasks)
        else:
            tokens, present, pattern = self._sentences(word, label, tasks, place_key)
        atoms, coefficients = tokens
        noise = self.noise_scale * normals(noise_key, (len(present), self.columns))
        return Prompt(
            atoms=atoms,
            coefficients=coefficients,
            present=present,
            pattern=pattern,
            label=jnp.zeros(len(present)),
            target=7 * task + jnp.where(sign > 0, 0, 1),
            dictionary=jnp.asarray(self.dictionary),
            answers=jnp.asarray(self.answers),
            noise=noise,
        )

    def _concept_tokens(
        self, tasks: Int[Array, " n"], signs: Float[Array, "n concepts"], in_word: Array, in_label: Array
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Words and labels as (atoms, coefficients) with 2K terms: all a_k, then all b_k, most with coefficient 0."""
        count = self.concept_count
        own = jnp.arange(count) == tasks[:, None]
        atoms = jnp.broadcast_to(jnp.arange(2 * count), (len(tasks), 2 * count))

        def coefficients(draw: Array, anchor: float) -> Array:
            present = (own | (draw < self.polysemy)).astype(float)
            return jnp.concatenate([anchor * present, signs * present], axis=1)

        return (atoms, coefficients(in_word, ANCHOR)), (atoms, coefficients(in_label, 1.0))

    def _alternate(
        self, word: Any, label: Any, tasks: Array
    ) -> tuple[tuple[Array, Array], Bool[Array, " t"], Int[Array, " t"]]:
        """x_1, y_1, ..., x_J, y_J, x_query; pairs beyond J are masked."""
        mixed = [jnp.stack([w, y], axis=1).reshape(-1, w.shape[-1])[:-1] for w, y in zip(word, label, strict=True)]
        shown = jnp.arange(self.maximum_pairs) < self.pairs
        present = jnp.append(jnp.repeat(shown, 2), True)
        return (mixed[0], mixed[1]), present, jnp.repeat(tasks, 2)[:-1]

    def _sentences(
        self, word: Any, label: Any, tasks: Array, key: Key[Array, ""]
    ) -> tuple[tuple[Array, Array], Bool[Array, " t"], Int[Array, " t"]]:
        """Sentences of M common tokens (one is a_k), the word, and the label but for the last sentence."""
        sentences, terms, length = len(tasks), word[0].shape[1], self.common_length
        draws = jax.random.uniform(key, (sentences, length + 1))
        common = 2 * self.concept_count + jnp.floor(draws[:, :-1] * self.common_count).astype(int)
        common = jnp.minimum(common, 2 * self.concept_count + self.common_count - 1)
        place = jnp.floor(draws[:, -1] * length).astype(int)
        common = jnp.where(jnp.arange(length) == place[:, None], tasks[:, None], common)
        empty = self.dictionary.shape[0] - 1
        atoms = jnp.full((sentences, length, terms), empty).at[:, :, 0].set(common)
        ones = jnp.zeros((sentences, length, terms)).at[:, :, 0].set(1.0)
        joined = [
            jnp.concatenate([head, w[:, None], y[:, None]], axis=1).reshape(-1, terms)[:-1]
            for head, w, y in zip((atoms, ones), word, label, strict=True)
        ]
        # No .at[-1].set: with a single sentence the CPU compiler aborts on it inside a deep model.
        number = jnp.arange(sentences)
        shown = (number < self.pairs) | (number == sentences - 1)
        return (joined[0], joined[1]), jnp.repeat(shown, length + 2)[:-1], jnp.repeat(tasks, length + 2)[:-1]


def answer_rows(a: np.ndarray, b: np.ndarray, common: np.ndarray) -> np.ndarray:
    """U: for every k the rows a+b, a-b, 0.1a+b, 0.1a-b, a, b, -b, then the ν's; all normalised."""
    rows = [row for x, y in zip(a, b, strict=True) for row in (x + y, x - y, ANCHOR * x + y, ANCHOR * x - y, x, y, -y)]
    stacked = np.concatenate([np.array(rows), common])
    return stacked / np.linalg.norm(stacked, axis=1, keepdims=True)


def orthonormal_concepts(
    dimension: int, concepts_: int, common: int, seed: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b and ν as orthonormal rows: axis-aligned, or in a random basis."""
    require_positive(dimension=dimension, concepts=concepts_, common_tokens=common)
    wanted = 2 * concepts_ + common
    require(
        wanted <= dimension,
        f"{concepts_} high- and {concepts_} low-level concepts and {common} common tokens "
        f"need {wanted} orthogonal directions, but the dimension is {dimension}.",
    )
    basis = np.eye(wanted, dimension)
    if seed is not None:
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((dimension, wanted)))[0].T
    return basis[:concepts_], basis[concepts_ : 2 * concepts_], basis[2 * concepts_ :]

"""One prompt, and the truth about every token in it.

A prompt of any of the five papers is a sequence of columns, the query last, and every column is a short sum of atoms of
one dictionary: a classification column is λ·(μ_j; 0) + κ·(ν_k; 0) ± (0; q), a reasoning column is (μ_in; 0; 0) + (0;
μ_out; 0) + (0; 0; c_step), a concept word is Σ (0.1 a_k ± b_k). So the primary form of a prompt is which atoms with
which coefficients; dense tokens are a function of it, and a model may read either.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class InColumns(eqx.Module):
    """A prompt as a model reads it: dense columns, one per token."""

    tokens: Float[Array, "tokens columns"]

    @property
    def query(self) -> Float[Array, " columns"]:
        """The last token."""
        return self.tokens[-1]

    def read(self, weights: Float[Array, "*out columns"]) -> Float[Array, "*out columns"]:
        """A matrix (or a row) as it acts on tokens in this form."""
        return weights

    def dot(self, direction: Float[Array, " columns"]) -> Float[Array, " tokens"]:
        """direction · p_i for every token."""
        return self.tokens @ direction

    def pool(self, weights: Float[Array, " tokens"]) -> Float[Array, " columns"]:
        """Σ_i weights_i p_i."""
        return weights @ self.tokens


class InAtoms(eqx.Module):
    """A prompt as a model reads it, in the coordinates of its dictionary: no dense token is ever made.

    With U the dictionary (atoms × columns), token i is c_iᵀ U with two or three nonzero coordinates. A matrix W acts on
    it as (W Uᵀ) c_i, and W Uᵀ is the same for all prompts of a batch. So a score is a gather of two or three numbers
    and pooling adds two or three numbers per token. Same numbers as `InColumns` but for rounding. An atom that all
    tokens share is kept apart: a GPU would add to one place again and again. Noise in the first columns has coordinates
    of its own, behind those of the atoms.
    """

    atoms: Int[Array, "tokens terms"]
    coefficients: Float[Array, "tokens terms"]
    dictionary: Float[Array, "atoms columns"]
    label: Float[Array, " tokens"]
    noise: Float[Array, "tokens noisy"] | None
    label_atom: int | None = eqx.field(static=True)

    @property
    def query(self) -> Float[Array, " coordinates"]:
        """The last token, which shows no label."""
        clean = jnp.zeros(len(self.dictionary)).at[self.atoms[-1]].add(self.coefficients[-1])
        return clean if self.noise is None else jnp.concatenate([clean, self.noise[-1]])

    def read(self, weights: Float[Array, "*out columns"]) -> Float[Array, "*out coordinates"]:
        """A matrix (or a row) as it acts on tokens in this form."""
        clean = weights @ self.dictionary.T
        if self.noise is None:
            return clean
        return jnp.concatenate([clean, weights[..., : self.noise.shape[1]]], axis=-1)

    def dot(self, direction: Float[Array, " coordinates"]) -> Float[Array, " tokens"]:
        """direction · c_i for every token; a direction that was read first gives direction · p_i."""
        scores = jnp.sum(self.coefficients * direction[self.atoms], axis=1)
        if self.label_atom is not None:
            scores = scores + self.label * direction[self.label_atom]
        return scores if self.noise is None else scores + self.noise @ direction[len(self.dictionary) :]

    def pool(self, weights: Float[Array, " tokens"]) -> Float[Array, " coordinates"]:
        """Σ_i weights_i c_i."""
        pooled = jnp.zeros(len(self.dictionary)).at[self.atoms].add(self.coefficients * weights[:, None])
        if self.label_atom is not None:
            pooled = pooled.at[self.label_atom].add(jnp.sum(self.label * weights))
        return pooled if self.noise is None else jnp.concatenate([pooled, weights @ self.noise])


@dataclasses.dataclass(frozen=True)
class Padding:
    """The places of absent tokens in a world's prompts: anywhere, or all in front of the present ones; and how many are
    absent `together`, as a key and its value are.
    """

    in_front: bool = False
    together: int = 1

    def __str__(self) -> str:
        place = "in front" if self.in_front else "anywhere"
        return place if self.together == 1 else f"{place}, {self.together} at a time"


class Prompt(eqx.Module):
    """One prompt. The last token is the query; `target` is its answer.

    `target` is ±1 for a binary task, or the row of `answers` that is right. `pattern` is what "the same as the query"
    means in its world: the relevant pattern, the input of a reasoning step, the co-task of a demonstration. `label` is
    what the token shows (0 for the query, which shows none). `step` numbers the reasoning steps, and `chain` is the
    right reasoning z_0, ..., z_K of the query, where there is one. `label_atom` is the atom that every token carries
    `label` times, beside those in `atoms`, where labels are shown that way. `feature_columns` is how many of the
    columns, the first ones, hold the input rather than its label. `present` is False for padding: a shorter context is
    a masked longer one, so one compilation serves every length. `dictionary` and `answers` belong to the world: sample
    and answer inside one `vmap`, and they are not batched. `noise` is what of a token is no atom: noise in the first
    columns or in all, or the whole token where a world has no dictionary (`make_prompt`).
    """

    atoms: Int[Array, "tokens terms"]
    coefficients: Float[Array, "tokens terms"]
    present: Bool[Array, " tokens"]
    pattern: Int[Array, " tokens"]
    label: Float[Array, " tokens"]
    target: Array
    dictionary: Float[Array, "atoms columns"]
    answers: Float[Array, "answers out"] | None = None
    noise: Float[Array, "tokens noisy"] | None = None
    outlier: Bool[Array, " tokens"] | None = None
    step: Int[Array, " tokens"] | None = None
    chain: Int[Array, " k1"] | None = None
    label_atom: int | None = eqx.field(static=True, default=None)
    feature_columns: int | None = eqx.field(static=True, default=None)

    def tokens(self) -> Float[Array, "tokens columns"]:
        """The columns p_1, ..., p_l, p_query as rows: each token's atoms, gathered from the dictionary and weighted.

        Gathering was measured 1.6 times as fast, for a whole training step on a CPU core, as one-hot coordinates times
        the dictionary. The dictionary is not differentiated, so no gradient has to be scattered back.
        """
        dense = jnp.einsum("tkc,tk->tc", self.dictionary[self.atoms], self.coefficients)
        if self.label_atom is not None:
            dense = dense + self.label[:, None] * self.dictionary[self.label_atom]
        if self.noise is None:
            return dense
        clean = dense.shape[1] - self.noise.shape[1]
        return dense + (jnp.pad(self.noise, ((0, 0), (0, clean))) if clean else self.noise)

    def view(self) -> InColumns | InAtoms:
        """The cheaper form to read this prompt in: atoms, unless noise fills all columns or the coordinates outnumber
        them far. With atoms and noise apart, 480 noisy tokens were read in less than half of the time.
        """
        atoms, columns = self.dictionary.shape
        noisy = 0 if self.noise is None else self.noise.shape[1]
        if noisy < columns and atoms + noisy <= 2 * columns:
            return InAtoms(self.atoms, self.coefficients, self.dictionary, self.label, self.noise, self.label_atom)
        return InColumns(self.tokens())

    def written_out(self) -> Prompt:
        """The same prompt with its tokens as one array, for reading it many times; one without noise is read by its
        atoms and stays as it is.
        """
        if self.noise is None:
            return self
        none = jnp.zeros((len(self.present), 0))
        return dataclasses.replace(
            self, atoms=none.astype(int), coefficients=none, noise=self.tokens(), label_atom=None
        )

    def shown(self) -> Bool[Array, " tokens"]:
        """Which tokens are present before the query."""
        return self.present & (jnp.arange(len(self.present)) < len(self.present) - 1)

    def matches_query(self) -> Bool[Array, " contexts"]:
        """N*: which context tokens carry the query's pattern."""
        return (self.pattern[:-1] == self.pattern[-1]) & self.present[:-1]


def make_prompt(
    tokens: Float[Array, "tokens columns"],
    target: Any,
    *,
    label: Float[Array, " contexts"] | None = None,
    pattern: Int[Array, " tokens"] | None = None,
    present: Bool[Array, " contexts"] | None = None,
    answers: Float[Array, "answers out"] | None = None,
    feature_columns: int | None = None,
) -> Prompt:
    """Make a prompt from its tokens (rows, the query last) and the right answer; a world without a dictionary needs no
    more.

    Probes may use further facts: the `label` that each context shows, the `pattern` of every token, which contexts are
    `present` (default: all), the vectors among which the answer is chosen, and how many columns hold the input
    (default: all but the last).
    """
    count, columns = tokens.shape
    shown = jnp.zeros(count - 1) if label is None else jnp.asarray(label, float)
    there = jnp.ones(count - 1, bool) if present is None else present
    return Prompt(
        atoms=jnp.zeros((count, 1), int),
        coefficients=jnp.zeros((count, 1)),
        present=jnp.append(there, True),
        pattern=jnp.full(count, -1) if pattern is None else pattern,
        label=jnp.append(shown, 0.0),
        target=jnp.asarray(target),
        dictionary=jnp.zeros((1, columns)),
        answers=answers,
        noise=jnp.asarray(tokens, float),
        feature_columns=columns - 1 if feature_columns is None else feature_columns,
    )

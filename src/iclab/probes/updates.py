"""What training has added to the weights: the gradient lemmas of feature-selection (Lemmas 3 to 7), by lucky neurons.

Technique: the sum of all gradient steps is the difference to the weights at initialisation, which a member's key gives
back. It is read along patterns and label embeddings. Which neurons are lucky the paper does not say; its successor
(nonlinear-icl, (52) and (53)) asks that a row's feature part and its label part both respond to what a prompt pools.
With all attention on examples like the query that is δ(μ_l; ±q):

    W_l = {i : a_i > 0, W_O(i)·μ_l > 0, W_O(i)·q > 0},   U_l = {i : a_i < 0, W_O(i)·μ_l > 0, W_O(i)·(-q) > 0}

and W, U are their unions over l. Limit: the lemmas speak of every neuron of a set, means are shown here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.training import INITIALISATION, Member
from iclab.worlds import sampled
from iclab.worlds.classification import Classification


class Lucky(NamedTuple):
    """W_l and U_l, by pattern (rows of the dictionary; empty where a row is no relevant pattern) and neuron."""

    positive: Bool[Array, "atoms neurons"]
    negative: Bool[Array, "atoms neurons"]

    @property
    def any(self) -> Bool[Array, " neurons"]:
        """The union of all W_l and U_l."""
        return jnp.any(self.positive | self.negative, axis=0)


def initial(member: Member) -> SoftmaxTransformer:
    """The member's model before training."""
    model: SoftmaxTransformer = member.model.init(jax.random.fold_in(member.key, INITIALISATION), member.world)
    return model


def relevant_rows(world: Classification) -> Bool[Array, " atoms"]:
    """Which rows of the dictionary are relevant patterns."""
    return jnp.arange(world.dictionary.shape[0]) < world.relevant_patterns


def lucky_neurons(start: SoftmaxTransformer, world: Classification) -> Lucky:
    """W_l and U_l at initialisation."""
    dictionary = jnp.asarray(world.dictionary)
    rows = start.output_weights[:, : world.columns]
    seen = relevant_rows(world)[:, None] & (dictionary @ rows.T > 0)
    label = rows @ dictionary[-1] * jnp.sign(start.readout) > 0
    return Lucky(seen & label & (start.readout > 0), seen & label & (start.readout < 0))


def lucky_shares(lucky: Lucky, world: Classification) -> dict[str, Array]:
    """Lemma 7: the smallest |W_l| and |U_l| over the patterns, as shares of the neurons."""
    relevant = relevant_rows(world)
    names = {"lucky_positive": lucky.positive, "lucky_negative": lucky.negative}
    return {name: jnp.min(jnp.where(relevant, jnp.mean(group, axis=1), 1.0)) for name, group in names.items()}


def row_updates(model: SoftmaxTransformer, start: SoftmaxTransformer, world: Classification) -> dict[str, Array]:
    """Lemmas 3 and 6: what was added to the rows of W_O.

    `lucky_label` and `lucky_feature` are mean norms of the two parts for lucky neurons, `other_row` that of the whole
    row for the others. `lucky_response` is the mean of ΔW_O(i)·(μ_j; ±q), with the sign of a_i, `other_response` that
    of |ΔW_O(i)·(μ_j; ±q)| over both signs.
    """
    dictionary, features = jnp.asarray(world.dictionary), world.feature_columns
    change = (model.output_weights - start.output_weights)[:, : world.columns]
    lucky = lucky_neurons(start, world).any
    relevant = relevant_rows(world)
    along, label = change @ dictionary.T, change @ dictionary[-1]

    def over_patterns(values: Float[Array, "neurons atoms"]) -> Float[Array, " neurons"]:
        return jnp.sum(jnp.where(relevant, values, 0.0), axis=1) / jnp.sum(relevant)

    own = over_patterns(along) + jnp.sign(model.readout) * label
    both = over_patterns(jnp.abs(along + label[:, None]) + jnp.abs(along - label[:, None])) / 2
    return {
        "lucky_label": mean_over(lucky, jnp.linalg.norm(change[:, features:], axis=1)),
        "lucky_feature": mean_over(lucky, jnp.linalg.norm(change[:, :features], axis=1)),
        "other_row": mean_over(~lucky, jnp.linalg.norm(change, axis=1)),
        "lucky_response": mean_over(lucky, own),
        "other_response": mean_over(~lucky, both),
    }


def pattern_updates(model: SoftmaxTransformer, start: SoftmaxTransformer, world: Classification) -> dict[str, Array]:
    """Lemma 4: what was added to W_Q and W_K, read between patterns.

    `*_along` is the mean of μ_jᵀ ΔW μ_j, `*_across` the largest |μ_lᵀ ΔW μ_j| over l ≠ j, both over β²; `*_elsewhere`
    the mean ‖ΔW ν_k‖ over β.
    """
    dictionary, features = jnp.asarray(world.dictionary), world.feature_columns
    patterns = dictionary[:, :features]
    strength = jnp.linalg.norm(patterns[0])
    relevant = relevant_rows(world)
    rows = jnp.arange(len(relevant))
    irrelevant = ~relevant & (rows < world.relevant_patterns + world.irrelevant_patterns)
    pairs = relevant[:, None] & relevant & (rows[:, None] != rows)
    found = {}
    for name in ("query", "key"):
        change = getattr(model, f"{name}_weights") - getattr(start, f"{name}_weights")
        between = patterns @ change[:features, :features] @ patterns.T / strength**2
        found[f"{name}_along"] = mean_over(relevant, jnp.diagonal(between))
        found[f"{name}_across"] = jnp.max(jnp.where(pairs, jnp.abs(between), 0.0))
        norms = jnp.linalg.norm(change @ dictionary.T, axis=0)
        found[f"{name}_elsewhere"] = mean_over(irrelevant, norms) / strength
    return found


def pulls(
    model: SoftmaxTransformer, world: Classification, key: Key[Array, ""], batches: Sequence[int]
) -> list[Float[Array, "neurons columns"]]:
    """G with G_i·p = V_i of Lemma 5, by size of the batch: the mean of y a_i 1[neuron i is active] times the pooled
    column. Smaller batches are the beginning of the largest.

    (26) follows from it: the step of W_V on a token p is η Σ_i (G_i·p) W_O(i), where the hinge loss is not 0 yet.
    """

    def one(prompt_key: Key[Array, ""], index: Array) -> tuple[Array, Array]:
        prompt = sampled(world, prompt_key, index)
        _, trace = model(prompt)
        return prompt.target * model.readout * (trace.preactivation > 0), trace.attention @ prompt.tokens()[:-1]

    most = max(batches)
    weights, pooled = jax.vmap(one)(jax.random.split(key, most), jnp.arange(most))
    return [weights[:batch].T @ pooled[:batch] / batch for batch in batches]


def value_pulls(pull: Float[Array, "neurons columns"], lucky: Lucky, world: Classification) -> dict[str, Array]:
    """Lemma 5: V_i on tokens (μ_j; ±q), times m/β².

    `pull_own` is the share of lucky neurons with V_i > 0 where the token's label is their own, (28) and (30),
    `pull_opposite` with V_i <= 0 where it is the other, (29) and (31), and `other_pull` the mean of |V_i| for the
    neurons that are not lucky, (27).
    """
    dictionary, relevant = jnp.asarray(world.dictionary), relevant_rows(world)
    scale = pull.shape[0] / jnp.sum(dictionary[-1] ** 2)
    along, label = scale * pull @ dictionary.T, scale * (pull @ dictionary[-1])[:, None]
    positive = jnp.any(lucky.positive, axis=0)[:, None]
    own = jnp.where(positive, along + label, along - label)
    opposite = jnp.where(positive, along - label, along + label)
    chosen, others = lucky.any[:, None] & relevant, ~lucky.any[:, None] & relevant
    return {
        "pull_own": mean_over(chosen, own > 0),
        "pull_opposite": mean_over(chosen, opposite <= 0),
        "other_pull": mean_over(others, (jnp.abs(own) + jnp.abs(opposite)) / 2),
    }


def mean_over(group: Bool[Array, "*shape"], values: Array) -> Float[Array, ""]:
    """The mean of the values in a group; 0 where it is empty."""
    return jnp.sum(jnp.where(group, values, 0.0)) / jnp.maximum(jnp.sum(group), 1)

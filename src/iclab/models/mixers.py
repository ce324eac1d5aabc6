"""A token mixer of any mechanism, in one layer as in the papers or in several.

    F(Ψ; P) = the answer block of o_query = Σ_i e_i v_i

in one layer, with the e_i that `iclab.models.mechanisms` and `iclab.models.recurrences` define; the value v_i of an
example is its answer block, the columns that hold its label (or, in a world with answers of its own, the block behind
the input, which holds the output). A label of several columns is read by a vector a that is trained.

    u ← u + o (full), u with o added to the answer block (label), or o (none);   u ← u + W_2 ReLU(W_1 u)

is a layer of a stack, the second step only where there are neurons. A layer but the last answers at every position.

| code | letter | space |
|---|---|---|
| key_weights, query_weights | W_B, W_C | depth × R^{D × D} |
| weights | w, W, r, w_g, W_g, ξ | see `iclab.models.mechanisms.Weights`, depth first |
| inner, outer | W_1, W_2 | depth × R^{m × D}, depth × R^{D × m} |
| readout | a | R^{label columns} |

With the mechanisms of Mamba and of the causal linear Transformer these are the models of those names; a test holds them
together.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from iclab.errors import require, require_finite, require_positive
from iclab.models.linear_transformer import LinearTrace, Residual, squeeze
from iclab.models.mechanisms import TINY, Mechanism, Weights, decay_and_gate, gates_until_end, steps_of
from iclab.models.recurrences import everywhere, kept_until_end, weights_at_end
from iclab.prompts import InAtoms, InColumns, Prompt
from iclab.worlds import World

NAMES = {"decay": "w", "rate": "log r", "gate": "w_g", "removal": "ξ"}


class Mixer(eqx.Module):
    """A stack of layers of one mechanism; depth is the leading axis of the weights. Always causal."""

    key_weights: Float[Array, "*members depth state columns"]
    query_weights: Float[Array, "*members depth state columns"]
    weights: Weights
    inner: Float[Array, "*members depth neurons columns"] | None
    outer: Float[Array, "*members depth columns neurons"] | None
    readout: Float[Array, "*members block"] | None
    block: tuple[int, int] = eqx.field(static=True)
    mechanism: Mechanism = eqx.field(static=True)
    residual: Residual = eqx.field(static=True, default=Residual.label)

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, "*out"], LinearTrace]:
        """The answer block at the query after the last layer: a number, or a vector where the world has answers."""
        depth, scores, gates = self.key_weights.shape[0], [], []
        single = depth == 1 and self.inner is None and not self.mechanism.needs_keys
        # Layers change the tokens, so that only a single one can read a prompt in its own coordinates.
        view = prompt.view() if single else InColumns(jnp.where(prompt.present[:, None], prompt.tokens(), 0.0))
        for layer in range(depth - 1):
            assert isinstance(view, InColumns)
            count, score, gate = self._at_query(view, prompt, layer)
            scores.append(score[:-1])
            gates.append(gate[:-1])
            mixed = self._everywhere(view.tokens, prompt, layer)
            view = InColumns(self._through_neurons(self._added(view.tokens, mixed), layer))
        count, score, gate = self._at_query(view, prompt, depth - 1)
        trace = LinearTrace(jnp.stack([*scores, score[:-1]]), jnp.stack([*gates, gate[:-1]]))
        return self._read_out(self._answer(view, count, depth - 1), prompt), trace

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under their letters; without the layer axis where there is one layer."""
        named = {name: getattr(self.weights, field) for field, name in NAMES.items()}
        named = {"W_B": self.key_weights, "W_C": self.query_weights} | named | {"W_1": self.inner, "W_2": self.outer}
        found = squeeze({name: value for name, value in named.items() if value is not None})
        return found if self.readout is None else found | {"a": np.asarray(self.readout)}

    def _own(self, layer: int) -> Weights:
        return jax.tree.map(lambda leaf: leaf[layer], self.weights)

    def _scale(self, prompt: Prompt) -> Any:
        return 1.0 / jnp.sum(prompt.present[:-1]) if self.mechanism.normaliser == "mean" else 1.0

    def _at_query(self, view: InColumns | InAtoms, prompt: Prompt, layer: int) -> tuple[Array, Array, Array]:
        """What each token counts for at the query: e_i, and as a product of a score and a gate."""
        mechanism, own, present = self.mechanism, self._own(layer), prompt.present
        if mechanism.needs_keys:
            assert isinstance(view, InColumns)
            tokens, (keys, queries) = view.tokens, (self.key_weights[layer], self.query_weights[layer])
            log_decay, gate = decay_and_gate(mechanism, own, present, lambda w: tokens @ w.T)
            steps = steps_of(mechanism, own, tokens @ keys.T, log_decay, gate, present, lambda w: tokens @ w.T)
            count = weights_at_end(steps, queries @ tokens[-1])
            opened = gates_until_end(log_decay, gate)
            return self._scale(prompt) * count, count / jnp.maximum(opened, TINY), opened
        keys, queries = view.read(self.key_weights[layer]), view.read(self.query_weights[layer])
        log_decay, gate = decay_and_gate(mechanism, own, present, lambda w: view.dot(view.read(w)))
        score = jnp.where(present, view.dot((keys.T @ queries) @ view.query), 0.0)
        opened = gates_until_end(log_decay, gate)
        if mechanism.normaliser == "softmax":
            kept = 0.0 if log_decay is None else kept_until_end(log_decay)
            logits = score + kept + jnp.log(jnp.maximum(gate, TINY))
            count = jax.nn.softmax(jnp.where(present, logits, -jnp.inf))
            return count, count / jnp.maximum(opened, TINY), opened
        return self._scale(prompt) * opened * score, score, opened

    def _answer(self, view: InColumns | InAtoms, count: Float[Array, " tokens"], layer: int) -> Array:
        """The answer block at the query after the last layer."""
        columns, (start, stop) = self.key_weights.shape[-1], self.block
        if self.inner is not None:
            assert isinstance(view, InColumns)
            values = view.tokens[:, start:stop] if self.residual is Residual.label else view.tokens
            last = self._added(view.tokens[-1:], (count @ values)[None])
            return self._through_neurons(last, layer)[0, start:stop]
        if stop - start == 1:
            shown = view.dot(view.read(jnp.zeros(columns).at[start].set(1.0)))
            mixed, before = jnp.sum(count * shown)[None], shown[-1:]
        else:
            rows = view.read(jnp.eye(stop - start, columns, start))
            mixed, before = rows @ view.pool(count), rows @ view.query
        return mixed if self.residual is Residual.none else mixed + before

    def _read_out(self, answer: Float[Array, " block"], prompt: Prompt) -> Float[Array, "*out"]:
        if prompt.answers is not None:
            return answer
        return answer[0] if self.readout is None else jnp.sum(self.readout * answer)

    def _everywhere(self, inputs: Array, prompt: Prompt, layer: int) -> Float[Array, "tokens width"]:
        """o_t at every token."""
        mechanism, own, present = self.mechanism, self._own(layer), prompt.present
        values = inputs[:, slice(*self.block)] if self.residual is Residual.label else inputs
        keys, queries = inputs @ self.key_weights[layer].T, inputs @ self.query_weights[layer].T
        log_decay, gate = decay_and_gate(mechanism, own, present, lambda w: inputs @ w.T)
        if mechanism.normaliser == "softmax":
            total = jnp.zeros(len(gate)) if log_decay is None else jnp.cumsum(log_decay)
            logits = queries @ keys.T + total[:, None] - total + jnp.log(jnp.maximum(gate, TINY))
            # A padded token sees itself, so that no row is empty.
            seen = jnp.tril(jnp.ones(logits.shape, bool)) & (present | jnp.eye(len(gate), dtype=bool))
            return jax.nn.softmax(jnp.where(seen, logits, -jnp.inf)) @ values
        steps = steps_of(mechanism, own, keys, log_decay, gate, present, lambda w: inputs @ w.T)
        return self._scale(prompt) * everywhere(steps, values, queries)

    def _added(self, inputs: Array, mixed: Array) -> Float[Array, "tokens columns"]:
        if self.residual is Residual.label:
            return inputs.at[:, slice(*self.block)].add(mixed)
        return mixed if self.residual is Residual.none else inputs + mixed

    def _through_neurons(self, inputs: Array, layer: int) -> Float[Array, "tokens columns"]:
        if self.inner is None or self.outer is None:
            return inputs
        return inputs + jnp.maximum(inputs @ self.inner[layer].T, 0.0) @ self.outer[layer].T


def answer_block(key: Key[Array, ""], world: World) -> tuple[int, int]:
    """The columns in which a world's tokens hold labels or outputs."""
    answers = jax.eval_shape(world.sample, key, 0).answers
    if answers is None:
        return world.feature_columns, world.columns
    start, width = world.feature_columns, answers.shape[-1]
    require(
        start + width <= world.columns,
        "a token mixer reads labels, or the block behind a token's input as its output; this world's tokens have "
        "neither.",
    )
    return start, start + width


class MixerSettings(eqx.Module):
    """Initialisation as in mamba-outliers: W_B = W_C with δ = `initial_scale` on the feature diagonal; every row of
    gates and decays is N(0, I/D), r = 1 and ξ = 1. a is N(0, I); W_1 is N(0, 1/D) and W_2 N(0, δ²/m), for m neurons.
    """

    initial_scale: float | Float[Array, "*members"] = 0.2
    depth: int = eqx.field(static=True, default=1)
    residual: Residual = eqx.field(static=True, default=Residual.label)
    mechanism: Mechanism = eqx.field(static=True, default=Mechanism())
    neurons: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        require_positive(depth=self.depth)
        require_finite(initial_scale=self.initial_scale)
        require(self.neurons >= 0, f"neurons is {self.neurons}; it must not be negative.")

    def init(self, key: Key[Array, ""], world: World) -> Mixer:
        """Matrices on the diagonal, gates at random. The world says which columns hold the answer."""
        block, columns, mechanism = answer_block(key, world), world.columns, self.mechanism
        decay_key, gate_key, readout_key, neuron_key = jax.random.split(key, 4)
        features = jnp.arange(columns) < world.feature_columns
        diagonal = jnp.broadcast_to(self.initial_scale * jnp.eye(columns) * features, (self.depth, columns, columns))

        def rows(key: Key[Array, ""], several: bool) -> Array:
            return jax.random.normal(key, (self.depth, *(columns,) * (1 + several))) / columns**0.5

        general = mechanism.delta == "general"
        weights = Weights(
            decay=None if mechanism.decay in ("none", "fixed") else rows(decay_key, mechanism.by_coordinate),
            rate=jnp.zeros(self.depth) if mechanism.decay == "rate" else None,
            gate=rows(gate_key, general) if general or mechanism.gate == "own" else None,
            removal=jnp.ones((self.depth, columns)) if general else None,
        )
        labels = block[1] - block[0]
        numbered = jax.eval_shape(world.sample, key, 0).answers is None
        inner = outer = None
        if self.neurons:
            drawn = jax.random.normal(neuron_key, (2, self.depth, self.neurons, columns))
            inner = drawn[0] / columns**0.5
            outer = self.initial_scale * jnp.swapaxes(drawn[1], -1, -2) / self.neurons**0.5
        return Mixer(
            diagonal, diagonal, weights, inner, outer,
            jax.random.normal(readout_key, (labels,)) if numbered and labels > 1 else None,
            block, mechanism, self.residual,
        )  # fmt: skip

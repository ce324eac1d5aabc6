"""GPT-2 on a prompt's columns: pre-norm blocks of causal attention and a GELU MLP, learned positions (Radford et al.,
2019).

    x = p W_in + b_in + w_pos(t)
    x = x + Attention(LN(x)),   x = x + MLP(LN(x)),   once per layer
    F = LN(x_query) W_out + b_out

In place of word embeddings a linear map reads the prompt's columns in, and one reads the answer out at the query: a
number for a binary label, a vector where the world has answers (the losses compare it with them, or score a dictionary
by it). Absent tokens are not attended to and take no position: the query of a shorter prompt stands right after its
contexts. Every step is that of `transformers`' GPT2Model (a test holds them together), but the last layer answers at
the query only.

Weights have the shapes of that implementation, `x @ W + b`, and `letters` gives them under its names.

| code | there | space |
|---|---|---|
| read_in | `inputs_embeds` | R^{columns × width} |
| positions | `wpe` | R^{positions × width} |
| blocks[n].attention, .projection | `h.n.attn.c_attn`, `.c_proj` | R^{width × 3 width}, R^{width × width} |
| blocks[n].expansion, .contraction | `h.n.mlp.c_fc`, `.c_proj` | R^{width × 4 width}, R^{4 width × width} |
| read_out | none | R^{width × outputs} |
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from iclab.errors import require, require_finite, require_positive
from iclab.prompts import Prompt
from iclab.worlds import World

EPSILON = 1e-5  # of the layer norms, GPT-2's own
EXPANSION = 4  # neurons of an MLP per coordinate of the stream, GPT-2's own


class Linear(eqx.Module):
    """x W + b."""

    weight: Float[Array, "*members from to"]
    bias: Float[Array, "*members to"]

    def __call__(self, x: Float[Array, "*tokens from"]) -> Float[Array, "*tokens to"]:
        """On the last axis."""
        return x @ self.weight + self.bias


class Norm(eqx.Module):
    """Layer norm with a learned scale and shift; computed in float32 whatever the stream's precision is."""

    scale: Float[Array, "*members width"]
    shift: Float[Array, "*members width"]

    def __call__(self, x: Float[Array, "*tokens width"]) -> Float[Array, "*tokens width"]:
        """On the last axis."""
        exact = x.astype(jnp.float32)
        centred = exact - jnp.mean(exact, axis=-1, keepdims=True)
        unit = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + EPSILON)
        return unit.astype(x.dtype) * self.scale + self.shift


class Block(eqx.Module):
    """One layer."""

    attention_norm: Norm
    attention: Linear
    projection: Linear
    neuron_norm: Norm
    expansion: Linear
    contraction: Linear
    heads: int = eqx.field(static=True)

    def __call__(
        self, x: Float[Array, "tokens width"], seen: Bool[Array, "tokens tokens"], asked: slice
    ) -> tuple[Float[Array, "asked width"], Float[Array, "heads tokens"]]:
        """The stream at the `asked` tokens after this layer, and the query's attention over all tokens, by head."""
        width = x.shape[-1]
        normed, weight, bias = self.attention_norm(x), self.attention.weight, self.attention.bias
        split = lambda z: z.reshape(len(z), -1, self.heads, width // self.heads)  # noqa: E731
        queries = split(normed[asked] @ weight[:, :width] + bias[:width])[:, 0]
        keys, values = jnp.moveaxis(split(normed @ weight[:, width:] + bias[width:]), 1, 0)
        scores = jnp.einsum("thc,shc->hts", queries, keys).astype(jnp.float32) / (width // self.heads) ** 0.5
        # The lowest finite number, not -inf: a padding token that sees nothing must not make NaN gradients.
        attention = jax.nn.softmax(jnp.where(seen[asked], scores, jnp.finfo(jnp.float32).min))
        pooled = jnp.einsum("hts,shc->thc", attention.astype(x.dtype), values).reshape(-1, width)
        x = x[asked] + self.projection(pooled)
        x = x + self.contraction(jax.nn.gelu(self.expansion(self.neuron_norm(x)), approximate=True))
        return x, attention[:, -1]


class GPT2Trace(eqx.Module):
    """The query's attention over the contexts in every layer and head; what is missing to 1 is on the query itself."""

    attention: Float[Array, "layers heads contexts"]


class GPT2(eqx.Module):
    """The model. Its precision is that of its weights; norms, softmax and the answer are float32.

    A quarter of a megabyte is between its layers for a prompt of 21 tokens, so that a core's cache has room for few.
    """

    at_a_time: ClassVar[int] = 8

    read_in: Linear
    positions: Float[Array, "*members positions width"]
    blocks: tuple[Block, ...]
    final_norm: Norm
    read_out: Linear

    def __call__(self, prompt: Prompt) -> tuple[Float[Array, "*out"], GPT2Trace]:
        """The answer at the query: a number where the world has no answers of its own, a vector where it has."""
        count, rows = len(prompt.present), self.positions.shape[-2]
        require(count <= rows, f"a prompt of {count} tokens does not fit into the {rows} positions of this GPT-2.")
        place = jnp.maximum(jnp.cumsum(prompt.present) - 1, 0)
        x = self.read_in(prompt.tokens().astype(self.positions.dtype)) + self.positions[place]
        seen = jnp.tril(jnp.ones((count, count), bool)) & prompt.present
        attention = []
        for number, block in enumerate(self.blocks, start=1):
            last = number == len(self.blocks)
            x, looked = block(x, seen, slice(-1, None) if last else slice(None))
            attention.append(looked[:, :-1])
        output = self.read_out(self.final_norm(x[-1])).astype(jnp.float32)
        return output if prompt.answers is not None else output[0], GPT2Trace(jnp.stack(attention))

    def letters(self) -> dict[str, np.ndarray]:
        """The weights under the names that GPT-2 has in `transformers`, and our read-in and read-out."""
        named: dict[str, Linear | Norm] = {"read_in": self.read_in, "ln_f": self.final_norm, "read_out": self.read_out}
        for number, block in enumerate(self.blocks):
            layer = f"h.{number}"
            named |= {f"{layer}.ln_1": block.attention_norm, f"{layer}.attn.c_attn": block.attention,
                      f"{layer}.attn.c_proj": block.projection, f"{layer}.ln_2": block.neuron_norm,
                      f"{layer}.mlp.c_fc": block.expansion, f"{layer}.mlp.c_proj": block.contraction}  # fmt: skip
        letters = {"wpe.weight": np.asarray(self.positions)}
        for name, part in named.items():
            pair = (part.scale, part.shift) if isinstance(part, Norm) else (part.weight, part.bias)
            letters |= {
                f"{name}.{kind}": np.asarray(value) for kind, value in zip(("weight", "bias"), pair, strict=True)
            }
        return letters


class GPT2Settings(eqx.Module):
    """Sizes and initialisation: N(0, `initial_scale`²), divided by √(2 depth) where a layer writes into the stream.

    `positions` is the longest prompt in tokens, the query included.
    """

    initial_scale: float | Float[Array, "*members"] = 0.02
    depth: int = eqx.field(static=True, default=3)
    heads: int = eqx.field(static=True, default=2)
    width: int = eqx.field(static=True, default=64)
    positions: int = eqx.field(static=True, default=128)

    def __check_init__(self) -> None:
        require_positive(depth=self.depth, heads=self.heads, width=self.width, positions=self.positions)
        require_finite(initial_scale=self.initial_scale)
        require(self.width % self.heads == 0, f"width {self.width} is not a multiple of heads {self.heads}.")

    def init(self, key: Key[Array, ""], world: World) -> GPT2:
        """Matrices at random, norms the identity, biases zero. The world's own answers decide what is read out."""
        answers = jax.eval_shape(world.sample, key, 0).answers
        width, inner = self.width, EXPANSION * self.width
        layer = [(width, 3 * width), (width, width), (width, inner), (inner, width)]
        outputs = 1 if answers is None else answers.shape[-1]
        shapes = [(world.columns, width), (self.positions, width), *layer * self.depth, (width, outputs)]
        # One draw for all matrices: a draw for each would take seconds to compile.
        sizes = [rows * columns for rows, columns in shapes]
        parts = jnp.split(self.initial_scale * jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1].tolist())
        matrices = iter([part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])
        into_stream = (2 * self.depth) ** -0.5

        def linear(scale: float = 1.0) -> Linear:
            weight = scale * next(matrices)
            return Linear(weight, jnp.zeros(weight.shape[1]))

        def norm() -> Norm:
            return Norm(jnp.ones(width), jnp.zeros(width))

        return GPT2(
            read_in=linear(),
            positions=next(matrices),
            blocks=tuple(
                Block(norm(), linear(), linear(into_stream), norm(), linear(), linear(into_stream), self.heads)
                for _ in range(self.depth)
            ),
            final_norm=norm(),
            read_out=linear(),
        )

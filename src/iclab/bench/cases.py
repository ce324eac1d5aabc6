"""What is measured: one training of every model, at the sizes of its paper's quick profile.

Each case counts the least arithmetic of a step: matrix products in the cheapest order on dense tokens, forward and
twice that backward, and nothing else. It is the same number whatever way a program computes the step, so rates can be
compared.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import numpy as np

from iclab import randomness
from iclab.experiments import Recipe
from iclab.losses import Loss, cross_entropy, hinge, squared
from iclab.models.gpt2 import GPT2Settings
from iclab.models.linear_transformer import LinearTransformerSettings
from iclab.models.mamba import MambaSettings
from iclab.models.zoo import MIXERS
from iclab.optimisation import Training
from iclab.papers.chain_of_thought.settings import Settings as Chain
from iclab.papers.chain_of_thought.settings import recipe as chain
from iclab.papers.mamba_outliers.settings import Settings as Outliers
from iclab.papers.mamba_outliers.settings import training_world
from iclab.papers.nonlinear_icl.settings import Settings as Icl
from iclab.papers.nonlinear_icl.settings import recipe as icl
from iclab.papers.vector_arithmetic.settings import Settings as Arithmetic
from iclab.papers.vector_arithmetic.settings import recipe as arithmetic
from iclab.training import Member
from iclab.worlds.concepts import Kind


@dataclasses.dataclass(frozen=True)
class Case:
    """`recipe()` is what is trained, `flop` the least arithmetic of one step, `on_gpu` how many members fill a GPU."""

    name: str
    words: str
    recipe: Callable[[], Recipe]
    loss: Loss
    flop: float
    on_gpu: int

    def members(self, count: int) -> Member:
        """So many seeds of this training."""
        made = self.recipe()
        one = Member(randomness.key(0), made.world, made.model, made.training)
        many = jax.tree.map(
            lambda leaf: np.broadcast_to(leaf, (count, *np.shape(leaf))), eqx.tree_at(lambda m: m.key, one, 0)
        )
        return eqx.tree_at(lambda m: m.key, many, jax.random.split(randomness.key(0), count))


def _steps(batch: int, products: float) -> float:
    """FLOP of a step: two per product, and twice the forward arithmetic backward."""
    return 3.0 * 2.0 * batch * products


def _icl() -> Icl:
    return Icl(neurons=256)


def _softmax() -> Recipe:
    return icl(_icl(), 0.8)


def _mamba() -> Recipe:
    s = Outliers()
    return Recipe(training_world(s, 3, s.outlier_fraction), MambaSettings(s.initial_scale), Training(0.1, s.batch))


def _linear() -> Recipe:
    s = Outliers()
    return Recipe(
        training_world(s, 3, s.outlier_fraction),
        LinearTransformerSettings(s.initial_scale),
        Training(0.01, s.batch),
    )


def _chain() -> Recipe:
    return chain(Chain(), 0)


def _residual() -> Recipe:
    return arithmetic(Arithmetic(), Kind.icl)


def _gpt2() -> Recipe:
    s = Icl()
    return Recipe(icl(s, 0.8).world, s.gpt2.model(s.train_length + 1), s.gpt2.training())


def _gpt2_products(columns: int, tokens: int, model: GPT2Settings) -> float:
    """Products per prompt: read-in, and all layers at all tokens but the last one, which answers at the query only."""
    width, pairs = model.width, tokens * (tokens + 1) / 2
    whole = tokens * 12 * width**2 + 2 * pairs * width
    last = tokens * 2 * width**2 + 10 * width**2 + 2 * tokens * width
    return tokens * columns * width + (model.depth - 1) * whole + last


def _mixer(name: str) -> Recipe:
    s = Outliers()
    world = training_world(s, 3, s.outlier_fraction)
    return Recipe(world, MIXERS[name](initial_scale=s.initial_scale), Training(0.1, s.batch))


# Products per prompt of 21 tokens and 31 columns: a matrix at every token, one at the query alone, and sums over keys.
AT_TOKENS, AT_QUERY, SUM = 21 * 31 * 31, 31 * 31, 21 * 31
PRODUCTS = {
    "retnet": 2 * AT_QUERY + SUM,
    "gla": AT_TOKENS + 2 * AT_QUERY + 3 * SUM,
    "mamba2": 2 * AT_QUERY + 2 * SUM,
    "deltanet": AT_TOKENS + AT_QUERY + 5 * SUM,
    "gated-delta": AT_TOKENS + AT_QUERY + 6 * SUM,
    "rwkv7": 3 * AT_TOKENS + AT_QUERY + 7 * SUM,
    "softmax": 2 * AT_QUERY + SUM,
    "gru": 21 * (3 * 32 * 31 + 3 * 32 * 32) + 32,
}


def _mixers() -> Iterator[Case]:
    """One layer of every mixer that is no model of a paper, in the world of mamba-outliers."""
    for name, products in PRODUCTS.items():
        words = f"mamba-outliers, {name}: B = 128, l = 20, D = 31"
        called = "softmax-mixer" if name == "softmax" else name  # softmax alone is nonlinear-icl's Transformer
        yield Case(called, words, functools.partial(_mixer, name), hinge, _steps(128, products), 4_096)


CASES = {
    case.name: case
    for case in (
        Case("softmax", "nonlinear-icl: B = 128, l = 20, D = 60, m = 256", _softmax, hinge,
             _steps(128, 2 * 60 * 60 + 2 * 20 * 60 + 60 * 60 + 256 * 60), 16_384),
        Case("linear", "mamba-outliers, linear Transformer: B = 128, l = 20, D = 31", _linear, hinge,
             _steps(128, 2 * 31 * 31 + 21 * 31), 16_384),
        Case("mamba", "mamba-outliers, Mamba: B = 128, l = 20, D = 31", _mamba, hinge,
             _steps(128, 2 * 31 * 31 + 2 * 21 * 31), 16_384),
        Case("chain", "chain-of-thought: B = 60, l = 20, K = 3, D = 63", _chain, squared,
             _steps(60, 63 * 63 + 63 * 63 + 63 * 30), 8_192),
        Case("residual", "vector-arithmetic: n = 200 fixed prompts of 31 tokens, d = 150", _residual, cross_entropy,
             _steps(200, 3 * 150 * 150 + 2 * 30 * 150 + 114 * 150), 512),
        Case("gpt2", "GPT-2 on nonlinear-icl: 3 layers, 2 heads, width 64, B = 64, l = 20, AdamW", _gpt2, hinge,
             _steps(64, _gpt2_products(60, 21, GPT2Settings())), 256),
        *_mixers(),
    )
}  # fmt: skip

"""Token mixers by name: what `--model NAME` takes.

| name | mixer | mechanism |
|---|---|---|
| linear | the linear Transformer of mamba-outliers | nothing is forgotten, gated or erased |
| retnet | RetNet (Sun et al., 2023) | a fixed decay |
| gla | gated linear attention (Yang et al., 2024) | a decay for each coordinate of the key |
| mamba | Mamba as mamba-outliers has it | a decay 1 - σ and its input gate σ |
| mamba2 | Mamba-2, SSD (Dao and Gu, 2024) | a decay exp(-r Δ) and the step Δ as input gate |
| deltanet | DeltaNet (Schlag et al., 2021; Yang et al., 2024) | the delta rule with a gate of its own |
| gated-delta | gated DeltaNet (Yang, Kautz and Hatamizadeh, 2025) | the same with a decay exp(-r softplus) |
| rwkv7 | like RWKV-7 (Peng et al., 2025) | the general delta rule: removal keys, rates and decays by coordinate |
| softmax | softmax attention | all tokens kept, weights normalised |
| gru | a gated recurrent unit | no attention: a vector as memory |

Each is a layer without what else its paper has around it (convolutions, several heads, norms, output gates), so that
what differs between two of them is the mechanism. All take `initial_scale` and `depth`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from iclab.models import ModelSettings
from iclab.models.gru import GRUSettings
from iclab.models.linear_transformer import LinearTransformerSettings
from iclab.models.mamba import MambaSettings
from iclab.models.mechanisms import Mechanism
from iclab.models.mixers import MixerSettings

MECHANISMS = {
    "linear": Mechanism(),
    "retnet": Mechanism(decay="fixed"),
    "gla": Mechanism(decay="vector"),
    "mamba": Mechanism(decay="scalar", gate="tied"),
    "mamba2": Mechanism(decay="rate", gate="step"),
    "deltanet": Mechanism(gate="own", delta="key"),
    "gated-delta": Mechanism(decay="rate", gate="own", delta="key"),
    "rwkv7": Mechanism(decay="bounded", delta="general"),
    "softmax": Mechanism(normaliser="softmax"),
}

MIXERS: dict[str, Callable[..., ModelSettings]] = {
    name: functools.partial(MixerSettings, mechanism=mechanism) for name, mechanism in MECHANISMS.items()
} | {"linear": LinearTransformerSettings, "mamba": MambaSettings, "gru": GRUSettings}
UNWEIGHED = frozenset({"gru"})  # these keep no score and no gate for each example

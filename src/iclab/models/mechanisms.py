"""Token mixers as data: how a memory forgets, what it lets in, whether it corrects itself, how it is read.

Every token u_t has a key k_t = W_B u_t, a query q_t = W_C u_t and a value v_t, and

    S_t = S_{t-1} diag(a_t) (I - g_t k_t k_tᵀ) + g_t v_t k_tᵀ,   o_t = S_t q_t                    with the delta rule
    S_t = S_{t-1} diag(a_t) + g_t v_t k_tᵀ,                      o_t = S_t q_t                    without it

| field | value | what it is |
|---|---|---|
| decay | none | a_t = 1 |
| | fixed | a_t = 1 - 2⁻⁵ (RetNet) |
| | scalar | a_t = 1 - σ(wᵀu_t) = exp(-softplus(wᵀu_t)) |
| | rate | a_t = exp(-r softplus(wᵀu_t)), r > 0 trained (Mamba-2, gated DeltaNet) |
| | vector | a_t = σ(W u_t)^(1/16), one for each coordinate of the key (gated linear attention) |
| | bounded | a_t = exp(-e^(-1/2) σ(W u_t)), one for each coordinate of the key (RWKV-7) |
| gate | none | g_t = 1 |
| | own | g_t = σ(w_gᵀu_t) |
| | tied | g_t = 1 - a_t (Mamba as in mamba-outliers) |
| | step | g_t = softplus(wᵀu_t), the step of which a_t is the decay (Mamba-2) |
| delta | none | nothing is erased |
| | unit | nothing is erased either; keys have norm 1 |
| | key | what is stored under the key is replaced; keys have norm 1 |
| | general | S_t = S_{t-1} (diag(a_t) - κ_t (b_t ⊙ κ_t)ᵀ) + v_t (b_t ⊙ k_t)ᵀ (RWKV-7) |
| | | with b_t = σ(W_g u_t), one for each coordinate, and the removal key κ_t = ξ ⊙ k_t / ‖ξ ⊙ k_t‖ |
| normaliser | none | o_t = S_t q_t |
| | mean | divided by the number of examples |
| | softmax | o_t = Σ_i v_i e_i / Σ_i e_i, e_i = exp(k_i · q_t) g_i a_{i+1} ... a_t: every token is kept |

The query shows no label: it erases nothing, since a rule that replaces what is stored would replace the answer by 0.
Its decay counts, as in (3) of mamba-outliers. Padding neither writes nor erases nor forgets.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iclab.errors import nearest, require
from iclab.models.recurrences import Steps, kept_until_end

FIXED = math.log(1 - 2.0**-5)  # log of RetNet's decay, that of its first head
TEMPERATURE = 16.0  # of gated linear attention's decay, its own
SLOWEST = math.exp(-0.5)  # RWKV-7 keeps at least exp(-e^(-1/2)) = 0.55 of its memory
SMALLEST = 1e-6  # added to a squared norm, for keys that vanish
TINY = 1e-30  # below this a gate is 0 in what is divided by it


def _softly(logits: Array) -> Array:
    return -jax.nn.softplus(logits)


def _slowly(logits: Array) -> Array:
    return -jax.nn.softplus(-logits) / TEMPERATURE


def _bounded(logits: Array) -> Array:
    return -SLOWEST * jax.nn.sigmoid(logits)


LOG_DECAYS: dict[str, Callable[[Array], Array]] = {  # of the logits; "rate" is multiplied by r
    "scalar": _softly, "rate": _softly, "vector": _slowly, "bounded": _bounded,
}  # fmt: skip
CHOICES = {
    "decay": ("none", "fixed", *LOG_DECAYS),
    "gate": ("none", "own", "tied", "step"),
    "delta": ("none", "unit", "key", "general"),
    "normaliser": ("none", "mean", "softmax"),
}
BY_NUMBER = ("scalar", "rate")  # decays that are one number and learned from wᵀu


class Mechanism(eqx.Module):
    """One line of the table for each field."""

    decay: str = eqx.field(static=True, default="none")
    gate: str = eqx.field(static=True, default="none")
    delta: str = eqx.field(static=True, default="none")
    normaliser: str = eqx.field(static=True, default="none")

    def __check_init__(self) -> None:
        for name, known in CHOICES.items():
            value = getattr(self, name)
            require(value in known, f"{name} is {value!r}; a mixer has none of this name. {nearest(str(value), known)}")
        learned = self.decay in BY_NUMBER
        require(
            self.gate not in ("tied", "step") or learned, f"gate is {self.gate!r}; it needs a scalar decay or rate."
        )
        alone = self.normaliser != "softmax" or not self.needs_keys
        require(alone, "softmax keeps every token: it has no memory to erase from, and one decay for all of a key.")
        require(self.delta != "general" or self.gate == "none", "the general delta rule has a gate of its own.")

    @property
    def by_coordinate(self) -> bool:
        """Whether every coordinate of the key has a decay of its own."""
        return self.decay in ("vector", "bounded")

    @property
    def needs_keys(self) -> bool:
        """Whether keys are needed one by one, and not only their products with the query."""
        return self.by_coordinate or self.delta != "none"


class Weights(eqx.Module):
    """What one layer learns beside W_B and W_C; None where its mechanism has no use for it.

    | code | letter | space |
    |---|---|---|
    | decay | w, W | R^D, R^{n × D} where every coordinate decays by itself |
    | rate | log r | R |
    | gate | w_g, W_g | R^D, R^{n × D} in the general delta rule |
    | removal | ξ | R^n |
    """

    decay: Float[Array, " ..."] | None = None
    rate: Float[Array, " ..."] | None = None
    gate: Float[Array, " ..."] | None = None
    removal: Float[Array, " ..."] | None = None


def decay_and_gate(
    mechanism: Mechanism, weights: Weights, present: Bool[Array, " tokens"], read: Callable[[Array], Array]
) -> tuple[Float[Array, "tokens ..."] | None, Float[Array, " tokens"]]:
    """log a_t (None where nothing is forgotten) and g_t; `read(weights)` is weights · u_t for every token.

    Of padding both are 0: it keeps everything and lets nothing in. The gate of the general delta rule is in its keys.
    """
    log_decay = None
    gate = jnp.ones(len(present))
    if mechanism.decay == "fixed":
        log_decay = jnp.full(len(present), FIXED)
    elif mechanism.decay != "none":
        assert weights.decay is not None, "this mechanism has weights for its decay"
        logits = read(weights.decay)
        log_decay = LOG_DECAYS[mechanism.decay](logits)
        if weights.rate is not None:
            log_decay = jnp.exp(weights.rate) * log_decay
        if mechanism.gate == "tied":
            gate = -jnp.expm1(log_decay)
        elif mechanism.gate == "step":
            gate = jax.nn.softplus(logits)
    if mechanism.gate == "own":
        assert weights.gate is not None, "this mechanism has weights for its gate"
        gate = jax.nn.sigmoid(read(weights.gate))
    if log_decay is not None:
        log_decay = jnp.where(present if log_decay.ndim == 1 else present[:, None], log_decay, 0.0)
    return log_decay, jnp.where(present, gate, 0.0)


def unit(keys: Float[Array, "tokens state"]) -> Float[Array, "tokens state"]:
    """Keys of norm 1; one that is 0 stays 0."""
    return keys * jax.lax.rsqrt(jnp.sum(keys**2, axis=1, keepdims=True) + SMALLEST)


def steps_of(
    mechanism: Mechanism,
    weights: Weights,
    keys: Float[Array, "tokens state"],
    log_decay: Float[Array, "tokens ..."] | None,
    gate: Float[Array, " tokens"],
    present: Bool[Array, " tokens"],
    read: Callable[[Array], Array],
) -> Steps:
    """What happens to the memory at every token."""
    opened = gate[:, None]
    if mechanism.delta in ("none", "unit"):
        return Steps(opened * (keys if mechanism.delta == "none" else unit(keys)), log_decay)
    asking = jnp.arange(len(gate)) == len(gate) - 1
    erasing = jnp.where(asking, 0.0, 1.0)[:, None]
    if mechanism.delta == "key":
        keys = unit(keys)
        kept = jnp.ones_like(opened) if log_decay is None else jnp.exp(log_decay).reshape(len(gate), -1)
        return Steps(opened * keys, log_decay, erasing * kept * keys, opened * keys)
    assert weights.gate is not None and weights.removal is not None, "this mechanism has weights for what it erases"
    rates = jnp.where(present[:, None], jax.nn.sigmoid(read(weights.gate)), 0.0)
    removal = unit(keys * weights.removal)
    return Steps(rates * keys, log_decay, erasing * removal, rates * removal)


def gates_until_end(log_decay: Float[Array, "tokens ..."] | None, gate: Float[Array, " tokens"]) -> Array:
    """g_i a_{i+1} ... a_T; where coordinates decay by themselves, that of the one that is kept best."""
    if log_decay is None:
        return gate
    kept = kept_until_end(log_decay)
    return gate * jnp.exp(kept if kept.ndim == 1 else jnp.max(kept, axis=1))

"""The evolution of statistical induction heads: in-context learning of Markov chains (Edelman et al., NeurIPS 2024).

Every prompt is a walk on its own chain, whose k rows are drawn from Dirichlet(1, ..., 1); the model names the next
state (arXiv 2402.11004). Three strategies, in nats: *uniform* log k; *unigram* (n_j + 1)/(n + k), from how often each
state occurred; *bigram* (n_ij + 1)/(n_i + k), from what followed the last state i, which is the Bayes-optimal answer
but for what the first state says about the chain. The paper finds: a Transformer with only two layers of attention
passes from the first to the second and then, abruptly, to the third; layer 1 then looks at the token
before, layer 2 at the tokens that follow a copy of the last one (a statistical induction head); and if unigrams are
useless, it gets there sooner.

The model has its products of matrices merged; e_t is one-hot, T the last place, a softmax over s <= t:

    a_ts = softmax_s(r_{t-s} + e_tᵀ A e_s),  h_t = (e_t; Σ_s a_ts e_s),  F = C Σ_s softmax_s(r'_{T-s} + h_Tᵀ B h_s) h_s

The *simplified model* has a_ts = softmax_s(r_{t-s}) and F = Σ_s (e_Tᵀ W Σ_u a_su e_u) e_s, from r = 0, W = 0.01.

Sizes: T = 40 in the quick profile where the paper has 100. The loss is that of the last state; the paper averages over
all positions. Left out: n-grams, other numbers of states, and the theorem on the first two steps of gradient descent.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import iclab.authoring as ic
from iclab.statements import Printed
from iclab.worlds.markov import Markov, Prior

title = "The evolution of statistical induction heads: in-context learning Markov chains"
citation = "Ezra Edelman, Nikolaos Tsilivis, Benjamin L. Edelman, Eran Malach, Surbhi Goel. NeurIPS 2024."
equation = r"F = C \sum_s \mathrm{softmax}_s\big(r'_{T-s} + h_T^\top B \, h_s\big) \, h_s"
explore = True

STRATEGIES = ("uniform", "unigram", "bigram")
PRIORS = {"rows": Prior.rows, "doubly stochastic": Prior.doubly_stochastic}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes and training."""

    states: int = 3
    length: int = 40
    initial_scale: float = 0.02
    step_size: float = 0.01
    batch: int = 64
    steps: int = 1200
    records: int = 40

    def __post_init__(self):
        """Refuse settings that make no sense."""
        ic.require_settings(self)


settings = {
    "smoke": Settings(length=10, batch=8, steps=12, records=3),
    "quick": Settings(),
    "paper": Settings(length=100, batch=256, steps=10_000, step_size=0.003, records=100),
}


def attention(scores, seen):
    """A softmax over the seen tokens; rows that see nothing (padding) stay finite."""
    return jax.nn.softmax(jnp.where(seen, scores, jnp.finfo(jnp.float32).min))


def relative(bias, count):
    """r_{t-s} for every t and s of `count` tokens."""
    places = np.arange(count)
    return bias[np.clip(places[:, None] - places, 0, len(bias) - 1)]


class Transformer(eqx.Module):
    """Two layers of attention: A and r, then B, r' and C."""

    first: jax.Array
    first_places: jax.Array
    second: jax.Array
    second_places: jax.Array
    read_out: jax.Array

    def __call__(self, prompt):
        """Scores of all states; where layer 1 looks from every token, and layer 2 from the last."""
        tokens = prompt.tokens()
        looks = attention(
            relative(self.first_places, len(tokens)) + tokens @ self.first @ tokens.T,
            np.tri(len(tokens), dtype=bool) & prompt.present,
        )
        stream = jnp.concatenate([tokens, looks @ tokens], axis=1)
        scores = relative(self.second_places, len(tokens))[-1] + stream @ (self.second.T @ stream[-1])
        last = attention(scores, prompt.present)
        return (last @ stream) @ self.read_out, {"before": looks, "attention": last}


class TransformerSettings(eqx.Module):
    """Small Gaussian weights."""

    initial_scale: float = 0.02

    def init(self, key, world):
        """Sizes by the world."""
        k, length = world.states, world.maximum_length
        shapes = ((k, k), (length,), (2 * k, 2 * k), (length,), (2 * k, k))
        keys = jax.random.split(key, len(shapes))
        return Transformer(*(self.initial_scale * jax.random.normal(*one) for one in zip(keys, shapes, strict=True)))


class Simplified(eqx.Module):
    """Layer 1 looks by place alone, layer 2 is linear."""

    places: jax.Array
    weights: jax.Array

    def __call__(self, prompt):
        """Scores of all states, and what layer 2 gives every token."""
        tokens = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)
        looks = attention(relative(self.places, len(tokens)), np.tri(len(tokens), dtype=bool) & prompt.present)
        scores = jnp.where(prompt.present, looks @ tokens @ (self.weights.T @ tokens[-1]), 0.0)
        return scores @ tokens, {"before": looks, "attention": scores}


class SimplifiedSettings(eqx.Module):
    """The start of the paper's code: no place is preferred, every entry of W is 0.01."""

    initial_weight: float = 0.01

    def init(self, key, world):
        """Nothing is random but the prompts."""
        weights = self.initial_weight * jnp.ones((world.states, world.states))
        return Simplified(jnp.zeros(world.maximum_length), weights)


def strategies(prompt):
    """The three strategies' probabilities of the next state."""
    tokens = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)
    followed = tokens[:-1] @ tokens[-1]  # which tokens are the last one's state
    counts = {"uniform": 0 * tokens[0], "unigram": jnp.sum(tokens, axis=0), "bigram": followed @ tokens[1:]}
    return {name: (own + 1) / jnp.sum(own + 1) for name, own in counts.items()}


def measure(model, prompt):
    """Losses of the model and of the strategies, how far it is from each, and where the layers look."""
    output, trace = model(prompt)
    logs = jax.nn.log_softmax(output)
    rules, tokens = strategies(prompt), prompt.tokens()
    before = jnp.mean(jnp.diagonal(trace["before"], offset=-1))
    follows = jnp.append(False, tokens[:-1] @ tokens[-1] > 0.5)
    off = jnp.stack([jnp.sum(rules[name] * (jnp.log(rules[name]) - logs)) for name in STRATEGIES])
    losses = {f"{name}_loss": -jnp.log(rules[name][prompt.target]) for name in STRATEGIES}
    onto = jnp.sum(jnp.where(follows, trace["attention"], 0.0))
    return losses | {"loss": -logs[prompt.target], "off@strategy": off, "before": before, "onto": onto}


def observe(model, member, key):
    """On 2000 fresh prompts of the usual prior, whatever it is trained on."""
    return ic.expect(measure, model, member.watched[0], key, batches=8)


def trained(lab, name, recipes):
    """A training, observed often."""
    shares = np.linspace(0, 1, lab.settings.records + 1) ** 1.5
    record_at = sorted({round(lab.settings.steps * share) for share in shares})
    found = lab.train(name, recipes, record_at, (observe,), ic.cross_entropy).history
    return found.assign_coords(strategy=list(STRATEGIES))


def recipe(s, model, prior):
    """Adam on fresh prompts."""
    usual, train = Markov(s.states, s.length), ic.Training(s.step_size, batch=s.batch, optimiser="adam")
    return ic.Recipe(Markov(s.states, s.length, prior=prior), model, train, watched=(usual,))


def training(lab):
    """The Transformer, trained on chains of either prior and observed on the usual one."""
    s = lab.settings
    own = {name: recipe(s, TransformerSettings(s.initial_scale), prior) for name, prior in PRIORS.items()}
    return trained(lab, "main", own).rename(setting="prior")


def simplified(lab):
    """The simplified model."""
    return trained(lab, "simplified", recipe(lab.settings, SimplifiedSettings(), Prior.rows)).squeeze("setting")


experiments = {"training": training, "simplified": simplified}


def phases(off):
    """The share of records at which the model is nearest to the unigram strategy, if it passes from uniform to unigram
    to bigram in this order; 0 if not.
    """
    nearest = off.argmin("strategy")
    first = [xr.where((nearest == number).any("step"), (nearest == number).argmax("step"), -1) for number in range(3)]
    ordered = (first[0] == 0) & (first[0] < first[1]) & (first[1] < first[2])
    return (nearest == 1).mean("step") * ordered


def drop(loss, unigram, bigram):
    """How long the fall from 80 % to 20 % of the gap between the strategies takes, over the time before it."""
    gap = (loss - bigram) / (unigram - bigram).mean("step")
    early, late = (ic.first_below(gap, "step", share) for share in (0.8, 0.2))
    return (late - early) / early


def reached(off):
    """When the model is first nearest to the bigram strategy."""
    nearest = (off.argmin("strategy") == 2).astype(float)
    return ic.first_below(1 - nearest, "step", 0.5)


usual = {name: ic.measured("training", name).sel(prior="rows") for name in
         ("loss", "unigram_loss", "bigram_loss", "off", "before", "onto")}  # fmt: skip
other = ic.measured("training", "off").sel(prior="doubly stochastic")
simple = {name: ic.measured("simplified", name) for name in ("off", "before", "onto")}


def statements(s):
    """What the paper finds."""
    shorter = (f"T = {s.length}; 100 in the paper",) if s.length < 100 else ()
    return [
        ic.Statement(
            "phases", "Figure 1", "Training passes from uniform to unigram to bigram statistics, which are optimal.",
            (
                ic.Part("share of the records nearest to unigrams, if in this order", ic.apply(phases, usual["off"]),
                        ic.larger(0.02), ic.UNIT),
                ic.Part("loss above the bigram strategy's, at the end", (usual["loss"] - usual["bigram_loss"]).last(),
                        ic.below(0.02)),
            ),
            figure="phases", ours=("'optimal': within 0.02 nats", *shorter),
        ),
        ic.Statement(
            "abrupt", "Figure 1", "The transition from unigrams to bigrams is rapid.",
            (ic.Part("duration of the drop / time before it",
                     ic.apply(drop, usual["loss"], usual["unigram_loss"], usual["bigram_loss"]), ic.below(1.0)),),
            figure="phases", ours=("from 80 % to 20 % of the gap in less time than passed before", *shorter),
        ),
        ic.Statement(
            "heads", "Section 2", "Layer 1 looks at the token before, layer 2 at what followed the last state.",
            (ic.Part("attention of layer 1 on the token before", usual["before"].last(), ic.above(0.5), ic.UNIT),
             ic.Part("attention of layer 2 on tokens behind the last state", usual["onto"].last(), ic.above(0.8),
                     ic.UNIT)),
            figure="heads", ours=("'looks at': more than half; of layer 2 more than 80 %", *shorter),
        ),
        ic.Statement(
            "delay", "Section 3", "Where unigrams say nothing, bigrams are learned sooner.",
            (ic.Part("time to bigrams, usual chains / doubly stochastic ones",
                     ic.apply(reached, usual["off"]) / ic.apply(reached, other), ic.above(1.0),
                     unsettled=f"T = {s.length} and Adam on merged matrices may decide" if shorter else ""),),
            figure="phases", ours=("doubly stochastic chains are mixtures of permutations", *shorter),
        ),
        ic.Statement(
            "simplified", "Section 4", "The simplified model passes through the same phases.",
            (ic.Part("share of the records nearest to unigrams, if in this order", ic.apply(phases, simple["off"]),
                     ic.larger(0.02), ic.UNIT),
             ic.Part("attention of layer 1 on the token before", simple["before"].last(), ic.above(0.5), ic.UNIT)),
            figure="heads", ours=("trained by Adam; the paper uses SGD with a step size per layer", *shorter),
        ),
    ]  # fmt: skip


printed = {"phases": Printed("there is a rapid phase transition to the correct in-context bigram solution", "Abstract")}
unstated = (
    ic.Unstated("initial_scale", ic.Between(0.01, 0.1, log=True), "", "of merged matrices, which are ours"),
    ic.Unstated("step_size", ic.Between(0.001, 0.01, log=True), "", "of Adam on merged matrices"),
    "the loss is asked for at the last token; the paper averages it over all positions",
    "the step size was chosen in a scouting run (2 seeds), where the same phases were seen",
)


DISTANCE = {"along": "step", "by": "strategy", "dots": False, "y": "KL", "log": "y", "limits": (0.003, 0.6)}


def draw_phases(results, settings):
    """Loss along training beside the strategies, and the distance from each."""
    lines = {"model": usual["loss"], "unigram": usual["unigram_loss"], "bigram": usual["bigram_loss"]}
    return ic.picture(
        results,
        ic.Lines("Loss", lines, "step", dots=False, dashed=("unigram", "bigram"), y="nats"),
        ic.Lines("Distance from strategies", usual["off"], **DISTANCE),
        ic.Lines("The same, doubly stochastic training", other, **DISTANCE),
    )  # fmt: skip


def draw_heads(results, settings):
    """Where the layers look along training."""
    return ic.picture(
        results,
        ic.Lines("Transformer", {"layer 1: token before": usual["before"], "layer 2: behind the state": usual["onto"]},
                 "step", dots=False, y="attention", bounds=ic.UNIT),
        ic.Lines("Simplified model, layer 1", {"token before": simple["before"]}, "step", dots=False, y="attention"),
        ic.Lines("Simplified model", simple["off"], **DISTANCE),
    )  # fmt: skip


figures = {"phases": draw_phases, "heads": draw_heads}

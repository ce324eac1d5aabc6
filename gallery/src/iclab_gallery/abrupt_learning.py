"""The mechanistic basis of data dependence and abrupt learning in an in-context classification task (Reddy, ICLR 2024).

A prompt has N pairs of an item and its label, then an item without one (arXiv 2312.03002). Items come from K classes
with L labels, x = (μ_k + ε η)/√(1 + ε²); B items of the context share the query's class. A network can learn the labels
of the classes (in weights) or read the label off the context (in context, by an induction head). The paper finds that
bursts (B), many classes (K) and variation within classes (ε) favour the context, and that in-context learning comes
abruptly, as an induction head forms whose nested logits are learned one after the other.

The paper's network has two layers of attention and an MLP. We train a reduced form in the spirit of its model of an
induction head: three logits β, γ, ξ and an MLP that sees only the query,

    c_j = Σ_{s<j} softmax_s(β [s = j-1]) x_s,  a_j = softmax_j(γ x_query · c_j),  F = ξ Σ_j a_j label_j + MLP(x_query).

Learning in context is measured on classes that training does not have, learning in weights on queries whose class the
context does not show. Left out: the full network, rank-frequency distributions, swapped labels. We did not have the
full text: beyond its parameters N, K, L, B, ε, all sizes are ours, and labels of figures and sections may be wrong.
"""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import iclab.authoring as ic
from iclab.prompts import make_prompt
from iclab.statements import Printed
from iclab_gallery.closed_forms import in_weights_posterior

title = "The mechanistic basis of data dependence and abrupt learning in an in-context classification task"
citation = "Gautam Reddy. ICLR 2024."
equation = r"F = \xi \sum_j a_j \, \mathrm{label}_j + \mathrm{MLP}(x_{query})"
explore = True

FEW, SOME, MANY = 32, 128, 1024  # classes
VARIANTS = {  # by name: classes, burst, deviation over the usual one
    "many classes": (MANY, 1, 1.0),
    "few classes": (FEW, 1, 1.0),
    "no bursts": (MANY, 0, 1.0),
    "little variation": (SOME, 1, 0.5),
    "much variation": (SOME, 1, 5.0),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes and training."""

    dimension: int = 32
    items: int = 8
    labels: int = 16
    deviation: float = 0.2
    neurons: int = 64
    initial_scale: float = 0.1
    step_size: float = 0.3
    logit_speed: float = 0.3
    batch: int = 64
    steps: int = 1500
    records: int = 25

    def __post_init__(self):
        """Refuse settings that make no sense."""
        ic.require_settings(self)


settings = {
    "smoke": Settings(steps=6, records=3, batch=8),
    "quick": Settings(),
    "paper": Settings(dimension=63, labels=32, neurons=128, steps=20_000, batch=128, records=100),
}


class Bursts(ic.BaseWorld):
    """Items and labels in turn, then an item. `burst` items share the query's class; with 0 it need not be shown.
    `novel` draws classes for each prompt alone.
    """

    means: jax.Array
    own_labels: jax.Array
    classes: int = MANY
    burst: int = 1
    deviation: float = 0.2
    novel: bool = False
    items: int = ic.static(8)
    labels: int = ic.static(16)
    padding = ic.Padding(in_front=True, together=2)  # a label belongs to the item before it

    @property
    def feature_columns(self):
        """D: the other columns show labels."""
        return self.means.shape[-1]

    def sample(self, key, index):
        """One prompt."""
        keys = jax.random.split(key, 5)
        d, slots = self.means.shape[-1], jnp.arange(self.items) // jnp.maximum(self.burst, 1)
        numbers = jax.random.randint(keys[0], (self.items + 1,), 0, self.classes)
        fresh = jax.random.normal(keys[1], (self.items + 1, d)) / d**0.5
        asked = jax.random.randint(keys[4], (), 0, self.items)  # the query is of this item's class, or of none
        shown = jnp.append(slots, jnp.where(self.burst > 0, slots[asked], self.items))
        means = jnp.where(self.novel, fresh, jnp.asarray(self.means)[numbers])[shown]
        drawn = jax.random.randint(keys[2], (self.items + 1,), 0, self.labels)
        labels = jnp.where(self.novel, drawn, jnp.asarray(self.own_labels)[numbers])[shown]
        noise = jax.random.normal(keys[3], means.shape) / d**0.5
        x = (means + self.deviation * noise) / (1 + self.deviation**2) ** 0.5
        pairs = jnp.zeros((self.items, 2, d + self.labels)).at[:, 0, :d].set(x[:-1])
        pairs = pairs.at[:, 1, d:].set(jnp.eye(self.labels)[labels[:-1]])
        query = jnp.zeros((1, d + self.labels)).at[0, :d].set(x[-1])
        tokens = jnp.concatenate([pairs.reshape(-1, d + self.labels), query])
        pattern = jnp.append(jnp.repeat(shown[:-1], 2), shown[-1])
        return make_prompt(tokens, labels[-1], pattern=pattern, answers=jnp.eye(self.labels), feature_columns=d)


class Network(eqx.Module):
    """Three nested logits, and an MLP on the query."""

    before: jax.Array
    match: jax.Array
    read: jax.Array
    hidden: jax.Array
    bias: jax.Array
    out: jax.Array

    def __call__(self, prompt):
        """Scores of all labels; the attention of a label on its item, and of the query on each label."""
        d, tokens = self.hidden.shape[0], jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)
        x, labels, query = tokens[:-1:2, :d], tokens[1::2, d:], tokens[-1, :d]
        others = (jnp.cumsum(prompt.present)[:-1:2] - 1)[:, None]  # tokens before an item
        strength, shown = jnp.exp(self.before), prompt.present[:-1:2] & prompt.present[1::2]
        carried = (jnp.cumsum(x, axis=0) + (strength - 1) * x) / (others + strength)  # labels carry no x
        scores = jnp.where(shown, self.match * carried @ query, jnp.finfo(x.dtype).min)
        taken = jax.nn.softmax(scores)
        weights = jax.nn.relu(query @ self.hidden + self.bias) @ self.out
        looks = strength / (others[-1, 0] + strength)
        return self.read * (taken @ labels) + weights, {"taken": taken, "looks": looks}


class NetworkSettings(eqx.Module):
    """Logits begin at `initial_scale`, the MLP with entries that keep sizes."""

    initial_scale: float = 0.1
    neurons: int = ic.static(64)

    def init(self, key, world):
        """Random MLP, small logits."""
        d, keys = world.feature_columns, jax.random.split(key)
        hidden = jax.random.normal(keys[0], (d, self.neurons)) * (2 / d) ** 0.5
        out = jax.random.normal(keys[1], (self.neurons, world.labels)) / self.neurons**0.5
        logits = (jnp.asarray(self.initial_scale),) * 3
        return Network(*logits, hidden, jnp.zeros(self.neurons), 0.1 * out)


def classes_of(s, seed):
    """The means and labels of all classes of a seed."""
    generator = np.random.default_rng(seed)
    means = generator.standard_normal((MANY, s.dimension)) / s.dimension**0.5
    return means.astype(np.float32), generator.integers(0, s.labels, MANY).astype(np.int32)


def recipe(s, variant, seed):
    """SGD on fresh prompts, observed on new classes and on queries that the context does not help with."""
    classes, burst, factor = VARIANTS[variant]
    table = classes_of(s, seed)

    def world(burst, novel):
        sizes = np.int32(classes), np.int32(burst), np.float32(factor * s.deviation), np.bool_(novel)
        return Bursts(*table, *sizes, s.items, s.labels)

    logits = dict.fromkeys(("before", "match", "read"), s.logit_speed)
    train = ic.Training(s.step_size, batch=s.batch, scales=logits)
    model = NetworkSettings(s.initial_scale, s.neurons)
    return ic.Recipe(world(burst, False), model, train, watched=(world(1, True), world(0, False)))


def measure(model, prompt):
    """Is the answer right, and does the induction head do its two steps?"""
    output, trace = model(prompt)
    same = jnp.sum(jnp.where(prompt.matches_query()[::2], trace["taken"], 0.0))
    right = jnp.argmax(output) == prompt.target
    return {"right": right.astype(float), "looks": trace["looks"], "same": same}


def observe(model, member, key):
    """Accuracy in context and in weights, on 500 fresh prompts each."""
    context, weights = ic.expect_in(measure, model, member.watched, key, batches=2)
    return context | {"context": context["right"], "weights": weights["right"]}


def training(lab):
    """Every variant of the data."""
    s = lab.settings
    recipes = {name: functools.partial(recipe, s, name) for name in VARIANTS}
    record_at = sorted({round(s.steps * share) for share in np.linspace(0, 1, s.records + 1) ** 1.5})
    found = lab.train("main", recipes, record_at, (observe,), ic.cross_entropy).history.rename(setting="data")
    best = xr.DataArray([optimum(s, seed) for seed in lab.seeds], dims="seed")
    return found.assign(optimum=best)


def optimum(s, seed, count=500):
    """The best accuracy in weights with few classes, by the exact posterior."""
    means, labels = (np.asarray(table[:FEW], float) for table in classes_of(s, seed))
    generator = np.random.default_rng([seed, 1])
    truth = generator.integers(0, FEW, count)
    noise = generator.standard_normal((count, s.dimension)) / s.dimension**0.5
    items = (means[truth] + s.deviation * noise) / np.sqrt(1 + s.deviation**2)
    posterior = in_weights_posterior(items, means, labels.astype(int), s.deviation, s.labels)
    return float(np.mean(posterior.max(axis=1)))


experiments = {"training": training}
context, weights = ic.measured("training", "context"), ic.measured("training", "weights")
ends = {name: context.sel(data=name).last() for name in VARIANTS}


def rise(accuracy):
    """How long the rise from 40 % to 90 % takes, over the time before it."""
    early, late = (ic.first_below(-accuracy, "step", -share) for share in (0.4, 0.9))
    return (late - early) / early


REDUCED = ("the reduced form of the network is trained: three logits and an MLP",)
GAIN = "an effect counts from 0.2 of the queries on"
SCOUTED = (
    "Numbers of classes and the speed of the logits were chosen in scouting runs (2 seeds). With logits ten times as "
    "fast as the MLP, learning in context won with 32 classes too: the speed decides what many classes are."
)

statements = [
    ic.Statement(
        "classes", "Figure 2", "Many classes favour learning in context, few classes learning in weights.",
        (ic.Part(f"accuracy in context, {MANY} classes minus {FEW}", ends["many classes"] - ends["few classes"],
                 ic.larger(0.2)),
         ic.Part(f"accuracy in weights, {FEW} classes minus {MANY}",
                 (weights.sel(data="few classes") - weights.sel(data="many classes")).last(), ic.larger(0.2)),
         ic.Part(f"accuracy in weights over that of the exact posterior, {FEW} classes",
                 weights.sel(data="few classes").last() / ic.measured("training", "optimum"), ic.above(0.9))),
        figure="found", ours=(GAIN, *REDUCED), afterwards=SCOUTED,
    ),
    ic.Statement(
        "burstiness", "Figure 2", "Without bursts nothing is learned in context.",
        (ic.Part("accuracy in context, B = 1 minus B = 0", ends["many classes"] - ends["no bursts"], ic.larger(0.2)),),
        figure="found", ours=(GAIN, *REDUCED), afterwards=SCOUTED,
    ),
    ic.Statement(
        "variation", "Figure 2", "Variation within classes favours learning in context.",
        (ic.Part(f"accuracy in context, ε five times the usual minus half of it, {SOME} classes",
                 ends["much variation"] - ends["little variation"], ic.larger(0.2)),),
        figure="found", ours=(GAIN, *REDUCED), afterwards=SCOUTED,
    ),
    ic.Statement(
        "abrupt", "Figure 1", "In-context learning comes abruptly after a plateau.",
        (ic.Part("duration of the rise / time before it", ic.apply(rise, context.sel(data="many classes")),
                 ic.below(0.5)),),
        figure="found", ours=("from 40 % to 90 % in less than half of the time before", *REDUCED), afterwards=SCOUTED,
    ),
    ic.Statement(
        "induction", "Section 3", "It is an induction head: a label looks at its item, the query at its class.",
        (ic.Part("a label's attention on the token before", ic.measured("training", "looks").sel(data="many classes")
                 .last(), ic.above(0.5), ic.UNIT),
         ic.Part("the query's attention on labels of its class", ic.measured("training", "same")
                 .sel(data="many classes").last(), ic.above(0.8), ic.UNIT)),
        figure="found", ours=REDUCED, afterwards=SCOUTED,
    ),
]  # fmt: skip

printed = {
    "abrupt": Printed("In-context learning (ICL) is driven by the abrupt emergence of an induction head", "Abstract")
}
unstated = (
    ic.Unstated("logit_speed", ic.Between(0.1, 1.0, log=True), "", "of the three logits against the MLP; ours"),
    ic.Unstated("initial_scale", ic.Between(0.05, 0.3, log=True), "", "where the three logits begin; ours"),
    ic.Unstated("deviation", ic.Between(0.1, 0.4), "ε", "the usual variation within classes"),
    ic.Unstated("step_size", ic.Between(0.1, 0.5, log=True), "η", "not verified"),
)


def found(results, settings):
    """Accuracy in context and in weights along training, and the induction head."""
    head = {
        "label on its item": ic.measured("training", "looks"),
        "query on its class": ic.measured("training", "same"),
    }
    shown = {name: value.sel(data="many classes") for name, value in head.items()}
    options = {"dots": False, "bounds": ic.UNIT, "limits": (-0.03, 1.03)}
    return ic.picture(
        results,
        ic.Lines("In context: new classes", context, "step", by="data", y="accuracy", **options),
        ic.Lines("In weights: class not shown", weights, "step", by="data", y="accuracy", **options),
        ic.Lines("Induction head, many classes", shown, "step", y="attention", **options),
    )  # fmt: skip


figures = {"found": found}

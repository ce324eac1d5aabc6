"""Random settings of every world and every model, valid and invalid, for the property tests.

Settings that decide shapes come from a short list, so that few programs are compiled; all others are drawn freely.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from iclab.losses import cross_entropy, hinge, regression, squared
from iclab.models.chain_transformer import ChainTransformerSettings
from iclab.models.gpt2 import GPT2Settings
from iclab.models.gru import GRUSettings
from iclab.models.linear_transformer import LinearTransformerSettings, Residual
from iclab.models.mamba import MambaSettings
from iclab.models.mechanisms import Mechanism
from iclab.models.mixers import MixerSettings
from iclab.models.residual_transformer import ResidualTransformerSettings
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.models.zoo import MECHANISMS
from iclab.optimisation import Cosine, Training
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.concepts import Concepts, Kind, orthonormal_concepts
from iclab.worlds.markov import Markov, Prior
from iclab.worlds.outliers import LabelRule, Outliers, Placement
from iclab.worlds.reasoning import Mode, Reasoning
from iclab.worlds.recall import Recall
from iclab.worlds.regression import Regression
from iclab.worlds.tasks import all_tasks, cyclic_tasks
from iclab.worlds.transitions import for_steps

NOT_FINITE = (float("nan"), float("inf"), -float("inf"))
WRONG = {  # values that a setting of this kind must refuse
    "fraction": (-0.1, 1.1, *NOT_FINITE),
    "below one": (-0.1, 1.0, *NOT_FINITE),
    "size": (0, -3),
    "positive": (0.0, -1.0, *NOT_FINITE),
    "not negative": (-1.0, *NOT_FINITE),
    "finite": NOT_FINITE,
}


def floats(low, high):
    return st.floats(low, high)


@dataclasses.dataclass(frozen=True)
class Maker:
    """`valid(shape)` draws settings, `make(**settings)` builds, `kinds` says what of them can be wrong and how."""

    make: Callable[..., Any]
    valid: Callable[..., st.SearchStrategy]
    kinds: dict[str, str]
    shapes: tuple[dict[str, Any], ...]
    loss: Any = None


@dataclasses.dataclass(frozen=True)
class Setup:
    """A drawn world or model: its settings, and what builds it."""

    maker: Maker = dataclasses.field(repr=False)
    settings: dict[str, Any]

    def build(self):
        return self.maker.make(**self.settings)


def make_classification(
    *, dimension, relevant, irrelevant, outlier_patterns, labels, noisy, strength, basis_seed, tasks, shifts, fraction=None,
    magnitude=None, rule=LabelRule.flip, target_label=1.0, placement=Placement.random, exact=False, embedding=1.0, **more,
):  # fmt: skip
    patterns = orthogonal_patterns(
        dimension, relevant, irrelevant, strength, outliers=outlier_patterns, basis_seed=basis_seed
    )
    own = Outliers(
        fraction, magnitude, rule, target_label=target_label, placement=placement, exact=exact, stackable=True
    )
    cyclic = cyclic_tasks(relevant, shifts)
    return Classification(
        patterns, all_tasks(relevant) if tasks == "all" else cyclic, noisy=noisy,
        outliers=own if outlier_patterns else None, label_embedding=np.full(labels, embedding), **more,
    )  # fmt: skip


@st.composite
def valid_classification(draw, shape):
    length = draw(st.integers(1, shape["maximum_length"]))
    ranges = [tuple(sorted((draw(floats(-2, 2)), draw(floats(-2, 2))))) for _ in range(2)]
    return shape | {
        "strength": draw(floats(0.01, 3)), "basis_seed": draw(st.none() | st.integers(0, 9)),
        "tasks": draw(st.sampled_from(("all", "cyclic"))), "shifts": draw(st.integers(1, shape["relevant"] - 1)),
        "matching_fraction": 1.0 if shape["relevant"] == 2 else draw(floats(0, 1)),
        "context_length": length, "shortest_length": draw(st.none() | st.integers(1, length)),
        "relevant_range": ranges[0], "irrelevant_range": ranges[1], "noise_norm": draw(floats(0, 3)) if shape["noisy"] else 0.0,
        "embedding": draw(floats(-3, 3)), "fraction": draw(floats(0, 0.99)), "magnitude": draw(floats(0, 5)),
        "rule": draw(st.sampled_from(LabelRule)), "target_label": draw(st.sampled_from((-1.0, 1.0))),
        "placement": draw(st.sampled_from(Placement)), "exact": draw(st.booleans()),
    }  # fmt: skip


PLAIN = {
    "dimension": 8,
    "relevant": 4,
    "irrelevant": 3,
    "outlier_patterns": 0,
    "labels": 1,
    "noisy": False,
    "maximum_length": 6,
}
CLASSIFICATION = Maker(
    make_classification, valid_classification,
    {"dimension": "size", "relevant": "size", "irrelevant": "size", "strength": "positive", "matching_fraction": "fraction",
     "context_length": "size", "shortest_length": "size", "noise_norm": "not negative", "embedding": "finite",
     "shifts": "size"},
    (PLAIN, PLAIN | {"noisy": True, "dimension": 5, "relevant": 2},
     PLAIN | {"dimension": 13, "relevant": 7, "maximum_length": 1}),
    hinge,
)  # fmt: skip
SEVERAL_LABELS = dataclasses.replace(
    CLASSIFICATION, shapes=(PLAIN | {"labels": 3}, PLAIN | {"labels": 2, "noisy": True})
)
OUTLIERS = dataclasses.replace(
    CLASSIFICATION,
    kinds=CLASSIFICATION.kinds | {"fraction": "below one", "magnitude": "not negative", "target_label": "finite"},
    shapes=(PLAIN | {"outlier_patterns": 1}, PLAIN | {"outlier_patterns": 2, "dimension": 9, "noisy": True}),
)


def make_reasoning(*, dimension, patterns, basis_seed, right, share, steps, **more):
    rows = orthogonal_patterns(dimension, patterns, 1, 1.0, basis_seed=basis_seed).relevant
    transitions = None
    if right is not None:
        low, high = max(1e-6, 1 - (1 - right) / right), 1 - (1 - right) / ((patterns - 1) * right)
        transitions = for_steps(right**steps, low + share * (high - low), steps, patterns)
    return Reasoning(rows, steps=steps, transitions=transitions, **more)


@st.composite
def valid_reasoning(draw, shape):
    length = draw(st.integers(1, shape["maximum_length"]))
    return shape | {
        "basis_seed": draw(st.none() | st.integers(0, 9)), "context_length": length,
        "matching_fraction": draw(floats(0.51 / length, 1)), "right": draw(st.none() | floats(0.5, 0.99)),
        "share": draw(floats(0.01, 0.99)), "mode": draw(st.sampled_from(Mode)),
        "noise_norm": draw(floats(0.01, 3)) if shape["noisy"] else 0.0,
    } | {"noisy": None}  # fmt: skip


def without_noisy(**settings):
    return make_reasoning(**{name: value for name, value in settings.items() if name != "noisy"})


STEPS = {"dimension": 6, "patterns": 4, "steps": 2, "maximum_length": 5, "noisy": False}
REASONING = Maker(
    without_noisy, valid_reasoning,
    {"dimension": "size", "patterns": "size", "steps": "size", "matching_fraction": "fraction", "context_length": "size",
     "noise_norm": "not negative"},
    (STEPS, STEPS | {"noisy": True, "steps": 3}, STEPS | {"steps": 1, "patterns": 5, "maximum_length": 1}), squared,
)  # fmt: skip


def make_concepts(*, dimension, concepts_, common, basis_seed, **more):
    return Concepts(*orthonormal_concepts(dimension, concepts_, common, basis_seed), **more)


@st.composite
def valid_concepts(draw, shape):
    return shape | {
        "basis_seed": draw(st.none() | st.integers(0, 9)), "pairs": draw(st.integers(1, shape["maximum_pairs"])),
        "cotasks": draw(st.integers(1, shape["concepts_"])), "noise_scale": draw(floats(0, 2)),
    }  # fmt: skip


WORDS = {"dimension": 10, "concepts_": 3, "common": 4, "kind": Kind.icl, "maximum_pairs": 4, "common_length": 2}
CONCEPTS = Maker(
    make_concepts, valid_concepts,
    {"dimension": "size", "concepts_": "size", "common": "size", "pairs": "size", "cotasks": "size", "common_length": "size",
     "noise_scale": "not negative"},
    (WORDS, WORDS | {"kind": Kind.qa}, WORDS | {"kind": Kind.qa_icl, "maximum_pairs": 1}), cross_entropy,
)  # fmt: skip


@st.composite
def valid_regression(draw, shape):
    numbers = {name: draw(floats(0, 3)) for name in ("covariance", "query_covariance", "task_covariance", "noise")}
    return shape | numbers | {"length": draw(st.integers(1, shape["maximum_length"])), "task_mean": draw(floats(-2, 2))}


NUMBERS = {"dimension": 5, "maximum_length": 6}
REGRESSION = Maker(
    Regression, valid_regression,
    {"dimension": "size", "length": "size", "covariance": "not negative", "query_covariance": "not negative",
     "task_covariance": "not negative", "task_mean": "finite", "noise": "not negative"},
    (NUMBERS, NUMBERS | {"dimension": 2, "maximum_length": 1}), regression,
)  # fmt: skip


def valid_recall(shape):
    return st.integers(1, shape["maximum_pairs"]).map(lambda pairs: shape | {"pairs": pairs})


PAIRED = {"keys": 6, "values": 4, "maximum_pairs": 5, "joined": False}
RECALL = Maker(
    Recall, valid_recall, dict.fromkeys(("keys", "values", "pairs", "maximum_pairs"), "size"),
    (PAIRED, PAIRED | {"joined": True}, PAIRED | {"keys": 1, "maximum_pairs": 1}), cross_entropy,
)  # fmt: skip


@st.composite
def valid_markov(draw, shape):
    length = draw(st.integers(2, shape["maximum_length"]))
    return shape | {"length": length, "shortest_length": draw(st.none() | st.integers(2, length))}


CHAIN = {"states": 3, "maximum_length": 8, "concentration": 1.0, "prior": Prior.rows}
MARKOV = Maker(
    Markov, valid_markov,
    {"states": "size", "length": "size", "shortest_length": "size", "concentration": "positive"},
    (CHAIN, CHAIN | {"concentration": 0.3}, CHAIN | {"prior": Prior.doubly_stochastic, "maximum_length": 2}), cross_entropy,
)  # fmt: skip

WORLDS = {
    "classification": CLASSIFICATION, "several labels": SEVERAL_LABELS, "outliers": OUTLIERS, "reasoning": REASONING,
    "concepts": CONCEPTS, "regression": REGRESSION, "recall": RECALL, "markov": MARKOV,
}  # fmt: skip


def plain(names, low=-0.5, high=0.5):
    """Drawn settings of a model: all floats between two limits."""

    def valid(shape):
        return st.fixed_dictionaries({name: floats(low, high) for name in names}).map(lambda drawn: shape | drawn)

    return valid


def scaled(make, sizes, shapes):
    """A model with one scale and some sizes."""
    return Maker(make, plain(["initial_scale"]), {"initial_scale": "finite"} | dict.fromkeys(sizes, "size"), shapes)


MODELS = {
    "softmax": scaled(SoftmaxTransformerSettings, ("key_width", "value_width", "neurons"),
                      ({"key_width": 32, "value_width": 32, "neurons": 6},
                       {"key_width": 40, "value_width": 33, "neurons": 1, "attend_to_query": True, "readout_power": 0.5})),
    "linear": scaled(LinearTransformerSettings, ("depth",),
                     ({"depth": 1}, {"depth": 2, "residual": Residual.full, "mean": True},
                      {"depth": 2, "causal": True, "residual": Residual.none})),
    "mamba": scaled(MambaSettings, ("depth",), ({"depth": 1}, {"depth": 2, "residual": Residual.full})),
    "chain": Maker(ChainTransformerSettings, plain(["initial_scale"], 0), {"initial_scale": "not negative", "width": "size"},
                   ({"separate": False}, {"separate": True, "width": 5})),
    "residual": Maker(ResidualTransformerSettings, plain(["attention_scale", "value_scale"], 1e-6, 1),
                      {"attention_scale": "finite", "value_scale": "finite"}, ({},)),
    "gpt2": scaled(GPT2Settings, ("depth", "heads", "width", "positions"),
                   ({"depth": 1, "heads": 2, "width": 4, "positions": 32},
                    {"depth": 2, "heads": 1, "width": 3, "positions": 40})),
}  # fmt: skip

# Of every mixer that is no model of its own: one layer, and a stack with neurons. `spare` is a mechanism of no name.
MIXED = {name: one for name, one in MECHANISMS.items() if name not in ("linear", "mamba")}
MIXED |= {"spare": Mechanism(decay="vector", gate="own", delta="key", normaliser="mean")}
MODELS |= {
    f"{name} mixer": scaled(MixerSettings, ("depth",), (
        {"depth": 1, "mechanism": one},
        {"depth": 2, "mechanism": one, "residual": Residual.full, "neurons": 3},
    ))
    for name, one in MIXED.items()
}  # fmt: skip
MODELS["gru"] = scaled(GRUSettings, ("depth", "width"), ({"depth": 1, "width": 4}, {"depth": 2, "width": 3}))


def make_training(*, warmup=None, total=None, **more):
    return Training(schedule=None if total is None else Cosine(warmup, total), **more)


TRAINING = Maker(
    make_training,
    lambda shape: st.fixed_dictionaries({"step_size": floats(1e-6, 1e-3), "weight_decay": floats(0, 1)}).map(shape.__or__),
    {"step_size": "positive", "batch": "size", "weight_decay": "finite"},
    ({"batch": 4}, {"batch": 3, "optimiser": "adamw", "total": 10.0, "warmup": 2.0},
     {"batch": 2, "fresh": False, "optimiser": "adam"}),
)  # fmt: skip


@st.composite
def setups(draw, maker):
    """Valid settings."""
    return Setup(maker, draw(maker.valid(draw(st.sampled_from(maker.shapes)))))


@st.composite
def trainings(draw, makers, combinations, count):
    """So many valid settings of a world, a model and a training that are one compiled program together.

    Their shapes come in so many combinations.
    """
    number = draw(st.integers(0, combinations - 1))
    shapes = [maker.shapes[number % len(maker.shapes)] for maker in makers]
    one = st.tuples(*(maker.valid(shape) for maker, shape in zip(makers, shapes, strict=True)))
    drawn = draw(st.lists(one, min_size=count, max_size=count))
    return [tuple(Setup(maker, values) for maker, values in zip(makers, each, strict=True)) for each in drawn]


@st.composite
def wrong_setups(draw, maker):
    """Valid settings but for one, and its name."""
    setup = draw(setups(maker))
    name = draw(st.sampled_from(sorted(set(maker.kinds) & set(setup.settings))))
    return dataclasses.replace(
        setup, settings=setup.settings | {name: draw(st.sampled_from(WRONG[maker.kinds[name]]))}
    ), name

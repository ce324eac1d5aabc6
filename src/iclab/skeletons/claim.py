"""More matching examples, fewer mistakes: a claim of your own on a world and a model that are there."""

import dataclasses

import numpy as np

from iclab.authoring import (
    Check,
    Recipe,
    Training,
    above,
    below,
    claim,
    curve,
    errors,
    hinge,
    panels,
    require_fraction,
    trend,
)
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks

LENGTHS = (2, 4, 8, 16)  # of the test contexts


@dataclasses.dataclass(frozen=True)
class Settings:
    """Whatever stands here can be changed with --set and swept with --grid."""

    matching_fraction: float = 0.8  # of the examples that share a pattern with one of the task's two classes
    step_size: float = 1.0
    neurons: int = 40
    steps: int = 200
    prompts: int = 2000

    def __post_init__(self):
        """Refuse what makes no sense, in one sentence."""
        require_fraction("matching_fraction", self.matching_fraction)


settings = {
    "smoke": Settings(steps=10, prompts=250),  # does it run?
    "quick": Settings(),  # minutes on a laptop
    "paper": Settings(steps=1000, prompts=10_000),
}


def world(s, length):
    """Where prompts come from; all lengths are one compiled program."""
    return Classification(
        orthogonal_patterns(8, relevant=4, irrelevant=4, strength=3.0), cyclic_tasks(4), label_embedding=np.array([1.0]),
        matching_fraction=s.matching_fraction, context_length=length, maximum_length=max(LENGTHS),
    )  # fmt: skip


def experiment(lab):
    """Train one model per seed on contexts of 16 examples, test it on shorter ones."""
    s = lab.settings
    model = SoftmaxTransformerSettings(initial_scale=0.1, key_width=12, value_width=12, neurons=s.neurons)
    trained = lab.train("main", Recipe(world(s, 16), model, Training(s.step_size, batch=32)), s.steps, loss=hinge)
    tested = lab.evaluate(
        trained, "test", errors(hinge), lambda setting, seed, length: world(s, length), {"length": LENGTHS}, s.prompts
    )
    return tested.assign(training_loss=trained.history["training_loss"])


def lengths(results, settings):
    """The error against the length of the context, and the loss along training."""
    data = results["experiment"].squeeze("setting")
    figure, axes = panels(2, ("Error", "Training"))
    curve(axes[0], data["error"], "length", label="0-1 error", bounds=(0, 1))
    curve(axes[1], data["training_loss"], "step", label="training loss", colour=1)
    axes[0].set_xlabel("examples in the context")
    axes[1].set_xlabel("training step")
    return figure


figures = {"lengths": lengths}

# A claim is a statement with at least one check: a number per seed, and a rule that is written before the first run.
# The
# verdict compares the 95 % interval over seeds with the rule.
claims = [
    claim(
        "learns",
        "With 16 examples the model makes hardly any mistakes.",
        Check("0-1 error with 16 examples", below(0.05), lambda r: r["experiment"]["error"].sel(length=16), (0, 1)),
        source="my note, equation 1",
        figure="lengths",
        unstated=("'hardly any': below 5 %",),
    ),
    claim(
        "more-is-better",
        "The longer the context, the fewer mistakes.",
        Check(
            "rank correlation of error and length",
            below(-0.5),
            lambda r: trend(r["experiment"]["error"], "length"),
            (-1, 1),
        ),
        Check(
            "error with 2 examples minus error with 16",
            above(0.05),
            lambda r: r["experiment"]["error"].sel(length=2) - r["experiment"]["error"].sel(length=16),
        ),
        figure="lengths",
    ),
]

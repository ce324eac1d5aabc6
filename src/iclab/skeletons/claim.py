"""More matching examples, fewer mistakes: your own statement about a world and a model of iclab."""

import dataclasses

import numpy as np

from iclab.authoring import (
    SIGNED,
    UNIT,
    Lines,
    Part,
    Recipe,
    Statement,
    Training,
    apply,
    below,
    errors,
    hinge,
    larger,
    measured,
    picture,
    require_settings,
    smaller,
    trend,
)
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks

LENGTHS = (2, 4, 8, 16)  # of the test contexts


@dataclasses.dataclass(frozen=True)
class Settings:
    """Every setting here can be changed with --set and swept with --grid."""

    matching_fraction: float = 0.8  # share of the examples with a pattern of one of the task's two classes
    step_size: float = 1.0
    neurons: int = 40
    steps: int = 200
    prompts: int = 2000

    def __post_init__(self):
        """Refuse settings that make no sense, in one sentence."""
        require_settings(self, fractions=("matching_fraction",))


settings = {
    "smoke": Settings(steps=10, prompts=250),  # does it run?
    "quick": Settings(),  # minutes on a laptop
    "paper": Settings(steps=1000, prompts=10_000),
}


def world(s, length):
    """The source of prompts; all lengths share one compiled program."""
    return Classification(
        orthogonal_patterns(8, relevant=4, irrelevant=4, strength=3.0), cyclic_tasks(4),
        label_embedding=np.array([1.0]), matching_fraction=s.matching_fraction,
        context_length=length, maximum_length=max(LENGTHS),
    )  # fmt: skip


def experiment(lab):
    """Train one model per seed on contexts of 16 examples, test it on shorter ones."""
    s = lab.settings
    model = SoftmaxTransformerSettings(initial_scale=0.1, key_width=12, value_width=12, neurons=s.neurons)
    trained = lab.train("main", Recipe(world(s, 16), model, Training(s.step_size, batch=32)), s.steps, loss=hinge)
    tested = lab.evaluate(
        trained, "test", errors(hinge), lambda setting, seed, length: world(s, length), {"length": LENGTHS}, s.prompts
    )
    return tested.assign(training_loss=trained.history["training_loss"]).squeeze("setting")


error = measured("experiment", "error")  # a description, not a number: it is evaluated when the run is judged


def lengths(results, settings):
    """The error against the length of the context, and the loss along training."""
    loss = measured("experiment", "training_loss")
    return picture(
        results,
        Lines("Error", error, "length", x="examples in the context", bounds=UNIT, rules={"5 %": 0.05}),
        Lines("Training", loss, "step", dots=False),
    )


figures = {"lengths": lengths}

# A statement has at least one part: a number per seed, and a rule that you write before the first run. The answer
# compares the 95 % interval over seeds with the rule, and applies the same rule to untrained models.
statements = [
    Statement(
        "learns",
        "my note, equation 1",
        "With 16 examples the model makes hardly any mistakes.",
        (Part("0-1 error with 16 examples", error.sel(length=16), below(0.05), UNIT),),
        figure="lengths",
        ours=("'hardly any': below 5 %",),
    ),
    Statement(
        "more-is-better",
        "my note",
        "The longer the context, the fewer mistakes.",
        (
            Part("rank correlation of error and length", apply(trend, error, "length"), smaller(0.5), SIGNED),
            Part("error with 2 examples minus error with 16", error.sel(length=2) - error.sel(length=16), larger(0.05)),
        ),
        figure="lengths",
    ),
]

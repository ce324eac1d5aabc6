"""How sharp does attention become? Your own probe of a world and a model of iclab."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from iclab.authoring import (
    SIGNED,
    Part,
    Recipe,
    Statement,
    Training,
    apply,
    below,
    expect,
    hinge,
    measured,
    smaller,
    trend,
)
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks


def sharpness(model, prompt):
    """A measure maps a model and ONE prompt to named numbers: here the entropy of attention over the present tokens.

    The name of an array also names its axes: {"attention@context": trace.attention}.
    """
    _, trace = model(prompt)
    share = jnp.where(prompt.present[:-1], trace.attention, 0.0)
    entropy = -jnp.sum(jnp.where(share > 0, share * jnp.log(jnp.where(share > 0, share, 1.0)), 0.0))
    return {"entropy": entropy, "on_pattern": jnp.sum(jnp.where(prompt.matches_query(), share, 0.0))}


def observe(model, member, key):
    """An observer looks at the model while it trains: here, at the measure's mean over 500 fresh prompts."""
    return expect(sharpness, model, member.world, key, batches=2)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Every setting here can be changed with --set and swept with --grid."""

    matching_fraction: float = 0.8
    step_size: float = 1.0
    steps: int = 200


settings = {"smoke": Settings(steps=5), "quick": Settings(), "paper": Settings(steps=1000)}


def world(s):
    """Binary classification by one of four patterns."""
    return Classification(
        orthogonal_patterns(8, relevant=4, irrelevant=4, strength=3.0), cyclic_tasks(4),
        label_embedding=np.array([1.0]), matching_fraction=s.matching_fraction, context_length=16,
    )  # fmt: skip


def training(lab):
    """One training per seed, observed at 20 moments."""
    s = lab.settings
    model = SoftmaxTransformerSettings(initial_scale=0.1, key_width=12, value_width=12, neurons=40)
    return lab.train(
        "main", Recipe(world(s), model, Training(s.step_size, batch=32)), s.steps, (observe,), hinge
    ).history


experiments = {"training": training}

entropy = measured("training", "entropy")

statements = [
    Statement(
        "sharpens",
        "my note",
        "Attention leaves the uniform distribution over 16 examples, of entropy log 16, for the query's own pattern.",
        (
            Part("entropy at the end", entropy.last(), below(float(np.log(16)) - 0.5)),
            Part("rank correlation of entropy and time", apply(trend, entropy, "step"), smaller(0.5), SIGNED),
        ),
    )
]

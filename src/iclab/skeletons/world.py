"""Linear separators in context: your own world with a model of iclab."""

import dataclasses

import jax
import jax.numpy as jnp

from iclab.authoring import (
    UNIT,
    BaseWorld,
    Part,
    Recipe,
    Statement,
    Training,
    below,
    errors,
    hinge,
    make_prompt,
    measured,
    require,
    static,
)
from iclab.models.linear_transformer import LinearTransformerSettings


class Separators(BaseWorld):
    """Inputs x in R^d with labels sign(wᵀx) of a random direction w; a share `noise` of the labels is flipped.

    `static` fields decide shapes. All others may differ between members of one compiled program, so sweeping them costs
    no compilation. Here this includes the number of examples: a shorter context is a longer one with tokens absent.
    """

    length: int = 20
    noise: float = 0.0
    dimension: int = static(5)
    longest: int = static(20)

    def __check_init__(self):
        """Refuse settings that make no sense, in one sentence. Runs when a world is built, not inside a program."""
        require(1 <= self.length <= self.longest, f"length is {self.length}; it must lie in 1..{self.longest}.")
        require(0 <= self.noise <= 1, f"noise is {self.noise}; it must lie in [0, 1].")

    def sample(self, key, index):
        """One prompt, drawn from `key` alone. The query is the last token and shows no label."""
        direction_key, input_key, flip_key = jax.random.split(key, 3)
        direction = jax.random.normal(direction_key, (self.dimension,))
        inputs = jax.random.normal(input_key, (self.longest + 1, self.dimension))
        truth = jnp.where(inputs @ direction > 0, 1.0, -1.0)
        flipped = jax.random.uniform(flip_key, (self.longest,)) < self.noise
        labels = jnp.where(flipped, -truth[:-1], truth[:-1])
        tokens = jnp.column_stack([inputs, jnp.append(labels, 0.0)])
        present = jnp.arange(self.longest) < self.length
        return make_prompt(tokens, target=truth[-1], label=labels, present=present)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Every setting here can be changed with --set and swept with --grid."""

    noise: float = 0.0
    length: int = 20
    step_size: float = 0.05
    steps: int = 300
    prompts: int = 2000


settings = {"smoke": Settings(steps=5, prompts=250), "quick": Settings(), "paper": Settings(steps=3000, prompts=20_000)}


def experiment(lab):
    """Train one linear Transformer per seed, test it on contexts of three lengths."""
    s = lab.settings
    model = LinearTransformerSettings(initial_scale=0.3, mean=True)
    trained = lab.train(
        "main", Recipe(Separators(s.length, s.noise), model, Training(s.step_size)), s.steps, loss=hinge
    )
    lengths = {"length": (5, 10, 20)}
    return lab.evaluate(
        trained, "test", errors(hinge), lambda setting, seed, length: Separators(length, s.noise), lengths, s.prompts
    )


statements = [
    Statement(
        "learns",
        "my note",
        "One layer of linear attention finds the separator: with 20 examples it errs on fewer than one query in four.",
        (Part("0-1 error with 20 examples", measured("experiment", "error").sel(length=20), below(0.25), UNIT),),
    )
]

"""Somebody (2030): describe your paper in this first line. `iclab list` and the page show it.

Say here what the paper studies, give its equations and letters, say which word of the code is which letter, what you
left out, and where sizes are smaller than in print. The example: pairs of a key and a value, then a key; one layer of
attention finds its value at a width d that does not grow with the number of pairs D. Replace all of it.

    F = Σ_i softmax_i(e_q(query) · e_k(i)) e_v(i)

| word | letter |
|---|---|
| width | d |
| pairs | D |
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp

import iclab.authoring as ic
from iclab.theorems import SymbolsBase, Theorem, at_least, symbol
from iclab.worlds.recall import Recall

title = "A paper of yours"
citation = "A. Uthor. Some Conference, 2030."
equation = r"F = \sum_i \mathrm{softmax}_i\big(e_q(query) \cdot e_k(i)\big) \, e_v(i)"
explore = True  # the page shows the first training in detail

PAIRS = (2, 4, 8)


@dataclasses.dataclass(frozen=True)
class Settings:
    """The paper's settings. Every setting here can be changed with --set and swept with --grid."""

    width: int = 8
    words: int = 16
    step_size: float = 0.03
    steps: int = 400
    prompts: int = 2000

    def __post_init__(self):
        """Refuse settings that make no sense, in one sentence."""
        ic.require_settings(self)


settings = {
    "smoke": Settings(steps=5, prompts=250),  # does it run?
    "quick": Settings(),  # minutes on a laptop
    "paper": Settings(width=64, words=256, steps=5000, prompts=20_000),  # the sizes in print, on a GPU
}
unstated = (  # what the paper does not state: a setting with other plausible values, or a sentence
    ic.Unstated("step_size", ic.Between(0.01, 0.05, log=True), "η", "the paper says 'tuned'"),
    "keys are drawn without repetition",
)


class Attention(eqx.Module):
    """One layer; its arrays are trained."""

    keys: jax.Array
    queries: jax.Array
    values: jax.Array

    def __call__(self, prompt):
        """Scores of all values for ONE prompt, and a trace of what is worth a look."""
        tokens = prompt.tokens()
        scores = (tokens @ self.keys) @ (tokens[-1] @ self.queries)
        attention = jax.nn.softmax(jnp.where(prompt.shown(), scores, -jnp.inf))  # neither padding nor the query
        return attention @ (tokens @ self.values), {"attention": attention[:-1]}


class AttentionSettings(eqx.Module):
    """Sizes and initialisation; `init` makes the model that a world needs."""

    width: int = ic.static(8)

    def init(self, key, world):
        """Gaussian tables."""
        shapes = ((world.columns, self.width), (world.columns, self.width), (world.columns, world.values))
        return Attention(*(0.3 * jax.random.normal(*one) for one in zip(jax.random.split(key, 3), shapes, strict=True)))


def world(s, pairs):
    """The source of prompts; all numbers of pairs share one compiled program."""
    return Recall(s.words, s.words, pairs, maximum_pairs=max(PAIRS), joined=True)


def recall(lab):
    """Train with the most pairs, test with fewer."""
    s = lab.settings
    train = ic.Training(s.step_size, batch=64, optimiser="adam")
    recipe = ic.Recipe(world(s, max(PAIRS)), AttentionSettings(s.width), train)
    trained = lab.train("main", recipe, s.steps, loss=ic.cross_entropy)
    at = lambda setting, seed, pairs: world(s, pairs)  # noqa: E731
    tested = lab.evaluate(trained, "test", ic.errors(ic.cross_entropy), at, {"pairs": PAIRS}, s.prompts)
    return tested.assign(training_loss=trained.history["training_loss"]).squeeze("setting")


experiments = {"recall": recall}


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    """The numbers in the theorems, with the paper's letters."""

    width: float = symbol("d")
    pairs: float = symbol("D")


def symbols(s):
    """Their values at these settings."""
    return Symbols(s.width, max(PAIRS))


def theorems(s, constant):
    """The page shows a theorem's conditions beside the statement of the same name."""
    wide = at_least("width", "d >= log₂ D", s.width, constant * max(1.0, float(jnp.log2(s.pairs))))
    return [Theorem("thm1", "Theorem 1", "Attention of logarithmic width recalls.", (wide,))]


error = ic.measured("recall", "error")  # a description, not a number: it is evaluated when the run is judged

# Write rules before the first run, and say in `afterwards` what you changed later. If the sentence leaves open what
# decides the answer, make it a reading: here, the width.
statements = [
    ic.Statement(
        "thm1",
        "Theorem 1",
        "A layer of attention recalls any number of pairs.",
        (ic.Part("largest 0-1 error over numbers of pairs", error.max("pairs"), ic.suffices(0.05), ic.UNIT),),
        readings=(
            ic.Reading("", "d = 8"),
            ic.Reading("narrow", "d = 4, which the theorem allows as well", changes={"width": 4}),
        ),
        figure="recall",
        ours=("'recalls': fewer than 5 % errors",),
    ),
    ic.Statement(
        "fig1",
        "Figure 1",
        "More pairs do not make it harder.",
        (ic.Part("error with 8 pairs minus with 2", error.sel(pairs=8) - error.sel(pairs=2), ic.below(0.05)),),
        figure="recall",
        architecture="an untrained layer is wrong everywhere, whatever the number of pairs",
    ),
]


def draw(results, settings):
    """The error against the number of pairs, and the loss along training."""
    return ic.picture(
        results,
        ic.Lines("Recall", error, "pairs", x="pairs D", bounds=ic.UNIT, rules={"5 %": 0.05}),
        ic.Lines("Training", ic.measured("recall", "training_loss"), "step", dots=False),
    )


figures = {"recall": draw}

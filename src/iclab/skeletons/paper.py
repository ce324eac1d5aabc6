"""Somebody (2030): a paper of yours, told in its first line. This is what `iclab list` and the page call it.

Say here what the paper studies, give its equations with its letters, which word of the code is which letter, what was
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
explore = True  # the page looks into the first training

PAIRS = (2, 4, 8)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the paper sets; whatever stands here can be changed with --set and swept with --grid."""

    width: int = 8
    words: int = 16
    step_size: float = 0.03
    steps: int = 400
    prompts: int = 2000

    def __post_init__(self):
        """Refuse what makes no sense, in one sentence."""
        ic.require_settings(self)


settings = {
    "smoke": Settings(steps=5, prompts=250),  # does it run?
    "quick": Settings(),  # minutes on a laptop
    "paper": Settings(width=64, words=256, steps=5000, prompts=20_000),  # the sizes in print, on a GPU
}
unstated = (  # what the paper does not print: a setting with the values that are as plausible, or a sentence
    ic.Unstated("step_size", ic.Between(0.01, 0.05, log=True), "η", "the paper says 'tuned'"),
    "keys are drawn without repetition",
)


class Attention(eqx.Module):
    """One layer; its arrays are trained."""

    keys: jax.Array
    queries: jax.Array
    values: jax.Array

    def __call__(self, prompt):
        """Scores of all values on ONE prompt, and a trace of what is worth looking at."""
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
    """Where prompts come from; all numbers of pairs are one compiled program."""
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
    """The numbers that the theorems speak of, with the paper's letters."""

    width: float = symbol("d")
    pairs: float = symbol("D")


def symbols(s):
    """Their values at these settings."""
    return Symbols(s.width, max(PAIRS))


def theorems(s, constant):
    """Conditions stand beside the answer of the statement that has the theorem's name."""
    wide = at_least("width", "d >= log₂ D", s.width, constant * max(1.0, float(jnp.log2(s.pairs))))
    return [Theorem("thm1", "Theorem 1", "Attention of logarithmic width recalls.", (wide,))]


error = ic.measured("recall", "error")  # a description, not a number: it is evaluated when the run is judged

# Rules are written before the first run; what is changed afterwards is said in `afterwards`. Whatever the sentence
# leaves open and what decides is a reading: here, how wide.
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

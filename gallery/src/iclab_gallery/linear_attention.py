"""Trained Transformers learn linear models in context (Zhang, Frei, Bartlett; JMLR 25, 2024; arXiv 2306.09927).

One layer of linear self-attention is trained on linear regression: x_i ~ N(0, Λ), w ~ N(0, I), y_i = wᵀx_i. With the
prompt as columns E = (x_1 ... x_N x_query; y_1 ... y_N 0) it answers with the last entry of W_PV (E Eᵀ/N) W_KQ E. The
other entries of that matrix are never looked at. With Γ = (1 + 1/N) Λ + tr(Λ)/N I the global minimum is

    W_PV = tr(Γ⁻²)^¼ (0 0; 0 1),   W_KQ = tr(Γ⁻²)^-¼ (Γ⁻¹ 0; 0 0),   that is   ŷ = x_queryᵀ Γ⁻¹ (1/M) Σ_i y_i x_i,

and for test contexts N(0, Σ), a query with covariance Σ_q and a task with E wwᵀ = T its error is, exactly,

    R(M) = tr Σ_q (T - BΣT - TΣB + B ((1 + 1/M) ΣTΣ + tr(TΣ)/M Σ) B),   B = Γ⁻¹.

| word | letter |
|---|---|
| train_length, length | N, M |
| initial_scale | σ: W_PV = σ (0 0; 0 1), W_KQ = σ (ΘΘᵀ 0; 0 0), the Frobenius norm of ΘΘᵀ is 1 |
| decay | λ_i = i^-decay: Λ is any covariance in the paper |

Left out: random covariances, large Transformers. Numbers of theorems and σ's condition: not checked against the print.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import iclab.authoring as ic
from iclab.statements import Printed
from iclab.theorems import SymbolsBase, Theorem, below, symbol
from iclab.worlds.regression import Regression
from iclab_gallery.closed_forms import flow, gamma, minimiser, risk, start

title = "Trained Transformers learn linear models in context"
citation = "Ruiqi Zhang, Spencer Frei, Peter L. Bartlett. Journal of Machine Learning Research 25(49), 2024."
equation = r"\hat y = \Big[ W_{PV} \, \tfrac{1}{N} E E^\top W_{KQ} \, E \Big]_{d+1,\, N+1}"
explore = True

TRAIN_LENGTHS = (10, 20, 40, 80)
LENGTHS = (5, 10, 20, 40, 80)
EXCEEDED = (0.25, 0.95, 4.0, 16.0)  # σ²‖Γ‖√d over 2, the largest value that Theorem 4.1 allows
SHIFTS = {"none": {}, "task": {"task_mean": 2.0, "task_covariance": 0.25}, "query": {"query_scale": 9.0},
          "covariates": {"scale": 4.0}}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of the world, σ, and how gradient flow is followed with fresh prompts."""

    dimension: int = 5
    train_length: int = 20
    decay: float = 0.5
    initial_scale: float = 0.3
    step_size: float = 0.03
    batch: int = 64
    steps: int = 1500
    prompts: int = 8000

    def __post_init__(self):
        """Refuse what has no meaning."""
        ic.require_settings(self, zero=("decay",))


settings = {
    "smoke": Settings(steps=20, batch=16, prompts=250),
    "quick": Settings(),
    "paper": Settings(step_size=0.01, batch=1024, steps=10_000, prompts=100_000),
}


def spectrum(s):
    """λ_1, ..., λ_d."""
    return np.arange(1, s.dimension + 1) ** -float(s.decay)


class Attention(eqx.Module):
    """The layer: the last row of W_PV, and the columns of W_KQ that meet the query's x."""

    projection: jax.Array
    weights: jax.Array

    def __call__(self, prompt):
        """ŷ, and the score of every example."""
        tokens = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)
        count = jnp.sum(prompt.present[:-1])
        scores = tokens @ (self.weights @ tokens[-1, :-1])
        return (tokens @ self.projection) @ scores / count, {"scores": scores[:-1] / count}


class AttentionSettings(eqx.Module):
    """The initialisation that the theorem states, with a Gaussian Θ."""

    initial_scale: float = 0.3

    def init(self, key, world):
        """W_PV = σ (0 0; 0 1), W_KQ = σ (ΘΘᵀ 0; 0 0)."""
        d = world.feature_columns
        theta = jax.random.normal(key, (d, d))
        weights = jnp.zeros((d + 1, d)).at[:d].set(theta @ theta.T / jnp.linalg.norm(theta @ theta.T))
        return Attention(self.initial_scale * jnp.zeros(d + 1).at[-1].set(1.0), self.initial_scale * weights)


def world(s, length, longest, scale=1.0, query_scale=None, **task):
    """Regression with this many examples; covariances are multiples of Λ."""
    own = scale * spectrum(s)
    asked = own if query_scale is None else query_scale * spectrum(s)
    return Regression(s.dimension, length, maximum_length=longest, covariance=own, query_covariance=asked, **task)


def recipe(s, length, longest):
    """SGD on fresh prompts, its step size falling to 0: gradient flow but for noise that dies out."""
    train = ic.Training(s.step_size, batch=s.batch, schedule=ic.Cosine(0.0, s.steps))
    return ic.Recipe(world(s, length, longest), AttentionSettings(s.initial_scale), train)


def look(model, member, key):
    """The weights themselves."""
    return {"projection@row": model.projection, "weights@row@column": model.weights}


def answered(history):
    """B, by the weights of a history."""
    blocks = history["weights"].isel(row=slice(0, -1)) * history["projection"].isel(row=-1)
    return np.swapaxes(blocks.transpose(..., "row", "column").values, -1, -2)


def training(lab):
    """Train at N, test at other lengths and under shifts, beside the closed form."""
    s, longest = lab.settings, max(LENGTHS)
    trained = lab.train("main", recipe(s, s.train_length, s.train_length), s.steps, (look,), ic.regression)
    history, eigenvalues = trained.history.squeeze("setting"), spectrum(s)
    wanted, found = np.diag(1 / gamma(eigenvalues, s.train_length)), answered(history)
    scale = minimiser(eigenvalues, s.train_length)[0][-1]
    at = lambda setting, seed, length, shift: world(s, length, longest, **SHIFTS[shift])  # noqa: E731
    dims = {"length": LENGTHS, "shift": tuple(SHIFTS)}
    tested = lab.evaluate(trained, "test", ic.errors(ic.regression), at, dims, s.prompts).squeeze("setting")
    along = history["weights"].dims[:2]
    return tested.assign(
        predicted=(tuple(dims), [[shifted_risk(s, length, shift) for shift in SHIFTS] for length in LENGTHS]),
        power=("shift", [shifted_risk(s, 1, shift, 0.0) for shift in SHIFTS]),
        off=(along, np.abs(found - wanted).max(axis=(-1, -2)) / wanted.max()),
        split_off=abs(history["projection"].isel(row=-1) / scale - 1),
        risk=(along, risk(found, s.train_length, np.diag(eigenvalues))),
    )


def shifted_risk(s, length, shift, size=1.0):
    """R(M) of the global minimum under a shift; of an answer of 0, which is E y², with size 0."""
    given, own = SHIFTS[shift], np.diag(spectrum(s))
    mean, spread = np.full(s.dimension, given.get("task_mean", 0.0)), given.get("task_covariance", 1.0)
    task, scale = spread * np.eye(s.dimension) + np.outer(mean, mean), given.get("scale", 1.0)
    answer = size * np.diag(1 / gamma(spectrum(s), s.train_length))
    return risk(answer, length, scale * own, given.get("query_scale", scale) * own, task)


def examples(lab):
    """Train with several numbers of examples; the error that is left when a test prompt has infinitely many."""
    s, longest = lab.settings, max(TRAIN_LENGTHS)
    recipes = {str(length): recipe(s, length, longest) for length in TRAIN_LENGTHS}
    trained = lab.train("examples", recipes, [0, s.steps], (look,), ic.regression)
    last = ic.swept(trained.history, "train_length", TRAIN_LENGTHS).isel(step=-1)
    floor = risk(answered(last), None, np.diag(spectrum(s)))
    return last.assign(floor=(("train_length", "seed"), floor))


def flows(lab):
    """Gradient flow in float64 from the stated initialisation, a Θ per seed, inside and outside of the condition."""
    s, eigenvalues = lab.settings, spectrum(lab.settings)
    scale, weights = minimiser(eigenvalues, s.train_length)
    wanted = np.append(scale[-1], weights[:-1].ravel())
    allowed = np.sqrt(2 / (gamma(eigenvalues, s.train_length).max() * np.sqrt(s.dimension)))

    def away(seed, exceeded):
        found = flow(eigenvalues, s.train_length, np.sqrt(exceeded) * allowed * start(s.dimension, seed))
        return np.abs(found - wanted).max()

    shape = len(lab.seeds), len(EXCEEDED)
    found = lab.outside(lambda: np.array([[away(seed, e) for e in EXCEEDED] for seed in lab.seeds]), shape)
    return xr.Dataset({"away": (("seed", "exceeded"), found)}, {"seed": list(lab.seeds), "exceeded": list(EXCEEDED)})


experiments = {"training": training, "examples": examples, "flows": flows}


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    """What the theorems speak of."""

    dimension: float = symbol("d")
    train_length: float = symbol("N")
    initial_scale: float = symbol("σ")
    largest: float = symbol("‖Γ‖")


def symbols(s):
    """The numbers at these settings."""
    return Symbols(s.dimension, s.train_length, s.initial_scale, float(gamma(spectrum(s), s.train_length).max()))


def theorems(s, constant):
    """Theorem 4.1's condition on the initialisation."""
    small = below("small start", "σ²‖Γ‖√d < 2", s.initial_scale**2 * s.largest * s.dimension**0.5, 2.0)
    return [Theorem("thm41", "Theorem 4.1", "Gradient flow finds the global minimum.", (small,))]


error, predicted = ic.measured("training", "squared_error"), ic.measured("training", "predicted")
relative = error / ic.measured("training", "power")
plain, theory, at_n = error.sel(shift="none"), predicted.sel(shift="none"), relative.sel(length=20)
away, floor = ic.measured("flows", "away"), ic.measured("examples", "floor")
FALLS, FLOOR = ic.Scaling("length", -1, "M", "both"), ic.Scaling("train_length", -2, "N")


def above_limit(found, expected):
    """The measured error minus the limit of R(M) = a + b/M for M → ∞."""
    first, last = (expected.sel(length=length) for length in (LENGTHS[0], LENGTHS[-1]))
    slope = (first - last) / (1 / LENGTHS[0] - 1 / LENGTHS[-1])
    return found - (last - slope / LENGTHS[-1])


falling = ic.apply(above_limit, plain, theory)
SPLIT = (
    "After SGD the product is compared. Gradient flow keeps W_PV² = ‖W_KQ‖²; in a first try the noise of SGD moved "
    "that split by a half while the product agreed, and the rule on single weights became one on the product. Errors "
    "were first compared at the worst of all M and shifts, which is mostly sampling noise; now on average."
)

statements = [
    ic.Statement(
        "thm41", "Theorem 4.1",
        "From the stated initialisation, gradient flow converges to the global minimum that the closed form gives.",
        (
            ic.Part("largest difference of a weight, gradient flow in float64",
                    away.sel(exceeded=slice(0, 1)).max("exceeded"), ic.identical(1e-6)),
            ic.Part("largest relative difference of W_PV W_KQ from Γ⁻¹, SGD", ic.measured("training", "off").last(),
                    ic.below(0.1)),
        ),
        figure="found", afterwards=SPLIT, ours=("SGD: within 10 % of the largest entry of Γ⁻¹",),
    ),
    ic.Statement(
        "thm42", "Theorem 4.2",
        "On new tasks the error exceeds the least possible one, 0, by a part that falls like 1/M and one of O(1/N²).",
        (
            ic.Part("error / R(M), mean over M", (plain / theory).mean("length"), ic.within(0.95, 1.05)),
            ic.Part("error above its limit, in M", falling, FALLS),
            ic.Part("the limit for M → ∞, in N", floor, FLOOR),
        ),
        hypotheses="thm41", figure="found", afterwards=SPLIT, ours=("within 5 % of the exact R(M) is the same",),
    ),
    ic.Statement(
        "shifts", "Section 4.2",
        "Other tasks and another query than in training are tolerated; other covariates are not.",
        (
            ic.Part("error / E y², other tasks", at_n.sel(shift="task"), ic.below(0.5)),
            ic.Part("error / E y², another query", at_n.sel(shift="query"), ic.below(0.5)),
            ic.Part("error / E y², other covariates", at_n.sel(shift="covariates"), ic.above(1.0)),
            ic.Part("error / R(M), mean over M and shifts", (error / predicted).mean(("length", "shift")),
                    ic.within(0.9, 1.1)),
        ),
        figure="found", afterwards=SPLIT,
        ours=("tasks around (2, ..., 2), a query of 9 Λ, covariates of 4 Λ: the sizes of the shifts",
              "'tolerated': less than half of the error of an answer of 0; 'not': more than all of it"),
    ),
    ic.Statement(
        "far-start", "our question", "Gradient flow gets there also from starts that the theorem does not allow.",
        (ic.Part("largest difference of a weight, σ² up to 16 times as large", away.max("exceeded"),
                 ic.identical(1e-6)),),
        beyond=True, architecture="the flow is integrated from formulas; no model is trained",
    ),
]  # fmt: skip

printed = {"shifts": Printed("... shifts in the covariate distribution of the prompts are not", "Abstract")}
unstated = (
    ic.Unstated("initial_scale", ic.Between(0.05, 0.6, log=True), "σ", "any that Theorem 4.1's condition allows"),
    ic.Unstated("decay", ic.Between(0.0, 1.0), "Λ", "any covariance; from isotropic to λ_i = 1/i"),
    ic.Unstated("batch", (32, 64, 128), "", "gradient flow has the whole population"),
    "gradient flow is followed by SGD, its step size falling to 0",
)


def found(results, settings):
    """Training, the error against test and training examples, and shifts."""
    best = float(shifted_risk(settings, settings.train_length, "none"))
    off = {"product": ic.measured("training", "off"), "split": ic.measured("training", "split_off")}
    return ic.picture(
        results,
        ic.Lines("Exact risk of the weights", ic.measured("training", "risk"), "step", dots=False, seeds=True,
                 y="E (ŷ - y)²", rules={"global minimum": best}),
        ic.Lines("Distance from the minimum, SGD", off, "step", dots=False, log="y", y="relative difference"),
        ic.Lines("Error on new tasks", {"measured": plain, "R(M)": theory + 0 * plain}, "length", dashed=("R(M)",),
                 log="y", x="M", y="E (ŷ - y)²"),
        ic.Power("Error above its limit", falling, FALLS, "error - limit"),
        ic.Power("Limit for M → ∞", floor, FLOOR, "limit"),
        ic.Lines("Error under shifts", relative, "length", by="shift", log="y", x="M", y="E (ŷ - y)² / E y²",
                 rules={"an answer of 0": 1.0}), columns=3,
    )  # fmt: skip


figures = {"found": found}

"""Beyond the paper: the reasoning steps of chain-of-thought on GPT-2.

The paper's theory is of one attention layer with a fixed value matrix. GPT-2 is trained on the same prompts (20 patterns, α = 0.4,
20 right examples and the solved steps of the query) and asked the same: does it answer all steps on noisy, partly wrong examples
of unseen patterns, does the chain help where the answer at once cannot be right, and where does a head look? Its positions are
learned, so it is tested with as many examples as it was trained on; the one-layer model is tested beside it on the same prompts.
Before the rules were written, only the training loss in domain had been seen (one seed of two step sizes), besides the results
of the one-layer rows.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Array, Key
from matplotlib.figure import Figure

from iclab.authoring.gpt2 import FEWER_SEEDS, TOPIC
from iclab.authoring.paper import Experiment
from iclab.claims import Check, Claim, Results, above, below, note
from iclab.drawing import COLOURS, curve, heads_by_layer, panels, threshold
from iclab.evaluation import errors, expect
from iclab.experiments import Lab, Recipe, Trained
from iclab.inference import chain_errors
from iclab.losses import squared
from iclab.models.gpt2 import GPT2
from iclab.papers.chain_of_thought import settings as worlds
from iclab.papers.chain_of_thought.claims import PAPER, REQUIRED, TAU, UNIT, epsilon
from iclab.papers.chain_of_thought.experiments import COMPARISON, FRACTIONS, standard
from iclab.papers.chain_of_thought.settings import Settings, inference_world, output_matrices, step_matrices, unstated_world
from iclab.probes.attention import by_head
from iclab.probes.steps import step_masses
from iclab.prompts import Prompt
from iclab.statistics import band, trend
from iclab.training import Member
from iclab.worlds.reasoning import Mode, Reasoning

MODELS = {"one layer": "one-layer Transformer", "GPT-2": "GPT-2"}
AFTERWARDS = {
    "beyond-gpt2-*": "Before the rule was written GPT-2's training loss in domain had been seen (1 seed, two step sizes), and the "
    "one-layer model's results.",
    "*": FEWER_SEEDS,
}


def recipe(settings: Settings, seed: int) -> Recipe:
    """GPT-2 on the training prompts of the one-layer model, watched as that is."""
    s, one = settings, worlds.recipe(settings, seed)
    tokens = s.reasoning_steps * (s.train_length + 1)
    return Recipe(one.world, s.gpt2.model(tokens), s.gpt2.training(), one.watched, one.arrays)


def _masses(model: GPT2, prompt: Prompt) -> dict[str, Array]:
    return by_head(step_masses(model, prompt))


def observe(model: GPT2, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """The query's attention by step and pattern, layer and head, on noisy test prompts."""
    return expect(_masses, model, member.watched[0], key, 2)


def trained(lab: Lab) -> Trained:
    """The one training."""
    s: Settings = lab.settings
    recipes = {"GPT-2": lambda seed: recipe(s, seed)}
    return lab.train("gpt2", recipes, s.gpt2.record_at(), (observe,), squared, at_most=s.gpt2.seeds)


def training(lab: Lab) -> xr.Dataset:
    """The observed training, and the loss on fresh prompts made like the training ones."""
    s: Settings = lab.settings
    found = lab.evaluate(
        trained(lab), "convergence", errors(squared), lambda setting, seed, domain: worlds.recipe(s, seed).world,
        {"domain": ("training prompts",)}, s.gpt2.prompts,
    ).sel(domain="training prompts", drop=True)  # fmt: skip
    return trained(lab).history.assign(loss=found["squared"], error=found["error"])


def steps(lab: Lab) -> xr.Dataset:
    """Both models with l_tr examples: CoT error against α', and CoT against ICL where Condition 1 fails."""
    s: Settings = lab.settings
    length = s.train_length
    usual = step_matrices(s, s.trajectory_probability, s.primacy)
    failing = output_matrices(s, *COMPARISON, condition_1=False)

    def world(matrices: np.ndarray, fraction: float, seed: int, mode: Mode) -> Reasoning:
        return inference_world(s, seed, matrices, fraction, length, length, mode)

    cases = {f"α' = {fraction:g}": (usual, fraction) for fraction in FRACTIONS}
    cases["Condition 1 fails"] = failing, s.test_matching_fraction
    parts = []
    for model in (standard(lab), trained(lab)):
        chain = lab.evaluate(
            model, "gpt2 chain", chain_errors, lambda setting, seed, case: world(*cases[case], seed, Mode.chain),
            {"case": tuple(cases)}, s.gpt2.prompts,
        )["error"]  # fmt: skip
        direct = lab.evaluate(
            model, "gpt2 direct", errors(squared), lambda setting, seed, case: world(*cases[case], seed, Mode.direct),
            {"case": ("Condition 1 fails",)}, s.gpt2.prompts,
        )["error"]  # fmt: skip
        fractions = chain.isel(case=slice(len(FRACTIONS))).rename(case="fraction").assign_coords(fraction=list(FRACTIONS))
        found = {
            "error": fractions,
            "failing_cot": chain.isel(case=-1, drop=True),
            "failing_icl": direct.isel(case=0, drop=True),
        }
        parts.append(xr.Dataset(found).isel(setting=0, drop=True))
    return xr.concat(parts, xr.Variable("model", list(MODELS)), join="outer")


EXPERIMENTS = {"gpt2-training": Experiment(training, cost=100), "gpt2-steps": Experiment(steps, cost=25)}


def _steps(results: Results, name: str) -> xr.DataArray:
    """GPT-2's own seeds: the one-layer model may have more."""
    own = results["gpt2-training"]["seed"]
    return results["gpt2-steps"][name].sel(model="GPT-2", seed=own)


def _best_head(results: Results, step: int) -> xr.DataArray:
    """Mass on columns of the same pattern and step, in the layer and head that have most of it at the end of training."""
    mass = results["gpt2-training"]["same_pattern_same_step"].sel(setting="GPT-2").stack(place=("layer", "head"))
    return mass.isel(step=step).isel(place=mass.isel(step=-1).fillna(0).argmax("place"))


def claims(s: Settings) -> tuple[Claim, ...]:
    """The rows on GPT-2."""
    open_settings = (*s.gpt2.unstated(), *unstated_world(), f"l_ts = l_tr = {s.train_length} examples")
    needs = ("gpt2-training", "gpt2-steps")
    rows = (
        Claim(
            f"{PAPER}/beyond-gpt2-thm1", "Beyond the paper: Theorem 1 asked of GPT-2",
            "Training on prompts with solved steps drives GPT-2's squared loss on such prompts to O(ε).",
            (Check("squared loss on fresh training prompts", below(epsilon(s)), lambda r: r["gpt2-training"]["loss"].sel(setting="GPT-2"), (0, np.inf)),),
            needs, "gpt2-steps", open_settings,
        ),
        Claim(
            f"{PAPER}/beyond-gpt2-steps", "Beyond the paper: Theorem 2 and Figure 2(A) asked of GPT-2",
            "With noisy and partly wrong examples on unseen patterns GPT-2's CoT is right, and the more so the larger α' is.",
            (
                Check(f"CoT error (7) at the largest α', l_ts = {s.train_length}", below(REQUIRED), lambda r: _steps(r, "error").isel(fraction=-1), UNIT),
                Check("rank correlation of the CoT error with α'", below(0), lambda r: trend(_steps(r, "error"), "fraction"), TAU),
            ),
            needs, "gpt2-steps", (*open_settings, "'right': error below 0.1, what Fig. 2 calls required, since l_ts stays at l_tr"),
        ),
        Claim(
            f"{PAPER}/beyond-gpt2-fig4", "Beyond the paper: Figure 4 asked of GPT-2",
            "Where Condition 1 fails GPT-2's ICL error is large and its CoT error smaller.",
            (
                Check("ICL error, Condition 1 failing", above(0.5), lambda r: _steps(r, "failing_icl"), UNIT),
                Check("CoT error minus ICL error, Condition 1 failing", below(0), lambda r: _steps(r, "failing_cot") - _steps(r, "failing_icl"), (-1, 1)),
            ),
            needs, "gpt2-steps", (*open_settings, "'large': above 0.5; τ_o = 0.4, ρ_o = 0.1"),
        ),
        Claim(
            f"{PAPER}/beyond-gpt2-attention", "Beyond the paper: Figure 5 asked of GPT-2",
            "In at least one head the query's attention moves onto columns of the same pattern and step.",
            (
                Check("attention mass at the end, in the layer and head with most", above(0.9), lambda r: _best_head(r, -1), UNIT),
                Check("gain in that head over training", above(0), lambda r: _best_head(r, -1) - _best_head(r, 0)),
            ),
            ("gpt2-training", "training"), "gpt2-attention", (*open_settings, "'around 1': above 0.9, as for the one-layer model; noisy test prompts"),
        ),
    )  # fmt: skip
    return note(rows, AFTERWARDS, TOPIC)


def figure(results: Results, settings: Settings) -> Figure:
    """CoT error against α' with l_ts = l_tr examples, and CoT against ICL where Condition 1 fails: one layer and GPT-2."""
    data = results["gpt2-steps"]
    figure, axes = panels(2, ("CoT on unseen patterns", "Condition 1 fails"))
    for colour, (model, label) in enumerate(MODELS.items()):
        part = data.sel(model=model)
        axes[0].plot(data["fraction"], part["error"].transpose("fraction", "seed"), color=COLOURS[colour], lw=0.5, alpha=0.6)
        curve(axes[0], part["error"], "fraction", label=label, colour=colour, bounds=UNIT)
        both = xr.concat([part["failing_icl"], part["failing_cot"]], xr.Variable("way", ["ICL", "CoT"]))
        mean, low, high = band(both.transpose(..., "way"), UNIT)
        spread = np.maximum(0, np.stack([mean - low, high - mean]))
        axes[1].bar(np.arange(2) + 0.36 * colour - 0.18, mean, 0.34, yerr=spread, color=COLOURS[colour], label=label)
    threshold(axes[0], REQUIRED, f"required: {REQUIRED:g}")
    axes[0].set_xlabel("matching fraction α'")
    axes[0].set_ylabel("CoT error")
    axes[1].set_xticks(range(2), ["ICL", "CoT"])
    axes[1].set_ylabel("error")
    for axis in axes:
        axis.set_ylim(-0.02, 1.02)
        axis.legend()
    return figure


def attention(results: Results, settings: Settings) -> Figure:
    """Attention mass on the same pattern and step along training, noisy test prompts: one layer, and GPT-2 by layer and head."""
    one, deep = results["training"].sel(setting="standard"), results["gpt2-training"].sel(setting="GPT-2")
    name = "same_pattern_same_step"
    figure, axes = panels(2, ("One layer", "GPT-2"))
    curve(axes[0], one[name], "step", label="one layer", bounds=UNIT, marker="")
    heads_by_layer(axes[1], deep[name])
    for axis in axes:
        threshold(axis, 0.9, "0.9")
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("training step")
        axis.set_ylabel("mass on same pattern and step")
        axis.legend(ncols=2, loc="lower right")
    return figure


FIGURES = {"gpt2-steps": figure, "gpt2-attention": attention}

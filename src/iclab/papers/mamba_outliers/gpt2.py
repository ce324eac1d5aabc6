"""Beyond the paper: the outliers of mamba-outliers on GPT-2, which has neither Mamba's gate nor the linear Transformer's sum.

The paper explains Mamba's robustness by its gate and the linear Transformer's failure beyond one half by its plain average. GPT-2
attends with a softmax in three layers, and is trained on the same prompts (18 tasks, p_a = 0.6): does it need a gate? Its rules are
those of the rows on the one-layer models. Before they were written, only the training loss in domain had been seen (two seeds
of two step sizes), besides what the notes of the one-layer rows say.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from iclab.claims import Check, Claim, Results, above, below, note
from iclab.drawing import COLOURS, curve, panels, threshold
from iclab.evaluation import errors
from iclab.experiments import Lab, Recipe, Trained
from iclab.losses import hinge
from iclab.papers.mamba_outliers.claims import PAPER, RULE_WORDS, UNIT, epsilon, from_fraction, mamba_limit, up_to
from iclab.papers.mamba_outliers.experiments import FRACTIONS, RULES
from iclab.papers.mamba_outliers.settings import (
    MAGNITUDES,
    TASK_SETS,
    Settings,
    inference_world,
    training_world,
    unstated_world,
)
from iclab.papers.paper import Experiment
from iclab.worlds.outliers import LabelRule

TASKS = "18 tasks"
AFTERWARDS = {
    "beyond-gpt2-*": "Before the rule was written GPT-2's training loss in domain had been seen (2 seeds, two step sizes), and the "
    "one-layer models' results."
}


def recipe(settings: Settings) -> Recipe:
    """GPT-2 on the training prompts of the one-layer models."""
    s = settings
    world = training_world(s, TASK_SETS[TASKS], s.outlier_fraction)
    return Recipe(world, s.gpt2_model(max(s.train_length, s.test_length) + 1), s.gpt2_training())


def trained(lab: Lab) -> Trained:
    """The one training."""
    s: Settings = lab.settings
    return lab.train("gpt2", {TASKS: lambda seed: recipe(s)}, s.gpt2_record_at(), at_most=s.gpt2_seeds)


def outliers(lab: Lab) -> xr.Dataset:
    """Errors against the fraction of outliers as in Fig. 1, and over all tasks on prompts made like the training ones."""
    s: Settings = lab.settings
    found = lab.evaluate(
        trained(lab), "robustness", errors(hinge),
        lambda setting, seed, rule, magnitude, fraction: inference_world(s, fraction, magnitude, LabelRule[rule]),
        {"rule": RULES, "magnitude": MAGNITUDES, "fraction": FRACTIONS}, s.gpt2_trend_prompts,
    )  # fmt: skip
    own = lab.evaluate(
        trained(lab), "convergence", errors(hinge),
        lambda setting, seed, domain: training_world(s, 1, s.outlier_fraction, every_task=True),
        {"domain": ("training prompts",)}, s.gpt2_prompts,
    ).sel(domain="training prompts", drop=True)  # fmt: skip
    return found.assign(own_error=own["error"], training_loss=trained(lab).history["training_loss"])


EXPERIMENTS = {"gpt2-outliers": Experiment(outliers, cost=70)}


def _error(results: Results, magnitude: float) -> xr.DataArray:
    return results["gpt2-outliers"]["error"].sel(setting=TASKS, magnitude=magnitude)


def _advantage(results: Results, magnitude: float) -> xr.DataArray:
    """The linear Transformer's error minus GPT-2's, the smallest over α >= 0.6 and label rules, seed by seed."""
    linear = results["robustness"]["error"].sel(kind="linear", setting=TASKS, magnitude=magnitude)
    return from_fraction(linear - _error(results, magnitude), 0.6).min("rule", skipna=False)


def claims(s: Settings) -> tuple[Claim, ...]:
    """The rows on GPT-2."""
    eps, limit = epsilon(s), mamba_limit(s)
    rows = []
    for magnitude in MAGNITUDES:
        open_settings = (*s.gpt2_unstated(), *unstated_world(s), f"κ_a' = {magnitude:g}; {TASKS}")
        choice = f"κ_a' = {magnitude:g}"
        rows += [
            Claim(
                f"{PAPER}/beyond-gpt2-outliers-magnitude{magnitude:g}", f"Beyond the paper: Theorems 1 and 2 asked of GPT-2, {choice}",
                "Without any gate GPT-2 learns from prompts with outliers, and unseen outliers in a fraction α < p_a l_tr / l_ts of the examples leave its error at most ε.",
                (
                    Check("0-1 error over all tasks, training prompts", below(eps), lambda r: r["gpt2-outliers"]["own_error"].sel(setting=TASKS), UNIT),
                    Check(f"largest 0-1 error over α <= {limit:g} and three label rules", below(eps), lambda r, m=magnitude: up_to(_error(r, m), limit), UNIT),
                ),
                ("gpt2-outliers", "robustness"), "gpt2-outliers", open_settings, choice,
            ),
            Claim(
                f"{PAPER}/beyond-gpt2-fig1-magnitude{magnitude:g}", f"Beyond the paper: Figure 1 asked of GPT-2, {choice}",
                "GPT-2 is as robust as Mamba: error below 0.01 even when α is close to 0.8, where the linear Transformer's is large.",
                (
                    Check("largest error over α <= 0.8 and three label rules", below(0.01), lambda r, m=magnitude: up_to(_error(r, m), 0.8), UNIT),
                    Check("linear Transformer's error minus GPT-2's, smallest over α >= 0.6 and label rules", above(0), lambda r, m=magnitude: _advantage(r, m), (-1, 1)),
                ),
                ("gpt2-outliers", "robustness"), "gpt2-outliers", open_settings, choice,
            ),
        ]  # fmt: skip
    return note(rows, AFTERWARDS)


def figure(results: Results, settings: Settings) -> Figure:
    """Error against the fraction of outliers: one-layer Mamba and linear Transformer, and GPT-2 (thin: its seeds), on 18 tasks."""
    figure, axes = panels(3, tuple(f"{RULE_WORDS[rule]}, {TASKS}" for rule in RULES), width=4.2)
    one = results["robustness"]["error"].sel(setting=TASKS)
    for axis, rule in zip(axes, RULES, strict=True):
        for magnitude, style in zip(MAGNITUDES, ("--", "-"), strict=True):
            for colour, (kind, name) in enumerate({"mamba": "Mamba", "linear": "linear Transformer"}.items()):
                part = one.sel(kind=kind, rule=rule, magnitude=magnitude)
                curve(
                    axis, part, "fraction", label=f"{name}, κ_a' = {magnitude:g}", colour=colour, bounds=UNIT, ls=style, lw=1.0
                )
            deep = _error(results, magnitude).sel(rule=rule)
            axis.plot(deep["fraction"], deep.transpose("fraction", "seed"), color=COLOURS[2], lw=0.4, ls=style, alpha=0.6)
            curve(axis, deep, "fraction", label=f"GPT-2, κ_a' = {magnitude:g}", colour=2, bounds=UNIT, ls=style)
        threshold(axis, 0.01, "0.01")
        axis.set_xlabel("fraction of outliers α")
        axis.set_ylabel("0-1 error")
        axis.set_ylim(-0.02, 1.02)
    axes[0].legend(fontsize=7)
    return figure


FIGURES = {"gpt2-outliers": figure}

"""What is run for mamba-outliers' figures: one-layer models on two task sets, three-layer stacks, GPT-2, tests with
outliers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Recipe, Trained, errors, expect, hinge
from iclab.authoring.plugged import weighs
from iclab.errors import require
from iclab.models import Model
from iclab.papers.mamba_outliers import theory
from iclab.papers.mamba_outliers.explorer import explorer
from iclab.papers.mamba_outliers.settings import (
    KINDS,
    ONE_LAYER,
    OWN,
    STACKS,
    TASK_SETS,
    TASKS,
    Settings,
    inference_world,
    kinds,
    one_layer,
    stacked,
    symbols,
    training_world,
)
from iclab.probes.gates import attention_sums, form_difference, gate_profile
from iclab.worlds.outliers import LabelRule, Placement

RULES = tuple(rule.name for rule in LabelRule)  # panels A, B, C of Fig. 1
PLACEMENTS = tuple(place.name for place in Placement)
NAMED: dict[str, Any] = {"rule": LabelRule, "placement": Placement}  # what a grid has by name
LENGTHS = (10, 20, 30, 40, 60)  # l_ts
ERRORS = errors(hinge)


def observe(model: Model, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention sums by group, in the test world with α = 0.3 and κ_a' = κ_a."""
    return expect(attention_sums, model, member.watched[0], key, 2)


def train_one_layer(lab: Lab, kind: str) -> Trained:
    """One-layer models, one setting per task set. What is observed belongs to the experiment "attention"."""
    s: Settings = lab.settings
    recipes = {name: one_layer(s, kind, shifts) for name, shifts in TASK_SETS.items()}
    other = kind == OWN and s.model != OWN
    # Any other model has the same random stream, whatever it is called and wherever it comes from.
    name = "model-one-layer" if other else f"{kind}-one-layer"
    watched = kind == OWN and lab.runs("attention") and (not other or watchable(s))
    return lab.train(name, recipes, s.record_at(s.steps), (observe,) if watched else ())


def watchable(s: Settings) -> bool:
    """Whether the model in Mamba's place keeps a score and a gate for each example."""
    recipe = one_layer(s, OWN, 1)
    return weighs(recipe.model, recipe.world)


def require_watchable(s: Settings) -> None:
    """Refuse what looks at scores and gates where there are none."""
    sentence = f"{kinds(s)[OWN]} keeps no score and no gate for each example; ask it about its errors, as fig1 does."
    require(s.model == OWN or watchable(s), sentence)


def stacks(s: Settings) -> list[str]:
    """The three-layer stacks; another model is asked in one layer only."""
    return list(STACKS.values()) if s.model == OWN else []


def train_stack(lab: Lab, name: str) -> Trained:
    """One of the three-layer stacks."""
    s: Settings = lab.settings
    label = f"stack-{name.replace(', ', '-').replace(' ', '-')}"
    return lab.train(label, {name: stacked(s, name)}, s.record_at(s.stack_steps), (observe,))


def both(make: Callable[[str], xr.Dataset]) -> xr.Dataset:
    """The same for both kinds of one-layer model, along a dimension "kind"."""
    found: list[xr.Dataset] = [make(kind) for kind in KINDS]
    return xr.concat(found, xr.Variable("kind", list(KINDS)))


def tested(
    lab: Lab, trained: Trained, name: str, dims: Mapping[str, Any], prompts: int, measure: Any = ERRORS, **fixed: Any
) -> xr.Dataset:
    """A measure on test prompts, over a grid of l_ts ("length") and of what `inference_world` takes."""
    s: Settings = lab.settings
    lengths = {length: dataclasses.replace(s, test_length=length) for length in dims.get("length", [s.test_length])}

    def place(setting: str, seed: int, length: int = s.test_length, **at: Any) -> object:
        own = fixed | at
        own |= {key: kind[own[key]] for key, kind in NAMED.items() if key in own}
        return inference_world(lengths[length], **own)

    return lab.evaluate(trained, name, measure, place, dims, prompts)


def forms(lab: Lab) -> xr.Dataset:
    """The recurrence (1) against the closed form (3), on trained models and test prompts."""
    trained, sizes = train_one_layer(lab, "mamba"), {"magnitude": lab.settings.magnitudes}
    return tested(lab, trained, "forms", sizes, 500, form_difference, fraction=lab.settings.gate_fraction)


def convergence(lab: Lab) -> xr.Dataset:
    """Theorems 1 and 3: errors over all tasks on prompts made like the training ones."""
    s: Settings = lab.settings
    world = training_world(s, 1, s.outlier_fraction, every_task=True)
    return both(lambda kind: lab.evaluate(train_one_layer(lab, kind), "convergence", ERRORS, world, prompts=s.prompts))


def robustness(lab: Lab) -> xr.Dataset:
    """Theorems 2 and 4, Fig. 1: errors against the fraction of outliers, for three label rules and two magnitudes.

    "exact_error" is the same with an exact number of outliers in every prompt, not a binomial one, for the larger one.
    """
    s: Settings = lab.settings

    def test(kind: str, name: str, magnitudes: tuple[float, ...], exact: bool) -> xr.Dataset:
        dims = {"rule": RULES, "magnitude": magnitudes, "fraction": s.fractions}
        return tested(lab, train_one_layer(lab, kind), name, dims, s.prompts, exact=exact)

    exact = both(lambda kind: test(kind, "robustness exact", s.magnitudes[-1:], exact=True))["error"]
    found = both(lambda kind: test(kind, "robustness", s.magnitudes, exact=False))
    return found.assign(exact_error=exact.isel(magnitude=0, drop=True))


def robustness_seen(lab: Lab) -> xr.Dataset:
    """The same with the outliers of training, at the smaller magnitude."""
    s: Settings = lab.settings
    dims = {"rule": RULES, "magnitude": s.magnitudes[:1], "fraction": s.fractions}

    def test(kind: str) -> xr.Dataset:
        return tested(lab, train_one_layer(lab, kind).only(TASKS), "seen", dims, s.trend_prompts, outliers="seen")

    return both(test)


def robustness_brief(lab: Lab) -> xr.Dataset:
    """The same beside a linear Transformer that was trained for the T_T of Theorem 3 (constant 1), at the larger
    magnitude.
    """
    s: Settings = lab.settings
    steps = max(1, round(theory.linear_iterations(symbols(s)).value))
    dims = {"rule": RULES, "magnitude": s.magnitudes[-1:], "fraction": s.fractions}

    def test(kind: str) -> xr.Dataset:
        brief = {TASKS: one_layer(s, "linear", TASK_SETS[TASKS])}
        trained = train_one_layer(lab, kind).only(TASKS) if kind == "mamba" else lab.train("brief", brief, [0, steps])
        return tested(lab, trained, "brief", dims, s.trend_prompts)

    return both(test)


def phase(lab: Lab) -> xr.Dataset:
    """Errors of both models over the fraction of (label-flipped) outliers and the length of test prompts."""
    s: Settings = lab.settings
    dims = {"magnitude": s.magnitudes, "fraction": s.fractions, "length": LENGTHS}
    fixed = {"exact": True, "stackable": True, "longest": LENGTHS[-1]}

    def test(kind: str) -> xr.Dataset:
        trained = train_one_layer(lab, kind).only(TASKS)
        return tested(lab, trained, "phase", dims, s.trend_prompts, **fixed).isel(setting=0, drop=True)

    return both(test)


def gpt2(s: Settings) -> Recipe:
    """GPT-2 on the 18 tasks."""
    model = s.gpt2.model(max(s.train_length, s.test_length) + 1)
    return Recipe(training_world(s, TASK_SETS[TASKS], s.outlier_fraction), model, s.gpt2.training())


def gpt2_outliers(lab: Lab) -> xr.Dataset:
    """GPT-2, trained as the one-layer models: errors as in Fig. 1 and on training prompts, on all tasks and its 18."""
    s: Settings = lab.settings
    shifts = TASK_SETS[TASKS]
    trained = lab.train("gpt2", {TASKS: gpt2(s)}, s.gpt2.record_at(), at_most=s.gpt2.seeds)

    def place(setting: str, seed: int, tasks: str) -> object:
        return training_world(s, shifts, s.outlier_fraction, every_task=tasks == "all")

    tasks = {"tasks": ["all", "seen"]}
    own = lab.evaluate(trained, "convergence", ERRORS, place, tasks, s.gpt2.prompts)["error"]
    dims = {"shifts": (None, shifts), "rule": RULES, "magnitude": s.magnitudes, "fraction": s.fractions}
    found = tested(lab, trained, "robustness", dims, s.gpt2.trend_prompts).rename(shifts="tasks").assign_coords(tasks)
    return found.assign(own_error=own, training_loss=trained.history["training_loss"]).isel(setting=0, drop=True)


def attention(lab: Lab) -> xr.Dataset:
    """Corollary 1, Figs. 2 and 4: attention sums along training, one layer and three."""
    require_watchable(lab.settings)
    parts = [train_one_layer(lab, "mamba").history.sel(setting=[TASKS]).assign_coords(setting=[ONE_LAYER])]
    parts += [train_stack(lab, name).history for name in stacks(lab.settings)]
    names = ["score_same", "score_other", "training_loss", "training_error"]
    # Which steps a setting was recorded at: elsewhere it is NaN, as it is where it diverged.
    marked = [part[names].assign(recorded=(("setting", "step"), np.ones((1, part.sizes["step"])))) for part in parts]
    found = xr.concat(marked, "setting", join="outer")
    return found.assign(recorded=found["recorded"].fillna(0))


def gates(lab: Lab) -> xr.Dataset:
    """Corollary 2, Figs. 3 and 5: gates of outlier and clean examples by distance to the query, α = 0.3."""
    s: Settings = lab.settings
    require_watchable(s)
    sizes, prompts = {"magnitude": s.magnitudes}, s.trend_prompts

    def measure(trained: Trained) -> xr.Dataset:
        return tested(lab, trained, "gates", sizes, prompts, gate_profile, fraction=s.gate_fraction)

    parts = [measure(train_one_layer(lab, "mamba")).sel(setting=[TASKS]).assign_coords(setting=[ONE_LAYER])]
    parts += [measure(train_stack(lab, name)) for name in stacks(s) if "Mamba" in name]
    found = xr.concat(parts, "setting", join="outer")
    places = np.arange(1, found.sizes["rank"] + 1)
    counts = {name: found[f"{name}_count"] for name in ("ranked", "outlier", "clean")}  # no average where there is none
    means = {f"{name}_gate": found[f"{name}_sum"] / count.where(count > 0) for name, count in counts.items()}
    return xr.Dataset(means).assign_coords(rank=places, distance=places)


def placements(lab: Lab) -> xr.Dataset:
    """Table 2: accuracy of the stacks with outliers farthest from the query, closest to it, or anywhere. α = 0.5."""
    s: Settings = lab.settings
    dims = {"rule": RULES, "magnitude": s.magnitudes, "placement": PLACEMENTS}
    fixed: dict[str, Any] = {"fraction": s.placement_fraction, "exact": True, "stackable": True}
    found = [
        tested(lab, train_stack(lab, name), "placements", dims, s.trend_prompts, **fixed) for name in STACKS.values()
    ]
    joined: xr.Dataset = xr.concat(found, "setting")
    return joined.assign(accuracy=1.0 - joined["error"])


experiments = {
    "forms": Experiment(forms, cost=8),
    "convergence": Experiment(convergence, cost=6),
    "robustness": Experiment(robustness, cost=25),
    "robustness-seen": Experiment(robustness_seen, cost=4),
    "robustness-brief": Experiment(robustness_brief, cost=5),
    "attention": Experiment(attention, cost=60),
    "gates": Experiment(gates, cost=4),
    "placements": Experiment(placements, cost=8),
    "explorer": Experiment(explorer, cost=6),
    "gpt2-outliers": Experiment(gpt2_outliers, cost=70),
    "phase": Experiment(phase, cost=18),
}

"""What is run for mamba-outliers: one-layer models on two task sets, three-layer stacks, GPT-2, and tests with outliers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Recipe, Trained, errors, expect, geometric, hinge, swept
from iclab.models.linear_transformer import LinearTransformer
from iclab.models.mamba import Mamba
from iclab.papers.mamba_outliers.explorer import explorer
from iclab.papers.mamba_outliers.laws import FEW_OUTLIERS, LAWS, SLOWER, SMALL_START
from iclab.papers.mamba_outliers.settings import (
    FRACTIONS,
    GATE_FRACTION,
    KINDS,
    MAGNITUDES,
    ONE_LAYER,
    STACKS,
    TASK_SETS,
    TASKS,
    Settings,
    inference_world,
    one_layer,
    stacked,
    training_world,
)
from iclab.probes.gates import attention_sums, form_difference, gate_profile
from iclab.worlds.outliers import LabelRule, Placement

RULES = tuple(rule.name for rule in LabelRule)  # panels A, B, C of Fig. 1
TABLE_FRACTION = 0.5  # α of Table 2
PHASE_LENGTHS = (10, 20, 30, 40, 60)  # l_ts
OBSERVED_BATCHES = 2
NAMED: dict[str, Any] = {"rule": LabelRule, "placement": Placement}  # what a grid has by name


def observe(model: Mamba | LinearTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention sums by group, in the test world with α = 0.3 and κ_a' = κ_a."""
    return expect(attention_sums, model, member.watched[0], key, OBSERVED_BATCHES)


def train_one_layer(lab: Lab, kind: str) -> Trained:
    """One-layer models, one setting per task set."""
    s: Settings = lab.settings
    recipes = {name: one_layer(s, kind, shifts) for name, shifts in TASK_SETS.items()}
    return lab.train(f"{kind}-one-layer", recipes, s.record_at(s.steps), (observe,))


def train_stack(lab: Lab, name: str) -> Trained:
    """One of the three-layer stacks."""
    s: Settings = lab.settings
    label = f"stack-{name.replace(', ', '-').replace(' ', '-')}"
    return lab.train(label, {name: stacked(s, name)}, s.record_at(s.stack_steps), (observe,))


def train_gpt2(lab: Lab) -> Trained:
    """GPT-2 on the training prompts of the one-layer models."""
    s: Settings = lab.settings
    world = training_world(s, TASK_SETS[TASKS], s.outlier_fraction)
    recipe = Recipe(world, s.gpt2.model(max(s.train_length, s.test_length) + 1), s.gpt2.training())
    return lab.train("gpt2", {TASKS: recipe}, s.gpt2.record_at(), at_most=s.gpt2.seeds)


def both(make: Callable[[str], xr.Dataset]) -> xr.Dataset:
    """The same for both kinds of one-layer model, along a dimension "kind"."""
    found: list[xr.Dataset] = [make(kind) for kind in KINDS]
    return xr.concat(found, xr.Variable("kind", list(KINDS)))


def tested(
    lab: Lab, trained: Trained, name: str, dims: Mapping[str, tuple[Any, ...]], prompts: int, measure: Any = errors(hinge),
    **fixed: Any,
) -> xr.Dataset:  # fmt: skip
    """A measure (errors, as a rule) on test prompts, over a grid of what `inference_world` takes."""

    def place(setting: str, seed: int, **at: Any) -> object:
        own = fixed | at
        return inference_world(lab.settings, **own | {key: kind[own[key]] for key, kind in NAMED.items() if key in own})

    return lab.evaluate(trained, name, measure, place, dims, prompts)


def forms(lab: Lab) -> xr.Dataset:
    """The recurrence (1) against the closed form (3), on trained models and test prompts."""
    trained, dims = train_one_layer(lab, "mamba"), {"magnitude": MAGNITUDES}
    return tested(lab, trained, "forms", dims, 500, form_difference, fraction=GATE_FRACTION)


def convergence(lab: Lab) -> xr.Dataset:
    """Theorems 1 and 3: errors over all tasks on prompts made like the training ones."""
    s: Settings = lab.settings
    world = training_world(s, 1, s.outlier_fraction, every_task=True)
    return both(
        lambda kind: lab.evaluate(train_one_layer(lab, kind), "convergence", errors(hinge), world, prompts=s.prompts)
    )


def robustness(lab: Lab) -> xr.Dataset:
    """Theorems 2 and 4, Fig. 1: errors against the fraction of outliers, for three label rules and two magnitudes.

    "exact_error" is the same with an exact number of outliers in every prompt instead of a binomial one, for κ_a' = 10.
    """

    def test(kind: str, magnitudes: tuple[float, ...], exact: bool) -> xr.Dataset:
        dims = {"rule": RULES, "magnitude": magnitudes, "fraction": FRACTIONS}
        name = f"robustness{' exact' * exact}"
        return tested(lab, train_one_layer(lab, kind), name, dims, lab.settings.prompts, exact=exact)

    exact = both(lambda kind: test(kind, MAGNITUDES[-1:], exact=True))["error"].isel(magnitude=0, drop=True)
    return both(lambda kind: test(kind, MAGNITUDES, exact=False)).assign(exact_error=exact)


def choices(lab: Lab) -> xr.Dataset:
    """How the errors move with what is unstated: magnitude, task set, label rule, counting, size of irrelevant parts."""
    dims = {
        "fraction": (0.6, 0.8),
        "rule": RULES,
        "magnitude": MAGNITUDES,
        "exact": (False, True),
        "size": (0.5, 1.5, 5.0),
    }

    def test(kind: str) -> xr.Dataset:
        return tested(lab, train_one_layer(lab, kind), "choices", dims, lab.settings.trend_prompts, stackable=True)

    return both(test).rename(exact="counting").assign_coords(counting=["Bernoulli", "exact"])


def phase(lab: Lab) -> xr.Dataset:
    """Errors of both models over the fraction of (label-flipped) outliers and the length of test prompts."""
    dims = {"fraction": FRACTIONS, "length": PHASE_LENGTHS}
    fixed = {"magnitude": MAGNITUDES[-1], "exact": True, "stackable": True, "longest": PHASE_LENGTHS[-1]}

    def test(kind: str) -> xr.Dataset:
        trained = train_one_layer(lab, kind).only(TASKS)
        return tested(lab, trained, "phase", dims, lab.settings.trend_prompts, **fixed).isel(setting=0, drop=True)

    return both(test)


def gpt2_outliers(lab: Lab) -> xr.Dataset:
    """GPT-2's errors as in Fig. 1 and on prompts like the training ones, on all tasks and on the 18 that it saw."""
    s: Settings = lab.settings
    trained, shifts, tasks = train_gpt2(lab), TASK_SETS[TASKS], {"tasks": ("all", "seen")}
    own = lab.evaluate(
        trained, "convergence", errors(hinge),
        lambda setting, seed, tasks: training_world(s, shifts, s.outlier_fraction, every_task=tasks == "all"),
        tasks, s.gpt2.prompts,
    )  # fmt: skip
    dims = {"shifts": (None, shifts), "rule": RULES, "magnitude": MAGNITUDES, "fraction": FRACTIONS}
    found = tested(lab, trained, "robustness", dims, s.gpt2.trend_prompts).rename(shifts="tasks").assign_coords(tasks)
    return found.assign(own_error=own["error"], training_loss=trained.history["training_loss"]).isel(
        setting=0, drop=True
    )


def rate(name: str) -> Callable[[Lab], xr.Dataset]:
    """Trainings of both models at the values of a law, padded to the longest prompt so that all share a program."""
    law = LAWS["mamba"][name]
    few = {"outlier_fraction": FEW_OUTLIERS} if name == "l_tr" else {}

    def run(lab: Lab) -> xr.Dataset:
        start = dataclasses.replace(lab.settings, initial_scale=SMALL_START, **few)
        points = [dataclasses.replace(start, **{law.setting: value}) for value in law.values]
        longest = max(point.train_length for point in points)

        def recipe(kind: str, s: Settings) -> Recipe:
            one = one_layer(s, kind, TASK_SETS[TASKS])
            slow = dataclasses.replace(one.training, step_size=one.training.step_size / SLOWER[kind])
            world = training_world(s, TASK_SETS[TASKS], s.outlier_fraction, longest=longest)
            return dataclasses.replace(one, world=world, training=slow, watched=())

        def train(kind: str) -> xr.Dataset:
            recipes = {f"{value:g}": recipe(kind, s) for value, s in zip(law.values, points, strict=True)}
            records = geometric(lab.settings.rate_steps, first=2)
            return swept(lab.train(f"{law.experiment}-{kind}", recipes, records).history, law.over, law.values)

        return both(train)

    return run


def attention(lab: Lab) -> xr.Dataset:
    """Corollary 1, Figs. 2 and 4: attention sums along training, one layer and three."""
    parts = [train_one_layer(lab, "mamba").history.sel(setting=[TASKS]).assign_coords(setting=[ONE_LAYER])]
    parts += [train_stack(lab, name).history for name in STACKS.values()]
    names = ["score_same", "score_other", "training_loss", "training_error"]
    # Which steps a setting was recorded at: elsewhere it is NaN, as it is where it diverged.
    marked = [part[names].assign(recorded=(("setting", "step"), np.ones((1, part.sizes["step"])))) for part in parts]
    found = xr.concat(marked, "setting", join="outer")
    return found.assign(recorded=found["recorded"].fillna(0))


def gates(lab: Lab) -> xr.Dataset:
    """Corollary 2, Figs. 3 and 5: gates of outlier and clean examples by distance to the query, α = 0.3."""

    def measure(trained: Trained) -> xr.Dataset:
        dims, prompts = {"magnitude": MAGNITUDES}, lab.settings.trend_prompts
        return tested(lab, trained, "gates", dims, prompts, gate_profile, fraction=GATE_FRACTION)

    parts = [measure(train_one_layer(lab, "mamba")).sel(setting=[TASKS]).assign_coords(setting=[ONE_LAYER])]
    parts += [measure(train_stack(lab, name)) for name in STACKS.values() if name.startswith("Mamba")]
    found = xr.concat(parts, "setting", join="outer")
    places = np.arange(1, found.sizes["rank"] + 1)
    counts = {name: found[f"{name}_count"] for name in ("ranked", "outlier", "clean")}  # no average where there is none
    means = {f"{name}_gate": found[f"{name}_sum"] / count.where(count > 0) for name, count in counts.items()}
    return xr.Dataset(means).assign_coords(rank=places, distance=places)


def placements(lab: Lab) -> xr.Dataset:
    """Table 2: accuracy of the stacks with outliers farthest from the query, closest to it, or anywhere. α = 0.5."""
    dims = {"rule": RULES, "magnitude": MAGNITUDES, "placement": tuple(place.name for place in Placement)}
    fixed = {"fraction": TABLE_FRACTION, "exact": True, "stackable": True}
    prompts = lab.settings.trend_prompts
    found = [tested(lab, train_stack(lab, name), "placements", dims, prompts, **fixed) for name in STACKS.values()]
    joined: xr.Dataset = xr.concat(found, "setting")
    return joined.assign(accuracy=1.0 - joined["error"])


experiments = {
    "forms": Experiment(forms, cost=8),
    "convergence": Experiment(convergence, cost=6),
    "robustness": Experiment(robustness, cost=25),
    "choices": Experiment(choices, cost=10),
    "attention": Experiment(attention, cost=60),
    "gates": Experiment(gates, cost=4),
    "placements": Experiment(placements, cost=8),
    "explorer": Experiment(explorer, cost=6),
    "gpt2-outliers": Experiment(gpt2_outliers, cost=70),
    "rate-outliers": Experiment(rate("p_a"), cost=16),
    "rate-length": Experiment(rate("l_tr"), cost=28),
    "phase": Experiment(phase, cost=14),
}

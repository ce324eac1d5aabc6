"""Trainings behind the rates and the lemmas of mamba-outliers: slow, from a small start, at several sizes.

Settings other than p_a and l_tr are varied around one point, in one training: M1, β, κ_a and η are traced. Batches need
a program each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Recipe, Trained, geometric, swept
from iclab.models.mamba import Mamba
from iclab.papers.mamba_outliers import theory
from iclab.papers.mamba_outliers.experiments import ERRORS, both, observe
from iclab.papers.mamba_outliers.laws import FEW_OUTLIERS, LAWS, SIZES
from iclab.papers.mamba_outliers.settings import (
    TASK_SETS,
    TASKS,
    Settings,
    inference_world,
    one_layer,
    symbols,
    training_world,
)
from iclab.probes.directions import gate_directions, weight_growth
from iclab.probes.gates import gate_reach

BATCHES = (16, 64, 256, 1024)  # B
BATCH_STEPS = 200  # T of these; T_M is 2
REACH_LENGTHS = (10, 20, 40, 80)  # l of Lemma 6
LOGITS = ["gate_outlier", "gate_relevant", "outlier_logit"]
MULTIPLE = 16.0  # Lemma 5 and (20) are read at so many T_M, for every M1


def observe_gate(model: Mamba, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Where w points."""
    return gate_directions(model, member.world, member.watched[0])


def observe_weights(model: Mamba, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Where W_B, W_C and w point."""
    return weight_growth(model, member.world, member.model.initial_scale) | observe_gate(model, member, key)


def slow(s: Settings, kind: str, longest: int | None = None) -> Recipe:
    """A one-layer model on the 18 tasks from a small start with a small step size; prompts are padded to `longest`."""
    one = one_layer(dataclasses.replace(s, initial_scale=s.rate_initial_scale), kind, TASK_SETS[TASKS])
    by = s.mamba_slowdown if kind == "mamba" else s.linear_slowdown
    training = dataclasses.replace(one.training, step_size=one.training.step_size / by)
    world = training_world(s, TASK_SETS[TASKS], s.outlier_fraction, longest=longest)
    tested = inference_world(s, s.gate_fraction, s.outlier_magnitude, shifts=TASK_SETS[TASKS])  # of any M1: few tasks
    return dataclasses.replace(one, world=world, training=training, watched=(tested,))


def rate(name: str, **fixed: float) -> Callable[[Lab], xr.Dataset]:
    """Trainings of both models at the values of a law, padded to the longest prompt so that all share a program."""
    law = LAWS["mamba"][name]

    def run(lab: Lab) -> xr.Dataset:
        start = dataclasses.replace(lab.settings, **fixed)
        points = {f"{value:g}": dataclasses.replace(start, **{law.setting: value}) for value in law.values}
        longest = max(point.train_length for point in points.values())

        def train(kind: str) -> xr.Dataset:
            recipes = {label: dataclasses.replace(slow(s, kind, longest), watched=()) for label, s in points.items()}
            found = lab.train(f"{law.experiment}-{kind}", recipes, geometric(start.rate_steps, first=2)).history
            return swept(found, law.over, law.values)

        return both(train)

    return run


def resized(s: Settings, name: str, value: float) -> Settings:
    """The settings at another η (a factor), β, M1 or κ_a, with few outliers."""
    s = dataclasses.replace(s, outlier_fraction=FEW_OUTLIERS)
    if name == "η":
        mamba, linear = value * s.mamba_step_size, value * s.linear_step_size
        return dataclasses.replace(s, mamba_step_size=mamba, linear_step_size=linear)
    changed: dict[str, Any] = {LAWS["mamba"][name].setting: value}
    return dataclasses.replace(s, **changed)


def around(lab: Lab, kind: str) -> Trained:
    """All sizes in one training, each by its name and value."""
    s: Settings = lab.settings
    points = {f"{name} = {value:g}": (name, value) for name in SIZES for value in LAWS[kind][name].values}
    recipes = {label: slow(resized(s, *point), kind) for label, point in points.items()}
    observers = (observe_gate,) if kind == "mamba" else ()
    return lab.train(f"rate-sizes-{kind}", recipes, geometric(s.rate_steps, first=2), observers)


def size(name: str) -> Callable[[Lab], xr.Dataset]:
    """The trainings of both models at the values of one of these settings."""
    law = LAWS["mamba"][name]
    labels = [f"{name} = {value:g}" for value in law.values]

    def run(lab: Lab) -> xr.Dataset:
        losses = ["training_loss", "training_error"]
        return both(lambda kind: swept(around(lab, kind).history[losses].sel(setting=labels), law.over, law.values))

    return run


def gate_sizes(lab: Lab) -> xr.Dataset:
    """Lemma 5 and (20) at several M1: what logits of Mamba gained since the start, and its gates, each at the same
    multiple of its T_M.
    """
    s, law, found = lab.settings, LAWS["mamba"]["M1"], []
    history = around(lab, "mamba").history[[*LOGITS, "nearest_gate"]]
    history = history.assign(history[LOGITS] - history[LOGITS].isel(step=0))
    for count in law.values:
        own = dataclasses.replace(resized(s, "M1", count), mamba_step_size=s.mamba_step_size / s.mamba_slowdown)
        needed = MULTIPLE * theory.mamba_iterations(symbols(own)).value
        one = history.sel(setting=f"M1 = {count:g}", drop=True)
        found.append(one.interp(step=min(needed, s.rate_steps)).drop_vars("step"))
    return xr.concat(found, xr.Variable("patterns", [float(count) for count in law.values]))


def batches(lab: Lab) -> xr.Dataset:
    """Theorem 1 and (61) at several B, along the ε that each allows: errors over all tasks, attention scores."""
    s, found = lab.settings, []
    chosen = BATCHES[: s.rate_programs]
    for batch in chosen:
        recipe = one_layer(dataclasses.replace(s, batch=batch), "mamba", TASK_SETS[TASKS])
        trained = lab.train(f"batch-{batch}", {TASKS: recipe}, [0, min(BATCH_STEPS, s.steps)], (observe,))
        world = training_world(s, 1, s.outlier_fraction, every_task=True)
        own = lab.evaluate(trained, "convergence", ERRORS, world, prompts=s.trend_prompts)
        scores = trained.history[["score_same", "score_other"]].isel(step=-1, layer=0, drop=True)
        found.append(xr.merge([own, scores]).isel(setting=0, drop=True))
    return xr.concat(found, xr.Variable("epsilon", [theory.smallest_error(batch) for batch in chosen]))


def train_early(lab: Lab) -> Trained:
    """One-layer Mamba on both task sets, its weights recorded from the first step on."""
    s: Settings = lab.settings
    recipes = {name: one_layer(s, "mamba", shifts) for name, shifts in TASK_SETS.items()}
    return lab.train("early", recipes, geometric(s.steps, first=5, ratio=1.6), (observe_weights,))


def early(lab: Lab) -> xr.Dataset:
    """Lemmas 3 and 4: what W_B, W_C and w gained since the start, along training."""
    found = train_early(lab).history
    return found.assign(found[LOGITS] - found[LOGITS].isel(step=0)).isel(step=slice(1, None))


def reach(lab: Lab) -> xr.Dataset:
    """Lemma 6: how far back gates reach after these steps, on training prompts of several lengths."""
    s: Settings = lab.settings

    def place(setting: str, seed: int, length: int) -> object:
        own = dataclasses.replace(s, train_length=length)
        return training_world(own, TASK_SETS[setting], s.outlier_fraction, longest=REACH_LENGTHS[-1])

    return lab.evaluate(train_early(lab), "reach", gate_reach, place, {"length": REACH_LENGTHS}, s.trend_prompts)


experiments = {
    "rate-outliers": Experiment(rate("p_a"), 18, "Trainings of both models at several p_a."),
    "rate-length": Experiment(
        rate("l_tr", outlier_fraction=FEW_OUTLIERS), 28, "Trainings of both models at several l_tr."
    ),
    **{
        LAWS["mamba"][name].experiment: Experiment(size(name), 12, f"Trainings of both models at several {name}.")
        for name in SIZES
    },
    "gate-sizes": Experiment(gate_sizes, cost=1),
    "batches": Experiment(batches, cost=20),
    "early": Experiment(early, cost=8),
    "reach": Experiment(reach, cost=3),
}

"""What is run for vector-arithmetic: three trainings, one with the printed step sizes, tests of the QA model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Prompt, Trained, cross_entropy, errors, expect, labelled
from iclab.models.residual_transformer import ResidualTransformer
from iclab.papers.vector_arithmetic.explorer import explorer
from iclab.papers.vector_arithmetic.settings import Settings, recipe, world
from iclab.probes.projections import concept_projections
from iclab.probes.task_vectors import (
    complexity,
    mixture_weights,
    static_offset_error,
    task_vector_cosines,
    task_vector_uses,
)
from iclab.worlds.concepts import Concepts, Kind

KINDS = tuple(kind.value for kind in Kind)
TESTS = ("icl", "qa-icl")  # P_T* and P_QA^T*, on which the theorems test
OBSERVED_BATCH = 200
SHIFTS = ("none", "conic", "low", "common", "all")
PAIR_COUNTS = (5, 10, 15, 30)
measure_errors = errors(cross_entropy)


def _watch(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    return dict(measure_errors(model, prompt)) | task_vector_cosines(model, prompt)


def observe(model: ResidualTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Loss, error and cosines of h_0 on all three distributions ("icl_...", "qa_...", "qa-icl_..."), projections.

    "stopping" is the mean error on the two distributions of the theorems' tests; a run is stopped where it is lowest.
    """
    record = concept_projections(model, member.world)
    for kind, where in zip(KINDS, member.watched, strict=True):
        found = expect(_watch, model, where, key, 2, batch=OBSERVED_BATCH)
        record |= {f"{kind}_{name}": value for name, value in found.items()}
    return record | {"stopping": (record["icl_error"] + record["qa-icl_error"]) / 2}


def trained(lab: Lab, kind: Kind, printed: bool = False) -> Trained:
    """One training distribution; its name is in the path of saved models."""
    s: Settings = lab.settings
    name = f"{kind.value}{'-printed' * printed}"
    at_most = s.printed_seeds if printed else None
    recipes = {name: recipe(s, kind, printed)}
    return lab.train(name, recipes, s.record_at(kind), (observe,), cross_entropy, best_of="stopping", at_most=at_most)


def observed(kind: Kind, words: str, printed: bool = False) -> Callable[[Lab], xr.Dataset]:
    """The experiment that trains on one distribution."""

    def run(lab: Lab) -> xr.Dataset:
        return labelled(trained(lab, kind, printed).history.isel(setting=0), step="epoch")

    run.__doc__ = words
    return run


def stacked(dim: str, parts: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Results side by side along a new dimension."""
    return xr.concat(list(parts.values()), xr.Variable(dim, list(parts)))


def asked(
    lab: Lab, name: str, measure: Any, where: Any, prompts: int, dims: Mapping[str, tuple[int, ...]] | None = None
) -> xr.Dataset:
    """A measure of the QA-trained model on fresh prompts, where it was stopped and at the end of training."""
    model = trained(lab, Kind.qa)
    stages = {"stopped": model.at_best(), "end": model}
    found = {stage: lab.evaluate(at, name, measure, where, dims or {}, prompts) for stage, at in stages.items()}
    return stacked("stage", found).isel(setting=0)


def tests(lab: Lab) -> xr.Dataset:
    """The QA-trained model on the theorems' tests, on many fresh prompts."""
    s: Settings = lab.settings
    return stacked("kind", {k: asked(lab, f"test {k}", measure_errors, world(s, Kind(k)), s.prompts) for k in TESTS})


def uses(lab: Lab) -> xr.Dataset:
    """Proposition 3.3's bonuses, the static baseline and the complexity measure, for the QA-trained model."""
    s: Settings = lab.settings
    measures = {"uses": task_vector_uses, "static": static_offset_error}
    found = [asked(lab, name, measure, world(s, Kind.icl), s.prompts) for name, measure in measures.items()]
    hard = {k: asked(lab, f"complexity {k}", complexity, world(s, Kind(k)), s.trend_prompts) for k in KINDS}
    return xr.merge([*found, stacked("kind", hard)], compat="no_conflicts", join="outer")


def shifts(lab: Lab) -> xr.Dataset:
    """Proposition 3.4: errors of the QA-trained model on shifted dictionaries, on ICL prompts."""
    s: Settings = lab.settings
    places = {shift: world(s, Kind.icl, shift) for shift in SHIFTS}
    found = {shift: asked(lab, f"shift {shift}", measure_errors, at, s.trend_prompts) for shift, at in places.items()}
    return stacked("shift", found)


def prompts(lab: Lab) -> xr.Dataset:
    """Proposition 3.4: other prompt lengths, and several co-tasks in one prompt (eq. (8))."""
    s: Settings = lab.settings

    def longer(setting: str, seed: int, pairs: int) -> Concepts:
        return world(s, Kind.icl, pairs=pairs, longest=PAIR_COUNTS[-1])

    def mixed(setting: str, seed: int, cotasks: int) -> Concepts:
        return world(s, Kind.icl, cotasks=cotasks)

    lengths = asked(lab, "pairs", measure_errors, longer, s.trend_prompts, {"pairs": PAIR_COUNTS})
    weights, several = (
        asked(lab, "cotasks", measure, mixed, s.trend_prompts, {"cotasks": (1, 2)})
        for measure in (mixture_weights, measure_errors)
    )
    renamed = several.rename({name: f"cotasks_{name}" for name in several.data_vars})
    return xr.merge([lengths, weights, renamed], compat="no_conflicts", join="outer")


experiments = {
    "qa": Experiment(observed(Kind.qa, "The observed training on QA sentences (Fig. 3)."), cost=25),
    "icl": Experiment(observed(Kind.icl, "The observed training on word-label prompts (Fig. 2)."), cost=25),
    "qa-icl": Experiment(observed(Kind.qa_icl, "The observed training on QA-ICL prompts (Fig. 4)."), cost=70),
    "printed": Experiment(observed(Kind.qa, "Training on QA with the printed step sizes.", printed=True), cost=13),
    "tests": Experiment(tests, cost=20),
    "uses": Experiment(uses, cost=20),
    "shifts": Experiment(shifts, cost=20),
    "prompts": Experiment(prompts, cost=20),
    "explorer": Experiment(explorer, cost=20),
}

"""What is run for vector-arithmetic: three trainings, one with the printed step sizes, tests of the trained models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Prompt, Trained, cross_entropy, errors, expect, labelled
from iclab.models.residual_transformer import ResidualTransformer
from iclab.papers.vector_arithmetic.explorer import explorer
from iclab.papers.vector_arithmetic.settings import Settings, at_size, recipe, world
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
SHIFTS = {"icl": ("conic", "low", "all"), "qa-icl": ("low", "common", "all")}  # ICL prompts have no common tokens
PAIR_COUNTS = {"icl": (5, 10, 15, 30), "qa-icl": (1, 2, 3)}
POLYSEMY = (0.0, 0.5, 1.0)  # how likely another concept is in a word, times K; 1 in training
CONCEPTS = (2, 4, 8)
measure_errors = errors(cross_entropy)


def _watch(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    return dict(measure_errors(model, prompt)) | task_vector_cosines(model, prompt)


def _test(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    return dict(measure_errors(model, prompt)) | complexity(model, prompt) | mixture_weights(model, prompt)


def _use(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    return task_vector_uses(model, prompt) | task_vector_cosines(model, prompt) | static_offset_error(model, prompt)


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
    at_most = s.printed_seeds if printed else s.seeds
    recipes = {name: recipe(s, kind, printed)}
    return lab.train(name, recipes, s.record_at(kind), (observe,), cross_entropy, best_of="stopping", at_most=at_most)


def observed(kind: Kind, words: str, printed: bool = False) -> Callable[[Lab], xr.Dataset]:
    """The experiment that trains on one distribution."""

    def run(lab: Lab) -> xr.Dataset:
        return labelled(trained(lab, kind, printed).history.isel(setting=0), step="epoch")

    run.__doc__ = words
    return run


def sizes(lab: Lab) -> xr.Dataset:
    """Short trainings on QA inside Condition 3.1 at several K, with d, K' and N growing along; one program each."""
    found = {}
    for count in CONCEPTS[: lab.settings.size_programs]:
        s: Settings = at_size(lab.settings, count)
        recipes = {"standard": recipe(s, Kind.qa)}
        record_at = s.record_at(Kind.qa)
        run = lab.train(
            f"size-{count}", recipes, record_at, (observe,), cross_entropy, best_of="stopping", at_most=s.size_seeds
        )
        found[count] = run.history.isel(setting=0, drop=True).drop_dims("concept")
    return labelled(stacked("concepts", found), step="epoch", concepts="K")


def stacked(dim: str, parts: Mapping[Any, xr.Dataset]) -> xr.Dataset:
    """Results side by side along a new dimension; NaN where one of them has no such label."""
    return xr.concat(list(parts.values()), xr.Variable(dim, list(parts)), join="outer")


def asked(lab: Lab, model: Kind, name: str, where: Concepts, prompts: int, measure: Any = _test) -> xr.Dataset:
    """A measure of a trained model on fresh prompts, where it was stopped and at the end of training."""
    run = trained(lab, model)
    stages = {"stopped": run.at_best(), "end": run}
    found = {stage: lab.evaluate(at, name, measure, where, {}, prompts) for stage, at in stages.items()}
    return stacked("stage", found).isel(setting=0, drop=True)


def place(s: Settings, kind: str, **changes: Any) -> Concepts:
    """A test world; all of a kind have one shape, and so one program."""
    longest = max(PAIR_COUNTS[kind][-1], s.pairs if kind == "icl" else s.sentence_pairs) if kind in TESTS else None
    return world(s, Kind(kind), longest=longest, **changes)


def tests(lab: Lab) -> xr.Dataset:
    """All three models on fresh prompts of all three distributions, by one stopping rule and at the end."""
    s: Settings = lab.settings

    def on(model: Kind) -> xr.Dataset:
        count = s.prompts if model is Kind.qa else s.trend_prompts
        return stacked("kind", {kind: asked(lab, model, f"test {kind}", place(s, kind), count) for kind in KINDS})

    return stacked("training", {model.value: on(model) for model in Kind})[["error", "cross_entropy", "complexity"]]


def uses(lab: Lab) -> xr.Dataset:
    """Proposition 3.3's bonuses and the static baseline, for the QA-trained model."""
    s: Settings = lab.settings
    return asked(lab, Kind.qa, "uses", place(s, "icl"), s.prompts, _use)


def shifts(lab: Lab) -> xr.Dataset:
    """Proposition 3.4: errors of the QA-trained model on shifted dictionaries."""
    s: Settings = lab.settings

    def on(kind: str) -> xr.Dataset:
        places = {shift: place(s, kind, shift=shift) for shift in SHIFTS[kind]}
        found = {n: asked(lab, Kind.qa, f"{kind}, {n}", where, s.trend_prompts) for n, where in places.items()}
        return stacked("shift", {name: data[["error"]] for name, data in found.items()})

    return stacked("kind", {kind: on(kind) for kind in TESTS})


def lengths(lab: Lab) -> xr.Dataset:
    """Proposition 3.4: errors of the QA-trained model on shorter and longer prompts."""
    s: Settings = lab.settings

    def on(kind: str) -> xr.Dataset:
        places = {pairs: place(s, kind, pairs=pairs) for pairs in PAIR_COUNTS[kind]}
        found = {n: asked(lab, Kind.qa, f"{kind}, J = {n}", where, s.trend_prompts) for n, where in places.items()}
        return stacked("pairs", {pairs: data[["error"]] for pairs, data in found.items()})

    return stacked("kind", {kind: on(kind) for kind in TESTS})


def mixtures(lab: Lab) -> xr.Dataset:
    """Proposition 3.4 and (8): several co-tasks in one prompt, and other sets of concepts in words and labels."""
    s: Settings = lab.settings

    def at(kind: str, count: int, share: float) -> xr.Dataset:
        where = place(s, kind, cotasks=count, polysemy=share / s.concepts)
        return asked(lab, Kind.qa, f"{kind}, {count} co-tasks, polysemy {share:g}/K", where, s.trend_prompts)

    def on(kind: str) -> xr.Dataset:
        counts = range(1, min(3, s.concepts) + 1)
        return stacked("cotasks", {n: stacked("polysemy", {p: at(kind, n, p) for p in POLYSEMY}) for n in counts})

    return stacked("kind", {kind: on(kind) for kind in TESTS})


experiments = {
    "qa": Experiment(observed(Kind.qa, "The observed training on QA sentences (Fig. 3)."), cost=25),
    "icl": Experiment(observed(Kind.icl, "The observed training on word-label prompts (Fig. 2)."), cost=25),
    "qa-icl": Experiment(observed(Kind.qa_icl, "The observed training on QA-ICL prompts (Fig. 4)."), cost=70),
    "printed": Experiment(observed(Kind.qa, "Training on QA with the printed step sizes.", printed=True), cost=13),
    "sizes": Experiment(sizes, cost=25),
    "tests": Experiment(tests, cost=30),
    "uses": Experiment(uses, cost=10),
    "shifts": Experiment(shifts, cost=20),
    "lengths": Experiment(lengths, cost=15),
    "mixtures": Experiment(mixtures, cost=20),
    "explorer": Experiment(explorer, cost=20),
}

"""What is run for vector-arithmetic: three trainings, one more with the printed step sizes, and tests of the QA model."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.evaluation import errors, expect
from iclab.experiments import Lab, Trained
from iclab.losses import cross_entropy
from iclab.models.residual_transformer import ResidualTransformer
from iclab.authoring.paper import Experiment
from iclab.papers.vector_arithmetic.explorer import explorer
from iclab.papers.vector_arithmetic.settings import Settings, recipe, world
from iclab.probes.projections import concept_projections
from iclab.probes.task_vectors import complexity, mixture_weights, static_offset_error, task_vector_cosines, task_vector_uses
from iclab.prompts import Prompt
from iclab.training import Member
from iclab.worlds.concepts import Kind

KINDS = tuple(kind.value for kind in Kind)
TESTS = ("icl", "qa-icl")  # P_T* and P_QA^T*, on which the theorems test
OBSERVED_BATCH = 200
SHIFTS = ("none", "conic", "low", "common", "all")
PAIR_COUNTS = (5, 10, 15, 30)


def _watch(model: ResidualTransformer, prompt: Prompt) -> dict[str, Array]:
    return dict(errors(cross_entropy)(model, prompt)) | task_vector_cosines(model, prompt)


def observe(model: ResidualTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Loss, error and cosines of h_0 on all three distributions ("icl_...", "qa_...", "qa-icl_..."), and the projections.

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
    recipes = {name: lambda seed: recipe(s, kind, printed)}
    at_most = s.printed_seeds if printed else None
    return lab.train(name, recipes, s.record_at(kind), (observe,), cross_entropy, best_of="stopping", at_most=at_most)


def qa(lab: Lab) -> xr.Dataset:
    """The observed training on QA sentences (Fig. 3)."""
    return trained(lab, Kind.qa).history


def icl(lab: Lab) -> xr.Dataset:
    """The observed training on word-label prompts (Fig. 2)."""
    return trained(lab, Kind.icl).history


def qa_icl(lab: Lab) -> xr.Dataset:
    """The observed training on QA-ICL prompts (Fig. 4)."""
    return trained(lab, Kind.qa_icl).history


def printed(lab: Lab) -> xr.Dataset:
    """Training on QA sentences with the printed step sizes."""
    return trained(lab, Kind.qa, printed=True).history


def tests(lab: Lab) -> xr.Dataset:
    """The QA-trained model on the theorems' tests, on many fresh prompts, where it was stopped and at the end."""
    s: Settings = lab.settings
    model = trained(lab, Kind.qa)
    parts = [
        [
            lab.evaluate(
                stage, f"test {kind}", errors(cross_entropy),
                lambda setting, seed, one, k=kind: world(s, Kind(k)), {"one": (0,)}, s.prompts,
            ).isel(one=0, drop=True)
            for stage in (model.at_best(), model)
        ]
        for kind in TESTS
    ]  # fmt: skip
    stages = [xr.concat(pair, xr.Variable("stage", ["stopped", "end"])) for pair in parts]
    return xr.concat(stages, xr.Variable("kind", list(TESTS)))


def uses(lab: Lab) -> xr.Dataset:
    """Proposition 3.3's bonuses, the static baseline and the complexity measure, for the QA-trained model."""
    s: Settings = lab.settings
    model = trained(lab, Kind.qa)
    dims = {"kind": ("icl",)}
    found = [
        lab.evaluate(model, name, measure, lambda setting, seed, kind: world(s, Kind(kind)), dims, s.prompts).sel(
            kind="icl", drop=True
        )
        for name, measure in (("uses", task_vector_uses), ("static", static_offset_error))
    ]
    parts = [
        lab.evaluate(
            model,
            f"complexity {kind}",
            complexity,
            lambda setting, seed, one, k=kind: world(s, Kind(k)),
            {"one": (0,)},
            s.trend_prompts,
        ).isel(one=0, drop=True)
        for kind in KINDS
    ]
    found.append(xr.concat(parts, xr.Variable("kind", list(KINDS))))
    return xr.merge(found)


def shifts(lab: Lab) -> xr.Dataset:
    """Proposition 3.4: errors of the QA-trained model on shifted dictionaries, on ICL prompts."""
    s: Settings = lab.settings
    parts = [
        lab.evaluate(
            trained(lab, Kind.qa), f"shift {shift}", errors(cross_entropy),
            lambda setting, seed, one, name=shift: world(s, Kind.icl, name), {"one": (0,)}, s.trend_prompts,
        ).isel(one=0, drop=True)
        for shift in SHIFTS
    ]  # fmt: skip
    return xr.concat(parts, xr.Variable("shift", list(SHIFTS)))


def prompts(lab: Lab) -> xr.Dataset:
    """Proposition 3.4: other prompt lengths, and several co-tasks in one prompt (eq. (8))."""
    s: Settings = lab.settings
    model = trained(lab, Kind.qa)
    found = lab.evaluate(
        model, "pairs", errors(cross_entropy),
        lambda setting, seed, pairs: world(s, Kind.icl, pairs=pairs, longest=PAIR_COUNTS[-1]),
        {"pairs": PAIR_COUNTS}, s.trend_prompts,
    )  # fmt: skip
    mixed = lab.evaluate(
        model, "cotasks", mixture_weights,
        lambda setting, seed, cotasks: world(s, Kind.icl, cotasks=cotasks), {"cotasks": (1, 2)}, s.trend_prompts,
    )  # fmt: skip
    several = lab.evaluate(
        model, "cotasks", errors(cross_entropy),
        lambda setting, seed, cotasks: world(s, Kind.icl, cotasks=cotasks), {"cotasks": (1, 2)}, s.trend_prompts,
    )  # fmt: skip
    several = several.rename({name: f"cotasks_{name}" for name in several.data_vars})
    return xr.merge([found, mixed.assign_coords(concept=np.arange(s.concepts)), several])


EXPERIMENTS = {
    "qa": Experiment(qa, cost=25),
    "icl": Experiment(icl, cost=25),
    "qa-icl": Experiment(qa_icl, cost=70),
    "printed": Experiment(printed, cost=13),
    "tests": Experiment(tests, cost=20),
    "uses": Experiment(uses, cost=10),
    "shifts": Experiment(shifts, cost=10),
    "prompts": Experiment(prompts, cost=10),
    "explorer": Experiment(explorer, cost=20),
}

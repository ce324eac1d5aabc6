"""What is run for chain-of-thought: one training, tests by CoT and by ICL with erroneous examples, timed trainings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Trained, errors, expect, geometric, require, squared, swept
from iclab.errors import InputError
from iclab.inference import chain_errors
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.papers.chain_of_thought import gpt2, laws
from iclab.papers.chain_of_thought import settings as worlds
from iclab.papers.chain_of_thought.explorer import explorer
from iclab.papers.chain_of_thought.settings import Settings, output_matrices, step_matrices
from iclab.probes.steps import at_first_pattern, step_masses
from iclab.worlds.reasoning import Mode

LENGTHS = (5, 10, 15, 20, 30, 40)  # l_ts of Figs. 2 and 3
COMPARISON_LENGTHS = (10, 20, 40, 80, 160, 320, 640, 1280)  # l_ts of Fig. 4
KINDS = ("generic", "equal mixture")  # of test patterns
MEASURES = {Mode.chain: chain_errors, Mode.direct: errors(squared), Mode.next_step: at_first_pattern}
Transformer = ChainTransformer | SeparateChainTransformer
Dims = Mapping[str, Sequence[Any]]


def varied(s: Settings, mode: Mode) -> dict[str, dict[float, tuple[np.ndarray, float]]]:
    """What the panels of Fig. 2 (by CoT) or Fig. 3 (by ICL) vary: by value, the transition matrices and α'."""
    chain, fraction = mode is Mode.chain, s.test_matching_fraction
    build = partial(step_matrices if chain else output_matrices, s)
    tau, rho = (s.trajectory_probability, s.primacy) if chain else laws.OUTPUT
    second = [(value, rho) for value in (laws.TRAJECTORIES if chain else laws.OUTPUTS)]
    third = [(tau, value) for value in (laws.PRIMACIES if chain else laws.OUTPUT_PRIMACIES)]
    figure = f"Fig. {2 if chain else 3}"
    return {
        "A": {value: (build(tau, rho), value) for value in laws.FRACTIONS},
        "B": {pair[0]: (made, fraction) for pair, made in _feasible(build, second, f"{figure}B")},
        "C": {pair[1]: (made, fraction) for pair, made in _feasible(build, third, f"{figure}C")},
    }


def _feasible(build: Callable[..., np.ndarray], wishes: Sequence[tuple[float, float]], what: str) -> list[tuple]:
    """Those (τ, ρ) of a figure that K and M' allow, with their matrices; a figure needs at least two."""
    made = []
    for wish in wishes:
        try:
            made.append((wish, build(*wish)))
        except InputError:
            continue
    require(len(made) >= 2, f"these settings allow {len(made)} of the values {what} is drawn for: {list(wishes)}.")
    return made


def check(s: Settings) -> None:
    """Build every matrix before anything is trained, so that what cannot be met is refused at once."""
    for mode, condition in ((Mode.chain, True), (Mode.direct, False)):
        varied(s, mode)
        output_matrices(s, *laws.COMPARISON, condition_1=condition)


def observe(model: Transformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention by step and pattern on noisy test prompts, next steps of all kinds."""
    return expect(step_masses, model, member.watched[0], key, 2)


def standard(lab: Lab) -> Trained:
    """The one training."""
    s: Settings = lab.settings
    return lab.train("standard", {"standard": lambda seed: worlds.recipe(s, seed)}, s.record_at, (observe,), squared)


def _asked(lab: Lab, name: str, mode: Mode, dims: Dims, prompts: int, world: Callable[..., tuple]) -> xr.Dataset:
    """The standard training asked in a mode; `world(**coordinates)` is what `inference_world` takes behind it."""

    def place(setting: str, seed: int, **at: Any) -> object:
        return worlds.inference_world(lab.settings, seed, mode, *world(**at))

    return lab.evaluate(standard(lab), name, MEASURES[mode], place, dims, prompts).isel(setting=0, drop=True)


def _figure(mode: Mode, name: str, lab: Lab) -> xr.Dataset:
    """Errors against the number of examples, varying what `varied` says: values of panel A are "value_A", and so on."""
    s: Settings = lab.settings
    parts = []
    for panel, points in varied(s, mode).items():
        at = list(points.values())
        dims = {"value": range(len(at)), "length": [length for length in LENGTHS if length <= s.longest_test]}
        world = partial(lambda at, value, length: (*at[value], length, s.longest_test), at)
        found = _asked(lab, f"{name} {panel}", mode, dims, s.trend_prompts, world).assign_coords(value=list(points))
        parts.append(found.rename({key: f"{key}_{panel}" for key in ("value", *found.data_vars)}))
    return xr.merge(parts, compat="no_conflicts", join="outer")


def _longest(lab: Lab, name: str, mode: Mode, matrices: np.ndarray, kinds: Sequence[str] = KINDS) -> xr.Dataset:
    """At the longest l_ts, on generic test patterns and with the equal mixture of all training patterns among them."""
    s: Settings = lab.settings
    asked = matrices, s.test_matching_fraction, s.longest_test, s.longest_test
    return _asked(lab, name, mode, {"kind": kinds}, s.prompts, lambda kind: (*asked, kind))


def generalisation(lab: Lab) -> xr.Dataset:
    """Theorem 2, and "icl_error" of Theorem 3(b): ICL at the same length with the largest feasible ρ_o of Fig. 3C."""
    found = _longest(lab, "generalisation", Mode.chain, step_matrices(lab.settings))
    best, _ = list(varied(lab.settings, Mode.direct)["C"].values())[-1]
    once = _longest(lab, "direct generalisation", Mode.direct, best, KINDS[:1])
    return found.assign(icl_error=once["error"].isel(kind=0, drop=True))


def mixtures(lab: Lab) -> xr.Dataset:
    """Attention and next-step error where the query's input is the first pattern, generic or the equal mixture."""
    found = _longest(lab, "mixtures", Mode.next_step, step_matrices(lab.settings))
    count = found["first_count"].where(found["first_count"] > 0)
    return xr.Dataset({"mass": found["first_mass"] / count, "error": found["first_wrong"] / count})


def comparison(lab: Lab) -> xr.Dataset:
    """Fig. 4: CoT and ICL on the same prompts, with Condition 1 holding and failing."""
    s: Settings = lab.settings
    lengths = [length for length in COMPARISON_LENGTHS if length <= s.longest_comparison]
    dims = {"condition": ("holds", "fails"), "length": lengths}

    def world(condition: str, length: int) -> tuple:
        matrices = output_matrices(s, *laws.COMPARISON, condition_1=condition == "holds")
        return matrices, s.test_matching_fraction, length, lengths[-1]

    chain, once = (
        _asked(lab, f"comparison {mode.name}", mode, dims, s.comparison_prompts, world)
        for mode in (Mode.chain, Mode.direct)
    )
    return xr.Dataset({"cot": chain["error"], "cot_final": chain["final_error"], "icl": once["error"]})


def watch(model: Transformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """The ends of both stages: attention on the query's step, and on its step and pattern."""
    mass = expect(step_masses, model, member.world, key, 1)
    column = mass["same_pattern_same_step"]
    return {"right_step": column + mass["other_pattern_same_step"], "right_column": column}


def _timed(lab: Lab, training: str, changes: Mapping[str, Mapping[str, Any]]) -> xr.Dataset:
    """Trainings with another M, K or α, by label, watched in their own worlds."""
    s: Settings = lab.settings
    recipe = dataclasses.replace(worlds.recipe(s, 0), watched=(), arrays={})
    at = {label: worlds.training_world(s, **change) for label, change in changes.items()}
    recipes = {label: dataclasses.replace(recipe, world=world) for label, world in at.items()}
    return lab.train(training, recipes, geometric(s.rate_steps, ratio=1.12), (watch,), squared).history


def rate_fraction(lab: Lab) -> xr.Dataset:
    """Trainings at several α."""
    changes = {f"{value:g}": {"fraction": value} for value in laws.TRAINED_FRACTIONS}
    return swept(_timed(lab, "rate-fraction", changes), "fraction", laws.TRAINED_FRACTIONS)


def _apart(name: str, values: Sequence[int], lab: Lab) -> xr.Dataset:
    """Trainings at several M or K, whose shapes differ: one ensemble for each value."""
    fitting = [value for value in values if value <= lab.settings.feature_dimension][: lab.settings.rate_programs]
    found = [_timed(lab, f"rate-{name}-{value}", {name: {name: value}}) for value in fitting]
    return xr.concat([part.isel(setting=0, drop=True) for part in found], xr.Variable(name, fitting))


experiments = {
    "training": Experiment(
        lambda lab: gpt2.with_loss(lab, standard(lab), lab.settings), 20, "The observed training, and its loss."
    ),
    "chains": Experiment(partial(_figure, Mode.chain, "cot"), 40, "Figure 2: errors of CoT over α', τ and ρ."),
    "direct": Experiment(partial(_figure, Mode.direct, "icl"), 25, "Figure 3: errors of ICL over α', τ_o and ρ_o."),
    "generalisation": Experiment(generalisation, cost=4),
    "mixtures": Experiment(mixtures, cost=4),
    "comparison": Experiment(comparison, cost=45),
    "explorer": Experiment(explorer, cost=8),
    "gpt2-training": Experiment(
        lambda lab: gpt2.with_loss(lab, gpt2.trained(lab), lab.settings.gpt2), 100, "GPT-2, observed."
    ),
    "gpt2-steps": Experiment(lambda lab: gpt2.steps(lab, standard(lab)), 25, "GPT-2 and one layer, step by step."),
    "rate-fraction": Experiment(rate_fraction, cost=25),
    "rate-patterns": Experiment(partial(_apart, "patterns", laws.PATTERNS), 40, "Trainings at several M."),
    "rate-steps": Experiment(partial(_apart, "steps", laws.STEPS), 40, "Trainings at several K."),
}

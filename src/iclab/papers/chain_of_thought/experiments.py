"""What is run for chain-of-thought: one training, tests by CoT and by ICL with erroneous examples, trainings at other settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Recipe, Trained, errors, expect, geometric, require, squared, swept
from iclab.errors import InputError
from iclab.inference import chain_errors
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.papers.chain_of_thought import gpt2
from iclab.papers.chain_of_thought.explorer import explorer
from iclab.papers.chain_of_thought.laws import (
    FRACTIONS,
    OUTPUT_PRIMACIES,
    OUTPUTS,
    PATTERNS,
    PRIMACIES,
    STEPS,
    TRAINED_FRACTIONS,
    TRAJECTORIES,
)
from iclab.papers.chain_of_thought.settings import (
    COMPARISON,
    Settings,
    inference_world,
    output_matrices,
    recipe,
    step_matrices,
    usual_matrices,
)
from iclab.probes.steps import at_first_pattern, step_masses
from iclab.worlds.reasoning import Mode, Reasoning

LENGTHS = (5, 10, 15, 20, 30, 40)  # l_ts of Figs. 2 and 3
COMPARISON_LENGTHS = (10, 20, 40, 80, 160, 320, 640, 1280)  # l_ts of Fig. 4
OUTPUT = (0.5, 0.5)  # (τ_o, ρ_o) of Fig. 3 where not varied
KINDS = ("generic", "equal mixture")  # of test patterns
OBSERVED_BATCHES = 2
MEASURES = {Mode.chain: chain_errors, Mode.direct: errors(squared), Mode.next_step: at_first_pattern}
Transformer = ChainTransformer | SeparateChainTransformer


def varied(s: Settings, mode: Mode) -> dict[str, dict[float, tuple[np.ndarray, float]]]:
    """What the panels of Fig. 2 (by CoT) or Fig. 3 (by ICL) vary: by value, the transition matrices and α'."""
    chain, fraction = mode is Mode.chain, s.test_matching_fraction
    build = partial(step_matrices if chain else output_matrices, s)
    tau, rho = (s.trajectory_probability, s.primacy) if chain else OUTPUT
    second = [(value, rho) for value in (TRAJECTORIES if chain else OUTPUTS)]
    third = [(tau, value) for value in (PRIMACIES if chain else OUTPUT_PRIMACIES)]
    figure = f"Fig. {2 if chain else 3}"
    return {
        "A": {value: (build(tau, rho), value) for value in FRACTIONS},
        "B": {pair[0]: (made, fraction) for pair, made in _feasible(build, second, f"{figure}B").items()},
        "C": {pair[1]: (made, fraction) for pair, made in _feasible(build, third, f"{figure}C").items()},
    }


def _feasible(
    build: Callable[..., np.ndarray], wishes: Sequence[tuple[float, float]], what: str
) -> dict[tuple[float, float], np.ndarray]:
    """The matrices of a figure that K and M' allow; a figure needs at least two."""
    made = {}
    for wish in wishes:
        try:
            made[wish] = build(*wish)
        except InputError:
            continue
    require(len(made) >= 2, f"these settings allow {len(made)} of the values {what} is drawn for: {list(wishes)}.")
    return made


def check(s: Settings) -> None:
    """Build every matrix before anything is trained, so that what cannot be met is refused at once."""
    for mode in (Mode.chain, Mode.direct):
        varied(s, mode)
    for condition in (True, False):
        output_matrices(s, *COMPARISON, condition_1=condition)


def observe(model: Transformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention by step and pattern on noisy test prompts, next steps of all kinds."""
    return expect(step_masses, model, member.watched[0], key, OBSERVED_BATCHES)


def standard(lab: Lab) -> Trained:
    """The one training."""
    s: Settings = lab.settings
    return lab.train("standard", {"standard": lambda seed: recipe(s, seed)}, s.record_at, (observe,), squared)


def training(lab: Lab) -> xr.Dataset:
    """The observed training, and the loss on fresh prompts made like the training ones (Theorem 1)."""
    return gpt2.with_loss(lab, standard(lab), lab.settings.prompts)


def _asked(
    lab: Lab,
    name: str,
    mode: Mode,
    dims: Mapping[str, Sequence[Any]],
    prompts: int,
    world: Callable[..., tuple[Any, ...]],
) -> xr.Dataset:
    """The standard training asked in a mode; `world(**coordinates)` are matrices, α', l_ts, its maximum, the kind of patterns."""

    def place(setting: str, seed: int, **at: Any) -> object:
        matrices, fraction, length, longest, *kind = world(**at)
        return inference_world(lab.settings, seed, matrices, fraction, length, longest, mode, *kind)

    return lab.evaluate(standard(lab), name, MEASURES[mode], place, dims, prompts).isel(setting=0)


def _figure(lab: Lab, mode: Mode, name: str) -> xr.Dataset:
    """Errors against the number of examples; each panel has its own swept values as "value_A", "value_B", "value_C"."""
    s: Settings = lab.settings
    lengths = [length for length in LENGTHS if length <= s.longest_test]
    parts = []
    for panel, points in varied(s, mode).items():
        at = list(points.values())
        dims = {"value": range(len(at)), "length": lengths}
        found = _asked(
            lab, f"{name} {panel}", mode, dims, s.trend_prompts,
            lambda value, length, at=at: (*at[value], length, s.longest_test),
        ).assign_coords(value=list(points))  # fmt: skip
        parts.append(found.rename({key: f"{key}_{panel}" for key in ("value", *found.data_vars)}))
    return xr.merge(parts)


def chains(lab: Lab) -> xr.Dataset:
    """Fig. 2: CoT errors against the number of examples, varying α' (A), τ (B), ρ (C)."""
    return _figure(lab, Mode.chain, "cot")


def direct(lab: Lab) -> xr.Dataset:
    """Fig. 3: ICL errors against the number of examples, varying α' (A), τ_o (B), ρ_o (C)."""
    return _figure(lab, Mode.direct, "icl")


def _longest(lab: Lab, name: str, mode: Mode, matrices: np.ndarray, kinds: Sequence[str] = KINDS) -> xr.Dataset:
    """At the longest l_ts, on generic test patterns and with the equal mixture of all training patterns among them."""
    s: Settings = lab.settings
    asked = matrices, s.test_matching_fraction, s.longest_test, s.longest_test
    return _asked(lab, name, mode, {"kind": kinds}, s.prompts, lambda kind: (*asked, kind))


def generalisation(lab: Lab) -> xr.Dataset:
    """Theorem 2, and "icl_error" of Theorem 3(b): ICL at the same length with the largest feasible ρ_o of Fig. 3C."""
    s: Settings = lab.settings
    found = _longest(lab, "generalisation", Mode.chain, usual_matrices(s))
    best, _ = list(varied(s, Mode.direct)["C"].values())[-1]
    once = _longest(lab, "direct generalisation", Mode.direct, best, KINDS[:1])
    return found.assign(icl_error=once["error"].isel(kind=0, drop=True))


def mixtures(lab: Lab) -> xr.Dataset:
    """Attention and next-step error where the query's input is the first test pattern: a generic one or the equal mixture."""
    found = _longest(lab, "mixtures", Mode.next_step, usual_matrices(lab.settings))
    count = found["first_count"].where(found["first_count"] > 0)
    return xr.Dataset({"mass": found["first_mass"] / count, "error": found["first_wrong"] / count})


def comparison(lab: Lab) -> xr.Dataset:
    """Fig. 4: CoT and ICL on the same prompts, with Condition 1 holding and failing."""
    s: Settings = lab.settings
    lengths = [length for length in COMPARISON_LENGTHS if length <= s.longest_comparison]
    dims = {"condition": ("holds", "fails"), "length": lengths}

    def world(condition: str, length: int) -> tuple[Any, ...]:
        matrices = output_matrices(s, *COMPARISON, condition_1=condition == "holds")
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


def _timed(s: Settings, *, patterns: int = 0, steps: int = 0, fraction: float = 0.0) -> Recipe:
    """The training with another M, K or α, watched in its own world."""
    world = Reasoning(
        np.eye(patterns or s.patterns, s.feature_dimension), steps=steps or s.reasoning_steps,
        matching_fraction=fraction or s.matching_fraction, context_length=s.train_length,
    )  # fmt: skip
    return dataclasses.replace(recipe(s, 0), world=world, watched=(), arrays={})


def _observed(lab: Lab, name: str, recipes: Mapping[str, Recipe]) -> xr.Dataset:
    return lab.train(name, recipes, geometric(lab.settings.rate_steps, ratio=1.12), (watch,), squared).history


def rate_fraction(lab: Lab) -> xr.Dataset:
    """Trainings at several α."""
    recipes = {f"{value:g}": _timed(lab.settings, fraction=value) for value in TRAINED_FRACTIONS}
    return swept(_observed(lab, "rate-fraction", recipes), "fraction", TRAINED_FRACTIONS)


def _apart(lab: Lab, name: str, values: Sequence[int]) -> xr.Dataset:
    """Trainings whose shapes differ, one ensemble for each."""
    values = values[: lab.settings.rate_programs]
    found = [_observed(lab, f"rate-{name}-{value}", {name: _timed(lab.settings, **{name: value})}) for value in values]
    return xr.concat([part.isel(setting=0, drop=True) for part in found], xr.Variable(name, list(values)))


def rate_patterns(lab: Lab) -> xr.Dataset:
    """Trainings at several M."""
    return _apart(lab, "patterns", [count for count in PATTERNS if count <= lab.settings.feature_dimension])


def rate_steps(lab: Lab) -> xr.Dataset:
    """Trainings at several K."""
    return _apart(lab, "steps", STEPS)


experiments = {
    "training": Experiment(training, cost=20),
    "chains": Experiment(chains, cost=40),
    "direct": Experiment(direct, cost=25),
    "generalisation": Experiment(generalisation, cost=4),
    "mixtures": Experiment(mixtures, cost=4),
    "comparison": Experiment(comparison, cost=45),
    "explorer": Experiment(explorer, cost=8),
    "gpt2-training": Experiment(gpt2.training, cost=100),
    "gpt2-steps": Experiment(lambda lab: gpt2.steps(lab, standard(lab)), cost=25),
    "rate-fraction": Experiment(rate_fraction, cost=25),
    "rate-patterns": Experiment(rate_patterns, cost=40),
    "rate-steps": Experiment(rate_steps, cost=40),
}

"""What is run for chain-of-thought: one training, and tests by CoT and by ICL with erroneous examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.errors import InputError, require
from iclab.evaluation import errors, expect
from iclab.experiments import Lab, Trained
from iclab.inference import chain_errors
from iclab.losses import squared
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.papers.chain_of_thought.explorer import explorer
from iclab.papers.chain_of_thought.settings import Settings, inference_world, output_matrices, recipe, step_matrices
from iclab.authoring.paper import Experiment
from iclab.probes.steps import at_first_pattern, step_masses
from iclab.training import Member
from iclab.worlds.reasoning import Mode

LENGTHS = (5, 10, 15, 20, 30, 40)  # l_ts of Figs. 2 and 3
COMPARISON_LENGTHS = (10, 20, 40, 80, 160, 320, 640, 1280)  # l_ts of Fig. 4
FRACTIONS = (0.2, 0.4, 0.6, 0.8)  # α' of Figs. 2A and 3A
TRAJECTORIES = (0.1, 0.25, 0.4, 0.55)  # τ of Fig. 2B, at ρ = 0.8
PRIMACIES = (0.75, 0.8, 0.85, 0.95)  # ρ of Fig. 2C, at τ = 0.5
OUTPUTS = ((0.3, 0.5), (0.4, 0.5), (0.5, 0.5), (0.6, 0.5))  # (τ_o, ρ_o) of Fig. 3B
OUTPUT_PRIMACIES = ((0.5, 0.3), (0.5, 0.45), (0.5, 0.6), (0.5, 0.75))  # (τ_o, ρ_o) of Fig. 3C
DEFAULT_OUTPUT = (0.5, 0.5)  # (τ_o, ρ_o) of Fig. 3A and Theorem 3(b)
COMPARISON = (0.4, 0.1)  # (τ_o, ρ_o) of Fig. 4
OBSERVED_BATCHES = 2


def _feasible(
    build: Callable[..., np.ndarray], wishes: Sequence[tuple[float, float]], what: str
) -> tuple[tuple[float, float], ...]:
    """Those (τ, ρ) of a figure that K and M' allow; a figure needs at least two."""
    kept = []
    for wish in wishes:
        try:
            build(*wish)
        except InputError:
            continue
        kept.append(wish)
    require(len(kept) >= 2, f"these settings allow {len(kept)} of the values {what} is drawn for: {list(wishes)}.")
    return tuple(kept)


def trajectories(s: Settings) -> tuple[tuple[float, float], ...]:
    """(τ, ρ) of Fig. 2B."""
    return _feasible(partial(step_matrices, s), [(tau, s.primacy) for tau in TRAJECTORIES], "Fig. 2B")


def primacies(s: Settings) -> tuple[tuple[float, float], ...]:
    """(τ, ρ) of Fig. 2C."""
    return _feasible(partial(step_matrices, s), [(s.trajectory_probability, rho) for rho in PRIMACIES], "Fig. 2C")


def outputs(s: Settings) -> tuple[tuple[float, float], ...]:
    """(τ_o, ρ_o) of Fig. 3B."""
    return _feasible(partial(output_matrices, s), OUTPUTS, "Fig. 3B")


def output_primacies(s: Settings) -> tuple[tuple[float, float], ...]:
    """(τ_o, ρ_o) of Fig. 3C."""
    return _feasible(partial(output_matrices, s), OUTPUT_PRIMACIES, "Fig. 3C")


def check(s: Settings) -> None:
    """Build every matrix before anything is trained, so that what cannot be met is refused at once."""
    for build in (trajectories, primacies, outputs, output_primacies):
        build(s)
    output_matrices(s, *DEFAULT_OUTPUT)
    for condition in (True, False):
        output_matrices(s, *COMPARISON, condition_1=condition)


def observe(model: ChainTransformer | SeparateChainTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention by step and pattern on noisy test prompts, next steps of all kinds."""
    return expect(step_masses, model, member.watched[0], key, OBSERVED_BATCHES)


def standard(lab: Lab) -> Trained:
    """The one training."""
    s: Settings = lab.settings
    return lab.train("standard", {"standard": lambda seed: recipe(s, seed)}, s.record_at, (observe,), squared)


def training(lab: Lab) -> xr.Dataset:
    """The observed training, and the loss on fresh prompts made like the training ones (Theorem 1)."""
    s: Settings = lab.settings
    trained = standard(lab)
    found = lab.evaluate(
        trained, "convergence", errors(squared), lambda setting, seed, domain: recipe(s, seed).world,
        {"domain": ("training prompts",)}, s.prompts,
    ).sel(domain="training prompts")  # fmt: skip
    history = trained.history
    return history.assign(loss=found["squared"], error=found["error"])


def _lengths(s: Settings) -> tuple[int, ...]:
    return tuple(length for length in LENGTHS if length <= s.longest_test)


def _sweep(lab: Lab, name: str, mode: Mode, values: tuple, world_of: Callable[..., tuple[np.ndarray, float]]) -> xr.Dataset:
    """Errors against a swept value and the length; `world_of(value)` gives the matrices and α'."""
    s: Settings = lab.settings

    def world(setting: str, seed: int, value: int, length: int) -> object:
        matrices, fraction = world_of(values[value])
        return inference_world(s, seed, matrices, fraction, length, s.longest_test, mode)

    return lab.evaluate(
        standard(lab), name, chain_errors if mode is Mode.chain else errors(squared), world,
        {"value": range(len(values)), "length": _lengths(s)}, s.trend_prompts,
    ).assign_coords(value=[v if isinstance(v, float) else v[name.endswith("C")] for v in values])  # fmt: skip


def chains(lab: Lab) -> xr.Dataset:
    """Fig. 2: CoT errors against the number of examples, varying α' (A), τ (B), ρ (C)."""
    s: Settings = lab.settings
    tau, rho, fraction = s.trajectory_probability, s.primacy, s.test_matching_fraction
    parts = {
        "A": _sweep(lab, "cot A", Mode.chain, FRACTIONS, lambda v: (step_matrices(s, tau, rho), v)),
        "B": _sweep(lab, "cot B", Mode.chain, trajectories(s), lambda v: (step_matrices(s, *v), fraction)),
        "C": _sweep(lab, "cot C", Mode.chain, primacies(s), lambda v: (step_matrices(s, *v), fraction)),
    }
    return _panels(parts)


def direct(lab: Lab) -> xr.Dataset:
    """Fig. 3: ICL errors against the number of examples, varying α' (A), τ_o (B), ρ_o (C)."""
    s: Settings = lab.settings
    fraction = s.test_matching_fraction
    parts = {
        "A": _sweep(lab, "icl A", Mode.direct, FRACTIONS, lambda v: (output_matrices(s, *DEFAULT_OUTPUT), v)),
        "B": _sweep(lab, "icl B", Mode.direct, outputs(s), lambda v: (output_matrices(s, *v), fraction)),
        "C": _sweep(lab, "icl C", Mode.direct, output_primacies(s), lambda v: (output_matrices(s, *v), fraction)),
    }
    return _panels(parts)


def _panels(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    """Panels side by side; each keeps its own swept values as "value_A", "value_B", "value_C"."""
    renamed = [
        part.rename({"value": f"value_{panel}"} | {name: f"{name}_{panel}" for name in part.data_vars})
        for panel, part in parts.items()
    ]
    return xr.merge(renamed)


def generalisation(lab: Lab) -> xr.Dataset:
    """Theorem 2 at the longest l_ts, on generic test patterns and with the equal mixture of all training patterns among them.

    "icl_error" is Theorem 3(b)'s: ICL at the same length with the largest feasible ρ_o of Fig. 3C.
    """
    s: Settings = lab.settings
    matrices = step_matrices(s, s.trajectory_probability, s.primacy)
    found = lab.evaluate(
        standard(lab), "generalisation", chain_errors,
        lambda setting, seed, kind: inference_world(
            s, seed, matrices, s.test_matching_fraction, s.longest_test, s.longest_test, Mode.chain, kind
        ),
        {"kind": ("generic", "equal mixture")}, s.prompts,
    )  # fmt: skip
    best = output_matrices(s, *output_primacies(s)[-1])
    direct = lab.evaluate(
        standard(lab), "direct generalisation", errors(squared),
        lambda setting, seed, kind: inference_world(
            s, seed, best, s.test_matching_fraction, s.longest_test, s.longest_test, Mode.direct
        ),
        {"kind": ("generic",)}, s.prompts,
    )  # fmt: skip
    return found.assign(icl_error=direct["error"].sel(kind="generic", drop=True))


def mixtures(lab: Lab) -> xr.Dataset:
    """Attention and next-step error where the query's input is the first test pattern: a generic one or the equal mixture."""
    s: Settings = lab.settings
    matrices = step_matrices(s, s.trajectory_probability, s.primacy)
    found = lab.evaluate(
        standard(lab), "mixtures", at_first_pattern,
        lambda setting, seed, kind: inference_world(
            s, seed, matrices, s.test_matching_fraction, s.longest_test, s.longest_test, Mode.next_step, kind
        ),
        {"kind": ("generic", "equal mixture")}, s.prompts,
    )  # fmt: skip
    count = found["first_count"].where(found["first_count"] > 0)
    return xr.Dataset({"mass": found["first_mass"] / count, "error": found["first_wrong"] / count})


def comparison(lab: Lab) -> xr.Dataset:
    """Fig. 4: CoT and ICL on the same prompts, with Condition 1 holding and failing, τ_o = 0.4 and ρ_o = 0.1."""
    s: Settings = lab.settings
    grid = tuple(length for length in COMPARISON_LENGTHS if length <= s.longest_comparison)
    dims = {"condition": ("holds", "fails"), "length": grid}

    def evaluate(mode: Mode) -> xr.Dataset:
        return lab.evaluate(
            standard(lab), f"comparison {mode.name}", chain_errors if mode is Mode.chain else errors(squared),
            lambda setting, seed, condition, length: inference_world(
                s, seed, output_matrices(s, *COMPARISON, condition_1=condition == "holds"),
                s.test_matching_fraction, length, grid[-1], mode,
            ),
            dims, s.comparison_prompts,
        )  # fmt: skip

    chain = evaluate(Mode.chain)
    return xr.Dataset({"cot": chain["error"], "cot_final": chain["final_error"], "icl": evaluate(Mode.direct)["error"]})


EXPERIMENTS = {
    "training": Experiment(training, cost=20),
    "chains": Experiment(chains, cost=40),
    "direct": Experiment(direct, cost=25),
    "generalisation": Experiment(generalisation, cost=4),
    "mixtures": Experiment(mixtures, cost=4),
    "comparison": Experiment(comparison, cost=45),
    "explorer": Experiment(explorer, cost=8),
}

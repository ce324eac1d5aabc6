"""The rates of nonlinear-icl: Theorem 3.3 in α, β and M1, Fig. 6, and the test prompts for which the theorem promises.

The loss of training is on fresh prompts of seen tasks, so its first passage is that of in-domain generalisation.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Int, Key

from iclab.authoring import Criterion, Experiment, Lab, Law, Prompt, Recipe, Trained, errors, geometric, gridded, hinge
from iclab.papers.nonlinear_icl.experiments import asked, standard
from iclab.papers.nonlinear_icl.settings import Settings, as_tuples, in_domain, place, recipe
from iclab.probes.norms import projections
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks

PATTERNS = (6, 8, 11, 16)  # M1, all with the M2 that fits beside the largest
LENGTHS = (1, 2, 3, 4, 6, 9)  # l_tr of Fig. 6
LENGTH_FRACTIONS = (0.2, 0.35, 0.6, 1.0)  # α of Fig. 6, left
PHASE = {"fraction": (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0), "length": (2, 4, 6, 8, 12, 16, 20, 30, 40)}  # α', l_ts
SMALL = {
    "0-1 error on unseen tasks at l_ts = 20 below 0.05": Criterion(0.05, interpolate=True),
    "0-1 error below 0.02": Criterion(0.02, interpolate=True),
    "0-1 error below 0.1": Criterion(0.1, interpolate=True),
}
# (10) suffices, so each power bounds the iterations from above: α goes to 0, β and M1 grow.
LAWS = {
    "α": Law(
        "rate-fraction", "matching_fraction", (0.3, 0.4, 0.5, 0.6, 0.8, 1.0), "α", -2 / 3, on=(0.6, 0.8, 1.0),
        towards="small", rivals={"α⁻¹": -1.0, "α⁻²": -2.0},
    ),
    "β": Law(
        "rate-strength", "pattern_strength", (1.5, 2.0, 3.0, 4.5, 6.0), "β", -2 / 3, on=(3.0, 4.5, 6.0),
        rivals={"β⁻²": -2.0, "β⁻⁴": -4.0},
    ),
    "M1": Law(
        "rate-patterns", "relevant_patterns", PATTERNS, "M1", 1.0, on=(6.0, 8.0),
        rivals={"M1^(-1/3) at fixed m, (82)": -1 / 3, "M1²": 2.0},
    ),
    "6a": Law(
        "rate-length", "matching_fraction", LENGTH_FRACTIONS, "α", -1.0, on=(0.6, 1.0), dim="fraction", side="both",
        affine=True, criteria=SMALL, variable="error", along="length", what="training examples",
        rivals={"α^(-2/3)": -2 / 3, "α⁻²": -2.0},
    ),
}  # fmt: skip
LAWS["6b"] = dataclasses.replace(LAWS["α"], side="both", affine=True)  # "linear in α^(-2/3)"


def rate_records(s: Settings) -> list[int]:
    """Where a training whose time is measured is recorded."""
    return geometric(s.rate_steps)


def by_count(lab: Lab) -> dict[int, Trained]:
    """Trainings at several M1, at the same m, M2 and B."""
    s: Settings = lab.settings
    counts = [count for count in PATTERNS if count < s.feature_dimension][: s.rate_programs]
    others, found = s.feature_dimension - counts[-1], {}
    for count in counts:
        own = dataclasses.replace(s, irrelevant_patterns=others, relevant_patterns=count)
        made = {"patterns": dataclasses.replace(recipe(own), watched=())}
        found[count] = lab.train(f"rate-patterns-{count}", made, geometric(2 * s.rate_steps))
    return found


def rate_patterns(lab: Lab) -> xr.Dataset:
    """The trainings at several M1."""
    trained = by_count(lab)
    histories = [one.history.isel(setting=0, drop=True) for one in trained.values()]
    return xr.concat(histories, xr.Variable("patterns", list(trained)))


def responses(lab: Lab) -> xr.Dataset:
    """Proposition 4.1 at several M1, along 1/M1 + 1/M2: components of queries and keys, on training prompts."""
    s, trained, found = lab.settings, by_count(lab), []
    for one in trained.values():
        data = lab.evaluate(one, "responses", projections, one.recipes[0].world, prompts=s.trend_prompts)
        found.append(data.isel(setting=0, drop=True))
    sizes = [1 / count + 1 / (s.feature_dimension - max(trained)) for count in trained]
    return xr.concat(found, xr.Variable("size", sizes))


def rate_length(lab: Lab) -> xr.Dataset:
    """Fig. 6, left: trainings at several l_tr and α, tested on prompts of the standard length."""
    s: Settings = lab.settings
    tasks = as_tuples(cyclic_tasks(s.relevant_patterns, s.task_shifts))

    def made(fraction: float, length: int) -> Recipe:
        world = in_domain(s, fraction, length, LENGTHS[-1], tasks)
        return dataclasses.replace(recipe(s, fraction), world=world, watched=())

    recipes = {f"{fraction:g}, {length}": made(fraction, length) for fraction in LENGTH_FRACTIONS for length in LENGTHS}
    trained = lab.train("rate-length", recipes, [0, s.rate_steps])
    test = place(dataclasses.replace(s, longest_test=s.test_length), "in", s.test_matching_fraction, s.test_length)
    found = lab.evaluate(trained, "test", errors(hinge), test, prompts=s.trend_prompts)
    return gridded(found, {"fraction": LENGTH_FRACTIONS, "length": LENGTHS})


class Guaranteed(eqx.Module):
    """Prompts of a world in which at least so many examples carry the query's pattern, and with it its label."""

    world: Classification
    matching: Int[Any, "*members"]

    def sample(self, key: Key[Array, ""], index: Int[Array, ""] | int) -> Prompt:
        """One prompt; the model has no positions, so the first examples are as good as any."""
        prompt = self.world.sample(key, index)
        chosen = jnp.arange(len(prompt.pattern)) < self.matching
        pattern = jnp.where(chosen, prompt.pattern[-1], prompt.pattern)
        label = jnp.where(chosen, prompt.target, prompt.label)
        return dataclasses.replace(prompt, pattern=pattern, label=label, atoms=prompt.atoms.at[:, 0].set(pattern))


def phase_guaranteed(lab: Lab) -> xr.Dataset:
    """Errors over α' and l_ts where every prompt has what Section 3.2 assumes: at least α'/2 of it match the query."""
    s: Settings = lab.settings

    def where(setting: str, seed: int, fraction: float, length: int) -> Guaranteed:
        return Guaranteed(place(s, "in", fraction, length), np.int32(np.ceil(fraction * length / 2 - 1e-9)))

    grid = PHASE | {"length": [length for length in PHASE["length"] if length <= s.longest_test]}
    found = lab.evaluate(standard(lab), "phase guaranteed", errors(hinge), where, grid, s.trend_prompts)
    return found.isel(setting=0)


experiments = {
    **{LAWS[name].experiment: LAWS[name].trained(recipe, rate_records, cost=19) for name in ("α", "β")},
    "rate-patterns": Experiment(rate_patterns, cost=60),
    "responses": Experiment(responses, cost=5),
    "rate-length": Experiment(rate_length, cost=50),
    "phase": asked(standard, "phase", "Errors over α' and l_ts, drawn.", PHASE, "trend_prompts", cost=5),
    "phase-guaranteed": Experiment(phase_guaranteed, cost=5),
}

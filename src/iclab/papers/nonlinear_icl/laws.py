"""The rates of nonlinear-icl: Theorem 3.3 in α, β, η and M1, Fig. 6, and the test prompts for which it promises.

The loss of training is on fresh prompts of seen tasks, so its first passage is that of in-domain generalisation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import (
    Criterion,
    Experiment,
    Lab,
    Law,
    Member,
    Recipe,
    errors,
    expect,
    geometric,
    gridded,
    hinge,
)
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.nonlinear_icl.experiments import asked, standard
from iclab.papers.nonlinear_icl.prompts import Guaranteed, guaranteed
from iclab.papers.nonlinear_icl.settings import Settings, as_tuples, in_domain, place, recipe
from iclab.papers.nonlinear_icl.sizes import PATTERNS, ROOT_PATTERNS
from iclab.worlds.tasks import cyclic_tasks

LENGTHS = (1, 2, 3, 4, 6, 9)  # l_tr of Fig. 6
LENGTH_FRACTIONS = (0.2, 0.35, 0.6, 1.0)  # α of Fig. 6, left
PHASE = {"fraction": (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0), "length": (2, 4, 6, 8, 12, 16, 20, 30, 40)}  # α', l_ts
LONG_ENOUGH = PHASE | {"fraction": PHASE["fraction"][1:]}  # where 40 examples are enough
EARLY_BATCHES = 8  # of 250 prompts
NARROW = 100  # m where η is swept
SMALL = {
    "0-1 error on unseen tasks at l_ts = 20 below 0.05": Criterion(0.05, interpolate=True),
    "0-1 error below 0.02": Criterion(0.02, interpolate=True),
    "0-1 error below 0.1": Criterion(0.1, interpolate=True),
}
TESTED = {f"0-1 error below {limit:g}": Criterion(limit, interpolate=True) for limit in (0.05, 0.1)}
# (10) suffices, so each power bounds the iterations from above: α and η go to 0, β and M1 grow.
LAWS = {
    "α": Law(
        "rate-fraction", "matching_fraction", (0.3, 0.4, 0.5, 0.6, 0.8, 1.0), "α", -2 / 3, on=(0.6, 0.8, 1.0),
        towards="small", rivals={"α⁻¹": -1.0, "α⁻²": -2.0},
    ),
    "β": Law(
        "rate-strength", "pattern_strength", (1.5, 2.0, 3.0, 4.5, 6.0), "β", -2 / 3, on=(3.0, 4.5, 6.0),
        rivals={"β⁻²": -2.0, "β⁻⁴": -4.0},
    ),
    "η": Law(
        "rate-step", "step_size", (0.25, 0.5, 1.0, 2.0), "η", -1.0, on=(1.0, 2.0), dim="step_size",
        towards="small", rivals={"η^(-1/2)": -0.5, "η⁻²": -2.0},
    ),
    "6a": Law(
        "rate-length", "matching_fraction", LENGTH_FRACTIONS, "α", -1.0, on=(0.6, 1.0), dim="fraction", side="both",
        affine=True, criteria=SMALL, variable="error", along="length", what="training examples",
        rivals={"α^(-2/3)": -2 / 3, "α⁻²": -2.0},
    ),
    "3.5": Law(
        "phase-out", "test_matching_fraction", LONG_ENOUGH["fraction"], "α'", -1.0, on=(0.6, 0.8, 1.0), dim="fraction",
        side="both", criteria=TESTED, variable="error", along="length", what="test examples",
        rivals={"α'^(-1/2)": -0.5, "α'⁻²": -2.0},
    ),
}  # fmt: skip
_SIZES = Law(
    "sizes", "relevant_patterns", PATTERNS, "M1", 0.0, on=(6.0, 8.0), dim="patterns", along="time",
    what="iterations over (10)",
)  # fmt: skip
WIDTHS = {  # (10) in M1, with m = M1² log M1
    "a = ±1/m": _SIZES,
    "a = ±1/√m": dataclasses.replace(_SIZES, experiment="rate-root", values=ROOT_PATTERNS),
}
LAWS["6b"] = dataclasses.replace(LAWS["α"], side="both", affine=True)  # "linear in α^(-2/3)"


def rate_records(s: Settings) -> list[int]:
    """Where a training whose time is measured is recorded."""
    return geometric(s.rate_steps)


def narrow(s: Settings) -> Recipe:
    """A training with fewer neurons, which takes less long; m >= M1² log M1 = 65 still."""
    return recipe(dataclasses.replace(s, neurons=NARROW))


def _early(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """The 0-1 error on test prompts, along training."""
    return {"early_error": expect(errors(hinge), model, member.watched[0], key, EARLY_BATCHES)["error"]}


def rate_length(lab: Lab) -> xr.Dataset:
    """Fig. 6, left: trainings at several l_tr and α, tested on prompts of the standard length at T and at T/2."""
    s: Settings = lab.settings
    tasks = as_tuples(cyclic_tasks(s.relevant_patterns, s.task_shifts))
    test = place(dataclasses.replace(s, longest_test=s.test_length), "in", s.test_matching_fraction, s.test_length)

    def made(fraction: float, length: int) -> Recipe:
        world = in_domain(s, fraction, length, LENGTHS[-1], tasks)
        return dataclasses.replace(recipe(s, fraction), world=world, watched=(test,))

    recipes = {f"{fraction:g}, {length}": made(fraction, length) for fraction in LENGTH_FRACTIONS for length in LENGTHS}
    trained = lab.train("rate-length", recipes, [0, s.rate_steps // 2, s.rate_steps], (_early,))
    found = lab.evaluate(trained, "test", errors(hinge), test, prompts=s.trend_prompts)
    found = found.assign(early_error=trained.history["early_error"].isel(step=1, drop=True))
    return gridded(found, {"fraction": LENGTH_FRACTIONS, "length": LENGTHS})


def phase(domain: str) -> Callable[[Lab], xr.Dataset]:
    """Errors over α' and l_ts where every prompt has what Section 3.2 assumes, and no more."""

    def run(lab: Lab) -> xr.Dataset:
        s: Settings = lab.settings

        def where(setting: str, seed: int, fraction: float, length: int) -> Guaranteed:
            return guaranteed(place(s, domain, fraction, length), fraction)

        grid = PHASE | {"length": [length for length in PHASE["length"] if length <= s.longest_test]}
        name = f"phase guaranteed{' out' * (domain == 'out')}"
        return lab.evaluate(standard(lab), name, errors(hinge), where, grid, s.trend_prompts).isel(setting=0)

    run.__doc__ = f"Errors over α' and l_ts, {domain} of domain: α'/2 of the examples match the query."
    return run


experiments = {
    **{LAWS[name].experiment: LAWS[name].trained(recipe, rate_records, cost=19) for name in ("α", "β")},
    "rate-step": LAWS["η"].trained(narrow, rate_records, cost=10),
    "rate-length": Experiment(rate_length, cost=50),
    "phase": asked(standard, "phase", "Errors over α' and l_ts, drawn.", PHASE, "trend_prompts", cost=5),
    "phase-out": asked(
        standard, "phase out", "The same out of domain.", LONG_ENOUGH, "trend_prompts", cost=5, domain="out"
    ),
    "phase-guaranteed": Experiment(phase("in"), cost=5),
    "phase-out-guaranteed": Experiment(phase("out"), cost=5),
}

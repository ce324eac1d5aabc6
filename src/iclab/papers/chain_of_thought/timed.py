"""Short trainings of chain-of-thought: how the iterations depend on α, η, M and K, and on ε.

They have l_tr = 2/α, near the least that (17) allows, and the smallest B that is a multiple of M K and meets
B >= M log M. In `edge` B meets (iii) for the smallest ε, too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Lab, Member, Recipe, errors, expect, expect_in, geometric, squared, swept
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.papers.chain_of_thought import laws, theory
from iclab.papers.chain_of_thought import settings as worlds
from iclab.papers.chain_of_thought.settings import KINDS, Settings, step_matrices
from iclab.probes.steps import at_first_pattern, step_gradients
from iclab.worlds.reasoning import Mode

Transformer = ChainTransformer | SeparateChainTransformer


def watch(model: Transformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """The ends of both stages: attention on the query's step, and on its step and pattern; and the gradient."""
    found = expect(step_gradients, model, member.world, key, 1)
    column = found.pop("same_pattern_same_step")
    return found | {"right_step": column + found.pop("other_pattern_same_step"), "right_column": column}


def _timed(lab: Lab, training: str, changed: Mapping[str, Settings]) -> xr.Dataset:
    """Short trainings of the same shape by label, watched in their own worlds; "needed" are the iterations until the
    loss stays below an ε.
    """
    most = max(s.train_length for s in changed.values())

    def recipe(s: Settings) -> Recipe:
        own = worlds.recipe(s, 0)
        return dataclasses.replace(own, world=worlds.training_world(s, most), watched=(), arrays={})

    recipes = {label: recipe(s) for label, s in changed.items()}
    history = lab.train(training, recipes, geometric(lab.settings.rate_steps, ratio=1.12), (watch,), squared).history
    return history.assign(needed=laws.needed(history["training_loss"], "error"))


def rate_fraction(lab: Lab) -> xr.Dataset:
    """Trainings at several α, with l_tr = 2/α examples."""
    s: Settings = lab.settings
    changed = {f"{value:g}": worlds.timed(s, patterns=s.patterns, fraction=value) for value in laws.TRAINED_FRACTIONS}
    return swept(_timed(lab, "rate-fraction", changed), "fraction", laws.TRAINED_FRACTIONS)


def rate_size(lab: Lab) -> xr.Dataset:
    """Trainings at several η."""
    s: Settings = lab.settings
    changed = {f"{value:g}": worlds.timed(s, step_size=value) for value in laws.STEP_SIZES}
    return swept(_timed(lab, "rate-size", changed), "size", laws.STEP_SIZES)


def rare(lab: Lab) -> xr.Dataset:
    """A training where α is below 1/M: fewer examples start from the query's pattern than from any other one."""
    s: Settings = lab.settings
    own = worlds.timed(s, fraction=0.4 / s.timed_patterns)
    return _timed(lab, "rare", {"rare": own}).isel(setting=0, drop=True)


def _apart(name: str, values: Sequence[int], own: int, lab: Lab) -> xr.Dataset:
    """Trainings at several M or K, whose shapes differ: one ensemble for each value, `own` is that of `rate_size`."""
    s: Settings = lab.settings
    fitting = [value for value in values if value <= s.feature_dimension][: s.rate_programs]
    found = [
        rate_size(lab).sel(size=s.step_size, drop=True)
        if value == own and s.step_size in laws.STEP_SIZES
        else _timed(lab, f"rate-{name}-{value}", {name: worlds.timed(s, **{name: value})}).isel(setting=0, drop=True)
        for value in fitting
    ]
    return xr.concat(found, xr.Variable(name, fitting))


def rate_patterns(lab: Lab) -> xr.Dataset:
    """Trainings at several M."""
    return _apart("patterns", laws.PATTERNS, lab.settings.timed_patterns, lab)


def rate_steps(lab: Lab) -> xr.Dataset:
    """Trainings at several K."""
    return _apart("steps", laws.STEPS, lab.settings.reasoning_steps, lab)


def observe_edge(model: Transformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """The loss on prompts like the training ones; attention elsewhere on noisy test prompts, at a generic pattern and
    at the equal mixture of all training patterns.
    """
    found = {"loss": expect(errors(squared), model, member.world, key, 8)["squared"]}
    several = expect_in(at_first_pattern, model, member.watched, key, 8)
    for kind, first in zip(("generic", "mixture"), several, strict=True):
        found[f"elsewhere_{kind}"] = 1 - first["first_mass"] / first["first_count"]
    return found


def edge(lab: Lab) -> xr.Dataset:
    """A training in which B meets (iii) for the smallest ε, seen at the T of (18) for every ε."""
    s = worlds.timed(lab.settings)
    wanted, at = laws.EDGE[: s.rate_programs], worlds.symbols(s)
    times = [math.ceil(theory.iterations(dataclasses.replace(at, error=error)).value) for error in wanted]
    all_pairs = s.patterns * s.reasoning_steps
    least = max(wanted[-1] ** -2, s.patterns) * math.log(s.patterns)
    s = dataclasses.replace(s, batch=all_pairs * math.ceil(least / all_pairs))

    def recipe(seed: int) -> Recipe:
        asked = step_matrices(s), s.test_matching_fraction, s.longest_test, s.longest_test
        watched = tuple(worlds.inference_world(s, seed, Mode.next_step, *asked, kind) for kind in KINDS)
        return dataclasses.replace(worlds.recipe(s, seed), watched=watched)

    history = lab.train("edge", {"edge": recipe}, [0, *times], (observe_edge,), squared).history
    found = history[["loss", "elsewhere_generic", "elsewhere_mixture"]].isel(setting=0, drop=True).sel(step=times)
    return found.rename(step="epsilon").assign_coords(epsilon=list(wanted))

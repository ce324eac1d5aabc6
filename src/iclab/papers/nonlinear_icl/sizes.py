"""nonlinear-icl at several sizes: M1 for what the theorems say of it, B for the losses O(ε).

Over M1 = 6, 8, 12, 20 models are trained with η = 1, M2 = M1 and the same m, for the same multiple of T in (10), so
that M1 alone moves; on M1 tasks (U = 1), or on almost all there are (U = M1 - 2). All hypotheses of Theorem 3.3 are
met, (i) on m with a hidden constant of 1/4. How long training takes depends on m, so (10) itself is asked with m = M1²
log M1, the smallest that (i) allows, and up to M1 = 16, to save time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Prompt, Trained, errors, hinge
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.nonlinear_icl import quantities as of
from iclab.papers.nonlinear_icl import theory
from iclab.papers.nonlinear_icl.experiments import DOMAINS
from iclab.papers.nonlinear_icl.prompts import Guaranteed, guaranteed
from iclab.papers.nonlinear_icl.settings import LARGEST_SUM, Settings, out_of_domain, place, recipe, symbols
from iclab.probes.attention import attention_mass
from iclab.probes.neurons import neuron_directions
from iclab.probes.norms import responses

PATTERNS = (6, 8, 12, 20)  # M1
WIDE_PATTERNS = (6, 8, 12, 16)  # M1 where m = M1² log M1
BATCHES = (16, 32, 64, 128)  # B
PARTS = ("feature", "label")  # of a neuron
TIMES = np.geomspace(0.05, 1.0, 30)  # records, as parts of T


def sized(s: Settings, count: int, cycles: int) -> Settings:
    """Settings at M1 = `count` with η = 1 and M2 = M1; T is `size_constant` times (10)."""
    features, labels = 2 * max(PATTERNS), 20
    inside = dataclasses.replace(
        s, relevant_patterns=count, irrelevant_patterns=count, feature_dimension=features, label_dimension=labels,
        key_width=max(s.key_width, features), value_width=max(s.value_width, features + labels), step_size=1.0,
        task_shifts=cycles,
    )  # fmt: skip
    return dataclasses.replace(inside, steps=round(theory.iterations(symbols(inside), s.size_constant).value))


def records(s: Settings) -> list[int]:
    """The steps 0, ..., T at which a training is recorded."""
    steps = [0]
    for part in TIMES:
        steps.append(max(steps[-1] + 1, math.ceil(s.steps * part)))
    return steps


def in_units(trained: Trained, constant: float) -> xr.DataArray:
    """The training loss along t over (10), where T is `constant` times (10): the same times at every size."""
    loss = trained.history["training_loss"].isel(setting=0, drop=True)
    return loss.assign_coords(step=[0.0, *(constant * TIMES)]).rename(step="time")


def observe(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Responses of queries and keys in the worst case, in and out of domain, and the neurons."""
    record = neuron_directions(model, member.world)
    for prefix, world in zip(DOMAINS, (member.world, *member.watched), strict=True):
        found = responses(model, world, member.world)
        record |= {f"{prefix}_{name}": value for name, value in found.items()}
    return record


def _answers(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    return attention_mass(model, prompt) | dict(errors(hinge)(model, prompt))


def neuron_groups(record: xr.Dataset) -> dict[str, xr.DataArray]:
    """L and its complement: |L|/m, the norms on either side of the gap, and how far L is from (21) and (22)."""
    norms = record["neuron_norm"]
    large = norms > of.between(norms)
    found = {
        "large_share": large.mean("neuron").where(norms.notnull().all("neuron")),
        "large_norm": norms.where(large).min("neuron"),
        "small_norm": norms.where(~large).max("neuron"),
        "typical_small_norm": norms.where(~large).median("neuron"),
    }
    return found | {f"{part}_off": (1 - record[f"{part}_cosine"]).where(large).max("neuron") for part in PARTS}


def _at(lab: Lab, count: int, most: bool) -> xr.Dataset:
    """One M1: the loss along training, and what the trained model is like."""
    s = sized(lab.settings, count, count - 2 if most else 1)
    mixtures = out_of_domain(s, LARGEST_SUM, s.test_matching_fraction, s.train_length, s.train_length)
    made = {"size": dataclasses.replace(recipe(s), watched=(mixtures,))}
    trained = lab.train(f"sizes{'-most' * most}-{count}", made, records(s), (observe,))
    fraction, found = s.test_matching_fraction, []
    for domain in DOMAINS:  # one by one: their worlds have tables of different sizes
        world = guaranteed(place(s, domain, fraction, s.test_length), fraction)
        found.append(lab.evaluate(trained, domain, _answers, world, prompts=lab.settings.trend_prompts))
    last = trained.history.isel(setting=0, step=-1, drop=True)
    more = {name: last[name] for name in last if str(name).startswith(("in_", "out_"))} | neuron_groups(last)
    more |= {"training_loss": in_units(trained, lab.settings.size_constant)}
    return xr.concat(found, xr.Variable("domain", list(DOMAINS))).isel(setting=0, drop=True).assign(more)


def by_patterns(most: bool) -> Callable[[Lab], xr.Dataset]:
    """Trainings at several M1, on M1 tasks or on most of them."""

    def run(lab: Lab) -> xr.Dataset:
        counts = PATTERNS[: lab.settings.rate_programs]
        return xr.concat([_at(lab, count, most) for count in counts], xr.Variable("patterns", list(counts)))

    run.__doc__ = f"Section 4 at several M1, on {'M1 (M1 - 2)' if most else 'M1'} training tasks."
    return run


def by_width(name: str, power: float, step_size: float, part: float) -> Callable[[Lab], xr.Dataset]:
    """Trainings at several M1 with m = M1² log M1; a = ±m^(-power), and T a `part` of `width_constant` times (10)."""

    def run(lab: Lab) -> xr.Dataset:
        found, counts = [], WIDE_PATTERNS[: lab.settings.rate_programs]
        for count in counts:
            wide = dataclasses.replace(lab.settings, neurons=math.ceil(count**2 * math.log(count)), batch=64)
            s = sized(
                dataclasses.replace(wide, readout_power=power, size_constant=part * wide.width_constant), count, 1
            )
            own = dataclasses.replace(s, step_size=step_size, steps=round(s.steps / step_size))
            made = {"width": dataclasses.replace(recipe(own), watched=())}
            trained = lab.train(f"{name}-{count}", made, records(own))
            found.append(in_units(trained, s.size_constant).to_dataset())
        return xr.concat(found, xr.Variable("patterns", list(counts)))

    run.__doc__ = f"Trainings at several M1 with m = M1² log M1 and a = ±m^(-{power:g}), along t over (10)."
    return run


def batches(lab: Lab) -> xr.Dataset:
    """(11) and (13) at several B, along ε = √(log M1 / B)."""
    s: Settings = lab.settings

    def where(setting: str, seed: int, domain: str) -> Guaranteed:
        return guaranteed(place(s, domain, s.test_matching_fraction, s.test_length), s.test_matching_fraction)

    found, used = [], BATCHES[: s.rate_programs]
    for batch in used:
        made = {"batch": dataclasses.replace(recipe(dataclasses.replace(s, batch=batch)), watched=())}
        trained = lab.train(f"batches-{batch}", made, [0, s.steps])
        found.append(lab.evaluate(trained, "domains", errors(hinge), where, {"domain": DOMAINS}, s.prompts))
    sizes = [theory.smallest_error(batch, s.relevant_patterns) for batch in used]
    return xr.concat(found, xr.Variable("epsilon", sizes)).isel(setting=0, drop=True)


experiments = {
    "sizes": Experiment(by_patterns(most=False), cost=20),
    "sizes-most": Experiment(by_patterns(most=True), cost=20),
    "rate-width": Experiment(by_width("rate-width", 1.0, 1.0, 1.0), cost=15),
    "rate-width-root": Experiment(by_width("rate-width-root", 0.5, 0.25, 0.1), cost=8),
    "batches": Experiment(batches, cost=10),
}

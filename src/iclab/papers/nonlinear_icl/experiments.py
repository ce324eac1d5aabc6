"""What is run for nonlinear-icl: three trainings (one compilation) and the evaluations behind each figure."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab import baselines
from iclab.ensemble import member_key
from iclab.evaluation import errors, expect
from iclab.experiments import Lab, Recipe, Trained
from iclab.losses import hinge
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.nonlinear_icl.explorer import explorer
from iclab.papers.nonlinear_icl.settings import (
    LARGEST_SUM,
    Settings,
    as_tuples,
    in_domain,
    out_of_domain,
    recipe,
    unseen_tasks,
)
from iclab.authoring.paper import Experiment
from iclab.probes import pruning
from iclab.probes.attention import attention_mass
from iclab.probes.neurons import neuron_directions
from iclab.probes.norms import projections
from iclab.prompts import Prompt
from iclab.training import Member
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import all_tasks, cyclic_tasks, without

SUMS = (0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, LARGEST_SUM)  # S_1 of Fig. 3A
FRACTIONS = (0.4, 0.6, 0.8, 1.0)  # α' of Fig. 3B
LENGTHS = (4, 8, 12, 16, 20, 30, 40)  # l_ts of Fig. 3B
BASELINE_LENGTHS = (5, 10, 20, 30, 40)  # l_ts of Fig. 4
RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # pruning rates of Fig. 5A
PRUNED_FRACTIONS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # α' of Fig. 5B
TASK_PATTERNS = (4, 6, 8)  # M1 of Fig. 7
OBSERVED_BATCHES = 2
ORDERS = {"smallest first": pruning.SMALLEST, "random": pruning.RANDOM, "largest first": pruning.LARGEST}


def _inside(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    return attention_mass(model, prompt) | projections(model, prompt) | dict(errors(hinge)(model, prompt))


def observe(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention, projections and errors on unseen tasks ("in_...") and on the mixtures ("out_..."), and the neurons."""
    record = neuron_directions(model, member.world)
    for prefix, world in zip(("in", "out"), member.watched, strict=True):
        found = expect(_inside, model, world, key, OBSERVED_BATCHES)
        record |= {f"{prefix}_{name}": value for name, value in found.items()}
    return record


def standard(lab: Lab) -> Trained:
    """The model of Figs. 2-4: α = 0.8."""
    s: Settings = lab.settings
    return lab.train("standard", {"standard": lambda seed: recipe(s, s.matching_fraction)}, s.record_at, (observe,))


def low_alpha(lab: Lab) -> Trained:
    """The model of Fig. 5: α = 0.6."""
    s: Settings = lab.settings
    return lab.train("low-alpha", {"low-alpha": lambda seed: recipe(s, s.low_matching_fraction)}, [0, s.steps], (observe,))


def training(lab: Lab) -> xr.Dataset:
    """The observed training of the standard model."""
    return standard(lab).history


def _unseen(s: Settings, fraction: float, length: int) -> Classification:
    tasks = unseen_tasks(s.relevant_patterns, cyclic_tasks(s.relevant_patterns))
    return in_domain(s, fraction, length, s.longest_test, tasks, s.relevant_patterns)


def _domain(s: Settings, domain: str, fraction: float, length: int) -> Classification:
    if domain == "in":
        return _unseen(s, fraction, length)
    if domain == "all tasks":
        tasks = as_tuples(all_tasks(s.relevant_patterns))
        return in_domain(s, fraction, length, s.longest_test, tasks, s.relevant_patterns)
    return out_of_domain(s, LARGEST_SUM, fraction, length, s.longest_test)


def generalisation(lab: Lab) -> xr.Dataset:
    """Theorems 3.3 and 3.4: all tasks, unseen tasks, and out of domain with S = (1.28, √2, √2)."""
    s: Settings = lab.settings
    return lab.evaluate(
        standard(lab), "generalisation", errors(hinge),
        lambda setting, seed, domain: _domain(s, domain, s.test_matching_fraction, s.test_length),
        {"domain": ("all tasks", "in", "out")}, s.prompts,
    )  # fmt: skip


def sums(lab: Lab) -> xr.Dataset:
    """Fig. 3A: out-of-domain error against S_1."""
    s: Settings = lab.settings
    return lab.evaluate(
        standard(lab), "sums", errors(hinge),
        lambda setting, seed, total: out_of_domain(s, total, s.test_matching_fraction, s.test_length, s.longest_test),
        {"total": SUMS}, s.prompts,
    )  # fmt: skip


def lengths(lab: Lab) -> xr.Dataset:
    """Fig. 3B: error against the test length for several α', in and out of domain."""
    s: Settings = lab.settings
    grid = [length for length in LENGTHS if length <= s.longest_test]
    return lab.evaluate(
        standard(lab), "lengths", errors(hinge),
        lambda setting, seed, domain, fraction, length: _domain(s, domain, fraction, length),
        {"domain": ("in", "out"), "fraction": FRACTIONS, "length": grid}, s.trend_prompts,
    )  # fmt: skip


def classifiers(lab: Lab) -> xr.Dataset:
    """Fig. 4: the Transformer in context against classifiers fitted to the context."""
    s: Settings = lab.settings
    domains, fractions = ("in", "out"), (0.6, 0.8)
    grid = [length for length in BASELINE_LENGTHS if length <= s.longest_test]
    found = lab.evaluate(
        standard(lab), "classifiers", errors(hinge),
        lambda setting, seed, domain, fraction, length: _domain(s, domain, fraction, length),
        {"domain": domains, "fraction": fractions, "length": grid}, s.trend_prompts,
    ).sel(setting="standard")  # fmt: skip
    points = [(domain, fraction, seed) for domain in domains for fraction in fractions for seed in lab.seeds]

    def fitted() -> np.ndarray:
        samples = [
            baselines.contexts(
                _domain(s, domain, fraction, s.longest_test),
                member_key(f"{lab.paper}/classifiers/{domain}/{fraction}", seed),
                s.baseline_prompts,
            )
            for domain, fraction, seed in points
        ]
        return baselines.baseline_errors(samples, grid)

    wrong = lab.outside(fitted, (len(points), len(baselines.BASELINES), len(grid)))
    wrong = wrong.reshape(2, 2, len(lab.seeds), len(baselines.BASELINES), len(grid))
    found["baseline_error"] = (("domain", "fraction", "seed", "baseline", "length"), wrong)
    return found.assign_coords(baseline=list(baselines.BASELINES))


def _pruning(order: int, amount: float, seed: int) -> pruning.Pruning:
    return pruning.Pruning(np.int32(order), np.float32(amount), member_key("nonlinear-icl/pruning", seed))


def pruned(lab: Lab) -> xr.Dataset:
    """Theorem 3.7 and Fig. 5A: errors after removing neurons, and the neurons' norms. α = 0.6."""
    s: Settings = lab.settings
    trained = low_alpha(lab)

    def evaluate(name: str, dims: dict[str, tuple], preparation: Callable[..., pruning.Pruning]) -> xr.Dataset:
        return lab.evaluate(
            trained, name, errors(hinge),
            lambda setting, seed, domain, **_: _domain(s, domain, s.test_matching_fraction, s.test_length),
            {"domain": ("in", "out")} | dims, s.prompts, pruning.prune, preparation,
        )  # fmt: skip

    found = evaluate(
        "pruned", {"order": tuple(ORDERS), "rate": RATES},
        lambda seed, domain, order, rate: _pruning(ORDERS[order], rate, seed),
    )  # fmt: skip
    threshold = s.irrelevant_patterns**-0.5
    small = evaluate("small pruned", {}, lambda seed, domain: _pruning(pruning.BELOW, threshold, seed))
    for name in (hinge.name, "error"):
        found[f"small_pruned_{name}"] = small[name]
    found["neuron_norm"] = trained.history["neuron_norm"].isel(step=-1, drop=True)
    return found


def pruned_fractions(lab: Lab) -> xr.Dataset:
    """Fig. 5B: out-of-domain error of pruned models against α'."""
    s: Settings = lab.settings
    kinds = {
        "no pruning": (pruning.SMALLEST, 0.0),
        "smallest 15 %": (pruning.SMALLEST, 0.15),
        "smallest 50 %": (pruning.SMALLEST, 0.5),
        "largest 50 %": (pruning.LARGEST, 0.5),
    }
    return lab.evaluate(
        low_alpha(lab), "pruned fractions", errors(hinge),
        lambda setting, seed, fraction, kind: _domain(s, "out", fraction, s.test_length),
        {"fraction": PRUNED_FRACTIONS, "kind": tuple(kinds)}, s.trend_prompts,
        pruning.prune, lambda seed, fraction, kind: _pruning(*kinds[kind], seed),
    )  # fmt: skip


def task_counts(relevant: int) -> tuple[int, ...]:
    """|T_tr| of Fig. 7: below, at and above M1."""
    return (relevant // 2, relevant - 1, relevant, relevant + 2, 2 * relevant)


@functools.cache
def task_subset(relevant: int, count: int, seed: int) -> np.ndarray:
    """A.2: up to M1 tasks sampled from the cycle; beyond, the whole cycle and others sampled from the rest."""
    random = np.random.default_rng([relevant, count, seed])
    cycle = cyclic_tasks(relevant)
    if count <= relevant:
        return cycle[np.sort(random.choice(relevant, count, replace=False))]
    rest = without(all_tasks(relevant), cycle)
    return np.concatenate([cycle, rest[np.sort(random.choice(len(rest), count - relevant, replace=False))]])


def tasks(lab: Lab) -> xr.Dataset:
    """Fig. 7: error on unseen tasks against the number of training tasks, for M1 = 4, 6, 8. α = 0.6."""
    s: Settings = lab.settings
    cells = {f"M1={m},tasks={n}": (m, n) for m in TASK_PATTERNS for n in task_counts(m)}

    def make(m: int, n: int, seed: int) -> Recipe:
        return recipe(s, s.low_matching_fraction, m, task_subset(m, n, seed))

    trained = lab.train(
        "tasks",
        {name: functools.partial(make, m, n) for name, (m, n) in cells.items()},
        [0, s.steps],
        (observe,),
    )

    def unseen(setting: str, seed: int, domain: str) -> Classification:
        m, n = cells[setting]
        which = unseen_tasks(m, task_subset(m, n, seed))
        return in_domain(s, s.test_matching_fraction, s.test_length, s.longest_test, which, m)

    found = lab.evaluate(trained, "tasks", errors(hinge), unseen, {"domain": ("in",)}, s.prompts).sel(domain="in")
    return found.assign_coords(
        relevant=("setting", [m for m, _ in cells.values()]),
        task_count=("setting", [n for _, n in cells.values()]),
    )


EXPERIMENTS = {
    "training": Experiment(training, cost=10),
    "generalisation": Experiment(generalisation, cost=2),
    "sums": Experiment(sums, cost=3),
    "lengths": Experiment(lengths, cost=5),
    "classifiers": Experiment(classifiers, cost=30),
    "pruned": Experiment(pruned, cost=25),
    "pruned-fractions": Experiment(pruned_fractions, cost=3),
    "tasks": Experiment(tasks, cost=50),
    "explorer": Experiment(explorer, cost=3),
}

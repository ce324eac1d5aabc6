"""What is run for nonlinear-icl: three trainings (one compilation) and the evaluations behind each figure."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab import baselines
from iclab.authoring import Experiment, Lab, Member, Prompt, Recipe, Trained, errors, expect_in, hinge
from iclab.ensemble import member_key
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.nonlinear_icl import quantities as of
from iclab.papers.nonlinear_icl.explorer import explorer
from iclab.papers.nonlinear_icl.settings import LARGEST_SUM, OWN, Settings, in_domain, place, recipe, unseen_tasks
from iclab.probes import pruning
from iclab.probes.attention import attention_mass
from iclab.probes.neurons import neuron_directions
from iclab.probes.norms import projections
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import all_tasks, cyclic_tasks, without

SUMS = (0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, LARGEST_SUM)  # S_1 of Fig. 3A
FRACTIONS = (0.4, 0.6, 0.8, 1.0)  # α' of Fig. 3B
LENGTHS = (4, 8, 12, 16, 20, 30, 40)  # l_ts of Fig. 3B
BASELINE_LENGTHS = (5, 10, 20, 30, 40)  # l_ts of Fig. 4
RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # pruning rates of Fig. 5A
PRUNED_FRACTIONS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # α' of Fig. 5B
TASK_PATTERNS = (4, 6, 8)  # M1 of Fig. 7
DOMAINS = ("in", "out")
OBSERVED_BATCHES = 2
Grid = Mapping[str, Sequence[Any]]
ORDERS = {"smallest first": pruning.SMALLEST, "random": pruning.RANDOM, "largest first": pruning.LARGEST}
PRUNED = {  # of Fig. 5B
    "no pruning": (pruning.SMALLEST, 0.0),
    "smallest 15 %": (pruning.SMALLEST, 0.15),
    "smallest 50 %": (pruning.SMALLEST, 0.5),
    "largest 50 %": (pruning.LARGEST, 0.5),
}


def _look(model: SoftmaxTransformer, prompt: Prompt) -> dict[str, Array]:
    return attention_mass(model, prompt) | projections(model, prompt) | dict(errors(hinge)(model, prompt))


def observe(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention, projections and errors on unseen tasks ("in_...") and on the mixtures ("out_..."), and the neurons."""
    record = neuron_directions(model, member.world)
    for prefix, found in zip(DOMAINS, expect_in(_look, model, member.watched, key, OBSERVED_BATCHES), strict=True):
        record |= {f"{prefix}_{name}": value for name, value in found.items()}
    return record


def observers(s: Settings) -> tuple[Callable[..., Any], ...]:
    """What looks into the Transformer along training; another model has other weights."""
    return (observe,) if s.model == OWN else ()


def standard(lab: Lab) -> Trained:
    """The model of Figs. 2-4: α = 0.8. What is observed belongs to the experiment "training"."""
    looks = observers(lab.settings) if lab.runs("training") else ()
    return lab.train("standard", recipe(lab.settings), lab.settings.record_at, looks)


def low_alpha(lab: Lab) -> Trained:
    """The model of Fig. 5: α = 0.6. Its neurons belong to the experiment "pruned"."""
    s: Settings = lab.settings
    looks = observers(s) if lab.runs("pruned") else ()
    return lab.train("low-alpha", {"low-alpha": recipe(s, s.low_matching_fraction)}, [0, s.steps], looks)


def tested(lab: Lab, trained: Trained, name: str, dims: Grid, prompts: int, **more: Any) -> xr.Dataset:
    """Loss and error over a grid of domains, α', l_ts (up to the longest) and S_1; one setting has no dimension.

    What the grid does not name is as in the settings (`own` of the lab's) and `domain`; the rest of `more` prunes.
    """
    s: Settings = more.pop("own", lambda settings: settings)(lab.settings)
    usual: dict[str, Any] = {"domain": more.pop("domain", "in"), "total": LARGEST_SUM}
    usual |= {"fraction": s.test_matching_fraction, "length": s.test_length}
    grid = {key: [at for at in values if key != "length" or at <= s.longest_test] for key, values in dims.items()}

    def where(setting: str, seed: int, **at: Any) -> Classification:
        return place(s, **{key: at.get(key, value) for key, value in usual.items()})

    found = lab.evaluate(trained, name, errors(hinge), where, grid, prompts, **more)
    return found.isel(setting=0) if found.sizes["setting"] == 1 else found


def asked(
    model: Callable[[Lab], Trained], name: str, about: str, dims: Grid, prompts: str, cost: float = 3, **more: Any
) -> Experiment:
    """An experiment that tests a model over a grid; `prompts` is the setting with their number."""

    def run(lab: Lab) -> xr.Dataset:
        return tested(lab, model(lab), name, dims, operator.attrgetter(prompts)(lab.settings), **more)

    run.__doc__ = about
    return Experiment(run, cost)


def training(lab: Lab) -> xr.Dataset:
    """The observed training of the standard model."""
    return standard(lab).history.isel(setting=0)


def classifiers(lab: Lab) -> xr.Dataset:
    """Fig. 4: the Transformer in context against classifiers fitted to the context."""
    s: Settings = lab.settings
    dims = {"domain": DOMAINS, "fraction": (0.6, 0.8), "length": BASELINE_LENGTHS}
    found = tested(lab, standard(lab), "classifiers", dims, s.trend_prompts)
    grid = [int(length) for length in found["length"]]
    points = [(domain, fraction, seed) for domain in DOMAINS for fraction in (0.6, 0.8) for seed in lab.seeds]

    def sample(domain: str, fraction: float, seed: int) -> Any:
        key = member_key(f"{lab.paper}/classifiers/{domain}/{fraction}", seed)
        return baselines.contexts(place(s, domain, fraction, s.longest_test), key, s.baseline_prompts)

    def fitted() -> np.ndarray:
        return baselines.baseline_errors([sample(*point) for point in points], grid)

    wrong = lab.outside(fitted, (len(points), len(baselines.BASELINES), len(grid)))
    wrong = wrong.reshape(2, 2, len(lab.seeds), len(baselines.BASELINES), len(grid))
    found["baseline_error"] = (("domain", "fraction", "seed", "baseline", "length"), wrong)
    return found.assign_coords(baseline=list(baselines.BASELINES))


@functools.cache
def _stream(seed: int) -> Key[Array, ""]:
    return member_key("nonlinear-icl/pruning", seed)


def _pruning(order: int, amount: float, seed: int) -> pruning.Pruning:
    return pruning.Pruning(np.int32(order), np.float32(amount), _stream(seed))


def pruned(lab: Lab) -> xr.Dataset:
    """Theorem 3.7 and Fig. 5A: errors after removing neurons, and the neurons' norms. α = 0.6."""
    s: Settings = lab.settings
    trained = low_alpha(lab)
    norms = trained.history["neuron_norm"].isel(setting=0, step=-1, drop=True)
    gaps = of.between(norms)

    def by_rate(seed: int, domain: str, order: str, rate: float) -> pruning.Pruning:
        return _pruning(ORDERS[order], rate, seed)

    def small(seed: int, domain: str) -> pruning.Pruning:
        return _pruning(pruning.BELOW, float(gaps.sel(seed=seed)), seed)

    domains, dims = {"domain": DOMAINS}, {"domain": DOMAINS, "order": tuple(ORDERS), "rate": RATES}
    found = tested(lab, trained, "pruned", dims, s.prompts, prepare=pruning.prune, preparation=by_rate)
    rest = tested(lab, trained, "small pruned", domains, s.prompts, prepare=pruning.prune, preparation=small)
    found = found.assign({f"small_pruned_{name}": rest[name] for name in ("hinge", "error")})
    return found.assign(neuron_norm=norms)


def _by_kind(seed: int, fraction: float, kind: str) -> pruning.Pruning:
    return _pruning(*PRUNED[kind], seed)


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

    def unseen(setting: str, seed: int, domain: str) -> Classification:
        m, n = cells[setting]
        which = unseen_tasks(m, task_subset(m, n, seed))
        return in_domain(s, s.test_matching_fraction, s.test_length, s.longest_test, which, m)

    recipes = {name: functools.partial(make, m, n) for name, (m, n) in cells.items()}
    trained = lab.train("tasks", recipes, [0, s.steps])
    found = lab.evaluate(trained, "tasks", errors(hinge), unseen, {"domain": ("in",)}, s.prompts).isel(domain=0)
    relevant, counts = zip(*cells.values(), strict=True)
    return found.assign_coords(relevant=("setting", list(relevant)), task_count=("setting", list(counts)))


OVER_DOMAINS = {"domain": ("all tasks", *DOMAINS)}
OVER_LENGTHS = {"domain": DOMAINS, "fraction": FRACTIONS, "length": LENGTHS}
OVER_KINDS = {"fraction": PRUNED_FRACTIONS, "kind": tuple(PRUNED)}
REMOVED: dict[str, Any] = {"domain": "out", "prepare": pruning.prune, "preparation": _by_kind}
experiments = {
    "training": Experiment(training, cost=10),
    "generalisation": asked(
        standard, "generalisation", "Theorems 3.3 and 3.4: three domains.", OVER_DOMAINS, "prompts"
    ),
    "sums": asked(standard, "sums", "Fig. 3A: error against S_1.", {"total": SUMS}, "prompts", domain="out"),
    "lengths": asked(standard, "lengths", "Fig. 3B: error against l_ts and α'.", OVER_LENGTHS, "trend_prompts", cost=5),
    "classifiers": Experiment(classifiers, cost=30),
    "pruned": Experiment(pruned, cost=25),
    "pruned-fractions": asked(
        low_alpha, "pruned fractions", "Fig. 5B: pruned models against α'.", OVER_KINDS, "trend_prompts", **REMOVED
    ),
    "tasks": Experiment(tasks, cost=50),
    "explorer": Experiment(explorer, cost=3),
}

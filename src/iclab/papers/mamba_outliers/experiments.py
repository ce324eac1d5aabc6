"""What is run for mamba-outliers: one-layer models on two task sets, three-layer stacks, and tests with outliers."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.evaluation import errors, expect
from iclab.experiments import Lab, Trained
from iclab.losses import hinge
from iclab.models.linear_transformer import LinearTransformer
from iclab.models.mamba import Mamba
from iclab.papers.mamba_outliers.explorer import explorer
from iclab.papers.mamba_outliers.settings import (
    MAGNITUDES,
    STACKS,
    TASK_SETS,
    Settings,
    inference_world,
    one_layer,
    stacked,
    training_world,
)
from iclab.authoring.paper import Experiment
from iclab.probes.gates import attention_sums, form_difference, gate_profile
from iclab.training import Member
from iclab.worlds.outliers import LabelRule, Placement

FRACTIONS = tuple(round(0.1 * number, 1) for number in range(10))  # α of Fig. 1
RULES = tuple(rule.name for rule in LabelRule)  # panels A, B, C
KINDS = ("mamba", "linear")
GATE_FRACTION = 0.3  # α of Figs. 2-5
TABLE_FRACTION = 0.5  # α of Table 2
OBSERVED_BATCHES = 2


def observe(model: Mamba | LinearTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention sums by group, in the test world with α = 0.3 and κ_a' = κ_a."""
    return expect(attention_sums, model, member.watched[0], key, OBSERVED_BATCHES)


def train_one_layer(lab: Lab, kind: str) -> Trained:
    """One-layer models, one setting per task set."""
    s: Settings = lab.settings
    recipes = {
        name: functools.partial(lambda shifts, seed: one_layer(s, kind, shifts), shifts) for name, shifts in TASK_SETS.items()
    }
    return lab.train(f"{kind}-one-layer", recipes, s.record_at(s.steps), (observe,))


def train_stack(lab: Lab, name: str) -> Trained:
    """One of the three-layer stacks."""
    s: Settings = lab.settings
    return lab.train(
        f"stack-{name.replace(', ', '-').replace(' ', '-')}", {name: lambda seed: stacked(s, name)},
        s.record_at(s.stack_steps), (observe,),
    )  # fmt: skip


def _both(make: Callable[[str], xr.Dataset]) -> xr.Dataset:
    """The same for both kinds of one-layer model, along a dimension "kind"."""
    found: list[xr.Dataset] = [make(kind) for kind in KINDS]
    return xr.concat(found, xr.Variable("kind", list(KINDS)))


def forms(lab: Lab) -> xr.Dataset:
    """The recurrence (1) against the closed form (3), on trained models and test prompts."""
    s: Settings = lab.settings
    return lab.evaluate(
        train_one_layer(lab, "mamba"), "forms", form_difference,
        lambda setting, seed, magnitude: inference_world(s, GATE_FRACTION, magnitude), {"magnitude": MAGNITUDES}, 500,
    )  # fmt: skip


def convergence(lab: Lab) -> xr.Dataset:
    """Theorems 1 and 3: errors over all tasks on prompts made like the training ones."""
    s: Settings = lab.settings
    return _both(
        lambda kind: lab.evaluate(
            train_one_layer(lab, kind), "convergence", errors(hinge),
            lambda setting, seed, domain: training_world(s, 1, s.outlier_fraction, every_task=True),
            {"domain": ("training prompts",)}, s.prompts,
        ),
    )  # fmt: skip


def robustness(lab: Lab) -> xr.Dataset:
    """Theorems 2 and 4, Fig. 1: errors against the fraction of outliers, for three label rules and two magnitudes.

    "exact_error" is the same with an exact number of outliers in every prompt instead of a binomial one, for κ_a' = 10.
    """
    s: Settings = lab.settings

    def evaluate(kind: str, magnitudes: tuple[float, ...], exact: bool) -> xr.Dataset:
        return lab.evaluate(
            train_one_layer(lab, kind), f"robustness{' exact' * exact}", errors(hinge),
            lambda setting, seed, rule, magnitude, fraction: inference_world(
                s, fraction, magnitude, LabelRule[rule], exact=exact
            ),
            {"rule": RULES, "magnitude": magnitudes, "fraction": FRACTIONS}, s.prompts,
        )  # fmt: skip

    found = _both(lambda kind: evaluate(kind, MAGNITUDES, exact=False))
    found["exact_error"] = _both(lambda kind: evaluate(kind, MAGNITUDES[-1:], exact=True))["error"].isel(magnitude=0, drop=True)
    return found


def choices(lab: Lab) -> xr.Dataset:
    """How the errors move with what is unstated: magnitude, task set, label rule, counting, size of irrelevant parts."""
    s: Settings = lab.settings
    dims = {
        "fraction": (0.6, 0.8),
        "rule": RULES,
        "magnitude": MAGNITUDES,
        "counting": ("Bernoulli", "exact"),
        "size": (0.5, 1.5, 5.0),
    }
    return _both(
        lambda kind: lab.evaluate(
            train_one_layer(lab, kind), "choices", errors(hinge),
            lambda setting, seed, fraction, rule, magnitude, counting, size: inference_world(
                s, fraction, magnitude, LabelRule[rule], exact=counting == "exact", size=size, stackable=True
            ),
            dims, s.trend_prompts,
        ),
    )  # fmt: skip


def attention(lab: Lab) -> xr.Dataset:
    """Corollary 1, Figs. 2 and 4: attention sums along training, one layer and three."""
    parts = [train_one_layer(lab, "mamba").history.sel(setting=["18 tasks"]).assign_coords(setting=["Mamba, one layer"])]
    parts += [train_stack(lab, name).history for name in STACKS]
    names = ["score_same", "score_other", "training_loss", "training_error"]
    # Which steps a setting was recorded at: elsewhere it is NaN, as it is where it diverged.
    marked = [part[names].assign(recorded=("step", np.ones(part.sizes["step"]))) for part in parts]
    marked = [part.assign(recorded=part["recorded"].expand_dims(setting=part["setting"])) for part in marked]
    found = xr.concat(marked, "setting", join="outer")
    return found.assign(recorded=found["recorded"].fillna(0))


def _average(found: xr.Dataset) -> xr.Dataset:
    """Sums over counts; NaN where a group never occurred."""
    averaged = xr.Dataset()
    for name in ("ranked", "outlier", "clean"):
        count = found[f"{name}_count"]
        averaged[f"{name}_gate"] = found[f"{name}_sum"] / count.where(count > 0)
        averaged[f"{name}_count"] = count
    return averaged


def gates(lab: Lab) -> xr.Dataset:
    """Corollary 2, Figs. 3 and 5: gates of outlier and clean examples by distance to the query, α = 0.3."""
    s: Settings = lab.settings

    def measure(trained: Trained) -> xr.Dataset:
        return _average(lab.evaluate(
            trained, "gates", gate_profile,
            lambda setting, seed, magnitude: inference_world(s, GATE_FRACTION, magnitude),
            {"magnitude": MAGNITUDES}, s.trend_prompts,
        ))  # fmt: skip

    parts = [measure(train_one_layer(lab, "mamba")).sel(setting=["18 tasks"]).assign_coords(setting=["Mamba, one layer"])]
    parts += [measure(train_stack(lab, name)) for name in STACKS if name.startswith("Mamba")]
    found = xr.concat(parts, "setting", join="outer")
    contexts = found.sizes["rank"]
    return found.assign_coords(rank=np.arange(1, contexts + 1), distance=np.arange(1, contexts + 1))


def placements(lab: Lab) -> xr.Dataset:
    """Table 2: accuracy of the stacks with outliers farthest from the query, closest to it, or anywhere. α = 0.5."""
    s: Settings = lab.settings
    parts = [
        lab.evaluate(
            train_stack(lab, name), "placements", errors(hinge),
            lambda setting, seed, rule, magnitude, placement: inference_world(
                s, TABLE_FRACTION, magnitude, LabelRule[rule], Placement[placement], exact=True, stackable=True
            ),
            {"rule": RULES, "magnitude": MAGNITUDES, "placement": tuple(place.name for place in Placement)}, s.trend_prompts,
        )
        for name in STACKS
    ]  # fmt: skip
    found = xr.concat(parts, "setting")
    found["accuracy"] = 1.0 - found["error"]
    return found


EXPERIMENTS = {
    "forms": Experiment(forms, cost=8),
    "convergence": Experiment(convergence, cost=6),
    "robustness": Experiment(robustness, cost=25),
    "choices": Experiment(choices, cost=10),
    "attention": Experiment(attention, cost=60),
    "gates": Experiment(gates, cost=4),
    "placements": Experiment(placements, cost=8),
    "explorer": Experiment(explorer, cost=6),
}

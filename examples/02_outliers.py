"""Two architectures under outliers: does Mamba's gate help where linear attention fails?

Li et al. (Understanding Mamba in in-context learning with outliers) say that a gate learns to skip examples that carry
an additive outlier and a false label. Here both models are trained with 40 % of such examples and tested with 0 to
80 %.

    iclab reproduce examples/02_outliers.py
    iclab sweep examples/02_outliers.py --grid magnitude=0.5,1,2
"""

import dataclasses

import numpy as np
import xarray as xr

from iclab.authoring import Part, Recipe, Statement, Training, below, errors, hinge, larger, measured
from iclab.models.linear_transformer import LinearTransformerSettings
from iclab.models.mamba import MambaSettings
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.outliers import LabelRule, Outliers
from iclab.worlds.tasks import cyclic_tasks

FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
MODELS = {"Mamba": MambaSettings(), "linear attention": LinearTransformerSettings(causal=True)}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes, and the strength of outliers."""

    magnitude: float = 2.0
    train_fraction: float = 0.4
    step_size: float = 0.01
    steps: int = 1000
    prompts: int = 2000


settings = {
    "smoke": Settings(steps=10, prompts=250),
    "quick": Settings(),
    "paper": Settings(steps=10_000, prompts=20_000),
}


def world(s, fraction):
    """Binary classification by one of four patterns; outliers show the opposite label."""
    return Classification(
        orthogonal_patterns(12, relevant=4, irrelevant=4, strength=2.0, outliers=2), cyclic_tasks(4, shifts=3),
        label_embedding=np.array([1.0]), matching_fraction=0.8, context_length=20,
        outliers=Outliers(fraction, s.magnitude, LabelRule.flip, stackable=True),
    )  # fmt: skip


def experiment(lab):
    """Train both models with outliers, test them with fewer and with more."""
    s, parts = lab.settings, []
    for name, model in MODELS.items():
        recipe = Recipe(world(s, s.train_fraction), model, Training(s.step_size, batch=64))
        trained = lab.train(name.replace(" ", "-"), {name: recipe}, s.steps, loss=hinge)
        where = lambda setting, seed, fraction: world(s, fraction)  # noqa: E731
        parts.append(lab.evaluate(trained, "test", errors(hinge), where, {"fraction": FRACTIONS}, s.prompts))
    return xr.concat(parts, "setting")


error = measured("experiment", "error")
mamba, linear = error.sel(setting="Mamba"), error.sel(setting="linear attention")

statements = [
    Statement(
        "gate-helps",
        "Li et al., Theorems 1 to 4, in small",
        "With 60 % outliers Mamba makes fewer mistakes than linear attention without a gate.",
        (
            Part(
                "error of linear attention minus error of Mamba",
                linear.sel(fraction=0.6) - mamba.sel(fraction=0.6),
                larger(0.05),
            ),
        ),
    ),
    Statement(
        "nothing-lost",
        "",
        "Without outliers Mamba is as good.",
        (
            Part(
                "error of Mamba minus error of linear attention",
                mamba.sel(fraction=0.0) - linear.sel(fraction=0.0),
                below(0.02),
            ),
        ),
    ),
]

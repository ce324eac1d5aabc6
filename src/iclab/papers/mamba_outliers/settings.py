"""Settings of mamba-outliers (Appendix B of the paper), and the worlds they define.

What the paper states: d = 30, M1 = 6, M2 = 10, V = 3, δ = 0.2, β = 3, κ_a = 2, l_tr = l_ts = 20, p_a = 0.6 (one layer)
and 0.4 (three layers), the test mixtures of outliers, α = 0.3 for the gates and 0.5 for Table 2. What it leaves open is in
`unstated`; of these, the test magnitude κ_a', the set of training tasks, the stacking, the causality and the label rule are
choices that the claims are split by.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from iclab.authoring.gpt2 import GPT2Training
from iclab.errors import require, require_fraction, require_positive
from iclab.experiments import Recipe
from iclab.models.linear_transformer import LinearTransformerSettings, Residual
from iclab.models.mamba import MambaSettings
from iclab.papers.mamba_outliers import theory
from iclab.patterns import Patterns, orthogonal_patterns
from iclab.training import Training
from iclab.worlds.classification import Classification
from iclab.worlds.outliers import LabelRule, Outliers, Placement
from iclab.worlds.tasks import all_tasks, cyclic_tasks


@dataclasses.dataclass(frozen=True)
class Settings:
    """One line per setting, with the paper's letter; `gpt2` holds those of `iclab.authoring.gpt2`."""

    feature_dimension: int = 30  # d
    relevant_patterns: int = 6  # M1
    irrelevant_patterns: int = 10  # M2
    outlier_patterns: int = 3  # V
    pattern_strength: float = 3.0  # β
    irrelevant_size: float = 0.5  # K
    shifted_irrelevant_size: float = 1.5  # K' > 1
    outlier_fraction: float = 0.6  # p_a, one layer
    stack_outlier_fraction: float = 0.4  # p_a, three layers
    outlier_magnitude: float = 2.0  # κ_a
    train_length: int = 20  # l_tr
    test_length: int = 20  # l_ts
    initial_scale: float = 0.2  # δ
    mamba_step_size: float = 1.0  # η
    linear_step_size: float = 0.05  # η
    batch: int = 128  # B
    steps: int = 1000  # T
    stack_depth: int = 3
    stack_step_size: float = 0.1  # η
    stack_batch: int = 64  # B
    stack_steps: int = 1500  # T
    record_every: int = 100
    basis_seed: int = 0  # 0: axis-aligned patterns; otherwise the seed of a random rotation of them
    prompts: int = 10_000
    trend_prompts: int = 2_000
    rate_steps: int = 800  # T where exponents are measured
    gpt2: GPT2Training = GPT2Training()

    def __post_init__(self) -> None:
        for name in ("outlier_fraction", "stack_outlier_fraction"):
            require_fraction(name, getattr(self, name))
            Outliers(getattr(self, name), 0.0)  # refuses 1.0, with a sentence
        sizes = ("train_length", "test_length", "initial_scale", "mamba_step_size", "linear_step_size", "stack_step_size",
                 "batch", "stack_batch", "steps", "stack_steps", "stack_depth", "record_every", "prompts", "trend_prompts",
                 "rate_steps", "outlier_magnitude", "irrelevant_size", "shifted_irrelevant_size")  # fmt: skip
        require_positive(**{name: getattr(self, name) for name in sizes})
        require(
            self.outlier_patterns == 3,
            f"outlier_patterns is {self.outlier_patterns}; the paper's test outliers are mixtures of three.",
        )
        require(
            self.relevant_patterns >= 4, f"relevant_patterns is {self.relevant_patterns}; the 18-task set needs at least 4."
        )
        patterns(self)

    def record_at(self, steps: int) -> list[int]:
        """The steps at which a training is observed."""
        return sorted({*range(0, steps, self.record_every), steps})


def unstated(s: Settings) -> tuple[str, ...]:
    """What the paper leaves open, and what these settings say."""
    return (
        f"one layer: η = {s.mamba_step_size:g} (Mamba) and {s.linear_step_size:g} (linear), B = {s.batch}, T = {s.steps}; "
        f"{s.stack_depth} layers: η = {s.stack_step_size:g}, B = {s.stack_batch}, T = {s.stack_steps}",
        *unstated_world(s),
    )


def unstated_world(s: Settings) -> tuple[str, ...]:
    """What the paper leaves open about its prompts and rules."""
    return (
        f"K = {s.irrelevant_size:g} in training, K' = {s.shifted_irrelevant_size:g} in tests",
        "test outliers are the three mixtures of Appendix B, normalised (as printed their norms are 1.005, 1.005, 0.995)",
        "each example is an outlier with probability p_a or α, unless the row says that their number is exact",
        "the targeted label of rule (B): +1",
        "hidden constants in Ω, Θ and O: 1, where the rule does not say otherwise",
    )


# Coefficients of the test outliers v*' on the training ones (Appendix B).
MIXTURES = np.array([[0.7, 0.6, -0.4], [0.4, 0.7, -0.6], [-0.7, 0.5, 0.5]])
TASK_SETS = {"18 tasks": 3, "6 tasks": 1}  # shifts of the cycle: (i, i+1), (i, i+2), (i, i+3), or (i, i+1) alone
MAGNITUDES = (2.0, 10.0)  # κ_a', unstated: the training magnitude and a larger one
STACKS = {
    "Mamba, label residual": MambaSettings,
    "Mamba, full residual": MambaSettings,
    "Mamba, no residual": MambaSettings,
    "linear, all positions": LinearTransformerSettings,
    "linear, causal": LinearTransformerSettings,
}


@functools.lru_cache(maxsize=16)
def patterns(settings: Settings) -> Patterns:
    """μ_j, ν_k and the training outliers v*_s."""
    s = settings
    return orthogonal_patterns(
        s.feature_dimension, s.relevant_patterns, s.irrelevant_patterns, s.pattern_strength,
        outliers=s.outlier_patterns, basis_seed=s.basis_seed or None,
    )  # fmt: skip


def inference_patterns(settings: Settings) -> Patterns:
    """The same patterns with the test outliers v*', unit vectors."""
    unit = MIXTURES / np.linalg.norm(MIXTURES, axis=1, keepdims=True)
    trained = patterns(settings)
    return dataclasses.replace(trained, outliers=unit @ trained.outliers)


@functools.lru_cache(maxsize=64)
def training_world(
    settings: Settings, shifts: int, fraction: float, every_task: bool = False, longest: int | None = None
) -> Classification:
    """Definition 1: outliers with a random label. With `every_task`, on all tasks of T instead of the training ones.

    Worlds of several lengths share a program if they are padded to the same `longest`.
    """
    s = settings
    tasks = all_tasks(s.relevant_patterns) if every_task else cyclic_tasks(s.relevant_patterns, shifts)
    return Classification(
        patterns(s), tasks, label_embedding=np.ones(1), matching_fraction=1.0, context_length=s.train_length,
        maximum_length=longest, irrelevant_range=(-s.irrelevant_size, s.irrelevant_size),
        outliers=Outliers(fraction, s.outlier_magnitude),
    )  # fmt: skip


@functools.lru_cache(maxsize=4096)
def inference_world(
    settings: Settings, fraction: float, magnitude: float, rule: LabelRule = LabelRule.flip,
    placement: Placement = Placement.random, exact: bool = False, size: float | None = None, stackable: bool = False,
    length: int | None = None, longest: int | None = None, shifts: int | None = None,
) -> Classification:  # fmt: skip
    """Definition 2: test outliers, any label rule, all tasks of T, or those of so many `shifts` of the cycle.

    `stackable` with worlds of other placements and counts.
    """
    s = settings
    tasks = all_tasks(s.relevant_patterns) if shifts is None else cyclic_tasks(s.relevant_patterns, shifts)
    size = s.shifted_irrelevant_size if size is None else size
    return Classification(
        inference_patterns(s), tasks, label_embedding=np.ones(1), matching_fraction=1.0,
        context_length=length or s.test_length, maximum_length=longest, irrelevant_range=(-size, size),
        outliers=Outliers(fraction, magnitude, rule, placement=placement, exact=exact, stackable=stackable),
    )  # fmt: skip


def one_layer(settings: Settings, kind: str, shifts: int) -> Recipe:
    """One-layer "mamba" or "linear" on a task set, watched on a test world with α = 0.3."""
    s = settings
    scale = s.initial_scale
    model = MambaSettings(scale) if kind == "mamba" else LinearTransformerSettings(scale)
    step_size = s.mamba_step_size if kind == "mamba" else s.linear_step_size
    return Recipe(
        training_world(s, shifts, s.outlier_fraction), model, Training(step_size, s.batch),
        (inference_world(s, 0.3, s.outlier_magnitude),),
    )  # fmt: skip


def stacked(settings: Settings, name: str) -> Recipe:
    """One of `STACKS` on the 18 tasks with p_a = 0.4. Linear stacks divide each layer's sum by l; without that they diverge."""
    s = settings
    residual = Residual.full if "full" in name else Residual.none if "no residual" in name else Residual.label
    model = (
        MambaSettings(s.initial_scale, s.stack_depth, residual)
        if STACKS[name] is MambaSettings
        else LinearTransformerSettings(s.initial_scale, s.stack_depth, residual, "causal" in name, mean=True)
    )
    return Recipe(
        training_world(s, TASK_SETS["18 tasks"], s.stack_outlier_fraction), model,
        Training(s.stack_step_size, s.stack_batch), (inference_world(s, 0.3, s.outlier_magnitude),),
    )  # fmt: skip


SHARED = ("feature_dimension", "relevant_patterns", "irrelevant_patterns", "outlier_patterns", "pattern_strength",
          "irrelevant_size", "shifted_irrelevant_size", "outlier_fraction", "outlier_magnitude", "train_length", "test_length",
          "initial_scale", "mamba_step_size", "linear_step_size", "batch", "steps")  # fmt: skip


def symbols(settings: Settings) -> theory.Symbols:
    """What the theorems speak of, at these settings, for one layer and the 18 tasks.

    ε is the smallest that the batch allows; the test outliers have α = 0.3 (as in the figures of gates) and κ_a' = κ_a; L is
    their smallest sum of coefficients.
    """
    s = settings
    unit = MIXTURES / np.linalg.norm(MIXTURES, axis=1, keepdims=True)
    return theory.Symbols(
        **{name: getattr(s, name) for name in SHARED},
        test_outlier_fraction=0.3,
        test_outlier_magnitude=s.outlier_magnitude,
        mixture_sum=float(unit.sum(axis=1).min()),
        training_tasks=TASK_SETS["18 tasks"] * s.relevant_patterns,
        rank=2,
        error=theory.smallest_error(s.batch),
    )


PROFILES = {
    "smoke": Settings(
        steps=40, rate_steps=20, stack_steps=20, record_every=20, prompts=500, trend_prompts=250,
        gpt2=Settings.gpt2.smoke(),
    ),
    "quick": Settings(),
    "paper": Settings(
        steps=2000, stack_steps=3000, prompts=50_000, trend_prompts=10_000,
        gpt2=dataclasses.replace(Settings.gpt2, steps=3000, seeds=32, prompts=20_000, trend_prompts=10_000),
    ),
}  # fmt: skip

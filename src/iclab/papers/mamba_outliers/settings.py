"""Settings of mamba-outliers (Appendix B of the paper), and the worlds they define.

What the paper states: d = 30, M1 = 6, M2 = 10, V = 3, δ = 0.2, β = 3, κ_a = 2, l_tr = l_ts = 20, p_a = 0.6 (one layer)
and 0.4 (three layers), the test mixtures of outliers, α = 0.3 for the gates and 0.5 for Table 2. The rest is in
`unstated`; the test magnitude κ_a', the set of training tasks, the stacking and how outliers are counted are readings.

Settings with several values are texts, so that `--set "test_fractions=0 0.5 0.8"` changes them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np

from iclab.authoring.gpt2 import GPT2Training
from iclab.authoring.plugged import model_of, require_fits, require_model, shown
from iclab.errors import InputError, require, require_settings
from iclab.experiments import Recipe
from iclab.losses import hinge
from iclab.models.linear_transformer import LinearTransformerSettings, Residual
from iclab.models.mamba import MambaSettings
from iclab.optimisation import Training
from iclab.papers.mamba_outliers import theory
from iclab.patterns import Patterns, orthogonal_patterns
from iclab.theorems import shared
from iclab.unstated import Between, Unstated
from iclab.worlds.classification import Classification
from iclab.worlds.outliers import LabelRule, Outliers
from iclab.worlds.tasks import all_tasks, cyclic_tasks

SHARES = ("outlier_fraction", "stack_outlier_fraction", "gate_fraction", "placement_fraction")


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
    test_outlier_magnitude: float = 2.0  # κ_a', unstated: the training magnitude
    large_outlier_magnitude: float = 10.0  # κ_a' again: statements are read with both
    magnitude_dial: str = "2 3 4 5 6 10"  # κ_a' where it is varied
    test_mixtures: str = "0.7 0.6 -0.4, 0.4 0.7 -0.6, -0.7 0.5 0.5"  # λ of the test outliers, of the training ones
    test_fractions: str = "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.75 0.8 0.9"  # α of Fig. 1
    gate_fraction: float = 0.3  # α of Figs. 2-5
    placement_fraction: float = 0.5  # α of Table 2
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
    prompts: int = 4_000
    trend_prompts: int = 1_000
    rate_steps: int = 800  # T where exponents are measured
    rate_initial_scale: float = 0.02  # δ there: at 0.2 the linear model's untrained answers are right already
    mamba_slowdown: float = 20.0  # η is divided by this there, so that a passage takes many steps
    linear_slowdown: float = 80.0
    rate_programs: int = 4  # sizes that need a program of their own: batches
    gpt2: GPT2Training = GPT2Training()
    model: str = "mamba"  # or another mixer in the place of the one-layer Mamba, or a class in a file: my.py:Settings

    def __post_init__(self) -> None:
        for name in SHARES:
            share = getattr(self, name)
            require(0 <= share < 1, f"{name} is {share}; it must lie in [0, 1): outliers alone teach nothing.")
        require_settings(self, zero=(*SHARES, "irrelevant_size", "shifted_irrelevant_size"))
        m1, v = self.relevant_patterns, self.outlier_patterns
        require(m1 >= 4, f"relevant_patterns is {m1}; the 18-task set needs at least 4.")
        mixed = f"test_mixtures is {self.test_mixtures!r}; it needs rows of {v} numbers that are not all 0"
        require(all(len(row) == v and any(row) for row in map(numbers, self.test_mixtures.split(","))), f"{mixed}.")
        alphas = f"test_fractions is {self.test_fractions!r}; it needs numbers that rise, from 0 up to below 1"
        require(self.fractions[0] == 0 and self.fractions[-1] < 1 and _rise(self.fractions), f"{alphas}.")
        sizes = f"magnitude_dial is {self.magnitude_dial!r}; it needs positive numbers that rise"
        require(self.dial[0] > 0 and _rise(self.dial), f"{sizes}.")
        require_model(self.model)
        patterns(self)

    def record_at(self, steps: int) -> list[int]:
        """The steps at which a training is observed; the first one too, to tell it from training."""
        return sorted({*range(0, steps, self.record_every), 1, steps})

    @property
    def magnitudes(self) -> tuple[float, ...]:
        """κ_a' of the readings."""
        return tuple(dict.fromkeys((self.test_outlier_magnitude, self.large_outlier_magnitude)))

    @property
    def dial(self) -> tuple[float, ...]:
        """κ_a' where it is varied."""
        return numbers(self.magnitude_dial)

    @property
    def fractions(self) -> tuple[float, ...]:
        """α of Fig. 1."""
        return numbers(self.test_fractions)

    @property
    def mixtures(self) -> np.ndarray:
        """λ of the test outliers, as unit rows."""
        return unit_rows([numbers(row) for row in self.test_mixtures.split(",")])


def numbers(text: str) -> tuple[float, ...]:
    """The numbers of a text, or one sentence about what is none.

    >>> numbers("0 0.1 2")
    (0.0, 0.1, 2.0)
    """
    try:
        found = tuple(float(word) for word in text.split())
    except ValueError as error:
        raise InputError(f"{text!r} must be numbers with spaces between them.") from error
    require(bool(found) and bool(np.all(np.isfinite(found))), f"{text!r} must be numbers with spaces between them.")
    return found


def unit_rows(rows: Any) -> np.ndarray:
    """Each row with norm 1."""
    rows = np.asarray(rows, float)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _rise(values: tuple[float, ...]) -> bool:
    return all(low < high for low, high in itertools.pairwise(values))


unstated = (
    Unstated(
        "test_outlier_magnitude",
        Between(2.0, 10.0, log=True),
        "κ_a'",
        "Theorem 2 (b) asks for κ_a' >= κ_a = 2",
        along=("large_outlier_magnitude",),
    ),
    Unstated("irrelevant_size", Between(0.25, 0.5), "K", "A.1 asks for K <= 1/2"),
    Unstated("shifted_irrelevant_size", Between(1.5, 5.0), "K'", "A.1 asks for K' > 1; 5 in nonlinear-icl"),
    Unstated("mamba_step_size", Between(0.3, 1.0, log=True), "η", "the theorems ask for η <= 1"),
    Unstated("linear_step_size", Between(0.02, 0.1, log=True), "η", "the theorems ask for η <= 1; above, it diverges"),
    Unstated("batch", (64, 128, 256), "B", "common practice"),
    Unstated("steps", (500, 1000, 2000), "T", "until the training loss is small"),
    Unstated("stack_step_size", Between(0.05, 0.2, log=True), "η", "of three layers; above, some stacks diverge"),
    Unstated("stack_batch", (64, 128), "B", "of three layers; common practice"),
    Unstated("stack_steps", (1000, 1500, 3000), "T", "of three layers; until the training loss is small"),
    Unstated("basis_seed", (0, 1, 2), "", "axis-aligned or rotated patterns: the paper says orthogonal"),
    "test outliers are the three mixtures of Appendix B, normalised (as printed their norms are 1.005, 1.005, 0.995)",
    "each example is an outlier with probability p_a or α, unless a reading says that their number is exact",
    "the targeted label of rule (B): +1",
    "linear stacks divide each layer's sum by l, which the paper does not say: without that they diverge at these "
    "step sizes",
    "hidden constants in Ω, Θ and O: 1, where a rule does not say otherwise",
)

TASKS = "18 tasks"
TASK_SETS = {TASKS: 3, "6 tasks": 1}  # shifts of the cycle: (i, i+1), (i, i+2), (i, i+3), or (i, i+1) alone
KINDS = {"mamba": "Mamba", "linear": "linear Transformer"}
OWN = "mamba"  # whose place another model takes
ONE_LAYER = "Mamba, one layer"
STACKS = {
    "label-residual": "Mamba, label residual",
    "full-residual": "Mamba, full residual",
    "no-residual": "Mamba, no residual",
    "linear": "linear, all positions",
    "linear-causal": "linear, causal",
}


@functools.lru_cache(maxsize=16)
def patterns(s: Settings) -> Patterns:
    """μ_j, ν_k and the training outliers v*_s."""
    sizes = s.feature_dimension, s.relevant_patterns, s.irrelevant_patterns, s.pattern_strength
    return orthogonal_patterns(*sizes, outliers=s.outlier_patterns, basis_seed=s.basis_seed or None)


@functools.lru_cache(maxsize=64)
def training_world(
    s: Settings, shifts: int, fraction: float, every_task: bool = False, longest: int | None = None
) -> Classification:
    """Definition 1: outliers with a random label. With `every_task`, on all tasks of T instead of the training ones.

    Worlds of several lengths share a program if they are padded to the same `longest`.
    """
    tasks = all_tasks(s.relevant_patterns) if every_task else cyclic_tasks(s.relevant_patterns, shifts)
    carried = Outliers(fraction, s.outlier_magnitude)
    return _world(patterns(s), tasks, s.train_length, longest, s.irrelevant_size, carried)


@functools.lru_cache(maxsize=4096)
def inference_world(
    s: Settings,
    fraction: float,
    magnitude: float,
    longest: int | None = None,
    shifts: int | None = None,
    outliers: str | float | tuple[float, ...] = "mixed",
    **rules: Any,
) -> Classification:
    """Definition 2: test outliers, all tasks of T, or those of so many `shifts` of the cycle.

    `outliers` are "mixed" (those of Appendix B), "seen" (the training ones), "opposed" (minus the mixed ones, which
    violates (a)), the sum Σλ of mixtures (see `summing_to`) or one mixture λ. `rules` are those of `Outliers`: labels
    (flipped unless told otherwise), placement, exact numbers.
    """
    tasks = all_tasks(s.relevant_patterns) if shifts is None else cyclic_tasks(s.relevant_patterns, shifts)
    shifted = dataclasses.replace(patterns(s), outliers=_mixtures(s, outliers) @ patterns(s).outliers)
    carried = Outliers(fraction, magnitude, **{"rule": LabelRule.flip} | rules)
    return _world(shifted, tasks, s.test_length, longest, s.shifted_irrelevant_size, carried)


def _mixtures(s: Settings, outliers: str | float | tuple[float, ...]) -> np.ndarray:
    if isinstance(outliers, tuple):
        return unit_rows([outliers])
    named = {"mixed": s.mixtures, "opposed": -s.mixtures, "seen": np.eye(s.outlier_patterns)}
    return named[outliers] if isinstance(outliers, str) else summing_to(outliers, s.outlier_patterns)


def summing_to(total: float, count: int) -> np.ndarray:
    """Mixtures λ of norm 1 with Σλ = `total`: one along each cyclic difference of two training outliers.

    >>> found = summing_to(0.6, 3)
    >>> found.sum(axis=1).round(6).tolist(), np.linalg.norm(found, axis=1).round(6).tolist()
    ([0.6, 0.6, 0.6], [1.0, 1.0, 1.0])
    """
    require(count > 1 and total**2 <= count, f"{count} coefficients of norm 1 cannot sum to {total}.")
    across = (np.eye(count) - np.roll(np.eye(count), 1, axis=1)) / np.sqrt(2)
    return total / count + np.sqrt(1 - total**2 / count) * across


def _world(
    drawn: Patterns, tasks: np.ndarray, length: int, longest: int | None, size: float, carried: Outliers
) -> Classification:
    lengths: dict[str, Any] = {"context_length": length, "maximum_length": longest}
    alike: dict[str, Any] = {"label_embedding": np.ones(1), "matching_fraction": 1.0, "irrelevant_range": (-size, size)}
    return Classification(drawn, tasks, **lengths, **alike, outliers=carried)


def kinds(s: Settings) -> dict[str, str]:
    """What the two one-layer models are called: another one may be in the place of Mamba."""
    return KINDS if s.model == OWN else KINDS | {OWN: shown(s.model)}


def check(s: Settings) -> None:
    """Refuse another model that does not fit into these worlds."""
    if s.model != OWN:
        require_fits(s.model, one_layer(s, OWN, 1).model, training_world(s, 1, s.outlier_fraction), hinge)


def one_layer(s: Settings, kind: str, shifts: int) -> Recipe:
    """One-layer "mamba", or what is in its place, or "linear" on a task set, watched on a test world with α = 0.3."""
    own = model_of(s.model, initial_scale=s.initial_scale) if kind == OWN else None
    model = LinearTransformerSettings(s.initial_scale) if own is None else own
    training = Training(s.mamba_step_size if kind == "mamba" else s.linear_step_size, s.batch)
    return Recipe(training_world(s, shifts, s.outlier_fraction), model, training, (_watched(s),))


def stacked(s: Settings, name: str) -> Recipe:
    """A stack on the 18 tasks, p_a = 0.4. Linear ones divide each layer's sum by l; without that they diverge."""
    residual = Residual.full if "full" in name else Residual.none if "no residual" in name else Residual.label
    sizes = s.initial_scale, s.stack_depth, residual
    model = MambaSettings(*sizes) if "Mamba" in name else LinearTransformerSettings(*sizes, "causal" in name, mean=True)
    world = training_world(s, TASK_SETS[TASKS], s.stack_outlier_fraction)
    return Recipe(world, model, Training(s.stack_step_size, s.stack_batch), (_watched(s),))


def _watched(s: Settings) -> Classification:
    return inference_world(s, s.gate_fraction, s.outlier_magnitude)


def symbols(s: Settings) -> theory.Symbols:
    """What the theorems speak of, at these settings, for one layer and the 18 tasks.

    ε is the smallest that the batch allows; the test outliers have α = 0.3, as in the figures of gates; L is their
    smallest sum of coefficients.
    """
    return theory.Symbols(
        **shared(theory.Symbols, s),
        test_outlier_fraction=s.gate_fraction,
        mixture_sum=float(s.mixtures.sum(axis=1).min()),
        training_tasks=TASK_SETS[TASKS] * s.relevant_patterns,
        rank=2,
        error=theory.smallest_error(s.batch),
    )


_small: dict[str, Any] = {
    "steps": 40,
    "rate_steps": 20,
    "stack_steps": 20,
    "record_every": 20,
    "prompts": 500,
    "trend_prompts": 250,
}
_small |= {"rate_programs": 1}
_large: dict[str, Any] = {"steps": 2000, "stack_steps": 3000, "prompts": 50_000, "trend_prompts": 10_000}
_deep = dataclasses.replace(Settings.gpt2, steps=3000, seeds=32, prompts=20_000, trend_prompts=10_000)
_smoke = Settings(**_small, gpt2=Settings.gpt2.smoke())
settings = {"smoke": _smoke, "quick": Settings(), "paper": Settings(**_large, gpt2=_deep)}

"""Settings of nonlinear-icl (Section 5 of the paper), and the worlds they define.

What the paper states: d_X = d_Y = 30, β = 3, K = 0.5, K' = 5, M1 = 6, M2 = 24, m_a = m_b = 60, α = 0.8 (0.6 for pruning
and the number of tasks), l_tr = 20, U = 1 (6 training tasks) for the one-layer model and U = 4 (24 of the 30 tasks) for
GPT-2, the out-of-domain mixtures. What it leaves open is in `unstated`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from iclab.authoring.gpt2 import GPT2Training
from iclab.authoring.plugged import model_of, require_fits, require_model
from iclab.errors import require, require_settings
from iclab.experiments import Recipe
from iclab.losses import hinge
from iclab.models import ModelSettings
from iclab.models.mixers import MixerSettings
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.models.zoo import MECHANISMS
from iclab.optimisation import Training
from iclab.papers.nonlinear_icl import theory
from iclab.patterns import Patterns, mix, orthogonal_patterns
from iclab.theorems import shared
from iclab.unstated import Between, Unstated
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import all_tasks, cyclic_tasks, without

OWN = "transformer"  # whose place another model takes
LARGEST_SUM = 1.28  # S_1 for a = b = 0.64 of Section 5.2, up to rounding
Tasks = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class Settings:
    """One line per setting, with the paper's letter; `gpt2` holds those of `iclab.authoring.gpt2`."""

    feature_dimension: int = 30  # d_X
    label_dimension: int = 30  # d_Y
    relevant_patterns: int = 6  # M1
    irrelevant_patterns: int = 24  # M2
    pattern_strength: float = 3.0  # β
    label_norm: float = 1.0  # ‖q‖
    irrelevant_size: float = 0.5  # K
    shifted_irrelevant_size: float = 5.0  # K', out of domain
    matching_fraction: float = 0.8  # α
    low_matching_fraction: float = 0.6  # α in Figs. 5 and 7
    test_matching_fraction: float = 0.8  # α'
    task_shifts: int = 1  # U: the one-layer model is trained on U M1 tasks
    train_length: int = 20  # l_tr
    test_length: int = 20  # l_ts
    longest_test: int = 40  # the longest prompt in Figs. 3B and 4
    key_width: int = 60  # m_a
    value_width: int = 60  # m_b
    neurons: int = 300  # m
    initial_scale: float = 0.1  # δ
    readout_power: float = 1.0  # a = ±m^(-power)
    step_size: float = 2.0  # η
    batch: int = 128  # B
    steps: int = 1000  # T
    basis_seed: int = 0  # 0: axis-aligned patterns; otherwise the seed of a random rotation of them
    record_every: int = 50
    prompts: int = 4_000  # fresh prompts per member where an error below 0.01 is claimed
    trend_prompts: int = 1_000  # fresh prompts per member where a trend is claimed
    rate_steps: int = 1000  # T where exponents are measured
    rate_programs: int = 9  # at most so many values of a setting whose every value is a program of its own
    size_constant: float = 140.0  # T over (10) where M1 is swept and a = ±1/m
    root_constant: float = 12.0  # T over (10) where M1 is swept and a = ±1/√m
    baseline_prompts: int = 60  # prompts per seed for the scikit-learn baselines
    gpt2: GPT2Training = GPT2Training()
    gpt2_task_shifts: int = 4  # U of GPT-2
    gpt2_shortest_train: int = 2  # where GPT-2 is trained on contexts of several lengths, up to l_tr
    model: str = (
        "transformer"  # or a mixer in the place of the one-layer Transformer, or a class in a file: my.py:Settings
    )

    def __post_init__(self) -> None:
        fractions = "matching_fraction", "low_matching_fraction", "test_matching_fraction"
        require_settings(self, fractions, ("irrelevant_size", "shifted_irrelevant_size", "readout_power"))
        features, both = self.feature_dimension, self.feature_dimension + self.label_dimension
        longest, shortest, most = self.longest_test, self.gpt2_shortest_train, self.relevant_patterns - 1
        wide, fits = self.key_width >= features and self.value_width >= both, self.test_length <= longest
        known, varied = 1 <= shortest <= self.train_length, f"it must lie in 1..{self.train_length}, the train_length."
        require(most >= 5, f"relevant_patterns is {most + 1}; the out-of-domain mixtures use six training patterns.")
        require(fits, f"test_length is {self.test_length}, above longest_test {longest}.")
        require(
            wide,
            f"key_width {self.key_width} must be at least feature_dimension {features}, and value_width "
            f"{self.value_width} at least feature_dimension + label_dimension {both}.",
        )
        require(known, f"gpt2_shortest_train is {shortest}; {varied}")
        require(features > 8, "feature_dimension must be above 8, the largest M1 of Fig. 7.")
        for name in ("task_shifts", "gpt2_task_shifts"):
            shifts = getattr(self, name)
            require(1 <= shifts < most, f"{name} is {shifts}; below {most} some tasks stay unseen.")
        if self.model != OWN:
            require_model(self.model)
        patterns(self)  # refuses more patterns than dimensions, with a sentence

    @property
    def record_at(self) -> list[int]:
        """The steps at which the training is observed: 0, every `record_every`, and the last."""
        return sorted({*range(0, self.steps, self.record_every), self.steps})


def check(s: Settings) -> None:
    """What only the paper's own figures ask of its settings, and whether another model fits into its worlds."""
    require(s.longest_test >= 5, f"longest_test is {s.longest_test}; Figs. 3B and 4 start at 5 examples.")
    if s.model != OWN:
        own = recipe(s)
        require_fits(s.model, own.model, own.world, hinge)


unstated = (
    Unstated("neurons", (100, 300, 500), "m", "Theorem 3.3 asks for M1² log M1 = 65 or more; more cost more"),
    Unstated("initial_scale", Between(0.05, 0.2, log=True), "δ", "Section 2.3 says δ in (0, 0.2]"),
    Unstated("step_size", Between(0.5, 2.0, log=True), "η", "the theorems ask for η <= 1, the figures for nothing"),
    Unstated("batch", (64, 128, 256), "B", "common practice"),
    Unstated("steps", (600, 1000, 2000), "T", "Figure 2 says 400 epochs, and not how long one is"),
    Unstated("label_norm", Between(1.0, 3.0, log=True), "‖q‖", "1, or β as in feature-selection, of the same authors"),
    Unstated("readout_power", (0.5, 1.0), "", "a = ±1/m in Section 2.3, ±1/√m in Algorithm 1"),
    Unstated("test_length", Between(10, 40), "l_ts", "where it is not swept; l_tr is 20"),
    Unstated("test_matching_fraction", Between(0.6, 1.0), "α'", "where it is not swept; Figure 3(B) sweeps 0.4 to 1"),
    Unstated("gpt2.width", (64, 128, 256), "", "all that is said of GPT-2: 3 layers, 2 heads"),
    Unstated("gpt2.step_size", Between(2e-4, 1e-3, log=True), "", "AdamW; chosen by its training loss in domain"),
    Unstated("gpt2.steps", (700, 3000), "", "common practice, with warm-up and cosine decay"),
    Unstated("gpt2.batch", (64, 128), "B", "of GPT-2; common practice"),
    Unstated("gpt2_shortest_train", (1, 2, 4), "", "where GPT-2 is trained on contexts of several lengths"),
    "queries carry a decisive pattern of their task (a literal x_query ~ D has random labels)",
    "κ' ~ U(-K', K'): the paper prints U(K', K')",
    "ε is √(log M1 / B), the smallest for which condition (ii) holds; hidden constants are 1 unless a rule says so",
)


@functools.lru_cache(maxsize=64)
def patterns(s: Settings, relevant: int = 0) -> Patterns:
    """The training patterns; for another M1 than the settings' own, M2 = d_X - M1."""
    count = relevant or s.relevant_patterns
    others = s.irrelevant_patterns if count == s.relevant_patterns else s.feature_dimension - count
    return orthogonal_patterns(s.feature_dimension, count, others, s.pattern_strength, basis_seed=s.basis_seed or None)


def shifted_coefficients(total: float, relevant: int) -> np.ndarray:
    """The three out-of-domain patterns of Section 5 as rows of coefficients; `total` is S_1 = a + b.

    μ'_1 = 0.3(μ_1 - μ_2) + a μ_5 + b μ_6 with 2·0.3² + a² + b² = 1, μ'_2 = (μ_1 + μ_2)/√2, μ'_3 = (μ_3 + μ_4)/√2.

    >>> shifted_coefficients(1.28, 6).round(2)[0].tolist()
    [0.3, -0.3, 0.0, 0.0, 0.66, 0.62]
    """
    limit = np.sqrt(2 * (1 - 2 * 0.3**2))
    require(abs(total) <= limit, f"S_1 is {total}; it must lie in [-{limit:.4f}, {limit:.4f}] for μ'_1 to have norm β.")
    root = np.sqrt(limit**2 - total**2)
    rows = np.zeros((3, relevant))
    rows[0, [0, 1, 4, 5]] = 0.3, -0.3, (total + root) / 2, (total - root) / 2
    rows[1, :2] = rows[2, 2:4] = np.sqrt(0.5)
    return rows


def _world(settings: Settings, which: Patterns, tasks: np.ndarray, size: float, **changes: Any) -> Classification:
    embedding = np.zeros(settings.label_dimension)
    embedding[0] = settings.label_norm
    return Classification(which, tasks, label_embedding=embedding, irrelevant_range=(-size, size), **changes)


@functools.lru_cache(maxsize=4096)
def in_domain(
    s: Settings, fraction: float, length: int, maximum: int, tasks: Tasks, relevant: int = 0, shortest: int = 0
) -> Classification:
    """Prompts on the training patterns and these tasks, with contexts of one length, or of `shortest` to `length`."""
    lengths = {"context_length": length, "maximum_length": maximum, "shortest_length": shortest or None}
    which = patterns(s, relevant)
    return _world(s, which, np.array(tasks), s.irrelevant_size, matching_fraction=fraction, **lengths)


@functools.lru_cache(maxsize=4096)
def out_of_domain(s: Settings, total: float, fraction: float, length: int, maximum: int) -> Classification:
    """Prompts on the mixtures with S_1 = `total`, all six tasks over them, and κ' ~ U(-K', K')."""
    lengths = {"context_length": length, "maximum_length": maximum}
    trained = patterns(s)
    mixed = mix(shifted_coefficients(total, len(trained.relevant)), trained.relevant)
    which = dataclasses.replace(trained, relevant=mixed)
    return _world(s, which, all_tasks(3), s.shifted_irrelevant_size, matching_fraction=fraction, **lengths)


def as_tuples(tasks: np.ndarray) -> Tasks:
    """Tasks as something hashable."""
    return tuple((int(a), int(b)) for a, b in tasks)


def unseen_tasks(relevant: int, trained: np.ndarray) -> Tasks:
    """T \\ T_tr, on which the paper evaluates in-domain generalisation."""
    return as_tuples(without(all_tasks(relevant), trained))


def place(s: Settings, domain: str, fraction: float, length: int, total: float = LARGEST_SUM) -> Classification:
    """Where models are tested: "in" is unseen tasks, "all tasks" those of training too, "out" the mixtures."""
    if domain == "out":
        return out_of_domain(s, total, fraction, length, s.longest_test)
    count = s.relevant_patterns
    unseen = unseen_tasks(count, cyclic_tasks(count, s.task_shifts))
    tasks = unseen if domain == "in" else as_tuples(all_tasks(count))
    return in_domain(s, fraction, length, s.longest_test, tasks)


def _model(s: Settings) -> ModelSettings:
    """The paper's, or another one. Labels are vectors here, which of the zoo's models the family of mixers reads."""
    if s.model in MECHANISMS:
        return MixerSettings(s.initial_scale, mechanism=MECHANISMS[s.model])
    if s.model != OWN:
        return model_of(s.model, initial_scale=s.initial_scale)
    names = ("initial_scale", "key_width", "value_width", "neurons", "readout_power")
    return SoftmaxTransformerSettings(**{name: getattr(s, name) for name in names})


def recipe(s: Settings, fraction: float = 0.0, relevant: int = 0, tasks: np.ndarray | None = None) -> Recipe:
    """A training, by default on U M1 cyclic tasks; watched on unseen tasks and on the mixtures with S_1 = 1.28."""
    fraction, count = fraction or s.matching_fraction, relevant or s.relevant_patterns
    tasks = cyclic_tasks(count, s.task_shifts) if tasks is None else tasks
    length, tested = s.train_length, s.test_matching_fraction
    return Recipe(
        world=in_domain(s, fraction, length, length, as_tuples(tasks), count),
        model=_model(s),
        training=Training(step_size=s.step_size, batch=s.batch),
        watched=(
            in_domain(s, tested, length, length, unseen_tasks(count, tasks), count),
            out_of_domain(s, LARGEST_SUM, tested, length, length),
        ),
    )


def symbols(s: Settings) -> theory.Symbols:
    """What the theorems speak of, at these settings. ε is the smallest that the batch allows, S_1 that of Fig. 2."""
    return theory.Symbols(
        **shared(theory.Symbols, s),
        training_tasks=s.task_shifts * s.relevant_patterns,
        mixture_sum=LARGEST_SUM,
        pruned_fraction=0.5,
        error=theory.smallest_error(s.batch, s.relevant_patterns),
    )


_long = dataclasses.replace(Settings.gpt2, steps=3000, seeds=32, prompts=20_000, trend_prompts=4_000)
_short: dict[str, Any] = {"steps": 40, "rate_steps": 20, "rate_programs": 2, "size_constant": 10, "root_constant": 2}
_short |= {"record_every": 20, "baseline_prompts": 2}
settings = {
    "smoke": Settings(**_short, prompts=500, trend_prompts=250, gpt2=Settings.gpt2.smoke()),
    "quick": Settings(),
    "paper": Settings(steps=2000, prompts=50_000, trend_prompts=10_000, baseline_prompts=100, gpt2=_long),
}

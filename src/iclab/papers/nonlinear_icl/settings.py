"""Settings of nonlinear-icl (Section 5 of the paper), and the worlds they define.

What the paper states: d_X = d_Y = 30, β = 3, K = 0.5, K' = 5, M1 = 6, M2 = 24, m_a = m_b = 60, α = 0.8 (0.6 for pruning and the
number of tasks), l_tr = 20, U = 1 (6 training tasks) for the one-layer model and U = 4 (24 of the 30 tasks) for GPT-2, the
out-of-domain mixtures. What it leaves open is in `unstated`.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from iclab.authoring.gpt2 import GPT2Training
from iclab.errors import require, require_fraction, require_positive
from iclab.experiments import Recipe
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.papers.nonlinear_icl import theory
from iclab.patterns import Patterns, mix, orthogonal_patterns
from iclab.training import Training
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import all_tasks, cyclic_tasks, without


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
    prompts: int = 10_000  # fresh prompts per member where an error below 0.01 is claimed
    trend_prompts: int = 2_000  # fresh prompts per member where a trend is claimed
    rate_steps: int = 1000  # T where exponents are measured
    rate_programs: int = 9  # at most so many values of a setting whose every value is a program of its own
    baseline_prompts: int = 60  # prompts per seed for the scikit-learn baselines
    gpt2: GPT2Training = GPT2Training()
    gpt2_task_shifts: int = 4  # U of GPT-2
    gpt2_shortest_train: int = 2  # where GPT-2 is trained on contexts of several lengths, up to l_tr

    def __post_init__(self) -> None:
        for name in ("matching_fraction", "low_matching_fraction", "test_matching_fraction"):
            require_fraction(name, getattr(self, name))
        sizes = ("label_dimension", "steps", "record_every", "prompts", "trend_prompts", "baseline_prompts", "batch",
                 "rate_steps", "rate_programs", "neurons", "train_length", "test_length", "step_size", "initial_scale",
                 "label_norm")  # fmt: skip
        require_positive(**{name: getattr(self, name) for name in sizes})
        require(
            self.relevant_patterns >= 6,
            f"relevant_patterns is {self.relevant_patterns}; the out-of-domain mixtures use six training patterns.",
        )
        require(
            self.test_length <= self.longest_test,
            f"test_length is {self.test_length}, above longest_test {self.longest_test}.",
        )
        require(self.longest_test >= 5, f"longest_test is {self.longest_test}; Figs. 3B and 4 start at 5 examples.")
        require(
            self.key_width >= self.feature_dimension and self.value_width >= self.feature_dimension + self.label_dimension,
            f"key_width {self.key_width} must be at least feature_dimension {self.feature_dimension}, and value_width "
            f"{self.value_width} at least feature_dimension + label_dimension {self.feature_dimension + self.label_dimension}.",
        )
        require(
            1 <= self.gpt2_shortest_train <= self.train_length,
            f"gpt2_shortest_train is {self.gpt2_shortest_train}; it must lie in 1..{self.train_length}, the train_length.",
        )
        require(
            1 <= self.gpt2_task_shifts < self.relevant_patterns - 1,
            f"gpt2_task_shifts is {self.gpt2_task_shifts}; below {self.relevant_patterns - 1} some tasks stay unseen.",
        )
        require(self.feature_dimension > 8, "feature_dimension must be above 8, the largest M1 of Fig. 7.")
        patterns(self, self.relevant_patterns)  # refuses more patterns than dimensions, with a sentence

    @property
    def record_at(self) -> list[int]:
        """The steps at which the training is observed: 0, every `record_every`, and the last."""
        return sorted({*range(0, self.steps, self.record_every), self.steps})


def unstated_world(s: Settings) -> tuple[str, ...]:
    """What the paper leaves open about its prompts."""
    return (
        f"‖q‖: {s.label_norm:g}",
        "queries carry a decisive pattern of their task (a literal x_query ~ D has random labels)",
        "κ' ~ U(-K', K'): the paper prints U(K', K')",
    )


def unstated(s: Settings) -> tuple[str, ...]:
    """What the paper leaves open, and what these settings say."""
    return (
        f"m (neurons), δ, η, B and T: {s.neurons}, {s.initial_scale:g}, {s.step_size:g}, {s.batch} and {s.steps} steps",
        f"l_ts: {s.test_length} unless swept; α' = {s.test_matching_fraction:g} unless swept",
        *unstated_world(s),
        "a = ±1/m as in Section 2.3; Algorithm 1 prints ±1/√m",
        "hidden constants in Ω, Θ and O: 1, where the rule does not say otherwise",
    )


@functools.lru_cache(maxsize=64)
def patterns(settings: Settings, relevant: int) -> Patterns:
    """M1 = `relevant` training patterns; for another M1 than the settings' own, M2 = d_X - M1."""
    own = relevant == settings.relevant_patterns
    irrelevant = settings.irrelevant_patterns if own else settings.feature_dimension - relevant
    return orthogonal_patterns(
        settings.feature_dimension, relevant, irrelevant, settings.pattern_strength, basis_seed=settings.basis_seed or None
    )


def shifted_coefficients(total: float, relevant: int) -> np.ndarray:
    """The three out-of-domain patterns of Section 5 as rows of coefficients; `total` is S_1 = a + b.

    μ'_1 = 0.3(μ_1 - μ_2) + a μ_5 + b μ_6 with 2·0.3² + a² + b² = 1, μ'_2 = (μ_1 + μ_2)/√2, μ'_3 = (μ_3 + μ_4)/√2.

    >>> shifted_coefficients(1.28, 6).round(2)[0].tolist()
    [0.3, -0.3, 0.0, 0.0, 0.66, 0.62]
    """
    limit = np.sqrt(2 * (1 - 2 * 0.3**2))
    require(
        abs(total) <= limit,
        f"S_1 is {total}; it must lie in [-{limit:.4f}, {limit:.4f}] for μ'_1 to have norm β.",
    )
    root = np.sqrt(limit**2 - total**2)
    a, b = (total + root) / 2, (total - root) / 2
    rows = np.zeros((3, relevant))
    rows[0, [0, 1, 4, 5]] = 0.3, -0.3, a, b
    rows[1, :2] = rows[2, 2:4] = np.sqrt(0.5)
    return rows


def _world(settings: Settings, which: Patterns, tasks: np.ndarray, size: float, **changes: object) -> Classification:
    embedding = np.zeros(settings.label_dimension)
    embedding[0] = settings.label_norm
    return Classification(which, tasks, label_embedding=embedding, irrelevant_range=(-size, size), **changes)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=4096)
def in_domain(
    settings: Settings,
    fraction: float,
    length: int,
    maximum: int,
    tasks: tuple[tuple[int, int], ...],
    relevant: int,
    shortest: int | None = None,
) -> Classification:
    """Prompts on the training patterns and the given tasks, with contexts of one length, or of `shortest` to `length`."""
    which = patterns(settings, relevant)
    return _world(settings, which, np.array(tasks), settings.irrelevant_size, matching_fraction=fraction,
                  context_length=length, maximum_length=maximum, shortest_length=shortest)  # fmt: skip


@functools.lru_cache(maxsize=4096)
def out_of_domain(
    settings: Settings, total: float, fraction: float, length: int, maximum: int, size: float | None = None
) -> Classification:
    """Prompts on the mixtures with S_1 = `total`, all six tasks over them, and κ' ~ U(-K', K'), K' = `size` where given."""
    size = settings.shifted_irrelevant_size if size is None else size
    training = patterns(settings, settings.relevant_patterns)
    mixed = mix(shifted_coefficients(total, len(training.relevant)), training.relevant)
    which = dataclasses.replace(training, relevant=mixed)
    return _world(settings, which, all_tasks(3), size,
                  matching_fraction=fraction, context_length=length, maximum_length=maximum)  # fmt: skip


LARGEST_SUM = 1.28  # a = b = 0.64 of Section 5.2, up to rounding


def as_tuples(tasks: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Tasks as something hashable."""
    return tuple((int(a), int(b)) for a, b in tasks)


def unseen_tasks(relevant: int, trained: np.ndarray) -> tuple[tuple[int, int], ...]:
    """T \\ T_tr, on which the paper evaluates in-domain generalisation."""
    return as_tuples(without(all_tasks(relevant), trained))


def recipe(settings: Settings, fraction: float, relevant: int | None = None, tasks: np.ndarray | None = None) -> Recipe:
    """A training: by default on the M1 cyclic tasks; it is watched on unseen tasks and on the mixtures with S_1 = 1.28."""
    count = settings.relevant_patterns if relevant is None else relevant
    tasks = cyclic_tasks(count) if tasks is None else tasks
    length = settings.train_length
    unseen = unseen_tasks(count, cyclic_tasks(count))
    return Recipe(
        world=in_domain(settings, fraction, length, length, as_tuples(tasks), count),
        model=SoftmaxTransformerSettings(
            initial_scale=settings.initial_scale,
            key_width=settings.key_width,
            value_width=settings.value_width,
            neurons=settings.neurons,
            readout_power=settings.readout_power,
        ),
        training=Training(step_size=settings.step_size, batch=settings.batch),
        watched=(
            in_domain(settings, settings.test_matching_fraction, length, length, unseen, count),
            out_of_domain(settings, LARGEST_SUM, settings.test_matching_fraction, length, length),
        ),
    )


SHARED = ("relevant_patterns", "irrelevant_patterns", "pattern_strength", "irrelevant_size", "matching_fraction",
          "test_matching_fraction", "train_length", "test_length", "neurons", "initial_scale", "step_size", "batch",
          "steps")  # fmt: skip


def symbols(settings: Settings) -> theory.Symbols:
    """What the theorems speak of, at these settings. ε is the smallest that the batch allows, S_1 the largest of Fig. 3A."""
    s = settings
    return theory.Symbols(
        **{name: getattr(s, name) for name in SHARED},
        training_tasks=s.relevant_patterns,
        mixture_sum=LARGEST_SUM,
        pruned_fraction=0.5,
        error=theory.smallest_error(s.batch, s.relevant_patterns),
    )


PROFILES = {
    "smoke": Settings(
        steps=40, rate_steps=20, rate_programs=2, record_every=20, prompts=500, trend_prompts=250, baseline_prompts=2,
        gpt2=Settings.gpt2.smoke(),
    ),
    "quick": Settings(),
    "paper": Settings(
        steps=2000, prompts=50_000, trend_prompts=10_000, baseline_prompts=100,
        gpt2=dataclasses.replace(Settings.gpt2, steps=3000, seeds=32, prompts=20_000, trend_prompts=4_000),
    ),
}  # fmt: skip

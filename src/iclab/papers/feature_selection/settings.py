"""Settings of feature-selection. The paper states the model of the data (Section 3.2) and no number for any
experiment.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from iclab.errors import require, require_settings
from iclab.experiments import Recipe
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.optimisation import Training
from iclab.papers.feature_selection import theory
from iclab.patterns import Patterns, mix, orthogonal_patterns, random_rotation
from iclab.theorems import shared
from iclab.unstated import Between, Unstated
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import all_tasks, cyclic_tasks


@dataclasses.dataclass(frozen=True)
class Settings:
    """One line per setting, with the paper's letter. Every number is ours (see `unstated`)."""

    feature_dimension: int = 30  # d_X
    label_dimension: int = 30  # d_Y
    relevant_patterns: int = 5  # M1
    irrelevant_patterns: int = 25  # M2; M = M1 + M2 >= M1² as Section 3.2 asks
    pattern_strength: float = 3.0  # β = ‖q‖
    relevant_low: float = 0.8  # λ_*, the smallest λ
    relevant_high: float = 1.2
    irrelevant_size: float = 1.0  # |κ| <= 1
    noise_norm: float = 0.1  # τ
    matching_fraction: float = 0.8  # α
    test_matching_fraction: float = 0.8  # α'
    train_length: int = 20  # l_tr
    test_length: int = 20  # l_ts >= 2/α'
    key_width: int = 60  # m_a
    value_width: int = 60  # m_b
    neurons: int = 300  # m
    initial_scale: float = 0.08  # δ < 0.1
    step_size: float = 1.0  # η
    batch: int = 128  # B
    steps: int = 400  # T
    basis_seed: int = 0  # 0: axis-aligned patterns; otherwise the seed of a random rotation of them
    record_every: int = 20
    prompts: int = 10_000
    rate_steps: int = 500  # T where exponents are measured
    size_steps: int = 400  # T at M = 30 where M grows, and T grows with √M as in (6)
    rate_programs: int = 4  # at most so many values of a setting whose every value is a program of its own
    early_neurons: int = 1280  # m in the gradient lemmas: above 4 M1² log N with N = 64 B
    few_seeds: int = 3  # of trainings that cost much more than the others
    most_seeds: int = 1000  # trainings take the seeds below it

    def __post_init__(self) -> None:
        require_settings(self, ("matching_fraction", "test_matching_fraction"), ("noise_norm", "irrelevant_size"))
        require(
            self.relevant_low <= self.relevant_high,
            f"relevant_low is {self.relevant_low}, above relevant_high {self.relevant_high}.",
        )
        require(
            self.relevant_patterns >= 5,
            f"relevant_patterns is {self.relevant_patterns}; the out-of-domain mixtures use five training patterns.",
        )
        require(
            self.key_width >= self.feature_dimension
            and self.value_width >= self.feature_dimension + self.label_dimension,
            f"key_width {self.key_width} must be at least feature_dimension {self.feature_dimension}, and value_width "
            f"{self.value_width} at least feature_dimension + label_dimension "
            f"{self.feature_dimension + self.label_dimension}.",
        )
        patterns(self)

    @property
    def record_at(self) -> list[int]:
        """The steps at which the training is observed."""
        return sorted({*range(0, self.steps, self.record_every), self.steps})


unstated = (
    Unstated(
        "relevant_patterns", (5,), "M1", "the mixtures use five, and M >= M1² in d_X = 30 dimensions allows no more"
    ),
    Unstated("irrelevant_patterns", (20, 25), "M2", "M1 + M2 >= M1², and both fit into d_X"),
    Unstated("pattern_strength", Between(1.0, 5.0, log=True), "β = ‖q‖", "3 in nonlinear-icl, of the same authors"),
    Unstated("matching_fraction", Between(0.6, 1.0), "α", "0.8 and 0.6 in nonlinear-icl"),
    Unstated("test_matching_fraction", Between(0.6, 1.0), "α'", "0.4 to 1 in nonlinear-icl"),
    Unstated("train_length", (10, 20, 40), "l_tr", "20 in nonlinear-icl"),
    Unstated("test_length", (10, 20, 40), "l_ts", "up to 40 in nonlinear-icl"),
    Unstated("neurons", (100, 300, 500), "m", "Lemma 7 asks for it to be large; common practice"),
    Unstated("batch", (64, 128, 256), "B", "common practice"),
    Unstated("initial_scale", Between(0.02, 0.09, log=True), "δ", "the training algorithm says δ in (0, 0.1)"),
    Unstated("step_size", Between(0.5, 2.0, log=True), "η", "the theorems ask for η <= 1"),
    Unstated("steps", (400, 1000), "T", "until the training loss is small"),
    Unstated("relevant_low", Between(0.6, 1.0), "λ_*", "λ ~ U(λ_*, 1.2), bounded away from 0"),
    Unstated("irrelevant_size", Between(0.5, 1.0), "|κ|", "Section 3.2 says |κ| <= 1; κ ~ U(-|κ|, |κ|)"),
    Unstated("noise_norm", Between(0.0, 0.1), "τ", "small; noise is uniform on the sphere of this radius"),
    "m_a = m_b = 60; W_O ~ N(0, 1/m), so ξ = m^(-1/2)",
)


@functools.lru_cache(maxsize=16)
def patterns(s: Settings) -> Patterns:
    """The training patterns μ_j, ν_k."""
    return orthogonal_patterns(
        s.feature_dimension,
        s.relevant_patterns,
        s.irrelevant_patterns,
        s.pattern_strength,
        basis_seed=s.basis_seed or None,
    )


SIGNS = {  # of the coefficients k_i of the second pattern of each mixture, and of all
    "out": (1, 1),  # k_i >= 0, as Theorem 2 asks
    "negative": (-1, 1),  # differences
    "opposite": (1, -1),  # all k_i <= 0
}


def shifted_patterns(s: Settings, domain: str = "out") -> Patterns:
    """Theorem 2's test patterns: μ' non-negative combinations of the μ's (orthogonal ones need disjoint supports), ν'
    new.

    μ'_1 = (μ_1 + μ_2)/√2, μ'_2 = 0.8 μ_3 + 0.6 μ_4, μ'_3 = μ_5; the ν' are a random rotation of the ν's among
    themselves, so none of them was seen and none lies in the span of the μ's. Other domains have other signs (`SIGNS`).
    """
    second, whole = SIGNS[domain]
    trained = patterns(s)
    rows = np.zeros((3, s.relevant_patterns))
    rows[0, :2] = whole * np.sqrt(0.5) * np.array([1, second])
    rows[1, 2:4] = whole * 0.8, whole * second * 0.6
    rows[2, 4] = whole
    rotation = random_rotation(s.irrelevant_patterns, seed=1)
    return dataclasses.replace(
        trained, relevant=mix(rows, trained.relevant), irrelevant=mix(rotation, trained.irrelevant)
    )


@functools.lru_cache(maxsize=64)
def world(
    s: Settings, domain: str, length: int, *, longest: int | None = None, fraction: float | None = None, label: int = 0
) -> Classification:
    """ "in": the M1 training tasks on the training patterns; "out" (or another of `SIGNS`): all tasks on shifted ones.

    `longest` is the length for which there is room, `fraction` another α or α', `label` the direction of q.
    """
    embedding = np.zeros(s.label_dimension)
    embedding[label] = s.pattern_strength
    inside = domain == "in"
    usual = s.matching_fraction if inside else s.test_matching_fraction
    return Classification(
        patterns(s) if inside else shifted_patterns(s, domain),
        cyclic_tasks(s.relevant_patterns) if inside else all_tasks(3),
        label_embedding=embedding,
        matching_fraction=usual if fraction is None else fraction,
        context_length=length,
        maximum_length=longest,
        relevant_range=(s.relevant_low, s.relevant_high),
        irrelevant_range=(-s.irrelevant_size, s.irrelevant_size),
        noise_norm=s.noise_norm,
        noisy=True,
    )


def recipe(s: Settings) -> Recipe:
    """The one training of this paper."""
    return Recipe(
        world=world(s, "in", s.train_length),
        model=SoftmaxTransformerSettings(
            initial_scale=s.initial_scale, key_width=s.key_width, value_width=s.value_width, neurons=s.neurons
        ),
        training=Training(step_size=s.step_size, batch=s.batch),
        watched=(world(s, "out", s.train_length),),
    )


DEVIATION = 0.25  # ε_m, free in (0, 1/2)


def deviation(s: Settings) -> float:
    """ε_m: 1/4, or the smallest that the width allows, M1 √(log N / m), where that is larger and still below 1/2."""
    smallest = s.relevant_patterns * math.sqrt(math.log(s.batch * s.steps) / s.neurons)
    return smallest if DEVIATION < smallest < 0.5 else DEVIATION


def symbols(s: Settings) -> theory.Symbols:
    """What the theorems speak of, at these settings. ε_m, C and ε are free: see `deviation`, 2 and 1/M1."""
    return theory.Symbols(
        **shared(theory.Symbols, s),
        training_tasks=s.relevant_patterns,
        test_patterns=len(shifted_patterns(s).relevant),
        neuron_deviation=deviation(s),
        attention_constant=2.0,
        error=1 / s.relevant_patterns,
    )


settings = {
    "smoke": Settings(
        steps=40, rate_steps=20, size_steps=10, rate_programs=2, record_every=20, prompts=500, early_neurons=40
    ),
    "quick": Settings(),
    "paper": Settings(steps=1000, prompts=50_000, few_seeds=32),
}

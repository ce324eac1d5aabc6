"""Settings of chain-of-thought (Appendix E of the paper), and the worlds they define.

What the paper states: d_X = 30, M = 20, M' = 10, α = 0.4, K = 3, the permutation tasks, noise of norm 0.2, τ = 0.5, ρ = 0.8
and α' = 0.8 unless varied, τ_o = 0.4 and ρ_o = 0.1 for Fig. 4. What it leaves open is in `unstated`.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from iclab.authoring.gpt2 import GPT2Training
from iclab.errors import require, require_fraction, require_positive
from iclab.experiments import Recipe
from iclab.models.chain_transformer import ChainTransformerSettings
from iclab.papers.chain_of_thought import theory
from iclab.statements import Unstated
from iclab.training import Training
from iclab.worlds.reasoning import Mode, Reasoning
from iclab.worlds.transitions import for_outputs, for_steps, measure


COMPARISON = (0.4, 0.1)  # (τ_o, ρ_o) of Fig. 4


@dataclasses.dataclass(frozen=True)
class Settings:
    """One line per setting, with the paper's letter; `gpt2` holds those of `iclab.authoring.gpt2`."""

    feature_dimension: int = 30  # d_X
    patterns: int = 20  # M
    test_patterns: int = 10  # M'
    reasoning_steps: int = 3  # K
    matching_fraction: float = 0.4  # α
    test_matching_fraction: float = 0.8  # α'
    trajectory_probability: float = 0.5  # τ
    primacy: float = 0.8  # ρ
    noise_norm: float = 0.2  # ‖δ‖
    train_length: int = 20  # l_tr
    longest_test: int = 40  # the longest l_ts in Figs. 2 and 3
    longest_comparison: int = 160  # the longest l_ts in Fig. 4
    initial_scale: float = 0.01  # ξ
    separate_weights: int = 0  # 1: W_K and W_Q are trained separately
    step_size: float = 1.0  # η
    batch: int = 60  # B = every pattern × every step once
    steps: int = 2000  # T
    record_every: int = 50
    prompts: int = 10_000
    trend_prompts: int = 500
    comparison_prompts: int = 250
    rate_steps: int = 1500  # T where exponents are measured
    rate_programs: int = 9  # at most so many values of a setting whose every value is a program of its own
    # Its batch, too, has every pattern × every step once.
    gpt2: GPT2Training = GPT2Training(step_size=1e-3, batch=60, steps=400, prompts=1_000)

    def __post_init__(self) -> None:
        for name in ("matching_fraction", "test_matching_fraction"):
            require_fraction(name, getattr(self, name))
        sizes = ("patterns", "test_patterns", "reasoning_steps", "train_length", "longest_test", "longest_comparison",
                 "initial_scale", "step_size", "batch", "steps", "record_every", "prompts", "trend_prompts",
                 "comparison_prompts", "rate_steps", "rate_programs")  # fmt: skip
        require_positive(**{name: getattr(self, name) for name in sizes})
        require(
            self.test_patterns <= self.patterns,
            f"test_patterns is {self.test_patterns}, above patterns {self.patterns}: M' mixtures of M patterns need M' <= M.",
        )
        require(
            self.patterns <= self.feature_dimension,
            f"{self.patterns} orthonormal patterns do not fit into {self.feature_dimension} dimensions.",
        )
        require(self.noise_norm >= 0, f"noise_norm is {self.noise_norm}; it must not be negative.")
        require(
            self.longest_test >= 10, f"longest_test is {self.longest_test}; Figs. 2 and 3 need at least 10 examples."
        )
        require(
            self.longest_comparison >= 20, f"longest_comparison is {self.longest_comparison}; Fig. 4 needs at least 20."
        )
        for name, fraction, length in (
            ("matching_fraction", self.matching_fraction, self.train_length),
            ("test_matching_fraction", self.test_matching_fraction, 5),
        ):
            require(
                round(fraction * length) >= 1,
                f"{name} {fraction} of {length} examples leaves none that starts from the query's pattern.",
            )
        for_steps(self.trajectory_probability, self.primacy, self.reasoning_steps, self.test_patterns)

    @property
    def record_at(self) -> list[int]:
        """The steps at which the training is observed: densely in the first tenth, where the stages separate."""
        dense = range(0, self.steps // 10, max(1, self.record_every // 5))
        return sorted({*dense, *range(0, self.steps, self.record_every), self.steps})


unstated = (
    Unstated("train_length", (10, 20, 40), "l_tr; (17) asks for at least 1/α"),
    Unstated("longest_test", (40, 60, 80), "the longest l_ts of Figs. 2 and 3"),
    Unstated("longest_comparison", (80, 160, 320), "the longest l_ts of Fig. 4"),
    Unstated("initial_scale", (0.001, 0.01, 0.05), "ξ, 'tiny'"),
    Unstated("separate_weights", (0, 1), "the theory trains W = W_K^T W_Q, (2) has W_K and W_Q"),
    Unstated("step_size", (0.5, 0.9, 1.0), "η; Theorem 1 asks for η < 1"),
    Unstated("batch", (60, 120, 240), "B; every query pattern and step by turns"),
    Unstated("steps", (1000, 2000, 4000), "T"),
    "position codes as K coordinates of their own; inside the 2 d_X coordinates they would leak into the value",
    "exactly round(α l) examples start from the query's pattern, the others from any other one",
    "A_k: circulant, one error kernel (right, one too far, the rest uniform)",
    "test patterns: a random orthonormal set in the span of the training ones, another one for every seed",
    "grids of α', τ, ρ, τ_o, ρ_o within what is feasible for K = 3, M' = 10; (τ_o, ρ_o) = (0.5, 0.5) in Fig. 3 where not varied",
    "hidden constants in Ω, Θ and O: 1, where the rule does not say otherwise",
    *Settings.gpt2.unstated(),
)


@functools.lru_cache(maxsize=256)
def mixed_patterns(settings: Settings, seed: int, kind: str) -> tuple[tuple[float, ...], ...]:
    """M' orthonormal mixtures of the training patterns: "generic" (random), or with their "equal mixture" as the first."""
    random = np.random.default_rng([4, seed])
    columns = random.normal(size=(settings.patterns, settings.test_patterns))
    if kind == "equal mixture":
        columns[:, 0] = 1.0
    q, r = np.linalg.qr(columns)
    mixed = (q * np.sign(np.diag(r))).T @ np.eye(settings.patterns, settings.feature_dimension)
    return tuple(tuple(row) for row in mixed)


@functools.lru_cache(maxsize=64)
def step_matrices(settings: Settings, tau: float, rho: float) -> np.ndarray:
    """A_k with these τ and ρ."""
    return for_steps(tau, rho, settings.reasoning_steps, settings.test_patterns)


def usual_matrices(settings: Settings) -> np.ndarray:
    """A_k with the τ and ρ of the settings."""
    return step_matrices(settings, settings.trajectory_probability, settings.primacy)


@functools.lru_cache(maxsize=64)
def output_matrices(settings: Settings, tau: float, rho: float, condition_1: bool = True) -> np.ndarray:
    """A_k whose product has these τ_o and ρ_o."""
    return for_outputs(tau, rho, settings.reasoning_steps, settings.test_patterns, condition_1=condition_1)


def inference_world(
    settings: Settings, seed: int, matrices: np.ndarray, fraction: float, length: int, maximum: int, mode: Mode,
    kind: str = "generic",
) -> Reasoning:  # fmt: skip
    """Noisy, erroneous examples on the test patterns of this seed."""
    s = settings
    return Reasoning(
        np.array(mixed_patterns(s, seed, kind)), steps=s.reasoning_steps, matching_fraction=fraction, context_length=length,
        maximum_length=maximum, transitions=matrices, noise_norm=s.noise_norm, mode=mode,
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def recipe(settings: Settings, seed: int) -> Recipe:
    """The one training, watched on the next steps of noisy test prompts."""
    s = settings
    matrices = usual_matrices(s)
    watched = inference_world(
        s, seed, matrices, s.test_matching_fraction, s.train_length, s.train_length, Mode.next_step
    )
    return Recipe(
        world=Reasoning(
            np.eye(s.patterns, s.feature_dimension), steps=s.reasoning_steps, matching_fraction=s.matching_fraction,
            context_length=s.train_length,
        ),
        model=ChainTransformerSettings(s.initial_scale, separate=bool(s.separate_weights)),
        training=Training(s.step_size, s.batch),
        watched=(watched,),
        arrays={"test_patterns": np.array(mixed_patterns(s, seed, "generic"), np.float32)},
    )  # fmt: skip


SHARED = ("feature_dimension", "patterns", "test_patterns", "reasoning_steps", "matching_fraction", "test_matching_fraction",
          "trajectory_probability", "primacy", "noise_norm", "train_length", "step_size", "batch", "steps")  # fmt: skip


def symbols(settings: Settings) -> theory.Symbols:
    """What the theorems speak of, at these settings.

    ε is the smallest that the batch allows; τ_o, ρ_o and Condition 1 are those of the product of the matrices in force; l_ts is
    the longest of Figs. 2 and 3.
    """
    s = settings
    found = measure(usual_matrices(s))
    return theory.Symbols(
        **{name: getattr(s, name) for name in SHARED},
        output_probability=found.output_probability,
        output_primacy=found.output_primacy,
        condition_1=float(found.condition_1),
        test_length=s.longest_test,
        error=theory.smallest_error(s.batch, s.patterns),
    )


settings = {
    "smoke": Settings(
        steps=40, rate_steps=20, rate_programs=2, record_every=20, prompts=500, trend_prompts=250, comparison_prompts=250,
        longest_comparison=40, gpt2=Settings.gpt2.smoke(),
    ),
    "quick": Settings(),
    "paper": Settings(
        prompts=50_000, trend_prompts=4_000, comparison_prompts=2_000, longest_comparison=1280,
        gpt2=dataclasses.replace(Settings.gpt2, steps=2000, seeds=32, prompts=10_000),
    ),
}  # fmt: skip

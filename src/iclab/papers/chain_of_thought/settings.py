"""Settings of chain-of-thought (Appendix E of the paper), and the worlds they define.

What the paper states: d_X = 30, M = 20, M' = 10, α = 0.4, K = 3, the permutation tasks, noise of norm 0.2, τ = 0.5,
ρ = 0.8 and α' = 0.8 unless varied, τ_o = 0.4 and ρ_o = 0.1 for Fig. 4. What it leaves open is in `unstated`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from iclab.authoring.gpt2 import GPT2Training
from iclab.errors import require, require_settings
from iclab.experiments import Recipe
from iclab.models.chain_transformer import ChainTransformerSettings
from iclab.optimisation import Training
from iclab.papers.chain_of_thought import theory
from iclab.theorems import shared
from iclab.unstated import Between, Unstated
from iclab.worlds.reasoning import Mode, Reasoning
from iclab.worlds.transitions import for_outputs, for_steps, measure

FRACTIONS = ("matching_fraction", "test_matching_fraction", "trajectory_probability", "primacy")
KINDS = ("generic", "equal mixture")  # of test patterns


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
    longest_test: int = 40  # the longest l_ts in Fig. 2
    longest_direct: int = 160  # the longest l_ts in Fig. 3
    sufficient_test: int = 160  # l_ts that is enough for ICL too, (25)
    longest_comparison: int = 160  # the longest l_ts in Fig. 4
    initial_scale: float = 0.01  # ξ
    separate_weights: bool = False  # W_K and W_Q are trained separately
    step_size: float = 0.9  # η
    batch: int = 60  # B = every pattern × every step once
    steps: int = 2000  # T
    record_every: int = 50
    prompts: int = 2_000
    long_prompts: int = 1_000
    trend_prompts: int = 500
    comparison_prompts: int = 250
    timed_patterns: int = 8  # M where exponents are measured and M is not varied
    rate_steps: int = 1500  # T where exponents are measured
    rate_programs: int = 9  # at most so many values of a setting whose every value is a program of its own
    # Its batch, too, has every pattern × every step once.
    gpt2: GPT2Training = GPT2Training(step_size=1e-3, batch=60, steps=400, prompts=1_000)

    def __post_init__(self) -> None:
        require_settings(self, FRACTIONS, zero=("noise_norm",))
        m, test, features = self.patterns, self.test_patterns, self.feature_dimension
        require(test <= m, f"test_patterns is {test}, above patterns {m}: M' mixtures of M patterns need M' <= M.")
        require(m <= features, f"{m} orthonormal patterns do not fit into {features} dimensions.")
        long, once, longer = self.longest_test, self.longest_direct, self.longest_comparison
        require(long >= 10, f"longest_test is {long}; Fig. 2 needs at least 10 examples.")
        require(once >= 20, f"longest_direct is {once}; Fig. 3 needs at least 20 examples.")
        require(longer >= 20, f"longest_comparison is {longer}; Fig. 4 needs at least 20.")
        for name, length in (("matching_fraction", self.train_length), ("test_matching_fraction", 5)):
            fraction = getattr(self, name)
            words = f"{name} {fraction} of {length} examples leaves none that starts from the query's pattern."
            require(round(fraction * length) >= 1, words)
        for_steps(self.trajectory_probability, self.primacy, self.reasoning_steps, self.test_patterns)

    @property
    def record_at(self) -> list[int]:
        """The steps at which the training is observed: densely in the first tenth, where the stages separate."""
        dense = range(0, self.steps // 10, max(1, self.record_every // 5))
        return sorted({*dense, *range(0, self.steps, self.record_every), self.steps})


unstated = (
    Unstated("train_length", (10, 20, 40), "l_tr", "(17) asks for at least 1/α"),
    Unstated("longest_test", (40, 60, 80), "l_ts", "the longest of Fig. 2"),
    Unstated("longest_direct", (80, 160, 320), "l_ts", "the longest of Fig. 3"),
    Unstated("longest_comparison", (80, 160, 320), "l_ts", "the longest of Fig. 4"),
    Unstated("initial_scale", Between(0.001, 0.05, log=True), "ξ", "the paper says 'tiny'"),
    Unstated("separate_weights", (False, True), "", "the theory trains W = W_K^T W_Q, (2) has W_K and W_Q"),
    Unstated("step_size", Between(0.25, 0.9, log=True), "η", "Theorem 1 asks for η < 1"),
    Unstated("batch", (60, 120, 240), "B", "every query pattern and step by turns"),
    Unstated("steps", (1000, 2000, 4000), "T", "until the training loss is small"),
    "position codes as K coordinates of their own; inside the 2 d_X coordinates they would leak into the value",
    "exactly round(α l) examples start from the query's pattern, the others from any other one",
    "A_k: circulant, one error kernel (right, one too far, the rest uniform)",
    "test patterns: a random orthonormal set in the span of the training ones, another one for every seed",
    "grids of α', τ, ρ, τ_o, ρ_o: what K = 3, M' = 10 and such A_k allow; τ_o = ρ_o = 0.5 in Fig. 3 where not varied",
    "hidden constants in Ω, Θ and O: 1, where the rule does not say otherwise",
    *Settings.gpt2.unstated(),
)


@functools.lru_cache(maxsize=256)
def mixed_patterns(s: Settings, seed: int, kind: str) -> tuple[tuple[float, ...], ...]:
    """M' orthonormal mixtures of the training patterns: "generic" (random), or the first is their "equal mixture"."""
    columns = np.random.default_rng([4, seed]).normal(size=(s.patterns, s.test_patterns))
    if kind == "equal mixture":
        columns[:, 0] = 1.0
    q, r = np.linalg.qr(columns)
    mixed = (q * np.sign(np.diag(r))).T @ np.eye(s.patterns, s.feature_dimension)
    return tuple(tuple(row) for row in mixed)


@functools.lru_cache(maxsize=64)
def step_matrices(s: Settings, tau: float | None = None, rho: float | None = None) -> np.ndarray:
    """A_k with these τ and ρ; those of the settings if none are given."""
    return for_steps(tau or s.trajectory_probability, rho or s.primacy, s.reasoning_steps, s.test_patterns)


def output_matrices(s: Settings, tau: float, rho: float, condition_1: bool = True) -> np.ndarray:
    """A_k whose product has these τ_o and ρ_o."""
    return for_outputs(tau, rho, s.reasoning_steps, s.test_patterns, condition_1=condition_1)


def training_world(s: Settings, most: int = 0) -> Reasoning:
    """Right examples on the training patterns; `most` is the longest prompt of the trainings that share a program."""
    features, length = np.eye(s.patterns, s.feature_dimension), s.train_length
    asked: dict[str, Any] = {"context_length": length, "maximum_length": most or length}
    return Reasoning(features, steps=s.reasoning_steps, matching_fraction=s.matching_fraction, **asked)


def inference_world(
    s: Settings,
    seed: int,
    mode: Mode,
    matrices: np.ndarray,
    alpha: float,
    length: int,
    most: int,
    kind: str = "generic",
    noise: float | None = None,
) -> Reasoning:
    """Noisy, erroneous examples on the test patterns of this seed; `most` is the longest prompt of its figure, `noise`
    another norm than that of the settings.
    """
    patterns = np.array(mixed_patterns(s, seed, kind))
    asked: dict[str, Any] = {"context_length": length, "maximum_length": most, "matching_fraction": alpha, "mode": mode}
    asked |= {"noise_norm": s.noise_norm if noise is None else noise}
    return Reasoning(patterns, steps=s.reasoning_steps, transitions=matrices, **asked)


def timed(s: Settings, *, patterns: int = 0, steps: int = 0, fraction: float = 0.0, step_size: float = 0.0) -> Settings:
    """Settings of a short training whose M, K, α or η may be another one.

    l_tr = 2/α is near the least that (17) allows, B is the smallest multiple of M K that meets B >= M log M. Single
    steps of test examples are as often right as with the paper's K.
    """
    m, k, alpha = patterns or s.timed_patterns, steps or s.reasoning_steps, fraction or s.matching_fraction
    own: dict[str, Any] = {
        "patterns": m,
        "reasoning_steps": k,
        "matching_fraction": alpha,
        "test_patterns": min(s.test_patterns, m),
    }
    own |= {"trajectory_probability": s.trajectory_probability ** (k / s.reasoning_steps)}
    own |= {"train_length": round(2 / alpha), "batch": m * k * math.ceil(math.log(m) / k)}
    return dataclasses.replace(s, **own, step_size=step_size or s.step_size)


@functools.lru_cache(maxsize=64)
def recipe(s: Settings, seed: int) -> Recipe:
    """The one training, watched on the next steps of noisy test prompts."""
    length, fraction = s.train_length, s.test_matching_fraction
    return Recipe(
        world=training_world(s),
        model=ChainTransformerSettings(s.initial_scale, separate=s.separate_weights),
        training=Training(s.step_size, s.batch),
        watched=(inference_world(s, seed, Mode.next_step, step_matrices(s), fraction, length, length),),
        arrays={"test_patterns": np.array(mixed_patterns(s, seed, "generic"), np.float32)},
    )


def symbols(s: Settings) -> theory.Symbols:
    """What the theorems speak of: ε is the smallest that the batch allows, l_ts the one that is enough for CoT and ICL;
    τ_o, ρ_o and Condition 1 are those of the product of the matrices in force.
    """
    found = measure(step_matrices(s))
    own = shared(theory.Symbols, s)
    own |= {name: float(getattr(found, name)) for name in ("output_probability", "output_primacy", "condition_1")}
    return theory.Symbols(**own, test_length=s.sufficient_test, error=theory.smallest_error(s.batch, s.patterns))


few: dict[str, Any] = {"steps": 40, "rate_steps": 20, "rate_programs": 2, "record_every": 20, "longest_comparison": 40}
few |= {"longest_direct": 40, "sufficient_test": 60, "long_prompts": 500}
deep = dataclasses.replace(Settings.gpt2, steps=2000, seeds=32, prompts=10_000)
settings = {
    "smoke": Settings(prompts=500, trend_prompts=250, gpt2=Settings.gpt2.smoke(), **few),
    "quick": Settings(),
    "paper": Settings(
        prompts=50_000,
        long_prompts=10_000,
        trend_prompts=4_000,
        comparison_prompts=2_000,
        longest_comparison=1280,
        gpt2=deep,
    ),
}

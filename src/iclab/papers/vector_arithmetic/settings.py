"""Settings of vector-arithmetic (Section 5 of the paper), and the worlds they define.

What the paper states: K = 2, K' = 100, d = 3000, n = 200, M = 30, L = 30, σ_0 = 1e-3, σ_1 = 5e-3, σ_p = 1e-2, η = 5,
q_V = 1e-5, 2000 (QA) and 5000 (ICL, QA-ICL) epochs. With the printed η and q_V the model does not train in that time,
which is a reading of Figure 3.

At smaller d the initialisation keeps σ_0√d and σ_1√d: ‖W_V u‖ = σ_1√d is what aᵀW_V a has to outgrow (T_1 goes with
σ_1² d), and σ_0² d is what attention grows from, so the phases stay where they are. The noise is σ_p per coordinate, as
printed: what disturbs an answer is its component along an entry of the dictionary, which does not depend on d. Keeping
σ_p√d instead gives other answers than d = 3000 (benchmarks/vector_arithmetic.md).
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from iclab.errors import require, require_settings
from iclab.experiments import Recipe
from iclab.models.residual_transformer import ResidualTransformerSettings
from iclab.optimisation import Training
from iclab.papers.vector_arithmetic import theory
from iclab.theorems import shared
from iclab.unstated import Between, Unstated
from iclab.worlds.concepts import Concepts, Kind, orthonormal_concepts

PRINTED_DIMENSION = 3000
PRINTED_STEP, PRINTED_SCALE = 5.0, 1e-5  # η and q_V as printed


@dataclasses.dataclass(frozen=True)
class Settings:
    """One line per setting, with the paper's letter. σ_0 and σ_1 are those printed for d = 3000."""

    dimension: int = 150  # d
    concepts: int = 2  # K
    common_tokens: int = 100  # K'
    samples: int = 200  # n
    common_length: int = 30  # M
    pairs: int = 15  # J of ICL prompts
    sentence_pairs: int = 3  # J of QA-ICL prompts, (J+1)(M+2)-1 tokens long
    attention_scale: float = 1e-3  # σ_0
    value_scale: float = 5e-3  # σ_1
    noise_scale: float = 1e-2  # σ_p, at any d
    balanced: bool = True  # as many training samples of every concept and sign; else they are drawn
    step_size: float = 0.05  # η
    value_step_scale: float = 0.4  # q_V
    steps: int = 2000  # epochs on QA
    icl_steps: int = 2000  # epochs on ICL and QA-ICL
    seeds: int = 8  # at most: a training at d = 3000 costs minutes
    printed_seeds: int = 4  # at most, with the printed step sizes
    size_seeds: int = 4  # at most, at several K
    size_steps: int = 300  # epochs on QA at several K
    size_programs: int = 3  # at most so many K, each a program of its own
    record_every: int = 100
    prompts: int = 2_000  # fresh prompts per member where an error below 0.01 is claimed
    trend_prompts: int = 500  # where less is claimed

    def __post_init__(self) -> None:
        require_settings(self, zero=("noise_scale",))
        require(self.concepts >= 2, f"concepts is {self.concepts}; at least 2 are needed.")
        words = f"common_length is {self.common_length}, above common_tokens {self.common_tokens}: K' >= M is needed."
        require(self.common_length <= self.common_tokens, words)
        orthonormal_concepts(self.dimension, self.concepts, self.common_tokens)

    def rescaled(self, value: float) -> float:
        """A scale of the initialisation at this d, from the one printed for d = 3000: σ√d is kept."""
        return float(value * np.sqrt(PRINTED_DIMENSION / self.dimension))

    def record_at(self, kind: Kind) -> list[int]:
        """The epochs at which a training is observed: densely at first, where the phases of growth are."""
        last = self.steps if kind is Kind.qa else self.icl_steps
        early = [epoch for epoch in (5, 10, 15, 20, 30, 40, 50, 60, 80) if epoch < last]
        return sorted({*early, *range(0, last, self.record_every), last})


unstated = (
    Unstated("step_size", Between(0.02, 0.1, log=True), "η", "with the printed 5 and q_V = 1e-5 it does not train"),
    Unstated("value_step_scale", Between(0.2, 0.8, log=True), "q_V", "printed is 1e-5, below its own Condition 3.1"),
    Unstated("pairs", (14, 15), "J", "of ICL prompts: 'L = 30' is no 2J + 1"),
    Unstated("sentence_pairs", (1, 3, 5), "J", "of QA-ICL prompts: 'L = 30' cannot hold for sentences of M + 2 tokens"),
    Unstated("noise_scale", (0.01, 0.0447), "σ_p", "0.01 is printed for d = 3000; at d = 150, 0.0447 keeps σ_p √d"),
    Unstated("balanced", (True, False), "", "Definition C.1 draws concept and sign; Lemma D.10 needs N/(2K) of each"),
    Unstated("icl_steps", (2000, 5000), "T", "5000 is printed for ICL, nothing for QA-ICL; below d = 3000 maybe less"),
    "below the printed d = 3000 the scales σ_0 and σ_1 keep σ√d",
    "the L2 term of the loss has no coefficient anywhere: 0",
    "'Θ(1)' for a cosine: above 0.1, 'o(1)': below 0.1; other hidden constants are 1",
)


@functools.lru_cache(maxsize=256)
def world(
    s: Settings,
    kind: Kind,
    shift: str = "none",
    pairs: int | None = None,
    longest: int | None = None,
    cotasks: int = 1,
    polysemy: float | None = None,
    balanced: bool = True,
) -> Concepts:
    """Prompts of a kind, on the training dictionary or one of Proposition 3.4's shifted ones.

    "conic": one high-level concept, the normalised sum of all; "low": new b's; "common": new ν's; "all": all three.
    """
    a, b, common = orthonormal_concepts(s.dimension, s.concepts, s.common_tokens)
    if shift in ("conic", "all"):
        a = a.sum(axis=0, keepdims=True) / np.sqrt(s.concepts)
        b = b[:1]
    used, new = 2 * s.concepts + s.common_tokens, s.concepts + s.common_length
    fits = shift in ("none", "conic") or used + new <= s.dimension
    require(fits, f"{new} unseen directions do not fit: {used} of {s.dimension} dimensions are taken.")
    free = np.eye(new, s.dimension, used)
    if shift in ("low", "all"):
        b = free[: len(b)]
    if shift in ("common", "all"):
        common = free[s.concepts :]
    own = s.sentence_pairs if kind is Kind.qa_icl else s.pairs
    return Concepts(
        a, b, common, kind=kind, pairs=own if pairs is None else pairs, maximum_pairs=longest,
        common_length=s.common_length, noise_scale=s.noise_scale, cotasks=cotasks, polysemy=polysemy, balanced=balanced,
    )  # fmt: skip


def recipe(s: Settings, kind: Kind, printed: bool = False) -> Recipe:
    """Full-batch gradient descent on one distribution, watched on all three; `printed` takes the paper's step sizes."""
    step = PRINTED_STEP if printed else s.step_size
    scale = PRINTED_SCALE if printed else s.value_step_scale
    return Recipe(
        world=world(s, kind, balanced=s.balanced),
        model=ResidualTransformerSettings(s.rescaled(s.attention_scale), s.rescaled(s.value_scale)),
        training=Training(step, s.samples, fresh=False, scales={"value_weights": scale}),
        watched=tuple(world(s, other) for other in Kind),
    )


def at_size(s: Settings, concepts: int) -> Settings:
    """Settings inside Condition 3.1 where everything grows together: K, and with it d, K' and N. T_1 stays.

    With K = 2 its third item (K >= log 1/δ) asks for δ >= 0.14; the others hold with δ = 0.1.
    """
    return dataclasses.replace(
        s, concepts=concepts, dimension=36 * concepts, common_tokens=5 * concepts, samples=max(100, 6 * concepts**2),
        common_length=2, sentence_pairs=s.pairs, step_size=0.18 * concepts, value_step_scale=0.04, steps=s.size_steps,
    )  # fmt: skip


def symbols(s: Settings) -> theory.Symbols:
    """What the theorems speak of: ε = 0.01 and δ = 0.1 are free, L is that of ICL prompts, t the last epoch on QA."""
    own = shared(theory.Symbols, s)
    scales = {name: s.rescaled(getattr(s, name)) for name in ("attention_scale", "value_scale")}
    free = {"prompt_length": 2 * s.pairs + 1, "epoch": s.steps, "cotasks": 1, "error": 0.01, "failure": 0.1}
    return theory.Symbols(**own | scales | free)


settings = {
    "smoke": Settings(
        common_length=5,
        sentence_pairs=1,
        steps=20,
        icl_steps=20,
        record_every=10,
        size_steps=20,
        size_programs=1,
        prompts=250,
        trend_prompts=250,
    ),
    "quick": Settings(),
    "paper": Settings(dimension=3000, icl_steps=5000, seeds=6, printed_seeds=2, prompts=2_000, trend_prompts=500),
}

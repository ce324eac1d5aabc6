"""GPT-2 on a paper's prompts: the settings that every paper's own settings carry, so that all ask the same deep model.

All that a paper says of it is "the 3-layer 2-head real-world model GPT-2" (Section 5 of nonlinear-icl). Three layers, two heads
and width 64 are the smallest model of Garg et al. (2022), on whose set-up the works it follows build. The optimiser is ours:
AdamW, warm-up over a tenth of the steps, cosine decay to 0. It was chosen by the training loss in domain alone.
"""

from __future__ import annotations

import dataclasses

from iclab.errors import require, require_positive
from iclab.models.gpt2 import GPT2Settings
from iclab.training import Cosine, Training

TOPIC = "gpt2"
FEWER_SEEDS = "Seeds went from six to four after the first runs, to save time; the rule is unchanged."


@dataclasses.dataclass(frozen=True)
class DeepSettings:
    """One line per setting. `gpt2_seeds` caps the seeds of these trainings, which cost far more than a one-layer model's."""

    gpt2_depth: int = 3
    gpt2_heads: int = 2
    gpt2_width: int = 64
    gpt2_step_size: float = 5e-4
    gpt2_weight_decay: float = 0.01
    gpt2_warmup: float = 0.1  # share of the steps
    gpt2_batch: int = 64
    gpt2_steps: int = 700
    gpt2_seeds: int = 4
    gpt2_prompts: int = 2_000  # fresh prompts per member where an error below 0.01 is claimed
    gpt2_trend_prompts: int = 500  # fresh prompts per member where a trend is claimed
    gpt2_half: int = 0  # 1: gradients in bfloat16, for a GPU

    def __post_init__(self) -> None:
        sizes = ("gpt2_step_size", "gpt2_batch", "gpt2_steps", "gpt2_seeds", "gpt2_prompts", "gpt2_trend_prompts")
        require_positive(**{name: getattr(self, name) for name in sizes})
        require(0 <= self.gpt2_warmup < 1, f"gpt2_warmup is {self.gpt2_warmup}; it is a share of the steps, in [0, 1).")
        require(self.gpt2_weight_decay >= 0, f"gpt2_weight_decay is {self.gpt2_weight_decay}; it must not be negative.")
        self.gpt2_model(1)  # refuses sizes that do not fit, with a sentence

    def gpt2_model(self, positions: int) -> GPT2Settings:
        """GPT-2 for prompts of so many tokens."""
        return GPT2Settings(depth=self.gpt2_depth, heads=self.gpt2_heads, width=self.gpt2_width, positions=positions)

    def gpt2_training(self) -> Training:
        """AdamW with warm-up and cosine decay."""
        return Training(
            self.gpt2_step_size, self.gpt2_batch, optimiser="adamw", weight_decay=self.gpt2_weight_decay,
            schedule=Cosine(self.gpt2_warmup * self.gpt2_steps, float(self.gpt2_steps)), half=bool(self.gpt2_half),
        )  # fmt: skip

    def gpt2_record_at(self, times: int = 10) -> list[int]:
        """The steps at which a training is observed."""
        return sorted({*range(0, self.gpt2_steps, max(1, self.gpt2_steps // times)), self.gpt2_steps})

    def gpt2_unstated(self) -> tuple[str, ...]:
        """What no paper says of its GPT-2, and what these settings say."""
        half = ", gradients in bfloat16" if self.gpt2_half else ""
        return (
            f"GPT-2: {self.gpt2_depth} layers, {self.gpt2_heads} heads, width {self.gpt2_width}",
            f"seeds: {self.gpt2_seeds} at most; errors on {self.gpt2_prompts} fresh prompts per member, also those below 0.01",
            f"AdamW, step size {self.gpt2_step_size:g} with warm-up over {self.gpt2_warmup:g} of {self.gpt2_steps} steps and "
            f"cosine decay, weight decay {self.gpt2_weight_decay:g}, B = {self.gpt2_batch}{half}",
            "optimiser, step size and steps were chosen by the training loss in domain",
        )


SMOKE = {
    "gpt2_depth": 1, "gpt2_width": 16, "gpt2_steps": 20, "gpt2_prompts": 250, "gpt2_trend_prompts": 250,
}  # fmt: skip
"""Sizes of the smoke profile: the code path, not the science."""

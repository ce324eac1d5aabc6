"""GPT-2 on a paper's prompts. Papers have these settings as their field `gpt2`, so that all use the same deep model.

All that a paper says of it is "the 3-layer 2-head real-world model GPT-2" (Section 5 of nonlinear-icl). Three layers,
two heads and width 64 are the smallest model of Garg et al. (2022), on whose set-up the works it follows build. The
optimiser is ours: AdamW, warm-up over a tenth of the steps, cosine decay to 0. It was chosen by the training loss in
domain alone.
"""

from __future__ import annotations

import dataclasses

import xarray as xr

from iclab.errors import require, require_positive
from iclab.models.gpt2 import GPT2Settings
from iclab.optimisation import Cosine, Training

FEWER_SEEDS = "Seeds went from six to four after the first runs, to save time; the rule is unchanged."


@dataclasses.dataclass(frozen=True)
class GPT2Training:
    """One line per setting. `seeds` caps the seeds of these trainings, which cost far more than a one-layer model's."""

    depth: int = 3
    heads: int = 2
    width: int = 64
    step_size: float = 5e-4
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of the steps
    batch: int = 64
    steps: int = 700
    seeds: int = 4
    prompts: int = 2_000  # fresh prompts per member if the claim is an error below 0.01
    trend_prompts: int = 500  # fresh prompts per member if the claim is a trend
    half: bool = False  # gradients in bfloat16, for a GPU

    def __post_init__(self) -> None:
        sizes = ("step_size", "batch", "steps", "seeds", "prompts", "trend_prompts")
        require_positive(**{name: getattr(self, name) for name in sizes})
        require(0 <= self.warmup < 1, f"warmup is {self.warmup}; it must be a share of the steps, in [0, 1).")
        require(self.weight_decay >= 0, f"weight_decay is {self.weight_decay}; it must not be negative.")
        self.model(1)  # refuses sizes that do not fit

    def model(self, positions: int) -> GPT2Settings:
        """GPT-2 for prompts of up to this many tokens."""
        return GPT2Settings(depth=self.depth, heads=self.heads, width=self.width, positions=positions)

    def training(self) -> Training:
        """AdamW with warm-up and cosine decay."""
        return Training(
            self.step_size, self.batch, optimiser="adamw", weight_decay=self.weight_decay,
            schedule=Cosine(self.warmup * self.steps, float(self.steps)), half=self.half,
        )  # fmt: skip

    def record_at(self, times: int = 10) -> list[int]:
        """The steps at which a training is observed."""
        return sorted({*range(0, self.steps, max(1, self.steps // times)), self.steps})

    def unstated(self) -> tuple[str, ...]:
        """These settings in words; no paper states them."""
        half = ", gradients in bfloat16" if self.half else ""
        return (
            f"GPT-2: {self.depth} layers, {self.heads} heads, width {self.width}",
            f"seeds: {self.seeds} at most; errors on {self.prompts} fresh prompts per member, also those below 0.01",
            f"AdamW, step size {self.step_size:g} with warm-up over {self.warmup:g} of {self.steps} steps and "
            f"cosine decay, weight decay {self.weight_decay:g}, B = {self.batch}{half}",
            "optimiser, step size and steps were chosen by the training loss in domain",
        )

    def smoke(self) -> GPT2Training:
        """The sizes of the smoke profile: the code path, not the science."""
        return dataclasses.replace(self, depth=1, width=16, steps=20, prompts=250, trend_prompts=250)


def best_head(mass: xr.DataArray, step: int) -> xr.DataArray:
    """Attention mass at a record, in the layer and head that have most of it at the end of training."""
    mass = mass.stack(place=("layer", "head"))
    best = mass.isel(step=-1).fillna(0).argmax("place")
    return mass.isel(step=step).isel(place=best)

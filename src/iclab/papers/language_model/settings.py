"""The settings of language-model: which model is asked, and how many prompts."""

from __future__ import annotations

import dataclasses

from iclab.errors import require, require_positive
from iclab.language.loading import EMBEDDED, load

WORD_TESTS, LABEL_TESTS, STEP_TESTS = 28, 60, 30  # examples kept for testing, of the word, two-label and two-step tasks
HELD_OUT = (("held_out_prompts", 16), ("demonstrations", 15), ("label_demonstrations", 12), ("step_demonstrations", 12))


@dataclasses.dataclass(frozen=True)
class Settings:
    """One line per setting. Prompts are per task; every prompt has a query of its own, so that prompts are independent."""

    model: str = EMBEDDED  # smollm2, a folder, a GGUF file, or a name on the hub
    demonstrations: int = 8
    prompts: int = 24  # test queries of a word task
    held_out_prompts: int = 8  # queries on which separator, places and heads are chosen
    place_stride: int = 2  # every second place of the residual stream is patched
    label_demonstrations: int = 12  # of the two-label tasks, half of each label
    label_prompts: int = 60  # all there are: half as many left most rows undecided
    attention_prompts: int = 24  # of the same tasks
    pruning_prompts: int = 16
    step_demonstrations: int = 8
    step_prompts: int = 24

    def __post_init__(self) -> None:
        require(bool(self.model), "model is empty; give smollm2, a folder, a GGUF file or a name on the hub.")
        require_positive(**{name: value for name, value in dataclasses.asdict(self).items() if name != "model"})
        for name, most in (
            ("prompts", WORD_TESTS),
            ("label_prompts", LABEL_TESTS),
            ("attention_prompts", LABEL_TESTS),
            ("step_prompts", STEP_TESTS),
        ):
            require(getattr(self, name) <= most, f"{name} is {getattr(self, name)}; the tasks have {most} queries to test on.")
        require(self.pruning_prompts <= self.prompts, f"pruning_prompts is {self.pruning_prompts}; prompts is {self.prompts}.")
        for name, most in (
            ("held_out_prompts", 16),
            ("demonstrations", 15),
            ("label_demonstrations", 12),
            ("step_demonstrations", 12),
        ):
            require(
                getattr(self, name) <= most, f"{name} is {getattr(self, name)}; at most {most} examples are held out for it."
            )
        divisible = self.label_demonstrations % 4 == 0 and self.step_demonstrations % 4 == 0
        require(divisible, "label_demonstrations and step_demonstrations must be multiples of 4: a quarter of them is changed.")


PROFILES = {
    "smoke": Settings(
        demonstrations=2, prompts=2, held_out_prompts=2, place_stride=15, label_demonstrations=4, label_prompts=3,
        attention_prompts=3, pruning_prompts=2, step_demonstrations=4, step_prompts=3,
    ),
    "quick": Settings(),
    "paper": Settings(
        prompts=28, held_out_prompts=16, place_stride=1, label_prompts=60, attention_prompts=60, pruning_prompts=28,
        step_prompts=30,
    ),
}  # fmt: skip


def check(settings: Settings) -> None:
    """Refuse a model that cannot be loaded before anything is written."""
    load(settings.model)


def unstated(s: Settings) -> tuple[str, ...]:
    """What stands behind every claim here."""
    which = "SmolLM2-135M-Instruct (Q4_1 weights, computed in float32)" if s.model == EMBEDDED else s.model
    return (
        f"model: {which}; the paper's is another (Fig. 1 of vector-arithmetic: GPT2-medium)",
        "intervals are over prompts, each with its own query and its own draw of demonstrations; there is one model",
        "the separator between query and answer was chosen among ' ->', ':' and ' =' by few-shot accuracy on held-out examples",
        "an answer is right if it is the most probable of all tokens of the vocabulary",
    )

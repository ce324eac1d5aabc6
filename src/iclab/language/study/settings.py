"""The settings of language-model: which model is asked, and how many prompts."""

from __future__ import annotations

import dataclasses
from typing import Any

from iclab.authoring import Unstated, require, require_positive
from iclab.language.loading import EMBEDDED, load

WORD_TESTS, LABEL_TESTS, STEP_TESTS = 28, 60, 30  # examples kept for testing, of the word, two-label and two-step tasks
WEIGHTS = ("given", "shuffled")
TESTED: dict[str, Any] = {"prompts": 28, "label_prompts": 60, "attention_prompts": 60, "step_prompts": 30}
HELD_OUT = {"held_out_prompts": 16, "demonstrations": 15, "label_demonstrations": 12, "step_demonstrations": 12}


@dataclasses.dataclass(frozen=True)
class Settings:
    """One line per setting. Prompts are per task; every prompt has a query of its own: prompts are independent."""

    model: str = EMBEDDED  # smollm2, a folder, a GGUF file, or a name on the hub
    weights: str = "given"  # or "shuffled": a network of the same sizes that knows nothing, as a control
    demonstrations: int = 8
    prompts: int = 24  # test queries of a word task
    held_out_prompts: int = 8  # queries on which separator, places and heads are chosen
    place_stride: int = 2  # every second place of the residual stream is patched
    label_demonstrations: int = 12  # of the two-label tasks, half of each label
    label_prompts: int = 60  # all there are: half as many left most answers open
    attention_prompts: int = 24  # of the same tasks
    pruning_prompts: int = 16
    step_demonstrations: int = 8
    step_prompts: int = 24

    def __post_init__(self) -> None:
        require(bool(self.model), "model is empty; give smollm2, a folder, a GGUF file or a name on the hub.")
        require(self.weights in WEIGHTS, f"weights is {self.weights}; it must be one of {', '.join(WEIGHTS)}.")
        numbers = {name: value for name, value in dataclasses.asdict(self).items() if not isinstance(value, str)}
        require_positive(**numbers)
        for name, value in numbers.items():
            tested, held = TESTED.get(name, value), HELD_OUT.get(name, value)
            require(value <= tested, f"{name} is {value}; the tasks have {tested} queries to test on.")
            require(value <= held, f"{name} is {value}; at most {held} examples are held out for it.")
        pruned = f"pruning_prompts is {self.pruning_prompts}; prompts is {self.prompts}."
        require(self.pruning_prompts <= self.prompts, pruned)
        quarters = "label_demonstrations and step_demonstrations must be multiples of 4: a quarter of them is changed."
        require(self.label_demonstrations % 4 == self.step_demonstrations % 4 == 0, quarters)


_two: dict[str, Any] = dict.fromkeys(("demonstrations", "prompts", "held_out_prompts", "pruning_prompts"), 2)
_three: dict[str, Any] = dict.fromkeys(("label_prompts", "attention_prompts", "step_prompts"), 3)
settings = {
    "smoke": Settings(**_two, **_three, place_stride=15, label_demonstrations=4, step_demonstrations=4),
    "quick": Settings(),
    "paper": Settings(**TESTED, held_out_prompts=16, place_stride=1, pruning_prompts=28),
}
unstated = (
    Unstated(
        "model", (EMBEDDED,), "", "SmolLM2-135M-Instruct, Q4_1 weights in float32; the paper's Fig. 1: GPT2-medium"
    ),
    Unstated("demonstrations", (4, 8, 12), "", "of the word tasks; vector-arithmetic prints none for Fig. 1"),
    Unstated("label_demonstrations", (8, 12), "", "the two-label tasks are ours"),
    Unstated("step_demonstrations", (4, 8, 12), "", "the two-step tasks are ours"),
    "intervals are over prompts, each with its own query and its own draw of demonstrations; there is one model",
    "the separator of query and answer, ' ->', ':' or ' =', was chosen by few-shot accuracy on held-out examples",
    "an answer is right if it is the most probable of all tokens of the vocabulary",
)


def check(s: Settings) -> None:
    """Refuse a model that cannot be loaded before anything is written."""
    load(s.model)

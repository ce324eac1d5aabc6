"""What nonlinear-icl prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

facets = {
    "inside": "settings that meet all hypotheses",
    "U=4": "U = 4 cycles of training tasks",
    "one-layer": "the one-layer model",
    "gpt2": "GPT-2",
    "gpt2-varied": "GPT-2 with contexts of varied length",
    "loss": "the loss",
    "error": "the error",
    "in-domain": "prompts in domain",
    "out-of-domain": "prompts out of domain",
    "T=500": "500 iterations",
}

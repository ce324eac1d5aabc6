"""What mamba-outliers prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

facets = {
    "18tasks": "18 training tasks",
    "cycle": "the bare cycle of 6 tasks",
    "kappa=2": "test outliers of size κ_a' = 2",
    "kappa=10": "test outliers of size κ_a' = 10",
    "exact": "an exact number of outliers",
    "seen": "outliers seen in training",
    "brief": "a briefly trained linear Transformer",
    "start=0.001": "a smaller start, δ = 0.001",
    "start=0.02": "the start δ = 0.02",
    "printed": "(19) as printed",
    "absolute": "the absolute value of (61)",
    "no-residual": "stacks without a residual",
    "label-residual": "a residual of the label",
    "full-residual": "a full residual",
    "linear": "linear attention",
    "linear-causal": "causal linear attention",
    "large=0.1": "“large” as above 0.1",
}

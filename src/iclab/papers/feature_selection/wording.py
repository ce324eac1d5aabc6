"""What feature-selection prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

facets = {
    "inside": "settings that meet all hypotheses",
    "wide": "a wider MLP",
    "edge": "settings at the edge of the conditions",
    "fixed": "every λ = λ_*",
    "range": "λ in a range",
    "printed": "the formula as printed",
    "embeddings": "embeddings",
}

"""The rates of feature-selection: Theorem 1's iterations (6) in λ_*, τ and α. They suffice, so each is an upper
bound.
"""

from __future__ import annotations

import numpy as np

from iclab.authoring import Law
from iclab.papers.feature_selection.settings import Settings, symbols


def laws(s: Settings) -> dict[str, Law]:
    """The laws at these settings; ε_m and C are those of `symbols`. λ ~ U(λ_*, 1.2): its mean rises with λ_* too."""
    free = symbols(s)

    def undisturbed(noise: np.ndarray) -> np.ndarray:
        return 1 - free.neuron_deviation - noise * s.relevant_patterns

    def attended(fraction: np.ndarray) -> np.ndarray:  # the paper prints (1 - 1/α)⁻¹, which is negative
        return free.attention_constant - 1 / fraction

    return {
        "λ_*": Law(
            "rate-low", "relevant_low", (0.3, 0.45, 0.6, 0.9, 1.2), "λ_*", -1.0, on=(0.6, 0.9, 1.2), towards="small",
            rivals={"λ_*^(-2/3)": -2 / 3, "λ_*⁻²": -2.0},
        ),
        "τ": Law(
            "rate-noise", "noise_norm", (0.0, 0.05, 0.09, 0.12, 0.14), "1 − ε_m − τ M1", -0.5, on=(0.0, 0.05, 0.09),
            towards="small", coordinate=undisturbed, rivals={"no dependence": 0.0, "power −1": -1.0},
        ),
        "α": Law(
            "rate-fraction", "matching_fraction", (0.55, 0.6, 0.7, 0.8, 1.0), "C − 1/α", -1.0, on=(0.7, 0.8, 1.0),
            towards="small", coordinate=attended, rivals={"no dependence": 0.0, "power −1/2": -0.5},
        ),
    }  # fmt: skip

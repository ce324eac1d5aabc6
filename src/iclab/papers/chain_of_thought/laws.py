"""The rates of chain-of-thought: the stages of training (18) in α, M and K, and the examples needed (23), (25).

Stage 1 ends when the attention looks at columns of the query's step only, stage 2 when it looks at the query's step and
pattern, on fresh prompts made like the training ones. The theorems say what suffices: each law is an upper bound.
"""

from __future__ import annotations

import dataclasses

from iclab.authoring import Criterion, Law

TRAINED_FRACTIONS = (0.3, 0.4, 0.6, 0.8)  # α
PATTERNS = (8, 12, 20)  # M
STEPS = (2, 3, 4)  # K
FRACTIONS = (0.2, 0.4, 0.6, 0.8)  # α' of Figs. 2A and 3A
TRAJECTORIES = (0.1, 0.25, 0.4, 0.55)  # τ of Fig. 2B, at ρ = 0.8
PRIMACIES = (0.75, 0.8, 0.85, 0.95)  # ρ of Fig. 2C, at τ = 0.5
OUTPUT = (0.5, 0.5)  # (τ_o, ρ_o) of Fig. 3 where not varied
OUTPUTS = (0.3, 0.4, 0.5, 0.6)  # τ_o of Fig. 3B
OUTPUT_PRIMACIES = (0.3, 0.45, 0.6, 0.75)  # ρ_o of Fig. 3C
COMPARISON = (0.4, 0.1)  # (τ_o, ρ_o) of Fig. 4
STAGE = {
    f"attention there above {share:g} for good": Criterion(share, above=True, window=3, interpolate=True)
    for share in (0.9, 0.75, 0.95)
}
NEEDED = {f"error below {error:g}": Criterion(error, interpolate=True) for error in (0.1, 0.2, 0.05)}


def _stage(number: int, setting: str, values: tuple[float, ...], symbol: str, exponent: float, **rivals: float) -> Law:
    """When a stage of training ends, counted from step 0. The hidden constant is fitted without the hardest value."""
    law = Law(f"rate-{setting}", setting, values, symbol, exponent, on=values[:-1], criteria=STAGE, rivals=rivals)
    law = dataclasses.replace(law, variable=("right_step", "right_column")[number - 1], what=f"end of stage {number}")
    return dataclasses.replace(law, on=values[1:], towards="small") if exponent < 0 else law


def _examples(experiment: str, varied: dict[str, tuple[float, ...]]) -> dict[str, Law]:
    """Examples that CoT or ICL needs, by panel; (63) and (83) also allow a power -1 in α' and τ (Chernoff)."""
    law = Law(experiment, "", (), "", -2.0, (), towards="small", criteria=NEEDED, along="length", what="examples")
    found = {}
    for panel, (symbol, values) in zip("ABC", varied.items(), strict=True):
        own = dataclasses.replace(law, values=values, symbol=symbol, on=values[2:], variable=f"error_{panel}")
        rivals = {} if panel == "C" else {f"{symbol}⁻¹": -1.0}
        found[panel] = dataclasses.replace(own, dim=f"value_{panel}", rivals=rivals)
    return found


STAGES = {
    "first stage in α": _stage(1, "fraction", TRAINED_FRACTIONS, "α", -1.0, **{"α⁻², Lemmas F.5 to F.7": -2.0}),
    "first stage in K": _stage(1, "steps", STEPS, "K", 3.0, **{"K": 1.0, "K²": 2.0}),
    "second stage in α": _stage(2, "fraction", TRAINED_FRACTIONS, "α", -1.0, **{"α⁻²": -2.0}),
    "second stage in M": _stage(2, "patterns", PATTERNS, "M", 1.0, **{"no dependence": 0.0}),
    "second stage in K": _stage(2, "steps", STEPS, "K", 1.0, **{"K³": 3.0}),
}
STAGES_OF_LEMMAS = (dataclasses.replace(STAGES["first stage in α"], exponent=-2.0), STAGES["first stage in K"])
CHAINS = _examples("chains", {"α'": FRACTIONS, "τ": TRAJECTORIES, "ρ": PRIMACIES})
DIRECT = _examples("direct", {"α'": FRACTIONS, "τ_o": OUTPUTS, "ρ_o": OUTPUT_PRIMACIES})

"""Readings of feature-selection at settings of their own: inside Theorem 1's hypotheses, and at their edge."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from iclab.authoring import Reading
from iclab.papers.feature_selection import theory
from iclab.papers.feature_selection.settings import DEVIATION, Settings, symbols

NEURONS = 1280  # m: enough for an ε_m just below 1/2, the largest that Theorem 1 allows


SHORT = 100  # fewer steps than this are the smoke profile, which answers nothing and stays small


def allowed(s: Settings) -> dict[str, Any]:
    """Settings that meet all hypotheses. Wider models need more steps, and with η = 4 they became unstable."""
    if s.steps < SHORT:
        return {"most_seeds": s.few_seeds}
    sizes = {"neurons": NEURONS, "batch": 64, "step_size": 1.5, "most_seeds": s.few_seeds}
    return sizes | {"steps": max(s.steps, 700), "rate_steps": max(s.rate_steps, 800)}


def inside(s: Settings) -> Reading:
    """All hypotheses met, with the smallest width at which some ε_m does."""
    return Reading("inside", f"m = {NEURONS}: all hypotheses are met, with ε_m just below 1/2", changes=allowed(s))


def wide(s: Settings) -> Reading:
    """All hypotheses met at ε_m = 1/4."""
    changes = allowed(s) | {"steps": max(s.steps, 1500), "step_size": 2.0}
    long = symbols(dataclasses.replace(s, **changes))
    width = 20 * math.ceil(theory.width(dataclasses.replace(long, neuron_deviation=DEVIATION)).threshold / 20)
    return Reading("wide", f"m = {width}: the width that ε_m = 1/4 asks for", changes=changes | {"neurons": width})


def edge(s: Settings) -> Reading:
    """Training at the shortest prompts and the smallest batch that Theorem 1 allows with constants of 1."""
    length = math.ceil(theory.train_length(symbols(s)).value)
    batch = 2 * math.ceil(s.relevant_patterns * math.log(s.relevant_patterns) / 2)
    why = (
        f"l_tr = {length} >= 2 log M/α and B = {batch} >= M1 log M1, one example of every test prompt matches the query"
    )
    own = {"train_length": length, "batch": batch, "step_size": 1.0, "steps": max(s.steps, 1200)}
    return Reading("edge", why, changes=allowed(s) | own)

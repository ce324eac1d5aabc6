"""Everything that a user's own file needs, in one place.

    from iclab.authoring import BaseWorld, Check, Recipe, Training, below, claim, errors, make_prompt, regression, static

What a file may define is listed in `iclab.authoring.module`; `iclab new` writes one that runs.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx

from iclab.claims import Check, Claim, Table, above, below, claim, within
from iclab.drawing import curve, panels, threshold
from iclab.errors import require, require_fraction, require_positive
from iclab.evaluation import errors, expect
from iclab.experiments import Lab, Recipe, Trained
from iclab.losses import Loss, cross_entropy, hinge, regression, squared
from iclab.prompts import Prompt, make_prompt
from iclab.statistics import first_below, log_slope, trend
from iclab.training import Cosine, Member, Training
from iclab.worlds import BaseWorld


def static(default: Any) -> Any:
    """A setting of a world or a model that decides a shape: a change of it is another compiled program."""
    return eqx.field(static=True, default=default)


__all__ = [
    "BaseWorld", "Check", "Claim", "Cosine", "Lab", "Loss", "Member", "Prompt", "Recipe", "Table", "Trained", "Training",
    "above", "below", "claim", "cross_entropy", "curve", "errors", "expect", "first_below", "hinge",
    "log_slope", "make_prompt", "panels", "regression", "require", "require_fraction", "require_positive", "squared", "static",
    "threshold", "trend", "within",
]  # fmt: skip

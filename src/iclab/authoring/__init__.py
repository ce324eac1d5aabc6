"""Everything that a paper (built in or in your own file) needs, in one place.

    from iclab.authoring import BaseWorld, Part, Recipe, Statement, Training, below, errors, measured, static

`iclab.authoring.module` lists what a file may define; `iclab new` writes a working example.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx

from iclab.authoring.laws import LOSSES, Law, geometric, gridded, law_table, swept
from iclab.authoring.paper import Experiment
from iclab.authoring.pictures import Custom, Dots, Lines, Power, dots, labelled, picture
from iclab.drawing import curve, panels, threshold
from iclab.errors import require, require_fraction, require_positive, require_settings
from iclab.evaluation import errors, expect, expect_in
from iclab.experiments import Lab, Recipe, Trained
from iclab.expressions import Expression, Results, apply, measured
from iclab.kinds import above, below, big_o, identical, larger, omega, smaller, suffices, within
from iclab.losses import Loss, cross_entropy, hinge, regression, squared
from iclab.optimisation import Cosine, Training
from iclab.prompts import Padding, Prompt, make_prompt
from iclab.scaling import Scaling
from iclab.statements import SIGNED, STATED, UNIT, Part, Reading, Statement, Table
from iclab.statistics import Criterion, first_below, log_slope, required, trend
from iclab.training import Member
from iclab.unstated import Between, Unstated
from iclab.worlds import BaseWorld


def static(default: Any) -> Any:
    """A setting of a world or a model that decides a shape; changing it needs another compiled program."""
    return eqx.field(static=True, default=default)


__all__ = [
    "LOSSES", "SIGNED", "STATED", "UNIT", "BaseWorld", "Between", "Cosine", "Criterion", "Custom", "Dots", "Experiment",
    "Expression", "Lab", "Law", "Lines", "Loss", "Member", "Padding", "Part", "Power", "Prompt", "Reading", "Recipe",
    "Results", "Scaling", "Statement", "Table", "Trained", "Training", "Unstated", "above", "apply", "below",
    "big_o", "cross_entropy", "curve", "dots", "errors", "expect", "expect_in", "first_below", "geometric", "gridded",
    "hinge", "identical", "labelled", "larger", "law_table", "log_slope", "make_prompt", "measured", "omega", "panels",
    "picture", "regression", "require", "require_fraction", "require_positive", "require_settings", "required",
    "smaller", "squared", "static", "suffices", "swept", "threshold", "trend", "within",
]  # fmt: skip

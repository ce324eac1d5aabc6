"""What the statements of language-model are put together from: numbers per prompt, contrasts, and what is lost."""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.authoring import SIGNED, Part, apply, larger, smaller
from iclab.expressions import Expression

QUARTER = 0.25  # of what a model can do above chance: losing less is "hardly" anything
HARDLY = (
    "'hardly', 'few': less than a quarter of the accuracy above chance (0 where any token may be the answer, one half "
    "of two labels)"
)
AFTER_HARDLY = (
    "'Hardly' was an absolute 0.1, which networks with random weights passed, as they have nothing to lose; it was "
    "made a share of what a model can do before this model was asked again."
)
TWICE, FREE = (-2.0, 2.0), (-np.inf, np.inf)  # differences of cosines, of logarithms of ranks
GROUPED = "Parts and readings were rows of their own in the first version; rules and numbers are unchanged."
SCOUTED = (
    "Before the rule was written, two or three test prompts per task had been run, to see that the code works, and, "
    "on held-out examples,"
)


def pooled(data: xr.DataArray) -> xr.DataArray:
    """One number per prompt, prompts of all tasks together."""
    rest = [dim for dim in data.dims if dim in ("task", "prompt")]
    return xr.DataArray(data.transpose(*rest).values.reshape(-1), dims="prompt")


def there(data: xr.DataArray, dim: str, place: xr.DataArray) -> xr.DataArray:
    """The data at the place that was chosen, for all tasks or for each; NaN where there was nothing to choose."""
    return data.sel({dim: place.fillna(data[dim].values[-1]).astype(int)})


def log_rank(data: xr.DataArray) -> xr.DataArray:
    """log10(1 + rank): 0 where the right answer is first."""
    return xr.apply_ufunc(np.log10, data + 1)


def more(name: str, contrast: Expression, bounds: tuple[float, float] = SIGNED, *readings: str) -> Part:
    """A contrast is positive."""
    return Part(name, apply(pooled, contrast), larger(), bounds, readings)


def cost(name: str, before: Expression, after: Expression, *readings: str, chance: float = 0.0) -> Part:
    """Less than a quarter of the accuracy above chance is lost. A model that answers by chance has nothing to lose and
    does not pass.
    """
    lost, able = before - after, before - chance
    words = f"{name}, minus a quarter of that above chance"
    statistic = apply(pooled, lost - QUARTER * able)
    return Part(
        words, statistic, smaller(), (-1.25, 1.25), readings, apply(ratio, lost, able), f"{name}: {{:.0%}} of it"
    )


def ratio(part: xr.DataArray, whole: xr.DataArray) -> xr.DataArray:
    """Of means over everything."""
    return part.mean() / whole.mean()

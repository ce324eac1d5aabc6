"""Linear laws of log times over seeds, some of them censored: the likelihood, its maximum, and resampling of seeds.

**Censored values are neither dropped nor set to the limit.** Dropping the slow seeds, or the settings in which some are
censored, keeps the lucky ones and flattens the slope; so does putting the limit for them. Here log time = design · β +
noise with normal noise of one size, and a censored value enters the likelihood by the probability to lie beyond its
limit (a Tobit model), solved by expectation-maximisation. Without censoring this is least squares; the noise model
matters only as far as values are censored.

**Intervals are over seeds.** Whole seeds are drawn with replacement, so that what a seed does to all settings stays
together. The quantiles of the resampled estimates, seen from the estimate, are widened by t_(n-1)/z · √(n/(n-1)), which
makes the interval Student's where the estimate is a mean over seeds; plain bootstrap quantiles are too narrow for 8
seeds.
"""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

import numpy as np
import scipy.special
import scipy.stats
import xarray as xr

from iclab.errors import require
from iclab.statistics import tail

RESAMPLES = 1000
ROUNDS = 2000  # of expectation-maximisation
TOLERANCE = 1e-6  # of β
SMALLEST_NOISE = 1e-6  # of log times
Bound: TypeAlias = float | xr.DataArray | None


@dataclasses.dataclass(frozen=True)
class Observed:
    """Log times (the limit where censored), settings × seeds. `side`: +1 censored from above, -1 from below, 0 seen."""

    setting: np.ndarray
    values: np.ndarray
    side: np.ndarray
    present: np.ndarray

    @property
    def seen(self) -> np.ndarray:
        """Which values are times, not bounds."""
        return self.present & (self.side == 0)

    def counts(self) -> dict[str, int]:
        """How many settings, seeds, censored and lost values."""
        return {
            "settings": len(self.setting),
            "seeds": self.values.shape[1],
            "censored": int((self.present & (self.side != 0)).sum()),
            "lost": int((~self.present).sum()),
        }


def observe(data: xr.DataArray, dim: str, limit: Bound, floor: Bound) -> Observed:
    """Read data over `dim` and "seed". Infinite: later than `limit`; at or below zero: earlier than `floor`; NaN: lost.

    By default limit and floor are the attributes that `first_passage` leaves on the data, else the largest and smallest
    times. Where runs differ in length, give the limit as an array over `dim`.
    """
    require(
        set(data.dims) == {dim, "seed"},
        f"the data have dimensions {tuple(data.dims)}; they must be {dim!r} and 'seed'.",
    )
    data = data.transpose(dim, "seed")
    times = np.asarray(data.values, float)
    settings = np.asarray(data[dim].values, float)
    require(len(settings) >= 2, f"{dim} has {len(settings)} value; it needs at least two.")
    present = ~np.isnan(times)
    side = np.where(np.isposinf(times), 1, np.where(present & (times <= 0), -1, 0))
    seen = times[present & (side == 0)]
    filled = np.where(present, times, 1.0)
    for name, given, kind, extreme in (("limit", limit, 1, np.max), ("floor", floor, -1, np.min)):
        bound = data.attrs.get(name, extreme(seen) if len(seen) else np.nan) if given is None else given
        wide = xr.broadcast(xr.DataArray(bound), data)[0].transpose(dim, "seed").values[side == kind]
        require(
            bool(np.all((wide > 0) & np.isfinite(wide))),
            f"some times are censored; give the positive {name} at which they are.",
        )
        filled[side == kind] = wide
    return Observed(settings, np.log(filled), side, present)


def maximise(design: np.ndarray, data: Observed, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """β (resamples × columns) and the noise that maximise the likelihood, for every row of weights of the seeds."""
    seen = data.seen
    at, who = np.nonzero(data.present & (data.side != 0))
    side, bound, rows, shares = data.side[at, who], data.values[at, who], design[at], weights[:, who]
    outer = design[:, :, None] * design[:, None, :]
    inverse = np.linalg.pinv(np.einsum("rj,ij,ipq->rpq", weights, data.present, outer, optimize=True), hermitian=True)
    part = np.einsum("rj,ij,ipq->rpq", weights, seen, outer, optimize=True)
    known = np.einsum("rj,ij,ip->rp", weights, np.where(seen, data.values, 0.0), design, optimize=True)
    squares = weights @ np.where(seen, data.values**2, 0.0).sum(axis=0)
    count = weights @ data.present.sum(axis=0)

    def update(active: np.ndarray, expected: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least squares with the expected values in place of the censored ones, and the noise left over."""
        target = known[active] + (shares[active] * expected) @ rows
        found = (inverse[active] @ target[:, :, None])[:, :, 0]
        left = squares[active] - 2 * (found * known[active]).sum(axis=1)
        left = left + (found[:, None, :] @ part[active] @ found[:, :, None])[:, 0, 0]
        left = left + (shares[active] * ((expected - found @ rows.T) ** 2 + variance)).sum(axis=1)
        return found, np.maximum(np.sqrt(np.maximum(left, 0.0) / count[active]), SMALLEST_NOISE)

    active = np.arange(len(weights))
    start = np.broadcast_to(bound, shares.shape)
    beta, noise = update(active, start, np.zeros_like(start))
    for _ in range(ROUNDS if len(at) else 0):
        mean, size = beta[active] @ rows.T, noise[active, None]
        z = side * (bound - mean) / size
        hazard = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - scipy.special.log_ndtr(-z))
        found, left = update(active, mean + side * size * hazard, size**2 * np.maximum(1 + z * hazard - hazard**2, 0.0))
        moved = np.abs(found - beta[active]).max(axis=1)
        beta[active], noise[active] = found, left
        active = active[moved > TOLERANCE]
        if len(active) == 0:
            break
    return beta, noise


def fitted(design: np.ndarray, data: Observed, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `maximise`; NaN where fewer settings have a finite time than there are columns."""
    known = ((weights @ data.seen.T) > 0).sum(axis=1) >= design.shape[1]
    beta, noise = np.full((len(weights), design.shape[1]), np.nan), np.full(len(weights), np.nan)
    if known.any():
        beta[known], noise[known] = maximise(design, data, weights[known])
    return beta, noise


def censored_mean(data: Observed, group: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The censored mean of a group of settings per row of weights; ±inf where all of it is censored on that side."""
    part = Observed(data.setting[group], data.values[group], data.side[group], data.present[group])
    means = fitted(np.ones((int(group.sum()), 1)), part, weights)[0][:, 0]
    beyond = [(weights @ (part.present & (part.side == kind)).any(axis=0)) > 0 for kind in (1, -1)]
    lost = np.isnan(means)
    return np.where(lost & beyond[0] & ~beyond[1], np.inf, np.where(lost & beyond[1] & ~beyond[0], -np.inf, means))


def drawn(seeds: int, resamples: int) -> np.ndarray:
    """How often each seed is drawn, per resample: the same draws every time."""
    return np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples).astype(float)


def ends(estimate: float, resampled: np.ndarray, seeds: int) -> tuple[float, float]:
    """The widened bootstrap interval. Resamples without a value (NaN) are left out."""
    values = np.sort(resampled[~np.isnan(resampled)])
    if seeds < 2 or len(values) == 0 or not np.isfinite(estimate):
        return np.nan, np.nan
    share = tail()
    widen = scipy.stats.t.ppf(1 - share, seeds - 1) / scipy.stats.norm.ppf(1 - share) * np.sqrt(seeds / (seeds - 1))
    low, high = values[int(np.floor(share * (len(values) - 1)))], values[int(np.ceil((1 - share) * (len(values) - 1)))]
    return float(estimate + widen * (low - estimate)), float(estimate + widen * (high - estimate))

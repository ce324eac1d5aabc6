"""Bounds over sizes and rates: how what was measured grows, against the power that a paper states.

The exponent is fitted over sizes and seeds, with its interval over seeds. A bound is one-sided: growing more slowly
than it allows is loose, not wrong. What was never reached says nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from scipy.optimize import minimize_scalar

from iclab.kinds import EVERYWHERE, Finding, Outcome, compared, in_numbers
from iclab.statistics import Interval, interval
from iclab.statistics.fits import exponents_by_seed

AFFINE = 0.95  # share of the variance that an affine fit must explain where the words are "linear in"
FEW_SIZES = 3  # below so many sizes that were reached, nothing is said about a scaling


@dataclasses.dataclass(frozen=True)
class Scaling:
    """X grows like a power of a size, over several values of it: `exponent` in the coordinate `dim`, which `symbol`
    writes.

    `side` is "upper" where the power bounds X from above (an O, or a number of steps that suffices), "lower" for Ω, and
    "both" where the paper claims the exponent itself. `towards` is where the size goes: "large", or "small" for an α or
    an ε that goes to 0. For a one-sided bound only what happens in that direction counts. `tolerance` is how far an
    exponent may be off; it is ours. With `affine` (the words "linear in") X = a + b · size^exponent must explain the
    variance, and no power q far from the exponent may fit better: q is what is judged. `scale` is f over size^exponent
    where it is known, and the constant c is then reported.
    """

    dim: str
    exponent: float
    symbol: str
    side: str = "upper"
    towards: str = "large"
    affine: bool = False
    scale: float | None = None

    @property
    def kind(self) -> str:
        """A rate where the exponent itself is claimed, or "linear in"; else a bound."""
        return "rate" if self.side == "both" or self.affine else "bound"

    @property
    def tolerance(self) -> float:
        """A quarter of the exponent; 0.25 where none is predicted."""
        return abs(self.exponent) / 4 or 0.25

    @property
    def low(self) -> float:
        """The smallest exponent that agrees."""
        return self._ends()[0]

    @property
    def high(self) -> float:
        """The largest exponent that agrees."""
        return self._ends()[1]

    def _ends(self) -> tuple[float, float]:
        low, high = self.exponent - self.tolerance, self.exponent + self.tolerance
        if self.side == "both" or self.affine:
            return low, high
        allows_less = (self.side == "upper") == (self.towards == "large")
        return (-np.inf, high) if allows_less else (low, np.inf)

    def __str__(self) -> str:
        base = f"({self.symbol})" if " " in self.symbol else self.symbol
        if self.affine:
            return f"affine in {base}^{self.exponent:.3g}"
        sign = {"upper": "at most like", "lower": "at least like", "both": "like"}[self.side]
        return f"{sign} {base}^{self.exponent:.3g}"

    def judge(self, values: xr.DataArray, bounds: tuple[float, float] = EVERYWHERE) -> Finding:
        """Numbers over sizes and seeds; infinite where something was never reached.

        A seed that diverged (at every size; for an affine fit, at one) is left out and counted.
        """
        rows = np.isnan(values.transpose("seed", self.dim).values)
        lost = rows.any(axis=1) if self.affine else rows.all(axis=1)
        finding = self._judge(values.isel(seed=np.flatnonzero(~lost)))
        numbers = np.full(len(lost), np.nan)
        if finding.values:
            numbers[~lost] = finding.values
        found = dataclasses.replace(finding.interval, lost=finding.interval.lost + int(lost.sum()))
        return dataclasses.replace(finding, interval=found, values=tuple(numbers.tolist()) if finding.values else ())

    def _judge(self, values: xr.DataArray) -> Finding:
        """The same without the seeds that are lost."""
        reached = _reached(values, self.dim)
        sizes = np.asarray(values[self.dim].values, float)
        factor = float(sizes.max() / sizes.min()) if sizes.min() > 0 else np.inf
        details = {"predicted": self.exponent, "sizes": float(len(sizes)), "factor": factor}
        nothing = Interval(np.nan, np.nan, np.nan, 0, values.sizes["seed"])
        if values.sizes["seed"] < 2:
            some = values.sizes["seed"] > 0
            words = "too few seeds" if some else "no seed has a number"
            return Finding(Outcome.open, f"open: {words}", nothing, (), "seed", details, settled=not some)
        if reached < max(2, min(FEW_SIZES, len(sizes))):
            words = f"open: reached at {reached} of {len(sizes)} values of {self.symbol} only"
            return Finding(Outcome.open, words if reached else "open: never reached", nothing, (), "seed", details)
        if self.affine:
            return self._affine(values, sizes, details)
        slopes = exponents_by_seed(values, self.dim)
        found = interval(slopes.values)
        numbers = tuple(float(value) for value in slopes.values)
        if self.scale is not None:
            details |= self._constant(values, sizes)
        if not np.isfinite(found.low):
            return Finding(Outcome.open, "open: no exponent can be fitted", found, numbers, "seed", details)
        outcome = compared(found, *self._ends())
        if outcome is Outcome.fails and self.side != "both":
            outcome = Outcome.fails_in_scaling
        details["loose"] = float(outcome is Outcome.holds and abs(found.measured - self.exponent) > self.tolerance)
        words = self._words(outcome, found, details)
        return Finding(outcome, words, found, numbers, "seed", details, settled=outcome is not Outcome.open)

    def _words(self, outcome: Outcome, found: Interval, details: Mapping[str, float]) -> str:
        against = f"exponent {in_numbers(found)} in {self.symbol} against {self.exponent:.3g}"
        if outcome is Outcome.holds:
            constant = f" with c ≈ {details['constant']:.2g}" if "constant" in details else ""
            loose = ", loose" if details["loose"] else ""
            return f"holds{constant}{loose}: {against}"
        return f"{outcome}: {against}{' crosses the rule' if outcome is Outcome.open else ''}"

    def _constant(self, values: xr.DataArray, sizes: np.ndarray) -> dict[str, float]:
        """The c that covers every size: the largest mean of X/f for an upper bound, the smallest for a lower one.

        There is none where something was never reached, or a size has no number.
        """
        assert self.scale is not None
        ratio = values.transpose(self.dim, "seed").values / (self.scale * sizes[:, None] ** self.exponent)
        means = np.array([row[~np.isnan(row)].mean() if (~np.isnan(row)).any() else np.nan for row in ratio])
        if not np.isfinite(means).all():
            return {}
        return {"constant": float((np.min if self.side == "lower" else np.max)(means))}

    def _affine(self, values: xr.DataArray, sizes: np.ndarray, details: dict[str, float]) -> Finding:
        """The power q of the best a + b · size^q, if a + b · size^exponent explains enough of the variance at all."""
        rows = values.transpose("seed", self.dim).values
        if not np.isfinite(rows).all():
            missing = int((~np.isfinite(rows)).sum())
            words = f"open: {missing} of {rows.size} were never reached"
            return Finding(Outcome.open, words, Interval(np.nan, np.nan, np.nan, 0, len(rows)), (), "seed", details)
        _, slope, start = _explained(sizes**self.exponent, rows.mean(axis=0))
        explained = interval(_jackknife(lambda curve: _explained(sizes**self.exponent, curve)[0], rows), (-np.inf, 1.0))
        powers = _jackknife(lambda curve: _best_power(curve, sizes, self.exponent), rows)
        found = interval(powers)
        details |= {"slope": slope, "offset": start, "explained": explained.measured}
        linear, power = compared(explained, AFFINE, np.inf), compared(found, *self._ends())
        outcome = linear if linear is Outcome.fails else power if linear is Outcome.holds else Outcome.open
        fit = f"{details['offset']:.3g} + {details['slope']:.3g} · {self.symbol}^{self.exponent:.3g}"
        words = f"{outcome}: {fit} explains {in_numbers(explained)} of the variance"
        if linear is not Outcome.fails:
            words = f"{words}, the best power of {self.symbol} is {in_numbers(found)}"
        numbers, settled = tuple(float(power) for power in powers), outcome is not Outcome.open
        return Finding(outcome, words, found, numbers, "seed", details, settled=settled)


def _explained(power: np.ndarray, row: np.ndarray) -> tuple[float, float, float]:
    """Share of the variance, slope and offset of an affine fit; a slope of the wrong sign explains nothing."""
    slope, start = np.polyfit(power, row, 1)
    spread = float(np.sum((row - row.mean()) ** 2))
    rest = float(np.sum((row - start - slope * power) ** 2))
    share = 1.0 - rest / spread if spread > 0 and slope > 0 else 0.0
    return share, float(slope), float(start)


def _jackknife(number: Callable[[np.ndarray], float], rows: np.ndarray) -> np.ndarray:
    """Pseudo-values, one per seed, whose mean estimates a number of the mean curve: what is linear is the mean, and a
    seed's own noise is no evidence against it.
    """
    count = len(rows)
    left_out = [number(np.delete(rows, seed, axis=0).mean(axis=0)) for seed in range(count)]
    return count * number(rows.mean(axis=0)) - (count - 1) * np.array(left_out)


def _best_power(curve: np.ndarray, sizes: np.ndarray, exponent: float) -> float:
    """The q of least squares, in relative errors, for a + b · size^q with b > 0, between a sixteenth and four times the
    exponent; NaN for a curve that falls where it should rise.
    """
    weights = 1 / np.maximum(np.abs(curve), 1e-12)
    share = weights**2 / np.sum(weights**2)
    dy = curve - curve @ share
    flat = float(dy**2 @ share)

    def rest(factor: float) -> float:
        x = sizes ** (exponent * np.exp(factor))
        dx = x - x @ share
        slope = max((dx * dy) @ share / (dx**2 @ share), 0.0)
        return float(((dy - slope * dx) ** 2) @ share)

    factors = np.linspace(np.log(1 / 16), np.log(4), 61)
    found = [rest(factor) for factor in factors]
    if min(found) >= flat:
        return np.nan
    near = int(np.argmin(found))  # the jackknife multiplies differences: a power on a grid would be noise
    bounds = factors[max(near - 1, 0)], factors[min(near + 1, len(factors) - 1)]
    best = minimize_scalar(rest, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return float(exponent * np.exp(best.x))


def _reached(values: xr.DataArray, dim: str) -> int:
    """At how many sizes at least one seed has a finite positive number."""
    numbers = values.transpose(dim, "seed").values
    return int((np.isfinite(numbers) & (numbers > 0)).any(axis=1).sum())

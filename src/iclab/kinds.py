"""Kinds of statements, and what each of them allows a run to conclude.

| kind | the paper says | judged by |
|---|---|---|
| identity | A = B | the largest difference against floating-point error |
| value | a printed number, "about 15 %" | the interval against the number with a stated tolerance |
| order | larger, grows with, better than | a contrast or a trend, by at least the smallest effect that counts |
| bound | X <= O(f), X >= Ω(f), "T = Θ(f) suffices" | the hidden constant c = X/f; over sizes, one-sided, its scaling |
| rate | "linear in", Θ(f) where tightness is claimed | the exponent, two-sided; affine fits for "linear in" |
| sufficiency | if (conditions) then small loss | the worst point inside the region |
| existence | there is a set L, a constant C | what exists is searched for and reported with the answer |

A rule is data with one method, `judge`: an array with one number per seed (per seed and size, where a rule speaks of
sizes) in, a `Finding` out. All of it is pure. An answer is given only where the interval over seeds allows one: what
was never reached, has too few seeds or straddles its rule is open, and a constant that one size cannot tell from a
failure is open too.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr

from iclab.statistics import Interval, estimator, interval, unit_of
from iclab.statistics.fits import exponents_by_seed

KINDS = ("identity", "value", "order", "bound", "rate", "sufficiency", "existence")
EVERYWHERE = (-np.inf, np.inf)
AFFINE = 0.95  # share of the variance that an affine fit must explain where the words are "linear in"
FEW_SIZES = 3  # below so many sizes that were reached, nothing is said about a scaling


class Outcome(enum.StrEnum):
    """What a run says about a part of a statement."""

    holds = "holds"
    fails = "fails"
    fails_in_scaling = "fails in scaling"
    open = "open"


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was found: the outcome, in words, the interval that decided, and the numbers per seed behind it.

    `details` are what is worth reporting beside it: a constant c, a predicted exponent, how far sizes reach.
    """

    outcome: Outcome
    words: str
    interval: Interval
    values: tuple[float, ...]
    unit: str = "seed"
    details: Mapping[str, float] = dataclasses.field(default_factory=dict)


@runtime_checkable
class Rule(Protocol):
    """What a part of a statement is judged by. `low` and `high` are where a picture shows it."""

    @property
    def kind(self) -> str:
        """One of `KINDS`."""

    @property
    def low(self) -> float:
        """The lower end of what agrees with the paper."""

    @property
    def high(self) -> float:
        """The upper end."""

    @property
    def dim(self) -> str | None:
        """The dimension of sizes that the rule speaks of; None where it takes one number per seed."""

    def judge(self, values: xr.DataArray, bounds: tuple[float, float] = EVERYWHERE) -> Finding:
        """The finding on these numbers; `bounds` is their possible range."""


@dataclasses.dataclass(frozen=True)
class Range:
    """The values of a statistic that agree with the paper: an open range."""

    kind: str
    low: float = -np.inf
    high: float = np.inf
    dim: None = None

    def __str__(self) -> str:
        if np.isinf(self.low):
            return f"below {self.high:.4g}"
        if np.isinf(self.high):
            return f"above {self.low:.4g}"
        return f"between {self.low:.4g} and {self.high:.4g}"

    def judge(self, values: xr.DataArray, bounds: tuple[float, float] = EVERYWHERE) -> Finding:
        """Inside the range: holds; outside: fails; across its edge: open.

        >>> below(0.01).judge(xr.DataArray([0.002, 0.003, 0.001], dims="seed")).words
        'holds: 0.002 [-0.000484, 0.00448]'
        """
        found, unit = _interval(values, bounds)
        numbers = tuple(float(value) for value in values.values)
        undecided = _undecided(values, found)
        if undecided:
            return Finding(Outcome.open, f"open: {undecided}", found, numbers, unit)
        outcome = _compare(found, self.low, self.high)
        across = " crosses the rule" if outcome is Outcome.open else ""
        return Finding(outcome, f"{outcome}: {_numbers(found)}{across}", found, numbers, unit)


@dataclasses.dataclass(frozen=True)
class Bound:
    """X <= O(f) or X >= Ω(f), asked at one size: `size` is f there.

    With a constant of 1 the bound holds or not; where it does not, one size cannot tell a larger constant from a
    failure.
    """

    size: float
    upper: bool = True
    dim: None = None

    @property
    def kind(self) -> str:
        """A bound."""
        return "bound"

    @property
    def low(self) -> float:
        """The smallest value that a constant of 1 allows."""
        return -np.inf if self.upper else self.size

    @property
    def high(self) -> float:
        """The largest value that a constant of 1 allows."""
        return self.size if self.upper else np.inf

    def __str__(self) -> str:
        return f"{'O' if self.upper else 'Ω'}({self.size:.4g})"

    def judge(self, values: xr.DataArray, bounds: tuple[float, float] = EVERYWHERE) -> Finding:
        """The hidden constant c = X/f.

        >>> omega(2.0).judge(xr.DataArray([3.0, 3.1, 2.9], dims="seed")).words
        'holds with c ≈ 1.5'
        """
        found, unit = _interval(values, bounds)
        numbers = tuple(float(value) for value in values.values)
        undecided = _undecided(values, found)
        if undecided:
            return Finding(Outcome.open, f"open: {undecided}", found, numbers, unit)
        constant = found.measured / self.size
        details = {"constant": constant}
        if _compare(found, self.low, self.high) is Outcome.holds:
            return Finding(Outcome.holds, f"holds with c ≈ {constant:.2g}", found, numbers, unit, details)
        words = f"open: c ≈ {constant:.2g} at one size, which cannot tell a constant from a failure"
        return Finding(Outcome.open, words, found, numbers, unit, details)


@dataclasses.dataclass(frozen=True)
class Scaling:
    """X grows like a power of a size, over several values of it: `exponent` in the coordinate `dim`, which `symbol`
    writes.

    `side` is "upper" where the power bounds X from above (an O, or a number of steps that suffices), "lower" for Ω, and
    "both" where the paper claims the exponent itself. `towards` is where the size goes: "large", or "small" for an α or
    an ε that goes to 0. For a one-sided bound only what happens in that direction counts. `tolerance` is how far an
    exponent may be off; it is ours. With `affine` (the words "linear in") the fit is X = a + b · size^exponent. `scale`
    is f over size^exponent where it is known, and the constant c is then reported.
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
        return AFFINE if self.affine else self._ends()[0]

    @property
    def high(self) -> float:
        """The largest exponent that agrees."""
        return np.inf if self.affine else self._ends()[1]

    def _ends(self) -> tuple[float, float]:
        low, high = self.exponent - self.tolerance, self.exponent + self.tolerance
        if self.side == "both":
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
            words = "too few seeds" if values.sizes["seed"] else "no seed has a number"
            return Finding(Outcome.open, f"open: {words}", nothing, (), "seed", details)
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
        outcome = _compare(found, *self._ends())
        if outcome is Outcome.fails and self.side != "both":
            outcome = Outcome.fails_in_scaling
        details["loose"] = float(outcome is Outcome.holds and abs(found.measured - self.exponent) > self.tolerance)
        return Finding(outcome, self._words(outcome, found, details), found, numbers, "seed", details)

    def _words(self, outcome: Outcome, found: Interval, details: Mapping[str, float]) -> str:
        against = f"exponent {_numbers(found)} in {self.symbol} against {self.exponent:.3g}"
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
        """How much of the variance a + b · size^exponent explains, seed by seed; b must have its sign."""
        rows = values.transpose("seed", self.dim).values
        if not np.isfinite(rows).all():
            missing = int((~np.isfinite(rows)).sum())
            words = f"open: {missing} of {rows.size} were never reached"
            return Finding(Outcome.open, words, Interval(np.nan, np.nan, np.nan, 0, len(rows)), (), "seed", details)
        power = sizes**self.exponent
        shares, slopes, starts = zip(*(_explained(power, row) for row in rows), strict=True)
        found = interval(np.array(shares), (-np.inf, 1.0))
        details |= {"slope": float(np.mean(slopes)), "offset": float(np.mean(starts))}
        outcome = _compare(found, AFFINE, np.inf)
        fit = f"{details['offset']:.3g} + {details['slope']:.3g} · {self.symbol}^{self.exponent:.3g}"
        words = f"{outcome}: {fit} explains {_numbers(found)} of the variance"
        return Finding(outcome, words, found, tuple(float(share) for share in shares), "seed", details)


def _explained(power: np.ndarray, row: np.ndarray) -> tuple[float, float, float]:
    """Share of the variance, slope and offset of an affine fit; a slope of the wrong sign explains nothing."""
    slope, start = np.polyfit(power, row, 1)
    spread = float(np.sum((row - row.mean()) ** 2))
    rest = float(np.sum((row - start - slope * power) ** 2))
    share = 1.0 - rest / spread if spread > 0 and slope > 0 else 0.0
    return share, float(slope), float(start)


def _reached(values: xr.DataArray, dim: str) -> int:
    """At how many sizes at least one seed has a finite positive number."""
    numbers = values.transpose(dim, "seed").values
    return int((np.isfinite(numbers) & (numbers > 0)).any(axis=1).sum())


def _interval(values: xr.DataArray, bounds: tuple[float, float]) -> tuple[Interval, str]:
    unit = unit_of(values)
    return estimator(unit)(values.values, bounds), unit


def _undecided(values: xr.DataArray, found: Interval) -> str:
    """Why nothing can be said; empty where something can."""
    unit = f"{unit_of(values)}s"
    never = int(np.isinf(values.values).sum())
    if never:
        return f"never reached by {never} of {values.size} {unit}"
    if found.seeds == 0:
        return f"no {unit[:-1]} has a number"
    return f"too few {unit}" if not (np.isfinite(found.low) and np.isfinite(found.high)) else ""


def _compare(found: Interval, low: float, high: float) -> Outcome:
    if low < found.low and found.high < high:
        return Outcome.holds
    return Outcome.fails if found.high <= low or found.low >= high else Outcome.open


def _numbers(found: Interval) -> str:
    return f"{found.measured:.3g} [{found.low:.3g}, {found.high:.3g}]"


def identical(tolerance: float) -> Range:
    """Two things are the same: their largest difference is below a floating-point tolerance."""
    return Range("identity", high=tolerance)


def below(value: float, kind: str = "value") -> Range:
    """The statistic is below a value that the paper states."""
    return Range(kind, high=value)


def above(value: float, kind: str = "value") -> Range:
    """The statistic is above a value that the paper states."""
    return Range(kind, low=value)


def within(low: float, high: float, kind: str = "value") -> Range:
    """The statistic lies between two values."""
    return Range(kind, low, high)


def larger(by: float = 0.0) -> Range:
    """A contrast or a trend is positive; `by` is the smallest effect that counts."""
    return Range("order", low=by)


def smaller(by: float = 0.0) -> Range:
    """A contrast or a trend is negative; `by` is the smallest effect that counts."""
    return Range("order", high=-by)


def suffices(value: float) -> Range:
    """Where the theorem's conditions are met, the worst loss or error stays below a value."""
    return Range("sufficiency", high=value)


def big_o(size: float) -> Bound:
    """X <= O(f), asked at one size."""
    return Bound(size)


def omega(size: float) -> Bound:
    """X >= Ω(f), asked at one size."""
    return Bound(size, upper=False)


def describe(rule: Any) -> dict[str, Any]:
    """A rule as it stands in claims.json."""
    return {"kind": rule.kind, "rule": str(rule), "rule_low": _plain(rule.low), "rule_high": _plain(rule.high)}


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

"""Kinds of statements, and what a run can conclude about each.

| kind | the paper says | judged by |
|---|---|---|
| identity | A = B | the largest difference against floating-point error |
| value | a printed number, "about 15 %" | the interval against the number with a stated tolerance |
| order | larger, grows with, better than | a contrast or a trend, by at least the smallest effect that counts |
| bound | X <= O(f), X >= Ω(f), "T = Θ(f) suffices" | the hidden constant c = X/f; over sizes, one-sided, its scaling |
| rate | "linear in", Θ(f) where tightness is claimed | the exponent, two-sided; affine fits for "linear in" |
| sufficiency | if (conditions) then small loss | the worst point inside the region |
| existence | there is a set L, a constant C | a search; the answer reports what it found |

A rule is data with one method, `judge`, which maps an array with one number per seed (per seed and size, if the rule is
about sizes) to a `Finding`. All of it is pure. An answer is given only if the interval over seeds allows one: a
statistic that was never reached, has too few seeds or straddles its rule is open, and so is a constant that one size
cannot tell from a failure.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr

from iclab.statistics import Interval, estimator, unit_of

KINDS = ("identity", "value", "order", "bound", "rate", "sufficiency", "existence")
EVERYWHERE = (-np.inf, np.inf)
FEW = "too few"  # the beginning of the only reason for saying nothing that more seeds remove


class Outcome(enum.StrEnum):
    """What a run says about a part of a statement."""

    holds = "holds"
    fails = "fails"
    fails_in_scaling = "fails in scaling"
    open = "open"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A result: the outcome, in words, the interval that decided, and the numbers per seed behind it.

    `details` are further numbers to report: a constant c, a predicted exponent, the range of sizes. `settled` is False
    if more seeds could decide: there are too few, all of them agree, or the interval crosses the rule.
    """

    outcome: Outcome
    words: str
    interval: Interval
    values: tuple[float, ...]
    unit: str = "seed"
    details: Mapping[str, float] = dataclasses.field(default_factory=dict)
    settled: bool = True


@runtime_checkable
class Rule(Protocol):
    """The rule that judges a part of a statement. A picture shows it at `low` and `high`."""

    @property
    def kind(self) -> str:
        """One of `KINDS`."""

    @property
    def low(self) -> float:
        """The lower end of the values that agree with the paper."""

    @property
    def high(self) -> float:
        """The upper end."""

    @property
    def dim(self) -> str | None:
        """The dimension of sizes in the rule; None if it takes one number per seed."""

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
        return _against(values, bounds, self.low, self.high, exact=self.kind == "identity")


@dataclasses.dataclass(frozen=True)
class Bound:
    """X <= O(f) or X >= Ω(f), tested at one size: `size` is f there.

    With a constant of 1 the bound holds or not. If it does not, one size cannot tell a larger constant from a failure.
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
        found = _against(values, bounds, self.low, self.high)
        if _undecided(values, found.interval):
            return found
        constant = found.interval.measured / self.size
        details = {"constant": constant}
        if found.outcome is Outcome.holds:
            return dataclasses.replace(found, words=f"holds with c ≈ {constant:.2g}", details=details)
        words = f"open: c ≈ {constant:.2g} at one size, which cannot tell a constant from a failure"
        return dataclasses.replace(found, outcome=Outcome.open, words=words, details=details)


def _against(
    values: xr.DataArray, bounds: tuple[float, float], low: float, high: float, *, exact: bool = False
) -> Finding:
    """Judge one number per seed against a range. If all seeds agree, an interval without a width says nothing about how
    often another value occurs, unless the statistic is `exact`.
    """
    unit = unit_of(values)
    found = estimator(unit)(values.values, bounds)
    numbers = tuple(float(value) for value in values.values)
    undecided = _undecided(values, found)
    if undecided:
        return Finding(Outcome.open, f"open: {undecided}", found, numbers, unit, settled=not undecided.startswith(FEW))
    outcome = compared(found, low, high)
    across = " crosses the rule" if outcome is Outcome.open else ""
    words = f"{outcome}: {in_numbers(found)}{across}"
    settled = outcome is not Outcome.open and (exact or found.low < found.high)
    return Finding(outcome, words, found, numbers, unit, settled=settled)


def _undecided(values: xr.DataArray, found: Interval) -> str:
    """The reason why nothing can be said; empty if something can."""
    unit = f"{unit_of(values)}s"
    never = int(np.isinf(values.values).sum())
    if never:
        return f"never reached by {never} of {values.size} {unit}"
    if found.seeds == 0:
        return f"no {unit[:-1]} has a number"
    return f"{FEW} {unit}" if not (np.isfinite(found.low) and np.isfinite(found.high)) else ""


def compared(found: Interval, low: float, high: float) -> Outcome:
    """The outcome of an interval against a range."""
    if low < found.low and found.high < high:
        return Outcome.holds
    return Outcome.fails if found.high <= low or found.low >= high else Outcome.open


def in_numbers(found: Interval) -> str:
    """The mean and its interval."""
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
    """If the theorem's conditions are met, the worst loss or error stays below a value."""
    return Range("sufficiency", high=value)


def big_o(size: float) -> Bound:
    """X <= O(f), tested at one size."""
    return Bound(size)


def omega(size: float) -> Bound:
    """X >= Ω(f), tested at one size."""
    return Bound(size, upper=False)


def describe(rule: Any) -> dict[str, Any]:
    """A rule as written in claims.json."""
    return {"kind": rule.kind, "rule": str(rule), "rule_low": _plain(rule.low), "rule_high": _plain(rule.high)}


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

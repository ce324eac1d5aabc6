"""Settings that a paper does not state, each with other values that are as plausible as our choice.

A specification curve (`iclab robust`) draws its points from these declarations: a list of equally plausible values, or
a range, uniform in the value or in its logarithm.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from iclab.errors import require


@dataclasses.dataclass(frozen=True)
class Between:
    """Any value from `low` to `high`, both included; with `log`, every factor is as plausible as every other.

    >>> Between(0.05, 0.2, log=True).value(0.5)
    0.1
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        require(
            finite and self.low < self.high,
            f"{self.low:g} to {self.high:g} is not a range; the first number must be smaller, and both finite.",
        )
        require(
            not self.log or self.low > 0, f"{self.low:g} to {self.high:g} is a logarithmic range; it must be positive."
        )

    def value(self, share: float) -> float:
        """The value at a share of the range, rounded to what a person would write."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        found = low + share * (high - low)
        return float(f"{math.exp(found) if self.log else found:.4g}")

    def share(self, value: float) -> float:
        """The inverse of `value`; below 0 or above 1 outside the range."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        return (self._scaled(value) - low) / (high - low)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{' (log)' * self.log}"

    def _scaled(self, value: float) -> float:
        if not self.log:
            return value
        return math.log(value) if value > 0 else -math.inf


def shown(value: Any) -> str:
    """The value of a setting as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclasses.dataclass(frozen=True)
class Unstated:
    """A setting that the paper does not state. `letter` is the paper's, `source` says why these values are plausible.

    Settings named in `along` always take the same value as this one: they are one choice.
    """

    setting: str
    plausible: Between | tuple[Any, ...]
    letter: str = ""
    source: str = ""
    along: tuple[str, ...] = ()

    def value(self, share: float, like: Any) -> Any:
        """The plausible value at a share in [0, 1) of all; a whole number if the setting is one."""
        if isinstance(self.plausible, Between):
            found = self.plausible.value(share)
            return round(found) if isinstance(like, int) else found
        return self.plausible[min(int(share * len(self.plausible)), len(self.plausible) - 1)]

    def share(self, value: Any) -> float:
        """The place of a value among the plausible ones, from 0 to 1; NaN if it is not in a list."""
        if isinstance(self.plausible, Between):
            return self.plausible.share(float(value))
        if value not in self.plausible:
            return math.nan
        return self.plausible.index(value) / max(1, len(self.plausible) - 1)

    def others(self, taken: Any) -> tuple[Any, ...]:
        """Values to try alone: the others of a list, or the ends of a range."""
        if isinstance(self.plausible, Between):
            ends = (self.value(0.0, taken), self.value(1.0, taken))
            return tuple(end for end in dict.fromkeys(ends) if end != taken)
        return tuple(value for value in self.plausible if value != taken)

    @property
    def values(self) -> str:
        """The plausible values in words."""
        return str(self.plausible) if isinstance(self.plausible, Between) else ", ".join(map(shown, self.plausible))

    def __str__(self) -> str:
        letter = f", {self.letter}" if self.letter else ""
        return f"{self.setting}{letter} (plausible: {self.values}){': ' if self.source else ''}{self.source}"

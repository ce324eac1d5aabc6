"""A theorem as data: conditions that hold or fail by a factor, and rates with their exponents.

A paper's module has a frozen dataclass `Symbols`, the numbers in its theorems under the names of the settings, each
with the paper's letter, and `theorems(symbols, constant)`. Every Ω, O, Θ, ≳, ≲ hides a constant: the parameter
`constant`, the same everywhere and 1 by default. Thresholds are `constant` times the expression in the brackets.
Inequalities that the paper writes without such a sign get no constant.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from iclab.errors import require

ALMOST = 1e-9  # an equality up to rounding satisfies >= and <=
STEP = 1e-5  # relative change by which local exponents are measured


@dataclasses.dataclass(frozen=True)
class Condition:
    """`value` must lie on `side` (one of >=, >, <=, <) of `threshold`."""

    name: str
    formula: str
    side: str
    value: float
    threshold: float

    @property
    def satisfied(self) -> bool:
        """Does it hold?"""
        if self.side == ">=":
            return self.value >= self.threshold - ALMOST * abs(self.threshold)
        if self.side == "<=":
            return self.value <= self.threshold + ALMOST * abs(self.threshold)
        return self.value > self.threshold if self.side == ">" else self.value < self.threshold

    @property
    def factor(self) -> float:
        """The factor by which it holds: above 1 it does; 0.1 means that a factor of 10 is missing."""
        have, need = (self.value, self.threshold) if self.side in (">=", ">") else (self.threshold, self.value)
        if math.isnan(have) or math.isnan(need):
            return math.nan
        if need <= 0 or math.isinf(have):
            return math.inf if self.satisfied else 0.0
        return max(have, 0.0) / need


def at_least(name: str, formula: str, value: float, threshold: float) -> Condition:
    """value >= threshold."""
    return Condition(name, formula, ">=", float(value), float(threshold))


def at_most(name: str, formula: str, value: float, threshold: float) -> Condition:
    """value <= threshold."""
    return Condition(name, formula, "<=", float(value), float(threshold))


def below(name: str, formula: str, value: float, threshold: float) -> Condition:
    """value < threshold."""
    return Condition(name, formula, "<", float(value), float(threshold))


def above(name: str, formula: str, value: float, threshold: float) -> Condition:
    """value > threshold."""
    return Condition(name, formula, ">", float(value), float(threshold))


@dataclasses.dataclass(frozen=True)
class Rate:
    """A predicted law.

    `exponents` are the powers as the paper writes them, by name of a symbol (or of a quantity derived from symbols,
    such as 1 - p_a); logarithms and other factors are not in them. `local` are the slopes d log value / d log symbol at
    these settings, with everything in them: what a log-log fit over a narrow range would measure.
    """

    name: str
    formula: str
    value: float
    exponents: dict[str, float]
    local: dict[str, float]
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Theorem:
    """A theorem of a paper. `id` has the form of a statement's id, `source` is its name in the paper."""

    id: str
    source: str
    statement: str
    conditions: tuple[Condition, ...] = ()
    rates: tuple[Rate, ...] = ()

    @property
    def paper(self) -> str:
        """The id of the paper."""
        return self.id.partition("/")[0]

    @property
    def satisfied(self) -> bool:
        """Do all conditions hold?"""
        return all(condition.satisfied for condition in self.conditions)

    def rate(self, name: str) -> Rate:
        """The rate of this name."""
        return next(rate for rate in self.rates if rate.name == name)

    def condition(self, name: str) -> Condition:
        """The condition of this name."""
        return next(condition for condition in self.conditions if condition.name == name)


@dataclasses.dataclass(frozen=True)
class SymbolsBase:
    """The numbers in a paper's theorems. `DERIVED` names properties that are symbols too, with their letters."""

    DERIVED: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def letters(cls) -> dict[str, str]:
        """The paper's letter of every symbol."""
        return {field.name: field.metadata["letter"] for field in dataclasses.fields(cls)} | dict(cls.DERIVED)


def symbol(letter: str) -> Any:
    """A field of `Symbols` with the paper's letter."""
    return dataclasses.field(metadata={"letter": letter})


def shared(symbols: type[SymbolsBase], settings: Any) -> dict[str, Any]:
    """The symbols that are settings of the same name, with their values."""
    names = [field.name for field in dataclasses.fields(symbols)]
    return {name: getattr(settings, name) for name in names if hasattr(settings, name)}


def inverse(value: float) -> float:
    """1/value, infinite at and below zero: no bound."""
    return 1.0 / value if value > 0 else math.inf


def require_open_fraction(symbols: SymbolsBase, *names: str) -> None:
    """Refuse symbols outside (0, 1)."""
    for name in names:
        value = getattr(symbols, name)
        require(0 < value < 1, f"{name} is {value}; it must lie in (0, 1).")


def require_above(limit: float, symbols: SymbolsBase, *names: str) -> None:
    """Refuse symbols that are not above the limit."""
    for name in names:
        value = getattr(symbols, name)
        require(value > limit, f"{name} is {value}; it must be above {limit:g}.")


def rate(
    name: str,
    formula: str,
    symbols: Any,
    powers: Mapping[str, float] | None = None,
    factor: Callable[[Any], float] = lambda symbols: 1.0,
    constant: float = 1.0,
    note: str = "",
) -> Rate:
    """constant · factor(symbols) · Π symbol^power; the exponents shown are those used."""
    powers = dict(powers or {})

    def value_at(at: Any) -> float:
        value = constant * factor(at)
        for key, power in powers.items():
            base = float(getattr(at, key))
            if base <= 0:
                value = math.inf if power < 0 else 0.0
                break
            value *= base**power
        return float(value)

    return Rate(name, formula, value_at(symbols), powers, _local(value_at, symbols), note)


def law(
    name: str, formula: str, factor: Callable[[Any], float] = lambda symbols: 1.0, note: str = "", **powers: float
) -> Callable[..., Rate]:
    """A rate as a function of the symbols and of the hidden constant, for conditions and theorems that share it."""
    return lambda symbols, constant=1.0: rate(name, formula, symbols, powers, factor, constant, note)


def _local(f: Callable[[Any], float], symbols: Any) -> dict[str, float]:
    """Logarithmic derivatives of f in every field that it depends on, by central differences."""
    slopes = {}
    for field in dataclasses.fields(symbols):
        value = getattr(symbols, field.name)
        if isinstance(value, bool) or value == 0:
            continue
        changed = [f(dataclasses.replace(symbols, **{field.name: value * math.exp(sign * STEP)})) for sign in (-1, 1)]
        if all(0 < part < math.inf for part in changed):
            slope = math.log(changed[1] / changed[0]) / (2 * STEP)
            if abs(slope) > 1e-6:
                slopes[field.name] = slope
    return slopes

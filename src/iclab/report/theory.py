"""The tables of `iclab theory`: a theorem's conditions and rates at the current settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from iclab.theorems import Condition, Rate, SymbolsBase, Theorem

SIGNS = str.maketrans({"-": "−"})


def number(value: float) -> str:
    """Three digits, and whole numbers in full up to a million.

    >>> number(2000), number(155424.4), number(3.1e6), number(0.13889)
    ('2000', '155424', '3.1e+06', '0.139')
    """
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def print_symbols(console: Console, paper: str, profile: str, symbols: SymbolsBase) -> None:
    """Print the current numbers, by the paper's letters."""
    parts = [f"{letter} = {number(getattr(symbols, name))}" for name, letter in type(symbols).letters().items()]
    console.print(f"[bold]{paper}[/], {profile} settings: [dim]{escape(', '.join(parts))}[/]", highlight=False)


def print_theorem(console: Console, theorem: Theorem, letters: Mapping[str, str]) -> None:
    """Print heading, statement, conditions (failures in red, with the missing factor) and rates with exponents."""
    held = sum(condition.satisfied for condition in theorem.conditions)
    count = f"{held} of {len(theorem.conditions)} conditions hold" if theorem.conditions else "no conditions"
    console.print()
    console.print(f"[bold]{theorem.id}[/]  {escape(theorem.source)}  [dim]({count})[/]", highlight=False)
    console.print(escape(theorem.statement), style="italic", highlight=False)
    if theorem.conditions:
        console.print(_conditions(theorem.conditions))
    if theorem.rates:
        console.print()
        console.print(_rates(theorem.rates, letters))


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="dim")
    for name in columns:
        table.add_column(name, justify="right" if name in ("value", "bound") else "left", overflow="fold")
    return table


def _conditions(conditions: tuple[Condition, ...]) -> Table:
    table = _table("", "condition", "as stated", "value", "bound", "")
    for entry in conditions:
        mark, colour = ("✓", "green") if entry.satisfied else ("✗", "red")
        table.add_row(
            f"[{colour}]{mark}[/]", escape(entry.name), escape(pretty(entry.formula)), number(entry.value),
            f"{pretty(entry.side)} {number(entry.threshold)}", f"[{colour}]{verdict(entry)}[/]",
        )  # fmt: skip
    return table


def verdict(condition: Condition) -> str:
    """The state of a condition, in words.

    >>> verdict(Condition("", "", ">=", 300.0, 30.0)), verdict(Condition("", "", "<=", 2.0, 1.0))
    ('10 times over', 'fails by 2×')
    """
    factor = condition.factor
    if condition.satisfied:
        return "holds" if math.isinf(factor) else "just holds" if factor < 1.005 else f"{number(factor)} times over"
    return f"fails by {number(1 / factor)}×" if 0 < factor < 0.995 else "fails"


def _rates(rates: tuple[Rate, ...], letters: Mapping[str, str]) -> Table:
    local = [slopes(entry, letters) for entry in rates]
    table = _table("rate", "law", "value", "exponents", *["local slopes"] * any(local))
    for entry, slope in zip(rates, local, strict=True):
        law = escape(pretty(entry.formula)) + (f"\n[dim]{escape(entry.note)}[/]" if entry.note else "")
        cells = (escape(entry.name), law, number(entry.value), exponents(entry, letters), slope)
        table.add_row(*cells[: len(table.columns)])
    return table


def exponents(entry: Rate, letters: Mapping[str, str]) -> str:
    """The stated powers, as fractions."""
    powers = {name: Fraction(power).limit_denominator(12) for name, power in entry.exponents.items()}
    return ", ".join(f"{letters[name]}:{power}" for name, power in powers.items()).translate(SIGNS)


def slopes(entry: Rate, letters: Mapping[str, str]) -> str:
    """The local slopes that differ from the stated powers: those with logarithms or sums in them."""
    other = {name: slope for name, slope in entry.local.items() if abs(slope - entry.exponents.get(name, 0.0)) > 1e-3}
    return ", ".join(f"{letters[name]}:{slope:.2f}" for name, slope in other.items()).translate(SIGNS)


def pretty(formula: str) -> str:
    """The formula with typographic signs."""
    return formula.replace(">=", "≥").replace("<=", "≤").translate(SIGNS)

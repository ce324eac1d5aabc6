"""The one exception a user can cause: bad input, answered with one clear sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np


class InputError(ValueError):
    """Says what was wrong, where, and what is allowed. The command line prints it and exits with status 2."""


def require(condition: bool | np.bool_, sentence: str) -> None:
    """Raise `InputError` with this sentence unless the condition holds."""
    if not condition:
        raise InputError(sentence)


def require_fraction(name: str, value: float) -> None:
    """Refuse a fraction outside [0, 1]."""
    require(0.0 <= float(value) <= 1.0, f"{name} is {value}; a fraction must lie in [0, 1].")


def require_positive(**sizes: float) -> None:
    """Refuse sizes that are zero or negative, naming the first one."""
    for name, value in sizes.items():
        require(value > 0, f"{name} is {value}; it must be positive.")


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion for a mistyped word, as the end of a sentence."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    return f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known)}."

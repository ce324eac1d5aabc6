"""The one exception that a user can cause: bad input, answered in one clear sentence."""

from __future__ import annotations

import dataclasses
import difflib
import math
import traceback
from collections.abc import Iterable
from typing import Any

SHOWN = 20  # known words to list if none is similar


class InputError(ValueError):
    """Says what is wrong, where, and what is allowed. The command line prints it and exits with status 2.

    `frames` holds the lines of the user's file that led to the error, printed below the sentence.
    """

    frames: str = ""


class PackageWarning(UserWarning):
    """An installed package registers something that cannot be used."""


def require(condition: object, sentence: str) -> None:
    """Raise `InputError` with this sentence unless the condition holds."""
    if not condition:
        raise InputError(sentence)


def require_fraction(name: str, value: float) -> None:
    """Refuse a fraction outside [0, 1]."""
    require(0.0 <= float(value) <= 1.0, f"{name} is {value}; a fraction must lie in [0, 1].")


def require_finite(**values: Any) -> None:
    """Refuse numbers (or arrays of them) that are infinite or not a number, naming the first one."""
    import numpy as np  # here, as every command imports this module and few need numbers

    for name, value in values.items():
        require(np.all(np.isfinite(np.asarray(value, float))), f"{name} is {value}; it must be a finite number.")


def require_positive(**sizes: float) -> None:
    """Refuse sizes that are zero or negative, naming the first one."""
    for name, value in sizes.items():
        require(value > 0, f"{name} is {value}; it must be positive.")
        require(value < math.inf, f"{name} is {value}; it must be finite.")


def require_settings(settings: Any, fractions: Iterable[str] = (), zero: Iterable[str] = ()) -> None:
    """Refuse settings that make no sense, naming the first one.

    Numbers must be positive and fractions in (0, 1]; settings in `zero` may be 0, and so may the seed of a basis.
    `record_every` must not exceed `steps`, or nothing would be recorded during training.
    """
    fractions, zero = set(fractions), set(zero)
    for field in dataclasses.fields(settings):
        name, value = field.name, getattr(settings, field.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if name in zero or name == "basis_seed":
            require(value >= 0, f"{name} is {value}; it must not be negative.")
        else:
            require_positive(**{name: value})
        if name in fractions:
            require(value <= 1, f"{name} is {value}; a fraction must lie in (0, 1].")
    every, steps = getattr(settings, "record_every", 0), getattr(settings, "steps", math.inf)
    require(
        every <= steps, f"record_every is {every}, but steps is {steps}: nothing would be recorded during training."
    )


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion for a mistyped word, as a sentence."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known[:SHOWN])}{more}."


def in_words(error: BaseException) -> str:
    """The type and first line of an error; only the sentence if it is bad input."""
    if isinstance(error, InputError):
        return str(error)
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def line_in(file: str, error: BaseException) -> str:
    """ ", line 12": the innermost line of this file that an error went through; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f", line {lines[-1]}" if lines else ""

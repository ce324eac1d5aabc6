"""What a check found, and what to do about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from iclab.errors import in_words, line_in


@dataclasses.dataclass(frozen=True)
class Finding:
    """One check of one part ("world Regression"): whether it passed, what it saw, and what to do if it failed."""

    part: str
    check: str
    passed: bool
    words: str
    remedy: str = ""


class Failure(Exception):
    """A check did not pass."""

    def __init__(self, words: str, remedy: str) -> None:
        super().__init__(words)
        self.words, self.remedy = words, remedy


def demand(condition: object, words: str, remedy: str) -> None:
    """Fail the check with these words unless the condition holds."""
    if not condition:
        raise Failure(words, remedy)


def close(one: Any, other: Any) -> bool:
    """Whether two arrays agree up to the order of summation in float32; NaN equals NaN."""
    return np.allclose(one, other, rtol=2e-3, atol=1e-4, equal_nan=True)


def attempt(part: str, check: str, body: Callable[[], str], file: str) -> Finding:
    """Run a check; `body` returns what it saw. An error is explained, with the line of the user's file."""
    try:
        return Finding(part, check, True, body())
    except Failure as failure:
        return Finding(part, check, False, failure.words, failure.remedy)
    except Exception as error:
        words, remedy = explain(error)
        where = line_in(file, error)
        return Finding(part, check, False, f"{file}{where}: {words}" if where else words, remedy)


SHAPE = (
    "A field that decides a shape must be fixed when the program is compiled: declare it as `length: int = "
    "static(20)`. For sizes that vary inside one program, use masks (`present`) instead of shapes."
)
BRANCH = (
    "Inside `sample`, a model or a probe, `if`, `while`, `int()` and `float()` cannot use a traced value: use "
    "jnp.where."
)
EXPLANATIONS: tuple[tuple[type[BaseException], str, str], ...] = (
    (
        jax.errors.TracerBoolConversionError,
        "a Python `if` or `while` needs the value of a traced number.",
        BRANCH,
    ),
    (jax.errors.NonConcreteBooleanIndexError, "an array is indexed by a mask, so its size would depend on values.",
     "Keep all tokens and multiply by the mask, or use jnp.where(mask, value, 0)."),
    (jax.errors.TracerArrayConversionError, "a NumPy function got a traced value.",
     "Use jax.numpy (jnp) in place of numpy (np) wherever a prompt, a key or a traced setting is involved."),
    (jax.errors.TracerIntegerConversionError, "a traced number is used where Python needs a whole number.", SHAPE),
    (jax.errors.UnexpectedTracerError, "a traced value is used after the function that made it has ended.",
     "Return every value; do not store it in a global variable or in an object."),
    (dataclasses.FrozenInstanceError, "a field is assigned a value, but worlds and models are frozen.",
     "Compute the value where it is needed, or return a new object (dataclasses.replace)."),
    (
        jax.errors.ConcretizationTypeError,
        "a traced number is used where Python needs its value.",
        f"{SHAPE} {BRANCH}",
    ),
    (NotImplementedError, "something is not defined.", "Write the method that the message names."),
)  # fmt: skip


def explain(error: Exception) -> tuple[str, str]:
    """An error in words, and the usual remedy if there is one."""
    text = str(error)
    if isinstance(error, TypeError) and "Shapes must be 1D sequences of concrete values" in text:
        return "a traced number is used as a shape.", SHAPE
    if isinstance(error, TypeError) and "unhashable" in text:
        return in_words(error), "A static field must be hashable: a number, a text or a tuple, not a list or an array."
    for kind, words, remedy in EXPLANATIONS:
        if isinstance(error, kind):
            return (words if kind is not NotImplementedError else in_words(error)), remedy
    return in_words(error), "Correct the line that the message names, then check again."

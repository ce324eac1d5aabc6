"""Word tasks as data: one file per task, one example per line, its words separated by tabs.

A model answers with the next token, so an example counts if every word after the first is one token of the model's
vocabulary (with the space before it). Examples are split once: nothing is chosen on those that test the claims.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable
from importlib import resources

import numpy as np

from iclab.errors import InputError, nearest, require

Example = tuple[str, ...]
"""A query, what lies between, and the answer last."""

WORD_TASKS = ("country-capital", "country-language", "singular-plural", "present-past", "antonym")
LABEL_TASKS = ("sentiment", "animal-thing")
TWO_STEP_TASKS = ("city-country-currency", "city-country-language")
MEANINGLESS = ("X", "Y")  # labels that say nothing, for the task whose answer no knowledge of the words gives


@dataclasses.dataclass(frozen=True)
class Task:
    """A task's examples: `held_out` ones to choose on and demonstrate with, and others to test on."""

    name: str
    held_out: tuple[Example, ...]
    test: tuple[Example, ...]


@functools.cache
def examples(name: str) -> tuple[Example, ...]:
    """All examples of a task's file."""
    folder = resources.files("iclab.language") / "words"
    known = sorted(path.name.removesuffix(".txt") for path in folder.iterdir() if path.name.endswith(".txt"))
    if name not in known:
        raise InputError(f"there is no word task {name!r}. {nearest(name, known)}")
    lines = (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(tuple(line.split("\t")) for line in lines if line and not line.startswith("#"))


def split(name: str, is_one_token: Callable[[str], bool], tested: int, most: int | None = None) -> Task:
    """The examples whose later words are single tokens; `tested` of them to test on, the others held out (`most` at
    most).
    """
    usable = [example for example in examples(name) if all(is_one_token(word) for word in example[1:])]
    order = generator("split", name).permutation(len(usable))
    shuffled = [usable[index] for index in order]
    words = (
        f"{name} has {len(usable)} examples whose answers are single tokens of this model; {tested} to test "
        "on and at least"
    )
    require(len(usable) >= tested + 16, f"{words} 16 to choose on are needed.")
    return Task(name, tuple(shuffled[tested:][:most]), tuple(shuffled[:tested]))


def generator(*what: str | int) -> np.random.Generator:
    """A random stream that depends only on its purpose."""
    return np.random.default_rng(zlib.crc32("/".join(map(str, what)).encode()))

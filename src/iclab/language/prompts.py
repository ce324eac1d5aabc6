"""Prompts of lines: `word -> answer` for every demonstration, then the query's word and the arrow.

Words have a space before them and every prompt begins with a new line, so that a word always has the same tokens.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from iclab.language.network import LanguageModel
from iclab.language.words import Example

SEPARATORS = (" ->", ":", " =")


@dataclasses.dataclass(frozen=True)
class WordPrompt:
    """Tokens, and which demonstration each belongs to (-1: none, the query)."""

    tokens: tuple[int, ...]
    owner: tuple[int, ...]


def few_shot(
    model: LanguageModel, demonstrations: Sequence[Sequence[str]], query: Sequence[str], separator: str
) -> WordPrompt:
    """Demonstrations as lines of words, and a last line with the query's words so far and the separator."""
    tokens, owner = list(model.start), [-1] * len(model.start)
    between = model.tokens(separator)

    def add(pieces: Sequence[int], number: int) -> None:
        tokens.extend(pieces)
        owner.extend([number] * len(pieces))

    for number, words in enumerate(demonstrations):
        for index, word in enumerate(words):
            if index:
                add(between, number)
            add(model.tokens(f" {word}"), number)
        add(model.new_line, number)
    for word in query:
        add(model.tokens(f" {word}"), -1)
        add(between, -1)
    return WordPrompt(tuple(tokens), tuple(owner))


def word_alone(model: LanguageModel, word: str) -> tuple[int, ...]:
    """A line that is one word, without an arrow."""
    return (*model.start, *model.tokens(f" {word}"))


def draw(
    random: np.random.Generator, pool: Sequence[Example], count: int, without: Example, distinct: int | None = None
) -> list[Example]:
    """Draw demonstrations from the pool, without the query and examples that share its word number `distinct`."""
    allowed = [
        example
        for example in pool
        if example[0] != without[0] and (distinct is None or example[distinct] != without[distinct])
    ]
    return [allowed[index] for index in random.choice(len(allowed), count, replace=False)]


def deranged(random: np.random.Generator, examples: Sequence[Example]) -> list[Example]:
    """The same queries with permuted answers: no line keeps its own."""
    shift = int(random.integers(1, len(examples)))
    return [(*one[:-1], examples[(index + shift) % len(examples)][-1]) for index, one in enumerate(examples)]

"""A specification curve: one statement at many plausible settings that its paper leaves open, and the summary.

Points are drawn by a low-discrepancy sequence over the settings that the paper does not state and over the statement's
readings (Simonsohn, Simmons, Nelson: Specification curve analysis, Nature Human Behaviour 4, 2020). Our own choice, and
points that change one setting of it, are added. The curve answers:

- the share of plausible settings in which the statement holds, with Wilson's interval
- which setting decides: the share of the variance of "holds" that a setting alone explains, from the points at hand
  (Plischke, Borgonovo, Smith: European Journal of Operational Research 226, 2013; computed by SALib). A setting
  decides where that is more than the largest share of any setting in 95 of 100 random orders of the answers
- the smallest change of our own choice that gives another answer
- for every hypothesis of its theorem: how far it is violated somewhere, and whether the statement holds there

Settings that need a separate compiled program (a width, a batch) change by blocks of points, as in a split-plot design;
points of a block with equal answers count for less, in the interval and in the random orders.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.stats.qmc

from iclab.errors import InputError, require
from iclab.settings import value_of
from iclab.statistics import wilson
from iclab.unstated import Unstated, shown

READING = "reading"  # what the choice of a reading is called among the settings
CLASSES = 4  # of equal size, into which the values of a range are cut
ORDERS = 200  # random ones, to know what chance explains
CHANCE = 0.95
TRIES = 16  # times the number of points that is drawn at most, where settings refuse some
BLOCK = 4  # points, at least, that share the settings which need a program of their own
BLOCKS = 16  # of them, at most: more would be spent on compiling


@dataclasses.dataclass(frozen=True)
class Point:
    """What a point changes in the settings, and which reading of every statement it takes: a share in [0, 1) of all of
    them, or the number of one.

    `alone` names the setting that a point changes alone; it is empty for points of the sequence, and our own choice is
    `DEFAULT`. Points of a `block` have the settings in common that need a program of their own.
    """

    number: int
    changes: Mapping[str, Any]
    reading: float | int = 0
    alone: str = ""
    block: int = 0

    def pick(self, count: int) -> int | None:
        """Which of so many readings it takes; None if there is no such one."""
        if isinstance(self.reading, int):
            return self.reading if self.reading < count else None
        return min(int(self.reading * count), count - 1)


DEFAULT = "our own choice"


def design(
    dimensions: Sequence[Unstated],
    settings: Any,
    count: int,
    readings: int = 1,
    check: Callable[[Mapping[str, Any]], object] = lambda changes: None,
    hard: Collection[str] = (),
) -> list[Point]:
    """Our own choice, single changes of it, and so many points of a Sobol sequence; the same ones every time.

    `readings` is the largest number of readings of a statement. `check` refuses what cannot be run: such points are
    left out, and the sequence goes on until there are enough. Settings that are `hard` to change do so by blocks.
    """
    require(count >= 1, f"--points is {count}; it must be at least 1.")
    require(
        bool(dimensions) or readings > 1, "there is nothing to vary: the paper leaves no setting and no reading open."
    )
    taken = {one.setting: value_of(settings, one.setting) for one in dimensions}
    own = _tied(dimensions, taken)
    found = [Point(0, own, 0, DEFAULT)]
    for one in dimensions:
        for value in one.others(taken[one.setting]):
            changes = own | _tied([one], {one.setting: value})
            if _refused(check, changes) is None:
                found.append(Point(len(found), changes, 0, one.setting))
    found += [Point(len(found) + number - 1, own, number, READING) for number in range(1, readings)]
    blocks = max(1, min(BLOCKS, count // BLOCK))
    slow = _sequence(len(dimensions), blocks, seed=1)
    drawn: list[Point] = []
    refused: InputError | None = None
    for shares in _sequence(len(dimensions) + 1, TRIES * count, seed=0):
        block = len(drawn) * blocks // count  # neighbours of the sequence, which differ in all that is easy
        values = {
            one.setting: one.value(float(by_block if one.setting in hard else share), taken[one.setting])
            for one, share, by_block in zip(dimensions, shares[1:], slow[block], strict=True)
        }
        changes = _tied(dimensions, values)
        error = _refused(check, changes)
        refused = error or refused
        if error is None:
            drawn.append(Point(len(found) + len(drawn), changes, float(shares[0]), block=block))
        if len(drawn) == count:
            return found + drawn
    raise InputError(f"only {len(drawn)} of {TRIES * count} points can be run: {refused}")


def _tied(dimensions: Sequence[Unstated], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, and the same ones for the settings that go along with theirs."""
    return {name: values[one.setting] for one in dimensions for name in (one.setting, *one.along)}


def _refused(check: Callable[[Mapping[str, Any]], object], changes: Mapping[str, Any]) -> InputError | None:
    try:
        check(changes)
    except InputError as error:
        return error
    return None


def _sequence(dimensions: int, count: int, seed: int) -> np.ndarray:
    """At least so many points of a scrambled Sobol sequence, from a fixed seed."""
    return scipy.stats.qmc.Sobol(max(1, dimensions), seed=seed).random_base2(math.ceil(math.log2(count)))


@dataclasses.dataclass(frozen=True)
class Share:
    """In how many of so many points a statement holds, with an interval of their share."""

    held: int
    points: int
    low: float
    high: float

    @classmethod
    def of(cls, held: Sequence[bool], blocks: Sequence[int]) -> Share:
        """Of these points, each in a block.

        >>> Share.of([True, True, False, False], [0, 0, 1, 1])
        Share(held=2, points=4, low=0.09453120573423074, high=0.9054687942657693)
        """
        if not held:
            return cls(0, 0, 0.0, 1.0)
        low, high = wilson(sum(held) / len(held), len(held) / _alike(np.array(held, float), np.array(blocks)))
        return cls(sum(held), len(held), low, high)

    def __str__(self) -> str:
        if not self.points:
            return "at no point"
        within = f"[{100 * self.low:.0f}, {100 * self.high:.0f}]"
        return f"{100 * self.held / self.points:.0f} % {within} of {self.points} plausible settings"


def _alike(held: np.ndarray, blocks: np.ndarray) -> float:
    """By how much fewer points count because those of a block answer alike: Kish's design effect, 1 where they do not,
    from the correlation inside of blocks (one-way analysis of variance).
    """
    groups = [held[blocks == block] for block in np.unique(blocks)]
    count, size = len(groups), len(held) / len(groups)
    if count < 2 or size <= 1 or np.ptp(held) == 0:
        return 1.0
    between = sum(len(group) * (group.mean() - held.mean()) ** 2 for group in groups) / (count - 1)
    inside = sum(((group - group.mean()) ** 2).sum() for group in groups) / max(1, len(held) - count)
    correlation = (between - inside) / (between + (size - 1) * inside)
    return float(1 + (size - 1) * max(0.0, correlation))


@dataclasses.dataclass(frozen=True)
class Influence:
    """How much of the variance of the answers a setting explains alone, and how much chance would explain."""

    setting: str
    explained: float
    by_chance: float

    @property
    def decides(self) -> bool:
        """More than chance would."""
        return self.explained > self.by_chance


def influences(
    columns: Mapping[str, Sequence[Any]], answers: Sequence[float], blocks: Sequence[int]
) -> list[Influence]:
    """What each setting (a column with one value per point) explains of the answers, the largest first.

    >>> size, other = [1, 1, 1, 1, 5, 5, 5, 5] * 8, [0, 1] * 32
    >>> found = influences({"other": other, "size": size}, [x > 1 for x in size], list(range(64)))
    >>> [(one.setting, one.decides) for one in found]
    [('size', True), ('other', False)]
    """
    from SALib.analyze.delta import sobol_first  # imported where it is used: it takes pandas half a second

    outcome, within = np.asarray(answers, float), np.asarray(blocks)
    ranked = {name: classes for name, values in columns.items() if len((classes := _classes(values))[1]) > 2}
    if not ranked or np.ptp(outcome) == 0:
        return [Influence(name, 0.0, 1.0) for name in ranked]
    slow = {name: all(len(set(numbers[within == b])) == 1 for b in blocks) for name, (numbers, _) in ranked.items()}

    def explained(answers: np.ndarray) -> dict[str, float]:
        return {name: float(sobol_first(answers, numbers, cuts)) for name, (numbers, cuts) in ranked.items()}

    random = np.random.default_rng(0)
    tried = [explained(_shuffled(outcome, within, random)) for _ in range(ORDERS)]
    limits = {
        kind: float(np.quantile([max(one[name] for name in ranked if slow[name] is kind) for one in tried], CHANCE))
        for kind in set(slow.values())
    }
    found = [Influence(name, share, limits[slow[name]]) for name, share in explained(outcome).items()]
    return sorted(found, key=lambda one: -one.explained)


def _shuffled(answers: np.ndarray, blocks: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The answers in another order: blocks change places as a whole, and points inside of them."""
    places = [np.flatnonzero(blocks == block) for block in np.unique(blocks)]
    mixed = np.concatenate([random.permutation(answers[places[number]]) for number in random.permutation(len(places))])
    found = np.empty_like(answers)
    found[np.concatenate(places)] = mixed
    return found


def _classes(values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Values as numbers, and the ranks between which classes lie: every value its own, or quarters of a range."""
    known = sorted(set(values), key=lambda value: (str(type(value)), value))
    numbers = np.array([known.index(value) for value in values], float)
    if len(known) <= CLASSES:
        counts = [sum(numbers == number) for number in range(len(known))]
        return numbers, np.cumsum([0, *counts]).astype(float)
    return numbers, np.linspace(0, len(values), CLASSES + 1)


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of one setting that gives another answer."""

    setting: str
    before: Any
    after: Any
    answer: str

    def __str__(self) -> str:
        if self.setting == READING:
            return f"{self.answer} if read as {self.after or 'stated'}"
        return f"{self.answer} with {self.setting} {shown(self.after)} instead of {shown(self.before)}"


def smallest_change(
    dimensions: Sequence[Unstated],
    own: tuple[Mapping[str, Any], str],
    alone: Sequence[tuple[str, Mapping[str, Any], str]],
) -> Change | None:
    """Of the single changes (name, values, answer), the one with another answer than our `own` choice (values, answer)
    that is smallest against the range of plausible values; readings come last. None if there is none.
    """
    declared = {one.setting: one for one in dimensions}
    values, answer = own
    found = []
    for name, there, other in alone:
        if other == answer:
            continue
        one = declared.get(name)
        distance = abs(one.share(there[name]) - one.share(values[name])) if one else math.inf
        found.append((distance if distance == distance else 1.0, Change(name, values[name], there[name], other)))
    return min(found, key=lambda pair: pair[0])[1] if found else None


@dataclasses.dataclass(frozen=True)
class Edge:
    """A hypothesis of a theorem beyond its edge: at how many points it is violated, by what factor at most, and at how
    many of these the statement holds all the same.
    """

    condition: str
    violated: int
    held: int
    farthest: float
    farthest_held: float

    def __str__(self) -> str:
        if not self.held:
            return f"{self.condition}: violated at {self.violated} points, and it holds at none of them"
        also = f", also where a factor {1 / self.farthest_held:.3g} is missing" if self.farthest_held else ""
        return f"{self.condition}: violated at {self.violated} points, and it holds at {self.held} of them{also}"


def edges(factors: Sequence[Mapping[str, float]], held: Sequence[bool]) -> list[Edge]:
    """For every hypothesis that is violated somewhere: `factors` says point by point how many times over each one is
    met.
    """
    names = dict.fromkeys(name for one in factors for name in one)
    found = []
    for name in names:
        outside = [(one[name], holds) for one, holds in zip(factors, held, strict=True) if one.get(name, 1.0) < 1.0]
        if outside:
            kept = [factor for factor, holds in outside if holds]
            least = min(factor for factor, _ in outside)
            found.append(Edge(name, len(outside), len(kept), least, min(kept, default=0.0)))
    return found

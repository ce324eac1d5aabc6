"""What a statement depends on and what it costs, found from the requests of its experiments; nothing is computed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from iclab.authoring.paper import Paper
from iclab.engine import EndedError, EvaluationRequest, Report, TrainingRequest, silent
from iclab.experiments import Lab
from iclab.planning import PlanningEngine, zeros_of_evaluation, zeros_of_training
from iclab.runs.options import override, texts
from iclab.statements import Reading, Statement

MOST_OPERATIONS = {"cpu": 2e11, "gpu": 1e12}  # per experiment and point; no limit on other devices
PLANNED = 2  # seeds to plan


class _Differs(EndedError):
    """A request differs from before; `program` says whether it needs another compiled program."""

    def __init__(self, program: bool) -> None:
        self.program = program


class _Comparing:
    """An engine that answers with zeros while requests equal those `before`, and stops at the first difference.

    Without `before`, it records the requests in `asked`.
    """

    def __init__(self, before: Sequence[Any] | None = None) -> None:
        self.asked: list[Any] = []
        self._before = before

    def train(self, request: TrainingRequest, report: Report = silent) -> tuple[Any, dict[str, np.ndarray]]:
        """Zeros."""
        self._compare(request)
        return zeros_of_training(request)

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """Zeros."""
        self._compare(request)
        return zeros_of_evaluation(request)

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Zeros."""
        self._compare(shape)
        return np.zeros(shape)

    def _compare(self, request: Any) -> None:
        number = len(self.asked)
        self.asked.append(request)
        if self._before is None:
            return
        before = self._before[number] if number < len(self._before) else None
        if before is None or not _same(before, request):
            raise _Differs(getattr(before, "program", None) != getattr(request, "program", None))


def _same(one: Any, other: Any) -> bool:
    """Whether two requests ask for the same numbers."""
    if type(one) is not type(other) or isinstance(one, tuple):
        return bool(one == other)
    more, content = ("record_at", "members") if isinstance(one, TrainingRequest) else ("prompts", "jobs")
    if one.program != other.program or getattr(one, more) != getattr(other, more):
        return False
    pairs = zip(*(jax.tree.leaves(getattr(request, content)) for request in (one, other)), strict=True)
    return all(np.array_equal(_plain(first), _plain(second)) for first, second in pairs)


def _plain(leaf: Any) -> np.ndarray:
    keys = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if keys else leaf)


class Dependence(enum.Enum):
    """How a statement depends on a setting; `hard` means other compiled programs."""

    none = 0
    easy = 1
    hard = 2


def asked_of(paper: Paper, settings: Any, needs: Sequence[tuple[str, Reading]]) -> list[tuple[str, Reading, list[Any]]]:
    """These experiments, each in a reading, with their requests."""
    found = []
    for experiment, reading in needs:
        engine, own = _Comparing(), override(settings, texts(reading.changes))
        paper.experiments[experiment].run(Lab(paper.id, own, (0,), engine=engine))
        found.append((experiment, reading, engine.asked))
    return found


def dependence(
    paper: Paper, settings: Any, needs: Sequence[tuple[str, Reading, list[Any]]], changes: Mapping[str, Any]
) -> Dependence:
    """Whether the requests of these experiments (`asked_of`) differ when settings change."""
    found = Dependence.none
    for experiment, reading, before in needs:
        after = override(override(settings, texts(changes)), texts(reading.changes))
        now = _Comparing(before)
        try:
            paper.experiments[experiment].run(Lab(paper.id, after, (0,), engine=now))
        except _Differs as difference:
            found = Dependence.hard if difference.program else found if found is Dependence.hard else Dependence.easy
    return found


def affordable(
    paper: Paper, settings: Any, statement: Statement, seeds: int, limit: float, costs: dict[str, float]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The readings and parts of a statement that are cheap enough for every point, and what is left out, in words.

    `costs` caches the costs of the paper's experiments for its other statements.
    """

    def cost(experiment: str, reading: Reading) -> float:
        place = reading.place(experiment)
        if place not in costs:
            engine, few = PlanningEngine(), range(min(PLANNED, seeds))
            own = override(settings, texts(reading.changes))
            paper.experiments[reading.experiments.get(experiment, experiment)].run(
                Lab(paper.id, own, few, engine=engine)
            )
            costs[place] = sum(one.operations for one in engine.asked) * seeds / len(few)
        return costs[place]

    readings, parts, without = [], dict[str, None](), dict[str, None]()
    for reading in statement.readings:
        kept = []
        for part in statement.asked(reading):
            used = [*part.statistic.needs, *(part.found.needs if part.found is not None else ())]
            if all(cost(experiment, reading) <= limit for experiment in used):
                kept.append(part.name)
            else:
                without[part.name] = None
        if kept:
            readings.append(reading.name)
            parts |= dict.fromkeys(kept)
        else:
            without[f"all of the reading {reading.name}"] = None
    return tuple(readings), tuple(parts), tuple(name for name in without if name not in parts)


def limit_here() -> float:
    """The number of operations that an experiment may take at one point on this machine."""
    return MOST_OPERATIONS.get(jax.default_backend(), float("inf"))

"""Many experiments side by side, their requests answered together.

A sweep runs the same experiment at many settings. Each runs in a thread of its own and asks its engine; when all of
them wait, requests that compile together become one ensemble. A GPU is filled this way, and two cores are used though
each setting has one seed only.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from iclab import ensemble
from iclab.engine import Engine, EvaluationRequest, Report, TrainingRequest, silent
from iclab.evaluation import Jobs
from iclab.training import Member, State

Result = TypeVar("Result")


class _Asked:
    """A request that waits for its answer."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.answer: Any = None
        self.error: BaseException | None = None
        self.ready = threading.Event()


class _Asking:
    """What an experiment sees: it hands requests over and waits."""

    def __init__(self, board: _Board) -> None:
        self._board = board

    def train(self, request: TrainingRequest, report: Report = silent) -> tuple[State, dict[str, np.ndarray]]:
        """Answered together with others."""
        return self._board.ask(request)

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """Answered together with others."""
        return self._board.ask(request)

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """One at a time: such work uses all cores itself."""
        return self._board.ask(lambda engine: engine.outside(compute, shape))


class _Board:
    """Where requests are put up. `collect` waits until every experiment still running has asked."""

    def __init__(self, running: int) -> None:
        self._changed = threading.Condition()
        self._running = running
        self._waiting: list[_Asked] = []
        self._closed: BaseException | None = None

    def ask(self, request: Any) -> Any:
        asked = _Asked(request)
        with self._changed:
            if self._closed is not None:
                raise self._closed
            self._waiting.append(asked)
            self._changed.notify_all()
        asked.ready.wait()
        if asked.error is not None:
            raise asked.error
        return asked.answer

    def finish(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def collect(self) -> list[_Asked]:
        """The requests of all experiments, in the order of their names; empty when all have finished."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) == self._running)
            waiting, self._waiting = self._waiting, []
        return sorted(waiting, key=lambda asked: getattr(asked.request, "name", ""))

    def close(self, error: BaseException) -> None:
        """Let everybody go who waits or will ask."""
        with self._changed:
            self._closed = error
            waiting, self._waiting = self._waiting, []
        for asked in waiting:
            asked.error = error
            asked.ready.set()


def side_by_side(
    experiments: Sequence[Callable[[Engine], Result]], engine: Engine, report: Report = silent
) -> list[Result]:
    """Run the experiments, each with an engine of its own, and answer their requests with `engine`, together where
    possible.

    The first error of any of them is raised here, after the others have been let go.
    """
    board = _Board(len(experiments))
    results: list[Any] = [None] * len(experiments)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            results[number] = experiments[number](_Asking(board))
        except BaseException as error:
            errors.append(error)
        finally:
            board.finish()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(experiments))]
    for thread in threads:
        thread.start()
    waiting: list[_Asked] = []
    try:
        while waiting := board.collect():
            if errors:
                raise errors[0]
            for group in _groups(waiting):
                _answer(group, engine, report)
    except BaseException as error:
        board.close(error)
        for asked in waiting:
            asked.error = error
            asked.ready.set()
        raise
    finally:
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return results


def _groups(waiting: Sequence[_Asked]) -> list[list[_Asked]]:
    groups: dict[Any, list[_Asked]] = {}
    for number, asked in enumerate(waiting):
        key = asked.request.together() if hasattr(asked.request, "together") else number
        groups.setdefault(key, []).append(asked)
    return list(groups.values())


def _answer(group: list[_Asked], engine: Engine, report: Report) -> None:
    first = group[0].request
    if isinstance(first, TrainingRequest):
        members: Member = ensemble.join([asked.request.members for asked in group])
        joined = TrainingRequest(_name(group), members, first.loss, first.record_at, first.observers, first.best_of)
        answers = _split(engine.train(joined, report), [ensemble.size(asked.request.members) for asked in group])
    elif isinstance(first, EvaluationRequest):
        jobs: Jobs = ensemble.join([asked.request.jobs for asked in group])
        found = engine.evaluate(
            EvaluationRequest(_name(group), first.measure, jobs, first.prompts, first.prepare), report
        )
        answers = _split(found, [ensemble.size(asked.request.jobs.keys) for asked in group])
    else:
        answers = [first(engine)]
    for asked, answer in zip(group, answers, strict=True):
        asked.answer = answer
        asked.ready.set()


def _name(group: Sequence[_Asked]) -> str:
    """The name of one request; for several, a digest of all names."""
    names = [asked.request.name for asked in group]
    if len(names) == 1:
        return str(names[0])
    digest = hashlib.sha256("|".join(names).encode()).hexdigest()
    return f"{len(names)}-{digest[:16]}"


def _split(tree: Any, sizes: Sequence[int]) -> list[Any]:
    ends = np.cumsum(sizes)
    return [ensemble.part(tree, int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]

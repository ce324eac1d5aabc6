"""Experiments side by side: requests that can be one ensemble become one, and programs are compiled while others run.

An experiment is plain code that asks its engine and goes on with the answer. Here each is a greenlet: where it asks, it
is set aside until its answer is there. Several are under way at a time; those that wait for the same kind of work are
answered together. Nothing depends on the order in which they are: names decide every random stream.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import greenlet
import jax
import numpy as np

from iclab import memory
from iclab.ahead import Ahead, Program, Wanted
from iclab.devices import on_the_host
from iclab.engine import ComputingEngine, EvaluationRequest, Programs, Report, TrainingRequest, silent
from iclab.training import State

Result = TypeVar("Result")
AT_ONCE = {"cpu": 6}  # experiments under way: so many that there is always a program to compile; elsewhere 64
COMPUTING = {"cpu": 1}  # ensembles computed at a time; elsewhere 2: one is prepared while the other is computed
SECONDS = 0.5  # between two reports
BETWEEN = 8  # programs between two looks at how full the memory is of them


@dataclasses.dataclass(frozen=True)
class _Outside:
    """Work that is not compiled; it is done alone."""

    compute: Callable[[], np.ndarray]
    shape: tuple[int, ...]


class Asking:
    """The engine of one experiment under way."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._since = time.perf_counter()
        self._hub = greenlet.getcurrent()

    def train(self, request: TrainingRequest, report: Report = silent) -> tuple[State, dict[str, np.ndarray]]:
        """Answered together with others."""
        found: tuple[State, dict[str, np.ndarray]] = self._ask(request, report)
        return found

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """Answered together with others."""
        found: dict[str, np.ndarray] = self._ask(request, report)
        return found

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """One at a time: such work uses all cores itself."""
        found: np.ndarray = self._ask(_Outside(compute, shape), silent)
        return found

    def _ask(self, request: Any, report: Report) -> Any:
        self._spent = self.seconds()
        answer, share = self._hub.switch((request, report))
        self._spent += share
        self._since = time.perf_counter()
        return answer

    def seconds(self) -> float:
        """The experiment's own time so far, and its share of what was computed for it."""
        return self._spent + time.perf_counter() - self._since


@dataclasses.dataclass(eq=False)
class _UnderWay:
    """An experiment, and what it asks for now."""

    number: int
    place: Any
    request: Any = None
    report: Report = silent
    asked: Sequence[Any] = ()  # the requests of its group, and what has to be compiled for them
    wanted: Wanted | None = None


@dataclasses.dataclass(eq=False)
class _Work:
    """Requests of several experiments that are being answered together, and how far that is."""

    group: list[_UnderWay]
    programs: Programs
    stopped: threading.Event
    said: tuple[float, str] | None = None

    def __call__(self, engine: ComputingEngine) -> tuple[dict[Any, Any], float]:
        """The answers, and the seconds that they took."""
        began = time.perf_counter()
        several = {_what(one.request): one.request for one in tuple(self.group)}
        first, requests = self.group[0].request, list(several.values())
        if isinstance(first, _Outside):
            found: Sequence[Any] = [engine.outside(first.compute, first.shape)]
        elif isinstance(first, EvaluationRequest):
            found = engine.evaluate_all(requests, self._report)
        else:
            found = engine.train_all(requests, self._report)
        return dict(zip(several, found, strict=True)), time.perf_counter() - began

    def _report(self, fraction: float, note: str) -> None:
        """Kept until the experiments' own thread passes it on; where nobody waits for the answer, the work ends."""
        if self.stopped.is_set():
            raise concurrent.futures.CancelledError
        self.said = fraction, note


def side_by_side(
    experiments: Iterable[Callable[[Asking], Result]],
    engine: ComputingEngine,
    report: Report | None = None,
    *,
    at_once: int | None = None,
    programs: dict[Any, Program] | None = None,
) -> list[Result]:
    """Run the experiments, each with an engine of its own; `engine` computes. The first error ends all of them.

    Experiments run in this thread; what they ask for is computed beside them, and what is not compiled beside that.
    `report` is told how far the work is instead of the reports of the single requests; what was compiled and run is
    noted in `programs`.
    """
    most = at_once or AT_ONCE.get(jax.default_backend(), 64)
    results: dict[int, Result] = {}
    waiting: list[_UnderWay] = []
    begun: list[_UnderWay] = []
    running: dict[concurrent.futures.Future[tuple[dict[Any, Any], float]], _Work] = {}
    fresh = enumerate(experiments)
    stopped = threading.Event()
    full = False  # of programs: what is under way is finished, then they are let go
    looked = 0  # how many programs there were when that was looked at
    free = {False: COMPUTING.get(jax.default_backend(), 2), True: 1}  # places for work, by whether it is outside

    def go_on(one: _UnderWay, answer: Any) -> None:
        """Until it asks again or ends."""
        found = one.place.switch(answer)
        if one.place.dead:
            results[one.number] = found
        else:
            one.request, one.report = found
            waiting.append(one)

    with (
        on_the_host(),
        memory.seldom_collecting(),
        Ahead(programs) as ahead,
        concurrent.futures.ThreadPoolExecutor(sum(free.values()), "computing") as threads,
    ):
        try:
            while True:
                under_way = len(waiting) + sum(len(work.group) for work in running.values())
                while under_way < most and (next_one := next(fresh, None)) is not None:
                    begun.append(_UnderWay(next_one[0], greenlet.greenlet(next_one[1])))
                    go_on(begun[-1], Asking())
                    under_way += not begun[-1].place.dead
                if not waiting and not running:
                    return [results[number] for number in sorted(results)]
                missing: list[concurrent.futures.Future[Any]] = []
                waiting = _joined(waiting, running.values())
                if full and not running:
                    ahead.forget()
                    full = False
                    for one in waiting:
                        one.wanted = None
                for group in _groups(waiting) if not full else ():
                    compiling = _missing(group, engine, ahead)
                    missing += compiling
                    outside = isinstance(group[0].request, _Outside)
                    if not compiling and free[outside]:
                        free[outside] -= 1
                        wanted = group[0].wanted
                        work = _Work(group, wanted.result() if wanted and not outside else {}, stopped)
                        running[threads.submit(work, engine)] = work
                        waiting = [one for one in waiting if one not in group]
                concurrent.futures.wait([*running, *missing], SECONDS, concurrent.futures.FIRST_COMPLETED)
                for work in running.values():
                    if work.said:
                        (report or work.group[0].report)(*work.said)
                        work.said = None
                for future in [future for future in running if future.done()]:
                    work = running.pop(future)
                    free[isinstance(work.group[0].request, _Outside)] += 1
                    try:
                        answers, seconds = future.result()
                    except Exception as error:  # it is raised where it was asked for
                        work.group[0].place.throw(error)
                        raise
                    if ahead.traced >= looked + BETWEEN:
                        looked, full = ahead.traced, full or memory.crowded()
                    shares = [getattr(one.request, "count", 1) for one in work.group]
                    ahead.ran(work.programs, sum(shares), seconds)
                    for one, share in zip(work.group, shares, strict=True):
                        go_on(one, (answers[_what(one.request)], seconds * share / sum(shares)))
        finally:
            stopped.set()
            for one in begun:
                with contextlib.suppress(BaseException):
                    one.place.throw()  # lets go of what it has open


def _groups(waiting: Sequence[_UnderWay]) -> list[list[_UnderWay]]:
    """Those whose requests can be answered together, in the order of the first of each."""
    groups: dict[Any, list[_UnderWay]] = {}
    for one in sorted(waiting, key=lambda one: one.number):
        key = one.number if isinstance(one.request, _Outside) else one.request.together()
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _missing(group: Sequence[_UnderWay], engine: ComputingEngine, ahead: Ahead) -> list[Any]:
    """What has to be waited for until a group's programs can be run; it is begun here."""
    first, requests = group[0], [one.request for one in group]
    if isinstance(first.request, _Outside):
        return []
    if first.wanted is None or list(map(id, first.asked)) != list(map(id, requests)):
        unique = list({_what(one): one for one in requests}.values())
        first.asked = requests
        first.wanted = ahead.want(first.request.name, functools.partial(engine.programs, unique))
    return ahead.missing(first.wanted)


def _what(request: Any) -> Any:
    """Trainings of one name are one: experiments of a paper share them."""
    return request.name if isinstance(request, TrainingRequest) else id(request)


def _joined(waiting: Sequence[_UnderWay], running: Iterable[_Work]) -> list[_UnderWay]:
    """Those whose training is not under way already; the others wait for that one."""
    trained = {_what(one.request): work for work in running for one in work.group}
    for one in waiting:
        if _what(one.request) in trained:
            trained[_what(one.request)].group.append(one)
    return [one for one in waiting if _what(one.request) not in trained]

"""Experiments side by side: requests that can be one ensemble become one, and programs are compiled while others run.

An experiment is plain code that asks its engine and goes on with the answer. Here each is a greenlet: where it asks, it
is set aside until its answer is there. Several are under way at a time; those that wait for the same kind of work are
answered together. Nothing depends on the order in which they are: names decide every random stream.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import greenlet
import jax
import numpy as np

from iclab.ahead import Ahead
from iclab.engine import ComputingEngine, EvaluationRequest, Programs, Report, TrainingRequest, silent
from iclab.training import State

Result = TypeVar("Result")
AT_ONCE = {"cpu": 6}  # experiments under way: so many that there is always a program to compile; elsewhere 48


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
    programs: Programs = dataclasses.field(default_factory=dict)


def side_by_side(
    experiments: Iterable[Callable[[Asking], Result]],
    engine: ComputingEngine,
    report: Report | None = None,
    *,
    at_once: int | None = None,
    note: Callable[[Ahead], object] = lambda ahead: None,
) -> list[Result]:
    """Run the experiments, each with an engine of its own; `engine` computes. The first error ends all of them.

    `report` is told how far the work is instead of the reports of the single requests; `note` is shown in the end which
    programs were compiled and run.
    """
    most = at_once or AT_ONCE.get(jax.default_backend(), 48)
    results: dict[int, Result] = {}
    waiting: list[_UnderWay] = []
    begun: list[_UnderWay] = []
    fresh = enumerate(experiments)

    def go_on(one: _UnderWay, answer: Any) -> None:
        """Until it asks again or ends."""
        found = one.place.switch(answer)
        if one.place.dead:
            results[one.number] = found
        else:
            one.request, one.report = found
            waiting.append(one)

    try:
        with Ahead() as ahead:
            while True:
                while len(waiting) < most and (next_one := next(fresh, None)) is not None:
                    number, experiment = next_one
                    one = _UnderWay(number, greenlet.greenlet(experiment))
                    begun.append(one)
                    go_on(one, Asking())
                if not waiting:
                    note(ahead)
                    return [results[number] for number in sorted(results)]
                waiting.sort(key=lambda one: one.number)
                group, programs = _ready(_groups(waiting), engine, ahead)
                began = time.perf_counter()
                try:
                    answers = _answers(group, engine, report or group[0].report)
                except Exception as error:  # it is raised where it was asked for
                    group[0].place.throw(error)
                    raise
                seconds = time.perf_counter() - began
                waiting = [one for one in waiting if one not in group]
                shares = [getattr(one.request, "count", 1) for one in group]
                ahead.ran(programs, sum(shares), seconds)
                for one, answer, share in zip(group, answers, shares, strict=True):
                    go_on(one, (answer, seconds * share / sum(shares)))
    finally:
        for one in begun:
            with contextlib.suppress(BaseException):
                one.place.throw()  # lets go of what it has open


def _groups(waiting: Sequence[_UnderWay]) -> list[list[_UnderWay]]:
    """Those whose requests can be answered together, in the order of the first of each."""
    groups: dict[Any, list[_UnderWay]] = {}
    for one in waiting:
        key = one.number if isinstance(one.request, _Outside) else one.request.together()
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _ready(
    groups: Sequence[list[_UnderWay]], engine: ComputingEngine, ahead: Ahead
) -> tuple[list[_UnderWay], Programs]:
    """The first group whose programs are compiled, and these; those of all are begun."""
    programs = [_programs(group, engine) for group in groups]
    wanted = [ahead.want(own, getattr(g[0].request, "name", "")) for g, own in zip(groups, programs, strict=True)]
    while True:
        left = []
        for group, own, compiled in zip(groups, programs, wanted, strict=True):
            missing = [program for program in compiled if not program.done()]
            if not missing:
                return group, own
            left += missing
        ahead.wait(left)


def _programs(group: Sequence[_UnderWay], engine: ComputingEngine) -> Programs:
    """What has to be compiled; nothing where that cannot be told: it goes wrong again where it is run."""
    first, requests = group[0], [one.request for one in group]
    if isinstance(first.request, _Outside):
        return {}
    if list(map(id, first.asked)) != list(map(id, requests)):
        try:
            first.asked, first.programs = requests, engine.programs(_unique(group))
        except Exception:
            return {}
    return first.programs


def _unique(group: Sequence[_UnderWay]) -> list[Any]:
    """The requests of a group. Trainings of one name are one: experiments of a paper share them."""
    if isinstance(group[0].request, EvaluationRequest):
        return [one.request for one in group]
    return list({one.request.name: one.request for one in group}.values())


def _answers(group: Sequence[_UnderWay], engine: ComputingEngine, report: Report) -> list[Any]:
    first = group[0].request
    if isinstance(first, _Outside):
        return [engine.outside(first.compute, first.shape)]
    requests = _unique(group)
    if isinstance(first, EvaluationRequest):
        return list(engine.evaluate_all(requests, report))
    found = dict(zip([request.name for request in requests], engine.train_all(requests, report), strict=True))
    return [found[one.request.name] for one in group]

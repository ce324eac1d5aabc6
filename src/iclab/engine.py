"""Who does the work that experiments ask for.

An experiment asks an engine for trainings and evaluations. The computing engine does them here and now, in batches of
members that fit into memory; others plan the work without doing it (`planning`), or do the same work of many
experiments at once (`merging`). What a member computes never depends on the engine.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from iclab import ensemble, evaluation, memory, training
from iclab.evaluation import Jobs, Measure
from iclab.losses import Loss
from iclab.training import Checkpoint, Member, Observer, State

Report = Callable[[float, str], None]
"""`report(fraction, note)`: how far a request is, and a word on its speed."""


def silent(fraction: float, note: str) -> None:
    """Report to nobody."""


@dataclasses.dataclass(frozen=True)
class TrainingRequest:
    """Train these stacked members. `name` says what this is, uniquely within a run; checkpoints are kept under it."""

    name: str
    members: Member
    loss: Loss
    record_at: tuple[int, ...]
    observers: tuple[Observer, ...] = ()
    best_of: str = ""

    def program(self) -> tuple[Any, ...]:
        """Requests with equal programs compile together: what differs between them is traced."""
        return "train", self.loss, self.observers, self.best_of, *ensemble.shape_of(self.members)

    def together(self) -> tuple[Any, ...]:
        """Requests that agree in this can be one ensemble."""
        return *self.program(), self.record_at

    def shapes(self) -> tuple[Any, Any]:
        """Shapes of one member's state and record."""
        return training.shapes(self.members, self.loss, self.observers, self.best_of)


@dataclasses.dataclass(frozen=True)
class EvaluationRequest:
    """The mean of a measure over fresh prompts, for every one of these stacked jobs."""

    name: str
    measure: Measure
    jobs: Jobs
    prompts: int
    prepare: Callable[[Any, Any], Any] = evaluation.unchanged

    def program(self) -> tuple[Any, ...]:
        """As for trainings."""
        return "evaluate", self.measure, self.prepare, *ensemble.shape_of(self.jobs)

    def together(self) -> tuple[Any, ...]:
        """As for trainings."""
        return *self.program(), self.prompts


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Bytes on one device: per member held, and while one member is being worked on."""

    held: int
    working: int

    def of(self, slots: int) -> int:
        """Bytes for a program of so many slots on a device. A GPU works on all at once, a CPU core on one."""
        at_once = slots if jax.default_backend() != "cpu" else 1
        return slots * self.held + at_once * self.working

    def room(self, free: int) -> int:
        """How many slots of a device fit into `free` bytes, a power of two as in every layout; at least one is
        tried.
        """
        if jax.default_backend() != "cpu":
            fit = free // (self.held + self.working)
        else:
            fit = (free - self.working) // max(self.held, 1)
        return 1 << (max(1, fit).bit_length() - 1)


def training_footprint(request: TrainingRequest) -> Footprint:
    """Settings and state go in, state and record come out; between them the working set of a stretch."""
    state, record = request.shapes()
    one = jax.eval_shape(lambda m: ensemble.unstack(m, 0), request.members)
    advance = functools.partial(training._advance, request.loss, request.observers, request.best_of)
    working = memory.working_set(advance, one, state, jax.ShapeDtypeStruct((), jnp.int32))
    return Footprint(memory.bytes_of((one, state, state, record)), working)


@runtime_checkable
class Engine(Protocol):
    """Answers what experiments ask for."""

    def train(self, request: TrainingRequest, report: Report = silent) -> tuple[State, dict[str, np.ndarray]]:
        """Final states and records (member × record × ...)."""

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """The measure's means, one per job."""

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Work that is not compiled (a classifier of another library); `shape` is that of its result."""


class ComputingEngine:
    """Computes in this process. `checkpoint(name)` gives the place where a training is kept while it runs."""

    def __init__(self, checkpoint: Callable[[str], Checkpoint] = lambda name: Checkpoint()) -> None:
        self._checkpoint = checkpoint

    def train(self, request: TrainingRequest, report: Report = silent) -> tuple[State, dict[str, np.ndarray]]:
        """Final states and records (member × record × ...)."""
        count = ensemble.size(request.members)
        room = members_per_program(request, count)
        total, done = max(1, request.record_at[-1] * count), 0

        def progress(steps: int, seconds: float) -> None:
            nonlocal done
            done += steps
            report(done / total, f"{steps / seconds:,.0f} model-steps/s" if steps else "")

        parts = [
            training.train(
                ensemble.part(request.members, first, first + room), request.loss, request.record_at, request.observers,
                progress, request.best_of, self._checkpoint(f"{request.name}.{first}"),
            )
            for first in range(0, count, room)
        ]  # fmt: skip
        return ensemble.join([states for states, _ in parts]), ensemble.join([records for _, records in parts])

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """The measure's means, one per job."""
        return evaluation.evaluate(
            request.measure, request.jobs, request.prompts, request.prepare, lambda fraction: report(fraction, "")
        )

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Work that is not compiled (a classifier of another library); `shape` is that of its result."""
        return compute()


def members_per_program(request: TrainingRequest, count: int) -> int:
    """How many of `count` such members one program takes on all devices together: all of them if they fit into
    memory.
    """
    state = training.state_shape(request.members, request.best_of)
    if count * memory.bytes_of(state) < 1 << 24 and jax.default_backend() == "cpu":
        return count  # a few megabytes: no need to look closer
    return min(count, training_footprint(request).room(memory.room_on_device()) * jax.local_device_count())

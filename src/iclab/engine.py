"""Who does the work that experiments ask for.

An experiment asks an engine for trainings and evaluations. The computing engine does them here and now, those of many
experiments together, in batches of members that fit into memory; others plan the work without doing it (`planning`) or
let experiments wait for each other (`together`). What a member computes never depends on the engine.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from iclab import ensemble, evaluation, memory, training
from iclab.evaluation import Jobs, Measure
from iclab.losses import Loss
from iclab.training import Checkpoint, Member, Observer, State

Tree = TypeVar("Tree")

Report = Callable[[float, str], None]
"""`report(fraction, note)`: how far a request is, and a word on its speed."""


Programs = dict[Any, Callable[[], list[Any]]]
"""Programs by what they depend on, each with what traces it: JAX's lowered programs, to be compiled."""


class EndedError(Exception):
    """An experiment ends early, and nothing is wrong with it."""


def silent(fraction: float, note: str) -> None:
    """Report to nobody."""


@dataclasses.dataclass(frozen=True)
class TrainingRequest:
    """Train these stacked members. `name` says what this is, uniquely within a run; checkpoints are kept under it,
    unless it is not worth to `keep` them.
    """

    name: str
    members: Member
    loss: Loss
    record_at: tuple[int, ...]
    observers: tuple[Observer, ...] = ()
    best_of: str = ""
    keep: bool = True

    @property
    def count(self) -> int:
        """How many members it has."""
        return ensemble.size(self.members)

    @functools.cached_property
    def program(self) -> tuple[Any, ...]:
        """Requests with equal programs compile together: what differs between them is traced."""
        return "train", self.loss, self.observers, self.best_of, *ensemble.shape_of(self.members)

    def programs(self, sizes: Iterable[int]) -> Programs:
        """What has to be compiled for batches of so many such members."""
        traced = functools.partial(
            training.lowered, ensemble.shapes(self.members),
            loss=self.loss, observers=self.observers, best_of=self.best_of,
        )  # fmt: skip
        held = memory.bytes_of(training.state_shape(self.members, self.best_of))
        slots = {ensemble.capacity(size, held): size for size in sizes}
        return {(*self.program, wide): functools.partial(traced, size) for wide, size in slots.items()}

    def together(self) -> tuple[Any, ...]:
        """Requests that agree in this can be one ensemble."""
        return *self.program, self.record_at

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

    @property
    def count(self) -> int:
        """How many jobs it has."""
        return ensemble.size(self.jobs.keys)

    @functools.cached_property
    def program(self) -> tuple[Any, ...]:
        """As for trainings."""
        among = ensemble.size(self.jobs.models) if self.jobs.large() else 0
        return "evaluate", self.measure, self.prepare, among, *ensemble.shape_of(self.jobs[:4])

    def programs(self, sizes: Iterable[int]) -> Programs:
        """As for trainings."""
        jobs = Jobs(*ensemble.shapes(self.jobs[:4]))
        traced = functools.partial(evaluation.lowered, self.measure, jobs, self.prepare)
        slots = {ensemble.capacity(size, 0): size for size in sizes}
        return {(*self.program, wide): functools.partial(traced, size) for wide, size in slots.items()}

    def together(self) -> tuple[Any, ...]:
        """As for trainings; questions to large models are put one by one."""
        return *self.program, self.prompts, id(self) if self.jobs.large() else 0


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Bytes on one device: per member held, and while one member is being worked on."""

    held: int
    working: int

    def of(self, slots: int) -> int:
        """Bytes for a program of so many slots on a device, which works on all at once or takes them in turn."""
        at_once = 1 if ensemble.in_turn(self.held) else slots
        return slots * self.held + at_once * self.working

    def room(self, free: int) -> int:
        """How many slots of a device fit into `free` bytes, a power of two as in every layout; at least one is
        tried.
        """
        if ensemble.in_turn(self.held):
            fit = (free - self.working) // max(self.held, 1)
        else:
            fit = free // (self.held + self.working)
        return 1 << (max(1, fit).bit_length() - 1)


_FOOTPRINTS: dict[Any, Footprint] = {}


def training_footprint(request: TrainingRequest) -> Footprint:
    """Settings and state go in, state and record come out; between them the working set of a stretch."""
    if request.program not in _FOOTPRINTS:
        state, record = request.shapes()
        one = ensemble.one_of(request.members)
        advance = training.traced(request.loss, request.observers, request.best_of)
        working = memory.working_set(advance, one, state, jax.ShapeDtypeStruct((), jnp.int32))
        _FOOTPRINTS[request.program] = Footprint(memory.bytes_of((one, state, state, record)), working)
    return _FOOTPRINTS[request.program]


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
        return self.train_all([request], report)[0]

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """The measure's means, one per job."""
        return self.evaluate_all([request], report)[0]

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Work that is not compiled (a classifier of another library); `shape` is that of its result."""
        return compute()

    def train_all(
        self, requests: Sequence[TrainingRequest], report: Report = silent
    ) -> list[tuple[State, dict[str, np.ndarray]]]:
        """Trainings that agree in `together()`, as one ensemble where they fit into memory and are equally far."""
        first, total, done = requests[0], max(1, requests[0].record_at[-1] * sum(r.count for r in requests)), 0

        def progress(steps: int, seconds: float) -> None:
            nonlocal done
            done += steps
            report(done / total, f"{steps / seconds:,.0f} model-steps/s" if steps else "")

        found: dict[tuple[int, int], tuple[State, dict[str, np.ndarray]]] = {}
        pieces = [
            _Piece((number, begin), members, size, kept, kept.load())
            for number, begin, size in _cut(requests)
            for members in [ensemble.part(requests[number].members, slice(begin, begin + size))]
            for kept in [self._place(requests[number], begin)]
        ]
        for batch in _batches(pieces, most_together(requests)):
            members = ensemble.join([piece.members for piece in batch])
            both = training.train(
                members, first.loss, first.record_at, first.observers, progress, first.best_of, _Kept(batch)
            )
            found |= zip([piece.place for piece in batch], split(both, [piece.count for piece in batch]), strict=True)
        answers = [[found[place] for place in sorted(found) if place[0] == number] for number in range(len(requests))]
        return [(ensemble.join([s for s, _ in own]), ensemble.join([r for _, r in own])) for own in answers]

    def _place(self, request: TrainingRequest, first: int) -> Checkpoint:
        return self._checkpoint(f"{request.name}.{first}") if request.keep else Checkpoint()

    def evaluate_all(
        self, requests: Sequence[EvaluationRequest], report: Report = silent
    ) -> list[dict[str, np.ndarray]]:
        """Evaluations that agree in `together()`."""
        first, jobs = requests[0], evaluation.join([request.jobs for request in requests])
        found = evaluation.evaluate(
            first.measure, jobs, first.prompts, first.prepare, lambda fraction: report(fraction, "")
        )
        return split(found, [request.count for request in requests])

    def programs(self, requests: Sequence[Any]) -> Programs:
        """What has to be compiled for requests that agree in `together()`."""
        first = requests[0]
        if isinstance(first, TrainingRequest):
            pieces = [_Piece((n, begin), None, size, Checkpoint(), None) for n, begin, size in _cut(requests)]
            sizes = [sum(piece.count for piece in batch) for batch in _batches(pieces, most_together(requests))]
        else:
            count, block = sum(request.count for request in requests), evaluation.block_of(first.jobs)
            sizes = [min(block, count - begin) for begin in range(0, count, block)]
        found: Programs = first.programs(sizes)
        return found


@dataclasses.dataclass(frozen=True)
class _Piece:
    """Members of one request that go into one program, and what is kept of their training."""

    place: tuple[int, int]
    members: Any
    count: int
    checkpoint: Checkpoint
    before: tuple[list[np.ndarray], dict[str, np.ndarray]] | None

    @property
    def records(self) -> int:
        return 0 if self.before is None else self.before[1]["training_loss"].shape[1]


class _Kept(Checkpoint):
    """Pieces of several requests, trained as one and kept one by one: they may be gone on with in other company."""

    def __init__(self, pieces: Sequence[_Piece]) -> None:
        self._pieces = pieces

    def load(self) -> tuple[list[np.ndarray], dict[str, np.ndarray]] | None:
        """What is kept of all of them."""
        before = [piece.before for piece in self._pieces if piece.before is not None]
        return ensemble.join(before) if len(before) == len(self._pieces) else None

    def save(self, leaves: Callable[[], list[np.ndarray]], records: dict[str, np.ndarray], finished: bool) -> None:
        """Keep each; the states are fetched once, if one of them wants them."""
        sizes = [piece.count for piece in self._pieces]
        states = functools.cache(lambda: split(leaves(), sizes))
        for number, (piece, own) in enumerate(zip(self._pieces, split(records, sizes), strict=True)):
            piece.checkpoint.save(functools.partial(_nth, states, number), own, finished)


def _nth(several: Callable[[], list[Tree]], number: int) -> Tree:
    return several()[number]


def _cut(requests: Sequence[TrainingRequest]) -> list[tuple[int, int, int]]:
    """(request, first member, members) of the pieces of several requests: each fits into memory."""
    room = members_per_program(requests[0], sum(request.count for request in requests))
    return [
        (number, begin, min(room, request.count - begin))
        for number, request in enumerate(requests)
        for begin in range(0, request.count, room)
    ]


def _batches(pieces: Sequence[_Piece], most: int) -> list[list[_Piece]]:
    """Pieces that are trained in one program: as many as fit, all with as many records from before."""
    batches: list[list[_Piece]] = []
    fillable: dict[int, list[_Piece]] = {}
    for piece in pieces:
        batch = fillable.get(piece.records)
        if batch is None or sum(one.count for one in batch) + piece.count > most:
            batch = fillable[piece.records] = []
            batches.append(batch)
        batch.append(piece)
    return batches


def most_together(requests: Sequence[TrainingRequest]) -> int:
    """How many members of several requests one program takes: what fits into memory, and on CPU no more than share a
    program anyway.
    """
    room = members_per_program(requests[0], sum(request.count for request in requests))
    if jax.default_backend() != "cpu":
        return room
    return min(room, max(ensemble.shared_slots(), *(request.count for request in requests)))


def split(tree: Tree, sizes: Sequence[int]) -> list[Tree]:
    """Stacked members as parts of these sizes."""
    if len(sizes) == 1:
        return [tree]
    ends = itertools.accumulate(sizes)
    return [ensemble.part(tree, slice(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def members_per_program(request: TrainingRequest, count: int) -> int:
    """How many of `count` such members one program takes on all devices together: all of them if they fit into
    memory.
    """
    state = training.state_shape(request.members, request.best_of)
    if count * memory.bytes_of(state) < 1 << 24 and jax.default_backend() == "cpu":
        return count  # a few megabytes: no need to look closer
    return min(count, training_footprint(request).room(memory.room_on_device()) * jax.local_device_count())

"""What an experiment will compute, found by running it on an engine that computes nothing.

The planning engine answers every request with zeros of the right shape and writes down what was asked: how many
members, which requests compile together, how much memory and arithmetic they take.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from iclab import ensemble, evaluation, memory, training
from iclab.engine import (
    EvaluationRequest,
    Footprint,
    Report,
    TrainingRequest,
    members_per_program,
    silent,
    training_footprint,
)
from iclab.models import at_a_time
from iclab.training import State

# Of the machine's own matrix-product rate, what trainings of small models reach; measured 0.4-0.8 on CPU.
EFFICIENCY = 0.5


@dataclasses.dataclass(frozen=True)
class Asked:
    """One request of an experiment, in numbers. `operations` is the arithmetic of all its members together.

    `room(members)` is how many of so many members one program takes, `slots(members)` how many places it then has on a
    device.
    """

    kind: str
    members: int
    steps: int
    program: Any
    footprint: Footprint
    operations: float
    room: Callable[[int], int]
    slots: Callable[[int], int]


class PlanningEngine:
    """Computes nothing: answers with zeros and keeps a list of what was asked. `check` may refuse a request first."""

    def __init__(self, check: Callable[[Asked], None] = lambda asked: None) -> None:
        self.asked: list[Asked] = []
        self._refuse = check

    def train(self, request: TrainingRequest, report: Report = silent) -> tuple[State, dict[str, np.ndarray]]:
        """Zeros."""
        self._remember(_training(request))
        return zeros_of_training(request)

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """Zeros."""
        self._remember(_evaluation(request))
        return zeros_of_evaluation(request)

    def _remember(self, asked: Asked) -> None:
        self._refuse(asked)
        self.asked.append(asked)

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Zeros."""
        return np.zeros(shape)


def zeros_of_training(request: TrainingRequest) -> tuple[State, dict[str, np.ndarray]]:
    """An answer of the right shape, from members that did not diverge."""
    count = request.count
    state, record = request.shapes()
    states = _zeros(state, (count,))
    records = _zeros(record, (count, len(request.record_at)))
    return eqx.tree_at(lambda s: s.diverged_at, states, np.full(count, -1, np.int32)), records


def zeros_of_evaluation(request: EvaluationRequest) -> dict[str, np.ndarray]:
    """An answer of the right shape."""
    found: dict[str, np.ndarray] = _zeros(_evaluation_shapes(request), (request.count,))
    return found


def _zeros(shapes: Any, leading: tuple[int, ...]) -> Any:
    return jax.tree.map(lambda leaf: np.zeros((*leading, *leaf.shape), leaf.dtype), shapes)


_COSTS: dict[Any, tuple[Footprint, float]] = {}


def _training(request: TrainingRequest) -> Asked:
    key, count = request.program, request.count
    if key not in _COSTS:
        _COSTS[key] = training_footprint(request), _operations_per_step(request)
    footprint, operations = _COSTS[key]
    steps, state = request.record_at[-1], memory.bytes_of(request.shapes()[0])
    return Asked(
        "training", count, steps, key, footprint, operations * count * steps,
        lambda members: members_per_program(request, members), lambda members: ensemble.capacity(members, state),
    )  # fmt: skip


def _operations_per_step(request: TrainingRequest) -> float:
    """Of one SGD step; observers are left out (an observed stretch has many steps)."""
    one = ensemble.one_of(request.members)
    advance = functools.partial(training._advance, request.loss, (), "")
    state, _ = training.shapes(request.members, request.loss, ())
    return memory.arithmetic(advance, one, state, jax.ShapeDtypeStruct((), jnp.int32))


def _job(request: EvaluationRequest) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    one = ensemble.one_of(request.jobs[:4])

    def job(model: Any, preparation: Any, world: Any, key: Any, batches: Any) -> Mapping[str, Any]:
        return evaluation.expect(request.measure, request.prepare(model, preparation), world, key, batches)

    return job, (*one, jax.ShapeDtypeStruct((), jnp.int32))


_RESULTS: dict[Any, Any] = {}


def _evaluation_shapes(request: EvaluationRequest) -> Any:
    key = request.program
    if key not in _RESULTS:
        job, shapes = _job(request)
        _RESULTS[key] = jax.eval_shape(job, *shapes)
    return _RESULTS[key]


def _evaluation(request: EvaluationRequest) -> Asked:
    key, count = request.program, request.count
    if key not in _COSTS:
        job, shapes = _job(request)
        held = memory.bytes_of((shapes, _evaluation_shapes(request)))
        model, _, world, random, _ = shapes
        size = at_a_time(model, evaluation.BATCH, evaluation.cached(world, random))  # a loop counts as one round
        operations = memory.arithmetic(job, *shapes) * evaluation.BATCH / size
        _COSTS[key] = Footprint(held, memory.working_set(job, *shapes)), operations
    footprint, operations = _COSTS[key]
    block = evaluation.block_of(request.jobs)
    rounds = -(-request.prompts // evaluation.BATCH)
    return Asked(
        "evaluation", count, 0, key, footprint, operations * rounds * count,
        lambda members: min(members, block), lambda members: ensemble.capacity(members, 0),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Plan:
    """Totals over what was asked. `programs` are what has to be compiled, `batches` how often one is run, `memory` the
    most of any.
    """

    trainings: int
    evaluations: int
    programs: frozenset[Any]
    batches: int
    memory: int
    operations: float

    @classmethod
    def of(cls, asked: Sequence[Asked], points: int = 1) -> Plan:
        """The plan for so many points that ask for the same and are answered together."""
        programs, batches, most = set(), 0, 0
        for part in asked:
            members = points * part.members
            room = part.room(members)
            slots = part.slots(room)
            programs.add((part.program, slots))
            batches += -(-members // room)
            most = max(most, part.footprint.of(slots) * jax.local_device_count())
        kinds = {
            kind: points * sum(part.members for part in asked if part.kind == kind)
            for kind in ("training", "evaluation")
        }
        operations = points * sum(part.operations for part in asked)
        return cls(kinds["training"], kinds["evaluation"], frozenset(programs), batches, most, operations)

    def __add__(self, other: Plan) -> Plan:
        """Both, one after the other."""
        return Plan(
            self.trainings + other.trainings, self.evaluations + other.evaluations, self.programs | other.programs,
            self.batches + other.batches, max(self.memory, other.memory), self.operations + other.operations,
        )  # fmt: skip

    def seconds(self) -> float:
        """A rough time: the arithmetic at half of this machine's matrix-product rate."""
        return self.operations / (EFFICIENCY * machine_rate())


@functools.cache
def machine_rate() -> float:
    """Floating-point operations per second of a large matrix product on all devices, measured once."""
    size = 1024 if jax.default_backend() == "cpu" else 8192
    devices = jax.local_devices()
    matrices = [jax.device_put(np.ones((size, size), np.float32), device) for device in devices]
    product = jax.jit(lambda matrix: matrix @ matrix)
    jax.block_until_ready([product(matrix) for matrix in matrices])
    rounds = 4
    began = time.perf_counter()
    jax.block_until_ready([product(matrix) for _ in range(rounds) for matrix in matrices])
    return 2.0 * size**3 * rounds * len(devices) / (time.perf_counter() - began)

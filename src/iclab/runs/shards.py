"""A shard: some points of a sweep, computed together and kept in one file.

A shard is plain data, so it can be computed in this process, in a pool of processes or on a cluster. Its numbers are
the same everywhere.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr

from iclab import ensemble
from iclab.engine import ComputingEngine, Engine, EvaluationRequest, Report, TrainingRequest, silent
from iclab.errors import require
from iclab.experiments import Lab, Trained
from iclab.planning import zeros_of_evaluation
from iclab.runs.checkpoints import KeptTraining
from iclab.runs.cluster import Here, require_same
from iclab.runs.contents import to_bytes
from iclab.runs.sweep_target import Loaded, Target, load
from iclab.settings import replaced
from iclab.together import side_by_side
from iclab.training import Checkpoint, State

POINT = "point"


@dataclasses.dataclass(frozen=True)
class Shard:
    """Points of a sweep by their number in the grid, the settings that each changes, and the seeds of all."""

    number: int
    target: Target
    profile: str
    base: Mapping[str, Any]
    points: Mapping[int, Mapping[str, Any]]
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"shard-{self.number:05d}"


def settings_at(loaded: Loaded, base: Mapping[str, Any], point: Mapping[str, Any]) -> Any:
    """The settings of one point, which check themselves."""
    settings = replaced(loaded.settings, {**base, **point})
    loaded.check(settings)
    return settings


def label(point: int) -> str:
    """The beginning of the names of a point's files."""
    return f"{point:06d}/"


def compute(shard: Shard, engine: ComputingEngine, report: Report = silent) -> xr.Dataset:
    """The results of a shard: the experiment's dataset with the points along a new first dimension."""
    loaded = load(shard.target, shard.profile)

    def experiment(number: int, point: Mapping[str, Any], asking: Engine) -> xr.Dataset:
        settings = settings_at(loaded, shard.base, point)
        lab = Lab(loaded.bench, settings, shard.seeds, engine=asking, label=label(number))
        data = loaded.run(lab)
        require(isinstance(data, xr.Dataset), f"{shard.target.id}: the experiment must return an xarray Dataset.")
        return data

    tasks = [partial(experiment, number, point) for number, point in shard.points.items()]
    found = side_by_side(tasks, engine, report, at_once=len(tasks))
    return xr.concat(found, xr.Variable(POINT, list(shard.points)), join="outer", combine_attrs="drop")


def compute_elsewhere(shard: Shard, run: Here) -> tuple[bytes, dict[str, bytes], float]:
    """On a worker: the shard's netCDF file, its trainings as files, and the seconds it took."""
    require_same(run)
    began = time.perf_counter()
    kept: dict[str, bytes] = {}
    engine = ComputingEngine(lambda name: KeptTraining(kept, name, run.fingerprint, along=False))
    data = compute(shard, engine)
    return to_bytes(data), kept, time.perf_counter() - began


class ReplayEngine:
    """Returns kept trainings and computes nothing else."""

    def __init__(self, kept: Callable[[str], Checkpoint]) -> None:
        self._kept = kept

    def train(self, request: TrainingRequest, report: Report = silent) -> tuple[State, dict[str, np.ndarray]]:
        """The kept training, from all of its files."""
        count, first, parts = ensemble.size(request.members), 0, []
        structure = jax.tree.structure(request.shapes()[0])
        while first < count:
            found = self._kept(f"{request.name}.{first}").load()
            again = "repeat the sweep with the same --out to train them again"
            require(found is not None, f"the models of {request.name} are missing or damaged; {again}.")
            leaves, records = found  # type: ignore[misc]
            parts.append((jax.tree.unflatten(structure, leaves), records))
            first += len(leaves[0])
        return ensemble.join([states for states, _ in parts]), ensemble.join([records for _, records in parts])

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """Zeros."""
        return zeros_of_evaluation(request)

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Zeros."""
        return np.zeros(shape)


def trainings(shard: Shard, point: int, kept: Callable[[str], Checkpoint]) -> dict[str, Trained]:
    """The trainings of one point of a finished shard, by name."""
    loaded = load(shard.target, shard.profile)
    settings = settings_at(loaded, shard.base, shard.points[point])
    lab = Lab(loaded.bench, settings, shard.seeds, engine=ReplayEngine(kept), label=label(point))
    loaded.run(lab)
    return lab.trainings()

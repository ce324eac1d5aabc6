"""Open the folder of a sweep: its results as one xarray object, its models as ordinary models."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from iclab.errors import InputError, require
from iclab.experiments import Trained
from iclab.runs.checkpoints import Folder, KeptTraining
from iclab.runs.contents import checksum_of
from iclab.runs.manifest import read_manifest
from iclab.runs.options import points_of
from iclab.runs.shards import POINT, Shard, trainings
from iclab.runs.sweep_target import Target


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A sweep in a folder, finished or not. `data` has one dimension per swept setting, then the experiment's own."""

    directory: Path
    grid: dict[str, list[Any]]
    shards: tuple[Shard, ...]
    fingerprint: str
    trusted: bool = False

    @functools.cached_property
    def data(self) -> xr.Dataset:
        """All finished shards as one dataset; unfinished points are NaN.

        With dask installed (the extra `cluster`), data are read only when needed, so a sweep may be larger than memory.
        """
        chunks: dict[str, Any] = {"chunks": {}} if importlib.util.find_spec("dask") else {}
        found = []
        for shard in self.shards:
            path = self.directory / "results" / f"{shard.name}.nc"
            if path.exists() or checksum_of(path).exists():
                found.append(self._shard(path, chunks))
        require(bool(found), f"{self.directory} has no finished shard yet.")
        whole = xr.concat(found, POINT, join="outer", combine_attrs="drop") if len(found) > 1 else found[0]
        points = points_of(self.grid)
        whole = whole.reindex({POINT: np.arange(len(points))})
        for name in self.grid:
            require(
                name not in whole.dims,
                f"the swept setting {name} has the same name as a dimension of the results; rename one.",
            )
        return _unfold(whole, self.grid)

    def _shard(self, path: Path, chunks: Mapping[str, Any]) -> xr.Dataset:
        """The results of a shard; an `InputError` if this sweep did not write them."""
        again = f"to compute it again, repeat `iclab sweep` with --out {self.directory}."
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            require(digest == checksum_of(path).read_text(errors="replace").strip(), f"{path} is damaged; {again}")
            found = xr.open_dataset(path, engine="h5netcdf", **chunks)
        except (OSError, ValueError, KeyError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} cannot be read; {again}") from error
        require(found.attrs.get("fingerprint") == self.fingerprint, f"{path} belongs to another sweep; {again}")
        return found

    def select(self, *, seed: int, training: str | None = None, setting: str | None = None, **point: Any) -> Any:
        """The trained model of one point and seed: an ordinary model, to be called on a prompt.

        `point` gives the swept settings. `training` and `setting` choose one if the experiment trains several.
        """
        trained = self.trained(training, **point)
        require(
            seed in trained.seeds,
            f"seed is {seed}; this sweep has the seeds {trained.seeds[0]} to {trained.seeds[-1]}.",
        )
        settings = list(trained.settings)
        if setting is None:
            require(
                len(settings) == 1,
                f"this training has several settings; choose one with setting=: {', '.join(settings)}.",
            )
            setting = settings[0]
        require(setting in settings, f"setting is {setting!r}; this training has {', '.join(settings)}.")
        return trained.model(seed, setting)

    def trained(self, training: str | None = None, **point: Any) -> Trained:
        """The whole training of one point: models of all its settings and seeds, recipes, history."""
        number = self._number(point)
        source = self.shards[0].target.source
        require(
            self.trusted or not source,
            f"the models of this sweep need the code of its .py file. To execute the copy in {self.directory} "
            f"({len(source.splitlines())} lines), use iclab.open_sweep(..., trust=True).",
        )
        shard = next(shard for shard in self.shards if number in shard.points)
        found = trainings(shard, number, self._kept())
        names = list(found)
        if training is None:
            require(
                len(names) == 1,
                f"this experiment has several trainings; choose one with training=: {', '.join(names)}.",
            )
            training = names[0]
        require(training in found, f"training is {training!r}; this experiment has {', '.join(names)}.")
        return found[training]

    def _number(self, point: Mapping[str, Any]) -> int:
        for name in point:
            require(name in self.grid, f"{name} was not swept; the swept settings are {', '.join(self.grid)}.")
        chosen = {}
        for name, values in self.grid.items():
            require(name in point or len(values) == 1, f"{name} is missing; give one of {', '.join(map(str, values))}.")
            wanted = point.get(name, values[0])
            match = [value for value in values if _equal(value, wanted)]
            require(bool(match), f"{name} is {wanted}; the swept values are {', '.join(map(str, values))}.")
            chosen[name] = match[0]
        return points_of(self.grid).index(chosen)

    def _kept(self) -> Callable[[str], KeptTraining]:
        def refuse(name: str, content: bytes) -> None:
            raise InputError(f"{self.directory} is open for reading only.")

        files = Folder(self.directory / "trainings", refuse)
        return lambda name: KeptTraining(files, name, self.fingerprint)


def _equal(value: Any, wanted: Any) -> bool:
    numbers = isinstance(value, int | float) and isinstance(wanted, int | float)
    return math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-12) if numbers else bool(value == wanted)


def _unfold(data: xr.Dataset, grid: Mapping[str, list[Any]]) -> xr.Dataset:
    """The dimension of points -> one dimension per swept setting."""
    shape = tuple(len(values) for values in grid.values())
    variables = {}
    for name, variable in data.data_vars.items():
        ordered = variable.transpose(POINT, ...)
        variables[name] = ((*grid, *ordered.dims[1:]), ordered.data.reshape(*shape, *ordered.shape[1:]))
    own = {name: coordinate for name, coordinate in data.coords.items() if name != POINT}
    return xr.Dataset(variables, {**own, **grid})


def open_sweep(directory: str | Path, *, trust: bool = False) -> Sweep:
    """Open the sweep in a folder. Results are data. `select` needs the code of the experiment; if it came from a .py
    file, the copy in the folder is executed only with `trust`.
    """
    manifest = read_manifest(Path(directory))
    identity, plan = manifest["identity"], manifest.get("plan", {})
    if "grid" not in identity or not {"shards", "text"} <= set(plan):
        raise InputError(f"{directory} is not a sweep; give a folder that `iclab sweep` wrote.")
    count = len(points_of(identity["grid"]))
    known = {"base", "profile", "seeds"} <= set(identity) and bool(identity.get("ids"))
    whole = sorted(place for places in plan["shards"] for place in places) == list(range(count))
    require(known and whole, f"the manifest of {directory} does not say what was swept; it was edited.")
    return Sweep(Path(directory), identity["grid"], shards_of(identity, plan), manifest["fingerprint"], trust)


def shards_of(identity: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[Shard, ...]:
    """The shards of a sweep, from its manifest."""
    points = points_of(identity["grid"])
    target = Target(identity["ids"][0], plan["text"])
    return tuple(
        Shard(
            number, target, identity["profile"], identity["base"], {place: points[place] for place in places},
            tuple(range(identity["seeds"])),
        )
        for number, places in enumerate(plan["shards"])
    )  # fmt: skip

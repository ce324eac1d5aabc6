"""`iclab sweep` and `iclab.sweep`: one experiment over a grid of settings, planned, sharded, resumable."""

from __future__ import annotations

import concurrent.futures
import datetime
import functools
import importlib.metadata
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from rich.console import Console

from iclab.authoring.dependence import computing_part
from iclab.authoring.plugged import pinned_in
from iclab.devices import numerics, prepare_jax
from iclab.engine import ComputingEngine
from iclab.errors import require
from iclab.experiments import Lab
from iclab.planning import Asked, Plan, PlanningEngine
from iclab.report.formats import duration
from iclab.report.sweeps import draw_sweep, tables
from iclab.runs.checkpoints import KeptTraining, file_name
from iclab.runs.cluster import elsewhere
from iclab.runs.contents import from_bytes, is_file, to_bytes
from iclab.runs.limits import require_room, require_time
from iclab.runs.manifest import MANIFEST, read_manifest, source_digest
from iclab.runs.options import check_names, grid_values, parse, points_of, seed_count
from iclab.runs.progress import RunProgress, resumable
from iclab.runs.shards import Shard, compute, compute_elsewhere, settings_at
from iclab.runs.store import Store
from iclab.runs.sweep_results import Sweep, open_sweep, shards_of
from iclab.runs.sweep_target import Loaded, find, load

MODELS = "trainings"  # attribute of a shard's results: the files of its models
SHARD_SECONDS = 60.0  # about the length of a shard, so that little is lost when a run stops
LARGEST = {"cpu": 64}  # points of a shard; elsewhere 1024
LOADABLE = 1 << 30  # bytes up to which a table and a netCDF file of the whole sweep are written


def sweep(
    target: str,
    grid: Mapping[str, str | Sequence[Any]],
    *,
    profile: str = "quick",
    seeds: int | None = None,
    out: str | Path | None = None,
    changes: Mapping[str, str] | None = None,
    measure: str | None = None,
    executor: concurrent.futures.Executor | None = None,
    workers: int = 1,
    console: Console | None = None,
) -> Sweep:
    """Run an experiment (`paper/experiment`, a statement, or a user's .py file) at all points of a grid, seed by seed.

    `grid` maps names of settings to values, or to a text as on the command line ("0.2,0.4" or "0:0.8:5"). Points that
    compile together are computed together, in shards that are saved as they finish: repeating the call with the same
    `out` continues an interrupted sweep. Shards may run on any `concurrent.futures.Executor`; `workers` is its size.
    """
    console = console or Console(quiet=True)
    what = find(target)
    loaded = load(what, profile)
    changes = pinned_in(changes or {})
    check_names("--set", list(changes), {what.id: loaded.settings})
    check_names("--grid", list(grid), {what.id: loaded.settings})
    require(bool(grid), "give at least one --grid name=v1,v2,...")
    for name in grid:
        require(name not in changes, f"{name} is in both --set and --grid; give it once.")
    base = {name: parse(loaded.settings, "--set", name, text) for name, text in changes.items()}
    values = {
        name: grid_values(loaded.settings, name, given if isinstance(given, str) else ",".join(map(str, given)))
        for name, given in grid.items()
    }
    count = seed_count(seeds, profile)
    points = points_of(values)
    settings = [settings_at(loaded, base, point) for point in points]
    prepare_jax()
    identity = {
        "ids": [what.id], "text": computing_part(what.source), "profile": profile, "seeds": count,
        "grid": values, "base": base,
        "version": importlib.metadata.version("iclab"), "source": source_digest(), "numerics": numerics(),
    }  # fmt: skip
    directory = Path(out) if out is not None else Path(f"iclab-sweep-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    with resumable(console, directory):
        plan = kept_plan(directory)
        if plan is None:
            console.print(f"[dim]planning {len(points)} points[/]")
            plan = _plan(loaded, settings, tuple(map(len, values.values())), count, workers) | {"text": what.source}
        with Store(directory, identity, plan) as store:
            shards = shards_of(identity, store.manifest["plan"])
            console.print(
                f"{what.id} over {', '.join(f'{name} ({len(v)})' for name, v in values.items())}, {count} seeds"
            )
            for line in plan["words"]:
                console.print(f"  {line}", highlight=False, markup=False)
            _run(shards, store, executor, console)
            finished = open_sweep(directory, trust=True)  # its code was given to this very call
            _write_out(finished, store, measure, console)
    return finished


def kept_plan(directory: Path) -> dict[str, Any] | None:
    """The plan of the sweep in this folder; None if there is none."""
    return read_manifest(directory).get("plan") if is_file(directory / MANIFEST) else None


def _plan(loaded: Loaded, settings: Sequence[Any], shape: tuple[int, ...], seeds: int, workers: int) -> dict[str, Any]:
    """The points of every shard, and the plan in words. Programs are found from requests; nothing is computed.

    If two values of one setting lead to the same requests at the first point, they are assumed to do so everywhere. So
    the plan covers the sides of the grid and the combinations that differ, not every point. If the assumption is wrong
    for a point, its requests are computed separately.
    """

    @functools.cache
    def planned(number: int) -> tuple[Asked, ...]:
        engine = PlanningEngine(functools.partial(require_room, f"point {number + 1} of the grid", 1.0))
        loaded.run(Lab(loaded.bench, settings[number], range(seeds), engine=engine))
        require_time(f"point {number + 1} of the grid", 1.0, engine.asked)
        return tuple(engine.asked)

    kinds = []  # for every value of every setting: which values lead to the same requests
    for axis, length in enumerate(shape):
        seen: dict[Any, int] = {}
        at = np.zeros((length, len(shape)), int)
        at[:, axis] = np.arange(length)
        numbers: np.ndarray = np.asarray(np.ravel_multi_index(tuple(at.T), shape))
        keys = [tuple((one.program, one.members, one.steps) for one in planned(int(number))) for number in numbers]
        kinds.append(np.array([seen.setdefault(key, len(seen)) for key in keys]))
    groups: dict[tuple[int, ...], list[int]] = {}
    places = np.stack(np.unravel_index(np.arange(len(settings)), shape), axis=1)
    for number, kind in enumerate(zip(*(kinds[axis][places[:, axis]] for axis in range(len(shape))), strict=True)):
        groups.setdefault(kind, []).append(number)
    asked = {kind: planned(members[0]) for kind, members in groups.items()}
    layout: list[list[int]] = []
    plans: list[Plan] = []
    largest = LARGEST.get(jax.default_backend(), 1024)
    for key, members in groups.items():
        share = -(-len(members) // (2 * workers if workers > 1 else 1))  # two shards per worker
        one = Plan.of(asked[key]).seconds()
        size = max(1, min(largest, share, int(SHARD_SECONDS / max(one, 1e-9))))
        shards = [members[start : start + size] for start in range(0, len(members), size)]
        layout += shards
        plans += [Plan.of(asked[key], len(shard)) for shard in shards]
    whole = functools.reduce(operator.add, plans)
    words = [
        f"{len(settings)} points: {whole.trainings} trainings, {whole.evaluations} evaluations",
        f"programs to compile: {len(whole.programs)}; batches: {whole.batches}, in {len(layout)} shards of at most "
        f"{max(map(len, layout))} points",
        f"about {whole.memory / 1e6:,.0f} MB of memory and {duration(whole.seconds() / workers)}, compiling not "
        "counted",
    ]
    return {"shards": layout, "words": words}


def _run(shards: Sequence[Shard], store: Store, executor: concurrent.futures.Executor | None, console: Console) -> None:
    store.on_report = lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
    pending = [shard for shard in shards if not _is_whole(shard, store)]
    if len(pending) < len(shards):
        console.print(f"  {len(shards) - len(pending)} of {len(shards)} shards kept from an earlier run")
    with RunProgress(console, max(1, sum(len(shard.points) for shard in pending))) as progress:
        if executor is None:
            for shard in pending:
                progress.begin(shard.name, len(shard.points))
                began = time.perf_counter()
                names: list[str] = []
                data = compute(shard, ComputingEngine(_noting(store, names)), progress.updater(shard.name))
                _save(shard, store, data, names, time.perf_counter() - began)
                progress.end(shard.name, duration(time.perf_counter() - began))
            return
        by_name = {shard.name: shard for shard in pending}
        for name, (content, kept, seconds) in elsewhere(compute_elsewhere, by_name, store.fingerprint, executor):
            progress.begin(name, len(by_name[name].points))
            for file, training in kept.items():
                store.trainings()[file] = training
            _save(by_name[name], store, from_bytes(content), list(kept), seconds)
            progress.end(name, duration(seconds))


def _noting(store: Store, names: list[str]) -> Callable[[str], KeptTraining]:
    """The places of trainings in a store; adds their file names to `names`."""

    def place(name: str) -> KeptTraining:
        names.append(file_name(name))
        return store.checkpoint(name)

    return place


def _save(shard: Shard, store: Store, data: xr.Dataset, names: Sequence[str], seconds: float) -> None:
    """Save a shard's results, with the names of the files that hold its models."""
    there = [name for name in dict.fromkeys(names) if name in store.trainings()]
    store.save_result(shard.name, data.assign_attrs({MODELS: " ".join(there)}), seconds)


def _is_whole(shard: Shard, store: Store) -> bool:
    """Whether a shard's results and models exist and are undamaged."""
    found = store.load_result(shard.name)
    return found is not None and store.trainings_are_whole(str(found.attrs.get(MODELS, "")).split())


def _write_out(finished: Sweep, store: Store, measure: str | None, console: Console) -> None:
    data = finished.data
    if data.nbytes <= LOADABLE:
        loaded = data.load()
        store.write("results.nc", to_bytes(loaded))
        for name, text in tables(loaded).items():
            if text is None:
                console.print(f"  {name}.csv would be too long for a table; results.nc has these numbers")
            else:
                store.write(f"{name}.csv", text.encode())
    else:
        console.print(
            f"  {data.nbytes / 1e9:.1f} GB, not written as one file; use iclab.open_sweep({str(store.directory)!r})"
        )
    for kind, content in draw_sweep(data, list(finished.grid), measure).items():
        store.write(f"sweep.{kind}", content)

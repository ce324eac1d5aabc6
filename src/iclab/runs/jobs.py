"""The experiments of a reproduction: run in this process, or seed by seed on an executor's workers."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from iclab.devices import prepare_jax
from iclab.engine import Engine
from iclab.errors import InputError
from iclab.experiments import Lab, NoSeedsError
from iclab.papers import Paper, paper_from
from iclab.report.formats import duration
from iclab.runs.options import override
from iclab.runs.progress import RunProgress
from iclab.runs.store import Store, from_bytes, model_files, source_digest, to_bytes
from iclab.runs.sweep_target import settings_of


@dataclasses.dataclass(frozen=True)
class Job:
    """Experiments of one paper with some seeds: plain data that a worker elsewhere can be given.

    `text` is the source of a paper that is not built in; `changes` is what `--set` changes in the profile's settings.
    """

    paper: str
    text: str
    experiments: tuple[str, ...]
    profile: str
    changes: Mapping[str, str]
    seeds: tuple[int, ...]
    save_models: bool

    @property
    def source(self) -> Paper:
        """The paper itself."""
        return paper_from(self.paper, self.text)

    @property
    def settings(self) -> Any:
        """Its settings."""
        return override(settings_of(self.source, self.profile), self.changes)

    @property
    def label(self) -> str:
        """A name: a paper has two jobs where its explorer runs with fewer seeds."""
        return f"{self.paper}-explorer" if self.experiments == ("explorer",) else self.paper

    @property
    def cost(self) -> float:
        """Its rough share of the time."""
        return sum(self.source.experiments[name].cost for name in self.experiments)


def run_here(jobs: Sequence[Job], store: Store, progress: RunProgress) -> dict[str, xr.Dataset]:
    """Every experiment's dataset by "paper/experiment". What the store has is not run again; trainings are checkpointed."""
    results = {}
    for job in jobs:
        paper = job.source
        lab = Lab(
            job.paper, job.settings, job.seeds, engine=Engine(store.checkpoint), progress=progress.update,
            on_trained=store.save_models if job.save_models else lambda trained: None,
        )  # fmt: skip
        for name in job.experiments:
            label = f"{job.paper}/{name}"
            kept = store.load_result(label)
            if kept is not None:
                progress.skip(label, paper.experiments[name].cost)
                results[label] = kept
                continue
            progress.begin(label, paper.experiments[name].cost)
            began = time.perf_counter()
            data = paper.experiments[name].run(lab)
            seconds = time.perf_counter() - began
            store.save_result(label, data, seconds)
            results[label] = data.assign_attrs(seconds=seconds)
            progress.end(label, duration(seconds))
    return results


def run_elsewhere(
    jobs: Sequence[Job], store: Store, progress: RunProgress, executor: concurrent.futures.Executor
) -> dict[str, xr.Dataset]:
    """The same, every seed of every paper as one piece of work for the executor. Finished pieces are kept."""
    costs = {f"{job.label}-seed-{seed}": job.cost / len(job.seeds) for job in jobs for seed in job.seeds}
    single = {f"{job.label}-seed-{seed}": dataclasses.replace(job, seeds=(seed,)) for job in jobs for seed in job.seeds}
    pieces: dict[str, dict[str, xr.Dataset]] = {}
    waiting = {}
    for piece, job in single.items():
        names = store.kept(f"results/pieces/{piece}/names")  # written last: the piece is whole
        kept = {name: store.load_result(f"pieces/{piece}/{name}") for name in (names or b"").decode().split()}
        found = {name: data for name, data in kept.items() if data is not None}
        if names is not None and len(found) == len(kept):
            pieces[piece] = found
            progress.skip(piece, costs[piece])
        else:
            waiting[executor.submit(compute_piece, job, source_digest())] = piece
    try:
        for future in concurrent.futures.as_completed(waiting):
            piece = waiting[future]
            progress.begin(piece, costs[piece])
            contents, models = answer(future, piece)
            for name, model in models.items():
                store.write(f"models/{name}", model)
            pieces[piece] = {name: from_bytes(content) for name, content in contents.items()}
            for name, data in pieces[piece].items():
                store.save_result(f"pieces/{piece}/{name}", data, float(data.attrs["seconds"]))
            store.keep(f"results/pieces/{piece}/names", " ".join(pieces[piece]).encode())
            progress.end(piece, duration(sum(float(data.attrs["seconds"]) for data in pieces[piece].values())))
    finally:
        for future in waiting:
            future.cancel()
    results = {}
    for job in jobs:
        for name in job.experiments:
            found_by = [pieces[f"{job.label}-seed-{seed}"] for seed in job.seeds]
            parts = [piece[name] for piece in found_by if name in piece]
            joined = parts[0]
            if job.source.unit == "seed":
                joined = xr.concat(
                    parts, "seed", data_vars="minimal", coords="minimal", compat="override", combine_attrs="drop"
                )
            label, seconds = f"{job.paper}/{name}", sum(float(part.attrs["seconds"]) for part in parts)
            store.save_result(label, joined, seconds)
            results[label] = joined.assign_attrs(seconds=seconds)
    return results


def compute_piece(job: Job, digest: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """On a worker: netCDF files by experiment, and model files by name."""
    same_source(digest)
    prepare_jax()
    models: dict[str, bytes] = {}
    lab = Lab(
        job.paper, job.settings, job.seeds,
        on_trained=(lambda trained: models.update(model_files(trained))) if job.save_models else (lambda trained: None),
    )  # fmt: skip
    results = {}
    for name in job.experiments:
        began = time.perf_counter()
        try:
            data = job.source.experiments[name].run(lab)
        except NoSeedsError:  # this experiment is for the first few seeds
            continue
        results[name] = to_bytes(data.assign_attrs(seconds=time.perf_counter() - began))
    return results, models


def same_source(digest: str) -> None:
    """A worker with another iclab would compute other numbers without anybody noticing."""
    if source_digest() != digest:
        raise InputError("a worker has another version of iclab than the run; install the same on all machines.")


def answer(future: concurrent.futures.Future[Any], what: str) -> Any:
    """A future's result; what went wrong on a worker, in one sentence."""
    try:
        return future.result()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{what} could not be computed: {type(error).__name__}: {error}") from error

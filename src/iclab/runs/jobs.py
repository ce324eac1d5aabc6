"""The experiments of a reproduction: run in this process, or seed by seed on an executor's workers."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from iclab.authoring.paper import Experiment, Paper
from iclab.engine import ComputingEngine
from iclab.experiments import Lab, NoSeedsError
from iclab.library import paper_from
from iclab.report.formats import duration
from iclab.runs.cluster import Here, answer, finished, here, require_same
from iclab.runs.contents import from_bytes, model_files, to_bytes
from iclab.runs.options import override
from iclab.runs.progress import RunProgress
from iclab.runs.store import Store
from iclab.runs.sweep_target import settings_of


@dataclasses.dataclass(frozen=True)
class Job:
    """Experiments of one paper with some seeds: plain data that a worker elsewhere can be given.

    `text` is the source of a paper that is not built in; `changes` is what `--set` changes in the profile's settings,
    and what a reading with settings of its own changes; `variant` is that reading's name. With `control` the
    experiments are asked of untrained models too.
    """

    paper: str
    text: str
    experiments: tuple[str, ...]
    profile: str
    changes: Mapping[str, str]
    seeds: tuple[int, ...]
    save_models: bool
    variant: str = ""
    control: bool = False

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
        """A name: a paper has several jobs where a reading has its own settings or its explorer runs with fewer
        seeds.
        """
        explorer = "-explorer" if self.experiments == ("explorer",) else ""
        return f"{self.paper}{explorer}{f'@{self.variant}' if self.variant else ''}"

    @property
    def cost(self) -> float:
        """Its rough share of the time."""
        return sum(self.source.experiments[name].cost for name in self.experiments)

    def result(self, experiment: str) -> str:
        """Under which name an experiment's results are kept."""
        return f"{self.paper}/{experiment}{f'@{self.variant}' if self.variant else ''}"

    def lab(self, **more: Any) -> Lab:
        """The bench on which its experiments run."""
        return Lab(self.paper, self.settings, self.seeds, label=f"{self.variant}@" if self.variant else "", **more)


CONTROL = "control/"  # begins the names of results of untrained models


def run_here(jobs: Sequence[Job], store: Store, progress: RunProgress) -> dict[str, xr.Dataset]:
    """Every experiment's dataset by "paper/experiment", and those of untrained models by "control/paper/experiment".

    What the store has is not run again; trainings are checkpointed.
    """
    results: dict[str, xr.Dataset] = {}
    for job in jobs:
        save = store.save_models if job.save_models else lambda trained: None
        lab = job.lab(engine=ComputingEngine(store.checkpoint), progress=progress.update, on_trained=save)
        untrained = job.lab(engine=ComputingEngine(), progress=progress.update, untrained=True)
        for name in job.experiments:
            experiment, label = job.source.experiments[name], job.result(name)
            wanted = [label, *([f"{CONTROL}{label}"] if job.control else [])]
            kept = {place: data for place in wanted if (data := store.load_result(place)) is not None}
            if job.save_models and not store.models_are_whole():
                kept = {}
            if len(kept) == len(wanted):
                progress.skip(label, experiment.cost, kept)
                results |= kept
                continue
            progress.begin(label, experiment.cost)
            began = time.perf_counter()
            for place in wanted:
                bench = untrained if place.startswith(CONTROL) else lab
                if place not in kept:
                    kept[place] = timed(experiment, bench)
                    store.save_result(place, kept[place], float(kept[place].attrs["seconds"]))
                untrained.replay(lab.computed_outside)
            lab.computed_outside.clear()
            results |= kept
            progress.end(label, duration(time.perf_counter() - began), kept)
    return results


def timed(experiment: Experiment, lab: Lab) -> xr.Dataset:
    """An experiment's dataset, with the seconds that it took, and how many of its trainings diverged."""
    began = time.perf_counter()
    lab.used.clear()
    data = experiment.run(lab)
    diverged, members = lab.diverged()
    return data.assign_attrs(seconds=time.perf_counter() - began, diverged=diverged, members=members)


def run_elsewhere(
    jobs: Sequence[Job], store: Store, progress: RunProgress, executor: concurrent.futures.Executor
) -> dict[str, xr.Dataset]:
    """The same, every seed of every paper as one piece of work for the executor. Finished pieces are kept."""
    single = {f"{job.label}-seed-{seed}": dataclasses.replace(job, seeds=(seed,)) for job in jobs for seed in job.seeds}
    costs = {f"{job.label}-seed-{seed}": job.cost / len(job.seeds) for job in jobs for seed in job.seeds}
    pieces: dict[str, dict[str, xr.Dataset]] = {}
    results: dict[str, xr.Dataset] = {}
    left = {job.label: len(job.seeds) for job in jobs}
    by_label = {job.label: job for job in jobs}
    models_whole = store.models_are_whole()

    def arrived(piece: str, found: dict[str, xr.Dataset]) -> None:
        """Keep a piece; with the last seed of its job the job's experiments are whole, and statements are judged."""
        pieces[piece] = found
        job = by_label[single[piece].label]
        left[job.label] -= 1
        if not left[job.label]:
            own = _joined(job, [pieces[f"{job.label}-seed-{seed}"] for seed in job.seeds], store)
            results.update(own)
            for name in job.experiments:
                place = job.result(name)
                if place in own:
                    progress.begin(place, 0.0)
                    both = {where: own[where] for where in (place, f"{CONTROL}{place}") if where in own}
                    progress.end(place, "all seeds are there", both)

    waiting = {}
    for piece, job in single.items():
        names = store.kept(f"results/pieces/{piece}/names")  # written last: the piece is whole
        kept = {name: store.load_result(f"pieces/{piece}/{name}") for name in (names or b"").decode().split()}
        found = {name: data for name, data in kept.items() if data is not None}
        if models_whole and names is not None and len(found) == len(kept):
            progress.skip(piece, costs[piece])
            arrived(piece, found)
        else:
            waiting[executor.submit(compute_piece, job, here(store.fingerprint))] = piece
    try:
        for future in finished(waiting, executor):
            piece = waiting[future]
            progress.begin(piece, costs[piece])
            contents, models = answer(future, piece)
            for name, model in models.items():
                store.save_model(name, model)
            found = {name: from_bytes(content) for name, content in contents.items()}
            for name, data in found.items():
                store.save_result(f"pieces/{piece}/{name}", data, float(data.attrs["seconds"]))
            store.keep(f"results/pieces/{piece}/names", " ".join(found).encode())
            progress.end(piece, duration(sum(float(data.attrs["seconds"]) for data in found.values())))
            arrived(piece, found)
    finally:
        for future in waiting:
            future.cancel()
    return results


def _joined(job: Job, by_seed: Sequence[Mapping[str, xr.Dataset]], store: Store) -> dict[str, xr.Dataset]:
    """The pieces of a job put together along their seeds."""
    results = {}
    for label in dict.fromkeys(label for piece in by_seed for label in piece):
        parts = [piece[label] for piece in by_seed if label in piece]
        joined = parts[0]
        if job.source.unit == "seed":
            joined = xr.concat(
                parts, "seed", data_vars="minimal", coords="minimal", compat="override", combine_attrs="drop"
            )
        total = {name: sum(part.attrs[name] for part in parts) for name in ("seconds", "diverged", "members")}
        results[label] = joined.assign_attrs(total)
        store.save_result(label, results[label], float(total["seconds"]))
    return results


def compute_piece(job: Job, run: Here) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """On a worker: netCDF files by name of the result, and model files by name."""
    require_same(run)
    models: dict[str, bytes] = {}
    save = (lambda trained: models.update(model_files(trained))) if job.save_models else (lambda trained: None)
    lab, untrained = job.lab(on_trained=save), job.lab(untrained=True)
    results = {}
    for name in job.experiments:
        try:
            results[job.result(name)] = to_bytes(timed(job.source.experiments[name], lab))
            untrained.replay(lab.computed_outside)
            lab.computed_outside.clear()
            if job.control:
                results[f"{CONTROL}{job.result(name)}"] = to_bytes(timed(job.source.experiments[name], untrained))
        except NoSeedsError:  # this experiment is for the first few seeds
            continue
    return results, models

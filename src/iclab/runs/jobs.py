"""The experiments of a reproduction: run in this process, or seed by seed on an executor's workers."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from iclab.ahead import Ahead
from iclab.authoring.paper import Experiment, Paper
from iclab.engine import ComputingEngine
from iclab.experiments import Lab, NoSeedsError
from iclab.library import paper_from
from iclab.report.formats import duration
from iclab.runs.cluster import Here, elsewhere, require_same
from iclab.runs.contents import from_bytes, model_files, to_bytes
from iclab.runs.options import override
from iclab.runs.progress import RunProgress
from iclab.runs.store import Store
from iclab.runs.sweep_target import settings_of
from iclab.together import Asking, side_by_side


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


PROGRAMS = "programs.csv"  # what was compiled and run, and how long that took
CONTROL = "control/"  # begins the names of results of untrained models


def run_here(jobs: Sequence[Job], store: Store, progress: RunProgress) -> dict[str, xr.Dataset]:
    """Every experiment's dataset by "paper/experiment", and those of untrained models by "control/paper/experiment".

    What the store has is not run again; trainings are checkpointed. Experiments of all papers run side by side.
    """
    results: dict[str, xr.Dataset] = {}
    tasks = []
    for job in jobs:
        save = store.save_models if job.save_models else lambda trained: None
        benches = job.lab(on_trained=save), job.lab(untrained=True)
        for name in job.experiments:
            label, cost = job.result(name), job.source.experiments[name].cost
            wanted = [label, *([f"{CONTROL}{label}"] if job.control else [])]
            kept = {place: data for place in wanted if (data := store.load_result(place)) is not None}
            if job.save_models and not store.models_are_whole():
                kept = {}
            results |= kept
            if len(kept) == len(wanted):
                progress.skip(label, cost, kept)
            else:
                tasks.append(functools.partial(_run, job, name, benches, kept, store, progress))

    def note(ahead: Ahead) -> None:
        if ahead.programs:  # a run that is only read again keeps the table of the time it was computed
            store.write(PROGRAMS, ahead.table().encode())

    for found in side_by_side(tasks, ComputingEngine(store.checkpoint), note=note):
        results |= found
    return results


def _run(
    job: Job,
    name: str,
    benches: tuple[Lab, Lab],
    kept: Mapping[str, xr.Dataset],
    store: Store,
    progress: RunProgress,
    engine: Asking,
) -> dict[str, xr.Dataset]:
    """One experiment: with trained models, and where it is wanted with untrained ones."""
    experiment, label = job.source.experiments[name], job.result(name)
    progress.begin(label, experiment.cost)
    found = dict(kept)
    lab, untrained = (bench.asking(engine, functools.partial(progress.update, label)) for bench in benches)
    for place, bench in {label: lab, **({f"{CONTROL}{label}": untrained} if job.control else {})}.items():
        if place not in found:
            found[place] = timed(experiment, bench, engine)
            store.save_result(place, found[place], float(found[place].attrs["seconds"]))
        untrained.replay(lab.computed_outside)
    progress.end(label, duration(engine.seconds()), found)
    return found


def timed(experiment: Experiment, lab: Lab, engine: Asking) -> xr.Dataset:
    """An experiment's dataset, with the seconds that it took, and how many of its trainings diverged."""
    before = engine.seconds()
    data = experiment.run(lab)
    diverged, members = lab.diverged()
    return data.assign_attrs(seconds=engine.seconds() - before, diverged=diverged, members=members)


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

    pending = {}
    for piece, job in single.items():
        names = store.kept(f"results/pieces/{piece}/names")  # written last: the piece is whole
        kept = {name: store.load_result(f"pieces/{piece}/{name}") for name in (names or b"").decode().split()}
        found = {name: data for name, data in kept.items() if data is not None}
        if models_whole and names is not None and len(found) == len(kept):
            progress.skip(piece, costs[piece])
            arrived(piece, found)
        else:
            pending[piece] = job
    for piece, (contents, models) in elsewhere(compute_piece, pending, store.fingerprint, executor):
        progress.begin(piece, costs[piece])
        for name, model in models.items():
            store.save_model(name, model)
        found = {name: from_bytes(content) for name, content in contents.items()}
        for name, data in found.items():
            store.save_result(f"pieces/{piece}/{name}", data, float(data.attrs["seconds"]))
        store.keep(f"results/pieces/{piece}/names", " ".join(found).encode())
        progress.end(piece, duration(sum(float(data.attrs["seconds"]) for data in found.values())))
        arrived(piece, found)
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
    benches = job.lab(on_trained=save), job.lab(untrained=True)
    tasks = [functools.partial(_for_one_seed, job, name, benches) for name in job.experiments]
    results: dict[str, bytes] = {}
    for found in side_by_side(tasks, ComputingEngine()):
        results |= found
    return results, models


def _for_one_seed(job: Job, name: str, benches: tuple[Lab, Lab], engine: Asking) -> dict[str, bytes]:
    """The files of one experiment; none if it is for the first few seeds only."""
    experiment, label = job.source.experiments[name], job.result(name)
    lab, untrained = (bench.asking(engine, lambda what, fraction: None) for bench in benches)
    try:
        found = {label: to_bytes(timed(experiment, lab, engine))}
        untrained.replay(lab.computed_outside)
        if job.control:
            found[f"{CONTROL}{label}"] = to_bytes(timed(experiment, untrained, engine))
    except NoSeedsError:
        return {}
    return found

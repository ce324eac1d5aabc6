"""The experiments of a reproduction: run in this process, or seed by seed on an executor's workers."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import xarray as xr

from iclab.ahead import table
from iclab.authoring.paper import Paper
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
    """Experiments of one paper with some seeds: plain data that can be sent to a worker.

    `text` is the source of a paper that is not built in; `changes` are the settings that `--set`, or a reading with
    its own settings, changes in the profile; `variant` is the name of that reading. With `control` the experiments
    also run on untrained models. Seeds that do not begin at 0 extend existing results.
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
        """Its name. A paper has several jobs if a reading has its own settings or its explorer has fewer seeds."""
        explorer = "-explorer" if self.experiments == ("explorer",) else ""
        return f"{self.paper}{explorer}{f'@{self.variant}' if self.variant else ''}"

    @property
    def cost(self) -> float:
        """Its rough share of the time."""
        return sum(self.cost_of(name) for name in self.experiments)

    def cost_of(self, experiment: str) -> float:
        """The rough share of one of its experiments."""
        return self.source.experiments[experiment].cost * len(self.seeds)

    def lab(self, **more: Any) -> Lab:
        """The bench on which its experiments run. Its label names what is kept, not what is drawn."""
        later = f"from-{self.seeds[0]}@" if self.seeds[0] else ""
        label = f"{self.variant}@{later}" if self.variant else later
        return Lab(self.paper, self.settings, self.seeds, label=label, experiments=self.experiments, **more)

    def places(self, experiment: str) -> list[str]:
        """The names of an experiment's results: of trained models and, with `control`, of untrained ones."""
        plain = f"{self.paper}/{experiment}{f'@{self.variant}' if self.variant else ''}"
        return [plain, *([f"{CONTROL}{plain}"] if self.control else [])]


PROGRAMS = "programs.csv"  # compiled programs and their times
CONTROL = "control/"  # begins the names of results of untrained models
BLOCKS = "blocks"  # the attribute of a result that says in which blocks its seeds were computed
TOTALS = {"seconds": float, "diverged": int, "members": int}


def run(
    jobs: Sequence[Job], store: Store, progress: RunProgress, executor: concurrent.futures.Executor | None = None
) -> dict[str, xr.Dataset]:
    """Every experiment's dataset by "paper/experiment", and those of untrained models by "control/paper/experiment".

    Results in the store are not computed again. In this process, trainings are checkpointed and the experiments of all
    papers run side by side; on an executor, every seed of every job is a separate piece of work.
    """
    results: dict[str, xr.Dataset] = {}
    earlier: dict[str, xr.Dataset] = {}
    left = []
    whole = store.models_are_whole()
    for job in jobs:
        wanted: dict[int, list[str]] = {}  # experiments by the seed they continue with
        for name in job.experiments:
            places = job.places(name)
            kept = {place: data for place in places if (data := store.load_result(place)) is not None}
            there = {place: cut(data, job.seeds[-1] + 1) for place, data in kept.items() if asked(data) > job.seeds[-1]}
            earlier |= kept
            if len(there) == len(places) and (whole or not job.save_models):
                results |= there
                progress.skip(places[0], job.cost_of(name), there)
            else:
                before = min(asked(kept[place]) if place in kept else 0 for place in places)
                wanted.setdefault(before if before in job.seeds else job.seeds[0], []).append(name)
        for first, names in wanted.items():
            seeds = tuple(seed for seed in job.seeds if seed >= first)
            left.append(dataclasses.replace(job, experiments=tuple(names), seeds=seeds))

    def keep(job: Job, place: str, found: Sequence[xr.Dataset]) -> None:
        """Save a result together with earlier seeds. `found` is empty if only the first few seeds count."""
        before = [cut(earlier[place], job.seeds[0])] if place in earlier and job.seeds[0] else []
        if before or found:
            blocks = [*blocks_of(before), (job.seeds[-1] + 1, *_totals(found))]
            results[place] = joined([*before, *found], job.source).assign_attrs({BLOCKS: json.dumps(blocks)})
            store.save_result(place, results[place], float(results[place].attrs["seconds"]))

    def finish(job: Job, name: str, note: str) -> None:
        progress.end(job.places(name)[0], note, {p: results[p] for p in job.places(name) if p in results})

    if executor is None:
        _here(left, store, progress, keep, finish)
    else:
        _elsewhere(left, store, progress, keep, finish, executor, whole)
    return results


Keep = Callable[[Job, str, Sequence[xr.Dataset]], None]
Finish = Callable[[Job, str, str], None]


def asked(data: xr.Dataset) -> int:
    """The seed (not included) up to which a result was requested; some experiments take fewer."""
    return max((int(block[0]) for block in blocks_of([data])), default=0)


def blocks_of(parts: Sequence[xr.Dataset]) -> list[tuple[Any, ...]]:
    """The blocks in which the seeds of results were computed: the last seed and the cost of each."""
    return [tuple(block) for data in parts for block in json.loads(data.attrs.get(BLOCKS, "[]"))]


def cut(data: xr.Dataset, seeds: int) -> xr.Dataset:
    """A result as it was when only its first seeds had been requested."""
    if asked(data) <= seeds:
        return data
    blocks = [block for block in blocks_of([data]) if block[0] <= seeds]
    totals = {name: sum(block[1 + number] for block in blocks) for number, name in enumerate(TOTALS)}
    return data.sel(seed=data["seed"] < seeds).assign_attrs({**totals, BLOCKS: json.dumps(blocks)})


def _totals(parts: Sequence[xr.Dataset]) -> list[float]:
    return [kind(sum(part.attrs[name] for part in parts)) for name, kind in TOTALS.items()]


def joined(parts: Sequence[xr.Dataset], source: Paper) -> xr.Dataset:
    """Results of several seeds, concatenated, with the sums of their costs."""
    both = parts[0]
    if source.unit == "seed" and len(parts) > 1:
        both = xr.concat(
            parts, "seed", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override"
        )
    return both.assign_attrs(dict(zip(TOTALS, _totals(parts), strict=True)))


def _here(jobs: Sequence[Job], store: Store, progress: RunProgress, keep: Keep, finish: Finish) -> None:
    def one(job: Job, name: str, benches: tuple[Lab, Lab], engine: Asking) -> None:
        label = job.places(name)[0]
        progress.begin(label, job.cost_of(name))
        report = functools.partial(progress.update, label)
        for place, found in computed(job, name, benches, engine, report):
            keep(job, place, found)
        finish(job, name, duration(engine.seconds()))

    tasks = []
    for job in jobs:
        save = store.save_models if job.save_models else lambda trained: None
        benches = job.lab(on_trained=save), job.lab(untrained=True)
        tasks += [functools.partial(one, job, name, benches) for name in job.experiments]
    try:
        side_by_side(tasks, ComputingEngine(store.checkpoint), programs=progress.programs)
    finally:
        if progress.programs:  # a run that computes nothing keeps the table of the run that did
            store.write(PROGRAMS, table(progress.programs).encode())


def computed(
    job: Job, name: str, benches: tuple[Lab, Lab], engine: Asking, report: Callable[[str, float], None]
) -> Iterator[tuple[str, list[xr.Dataset]]]:
    """The places of one experiment and their results: of trained models and, if wanted, of untrained ones. A result is
    empty if the experiment is for the first few seeds only.
    """
    trained, untrained = (bench.asking(engine, report) for bench in benches)
    for place, lab in zip(job.places(name), (trained, untrained), strict=False):
        before = engine.seconds()
        try:
            data = job.source.experiments[name].run(lab)
        except NoSeedsError:
            yield place, []
            continue
        diverged, members = lab.diverged()
        yield place, [data.assign_attrs(seconds=engine.seconds() - before, diverged=diverged, members=members)]
        untrained.replay(trained.computed_outside)


def _elsewhere(
    jobs: Sequence[Job],
    store: Store,
    progress: RunProgress,
    keep: Keep,
    finish: Finish,
    executor: concurrent.futures.Executor,
    models_are_whole: bool,
) -> None:
    """Give the executor every seed of every job as one piece of work. Finished pieces are kept."""
    pieces = {f"{job.label}-seed-{seed}": (job, seed) for job in jobs for seed in job.seeds}
    found: dict[str, dict[str, xr.Dataset]] = {}

    def arrived(piece: str) -> None:
        """Finish the experiments of a job when its last seed arrives."""
        job, _ = pieces[piece]
        own = [found.get(f"{job.label}-seed-{seed}") for seed in job.seeds]
        if all(one is not None for one in own):
            for name in job.experiments:
                progress.begin(job.places(name)[0], 0.0)
                for place in job.places(name):
                    keep(job, place, [one[place] for one in own if one and place in one])
                finish(job, name, "all seeds finished")

    pending = {}
    for piece, (job, seed) in pieces.items():
        names = store.kept(f"results/pieces/{piece}/names")  # written last: the piece is whole
        kept = {name: store.load_result(f"pieces/{piece}/{name}") for name in (names or b"").decode().split()}
        if models_are_whole and names is not None and all(data is not None for data in kept.values()):
            found[piece] = {name: data for name, data in kept.items() if data is not None}
            progress.skip(piece, job.cost / len(job.seeds))
            arrived(piece)
        else:
            pending[piece] = dataclasses.replace(job, seeds=(seed,))
    for piece, (contents, models) in elsewhere(compute_piece, pending, store.fingerprint, executor):
        job, _ = pieces[piece]
        progress.begin(piece, job.cost / len(job.seeds))
        for name, model in models.items():
            store.save_model(name, model)
        found[piece] = {name: from_bytes(content) for name, content in contents.items()}
        for name, data in found[piece].items():
            store.save_result(f"pieces/{piece}/{name}", data, float(data.attrs["seconds"]))
        store.keep(f"results/pieces/{piece}/names", " ".join(found[piece]).encode())
        progress.end(piece, duration(sum(float(data.attrs["seconds"]) for data in found[piece].values())))
        arrived(piece)


def compute_piece(job: Job, run: Here) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """On a worker: netCDF files by name of the result, and model files by name."""
    require_same(run)
    models: dict[str, bytes] = {}
    save = (lambda trained: models.update(model_files(trained))) if job.save_models else (lambda trained: None)
    benches = job.lab(on_trained=save), job.lab(untrained=True)

    def one(name: str, engine: Asking) -> dict[str, bytes]:
        several = computed(job, name, benches, engine, lambda what, fraction: None)
        return {place: to_bytes(data) for place, found in several for data in found}

    tasks = [functools.partial(one, name) for name in job.experiments]
    found = side_by_side(tasks, ComputingEngine())
    return {name: content for one_found in found for name, content in one_found.items()}, models

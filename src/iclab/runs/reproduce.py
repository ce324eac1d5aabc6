"""`iclab reproduce`: from ids to answers, figures and a page."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
import importlib.metadata
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import xarray as xr
from matplotlib.figure import Figure
from rich.console import Console

from iclab import sequential
from iclab.authoring.dependence import computing_part
from iclab.authoring.paper import PROFILES, Paper, variants
from iclab.authoring.plugged import SETTING, pinned_in, text_of
from iclab.devices import clock, numerics, prepare_jax
from iclab.entries import SCHEMA
from iclab.errors import InputError, require
from iclab.library import library, select
from iclab.papers import PAPERS
from iclab.report.figures import Drawn, draw, draw_all
from iclab.report.formats import duration
from iclab.report.page import Section, render_page
from iclab.runs import status
from iclab.runs.answered import Entry
from iclab.runs.contents import as_json, is_file
from iclab.runs.jobs import Job, run
from iclab.runs.judging import Judge, at_one_size, dry_run
from iclab.runs.limits import refuse_too_large
from iclab.runs.manifest import MANIFEST, read_manifest, source_digest
from iclab.runs.opened import CLAIMS, Run
from iclab.runs.options import check_names, check_profile, override, seed_count
from iclab.runs.options import texts as as_texts
from iclab.runs.progress import resumable
from iclab.runs.reuse import take_over
from iclab.runs.robust_results import beside, open_robust
from iclab.runs.store import Store
from iclab.runs.sweep_target import settings_of
from iclab.statements import Statement

EXPLORED = 2  # seeds that a paper's explorer trains if the whole paper runs


def reproduce(
    *ids: str,
    only: str = "",
    profile: str = "quick",
    seeds: int | None = None,
    out: str | Path | None = None,
    changes: Mapping[str, str] | None = None,
    save_models: bool = False,
    until_decided: bool | None = None,
    minutes: float | None = None,
    reuse: str | Path | None = None,
    robustness: str | Path | None = None,
    executor: concurrent.futures.Executor | None = None,
    console: Console | None = None,
) -> Run:
    """Run the experiments behind these statements (papers, statements, prefixes or .py files; default: all papers) and
    answer them.

    `only` keeps one group of statements: papers, theorems, figures or beyond. Results go to `out` (default: a new
    folder named after the time). If `out` holds the same run, interrupted, it is continued: finished experiments are
    not run again, and a training continues from its last checkpoint. With an `executor` (a process pool, a Dask
    cluster) every seed of every paper is a separate piece of work; the numbers are the same.

    `seeds` is the number of training seeds per setting. With `until_decided` it is the largest number: a run begins
    with a few seeds and adds more for statements that are still open, for at most `minutes` (`iclab.sequential`
    explains why the answers are as safe). The quick profile does so by default. `reuse` is the folder of another run;
    models that it trained at the same settings are not trained again. `robustness` is the folder of an `iclab robust`
    run; the page shows its curves instead of the recorded ones.
    """
    console = console or Console(quiet=True)
    shelf, names = library(ids)
    chosen = {statement.paper for statement in select(names, only=only, papers=shelf.papers)}
    papers = [paper for paper in shelf.papers.values() if paper.id in chosen]
    check_profile(profile)
    count = seed_count(seeds, profile)
    sparing = (seeds is None and PROFILES[profile].sparing) if until_decided is None else until_decided
    require(minutes is None or sparing, "minutes limit a run that adds seeds; give until_decided=True as well.")
    require(minutes is None or 0 <= minutes < math.inf, f"minutes is {minutes}; it must be finite and not negative.")
    require(
        reuse is None or not save_models,
        "save_models and reuse cannot be combined: models are saved only if they are trained in this run.",
    )
    looks = sequential.until_decided(count) if sparing else sequential.once(count)
    changes = pinned_in(changes or {})
    check_names("--set", list(changes), {paper.id: settings_of(paper, profile) for paper in papers})
    settings = {paper.id: override(settings_of(paper, profile), changes) for paper in papers}
    statements = select(names, settings, only, shelf.papers)
    if not PROFILES[profile].answers:
        statements = [at_one_size(statement) for statement in statements]
    for paper in [paper for paper in papers if paper.lacking(settings[paper.id])]:
        sentence = paper.lacking(settings[paper.id])
        require(not ids, f"{paper.id}: {sentence}.")
        console.print(f"skipping {paper.id}: {sentence}.", markup=False, highlight=False, soft_wrap=True)
        papers.remove(paper)
        settings.pop(paper.id)
        statements = [statement for statement in statements if statement.paper != paper.id]
    others = [statement.id for statement in statements if statement.asked_of]
    curves = beside(None if robustness is None else open_robust(robustness), without=others)
    prepare_jax()
    texts = {name: text for name, text in shelf.texts.items() if name in chosen}
    for paper in papers:
        paper.check(settings[paper.id])
        if paper.id in texts:  # the tests check built-in statements against their experiments
            dry_run(paper, settings[paper.id], [statement for statement in statements if statement.paper == paper.id])
    named = names and not only and all(name in shelf.papers for name in names)
    identity = {
        "ids": sorted(set(names) if named else {_id(statement) for statement in statements}) if ids or only else [],
        "profile": profile,
        "seeds": count,
        "looks": [look.seeds for look in looks],
        "settings": {name: dataclasses.asdict(value) for name, value in settings.items()},
        "changes": changes,
        "save_models": save_models,
        "version": importlib.metadata.version("iclab"),
        "source": source_digest(),  # never mix in results of other code
        "numerics": numerics(),
    }
    if texts:  # the part of a file that its results depend on; the plan has the whole file
        parts = {name: computing_part(text) if name in shelf.files else text for name, text in texts.items()}
        identity |= {"texts": parts, "files": sorted(name for name in texts if name in shelf.files)}
    directory = Path(out) if out is not None else Path(f"iclab-run-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    began = time.perf_counter()
    compiled_before = clock().seconds
    like = Job("", "", (), profile, changes, tuple(range(count)), save_models)
    _same_files(directory, identity)
    if changes or seeds is not None:
        refuse_too_large(_jobs(papers, statements, settings, texts, like))
    carried = texts | text_of(changes.get(SETTING, ""))
    judge = Judge({paper.id: paper for paper in papers}, settings, attempted=PROFILES[profile].answers)
    with resumable(console, directory), Store(directory, identity, {"texts": carried} if carried else None) as store:
        store.on_report = lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
        if reuse is not None:
            console.print(f"[dim]{take_over(store, Path(reuse))} results reused from {reuse}[/]")
        progress = status.WatchedProgress(console, 0.0, store, statements, judge)
        results: dict[str, xr.Dataset] = {}
        before = 0
        with progress:
            for look in looks:
                wanted = progress.unsettled()
                over = minutes is not None and time.perf_counter() - began > 60 * minutes
                if not wanted or (before and over):
                    break
                now = dataclasses.replace(like, seeds=tuple(range(before, look.seeds)))
                jobs = _jobs(papers, wanted, settings, texts, now)
                progress.look(look, sum(job.cost for job in jobs), last=look is looks[-1])
                results |= run(jobs, store, progress, executor)
                before = look.seeds
        console.print("[dim]drawing the figures[/]")
        entries = _draw(store, judge, statements, results, progress.judged(), curves, profile, began)
        store.forget_trainings()
        status.forget(store)
    compiling = duration(clock().seconds - compiled_before)
    console.print(f"[dim]{duration(time.perf_counter() - began)} in total, of which compiling {compiling}[/]")
    return Run(directory, cast(list[Entry], entries), results, trusted=True)


def _id(statement: Statement) -> str:
    """The id, with the reading if only one was requested."""
    reading = statement.readings[0].name
    return f"{statement.id}[{reading}]" if len(statement.readings) == 1 and reading else statement.id


def _jobs(
    papers: Sequence[Paper],
    statements: Sequence[Statement],
    settings: Mapping[str, Any],
    texts: Mapping[str, str],
    like: Job,
) -> list[Job]:
    """The jobs of a run: every paper's experiments, those of readings with their own settings, and the explorers."""
    jobs, explorers = [], []
    for paper in papers:
        own = [statement for statement in statements if statement.paper == paper.id]
        if like.seeds[0] and paper.unit != "seed":
            continue
        needs = {need for statement in own for need in statement.needs()}
        seeds = like.seeds if paper.unit == "seed" else (0,)  # a given model is tested once
        mine = dataclasses.replace(like, paper=paper.id, text=texts.get(paper.id, ""), seeds=seeds)
        for name, reading in {"": None, **variants(own)}.items():
            behind = f"@{name}" if name else ""
            wanted = tuple(experiment for experiment in paper.experiments if f"{experiment}{behind}" in needs)
            changes = {**like.changes, **(as_texts(reading.changes) if reading else {})}
            control = paper.unit == "seed"
            if wanted:
                saved = like.save_models and not name  # only at the paper's own settings
                job = dataclasses.replace(
                    mine, experiments=wanted, changes=changes, variant=name, control=control, save_models=saved
                )
                assert job.settings is not None  # raises here, before anything runs, if a reading's changes are invalid
                jobs.append(job)
        whole = {statement.id for statement in paper.statements(settings[paper.id])} <= {
            statement.id for statement in own
        }
        if paper.explore and whole and not like.seeds[0]:
            few = tuple(seeds[:EXPLORED])
            explorers.append(dataclasses.replace(mine, experiments=("explorer",), seeds=few, save_models=False))
    return jobs + explorers


def _draw(
    store: Store,
    judge: Judge,
    statements: Sequence[Statement],
    results: Mapping[str, xr.Dataset],
    judged: Mapping[str, dict[str, Any]],
    curves: Mapping[str, dict[str, Any]],
    profile: str,
    began: float,
) -> list[dict[str, Any]]:
    """Write claims.json, figures, tables and the page from results and answers."""
    entries = []
    sections = {}
    by_paper = {name: [one for one in statements if one.paper == name] for name in judge.papers}
    drawn = _drawn(judge, by_paper, results)
    for place, figure in drawn.items():
        for kind, content in figure.files().items():
            store.write(f"figures/{place}.{kind}", content)
    for paper in judge.papers.values():
        own, _ = judge.split(paper.id, results)
        mine = by_paper[paper.id]
        figures = {Path(place).name: figure for place, figure in drawn.items() if Path(place).parent.name == paper.id}
        settings = judge.settings[paper.id]
        wanted = dict.fromkeys(statement.table for statement in mine if statement.table)
        tables = {name: paper.tables[name](own, settings) for name in wanted}
        seconds = sum(float(data.attrs["seconds"]) for data in own.values())
        inside = paper.explore(own["explorer"], settings) if paper.explore and "explorer" in own else None
        sections[paper.id] = Section(figures, tables, seconds, inside)
        for statement in mine:
            took = sum(float(own[name].attrs["seconds"]) for name in statement.needs())
            run = {"profile": profile, "settings": dataclasses.asdict(settings), "seconds": round(took, 2)}
            curve = {key: value for key, value in curves.get(statement.id, {}).items() if key != "svg"}
            entries.append(judged[statement.id] | run | ({"robustness": curve} if curve else {}))
    store.keep(CLAIMS, as_json({"schema": SCHEMA, "run": store.fingerprint, "statements": entries}))
    shown = [one | ({"robustness": curves[one["id"]]} if one["id"] in curves else {}) for one in entries]
    page = render_page(store.identity, store.manifest, shown, sections, time.perf_counter() - began, judge.papers)
    store.write("index.html", page.encode())
    return entries


def _drawn(
    judge: Judge, by_paper: Mapping[str, Sequence[Statement]], results: Mapping[str, xr.Dataset]
) -> dict[str, Drawn]:
    """The figures of all papers by "paper/figure". A user's file draws in this process; others lack its code."""
    figures: dict[bool, dict[str, Callable[[], Figure]]] = {True: {}, False: {}}
    for paper, statements in by_paper.items():
        found = judge.figures(statements, *judge.split(paper, results))
        figures[paper in PAPERS] |= {f"{paper}/{name}": figure for name, figure in found.items()}
    return draw_all(figures[True]) | {place: draw(figure()) for place, figure in figures[False].items()}


def _same_files(directory: Path, identity: Mapping[str, Any]) -> None:
    """Refuse to continue a run whose .py file has changed, and name the file rather than "another run"."""
    if not is_file(directory / MANIFEST):
        return
    before = read_manifest(directory)["identity"]
    changed = [
        name for name in identity.get("files", ()) if before.get("texts", {}).get(name, "") != identity["texts"][name]
    ]
    if changed and {**before, "texts": None} == {**identity, "texts": None}:
        names = ", ".join(f"{name}.py" for name in changed)
        raise InputError(
            f"{names} has changed since the run in {directory} began, and results depend on the change; choose "
            "another --out."
        )

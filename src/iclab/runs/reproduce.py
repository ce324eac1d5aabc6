"""`iclab reproduce`: from ids to verdicts, figures and a page."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
import importlib.metadata
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr
from rich.console import Console

from iclab.claims import Claim, judge
from iclab.devices import clock, prepare_jax
from iclab.errors import InputError, require
from iclab.papers import PROFILES, Paper, library, select
from iclab.report.figures import draw
from iclab.report.page import Section, render_page
from iclab.report.formats import duration
from iclab.runs import status
from iclab.runs.options import check_names, check_profile, override
from iclab.runs.jobs import Job, run_elsewhere, run_here
from iclab.runs.progress import resumable
from iclab.runs.store import MANIFEST, Store, read_manifest, source_digest
from iclab.runs.sweep_target import settings_of

EXPLORED = 2  # seeds that a paper's explorer trains, where the whole paper is asked for


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run: where it is, its claims as in claims.json, and its results as xarray datasets by "paper/experiment"."""

    directory: Path
    claims: list[dict[str, Any]]
    results: dict[str, xr.Dataset]


def reproduce(
    *ids: str,
    only: str = "",
    profile: str = "quick",
    seeds: int | None = None,
    out: str | Path | None = None,
    changes: Mapping[str, str] | None = None,
    save_models: bool = False,
    executor: concurrent.futures.Executor | None = None,
    console: Console | None = None,
) -> Run:
    """Run the experiments behind these claims (papers, claims, prefixes, a user's .py file; none: all) and judge them.

    `only` keeps the claims of one topic ("rates"). Results go to `out` (default: a new folder named after the time). A folder
    in which the same run was interrupted is continued: finished experiments are not run again, and a training goes on from its
    last checkpoint. With an `executor` (a process pool, a Dask cluster) every seed of every paper is a piece of work of its
    own; the numbers are the same.
    """
    console = console or Console(quiet=True)
    shelf, names = library(ids)
    chosen = {claim.paper for claim in select(names, only=only, papers=shelf.papers)}
    papers = [paper for paper in shelf.papers.values() if paper.id in chosen]
    check_profile(profile)
    count = PROFILES[profile].seeds if seeds is None else seeds
    require(count >= 1, f"--seeds is {count}; at least one seed is needed.")
    changes = dict(changes or {})
    check_names("--set", list(changes), {paper.id: settings_of(paper, profile) for paper in papers})
    settings = {paper.id: override(settings_of(paper, profile), changes) for paper in papers}
    claims = select(names, settings, only, shelf.papers)
    for paper in [paper for paper in papers if paper.lacking(settings[paper.id])]:
        sentence = paper.lacking(settings[paper.id])
        require(not ids, f"{paper.id}: {sentence}.")
        console.print(f"{paper.id} left out: {sentence}.", markup=False, highlight=False, soft_wrap=True)
        papers.remove(paper)
        settings.pop(paper.id)
        claims = [claim for claim in claims if claim.paper != paper.id]
    for paper in papers:
        paper.check(settings[paper.id])
    prepare_jax()
    identity = {
        "ids": sorted(claim.id for claim in claims) if ids or only else [],
        "profile": profile,
        "seeds": count,
        "settings": {name: dataclasses.asdict(value) for name, value in settings.items()},
        "changes": changes,
        "save_models": save_models,
        "version": importlib.metadata.version("iclab"),
        "source": source_digest(),  # results of other code are never mixed in
    }
    texts = {name: text for name, text in shelf.texts.items() if name in chosen}
    places = {name: str(Path(shelf.files[name]).resolve()) for name in texts if name in shelf.files}
    if texts:
        identity |= {"texts": texts, "files": sorted(places)}
    directory = Path(out) if out is not None else Path(f"iclab-run-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    began = time.perf_counter()
    compiled_before = clock().seconds
    few = min(count, EXPLORED)

    def job(paper: Paper, experiments: Sequence[str], seeds: int, save: bool) -> Job:
        own = range(seeds if paper.unit == "seed" else 1)  # a given model is asked once
        return Job(paper.id, texts.get(paper.id, ""), tuple(experiments), profile, changes, tuple(own), save)

    jobs = [job(paper, _needed(paper, claims), count, save_models) for paper in papers]
    explored = [p for p in papers if p.explore and {c.id for c in p.claims(settings[p.id])} <= {c.id for c in claims}]
    jobs += [job(paper, ["explorer"], few, False) for paper in explored]
    _same_files(directory, identity)
    with resumable(console, directory), Store(directory, identity, {"places": places} if places else None) as store:
        store.on_report = lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
        cost, attempted = sum(job.cost for job in jobs), PROFILES[profile].verdicts
        with status.WatchedProgress(console, cost, store, claims, attempted=attempted) as progress:
            results = run_elsewhere(jobs, store, progress, executor) if executor else run_here(jobs, store, progress)
        console.print(f"[dim]judging {len(claims)} claims, drawing their figures[/]")
        entries = _judge_and_draw(store, papers, claims, settings, results, profile, began)
        store.forget_trainings()
        status.forget(store)
    compiling = duration(clock().seconds - compiled_before)
    console.print(f"[dim]{duration(time.perf_counter() - began)} in all, {compiling} of it compiling[/]")
    return Run(directory, entries, results)


def _judge_and_draw(
    store: Store,
    papers: Sequence[Paper],
    claims: Sequence[Claim],
    settings: Mapping[str, Any],
    results: Mapping[str, xr.Dataset],
    profile: str,
    began: float,
) -> list[dict[str, Any]]:
    """Verdicts, figures, tables and the page, from results alone."""
    entries = []
    sections = {}
    for paper in papers:
        own = {name.split("/", 1)[1]: data for name, data in results.items() if name.startswith(f"{paper.id}/")}
        shown = dict.fromkeys(claim.figure for claim in claims if claim.paper == paper.id and claim.figure)
        figures = {name: draw(paper.figures[name](own, settings[paper.id])) for name in shown}
        for name, drawn in figures.items():
            for kind, content in drawn.files().items():
                store.write(f"figures/{paper.id}/{name}.{kind}", content)
        wanted = dict.fromkeys(claim.table for claim in claims if claim.paper == paper.id and claim.table)
        tables = {name: paper.tables[name](own, settings[paper.id]) for name in wanted}
        seconds = sum(float(data.attrs["seconds"]) for data in own.values())
        inside = paper.explore(own["explorer"], settings[paper.id]) if paper.explore and "explorer" in own else None
        sections[paper.id] = Section(figures, tables, seconds, inside)
        for claim in claims:
            if claim.paper == paper.id:
                entries.append(
                    judge(claim, own, attempted=PROFILES[profile].verdicts)
                    | {
                        "profile": profile,
                        "settings": dataclasses.asdict(settings[paper.id]),
                        "seconds": round(sum(float(own[name].attrs["seconds"]) for name in claim.needs), 2),
                    }
                )
    store.write_json("claims.json", entries)
    own_papers = {paper.id: paper for paper in papers}
    page = render_page(store.identity, store.manifest, entries, sections, time.perf_counter() - began, own_papers)
    store.write("index.html", page.encode())
    return entries


def _same_files(directory: Path, identity: Mapping[str, Any]) -> None:
    """A run is not continued with another text of a user's file; say so, rather than that the folder holds another run."""
    if not (directory / MANIFEST).is_file():
        return
    before = read_manifest(directory)["identity"]
    changed = [name for name in identity.get("files", ()) if before.get("texts", {}).get(name, "") != identity["texts"][name]]
    if changed and {**before, "texts": None} == {**identity, "texts": None}:
        names = ", ".join(f"{name}.py" for name in changed)
        raise InputError(f"{names} has changed since the run in {directory} was begun; choose another --out for the new one.")


def _needed(paper: Paper, claims: Sequence[Claim]) -> list[str]:
    """The experiments behind these claims, in the paper's order."""
    wanted = {name for claim in claims if claim.paper == paper.id for name in claim.needs}
    return [name for name in paper.experiments if name in wanted]


def read_claims(directory: Path) -> list[dict[str, Any]]:
    """claims.json of a finished run."""
    path = directory / "claims.json"
    if not path.is_file():
        raise InputError(f"{directory} holds no claims.json; is it a finished run of iclab?")
    try:
        entries = json.loads(path.read_text())
        for entry in entries:
            next(check["rule"] for check in entry["checks"] if check["name"] == entry["decided_by"])
            entry["id"], entry["verdict"], entry["measured"], entry["low"], entry["high"]
        return list(entries)
    except (ValueError, KeyError, TypeError, StopIteration, OSError) as error:
        raise InputError(f"{path} is damaged and cannot be read.") from error

"""`iclab reproduce`: from ids to verdicts, figures and a page."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import importlib.metadata
import io
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import xarray as xr
from rich.console import Console

from iclab.claims import Claim, Table, judge
from iclab.ensemble import use_all_cores
from iclab.errors import InputError, nearest, require
from iclab.experiments import Lab
from iclab.papers import PAPERS, PROFILES, Paper, select
from iclab.report.page import render_page
from iclab.runs.progress import RunProgress, duration
from iclab.runs.store import Store, revision


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run: where it is, its claims as in claims.json, and its results as xarray datasets by "paper/experiment"."""

    directory: Path
    claims: list[dict[str, Any]]
    results: dict[str, xr.Dataset]


def cache_directory() -> Path:
    """Where compiled programs are kept: $ICLAB_CACHE, or iclab/compiled in the user's cache folder."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ICLAB_CACHE") or home / "iclab" / "compiled")


def prepare_jax() -> None:
    """All cores as devices, matrix products in full float32, and a compilation cache on disk for the second run.

    By default a GPU rounds the factors of a float32 product to 10 bits (TF32); on an H200 that alone made the two forms of
    Mamba differ by 1e-4.
    """
    use_all_cores()
    jax.config.update("jax_default_matmul_precision", "float32")
    jax.config.update("jax_compilation_cache_dir", str(cache_directory()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


class CompilationClock:
    """How long JAX spent compiling, so that the second run's gain is visible. Programs from the cache take no time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._hear)

    def _hear(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            self.seconds += duration_secs


@functools.cache
def _clock() -> CompilationClock:
    """One clock per process: JAX keeps every listener it is given."""
    return CompilationClock()


def override(paper: Paper, profile: str, changes: Mapping[str, str]) -> Any:
    """The paper's settings for a profile with `--set name=value` applied to the fields it has."""
    settings = paper.settings[profile]
    kinds = {field.name: type(getattr(settings, field.name)) for field in dataclasses.fields(settings)}
    values = {}
    for name, text in changes.items():
        if name in kinds:
            try:
                values[name] = kinds[name](text)
            except ValueError:
                raise InputError(f"--set {name}={text}: {name} takes a value like {getattr(settings, name)!r}.") from None
            require(math.isfinite(values[name]), f"--set {name}={text}: the value must be finite.")
    return dataclasses.replace(settings, **values)


def check_profile(profile: str) -> None:
    """Refuse an unknown profile."""
    require(profile in PROFILES, f"profile {profile!r} is unknown. {nearest(profile, PROFILES)}")


def check_names(papers: Sequence[Paper], profile: str, changes: Mapping[str, str], also: Sequence[str] = ()) -> None:
    """Every name in `--set` must be a setting of at least one of the papers asked for, or one of `also`."""
    known = sorted({field.name for paper in papers for field in dataclasses.fields(paper.settings[profile])} | set(also))
    for name in changes:
        if name not in known:
            raise InputError(
                f"--set {name}: no setting of {', '.join(p.id for p in papers)} has this name. {nearest(name, known)}"
            )


def reproduce(
    *ids: str,
    profile: str = "quick",
    seeds: int | None = None,
    out: str | Path | None = None,
    changes: Mapping[str, str] | None = None,
    save_models: bool = False,
    console: Console | None = None,
) -> Run:
    """Run the experiments behind these claims (papers, claims or prefixes; none: all) and judge them.

    Results go to `out` (default: a new folder named after the time). A folder in which the same run was interrupted is
    continued: finished experiments are not run again.
    """
    console = console or Console(quiet=True)
    papers = [paper for paper in PAPERS.values() if any(claim.paper == paper.id for claim in select(ids))]
    check_profile(profile)
    count = PROFILES[profile].seeds if seeds is None else seeds
    require(count >= 1, f"--seeds is {count}; at least one seed is needed.")
    changes = dict(changes or {})
    check_names(papers, profile, changes)
    settings = {paper.id: override(paper, profile, changes) for paper in papers}
    claims = select(ids, settings)
    for paper in papers:
        paper.check(settings[paper.id])
    prepare_jax()
    identity = {
        "ids": sorted(claim.id for claim in claims) if ids else [],
        "profile": profile,
        "seeds": count,
        "settings": {name: dataclasses.asdict(value) for name, value in settings.items()},
        "changes": changes,
        "save_models": save_models,
        "version": importlib.metadata.version("iclab"),
        "revision": revision(),  # results of other code are never mixed in
    }
    directory = Path(out) if out is not None else Path(f"iclab-run-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    store = Store(directory, identity)
    began = time.perf_counter()
    compiled_before = _clock().seconds
    needed = {paper.id: _needed(paper, claims) for paper in papers}
    total = sum(paper.experiments[name].cost for paper in papers for name in needed[paper.id])
    results: dict[str, xr.Dataset] = {}
    try:
        with RunProgress(console, total) as progress:
            for paper in papers:
                lab = Lab(
                    paper.id, settings[paper.id], count, progress=progress.update,
                    on_trained=store.save_models if save_models else lambda trained: None,
                )  # fmt: skip
                for name in needed[paper.id]:
                    label = f"{paper.id}/{name}"
                    progress.begin(label, paper.experiments[name].cost)
                    data, note = _result(store, label, paper, name, lab)
                    results[label] = data
                    progress.end(label, note)
    except KeyboardInterrupt:
        console.print(f"interrupted; the same command with --out {directory} continues where it stopped.", markup=False)
        raise
    entries = []
    tables: dict[str, dict[str, Table]] = {}
    for paper in papers:
        own = {name.split("/", 1)[1]: data for name, data in results.items() if name.startswith(f"{paper.id}/")}
        for name in dict.fromkeys(claim.figure for claim in claims if claim.paper == paper.id and claim.figure):
            _draw(store, paper, name, own, settings[paper.id])
        wanted = dict.fromkeys(claim.table for claim in claims if claim.paper == paper.id and claim.table)
        tables[paper.id] = {name: paper.tables[name](own, settings[paper.id]) for name in wanted}
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
    page = render_page(directory / "figures", identity, entries, tables, time.perf_counter() - began)
    store.write("index.html", page.encode())
    compiling = duration(_clock().seconds - compiled_before)
    console.print(f"[dim]{duration(time.perf_counter() - began)} in all, {compiling} of it compiling[/]")
    return Run(directory, entries, results)


def _needed(paper: Paper, claims: Sequence[Claim]) -> list[str]:
    """The experiments behind these claims, in the paper's order."""
    wanted = {name for claim in claims if claim.paper == paper.id for name in claim.needs}
    return [name for name in paper.experiments if name in wanted]


def _result(store: Store, label: str, paper: Paper, name: str, lab: Lab) -> tuple[xr.Dataset, str]:
    kept = store.load_result(label)
    if kept is not None:
        return kept, "kept from before"
    began = time.perf_counter()
    data = paper.experiments[name].run(lab)
    seconds = time.perf_counter() - began
    store.save_result(label, data, seconds)
    return data.assign_attrs(seconds=seconds), duration(seconds)


def _draw(store: Store, paper: Paper, name: str, results: Mapping[str, xr.Dataset], settings: Any) -> None:
    """The figure as SVG and PNG."""
    figure = paper.figures[name](results, settings)
    for kind in ("svg", "png"):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None)
        store.write(f"figures/{paper.id}/{name}.{kind}", buffer.getvalue())


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

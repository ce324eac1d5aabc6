"""`iclab robust`: statements at many plausible settings, trained as ensembles and judged one by one."""

from __future__ import annotations

import concurrent.futures
import datetime
import functools
import importlib.metadata
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from iclab.ahead import Program, table
from iclab.authoring.dependence import computing_part
from iclab.authoring.plugged import pinned_in
from iclab.devices import numerics, prepare_jax
from iclab.engine import ComputingEngine
from iclab.errors import require
from iclab.report.formats import duration
from iclab.robustness import Robustness
from iclab.runs.cluster import elsewhere
from iclab.runs.contents import as_json
from iclab.runs.jobs import PROGRAMS
from iclab.runs.manifest import source_digest
from iclab.runs.options import seed_count
from iclab.runs.points import Piece, compute_elsewhere, judged
from iclab.runs.progress import RunProgress, resumable
from iclab.runs.questions import Question, points_of, questions
from iclab.runs.robust_results import Robust
from iclab.runs.store import Store
from iclab.together import Asking, side_by_side

POINTS = 64
SEEDS = 4
MOST_POINTS = 10_000
AT_ONCE = 256  # points computed at once in this process
CHUNK = 8  # points that a worker gets at a time


def robust(
    *ids: str,
    points: int = POINTS,
    seeds: int = SEEDS,
    over: Sequence[str] = (),
    everything: bool = False,
    profile: str = "quick",
    out: str | Path | None = None,
    changes: Mapping[str, str] | None = None,
    executor: concurrent.futures.Executor | None = None,
    console: Console | None = None,
) -> Robust:
    """Test these statements at many values of the settings that their papers do not state.

    `points` is the number of points and `seeds` the number of training seeds at each. `over` names the settings to
    vary; "name=low:high" gives your own range. Default: all that the papers declare and the statements depend on. Parts
    whose experiments take too long at every point are left out, unless `everything` is given. The same `out` continues
    an interrupted run.
    """
    console = console or Console(quiet=True)
    require(1 <= points <= MOST_POINTS, f"--points is {points}; a curve has 1 to {MOST_POINTS:,} points.")
    seeds = seed_count(seeds, profile)
    require(
        bool(ids), "name at least one statement, as in `iclab robust mamba-outliers/fig1a`; `iclab list` lists them."
    )
    prepare_jax()
    changes = pinned_in(changes or {})
    asked = questions(ids, over, seeds, everything, profile, changes, console)
    designs = {one.paper.id: points_of(one, points, over) for one in asked}
    pieces = [
        Piece(one.paper.id, one.text, profile, one.changes, point, one.asked, seeds)
        for one in asked
        for point in designs[one.paper.id]
    ]
    identity = {
        "ids": sorted(f"{one.paper.id}/{name}" for one in asked for name in one.asked),
        "profile": profile,
        "seeds": seeds,
        "points": points,
        "over": sorted(over),
        "asked": {one.paper.id: one.asked for one in asked},
        "changes": changes,
        "texts": {one.paper.id: computing_part(one.text) for one in asked if one.text},
        "version": importlib.metadata.version("iclab"),
        "source": source_digest(),
        "numerics": numerics(),
    }
    identity = json.loads(json.dumps(identity))  # as the manifest will be read
    directory = Path(out) if out is not None else Path(f"iclab-robust-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    with resumable(console, directory), Store(directory, identity) as store:
        store.on_report = lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
        for one in asked:
            _say(console, one, designs[one.paper.id])
        found = _run(pieces, store, executor, console)
        result = Robust(
            directory,
            tuple(
                Robustness.of(one.statements[name], one.dimensions, designs[one.paper.id], one.without[name], answers)
                for one in asked
                for name in one.asked
                if (answers := _answers(one, name, designs[one.paper.id], found))
            ),
        )
        result.write(store)
        store.forget_trainings()
    return result


def _answers(one: Question, name: str, points: Sequence[Any], found: Mapping[str, Any]) -> dict[int, Any]:
    """A statement's entries by the number of the point."""
    where = {point.number: found[f"{one.paper.id}-{point.number:05d}"] for point in points}
    whole = f"{one.paper.id}/{name}"
    return {number: entries[whole] for number, entries in where.items() if whole in entries}


def _say(console: Console, one: Question, points: Sequence[Any]) -> None:
    words = ", ".join(dimension.setting for dimension in one.dimensions) or "readings alone"
    drawn = sum(not point.alone for point in points)
    console.print(
        f"{one.paper.id}: {drawn} points and {len(points) - drawn} single changes over {words}",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
    for name, left in one.without.items():
        if left:
            words = f"{len(left)} part{'s' * (len(left) > 1)} left out, too slow for every point ({'; '.join(left)})"
            console.print(f"  {name}: {words}", highlight=False, markup=False, soft_wrap=True, style="dim")


def _run(
    pieces: Sequence[Piece], store: Store, executor: concurrent.futures.Executor | None, console: Console
) -> dict[str, Any]:
    """The answers of every piece, by its name. Finished pieces are kept and not computed again."""
    found: dict[str, Any] = {}
    for piece in pieces:
        content = store.kept(_place(piece))
        if content is not None:
            found[piece.name] = json.loads(content)
    if found:
        console.print(f"  {len(found)} of {len(pieces)} points kept from an earlier run")
    pending = {piece.name: piece for piece in pieces if piece.name not in found}

    def keep(piece: Piece, answers: dict[str, Any]) -> None:
        found[piece.name] = json.loads(as_json(answers))
        store.keep(_place(piece), as_json(answers))

    programs: dict[Any, Program] = {}
    with RunProgress(console, len(pending), every=max(1, len(pending) // 20)) as progress:

        def one(piece: Piece, engine: Asking) -> None:
            progress.begin(piece.name, 1.0)
            keep(piece, judged(piece, engine, functools.partial(progress.update, piece.name)))
            progress.end(piece.name, duration(engine.seconds()))

        if executor is None:
            tasks = [functools.partial(one, piece) for piece in pending.values()]
            try:
                side_by_side(tasks, ComputingEngine(store.checkpoint), at_once=AT_ONCE, programs=programs)
            finally:
                if programs:
                    store.write(PROGRAMS, table(programs).encode())
        else:
            every = list(pending.values())
            chunks = [every[start : start + CHUNK] for start in range(0, len(every), CHUNK)]
            named = {f"{chunk[0].name} to {chunk[-1].point.number:05d}": chunk for chunk in chunks}
            began = time.perf_counter()
            for name, several in elsewhere(compute_elsewhere, named, store.fingerprint, executor):
                for piece, answers in zip(named[name], several, strict=True):
                    progress.begin(piece.name, 1.0)
                    keep(piece, answers)
                    progress.end(piece.name, duration(time.perf_counter() - began))
    return found


def _place(piece: Piece) -> str:
    return f"results/points/{piece.name}.json"

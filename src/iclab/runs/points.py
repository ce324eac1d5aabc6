"""A point of a specification curve: a paper's experiments at other settings, judged at once.

A piece is plain data, so it can be computed in this process, in a pool of processes or on a cluster. Its result is
small: the answers of its statements, with every number behind them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr

from iclab.answers import Read
from iclab.authoring.paper import Paper
from iclab.engine import ComputingEngine
from iclab.experiments import Lab
from iclab.library import paper_from
from iclab.runs.cluster import Here, require_same
from iclab.runs.jobs import Job, computed
from iclab.runs.judging import Judge
from iclab.runs.options import override, texts
from iclab.runs.sweep_target import settings_of
from iclab.settings import names_of, replaced, value_of
from iclab.specification import READING, Point
from iclab.statements import Reading, Statement
from iclab.together import Asking, side_by_side

PROMPTS = 1000  # fresh prompts per member at a point, at most: points are many
CONTROL = 250  # those of an untrained member, whose errors are far from a rule


@dataclasses.dataclass(frozen=True)
class Piece:
    """A point for one paper. `asked` maps its statements' names to the readings and parts to test; `text` is the source
    of a paper that is not built in.
    """

    paper: str
    text: str
    profile: str
    changes: Mapping[str, str]
    point: Point
    asked: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    seeds: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.paper}-{self.point.number:05d}"

    @property
    def source(self) -> Paper:
        """The paper itself."""
        return paper_from(self.paper, self.text)

    @property
    def settings(self) -> Any:
        """The settings of the point."""
        return override(settings_of(self.source, self.profile), {**self.changes, **texts(self.point.changes)})


def fewer_prompts(settings: Any) -> dict[str, str]:
    """Changes that leave a point no more prompts than it needs."""
    counts = {name: value_of(settings, name) for name in names_of(settings) if name.endswith("prompts")}
    return {name: str(PROMPTS) for name, count in counts.items() if count > PROMPTS}


def narrowed(
    statement: Statement, readings: Sequence[str], parts: Sequence[str], pick: Callable[[int], int | None]
) -> Statement | None:
    """The statement with one of the requested readings and its parts; None if it has none of them."""
    number = pick(len(readings))
    if number is None:
        return None
    reading = next((one for one in statement.readings if one.name == readings[number]), None)
    kept = tuple(part for part in statement.asked(reading) if part.name in parts) if reading else ()
    return dataclasses.replace(statement, readings=(reading,), parts=kept) if reading and kept else None


def judged(piece: Piece, engine: Asking, report: Callable[[str, float], None]) -> dict[str, Any]:
    """The answers of a piece's statements at its point, by id."""
    paper, settings = piece.source, piece.settings
    paper.check(settings)
    judge = Judge({paper.id: paper}, {paper.id: settings})
    results: dict[str, xr.Dataset] = {}
    benches: dict[str, tuple[Lab, Lab]] = {}
    found = {}
    known = {statement.name: statement for statement in paper.statements(settings)}
    stated = [
        statement
        for name, (readings, parts) in piece.asked.items()
        if name in known and (statement := narrowed(known[name], readings, parts, piece.point.pick)) is not None
    ]
    experiments = tuple(dict.fromkeys(need.partition("@")[0] for one in stated for need in one.needs()))
    for statement in stated:
        reading = statement.readings[0]
        job = _job(piece, reading, experiments)
        if job.variant not in benches:
            benches[job.variant] = _bench(piece, job, untrained=False), _bench(piece, job, untrained=True)
        for need in statement.needs():
            experiment = need.partition("@")[0]
            if job.places(experiment)[0] in results:
                continue
            for place, data in computed(job, experiment, benches[job.variant], engine, report):
                if data:
                    results[place] = data[0]
        reads = judge(statement, results)
        found[statement.id] = judge.entry(statement, reads) | _at(settings, reading, reads[0])
    return found


def _job(piece: Piece, reading: Reading, experiments: tuple[str, ...]) -> Job:
    """The experiments of a reading at the point; results carry its name if it has its own settings."""
    changes = {**piece.changes, **texts(piece.point.changes), **texts(reading.changes)}
    variant = reading.name if reading.changes else ""
    seeds = tuple(range(piece.seeds))
    return Job(piece.paper, piece.text, experiments, piece.profile, changes, seeds, False, variant, control=True)


def _bench(piece: Piece, job: Job, *, untrained: bool) -> Lab:
    """The bench of a reading's experiments. Its label names files on disk and does not affect random numbers."""
    label = f"{piece.point.number:05d}/{f'{job.variant}@' if job.variant else ''}"
    return Lab(
        piece.paper, job.settings, job.seeds, label=label, untrained=untrained, experiments=job.experiments,
        control_prompts=CONTROL,
    )  # fmt: skip


def _at(settings: Any, reading: Reading, read: Read) -> dict[str, Any]:
    """Where a statement was tested: the settings, the reading, and the factor by which each hypothesis is met."""
    own = replaced(settings, reading.changes)
    conditions = read.theorem.conditions if read.theorem else ()
    factors = {c.name: max(c.factor, 1.0) if c.satisfied else min(c.factor, 1.0 - 1e-9) for c in conditions}
    plain = {name: min(factor, 1e30) for name, factor in factors.items()}
    return {"at": {name: value_of(own, name) for name in names_of(own)} | {READING: reading.name}, "factors": plain}


def compute_elsewhere(pieces: Sequence[Piece], run: Here) -> list[dict[str, Any]]:
    """On a worker: the answers of these pieces."""
    require_same(run)

    def one(piece: Piece, engine: Asking) -> dict[str, Any]:
        return judged(piece, engine, lambda what, fraction: None)

    tasks = [functools.partial(one, piece) for piece in pieces]
    return side_by_side(tasks, ComputingEngine(), at_once=len(tasks))

"""The state of a run, as status.json in its folder: progress, and the answer of every statement once it has one."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console

from iclab.answers import NOTHING, Read
from iclab.runs.judging import Judge
from iclab.runs.progress import RunProgress
from iclab.runs.store import LOCK, Store
from iclab.sequential import Look
from iclab.statements import Statement
from iclab.statistics import LEVEL

STATUS = "status.json"
EVERY = 1.0  # seconds between two writes unless an experiment begins or ends


class WatchedProgress(RunProgress):
    """Progress that also writes status.json and judges every statement once it has all results of a look.

    What a look settles is not tested again; `unsettled` parts are left for the next one. The file is removed when
    the run is finished, because the page then says more.
    """

    def __init__(
        self, console: Console, total: float, store: Store, statements: Sequence[Statement], judge: Judge
    ) -> None:
        super().__init__(console, total)
        self._store = store
        self._statements = {statement.id: statement for statement in statements}
        self._judge = judge
        self._look, self._last = Look(0), True
        self._asked: dict[str, Statement] = dict(self._statements)
        self._results: dict[str, Any] = {}
        self._fresh: set[str] = set()  # results that are complete at this look
        self._reads: dict[str, dict[str, Read]] = {statement.id: {} for statement in statements}
        self._written = 0.0
        self._entries: dict[str, dict[str, Any]] = {
            statement.id: {
                "id": statement.id,
                "paper": statement.paper,
                "source": statement.source,
                "statement": statement.words,
                "rule": statement.rule,
                "state": "waiting",
                "needs": len(statement.needs()),
                "done": 0,
            }
            for statement in statements
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            self._write("drawing the figures", 1.0, "")

    def look(self, look: Look, cost: float, *, last: bool) -> None:
        """Begin a look: more seeds, at this cost, for statements that are not settled yet."""
        self._asked = {statement.id: statement for statement in self.unsettled()}
        if self._look.seeds:
            more = look.seeds - self._look.seeds
            left = f"{len(self._asked)} of {len(self._statements)} statements are open"
            self.say(f"after {self._look.seeds} seeds, {left}; they get {more} more seeds")
        self._look, self._last, self._fresh = look, last, set()
        self.more(cost)

    def unsettled(self) -> list[Statement]:
        """Statements that more seeds could settle, each with the readings and parts that they could settle."""
        found = []
        for name, statement in self._statements.items():
            reads = self._reads[name]
            if not reads:
                found.append(statement)
            elif self._judge.papers[statement.paper].unit == "seed":
                parts = []
                for part in statement.parts:  # several may have one name, each in readings of its own
                    asked = [read for read in reads.values() if part in statement.asked(read.reading)]
                    if open_in := tuple(read.reading.name for read in asked if part.name in read.open):
                        parts.append(dataclasses.replace(part, readings=open_in))
                left = [reading for reading in statement.readings if reads[reading.name].open]
                if parts:
                    found.append(dataclasses.replace(statement, readings=tuple(left), parts=tuple(parts)))
        return found

    def judged(self) -> dict[str, dict[str, Any]]:
        """The statements' entries in claims.json, by id."""
        return {
            name: self._judge.entry(self._statements[name], tuple(reads.values()))
            for name, reads in self._reads.items()
            if reads
        }

    def begin(self, name: str, cost: float) -> None:
        """Update the bar, and mark the statements that need this experiment as running."""
        for entry in self._entries.values():
            if name in self._needs(entry["id"]):
                entry["state"] = "running"
        super().begin(name, cost)

    def show(self, what: str, done: float, left: str) -> None:
        """Update the bar and, from time to time, the file."""
        super().show(what, done, left)
        if time.monotonic() - self._written >= EVERY:
            self._write(what, done, left)

    def skip(self, name: str, cost: float, found: Mapping[str, Any] = NOTHING) -> None:
        """Update the bar, and judge statements whose results are kept from an earlier run."""
        super().skip(name, cost, found)
        self._finished(name, found)

    def end(self, name: str, note: str, found: Mapping[str, Any] = NOTHING) -> None:
        """Update the bar, and judge statements that have all their results."""
        super().end(name, note, found)
        self._finished(name, found)

    def _needs(self, name: str) -> list[str]:
        """The results that a statement needs at this look; none if it is not tested."""
        statement = self._asked.get(name)
        return [f"{statement.paper}/{need}" for need in statement.needs()] if statement else []

    def _finished(self, name: str, found: Mapping[str, Any]) -> None:
        self._results |= found
        self._fresh |= set(found)
        for entry in self._entries.values():
            needs = self._needs(entry["id"])
            if name not in needs:
                continue
            entry["needs"], entry["done"] = len(needs), sum(need in self._fresh for need in needs)
            whole = entry["done"] == len(needs)
            entry["state"] = "judged" if whole else "waiting"
            if whole:
                self._answer(entry)
        self._write(name, self.fraction(), "")

    def _answer(self, entry: dict[str, Any]) -> None:
        """Judge a statement that has all its results; print its answer if it is settled or this is the last look."""
        statement, name = self._statements[entry["id"]], entry["id"]
        level = self._look.level if self._judge.papers[statement.paper].unit == "seed" else LEVEL
        reads = self._judge(statement, self._results, level, self._reads[name])
        self._reads[name] = {read.reading.name: read for read in reads}
        judged = self._judge.entry(statement, reads)
        entry |= {key: judged[key] for key in ("answer", "words")}
        if self._judge.attempted and (self._last or not any(read.open for read in reads)):
            self.say(f"[bold]{name} {judged['answer']}[/]")

    def _write(self, what: str, fraction: float, left: str) -> None:
        self._written = time.monotonic()
        entries = list(self._entries.values())
        about = {"what": what, "fraction": round(fraction, 4), "left": left, "statements": entries}
        self._store.write_json(STATUS, about)


def forget(store: Store) -> None:
    """Remove the file of a finished run."""
    (store.directory / STATUS).unlink(missing_ok=True)


def read_status(directory: Path) -> dict[str, Any] | None:
    """The state of a run in this folder; None if there is none. `going` is False if no process uses the folder."""
    try:
        status = json.loads((directory / STATUS).read_text(encoding="utf-8"))
        known = {name: kind(status[name]) for name, kind in (("what", str), ("fraction", float), ("left", str))}
        entries = [_entry(entry) for entry in status["statements"]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return known | {"statements": entries, "going": in_use(directory)}


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """The part of a statement in the file that a page shows."""
    if "/" not in entry["id"]:
        raise ValueError("not the id of a statement")
    kept = {name: str(entry[name]) for name in ("id", "paper", "source", "statement", "rule", "state")}
    kept |= {name: str(entry[name]) for name in ("answer", "words") if name in entry}
    return kept | {"needs": int(entry["needs"]), "done": int(entry["done"])}


def in_use(directory: Path) -> bool:
    """Whether a process uses the folder. Its lock ends with it."""
    try:
        handle = os.open(directory / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False

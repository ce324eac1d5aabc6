"""What a run is doing, as status.json in its folder: how far it is, and every statement with its answer as soon as it
has one.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console

from iclab.runs.judging import Judge
from iclab.runs.progress import NOTHING, RunProgress
from iclab.runs.store import LOCK, Store
from iclab.statements import Statement

STATUS = "status.json"
EVERY = 1.0  # seconds between two writes while nothing begins or ends


class WatchedProgress(RunProgress):
    """Progress that also writes status.json, and judges every statement once it has all results: `judged`, by id.

    The file goes when the run is finished: then the page says more.
    """

    def __init__(
        self, console: Console, total: float, store: Store, statements: Sequence[Statement], judge: Judge
    ) -> None:
        super().__init__(console, total)
        self._store = store
        self._statements = {statement.id: statement for statement in statements}
        self._judge = judge
        self._results: dict[str, Any] = {}
        self.judged: dict[str, dict[str, Any]] = {}
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

    def begin(self, name: str, cost: float) -> None:
        """As the bar, and the statements that need this experiment are running."""
        for entry in self._entries.values():
            if name in self._needs(entry["id"]):
                entry["state"] = "running"
        super().begin(name, cost)

    def show(self, what: str, done: float, left: str) -> None:
        """As the bar, now and then in the file too."""
        super().show(what, done, left)
        if time.monotonic() - self._written >= EVERY:
            self._write(what, done, left)

    def skip(self, name: str, cost: float, found: Mapping[str, Any] = NOTHING) -> None:
        """As the bar; what is there from before is judged."""
        super().skip(name, cost, found)
        self._finished(name, found)

    def end(self, name: str, note: str, found: Mapping[str, Any] = NOTHING) -> None:
        """As the bar; statements that have all they need are judged."""
        super().end(name, note, found)
        self._finished(name, found)

    def _needs(self, name: str) -> list[str]:
        statement = self._statements[name]
        return [f"{statement.paper}/{need}" for need in statement.needs()]

    def _finished(self, name: str, found: Mapping[str, Any]) -> None:
        self._results |= found
        for entry in self._entries.values():
            needs = self._needs(entry["id"])
            if name not in needs:
                continue
            entry["done"] = sum(need in self._results for need in needs)
            if entry["done"] == len(needs):
                judged = self._judge(self._statements[entry["id"]], self._results)
                self.judged[entry["id"]] = judged
                entry |= {key: judged[key] for key in ("answer", "words")}
            entry["state"] = "judged" if entry["done"] == len(needs) else "waiting"
        self._write(name, self.fraction(), "")

    def _write(self, what: str, fraction: float, left: str) -> None:
        self._written = time.monotonic()
        entries = list(self._entries.values())
        about = {"what": what, "fraction": round(fraction, 4), "left": left, "statements": entries}
        self._store.write_json(STATUS, about)


def forget(store: Store) -> None:
    """The run is finished; its page is there."""
    (store.directory / STATUS).unlink(missing_ok=True)


def read_status(directory: Path) -> dict[str, Any] | None:
    """What a run in this folder is doing; None if there is nothing to say. `going` is False when no process has the
    folder.
    """
    try:
        status = json.loads((directory / STATUS).read_text(encoding="utf-8"))
        known = {name: kind(status[name]) for name, kind in (("what", str), ("fraction", float), ("left", str))}
        entries = [_entry(entry) for entry in status["statements"]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return known | {"statements": entries, "going": in_use(directory)}


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """A statement of the file, as far as a page shows it."""
    if "/" not in entry["id"]:
        raise ValueError("no id of a statement")
    kept = {name: str(entry[name]) for name in ("id", "paper", "source", "statement", "rule", "state")}
    kept |= {name: str(entry[name]) for name in ("answer", "words") if name in entry}
    return kept | {"needs": int(entry["needs"]), "done": int(entry["done"])}


def in_use(directory: Path) -> bool:
    """Whether a process has the folder. Its lock goes with it, however it ends."""
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

"""What a run is doing, as status.json in its folder: how far it is, and every claim with its verdict as soon as it has one."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console

from iclab.claims import Claim, judge
from iclab.runs.progress import RunProgress
from iclab.runs.store import LOCK, Store

STATUS = "status.json"
EVERY = 1.0  # seconds between two writes while nothing begins or ends


class WatchedProgress(RunProgress):
    """Progress that also writes status.json. The file goes when the run is finished: then the page says more."""

    def __init__(self, console: Console, total: float, store: Store, claims: Sequence[Claim], *, attempted: bool) -> None:
        super().__init__(console, total)
        self._store = store
        self._claims = {claim.id: claim for claim in claims}
        self._attempted = attempted
        self._results: dict[str, Any] = {}
        self._written = 0.0
        self._entries: dict[str, dict[str, Any]] = {
            claim.id: {
                "id": claim.id, "paper": claim.paper, "source": claim.source, "statement": claim.statement, "rule": claim.rule,
                "state": "waiting", "needs": len(claim.needs), "done": 0,
            }
            for claim in claims
        }  # fmt: skip

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        if kind is None:
            self._write("drawing the figures", 1.0, "")

    def begin(self, name: str, cost: float) -> None:
        """As the bar, and the claims that need this experiment are running."""
        for entry in self._entries.values():
            if name in self._needs(entry["id"]):
                entry["state"] = "running"
        super().begin(name, cost)

    def show(self, what: str, done: float, left: str) -> None:
        """As the bar, now and then in the file too."""
        super().show(what, done, left)
        if time.monotonic() - self._written >= EVERY:
            self._write(what, done, left)

    def skip(self, name: str, cost: float) -> None:
        """As the bar; what is there from before is judged."""
        super().skip(name, cost)
        self._finished(name)

    def end(self, name: str, note: str) -> None:
        """As the bar; claims that have all they need are judged."""
        super().end(name, note)
        self._finished(name)

    def _needs(self, claim: str) -> list[str]:
        return [f"{self._claims[claim].paper}/{need}" for need in self._claims[claim].needs]

    def _finished(self, name: str) -> None:
        self._results[name] = self._store.load_result(name)
        for entry in self._entries.values():
            needs = self._needs(entry["id"])
            if name not in needs:
                continue
            entry["done"] = sum(self._results.get(need) is not None for need in needs)
            if entry["done"] == len(needs):
                judged = judge(
                    self._claims[entry["id"]],
                    {need.split("/", 1)[1]: self._results[need] for need in needs},
                    attempted=self._attempted,
                )
                entry |= {key: judged[key] for key in ("verdict", "measured", "low", "high", "decided_by")}
            entry["state"] = "judged" if entry["done"] == len(needs) else "waiting"
        self._write(name, self.fraction(), "")

    def _write(self, what: str, fraction: float, left: str) -> None:
        self._written = time.monotonic()
        self._store.write_json(
            STATUS, {"what": what, "fraction": round(fraction, 4), "left": left, "claims": list(self._entries.values())}
        )


def forget(store: Store) -> None:
    """The run is finished; its page is there."""
    (store.directory / STATUS).unlink(missing_ok=True)


def read_status(directory: Path) -> dict[str, Any] | None:
    """What a run in this folder is doing; None if there is nothing to say. `going` is False when no process has the folder."""
    try:
        status = json.loads((directory / STATUS).read_text(encoding="utf-8"))
        return dict(status) | {"going": in_use(directory)}
    except (OSError, ValueError, TypeError):
        return None


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

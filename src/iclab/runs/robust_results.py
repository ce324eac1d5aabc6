"""The folder of a specification curve: summary, table, data, figures and a page; and what is read from it again."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iclab.errors import InputError, nearest, require
from iclab.report.robustness import pictures, render
from iclab.robustness import Robustness
from iclab.runs.contents import as_json, checked, is_file, to_bytes
from iclab.runs.manifest import read_manifest
from iclab.runs.store import Store

SUMMARY = "robustness.json"


@dataclasses.dataclass(frozen=True)
class Robust:
    """A finished specification curve of one or more statements; `robust["fig1a"]` is one of them."""

    directory: Path
    statements: tuple[Robustness, ...]

    def __getitem__(self, name: str) -> Robustness:
        ids = {one.id: one for one in self.statements} | {one.id.partition("/")[2]: one for one in self.statements}
        require(name in ids, f"no statement is called {name!r} here. {nearest(name, ids)}")
        return ids[name]

    def write(self, store: Store) -> None:
        """Summary, table, data, figures and page."""
        summaries = [one.summary() for one in self.statements]
        store.keep(SUMMARY, as_json({"statements": summaries}))
        store.write("robustness.csv", _table(summaries).encode())
        drawn = {}
        for one in self.statements:
            store.write(f"data/{one.id}.nc", to_bytes(one.data))
            drawn[one.id] = pictures(one)
            for kind, content in drawn[one.id].items():
                store.write(f"figures/{one.id}.{kind}", content)
        store.write("index.html", render(self.statements, drawn, store.manifest).encode())


def _table(summaries: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    names = ["id", "share", "low", "high", "points", "own", "decided_by", "smallest_change", "words"]
    writer = csv.DictWriter(text, names, extrasaction="ignore")
    writer.writeheader()
    for one in summaries:
        writer.writerow({**one, "decided_by": " ".join(one["decided_by"])})
    return text.getvalue()


@functools.lru_cache(maxsize=8)
def read_summaries(directory: Path) -> dict[str, dict[str, Any]]:
    """What a finished specification curve says, by statement."""
    path = directory / SUMMARY
    read_manifest(directory)
    require(is_file(path), f"{directory} holds no {SUMMARY}; `iclab robust` writes one when it is finished.")
    content = checked(path)
    require(content is not None, f"{path} is damaged or was changed by hand: its checksum is missing or another.")
    try:
        return {one["id"]: one for one in json.loads(content or b"")["statements"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged and cannot be read.") from error

"""The folder of a specification curve: write and read its summary, table, data, figures and page."""

from __future__ import annotations

import csv
import dataclasses
import functools
import html
import io
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from iclab.drawing import finish
from iclab.errors import InputError, nearest, require
from iclab.report.robustness import figure, pictures, render
from iclab.robustness import Robustness
from iclab.runs.contents import as_json, checked, from_bytes, is_file, to_bytes
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
        require(name in ids, f"this curve has no statement {name!r}. {nearest(name, ids)}")
        return ids[name]

    def __repr__(self) -> str:
        return f"Robust({str(self.directory)!r}: {', '.join(one.id for one in self.statements)})"

    def _repr_html_(self) -> str:
        """In a notebook: a line per statement."""
        rows = "".join(
            f"<tr><td>{html.escape(one.id)}</td><td>{html.escape(one.words)}</td>"
            f"<td>{html.escape(str(one.change or ''))}</td></tr>"
            for one in self.statements
        )
        head = "<tr><th>statement</th><th>over plausible settings</th><th>smallest change of our own choice</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"

    def plot(self, name: str) -> Figure:
        """The specification curve of a statement."""
        return finish(figure(self[name]))

    def write(self, store: Store) -> None:
        """Summary, table, data, figures and page."""
        summaries = [one.summary() for one in self.statements]
        store.keep(SUMMARY, as_json({"statements": summaries}))
        store.write("robustness.csv", _table(summaries).encode())
        drawn = {}
        for one in self.statements:
            store.keep(f"data/{one.id}.nc", to_bytes(one.data))
            drawn[one.id] = pictures(one)
            for kind, content in drawn[one.id].items():
                store.write(f"figures/{one.id}.{kind}", content)
        store.write("index.html", render(self.statements, drawn, store.manifest).encode())


def _table(summaries: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    names = ["id", "held", "points", "low", "high", "own", "decided_by", "smallest_change", "words"]
    writer = csv.DictWriter(text, names, extrasaction="ignore")
    writer.writeheader()
    for one in summaries:
        writer.writerow({**one, **one["share"], "decided_by": " ".join(one["decided_by"])})
    return text.getvalue()


def open_robust(directory: str | Path) -> Robust:
    """Open a finished specification curve. Nothing in the folder is executed."""
    place = Path(directory)
    read_manifest(place)
    path = place / SUMMARY
    require(is_file(path), f"{place} has no {SUMMARY}; is it a finished run of `iclab robust`?")
    content = checked(path)
    require(content is not None, f"{path} is damaged or was edited: its checksum is missing or wrong.")
    try:
        found = json.loads(content or b"")["statements"]
        data = {one["id"]: checked(place / "data" / f"{one['id']}.nc") for one in found}
        missing = [name for name, kept in data.items() if kept is None]
        require(not missing, f"the data of {', '.join(missing)} in {place} are missing or damaged.")
        return Robust(place, tuple(Robustness.opened(one, from_bytes(data[one["id"]] or b"")) for one in found))
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged and cannot be read.") from error


@functools.cache
def recorded() -> dict[str, dict[str, Any]]:
    """The recorded curves of built-in statements, by id (benchmarks/robustness.py writes the file)."""
    text = (resources.files("iclab.data") / SUMMARY).read_text(encoding="utf-8")
    return {one["id"]: one for one in json.loads(text)["statements"]}


def beside(answers: Robust | None, without: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """The robustness to show beside the answers of a run, by statement: recorded, or from the user's own curve.

    Papers that run `without` their own model have no recorded curves.
    """
    found = {name: {**one, "svg": ""} for name, one in recorded().items() if name not in without}
    for one in answers.statements if answers else ():
        found[one.id] = short(one.summary()) | {"svg": pictures(one)["svg"].decode()}
    return found


def short(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a summary that a page shows in one line."""
    share = summary["share"]
    return {
        "id": summary["id"],
        "share": share["held"] / share["points"] if share["points"] else 0.0,
        "low": share["low"],
        "high": share["high"],
        "points": share["points"],
        "words": summary["words"],
        "smallest_change": summary["smallest_change"],
        "decided_by": summary["decided_by"],
    }

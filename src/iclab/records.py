"""Recorded answers: those of the paper profile on a GPU, condensed, one file per paper in data/full-size.

`iclab diff DIR recorded` compares a run with them, `iclab referee recorded --paper PAPER` reports on them, and
`benchmarks/recorded.py` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from iclab.errors import nearest, require

RECORDED = "recorded"  # names these records where a command takes the folder of a run
PROFILE = "paper"  # with which they were made
Record = dict[str, Any]


def folder() -> Path:
    """The folder of the records."""
    return Path(str(resources.files("iclab.data"))) / "full-size"


def recorded_papers() -> list[str]:
    """The papers with recorded answers."""
    return sorted(path.stem for path in folder().glob("*.json"))


def recorded(paper: str) -> list[Record]:
    """The recorded answers of a paper, statement by statement."""
    known = recorded_papers()
    require(paper in known, f"no answers are recorded for {paper!r}. {nearest(paper, known)}")
    return list(json.loads((folder() / f"{paper}.json").read_text(encoding="utf-8")))


def condensed(statement: Mapping[str, Any]) -> Record:
    """The recorded part of an entry in claims.json: answers, rules, intervals; not the numbers per seed."""
    kept = ("id", "source", "beyond", "answer", "words", "also_untrained")
    return {name: statement[name] for name in kept} | {"readings": [_reading(one) for one in statement["readings"]]}


def _reading(reading: Mapping[str, Any]) -> Record:
    known = reading["hypotheses"]
    met = f"{known['met']} of {known['of']}" if known else ""
    own = {"name": reading["name"], "answer": reading["answer"], "hypotheses": met}
    return own | {"parts": [_part(part) for part in reading["parts"]]}


def _part(part: Mapping[str, Any]) -> Record:
    numbers = {name: _rounded(part[name]) for name in ("measured", "low", "high")}
    control = part["control"] and part["control"]["outcome"]
    names = ("name", "rule", "outcome", "words")
    return {name: part[name] for name in names} | numbers | {"seeds": part["seeds"], "control": control}


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.4g}")

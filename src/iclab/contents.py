"""The statements of the built-in papers without importing them: `iclab list` reads contents.json.

    python -m iclab.contents

writes it from the code; a test checks it against the papers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

FILE = "contents.json"


def contents() -> list[dict[str, Any]]:
    """The built-in papers with their statements, from the file."""
    return list(json.loads((resources.files("iclab.data") / FILE).read_text(encoding="utf-8")))


def stored(ids: Sequence[str]) -> list[dict[str, Any]] | None:
    """What exactly these ids name, from the file; None if it does not have one of them (a prefix, a user's file)."""
    wanted, papers = set(ids), contents()
    known = {name for paper in papers for name in (paper["id"], *(one["id"] for one in paper["statements"]))}
    if not wanted <= known:
        return None
    chosen = [
        paper | {"statements": [one for one in paper["statements"] if {paper["id"], one["id"]} & wanted]}
        for paper in papers
    ]
    return [paper for paper in chosen if paper["statements"]]


def collected() -> list[dict[str, Any]]:
    """The same, from the papers themselves."""
    from iclab.library import default_settings
    from iclab.papers import PAPERS

    return [entry(paper, default_settings(paper)) for paper in PAPERS.values()]


def entry(paper: Any, settings: Any) -> dict[str, Any]:
    """A paper and its statements, as `iclab list` needs them."""
    statements = [
        {
            "id": statement.id,
            "source": statement.source,
            "words": statement.words,
            "kinds": list(statement.kinds),
            "readings": [reading.name for reading in statement.readings],
            "beyond": statement.beyond,
        }
        for statement in paper.statements(settings)
    ]
    return {"id": paper.id, "title": paper.title, "statements": statements}


if __name__ == "__main__":
    place = Path(str(resources.files("iclab.data") / FILE))
    place.write_text(json.dumps(collected(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(place)

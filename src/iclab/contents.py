"""The statements of papers without importing them: `iclab list` reads contents.json, and for papers of installed
packages a file in the user's cache folder.

    python -m iclab.contents

writes contents.json from the code; a test checks it against the papers. The file in the cache is written when it is
missing; its name is a digest of what it was made from, so that it is never out of date.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any

from iclab.cache import cache_directory

FILE = "contents.json"
GROUP = "iclab"  # the entry points of packages with papers, as in iclab.authoring.sources


def contents() -> list[dict[str, Any]]:
    """The built-in papers with their statements, from the file."""
    return list(json.loads((resources.files("iclab.data") / FILE).read_text(encoding="utf-8")))


def everything() -> list[dict[str, Any]]:
    """The same with the papers of installed packages. They are imported if the cache does not have them yet."""
    packages = entry_points(group=GROUP)
    if not packages:
        return contents()
    place = cache_directory("contents") / f"{_digest(packages)}.json"
    with contextlib.suppress(OSError, ValueError):
        return list(json.loads(place.read_text(encoding="utf-8")))
    found = imported()
    if sum(bool(paper.get("package")) for paper in found) == len(packages):  # a warning about one is said every time
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            unfinished = place.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
            unfinished.replace(place)
    return found


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


def imported(ids: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What ids name (default: everything), from the papers themselves."""
    from iclab.library import default_settings, library, select

    shelf, names = library(ids)
    wanted = {statement.id for statement in select(names, papers=shelf.papers)}
    found = []
    for paper in shelf.papers.values():
        one = entry(paper, default_settings(paper))
        one["statements"] = [statement for statement in one["statements"] if statement["id"] in wanted]
        package = {"package": shelf.packages[paper.id]} if paper.id in shelf.packages else {}
        found += [one | package] if one["statements"] else []
    return found


def collected() -> list[dict[str, Any]]:
    """The built-in papers, from the papers themselves."""
    from iclab.papers import PAPERS

    return imported(list(PAPERS))


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


def _digest(packages: EntryPoints) -> str:
    """Of the entry points, and of the sources of iclab and of the packages behind them."""
    digest = hashlib.sha256()
    for one in sorted(packages, key=lambda one: one.name):
        digest.update(f"{one.name}={one.value} {one.dist and one.dist.version}\n".encode())
    for top in sorted({"iclab", *(one.module.partition(".")[0] for one in packages)}):
        for path in _sources(top):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(package: str) -> Iterator[Path]:
    """The source files of a package, which is not imported."""
    found = importlib.util.find_spec(package)
    for folder in (found and found.submodule_search_locations) or ():
        yield from sorted(Path(folder).rglob("*.py"))
    if found and not found.submodule_search_locations and found.origin:
        yield Path(found.origin)


if __name__ == "__main__":
    place = Path(str(resources.files("iclab.data") / FILE))
    place.write_text(json.dumps(collected(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(place)

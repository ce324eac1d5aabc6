"""`iclab figures`: the figures of a run once more, from its results, in the format a paper wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from iclab.authoring.paper import Paper
from iclab.drawing import finish
from iclab.errors import InputError, in_words, nearest, require
from iclab.library import Library, library, select
from iclab.report.figures import FORMATS, picture
from iclab.runs.jobs import CONTROL
from iclab.runs.judging import Judge
from iclab.runs.store import Store, read_manifest
from iclab.settings import rebuilt
from iclab.statements import Statement


def redraw(directory: Path, kind: str, files: Sequence[str] = ()) -> tuple[list[Path], list[str]]:
    """Draw every figure whose results are there into figures/<paper>/<name>.<kind>; what was left out, and why.

    What a user's file states is drawn by that file again: from where it was, or from `files`.
    """
    require(kind in FORMATS, f"format {kind!r} is unknown. {nearest(kind, FORMATS)}")
    manifest = read_manifest(directory)
    identity = manifest["identity"]
    require("grid" not in identity, f"{directory} is a sweep; `iclab figures` draws the figures of `iclab reproduce`.")
    shelf, changed = _shelf(manifest, files)
    settings = settings_of(identity, directory, shelf.papers)
    statements = select(identity["ids"] or list(settings), settings, papers=shelf.papers)
    judge = Judge(shelf.papers, settings)
    written, missing = [], changed
    with Store(directory, identity) as store:
        for paper in (shelf.papers[name] for name in settings):
            own = [statement for statement in statements if statement.paper == paper.id]
            results, control = (_loaded(store, f"{prefix}{paper.id}/", own) for prefix in ("", CONTROL))
            complete = [statement for statement in own if set(statement.needs()) <= set(results)]
            for statement in (statement for statement in own if statement not in complete):
                lacking = ", ".join(sorted(set(statement.needs()) - set(results)))
                missing.append(f"not drawn: {statement.id}: no results of {lacking}")
            for name, figure in judge.figures(complete, results, control).items():
                try:
                    drawn = finish(figure())
                except Exception as error:
                    if paper.id not in shelf.files:
                        raise
                    missing.append(f"not drawn: {paper.id}/{name}: {in_words(error)}")
                    continue
                written.append(store.write(f"figures/{paper.id}/{name}.{kind}", picture(drawn, kind)))
    return written, missing


def _loaded(store: Store, prefix: str, statements: Sequence[Statement]) -> dict[str, xr.Dataset]:
    """Results that statements need, as far as the run has them."""
    needs = dict.fromkeys(need for statement in statements for need in statement.needs())
    return {need: data for need in needs if (data := store.load_result(f"{prefix}{need}")) is not None}


def _shelf(manifest: Mapping[str, Any], given: Sequence[str]) -> tuple[Library, list[str]]:
    """The papers of a run, with its files from where they were or from where the user says they are now; what has
    changed.
    """
    places = dict(manifest.get("plan", {}).get("places", {}))
    for path in given:
        name = Path(path).stem
        require(name in places, f"--file {path}: this run used {', '.join(f'{n}.py' for n in places) or 'no file'}.")
        places[name] = path
    for name, path in places.items():
        there = Path(path).is_file()
        require(
            there, f"this run used {path}, which is not there any more; say where it is now with --file PATH/{name}.py."
        )
    shelf, _ = library(list(places.values()))
    texts = manifest["identity"].get("texts", {})
    return shelf, [
        f"{places[name]} is another text than the one that was run; the figures are drawn with the new one"
        for name in places
        if shelf.texts[name] != texts.get(name)
    ]


def settings_of(identity: Mapping[str, Any], directory: Path, papers: Mapping[str, Paper]) -> dict[str, Any]:
    """The settings of a run by paper, as its manifest says."""
    try:
        kept = identity["settings"]
        return {name: rebuilt(papers[name].settings[identity["profile"]], values) for name, values in kept.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{directory} was written by another version of iclab or of a file; its settings are not known here."
        ) from error

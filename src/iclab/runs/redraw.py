"""`iclab figures`: the figures of a run once more, from its results, in the format a paper wants."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iclab.drawing import finish
from iclab.errors import InputError, nearest, require
from iclab.papers import PAPERS, select
from iclab.report.figures import FORMATS, picture
from iclab.runs.store import Store, read_manifest


def redraw(directory: Path, kind: str) -> tuple[list[Path], list[str]]:
    """Draw every figure whose results are there into figures/<paper>/<name>.<kind>; what was left out, and why."""
    require(kind in FORMATS, f"format {kind!r} is unknown. {nearest(kind, FORMATS)}")
    identity = read_manifest(directory)["identity"]
    require("grid" not in identity, f"{directory} is a sweep; `iclab figures` draws the figures of `iclab reproduce`.")
    settings = settings_of(identity, directory)
    claims = select(identity["ids"] or list(settings), settings)
    written, missing = [], []
    with Store(directory, identity) as store:
        for paper in (PAPERS[name] for name in settings):
            own = [claim for claim in claims if claim.paper == paper.id]
            found = {name: store.load_result(f"{paper.id}/{name}") for claim in own for name in claim.needs}
            results = {name: data for name, data in found.items() if data is not None}
            for name in dict.fromkeys(claim.figure for claim in own if claim.figure):
                lacking = {need for claim in own if claim.figure == name for need in claim.needs} - set(results)
                if lacking:
                    missing.append(f"{paper.id}/{name}: no results of {', '.join(sorted(lacking))}")
                    continue
                figure = finish(paper.figures[name](results, settings[paper.id]))
                written.append(store.write(f"figures/{paper.id}/{name}.{kind}", picture(figure, kind)))
    return written, missing


def settings_of(identity: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The settings of a run by paper, as its manifest says."""
    try:
        return {
            name: type(PAPERS[name].settings[identity["profile"]])(**values) for name, values in identity["settings"].items()
        }
    except (KeyError, TypeError) as error:
        raise InputError(f"{directory} was written by another version of iclab; its settings are not known here.") from error

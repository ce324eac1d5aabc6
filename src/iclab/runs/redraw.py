"""`iclab figures`: draw the figures of a run again from its results, in the format that a paper needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from iclab.authoring.paper import PROFILES, Paper
from iclab.authoring.sources import split_file, user_paper
from iclab.drawing import finish
from iclab.errors import InputError, in_words, nearest, require
from iclab.library import Library, library, select
from iclab.printing import printed, require_width
from iclab.report.figures import FORMATS, picture
from iclab.runs.jobs import CONTROL
from iclab.runs.judging import Judge, at_one_size
from iclab.runs.manifest import read_manifest
from iclab.runs.store import Store
from iclab.settings import rebuilt
from iclab.statements import Statement

NOT_DRAWN = "figures are drawn without it"
AGAIN = "To compute them again, repeat the command of the run with the same --out."


def redraw(
    directory: Path,
    kind: str,
    files: Sequence[str] = (),
    *,
    trust: bool = False,
    width: float | None = None,
    out: Path | None = None,
) -> tuple[list[Path], list[str]]:
    """Draw every figure whose results exist into figures/<paper>/<name>.<kind>, or <paper>/<name>.<kind> in another
    folder; return the files, and notes on what was left out. A `width` in inches lays them out for print.

    A .py file draws its own figures, and a run's folder may come from somebody else. So the file is executed from
    `files`, or from the copy in the folder with `trust`. Otherwise its figures stay as the run drew them.
    """
    require(kind in FORMATS, f"format {kind!r} is unknown. {nearest(kind, FORMATS)}")
    if width is not None:
        require_width(width)
    manifest = read_manifest(directory)
    identity = manifest["identity"]
    require("grid" not in identity, f"{directory} is a sweep; `iclab figures` needs a run of `iclab reproduce`.")
    shelf, changed, untrusted = shelf_of(manifest, files, trust)
    kept, notes = _as_they_are(directory, kind, untrusted)
    settings, statements = stated(identity, directory, shelf, untrusted)
    if not settings:
        return kept, notes
    judge = Judge(shelf.papers, settings)
    written, missing = kept, [*notes, *changed]
    with Store(directory, identity) as store:
        store.on_report = lambda text: missing.append(text.replace("the work is done again", NOT_DRAWN))
        for paper in (shelf.papers[name] for name in settings):
            own = [statement for statement in statements if statement.paper == paper.id]
            results, control = (_loaded(store, f"{prefix}{paper.id}/", own) for prefix in ("", CONTROL))
            complete = [statement for statement in own if set(statement.needs()) <= set(results)]
            for statement in (statement for statement in own if statement not in complete):
                lacking = ", ".join(sorted(set(statement.needs()) - set(results)))
                missing.append(f"not drawn: {statement.id}: there are no results of {lacking}")
            if results and paper.unit == "seed" and set(results) - set(control):
                missing.append(f"drawn without untrained models: {paper.id}: their results are missing. {AGAIN}")
            for name, figure in judge.figures(complete, results, control).items():
                try:
                    drawn = finish(figure()) if width is None else printed(figure(), width)
                except Exception as error:
                    if paper.id not in shelf.files:
                        raise
                    missing.append(f"not drawn: {paper.id}/{name}: {in_words(error)}")
                    continue
                content = picture(drawn, kind)
                place = f"{paper.id}/{name}.{kind}"
                written.append(store.write(f"figures/{place}", content) if out is None else _put(out / place, content))
    return written, missing


def _put(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}.") from error
    return path


def stated(
    identity: Mapping[str, Any], directory: Path, shelf: Library, untrusted: Mapping[str, str]
) -> tuple[dict[str, Any], list[Statement]]:
    """The settings of a run by paper, and its statements, without papers whose code may not be executed."""
    known_here = {"settings", "ids"} <= set(identity) and identity.get("profile") in PROFILES
    require(known_here, f"{directory} is not a run whose figures can be drawn.")
    known = {name: values for name, values in identity["settings"].items() if name not in untrusted}
    ids = [name for name in identity["ids"] if name.partition("/")[0] in known]
    settings = settings_of({**identity, "settings": known}, directory, shelf.papers)
    statements = select(ids or list(settings), settings, papers=shelf.papers) if settings else []
    if not PROFILES[identity["profile"]].answers:
        statements = [at_one_size(statement) for statement in statements]
    return settings, statements


def _loaded(store: Store, prefix: str, statements: Sequence[Statement]) -> dict[str, xr.Dataset]:
    """The results that statements need, as far as the run has them."""
    needs = dict.fromkeys(need for statement in statements for need in statement.needs())
    return {need: data for need in needs if (data := store.load_result(f"{prefix}{need}")) is not None}


def shelf_of(
    manifest: Mapping[str, Any], given: Sequence[str], trust: bool
) -> tuple[Library, list[str], dict[str, str]]:
    """The papers that may be used, notes on files that changed, and the texts of those that may not be executed."""
    for path in given:
        require(split_file(path) == (path, ""), f"--file {path} is not a .py file.")
    shelf, _ = library(given)
    texts, files = manifest.get("plan", {}).get("texts", {}), manifest["identity"].get("files", ())
    carried = {name: text for name, text in texts.items() if name in files}
    for name, path in shelf.files.items():
        require(name in carried, f"--file {path}: the run used {', '.join(f'{n}.py' for n in carried) or 'no file'}.")
    changed = [
        f"{path} has changed since the run; the figures are drawn with the new version"
        for name, path in shelf.files.items()
        if shelf.texts[name] != carried[name]
    ]
    missing = {name: text for name, text in carried.items() if name not in shelf.files}
    if not trust:
        return shelf, changed, missing
    papers = {**shelf.papers, **{name: user_paper(name, text) for name, text in missing.items()}}
    return Library(papers, shelf.texts, {**shelf.files, **{name: f"{name}.py" for name in missing}}), changed, {}


def _as_they_are(directory: Path, kind: str, untrusted: Mapping[str, str]) -> tuple[list[Path], list[str]]:
    """The figures that a run drew with a file's own code, and notes on how to draw them again."""
    found, notes = [], []
    for name, text in untrusted.items():
        found += sorted((directory / "figures" / name).glob(f"*.{kind}"))
        notes.append(
            f"{name}: not drawn again, because that executes {name}.py. Give your own copy with --file PATH/{name}.py, "
            f"or --trust the copy in the run folder ({len(text.splitlines())} lines)."
        )
    return found, notes


def settings_of(identity: Mapping[str, Any], directory: Path, papers: Mapping[str, Paper]) -> dict[str, Any]:
    """The settings of a run by paper, from its manifest."""
    try:
        kept = identity["settings"]
        return {name: rebuilt(papers[name].settings[identity["profile"]], values) for name, values in kept.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{directory} was written by another version of iclab or of its file; its settings are unknown here."
        ) from error

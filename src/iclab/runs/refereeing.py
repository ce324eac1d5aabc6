"""`iclab referee`: reports on papers, from the folder of a run or from the recorded answers."""

from __future__ import annotations

from pathlib import Path

from iclab.authoring.paper import PROFILES
from iclab.errors import InputError, nearest, require
from iclab.papers import PAPERS
from iclab.records import PROFILE, RECORDED, condensed, recorded, recorded_papers
from iclab.report.referee import report
from iclab.report.testimony import Testimony
from iclab.report.writing import latex, markdown
from iclab.runs.manifest import read_manifest
from iclab.runs.opened import read_claims
from iclab.runs.redraw import shelf_of, stated

FORMATS = {"md": markdown, "tex": latex}


def referee(directory: Path, paper: str | None, kind: str, out: Path | None, *, trust: bool = False) -> list[Path]:
    """Write the reports, one file per paper, and return their paths."""
    require(kind in FORMATS, f"format {kind!r} is unknown. {nearest(kind, FORMATS)}")
    on_record = str(directory) == RECORDED
    given = on_the_record(paper) if on_record else of_a_run(directory, paper, trust=trust)
    folder = out or (Path("referee") if on_record else directory / "referee")
    written = []
    for one in given:
        path = folder / f"{one.paper.id}.{kind}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(FORMATS[kind](report(one)), encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}.") from error
        written.append(path)
    return written


def on_the_record(paper: str | None = None) -> list[Testimony]:
    """The recorded answers for a paper, or for all papers."""
    names = recorded_papers() if paper is None else [paper]
    return [
        Testimony(PAPERS[name], PAPERS[name].settings[PROFILE], found, "the recorded answers", PROFILE)
        for name, found in ((name, recorded(name)) for name in names)
    ]


def of_a_run(directory: Path, paper: str | None = None, *, trust: bool = False) -> list[Testimony]:
    """The answers of a run for a paper, or for all papers that it has."""
    entries, manifest = read_claims(directory), read_manifest(directory)
    identity = manifest["identity"]
    known = list(dict.fromkeys(entry["paper"] for entry in entries))
    require(
        paper is None or paper in known, f"{directory} has no statements of {paper!r}. {nearest(paper or '', known)}"
    )
    profile = str(identity.get("profile"))
    answers = profile in PROFILES and PROFILES[profile].answers
    require(
        answers,
        f"{directory} ran with the {profile} profile, which answers nothing; report on a run with another profile.",
    )
    shelf, _, untrusted = shelf_of(manifest, (), trust)
    wanted = known if paper is None else [paper]
    for name in (name for name in wanted if name in untrusted):
        raise InputError(f"a report on {name} needs {name}.py; --trust executes the copy in {directory}.")
    settings, _ = stated(identity, directory, shelf, untrusted)
    return [
        Testimony(
            shelf.papers[name], settings[name], [condensed(entry) for entry in entries if entry["paper"] == name],
            f"the run in {directory}", profile,
        )
        for name in wanted
    ]  # fmt: skip

"""Open a finished run: its answers as a table, single statements, results, and trained models."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr
from matplotlib.figure import Figure

from iclab.authoring.plugged import SETTING
from iclab.drawing import finish
from iclab.errors import InputError, nearest, require
from iclab.models import Model
from iclab.papers import PAPERS
from iclab.records import PROFILE, RECORDED, recorded, recorded_papers
from iclab.report.comparison import Side
from iclab.report.formats import plain
from iclab.report.page import SIGNS, command
from iclab.runs.answered import Answered, Entry
from iclab.runs.contents import checked, digest_in, is_file
from iclab.runs.jobs import CONTROL
from iclab.runs.judging import Judge
from iclab.runs.manifest import MANIFEST, read_manifest
from iclab.runs.redraw import shelf_of, stated
from iclab.runs.saved import Saved, file_part, read_saved
from iclab.runs.store import SEAL, read_result
from iclab.settings import value_of
from iclab.statements import Statement
from iclab.tallies import Answer, tally
from iclab.worlds import World

if TYPE_CHECKING:
    import pandas as pd

CLAIMS = "claims.json"


@dataclasses.dataclass(frozen=True, repr=False)
class Run:
    """A finished run: its directory, its statements as in claims.json, its results as xarray datasets by
    "paper/experiment".

    Results of untrained models are "control/paper/experiment". `run["fig1a"]` is one statement with its figure, data
    and reasons, `run.table()` lists all statements, `run.model(...)` is a trained model. Code inside the folder (the
    .py file of a run, which draws its figures) is executed only if `trusted`.
    """

    directory: Path
    statements: list[Entry]
    results: dict[str, xr.Dataset]
    trusted: bool = False

    def __getitem__(self, name: str) -> Answered:
        """A statement by its id, or by the part after the slash if only one paper has it."""
        found = [entry for entry in self.statements if name in (entry["id"], entry["id"].partition("/")[2])]
        known = [entry["id"] for entry in self.statements]
        require(bool(found), f"this run has no statement {name!r}. {nearest(name, [*known, *self._names()])}")
        ids = ", ".join(entry["id"] for entry in found)
        require(len(found) == 1, f"several statements are called {name!r}; choose one of {ids}.")
        entry = found[0]
        paper = PAPERS.get(entry["paper"])
        return Answered(
            entry,
            tuple(str(one) for one in paper.unstated) if paper else (),
            command(self._manifest["identity"], entry["id"]),
            functools.partial(self._behind, entry["id"]),
            functools.partial(self._figure, entry["id"]),
        )

    def __iter__(self) -> Iterator[Answered]:
        return (self[entry["id"]] for entry in self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def table(self) -> pd.DataFrame:
        """A row per statement: its answer, in words, hypotheses met, whether untrained models pass."""
        import pandas as pd

        rows = [
            {
                "id": entry["id"],
                "source": entry["source"],
                "answer": entry["answer"],
                "words": entry["words"],
                "hypotheses": _met(entry),
                "untrained pass": len(entry["also_untrained"]) == len(entry["readings"]),
                "readings": len(entry["readings"]),
                "beyond": entry["beyond"],
                "statement": entry["statement"],
            }
            for entry in self.statements
        ]
        return pd.DataFrame(rows).set_index("id")

    def model(self, *, seed: int | None = None, setting: str | None = None, training: str | None = None) -> Model:
        """A trained model: `output, trace = model(prompt)`.

        The run must have been made with `save_models=True`. `training` and `setting` choose one of several.
        """
        return self._saved(seed, setting, training).model()

    def world(self, *, seed: int | None = None, setting: str | None = None, training: str | None = None) -> World:
        """The world in which this model was trained: `world.sample(key, index)` is a prompt."""
        return self._saved(seed, setting, training).world()

    def __repr__(self) -> str:
        return plain(f"Run({str(self.directory)!r}: {'; '.join(self._tallies())})")

    def _repr_html_(self) -> str:
        """The table of statements, for a notebook."""
        rows = "".join(
            f"<tr><td style='text-align: left'><code>{_safe(entry['id'])}</code></td>"
            f"<td style='text-align: left'>{_safe(entry['source'])}</td>"
            f"<td style='text-align: left; white-space: nowrap'>{SIGNS[Answer(entry['answer'])]} "
            f"<b>{_safe(entry['answer'])}</b></td>"
            f"<td style='text-align: left'>{_safe(_short(entry['words']))}</td>"
            f"<td style='text-align: left'>{_safe(_met(entry))}</td></tr>"
            for entry in self.statements
        )
        heads = "".join(
            f"<th style='text-align: left'>{word}</th>"
            for word in ("statement", "in the paper", "answer", "in words", "hypotheses")
        )
        told = "<br>".join(_safe(line) for line in self._tallies())
        page = _safe(str(self.directory / "index.html"))
        return (
            f"<p>{told}</p><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>page: <code>{page}</code></p>"
        )

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()

    def _names(self) -> list[str]:
        return [entry["id"].partition("/")[2] for entry in self.statements]

    def _tallies(self) -> list[str]:
        papers = dict.fromkeys(entry["paper"] for entry in self.statements)
        return [f"{name}: {tally([e for e in self.statements if e['paper'] == name])}" for name in papers]

    @functools.cached_property
    def _manifest(self) -> dict[str, Any]:
        return read_manifest(self.directory)

    @functools.cached_property
    def _source(self) -> tuple[Judge, dict[str, Statement]]:
        """What answers and draws these statements, and the statements themselves."""
        shelf, _, untrusted = shelf_of(self._manifest, (), self.trusted)
        settings, statements = stated(self._manifest["identity"], self.directory, shelf, untrusted)
        return Judge(shelf.papers, settings), {statement.id: statement for statement in statements}

    def _statement(self, name: str) -> tuple[Judge, Statement]:
        judge, statements = self._source
        paper = name.partition("/")[0]
        require(
            name in statements,
            f"{name} is judged and drawn by {paper}.py; to execute the copy in {self.directory}, use "
            "iclab.open_run(..., trust=True).",
        )
        return judge, statements[name]

    def _behind(self, name: str) -> dict[str, xr.Dataset]:
        _, statement = self._statement(name)
        places = {"trained": f"{statement.paper}/", "untrained": f"{CONTROL}{statement.paper}/"}
        return {
            f"{word}/{need}": self.results[f"{place}{need}"]
            for word, place in places.items()
            for need in statement.needs()
            if f"{place}{need}" in self.results
        }

    def _figure(self, name: str) -> Figure:
        judge, statement = self._statement(name)
        own, control = judge.split(statement.paper, self.results)
        (figure,) = judge.figures([statement], own, control).values()
        return finish(figure())

    def _saved(self, seed: int | None, setting: str | None, training: str | None) -> Saved:
        return _chosen(self.directory / "models", self._manifest["fingerprint"], seed, setting, training)


def _chosen(folder: Path, fingerprint: str, seed: int | None, setting: str | None, training: str | None) -> Saved:
    """The file of a run that these arguments choose; an `InputError` unless there is exactly one."""
    files = sorted(folder.rglob("*.npz"))
    require(
        bool(files),
        f"{folder.parent} keeps no models; the same run in a new folder with save_models=True (`iclab reproduce "
        "--save-models`) does.",
    )
    left = [(path, path.parent.relative_to(folder).as_posix(), *path.stem.rpartition("-")[::2]) for path in files]
    for word, wanted, place in (
        ("training", training, 1),
        ("setting", setting and file_part(setting), 2),
        ("seed", seed, 3),
    ):
        known = list(dict.fromkeys(str(one[place]) for one in left))
        if wanted is None:
            require(len(known) == 1, f"there are several models; choose one with {word}=: {', '.join(known)}.")
        else:
            require(str(wanted) in known, f"there is no {word} {wanted!r}. {nearest(str(wanted), known)}")
        left = [one for one in left if wanted is None or str(one[place]) == str(wanted)]
    path = left[0][0]
    seal = path.with_name(f"{path.name}{SEAL}")
    right = is_file(seal) and digest_in(fingerprint, path.read_bytes()) == seal.read_text(errors="replace").strip()
    require(right, f"{path} is damaged or belongs to another run; repeat the command with --out {folder.parent}.")
    return read_saved(path)


def _safe(text: str) -> str:
    return html.escape(plain(text))


def _short(words: str, limit: int = 160) -> str:
    return words if len(words) <= limit else f"{words[:limit].rsplit(' ', 1)[0]} …"


def _met(entry: Entry) -> str:
    known = entry["readings"][0]["hypotheses"]
    return f"{known['met']} of {known['of']}" if known else ""


def open_run(directory: str | Path, *, trust: bool = False) -> Run:
    """Open a finished run: answers and results as they were written. Nothing in the folder is executed, except with
    `trust` the run's own .py file, when a figure or results need it.
    """
    place = Path(directory)
    manifest = read_manifest(place)
    require("grid" not in manifest["identity"], f"{place} is a sweep; open it with iclab.open_sweep.")
    results = {}
    files = {*(place / "results").rglob("*.nc"), *(p.with_suffix("") for p in (place / "results").rglob("*.nc.sha256"))}
    for path in sorted(files):
        name = path.relative_to(place / "results").with_suffix("").as_posix()
        if not name.startswith("pieces/"):
            results[name] = read_result(path, manifest["fingerprint"])
    return Run(place, read_claims(place), results, trust)


def _refuse_old(path: Path) -> None:
    """Iclab 0.1 wrote a list of rows, without a checksum."""
    require(
        not (is_file(path) and path.read_bytes().lstrip().startswith(b"[")),
        f"{path} was written by iclab 0.1, in another format; run it again with this version.",
    )


def read_claims(directory: Path) -> list[Entry]:
    """The statements in claims.json of a finished run."""
    path = directory / CLAIMS
    if not is_file(path):
        raise InputError(f"{directory} has no {CLAIMS}; is it a finished run of iclab?")
    _refuse_old(path)
    content = checked(path)
    require(content is not None, f"{path} is damaged or was edited: its checksum is missing or wrong.")
    try:
        found = json.loads(content or b"", parse_int=lambda text: int(text) if len(text) < 20 else float(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged and cannot be read.") from error
    wrong = next(_schema().iter_errors(found), None)
    if wrong is not None:
        where = "/".join(map(str, wrong.absolute_path)) or "the file"
        raise InputError(f"{path} was not written by this version of iclab: {where}: {wrong.message[:200]}.")
    if "run" in found and (directory / MANIFEST).is_file():  # older files do not say it
        same = found["run"] == read_manifest(directory)["fingerprint"]
        require(same, f"{path} belongs to another run; repeat the command with --out {directory} to write it again.")
    return list(found["statements"])


@functools.cache
def _schema() -> Any:
    """The schema of claims.json."""
    import jsonschema

    text = (resources.files("iclab.data") / "claims.schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def _side(directory: Path) -> Side:
    _refuse_old(directory / CLAIMS)
    return Side(str(directory), read_manifest(directory), read_claims(directory))


def sides(first: Path, second: Path) -> tuple[Side, Side]:
    """The two sides of `iclab diff`: two runs, or a run and the recorded answers of its papers."""
    require(str(first) != RECORDED, f"{RECORDED} comes second: iclab diff DIR {RECORDED}.")
    here = _side(first)
    if str(second) != RECORDED:
        return here, _side(second)
    papers = [name for name in recorded_papers() if any(entry["paper"] == name for entry in here.statements)]
    papers = [name for name in papers if _own_model(here, name)]
    require(
        bool(papers),
        f"no answers are recorded for the papers of {first}; recorded are {', '.join(recorded_papers())}.",
    )
    settings = {name: dataclasses.asdict(PAPERS[name].settings[PROFILE]) for name in papers}
    identity = {"profile": PROFILE, "settings": settings}
    asked = {entry["id"] for entry in here.statements}
    entries = [_with_values(entry) for name in papers for entry in recorded(name) if entry["id"] in asked]
    return here, Side(f"{RECORDED}: the {PROFILE} profile, on a GPU", {"identity": identity}, entries)


def _own_model(here: Side, paper: str) -> bool:
    """Whether a run used the paper's own model; only those answers are recorded."""
    ran, own = here.manifest["identity"].get("settings", {}).get(paper, {}), PAPERS[paper].settings[PROFILE]
    return SETTING not in ran or ran[SETTING] == value_of(own, SETTING)


def _with_values(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A record as a page shows it; records do not keep the numbers per seed."""
    readings = [
        {**reading, "parts": [{**part, "values": []} for part in reading["parts"]]} for reading in entry["readings"]
    ]
    return {**entry, "readings": readings}

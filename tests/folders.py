"""Run folders: made by a process of its own, or from results that are there already, which computes nothing."""

import ast
import dataclasses
import pathlib
import subprocess
import sys

from iclab.papers import PAPERS
from iclab.runs.contents import from_bytes
from iclab.runs.judging import Judge
from iclab.runs.opened import Run, read_claims
from iclab.runs.store import Store

PAPER = PAPERS["feature-selection"]
TRAINING = [name for name, paper in PAPERS.items() if paper.unit == "seed"]
SETTINGS = PAPER.settings["smoke"]
STATEMENTS = PAPER.statements(SETTINGS)
JUDGE = Judge({PAPER.id: PAPER}, {PAPER.id: SETTINGS})


AS_A_USER = "-c", "import sys; from iclab import cli; sys.argv[0] = 'iclab'; cli.main()"
PRETENDED = (str(pathlib.Path(__file__).with_name("pretended.py")),)  # most numbers are made up


def smoke(out, *arguments, starter=AS_A_USER):
    """`iclab reproduce --profile smoke` in a process of its own; unlike here, shapes are not checked."""
    command = [sys.executable, *starter, "reproduce", *arguments, "--profile", "smoke", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    place = out / "results"
    files = {path.relative_to(place).with_suffix("").as_posix(): path for path in sorted(place.rglob("*.nc"))}
    results = {name: from_bytes(path.read_bytes()) for name, path in files.items()}
    return Run(out, read_claims(out), results)


def identity(**changes):
    return {
        "ids": [statement.id for statement in STATEMENTS],
        "profile": "smoke", "seeds": 2, "changes": {}, "version": "0.1.0",
        "settings": {PAPER.id: dataclasses.asdict(SETTINGS)},
    } | changes  # fmt: skip


def folder(path, run, names=None):
    """An open store at `path` with these results of the smoke run's feature-selection, or with all."""
    store = Store(path, identity())
    own = [place.removeprefix(f"{PAPER.id}/") for place in run.results if place.startswith(f"{PAPER.id}/")]
    for name in own if names is None else names:
        for place in (f"{PAPER.id}/{name}", f"control/{PAPER.id}/{name}"):
            if place in run.results:
                store.save_result(place, run.results[place], 1.0)
    return store


def both(run, name):
    """The results of an experiment of feature-selection with trained and with untrained models."""
    places = f"{PAPER.id}/{name}", f"control/{PAPER.id}/{name}"
    return {place: run.results[place] for place in places if place in run.results}


def code_lines(path):
    """Lines that are neither blank, comment nor docstring."""
    text, documentation = path.read_text(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            documentation |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in documentation for n, line in lines)

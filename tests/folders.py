"""Run folders made from results that are there already, so that tests of what reads them compute nothing."""

import ast
import dataclasses

from iclab.papers import PAPERS
from iclab.runs.store import Store

PAPER = PAPERS["feature-selection"]
SETTINGS = PAPER.settings["smoke"]
CLAIMS = PAPER.claims(SETTINGS)


def identity(**changes):
    return {
        "ids": [claim.id for claim in CLAIMS], "profile": "smoke", "seeds": 2, "changes": {}, "version": "0.1.0",
        "settings": {PAPER.id: dataclasses.asdict(SETTINGS)},
    } | changes  # fmt: skip


def folder(path, run, names=tuple(PAPER.experiments)):
    """An open store at `path` with these experiments of the smoke run's feature-selection."""
    store = Store(path, identity())
    for name in names:
        store.save_result(f"{PAPER.id}/{name}", run.results[f"{PAPER.id}/{name}"], 1.0)
    return store


def code_lines(path):
    """Lines that are neither blank, comment nor docstring."""
    text, documentation = path.read_text(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            documentation |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in documentation for n, line in lines)

"""The papers. A reader with a PDF starts here: one folder per paper, with settings, experiments, statements,
figures, theory.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from iclab.authoring.module import paper_of
from iclab.authoring.paper import Paper

FOLDERS = (
    "nonlinear_icl",
    "feature_selection",
    "mamba_outliers",
    "chain_of_thought",
    "vector_arithmetic",
    "language_model",
)


# While the papers are being rewritten: those that are.
FOLDERS = tuple(name for name in FOLDERS if (Path(__file__).parent / name / "statements.py").exists())


def read(folder: str) -> Paper:
    """The paper of a folder, as a user's file is read."""
    place = f"{__name__}.{folder}"
    return paper_of(folder.replace("_", "-"), place, importlib.import_module(place))


PAPERS: dict[str, Paper] = {paper.id: paper for paper in map(read, FOLDERS)}

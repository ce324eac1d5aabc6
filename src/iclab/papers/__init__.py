"""The papers. A reader with a PDF starts here: one folder per paper, with settings, experiments, statements, figures
and theory. Beside them, what puts their questions to a real language model (`iclab.language.study`).
"""

from __future__ import annotations

import importlib

from iclab.authoring.module import paper_of
from iclab.authoring.paper import Paper

PLACES = {
    "nonlinear-icl": "iclab.papers.nonlinear_icl",
    "feature-selection": "iclab.papers.feature_selection",
    "mamba-outliers": "iclab.papers.mamba_outliers",
    "chain-of-thought": "iclab.papers.chain_of_thought",
    "vector-arithmetic": "iclab.papers.vector_arithmetic",
    "language-model": "iclab.language.study",
}
PAPERS: dict[str, Paper] = {
    name: paper_of(name, place, importlib.import_module(place)) for name, place in PLACES.items()
}

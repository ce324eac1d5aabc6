"""The built-in papers. A reader with a PDF starts here: one folder per paper, with settings, experiments, claims, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iclab.claims import Claim
from iclab.errors import InputError, nearest
from iclab.papers import chain_of_thought, feature_selection, mamba_outliers, nonlinear_icl, vector_arithmetic
from iclab.papers.paper import PROFILES, Experiment, Paper, Profile

PAPERS: dict[str, Paper] = {
    paper.id: paper
    for paper in (
        nonlinear_icl.PAPER,
        feature_selection.PAPER,
        mamba_outliers.PAPER,
        chain_of_thought.PAPER,
        vector_arithmetic.PAPER,
    )
}


def select(ids: Sequence[str], settings: Mapping[str, Any] | None = None) -> list[Claim]:
    """The claims that these ids name: a paper, a claim, or a prefix of claims ("nonlinear-icl/fig2"). None: all.

    Rules follow from `settings` (by paper id; default: the quick profile's).
    """
    settings = settings or {}
    every = [c for paper in PAPERS.values() for c in paper.claims(settings.get(paper.id, paper.settings["quick"]))]
    if not ids:
        return every
    chosen: dict[str, Claim] = {}
    for wanted in ids:
        found = [claim for claim in every if claim.paper == wanted or _names(wanted, claim.id)]
        if not found:
            known = [*PAPERS, *(claim.id for claim in every)]
            raise InputError(f"no paper or claim is called {wanted!r}. {nearest(wanted, known)}")
        chosen |= {claim.id: claim for claim in found}
    return list(chosen.values())


def _names(wanted: str, claim: str) -> bool:
    """A claim's own id, or a prefix of it that does not end inside a number: fig1 names fig1a and fig1-hinge, not fig10."""
    rest = claim.removeprefix(wanted)
    return (
        "/" in wanted
        and not wanted.endswith("/")
        and claim.startswith(wanted)
        and not (wanted[-1:].isdigit() and rest[:1].isdigit())
    )


__all__ = ["PAPERS", "PROFILES", "Experiment", "Paper", "Profile", "select"]

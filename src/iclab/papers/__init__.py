"""The built-in papers. A reader with a PDF starts here: one folder per paper, with settings, experiments, claims, figures."""

from __future__ import annotations

from collections.abc import Sequence

from iclab.claims import Claim
from iclab.errors import InputError, nearest
from iclab.papers import feature_selection, nonlinear_icl
from iclab.papers.paper import PROFILES, Experiment, Paper, Profile

PAPERS: dict[str, Paper] = {paper.id: paper for paper in (nonlinear_icl.PAPER, feature_selection.PAPER)}


def select(ids: Sequence[str]) -> list[Claim]:
    """The claims that these ids name: a paper, a claim, or a prefix of claims ("nonlinear-icl/fig2"). None: all."""
    every = [claim for paper in PAPERS.values() for claim in paper.claims]
    if not ids:
        return every
    chosen: dict[str, Claim] = {}
    for wanted in ids:
        found = [claim for claim in every if claim.id == wanted or claim.paper == wanted]
        found = found or [claim for claim in every if "/" in wanted and claim.id.startswith(wanted)]
        if not found:
            known = [*PAPERS, *(claim.id for claim in every)]
            raise InputError(f"no paper or claim is called {wanted!r}. {nearest(wanted, known)}")
        chosen |= {claim.id: claim for claim in found}
    return list(chosen.values())


__all__ = ["PAPERS", "PROFILES", "Experiment", "Paper", "Profile", "select"]

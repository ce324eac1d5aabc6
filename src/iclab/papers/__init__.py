"""The built-in papers. A reader with a PDF starts here: one folder per paper, with settings, experiments, claims, figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from iclab.claims import Claim
from iclab.errors import InputError, nearest, require
from iclab.papers import chain_of_thought, feature_selection, language_model, mamba_outliers, nonlinear_icl, vector_arithmetic
from iclab.papers.paper import PROFILES, Experiment, Paper, Profile
from iclab.theory.theorem import SymbolsBase, Theorem

PAPERS: dict[str, Paper] = {
    paper.id: paper
    for paper in (
        nonlinear_icl.PAPER,
        feature_selection.PAPER,
        mamba_outliers.PAPER,
        chain_of_thought.PAPER,
        vector_arithmetic.PAPER,
        language_model.PAPER,
    )
}


def select(ids: Sequence[str], settings: Mapping[str, Any] | None = None, only: str = "") -> list[Claim]:
    """The claims that these ids name: a paper, a claim, or a prefix of claims ("nonlinear-icl/fig2"). None: all.

    Rules follow from `settings` (by paper id; default: the quick profile's). `only` keeps those of one topic.
    """
    settings = settings or {}
    every = [c for paper in PAPERS.values() for c in paper.claims(settings.get(paper.id, paper.settings["quick"]))]
    found = _choose(ids, every, "claim")
    if not only:
        return found
    topics = sorted({claim.topic for claim in every} - {""})
    require(only in topics, f"--only {only}: no claim has this topic. {nearest(only, topics)}")
    kept = [claim for claim in found if claim.topic == only]
    require(bool(kept), f"--only {only}: none of {' '.join(ids)} has this topic.")
    return kept


def theorems(ids: Sequence[str], symbols: Mapping[str, SymbolsBase] | None = None, constant: float = 1.0) -> list[Theorem]:
    """The theorems that these ids name, with conditions and rates: a paper, a theorem, or a prefix. None: all.

    They are evaluated at `symbols` (by paper id; default: those of the quick profile), with this hidden constant.
    """
    symbols = symbols or {}
    default = {paper.id: paper.symbols(paper.settings["quick"]) for paper in PAPERS.values() if paper.id not in symbols}
    every = [t for paper in PAPERS.values() for t in paper.theorems((default | dict(symbols))[paper.id], constant)]
    return _choose(ids, every, "theorem")


def free_symbols(paper: Paper, profile: str) -> list[str]:
    """What the theorems speak of and no setting fixes: ε, δ, the outliers of a test."""
    settings = paper.settings[profile]
    fixed = {field.name for field in dataclasses.fields(settings)}
    return [field.name for field in dataclasses.fields(paper.symbols(settings)) if field.name not in fixed]


Named = TypeVar("Named", Claim, Theorem)


def _choose(ids: Sequence[str], every: list[Named], what: str) -> list[Named]:
    if not ids:
        return every
    chosen: dict[str, Named] = {}
    for wanted in ids:
        found = [entry for entry in every if entry.paper == wanted or _names(wanted, entry.id)]
        require(bool(found) or wanted not in PAPERS, f"{wanted} has no {what}.")
        if not found:
            known = [*PAPERS, *(entry.id for entry in every)]
            raise InputError(f"no paper or {what} is called {wanted!r}. {nearest(wanted, known)}")
        chosen |= {entry.id: entry for entry in found}
    return list(chosen.values())


def _names(wanted: str, name: str) -> bool:
    """An own id, or a prefix of it that does not end inside a number: fig1 names fig1a and fig1-hinge, not fig10."""
    rest = name.removeprefix(wanted)
    return (
        "/" in wanted
        and not wanted.endswith("/")
        and name.startswith(wanted)
        and not (wanted[-1:].isdigit() and rest[:1].isdigit())
    )


__all__ = ["PAPERS", "PROFILES", "Experiment", "Paper", "Profile", "free_symbols", "select", "theorems"]

"""The papers. A reader with a PDF starts here: one folder per paper, with settings, experiments, claims, figures.

A user's file and an installed package bring papers of their own (`sources`, `own`); to a command they are like those built in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from iclab.claims import Claim
from iclab.errors import InputError, nearest, require
from iclab.papers import chain_of_thought, feature_selection, language_model, mamba_outliers, nonlinear_icl, vector_arithmetic
from iclab.authoring.paper import PROFILES, Experiment, Paper, Profile
from iclab.authoring.sources import read_file, registered, split_file, user_paper
from iclab.theorems import SymbolsBase, Theorem

SIMULATIONS = "simulations"  # the topic of what a paper shows by training models, where a claim says no other
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


@dataclasses.dataclass(frozen=True)
class Library:
    """The papers that a command can use: those built in, those that packages register, and the files it was given.

    `texts` are the sources of what is not built in, by paper: with them results of another source are never mixed in. `files`
    are the paths of the files.
    """

    papers: Mapping[str, Paper]
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)


def library(ids: Sequence[str] = ()) -> tuple[Library, list[str]]:
    """The papers that ids can mean, and the ids with files replaced: my_idea.py/error becomes my_idea/error."""
    papers, texts = dict(PAPERS), {}
    files: dict[str, str] = {}
    for name, (paper, text) in registered(frozenset(PAPERS)).items():
        papers[name], texts[name] = paper, text
    plain = []
    for wanted in ids:
        found = split_file(wanted)
        if found is None:
            plain.append(wanted)
            continue
        name, text = read_file(found[0])
        paper = user_paper(name, text)
        before = files.get(paper.id, found[0])
        require(
            paper.id not in papers or (paper.id in files and before == found[0]),
            f"{found[0]}: the name {paper.id!r} is taken by {'a file' if paper.id in files else 'a paper'}; rename the file.",
        )
        papers[paper.id], texts[paper.id], files[paper.id] = paper, text, found[0]
        plain.append(f"{paper.id}/{found[1]}" if found[1] else paper.id)
    return Library(papers, texts, files), plain


def paper_from(name: str, text: str) -> Paper:
    """A paper by its id; a user's file by its name and text, wherever it is."""
    if name in PAPERS:
        return PAPERS[name]
    installed = registered(frozenset(PAPERS))
    if name in installed:
        require(installed[name][1] == text, f"this machine has another version of the package that registers {name}.")
        return installed[name][0]
    return user_paper(name, text)


def select(
    ids: Sequence[str], settings: Mapping[str, Any] | None = None, only: str = "", papers: Mapping[str, Paper] = PAPERS
) -> list[Claim]:
    """The claims that these ids name: a paper, a claim, or a prefix of claims ("nonlinear-icl/fig2"). None: all.

    Rules follow from `settings` (by paper id; default: the quick profile's). `only` keeps those of one topic.
    """
    settings = settings or {}
    every = [c for paper in papers.values() for c in paper.claims(settings.get(paper.id, default_settings(paper)))]
    found = _choose(ids, every, "claim", papers)
    if not only:
        return found
    trained = {paper.id for paper in papers.values() if paper.unit == "seed"}
    topic = {claim.id: claim.topic or SIMULATIONS if claim.paper in trained else claim.topic for claim in every}
    topics = sorted(set(topic.values()) - {""})
    require(only in topics, f"--only {only}: no claim has this topic. {nearest(only, topics)}")
    kept = [claim for claim in found if topic[claim.id] == only]
    require(bool(kept), f"--only {only}: none of {' '.join(ids)} has this topic.")
    return kept


def default_settings(paper: Paper) -> Any:
    """The settings of the quick profile; of the first one there is, where a user's file has others only."""
    return paper.settings.get("quick", next(iter(paper.settings.values())))


def theorems(
    ids: Sequence[str],
    symbols: Mapping[str, SymbolsBase] | None = None,
    constant: float = 1.0,
    papers: Mapping[str, Paper] = PAPERS,
) -> list[Theorem]:
    """The theorems that these ids name, with conditions and rates: a paper, a theorem, or a prefix. None: all.

    They are evaluated at `symbols` (by paper id; default: those of the quick profile), with this hidden constant.
    """
    at = {paper.id: paper.symbols(default_settings(paper)) for paper in papers.values() if paper.symbols} | dict(symbols or {})
    every = [t for paper in papers.values() if paper.id in at for t in paper.theorems(at[paper.id], constant)]
    return _choose(ids, every, "theorem", papers)


def free_symbols(paper: Paper, profile: str) -> list[str]:
    """What the theorems speak of and no setting fixes: ε, δ, the outliers of a test."""
    if paper.symbols is None:
        return []
    settings = paper.settings[profile]
    fixed = {field.name for field in dataclasses.fields(settings)}
    return [field.name for field in dataclasses.fields(paper.symbols(settings)) if field.name not in fixed]


Named = TypeVar("Named", Claim, Theorem)


def _choose(ids: Sequence[str], every: list[Named], what: str, papers: Mapping[str, Paper]) -> list[Named]:
    if not ids:
        return every
    chosen: dict[str, Named] = {}
    for wanted in ids:
        found = [entry for entry in every if entry.paper == wanted or _names(wanted, entry.id)]
        if not found:
            require(wanted not in papers, f"{wanted} has no {what}s.")
            known = [*papers, *(entry.id for entry in every)]
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


__all__ = [
    "PAPERS", "PROFILES", "Experiment", "Library", "Paper", "Profile", "default_settings", "free_symbols", "library",
    "paper_from", "select", "theorems",
]  # fmt: skip

"""The papers that a command can use (built in, from a user's file, from an installed package), and what ids mean."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from iclab.authoring.paper import Paper
from iclab.authoring.plugged import refuse_unfit
from iclab.authoring.sources import read_file, registered, split_file, user_paper
from iclab.errors import InputError, nearest, require
from iclab.papers import PAPERS
from iclab.statements import Statement
from iclab.theorems import SymbolsBase, Theorem

GROUPS = ("papers", "theorems", "figures", "beyond")  # what `--only` takes


@dataclasses.dataclass(frozen=True)
class Library:
    """The papers that a command can use: built in, registered by packages, and from the given files.

    `texts` are the sources of papers that are not built in, so that results of different sources are never mixed.
    `files` are the paths of the files, `packages` the names of the packages that papers come from.
    """

    papers: Mapping[str, Paper]
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    packages: Mapping[str, str] = dataclasses.field(default_factory=dict)


def library(ids: Sequence[str] = ()) -> tuple[Library, list[str]]:
    """The papers that ids can name, and the ids with files and packages replaced: my_idea.py/error becomes
    my_idea/error, and a package becomes all papers that it registers.
    """
    installed = registered(frozenset(PAPERS))
    papers = dict(PAPERS) | {name: one.paper for name, one in installed.items()}
    texts = {name: one.text for name, one in installed.items()}
    packages = {name: one.package for name, one in installed.items()}
    files: dict[str, str] = {}
    plain = []
    for wanted in ids:
        found = split_file(wanted)
        if found is None:
            own = [name for name, package in packages.items() if wanted in (package, package.removeprefix("iclab-"))]
            plain += [wanted] if wanted in papers or not own else own
            continue
        name, text = read_file(found[0])
        paper = user_paper(name, text)
        before = files.get(paper.id, found[0])
        require(
            paper.id not in papers or (paper.id in files and before == found[0]),
            f"{found[0]}: the name {paper.id!r} is taken by {'a file' if paper.id in files else 'a paper'}; "
            "rename the file.",
        )
        papers[paper.id], texts[paper.id], files[paper.id] = paper, text, found[0]
        plain.append(f"{paper.id}/{found[1]}" if found[1] else paper.id)
    return Library(papers, texts, files, packages), plain


def paper_from(name: str, text: str) -> Paper:
    """A paper by its id; a user's file by its name and text."""
    if name in PAPERS:
        return PAPERS[name]
    installed = registered(frozenset(PAPERS))
    if name in installed:
        require(
            installed[name].text == text,
            f"this machine has a different version of the package that registers {name}; install the same version.",
        )
        return installed[name].paper
    return user_paper(name, text)


def select(
    ids: Sequence[str], settings: Mapping[str, Any] | None = None, only: str = "", papers: Mapping[str, Paper] = PAPERS
) -> list[Statement]:
    """The statements that these ids name: a paper, a statement, a prefix ("nonlinear-icl/fig2"), one reading of a
    statement ("mamba-outliers/fig1a[exact,kappa=10]"). Default: all.

    Rules depend on `settings` (by paper id; default: the quick profile's). `only` keeps one group: the statements of
    the papers, their theorems, their figures, or those beyond the papers.
    """
    settings = settings or {}
    every = [s for paper in papers.values() for s in paper.statements(settings.get(paper.id, default_settings(paper)))]
    found: dict[str, Statement] = {}
    for wanted in ids or [paper.id for paper in papers.values()]:
        name, reading = _split_reading(wanted)
        for statement in _choose([name], every, "statement", papers):
            found[statement.id] = statement if reading is None else _only_reading(statement, reading)
    found = {statement.id: statement for statement in refuse_unfit(list(found.values()))}
    if not only:
        return list(found.values())
    require(only in GROUPS, f"--only {only}: there is no such group of statements. {nearest(only, GROUPS)}")
    kept = [statement for statement in found.values() if only in groups_of(statement)]
    require(bool(kept), f"--only {only}: no statement of {' '.join(ids)} is in this group.")
    return kept


def groups_of(statement: Statement) -> tuple[str, ...]:
    """The groups that a statement belongs to."""
    if statement.beyond:
        return ("beyond",)
    return ("papers", "figures" if statement.source.startswith(("Figure", "Table")) else "theorems")


def _split_reading(wanted: str) -> tuple[str, str | None]:
    """`paper/statement[reading]` in two."""
    found = re.fullmatch(r"([^\[\]]+)\[([^\[\]]*)\]", wanted)
    return (wanted, None) if found is None else (found[1], found[2])


def _only_reading(statement: Statement, name: str) -> Statement:
    known = [reading.name for reading in statement.readings]
    require(name in known, f"{statement.id} has no reading {name!r}. {nearest(name, known)}")
    return dataclasses.replace(statement, readings=tuple(r for r in statement.readings if r.name == name))


def default_settings(paper: Paper) -> Any:
    """The settings of the quick profile, or of the first profile if a user's file does not have it."""
    return paper.settings.get("quick", next(iter(paper.settings.values())))


def theorems(
    ids: Sequence[str],
    symbols: Mapping[str, SymbolsBase] | None = None,
    constant: float = 1.0,
    papers: Mapping[str, Paper] = PAPERS,
) -> list[Theorem]:
    """The theorems that these ids name, with conditions and rates: a paper, a theorem, or a prefix. Default: all.

    They are evaluated at `symbols` (by paper id; default: those of the quick profile), with this hidden constant.
    """
    at = {paper.id: paper.symbols(default_settings(paper)) for paper in papers.values() if paper.symbols}
    at |= dict(symbols or {})
    every = [t for paper in papers.values() if paper.id in at for t in paper.theorems(at[paper.id], constant)]
    return _choose(ids, every, "theorem", papers)


def free_symbols(paper: Paper, profile: str) -> list[str]:
    """Symbols in the theorems that no setting fixes: ε, δ, the outliers of a test."""
    if paper.symbols is None:
        return []
    settings = paper.settings[profile]
    fixed = {field.name for field in dataclasses.fields(settings)}
    return [field.name for field in dataclasses.fields(paper.symbols(settings)) if field.name not in fixed]


Named = TypeVar("Named", Statement, Theorem)


def _choose(ids: Sequence[str], every: list[Named], what: str, papers: Mapping[str, Paper]) -> list[Named]:
    if not ids:
        return every
    chosen: dict[str, Named] = {}
    for wanted in ids:
        exact = [entry for entry in every if entry.id == wanted]
        found = exact or [entry for entry in every if entry.paper == wanted or _names(wanted, entry.id)]
        if not found:
            require(wanted not in papers, f"{wanted} has no {what}s.")
            known = [*papers, *(entry.id for entry in every)]
            raise InputError(f"no paper or {what} is called {wanted!r}. {nearest(wanted, known)}")
        chosen |= {entry.id: entry for entry in found}
    return list(chosen.values())


def _names(wanted: str, name: str) -> bool:
    """Whether a prefix names this id without ending inside a number: fig1 names fig1a and fig1-hinge, not fig10."""
    rest = name.removeprefix(wanted)
    return (
        "/" in wanted
        and not wanted.endswith("/")
        and name.startswith(wanted)
        and not (wanted[-1:].isdigit() and rest[:1].isdigit())
    )

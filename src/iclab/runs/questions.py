"""Which parts of statements a specification curve tests, and over which settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from iclab.authoring.paper import Paper
from iclab.errors import InputError, nearest, require
from iclab.library import library, select
from iclab.runs.options import check_names, override, texts
from iclab.runs.points import fewer_prompts
from iclab.runs.relevance import Dependence, affordable, asked_of, dependence, limit_here
from iclab.runs.sweep_target import settings_of
from iclab.settings import value_of
from iclab.specification import Point, design
from iclab.statements import Reading, Statement
from iclab.unstated import Between, Unstated


@dataclasses.dataclass(frozen=True)
class Question:
    """Statements of one paper: what to test of each, what is left out, and the settings that matter to any."""

    paper: Paper
    text: str
    changes: dict[str, str]
    settings: Any
    statements: dict[str, Statement]
    asked: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    without: dict[str, tuple[str, ...]]
    dimensions: tuple[Unstated, ...]
    hard: frozenset[str]

    @property
    def readings(self) -> int:
        """The largest number of readings of a statement."""
        return max(len(readings) for readings, _ in self.asked.values())


def questions(
    ids: Sequence[str],
    over: Sequence[str],
    seeds: int,
    everything: bool,
    profile: str,
    changes: dict[str, str],
    console: Console,
) -> list[Question]:
    """The questions that these ids name, paper by paper."""
    shelf, names = library(ids)
    plain = [name.partition("[")[0] for name in names]  # readings may have other names where settings are tied together
    chosen = {statement.paper for statement in select(plain, papers=shelf.papers)}
    papers = [paper for paper in shelf.papers.values() if paper.id in chosen]
    check_names("--set", list(changes), {paper.id: settings_of(paper, profile) for paper in papers})
    given = _given(over)
    known = {one.setting for paper in papers for one in paper.unstated if isinstance(one, Unstated)}
    for name in given:
        require(
            name in known or given[name] is not None,
            f"--over {name}: {', '.join(p.id for p in papers)} do{'es' * (len(papers) == 1)} not leave {name} open. "
            f"{nearest(name, known)}",
        )
    found = []
    for paper in papers:
        require(
            paper.unit == "seed",
            f"{paper.id} tests a given model and trains nothing, so `iclab robust` does not apply to it.",
        )
        set_so = override(settings_of(paper, profile), changes)
        mine = _together(paper, set_so) | fewer_prompts(set_so) | changes
        settings = override(settings_of(paper, profile), mine)
        own = [name for name in names if name.partition("[")[0].partition("/")[0] == paper.id]
        statements = {s.name: s for s in select(own, {paper.id: settings}, papers=shelf.papers)}
        limit = float("inf") if everything else limit_here()
        asked, without = {}, {}
        costs: dict[str, float] = {}
        for name, statement in statements.items():
            readings, parts, left = affordable(paper, settings, statement, seeds, limit, costs)
            if readings:
                asked[name], without[name] = (readings, parts), left
            else:
                words = "is left out: every part takes too long to be tested at every point; --everything includes it"
                console.print(f"{statement.id} {words}.", markup=False, highlight=False)
        if asked:
            kept = [_kept(statements[name], *asked[name]) for name in asked]
            dimensions, hard = _dimensions(paper, settings, kept, given)
            text = shelf.texts.get(paper.id, "")
            found.append(Question(paper, text, mine, settings, statements, asked, without, dimensions, hard))
    require(bool(found), "nothing is left to test; --everything includes the slow statements.")
    return found


def _together(paper: Paper, settings: Any) -> dict[str, str]:
    """Changes that give settings which follow another one its value."""
    return texts({name: value_of(settings, one.setting) for one in _declared(paper) for name in one.along})


def _declared(paper: Paper) -> list[Unstated]:
    return [one for one in paper.unstated if isinstance(one, Unstated)]


def _kept(statement: Statement, readings: Sequence[str], parts: Sequence[str]) -> Statement:
    return dataclasses.replace(
        statement,
        readings=tuple(one for one in statement.readings if one.name in readings),
        parts=tuple(part for part in statement.parts if part.name in parts),
    )


def _given(over: Sequence[str]) -> dict[str, Between | None]:
    """`--over`: names of settings, each with its own range (low:high) if one is given."""
    found: dict[str, Between | None] = {}
    for name in (word.strip() for words in over for word in words.split(",")):
        setting, sign, text = name.partition("=")
        require(bool(setting), "--over: write it as name,name or name=low:high.")
        require(setting not in found, f"--over {setting} is given twice.")
        if not sign:
            found[setting] = None
            continue
        try:
            low, high = (float(part) for part in text.split(":"))
        except ValueError:
            raise InputError(f"--over {name}: write a range as {setting}=low:high.") from None
        found[setting] = Between(low, high)
    return found


def _dimensions(
    paper: Paper, settings: Any, statements: Sequence[Statement], given: Mapping[str, Any]
) -> tuple[tuple[Unstated, ...], frozenset[str]]:
    """The settings to vary, and those of them that need separate programs. A setting is varied if it is declared as
    unstated or has a given range, and if an experiment depends on it.
    """
    declared = {one.setting: one for one in _declared(paper)}
    check_names("--over", [name for name in given if given[name] is not None], {paper.id: settings})
    chosen = []
    for name in given or declared:
        if name not in declared and given[name] is None:
            continue  # of another paper
        one = declared.get(name, Unstated(name, given.get(name) or ()))
        chosen.append(dataclasses.replace(one, plausible=given[name]) if given.get(name) else one)
    needs = asked_of(paper, settings, _needs(statements))
    found, hard = [], set()
    for one in chosen:
        taken = value_of(settings, one.setting)
        for value in one.others(taken):
            changes = {name: value for name in (one.setting, *one.along)}
            try:
                override(settings, texts(changes))
            except InputError as error:
                require(not given, f"--over {one.setting}: {error}")
                continue
            kind = dependence(paper, settings, needs, changes)
            if kind is Dependence.hard:
                hard.add(one.setting)
            if kind is not Dependence.none or _rules_change(paper, settings, statements, changes):
                found.append(one)
                break
        else:
            require(not given, f"--over {one.setting}: none of these statements depends on it.")
    return tuple(found), frozenset(hard)


def _needs(statements: Sequence[Statement]) -> list[tuple[str, Reading]]:
    """Every experiment behind these statements, once per reading with its own settings."""
    found: dict[tuple[str, str], Reading] = {}
    for statement in statements:
        for reading in statement.readings:
            for need in statement.needs_of(reading):
                found.setdefault((need.partition("@")[0], reading.name if reading.changes else ""), reading)
    return [(experiment, reading) for (experiment, _), reading in found.items()]


def _rules_change(paper: Paper, settings: Any, statements: Sequence[Statement], changes: Mapping[str, Any]) -> bool:
    """Whether a rule of one of these statements depends on the settings."""
    there = {s.name: s.rule for s in paper.statements(override(settings, texts(changes)))}
    here = {s.name: s.rule for s in paper.statements(settings)}
    return any(there.get(one.name) != here[one.name] for one in statements)


def points_of(one: Question, points: int, over: Sequence[str]) -> list[Point]:
    """The points at which a question is tested."""

    def check(changes: Mapping[str, Any]) -> None:
        one.paper.check(override(one.settings, texts(changes)))

    found = design(one.dimensions, one.settings, points, one.readings, check, one.hard)
    if any("=" in words for words in over) and one.paper.symbols is not None:
        for name in one.asked:
            _require_met(one, name, found)
    return found


def _require_met(one: Question, name: str, points: Sequence[Point]) -> None:
    """Refuse a range in which a theorem's hypotheses are never met."""
    statement = one.statements[name]
    theorem = statement.hypotheses or name
    own = one.paper.theorem(theorem, one.settings)
    if own is None or statement.asked_of:
        return
    unmet: dict[str, int] = {}
    drawn = [point for point in points if not point.alone]
    for point in drawn:
        there = one.paper.theorem(theorem, override(one.settings, texts(point.changes)))
        for condition in there.conditions if there else ():
            unmet[condition.name] = unmet.get(condition.name, 0) + (not condition.satisfied)
    for condition in own.conditions:
        require(
            not condition.satisfied or unmet.get(condition.name, 0) < len(drawn),
            f"--over: {own.id} assumes {condition.name} ({condition.formula}), which is met nowhere in this range.",
        )

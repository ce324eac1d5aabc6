"""The target of a sweep: an experiment of a paper (built in or from a package) or of a user's file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import xarray as xr

from iclab.authoring.paper import Paper
from iclab.authoring.sources import split_file
from iclab.errors import InputError, nearest, require
from iclab.experiments import Lab
from iclab.library import default_settings, library, paper_from
from iclab.runs.options import check_profile


@dataclasses.dataclass(frozen=True)
class Target:
    """`paper/experiment`, and its source unless it is built in; a worker on another machine needs nothing else.

    The only experiment of a file is called by the file's name.
    """

    id: str
    source: str = ""


@dataclasses.dataclass(frozen=True)
class Loaded:
    """An experiment with its settings. `bench` begins the names of its trainings and with them their random streams."""

    bench: str
    settings: Any
    run: Callable[[Lab], xr.Dataset]
    check: Callable[[Any], None] = lambda settings: None


def find(text: str) -> Target:
    """The target that a user names: `paper/experiment`, a statement that needs one experiment, or a .py file.

    If the file has several experiments, add one to its path: my_idea.py/training.
    """
    shelf, (wanted,) = library([text])
    paper, _, name = wanted.partition("/")
    known = [f"{p.id}/{experiment}" for p in shelf.papers.values() for experiment in p.experiments]
    if paper in shelf.papers:
        found = shelf.papers[paper]
        if not name and split_file(text) is not None:
            several = list(found.experiments)
            require(
                len(several) == 1,
                f"{text} has several experiments; choose one: {', '.join(f'{text}/{n}' for n in several)}.",
            )
            return Target(paper, shelf.texts.get(paper, ""))
        needed = {s.id: s.needs() for s in found.statements(default_settings(found))} if name else {}
        needs = needed.get(f"{paper}/{name}", ())
        name = needs[0] if name not in found.experiments and len(needs) == 1 else name
        if name in found.experiments:
            return Target(f"{paper}/{name}", shelf.texts.get(paper, ""))
    raise InputError(
        f"{text!r} is not an experiment, a statement that needs one experiment, or a .py file. {nearest(text, known)}"
    )


def load(target: Target, profile: str) -> Loaded:
    """The experiment and its settings in this profile."""
    check_profile(profile)
    paper, _, name = target.id.partition("/")
    found = paper_from(paper, target.source)
    run = found.experiments[name or next(iter(found.experiments))].run
    return Loaded(found.id, settings_of(found, profile), run, found.check)


def settings_of(paper: Paper, profile: str) -> Any:
    """The paper's settings in a profile; a user's file need not have all profiles."""
    require(
        profile in paper.settings,
        f"{paper.id} has no settings for the profile {profile!r}; it has {', '.join(paper.settings)}.",
    )
    return paper.settings[profile]

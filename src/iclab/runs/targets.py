"""What can be swept: an experiment of a built-in paper, or a user's file."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

from iclab.errors import InputError, nearest, require
from iclab.experiments import Lab
from iclab.papers import PAPERS
from iclab.runs.changes import check_profile


@dataclasses.dataclass(frozen=True)
class Target:
    """An experiment by id, or a file with its text: a worker on another machine needs nothing else."""

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
    """The target that a user means: `paper/experiment`, a claim with one experiment behind it, or the path of a .py file."""
    if text.endswith(".py"):
        path = Path(text)
        try:
            return Target(path.stem, path.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {text}: {getattr(error, 'strerror', None) or error}.") from None
    paper, _, name = text.partition("/")
    known = [f"{p.id}/{experiment}" for p in PAPERS.values() for experiment in p.experiments]
    if paper in PAPERS and name in PAPERS[paper].experiments:
        return Target(text)
    if paper in PAPERS:
        for claim in PAPERS[paper].claims(PAPERS[paper].settings["quick"]):
            if claim.id == text and len(claim.needs) == 1:
                return Target(f"{paper}/{claim.needs[0]}")
    raise InputError(
        f"{text!r} is no experiment, no claim with one experiment behind it, and no .py file. {nearest(text, known)}"
    )


@functools.cache
def _module(target: Target) -> types.ModuleType:
    """The user's file as a module, loaded once: its functions stay the same, and with them the programs compiled for them."""
    name = f"iclab_user_{hashlib.sha256(target.source.encode()).hexdigest()[:12]}"
    module = types.ModuleType(name)
    module.__file__ = f"{target.id}.py"
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        exec(compile(target.source, module.__file__, "exec"), module.__dict__)
    except Exception as error:
        raise InputError(f"{target.id}.py does not run: {type(error).__name__}: {error}") from error
    return module


def load(target: Target, profile: str) -> Loaded:
    """The experiment and its settings in this profile. A user's file defines `settings` (a frozen dataclass, or one per
    profile by name) and `experiment(lab)`.
    """
    check_profile(profile)
    if not target.source:
        paper, name = target.id.split("/", 1)
        found = PAPERS[paper]
        return Loaded(paper, found.settings[profile], found.experiments[name].run, found.check)
    module = _module(target)
    settings = getattr(module, "settings", None)
    if isinstance(settings, dict):
        require(
            profile in settings, f"{target.id}.py has no settings for the profile {profile!r}; it has {', '.join(settings)}."
        )
        settings = settings[profile]
    usable = dataclasses.is_dataclass(settings) and not isinstance(settings, type)
    require(usable, f"{target.id}.py must define `settings`, an instance of a dataclass whose fields can be swept.")
    run = getattr(module, "experiment", None)
    require(callable(run), f"{target.id}.py must define `experiment(lab)`, a function that returns an xarray Dataset.")
    return Loaded(target.id, settings, run)  # type: ignore[arg-type]

"""Refuse sizes that no machine can compute, from the plan, before anything is compiled or allocated."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any

from iclab.authoring.paper import PROFILES
from iclab.errors import InputError, in_words, require
from iclab.planning import Asked, Plan, PlanningEngine
from iclab.report.formats import duration
from iclab.runs.jobs import Job
from iclab.runs.sweep_target import settings_of
from iclab.settings import names_of, value_of

GROWN = 10  # check a setting or a number of seeds that is this many times the profile's own
LONGEST = 30 * 24 * 3600.0  # seconds that a run on this machine may take
FEW = 2  # seeds to plan, instead of all


def refuse_too_large(jobs: Sequence[Job]) -> None:
    """Refuse jobs that were made much larger than their profile and do not fit into memory or into a month."""
    for job in jobs:
        if _grown(job):
            _refuse(job)


def _grown(job: Job) -> bool:
    usual, now = settings_of(job.source, job.profile), job.settings
    if len(job.seeds) > GROWN * PROFILES[job.profile].seeds:
        return True
    return any(_larger(value_of(usual, name), value_of(now, name)) for name in names_of(now))


def _larger(usual: Any, now: Any) -> bool:
    counted = isinstance(now, int) and isinstance(usual, int) and not isinstance(now, bool)
    return counted and now > GROWN * max(1, usual)


def _refuse(job: Job) -> None:
    few = dataclasses.replace(job, seeds=job.seeds[:FEW])
    for name in job.experiments:
        what, times = f"{job.paper}/{name}", len(job.seeds) / len(few.seeds)
        engine = PlanningEngine(functools.partial(require_room, what, times))
        try:
            job.source.experiments[name].run(few.lab(engine=engine))
        except (OverflowError, ValueError, TypeError, MemoryError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{what} cannot be computed at these sizes: {in_words(error)}") from error
        require_time(what, times, engine.asked)


def require_room(what: str, times: float, asked: Asked) -> None:
    """Refuse a request whose models, all members `times` over, do not fit into memory."""
    needed = asked.footprint.of(1) + times * asked.members * asked.footprint.held
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    sizes = f"it needs about {needed / 1e9:,.0f} GB of memory, and this machine has {there / 1e9:,.0f} GB"
    require(needed <= there, f"{what} is too large: {sizes}.")


def require_time(what: str, times: float, asked: Sequence[Asked]) -> None:
    """Refuse work that would take more than a month."""
    seconds = Plan.of(asked).seconds() * times
    require(seconds <= LONGEST, f"{what} is too large: it would take about {duration(seconds)} on this machine.")

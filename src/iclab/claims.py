"""Claims: what a theorem or a figure says, as something a run can answer.

A claim has one or more checks. A check is a statistic with one number per training seed, or per prompt where one given model
is asked, and a rule that was written before the claim was first judged; what was chosen later says so (`Claim.afterwards`). A
check's verdict compares the 95 % interval of the mean over seeds (or prompts) with the rule: `reproduced` when the interval
lies inside, `differs` when it lies outside, `inconclusive` when it straddles. A claim is reproduced when all its checks are,
differs when any does, and is inconclusive otherwise.
"""

from __future__ import annotations

import dataclasses
import enum
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from iclab.errors import require
from iclab.statistics import Interval, estimator, unit_of

Results = Mapping[str, xr.Dataset]


class Verdict(enum.StrEnum):
    """What a run says about a claim."""

    reproduced = "reproduced"
    differs = "differs"
    inconclusive = "inconclusive"
    not_attempted = "not-attempted"


@dataclasses.dataclass(frozen=True)
class Rule:
    """The values of the statistic that agree with the paper: an open range."""

    low: float = -np.inf
    high: float = np.inf

    def __str__(self) -> str:
        if np.isinf(self.low):
            return f"below {self.high:.4g}"
        if np.isinf(self.high):
            return f"above {self.low:.4g}"
        return f"between {self.low:.4g} and {self.high:.4g}"

    def verdict(self, found: Interval) -> Verdict:
        """Compare the interval with the rule; without an interval (fewer than two seeds) nothing can be concluded.

        >>> below(0.01).verdict(Interval(0.002, 0.001, 0.003, seeds=8, lost=0))
        <Verdict.reproduced: 'reproduced'>
        """
        if not (np.isfinite(found.low) and np.isfinite(found.high)):
            return Verdict.inconclusive
        if self.low < found.low and found.high < self.high:
            return Verdict.reproduced
        if found.high <= self.low or found.low >= self.high:
            return Verdict.differs
        return Verdict.inconclusive


def below(value: float) -> Rule:
    """The statistic is below a value."""
    return Rule(high=value)


def above(value: float) -> Rule:
    """The statistic is above a value."""
    return Rule(low=value)


def within(low: float, high: float) -> Rule:
    """The statistic lies between two values."""
    return Rule(low, high)


@dataclasses.dataclass(frozen=True)
class Check:
    """One statistic and its rule. `statistic(results)` has one dimension, "seed" or "prompt": the interval is over it.
    `bounds` is its possible range.
    """

    name: str
    rule: Rule
    statistic: Callable[[Results], xr.DataArray]
    bounds: tuple[float, float] = (-np.inf, np.inf)


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of a paper. `needs` names the experiments whose results it reads, `figure` and `table` what shows it.

    Where a claim is split by what the paper leaves unstated, `choice` names the choice of this row. `afterwards` says what
    of its rule or statistic was chosen after a result had been seen, and why. `topic` is what `--only` selects by.
    """

    id: str
    source: str
    statement: str
    checks: tuple[Check, ...]
    needs: tuple[str, ...]
    figure: str | None = None
    unstated: tuple[str, ...] = ()
    choice: str = ""
    table: str | None = None
    afterwards: str = ""
    topic: str = ""

    @property
    def paper(self) -> str:
        """The part of the id before the slash."""
        return self.id.split("/")[0]

    @property
    def rule(self) -> str:
        """All checks in words."""
        return "; ".join(f"{check.name} {check.rule}" for check in self.checks)


def claim(name: str, statement: str, *checks: Check, source: str = "", needs: Sequence[str] = (), **more: Any) -> Claim:
    """A claim of a user's file: the file puts its own name before the claim's, and all its experiments into `needs` if none."""
    return Claim(name, source, statement, checks, tuple(needs), **more)


@dataclasses.dataclass(frozen=True)
class Table:
    """A small table of results, for the page."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def note(claims: Sequence[Claim], afterwards: Mapping[str, str], topic: str = "") -> tuple[Claim, ...]:
    """The claims with their notes and their topic.

    Keys are names (the id after the slash) or patterns of them ("fig1*"); each must match.
    """
    notes: dict[str, list[str]] = {claim.id: [] for claim in claims}
    for pattern, text in afterwards.items():
        named = [claim.id for claim in claims if fnmatch.fnmatchcase(claim.id.split("/", 1)[1], pattern)]
        assert named, f"no claim is called {pattern!r}"
        for name in named:
            notes[name].append(text)
    return tuple(
        dataclasses.replace(claim, afterwards=" ".join(notes[claim.id]), topic=topic or claim.topic) for claim in claims
    )


SEVERITY = (Verdict.differs, Verdict.inconclusive, Verdict.reproduced)


def judge(claim: Claim, results: Results, *, attempted: bool = True) -> dict[str, Any]:
    """The claim's entry in claims.json, without what only the run knows (profile, settings, seconds).

    `measured`, `low` and `high` are those of the check that decided: the first with the claim's verdict. With
    `attempted=False` (the smoke profile) numbers are given, but no verdict.
    """
    checks = []
    for check in claim.checks:
        values = _per_unit(claim, check, results)
        (unit,) = map(str, values.dims)
        found = estimator(unit)(values.values, check.bounds)
        asked = attempted and (found.seeds > 0 or unit == "seed")  # a model without attention cannot be asked about it
        verdict = check.rule.verdict(found) if asked else Verdict.not_attempted
        checks.append(
            {
                "name": check.name,
                "rule": str(check.rule),
                "rule_low": _plain(check.rule.low),
                "rule_high": _plain(check.rule.high),
                "verdict": verdict,
                **{key: _plain(value) for key, value in dataclasses.asdict(found).items()},
                "unit": unit,
                "values": [_plain(value) for value in values.values],
            }
        )
    verdicts = [entry["verdict"] for entry in checks]
    verdict = next((level for level in SEVERITY if level in verdicts), Verdict.not_attempted)
    deciding = checks[verdicts.index(verdict)]
    return {
        "id": claim.id,
        "paper": claim.paper,
        "source": claim.source,
        "statement": claim.statement,
        "rule": claim.rule,
        "verdict": verdict,
        "decided_by": deciding["name"],
        "measured": deciding["measured"],
        "low": deciding["low"],
        "high": deciding["high"],
        "seeds": deciding["seeds"],
        "lost_seeds": deciding["lost"],
        "unit": deciding["unit"],
        "checks": checks,
        "unstated": list(claim.unstated),
        "choice": claim.choice,
        "afterwards": claim.afterwards,
        "topic": claim.topic,
        "figure": claim.figure,
        "table": claim.table,
    }


def _per_unit(claim: Claim, check: Check, results: Results) -> xr.DataArray:
    """The statistic, one number per seed (or prompt); dimensions of length 1 are dropped."""
    values = check.statistic(results)
    where = f"{claim.id}, check {check.name!r}"
    require(
        isinstance(values, xr.DataArray), f"{where}: the statistic must be an xarray DataArray, not {type(values).__name__}."
    )
    unit = unit_of(values)
    others = [dim for dim in values.dims if dim != unit]
    many = [f"{dim} ({values.sizes[dim]})" for dim in others if values.sizes[dim] > 1]
    require(
        unit in values.dims and not many,
        f"{where}: the statistic must have one number per seed, but it "
        + (f"also has the dimensions {', '.join(many)}; choose with .sel(...) or average." if many else "has no seeds."),
    )
    return values.squeeze(others)


def _plain(value: Any) -> Any:
    """JSON has no NaN or infinity: they become null."""
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value

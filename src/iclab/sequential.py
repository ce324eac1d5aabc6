"""Seeds only where they are needed: a run is looked at while it grows, and stops asking where the answer is clear.

Looking again and again until an interval agrees would find an answer sooner or later, right or wrong. So the 5 % that
all looks together may be wrong are spent over them, as in clinical trials: by the time a share s of the seeds is there,
0.05 s^2 has been spent (a power family: Kim, DeMets, Biometrika 74, 1987; spending: Lan, DeMets, Biometrika 70, 1983).
A look that has α left to itself takes intervals at the level 1 - α. That the looks together are wrong at most as often
as the sum of their α is the union bound: it needs nothing but that each interval is right as often as it says, whatever
the statistic and however the looks depend on each other, and the looks need not be equally far apart.
"""

from __future__ import annotations

import dataclasses

from iclab.errors import require
from iclab.statistics import LEVEL

FIRST = 4  # seeds at the first look: Student's intervals over fewer decide almost nothing
POWER = 2.0  # of the share of seeds; larger keeps more for the last look


@dataclasses.dataclass(frozen=True)
class Look:
    """So many seeds in all, and the level of the intervals over them."""

    seeds: int
    level: float = LEVEL


def once(seeds: int) -> tuple[Look, ...]:
    """A number of seeds that is decided before: one look, at 95 %."""
    return (Look(seeds),)


def until_decided(most: int, first: int = FIRST) -> tuple[Look, ...]:
    """Looks at 4 seeds, and at twice as many each time, up to the most.

    >>> [(look.seeds, round(look.level, 4)) for look in until_decided(8)]
    [(4, 0.9875), (8, 0.9625)]
    """
    require(most >= 1, f"at most {most} seeds are too few; at least one is needed.")
    counts = [min(first, most)]
    while counts[-1] < most:
        counts.append(min(2 * counts[-1], most))
    spent = [(1 - LEVEL) * (count / most) ** POWER for count in counts]
    return tuple(
        Look(count, 1 - (now - before)) for count, now, before in zip(counts, spent, [0.0, *spent[:-1]], strict=True)
    )

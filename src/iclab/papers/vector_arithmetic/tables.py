"""When each training is below ε, how low it gets and where it ends: stopping time matters in this paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from iclab.claims import Results, Table
from iclab.papers.vector_arithmetic.settings import Settings
from iclab.statistics import interval

KINDS = ("icl", "qa", "qa-icl")
EPSILON = 0.01


def _cell(values: np.ndarray) -> str:
    found = interval(values, (0.0, 1.0))
    return f"{found.measured:.3f} [{found.low:.3f}, {found.high:.3f}]"


def stopping(results: Results, settings: Settings) -> Table:
    """First epoch below ε, lowest and last 0-1 error, for every training and test distribution that was run."""
    rows = []
    for training in ("qa", "icl", "qa-icl", "printed"):
        if training not in results:
            continue
        data = results[training].isel(setting=0)
        for kind in KINDS:
            error = data[f"{kind}_error"]
            hit = error < EPSILON
            first = np.where(hit.any("step"), error["step"].values[hit.argmax("step").values], -1)
            reached = first[first >= 0]
            when = f"{np.median(reached):.0f} ({len(reached)} of {len(first)} seeds)" if len(reached) else "never"
            rows.append((training, kind, when, _cell(error.min("step").values), _cell(error.isel(step=-1).values)))
    header = ("trained on", "tested on", "first epoch below 0.01, median", "lowest error", "last error")
    return Table("Stopping time matters: first, lowest and last test error", header, tuple(rows))


TABLES: dict[str, Callable[[Results, Settings], Table]] = {"stopping": stopping}

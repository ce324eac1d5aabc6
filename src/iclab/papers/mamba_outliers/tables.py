"""Small sensitivity tables: which of the unstated choices decide the outcome."""

from __future__ import annotations

from collections.abc import Callable

from iclab.claims import Results, Table
from iclab.papers.mamba_outliers.settings import MAGNITUDES, STACKS, TASK_SETS, Settings
from iclab.statistics import interval


def _cell(values: object) -> str:
    found = interval(values, (0.0, 1.0))  # type: ignore[arg-type]
    return f"{found.measured:.3f} [{found.low:.3f}, {found.high:.3f}]"


def choices(results: Results, settings: Settings) -> Table:
    """0-1 errors of the one-layer models with label flipping, by what the paper leaves open."""
    data = results["choices"]["error"].sel(rule="flip")
    rows = []
    for tasks in TASK_SETS:
        for magnitude in MAGNITUDES:
            for counting in data["counting"].values:
                for size in data["size"].values:
                    one = data.sel(setting=tasks, magnitude=magnitude, counting=counting, size=size)
                    rows.append((
                        tasks, f"{magnitude:g}", str(counting), f"{size:g}",
                        _cell(one.sel(kind="mamba", fraction=0.8).values), _cell(one.sel(kind="linear", fraction=0.6).values),
                    ))  # fmt: skip
    header = ("training tasks", "κ_a'", "counting", "K'", "Mamba, α = 0.8", "linear Transformer, α = 0.6")
    return Table("Which choices matter for the errors under outliers (label flipping)", header, tuple(rows))


def placements(results: Results, settings: Settings) -> Table:
    """Table 2 for every stack, label rule and magnitude: accuracy by where the outliers sit."""
    data = results["placements"]["accuracy"]
    rows = []
    for name in STACKS:
        for rule in data["rule"].values:
            for magnitude in MAGNITUDES:
                one = data.sel(setting=name, rule=rule, magnitude=magnitude)
                cells = [_cell(one.sel(placement=place).values) for place in ("farthest", "closest", "random")]
                rows.append((name, str(rule), f"{magnitude:g}", *cells))
    header = ("stack of three layers", "labels of outliers", "κ_a'", "farthest (FQ)", "closest (CQ)", "random (R)")
    return Table("Table 2 under every choice: accuracy at α = 0.5", header, tuple(rows))


TABLES: dict[str, Callable[[Results, Settings], Table]] = {"choices": choices, "placements": placements}

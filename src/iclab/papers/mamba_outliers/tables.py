"""Small sensitivity tables: which of the unstated choices decide the outcome."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from iclab.claims import Results, Table
from iclab.papers.mamba_outliers.settings import MAGNITUDES, STACKS, TASK_SETS, Settings
from iclab.statistics import interval


def _cell(values: object) -> str:
    found = interval(values, (0.0, 1.0))  # type: ignore[arg-type]
    return f"{found.measured:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _number(values: object) -> str:
    found = interval(values)  # type: ignore[arg-type]
    return f"{found.measured:.3g} [{found.low:.3g}, {found.high:.3g}]"


def choices(results: Results, settings: Settings) -> Table:
    """0-1 errors of the one-layer models by everything the paper leaves open."""
    data = results["choices"]["error"]
    rows = []
    for rule in data["rule"].values:
        for tasks in TASK_SETS:
            for magnitude in MAGNITUDES:
                for counting in data["counting"].values:
                    for size in data["size"].values:
                        one = data.sel(rule=rule, setting=tasks, magnitude=magnitude, counting=counting, size=size)
                        cells = [
                            _cell(one.sel(kind=kind, fraction=fraction).values)
                            for kind in ("mamba", "linear")
                            for fraction in data["fraction"].values
                        ]
                        rows.append((str(rule), tasks, f"{magnitude:g}", str(counting), f"{size:g}", *cells))
    columns = tuple(f"{kind}, α = {alpha:g}" for kind in ("Mamba", "linear") for alpha in data["fraction"].values)
    header = ("labels", "training tasks", "κ_a'", "counting", "K'", *columns)
    return Table("Which choices matter for the errors under outliers (Theorems 2 and 4, Figure 1)", header, tuple(rows))


def stacking(results: Results, settings: Settings) -> Table:
    """What the stacking decides: training loss, attention gap and gates of every stack, at the end of training."""
    attention, gates = results["attention"], results.get("gates")
    rows = []
    for name in STACKS:
        data = attention.sel(setting=name).isel(step=int(np.flatnonzero(attention["recorded"].sel(setting=name).values)[-1]))
        gap = (data["score_same"] - data["score_other"]).isel(layer=0)
        cells = [_cell(data["training_error"].values), _number(gap.values)]
        for magnitude in MAGNITUDES:
            if gates is None or name not in gates["setting"].values:
                cells.append("no gate")
            else:
                one = gates.sel(setting=name, magnitude=magnitude).isel(layer=0)
                cells.append(_number((one["outlier_gate"].mean("distance") / one["clean_gate"].mean("distance")).values))
        rows.append((name, str(int(np.isnan(data["training_error"].values).sum())), *cells))
    header = ("stack", "diverged seeds", "training error", "layer-1 attention gap",
              *(f"layer-1 gate, outlier / clean, κ_a' = {m:g}" for m in MAGNITUDES))  # fmt: skip
    return Table("Which stacking matters (Figures 2 to 5)", header, tuple(rows))


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


TABLES: dict[str, Callable[[Results, Settings], Table]] = {
    "choices": choices, "stacking": stacking, "placements": placements,
}  # fmt: skip

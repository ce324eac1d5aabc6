"""`iclab compare`: compare architectures in a study that runs like a paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from iclab.errors import require
from iclab.runs.opened import Run
from iclab.runs.reproduce import reproduce
from iclab.studies import architectures
from iclab.studies.asking import matrix

TABLE = "matrix.nc"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A run of the study, and its matrix: models × questions with `error` per seed, the ends of its interval (`low`,
    `high`) and the ranks that the intervals allow (`best_rank`, `worst_rank`).
    """

    run: Run
    matrix: xr.Dataset

    @property
    def directory(self) -> Path:
        """Its folder."""
        return self.run.directory


def compare(*models: str, changes: Mapping[str, str] | None = None, **options: Any) -> Comparison:
    """Train these mixers (default: all) in the worlds of the study, and answer its questions for each.

    `options` are those of `iclab.reproduce`: profile, seeds, out, executor, console. The same `out` continues an
    interrupted run.
    """
    changes = dict(changes or {})
    require(
        not models or "models" not in changes,
        "the models are given twice, by name and with --set models; give them once.",
    )
    if models:
        changes["models"] = " ".join(models)
    run = reproduce(str(Path(architectures.__file__)), changes=changes, **options)
    prefix = "architectures/"
    results = {name.removeprefix(prefix): data for name, data in run.results.items() if name.startswith(prefix)}
    found = matrix(results, architectures.COLUMNS)
    unfinished = run.directory / f"{TABLE}.part"
    found.to_netcdf(unfinished, engine="h5netcdf")
    unfinished.replace(run.directory / TABLE)
    return Comparison(run, found)

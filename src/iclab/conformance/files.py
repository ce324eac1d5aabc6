"""Check a whole file: plan its experiments without computing them, and check every part that they use."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from iclab import ensemble, randomness
from iclab.authoring.paper import Paper
from iclab.authoring.pictures import statement_figure
from iclab.authoring.sources import read_file, split_file, user_paper
from iclab.conformance.findings import Finding, attempt, demand
from iclab.conformance.models import check_model
from iclab.conformance.probes import check_loss, check_measure, check_observer
from iclab.conformance.worlds import check_world
from iclab.drawing import finish
from iclab.engine import EvaluationRequest, Report, TrainingRequest, silent
from iclab.ensemble import shape_of
from iclab.entries import judge
from iclab.errors import require
from iclab.experiments import Lab
from iclab.expressions import Results
from iclab.library import default_settings
from iclab.planning import PlanningEngine
from iclab.settings import is_group, names_of, value_of
from iclab.statements import Statement
from iclab.training import State

SEEDS = 3


class _Unsound(BaseException):
    """A part failed, so later requests are meaningless. Not an `Exception`: a user's file must not catch it."""


class CheckingEngine(PlanningEngine):
    """Computes nothing, but checks every world, model, loss and probe in its requests, each once.

    Parts that iclab defines are skipped unless `everything` is set.
    """

    def __init__(self, file: str, *, everything: bool = False) -> None:
        super().__init__()
        self.findings: list[Finding] = []
        self.digests: list[str] = []
        self._file, self._everything = file, everything
        self._seen: set[Any] = set()

    def train(self, request: TrainingRequest, report: Report = silent) -> tuple[State, dict[str, np.ndarray]]:
        """Zeros, after the checks."""
        self._note(request.name, request.members)
        member = ensemble.unstack(request.members, 0)
        for world in (member.world, *member.watched):
            self._check("world", world, shape_of(world), functools.partial(check_world, world, self._file))
        loss, model = request.loss, member.model
        key = shape_of((model, member.world))
        self._check("model", model, (key, loss), lambda: check_model(model, member.world, loss, self._file))
        self._check(
            "loss", loss.value, (key, loss), lambda: check_loss(loss, self._made(member), member.world, self._file)
        )
        for observer in request.observers:
            self._check("observer", observer, (key, observer), functools.partial(self._observer, observer, member))
        return super().train(request, report)

    def evaluate(self, request: EvaluationRequest, report: Report = silent) -> dict[str, np.ndarray]:
        """Zeros, after the checks. A planned model is all zeros, so measures are checked on a random one."""
        self._note(request.name, request.jobs)
        world, model = (ensemble.unstack(x, 0) for x in (request.jobs.worlds, request.jobs.models))
        self._check("world", world, shape_of(world), lambda: check_world(world, self._file))
        drawn = np.random.default_rng(0)
        random = jax.tree.map(lambda leaf: 0.1 * drawn.standard_normal(leaf.shape).astype(np.float32), model)
        checks = functools.partial(check_measure, request.measure, random, world, self._file)
        self._check("measure", request.measure, (shape_of((model, world)), request.measure), checks)
        return super().evaluate(request, report)

    def _observer(self, observer: Any, member: Any) -> Iterator[Finding]:
        return check_observer(observer, self._made(member), member, self._file)

    def _made(self, member: Any) -> Any:
        return member.model.init(randomness.key(0), member.world)

    def _note(self, name: str, tree: Any) -> None:
        """Record a request, to compare with the second run of the experiment."""
        leaves = [
            jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x
            for x in jax.tree.leaves(tree)
        ]
        content = b"".join(np.ascontiguousarray(leaf).tobytes() for leaf in leaves)
        self.digests.append(f"{name} {hashlib.sha256(content).hexdigest()}")

    def _check(self, kind: str, part: Any, key: Any, checks: Callable[[], Iterator[Finding]]) -> None:
        owner = part if hasattr(part, "__qualname__") else type(part)
        if (kind, key) in self._seen or (not self._everything and str(owner.__module__).startswith("iclab.")):
            return
        self._seen.add((kind, key))
        found = list(checks())
        self.findings += found
        if not all(finding.passed for finding in found):
            raise _Unsound


def check_file(path: str, *, everything: bool = False) -> list[Finding]:
    """Check everything that a user's file defines and uses, at the settings of its smallest profile."""
    require(split_file(path) is not None and Path(path).suffix == ".py", f"{path} is not a .py file.")
    name, text = read_file(path)
    paper, file = user_paper(name, text), f"{name}.py"
    settings = paper.settings.get("smoke", default_settings(paper))
    findings = [attempt("settings", "names", lambda: _settings(settings), file)]
    results: dict[str, xr.Dataset] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for experiment in paper.experiments:
            found, data = _experiment(paper, experiment, settings, file, everything=everything)
            findings += found
            if data is not None:
                results[experiment] = data
        if len(results) == len(paper.experiments):
            for statement in map(functools.partial(_here, results), paper.statements(settings)):
                body = functools.partial(_statement, statement, results)
                findings.append(attempt(f"statement {statement.id}", "values", body, file))
                if findings[-1].passed:
                    draw = functools.partial(_figure, paper, statement, results, settings)
                    findings.append(attempt(f"figure of {statement.id}", "drawing", draw, file))
    return findings


def _settings(settings: Any) -> str:
    _frozen(settings)
    names = names_of(settings)
    plain = [name for name in names if isinstance(value_of(settings, name), bool | int | float | str)]
    others = [name for name in names if name not in plain]
    note = f"; {', '.join(others)} cannot: only numbers and texts can" if others else ""
    return f"{', '.join(plain) or 'nothing'} can be set and swept{note}"


def _frozen(settings: Any) -> None:
    demand(
        settings.__dataclass_params__.frozen,
        f"{type(settings).__name__} is not frozen.",
        "Write @dataclasses.dataclass(frozen=True) above it: settings identify a run and must not change.",
    )
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if is_group(value):
            _frozen(value)


def _experiment(
    paper: Paper, name: str, settings: Any, file: str, *, everything: bool
) -> tuple[list[Finding], xr.Dataset | None]:
    engines = [CheckingEngine(file, everything=everything), PlanningWitness()]
    part = f"experiment {name}"
    run = getattr(paper.experiments[name].run, "__wrapped__", paper.experiments[name].run)
    kept: list[xr.Dataset] = []

    def body() -> str:
        for engine in engines:
            kept.append(run(Lab(paper.id, settings, range(SEEDS), engine=engine)))
        first, second = (engine.digests for engine in engines)
        demand(
            first == second,
            "two runs of it request different trainings or tests.",
            "An experiment depends only on lab.settings and the seed: no clock, no numpy.random without a fixed seed.",
        )
        data = kept[0]
        demand(
            isinstance(data, xr.Dataset),
            f"it returned {type(data).__name__}.",
            "Return the dataset of lab.evaluate or of .history.",
        )
        demand(
            any("seed" in values.dims for values in data.data_vars.values()),
            "no variable that it returns has the dimension seed.",
            "Intervals are taken over seeds, so keep that dimension.",
        )
        return f"returns {', '.join(map(str, data.data_vars))} over {', '.join(map(str, data.sizes))}"

    try:
        finding = attempt(part, "results", body, file)
    except _Unsound:
        return engines[0].findings, None
    return [*engines[0].findings, finding], kept[0] if finding.passed else None


class PlanningWitness(CheckingEngine):
    """Records requests and checks nothing."""

    def __init__(self) -> None:
        super().__init__("")

    def _check(self, kind: str, part: Any, key: Any, checks: Callable[[], Iterator[Finding]]) -> None:
        return


def _here(results: Results, statement: Statement) -> Statement:
    """The statement without readings that have their own settings, which are not tried."""
    kept = tuple(r for r in statement.readings if set(statement.needs_of(r)) <= set(results))
    return dataclasses.replace(statement, readings=kept or statement.readings)


def _statement(statement: Statement, results: Results) -> str:
    entry = judge(statement, results, attempted=False)
    parts = [part for reading in entry["readings"] for part in reading["parts"]]
    return f"{len(parts)} part{'s' * (len(parts) > 1)}, one number per {parts[0]['unit']}: {statement.rule}"


def _figure(paper: Paper, statement: Statement, results: Results, settings: Any) -> str:
    if statement.figure is None:
        finish(statement_figure(statement, results))
        return "it has no figure, so it gets a default one of its parts and rules"
    demand(
        statement.figure in paper.figures,
        f"there is no figure {statement.figure!r}.",
        f"The figures are {', '.join(paper.figures) or 'none'}. Without `figure`, a statement gets a default one.",
    )
    finish(paper.figures[statement.figure](results, settings))
    return "it can be drawn"

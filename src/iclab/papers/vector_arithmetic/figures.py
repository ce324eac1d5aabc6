"""The figures of vector-arithmetic, as in the paper: (a) training loss, (b) test errors, (c) attention, (d) W_V."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import UNIT, Custom, Dots, Expression, Results, Table, measured, picture
from iclab.drawing import COLOURS
from iclab.papers.vector_arithmetic.experiments import KINDS, PAIR_COUNTS, SHIFTS
from iclab.papers.vector_arithmetic.settings import Settings
from iclab.papers.vector_arithmetic.statements import EPSILON, SMALL, THETA
from iclab.statistics import interval

WORDS = {
    "a": "a with itself",
    "b": "b with itself (largest)",
    "common": "ν with itself (mean)",
    "cross": "cross (largest)",
}


def sigma(training: str, lines: Mapping[str, str], y: str, axis: Axes, results: Results) -> None:
    """Means along training with bands of one standard deviation over seeds, as the paper draws them."""
    for colour, (name, label) in zip(COLOURS, lines.items(), strict=False):
        data = results[training][name]
        mean, deviation = data.mean("seed"), data.std("seed", ddof=1)
        axis.plot(data["step"], mean, color=colour, lw=1.5, label=label)
        axis.fill_between(data["step"], mean - deviation, mean + deviation, color=colour, alpha=0.2, lw=0)
    axis.set_xlabel("epoch")
    axis.set_ylabel(y)
    axis.legend()
    if y == "0-1 error":
        axis.set_ylim(-0.02, 1.02)


def dynamics(words: str, trainings: Mapping[str, str]) -> Callable[[Results, Settings], Figure]:
    """The four panels of Figures 2, 3 and 4, a row for each training by what its titles begin with."""
    panels = {
        "(a) training loss": ("cross-entropy", {"training_loss": "training loss"}),
        "(b) test error": ("0-1 error", {f"{kind}_error": f"{kind} prompts" for kind in KINDS}),
        "(c) attention": (r"$(W_Q u)^\top (W_K u)$", {f"attention_{u}": label for u, label in WORDS.items()}),
        "(d) W_V": (r"$u^\top W_V u$", {f"value_{u}": label for u, label in WORDS.items()}),
    }
    shown = [
        Custom(f"{number}{title}", (training,), functools.partial(sigma, training, lines, y))
        for training, number in trainings.items()
        for title, (y, lines) in panels.items()
    ]

    def draw(results: Results, s: Settings) -> Figure:
        return picture(results, *shown, width=3.3, columns=len(panels))

    draw.__doc__ = f"{words}: training loss, test errors, attention projections, value projections; 1-sigma bands."
    return draw


Panels = Mapping[str, tuple[str, Mapping[str, Expression], Sequence[float]]]
"""By title: the axis, the columns, the rules."""


def staged(results: Results, panels: Panels, width: float) -> Figure:
    """Every seed of the QA-trained model: a row of panels where it was stopped, a second one at the end of training."""
    shown = []
    for stage, when in (("stopped", "best t"), ("end", "last t")):
        for title, (y, data, rules) in panels.items():
            columns = {name: part.sel(stage=stage) for name, part in data.items()}
            shown.append(Dots(f"{title}, {when}", columns, y, {f"{rule:g}": rule for rule in rules}))
    return picture(results, *shown, width=width, columns=len(panels))


def over(data: Expression, dim: str, labels: Sequence[str | int]) -> dict[str, Expression]:
    """One column of a panel for each label."""
    return {str(label): data.sel(**{dim: label}) for label in labels}


def uses(results: Results, s: Settings) -> Figure:
    """Task vector without a query, errors of transferred task vectors and of a static offset, complexity of prompts."""
    cosines = {"a": "task", "other a": "other", "b": "low", "ν": "common"}
    errors = {"model": "model_error", "transferred": "transfer_error", "static": "static_error"}
    panels = {
        "No query": ("cosine with h_0", {u: measured("uses", f"alone_cos_{n}") for u, n in cosines.items()}, [THETA]),
        "ICL prompts": ("0-1 error", {of: measured("uses", name) for of, name in errors.items()}, [EPSILON]),
        "Complexity": ("1/max p", over(measured("uses", "complexity"), "kind", KINDS), []),
    }
    return staged(results, panels, 3.6)


def shifts(results: Results, s: Settings) -> Figure:
    """Errors of the QA-trained model on shifted dictionaries and other lengths, and the mixture of two co-tasks."""
    several, mixture = measured("prompts", "cotasks_error"), measured("prompts", "weight").sel(cotasks=2)
    panels = {
        "Dictionaries": ("0-1 error", over(measured("shifts", "error"), "shift", SHIFTS), [SMALL]),
        "Pairs in a prompt": ("0-1 error", over(measured("prompts", "error"), "pairs", PAIR_COUNTS), [SMALL]),
        "Co-tasks": ("0-1 error", over(several, "cotasks", (1, 2)), [SMALL]),
        "(8): two co-tasks": ("h_0 on a_k; 0: the query's", over(mixture, "concept", range(s.concepts)), [THETA]),
    }
    return staged(results, panels, 3.0)


def _cell(values: np.ndarray) -> str:
    found = interval(values, UNIT)
    return f"{found.measured:.3f} [{found.low:.3f}, {found.high:.3f}]"


def stopping(results: Results, s: Settings) -> Table:
    """First epoch below ε, lowest and last 0-1 error, for every training and test distribution that was run."""
    rows = []
    for training in ("qa", "icl", "qa-icl", "printed"):
        for kind in KINDS if training in results else ():
            error = results[training][f"{kind}_error"]
            hit = error < EPSILON
            first = np.where(hit.any("step"), error["step"].values[hit.argmax("step").values], -1)
            reached = first[first >= 0]
            when = f"{np.median(reached):.0f} ({len(reached)} of {len(first)} seeds)" if len(reached) else "never"
            rows.append((training, kind, when, _cell(error.min("step").values), _cell(error.isel(step=-1).values)))
    header = ("trained on", "tested on", "first epoch below 0.01, median", "lowest error", "last error")
    return Table("Stopping time matters: first, lowest and last test error", header, tuple(rows))


figures = {
    "fig2": dynamics("Training on word-label ICL prompts", {"icl": "2"}),
    "fig3": dynamics(
        "Training on QA sentences, below with the printed steps", {"qa": "3", "printed": "3, printed steps "}
    ),
    "fig4": dynamics("Training on QA-ICL prompts", {"qa-icl": "4"}),
    "uses": uses,
    "shifts": shifts,
}
tables = {"stopping": stopping}

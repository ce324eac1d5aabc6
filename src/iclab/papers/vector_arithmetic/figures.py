"""The figures of vector-arithmetic, in the paper's layout: (a) training loss, (b) test errors, (c) attention, (d) W_V."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import UNIT, Custom, Dots, Results, Table, measured, picture
from iclab.drawing import COLOURS
from iclab.papers.vector_arithmetic.experiments import KINDS, PAIR_COUNTS, SHIFTS
from iclab.papers.vector_arithmetic.settings import Settings
from iclab.papers.vector_arithmetic.statements import EPSILON, SMALL, THETA
from iclab.statistics import interval

PROJECTIONS = {
    "a": "a with itself", "b": "b with itself (largest)", "common": "ν with itself (mean)", "cross": "cross terms (largest)",
}  # fmt: skip


def sigma(title: str, training: str, lines: Mapping[str, str], y: str) -> Custom:
    """Means along training with bands of one standard deviation over seeds, as the paper draws them."""

    def paint(axis: Axes, results: Results) -> None:
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

    return Custom(title, (training,), paint)


def dynamics(training: str, number: str, words: str) -> Callable[[Results, Settings], Figure]:
    """The four panels of Figures 2, 3 and 4."""

    def draw(results: Results, s: Settings) -> Figure:
        errors = {f"{kind}_error": f"{kind} prompts" for kind in KINDS}
        products = {"c": ("attention", "attention", r"$(W_Q u)^\top (W_K u)$"), "d": ("W_V", "value", r"$u^\top W_V u$")}
        return picture(
            results,
            sigma(f"{number}(a) training loss", training, {"training_loss": "training loss"}, "cross-entropy"),
            sigma(f"{number}(b) test error", training, errors, "0-1 error"),
            *(
                sigma(f"{number}({letter}) {title}", training, {f"{matrix}_{u}": label for u, label in PROJECTIONS.items()}, y)
                for letter, (title, matrix, y) in products.items()
            ),
            width=3.3,
        )

    draw.__doc__ = f"{words}: training loss, test errors, attention projections, value projections; 1-sigma bands."
    return draw


def uses(results: Results, s: Settings) -> Figure:
    """Task vector without a query, errors of transferred task vectors and of a static offset, and complexity by prompt kind."""
    cosines = {"a": "task", "other a": "other", "b": "low", "ν": "common"}
    errors = {"model": "model_error", "transferred": "transfer_error", "static": "static_error"}
    return picture(
        results,
        Dots(
            "Prop 3.3: cosines without a query",
            {name: measured("uses", f"alone_cos_{variable}") for name, variable in cosines.items()},
            "cosine with h_0",
            {"0.1": THETA},
        ),
        Dots(
            "Errors on ICL prompts",
            {name: measured("uses", variable) for name, variable in errors.items()},
            "0-1 error",
            {"ε": EPSILON},
        ),
        Dots("Complexity 1/max p", {kind: measured("uses", "complexity").sel(kind=kind) for kind in KINDS}, "1/max p"),
        width=3.6,
    )


def shifts(results: Results, s: Settings) -> Figure:
    """Errors of the QA-trained model on shifted dictionaries and other lengths, and the mixture of two co-tasks."""
    panels = {
        "Prop 3.4: shifted dictionaries": {shift: measured("shifts", "error").sel(shift=shift) for shift in SHIFTS},
        "Prop 3.4: pairs in a prompt": {f"{count}": measured("prompts", "error").sel(pairs=count) for count in PAIR_COUNTS},
        "Prop 3.4: co-tasks": {f"{count}": measured("prompts", "cotasks_error").sel(cotasks=count) for count in (1, 2)},
    }
    mixture = measured("prompts", "weight").sel(cotasks=2)
    weights = {f"a_{number + 1}": mixture.sel(concept=number) for number in range(s.concepts)}
    return picture(
        results,
        *(Dots(title, data, "0-1 error", {"0.05": SMALL}) for title, data in panels.items()),
        Dots("Eq. (8): projections of h_0", weights, "projection on a, two co-tasks", {"0.1": THETA}),
        width=3.0,
    )


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
    "fig2": dynamics("icl", "2", "Training on word-label ICL prompts"),
    "fig3": dynamics("qa", "3", "Training on QA sentences"),
    "fig4": dynamics("qa-icl", "4", "Training on QA-ICL prompts"),
    "printed": dynamics("printed", "3, printed steps ", "Training on QA sentences with the step sizes as printed"),
    "uses": uses,
    "shifts": shifts,
}
tables = {"stopping": stopping}

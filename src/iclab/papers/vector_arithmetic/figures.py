"""The figures of vector-arithmetic, as in the paper: (a) training loss, (b) test errors, (c) attention, (d) W_V."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import UNIT, Custom, Dots, Expression, Power, Results, Scaling, Table, measured, picture
from iclab.drawing import COLOURS
from iclab.papers.vector_arithmetic.experiments import KINDS, PAIR_COUNTS, POLYSEMY, SHIFTS
from iclab.papers.vector_arithmetic.quantities import (
    DRAWN,
    EPSILON,
    FIRST,
    INSIDE,
    PRINTED_SIZES,
    PROMPTS,
    SMALL,
    THETA,
    TRAININGS,
    doubling,
    other_direction,
)
from iclab.papers.vector_arithmetic.settings import Settings
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


Panels = dict[str, tuple[str, Mapping[str, Expression], Sequence[float]]]
"""By title: the axis, the columns, the rules."""


def staged(results: Results, panels: Panels, width: float) -> Figure:
    """Every seed: a row of panels where each training was stopped, a second one at the end of training."""
    shown = []
    for stage, when in (("stopped", "best t"), ("end", "last t")):
        for title, (y, data, rules) in panels.items():
            columns = {name: part.sel(stage=stage) for name, part in data.items()}
            shown.append(Dots(f"{title}, {when}", columns, y, {f"{rule:g}": rule for rule in rules}))
    return picture(results, *shown, width=width, columns=len(panels))


def over(data: Expression, dim: str, labels: Sequence[str | int | float]) -> dict[str, Expression]:
    """One column of a panel for each label."""
    return {f"{label:g}" if isinstance(label, float) else str(label): data.sel(**{dim: label}) for label in labels}


def tests(results: Results, s: Settings) -> Figure:
    """Errors of all three trained models by one stopping rule; the task vector without a query; complexity."""
    error, used = measured("tests", "error"), functools.partial(measured, "uses")
    cosines = {"a": "task", "other a": "other", "b": "low", "other b": "low_other", "ν": "common"}
    uses = {"model": "model_error", "transferred": "transfer_error", "static": "static_error"}
    trainings = {on: training for training, on in TRAININGS.items()}
    panels: Panels = {
        f"{words} prompts": (
            "0-1 error",
            {on: error.sel(kind=kind, training=of) for on, of in trainings.items()},
            [SMALL],
        )
        for kind, words in PROMPTS.items()
    }
    complexity = measured("tests", "complexity").sel(training="qa")
    panels |= {
        "No query": ("cosine with h_0", {u: used(f"alone_cos_{n}") for u, n in cosines.items()}, [THETA]),
        "P_QA, ICL prompts": ("0-1 error", {of: used(name) for of, name in uses.items()}, [EPSILON]),
        "P_QA, complexity": ("1/max p", over(complexity, "kind", KINDS), []),
    }
    return staged(results, panels, 3.1)


def shifts(results: Results, s: Settings) -> Figure:
    """Errors of the QA-trained model on shifted dictionaries, other lengths and other sets of concepts."""
    shifted, lengths, mixed = (measured(name, "error") for name in ("shifts", "lengths", "mixtures"))
    panels: Panels = {}
    for kind, words in PROMPTS.items():
        panels |= {
            f"{words}: dictionaries": ("0-1 error", over(shifted.sel(kind=kind), "shift", SHIFTS[kind]), [SMALL]),
            f"{words}: J": ("0-1 error", over(lengths.sel(kind=kind), "pairs", PAIR_COUNTS[kind]), [SMALL]),
            f"{words}: polysemy × K": (
                "0-1 error", over(mixed.sel(kind=kind, cotasks=1), "polysemy", POLYSEMY), [SMALL],
            ),
        }  # fmt: skip
    return staged(results, panels, 2.6)


def mixtures(results: Results, s: Settings) -> Figure:
    """Two co-tasks in one prompt: errors by how often words have other concepts, and the mixture in h_0."""
    error, weight, rest = (measured("mixtures", name) for name in ("error", "weight", "rest"))
    several = dict(cotasks=2, polysemy=0.0)
    panels: Panels = {}
    for kind, words in PROMPTS.items():
        projections = over(weight.sel(kind=kind, **several), "concept", range(s.concepts))
        panels |= {
            f"{words}: polysemy × K": (
                "0-1 error", over(error.sel(kind=kind, cotasks=2), "polysemy", POLYSEMY), [SMALL, 1 / (2 * s.concepts)],
            ),
            f"{words}: (8)": ("h_0 on a_k; 0: the query's", projections, [THETA]),
            f"{words}: outside the a's": ("share of ‖h_0‖²", {"two co-tasks": rest.sel(kind=kind, **several)}, [0.5]),
        }  # fmt: skip
    return staged(results, panels, 2.8)


def retrieval(results: Results, s: Settings) -> Figure:
    """(7) over K, with d, K' and N growing along: cosines of h_0 with other directions at the end of training."""
    names = {"other a": ("other",), "any b": ("low", "low_other"), "any ν": ("common",)}
    shown = [
        Power(f"{words} prompts: {u}", other_direction(kind, cosines), Scaling("concepts", -0.25, "K"),
              "|cosine| (largest)")
        for kind, words in PROMPTS.items() for u, cosines in names.items()
    ]  # fmt: skip
    return picture(results, *shown, width=3.3, columns=len(names))


def growth(training: str, reading: str, variable: str, axis: Axes, results: Results) -> None:
    """Every seed's growth since initialisation along training, both axes logarithmic."""
    data = results[f"{training}@{reading}"][variable]
    grown = (data - data.isel(step=0)).isel(step=slice(1, None)).transpose("step", "seed")
    axis.plot(grown["step"], np.where(grown.values > 0, grown.values, np.nan), color=COLOURS[0], lw=0.9)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([5, 10, 20, 50], ["5", "10", "20", "50"])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("epoch")
    axis.set_ylabel("growth since the start")


def first(results: Results, s: Settings) -> Figure:
    """Lemmas 4.1 and 4.2, until T_1: growth of aᵀW_V a (linear?) and of (W_Q a)ᵀ(W_K a) (square?), by setting."""
    shown = [
        Custom(f"{words}, {on}: {name}", (f"{training}@{name}",), functools.partial(growth, training, name, variable))
        for name in (PRINTED_SIZES.name, FIRST.name, DRAWN.name)
        for variable, words in (("value_a", "W_V"), ("attention_a", "attention"))
        for training, on in TRAININGS.items()
    ]
    return picture(results, *shown, width=3.3, height=2.5, columns=2 * len(TRAININGS))


def second(results: Results, s: Settings) -> Figure:
    """Lemmas 4.3 and F.8: aᵀW_V a against √t, and the largest other projection; below inside Condition 3.1."""
    shown = [
        Custom(
            f"{words}{where}", (f"{training}{place}",), functools.partial(late, f"{training}{place}", variable, power)
        )
        for place, where in (("", ""), (f"@{INSIDE.name}", ", inside"))
        for training, variable, power, words in (
            *((training, "value_a", 0.5, f"aᵀW_V a, {on}") for training, on in TRAININGS.items()),
            ("qa", "value_cross", 0.0, "other projections, P_QA"),
        )
    ]
    return picture(results, *shown, width=3.2, columns=len(TRAININGS) + 1)


def late(place: str, variable: str, power: float, axis: Axes, results: Results) -> None:
    """A projection at 50, 100, 200 ... epochs against a power of t."""
    rule = Scaling("step", power, "t", side="both" if power else "upper")
    Power("", measured(place, variable), rule, "projection").show(axis, doubling(results[place][variable]))


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
    "retrieval": retrieval,
    "tests": tests,
    "shifts": shifts,
    "mixtures": mixtures,
    "first": first,
    "second": second,
}
tables = {"stopping": stopping}

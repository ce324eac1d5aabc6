"""The figures of feature-selection, in the paper's layout."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import (
    Custom,
    Dots,
    Expression,
    Lines,
    Part,
    Power,
    Results,
    Scaling,
    Table,
    apply,
    law_table,
    measured,
    picture,
)
from iclab.drawing import COLOURS
from iclab.papers.feature_selection.laws import constant, fixed_size, laws, proportional
from iclab.papers.feature_selection.lemmas import lemma3, lemma4
from iclab.papers.feature_selection.settings import Settings
from iclab.papers.feature_selection.statements import (
    TIMES_IN_FRACTION,
    ZERO,
    corollary1,
    late,
    patterns_total,
    proposition1,
)

READINGS = {"printed": "as printed in (10)", "own": "embeddings"}


def scalings(parts: Iterable[Part], y: str = "") -> list[Power]:
    """A panel for each part over a size that can be drawn as a power law."""
    drawn = ((part, part.rule) for part in parts)
    return [
        Power(part.name, part.statistic, rule, y or "measured")
        for part, rule in drawn
        if isinstance(rule, Scaling) and not rule.affine
    ]


def fig1a(results: Results, s: Settings) -> Figure:
    """Norms of W_Q and W_K on relevant and irrelevant patterns, and attention mass, along training."""
    m = patterns_total(s)
    norms = {
        rf"$\|W_{side[0].upper()}\{letter}\|$": measured("training", f"{side}_{kind}")
        for kind, letter in (("relevant", "mu_j"), ("irrelevant", "nu_l"))
        for side in ("query", "key")
    }
    keys = tuple(name for name in norms if "W_K" in name)
    mass = {
        "in domain": measured("training", "attention_same"),
        "out of domain": measured("training", "out_attention_same"),
    }
    return picture(
        results,
        Lines(
            "1(a) Response to patterns",
            norms,
            "step",
            rules={"√log M": math.sqrt(math.log(m))},
            dashed=keys,
            dots=False,
        ),
        Lines("Attention mass on N*", mass, "step", rules={"1 - 1/M": 1 - 1 / m}, bounds=(0, 1), dots=False),
    )


def inside(results: Results, reading: str = "inside") -> dict[str, xr.Dataset]:
    """The results of a reading inside the hypotheses, under the names of the experiments."""
    end = f"@{reading}"
    return {name.removesuffix(end): data for name, data in results.items() if name.endswith(end)}


def prop1(results: Results, s: Settings) -> Figure:
    """Proposition 1 and Corollary 1 over M, and the approach in T, inside the hypotheses."""
    elsewhere = apply(late, measured("approach", "attention_other"))
    over_sizes = scalings(part for part in proposition1(s).parts if "key" not in part.name)
    return picture(
        inside(results),
        *over_sizes,
        *scalings(corollary1(s).parts),
        Power("(9) attention elsewhere in T", elsewhere, Scaling("step", -1.0, "T"), "attention on other patterns"),
        width=3.7,
        columns=3,
    )


def fig1b(results: Results, s: Settings) -> Figure:
    """Contributions of label and feature parts to the pre-activation along training, in two readings, who wins, and
    the others over m.
    """

    def parts(reading: str) -> dict[str, Expression]:
        return {f"{part} embeddings": measured("training", f"{reading}_{part}") for part in ("feature", "label")}

    wins = {
        "of those voting for the label": measured("training", "own_wins"),
        "of all": measured("training", "printed_wins"),
    }
    rest = {name: measured("widths", f"{variable}_rest").last() for variable, name in READINGS.items()}
    words = "mean over winning neurons"
    return picture(
        results,
        Lines("1(b) Contributions of the embeddings", parts("own"), "step", y=words, dots=False),
        Lines("1(b) Coordinates as printed in (10)", parts("printed"), "step", y=words, dots=False),
        Lines("Neurons for which (10) holds", wins, "step", y="fraction of neurons", bounds=(0, 1), dots=False),
        Lines("Prop 2: the other neurons", rest, "neurons", x="m", y="|pre-activation| over ξ", log="xy"),
        width=3.8,
        columns=2,
    )


def _errors() -> Dots:
    error = measured("generalisation", "error")
    data = {"training tasks": error.sel(domain="in"), "out of domain": error.sel(domain="out")}
    return Dots("Theorems 1 and 2: 0-1 error", data, rules={"0.001": ZERO})


def generalisation(results: Results, s: Settings) -> Figure:
    """Theorems 1 and 2: every seed's 0-1 error; and at the edge of Theorem 2."""
    error = measured("edge", "error")
    edges = {"one example matches": error.sel(matching=1), "as drawn": error.sel(matching=0)}
    return picture(results, _errors(), Lines("0-1 error at l_ts = 2/α'", edges, "fraction", x="α'"))


def _against_fraction(axis: Axes, results: Results) -> None:
    """Iterations against α, with the fitted law."""
    times = TIMES_IN_FRACTION.evaluate(results)
    rows, fractions = times.transpose("seed", "fraction").values, times["fraction"].values
    for row in rows:
        axis.plot(fractions, np.where(np.isfinite(row), row, np.nan), "o", ms=3, color=COLOURS[0], alpha=0.5)
    found = float(constant(times)[0])
    if np.isfinite(found):
        level = np.exp(np.mean(np.log(rows) + np.log(found - 1 / fractions)))
        line = np.linspace(fractions.min(), fractions.max(), 100)
        axis.plot(line, level / (found - 1 / line), color=COLOURS[0], lw=1.4, label=f"K/(C − 1/α), C = {found:.2g}")
        axis.legend()
    axis.set_xlabel("α")
    axis.set_ylabel("iterations")


def eq6(results: Results, s: Settings) -> Figure:
    """(6): iterations needed against λ_*, τ, η, M and α, with what is predicted."""
    own = laws(s)
    panels = [law.panel(f"(6) in {name}") for name, law in own.items()]
    both = {**inside(results), **results}  # M is asked inside the hypotheses only
    fixed = fixed_size(own["λ_*"]).panel("(6) in λ_*, every λ = λ_*")
    fraction = Custom("(6) in α", ("rate-fraction", "rate-fraction-low"), _against_fraction)
    return picture(both, *panels, fixed, fraction, width=3.6, columns=3)


def p1(results: Results, s: Settings) -> Figure:
    """P1 inside the hypotheses: iterations against λ_*, with λ in a range and fixed, and against 1 - τ M1."""
    own = proportional(s)
    shown = {"λ ~ U(λ_*, 1.2)": own["λ_*"], "λ = λ_*": fixed_size(own["λ_*"]), "P1 in τ": own["τ"]}
    panels = [law.panel(title) for title, law in shown.items()]
    return picture(inside(results) | inside(results, "inside,fixed"), *panels, width=3.6)


def lem3(results: Results, s: Settings) -> Figure:
    """Lemma 3: what is added to rows of W_O, against δ, β and λ_* at t = 64, and against t."""
    late = [
        dataclasses.replace(part, statistic=part.statistic.last()) if "growth" not in part.readings else part
        for part in lemma3().parts
    ]
    return picture(results, *scalings(late, "norm of the update"), width=3.5, columns=4)


def lem4(results: Results, s: Settings) -> Figure:
    """Lemma 4: what is added to W_Q and W_K, against M1 and M."""
    return picture({**inside(results), **results}, *scalings(lemma4(s).parts), width=3.7, columns=3)


def rates(results: Results, s: Settings) -> Table:
    """All laws by all criteria."""
    return law_table({f"(6) in {name}": law for name, law in laws(s).items()}, {**inside(results), **results})


figures = {
    "eq6": eq6,
    "fig1a": fig1a,
    "fig1b": fig1b,
    "generalisation": generalisation,
    "lem3": lem3,
    "lem4": lem4,
    "p1": p1,
    "prop1": prop1,
}
tables = {"rates": rates}

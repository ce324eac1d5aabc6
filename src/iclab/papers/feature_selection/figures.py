"""The figures of feature-selection, in the paper's layout."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from iclab.authoring import Dots, Expression, Lines, Power, Results, Scaling, Table, apply, law_table, measured, picture
from iclab.papers.feature_selection.laws import laws
from iclab.papers.feature_selection.settings import Settings
from iclab.papers.feature_selection.statements import ZERO, late, patterns_total


def fig1a(results: Results, s: Settings) -> Figure:
    """Norms of W_Q and W_K on relevant and irrelevant patterns, and attention mass, along training; its approach to
    1.
    """
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
    elsewhere = apply(late, measured("approach", "attention_other"))
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
        Power("Prop 1: attention elsewhere", elsewhere, Scaling("step", -1.0, "T"), "attention on other patterns"),
    )


def fig1b(results: Results, s: Settings) -> Figure:
    """Contributions of label and feature parts to the pre-activation along training, in two readings, and who wins."""

    def parts(reading: str) -> dict[str, Expression]:
        return {f"{part} embeddings": measured("training", f"{reading}_{part}") for part in ("feature", "label")}

    wins = {
        "of those voting for the label": measured("training", "own_wins"),
        "of all": measured("training", "printed_wins"),
    }
    words = "mean over winning neurons"
    return picture(
        results,
        Lines("1(b) Contributions of the embeddings", parts("own"), "step", y=words, dots=False),
        Lines("1(b) Coordinates as printed in (10)", parts("printed"), "step", y=words, dots=False),
        Lines("Neurons for which (10) holds", wins, "step", y="fraction of neurons", bounds=(0, 1), dots=False),
        width=3.8,
    )


def _errors() -> Dots:
    error = measured("generalisation", "error")
    data = {"training tasks": error.sel(domain="in"), "out of domain": error.sel(domain="out")}
    return Dots("Theorems 1 and 2: 0-1 error", data, rules={"0.001": ZERO})


def generalisation(results: Results, s: Settings) -> Figure:
    """Theorems 1 and 2: every seed's 0-1 error."""
    return picture(results, _errors())


def thm1(results: Results, s: Settings) -> Figure:
    """Theorem 1: every seed's 0-1 error, and iterations needed against λ_*, τ and α with fitted and predicted power
    laws.
    """
    return picture(results, _errors(), *(law.panel(f"Thm 1 in {name}") for name, law in laws(s).items()), width=3.6)


def rates(results: Results, s: Settings) -> Table:
    """All laws by all criteria."""
    return law_table({f"thm1 in {name}": law for name, law in laws(s).items()}, results)


figures = {"fig1a": fig1a, "fig1b": fig1b, "generalisation": generalisation, "thm1": thm1}
tables = {"rates": rates}

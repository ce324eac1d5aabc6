"""The figures of feature-selection, in the paper's layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from iclab.claims import Results
from iclab.drawing import COLOURS, curve, panels, threshold
from iclab.papers.feature_selection.claims import ZERO, patterns_total
from iclab.papers.feature_selection.settings import Settings


def fig1a(results: Results, settings: Settings) -> Figure:
    """Norms of W_Q and W_K on relevant and irrelevant patterns, and attention mass, along training."""
    data = results["training"].sel(setting="standard")
    figure, axes = panels(2, ("1(a) Response to patterns", "Attention mass on N*"))
    names = {"query_relevant": r"$\|W_Q\mu_j\|$", "key_relevant": r"$\|W_K\mu_j\|$",
             "query_irrelevant": r"$\|W_Q\nu_l\|$", "key_irrelevant": r"$\|W_K\nu_l\|$"}  # fmt: skip
    for colour, (name, label) in enumerate(names.items()):
        curve(
            axes[0],
            data[name],
            "step",
            label=label,
            colour=colour,
            marker="",
            ls="--" if "key" in name else "-",
        )
    threshold(axes[0], float(np.sqrt(np.log(patterns_total(settings)))), "√log M")
    for colour, (name, label) in enumerate({"attention_same": "in domain", "out_attention_same": "out of domain"}.items()):
        curve(axes[1], data[name], "step", label=label, colour=colour, bounds=(0, 1), marker="")
    threshold(axes[1], 1 - 1 / patterns_total(settings), "1 - 1/M")
    axes[0].set_ylabel("norm, mean over patterns")
    axes[1].set_ylabel("summed attention")
    for axis in axes:
        axis.set_xlabel("training step")
        axis.legend()
    return figure


def fig1b(results: Results, settings: Settings) -> Figure:
    """Contributions of label and feature parts to the pre-activation along training, in two readings, and who wins."""
    data = results["training"].sel(setting="standard")
    titles = (
        "1(b) Contributions of the embeddings",
        "1(b) Coordinates as printed in (10)",
        "Neurons for which (10) holds",
    )
    figure, axes = panels(3, titles, width=3.8)
    for axis, reading in zip(axes, ("own", "printed"), strict=False):
        curve(axis, data[f"{reading}_feature"], "step", label="feature embeddings", colour=0, marker="")
        curve(axis, data[f"{reading}_label"], "step", label="label embeddings", colour=1, marker="")
        axis.set_ylabel("mean over winning neurons")
    for colour, (reading, label) in enumerate(
        {"own": "of those voting for the label", "printed": "of all, as printed"}.items()
    ):
        curve(axes[2], data[f"{reading}_wins"], "step", label=label, colour=colour + 2, bounds=(0, 1), marker="")
    axes[2].set_ylabel("fraction of neurons")
    for axis in axes:
        axis.set_xlabel("training step")
        axis.legend()
    return figure


def generalisation(results: Results, settings: Settings) -> Figure:
    """Theorems 1 and 2: every seed's 0-1 error."""
    data = results["generalisation"].sel(setting="standard")
    figure, axes = panels(1, ("Theorems 1 and 2: 0-1 error",))
    for position, domain in enumerate(data["domain"].values):
        values = data["error"].sel(domain=domain).values
        axes[0].plot(position + np.linspace(-0.15, 0.15, len(values)), values, "o", ms=4, color=COLOURS[position])
    threshold(axes[0], ZERO, "0.001")
    axes[0].set_xticks([0, 1], ["training tasks", "out of domain"])
    axes[0].set_ylabel("0-1 error")
    return figure


FIGURES: dict[str, Callable[[Results, Settings], Figure]] = {
    "fig1a": fig1a,
    "fig1b": fig1b,
    "generalisation": generalisation,
}

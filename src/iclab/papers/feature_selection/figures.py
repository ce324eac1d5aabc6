"""The figures of feature-selection, in the paper's layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from iclab.claims import Results
from iclab.papers.feature_selection.claims import ZERO, M
from iclab.report.style import COLOURS, curve, panels, threshold


def fig1a(results: Results) -> Figure:
    """Norms of W_Q and W_K on relevant and irrelevant patterns, and attention mass, along training."""
    data = results["training"].sel(setting="standard")
    figure, axes = panels(2, ("1(a) Response to patterns", "Attention mass on N*"))
    names = {"query_relevant": r"$\|W_Q\mu_j\|$", "key_relevant": r"$\|W_K\mu_j\|$",
             "query_irrelevant": r"$\|W_Q\nu_l\|$", "key_irrelevant": r"$\|W_K\nu_l\|$"}  # fmt: skip
    for colour, (name, label) in enumerate(names.items()):
        curve(axes[0], data[name], "step", label=label, colour=colour, marker="", ls="--" if "key" in name else "-")
    threshold(axes[0], float(np.sqrt(np.log(M))), "√log M")
    for colour, (name, label) in enumerate({"attention_same": "in domain", "out_attention_same": "out of domain"}.items()):
        curve(axes[1], data[name], "step", label=label, colour=colour, bounds=(0, 1), marker="")
    threshold(axes[1], 1 - 1 / M, "1 - 1/M")
    axes[0].set_ylabel("norm, mean over patterns")
    axes[1].set_ylabel("summed attention")
    for axis in axes:
        axis.set_xlabel("training step")
        axis.legend()
    return figure


def fig1b(results: Results) -> Figure:
    """Contributions of label and feature parts to the pre-activation, along training, and the share of such neurons."""
    data = results["training"].sel(setting="standard")
    figure, axes = panels(2, ("1(b) Contribution to the pre-activation", "Neurons for which (10) holds"))
    curve(axes[0], data["feature_contribution"], "step", label="feature embeddings", colour=0, marker="")
    curve(axes[0], data["label_contribution"], "step", label="label embeddings", colour=1, marker="")
    curve(axes[1], data["label_wins"], "step", label="label part larger by ξ", colour=2, bounds=(0, 1), marker="")
    axes[0].set_ylabel("mean over winning neurons")
    axes[1].set_ylabel("fraction of neurons")
    for axis in axes:
        axis.set_xlabel("training step")
        axis.legend()
    return figure


def generalisation(results: Results) -> Figure:
    """Theorems 1 and 2: every seed's 0-1 error."""
    data = results["generalisation"].sel(setting="standard")
    figure, axes = panels(1, ("Theorems 1 and 2: 0-1 error",))
    for position, domain in enumerate(data["domain"].values):
        values = data["error"].sel(domain=domain).values
        axes[0].plot(position + np.linspace(-0.15, 0.15, len(values)), values, "o", ms=4, color=COLOURS[position])
    threshold(axes[0], ZERO, "0.001")
    axes[0].set_xticks([0, 1], ["training tasks", "out of domain"])
    axes[0].set_ylabel("0-1 error")
    axes[0].legend()
    return figure


FIGURES: dict[str, Callable[[Results], Figure]] = {"fig1a": fig1a, "fig1b": fig1b, "generalisation": generalisation}

"""The figures of mamba-outliers, in the paper's layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from iclab.claims import Results
from iclab.drawing import COLOURS, curve, panels, threshold
from iclab.papers.mamba_outliers.claims import RULE_WORDS
from iclab.papers.mamba_outliers.settings import MAGNITUDES, STACKS, Settings
from iclab.statistics import band

UNIT = (0.0, 1.0)


def _robustness(results: Results, tasks: str) -> Figure:
    data = results["robustness"]["error"].sel(setting=tasks)
    titles = tuple(
        f"1({panel}) {RULE_WORDS[str(rule)]}, {tasks}" for panel, rule in zip("ABC", data["rule"].values, strict=True)
    )
    figure, axes = panels(3, titles, width=3.8)
    for axis, rule in zip(axes, data["rule"].values, strict=True):
        for colour, (kind, name) in enumerate({"mamba": "Mamba", "linear": "linear Transformer"}.items()):
            for magnitude, style in zip(MAGNITUDES, ("--", "-"), strict=True):
                part = data.sel(kind=kind, rule=rule, magnitude=magnitude)
                curve(axis, part, "fraction", label=f"{name}, κ_a' = {magnitude:g}", colour=colour, bounds=UNIT, ls=style)
            exact = results["robustness"]["exact_error"].sel(setting=tasks, kind=kind, rule=rule)
            curve(axis, exact, "fraction", label=f"{name}, κ_a' = 10, exact number", colour=colour, bounds=UNIT, ls=":", lw=1.0)
        threshold(axis, 0.01, "0.01")
        axis.set_xlabel("fraction of outliers α")
        axis.set_ylabel("0-1 error")
        axis.set_ylim(-0.02, 1.02)
    axes[0].legend()
    return figure


def fig1(results: Results, settings: Settings) -> Figure:
    """Error of one-layer Mamba and linear Transformer against the fraction of outliers, trained on 18 tasks."""
    return _robustness(results, "18 tasks")


def fig1_cycle(results: Results, settings: Settings) -> Figure:
    """The same, trained on the bare cycle of 6 tasks, which satisfies Condition 1 too."""
    return _robustness(results, "6 tasks")


def _attention(results: Results, layers: tuple[int, ...], number: int) -> Figure:
    names = ("Mamba, one layer", *STACKS) if layers == (0,) else tuple(STACKS)
    data = results["attention"]
    titles = tuple(f"{number}: {name}" for name in names)
    figure, axes = panels(len(names), titles, width=3.2)
    for axis, name in zip(axes, names, strict=True):
        for layer in layers:
            for colour, (group, label) in enumerate({"same": "same pattern", "other": "other pattern"}.items()):
                kept = np.flatnonzero(data["recorded"].sel(setting=name).values)
                part = data[f"score_{group}"].sel(setting=name).isel(layer=layer, step=kept)
                style = "-" if layer == layers[0] else "--"
                curve(axis, part, "step", label=f"{label}, layer {layer + 1}", colour=colour, marker="", ls=style)
        axis.set_xlabel("training step")
        axis.set_ylabel("sum of attention scores")
    axes[0].legend()
    return figure


def fig2(results: Results, settings: Settings) -> Figure:
    """First-layer attention scores summed over examples with the query's pattern and over the others, along training."""
    return _attention(results, (0,), 2)


def fig4(results: Results, settings: Settings) -> Figure:
    """The same sums in the second and third layer of the stacks."""
    return _attention(results, tuple(range(1, settings.stack_depth)), 4)


def _gates(results: Results, layers: tuple[int, ...], number: int) -> Figure:
    data = results["gates"]
    cells = [(name, layer, m) for name in data["setting"].values for layer in layers for m in MAGNITUDES]
    cells = [cell for cell in cells if layers == (0,) or cell[0] != "Mamba, one layer"]
    names = tuple(f"{number}: {str(name).removeprefix('Mamba, ')}, layer {layer + 1}, κ_a' = {m:g}" for name, layer, m in cells)
    figure = Figure(figsize=(3.6 * 4, 2.6 * -(-len(cells) // 4)), layout="constrained")
    axes = figure.subplots(-(-len(cells) // 4), 4, squeeze=False).ravel()
    for axis, title, (name, layer, magnitude) in zip(axes, names, cells, strict=False):
        axis.set_title(title, loc="left", fontsize=8, fontweight="bold")
        for offset, (group, colour) in enumerate({"clean": COLOURS[2], "outlier": COLOURS[1]}.items()):
            part = data[f"{group}_gate"].sel(setting=name, magnitude=magnitude).isel(layer=layer)
            mean, low, high = band(part.transpose(..., "distance"), UNIT)
            place = part["distance"].values + 0.4 * offset - 0.2
            spread = np.maximum(0, np.stack([mean - low, high - mean]))
            axis.bar(place, mean, width=0.4, color=colour, label=group, yerr=spread, error_kw={"lw": 0.6})
        axis.set_yscale("log")
        axis.set_ylim(1e-7, 2)
        axis.set_xlabel("distance to the query")
        axis.set_ylabel("gate")
    for axis in axes[len(cells) :]:
        axis.set_visible(False)
    axes[0].legend()
    return figure


def fig3(results: Results, settings: Settings) -> Figure:
    """First-layer gates of outlier and clean examples against their distance to the query (α = 0.3, logarithmic)."""
    return _gates(results, (0,), 3)


def fig5(results: Results, settings: Settings) -> Figure:
    """The same gates in the second and third layer."""
    return _gates(results, tuple(range(1, settings.stack_depth)), 5)


def table2(results: Results, settings: Settings) -> Figure:
    """Accuracy with half of the examples outliers, placed farthest from the query, closest to it, or at random."""
    data = results["placements"]["accuracy"]
    cells = [(rule, magnitude) for rule in data["rule"].values for magnitude in MAGNITUDES]
    titles = tuple(f"{RULE_WORDS[str(rule)]}, κ_a' = {m:g}" for rule, m in cells)
    figure, axes = panels(len(cells), titles, width=2.6)
    for axis, (rule, magnitude) in zip(axes, cells, strict=True):
        for colour, name in enumerate(STACKS):
            part = data.sel(setting=name, rule=rule, magnitude=magnitude)
            mean, low, high = band(part.transpose(..., "placement"), UNIT)
            spread = np.maximum(0, np.stack([mean - low, high - mean]))
            axis.errorbar(
                np.arange(3) + 0.12 * colour - 0.18, mean, yerr=spread, fmt="o", ms=4, color=COLOURS[colour], label=name
            )
        axis.set_xticks(range(3), [str(place) for place in data["placement"].values], rotation=20)
        axis.set_ylim(-0.02, 1.05)
    axes[0].set_ylabel("accuracy")
    axes[0].legend(fontsize=7)
    return figure


FIGURES: dict[str, Callable[[Results, Settings], Figure]] = {
    "fig1": fig1, "fig1-cycle": fig1_cycle, "fig2": fig2, "fig3": fig3, "fig4": fig4, "fig5": fig5, "table2": table2,
}  # fmt: skip

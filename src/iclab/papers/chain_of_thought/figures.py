"""The figures of chain-of-thought, in the paper's layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from iclab.claims import Results
from iclab.drawing import COLOURS, curve, panels, threshold
from iclab.papers.chain_of_thought.claims import LETTERS, OUTPUT_LETTERS, REQUIRED
from iclab.papers.chain_of_thought.settings import Settings
from iclab.statistics import band, first_below

UNIT = (0.0, 1.0)


def _sweep(results: Results, experiment: str, letters: dict[str, str], number: int, name: str) -> Figure:
    data = results[experiment].sel(setting="standard")
    figure, axes = panels(
        3, tuple(f"{number}({panel}) {name}, varying {letter}" for panel, letter in letters.items()), width=3.8
    )
    for axis, (panel, letter) in zip(axes, letters.items(), strict=True):
        for colour, value in enumerate(data[f"value_{panel}"].values):
            part = data[f"error_{panel}"].sel({f"value_{panel}": value})
            curve(axis, part, "length", label=f"{letter} = {value:g}", colour=colour, bounds=UNIT)
        threshold(axis, REQUIRED, f"required: {REQUIRED:g}")
        axis.set_xlabel("number of examples l_ts")
        axis.set_ylabel("error")
        axis.set_ylim(-0.02, None)
        axis.legend()
    return figure


def fig2(results: Results, settings: Settings) -> Figure:
    """CoT error (averaged over the steps) against the number of examples, varying α', τ and ρ."""
    return _sweep(results, "chains", LETTERS, 2, "CoT")


def fig3(results: Results, settings: Settings) -> Figure:
    """ICL error against the number of examples, varying α', τ_o and ρ_o."""
    return _sweep(results, "direct", OUTPUT_LETTERS, 3, "ICL")


def fig4(results: Results, settings: Settings) -> Figure:
    """CoT and ICL error against the number of examples where Condition 1 holds and where it fails."""
    data = results["comparison"].sel(setting="standard")
    figure, axes = panels(2, ("4: Condition 1 holds", "4: Condition 1 fails"))
    names = {"icl": "ICL", "cot": "CoT, all steps (7)", "cot_final": "CoT, final step"}
    for axis, condition in zip(axes, data["condition"].values, strict=True):
        for colour, (name, label) in enumerate(names.items()):
            curve(axis, data[name].sel(condition=condition), "length", label=label, colour=colour, bounds=UNIT)
        axis.set_xscale("log")
        axis.set_xlabel("number of examples l_ts")
        axis.set_ylabel("error")
        axis.set_ylim(-0.02, 1.02)
        axis.legend()
    return figure


def fig5(results: Results, settings: Settings) -> Figure:
    """Attention mass on four groups of columns along training, on noisy test prompts; the whole run and its beginning."""
    data = results["training"].sel(setting="standard")
    figure, axes = panels(2, ("5: attention along training", "5: the first tenth"))
    names = {
        "same_pattern_same_step": "same pattern, same step",
        "other_pattern_same_step": "other pattern, same step",
        "same_pattern_other_step": "same pattern, other step",
        "other_pattern_other_step": "other pattern, other step",
    }
    other = data["same_pattern_other_step"] + data["other_pattern_other_step"]
    boundary = float(np.nanmean(first_below(other, "step", 0.1).values))
    for axis in axes:
        for colour, (name, label) in enumerate(names.items()):
            curve(axis, data[name], "step", label=label, colour=colour, bounds=UNIT, marker="")
        if np.isfinite(boundary):
            threshold(axis, boundary, "end of stage 1", vertical=True)
        axis.set_xlabel("training step")
        axis.set_ylabel("attention mass")
    axes[1].set_xlim(0, settings.steps / 10)
    axes[0].legend()
    return figure


def mixtures(results: Results, settings: Settings) -> Figure:
    """Error and attention where the query's input is a generic test pattern, and where it is the equal mixture of all."""
    titles = ("Theorem 2: CoT error, all queries", "Next-step error at that pattern", "Attention at that pattern")
    figure, axes = panels(3, titles, width=3.4)
    parts = (("generalisation", "error"), ("mixtures", "error"), ("mixtures", "mass"))
    for axis, (experiment, name) in zip(axes, parts, strict=True):
        if experiment not in results:
            axis.set_visible(False)
            continue
        part = results[experiment][name].sel(setting="standard")
        mean, low, high = band(part.transpose(..., "kind"), UNIT)
        spread = np.maximum(0, np.stack([mean - low, high - mean]))
        axis.bar(range(2), mean, yerr=spread, color=[COLOURS[0], COLOURS[1]], width=0.5)
        axis.set_xticks(range(2), [str(kind) for kind in part["kind"].values])
        axis.set_ylabel("0-1 error" if name == "error" else "mass on same pattern and step")
    return figure


FIGURES: dict[str, Callable[[Results, Settings], Figure]] = {
    "fig2": fig2, "fig3": fig3, "fig4": fig4, "fig5": fig5, "mixtures": mixtures,
}  # fmt: skip

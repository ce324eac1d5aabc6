"""The figures of language-model. Bands are 95 % intervals over prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.claims import Results
from iclab.drawing import COLOURS, curve, panels, threshold
from iclab.papers.language_model.claims import FIGURE_TASK, RULE_WORDS, TASK_WORDS, log_rank
from iclab.papers.language_model.geometry import KINDS
from iclab.papers.language_model.settings import Settings
from iclab.statistics import band

UNIT = (0.0, 1.0)
SHOWN = (FIGURE_TASK, "country-language")  # Fig. 1 draws two tasks of factual recall
DRAWN = 6  # pairs in a projection
POINTS = (COLOURS[4], COLOURS[5], COLOURS[6], COLOURS[0])
CONTROLS = {
    "other task": "another task's vector",
    "shuffled labels": "vector of shuffled answers",
    "random": "random vector",
    "static offset": "static offset of words",
}


def _together(data: xr.DataArray) -> xr.DataArray:
    """Prompts of all tasks along one dimension."""
    return data.stack(all=("task", "prompt")).drop_vars(["all", "task", "prompt"]).rename(all="prompt")


def fig1(results: Results, settings: Settings) -> Figure:
    """Queries x, answers y and x + o in the residual stream, along the task vector o and across it, in two and three
    dimensions.
    """
    data = results["task-vectors"]
    place = int(data["geometry_place"])
    figure = Figure(figsize=(12.6, 6.4), layout="constrained")
    for row, task in enumerate(SHOWN):
        points = data["points"].sel(task=task).values[:DRAWN]
        flat = figure.add_subplot(2, 3, 3 * row + 1)
        solid = figure.add_subplot(2, 3, 3 * row + 2, projection="3d")
        titles = f"1({'ac'[row]}) {task}, after block {place}", f"1({'bd'[row]}) the same in three dimensions"
        for axis, title in zip((flat, solid), titles, strict=True):
            axis.set_title(title, loc="left", fontsize=9, fontweight="bold")
        for number, kind in enumerate(KINDS):
            for axis, used in ((flat, 2), (solid, 3)):
                axis.plot(*points[:, number, :used].T, "o", color=COLOURS[number], ms=4, label=kind)
        for start, end in zip(points[:, 0], points[:, 2], strict=True):
            flat.plot(*np.stack([start[:2], end[:2]]).T, color="#bbbbbb", lw=0.6, zorder=0)
            solid.plot(*np.stack([start, end]).T, color="#bbbbbb", lw=0.6)
        for number, name in ((0, "query"), (2, "answer")):
            for point, word in zip(points[:, number], data[name].sel(task=task).values, strict=False):
                side: dict[str, Any] = {"ha": "right", "xytext": (-4, -2)} if number == 0 else {"ha": "left", "xytext": (4, -2)}
                flat.annotate(str(word), point[:2], textcoords="offset points", fontsize=7, color=COLOURS[number], **side)
        flat.margins(x=0.2)
        solid.set_xlabel("along o", fontsize=8)
        flat.set_xlabel("along o")
        flat.set_ylabel("across o")
        flat.legend(loc="best")
        beside = figure.add_subplot(2, 3, 3 * row + 3)
        beside.set_title(f"{task}: cosines by place", loc="left", fontsize=9, fontweight="bold")
        for colour, name in enumerate(("x, y", "x+o, y", "x+other, y", "x+offset, y", "y-x, o")):
            part = data["cosines"].sel(task=task, cosine=name)
            curve(beside, part, "every", label=f"cos({name})", colour=colour, marker="")
        beside.axvline(place, color="#333333", ls="--", lw=0.8)
        beside.set_xlabel("place in the residual stream")
        beside.set_ylabel("cosine")
        beside.legend()
    return figure


def _levels(axis: Axes, data: xr.DataArray, places: np.ndarray) -> None:
    """Accuracy (or rank) in zero-shot, few-shot and shuffled prompts, as level lines."""
    words = {"none": "no vector", "demonstrations": "demonstrations", "shuffled labels": "shuffled answers"}
    for colour, (context, name) in enumerate(words.items(), start=1):
        level = float(data.sel(context=context).mean())
        axis.plot(places[[0, -1]], [level, level], color=COLOURS[colour], ls="--", lw=1.2, label=name)


def patching(results: Results, settings: Settings) -> Figure:
    """Zero-shot accuracy on unseen queries with a task vector at each place, against none, few-shot, and the controls."""
    data = results["task-vectors"]
    figure, axes = panels(2, ("the task vector added to the stream", "in the stream's stead"), width=5.6, height=3.6)
    for axis, mode in zip(axes, data["mode"].values, strict=True):
        curve(axis, _together(data["patched_right"].sel(mode=mode)), "place", label="its own vector", bounds=UNIT)
        _levels(axis, data["right"], data["place"].values)
        place = float(data["chosen"].sel(mode=mode))
        for colour, vector in enumerate(data["vector"].values, start=4):
            mean, low, high = band(_together(data["control_right"].sel(mode=mode, vector=vector)), UNIT, "prompt")
            at = place + 0.5 * (colour - 5.5)
            spread = [[float(mean - low)], [float(high - mean)]]
            axis.errorbar([at], [float(mean)], spread, fmt="s", ms=4, color=POINTS[colour - 4], label=CONTROLS[str(vector)])
        threshold(axis, place, "chosen", vertical=True)
        axis.set_xlabel("place in the residual stream")
        axis.set_ylabel("accuracy")
        axis.set_ylim(-0.02, 1.02)
    axes[0].legend()
    return figure


def ranks(results: Results, settings: Settings) -> Figure:
    """The rank of the right answer among all tokens, on a logarithmic scale, with the task vector added at each place."""
    data = results["task-vectors"]
    figure, axes = panels(len(data["task"]), tuple(map(str, data["task"].values)), width=3.0)
    for axis, task in zip(axes, data["task"].values, strict=True):
        own = data.sel(task=task)
        curve(axis, log_rank(own["patched_rank"].sel(mode="added")), "place", label="task vector added", marker="")
        _levels(axis, log_rank(own["rank"]), data["place"].values)
        level = float(log_rank(own["static_rank"]).mean())
        ends = data["place"].values[[0, -1]]
        axis.plot(ends, [level, level], color=COLOURS[4], ls=":", lw=1.4, label="static word vectors")
        axis.set_xlabel("place")
        axis.set_ylabel("log10(1 + rank)")
    axes[0].legend()
    return figure


def attention(results: Results, settings: Settings) -> Figure:
    """Attention on demonstrations with the query's label, as a share of that on all: by block, and at the chosen head."""
    data = results["attention"]
    figure, axes = panels(2, tuple(TASK_WORDS[str(task)] for task in data["task"].values), width=5.6)
    for axis, task in zip(axes, data["task"].values, strict=True):
        for colour, order in enumerate(data["order"].values):
            own = data.sel(task=task, order=order)
            curve(axis, own["share"], "block", label=f"all heads, {order}", colour=colour, bounds=UNIT, marker="")
            mean, low, high = band(own["head_share"], UNIT, "prompt")
            spread = [[float(mean - low)], [float(high - mean)]]
            at = float(data["chosen_block"].sel(task=task)) + 0.3 * colour
            axis.errorbar([at], [float(mean)], spread, fmt="s", ms=4, color=COLOURS[colour + 2], label=f"chosen head, {order}")
        threshold(axis, 0.5, "no preference")
        axis.set_xlabel("block")
        axis.set_ylabel("share of attention")
        axis.set_ylim(0, 1)
    axes[0].legend()
    return figure


def pruning(results: Results, settings: Settings) -> Figure:
    """Few-shot accuracy, and log-probability of the right answer, against the share of MLP neurons switched off in every
    block.
    """
    data = results["pruning"]
    figure, axes = panels(2, ("accuracy", "log-probability of the right answer"), width=5.6)
    for axis, name in zip(axes, ("right", "log_probability"), strict=True):
        for colour, order in enumerate(data["order"].values):
            bounds = UNIT if name == "right" else (-np.inf, 0.0)
            curve(axis, _together(data[name].sel(order=order)), "rate", label=str(order), colour=colour, bounds=bounds)
        axis.set_xlabel("share of neurons switched off")
    axes[0].set_ylabel("accuracy")
    axes[1].set_ylabel("log-probability")
    axes[0].legend()
    return figure


def outliers(results: Results, settings: Settings) -> Figure:
    """Accuracy against the fraction of demonstrations with the trigger phrase, by what becomes of their labels."""
    data = results["outliers"]
    figure, axes = panels(2, tuple(TASK_WORDS[str(task)] for task in data["task"].values), width=5.6)
    for axis, task in zip(axes, data["task"].values, strict=True):
        for colour, rule in enumerate(data["rule"].values):
            part = data["right"].sel(task=task, rule=rule).dropna("fraction", how="all")
            curve(axis, part, "fraction", label=RULE_WORDS[str(rule)], colour=colour, bounds=UNIT)
        threshold(axis, 0.5, "chance")
        axis.set_xlabel("fraction of outliers α")
        axis.set_ylabel("accuracy")
        axis.set_ylim(0, 1.02)
    axes[0].legend()
    return figure


def placement(results: Results, settings: Settings) -> Figure:
    """Accuracy with half of the demonstrations outliers (flipped labels): by where they sit, and without the phrase that
    marks them.
    """
    data = results["outliers"]
    figure, axes = panels(2, tuple(TASK_WORDS[str(task)] for task in data["task"].values), width=4.6)
    for axis, task in zip(axes, data["task"].values, strict=True):
        own = data.sel(task=task)
        bars = {f"{where}": own["placed"].sel(placement=where) for where in data["placement"].values}
        bars = {"no outliers": own["right"].sel(rule="flip", fraction=0.0)} | bars | {"unmarked": own["unmarked"]}
        for number, part in enumerate(bars.values()):
            mean, low, high = (float(value) for value in band(part, UNIT, "prompt"))
            axis.bar(number, mean, width=0.7, color=COLOURS[number], yerr=[[mean - low], [high - mean]], error_kw={"lw": 0.8})
        axis.set_xticks(range(len(bars)), list(bars), fontsize=8)
        threshold(axis, 0.5, "chance")
        axis.set_ylabel("accuracy")
        axis.set_ylim(0, 1.02)
    return figure


def steps(results: Results, settings: Settings) -> Figure:
    """Accuracy on two-step tasks against the fraction of erroneous demonstrations, with the intermediate step shown and
    without.
    """
    data = results["steps"]
    figure, axes = panels(2, tuple(map(str, data["task"].values)), width=5.0)
    for axis, task in zip(axes, data["task"].values, strict=True):
        own = data.sel(task=task)
        for colour, (form, name) in enumerate({"steps": "with steps", "direct": "answers only"}.items()):
            curve(axis, own["right"].sel(form=form), "errors", label=name, colour=colour, bounds=UNIT)
        curve(axis, own["step_right"], "errors", label="the step itself", colour=2, bounds=UNIT, ls="--")
        axis.set_xlabel("fraction of erroneous demonstrations")
        axis.set_ylabel("accuracy")
        axis.set_ylim(0, 1.02)
    axes[0].legend()
    return figure


FIGURES: dict[str, Callable[[Results, Settings], Figure]] = {
    "fig1": fig1, "patching": patching, "ranks": ranks, "attention": attention, "pruning": pruning, "outliers": outliers,
    "placement": placement, "steps": steps,
}  # fmt: skip

"""The figures of language-model. Bands, boxes and bars are 95 % intervals over prompts."""

from __future__ import annotations

import functools
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import UNIT, Custom, Expression, Lines, Results, apply, measured, picture, threshold
from iclab.authoring.pictures import Panel
from iclab.drawing import COLOURS
from iclab.language.words import LABEL_TASKS, TWO_STEP_TASKS, WORD_TASKS
from iclab.papers.language_model.geometry import KINDS
from iclab.papers.language_model.labels import ORDERS, PLACEMENTS, RULES
from iclab.papers.language_model.settings import Settings
from iclab.papers.language_model.statements import FIGURE_TASK, RULE_WORDS, TASK_WORDS, log_rank, vectors
from iclab.statistics import band

SHOWN = (FIGURE_TASK, "country-language")  # Fig. 1 draws two tasks of factual recall
DRAWN = 6  # pairs in a projection
COSINES = ("x, y", "x+o, y", "x+other, y", "x+offset, y", "y-x, o")
ACCURACY: dict[str, Any] = {"y": "accuracy", "bounds": UNIT, "limits": (-0.02, 1.02)}
CONTEXTS = {"none": "no vector", "demonstrations": "demonstrations", "shuffled labels": "shuffled answers"}
CONTROLS = {
    "other task": "another task's vector",
    "shuffled labels": "vector of shuffled answers",
    "random": "random vector",
    "static offset": "static offset of words",
}


def together(data: xr.DataArray) -> xr.DataArray:
    """Prompts of all tasks along one dimension."""
    return data.stack(all=("task", "prompt")).drop_vars(["all", "task", "prompt"]).rename(all="prompt")


def level(data: xr.DataArray, along: xr.DataArray) -> xr.DataArray:
    """The mean of everything, at every value of a coordinate: a level line."""
    return xr.DataArray(float(data.mean())).expand_dims({"prompt": 1, along.name: along.values})


def box(data: xr.DataArray, along: str, place: xr.DataArray, shift: float) -> xr.DataArray:
    """The data at one place, as wide as can be seen: a mean with its interval."""
    return data.expand_dims({along: [float(place) + shift - 0.15, float(place) + shift + 0.15]})


def known(data: xr.DataArray) -> xr.DataArray:
    """Without the fractions that were left out."""
    return data.dropna("fraction", how="all")


def _shared(results: Results, *shown: Panel, **size: float) -> Figure:
    """Panels with the same lines, and one legend for all of them."""
    figure = picture(results, *shown, **size)
    for legend in [axis.get_legend() for axis in figure.axes[1:]]:
        if legend is not None:
            legend.remove()
    return figure


def _flat(axis: Axes, results: Results, task: str) -> None:
    """Points and words of a task along its vector and across it."""
    data = results["task-vectors"].sel(task=task)
    points = data["points"].values[:DRAWN, :, :2]
    _points(axis, points)
    for number, name, side, shift in ((0, "query", "right", -4), (2, "answer", "left", 4)):
        for point, word in zip(points[:, number], data[name].values, strict=False):
            look: dict[str, Any] = {"ha": side, "xytext": (shift, -2), "textcoords": "offset points"}
            axis.annotate(str(word), point, fontsize=7, color=COLOURS[number], **look)
    axis.margins(x=0.2)
    axis.set_ylabel("across o")
    axis.legend(loc="best")


def _solid(axis: Axes, results: Results, task: str) -> None:
    """The same in three dimensions, on another axis in the place of this one."""
    place, title, figure = axis.get_subplotspec(), axis.get_title(loc="left"), axis.figure
    axis.remove()
    assert place is not None and isinstance(figure, Figure)
    deep = figure.add_subplot(place, projection="3d")
    deep.set_title(title, loc="left", fontsize=9, fontweight="bold")
    _points(deep, results["task-vectors"]["points"].sel(task=task).values[:DRAWN])


def _points(axis: Axes, points: Any) -> None:
    for number, kind in enumerate(KINDS):
        axis.plot(*points[:, number].T, "o", color=COLOURS[number], ms=4, label=kind)
    for start, _, end in points:
        axis.plot(*zip(start, end, strict=True), color="#bbbbbb", lw=0.6, zorder=0)
    axis.set_xlabel("along o")


def fig1(results: Results, s: Settings) -> Figure:
    """Queries x, answers y and x + o in the residual stream, along the task vector o and across it, in 2-D and 3-D."""
    place = int(results["task-vectors"]["geometry_place"])
    look: dict[str, Any] = {"x": "place in the residual stream", "y": "cosine", "marks": {"": place}, "dots": False}
    shown: list[Panel] = []
    for task, (flat, solid) in zip(SHOWN, ("ab", "cd"), strict=True):
        lines = {f"cos({name})": vectors("cosines", task=task, cosine=name) for name in COSINES}
        for letter, words, paint in (
            (flat, f"{task}, after block {place}", _flat),
            (solid, "the same in three dimensions", _solid),
        ):
            shown.append(Custom(f"1({letter}) {words}", ("task-vectors",), functools.partial(paint, task=task)))
        shown.append(Lines(f"{task}: cosines by place", lines, "every", **look))
    return picture(results, *shown, columns=3, height=3.2)


def _levels(data: Expression, own: Expression) -> dict[str, Expression]:
    """Zero-shot, few-shot and shuffled prompts, as level lines."""
    place = own.coordinate("place")
    return {words: apply(level, data.sel(context=context), place) for context, words in CONTEXTS.items()}


def patching(results: Results, s: Settings) -> Figure:
    """Zero-shot accuracy on unseen queries with a task vector at each place, against none, few-shot, and the controls."""
    shown = []
    for mode, title in (("added", "the task vector added to the stream"), ("replaced", "in the stream's stead")):
        own, chosen = apply(together, vectors("patched_right", mode=mode)), vectors("chosen", mode=mode)
        lines = {"its own vector": own} | _levels(vectors("right"), own)
        for number, (vector, words) in enumerate(CONTROLS.items()):
            control = apply(together, vectors("control_right", mode=mode, vector=vector))
            lines[words] = apply(box, control, "place", chosen, 0.5 * (number - 1.5))
        marks, dashed = {"chosen": float(chosen.evaluate(results))}, tuple(CONTEXTS.values())
        shown.append(
            Lines(title, lines, "place", x="place in the residual stream", marks=marks, dashed=dashed, **ACCURACY)
        )
    return _shared(results, *shown, width=5.6, height=3.6)


def ranks(results: Results, s: Settings) -> Figure:
    """The rank of the right answer among all tokens, on a logarithmic scale, with the task vector added at each place."""
    shown = []
    for task in WORD_TASKS:
        own = apply(log_rank, vectors("patched_rank", mode="added", task=task))
        lines = _levels(apply(log_rank, vectors("rank", task=task)), own)
        static = apply(log_rank, vectors("static_rank", task=task))
        lines["static word vectors"] = apply(level, static, own.coordinate("place"))
        look: dict[str, Any] = {"x": "place", "y": "log10(1 + rank)", "dashed": tuple(lines), "dots": False}
        shown.append(Lines(task, {"task vector added": own} | lines, "place", **look))
    return _shared(results, *shown, width=3.0)


def attention(results: Results, s: Settings) -> Figure:
    """Attention on demonstrations with the query's label, as a share of that on all: by block, and at the chosen head."""
    shown = []
    for task in LABEL_TASKS:
        share, head, block = (
            measured("attention", name).sel(task=task) for name in ("share", "head_share", "chosen_block")
        )
        lines = {f"all heads, {order}": share.sel(order=order) for order in ORDERS}
        for number, order in enumerate(ORDERS):
            lines[f"chosen head, {order}"] = apply(box, head.sel(order=order), "block", block, 0.4 * number)
        look: dict[str, Any] = ACCURACY | {"y": "share of attention", "rules": {"no preference": 0.5}, "dots": False}
        shown.append(Lines(TASK_WORDS[task], lines, "block", **look))
    return _shared(results, *shown, width=5.6)


def pruning(results: Results, s: Settings) -> Figure:
    """Few-shot accuracy, and log-probability of the right answer, against the share of MLP neurons switched off."""
    right, certainty = (apply(together, measured("pruning", name)) for name in ("right", "log_probability"))
    look: dict[str, Any] = {"along": "rate", "by": "order", "x": "share of neurons switched off"}
    log = Lines(
        "log-probability of the right answer", certainty, y="log-probability", bounds=(-float("inf"), 0), **look
    )
    return _shared(results, Lines("accuracy", right, y="accuracy", bounds=UNIT, **look), log, width=5.6)


def outliers(results: Results, s: Settings) -> Figure:
    """Accuracy against the fraction of demonstrations with the trigger phrase, by what becomes of their labels."""
    shown = []
    for task in LABEL_TASKS:
        right = measured("outliers", "right").sel(task=task)
        lines = {RULE_WORDS[rule]: apply(known, right.sel(rule=rule)) for rule in RULES}
        look: dict[str, Any] = ACCURACY | {"x": "fraction of outliers α", "rules": {"chance": 0.5}}
        shown.append(Lines(TASK_WORDS[task], lines, "fraction", **look))
    return _shared(results, *shown, width=5.6)


def _placed(axis: Axes, results: Results, task: str) -> None:
    """Bars: no outliers, those at each place, those that nothing marks."""
    own = results["outliers"].sel(task=task)
    bars = {"no outliers": own["right"].sel(rule="flip", fraction=0.0)}
    bars |= {where: own["placed"].sel(placement=where) for where in PLACEMENTS} | {"unmarked": own["unmarked"]}
    for number, part in enumerate(bars.values()):
        mean, low, high = (float(value) for value in band(part, UNIT, "prompt"))
        axis.bar(
            number, mean, width=0.7, color=COLOURS[number], yerr=[[mean - low], [high - mean]], error_kw={"lw": 0.8}
        )
    axis.set_xticks(range(len(bars)), list(bars), fontsize=8)
    threshold(axis, 0.5, "chance")
    axis.set_ylabel("accuracy")
    axis.set_ylim(0, 1.02)


def placement(results: Results, s: Settings) -> Figure:
    """Accuracy with half of the demonstrations outliers (flipped labels): by where they sit, and without their mark."""
    shown = (Custom(TASK_WORDS[task], ("outliers",), functools.partial(_placed, task=task)) for task in LABEL_TASKS)
    return picture(results, *shown, width=4.6)


def steps(results: Results, s: Settings) -> Figure:
    """Accuracy on two-step tasks against the fraction of erroneous demonstrations, with steps shown and without."""
    shown = []
    for task in TWO_STEP_TASKS:
        right, step = (measured("steps", name).sel(task=task) for name in ("right", "step_right"))
        lines = {
            "with steps": right.sel(form="steps"),
            "answers only": right.sel(form="direct"),
            "the step itself": step,
        }
        look: dict[str, Any] = ACCURACY | {"x": "fraction of erroneous demonstrations", "dashed": ("the step itself",)}
        shown.append(Lines(task, lines, "errors", **look))
    return _shared(results, *shown, width=5.0)


figures = {draw.__name__: draw for draw in (fig1, patching, ranks, attention, pruning, outliers, placement, steps)}

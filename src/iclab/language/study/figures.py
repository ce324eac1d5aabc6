"""The figures of language-model. Bands, boxes and bars are 95 % intervals over prompts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import UNIT, Custom, Lines, Results, apply, measured, picture, threshold
from iclab.drawing import COLOURS
from iclab.expressions import Expression
from iclab.language.study.figure1 import FIGURE_TASK, inside, reciprocal, vectors
from iclab.language.study.geometry import KINDS
from iclab.language.study.labels import ORDERS, PLACEMENTS, RULES
from iclab.language.study.parts import log_rank
from iclab.language.study.settings import Settings
from iclab.language.study.statements import RULE_WORDS, TASK_WORDS
from iclab.language.study.task_vectors import VECTORS
from iclab.language.words import LABEL_TASKS, TWO_STEP_TASKS, WORD_TASKS
from iclab.statistics import band

SHOWN = {FIGURE_TASK: ("a", "b"), "country-language": ("c", "d")}  # Fig. 1 draws two tasks of factual recall
DRAWN = 6  # pairs in a projection
PLACE = "place in the residual stream"
COSINES = ("x, y", "x+o, y", "x+other, y", "x+offset, y", "y-x, o")
READ = {
    "query": "the query's word",
    "answer": "the answer",
    "another query": "another's",
    "another answer": "its answer",
}
TITLES = {"repeated": "a text that repeats the query", "bare": "the query and the separator"}
ACCURACY: dict[str, Any] = {"y": "accuracy", "bounds": UNIT, "limits": (-0.02, 1.02)}
CONTEXTS = {"none": "no vector", "demonstrations": "demonstrations", "shuffled labels": "shuffled answers"}


def together(data: xr.DataArray) -> xr.DataArray:
    """Prompts of all tasks along one dimension."""
    return data.stack(all=("task", "prompt")).drop_vars(["all", "task", "prompt"]).rename(all="prompt")


def level(data: xr.DataArray, along: xr.DataArray) -> xr.DataArray:
    """The mean of everything, at every value of a coordinate: a level line."""
    return xr.DataArray(float(data.mean())).expand_dims({"prompt": 1, along.name: along.values})


def box(data: xr.DataArray, along: str, place: xr.DataArray, shift: float) -> xr.DataArray:
    """The data at one place, as wide as can be seen: a mean with its interval."""
    return data.expand_dims({along: [float(place) + shift - 0.15, float(place) + shift + 0.15]})


def _panels(
    results: Results, lines: Mapping[str, Mapping[str, Expression]], along: str, width: float = 5.6, **look: Any
) -> Figure:
    """Panels with the same lines, by title, and one legend for all of them."""
    figure = picture(results, *(Lines(title, own, along, **look) for title, own in lines.items()), width=width)
    for legend in filter(None, [axis.get_legend() for axis in figure.axes[1:]]):
        legend.remove()
    return figure


def _points(axis: Any, results: Results, task: str, deep: bool = False, experiment: str = "task-vectors") -> None:
    """Points and words of a task along its vector and across it; in 3-D on another axis in the place of this one."""
    data = results[experiment].sel(task=task)
    points = data["points"].values[:DRAWN, :, : 2 + deep]
    if deep:
        place, title, figure = axis.get_subplotspec(), axis.get_title(loc="left"), axis.figure
        axis.remove()
        axis = figure.add_subplot(place, projection="3d")
        axis.set_title(title, loc="left", fontsize=9, fontweight="bold")
    for number, kind in enumerate(KINDS):
        axis.plot(*points[:, number].T, "o", color=COLOURS[number], ms=4, label=kind)
    for start, _, end in points:
        axis.plot(*zip(start, end, strict=True), color="#bbbbbb", lw=0.6, zorder=0)
    axis.set_xlabel("along o")
    if deep:
        return
    for number, name, side, shift in ((0, "query", "right", -4), (2, "answer", "left", 4)):
        look = {
            "color": COLOURS[number],
            "fontsize": 7,
            "ha": side,
            "xytext": (shift, -2),
            "textcoords": "offset points",
        }
        for point, word in zip(points[:, number], data[name].values, strict=False):
            axis.annotate(str(word), point, **look)
    axis.margins(x=0.2)
    axis.set_ylabel("across o")
    axis.legend(loc="best")


def fig1(results: Results, s: Settings) -> Figure:
    """Queries x, answers y and x + o in the residual stream, along the task vector o and across it, in 2-D and 3-D."""
    place = int(results["task-vectors"]["geometry_place"])
    shown: list[Custom | Lines] = []
    for task, letters in SHOWN.items():
        for letter, words in zip(
            letters, (f"{task}, after block {place}", "the same in three dimensions"), strict=True
        ):
            paint = functools.partial(_points, task=task, deep=letter in "bd")
            shown.append(Custom(f"1({letter}) {words}", ("task-vectors",), paint))
        lines = {f"cos({name})": vectors("cosines", task=task, cosine=name) for name in COSINES}
        title, marks = f"{task}: cosines by place", {"": place}
        shown.append(Lines(title, lines, "every", x=PLACE, y="cosine", marks=marks, dots=False))
    paint = functools.partial(_points, task=FIGURE_TASK, experiment="one-place")
    shown.append(Custom(f"{FIGURE_TASK}, x, o, y at one place", ("one-place",), paint))
    for name, title in {"cosines": "all at one place", "word_cosines": "x, y words, o what an MLP adds"}.items():
        data = measured("one-place", name).sel(task=FIGURE_TASK)
        lines = {f"cos({cosine})": data.sel(cosine=cosine) for cosine in COSINES}
        shown.append(Lines(title, lines, "every", x=PLACE, y="cosine", dots=False))
    return picture(results, *shown, columns=3, height=3.2)


def _levels(data: Expression, own: Expression) -> dict[str, Expression]:
    """Zero-shot, few-shot and shuffled prompts, as level lines."""
    place = own.coordinate("place")
    return {words: apply(level, data.sel(context=context), place) for context, words in CONTEXTS.items()}


def patching(results: Results, s: Settings) -> Figure:
    """Zero-shot accuracy on unseen queries with a task vector at each place, against none, few-shot, and controls."""
    lines = {}
    modes = {"added": "the task vector added to the stream", "replaced": "in place of the stream"}
    for mode, title in modes.items():
        own, chosen = apply(together, vectors("patched_right", mode=mode)), vectors("chosen", mode=mode)
        lines[title] = {"its own vector": own} | _levels(vectors("right"), own)
        for number, vector in enumerate(VECTORS):
            control = apply(together, vectors("control_right", mode=mode, vector=vector))
            lines[title][f"control: {vector}"] = apply(box, control, "place", chosen, 0.5 * (number - 1.5))
    figure = _panels(results, lines, "place", x=PLACE, dashed=tuple(CONTEXTS.values()), **ACCURACY)
    for axis, mode in zip(figure.axes, modes, strict=True):
        threshold(axis, float(results["task-vectors"]["chosen"].sel(mode=mode)), "chosen", vertical=True)
    return figure


def ranks(results: Results, s: Settings) -> Figure:
    """The right answer's rank among all tokens, on a logarithmic scale, with the task vector added at each place."""
    lines, static = {}, "static word vectors"
    for task in WORD_TASKS:
        own = apply(log_rank, vectors("patched_rank", mode="added", task=task))
        lines[task] = {"task vector added": own} | _levels(apply(log_rank, vectors("rank", task=task)), own)
        words = apply(log_rank, vectors("static_rank", task=task))
        lines[task][static] = apply(level, words, own.coordinate("place"))
    look: dict[str, Any] = {"y": "log10(1 + rank)", "dashed": (*CONTEXTS.values(), static), "dots": False}
    return _panels(results, lines, "place", 3.0, **look)


def one_place(results: Results, s: Settings) -> Figure:
    """Rank of the query's word and of the answer where the stream is decoded behind every block, at the last token."""
    lines: dict[str, dict[str, Expression]] = {}
    for task in WORD_TASKS:
        own = {word: inside("ranks", side="behind", word=word).sel(task=task) for word in READ}
        lines[task] = {READ[word]: apply(log_rank, data) for word, data in own.items()}
    look: dict[str, Any] = {"x": PLACE, "y": "log10(1 + rank)", "dots": False}
    dashed = tuple(READ[word] for word in READ if word.startswith("another"))
    figure = _panels(results, lines, "every", 3.0, dashed=dashed, **look)
    for axis, task in zip(figure.axes, WORD_TASKS, strict=True):
        threshold(axis, float(results["one-place"]["geometry_place"].sel(task=task)), "block", vertical=True)
    return figure


def _bars(axis: Axes, bars: Mapping[str, xr.DataArray], **ticks: Any) -> None:
    """Means over prompts with their intervals, beside each other."""
    for number, part in enumerate(bars.values()):
        mean, low, high = (float(value) for value in band(part, UNIT, "prompt"))
        axis.bar(number, mean, 0.7, color=COLOURS[number], yerr=[[mean - low], [high - mean]], error_kw={"lw": 0.8})
    axis.set_xticks(range(len(bars)), list(bars), **ticks)


def _texts(axis: Axes, results: Results, text: str) -> None:
    own = results["one-place"].sel(text=text)
    ranks = {"as it is": own["plain_rank"]}
    ranks |= {name: own["answer_rank"].sel(vector=name) for name in own["vector"].values}
    _bars(axis, {name: together(reciprocal(rank)) for name, rank in ranks.items()}, fontsize=7, rotation=20)
    axis.set_ylabel("reciprocal rank of the answer")


def mlp(results: Results, s: Settings) -> Figure:
    """The answer's reciprocal rank in texts that say nothing of the task, with o in place of what MLPs add."""
    shown = (Custom(words, ("one-place",), functools.partial(_texts, text=text)) for text, words in TITLES.items())
    return picture(results, *shown, width=4.6)


def attention(results: Results, s: Settings) -> Figure:
    """Attention on demonstrations with the query's label, as a share of that on all: by block, and at one head."""
    lines = {}
    for task in LABEL_TASKS:
        share, head, block = (measured("attention", n).sel(task=task) for n in ("share", "head_share", "chosen_block"))
        own = {f"all heads, {order}": share.sel(order=order) for order in ORDERS}
        for number, order in enumerate(ORDERS):
            own[f"chosen head, {order}"] = apply(box, head.sel(order=order), "block", block, 0.4 * number)
        lines[TASK_WORDS[task]] = own
    look = ACCURACY | {"y": "share of attention", "rules": {"no preference": 0.5}, "dots": False}
    return _panels(results, lines, "block", **look)


def pruning(results: Results, s: Settings) -> Figure:
    """Few-shot accuracy, and log-probability of the right answer, against the share of MLP neurons switched off."""
    right, certainty = (apply(together, measured("pruning", name)) for name in ("right", "log_probability"))
    look: dict[str, Any] = {"along": "rate", "by": "order", "x": "share of neurons switched off"}
    accuracy = Lines("accuracy", right, y="accuracy", bounds=UNIT, **look)
    log = Lines(
        "log-probability of the right answer", certainty, y="log-probability", bounds=(-float("inf"), 0), **look
    )
    return picture(results, accuracy, log, width=5.6)


def outliers(results: Results, s: Settings) -> Figure:
    """Accuracy against the fraction of demonstrations with the trigger phrase, by what becomes of their labels."""
    lines = {}
    for task in LABEL_TASKS:
        right = measured("outliers", "right").sel(task=task)
        drawn = {rule: apply(xr.DataArray.dropna, right.sel(rule=rule), "fraction", how="all") for rule in RULES}
        lines[TASK_WORDS[task]] = {RULE_WORDS[rule]: data for rule, data in drawn.items()}
    return _panels(results, lines, "fraction", x="fraction of outliers α", rules={"chance": 0.5}, **ACCURACY)


def _placed(axis: Axes, results: Results, task: str) -> None:
    own = results["outliers"].sel(task=task)
    bars = {"no outliers": own["right"].sel(rule="flip", fraction=0.0)}
    bars |= {where: own["placed"].sel(placement=where) for where in PLACEMENTS} | {"unmarked": own["unmarked"]}
    _bars(axis, bars, fontsize=8)
    threshold(axis, 0.5, "chance")
    axis.set_ylabel("accuracy")
    axis.set_ylim(0, 1.02)


def placement(results: Results, s: Settings) -> Figure:
    """Accuracy with half of the demonstrations outliers (flipped labels): by where they sit, and without their mark."""
    shown = (Custom(TASK_WORDS[task], ("outliers",), functools.partial(_placed, task=task)) for task in LABEL_TASKS)
    return picture(results, *shown, width=4.6)


def steps(results: Results, s: Settings) -> Figure:
    """Accuracy on two-step tasks against the fraction of erroneous demonstrations, with steps shown and without."""
    lines, itself = {}, "the step itself"
    for task in TWO_STEP_TASKS:
        right, step = (measured("steps", name).sel(task=task) for name in ("right", "step_right"))
        lines[task] = {"with steps": right.sel(form="steps"), "answers only": right.sel(form="direct"), itself: step}
    return _panels(results, lines, "errors", x="fraction of erroneous demonstrations", dashed=(itself,), **ACCURACY)


DRAWINGS = (fig1, patching, ranks, one_place, mlp, attention, pruning, outliers, placement, steps)
figures = {draw.__name__: draw for draw in DRAWINGS}

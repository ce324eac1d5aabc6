"""Figures as data: panels of curves, of seeds, of power laws; and the default figure of a statement.

    def fig3a(results, settings):
        error = measured("sums", "error").sel(setting="standard")
        return picture(results, Lines("3(A) 0-1 error", error, "total", x="S₁", rules={"0.01": 0.01}))

A panel without results (in a run of one statement, say) is left out. Labels of axes are attributes of the data
(`labelled`) unless the panel sets them.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from iclab.answers import evaluated
from iclab.drawing import COLOURS, curve, panels, threshold
from iclab.expressions import Expression, Results
from iclab.scaling import Scaling
from iclab.statements import Part, Reading, Statement
from iclab.statistics import unit_of
from iclab.statistics.fits import fit_exponent, fittable

LABEL = "long_name"
COMMON = {"error": "0-1 error", "hinge": "hinge loss", "step": "training step", "length": "context length"}
# Of a default figure: panels per row, ticks side by side, characters of a title.
MOST_COLUMNS, MOST_FLAT, TITLE = 3, 4, 46
MOST_TICKS = 6
Data = Expression | Mapping[str, Expression]


def labelled(data: xr.Dataset, **labels: str) -> xr.Dataset:
    """The results with labels for their variables and coordinates, which figures and tables show."""
    for name, label in labels.items():
        data[name].attrs[LABEL] = label
    return data


def label_of(data: xr.DataArray, name: str | None = None) -> str:
    """The label of an axis: that of the data, or their name in words."""
    own = data if name is None else data[name]
    plain = str(own.name or "")
    return str(own.attrs.get(LABEL) or COMMON.get(plain, plain.replace("_", " ")))


@runtime_checkable
class Panel(Protocol):
    """One panel of a figure."""

    @property
    def title(self) -> str:
        """The paper's letter and a few words."""

    def needs(self) -> set[str]:
        """The experiments that it shows."""

    def draw(self, axis: Axes, results: Results) -> None:
        """Draw it."""


def picture(
    results: Results, *shown: Panel, width: float = 4.2, height: float = 3.1, columns: int | None = None
) -> Figure:
    """A figure of the panels that have results, in rows of `columns` (default: one row)."""
    there = [panel for panel in shown if panel.needs() <= set(results)]
    if not there:  # only one reading of a statement ran, and the figure shows others
        figure, axes = panels(1, ("This run has no results for this figure",), width=width, height=height)
        axes[0].set_axis_off()
        return figure
    figure, axes = panels(
        len(there), tuple(panel.title for panel in there), width=width, height=height, columns=columns
    )
    for axis, panel in zip(axes, there, strict=True):
        panel.draw(axis, results)
    _share_legend(axes)
    return figure


def _share_legend(axes: Sequence[Axes]) -> None:
    """If all panels have the same legend, show only the first."""
    legends = [legend for axis in axes if (legend := axis.get_legend()) is not None]
    if len(legends) == len(axes) and len({tuple(text.get_text() for text in one.get_texts()) for one in legends}) == 1:
        for legend in legends[1:]:
            legend.remove()


@dataclasses.dataclass(frozen=True)
class Lines:
    """Means over seeds with their intervals against the coordinate `along`.

    `data` is one expression, several by name, or one with a dimension `by` whose labels are the lines ("{}" in `label`
    stands for the label). `rules` are horizontal lines and `marks` vertical ones, by the text beside them. `seeds` adds
    every seed as a thin line. `dashed` names the dashed lines, `log` the logarithmic axes ("x", "y", "xy").
    """

    title: str
    data: Data
    along: str
    by: str = ""
    label: str = "{}"
    x: str = ""
    y: str = ""
    rules: Mapping[str, float] = dataclasses.field(default_factory=dict)
    marks: Mapping[str, float] = dataclasses.field(default_factory=dict)
    bounds: tuple[float, float] = (-np.inf, np.inf)
    limits: tuple[float, float] | None = None
    dashed: tuple[str, ...] = ()
    seeds: bool = False
    dots: bool = True
    log: str = ""
    colours: Sequence[int] = ()

    def needs(self) -> set[str]:
        """The experiments behind the lines."""
        return _needs(self.data)

    def draw(self, axis: Axes, results: Results) -> None:
        """Draw the lines, then the rules and marks."""
        found = self._lines(results)
        for number, (name, values) in enumerate(found.items()):
            colour = self.colours[number] if self.colours else number
            style: dict[str, Any] = {"ls": "--" if name in self.dashed else "-"} | ({} if self.dots else {"marker": ""})
            if self.seeds:
                thin = values.transpose(self.along, unit_of(values))
                axis.plot(thin[self.along], thin.values, color=COLOURS[colour % len(COLOURS)], lw=0.5, alpha=0.6)
            curve(axis, values, self.along, label=name, colour=colour, bounds=self.bounds, **style)
        for text, value in self.rules.items():
            threshold(axis, value, text)
        for text, value in self.marks.items():
            threshold(axis, value, text, vertical=True)
        first = next(iter(found.values()))
        axis.set_xlabel(self.x or label_of(first, self.along))
        axis.set_ylabel(self.y or label_of(first))
        if self.limits is not None:
            axis.set_ylim(*self.limits)
        for letter, scale, own in (("x", axis.set_xscale, axis.xaxis), ("y", axis.set_yscale, axis.yaxis)):
            if letter in self.log:
                scale("log")
                _write_plainly(own)
        if len(found) > 1:
            axis.legend()

    def _lines(self, results: Results) -> dict[str, xr.DataArray]:
        if isinstance(self.data, Mapping):
            return {name: data.evaluate(results) for name, data in self.data.items()}
        values = self.data.evaluate(results)
        if not self.by:
            return {"mean over seeds": values}
        return {self.label.format(_short(label)): values.sel({self.by: label}) for label in values[self.by].values}


@dataclasses.dataclass(frozen=True)
class Dots:
    """Every seed as a dot, one column per name; `rules` as in `Lines`."""

    title: str
    data: Mapping[str, Expression]
    y: str = ""
    rules: Mapping[str, float] = dataclasses.field(default_factory=dict)
    log: bool = False

    def needs(self) -> set[str]:
        """The experiments behind the dots."""
        return _needs(self.data)

    def draw(self, axis: Axes, results: Results) -> None:
        """Draw the columns beside each other."""
        for place, data in enumerate(self.data.values()):
            values = data.evaluate(results)
            dots(axis, place, np.asarray(values.values, float).ravel(), place)
            axis.set_ylabel(self.y or label_of(values))
        for text, value in self.rules.items():
            threshold(axis, value, text)
        axis.set_xticks(range(len(self.data)), list(self.data))
        if self.log:
            axis.set_yscale("log")


@dataclasses.dataclass(frozen=True)
class Power:
    """Numbers against a size, log-log: a point per seed, the fitted line and the predicted slope through its middle.

    Seeds that never reached the criterion are triangles at the end of the run.
    """

    title: str
    data: Expression
    rule: Scaling
    y: str = "needed"

    def needs(self) -> set[str]:
        """The experiments behind it."""
        return set(self.data.needs)

    def draw(self, axis: Axes, results: Results) -> None:
        """Draw the results."""
        self.show(axis, self.data.evaluate(results))

    def show(self, axis: Axes, data: xr.DataArray) -> None:
        """Draw points, fit and prediction."""
        dim = self.rule.dim
        x = np.asarray(data[dim].values, float)
        limit = float(data.attrs.get("limit", np.nan))
        for seed in range(data.sizes["seed"]):
            times = np.asarray(data.transpose(dim, "seed").values[:, seed], float)
            shown = np.isfinite(times) & (times > 0)
            axis.plot(x[shown], times[shown], "o", ms=3, color=COLOURS[0], alpha=0.5)
            never = np.isinf(times)
            axis.plot(x[never], np.full(int(never.sum()), limit), "^", ms=5, color=COLOURS[1], alpha=0.6)
        if fittable(data):
            self._fit(axis, data, x)
        axis.set_xscale("log")
        reached = np.isfinite(data.values) & (data.values > 0)
        if reached.any() or (np.isinf(data.values).any() and limit > 0):
            axis.set_yscale("log")
            _write_plainly(axis.yaxis)
        else:
            axis.text(0.5, 0.5, "nothing to show", ha="center", transform=axis.transAxes)
        ticks = x[:: -(-len(x) // MOST_TICKS)]
        axis.set_xticks(ticks, [f"{value:.0f}" if value >= 1000 else f"{value:.3g}" for value in ticks])
        axis.set_xticks([], minor=True)
        axis.set_xlabel(self.rule.symbol)
        axis.set_ylabel(self.y)

    def _fit(self, axis: Axes, data: xr.DataArray, x: np.ndarray) -> None:
        fit = fit_exponent(data, self.rule.dim)
        line, middle = np.geomspace(x.min(), x.max(), 20), float(np.exp(np.mean(np.log(x))))
        height = fit.constant * middle**fit.exponent
        words = f"measured {fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}]"
        axis.plot(line, fit.constant * line**fit.exponent, color=COLOURS[0], lw=1.4, label=words)
        predicted = height * (line / middle) ** self.rule.exponent
        sign = {"upper": "at most ", "lower": "at least ", "both": ""}[self.rule.side]
        axis.plot(line, predicted, color="#333333", ls="--", lw=1.0, label=f"predicted {sign}{self.rule.exponent:.3g}")
        axis.legend()


@dataclasses.dataclass(frozen=True)
class Custom:
    """A panel that a function draws: `paint(axis, results)`."""

    title: str
    experiments: tuple[str, ...]
    paint: Callable[[Axes, Results], None]

    def needs(self) -> set[str]:
        """The experiments that it shows."""
        return set(self.experiments)

    def draw(self, axis: Axes, results: Results) -> None:
        """Draw it."""
        self.paint(axis, results)


class _Plain(LogFormatter):
    """The labels of a logarithmic axis as plain numbers, not as powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def _write_plainly(axis: Axis) -> None:
    axis.set_major_formatter(_Plain(minor_thresholds=(1.5, 0.4)))
    axis.set_minor_formatter(_Plain(minor_thresholds=(1.5, 0.4)))


def dots(axis: Axes, place: float, values: np.ndarray, colour: int = 0) -> None:
    """Seeds as dots side by side."""
    spread = place + np.linspace(-0.15, 0.15, len(values)) if len(values) > 1 else np.array([place])
    axis.plot(spread, values, "o", ms=4, color=COLOURS[colour % len(COLOURS)], ls="none")


def statement_figure(statement: Statement, results: Results, control: Results | None = None) -> Figure:
    """The default figure: every part of a statement with its rule. It shows seeds beside untrained models in every
    reading of the part, or numbers against a size, with a panel per reading.
    """
    several = len(statement.readings) > 1
    shown: list[tuple[Part, tuple[Reading, ...]]] = []
    for part in statement.parts:
        asking = tuple(reading for reading in statement.readings if part in statement.asked(reading))
        alone = isinstance(part.rule, Scaling)
        shown += [(part, (reading,)) for reading in asking] if alone else [(part, asking)] * bool(asking)
    names = [f"{part.name}, {asking[0].name}" if several and len(asking) == 1 else part.name for part, asking in shown]
    titles = tuple("\n".join(textwrap.wrap(name, TITLE)) for name in names)
    figure, axes = panels(len(shown), titles, width=3.8, columns=MOST_COLUMNS)
    sides = {"trained": results} | ({} if control is None else {"untrained": control})
    for axis, (part, asking) in zip(axes, shown, strict=True):
        found = {
            (reading.name, word): evaluated(statement, part.name, part.statistic, reading, side)
            for reading in asking
            for word, side in sides.items()
        }
        if isinstance(part.rule, Scaling):
            Power(part.name, part.statistic, part.rule).show(axis, found[asking[0].name, "trained"])
        else:
            _seeds(axis, part, found)
    return figure


def _seeds(axis: Axes, part: Part, found: Mapping[tuple[str, str], xr.DataArray]) -> None:
    shown: list[float] = []
    for place, ((_, word), values) in enumerate(found.items()):
        numbers = np.asarray(values.values, float).ravel()
        dots(axis, place, np.where(np.isfinite(numbers), numbers, np.nan), int(word != "trained"))
        shown += numbers[np.isfinite(numbers)].tolist()
    ends = [end for end in (part.rule.low, part.rule.high) if np.isfinite(end)]
    low, high = min([*shown, *ends], default=0.0), max([*shown, *ends], default=1.0)
    margin = 0.08 * (high - low) or 0.1
    axis.set_ylim(low - margin, high + margin)
    axis.axhspan(
        max(part.rule.low, low - margin), min(part.rule.high, high + margin), color=COLOURS[2], alpha=0.12, lw=0
    )
    for end in ends:
        threshold(axis, end, f"{end:.3g}")
    several = len({name for name, _ in found}) > 1
    labels = [f"{word}\n{name or 'as stated'}" if several else word for name, word in found]
    axis.set_xticks(range(len(found)), labels, rotation=30 if len(found) > MOST_FLAT else 0)
    axis.set_xlim(-0.6, len(found) - 0.4)
    axis.set_ylabel(label_of(next(iter(found.values()))) or "statistic")


def _needs(data: Data) -> set[str]:
    several = data.values() if isinstance(data, Mapping) else (data,)
    return {name for expression in several for name in expression.needs}


def _short(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float | int | np.number) else str(label)

"""The mechanism explorer: what happens inside a trained model on one prompt, along training.

Charts are Vega-Lite, written with Altair. The page holds the library once, and every explorer's numbers as flat lists;
its script passes the chosen part to the charts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import vl_convert
from markupsafe import Markup

from iclab.authoring.exploration import Ablation, Exploration, Panel
from iclab.drawing import COLOURS
from iclab.report.formats import as_script

HEIGHT = 170
SERIES = [f"var(--figure-series-{number})" for number in range(1, len(COLOURS) + 1)]
CONFIG = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--figure-soft)", "titleColor": "var(--figure-soft)", "gridColor": "var(--figure-grid)",
        "domainColor": "var(--figure-ink)", "tickColor": "var(--figure-ink)", "titleFontWeight": "normal",
    "labelAngle": 0,
    },
    "legend": {"labelColor": "var(--figure-ink)", "orient": "top", "title": None, "labelLimit": 400, "columns": 2},
    "title": {"color": "var(--figure-ink)", "anchor": "start", "fontSize": 13},
}  # fmt: skip


@functools.cache
def library() -> Markup:
    """Vega, Vega-Lite and vega-embed as one script, to be put into a page once."""
    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub asks for a snippet
    return Markup("(() => {" + re.sub(r"</(script)", r"<\\/\1", bundle, flags=re.IGNORECASE) + "})();")


def content(shown: Exploration) -> Markup:
    """An explorer's numbers and charts as JSON that is safe inside a script element."""
    data = {
        "steps": list(shown.steps),
        "members": list(shown.members),
        "said": _texts(shown.said),
        "shape": list(shown.said.shape),
        "panels": [_panel(panel) for panel in shown.panels],
        "ablations": [_ablation(one) for one in shown.ablations],
        "lines": {
            "values": {name: _numbers(values) for name, values in shown.lines.items()},
            "chart": _line_chart(shown),
        },
    }
    return as_script(data)


def _ablation(one: Ablation) -> dict[str, Any]:
    """What changes if something is removed."""
    return {
        "said": _texts(one.said),
        "lines": {name: _numbers(values) for name, values in one.lines.items()},
        "panels": {
            str(number): _numbers(change) if isinstance(change, np.ndarray) else change
            for number, change in one.panels.items()
        },
    }


def _finite(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([values[np.isfinite(values)].ravel() for values in arrays])


def _panel(panel: Panel) -> dict[str, Any]:
    groups = [group for group in panel.order if group in panel.groups]
    return {
        "values": _numbers(panel.values),
        "items": panel.values.shape[-1],
        "groups": ["", *groups],
        "group": [["", *groups].index(str(group)) for group in panel.groups.ravel()],
        "label": _texts(panel.labels),
        "chart": _bar_chart(panel, groups, _finite([panel.values])),
    }


def _bar_chart(panel: Panel, groups: list[str], finite: np.ndarray) -> dict[str, Any]:
    """Bars over items, each with its label below. The scale is fixed over the whole training, so that growth shows."""
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    base = alt.Chart(alt.NamedData(name="items"), title=panel.title, width="container", height=HEIGHT)
    bars = base.mark_bar().encode(
        x=alt.X("item:O", title=panel.items, axis=alt.Axis(labelExpr="split(datum.label, '|')[1]", labelOverlap=True)),
        y=alt.Y("value:Q", title=panel.axis, scale=alt.Scale(domain=[min(0.0, low), max(0.0, high) or 1.0])),
        color=alt.Color("group:N", scale=alt.Scale(domain=groups, range=SERIES[: len(groups)])),
        tooltip=[
            alt.Tooltip("name:N", title=panel.items),
            "group:N",
            alt.Tooltip("value:Q", title=panel.axis, format=".3g"),
        ],
    )
    return _spec(bars)


def _line_chart(shown: Exploration) -> dict[str, Any]:
    """The numbers along training, with a mark at the current step."""
    names = list(shown.lines)
    every = _finite([*shown.lines.values(), *(values for one in shown.ablations for values in one.lines.values())])
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    x = alt.X("step:Q", title="training step", scale=alt.Scale(domain=[shown.steps[0], shown.steps[-1]], nice=False))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[min(low, 0.0), max(high, 0.0) or 1.0]))
    colour = alt.Color(
        "name:N", scale=alt.Scale(domain=names, range=SERIES[: len(names)]), legend=alt.Legend(columns=1)
    )
    along = alt.Chart(alt.NamedData(name="along")).mark_line().encode(x=x, y=y, color=colour)
    now = alt.Chart(alt.NamedData(name="now"))
    rule = now.mark_rule(strokeDash=[4, 3], color="var(--figure-soft)").encode(x=x)
    dots = now.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, y=y, color=colour, tooltip=["name:N", "step:Q", alt.Tooltip("value:Q", format=".3g")]
    )
    return _spec(alt.layer(along, rule, dots).properties(title="Along training", width="container", height=HEIGHT))


def _spec(chart: Any) -> dict[str, Any]:
    """The chart as Vega-Lite, with the names of its data but no data."""
    spec = chart.to_dict(validate=False)
    spec["config"] = CONFIG
    return dict(spec)


def _numbers(values: np.ndarray) -> list[float | None]:
    """A flat list with three digits; numbers that are not finite become null."""
    return [float(f"{value:.3g}") if np.isfinite(value) else None for value in np.asarray(values, float).ravel()]


def _texts(values: np.ndarray) -> dict[str, Any]:
    """Repeated texts, as a list of distinct ones and places in it."""
    flat = [str(value) for value in values.ravel()]
    different = {text: place for place, text in enumerate(dict.fromkeys(flat))}
    return {"texts": list(different), "at": [different[text] for text in flat]}

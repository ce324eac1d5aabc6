"""The figures of mamba-outliers, in the paper's layout, and tables of what the unstated choices decide."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import UNIT, Custom, Expression, Lines, Results, Table, apply, law_table, measured, picture
from iclab.drawing import COLOURS, boundary_map
from iclab.papers.mamba_outliers.laws import LAWS, examples_needed, largest_borne
from iclab.papers.mamba_outliers.settings import KINDS, MAGNITUDES, ONE_LAYER, STACKS, TASK_SETS, TASKS, Settings
from iclab.papers.mamba_outliers.statements import RULE_WORDS, recorded
from iclab.statistics import band, interval

ALPHA = {"x": "fraction of outliers α", "rules": {"0.01": 0.01}, "bounds": UNIT, "limits": (-0.02, 1.02)}


def _errors(variable: str = "error", **at: object) -> dict[str, Expression]:
    return {name: measured("robustness", variable).sel(kind=kind, **at) for kind, name in KINDS.items()}


def fig1(results: Results, s: Settings) -> Figure:
    """Error of one-layer models against the fraction of outliers, trained on 18 tasks and on the bare cycle of 6."""
    shown = []
    for tasks, (letter, rule) in itertools.product(TASK_SETS, zip("ABC", RULE_WORDS, strict=True)):
        data: dict[str, Expression] = {}
        for size in MAGNITUDES:
            found = _errors(setting=tasks, rule=rule, magnitude=size)
            data |= {f"{name}, κ_a' = {size:g}": error for name, error in found.items()}
        dashed = tuple(data)[:2]
        found = _errors("exact_error", setting=tasks, rule=rule)
        data |= {f"{name}, κ_a' = 10, exact number": error for name, error in found.items()}
        title = f"1({letter}) {RULE_WORDS[rule]}, {tasks}"
        shown.append(Lines(title, data, "fraction", dashed=dashed, colours=(0, 1, 0, 1, 5, 4), **ALPHA))
    return picture(results, *shown, width=3.8, columns=3)


def _attention(results: Results, number: int, names: Sequence[str], layers: Sequence[int]) -> Figure:
    shown = []
    for name in names:
        kept = measured("attention", "recorded").sel(setting=name)
        data = {
            f"{group} pattern, layer {layer + 1}": apply(
                recorded, measured("attention", f"score_{group}").sel(setting=name).isel(layer=layer), kept
            )
            for layer in layers
            for group in ("same", "other")
        }
        look = {"dashed": tuple(data)[2:], "colours": (0, 1) * len(layers), "dots": False}
        shown.append(Lines(f"{number}: {name}", data, "step", y="sum of attention scores", **look))
    return picture(results, *shown, width=3.2)


def fig2(results: Results, s: Settings) -> Figure:
    """First-layer attention scores summed over examples with the query's pattern and over the others, along training."""
    return _attention(results, 2, (ONE_LAYER, *STACKS.values()), (0,))


def fig4(results: Results, s: Settings) -> Figure:
    """The same sums in the second and third layer of the stacks."""
    return _attention(results, 4, tuple(STACKS.values()), range(1, s.stack_depth))


def _gates(results: Results, number: int, names: Sequence[str], layers: Sequence[int]) -> Figure:
    def bars(name: str, layer: int, size: float) -> Custom:
        def paint(axis: Axes, results: Results) -> None:
            for shift, group, colour in ((-0.2, "clean", COLOURS[2]), (0.2, "outlier", COLOURS[1])):
                part = results["gates"][f"{group}_gate"].sel(setting=name, magnitude=size).isel(layer=layer)
                mean, low, high = band(part.transpose(..., "distance"), UNIT)
                spread, place = np.maximum(0, np.stack([mean - low, high - mean])), part["distance"].values + shift
                axis.bar(place, mean, width=0.4, color=colour, label=group, yerr=spread, error_kw={"lw": 0.6})
            axis.set(yscale="log", ylim=(1e-7, 2), xlabel="distance to the query", ylabel="gate")
            axis.legend()

        title = f"{number}: {name.removeprefix('Mamba, ')}, layer {layer + 1}, κ_a' = {size:g}"
        return Custom(title, ("gates",), paint)

    shown = [bars(*cell) for cell in itertools.product(names, layers, MAGNITUDES)]
    return picture(results, *shown, width=3.6, height=2.6, columns=4)


def fig3(results: Results, s: Settings) -> Figure:
    """First-layer gates of outlier and clean examples against their distance to the query (α = 0.3, logarithmic)."""
    return _gates(results, 3, (ONE_LAYER, *list(STACKS.values())[:3]), (0,))


def fig5(results: Results, s: Settings) -> Figure:
    """The same gates in the second and third layer."""
    return _gates(results, 5, list(STACKS.values())[:3], range(1, s.stack_depth))


def table2(results: Results, s: Settings) -> Figure:
    """Accuracy with half of the examples outliers, placed farthest from the query, closest to it, or at random."""

    def dots(rule: str, size: float) -> Custom:
        def paint(axis: Axes, results: Results) -> None:
            data = results["placements"]["accuracy"].sel(rule=rule, magnitude=size)
            for number, name in enumerate(STACKS.values()):
                mean, low, high = band(data.sel(setting=name).transpose(..., "placement"), UNIT)
                spread, place = np.maximum(0, np.stack([mean - low, high - mean])), np.arange(3) + 0.12 * number - 0.18
                axis.errorbar(place, mean, yerr=spread, fmt="o", ms=4, color=COLOURS[number], label=name)
            axis.set_xticks(range(3), [str(place) for place in data["placement"].values], rotation=20)
            axis.set(ylim=(-0.02, 1.05), ylabel="accuracy")
            axis.legend(fontsize=7)

        return Custom(f"{RULE_WORDS[rule]}, κ_a' = {size:g}", ("placements",), paint)

    return picture(results, *(dots(*cell) for cell in itertools.product(RULE_WORDS, MAGNITUDES)), width=2.6)


def gpt2_outliers(results: Results, s: Settings) -> Figure:
    """Error against the fraction of outliers: one-layer models, and GPT-2 on all tasks and on those it saw."""
    shown = []
    for size, rule in itertools.product(MAGNITUDES, RULE_WORDS):
        deep = measured("gpt2-outliers", "error").sel(rule=rule, magnitude=size)
        own = {f"GPT-2, {tasks} tasks": deep.sel(tasks=tasks) for tasks in ("all", "seen")}
        data = _errors(setting=TASKS, rule=rule, magnitude=size) | own
        shown.append(Lines(f"{RULE_WORDS[rule]}, κ_a' = {size:g}", data, "fraction", seeds=True, **ALPHA))
    return picture(results, *shown, height=2.8, columns=3)


def rates(results: Results, s: Settings) -> Figure:
    """Iterations that Mamba and the linear Transformer need, against 1 - p_a and against l_tr, with power laws."""
    shown = [law.panel(f"Thm {n}: {KINDS[kind]}") for n, kind in ((1, "mamba"), (3, "linear")) for law in LAWS[kind].values()]
    return picture(results, *shown, width=3.4)


def phase(results: Results, s: Settings) -> Figure:
    """Errors of both models over the fraction of outliers and the length of test prompts, with the theorems' boundaries."""
    lengths, fractions = np.linspace(1, 70, 200), np.linspace(0.0, 0.49, 200)
    borne = np.array([largest_borne(s, float(length)) for length in lengths])
    needed = np.array([examples_needed(s, float(fraction)) for fraction in fractions])

    def panel(title: str, kind: str, boundary: tuple[np.ndarray, np.ndarray], label: str) -> Custom:
        def paint(axis: Axes, results: Results) -> None:
            error = results["phase"]["error"].sel(kind=kind)
            boundary_map(axis, error, "fraction", "length", "α (outliers)", "l_ts", boundary, label)

        return Custom(title, ("phase",), paint)

    first = panel("Thm 2: Mamba", "mamba", (borne, lengths), "α = p_a l_tr / l_ts")
    second = panel("Thm 4: linear Transformer", "linear", (fractions, needed), "(17): l_ts = (1/2−α)⁻² α log M1")
    return picture(results, first, second, width=4.8, height=3.6)


def _cell(values: np.ndarray, bounds: tuple[float, float] = UNIT, digits: str = ".3f") -> str:
    found = interval(values, bounds)
    return f"{found.measured:{digits}} [{found.low:{digits}}, {found.high:{digits}}]"


def choices(results: Results, s: Settings) -> Table:
    """0-1 errors of the one-layer models by everything the paper leaves open."""
    data = results["choices"]["error"]
    columns, rows = ("kind", "fraction"), ("rule", "setting", "magnitude", "counting", "size")
    header = [f"{KINDS[kind]}, α = {alpha:g}" for kind, alpha in itertools.product(*(data[dim].values for dim in columns))]
    body = [
        (*(str(label) if isinstance(label, str) else f"{label:g}" for label in labels),
         *map(_cell, data.sel(dict(zip(rows, labels, strict=True))).stack(cell=columns).transpose("cell", ...).values))
        for labels in itertools.product(*(data[dim].values for dim in rows))
    ]  # fmt: skip
    title = "Which choices matter for the errors under outliers (Theorems 2 and 4, Figure 1)"
    return Table(title, ("labels", "training tasks", "κ_a'", "counting", "K'", *header), tuple(body))


def stacking(results: Results, s: Settings) -> Table:
    """What the stacking decides: training loss, attention gap and gates of every stack, at the end of training."""
    rows = []
    for name in STACKS.values():
        data = results["attention"].sel(setting=name)
        data = data.isel(step=int(np.flatnonzero(data["recorded"].values)[-1]))
        failed, gap = data["training_error"].values, (data["score_same"] - data["score_other"]).isel(layer=0).values
        cells = ["no gate"] * len(MAGNITUDES)
        if "gates" in results and "Mamba" in name:
            gates = results["gates"].sel(setting=name).isel(layer=0).mean("distance")
            ratio = (gates["outlier_gate"] / gates["clean_gate"]).transpose("magnitude", "seed").values
            cells = [_cell(row, (-np.inf, np.inf), ".3g") for row in ratio]
        gap_words = _cell(gap, (-np.inf, np.inf), ".3g")
        rows.append((name, str(int(np.isnan(failed).sum())), _cell(failed), gap_words, *cells))
    ratios = (f"layer-1 gate, outlier / clean, κ_a' = {size:g}" for size in MAGNITUDES)
    header = ("stack", "diverged seeds", "training error", "layer-1 attention gap", *ratios)
    return Table("Which stacking matters (Figures 2 to 5)", header, tuple(rows))


def placements(results: Results, s: Settings) -> Table:
    """Table 2 for every stack, label rule and magnitude: accuracy by where the outliers sit."""
    data = results["placements"]["accuracy"]
    rows = [
        (name, rule, f"{size:g}", *(_cell(one.sel(placement=place).values) for place in ("farthest", "closest", "random")))
        for name, rule, size in itertools.product(STACKS.values(), RULE_WORDS, MAGNITUDES)
        for one in (data.sel(setting=name, rule=rule, magnitude=size),)
    ]
    header = ("stack of three layers", "labels of outliers", "κ_a'", "farthest (FQ)", "closest (CQ)", "random (R)")
    return Table("Table 2 under every choice: accuracy at α = 0.5", header, tuple(rows))


def rates_table(results: Results, s: Settings) -> Table:
    """All laws by all criteria."""
    named = {f"Theorem {number}": LAWS[kind] for number, kind in ((1, "mamba"), (3, "linear"))}
    return law_table({f"{name} in {setting}": law for name, own in named.items() for setting, law in own.items()}, results)


figures = {
    "fig1": fig1, "fig2": fig2, "fig3": fig3, "fig4": fig4, "fig5": fig5, "table2": table2, "gpt2-outliers": gpt2_outliers,
    "rates": rates, "phase": phase,
}  # fmt: skip
tables = {"choices": choices, "stacking": stacking, "placements": placements, "rates": rates_table}

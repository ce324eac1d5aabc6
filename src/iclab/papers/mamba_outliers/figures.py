"""The figures of mamba-outliers, in the paper's layout, and tables of what stacking and placement decide."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import UNIT, Custom, Expression, Lines, Results, Table, apply, law_table, measured, picture
from iclab.drawing import COLOURS, boundary_map
from iclab.papers.mamba_outliers.adversary import TOTALS
from iclab.papers.mamba_outliers.laws import LAWS, examples_needed, largest_borne, near_half
from iclab.papers.mamba_outliers.readings import RULE_WORDS, gate, recorded
from iclab.papers.mamba_outliers.settings import KINDS, ONE_LAYER, OWN, STACKS, TASK_SETS, TASKS, Settings, kinds
from iclab.papers.mamba_outliers.shifts import MANY, inside_length
from iclab.statistics import band, interval

ALPHA: dict[str, Any] = {"x": "outliers α", "rules": {"0.01": 0.01}, "bounds": UNIT, "limits": (-0.02, 1.02)}
MAMBAS = tuple(name for name in STACKS.values() if "Mamba" in name)


def _errors(s: Settings, words: str = "{}", variable: str = "error", **at: object) -> dict[str, Expression]:
    named = kinds(s).items()
    return {words.format(name): measured("robustness", variable).sel(kind=kind, **at) for kind, name in named}


def fig1(results: Results, s: Settings) -> Figure:
    """Error of one-layer models against the fraction of outliers, trained on 18 tasks and on the bare cycle of 6."""
    shown = []
    for tasks, (letter, rule) in itertools.product(TASK_SETS, zip("ABC", RULE_WORDS, strict=True)):
        at = {"setting": tasks, "rule": rule}
        first, last = s.magnitudes[0], s.magnitudes[-1]
        small, large = (_errors(s, f"{{}}, κ_a' = {size:g}", magnitude=size, **at) for size in (first, last))
        data = small | large | _errors(s, f"{{}}, κ_a' = {last:g}, exact number", "exact_error", **at)
        title, look = (
            f"1({letter}) {RULE_WORDS[rule]}, {tasks}",
            {"dashed": tuple(small), "colours": (0, 1, 0, 1, 5, 4)},
        )
        shown.append(Lines(title, data, "fraction", **ALPHA | look))
    others = {"robustness-seen": f"{kinds(s)[OWN]}, seen outliers", "robustness-brief": "linear, T_T steps"}
    for letter, rule in zip("ABC", RULE_WORDS, strict=True):
        data = {
            words: measured(name, "error").sel(kind=kind, rule=rule).isel(setting=0, magnitude=0)
            for (name, words), kind in zip(others.items(), KINDS, strict=True)
        }
        look = {"colours": (2, 3)}  # other lines than those of the panels above, which a legend may name together
        shown.append(Lines(f"1({letter}) {RULE_WORDS[rule]}, other readings", data, "fraction", **ALPHA | look))
    return picture(results, *shown, width=3.8, columns=3)


def _attention(results: Results, number: int, names: Sequence[str], layers: Sequence[int]) -> Figure:
    shown = []
    for name in names:
        kept = measured("attention", "recorded").sel(setting=name)
        sums = {group: measured("attention", f"score_{group}").sel(setting=name) for group in ("same", "other")}
        data = {
            f"{group} pattern, layer {layer + 1}": apply(recorded, scores.isel(layer=layer), kept)
            for layer in layers
            for group, scores in sums.items()
        }
        look: dict[str, Any] = {"dashed": tuple(data)[2:], "colours": (0, 1) * len(layers), "dots": False}
        shown.append(Lines(f"{number}: {name}", data, "step", y="sum of attention scores", **look))
    return picture(results, *shown, width=3.2)


def fig2(results: Results, s: Settings) -> Figure:
    """First-layer attention scores, summed over examples with the query's pattern and over others, along training."""
    return _attention(results, 2, (ONE_LAYER, *STACKS.values()), (0,))


def fig4(results: Results, s: Settings) -> Figure:
    """The same sums in the second and third layer of the stacks."""
    return _attention(results, 4, tuple(STACKS.values()), range(1, s.stack_depth))


def _gates(results: Results, s: Settings, number: int, names: Sequence[str], layers: Sequence[int]) -> Figure:
    shown = []
    look: dict[str, Any] = {"log": "y", "limits": (1e-7, 2), "colours": (2, 1), "bounds": UNIT}
    for name, layer, size in itertools.product(names, layers, s.magnitudes):
        title = f"{number}: {name.removeprefix('Mamba, ')}, layer {layer + 1}, κ_a' = {size:g}"
        data = {group: gate(group, layer).sel(setting=name, magnitude=size) for group in ("clean", "outlier")}
        shown.append(Lines(title, data, "distance", x="distance to the query", y="gate", **look))
    return picture(results, *shown, width=3.6, height=2.6, columns=4)


def fig3(results: Results, s: Settings) -> Figure:
    """First-layer gates of outlier and clean examples against their distance to the query (α = 0.3, logarithmic)."""
    return _gates(results, s, 3, (ONE_LAYER, *MAMBAS), (0,))


def fig5(results: Results, s: Settings) -> Figure:
    """The same gates in the second and third layer."""
    return _gates(results, s, 5, MAMBAS, range(1, s.stack_depth))


def table2(results: Results, s: Settings) -> Figure:
    """Accuracy with half of the examples outliers, placed farthest from the query, closest to it, or at random."""

    def points(rule: str, size: float) -> Custom:
        def paint(axis: Axes, results: Results) -> None:
            data = results["placements"]["accuracy"].sel(rule=rule, magnitude=size)
            for number, name in enumerate(STACKS.values()):
                mean, low, high = band(data.sel(setting=name).transpose(..., "placement"), UNIT)
                place, reach = np.arange(3) + 0.12 * number - 0.18, np.maximum(0, np.stack([mean - low, high - mean]))
                axis.errorbar(place, mean, yerr=reach, fmt="o", ms=4, color=COLOURS[number], label=name)
            axis.set_xticks(range(3), [str(place) for place in data["placement"].values], rotation=20)
            axis.set(ylim=(-0.02, 1.05), ylabel="accuracy")
            axis.legend()

        return Custom(f"{RULE_WORDS[rule]}, κ_a' = {size:g}", ("placements",), paint)

    return picture(results, *(points(*cell) for cell in itertools.product(RULE_WORDS, s.magnitudes)), width=2.6)


def gpt2_outliers(results: Results, s: Settings) -> Figure:
    """Error against the fraction of outliers: one-layer models, and GPT-2 on all tasks and on those it saw."""
    shown = []
    for size, rule in itertools.product(s.magnitudes, RULE_WORDS):
        deep = measured("gpt2-outliers", "error").sel(rule=rule, magnitude=size)
        own = {f"GPT-2, {tasks} tasks": deep.sel(tasks=tasks) for tasks in ("all", "seen")}
        data = _errors(s, setting=TASKS, rule=rule, magnitude=size) | own
        shown.append(Lines(f"{RULE_WORDS[rule]}, κ_a' = {size:g}", data, "fraction", seeds=True, **ALPHA))
    return picture(results, *shown, height=2.8, columns=3)


def rates(results: Results, s: Settings) -> Figure:
    """Iterations that Mamba and the linear Transformer need, against p_a, l_tr, η, β, M1 and κ_a, with power laws."""
    titles = {"mamba": "Thm 1: Mamba", "linear": "Thm 3: linear Transformer"}
    shown = [law.panel(f"{title}, in {name}") for kind, title in titles.items() for name, law in LAWS[kind].items()]
    return picture(results, *shown, width=3.4, columns=6)


def near_half_figure(results: Results, s: Settings) -> Figure:
    """Errors over the length of prompts at α close to 1/2, and the examples that the linear Transformer needs."""
    errors = (
        Lines(f"{name}, labels flipped", measured("majority", "error").sel(kind=kind), "length", by="fraction",
              label="α = {}", log="x", bounds=UNIT, limits=(-0.02, 0.6))
        for kind, name in kinds(s).items()
    )  # fmt: skip
    return picture(results, *errors, near_half(s).panel("(17): linear Transformer"), width=3.8)


def growth(results: Results, s: Settings) -> Figure:
    """Lemmas 3 to 6: what weights gain in the first steps; logits at several M1; how far back gates reach."""
    cycle: dict[str, Any] = {"setting": "6 tasks"}
    both: dict[str, Any] = {"log": "xy", "x": "t"}
    first = {
        "(26) to itself": measured("early", "same").sel(**cycle),
        "(29) of a task, lost": -measured("early", "partner").sel(**cycle),
        "(28) of no task": measured("early", "stranger_size").sel(**cycle),
        "(27) outlier": measured("early", "outlier").sel(**cycle),
        "(30) irrelevant": measured("early", "irrelevant").sel(**cycle),
    }
    names = {"(36) -wᵀv*": "gate_outlier", "(37) -wᵀμ_j": "gate_relevant"}
    turned = {words: -measured("early", name).sel(setting=TASKS) for words, name in names.items()}
    logits = {"(40) outlier": "outlier_logit", "(41) clean": "gate_relevant", "(171) wᵀv*": "gate_outlier"}
    ends = {words: measured("gate-sizes", name) for words, name in logits.items()}
    reached = measured("reach", "reach").sel(setting=TASKS)
    shown = (
        Lines("Lemma 3: gained by W_B and W_C", first, "step", y="gained", **both),
        Lines("Lemma 4: lost by wᵀp", turned, "step", y="lost", **both),
        Lines("Lemma 5: gained by wᵀp at 16 T_M", ends, "patterns", x="M1", y="gained"),
        Lines("(20): gate right before the query", measured("gate-sizes", "nearest_gate"), "patterns", x="M1",
              y="gate of an outlier", limits=(0, 0.25)),
        Lines("Lemma 6: reach of gates", reached, "length", x="l", y="Σ G_i (l-i+1)", limits=(0, 2)),
    )  # fmt: skip
    return picture(_in_reading(results, "early"), *shown, width=3.4)


def dial(results: Results, s: Settings) -> Figure:
    """Mamba's error with many outliers: by their size, and by κ_a' Σλ / κ_a for mixtures of several sums."""
    look: dict[str, Any] = {"bounds": UNIT, "limits": (-0.02, 1.02), "rules": {"0.05": 0.05}}
    shown = (
        Lines(f"α = {MANY:g}, l_ts = {s.test_length}", measured("dial", "error"), "magnitude", by="outliers", x="κ_a'",
              **look),
        Lines(f"α = {MANY:g}, l_ts = {inside_length(s)}", measured("sums", "error"), "reach", by="total",
              label="Σλ = {}", x="κ_a' Σλ / κ_a", **look),
    )  # fmt: skip
    return picture(results, *shown)


def clipped(results: Results, s: Settings) -> Figure:
    """Mamba's error against the fraction of outliers, as trained and with its negative scores set to 0."""
    data = {words: measured("clipped", name) for words, name in {"as trained": "error", "clipped": "clipped"}.items()}
    return picture(results, Lines(f"1(A), κ_a' = {s.magnitudes[-1]:g}, exact number", data, "fraction", **ALPHA))


def outlier_map(results: Results, s: Settings) -> Figure:
    """Mamba's error with many outliers over their sum and size, and the line κ_a' Σλ = κ_a."""
    totals = np.array([total for total in TOTALS if total > 0])

    def paint(axis: Axes, results: Results) -> None:
        line = totals, s.outlier_magnitude / totals
        error = results["outlier-map"]["error"]
        boundary_map(axis, error, "total", "magnitude", "Σλ", "κ_a'", line, "κ_a' Σλ = κ_a", most=1.0, even=True)

    title = f"{kinds(s)[OWN]}, α = {MANY:g}, l_ts = {inside_length(s)}"
    return picture(results, Custom(title, ("outlier-map",), paint), width=4.8, height=3.6)


def adaptive(results: Results, s: Settings) -> Figure:
    """Errors against the fraction of outliers, with the mixture that is worst for each model; the chance that the
    example right before the query is an outlier is α.
    """
    error = measured("adaptive", "error")
    shown = [
        Lines(f"the worst mixture, κ_a' = {size:g}",
              {name: error.sel(kind=kind, magnitude=size) for kind, name in kinds(s).items()}, "fraction",
              **ALPHA | {"rules": {}})
        for size in s.magnitudes
    ]  # fmt: skip
    return picture(results, *shown)


def _in_reading(results: Results, name: str) -> Results:
    """The results with those of a reading's own settings in the place of the others."""
    own = {key.removesuffix(f"@{name}"): data for key, data in results.items() if key.endswith(f"@{name}")}
    return {**results, **own}


def phase(results: Results, s: Settings) -> Figure:
    """Errors of both models over the fraction of outliers and the length of test prompts, with theorems' boundaries."""
    lengths, fractions = np.linspace(1, 70, 200), np.linspace(0.0, 0.49, 200)
    borne = np.array([largest_borne(s, float(length)) for length in lengths])
    needed = np.array([examples_needed(s, float(fraction)) for fraction in fractions])

    def panel(title: str, kind: str, size: float, boundary: tuple[np.ndarray, np.ndarray], label: str) -> Custom:
        def paint(axis: Axes, results: Results) -> None:
            error = results["phase"]["error"].sel(kind=kind, magnitude=size)
            boundary_map(axis, error, "fraction", "length", "α (outliers)", "l_ts", boundary, label)

        return Custom(f"{title}, κ_a' = {size:g}", ("phase",), paint)

    first = (
        panel(f"Thm 2: {kinds(s)[OWN]}", OWN, size, (borne, lengths), "α = p_a l_tr / l_ts") for size in s.magnitudes
    )
    words = "(17): l_ts = (1/2−α)⁻² α log M1"
    second = panel("Thm 4: linear Transformer", "linear", s.magnitudes[-1], (fractions, needed), words)
    return picture(results, *first, second, width=4.8, height=3.6)


def _cell(values: xr.DataArray) -> str:
    found = interval(values.values, UNIT)
    return f"{found.measured:.3f} [{found.low:.3f}, {found.high:.3f}]"


def stacking(results: Results, s: Settings) -> Table:
    """Which of the stacks learn: diverged seeds, and the training error at the end."""
    rows = []
    for name in STACKS.values():
        data = results["attention"].sel(setting=name)
        error = recorded(data["training_error"], data["recorded"]).isel(step=-1)
        rows.append((name, str(int(error.isnull().sum())), _cell(error)))
    return Table("Which stacks learn (Figures 2 to 5)", ("stack", "diverged seeds", "training error"), tuple(rows))


def placements(results: Results, s: Settings) -> Table:
    """Table 2 for every stack, label rule and magnitude: accuracy by where the outliers sit."""
    places = {"farthest": "farthest (FQ)", "closest": "closest (CQ)", "random": "random (R)"}
    rows = []
    for name, rule, size in itertools.product(STACKS.values(), RULE_WORDS, s.magnitudes):
        one = results["placements"]["accuracy"].sel(setting=name, rule=rule, magnitude=size)
        rows.append((name, rule, f"{size:g}", *(_cell(one.sel(placement=place)) for place in places)))
    header = ("stack of three layers", "labels of outliers", "κ_a'", *places.values())
    return Table("Table 2 under every choice: accuracy at α = 0.5", header, tuple(rows))


def rates_table(results: Results, s: Settings) -> Table:
    """All laws by all criteria."""
    laws = {f"{KINDS[kind]}, {name}": law for kind in KINDS for name, law in LAWS[kind].items()}
    return law_table(laws | {"linear Transformer, (17)": near_half(s)}, results)


named = (fig1, fig2, fig3, fig4, fig5, table2, rates, phase, growth, dial, clipped, adaptive)
figures = {figure.__name__: figure for figure in named} | {
    "gpt2-outliers": gpt2_outliers,
    "near-half": near_half_figure,
    "outlier-map": outlier_map,
}
tables = {"stacking": stacking, "placements": placements, "rates": rates_table}

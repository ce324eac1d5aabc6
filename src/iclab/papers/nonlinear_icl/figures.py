"""The figures of nonlinear-icl, in the paper's layout."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import Custom, Dots, Law, Lines, Results, Table, curve, law_table, measured, picture, threshold
from iclab.authoring.pictures import Data
from iclab.drawing import COLOURS, boundary_map, heads_by_layer
from iclab.papers.nonlinear_icl import quantities as of
from iclab.papers.nonlinear_icl.experiments import TASK_PATTERNS
from iclab.papers.nonlinear_icl.laws import LAWS, PHASE, WIDTHS
from iclab.papers.nonlinear_icl.settings import Settings
from iclab.papers.nonlinear_icl.sizes import PARTS
from iclab.papers.nonlinear_icl.statements import DOMAINS, epsilon
from iclab.statements import UNIT

WORDS = {"error": "0-1 error", "hinge": "hinge loss"}
BOUNDS = {"error": UNIT, "hinge": (0.0, np.inf)}
PHASES = {"phase-guaranteed": "(9) error, as assumed", "phase": "(9) error, examples drawn"}
GPT2 = {"fixed": "GPT-2, contexts of one length", "varied": "GPT-2, of several lengths"}
SHARE: dict[str, Any] = {"bounds": UNIT, "limits": (0, 1.02), "dots": False}


def _limits(s: Settings) -> dict[str, dict[str, float]]:
    return {"error": {"0.01": 0.01}, "hinge": {"ε = √(log M1 / B)": epsilon(s)}}


def _seeds(s: Settings, title: str, columns: Mapping[str, tuple[str, dict[str, str]]]) -> list[Dots]:
    """Every seed's loss and error: columns by name, each an experiment and a place in it."""

    def data(name: str) -> dict[str, Any]:
        return {label: measured(experiment, name).sel(**at) for label, (experiment, at) in columns.items()}

    return [Dots(f"{title}: {words}", data(name), rules=_limits(s)[name]) for name, words in WORDS.items()]


def _both(title: str, data: Callable[[str], Data], along: str, by: str = "", **more: Any) -> list[Lines]:
    """Error and loss out of domain beside each other; `own` is what only one of them has."""
    own = more.pop("own", {"error": {}, "hinge": {}})
    look = {name: {"y": words, "bounds": BOUNDS[name]} | own[name] | more for name, words in WORDS.items()}
    return [Lines(f"{title} {WORDS[name]} out of domain", data(name), along, by, **look[name]) for name in WORDS]


def _domains(s: Settings) -> list[Dots]:
    domains = {"all tasks": "all tasks", "unseen": "in", "mixtures": "out"}
    columns = {words: ("generalisation", {"domain": domain}) for words, domain in domains.items()}
    return _seeds(s, "Theorems 3.3, 3.4", columns)


def _phase(name: str, axis: Axes, results: Results) -> None:
    edge = np.geomspace(min(PHASE["fraction"]), 1.0, 50)
    boundary_map(axis, results[name]["error"], "fraction", "length", "α'", "l_ts", (edge, 1 / edge), "l_ts = 1/α'")


def _losses(name: str) -> Lines:
    """The loss against ε: B grows to the left."""
    loss = measured(name, "hinge")
    data = {words: loss.sel(domain=domain) for domain, words in DOMAINS.items()}
    data["ε"] = loss.sel(domain="in") * 0 + loss.coordinate("epsilon")
    return Lines(f"Loss at several B, {name.partition('@')[2]}", data, "epsilon", x="ε = √(log M1 / B)", dashed=("ε",))


def _widths() -> dict[str, Law]:
    """(10) in M1, at the settings of the reading "inside"."""
    return {
        words: dataclasses.replace(law, experiment=f"{law.experiment}@inside", dim=law.over)
        for words, law in WIDTHS.items()
    }


def thm33(results: Results, s: Settings) -> Figure:
    """Theorem 3.3: loss and error of every seed; iterations against α, β, η and M1; errors over α' and l_ts."""
    laws = [LAWS[name].panel(f"(10) in {name}") for name in ("α", "β", "η")]
    laws += [law.panel(f"(10) in M1, {words}") for words, law in _widths().items()]
    maps = [Custom(title, (name,), functools.partial(_phase, name)) for name, title in PHASES.items()]
    return picture(results, *_domains(s), *laws, *maps, width=3.8, columns=3)


def thm34(results: Results, s: Settings) -> Figure:
    """Theorem 3.4: losses in and out of domain against ε, for one and for four cycles of tasks; the loss over S_1."""
    losses = [_losses(name) for name in ("batches@inside", "batches@inside,U=4")]
    runs = {"U = 1": "sums@inside", "U = 4": "sums@inside,U=4"}
    data = {words: measured(name, "hinge") for words, name in runs.items() if name in results}
    sums = [Lines("Loss against S_1", data, "total", x="S₁ = a + b", marks={"S₁ = 1": 1.0})] if data else []
    return picture(results, *losses, *sums, width=3.8)


def rem35(results: Results, s: Settings) -> Figure:
    """Remark 3.5: errors out of domain over α' and l_ts, and the length that is required."""
    maps = [
        Custom(f"{words}{', U = 4' * bool(at)}", (name + at,), functools.partial(_phase, name + at))
        for at in ("", "@U=4")
        for name, words in {"phase-out-guaranteed": "as assumed", "phase-out": "examples drawn"}.items()
    ]
    return picture(results, *maps, LAWS["3.5"].panel("Required, examples drawn"), width=3.8, columns=3)


def prop41(results: Results, s: Settings) -> Figure:
    """Proposition 4.1, Corollary 4.3 and Lemma B.5 over M1: on M1 tasks, and on most tasks."""
    runs = {"M1 tasks": "sizes@inside", "most tasks": "sizes-most@inside,U=4"}
    parts = {"own (17)": "own", "other relevant (18)": "other", "irrelevant, not carried (19)": "idle"}
    parts |= {"irrelevant, carried": "carried"}
    more: dict[str, Any] = {"x": "M1", "log": "y"}
    shown = [
        Lines(f"Queries {words}, {label}",
              {text: measured(name, f"{domain}_query_{part}") for text, part in parts.items()}, "patterns",
              y="component, worst case", **more)
        for domain, words in DOMAINS.items() for label, name in runs.items()
    ]  # fmt: skip
    mass = {f"{label}, {words}": 1 - measured(name, "attention_same").sel(domain=domain)
            for label, name in runs.items() for domain, words in DOMAINS.items()}  # fmt: skip
    names = {"same task (28)": "rival", "other relevant (29)": "stranger", "irrelevant (30)": "noise"}
    added = measured("sizes@inside", "in_query_kept") - s.initial_scale * s.pattern_strength
    ratios = {text: measured("sizes@inside", f"in_query_{part}") / added for text, part in names.items()}
    shown.append(Lines("Attention elsewhere (20)", mass, "patterns", y="attention elsewhere", **more))
    shown.append(Lines("Lemma B.5: over the own, M1 tasks", ratios, "patterns", y="ratio", **more))
    return picture(results, *shown, width=4.0, columns=3)


def lemmab10(results: Results, s: Settings) -> Figure:
    """Lucky neurons: how many there are at the start, and how many of them fire along training."""
    lines = {"lucky for this prompt (59, 60)": measured("lucky", "still")}
    lines["lucky for any prompt (61, 62)"] = measured("lucky", "ever_still")
    return picture(
        results,
        Dots("Lucky at the start, |W_n|/m", {"W_n, U_n": measured("lucky", "lucky_share")}, rules={"1/8": 0.125}),
        Lines("Lucky neurons that fire", lines, "step", bounds=UNIT, rules={"0.95": 0.95}, y="share"),
    )


def fig2ab(results: Results, s: Settings) -> Figure:
    """Norms of queries and keys and their components along the pattern; attention mass. Out of domain."""
    sides = {"query": r"W_Q p_{query}", "key": r"W_K p_i"}
    groups = {"same pattern as the query": "same", "other contexts": "other"}
    shown = []
    for words, name in {"": "training", ", U = 4": "training@U=4"}.items():
        lines = {rf"$\|{letters}\|$": measured(name, f"out_{side}_norm") for side, letters in sides.items()}
        along = {f"${letters}$ along pattern": measured(name, f"out_{side}_along") for side, letters in sides.items()}
        mass = {label: measured(name, f"out_attention_{group}") for label, group in groups.items()}
        shown += [
            Lines(f"2(A) Norms and components{words}", lines | along, "step", y="norm", dashed=tuple(along),
                  dots=False, colours=(0, 1, 0, 1)),
            Lines(f"2(B) Attention mass{words}", mass, "step", y="summed attention", **SHARE),
        ]  # fmt: skip
    return picture(results, *shown, columns=2)


def _neurons(part: str, axis: Axes, results: Results) -> None:
    """Angle against magnitude of a part of a few neurons of the first seed that did not diverge."""
    data = results["training"]
    sound = np.flatnonzero(data["readout_sign"].isel(step=-1).notnull().all("neuron").values)
    data = data.isel(seed=int(sound[0]) if len(sound) else 0)
    sign = data["readout_sign"].isel(step=-1)
    chosen = np.r_[np.flatnonzero(sign > 0)[:5], np.flatnonzero(sign < 0)[: 5 * (part == "label")]]
    for neuron in chosen:
        one = data.isel(neuron=neuron)
        cosine = one[f"{part}_cosine"] * (sign[neuron] if part == "label" else 1)  # against q itself, as in the figure
        angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
        axis.plot(angle, one[f"{part}_norm"], color="#bbbbbb", lw=0.7, zorder=1)
        dots = axis.scatter(angle, one[f"{part}_norm"], c=data["step"].values, cmap="viridis", s=12, zorder=2)
    if len(chosen) and part == "label":
        axis.figure.colorbar(dots, ax=axis, label="training step")
    to = "the mean relevant pattern" if part == "feature" else "q"
    axis.set(xlabel=f"angle to {to}, degrees", ylabel=f"norm of the {part} part", xlim=(0, 180))


def fig2cd(results: Results, s: Settings) -> Figure:
    """Angle against magnitude of the feature and label part of a few neurons of one seed, coloured by training step."""
    parts = {"2(C) Feature part and mean pattern": "feature", "2(D) Label part and q": "label"}
    shares = {f"{part} part": measured("sizes@inside", f"{part}_share") for part in PARTS}
    return picture(
        results,
        *(Custom(title, ("training",), functools.partial(_neurons, part)) for title, part in parts.items()),
        Lines("4.5: share of L with (21), (22)", shares, "patterns", x="M1 = M2", y="share of L", bounds=UNIT),
    )


def fig3a(results: Results, s: Settings) -> Figure:
    """Out-of-domain error against S_1, in 0-1 error and in hinge loss: one layer and GPT-2 (thin: every seed)."""

    def lines(name: str) -> dict[str, Any]:
        found = {"one-layer Transformer": measured("sums", name)}
        found |= {"one layer, U = 4": measured("sums@U=4", name)} if "sums@U=4" in results else {}
        for contexts, label in GPT2.items():
            for words, variable in (("", name), (", K' = K", f"mild_{name}")):
                found[f"{label}{words}"] = measured("gpt2-sums", variable).sel(setting=contexts)
        return found

    dashed = tuple(f"{label}, K' = K" for label in GPT2.values())
    more: dict[str, Any] = {"x": "S₁ = a + b", "marks": {"S₁ = 1": 1.0}, "dashed": dashed}
    more["colours"] = (0, 3, 1, 1, 2, 2) if "sums@U=4" in results else (0, 1, 1, 2, 2)
    room = {"error": (0, 0.5), "hinge": (0, 1.1)}  # for the legend
    own = {name: {"rules": rules, "limits": room[name]} for name, rules in _limits(s).items()}
    return picture(results, *_both("3(A)", lines, "total", own=own, seeds=True, **more), width=5.0)


def fig3b(results: Results, s: Settings) -> Figure:
    """Error against test length for several α', in and out of domain: one layer and GPT-2."""
    models = {"one layer": measured("lengths", "error")}
    models |= {label: measured("gpt2-lengths", "error").sel(setting=contexts) for contexts, label in GPT2.items()}
    more: dict[str, Any] = {"x": "test context length l_ts", "rules": {"required: 0.05": 0.05}, "bounds": UNIT}
    shown = [
        Lines(f"3(B) {words}, {label}", error.sel(domain=domain), "length", "fraction", "α' = {}", **more)
        for domain, words in DOMAINS.items()
        for label, error in models.items()
    ]
    return picture(results, *shown, columns=3, height=2.8)


def fig4(results: Results, s: Settings) -> Figure:
    """The Transformer in context against classifiers fitted to the context."""
    error, fitted = measured("classifiers", "error"), measured("classifiers", "baseline_error")
    names = [str(name) for name in results["classifiers"]["baseline"].values]
    lines = {"ICL (Transformer)": error} | {name: fitted.sel(baseline=name) for name in names}

    def panel(letter: str, fraction: float, domain: str) -> Lines:
        data = {name: values.sel(domain=domain, fraction=fraction) for name, values in lines.items()}
        return Lines(f"4({letter}) α' = {fraction}, {DOMAINS[domain]}", data, "length", bounds=UNIT, limits=(0, 0.6))

    return picture(results, *(panel(*at, domain) for domain in DOMAINS for at in (("A", 0.8), ("B", 0.6))), width=3.6)


def _norms(axis: Axes, results: Results) -> None:
    norms = np.sort(results["pruned"]["neuron_norm"].isel(seed=0).values)
    axis.bar(np.linspace(0, 1, len(norms)), norms, width=1 / len(norms), color=COLOURS[5])
    threshold(axis, float(of.between(results["pruned"]["neuron_norm"].isel(seed=0))), "the gap")
    axis.set(xlabel="neurons, smallest first", ylabel="norm of row of W_O W_V")


def _out_pruned(name: str) -> Data:
    return measured("pruned", name).sel(domain="out")


def fig5a(results: Results, s: Settings) -> Figure:
    """Error and loss against the pruning rate, out of domain, and the neurons' norms."""
    norms = Custom("5(A) norms of neurons, seed 0", ("pruned",), _norms)
    names = {"smallest in L": "large_norm", "largest of the others": "small_norm"}
    names |= {"median of the others": "typical_small_norm"}
    groups = {words: measured("sizes@inside", name) for words, name in names.items()}
    curves = _both("5(A)", _out_pruned, "rate", "order", x="pruning rate", marks={"15 %": 0.15})
    over = Lines("(14) norms over M1 = M2", groups, "patterns", x="M1", y="norm", log="y")
    return picture(results, *curves, norms, over, columns=2)


def fig5b(results: Results, s: Settings) -> Figure:
    """Out-of-domain error of pruned models against α'."""
    data = functools.partial(measured, "pruned-fractions")
    return picture(results, *_both("5(B)", data, "fraction", "kind", x="matching fraction α'"))


def fig6(results: Results, s: Settings) -> Figure:
    """Required training length and iterations against α, with fitted and predicted power laws."""
    half = dataclasses.replace(LAWS["6a"], variable="early_error")
    panels = {"6 (left): training length": LAWS["6a"], "6 (left), T = 500": half, "6 (right): iterations": LAWS["6b"]}
    return picture(results, *(law.panel(title) for title, law in panels.items()))


def _tasks(name: str, axis: Axes, results: Results) -> None:
    data = results["tasks"]
    for colour, m in enumerate(TASK_PATTERNS):
        part = data[name].isel(setting=np.flatnonzero(data["relevant"].values == m)).swap_dims(setting="task_count")
        curve(axis, part, "task_count", label=f"M1 = {m}", colour=colour, bounds=BOUNDS[name])
        axis.axvline(m, color=COLOURS[colour], ls=":", lw=1)
    threshold(axis, 0.05, "0.05")
    axis.set(xlabel="number of training tasks |T_tr| (dotted: M1)", ylabel=f"{WORDS[name]} on unseen tasks")
    axis.legend()


def fig7(results: Results, s: Settings) -> Figure:
    """Error and loss on unseen tasks against the number of training tasks."""
    shown = (Custom(f"7: {words}", ("tasks",), functools.partial(_tasks, name)) for name, words in WORDS.items())
    return picture(results, *shown)


def gpt2_training(results: Results, s: Settings) -> Figure:
    """GPT-2's training loss, and its loss and error on unseen tasks beside the one-layer model's, every seed."""
    loss = measured("gpt2-training", "training_loss").isel(step=slice(1, None))
    lines = {label: loss.sel(setting=contexts) for contexts, label in GPT2.items()}
    columns = {"one layer": ("generalisation", {"domain": "in"})}
    columns |= {f"GPT-2,\n{contexts}": ("gpt2-training", {"setting": contexts}) for contexts in GPT2}
    first = Lines("GPT-2: training loss", lines, "step", y="hinge loss on training prompts", bounds=BOUNDS["hinge"])
    return picture(results, first, *_seeds(s, "Unseen tasks", columns), width=3.8)


def _heads(domain: str, axis: Axes, results: Results) -> None:
    heads_by_layer(axis, results["gpt2-training"][f"{domain}_attention_same"].sel(setting="fixed"))
    threshold(axis, 0.5, "0.5")
    axis.set(ylim=(0, 1.02), xlabel="training step", ylabel="mass on the query's pattern")
    axis.legend(ncols=2, fontsize=7)


def gpt2_attention(results: Results, s: Settings) -> Figure:
    """Attention mass on contexts with the query's pattern along training: one layer, and GPT-2 by layer and head."""
    shown: list[Lines | Custom] = []
    for domain, words in DOMAINS.items():
        mass, y = measured("training", f"{domain}_attention_same"), "mass on the query's pattern"
        shown.append(Lines(f"One layer, {words}", mass, "step", y=y, rules={"0.5": 0.5}, **SHARE))
        shown.append(Custom(f"GPT-2, {words}", ("gpt2-training",), functools.partial(_heads, domain)))
    return picture(results, *shown, width=3.6)


def gpt2_pruning(results: Results, s: Settings) -> Figure:
    """Error out of domain against the pruning rate, smallest and largest neurons first: one layer, and GPT-2."""
    more: dict[str, Any] = {"x": "pruning rate", "marks": {"15 %": 0.15}, "bounds": UNIT, "limits": (-0.02, 1.02)}
    one, deep = measured("pruned", "error"), measured("gpt2-pruned", "error")
    models = (("One layer", one, ""), ("GPT-2 by layer", deep, "layer"))
    shown = [
        Lines(f"{model}, {order}", error.sel(domain="out", order=order), "rate", by, "layer {}", **more)
        for order in ("smallest first", "largest first")
        for model, error, by in models
    ]
    return picture(results, *shown, width=3.6)


def rates(results: Results, s: Settings) -> Table:
    """All laws by all criteria."""
    laws = {f"thm3.3 in {name}": LAWS[name] for name in ("α", "β", "η")} | {"fig6a": LAWS["6a"], "rem3.5": LAWS["3.5"]}
    laws |= {f"thm3.3 in M1, {words}": law for words, law in _widths().items()}
    return law_table(laws, results)


shown = (fig2ab, fig2cd, fig3a, fig3b, fig4, fig5a, fig5b, fig6, fig7)
figures = {
    "thm3.3": thm33,
    "thm3.4": thm34,
    "rem3.5": rem35,
    "prop4.1": prop41,
    "lemB.10": lemmab10,
    **{draw.__name__: draw for draw in shown},
}
figures |= {"gpt2-training": gpt2_training, "gpt2-attention": gpt2_attention, "gpt2-pruning": gpt2_pruning}
tables = {"rates": rates}

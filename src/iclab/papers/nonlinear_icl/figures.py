"""The figures of nonlinear-icl, in the paper's layout."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import Custom, Dots, Lines, Results, Table, curve, law_table, measured, picture, threshold
from iclab.drawing import COLOURS, boundary_map, heads_by_layer
from iclab.papers.nonlinear_icl.experiments import TASK_PATTERNS
from iclab.papers.nonlinear_icl.laws import LAWS, PHASE_FRACTIONS
from iclab.papers.nonlinear_icl.settings import Settings
from iclab.papers.nonlinear_icl.statements import DOMAINS, UNIT, epsilon, small_norm

BOUNDS = {"error": UNIT, "hinge": (0.0, np.inf)}
WORDS = {"error": "0-1 error", "hinge": "hinge loss"}
GPT2 = {"fixed": "GPT-2, contexts of one length", "varied": "GPT-2, of several lengths"}


def _limits(s: Settings) -> dict[str, dict[str, float]]:
    return {"hinge": {"ε = √(log M1 / B)": epsilon(s)}, "error": {"0.01": 0.01}}


def _errors(s: Settings) -> list[Dots]:
    """Every seed's loss and error in each domain."""
    domains = {"all tasks": "all tasks", "unseen": "in", "out of domain": "out"}
    return [
        Dots(
            f"Theorems 3.3, 3.4: {WORDS[name]}",
            {words: measured("generalisation", name).sel(domain=domain) for words, domain in domains.items()},
            rules=rules,
        )
        for name, rules in _limits(s).items()
    ]


def generalisation(results: Results, s: Settings) -> Figure:
    """Theorems 3.3 and 3.4: every seed's loss and error in each domain."""
    return picture(results, *_errors(s))


def _phase(name: str) -> Custom:
    """Error over the matching fraction and the length of test prompts, with the theorem's l_ts = 1/α'."""

    def paint(axis: Axes, results: Results) -> None:
        edge = np.geomspace(min(PHASE_FRACTIONS), 1.0, 50)
        error = results[name]["error"]
        boundary_map(axis, error, "fraction", "length", "α'", "l_ts", (edge, 1 / edge), "l_ts = 1/α'")

    return Custom(f"(9) error, {'drawn' if name == 'phase' else 'guaranteed'} examples", (name,), paint)


def thm33(results: Results, s: Settings) -> Figure:
    """Theorem 3.3: loss and error of every seed; iterations needed against α, β and M1; errors over α' and l_ts."""
    laws = [LAWS[name].panel(f"(10) in {name}") for name in ("α", "β", "M1")]
    return picture(results, *_errors(s), *laws, _phase("phase-guaranteed"), _phase("phase"), width=3.8, columns=4)


def fig6(results: Results, s: Settings) -> Figure:
    """Required training length and iterations against α, with fitted and predicted power laws."""
    titles = {"6a": "6 (left): training length", "6b": "6 (right): iterations"}
    return picture(results, *(LAWS[name].panel(title) for name, title in titles.items()))


def fig2ab(results: Results, s: Settings) -> Figure:
    """Norms of queries and keys and their components along the pattern; attention mass. Out of domain, along training."""
    names = {
        r"$\|W_Q p_{query}\|$": "query_norm",
        r"$W_Q p_{query}$ along pattern": "query_along",
        r"$\|W_K p_i\|$": "key_norm",
        r"$W_K p_i$ along pattern": "key_along",
    }
    norms = {label: measured("training", f"out_{name}") for label, name in names.items()}
    dashed = tuple(label for label in names if "along" in label)
    groups = {"same pattern as the query": "same", "other contexts": "other"}
    mass = {label: measured("training", f"out_attention_{name}") for label, name in groups.items()}
    words = {"y": "summed attention", "bounds": UNIT, "limits": (0, 1.02)}
    return picture(
        results,
        Lines("2(A) Norms and components, out of domain", norms, "step", y="norm", dashed=dashed, dots=False),
        Lines("2(B) Attention mass, out of domain", mass, "step", dots=False, **words),
    )


def _neurons(axis: Axes, data: xr.Dataset, part: str, count: int) -> None:
    """Angle against magnitude of a part of a few neurons of one seed, coloured by training step."""
    sound = np.flatnonzero(data["readout_sign"].isel(step=-1).notnull().all("neuron").values)
    data = data.isel(seed=int(sound[0]) if len(sound) else 0)  # the first seed that did not diverge
    sign = data["readout_sign"].isel(step=-1)
    chosen = [np.flatnonzero(sign > 0)[:5], np.flatnonzero(sign < 0)[:5]][:count]
    for neuron in np.concatenate(chosen):
        one = data.isel(neuron=neuron)
        cosine = one[f"{part}_cosine"] * (sign[neuron] if part == "label" else 1)  # against q itself, as in the figure
        angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
        axis.plot(angle, one[f"{part}_norm"], color="#bbbbbb", lw=0.7, zorder=1)
        dots = axis.scatter(angle, one[f"{part}_norm"], c=data["step"].values, cmap="viridis", s=12, zorder=2)
    if len(sound) and part == "label":
        axis.figure.colorbar(dots, ax=axis, label="training step")
    axis.set_xlabel("angle to the mean relevant pattern, degrees" if part == "feature" else "angle to q, degrees")
    axis.set_ylabel(f"norm of the {part} part")
    axis.set_xlim(0, 180)


def fig2cd(results: Results, s: Settings) -> Figure:
    """Angle against magnitude of the feature and label part of a few neurons of one seed, coloured by training step."""

    def feature(axis: Axes, found: Results) -> None:
        _neurons(axis, found["training"], "feature", 1)

    def label(axis: Axes, found: Results) -> None:
        _neurons(axis, found["training"], "label", 2)

    parts = {"2(C) Feature part and mean pattern": feature, "2(D) Label part and q": label}
    return picture(results, *(Custom(title, ("training",), paint) for title, paint in parts.items()))


def fig3a(results: Results, s: Settings) -> Figure:
    """Out-of-domain error against S_1, in 0-1 error and in hinge loss: one layer and GPT-2 (thin: every seed)."""
    shown = []
    for name, rules in reversed(_limits(s).items()):
        lines = {"one-layer Transformer": measured("sums", name)}
        for contexts, label in GPT2.items():
            lines[label] = measured("gpt2-sums", name).sel(setting=contexts)
            lines[f"{label}, K' = K"] = measured("gpt2-sums", f"mild_{name}").sel(setting=contexts)
        dashed = tuple(label for label in lines if label.endswith("K' = K"))
        title = f"3(A) {WORDS[name]} out of domain"
        more = {"rules": rules, "marks": {"S₁ = 1": 1.0}, "bounds": BOUNDS[name], "colours": (0, 1, 1, 2, 2)}
        shown.append(Lines(title, lines, "total", x="S₁ = a + b", y=WORDS[name], dashed=dashed, seeds=True, **more))
    return picture(results, *shown, width=5.0)


def fig3b(results: Results, s: Settings) -> Figure:
    """Error against test length for several α', in and out of domain: one layer and GPT-2."""
    models = {"one layer": measured("lengths", "error")}
    models |= {label: measured("gpt2-lengths", "error").sel(setting=contexts) for contexts, label in GPT2.items()}
    more = {"x": "test context length l_ts", "rules": {"required: 0.05": 0.05}, "bounds": UNIT, "limits": (-0.01, 0.5)}
    shown = [
        Lines(f"3(B) {words}, {label}", error.sel(domain=domain), "length", "fraction", "α' = {}", **more)
        for domain, words in DOMAINS.items()
        for label, error in models.items()
    ]
    return picture(results, *shown, columns=3, height=2.8)


def fig4(results: Results, s: Settings) -> Figure:
    """The Transformer in context against classifiers fitted to the context."""
    more = {"x": "context length", "y": "0-1 error", "bounds": UNIT, "limits": (0, 0.6)}
    names = [str(name) for name in results["classifiers"]["baseline"].values]
    shown = []
    for domain, words in DOMAINS.items():
        for letter, fraction in (("A", 0.8), ("B", 0.6)):
            error, fitted = (
                measured("classifiers", name).sel(domain=domain, fraction=fraction)
                for name in ("error", "baseline_error")
            )
            lines = {"ICL (Transformer)": error} | {name: fitted.sel(baseline=name) for name in names}
            shown.append(Lines(f"4({letter}) α' = {fraction}, {words}", lines, "length", **more))
    return picture(results, *shown, width=3.6)


def _pruned(experiment: str, order: str, title: str, by: str = "", **more: object) -> Lines:
    error = measured(experiment, "error").sel(domain="out", order=order)
    return Lines(
        title, error, "rate", by, x="pruning rate", marks={"15 %": 0.15}, bounds=UNIT, limits=(-0.02, 1.02), **more
    )


def _norms(axis: Axes, results: Results, s: Settings) -> None:
    norms = np.sort(results["pruned"]["neuron_norm"].isel(seed=0).values)
    axis.bar(np.linspace(0, 1, len(norms)), norms, width=1 / len(norms), color=COLOURS[5])
    threshold(axis, small_norm(s), "M2^(-1/2)")
    axis.set_xlabel("neurons, smallest first")
    axis.set_ylabel("norm of row of W_O W_V")


def fig5a(results: Results, s: Settings) -> Figure:
    """Error and loss against the pruning rate, out of domain, and the neurons' norms."""
    more = {"x": "pruning rate", "marks": {"15 %": 0.15}}
    shown = [
        Lines(
            f"5(A) {WORDS[name]} out of domain",
            measured("pruned", name).sel(domain="out"),
            "rate",
            "order",
            y=WORDS[name],
            bounds=BOUNDS[name],
            **more,
        )
        for name in ("error", "hinge")
    ]
    norms = Custom("5(A) norms of neurons, seed 0", ("pruned",), lambda axis, found: _norms(axis, found, s))
    return picture(results, *shown, norms)


def fig5b(results: Results, s: Settings) -> Figure:
    """Out-of-domain error of pruned models against α'."""
    shown = [
        Lines(
            f"5(B) {WORDS[name]} out of domain",
            measured("pruned-fractions", name),
            "fraction",
            "kind",
            x="matching fraction α'",
            y=WORDS[name],
            bounds=BOUNDS["hinge"],
        )
        for name in ("error", "hinge")
    ]
    return picture(results, *shown)


def _tasks(axis: Axes, results: Results) -> None:
    data = results["tasks"]
    for colour, m in enumerate(TASK_PATTERNS):
        part = data["error"].isel(setting=np.flatnonzero(data["relevant"].values == m)).swap_dims(setting="task_count")
        curve(axis, part, "task_count", label=f"M1 = {m}", colour=colour, bounds=UNIT)
        axis.axvline(m, color=COLOURS[colour], ls=":", lw=1)
    threshold(axis, 0.05, "0.05")
    axis.set_xlabel("number of training tasks |T_tr| (dotted: M1)")
    axis.set_ylabel("0-1 error on unseen tasks")
    axis.legend()


def fig7(results: Results, s: Settings) -> Figure:
    """Error on unseen tasks against the number of training tasks."""
    return picture(results, Custom("7: number of training tasks", ("tasks",), _tasks), width=5.2)


def gpt2_training(results: Results, s: Settings) -> Figure:
    """GPT-2's training loss, and its loss and error on unseen tasks, every seed."""
    loss = {
        label: measured("gpt2-training", "training_loss").sel(setting=contexts).isel(step=slice(1, None))
        for contexts, label in GPT2.items()
    }
    columns = {"one length": "fixed", "several": "varied"}
    unseen = [
        Dots(
            f"Unseen tasks: {WORDS[name]}",
            {words: measured("gpt2-training", name).sel(setting=contexts) for words, contexts in columns.items()},
            rules=rules,
        )
        for name, rules in _limits(s).items()
    ]
    y = "hinge loss on training prompts"
    return picture(
        results, Lines("GPT-2: training loss", loss, "step", y=y, bounds=BOUNDS["hinge"]), *unseen, width=3.8
    )


def gpt2_attention(results: Results, s: Settings) -> Figure:
    """Attention mass on contexts with the query's pattern along training, of GPT-2 by layer and head."""

    def heads(domain: str) -> Custom:
        def paint(axis: Axes, found: Results) -> None:
            heads_by_layer(axis, found["gpt2-training"][f"{domain}_attention_same"].sel(setting="fixed"))
            threshold(axis, 0.9, "0.9")
            axis.set(ylim=(0, 1.02), xlabel="training step", ylabel="mass on the query's pattern")
            axis.legend(ncols=2, fontsize=7)

        return Custom(f"GPT-2, {DOMAINS[domain]}", ("gpt2-training",), paint)

    def one(domain: str) -> Lines:
        mass, more = measured("training", f"{domain}_attention_same"), {"bounds": UNIT, "limits": (0, 1.02)}
        return Lines(f"One layer, {DOMAINS[domain]}", mass, "step", y="mass on the query's pattern", dots=False, **more)

    return picture(results, *(panel(domain) for domain in DOMAINS for panel in (one, heads)), width=3.6)


def gpt2_pruning(results: Results, s: Settings) -> Figure:
    """Error out of domain against the pruning rate, smallest and largest neurons first: one layer, and GPT-2 by layer."""
    models = {"One layer": ("pruned", ""), "GPT-2, by layer": ("gpt2-pruned", "layer")}
    shown = [
        _pruned(experiment, order, f"{model}, {order}", by)
        for order in ("smallest first", "largest first")
        for model, (experiment, by) in models.items()
    ]
    return picture(results, *shown, width=3.6)


def rates(results: Results, s: Settings) -> Table:
    """All laws by all criteria."""
    names = {"thm3.3 in α": "α", "thm3.3 in β": "β", "thm3.3 in M1": "M1", "fig6a": "6a"}
    return law_table({label: LAWS[name] for label, name in names.items()}, results)


figures = {
    "thm3.3": thm33,
    "generalisation": generalisation,
    "gpt2-training": gpt2_training,
    "gpt2-attention": gpt2_attention,
    "gpt2-pruning": gpt2_pruning,
} | {draw.__name__: draw for draw in (fig2ab, fig2cd, fig3a, fig3b, fig4, fig5a, fig5b, fig6, fig7)}
tables = {"rates": rates}

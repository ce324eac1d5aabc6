"""The figures of nonlinear-icl, in the paper's layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from iclab.claims import Results
from iclab.drawing import COLOURS, curve, heads_by_layer, panels, threshold
from iclab.papers.nonlinear_icl.claims import epsilon, small_norm
from iclab.papers.nonlinear_icl.experiments import TASK_PATTERNS
from iclab.papers.nonlinear_icl.settings import Settings

UNIT = (0.0, 1.0)
DOMAINS = {"in": "in domain", "out": "out of domain"}


def generalisation(results: Results, settings: Settings) -> Figure:
    """Theorems 3.3 and 3.4: every seed's loss and error in each domain."""
    data = results["generalisation"].sel(setting="standard")
    figure, axes = panels(2, ("Theorems 3.3, 3.4: hinge loss", "0-1 error"))
    labels = ["all tasks", "unseen tasks", "out of domain"]
    for axis, name, limit, text in zip(
        axes, ("hinge", "error"), (epsilon(settings), 0.01), ("ε = √(log M1 / B)", "0.01"), strict=True
    ):
        for position, domain in enumerate(data["domain"].values):
            values = data[name].sel(domain=domain).values
            jitter = np.linspace(-0.15, 0.15, len(values))
            axis.plot(position + jitter, values, "o", ms=4, color=COLOURS[position])
        threshold(axis, limit, text)
        axis.set_xticks(range(3), labels)
        axis.set_ylabel("hinge loss" if name == "hinge" else "0-1 error")
    return figure


def fig2ab(results: Results, settings: Settings) -> Figure:
    """Norms of queries and keys and their components along the pattern; attention mass. Out of domain, along training."""
    data = results["training"].sel(setting="standard")
    figure, axes = panels(2, ("2(A) Norms and components, out of domain", "2(B) Attention mass, out of domain"))
    names = {"query_norm": r"$\|W_Q p_{query}\|$", "query_along": r"$W_Q p_{query}$ along pattern",
             "key_norm": r"$\|W_K p_i\|$", "key_along": r"$W_K p_i$ along pattern"}  # fmt: skip
    for colour, (name, label) in enumerate(names.items()):
        curve(
            axes[0],
            data[f"out_{name}"],
            "step",
            label=label,
            colour=colour,
            ls="-" if "norm" in name else "--",
            marker="",
        )
    for colour, (name, label) in enumerate({"same": "same pattern as the query", "other": "other contexts"}.items()):
        curve(axes[1], data[f"out_attention_{name}"], "step", label=label, colour=colour, bounds=UNIT, marker="")
    axes[0].set_ylabel("norm")
    axes[1].set_ylabel("summed attention")
    axes[1].set_ylim(0, 1.02)
    for axis in axes:
        axis.set_xlabel("training step")
        axis.legend()
    return figure


def fig2cd(results: Results, settings: Settings) -> Figure:
    """Angle against magnitude of the feature and label part of a few neurons of one seed, coloured by training step."""
    data = results["training"].sel(setting="standard")
    sound = np.flatnonzero(data["readout_sign"].isel(step=-1).notnull().all("neuron").values)
    data = data.isel(seed=int(sound[0]) if len(sound) else 0)  # the first seed that did not diverge
    figure, axes = panels(2, ("2(C) Feature part and mean pattern", "2(D) Label part and q"))
    sign = data["readout_sign"].isel(step=-1)
    positive, negative = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
    steps = data["step"].values
    for axis, part, chosen in (
        (axes[0], "feature", positive[:5]),
        (axes[1], "label", np.r_[positive[:5], negative[:5]]),
    ):
        for neuron in chosen:
            one = data.isel(neuron=neuron)
            cosine = one[f"{part}_cosine"] * (sign[neuron] if part == "label" else 1)  # against q itself, as in the figure
            angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
            axis.plot(angle, one[f"{part}_norm"], color="#bbbbbb", lw=0.7, zorder=1)
            dots = axis.scatter(angle, one[f"{part}_norm"], c=steps, cmap="viridis", s=12, zorder=2)
        axis.set_xlabel("angle to the mean relevant pattern, degrees" if part == "feature" else "angle to q, degrees")
        axis.set_ylabel(f"norm of the {part} part")
        axis.set_xlim(0, 180)
    if len(sound):
        figure.colorbar(dots, ax=axes, label="training step")
    return figure


GPT2 = {"fixed": "GPT-2, contexts of one length", "varied": "GPT-2, of several lengths"}


def fig3a(results: Results, settings: Settings) -> Figure:
    """Out-of-domain error against S_1, in 0-1 error and in hinge loss: one layer and, where run, GPT-2 (thin: its seeds)."""
    figure, axes = panels(2, ("3(A) 0-1 error out of domain", "3(A) hinge loss out of domain"), width=5.0)
    for axis, name, bounds in zip(axes, ("error", "hinge"), (UNIT, (0, np.inf)), strict=True):
        one = results["sums"][name].sel(setting="standard")
        curve(axis, one, "total", label="one-layer Transformer", bounds=bounds)
        for colour, (contexts, label) in enumerate(GPT2.items() if "gpt2-sums" in results else (), start=1):
            deep = results["gpt2-sums"][name].sel(setting=contexts)
            axis.plot(deep["total"], deep.transpose("total", "seed"), color=COLOURS[colour], lw=0.5, alpha=0.6)
            curve(axis, deep, "total", label=label, colour=colour, bounds=bounds)
            mild = results["gpt2-sums"][f"mild_{name}"].sel(setting=contexts)
            curve(axis, mild, "total", label=f"{label}, K' = K", colour=colour, bounds=bounds, ls="--")
        axis.set_ylim(0, 1.6 * axis.get_ylim()[1])  # room for the legend
        threshold(axis, 1.0, "S₁ = 1", vertical=True)
        axis.set_xlabel("S₁ = a + b")
        axis.set_ylabel("0-1 error" if name == "error" else "hinge loss")
        axis.legend(loc="upper left")
    threshold(axes[0], 0.01, "0.01")
    threshold(axes[1], epsilon(settings), "ε = √(log M1 / B)")
    return figure


def fig3b(results: Results, settings: Settings) -> Figure:
    """Error against test length for several α', in and out of domain: one layer and, where it was run, GPT-2."""
    columns = {"one layer": results["lengths"].sel(setting="standard")}
    if "gpt2-lengths" in results:
        columns |= {label: results["gpt2-lengths"].sel(setting=contexts) for contexts, label in GPT2.items()}
    figure = Figure(figsize=(4.2 * len(columns), 2.8 * len(DOMAINS)), layout="constrained")
    axes = figure.subplots(len(DOMAINS), len(columns), squeeze=False, sharey=True)
    for row, domain in zip(axes, DOMAINS, strict=True):
        for axis, (label, data) in zip(row, columns.items(), strict=True):
            axis.set_title(f"3(B) {DOMAINS[domain]}, {label}", loc="left", fontsize=9, fontweight="bold")
            for colour, fraction in enumerate(data["fraction"].values):
                part = data["error"].sel(domain=domain, fraction=fraction)
                curve(axis, part, "length", label=f"α' = {fraction:g}", colour=colour, bounds=UNIT)
            threshold(axis, 0.05, "required: 0.05")
            axis.set_xlabel("test context length l_ts")
            axis.set_ylabel("0-1 error")
    axes[0, 0].legend()
    return figure


def gpt2_training(results: Results, settings: Settings) -> Figure:
    """GPT-2's training loss, and its loss and error on unseen tasks beside the one-layer model's, every seed."""
    data = results["gpt2-training"]
    figure, axes = panels(3, ("GPT-2: training loss", "Unseen tasks: hinge loss", "Unseen tasks: 0-1 error"), width=3.8)
    for colour, (contexts, label) in enumerate(GPT2.items(), start=1):
        loss = data["training_loss"].sel(setting=contexts).isel(step=slice(1, None))
        curve(axes[0], loss, "step", label=label, colour=colour, bounds=(0, np.inf))
    axes[0].set_xlabel("training step")
    axes[0].set_ylabel("hinge loss on training prompts")
    axes[0].legend()
    for axis, name, limit, text in zip(
        axes[1:], ("hinge", "error"), (epsilon(settings), 0.01), ("ε = √(log M1 / B)", "0.01"), strict=True
    ):
        groups = [results["generalisation"][name].sel(setting="standard", domain="in").values]
        groups += [data[name].sel(setting=contexts).values for contexts in GPT2]
        for place, values in enumerate(groups):
            axis.plot(place + np.linspace(-0.15, 0.15, len(values)), values, "o", ms=4, color=COLOURS[place])
        threshold(axis, limit, text)
        axis.set_xticks(range(3), ["one layer", "GPT-2,\none length", "GPT-2,\nseveral"])
        axis.set_ylabel("hinge loss" if name == "hinge" else "0-1 error")
    return figure


def gpt2_attention(results: Results, settings: Settings) -> Figure:
    """Attention mass on contexts with the query's pattern along training: the one-layer model, and GPT-2 by layer and head."""
    deep, one = results["gpt2-training"].sel(setting="fixed"), results["training"].sel(setting="standard")
    figure, axes = panels(4, tuple(f"{model}, {DOMAINS[d]}" for d in DOMAINS for model in ("One layer", "GPT-2")), width=3.6)
    for axis, (domain, model) in zip(axes, [(d, m) for d in DOMAINS for m in ("one", "deep")], strict=True):
        name = f"{domain}_attention_same"
        if model == "one":
            curve(axis, one[name], "step", label="one layer", bounds=UNIT, marker="")
        else:
            heads_by_layer(axis, deep[name])
        threshold(axis, 0.9, "0.9")
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("training step")
        axis.set_ylabel("mass on the query's pattern")
    axes[1].legend(ncols=2, fontsize=7, loc="lower center")
    return figure


def gpt2_pruning(results: Results, settings: Settings) -> Figure:
    """Error out of domain against the pruning rate, smallest and largest neurons first: one layer, and GPT-2 by layer."""
    one, deep = results["pruned"].sel(setting="low-alpha"), results["gpt2-pruned"].sel(setting="fixed")
    titles = tuple(f"{model}, {order}" for order in deep["order"].values for model in ("One layer", "GPT-2"))
    figure, axes = panels(4, titles, width=3.6)
    for number, order in enumerate(deep["order"].values):
        left, right = axes[2 * number], axes[2 * number + 1]
        curve(left, one["error"].sel(domain="out", order=order), "rate", label="its MLP", bounds=UNIT)
        for colour, layer in enumerate(deep["layer"].values):
            label = "all layers" if layer == "all" else f"layer {layer}"
            curve(
                right,
                deep["error"].sel(domain="out", layer=layer, order=order),
                "rate",
                label=label,
                colour=colour,
                bounds=UNIT,
            )
        for axis in (left, right):
            threshold(axis, 0.15, "15 %", vertical=True)
            axis.set_ylim(-0.02, 1.02)
            axis.set_xlabel("pruning rate")
            axis.set_ylabel("0-1 error out of domain")
    axes[1].legend()
    return figure


def fig4(results: Results, settings: Settings) -> Figure:
    """The Transformer in context against classifiers fitted to the context."""
    data = results["classifiers"]
    cells = [("in", 0.8), ("in", 0.6), ("out", 0.8), ("out", 0.6)]
    titles = (
        "4(A) α' = 0.8, in domain",
        "4(B) α' = 0.6, in domain",
        "4(A) out of domain",
        "4(B) out of domain",
    )
    figure, axes = panels(4, titles, width=3.4)
    for axis, (domain, fraction) in zip(axes, cells, strict=True):
        part = data.sel(domain=domain, fraction=fraction)
        curve(axis, part["error"], "length", label="ICL (Transformer)", bounds=UNIT, lw=2.2)
        for colour, name in enumerate(part["baseline"].values):
            one = part["baseline_error"].sel(baseline=name)
            curve(axis, one, "length", label=str(name), colour=colour + 1, bounds=UNIT, lw=1.0)
        axis.set_xlabel("context length")
        axis.set_ylabel("0-1 error")
        axis.set_ylim(0, 0.6)
    axes[0].legend(ncols=2)
    return figure


def fig5a(results: Results, settings: Settings) -> Figure:
    """Error and loss against the pruning rate, out of domain, and the neurons' norms."""
    data = results["pruned"].sel(setting="low-alpha")
    figure, axes = panels(3, ("5(A) 0-1 error out of domain", "5(A) hinge loss out of domain", "5(A) norms of neurons, seed 0"))
    for axis, name in zip(axes, ("error", "hinge"), strict=False):
        for colour, order in enumerate(data["order"].values):
            part = data[name].sel(domain="out", order=order)
            curve(
                axis,
                part,
                "rate",
                label=str(order),
                colour=colour,
                bounds=UNIT if name == "error" else (0, np.inf),
            )
        threshold(axis, 0.15, "15 %", vertical=True)
        axis.set_xlabel("pruning rate")
        axis.set_ylabel("0-1 error" if name == "error" else "hinge loss")
        axis.legend()
    norms = np.sort(data["neuron_norm"].isel(seed=0).values)
    axes[2].bar(np.linspace(0, 1, len(norms)), norms, width=1 / len(norms), color=COLOURS[5])
    threshold(axes[2], small_norm(settings), "M2^(-1/2)")
    axes[2].set_xlabel("neurons, smallest first")
    axes[2].set_ylabel("norm of row of W_O W_V")
    return figure


def fig5b(results: Results, settings: Settings) -> Figure:
    """Out-of-domain error of pruned models against α'."""
    data = results["pruned-fractions"].sel(setting="low-alpha")
    figure, axes = panels(2, ("5(B) 0-1 error out of domain", "5(B) hinge loss out of domain"))
    for axis, name in zip(axes, ("error", "hinge"), strict=True):
        for colour, kind in enumerate(data["kind"].values):
            curve(
                axis,
                data[name].sel(kind=kind),
                "fraction",
                label=str(kind),
                colour=colour,
                bounds=(0, np.inf),
            )
        axis.set_xlabel("matching fraction α'")
        axis.set_ylabel("0-1 error" if name == "error" else "hinge loss")
        axis.legend()
    return figure


def fig7(results: Results, settings: Settings) -> Figure:
    """Error on unseen tasks against the number of training tasks."""
    data = results["tasks"]
    figure, axes = panels(1, ("7: number of training tasks",), width=5.2)
    for colour, m in enumerate(TASK_PATTERNS):
        part = data["error"].isel(setting=np.flatnonzero(data["relevant"].values == m))
        part = part.swap_dims(setting="task_count")
        curve(axes[0], part, "task_count", label=f"M1 = {m}", colour=colour, bounds=UNIT)
        axes[0].axvline(m, color=COLOURS[colour], ls=":", lw=1)
    threshold(axes[0], 0.05, "0.05")
    axes[0].set_xlabel("number of training tasks |T_tr| (dotted: M1)")
    axes[0].set_ylabel("0-1 error on unseen tasks")
    axes[0].legend()
    return figure


FIGURES: dict[str, Callable[[Results, Settings], Figure]] = {
    "generalisation": generalisation, "fig2ab": fig2ab, "fig2cd": fig2cd, "fig3a": fig3a, "fig3b": fig3b,
    "fig4": fig4, "fig5a": fig5a, "fig5b": fig5b, "fig7": fig7,
    "gpt2-training": gpt2_training, "gpt2-attention": gpt2_attention, "gpt2-pruning": gpt2_pruning,
}  # fmt: skip

"""The figures of chain-of-thought, in the paper's layout."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import (
    UNIT,
    Custom,
    Dots,
    Law,
    Lines,
    Results,
    Table,
    first_below,
    law_table,
    measured,
    picture,
    threshold,
)
from iclab.drawing import boundary_map, heads_by_layer
from iclab.papers.chain_of_thought.experiments import KINDS
from iclab.papers.chain_of_thought.gpt2 import MODELS
from iclab.papers.chain_of_thought.laws import CHAINS, DIRECT, STAGES
from iclab.papers.chain_of_thought.settings import Settings, symbols
from iclab.papers.chain_of_thought.statements import MASSES, REQUIRED, ZERO
from iclab.papers.chain_of_thought.theory import chain_length

EXAMPLES = "number of examples l_ts"
TARGET = "same_pattern_same_step"
AROUND = {"0.9": 0.9}


def _kinds(title: str, experiment: str, variable: str, y: str, rules: Mapping[str, float]) -> Dots:
    """Generic test patterns beside the equal mixture of all training patterns."""
    return Dots(title, {kind: measured(experiment, variable).sel(kind=kind) for kind in KINDS}, y=y, rules=rules)


def thm1(results: Results, s: Settings) -> Figure:
    """Every seed's loss, and the ends of the two stages of training against α, M and K with fitted and predicted power laws."""
    loss = Dots(
        "(19) squared loss", {"fresh prompts": measured("training", "loss")}, rules={"ε": symbols(s).error}, y="loss"
    )
    return picture(results, loss, *(law.panel(f"(18) {name}") for name, law in STAGES.items()), width=3.6, columns=3)


def thm2(results: Results, s: Settings) -> Figure:
    """Errors and attention on generic test patterns and at the equal mixture; examples that CoT needs; its error over τ and l_ts."""
    return picture(
        results,
        _kinds("CoT error, all queries", "generalisation", "error", "0-1 error", {"0.01": ZERO}),
        _kinds("Next-step error at that pattern", "mixtures", "error", "0-1 error", {"0.01": ZERO}),
        _kinds("Attention at that pattern", "mixtures", "mass", "mass on same pattern and step", {"1 - ε": 1 - symbols(s).error}),
        Custom("CoT error over τ and l_ts", ("chains",), lambda axis, found: _region(axis, found, s)),
        *(law.panel(f"(23) in {law.symbol}") for law in CHAINS.values()),
        width=3.8, columns=4,
    )  # fmt: skip


def _region(axis: Axes, results: Results, s: Settings) -> None:
    """The theorem's boundary has the constant that fits the largest τ."""
    data = results["chains"]["error_B"].rename("error of CoT")
    values, at = data["value_B"].values, symbols(s)

    def needed(tau: float) -> float:
        return chain_length(dataclasses.replace(at, trajectory_probability=tau)).value

    easiest = CHAINS["B"].needed().evaluate(results).isel(value_B=-1)
    found = float(easiest.where(np.isfinite(easiest) & (easiest > 0)).mean())
    constant = found / needed(float(values[-1])) if np.isfinite(found) else 1.0
    taus = np.linspace(0.5 * values.min(), 1.3 * values.max(), 100)
    boundary = taus, constant * np.array([needed(float(tau)) for tau in taus])
    boundary_map(axis, data, "value_B", "length", "τ", "l_ts", boundary, f"l_ts = {constant:.2g} (α'τρ)⁻² log M")


def thm3(results: Results, s: Settings) -> Figure:
    """ICL error where Condition 1 holds and where it fails; examples that ICL needs against α', τ_o and ρ_o."""
    error = measured("comparison", "icl")
    return picture(
        results,
        Lines("ICL error", error, "length", "condition", "Condition 1 {}", EXAMPLES, "error", {"0.5": 0.5}, bounds=UNIT, log="x"),
        *(law.panel(f"(25) in {law.symbol}") for law in DIRECT.values()),
        width=3.8, columns=2,
    )  # fmt: skip


def _sweep(results: Results, number: int, name: str, laws: Mapping[str, Law]) -> Figure:
    return picture(
        results,
        *(
            Lines(
                f"{number}({panel}) {name}, varying {law.symbol}", measured(law.experiment, law.variable), "length", law.over,
                f"{law.symbol} = {{}}", EXAMPLES, "error", {f"required: {REQUIRED:g}": REQUIRED}, bounds=UNIT,
            )
            for panel, law in laws.items()
        ),
        width=3.8,
    )  # fmt: skip


def fig2(results: Results, s: Settings) -> Figure:
    """CoT error (averaged over the steps) against the number of examples, varying α', τ and ρ."""
    return _sweep(results, 2, "CoT", CHAINS)


def fig3(results: Results, s: Settings) -> Figure:
    """ICL error against the number of examples, varying α', τ_o and ρ_o."""
    return _sweep(results, 3, "ICL", DIRECT)


def fig4(results: Results, s: Settings) -> Figure:
    """CoT and ICL error against the number of examples where Condition 1 holds and where it fails."""
    names = {"ICL": "icl", "CoT, all steps (7)": "cot", "CoT, final step": "cot_final"}

    def panel(condition: str) -> Lines:
        data = {label: measured("comparison", name).sel(condition=condition) for label, name in names.items()}
        title, limits = f"4: Condition 1 {condition}", (-0.02, 1.02)
        return Lines(title, data, "length", x=EXAMPLES, y="error", bounds=UNIT, limits=limits, log="x")

    return picture(results, panel("holds"), panel("fails"))


def fig5(results: Results, s: Settings) -> Figure:
    """Attention mass on four groups of columns along training, on noisy test prompts; the whole run and its beginning."""
    data = results["training"]
    end = float(np.nanmean(first_below(data[MASSES[2]] + data[MASSES[3]], "step", 0.1).values))
    marks = {"end of stage 1": end} if np.isfinite(end) else {}

    def panel(title: str, last: float) -> Lines:
        groups = {
            name.replace("_", " ").replace("pattern ", "pattern, "): measured("training", name).sel(step=slice(0, last))
            for name in MASSES
        }
        return Lines(title, groups, "step", y="attention mass", marks=marks, bounds=UNIT, dots=False)

    return picture(results, panel("5: attention along training", s.steps), panel("5: the first tenth", s.steps / 10))


def gpt2_steps(results: Results, s: Settings) -> Figure:
    """CoT error against α' with l_ts = l_tr examples, and CoT against ICL where Condition 1 fails: one layer and GPT-2."""
    error = {words: measured("gpt2-steps", "error").sel(model=model) for model, words in MODELS.items()}
    failing = {
        f"{way.upper().replace('COT', 'CoT')},\n{model}": measured("gpt2-steps", f"failing_{way}").sel(model=model)
        for model in MODELS
        for way in ("icl", "cot")
    }
    limits, rules = (-0.02, 1.02), {f"required: {REQUIRED:g}": REQUIRED}
    return picture(
        results,
        Lines("CoT on unseen patterns", error, "fraction", x="matching fraction α'", y="CoT error", rules=rules, bounds=UNIT,
              limits=limits, seeds=True),
        Dots("Condition 1 fails", failing, y="error"),
    )  # fmt: skip


def gpt2_attention(results: Results, s: Settings) -> Figure:
    """Attention mass on the same pattern and step along training, noisy test prompts: one layer, and GPT-2 by layer and head."""
    words, limits = "mass on same pattern and step", (0, 1.02)

    def heads(axis: Axes, results: Results) -> None:
        heads_by_layer(axis, results["gpt2-training"][TARGET])
        threshold(axis, 0.9, "0.9")
        axis.set(ylim=limits, xlabel="training step", ylabel=words)
        axis.legend(ncols=2, loc="lower right")

    one = measured("training", TARGET)
    return picture(
        results,
        Lines("One layer", one, "step", y=words, rules=AROUND, bounds=UNIT, limits=limits, dots=False),
        Custom("GPT-2", ("gpt2-training",), heads),
    )


def rates(results: Results, s: Settings) -> Table:
    """All laws by all criteria."""
    examples = {
        f"{name} in {law.symbol}": law for name, laws in (("thm2", CHAINS), ("thm3", DIRECT)) for law in laws.values()
    }
    return law_table({f"thm1, {name}": law for name, law in STAGES.items()} | examples, results)


figures = {
    "thm1": thm1, "thm2": thm2, "thm3": thm3, "fig2": fig2, "fig3": fig3, "fig4": fig4, "fig5": fig5, "gpt2-steps": gpt2_steps,
    "gpt2-attention": gpt2_attention,
}  # fmt: skip
tables = {"rates": rates}

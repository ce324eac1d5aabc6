"""The figures of chain-of-thought, in the paper's layout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclab.authoring import (
    UNIT,
    Custom,
    Dots,
    Law,
    Lines,
    Power,
    Results,
    Scaling,
    Table,
    apply,
    first_below,
    law_table,
    measured,
    picture,
)  # fmt: skip
from iclab.drawing import boundary_map, heads_by_layer, threshold
from iclab.papers.chain_of_thought.beyond import MASSES
from iclab.papers.chain_of_thought.gpt2 import MODELS
from iclab.papers.chain_of_thought.laws import (
    CHAINS,
    DIRECT,
    ERRORS,
    STAGES,
    SWEEPS,
    Sweep,
    attention_by_error,
    needed,
    over,
)  # fmt: skip
from iclab.papers.chain_of_thought.lemmas import gradient, stage_by_error
from iclab.papers.chain_of_thought.settings import KINDS, Settings, symbols, timed
from iclab.papers.chain_of_thought.statements import REQUIRED, ZERO, by_error
from iclab.papers.chain_of_thought.theory import Symbols, chain_length, iterations

SHOWN = partial(Lines, x="number of examples l_ts", y="error", bounds=UNIT)
OVER = partial(Lines, y="iterations over (18)", limits=(0.0, 0.3))
ENOUGH = {f"required: {REQUIRED:g}": REQUIRED}
WHOLE = (-0.02, 1.02)
MASS = "mass on same pattern and step"


def _over_stated(curve: xr.DataArray, sweep: Sweep, at: Symbols) -> xr.DataArray:
    """Iterations over (18) for every ε, with one constant for all its terms."""
    times = needed(curve, "error")
    found = [over(times.sel(error=error), sweep.dim, sweep.letter, at, iterations) for error in ERRORS]
    return xr.concat(found, "error", coords="minimal", compat="override").assign_coords(error=list(ERRORS))


def thm1(results: Results, s: Settings) -> Figure:
    """Every seed's loss; the loss at the T of (18) over ε; what was needed over (18) against ε, α, M, K and η."""
    loss = Dots("(19) squared loss", {"fresh prompts": measured("training", "loss")}, "loss", {"ε": symbols(s).error})
    wide, small = symbols(timed(s, patterns=s.patterns)), symbols(timed(s))

    def panel(sweep: Sweep) -> Lines:
        at = wide if sweep.symbol == "α" else small
        data = apply(_over_stated, measured(sweep.experiment, "training_loss"), sweep, at)
        return OVER(f"(18) in {sweep.symbol}", data, sweep.dim, by="error", label="ε = {}", x=sweep.symbol)

    curve = measured("rate-fraction", "training_loss").sel(fraction=s.matching_fraction)
    in_error = OVER("(18) in ε", apply(by_error, curve, wide), "epsilon", x="ε")
    over_error = measured("edge", "loss") / measured("edge", "epsilon")
    there = Lines("(19) at the T of (18)", over_error, "epsilon", x="ε", y="loss over ε", limits=(0.0, 0.1))
    return picture(results, loss, there, in_error, *map(panel, SWEEPS), width=3.4, columns=4)


def edge(results: Results, s: Settings) -> Figure:
    """Iterations until the attention elsewhere, or its square, stays below ε; attention at the T of (18), and at the
    end of the standard training.
    """
    target, rule = measured("training", MASSES[0]), Scaling("epsilon", -1.0, "ε", towards="small")
    powers = {"Until 1 - p < ε, as (10) says": 1.0, "Until (1-p)² < ε, as (51) does": 2.0}
    until = (
        Power(words, apply(attention_by_error, target, power), rule, "iterations") for words, power in powers.items()
    )
    kinds = {"generic pattern": "elsewhere_generic", "equal mixture": "elsewhere_mixture"}
    data = {words: measured("edge", name) for words, name in kinds.items()}
    there = Lines("At the T of (18)", data, "epsilon", x="ε", y="attention elsewhere", limits=(0.0, 0.5), bounds=UNIT)
    mass = {kind: measured("mixtures", "mass").sel(kind=kind) for kind in KINDS}
    end = Dots("At the end, with the paper's M", mass, MASS, {"1 - ε": 1 - symbols(s).error})
    return picture(results, *until, there, end, width=3.8, columns=2)


def lemmas(results: Results, s: Settings) -> Figure:
    """The gradient by pattern and step along training; the end of stage 1 over (34) against ε."""
    pairs = [(pattern, step) for pattern in ("same", "other") for step in ("same", "other")]
    data = {
        f"{pattern} pattern, {step} step": gradient("rate-fraction", pattern, step).sel(
            fraction=s.matching_fraction, step=slice(1, None)
        )
        for pattern, step in pairs
    }
    lines = Lines("Lemmas F.5, F.7: mean gradient", data, "step", y="gradient", rules={"0": 0.0}, dots=False, log="x")
    right_step = measured("rate-fraction", "right_step").sel(fraction=s.matching_fraction)
    ends = apply(stage_by_error, right_step, symbols(timed(s, patterns=s.patterns)))
    rule = Scaling("epsilon", 0.0, "ε", towards="small")
    return picture(results, lines, Power("Lemma F.6: end of stage 1", ends, rule, "iterations over (34)"))


def rare(results: Results, s: Settings) -> Figure:
    """Where α is below 1/M: loss and attention along training."""
    lines = {"training loss": "training_loss", "attention on same pattern and step": "right_column"}
    data = {words: measured("rare", name).sel(step=slice(1, None)) for words, name in lines.items()}
    return picture(results, Lines("α below 1/M", data, "step", limits=WHOLE, dots=False, log="x"))


def thm2(results: Results, s: Settings) -> Figure:
    """Errors and attention on generic patterns and at the equal mixture; examples that CoT needs; error over τ."""
    shown = (
        ("CoT error, all queries", "sufficient", "error", "0-1 error", {"0.01": ZERO}),
        ("Next-step error at that pattern", "long-mixtures", "error", "0-1 error", {"0.01": ZERO}),
        ("Attention at that pattern", "mixtures", "mass", MASS, {"1 - ε": 1 - symbols(s).error}),
    )
    kinds = (
        Dots(title, {kind: measured(experiment, variable).sel(kind=kind) for kind in KINDS}, y, rules)
        for title, experiment, variable, y, rules in shown
    )
    laws = (law.panel(f"(23) in {law.symbol}") for law in CHAINS.values())
    region = Custom("CoT error over τ and l_ts", ("chains",), partial(_region, s))
    return picture(results, *kinds, region, *laws, width=3.8, columns=4)


def _region(s: Settings, axis: Axes, results: Results) -> None:
    """The theorem's boundary has the constant that fits the largest τ."""
    data = results["chains"]["error_B"].rename("error of CoT")
    at, values = symbols(s), data["value_B"].values
    taus = np.linspace(0.5 * values.min(), 1.3 * values.max(), 100)
    needed, easy = (chain_length(at).value * (tau / at.trajectory_probability) ** -2.0 for tau in (taus, values[-1]))
    easiest = CHAINS["B"].needed().evaluate(results).isel(value_B=-1)
    found = float(easiest.where(np.isfinite(easiest) & (easiest > 0)).mean())
    constant = found / easy if np.isfinite(found) else 1.0
    words = f"l_ts = {constant:.2g} (α'τρ)⁻² log M"
    boundary_map(axis, data, "value_B", "length", "τ", "l_ts", (taus, constant * needed), words)


def thm3(results: Results, s: Settings) -> Figure:
    """ICL error where Condition 1 holds and where it fails; examples that ICL needs against α', τ_o and ρ_o."""
    error = measured("comparison", "icl")
    lines = SHOWN("ICL error", error, "length", by="condition", label="Condition 1 {}", rules={"0.5": 0.5}, log="x")
    return picture(results, lines, *(law.panel(f"(25) in {law.symbol}") for law in DIRECT.values()), columns=2)


def _sweep(title: str, laws: Mapping[str, Law], results: Results, s: Settings) -> Figure:
    def panel(name: str, law: Law) -> Lines:
        title_there, data = f"{title.format(name)}, varying {law.symbol}", measured(law.experiment, law.variable)
        return SHOWN(title_there, data, law.along, by=law.over, label=f"{law.symbol} = {{}}", rules=ENOUGH)

    return picture(results, *(panel(name, law) for name, law in laws.items()), width=3.8)


def fig4(results: Results, s: Settings) -> Figure:
    """CoT and ICL error against the number of examples where Condition 1 holds and where it fails."""
    names = {"ICL": "icl", "CoT, all steps (7)": "cot", "CoT, final step": "cot_final"}

    def panel(condition: str) -> Lines:
        data = {label: measured("comparison", name).sel(condition=condition) for label, name in names.items()}
        return SHOWN(f"4: Condition 1 {condition}", data, "length", limits=WHOLE, log="x")

    return picture(results, panel("holds"), panel("fails"))


def fig5(results: Results, s: Settings) -> Figure:
    """Attention mass on four groups of columns along training, on noisy test prompts; the whole run and its start."""
    other = results["training"][MASSES[2]] + results["training"][MASSES[3]]
    end = float(np.nanmean(first_below(other, "step", 0.1).values))
    marks = {"end of stage 1": end} if np.isfinite(end) else {}

    def panel(title: str, last: float) -> Lines:
        names = {name.replace("pattern_", "pattern, ").replace("_", " "): name for name in MASSES}
        data = {words: measured("training", name).sel(step=slice(0, last)) for words, name in names.items()}
        return Lines(title, data, "step", y="attention mass", marks=marks, bounds=UNIT, dots=False)

    return picture(results, panel("5: attention along training", s.steps), panel("5: the first tenth", s.steps / 10))


def gpt2_steps(results: Results, s: Settings) -> Figure:
    """CoT error against α' at l_ts = l_tr, and CoT against ICL where Condition 1 fails: one layer and GPT-2."""
    error = {words: measured("gpt2-steps", "error").sel(model=model) for model, words in MODELS.items()}
    failing = {
        f"{way},\n{model}": measured("gpt2-steps", f"failing_{way.lower()}").sel(model=model)
        for way in ("ICL", "CoT")
        for model in MODELS
    }
    x, y = "matching fraction α'", "CoT error"
    lines = Lines(
        "CoT on unseen patterns", error, "fraction", x=x, y=y, rules=ENOUGH, limits=WHOLE, bounds=UNIT, seeds=True
    )
    return picture(results, lines, Dots("Condition 1 fails", failing, y="error"))


def gpt2_attention(results: Results, s: Settings) -> Figure:
    """Attention mass on the same pattern and step along training, noisy prompts: one layer, GPT-2 by layer."""

    def heads(axis: Axes, results: Results) -> None:
        heads_by_layer(axis, results["gpt2-training"][MASSES[0]])
        threshold(axis, 0.9, "0.9")
        axis.set(ylim=WHOLE, xlabel="training step", ylabel=MASS)
        axis.legend(ncols=2, loc="lower right")

    one = measured("training", MASSES[0])
    lines = Lines("One layer", one, "step", y=MASS, rules={"0.9": 0.9}, bounds=UNIT, limits=WHOLE, dots=False)
    return picture(results, lines, Custom("GPT-2", ("gpt2-training",), heads))


def rates(results: Results, s: Settings) -> Table:
    """All laws by all criteria."""
    laws = {f"lemmas, {name}": law for name, law in STAGES.items()}
    laws |= {f"{name} in {law.symbol}": law for name, by in (("thm2", CHAINS), ("thm3", DIRECT)) for law in by.values()}
    return law_table(laws, results)


fig2, fig3 = partial(_sweep, "2({}) CoT", CHAINS), partial(_sweep, "3({}) ICL", DIRECT)
figures = {"thm1": thm1, "thm2": thm2, "thm3": thm3, "fig2": fig2, "fig3": fig3, "fig4": fig4, "fig5": fig5}
figures |= {"edge": edge, "lemmas": lemmas, "rare": rare, "gpt2-steps": gpt2_steps, "gpt2-attention": gpt2_attention}
tables = {"rates": rates}

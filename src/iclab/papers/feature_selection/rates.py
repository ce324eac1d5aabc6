"""The rates of feature-selection: Theorem 1's iterations in λ_*, τ and α, and Proposition 1's approach of the attention."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Array, Key
from matplotlib.figure import Figure

from iclab.claims import Check, Claim, Results, Table, below
from iclab.drawing import COLOURS, panels
from iclab.evaluation import expect
from iclab.experiments import Lab
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.feature_selection.settings import Settings, recipe, symbols, unstated
from iclab.authoring.laws import LOSSES, TOPIC, Law, geometric, law_claim, law_panel, law_table, swept
from iclab.authoring.paper import Experiment
from iclab.probes.attention import attention_mass
from iclab.statistics import log_slope
from iclab.training import Member

LOWS = (0.3, 0.45, 0.6, 0.9, 1.2)  # λ_*, with λ ~ U(λ_*, 1.2)
NOISES = (0.0, 0.05, 0.09, 0.12, 0.14)  # τ; 1 - ε_m - τ M1 = 0.75 ... 0.05
FRACTIONS = (0.55, 0.6, 0.7, 0.8, 1.0)  # α; C - 1/α = 0.18 ... 1 with C = 2
PAPER = "feature-selection"


def _train(lab: Lab, name: str, field: str, values: Sequence[float]) -> xr.Dataset:
    s: Settings = lab.settings
    settings = [dataclasses.replace(s, **{field: value}) for value in values]  # type: ignore[arg-type]
    recipes = {
        f"{value:g}": (lambda seed, own=own: dataclasses.replace(recipe(own), watched=()))
        for value, own in zip(values, settings, strict=True)
    }
    return swept(lab.train(f"rate-{name}", recipes, geometric(s.rate_steps)).history, name, values)


def rate_low(lab: Lab) -> xr.Dataset:
    """Trainings at several λ_*."""
    return _train(lab, "low", "relevant_low", LOWS)


def rate_noise(lab: Lab) -> xr.Dataset:
    """Trainings at several τ."""
    return _train(lab, "noise", "noise_norm", NOISES)


def rate_fraction(lab: Lab) -> xr.Dataset:
    """Trainings at several α."""
    return _train(lab, "fraction", "matching_fraction", FRACTIONS)


def attend(model: SoftmaxTransformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention on contexts of the query's pattern and on others."""
    return expect(attention_mass, model, member.world, key, 2)


def approach(lab: Lab) -> xr.Dataset:
    """A longer training, its attention recorded at geometric steps."""
    s: Settings = lab.settings
    long = {"long": lambda seed: dataclasses.replace(recipe(s), watched=())}
    return lab.train("approach", long, geometric(4 * s.rate_steps, ratio=1.15), (attend,)).history.isel(setting=0, drop=True)


EXPERIMENTS = {
    "rate-low": Experiment(rate_low, cost=14),
    "rate-noise": Experiment(rate_noise, cost=14),
    "rate-fraction": Experiment(rate_fraction, cost=14),
    "approach": Experiment(approach, cost=12),
}


def laws(s: Settings) -> tuple[Law, ...]:
    """The laws at these settings; ε_m and C are those of `symbols`."""
    free = symbols(s)
    return (
        Law(
            "thm1-low", "Theorem 1, in λ_*", "The required number of iterations grows like λ_*⁻¹.",
            ("rate-low",), lambda r: r["rate-low"]["training_loss"], "low", "λ_*", -1.0, LOSSES, (0.6, 0.9, 1.2),
            rivals={"λ_*^(-2/3)": -2 / 3, "λ_*⁻²": -2.0},
            notes=("λ ~ U(λ_*, 1.2): its mean rises with λ_* too",),
        ),
        Law(
            "thm1-noise", "Theorem 1, in τ", "The required number of iterations grows like (1 - ε_m - τ M1)^(-1/2).",
            ("rate-noise",), lambda r: r["rate-noise"]["training_loss"], "noise", "1 − ε_m − τ M1", -0.5, LOSSES,
            NOISES[:3], rivals={"no dependence": 0.0, "power −1": -1.0},
            coordinate=lambda values: 1 - free.neuron_deviation - values * s.relevant_patterns,
            notes=(f"ε_m = {free.neuron_deviation:g}",),
        ),
        Law(
            "thm1-fraction", "Theorem 1, in α", "The required number of iterations grows like (C - 1/α)⁻¹.",
            ("rate-fraction",), lambda r: r["rate-fraction"]["training_loss"], "fraction", "C − 1/α", -1.0, LOSSES,
            FRACTIONS[2:], rivals={"no dependence": 0.0, "power −1/2": -0.5},
            coordinate=lambda values: free.attention_constant - 1 / values,
            notes=(f"C = {free.attention_constant:g}; P1 prints (1 - 1/α)⁻¹, which is negative",),
        ),
    )  # fmt: skip


def approach_exponent(results: Results) -> xr.DataArray:
    """The slope of log(attention elsewhere) against log T over the last decade of steps, per seed."""
    data = results["approach"]["attention_other"]
    late = data.isel(step=np.flatnonzero(data["step"].values >= max(1, int(data["step"][-1]) / 10)))
    return log_slope(late, "step")


def claims(s: Settings) -> list[Claim]:
    """One row per law, and Proposition 1's approach."""
    rows = [law_claim(PAPER, law, unstated(s)) for law in laws(s)]
    rows.append(
        Claim(
            f"{PAPER}/prop1-approach", "Proposition 1, O(1/T)",
            "The attention on contexts of other patterns goes to zero at least as fast as 1/T.",
            (Check("exponent of that attention in T over the last decade", below(-0.75), approach_exponent),),
            ("approach",), "rates", (*unstated(s), "'O(1/T)': an exponent below -3/4, from a tenth of the run on"), topic=TOPIC,
        )
    )  # fmt: skip
    return rows


def rates_table(results: Results, settings: Settings) -> Table:
    """All laws by all criteria."""
    return law_table(laws(settings), results)


def rates(results: Results, settings: Settings) -> Figure:
    """Required iterations against λ_*, τ and α with fitted and predicted power laws, and the approach of the attention."""
    shown = [law for law in laws(settings) if all(name in results for name in law.needs)]
    titles = [f"Thm 1 in {law.symbol}" for law in shown] + ["Prop 1: attention elsewhere"] * ("approach" in results)
    figure, axes = panels(len(titles), tuple(titles), width=3.4)
    for axis, law in zip(axes, shown, strict=False):
        law_panel(axis, law, results)
    if "approach" in results:
        data = results["approach"]["attention_other"]
        times = data["step"].values[1:]
        axes[-1].loglog(times, data.isel(step=slice(1, None)).transpose("step", "seed"), color=COLOURS[0], lw=0.8, alpha=0.6)
        late = times >= times[-1] / 10
        end = float(data.isel(step=-1).mean("seed"))
        axes[-1].loglog(times[late], end * times[-1] / times[late], color="#333333", ls="--", lw=1.0, label="1/T")
        axes[-1].set_xlabel("T")
        axes[-1].set_ylabel("attention on other patterns")
        axes[-1].legend()
    return figure


FIGURES = {"rates": rates}
TABLES = {"rates": rates_table}

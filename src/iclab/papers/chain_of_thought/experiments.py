"""What is run for chain-of-thought: one training, tests by CoT and by ICL with erroneous examples; `timed` has more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Experiment, Lab, Member, Prompt, Trained, errors, expect, require, squared
from iclab.errors import InputError
from iclab.inference import chain_errors
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer
from iclab.papers.chain_of_thought import gpt2, laws, timed
from iclab.papers.chain_of_thought import settings as worlds
from iclab.papers.chain_of_thought.explorer import explorer
from iclab.papers.chain_of_thought.settings import KINDS, Settings, output_matrices, step_matrices
from iclab.probes.steps import at_first_pattern, step_masses
from iclab.worlds.reasoning import Mode

LENGTHS = (5, 10, 15, 20, 30, 40)  # l_ts of Figs. 2(A) and (B)
FINE_LENGTHS = (3, 4, 5, 6, 7, 8, 10, 12, 15)  # of Fig. 2(C): few examples are enough at τ = 0.5
DIRECT_LENGTHS = (5, 10, 20, 40, 80, 160, 320)  # l_ts of Fig. 3
SHORT = 20  # prompts up to this length share a program; a longer one would pad them
COMPARISON_LENGTHS = (10, 20, 40, 80, 160, 320, 640, 1280)  # l_ts of Fig. 4
MIXTURES = "Attention and next-step error at one pattern, generic or the equal mixture, at the l_ts {}."
LARGEST_NOISE = math.sqrt(0.5)  # (14)
Transformer = ChainTransformer | SeparateChainTransformer
Dims = Mapping[str, Sequence[Any]]
Points = Mapping[float, tuple[np.ndarray, float]]
MEASURES = {Mode.chain: chain_errors, Mode.direct: errors(squared), Mode.next_step: at_first_pattern}


def varied(s: Settings, mode: Mode) -> dict[str, dict[float, tuple[np.ndarray, float]]]:
    """What the panels of Fig. 2 (by CoT) or Fig. 3 (by ICL) vary: by value, the transition matrices and α'."""
    chain, fraction = mode is Mode.chain, s.test_matching_fraction
    build = partial(step_matrices if chain else output_matrices, s)
    tau, rho = (s.trajectory_probability, s.primacy) if chain else laws.OUTPUT
    second = [(value, rho) for value in (laws.TRAJECTORIES if chain else laws.OUTPUTS)]
    third = [(tau, value) for value in (laws.PRIMACIES if chain else laws.OUTPUT_PRIMACIES)]
    figure = f"Fig. {2 if chain else 3}"
    return {
        "A": {value: (build(tau, rho), value) for value in laws.FRACTIONS},
        "B": {pair[0]: (made, fraction) for pair, made in _feasible(build, second, f"{figure}B")},
        "C": {pair[1]: (made, fraction) for pair, made in _feasible(build, third, f"{figure}C")},
    }


def _feasible(build: Callable[..., np.ndarray], wishes: Sequence[tuple[float, float]], what: str) -> list[tuple]:
    """Those (τ, ρ) of a figure that K and M' allow, with their matrices; a figure needs at least two."""
    made = []
    for wish in wishes:
        try:
            made.append((wish, build(*wish)))
        except InputError:
            continue
    require(len(made) >= 2, f"these settings allow {len(made)} of the values {what} is drawn for: {list(wishes)}.")
    return made


def check(s: Settings) -> None:
    """Build every matrix before anything is trained, so that what cannot be met is refused at once."""
    for mode, condition in ((Mode.chain, True), (Mode.direct, False)):
        varied(s, mode)
        output_matrices(s, *laws.COMPARISON, condition_1=condition)


def observe(model: Transformer, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """Attention by step and pattern on noisy test prompts, next steps of all kinds."""
    return expect(step_masses, model, member.watched[0], key, 2)


def standard(lab: Lab) -> Trained:
    """The one training. What is observed belongs to the experiment "training"."""
    s: Settings = lab.settings
    observers = (observe,) if lab.runs("training") else ()
    return lab.train("standard", {"standard": lambda seed: worlds.recipe(s, seed)}, s.record_at, observers, squared)


def _asked(
    lab: Lab, name: str, mode: Mode, dims: Dims, prompts: int, world: Callable[..., tuple], measure: Any = None
) -> xr.Dataset:
    """The standard training asked in a mode; `world(**coordinates)` is what `inference_world` takes behind it."""

    def place(setting: str, seed: int, **at: Any) -> object:
        return worlds.inference_world(lab.settings, seed, mode, *world(**at))

    asked = measure or MEASURES[mode]
    return lab.evaluate(standard(lab), name, asked, place, dims, prompts).isel(setting=0, drop=True)


def _panel(lab: Lab, name: str, mode: Mode, points: Points, lengths: Sequence[int], most: int) -> xr.Dataset:
    """Errors over values and numbers of examples in prompts that are padded to `most`; fewer prompts by ICL, whose are
    as long as those of Fig. 4.
    """
    s: Settings = lab.settings
    at, prompts = list(points.values()), s.trend_prompts if mode is Mode.chain else s.comparison_prompts
    dims = {"value": range(len(at)), "length": lengths}
    found = _asked(lab, name, mode, dims, prompts, lambda value, length: (*at[value], length, most))
    return found.assign_coords(value=list(points))


def _named(found: xr.Dataset, panel: str, length: str = "length") -> xr.Dataset:
    """A panel's values are "value_A", its error is "error_A", and so on."""
    names = {key: f"{key}_{panel}" for key in ("value", *map(str, found.data_vars))}
    return found.rename(names | ({"length": length} if length != "length" else {}))


def chains(lab: Lab) -> xr.Dataset:
    """Figure 2: errors of CoT over α', τ and ρ."""
    s: Settings = lab.settings
    panels, most = varied(s, Mode.chain), s.longest_test
    lengths = [length for length in LENGTHS if length <= most]
    parts = [_named(_panel(lab, f"cot {name}", Mode.chain, panels[name], lengths, most), name) for name in "AB"]
    fine = [length for length in FINE_LENGTHS if length <= most]
    third = _panel(lab, "fine cot C", Mode.chain, panels["C"], fine, fine[-1])
    return xr.merge([*parts, _named(third, "C", "length_C")], compat="no_conflicts", join="outer")


def direct(lab: Lab) -> xr.Dataset:
    """Figure 3: errors of ICL over α', τ_o and ρ_o."""
    s: Settings = lab.settings
    lengths = [length for length in DIRECT_LENGTHS if length <= s.longest_direct]
    groups = [[length for length in lengths if length <= SHORT], *([length] for length in lengths if length > SHORT)]
    parts = []
    for name, points in varied(s, Mode.direct).items():
        found = [_panel(lab, f"icl {name} {group[-1]}", Mode.direct, points, group, group[-1]) for group in groups]
        parts.append(_named(xr.concat(found, "length"), name))
    return xr.merge(parts, compat="no_conflicts", join="outer")


def _at(
    lab: Lab, name: str, mode: Mode, matrices: np.ndarray, kinds: Sequence[str], length: int, prompts: int, **other: Any
) -> xr.Dataset:
    """At one l_ts, on generic test patterns and with the equal mixture of all training patterns among them."""
    asked = matrices, lab.settings.test_matching_fraction, length, length
    noise, measure = other.get("noise"), other.get("measure")
    return _asked(lab, name, mode, {"kind": kinds}, prompts, lambda kind: (*asked, kind, noise), measure)


def generalisation(lab: Lab) -> xr.Dataset:
    """Theorem 2 at the longest l_ts of Fig. 2."""
    s: Settings = lab.settings
    return _at(lab, "generalisation", Mode.chain, step_matrices(s), KINDS, s.longest_test, s.prompts)


def answer_at_once(model: Transformer, prompt: Prompt) -> dict[str, Array]:
    """The error of ICL, and its attention by pattern and step."""
    return {**errors(squared)(model, prompt), **step_masses(model, prompt)}


def sufficient(lab: Lab) -> xr.Dataset:
    """Theorems 2 and 3(b) at an l_ts that is enough for ICL too (with the largest feasible ρ_o of Fig. 3C): errors of
    CoT, also with the largest noise (14), of ICL, and what ICL attends to.
    """
    s: Settings = lab.settings
    best, _ = list(varied(s, Mode.direct)["C"].values())[-1]
    ask = partial(_at, lab, length=s.sufficient_test, prompts=s.trend_prompts)
    found = ask("sufficient", Mode.chain, step_matrices(s), KINDS)
    loud = ask("sufficient noise", Mode.chain, step_matrices(s), KINDS[:1], noise=LARGEST_NOISE)
    once = ask("sufficient direct", Mode.direct, best, KINDS[:1], measure=answer_at_once)
    alone = {"noisy_error": loud["error"], "icl_error": once["error"], "icl_mass": once["same_pattern_same_step"]}
    return found.assign({key: values.isel(kind=0, drop=True) for key, values in alone.items()})


def _mixtures(length: str, prompts: str, name: str, lab: Lab) -> xr.Dataset:
    """Attention and next-step error where the query's input is the first pattern, generic or the equal mixture."""
    s: Settings = lab.settings
    asked = getattr(s, length), getattr(s, prompts)
    found = _at(lab, name, Mode.next_step, step_matrices(s), KINDS, *asked)
    count = found["first_count"].where(found["first_count"] > 0)
    return xr.Dataset({"mass": found["first_mass"] / count, "error": found["first_wrong"] / count})


def comparison(lab: Lab) -> xr.Dataset:
    """Fig. 4: CoT and ICL on the same prompts, with Condition 1 holding and failing."""
    s: Settings = lab.settings
    lengths = [length for length in COMPARISON_LENGTHS if length <= s.longest_comparison]
    dims = {"condition": ("holds", "fails"), "length": lengths}

    def world(condition: str, length: int) -> tuple:
        matrices = output_matrices(s, *laws.COMPARISON, condition_1=condition == "holds")
        return matrices, s.test_matching_fraction, length, lengths[-1]

    chain, once = (
        _asked(lab, f"comparison {mode.name}", mode, dims, s.comparison_prompts, world)
        for mode in (Mode.chain, Mode.direct)
    )
    return xr.Dataset({"cot": chain["error"], "cot_final": chain["final_error"], "icl": once["error"]})


def training(lab: Lab) -> xr.Dataset:
    """The observed training, and its loss."""
    return gpt2.with_loss(lab, standard(lab), lab.settings)


def deep_training(lab: Lab) -> xr.Dataset:
    """GPT-2, observed."""
    return gpt2.with_loss(lab, gpt2.trained(lab), lab.settings.gpt2)


def deep_steps(lab: Lab) -> xr.Dataset:
    """GPT-2 and one layer, step by step."""
    return gpt2.steps(lab, standard(lab))


experiments = {
    "training": Experiment(training, cost=20),
    "chains": Experiment(chains, cost=35),
    "direct": Experiment(direct, cost=45),
    "generalisation": Experiment(generalisation, cost=4),
    "mixtures": Experiment(partial(_mixtures, "longest_test", "prompts", "mixtures"), 4, MIXTURES.format("of Fig. 2")),
    "sufficient": Experiment(sufficient, cost=12),
    "long-mixtures": Experiment(
        partial(_mixtures, "sufficient_test", "long_prompts", "long mixtures"), 4, MIXTURES.format("of Theorem 3(b)")
    ),
    "comparison": Experiment(comparison, cost=45),
    "explorer": Experiment(explorer, cost=8),
    "gpt2-training": Experiment(deep_training, cost=100),
    "gpt2-steps": Experiment(deep_steps, cost=25),
    "rate-fraction": Experiment(timed.rate_fraction, cost=25),
    "rate-size": Experiment(timed.rate_size, cost=15),
    "rate-patterns": Experiment(timed.rate_patterns, cost=25),
    "rate-steps": Experiment(timed.rate_steps, cost=25),
    "rare": Experiment(timed.rare, cost=5),
    "edge": Experiment(timed.edge, cost=25),
}

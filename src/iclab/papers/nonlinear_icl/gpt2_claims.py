"""The claims of nonlinear-icl on GPT-2 and their rules.

Fig. 3 is the paper's own claim on GPT-2; its rules are those of the one-layer rows, number for number. Rows called "beyond-..." ask
of GPT-2 what the paper shows of the one-layer model only. Before the rules were written, only the training loss in domain had
been seen (two seeds of three step sizes): width, optimiser, step size and steps follow from it.
"""

from __future__ import annotations

import xarray as xr

from iclab.authoring.gpt2 import FEWER_SEEDS, TOPIC
from iclab.claims import Check, Claim, Results, above, below, note
from iclab.papers.nonlinear_icl.claims import TAU, UNIT, epsilon
from iclab.papers.nonlinear_icl.gpt2 import CONTEXTS
from iclab.papers.nonlinear_icl.settings import Settings, unstated_world
from iclab.statistics import required, trend

PAPER = "nonlinear-icl"
SCOUTED = (
    "Before the rule was written the training loss in domain had been seen (2 seeds, three step sizes), and out of domain only a "
    "model of 20 steps, at chance."
)
FEWER = "Prompts per member were halved after the first run, to save time; rule unchanged, no verdict changed by it."
MILD = (
    "Row added after the first run, in which Figure 3(A) differed at every S_1, to tell the two shifts apart: new patterns, and "
    "irrelevant parts ten times as large. The rule is Figure 3(A)'s."
)
AFTERWARDS = {
    "fig3?-gpt2*": f"{SCOUTED} {FEWER}",
    "beyond-gpt2-[tap]*": f"{SCOUTED} {FEWER}",
    "beyond-gpt2-fig3a-*": MILD,
    "*": FEWER_SEEDS,
}


def _sums(results: Results, name: str, contexts: str, low: float, high: float) -> xr.DataArray:
    return results["gpt2-sums"][name].sel(setting=contexts, total=slice(low, high))


def _required(results: Results, name: str, contexts: str, domain: str, threshold: float) -> xr.DataArray:
    return required(results["gpt2-lengths"][name].sel(setting=contexts, domain=domain), "length", threshold, "fraction")


def _best_head(results: Results, domain: str, step: int) -> xr.DataArray:
    """Mass on contexts with the query's pattern, in the layer and head that have most of it at the end of training."""
    mass = results["gpt2-training"][f"{domain}_attention_same"].sel(setting="fixed").stack(place=("layer", "head"))
    best = mass.isel(step=-1).fillna(0).argmax("place")
    return mass.isel(step=step).isel(place=best)


def _pruned(results: Results, name: str, domain: str, layer: str, order: str) -> xr.DataArray:
    return results["gpt2-pruned"][name].sel(setting="fixed", domain=domain, layer=layer, order=order)


def _rise(results: Results, name: str, domain: str, layer: str) -> xr.DataArray:
    curve = _pruned(results, name, domain, layer, "smallest first")
    return curve.sel(rate=0.15) - curve.sel(rate=0.0)


def claims(s: Settings) -> tuple[Claim, ...]:
    """The rows on GPT-2."""
    eps = epsilon(s)
    words = {
        "fixed": f"trained on contexts of {s.train_length} examples",
        "varied": f"trained on contexts of {s.gpt2_shortest_train} to {s.train_length} examples by turns",
    }
    layers = tuple(str(number + 1) for number in range(s.gpt2.depth))
    rows = []
    for contexts in CONTEXTS:
        open_settings = (*s.gpt2.unstated(), *unstated_world(s), f"contexts: {words[contexts]}; tested up to {s.train_length}")
        key = "" if contexts == "fixed" else "-varied"
        for name, threshold, suffix, bounds, word in (
            ("error", 0.01, "", UNIT, "0-1 error"),
            ("hinge", eps, "-hinge", (0, float("inf")), "hinge loss"),
        ):
            rows.append(Claim(
                f"{PAPER}/fig3a-gpt2{key}{suffix}", f"Figure 3(A), on GPT-2, {words[contexts]}",
                f"GPT-2's out-of-domain {word} is {'below 0.01' if name == 'error' else 'O(ε)'} when S_1 >= 1 and "
                f"{'deviates from 0' if name == 'error' else 'larger'} when S_1 < 1.",
                (
                    Check(f"largest {word} over S_1 >= 1", below(threshold), lambda r, n=name, c=contexts: _sums(r, n, c, 1, 2).max("total"), bounds),
                    Check(f"smallest {word} over S_1 < 1", above(threshold), lambda r, n=name, c=contexts: _sums(r, n, c, 0, 0.99).min("total"), bounds),
                ),
                ("gpt2-sums", "sums"), "fig3a", (*open_settings, "grid of S_1: 0.4 to 1.28; ε as for the one-layer model"), words[contexts],
            ))  # fmt: skip
            limit = 0.05 if name == "error" else eps
            rows.append(Claim(
                f"{PAPER}/fig3b-gpt2{key}{suffix}", f"Figure 3(B), on GPT-2, {words[contexts]}",
                f"GPT-2 needs a longer test context when the matching fraction α' is smaller, in and out of domain, by its {word}.",
                tuple(
                    Check(f"rank correlation of required length with α', {label}", below(0),
                          lambda r, n=name, c=contexts, d=domain, t=limit: _required(r, n, c, d, t), TAU)
                    for domain, label in (("in", "in domain"), ("out", "out of domain"))
                ),
                ("gpt2-lengths", "lengths"), "fig3b", (*open_settings, f"required length: smallest l_ts from which on the {word} stays below {limit:.3g}"), words[contexts],
            ))  # fmt: skip
        rows.append(Claim(
            f"{PAPER}/beyond-gpt2-fig3a-mild{key}", f"Beyond the paper: Figure 3(A) on GPT-2 with K' = K, {words[contexts]}",
            "With irrelevant parts no larger than in training, GPT-2's out-of-domain 0-1 error is below 0.01 when S_1 >= 1 and deviates from 0 when S_1 < 1.",
            (
                Check("largest 0-1 error over S_1 >= 1", below(0.01), lambda r, c=contexts: _sums(r, "mild_error", c, 1, 2).max("total"), UNIT),
                Check("smallest 0-1 error over S_1 < 1", above(0.01), lambda r, c=contexts: _sums(r, "mild_error", c, 0, 0.99).min("total"), UNIT),
            ),
            ("gpt2-sums", "sums"), "fig3a", (*open_settings, f"K' = {s.irrelevant_size:g}; grid of S_1: 0.4 to 1.28"), words[contexts],
        ))  # fmt: skip
        rows.append(Claim(
            f"{PAPER}/beyond-gpt2-thm3.3{key}", f"Beyond the paper: Theorem 3.3 asked of GPT-2, {words[contexts]}",
            "Trained on 24 of the 30 tasks, GPT-2 answers the six unseen ones with loss O(ε).",
            (
                Check("hinge loss over unseen tasks", below(eps), lambda r, c=contexts: r["gpt2-training"]["hinge"].sel(setting=c), (0, float("inf"))),
                Check("0-1 error over unseen tasks", below(0.01), lambda r, c=contexts: r["gpt2-training"]["error"].sel(setting=c), UNIT),
            ),
            ("gpt2-training", "generalisation"), "gpt2-training", open_settings, words[contexts],
        ))  # fmt: skip
    open_settings = (*s.gpt2.unstated(), *unstated_world(s), f"contexts: {words['fixed']}")
    for domain, label in (("in", "in domain"), ("out", "out of domain")):
        rows.append(Claim(
            f"{PAPER}/beyond-gpt2-attention-{domain}", f"Beyond the paper: Figure 2(B) asked of GPT-2, {label}",
            "In at least one head the query's attention moves onto the contexts with its pattern, as the one-layer model's does.",
            (
                Check("attention mass at the end, in the layer and head with most", above(0.9), lambda r, d=domain: _best_head(r, d, -1), UNIT),
                Check("gain in that head over training", above(0), lambda r, d=domain: _best_head(r, d, -1) - _best_head(r, d, 0)),
            ),
            ("gpt2-training", "training"), "gpt2-attention", (*open_settings, "'concentrated': above 0.9, as for the one-layer model"),
        ))  # fmt: skip
        rows.append(Claim(
            f"{PAPER}/beyond-gpt2-pruning-{domain}", f"Beyond the paper: Theorem 3.7 and Figure 5(A) asked of GPT-2's MLPs, {label}",
            "In no layer, nor in all at once, does removing the 15 % smallest neurons hurt; removing the largest first in all layers does, the more the more of them.",
            (
                *(
                    Check(f"rise of the error at pruning rate 0.15, {'all layers' if layer == 'all' else f'layer {layer}'}", below(0.01),
                          lambda r, d=domain, x=layer: _rise(r, "error", d, x))
                    for layer in (*layers, "all")
                ),
                Check("rise of the hinge loss with the fraction of largest neurons removed, rank correlation", above(0.5),
                      lambda r, d=domain: trend(_pruned(r, "hinge", d, "all", "largest first"), "rate"), TAU),
            ),
            ("gpt2-pruned", "pruned"), "gpt2-pruning", (*open_settings, "a neuron's norm: that of its incoming weights; α = 0.8 in training, as for Fig. 3"),
        ))  # fmt: skip
    return note(rows, AFTERWARDS, TOPIC)

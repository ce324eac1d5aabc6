"""Seconds for the trainings of GPT-2 at the paper profile, in float32 and with bfloat16 gradients, observed as in
the figures.

    python benchmarks/gpt2.py [--seeds 32] [--only 50] [--papers nonlinear-icl,...] [--width 64] [--out FILE]

With `--only N` the first N steps are run and the time of the whole training is extrapolated: an estimate, and it says
so.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from iclab import ensemble
from iclab.devices import prepare_jax
from iclab.experiments import Recipe
from iclab.losses import Loss, hinge, squared
from iclab.papers import PAPERS
from iclab.papers.chain_of_thought import gpt2 as chain_of_thought
from iclab.papers.mamba_outliers.experiments import gpt2 as outliers
from iclab.papers.nonlinear_icl import gpt2 as nonlinear_icl
from iclab.settings import replaced
from iclab.training import Member, Observer, train

TRAININGS: dict[str, tuple[Callable[..., Recipe], Loss, tuple[Observer, ...]]] = {
    "nonlinear-icl": (lambda s, seed: nonlinear_icl.recipe(s, "fixed"), hinge, (nonlinear_icl.observe,)),
    "mamba-outliers": (lambda s, seed: outliers(s), hinge, ()),
    "chain-of-thought": (chain_of_thought.recipe, squared, (chain_of_thought.observe,)),
}


@dataclasses.dataclass(frozen=True)
class Measured:
    """Seconds of the first call and of the training, its steps, and the mean loss over the last stretch and all
    seeds.
    """

    first: float
    training: float
    steps: int
    loss: float


def measure(paper: str, settings: Any, seeds: int, only: int | None) -> Measured:
    """One training of all seeds, after a first call that compiles."""
    recipe, loss, observers = TRAININGS[paper]
    members = []
    for seed in range(seeds):
        made = recipe(settings, seed)
        key = ensemble.member_key(f"benchmark/gpt2/{paper}", seed)
        members.append(Member(key, made.world, made.model, made.training, made.watched))
    stacked = ensemble.stack(members)
    schedule = settings.gpt2.record_at() if only is None else [0, only]
    run = functools.partial(train, stacked, loss, observers=observers)
    began = time.perf_counter()
    run([0, 1])
    compiled = time.perf_counter() - began
    began = time.perf_counter()
    _, record = run(schedule)
    return Measured(compiled, time.perf_counter() - began, schedule[-1], float(record["training_loss"][:, -1].mean()))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--only", type=int)
    parser.add_argument("--papers", default=",".join(TRAININGS))
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    prepare_jax()
    device = f"{jax.local_device_count()} × {jax.local_devices()[0].device_kind}"
    lines = [
        f"`benchmarks/gpt2.py` on {device}, JAX {jax.__version__}: 3 layers, 2 heads, width {arguments.width}, "
        f"{arguments.seeds} seeds at once.",
        "",
        "| paper | gradients | steps | first call with compilation, s | training, s | model-steps/s | last loss | "
        "note |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for paper in arguments.papers.split(","):
        for half in (False, True):
            changes = {"gpt2.half": half, "gpt2.width": arguments.width}
            settings = replaced(PAPERS[paper].settings["paper"], changes)
            found = measure(paper, settings, arguments.seeds, arguments.only)
            whole = settings.gpt2.steps
            total = found.training * whole / found.steps
            note = "measured" if found.steps == whole else f"estimated from {found.steps} steps"
            rate = arguments.seeds * found.steps / found.training
            lines.append(
                f"| {paper} | {'bfloat16' if half else 'float32'} | {whole} | {found.first:.1f} | {total:.1f} | "
                f"{rate:,.0f} | {found.loss:.4f} | {note} |"
            )
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()

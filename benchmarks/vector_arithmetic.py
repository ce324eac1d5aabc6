"""Seconds for one training of vector-arithmetic at the paper's size (d = 3000), observed as in the figures.

    python benchmarks/vector_arithmetic.py [--seeds 1] [--only 20] [--out benchmarks/vector_arithmetic.md]

With `--only N` the first N epochs are run and the time of the whole training is extrapolated: an estimate, and it says
so.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import jax

from iclab import ensemble
from iclab.devices import prepare_jax
from iclab.losses import cross_entropy
from iclab.papers.vector_arithmetic.experiments import observe
from iclab.papers.vector_arithmetic.settings import recipe, settings
from iclab.training import Member, train
from iclab.worlds.concepts import Kind


def seconds(kind: Kind, seeds: int, only: int | None) -> tuple[float, float, int]:
    """Compilation and training time in seconds, and the number of epochs that were run."""
    size = settings["paper"]
    made = recipe(size, kind)
    members = ensemble.stack(
        [
            Member(
                ensemble.member_key(f"benchmark/{kind.value}", seed),
                made.world,
                made.model,
                made.training,
                made.watched,
            )
            for seed in range(seeds)
        ]
    )
    schedule = size.record_at(kind) if only is None else [0, only]
    began = time.perf_counter()
    train(members, cross_entropy, [0, 1], (observe,))
    compiled = time.perf_counter() - began
    began = time.perf_counter()
    train(members, cross_entropy, schedule, (observe,))
    return compiled, time.perf_counter() - began, schedule[-1]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--kinds", default="qa,icl,qa-icl")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    prepare_jax()
    device = f"{jax.local_device_count()} × {jax.local_devices()[0].device_kind}"
    lines = [
        f"`benchmarks/vector_arithmetic.py` on {device}, JAX {jax.__version__}, float32, d = 3000, "
        f"{arguments.seeds} seeds:",
        "",
        "| trained on | epochs | first call with compilation, s | training, s | note |",
        "|---|---|---|---|---|",
    ]
    for kind in map(Kind, arguments.kinds.split(",")):
        compiled, spent, epochs = seconds(kind, arguments.seeds, arguments.only)
        whole = settings["paper"].record_at(kind)[-1]
        total = spent * whole / epochs
        note = "measured" if epochs == whole else f"estimated from {epochs} epochs"
        lines.append(f"| {kind.value} | {whole} | {compiled:.1f} | {total:.1f} | {note} |")
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()

"""Time and memory of the closed form (3), or of every mixer, against the prompt length, forward and backward, with
the fitted growth exponent.

    python benchmarks/prompt_length.py [--longest 1000000] [--out benchmarks/prompt_length.md]
    python benchmarks/prompt_length.py --mixers --longest 100000 [--out benchmarks/mixer_length.md]

Times are medians over repeats after compilation; memory is what XLA plans for the gradient program (arguments, outputs
and temporaries). Exponents are fitted on log-log data from 1,000 examples on, where constant overheads are small; the
step in the times between 30,000 and 100,000 examples is where the arrays no longer fit into the cache.
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from iclab import randomness
from iclab.losses import hinge
from iclab.models.linear_transformer import LinearTransformerSettings
from iclab.models.mamba import MambaSettings
from iclab.models.zoo import MIXERS
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.outliers import Outliers
from iclab.worlds.tasks import cyclic_tasks

LENGTHS = [10**exponent * factor for exponent in range(2, 7) for factor in (1, 3)]


def world(length: int) -> Classification:
    """Prompts of mamba-outliers with this many examples."""
    patterns = orthogonal_patterns(30, 6, 10, 3.0, outliers=3)
    return Classification(
        patterns, cyclic_tasks(6, 3), label_embedding=np.ones(1), matching_fraction=1.0, context_length=length,
        outliers=Outliers(0.6, 2.0),
    )  # fmt: skip


def measure(settings, length: int) -> tuple[float, float, float]:
    """Seconds forward, seconds forward + backward, bytes of the gradient program, for one prompt of this length."""
    made = world(length)
    model = settings.init(randomness.key(0), made)
    prompt = eqx.filter_jit(made.sample)(randomness.key(1), 0)

    def loss(model, prompt):
        return hinge.value(model(prompt)[0], prompt)

    times = []
    compiled = None
    for function in (loss, jax.value_and_grad(loss)):
        compiled = jax.jit(function).lower(model, prompt).compile()
        found = []
        for _ in range(5 if length >= 100_000 else 20):
            began = time.perf_counter()
            result = jax.block_until_ready(compiled(model, prompt))
            found.append(time.perf_counter() - began)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(result)), f"not finite at length {length}"
        times.append(float(np.median(found)))
    plan = compiled.memory_analysis()
    total = plan.temp_size_in_bytes + plan.argument_size_in_bytes + plan.output_size_in_bytes
    return times[0], times[1], total


def exponent(lengths: list[int], values: list[float]) -> float:
    """The slope of a line on log-log axes, from 1,000 examples on."""
    chosen = np.asarray(lengths) >= 1000
    return float(np.polyfit(np.log(np.asarray(lengths)[chosen]), np.log(np.asarray(values)[chosen]), 1)[0])


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=int, default=1_000_000)
    parser.add_argument("--mixers", action="store_true", help="one layer of every mixer in place of the paper's models")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    lengths = [length for length in LENGTHS if length <= arguments.longest]
    models: dict[str, Any] = (
        {name: make() for name, make in MIXERS.items()}
        if arguments.mixers
        else {
            "Mamba": MambaSettings(),
            "linear Transformer": LinearTransformerSettings(),
            "Mamba, three layers": MambaSettings(depth=3),
        }
    )
    lines = [
        f"Made by `benchmarks/prompt_length.py` ({platform.machine()}, JAX {jax.__version__}, "
        f"{jax.default_backend()}):",
        "one prompt with d = 30.",
        "",
        "| model | examples | forward, ms | forward + backward, ms | memory, MB |",
        "|---|---|---|---|---|",
    ]
    for name, settings in models.items():
        rows = [measure(settings, length) for length in lengths]
        for length, (forward, both, size) in zip(lengths, rows, strict=True):
            lines.append(f"| {name} | {length:,} | {1e3 * forward:.3g} | {1e3 * both:.3g} | {size / 1e6:.3g} |")
        fits = [exponent(lengths, [row[column] for row in rows]) for column in range(3)]
        lines.append(f"| {name} | growth exponent | {fits[0]:.2f} | {fits[1]:.2f} | {fits[2]:.2f} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(f"# Cost against prompt length\n\n{text}")


if __name__ == "__main__":
    main()

"""One case measured, in a process of its own: `python -m iclab.bench.measure CASE --seconds 3` prints a line of JSON.

A fresh process has an honest compile time (the cache on disk is off), its own peak of memory, and no thread pool of the
other library. Rates are the best of three stretches.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iclab import ensemble, training
from iclab.bench import peers
from iclab.bench.cases import CASES, Case
from iclab.devices import clock, prepare_jax

PER_CORE = 2  # members on each core: they are trained one after another, so that more would only take longer


def matrix_rate() -> float:
    """FLOP a second of a large float32 matrix product on all of this machine's devices: what rates are compared
    with.
    """
    size = 2048 if jax.default_backend() == "cpu" else 8192
    flop = 2.0 * size**3
    product = jax.jit(lambda a: a @ a)
    matrix = jnp.full((size, size), 1e-3)
    on_jax = _best(lambda: jax.block_until_ready(product(matrix)), 6)
    if jax.default_backend() != "cpu":
        return jax.local_device_count() * flop / on_jax
    array = np.full((size, size), 1e-3, np.float32)
    return flop / min(on_jax, _best(lambda: array @ array, 6))


def _best(work: Any, times: int) -> float:
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken[1:])


def ours(case: Case, seconds: float, members: int | None = None) -> dict[str, Any]:
    """Model-steps a second, compile time and peak memory of an ensemble of this case, fresh prompts and all."""
    on_cpu = jax.default_backend() == "cpu"
    count = members or (PER_CORE if on_cpu else case.on_gpu) * jax.local_device_count()
    stacked = case.members(count)
    layout = ensemble.Layout(count, 0)
    spread = layout.spread(stacked)
    before = clock().seconds
    state = training._compiled_start(False)(layout.counts, spread)
    advance = training._compiled_advance(case.loss, (), "")

    def stretch(steps: int) -> float:
        nonlocal state
        began = time.perf_counter()
        state, record = advance(layout.counts, spread, state, layout.spread(np.full(count, steps, np.int32)))
        jax.block_until_ready((state, record))
        return time.perf_counter() - began

    stretch(1)
    compiled = clock().seconds - before
    steps = 4
    while (taken := stretch(steps)) < min(0.3, seconds / 6) and steps < 1 << 20:
        steps *= 2
    steps = max(1, round(steps * seconds / 3 / taken))
    fastest = min(stretch(steps) for _ in range(3))
    device = jax.local_devices()[0]
    peak = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if on_cpu
        else (device.memory_stats() or {}).get("peak_bytes_in_use", 0)
    )
    return {"rate": count * steps / fastest, "members": count, "compile_s": compiled, "peak_bytes": int(peak)}


def main() -> None:
    """Measure what the arguments say and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=[*CASES, "matrix"])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--members", type=int)
    parser.add_argument("--peer", choices=["eager", "compiled"])
    asked = parser.parse_args()
    if asked.peer:
        found: dict[str, Any] = {"rate": peers.rate(asked.case, asked.seconds, asked.members or 0)}
    else:
        prepare_jax()
        jax.config.update("jax_enable_compilation_cache", False)
        clock()
        if asked.case == "matrix":
            device = f"{jax.local_device_count()} x {jax.local_devices()[0].device_kind}"
            found = {"flop_per_s": matrix_rate(), "device": device, "jax": jax.__version__}
        else:
            found = ours(CASES[asked.case], asked.seconds, asked.members)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

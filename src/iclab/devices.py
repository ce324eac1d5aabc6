"""This machine's devices: use all of them, compute in full float32, keep compiled programs for the next run."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

import jax

from iclab.cache import cache_directory

NUMERICS = {  # JAX options that affect results
    "64 bits": "jax_enable_x64",
    "matrix products": "jax_default_matmul_precision",
    "random numbers": "jax_default_prng_impl",
    "partitionable": "jax_threefry_partitionable",
}


def use_all_cores() -> None:
    """Make every CPU core a JAX device. Only possible before JAX has started; later calls change nothing."""
    with contextlib.suppress(RuntimeError):  # JAX has started already (in a notebook, say): keep the devices it has
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)


def prepare_jax() -> None:
    """All cores as devices, matrix products in full float32, and a compilation cache on disk for the second run.

    By default a GPU rounds the factors of a float32 product to 10 bits (TF32); on an H200 that alone made the two forms
    of Mamba differ by 1e-4.
    """
    use_all_cores()
    jax.config.update("jax_default_matmul_precision", "float32")
    jax.config.update("jax_threefry_gpu_kernel_lowering", True)  # the same bits; programs compile in half of the time
    jax.config.update("jax_compilation_cache_dir", str(cache_directory()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@contextlib.contextmanager
def on_the_host() -> Iterator[None]:
    """Compute single operations on the processor, in any thread: a GPU takes longer to compile them than the processor
    takes to run them.
    """
    name = "jax_default_device"
    before = getattr(jax.config, name)
    if jax.default_backend() != "cpu":
        with contextlib.suppress(RuntimeError):  # JAX is restricted to the GPU
            jax.config.update(name, jax.local_devices(backend="cpu")[0])
    try:
        yield
    finally:
        jax.config.update(name, before)


def numerics() -> dict[str, Any]:
    """Everything besides the program that affects its results; results of other numerics are never mixed in.

    XLA flags that only set the number of devices do not count.
    """
    import jaxlib

    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "device_count" not in flag]
    versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "backend": jax.default_backend()}
    options = {words: getattr(jax.config, name) for words, name in NUMERICS.items()}
    return {**versions, **options, "XLA_FLAGS": " ".join(sorted(flags))}


@contextlib.contextmanager
def quick_compilation() -> Iterator[None]:
    """Compile fast and run slowly, for work so small that compiling takes most of the time."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


class CompilationClock:
    """The time that JAX spent compiling. Programs from the cache take none, which shows the gain of a second run."""

    def __init__(self) -> None:
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._hear)

    def _hear(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            self.seconds += duration_secs


@functools.cache
def clock() -> CompilationClock:
    """One clock per process: JAX keeps every listener it is given."""
    return CompilationClock()

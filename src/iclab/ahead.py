"""Programs compiled in threads, side by side, while others run."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Iterable

import jax

from iclab.engine import Programs

GPU_THREADS = 8  # programs for a GPU take longer, and the processor has little else to do


class Ahead:
    """Compiles what is wanted, in this order, each program once."""

    def __init__(self) -> None:
        cores = os.cpu_count() or 1
        threads = max(1, cores // 2) if jax.default_backend() == "cpu" else min(cores, GPU_THREADS)
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, "compiling")
        self._wanted: dict[object, concurrent.futures.Future[None]] = {}

    def want(self, programs: Programs) -> list[concurrent.futures.Future[None]]:
        """These programs, being compiled or done."""
        for program, compile_it in programs.items():
            if program not in self._wanted:
                self._wanted[program] = self._pool.submit(compile_it)
        return [self._wanted[program] for program in programs]

    def wait(self, several: Iterable[concurrent.futures.Future[None]]) -> None:
        """Until one more of these is done. What goes wrong goes wrong again where the program is run."""
        concurrent.futures.wait(several, return_when=concurrent.futures.FIRST_COMPLETED)

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

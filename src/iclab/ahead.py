"""Programs compiled in threads, side by side, while others run; and what each of them took."""

from __future__ import annotations

import concurrent.futures
import csv
import dataclasses
import io
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import jax

from iclab.engine import Programs

GPU_THREADS = 8  # programs for a GPU take longer, and the processor has little else to do


@dataclasses.dataclass
class Program:
    """A compiled program: the first request that it was for, and its seconds so far."""

    name: str
    kind: str
    compiling: float = 0.0
    running: float = 0.0
    runs: int = 0
    members: int = 0


class Ahead:
    """Compiles what is wanted, in this order, each program once."""

    def __init__(self) -> None:
        cores = os.cpu_count() or 1
        threads = max(1, cores // 2) if jax.default_backend() == "cpu" else min(cores, GPU_THREADS)
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, "compiling")
        self._wanted: dict[Any, concurrent.futures.Future[None]] = {}
        self.programs: dict[Any, Program] = {}

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *error: object) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def want(self, programs: Programs, name: str) -> list[concurrent.futures.Future[None]]:
        """These programs of a request of this name, being compiled or done."""
        for key, compile_it in programs.items():
            if key not in self._wanted:
                self.programs[key] = Program(name, key[0])
                self._wanted[key] = self._pool.submit(self._compile, key, compile_it)
        return [self._wanted[key] for key in programs]

    def _compile(self, key: Any, compile_it: Callable[[], None]) -> None:
        began = time.perf_counter()
        compile_it()
        self.programs[key].compiling = time.perf_counter() - began

    def wait(self, several: Iterable[concurrent.futures.Future[None]]) -> None:
        """Until one more of these is done. What goes wrong goes wrong again where the program is run."""
        concurrent.futures.wait(several, return_when=concurrent.futures.FIRST_COMPLETED)

    def ran(self, programs: Programs, members: int, seconds: float) -> None:
        """These programs have run for so many members."""
        for key in programs:
            one = self.programs[key]
            one.runs, one.members = one.runs + 1, one.members + members // len(programs)
            one.running += seconds / len(programs)

    def table(self) -> str:
        """All programs as CSV, those that took longest first."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow([field.name for field in dataclasses.fields(Program)])
        for one in sorted(self.programs.values(), key=lambda program: -program.compiling - program.running):
            rows.writerow(
                [round(value, 3) if isinstance(value, float) else value for value in dataclasses.astuple(one)]
            )
        return text.getvalue()

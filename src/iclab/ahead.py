"""Programs compiled in threads, side by side, while others run; and what each of them took."""

from __future__ import annotations

import concurrent.futures
import contextlib
import csv
import dataclasses
import io
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import jax

from iclab.engine import Programs

Compiled = concurrent.futures.Future[None]
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
    """Compiles what is wanted, each program once: one thread traces them in this order, others compile.

    Tracing is Python, and more than one thread of it would only stand in the way of the work itself.
    """

    def __init__(self) -> None:
        cores = os.cpu_count() or 1
        threads = max(1, cores // 2) if jax.default_backend() == "cpu" else min(cores, GPU_THREADS)
        self._tracing = concurrent.futures.ThreadPoolExecutor(1, "tracing")
        self._compiling = concurrent.futures.ThreadPoolExecutor(threads, "compiling")
        self._wanted: dict[Any, Compiled] = {}
        self.programs: dict[Any, Program] = {}

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *error: object) -> None:
        """Begin nothing more."""
        for pool in (self._tracing, self._compiling):
            pool.shutdown(wait=False, cancel_futures=True)

    def want(self, programs: Programs, name: str) -> list[Compiled]:
        """These programs of a request of this name, being compiled or done."""
        for key, trace in programs.items():
            if key not in self._wanted:
                self.programs[key], self._wanted[key] = Program(name, key[0]), concurrent.futures.Future()
                self._tracing.submit(self._trace, key, trace)
        return [self._wanted[key] for key in programs]

    def _trace(self, key: Any, trace: Callable[[], list[Any]]) -> None:
        began = time.perf_counter()
        try:
            lowered = trace()
        except Exception:  # what goes wrong goes wrong again where the program is run
            self._wanted[key].set_result(None)
            return
        self.programs[key].compiling += time.perf_counter() - began
        self._compiling.submit(self._compile, key, lowered)

    def _compile(self, key: Any, lowered: list[Any]) -> None:
        began = time.perf_counter()
        with contextlib.suppress(Exception):
            for one in lowered:
                one.compile()
        self.programs[key].compiling += time.perf_counter() - began
        self._wanted[key].set_result(None)

    def wait(self, several: Iterable[Compiled]) -> None:
        """Until one more of these is done."""
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

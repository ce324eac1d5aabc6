"""Programs compiled in threads, side by side, while others run; and what each of them took."""

from __future__ import annotations

import concurrent.futures
import contextlib
import csv
import dataclasses
import io
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

from iclab.engine import Programs

Wanted = concurrent.futures.Future[Programs]
GPU_THREADS = 12  # programs for a GPU take longer, and the processor has little else to do


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

    def __init__(self, programs: dict[Any, Program] | None = None) -> None:
        cores = os.cpu_count() or 1
        threads = max(1, cores // 2) if jax.default_backend() == "cpu" else min(cores, GPU_THREADS)
        self._tracing = concurrent.futures.ThreadPoolExecutor(1, "tracing")
        self._compiling = concurrent.futures.ThreadPoolExecutor(threads, "compiling")
        self._compiled: dict[Any, concurrent.futures.Future[None]] = {}
        self.programs: dict[Any, Program] = {} if programs is None else programs
        self.traced = 0  # programs, again where they had been let go

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *error: object) -> None:
        """Begin nothing more."""
        for pool in (self._tracing, self._compiling):
            pool.shutdown(wait=False, cancel_futures=True)

    def want(self, name: str, plan: Callable[[], Programs]) -> Wanted:
        """The programs that a request of this name needs. Which they are is found by tracing, too; they are compiled
        when nothing is `missing`. What goes wrong goes wrong again where they are run.
        """
        return self._tracing.submit(self._trace, name, plan)

    def _trace(self, name: str, plan: Callable[[], Programs]) -> Programs:
        programs: Programs = {}
        with contextlib.suppress(Exception):
            programs = plan()
        for key in programs.keys() - self._compiled.keys():
            self.programs.setdefault(key, Program(name, key[0]))
            self.traced += 1
            began, lowered = time.perf_counter(), []
            with contextlib.suppress(Exception):
                lowered = programs[key]()
            self.programs[key].compiling += time.perf_counter() - began
            self._compiled[key] = self._compiling.submit(self._compile, key, lowered)
        return programs

    def missing(self, wanted: Wanted) -> list[concurrent.futures.Future[Any]]:
        """What has to be waited for until these programs can be run."""
        if not wanted.done():
            return [wanted]
        return [compiled for key in wanted.result() if not (compiled := self._compiled[key]).done()]

    def _compile(self, key: Any, lowered: list[Any]) -> None:
        began = time.perf_counter()
        with contextlib.suppress(Exception):
            for one in lowered:
                one.compile()
        self.programs[key].compiling += time.perf_counter() - began

    def forget(self) -> None:
        """Let all programs go, when those that are being compiled are there; what is wanted again is read from the
        cache on disk.
        """
        self._tracing.submit(lambda: None).result()
        concurrent.futures.wait(self._compiled.values())
        self._compiled.clear()
        jax.clear_caches()

    def ran(self, programs: Programs, members: int, seconds: float) -> None:
        """These programs have run for so many members."""
        for key in programs:
            one = self.programs[key]
            one.runs, one.members = one.runs + 1, one.members + members // len(programs)
            one.running += seconds / len(programs)


def table(programs: Mapping[Any, Program]) -> str:
    """All programs as CSV, those that took longest first."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([field.name for field in dataclasses.fields(Program)])
    for one in sorted(programs.values(), key=lambda program: -program.compiling - program.running):
        rows.writerow([round(value, 3) if isinstance(value, float) else value for value in dataclasses.astuple(one)])
    return text.getvalue()

"""Progress with an estimate of the time left: a live bar on a terminal or in a notebook, else a line per experiment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console

from iclab.ahead import Program
from iclab.answers import NOTHING
from iclab.report.formats import duration
from iclab.runs.bars import NotebookBar, TerminalBar, kernel_is_here


@contextlib.contextmanager
def resumable(console: Console, directory: Path) -> Iterator[None]:
    """If interrupted in here, say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        words = f"interrupted. To continue, repeat the command with --out {directory}."
        console.print(words, markup=False, soft_wrap=True)
        raise


class RunProgress:
    """Progress over experiments of different cost. Costs are rough, so the time left is shown as an estimate.

    A line is printed after every `every` experiments.
    """

    def __init__(self, console: Console, total: float, every: int = 1) -> None:
        self._console = console
        self._every, self._ended = every, 0
        self._total = total + 1e-9
        self._done = 0.0
        self._costs: dict[str, float] = {}  # of the running experiments
        self.programs: dict[Any, Program] = {}  # compiled and run so far
        self._shares: dict[str, float] = {}
        self._began = time.perf_counter()
        self._bar = NotebookBar() if kernel_is_here() else TerminalBar(console)

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, name: str, cost: float) -> None:
        """An experiment of this cost starts."""
        self._costs[name], self._shares[name] = cost, 0.0
        self.update(name, name, 0.0)

    def update(self, name: str, what: str, fraction: float) -> None:
        """An experiment has done this fraction of its current part."""
        self._shares[name] = max(self._shares[name], 0.95 * fraction)
        self.show(what, self.fraction(), self._left(self.fraction()))

    def show(self, what: str, done: float, left: str) -> None:
        """Show this on the bar."""
        self._bar.update(done, what, left)

    def fraction(self) -> float:
        """How much of the whole is done."""
        return (self._done + sum(cost * self._shares[name] for name, cost in self._costs.items())) / self._total

    def updater(self, name: str) -> Callable[[float, str], None]:
        """`update` as a function of a fraction and a note."""
        return lambda fraction, note: self.update(name, f"{name}: {note}" if note else name, fraction)

    def skip(self, name: str, cost: float, found: Mapping[str, Any] = NOTHING) -> None:
        """An experiment's results are kept from an earlier run; skipping it says nothing about the time of others."""
        self._total = max(self._total - cost, 1e-9)
        self.say(f"{name}: kept from an earlier run")

    def more(self, cost: float) -> None:
        """There is more to do than announced."""
        self._total += cost

    def say(self, words: str) -> None:
        """Print a line with the time."""
        self._console.print(f"[dim]{duration(time.perf_counter() - self._began):>10}[/]  {words}", highlight=False)

    def end(self, name: str, note: str, found: Mapping[str, Any] = NOTHING) -> None:
        """An experiment is finished, with these results."""
        self._done += self._costs.pop(name)
        self._ended += 1
        left = self._left(self._done / self._total)
        if self._ended % self._every == 0:
            self.say(f"{name}: {note}[dim]{left and ', '}{left}[/]")

    def _left(self, done: float) -> str:
        elapsed = time.perf_counter() - self._began
        if done >= 1.0 - 1e-9 or done < 0.02:
            return ""
        return f"about {duration(elapsed * (1 - done) / done)} left"

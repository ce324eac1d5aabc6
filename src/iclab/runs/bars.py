"""Progress bars for a terminal and a notebook; they disappear when the run is finished."""

from __future__ import annotations

import html
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

EVERY = 0.2  # seconds between two updates of the bar


def kernel_is_here() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def bar_in_html(done: float, left: str, what: str) -> str:
    """How far a run is.

    >>> bar_in_html(0.5, "about 3 s left", "training <1>")[-81:]
    '<span style="opacity: 0.7">50 %, about 3 s left · training &lt;1&gt;</span></div>'
    """
    told = f"{100 * done:.0f} %{f', {left}' if left else ''} · {what}"
    return (
        f'<div style="font-family: sans-serif; font-size: 90%"><progress max="1" value="{done:.3f}" '
        f'style="width: 16em" aria-label="progress of the run"></progress> '
        f'<span style="opacity: 0.7">{html.escape(told)}</span></div>'
    )


class NotebookBar:
    """A bar below the cell. It needs IPython and no widgets."""

    def __init__(self) -> None:
        self._shown: Any = None
        self._last = 0.0

    def start(self) -> None:
        """Put the bar below the cell."""
        from IPython.display import HTML, display

        self._shown = display(HTML(bar_in_html(0.0, "", "starting")), display_id=True)

    def update(self, done: float, what: str, left: str) -> None:
        """Show this, unless the last update is too recent."""
        if self._shown is not None and time.perf_counter() - self._last > EVERY:
            self._last = time.perf_counter()
            self._show(bar_in_html(done, left, what))

    def stop(self) -> None:
        """Remove the bar."""
        if self._shown is not None:
            self._show("")
            self._shown = None

    def _show(self, text: str) -> None:
        from IPython.display import HTML

        self._shown.update(HTML(text))


class TerminalBar:
    """A bar at the bottom of a terminal; nothing if the console is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}"), console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=1.0, left="")

    def start(self) -> None:
        """Put the bar at the bottom of the terminal."""
        self._bar.start()

    def update(self, done: float, what: str, left: str) -> None:
        """Show this."""
        self._bar.update(self._task, completed=done, description=what, left=left)

    def stop(self) -> None:
        """Remove the bar."""
        self._bar.stop()

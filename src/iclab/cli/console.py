"""Printing that all commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape

from iclab.report.formats import plain
from iclab.tallies import tally

OUT = Console()
ERR = Console(stderr=True)
COLOURS = {
    "holds": "green",
    "holds if": "green",
    "in part": "blue",
    "fails": "red",
    "fails in scaling": "red",
    "open": "yellow",
    "not asked": "dim",
}


def option(metavar: str, name: str | None = None) -> object:
    """An option of a command; its help shows a default only if that is a value."""
    return tyro.conf.arg(name=name, metavar=metavar, help_behavior_hint=_hint)


def _hint(default: str) -> str:
    return "" if default in ("None", "''", "") else f"(default: {default})"


Ids = Annotated[tuple[str, ...], tyro.conf.Positional, option("[IDS...]")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
Profile = Annotated[str, option("NAME")]
Count = Annotated[str | None, option("N")]
Folder = Annotated[Path | None, option("DIR")]
Cluster = Annotated[str | None, option("ADDRESS")]
OtherModel = Annotated[str | None, option("NAME")]
Changes = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, option("NAME=VALUE", "set")]


def say(line: object) -> None:
    """Print a line to stdout, without control characters."""
    OUT.print(plain(str(line)), markup=False, highlight=False, soft_wrap=True)


def warn(line: object) -> None:
    """Print a line to stderr, where a pipe does not read it."""
    ERR.print(plain(str(line)), markup=False, highlight=False, soft_wrap=True)


def print_answers(entries: Sequence[Mapping[str, Any]]) -> None:
    """Print one line per statement with its answer; then the tallies, and the statements that untrained models pass."""
    width = max((len(entry["id"]) for entry in entries), default=0)
    for beyond in (False, True):
        group = [entry for entry in entries if entry["beyond"] == beyond]
        if group and beyond:
            OUT.print("\nbeyond the papers", style="bold", highlight=False)
        for entry in group:
            words = escape(shortened(plain(f"{entry['id']:{width}}  {entry['words']}{met(entry)}")))
            name = escape(plain(entry["id"]))
            shown = words.replace(name, f"[{COLOURS[entry['answer']]}]{name}[/]", 1)
            OUT.print(shown, highlight=False, soft_wrap=True)
    OUT.print()
    for name in dict.fromkeys(entry["paper"] for entry in entries):
        own = [entry for entry in entries if entry["paper"] == name]
        told = [tally([entry for entry in own if not entry["beyond"]])] * any(not entry["beyond"] for entry in own)
        told += [f"beyond: {tally([entry for entry in own if entry['beyond']])}"] * any(
            entry["beyond"] for entry in own
        )
        OUT.print(f"[bold]{escape(plain(name))}[/]: {'; '.join(told)}", highlight=False, soft_wrap=True)
    passing = [entry for entry in entries if entry["also_untrained"]]
    if passing:
        OUT.print("untrained models pass too:", highlight=False)
    for entry in passing:
        why = (
            f"about the architecture: {entry['architecture']}"
            if entry["architecture"]
            else "says nothing about learning"
        )
        names = [name for name in entry["also_untrained"] if name]
        where = f"[{'; '.join(names)}]" if names else ""
        OUT.print(escape(plain(f"  {entry['id']}{where}: {why}")), highlight=False, soft_wrap=True)


def met(entry: Mapping[str, Any]) -> str:
    """How many hypotheses of its theorem are met in the paper's own reading, or else the first one."""
    hypotheses = entry["readings"][0]["hypotheses"]
    return f" ({hypotheses['met']} of {hypotheses['of']} hypotheses met)" if hypotheses else ""


def shortened(line: str, width: int | None = None) -> str:
    """The line, cut to the width of the terminal; whole if the output goes into a file."""
    width = width or (OUT.width if OUT.is_terminal else 10_000)
    return line if len(line) <= width else f"{line[: width - 1]}…"

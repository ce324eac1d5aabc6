"""What the commands share: where they print, and how claims look there."""

from __future__ import annotations

from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape

from iclab.report.formats import number

OUT = Console()
ERR = Console(stderr=True)
COLOURS = {"reproduced": "green", "differs": "red", "inconclusive": "yellow", "not-attempted": "dim"}
Ids = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[IDS...]")]
Changes = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="set", metavar="NAME=VALUE")]


def say(line: object) -> None:
    """A line as it is."""
    OUT.print(str(line), markup=False, highlight=False, soft_wrap=True)


def warn(line: object) -> None:
    """A line for the one who looks, not for a pipe."""
    ERR.print(str(line), markup=False, highlight=False, soft_wrap=True)


def print_claims(entries: list[dict[str, Any]]) -> None:
    """One line per claim, with the rule of the check that decided where there is room for it; then the counts."""
    width = max((len(entry["id"]) for entry in entries), default=0)
    OUT.print(f"{'verdict':13} {'claim':{width}} measured \\[95 % interval]", style="bold", soft_wrap=True)
    for entry in entries:
        deciding = next(check for check in entry["checks"] if check["name"] == entry["decided_by"])
        verdict = str(entry["verdict"])
        found = f"{number(entry['measured'])} \\[{number(entry['low'])}, {number(entry['high'])}]"
        rule = escape(f"{deciding['name']} {deciding['rule']}") if OUT.width >= 140 else ""
        line = f"[{COLOURS[verdict]}]{verdict:13}[/] {entry['id']:{width}} "
        lost = f" ({entry['lost_seeds']} seeds not finite)" if entry.get("lost_seeds") else ""
        line += f"{found:32} [dim]{rule}[/]{lost}" if rule else f"{found}{lost}"
        OUT.print(line, highlight=False, soft_wrap=True)
    counts = {verdict: sum(entry["verdict"] == verdict for entry in entries) for verdict in COLOURS}
    OUT.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count), highlight=False)

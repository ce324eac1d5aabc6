"""The command line."""

from __future__ import annotations

import dataclasses
import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from iclab.errors import InputError, require
from iclab.papers import PAPERS, PROFILES, free_symbols, select, theorems
from iclab.report.page import number
from iclab.report.theory import print_symbols, print_theorem
from iclab.runs import reproduce as running
from iclab.runs.store import environment

OUT = Console()
ERR = Console(stderr=True)
COLOURS = {"reproduced": "green", "differs": "red", "inconclusive": "yellow", "not-attempted": "dim"}
Ids = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[IDS...]")]
Changes = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="set", metavar="NAME=VALUE")]


def list_claims(ids: Ids = ()) -> None:
    """List the claims of the built-in papers.

    Args:
        ids: Papers, claims or prefixes (nonlinear-icl, nonlinear-icl/fig2). None: all.
    """
    table = Table(title="Claims", title_justify="left", box=None)
    for column in ("id", "source", "statement"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for claim in select(ids):
        table.add_row(claim.id, claim.source, claim.statement)
    OUT.print(table)


def reproduce(
    ids: Ids = (),
    profile: Annotated[str, tyro.conf.arg(metavar="NAME")] = "quick",
    seeds: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    save_models: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    changes: Changes = (),
) -> None:
    """Train, test and judge claims; write figures and a page.

    With no ids: all papers, in a few minutes. `iclab reproduce nonlinear-icl/fig3a --seeds 16` runs one figure with
    more seeds; `iclab reproduce feature-selection --set noise_norm=0.3 --out runs/noisy` asks what happens with more
    noise. The same command with the same --out continues an interrupted run.

    Args:
        ids: Papers, claims or prefixes (nonlinear-icl, nonlinear-icl/fig2). None: all.
        profile: smoke (seconds: the code path, no verdicts), quick (minutes on a laptop), paper (many seeds; a GPU).
        seeds: Training seeds per setting; the profile's own number if not given.
        out: Folder for the results; a new one named after the time if not given.
        save_models: Also write every trained member as models/<experiment>/<setting>-<seed>.npz.
        changes: Change a setting of the papers, for example matching_fraction=0.6. May be repeated.
    """
    pairs = _pairs(changes)
    run = running.reproduce(*ids, profile=profile, seeds=seeds, out=out, changes=pairs, save_models=save_models, console=OUT)
    print_claims(run.claims)
    OUT.print(f"report: {run.directory / 'index.html'}", markup=False, highlight=False, soft_wrap=True)


def _pairs(changes: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for name, value in map(_split, changes):
        require(name not in pairs, f"--set {name} is given twice.")
        pairs[name] = value
    return pairs


def _split(change: str) -> tuple[str, str]:
    name, sign, value = change.partition("=")
    if not sign or not name or not value:
        raise InputError(f"--set {change}: write it as name=value, for example matching_fraction=0.6.")
    return name, value


def claims(directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]) -> None:
    """Print the table of claims of a finished run.

    Args:
        directory: The folder that `iclab reproduce` wrote.
    """
    print_claims(running.read_claims(directory))


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
        line += f"{found:32} [dim]{rule}[/]" if rule else found
        OUT.print(line, highlight=False, soft_wrap=True)
    counts = {verdict: sum(entry["verdict"] == verdict for entry in entries) for verdict in COLOURS}
    OUT.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count), highlight=False)


def theory(
    ids: Ids = (),
    profile: Annotated[str, tyro.conf.arg(metavar="NAME")] = "quick",
    constant: Annotated[float, tyro.conf.arg(metavar="C")] = 1.0,
    changes: Changes = (),
) -> None:
    """Show the conditions and predicted rates of theorems at the settings in force.

    `iclab theory nonlinear-icl/thm3.3 --set neurons=50` says which conditions fail with 50 neurons, and by what factor.

    Args:
        ids: Papers, theorems or prefixes (nonlinear-icl, mamba-outliers/thm1, chain-of-thought/lem). None: all.
        profile: The settings to start from: smoke, quick or paper.
        constant: The constant that Ω, O and Θ hide, the same one everywhere.
        changes: Change a setting, or a symbol that no setting fixes (error=0.05 for ε). May be repeated.
    """
    wanted = theorems(ids)
    papers = [paper for paper in PAPERS.values() if any(theorem.paper == paper.id for theorem in wanted)]
    running.check_profile(profile)
    require(0 < constant < math.inf, f"--constant is {constant}; it must be positive and finite.")
    pairs = _pairs(changes)
    running.check_names(papers, profile, pairs, also=[name for paper in papers for name in free_symbols(paper, profile)])
    symbols = {}
    for paper in papers:
        free = {name: _number(name, pairs[name]) for name in free_symbols(paper, profile) if name in pairs}
        symbols[paper.id] = dataclasses.replace(paper.symbols(running.override(paper, profile, pairs)), **free)
    shown = theorems(ids, symbols, constant)
    for paper in papers:
        print_symbols(OUT, paper.id, profile, symbols[paper.id])
        for theorem in shown:
            if theorem.paper == paper.id:
                print_theorem(OUT, theorem, type(symbols[paper.id]).letters())
        OUT.print()
    note = (
        f"Hidden constants in Ω, O, Θ: {constant:g}. Exponents are the stated powers; local slopes, d log value / d log symbol,"
    )
    note += " are shown where logarithms or sums make them differ."
    OUT.print(note, style="dim", highlight=False)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"--set {name}={text}: {name} takes a number.") from None
    require(math.isfinite(value), f"--set {name}={text}: the value must be finite.")
    return value


def doctor() -> None:
    """Check the installation: versions, devices, cores, compilation cache, and a tiny training."""
    running.prepare_jax()
    for name, value in environment().items():
        OUT.print(f"{name}: {value}", markup=False, highlight=False, soft_wrap=True)
    OUT.print(
        f"compilation cache: {running.cache_directory()}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    OUT.print(f"papers: {', '.join(PAPERS)}; profiles: {', '.join(PROFILES)}", markup=False, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        running.reproduce("feature-selection/thm1", profile="smoke", out=Path(folder) / "run")
    OUT.print("a small training ran: all is well")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_claims,
    "reproduce": reproduce,
    "claims": claims,
    "theory": theory,
    "doctor": doctor,
}


def main() -> None:
    """Entry point of the `iclab` command. Bad input: one sentence and status 2; Ctrl-C: status 130."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="iclab",
            description="A laboratory for the theory of in-context learning.",
            sort_subcommands=False,
        )
    except InputError as error:
        ERR.print(f"iclab: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except MemoryError:
        ERR.print("iclab: not enough memory for these sizes.", highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

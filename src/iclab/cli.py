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

from iclab.devices import cache_directory, prepare_jax
from iclab.errors import InputError, require
from iclab.papers import PAPERS, PROFILES, free_symbols, select, theorems
from iclab.report.comparison import Side, compare, print_comparison, render_comparison
from iclab.report.theory import print_symbols, print_theorem
from iclab.report.words import number
from iclab.runs import reproduce as running
from iclab.runs import sweep as sweeping
from iclab.runs.changes import check_names, check_profile, override, pairs
from iclab.runs.cluster import connect
from iclab.runs.redraw import redraw
from iclab.runs.serving import Server
from iclab.runs.store import environment, read_manifest

OUT = Console()
ERR = Console(stderr=True)
COLOURS = {"reproduced": "green", "differs": "red", "inconclusive": "yellow", "not-attempted": "dim"}
Ids = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[IDS...]")]
Changes = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="set", metavar="NAME=VALUE")]


def list_claims(ids: Ids = (), experiments: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False) -> None:
    """List the claims of the built-in papers, or the experiments behind them.

    Args:
        ids: Papers, claims or prefixes (nonlinear-icl, nonlinear-icl/fig2). None: all.
        experiments: List the experiments of these claims instead: what `iclab sweep` takes.
    """
    if experiments:
        needed = {(claim.paper, name) for claim in select(ids) for name in claim.needs}
        table = Table(title="Experiments", title_justify="left", box=None)
        for column in ("id", "what is run"):
            table.add_column(column, overflow="fold", no_wrap=column == "id")
        for paper in PAPERS.values():
            for name, experiment in paper.experiments.items():
                if (paper.id, name) in needed:
                    table.add_row(f"{paper.id}/{name}", (experiment.run.__doc__ or "").strip().splitlines()[0])
        OUT.print(table)
        return
    table = Table(title="Claims", title_justify="left", box=None)
    for column in ("id", "source", "statement"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for claim in select(ids):
        table.add_row(claim.id, claim.source, claim.statement)
    OUT.print(table)


def reproduce(
    ids: Ids = (),
    only: Annotated[str, tyro.conf.arg(metavar="TOPIC")] = "",
    profile: Annotated[str, tyro.conf.arg(metavar="NAME")] = "quick",
    seeds: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    save_models: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    cluster: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None,
    changes: Changes = (),
) -> None:
    """Train, test and judge claims; write figures and a page.

    With no ids: all papers, in a few minutes. `iclab reproduce nonlinear-icl/fig3a --seeds 16` runs one figure with
    more seeds; `iclab reproduce feature-selection --set noise_norm=0.3 --out runs/noisy` asks what happens with more
    noise. The same command with the same --out continues an interrupted run.

    Args:
        ids: Papers, claims or prefixes (nonlinear-icl, nonlinear-icl/fig2). None: all.
        only: Only the claims of a topic: rates (exponents that theorems predict, and regions that they promise).
        profile: smoke (seconds: the code path, no verdicts), quick (minutes on a laptop), paper (many seeds; a GPU).
        seeds: Training seeds per setting; the profile's own number if not given.
        out: Folder for the results; a new one named after the time if not given.
        save_models: Also write every trained member as models/<experiment>/<setting>-<seed>.npz.
        cluster: Address of a running Dask scheduler (tcp://host:8786) whose workers do the work; needs the extra
            cluster.
        changes: Change a setting of the papers, for example matching_fraction=0.6. May be repeated.
    """
    with connect(cluster) as (executor, _):
        run = running.reproduce(
            *ids, only=only, profile=profile, seeds=seeds, out=out, changes=pairs("--set", changes), save_models=save_models,
            executor=executor, console=OUT,
        )  # fmt: skip
    print_claims(run.claims)
    OUT.print(f"report: {run.directory / 'index.html'}", markup=False, highlight=False, soft_wrap=True)


def claims(directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]) -> None:
    """Print the table of claims of a finished run.

    Args:
        directory: The folder that `iclab reproduce` wrote.
    """
    print_claims(running.read_claims(directory))


def figures(
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    kind: Annotated[str, tyro.conf.arg(name="format", metavar="FORMAT")] = "pdf",
) -> None:
    """Draw the figures of a run again, from its results.

    Args:
        directory: The folder that `iclab reproduce` wrote.
        kind: pdf or svg for a paper, png for a slide.
    """
    written, missing = redraw(directory, kind)
    for path in written:
        OUT.print(str(path), markup=False, highlight=False, soft_wrap=True)
    for line in missing:
        ERR.print(f"not drawn: {line}", markup=False, highlight=False, soft_wrap=True)


def serve(
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    port: Annotated[int, tyro.conf.arg(metavar="N")] = 8765,
    host: Annotated[str, tyro.conf.arg(metavar="ADDRESS")] = "127.0.0.1",
) -> None:
    """Show the page of a run on a local address, live while the run is going.

    Args:
        directory: The folder that `iclab reproduce` writes or wrote.
        port: Where to listen; 0 takes any free one.
        host: The interface to listen on. The default can be reached from this machine only; with another address everybody
            who reaches it can read the run.
    """
    with Server(directory, host, port) as server:
        OUT.print(f"{server.url} shows {directory}; Ctrl-C ends it.", markup=False, highlight=False, soft_wrap=True)
        if not server.loopback:
            ERR.print("other machines can reach this address and read the run.", markup=False, highlight=False)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            server.stopped.set()


def diff(
    first: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR1")],
    second: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR2")],
    html: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
) -> None:
    """Compare two runs: settings, verdicts, intervals that do not overlap.

    Args:
        first: A folder that `iclab reproduce` wrote.
        second: Another one.
        html: Also write the comparison as a page.
    """
    sides = [Side(str(path), read_manifest(path), running.read_claims(path)) for path in (first, second)]
    found = compare(*sides)
    print_comparison(OUT, found, COLOURS)
    if html is not None:
        try:
            html.write_text(render_comparison(found), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {html}: {error.strerror or error}.") from error
        OUT.print(f"page: {html}", markup=False, highlight=False, soft_wrap=True)


def sweep(
    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID_OR_FILE")],
    grid: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUES")] = (),
    profile: Annotated[str, tyro.conf.arg(metavar="NAME")] = "quick",
    seeds: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    measure: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    cluster: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None,
    changes: Changes = (),
) -> None:
    """Run one experiment over a grid of settings; write a table, a netCDF file and a figure.

    `iclab sweep nonlinear-icl/training --grid matching_fraction=0.4:1:4 --grid step_size=0.5,1,2` trains at 12 points.
    Points that differ in traced settings only are computed in one compiled program. The same command with the same --out
    continues an interrupted sweep.

    Args:
        target: An experiment (nonlinear-icl/training; `iclab list --experiments` names them), a claim with one
            experiment behind it, or a .py file that defines `settings` and `experiment(lab)`.
        grid: A setting and its values, as v1,v2,... or start:stop:count. May be repeated: all combinations are run.
        profile: Where the other settings come from: smoke, quick or paper.
        seeds: Training seeds per point; the profile's own number if not given.
        out: Folder for the results; a new one named after the time if not given.
        measure: The result that the figure shows; an error if not given.
        cluster: Address of a running Dask scheduler (tcp://host:8786) whose workers do the work; needs the extra
            cluster.
        changes: Change another setting at all points, for example steps=500. May be repeated.
    """
    with connect(cluster) as (executor, workers):
        run = sweeping.sweep(
            target, pairs("--grid", grid), profile=profile, seeds=seeds, out=out, changes=pairs("--set", changes),
            measure=measure, executor=executor, workers=workers, console=OUT,
        )  # fmt: skip
    for name in ("results.csv", "results.nc", "sweep.png"):
        if (run.directory / name).exists():
            OUT.print(f"{run.directory / name}", markup=False, highlight=False, soft_wrap=True)


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
    check_profile(profile)
    require(0 < constant < math.inf, f"--constant is {constant}; it must be positive and finite.")
    given = pairs("--set", changes)
    free_names = [name for paper in papers for name in free_symbols(paper, profile)]
    check_names("--set", list(given), {paper.id: paper.settings[profile] for paper in papers}, also=free_names)
    symbols = {}
    for paper in papers:
        free = {name: _number(name, given[name]) for name in free_symbols(paper, profile) if name in given}
        symbols[paper.id] = dataclasses.replace(paper.symbols(override(paper.settings[profile], given)), **free)
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
    prepare_jax()
    for name, value in environment().items():
        OUT.print(f"{name}: {value}", markup=False, highlight=False, soft_wrap=True)
    OUT.print(
        f"compilation cache: {cache_directory()}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    OUT.print(f"papers: {', '.join(PAPERS)}; profiles: {', '.join(PROFILES)}", markup=False, highlight=False)
    for paper in PAPERS.values():
        lacking = paper.lacking(paper.settings["quick"])
        if lacking:
            OUT.print(f"{paper.id}: {lacking}", markup=False, highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory() as folder:
        running.reproduce("feature-selection/thm1", profile="smoke", out=Path(folder) / "run")
    OUT.print("a small training ran: all is well")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_claims,
    "reproduce": reproduce,
    "claims": claims,
    "figures": figures,
    "serve": serve,
    "diff": diff,
    "sweep": sweep,
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

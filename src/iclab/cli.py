"""The command line."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from iclab import skeletons
from iclab.bench import table as benchmarks
from iclab.conformance import check_file
from iclab.devices import cache_directory, prepare_jax
from iclab.errors import InputError, require
from iclab.papers import PROFILES, free_symbols, library, select, theorems
from iclab.papers.sources import PackageWarning
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
from iclab.runs.targets import settings_of

OUT = Console()
ERR = Console(stderr=True)
COLOURS = {"reproduced": "green", "differs": "red", "inconclusive": "yellow", "not-attempted": "dim"}
Ids = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[IDS...]")]
Changes = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="set", metavar="NAME=VALUE")]


def list_claims(ids: Ids = (), experiments: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False) -> None:
    """List the claims of the papers, built in or from packages, or of a file of yours; or the experiments behind them.

    Args:
        ids: Papers, claims, prefixes (nonlinear-icl, nonlinear-icl/fig2) or .py files. None: all papers.
        experiments: List the experiments of these claims instead: what `iclab sweep` takes.
    """
    shelf, names = library(ids)
    chosen = select(names, papers=shelf.papers)
    if experiments:
        needed = {(claim.paper, name) for claim in chosen for name in claim.needs}
        table = Table(title="Experiments", title_justify="left", box=None)
        for column in ("id", "what is run"):
            table.add_column(column, overflow="fold", no_wrap=column == "id")
        for paper in shelf.papers.values():
            for name, experiment in paper.experiments.items():
                if (paper.id, name) in needed:
                    about = (experiment.run.__doc__ or "").strip().splitlines()
                    table.add_row(f"{paper.id}/{name}", about[0] if about else "")
        OUT.print(table)
        return
    table = Table(title="Claims", title_justify="left", box=None)
    for column in ("id", "source", "statement"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for claim in chosen:
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

    With no ids: all papers, in a few minutes; with a .py file of yours: its claims.
    `iclab reproduce nonlinear-icl/fig3a --seeds 16` runs one figure with more seeds;
    `iclab reproduce feature-selection --set noise_norm=0.3 --out runs/noisy` asks what happens with more noise.
    The same command with the same --out continues an interrupted run.

    Args:
        ids: Papers, claims, prefixes (nonlinear-icl, nonlinear-icl/fig2), or a .py file of yours (my_idea.py, or
            my_idea.py/CLAIM for one of its claims). None: all papers.
        only: Only the claims of a topic: rates (exponents that theorems predict, and regions that they promise) or gpt2
            (the same questions to a deep model).
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
    file: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="FILE")] = (),
) -> None:
    """Draw the figures of a run again, from its results.

    Args:
        directory: The folder that `iclab reproduce` wrote.
        kind: pdf or svg for a paper, png for a slide.
        file: Where a .py file of yours is now that this run was of, if it has moved since. May be repeated.
    """
    written, notes = redraw(directory, kind, file)
    for path in written:
        OUT.print(str(path), markup=False, highlight=False, soft_wrap=True)
    for line in notes:
        ERR.print(line, markup=False, highlight=False, soft_wrap=True)


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


def bench(
    cases: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[CASES...]")] = (),
    seconds: Annotated[float, tyro.conf.arg(metavar="S")] = 3.0,
    members: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    against: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    peer: bool = True,
) -> None:
    """Measure training speed: every model, beside eager PyTorch and beside the machine's matrix-product rate.

    Each case runs in a process of its own. Without PyTorch (the extra llm) the column of the peer stays empty.

    Args:
        cases: Of softmax, linear, mamba, chain, residual, gpt2. None: all.
        seconds: How long each rate is measured, after compilation.
        members: Models trained side by side; a few per core, or what fills a GPU, if not given.
        out: Also write the numbers as JSON.
        against: Compare with such a file: the command fails where a ratio fell below 70 % of what it was.
        peer: Also measure eager PyTorch.
    """
    require(seconds > 0, f"--seconds is {seconds}; it must be positive.")
    found = benchmarks.measure(cases, seconds, members, peer, lambda line: ERR.print(line, markup=False, highlight=False))
    OUT.print(benchmarks.table(found))
    if out is not None:
        out.write_text(json.dumps(found, indent=2) + "\n")
    slower = [] if against is None else benchmarks.regressions(found, against)
    require(not slower, "slower than before:\n" + "\n".join(slower))


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
            experiment behind it, or a .py file of yours (my_idea.py/NAME where it has several experiments).
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
        lost = f" ({entry['lost_seeds']} seeds not finite)" if entry.get("lost_seeds") else ""
        line += f"{found:32} [dim]{rule}[/]{lost}" if rule else f"{found}{lost}"
        OUT.print(line, highlight=False, soft_wrap=True)
    counts = {verdict: sum(entry["verdict"] == verdict for entry in entries) for verdict in COLOURS}
    OUT.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count), highlight=False)


def new(
    kind: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="KIND")],
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
) -> None:
    """Write a file that runs as it is, to be changed into your own: NAME.py in this folder.

    `iclab new claim my_idea` writes my_idea.py; `iclab check my_idea.py` checks it, `iclab reproduce my_idea.py` judges its
    claims, `iclab sweep my_idea.py --grid noise=0:1:5` runs it over a grid.

    Args:
        kind: What the file shows how to write: world, model, probe or claim. Every one is a whole experiment.
        name: The file's name, which is also the name of its claims.
    """
    path = skeletons.write(kind, name, Path())
    OUT.print(f"{path} is there. Next:", markup=False, highlight=False, soft_wrap=True)
    for line in skeletons.next_commands(path, kind):
        OUT.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def check(
    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    everything: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Check a file of yours: shapes, masks, padding, truth, keys, gradients, compilation; explain what fails.

    The experiments are asked what they would compute; every world, model, loss and probe that they use is tried on a few
    prompts. Nothing is trained. The status is 1 if a check fails.

    Args:
        file: A .py file.
        everything: Also check the worlds and models of iclab itself that the file uses.
    """
    prepare_jax()
    jax.config.update("jax_disable_most_optimizations", True)  # everything is tiny here: compiling is what takes time
    findings = check_file(file, everything=everything)
    for finding in findings:
        sign = "[green]ok  [/]" if finding.passed else "[red]FAIL[/]"
        line = f"{sign} [bold]{escape(finding.part)}[/], {finding.check}: {escape(finding.words)}"
        OUT.print(line, highlight=False, soft_wrap=True)
        if finding.remedy:
            OUT.print(f"     {escape(finding.remedy)}", highlight=False, soft_wrap=True)
    failed = sum(not finding.passed for finding in findings)
    OUT.print(f"{len(findings)} checks, {f'{failed} failed' if failed else 'all passed'}", highlight=False)
    if failed:
        sys.exit(1)


def theory(
    ids: Ids = (),
    profile: Annotated[str, tyro.conf.arg(metavar="NAME")] = "quick",
    constant: Annotated[float, tyro.conf.arg(metavar="C")] = 1.0,
    changes: Changes = (),
) -> None:
    """Show the conditions and predicted rates of theorems at the settings in force.

    `iclab theory nonlinear-icl/thm3.3 --set neurons=50` says which conditions fail with 50 neurons, and by what factor.

    Args:
        ids: Papers, theorems, prefixes (nonlinear-icl, mamba-outliers/thm1, chain-of-thought/lem) or a .py file that
            defines `symbols` and `theorems`. None: all.
        profile: The settings to start from: smoke, quick or paper.
        constant: The constant that Ω, O and Θ hide, the same one everywhere.
        changes: Change a setting, or a symbol that no setting fixes (error=0.05 for ε). May be repeated.
    """
    shelf, names = library(ids)
    wanted = theorems(names, papers=shelf.papers)
    papers = [paper for paper in shelf.papers.values() if any(theorem.paper == paper.id for theorem in wanted)]
    check_profile(profile)
    require(0 < constant < math.inf, f"--constant is {constant}; it must be positive and finite.")
    given = pairs("--set", changes)
    free_names = [name for paper in papers for name in free_symbols(paper, profile)]
    check_names("--set", list(given), {paper.id: settings_of(paper, profile) for paper in papers}, also=free_names)
    symbols = {}
    for paper in papers:
        free = {name: _number(name, given[name]) for name in free_symbols(paper, profile) if name in given}
        if paper.symbols is not None:
            symbols[paper.id] = dataclasses.replace(paper.symbols(override(settings_of(paper, profile), given)), **free)
    shown = theorems(names, symbols, constant, shelf.papers)
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
    papers = library()[0].papers
    OUT.print(f"papers: {', '.join(papers)}; profiles: {', '.join(PROFILES)}", markup=False, highlight=False)
    for paper in papers.values():
        lacking = paper.lacking(settings_of(paper, "quick"))
        if lacking:
            OUT.print(f"{paper.id}: {lacking}", markup=False, highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory() as folder:
        running.reproduce("feature-selection/thm2", profile="smoke", out=Path(folder) / "run")
    OUT.print("a small training ran: all is well")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_claims,
    "reproduce": reproduce,
    "claims": claims,
    "figures": figures,
    "serve": serve,
    "diff": diff,
    "sweep": sweep,
    "new": new,
    "check": check,
    "theory": theory,
    "bench": bench,
    "doctor": doctor,
}


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None
) -> None:
    """One line for what a package does wrong; others as Python does."""
    if issubclass(category, PackageWarning):
        ERR.print(f"iclab: {message}", markup=False, highlight=False, soft_wrap=True)
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def main() -> None:
    """Entry point of the `iclab` command. Bad input: one sentence and status 2; Ctrl-C: status 130."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
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

"""Commands that list and run statements: list, reproduce, sweep, robust."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from iclab.cli.console import (
    OUT,
    Changes,
    Cluster,
    Count,
    Flag,
    Folder,
    Ids,
    OtherModel,
    Profile,
    option,
    print_answers,
    say,
    shortened,
)
from iclab.contents import everything, imported, stored

SHOWN = 12  # programs in the table of --profile-time


def list_statements(ids: Ids = (), experiments: Flag = False) -> None:
    """List the statements of papers (built in or from packages) or of your own file, or their experiments.

    `iclab reproduce PAPER/STATEMENT` tests one statement, `PAPER/STATEMENT[READING]` one reading of it; `iclab list
    PAPER/STATEMENT` lists its readings.

    Args:
        ids: Papers, statements, prefixes (nonlinear-icl, nonlinear-icl/fig2), packages (gallery) or .py files.
            Default: all papers.
        experiments: List the experiments behind these statements instead; `iclab sweep` takes them.
    """
    if experiments:
        _list_experiments(ids)
        return
    papers = (stored(ids) or imported(ids)) if ids else everything()
    single = sum(len(paper["statements"]) for paper in papers) == 1
    for paper in papers:
        package = f" (from {paper['package']})" if paper.get("package") else ""
        say(shortened(f"{paper['id']}: {paper['title']}", OUT.width - len(package)) + package)
        width = max(len(statement["id"]) for statement in paper["statements"]) - len(paper["id"]) - 1
        for beyond in (False, True):
            group = [statement for statement in paper["statements"] if statement["beyond"] == beyond]
            if group and beyond:
                say("  beyond the papers:")
            for statement in group:
                name = statement["id"].partition("/")[2]
                line = f"  {name:{width}}  {statement['kinds'][0]:11}  {statement['words']}"
                say(line if single else shortened(line, OUT.width))
                for reading in filter(None, statement["readings"] if single else ()):
                    say(f"    {statement['id']}[{reading}]")


def _list_experiments(ids: Ids) -> None:
    from iclab.library import library, select

    shelf, names = library(ids)
    needed = {(s.paper, need.partition("@")[0]) for s in select(names, papers=shelf.papers) for need in s.needs()}
    table = Table(title="Experiments", title_justify="left", box=None)
    for column in ("id", "what it runs"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for paper in shelf.papers.values():
        for name, experiment in paper.experiments.items():
            if (paper.id, name) in needed:
                table.add_row(f"{paper.id}/{name}", experiment.words)
    OUT.print(table)


def reproduce(
    ids: Ids = (),
    only: Annotated[str, option("GROUP")] = "",
    profile: Profile = "quick",
    seeds: Count = None,
    until_decided: Flag = False,
    most_seeds: Count = None,
    minutes: Annotated[str | None, option("M")] = None,
    out: Folder = None,
    reuse: Folder = None,
    robustness: Folder = None,
    save_models: Flag = False,
    cluster: Cluster = None,
    profile_time: Flag = False,
    model: OtherModel = None,
    changes: Changes = (),
) -> None:
    """Train models, test statements and answer them; write figures and a page.

    Without ids it runs all papers, which takes a quarter to half an hour on two cores.
    `iclab reproduce nonlinear-icl/fig3a --most-seeds 32` adds seeds to one figure until its answer is clear;
    `iclab reproduce feature-selection --set noise_norm=0.3 --out runs/noisy` asks what happens with more noise.
    To continue an interrupted run, repeat the command with the same --out.

    Args:
        ids: Papers, statements, prefixes (nonlinear-icl, nonlinear-icl/fig2), readings
            (mamba-outliers/fig1a[exact,kappa=10]), your own .py file (my_idea.py, or my_idea.py/NAME for one of its
            statements), or a package that registers papers (gallery). Default: all papers.
        only: Only one group of statements: papers (those in the papers), theorems, figures, or beyond (the same
            questions about a deep model, and our own questions).
        profile: smoke (seconds: the code path, no answers), quick (minutes on a laptop), paper (many seeds; a GPU).
        seeds: Training seeds per setting, the same number for every statement.
        until_decided: Start with four seeds and add more only for statements that are still open. The quick profile
            does so unless --seeds is given. Answers are as safe as with a number of seeds fixed in advance.
        most_seeds: The largest number of seeds. Default: as many as the profile sets. Implies --until-decided.
        minutes: Stop adding seeds after this many minutes. Implies --until-decided.
        out: Folder for the results. Default: a new folder named after the time.
        reuse: Folder of an earlier run with fewer seeds or other statements. Models that it trained at the same
            settings are not trained again.
        robustness: Folder of an `iclab robust` run. The page shows its specification curves beside the answers.
        save_models: Also write every trained model as models/<experiment>/<setting>-<seed>.npz.
        cluster: Address of a running Dask scheduler (tcp://host:8786); its workers do the work. Needs the extra
            cluster.
        profile_time: Also print the programs that took longest to compile and run (programs.csv lists all).
        model: Replace the paper's model where its world allows it: a mixer (gated-delta, deltanet, gla, retnet, mamba,
            mamba2, rwkv7, softmax, linear, gru) or a class in your own file (my.py:Settings).
        changes: Change a setting of the papers, for example matching_fraction=0.6. May be repeated.
    """
    from iclab.errors import require
    from iclab.runs import reproduce as running
    from iclab.runs.cluster import connect
    from iclab.runs.options import pairs, whole, with_model

    sparing = until_decided or most_seeds is not None or minutes is not None
    require(
        seeds is None or not sparing,
        "--seeds fixes the number of seeds. To limit how many are added, give --most-seeds N instead.",
    )
    count = whole("--seeds", seeds) if seeds is not None else whole("--most-seeds", most_seeds)
    with connect(cluster, say) as (executor, _):
        run = running.reproduce(
            *ids, only=only, profile=profile, seeds=count, until_decided=sparing or None,
            minutes=whole("--minutes", minutes), out=out, save_models=save_models,
            changes=with_model(pairs("--set", changes), model, ids), reuse=reuse, robustness=robustness,
            executor=executor, console=OUT,
        )  # fmt: skip
    print_answers(run.statements)
    if profile_time:
        _print_programs(run.directory)
    say(f"report: {run.directory / 'index.html'}")


def _print_programs(directory: Path) -> None:
    """Print the programs that took longest, and the total."""
    import csv

    from iclab.report.formats import duration
    from iclab.runs.jobs import PROGRAMS

    path = directory / PROGRAMS
    if not path.is_file():
        say("no program was compiled here: workers or an earlier run did the work.")
        return
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    table = Table(title=f"Programs that took longest, of {len(rows)}", title_justify="left", box=None)
    for column in ("first used for", "kind", "compiling", "running", "runs", "members"):
        table.add_column(column, justify="left" if column in ("first used for", "kind") else "right")
    for row in rows[:SHOWN]:
        seconds = [duration(float(row[name])) for name in ("compiling", "running")]
        table.add_row(row["name"], row["kind"], *seconds, row["runs"], row["members"])
    both = [duration(sum(float(row[name]) for row in rows)) for name in ("compiling", "running")]
    table.add_row("all", "", *both, *(str(sum(int(row[name]) for row in rows)) for name in ("runs", "members")))
    OUT.print(table)


def sweep(
    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID_OR_FILE")],
    grid: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, option("NAME=VALUES")] = (),
    profile: Profile = "quick",
    seeds: Count = None,
    out: Folder = None,
    measure: Annotated[str | None, option("NAME")] = None,
    cluster: Cluster = None,
    model: OtherModel = None,
    changes: Changes = (),
) -> None:
    """Run one experiment over a grid of settings; write a table, a netCDF file and a figure.

    `iclab sweep nonlinear-icl/training --grid matching_fraction=0.4:1:4 --grid step_size=0.5,1,2` trains at 12 points.
    Points that differ only in traced settings share one compiled program. To continue an interrupted sweep, repeat the
    command with the same --out.

    Args:
        target: An experiment (nonlinear-icl/training; `iclab list --experiments` lists them), a statement that needs
            one experiment, or your own .py file (my_idea.py/NAME if it has several experiments).
        grid: A setting and its values, as v1,v2,... or start:stop:count. If repeated, all combinations are run.
        profile: Where the other settings come from: smoke, quick or paper.
        seeds: Training seeds per point. Default: as many as the profile sets.
        out: Folder for the results. Default: a new folder named after the time.
        measure: The result that the figure shows. Default: an error, such as the 0-1 error.
        cluster: Address of a running Dask scheduler (tcp://host:8786); its workers do the work. Needs the extra
            cluster.
        model: Replace the paper's model: the name of a mixer, or my.py:Settings.
        changes: Change another setting at all points, for example steps=500. May be repeated.
    """
    from iclab.runs import sweep as sweeping
    from iclab.runs.cluster import connect
    from iclab.runs.options import pairs, whole, with_model

    with connect(cluster, say) as (executor, workers):
        run = sweeping.sweep(
            target, pairs("--grid", grid), profile=profile, seeds=whole("--seeds", seeds), out=out,
            changes=with_model(pairs("--set", changes), model, (target,)), measure=measure,
            executor=executor, workers=workers, console=OUT,
        )  # fmt: skip
    for name in ("results.csv", "results.nc", "sweep.png"):
        if (run.directory / name).exists():
            say(f"{run.directory / name}")


def robust(
    ids: Ids = (),
    points: Annotated[str, tyro.conf.arg(metavar="N")] = "64",
    seeds: Annotated[str, tyro.conf.arg(metavar="N")] = "4",
    over: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, option("NAMES")] = (),
    everything: Flag = False,
    profile: Profile = "quick",
    out: Folder = None,
    cluster: Cluster = None,
    model: OtherModel = None,
    changes: Changes = (),
) -> None:
    """Test statements at many plausible values of unstated settings: how robust is an answer, and what decides it?

    `iclab robust mamba-outliers/fig1a` draws 64 points over the plausible values that `iclab settings` lists and over
    the statement's readings. It trains and judges at each point and reports the share of points where the statement
    holds, the setting that decides, and the smallest change of our own choice that gives another answer. To continue
    an interrupted run, repeat the command with the same --out.

    Args:
        ids: Statements, prefixes or papers (mamba-outliers/fig1a, nonlinear-icl/fig3), or your own .py file.
        points: Points to draw. Single changes of our own choice are added to these.
        seeds: Training seeds per point.
        over: Vary only these settings (step_size,batch); step_size=0.5:4 sets your own range. May be repeated.
        everything: Also test statements that are slow at every point (laws over sizes, GPT-2).
        profile: Where the other settings come from: smoke, quick or paper.
        out: Folder for the results. Default: a new folder named after the time.
        cluster: Address of a running Dask scheduler (tcp://host:8786); its workers do the work. Needs the extra
            cluster.
        model: Replace the paper's model: the name of a mixer, or my.py:Settings.
        changes: Change another setting at all points, for example steps=500. May be repeated.
    """
    from iclab.runs import robust as asking
    from iclab.runs.cluster import connect
    from iclab.runs.options import pairs, whole, with_model

    counts = {name: whole(f"--{name}", text) or 0 for name, text in (("points", points), ("seeds", seeds))}
    with connect(cluster, say) as (executor, _):
        found = asking.robust(
            *ids, **counts, over=over, everything=everything, profile=profile, out=out,
            changes=with_model(pairs("--set", changes), model, ids), executor=executor, console=OUT,
        )  # fmt: skip
    for one in found.statements:
        say(f"{one.id}  {one.words}")
        if one.change:
            say(f"  {one.change}")
        for edge in one.edges:
            say(f"  {edge}")
    say(f"report: {found.directory / 'index.html'}")

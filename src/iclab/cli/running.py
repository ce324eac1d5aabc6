"""Commands that run the papers: list names what there is, reproduce and sweep compute it."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from iclab.cli.console import OUT, Changes, Ids, OtherModel, print_answers, say, shortened
from iclab.contents import contents

SHOWN = 12  # programs of a run


def list_statements(ids: Ids = (), experiments: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False) -> None:
    """List what the papers state, built in or from packages, or a file of yours; or the experiments behind it.

    `iclab reproduce PAPER/STATEMENT` asks one of them, `PAPER/STATEMENT[READING]` one reading of it; `iclab list
    PAPER/STATEMENT` names its readings.

    Args:
        ids: Papers, statements, prefixes (nonlinear-icl, nonlinear-icl/fig2), packages (gallery) or .py files. None:
            all papers.
        experiments: List the experiments of these statements instead: what `iclab sweep` takes.
    """
    if experiments:
        _list_experiments(ids)
        return
    papers = contents() if not ids and not entry_points(group="iclab") else _chosen(ids)
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


def _chosen(ids: Ids) -> list[dict[str, Any]]:
    """The statements that ids name, by paper, from the papers themselves."""
    from iclab.contents import entry
    from iclab.library import default_settings, library, select

    shelf, names = library(ids)
    wanted = {statement.id for statement in select(names, papers=shelf.papers)}
    found = []
    for paper in shelf.papers.values():
        one = entry(paper, default_settings(paper)) | {"package": shelf.packages.get(paper.id, "")}
        one["statements"] = [statement for statement in one["statements"] if statement["id"] in wanted]
        found += [one] if one["statements"] else []
    return found


def _list_experiments(ids: Ids) -> None:
    from iclab.library import library, select

    shelf, names = library(ids)
    needed = {(s.paper, need.partition("@")[0]) for s in select(names, papers=shelf.papers) for need in s.needs()}
    table = Table(title="Experiments", title_justify="left", box=None)
    for column in ("id", "what is run"):
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for paper in shelf.papers.values():
        for name, experiment in paper.experiments.items():
            if (paper.id, name) in needed:
                table.add_row(f"{paper.id}/{name}", experiment.words)
    OUT.print(table)


def reproduce(
    ids: Ids = (),
    only: Annotated[str, tyro.conf.arg(metavar="GROUP")] = "",
    profile: Annotated[str, tyro.conf.arg(metavar="NAME")] = "quick",
    seeds: Annotated[str | None, tyro.conf.arg(metavar="N")] = None,
    until_decided: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    most_seeds: Annotated[str | None, tyro.conf.arg(metavar="N")] = None,
    minutes: Annotated[str | None, tyro.conf.arg(metavar="M")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    reuse: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    robustness: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    save_models: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    cluster: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None,
    profile_time: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    model: OtherModel = None,
    changes: Changes = (),
) -> None:
    """Train, test and answer statements; write figures and a page.

    With no ids: all papers, most of an hour on two cores; with a .py file of yours: its statements.
    `iclab reproduce nonlinear-icl/fig3a --most-seeds 32` adds seeds to one figure until its answer is clear;
    `iclab reproduce feature-selection --set noise_norm=0.3 --out runs/noisy` asks what happens with more noise.
    The same command with the same --out continues an interrupted run.

    Args:
        ids: Papers, statements, prefixes (nonlinear-icl, nonlinear-icl/fig2), readings
            (mamba-outliers/fig1a[exact,kappa=10]), or a .py file of yours (my_idea.py, or my_idea.py/NAME for one of
            its statements), or a package that registers papers (gallery). None: all papers.
        only: Only one group of statements: papers (what is in them), theorems, figures, or beyond (the same questions
            to a deep model, and other questions of ours).
        profile: smoke (seconds: the code path, no answers), quick (minutes on a laptop), paper (many seeds; a GPU).
        seeds: Training seeds per setting, all of them for every statement.
        until_decided: Begin with four seeds and add more only for statements that are still open; the quick profile
            does so unless --seeds is given. Answers are as safe as with a number of seeds that is fixed before.
        most_seeds: With so many seeds at most; the profile's own number if not given. Implies --until-decided.
        minutes: Add no more seeds after so many minutes. Implies --until-decided.
        out: Folder for the results; a new one named after the time if not given.
        reuse: Folder of an earlier run, with fewer seeds or other statements: what it has trained at the same
            settings is not trained again.
        robustness: Folder of an `iclab robust` run: its specification curves stand beside the answers on the page.
        save_models: Also write every trained member as models/<experiment>/<setting>-<seed>.npz.
        cluster: Address of a running Dask scheduler (tcp://host:8786) whose workers do the work; needs the extra
            cluster.
        profile_time: Also print which programs took longest to compile and to run (all are in programs.csv).
        model: Another model in the place of the paper's own, where its world fits: a mixer (gated-delta, deltanet, gla,
            retnet, mamba2, rwkv7, softmax, linear, gru) or a class in a file of yours (my.py:Settings).
        changes: Change a setting of the papers, for example matching_fraction=0.6. May be repeated.
    """
    from iclab.errors import require
    from iclab.runs import reproduce as running
    from iclab.runs.cluster import connect
    from iclab.runs.options import pairs, whole, with_model

    sparing = until_decided or most_seeds is not None or minutes is not None
    require(seeds is None or not sparing, "--seeds is a number for all statements; --most-seeds N ends adding more.")
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
    """The programs that took longest, and what all took together."""
    import csv

    from iclab.report.formats import duration
    from iclab.runs.jobs import PROGRAMS

    path = directory / PROGRAMS
    if not path.is_file():
        say("no programs were compiled here: the work was done elsewhere, or before.")
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
    grid: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUES")] = (),
    profile: Annotated[str, tyro.conf.arg(metavar="NAME")] = "quick",
    seeds: Annotated[str | None, tyro.conf.arg(metavar="N")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    measure: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    cluster: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None,
    model: OtherModel = None,
    changes: Changes = (),
) -> None:
    """Run one experiment over a grid of settings; write a table, a netCDF file and a figure.

    `iclab sweep nonlinear-icl/training --grid matching_fraction=0.4:1:4 --grid step_size=0.5,1,2` trains at 12 points.
    Points that differ in traced settings only are computed in one compiled program. The same command with the same
    --out continues an interrupted sweep.

    Args:
        target: An experiment (nonlinear-icl/training; `iclab list --experiments` names them), a statement with one
            experiment behind it, or a .py file of yours (my_idea.py/NAME where it has several experiments).
        grid: A setting and its values, as v1,v2,... or start:stop:count. May be repeated: all combinations are run.
        profile: Where the other settings come from: smoke, quick or paper.
        seeds: Training seeds per point; the profile's own number if not given.
        out: Folder for the results; a new one named after the time if not given.
        measure: Which result the figure shows; without it, an error such as the 0-1 error.
        cluster: Address of a running Dask scheduler (tcp://host:8786) whose workers do the work; needs the extra
            cluster.
        model: Another model in the place of the paper's own: a mixer's name, or my.py:Settings.
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
    over: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAMES")] = (),
    everything: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    profile: Annotated[str, tyro.conf.arg(metavar="NAME")] = "quick",
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    cluster: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None,
    model: OtherModel = None,
    changes: Changes = (),
) -> None:
    """Ask statements at many points of what their papers do not state: how robust is an answer, and what decides it?

    `iclab robust mamba-outliers/fig1a` draws 64 points over the plausible values that `iclab settings` lists and over
    the statement's readings, trains at each, judges each, and says in which share of them the statement holds, which
    setting decides, and the smallest change of our own choice that gives another answer. The same command with the
    same --out continues an interrupted run.

    Args:
        ids: Statements, prefixes or papers (mamba-outliers/fig1a, nonlinear-icl/fig3), or a .py file of yours.
        points: Points of the sequence; single changes of our own choice come on top.
        seeds: Training seeds per point.
        over: Vary only these settings (step_size,batch); step_size=0.5:4 gives a range of your own. May be repeated.
        everything: Also ask what takes too long at every point (laws over sizes, GPT-2).
        profile: Where the other settings come from: smoke, quick or paper.
        out: Folder for the results; a new one named after the time if not given.
        cluster: Address of a running Dask scheduler (tcp://host:8786) whose workers do the work; needs the extra
            cluster.
        model: Another model in the place of the paper's own: a mixer's name, or my.py:Settings.
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

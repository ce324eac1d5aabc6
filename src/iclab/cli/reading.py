"""Commands that train nothing: claims, figures, serve, diff and referee of runs; theory and settings of papers."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated

import tyro

from iclab.cli.console import COLOURS, OUT, Changes, Flag, Ids, Profile, option, print_answers, say, warn
from iclab.errors import InputError, require


def claims(directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]) -> None:
    """Print the answers of a finished run, one line per statement.

    Args:
        directory: The folder that `iclab reproduce` wrote.
    """
    from iclab.runs.opened import read_claims

    print_answers(read_claims(directory))


def figures(
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    kind: Annotated[str, tyro.conf.arg(name="format", metavar="FORMAT")] = "pdf",
    width: Annotated[float | None, option("INCHES")] = None,
    out: Annotated[Path | None, option("FOLDER")] = None,
    file: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, option("FILE")] = (),
    trust: Flag = False,
) -> None:
    """Draw the figures of a run again from its results; with --width, for print.

    `iclab figures DIR --width 5.5 --format pdf --out FOLDER` draws them 5.5 inches wide. Text is at least 7 points
    high, and panels take as many rows as that needs. Figures of a .py file stay as
    the run drew them, unless --file names that file or --trust executes its copy inside the run folder.

    Args:
        directory: The folder that `iclab reproduce` wrote.
        kind: pdf or svg for a paper, png for a slide.
        width: Width of the printed figure in inches. Default: as wide as on the page.
        out: The folder to write into, one subfolder per paper. Default: figures/ in the folder of the run.
        file: The .py file that this run was made from. May be repeated.
        trust: Execute the copy of that file inside the run folder.
    """
    from iclab.runs.redraw import redraw

    written, notes = redraw(directory, kind, file, trust=trust, width=width, out=out)
    for path in written:
        say(str(path))
    for line in notes:
        warn(line)


def serve(
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    port: Annotated[int, tyro.conf.arg(metavar="N")] = 8765,
    host: Annotated[str, tyro.conf.arg(metavar="ADDRESS")] = "127.0.0.1",
) -> None:
    """Show the page of a run on a local address, live while the run is going.

    Args:
        directory: The folder that `iclab reproduce` writes or wrote.
        port: Port to listen on; 0 takes any free one.
        host: Interface to listen on. Only this machine can reach the default; everyone who can reach another address
            can read the run.
    """
    from iclab.runs.serving import Server

    with Server(directory, host, port) as server:
        say(f"{server.url} shows {directory}. Stop with Ctrl-C.")
        if not server.loopback:
            warn("other machines can reach this address and read the run.")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            server.stopped.set()


def diff(
    first: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR1")],
    second: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR2")],
    html: Annotated[Path | None, option("FILE")] = None,
) -> None:
    """Compare two runs statement by statement: answers, readings, parts, intervals that do not overlap, settings.

    `iclab diff DIR recorded` compares a run with the recorded answers: the paper profile, on a GPU.

    Args:
        first: A folder that `iclab reproduce` wrote.
        second: The folder to compare with, or "recorded" for the recorded full-size run.
        html: Also write the comparison as a page.
    """
    from iclab.report.comparison import compare, print_comparison, render_comparison
    from iclab.runs.opened import sides

    found = compare(*sides(first, second))
    print_comparison(OUT, found, COLOURS)
    if html is not None:
        try:
            html.write_text(render_comparison(found), encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"cannot write {html}: {error.strerror or error}.") from error
        say(f"page: {html}")


def referee(
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    paper: Annotated[str | None, option("PAPER")] = None,
    kind: Annotated[str, tyro.conf.arg(name="format", metavar="FORMAT")] = "md",
    out: Annotated[Path | None, option("FOLDER")] = None,
    trust: Flag = False,
) -> None:
    """Write a referee's report on a paper from the answers of a run: two or three pages.

    The report says what was tested, statement by statement; gives the strongest counter-evidence with its command;
    and lists the readings under which statements hold, what could not be tested, what the authors should state, and our
    own choices. `iclab referee recorded --paper mamba-outliers` uses the recorded answers: the paper profile, on a GPU.

    Args:
        directory: The folder that `iclab reproduce` wrote, or "recorded" for the recorded answers.
        paper: The paper. Default: all papers of the run.
        kind: md (Markdown) or tex (LaTeX).
        out: The folder to write into. Default: referee/ in the folder of the run, or here for the recorded answers.
        trust: Execute the copy of a .py file inside the run folder, to report on its statements.
    """
    from iclab.runs.refereeing import referee as write

    for path in write(directory, paper, kind, out, trust=trust):
        say(f"report: {path}")


def settings(
    ids: Ids = (),
    profile: Profile = "quick",
    everything: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(name="all", help_behavior_hint="")] = False,
) -> None:
    """Show the settings that a paper does not state: our choice, and other values that are as plausible.

    To see what an answer depends on, change a setting with `--set NAME=VALUE` of reproduce, sweep or theory.

    Args:
        ids: Papers, or your own .py files. Default: all papers.
        profile: The values to show: smoke, quick or paper.
        everything: Show all settings, also those that the papers state.
    """
    from rich.table import Table

    from iclab.library import library
    from iclab.runs.options import check_profile
    from iclab.runs.sweep_target import settings_of
    from iclab.settings import names_of, value_of
    from iclab.unstated import Unstated, shown

    check_profile(profile)
    shelf, names = library(ids)
    for name in names:
        require(name in shelf.papers, f"{name!r} is not a paper. The papers are {', '.join(shelf.papers)}.")
    for paper in (shelf.papers[name] for name in names or shelf.papers):
        values = settings_of(paper, profile)
        unstated = {entry.setting: entry for entry in paper.unstated if isinstance(entry, Unstated)}
        table = Table(title=paper.id, title_justify="left", box=None)
        for column in ("--set", "letter", profile, "plausible", "why"):
            table.add_column(column, no_wrap=column != "why" and column != "plausible", overflow="fold")
        for setting in [*unstated, *(one for one in names_of(values) if everything and one not in unstated)]:
            entry = unstated.get(setting, Unstated(setting, ()))
            table.add_row(setting, entry.letter, shown(value_of(values, setting)), entry.values, entry.source)
        OUT.print(table, highlight=False)
        for sentence in (one for one in paper.unstated if isinstance(one, str)):
            say(f"  {sentence}")
        say("")


def theory(
    ids: Ids = (),
    profile: Profile = "quick",
    constant: Annotated[float, tyro.conf.arg(metavar="C")] = 1.0,
    changes: Changes = (),
) -> None:
    """Show the conditions and predicted rates of theorems at the current settings.

    `iclab theory nonlinear-icl/thm3.3 --set neurons=50` says which conditions fail with 50 neurons, and by what factor.

    Args:
        ids: Papers, theorems, prefixes (nonlinear-icl, mamba-outliers/thm1, chain-of-thought/lem) or a .py file that
            defines `symbols` and `theorems`. Default: all.
        profile: The settings to start from: smoke, quick or paper.
        constant: The constant hidden in Ω, O and Θ, the same everywhere.
        changes: Change a setting, or a symbol that no setting fixes (error=0.05 for ε). May be repeated.
    """
    from iclab.library import free_symbols, library, theorems
    from iclab.report.theory import print_symbols, print_theorem
    from iclab.runs.options import check_names, check_profile, override, pairs
    from iclab.runs.sweep_target import settings_of

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
        f"Hidden constants in Ω, O, Θ: {constant:g}. Exponents are the stated powers. Where logarithms or sums make "
        "them differ, local slopes (d log value / d log symbol) are shown."
    )
    OUT.print(note, style="dim", highlight=False)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"--set {name}={text}: {name} takes a number.") from None
    require(math.isfinite(value), f"--set {name}={text}: the value must be finite.")
    return value

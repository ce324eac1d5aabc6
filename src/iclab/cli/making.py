"""Commands for your own files (new, check) and for this machine (bench, doctor)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape

from iclab import skeletons
from iclab.cli.console import OUT, Flag, option, say, warn
from iclab.errors import InputError, require

STEPS = 200  # training steps with which `iclab doctor` tries the installation


def new(
    kind: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="KIND")],
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
) -> None:
    """Write NAME.py in this folder: a working example to change into your own.

    `iclab new claim my_idea` writes my_idea.py; `iclab check my_idea.py` checks it, `iclab reproduce my_idea.py`
    answers its statements, `iclab sweep my_idea.py --grid matching_fraction=0.4:1:4` runs it over a grid.

    Args:
        kind: The kind of example: world, model, probe, claim or paper.
        name: The name of the file and of its statements.
    """
    path = skeletons.write(kind, name, Path())
    say(f"wrote {path}. Next:")
    for line in skeletons.next_commands(path, kind):
        say(f"  {line}")


def check(
    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    everything: Flag = False,
) -> None:
    """Check your file (shapes, masks, padding, truth, keys, gradients, compilation) and explain what fails.

    The check lists what the experiments would compute and tries every world, model, loss and probe that they use on a
    few prompts. It trains nothing. It exits with status 1 if a check fails.

    Args:
        file: A .py file.
        everything: Also check the worlds and models of iclab that the file uses.
    """
    from iclab.conformance import check_file
    from iclab.devices import prepare_jax, quick_compilation

    prepare_jax()
    with quick_compilation():
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


def bench(
    cases: Annotated[tuple[str, ...], tyro.conf.Positional, option("[CASES...]")] = (),
    seconds: Annotated[float, tyro.conf.arg(metavar="S")] = 3.0,
    members: Annotated[int | None, option("N")] = None,
    out: Annotated[Path | None, option("FILE")] = None,
    against: Annotated[Path | None, option("FILE")] = None,
    peer: bool = True,
) -> None:
    """Measure the training speed of every model against PyTorch and against the machine's matrix-product rate.

    PyTorch is measured twice: one model in eager mode, and an ensemble under torch.compile. Each case runs in its own
    process. Without PyTorch (the extra llm), the columns of the peers stay empty.

    Args:
        cases: Any of softmax, linear, mamba, chain, residual, gpt2, or a mixer such as gla. Default: all.
        seconds: How long to measure each rate, after compilation.
        members: Models trained side by side. Default: a few per core, or as many as fill a GPU.
        out: Also write the numbers as JSON.
        against: A file that --out wrote earlier. The command fails if a ratio fell below 70 % of its value there.
        peer: Also measure PyTorch. This is the default; --no-peer leaves it out.
    """
    from iclab.bench import table as benchmarks

    require(seconds > 0, f"--seconds is {seconds}; it must be positive.")
    require(members is None or members >= 1, f"--members is {members}; at least one model is needed.")
    if out is not None:
        require(out.absolute().parent.is_dir(), f"--out {out}: there is no folder {out.parent}.")
        require(not out.is_dir(), f"--out {out} is a folder; give the name of a file.")
    before = None if against is None else benchmarks.read(against)
    found = benchmarks.measure(cases, seconds, members, peer, warn)
    OUT.print(benchmarks.table(found))
    if out is not None:
        try:
            out.write_text(json.dumps(found, indent=2) + "\n")
        except OSError as error:
            raise InputError(f"cannot write {out}: {error.strerror or error}.") from error
        say(f"numbers: {out}")
    slower = [] if before is None else benchmarks.regressions(found, before)
    require(not slower, "slower than before:\n" + "\n".join(slower))


def _listed(value: Any) -> str:
    """A version, several of them by name, or several devices."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {version}" for name, version in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def doctor() -> None:
    """Check the installation: versions, devices, cores, compilation cache, and a tiny training."""
    from iclab import training
    from iclab.authoring.paper import PROFILES
    from iclab.bench.cases import CASES
    from iclab.cache import cache_directory
    from iclab.devices import prepare_jax
    from iclab.library import library
    from iclab.runs.manifest import environment
    from iclab.runs.sweep_target import settings_of

    prepare_jax()
    for name, value in environment().items():
        if value:  # an installed wheel has no revision
            say(f"{name}: {_listed(value)}")
    say(f"compilation cache: {cache_directory()}")
    papers = library()[0].papers
    say(f"papers: {', '.join(papers)}; profiles: {', '.join(PROFILES)}")
    for paper in papers.values():
        lacking = paper.lacking(settings_of(paper, "quick"))
        if lacking:
            say(f"{paper.id}: {lacking}")
    case = CASES["linear"]
    _, records = training.train(case.members(2), case.loss, (0, STEPS // 2, STEPS))
    before, after = records["training_loss"][:, 1:].mean(axis=0)
    require(
        after < before, f"a small model does not learn on this machine: its loss goes from {before:.3f} to {after:.3f}."
    )
    say("a small model was trained: all is well")

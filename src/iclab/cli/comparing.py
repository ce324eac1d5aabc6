"""The command that compares architectures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import tyro
from rich.table import Table

from iclab.cli.console import OUT, Changes, Cluster, Count, Folder, Profile, option, print_answers, say

if TYPE_CHECKING:
    import xarray as xr


def compare(
    models: Annotated[tuple[str, ...], tyro.conf.Positional, option("[MODELS...]")] = (),
    profile: Profile = "quick",
    seeds: Count = None,
    out: Folder = None,
    cluster: Cluster = None,
    changes: Changes = (),
) -> None:
    """Compare architectures: every token mixer on outliers, unseen tasks, longer prompts, recall and reasoning.

    `iclab compare` trains ten mixers, each at the same step sizes; `iclab compare mamba deltanet softmax` trains three.
    It prints errors with 95 % intervals over seeds and the ranks that these intervals allow, says which mechanism
    carries what, and writes a page. To continue an interrupted run, repeat the command with the same --out.

    Args:
        models: Mixers by name (linear, retnet, gla, mamba, mamba2, deltanet, gated-delta, rwkv7, softmax, gru).
            Default: all.
        profile: smoke (the code path), quick (minutes on a laptop), paper (more steps and step sizes; a GPU).
        seeds: Training seeds per model. Default: as many as the profile sets.
        out: Folder for the results. Default: a new folder named after the time.
        cluster: Address of a running Dask scheduler (tcp://host:8786); its workers do the work. Needs the extra
            cluster.
        changes: Change a setting of the study, for example key_dimension=16. May be repeated.
    """
    from iclab.runs import compare as comparing
    from iclab.runs.cluster import connect
    from iclab.runs.options import pairs, whole

    with connect(cluster, say) as (executor, _):
        found = comparing.compare(
            *models, profile=profile, seeds=whole("--seeds", seeds), out=out, changes=pairs("--set", changes),
            executor=executor, console=OUT,
        )  # fmt: skip
    print_answers(found.run.statements)
    _print_matrix(found.matrix)
    say(f"numbers: {found.directory / comparing.TABLE}")
    say(f"report: {found.directory / 'index.html'}")


def _print_matrix(found: xr.Dataset) -> None:
    """Print one line per question and model (error, interval, rank), the best first."""
    mean = found["error"].mean("seed")
    for question in found["question"].values:
        table = Table(title=str(question), title_justify="left", box=None)
        for column in ("model", "error", "95 %", "rank"):
            table.add_column(column, justify="left" if column == "model" else "right")
        own = mean.sel(question=question).dropna("model")
        for model in own["model"].values[own.argsort().values]:
            cell = found.sel(question=question, model=model)
            ranks = dict.fromkeys(int(cell[name]) for name in ("best_rank", "worst_rank"))
            ends = f"[{float(cell['low']):.3f}, {float(cell['high']):.3f}]"
            table.add_row(str(model), f"{float(own.sel(model=model)):.3f}", ends, " to ".join(map(str, ranks)))
        OUT.print(table)

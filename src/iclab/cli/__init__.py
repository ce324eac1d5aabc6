"""The command line.

Commands import what they need when they are run: `iclab --help` and `iclab new` wait for neither JAX nor xarray.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import tyro

import iclab
from iclab.cli.console import say, warn
from iclab.cli.making import bench, check, doctor, new
from iclab.cli.reading import claims, diff, figures, serve, theory
from iclab.cli.running import list_statements, reproduce, sweep
from iclab.errors import InputError, PackageWarning

COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_statements,
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
ABOUT = "A laboratory for the theory of in-context learning. `iclab --version` says which one this is."


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """One line for what a package does wrong; others as Python does."""
    if issubclass(category, PackageWarning):
        warn(f"iclab: {message}")
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def main() -> None:
    """Entry point of the `iclab` command. Bad input: one sentence and status 2; Ctrl-C: status 130."""
    if sys.argv[1:] == ["--version"]:
        say(f"iclab {iclab.__version__}")
        return
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            tyro.extras.subcommand_cli_from_dict(
                COMMANDS,
                prog="iclab",
                description=ABOUT,
                sort_subcommands=False,
            )
    except InputError as error:
        warn(f"iclab: {error}")
        sys.exit(2)
    except MemoryError:
        warn("iclab: not enough memory for these sizes.")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)

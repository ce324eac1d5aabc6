"""The command line.

Each command imports what it needs when it runs, so `iclab --help` and `iclab new` do not wait for JAX or xarray.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import iclab
from iclab.cli.comparing import compare
from iclab.cli.console import say, warn
from iclab.cli.interrupts import watch_for_interrupts
from iclab.cli.making import bench, check, doctor, new
from iclab.cli.parsing import parsed
from iclab.cli.reading import claims, diff, figures, referee, serve, settings, theory
from iclab.cli.running import list_statements, reproduce, robust, sweep
from iclab.errors import InputError, PackageWarning, in_words

COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_statements,
    "reproduce": reproduce,
    "claims": claims,
    "figures": figures,
    "serve": serve,
    "diff": diff,
    "referee": referee,
    "sweep": sweep,
    "robust": robust,
    "compare": compare,
    "new": new,
    "check": check,
    "theory": theory,
    "settings": settings,
    "bench": bench,
    "doctor": doctor,
}
ABOUT = "A laboratory for the theory of in-context learning. `iclab --version` prints the version; \
--debug shows errors in full."


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Print a `PackageWarning` as one line; print every other warning as Python does."""
    if issubclass(category, PackageWarning):
        warn(f"iclab: {message}")
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def main() -> None:
    """Entry point of the `iclab` command. Bad input prints one sentence and exits with status 2; Ctrl-C with 130.

    --debug, anywhere on the command line, shows the whole traceback of an error.
    """
    if sys.argv[1:] == ["--version"]:
        say(f"iclab {iclab.__version__}")
        return
    debug = "--debug" in sys.argv[1:]
    sys.argv = [word for word in sys.argv if word != "--debug"]
    try:
        watch_for_interrupts()
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            parsed(COMMANDS, ABOUT)()
    except InputError as error:
        if debug:
            raise
        warn(f"iclab: {error}")
        if error.frames:
            warn(error.frames)
        sys.exit(2)
    except MemoryError:
        if debug:
            raise
        warn("iclab: not enough memory for these sizes.")
        sys.exit(2)
    except BrokenPipeError:  # `iclab list | head`: nobody reads on, which is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would complain when it ends
        sys.exit(141)
    except Exception as error:
        if debug:
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        warn(f"iclab: unexpected error ({where}): {in_words(error)}. Add --debug for the whole traceback.")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)

"""Run code of a user's file so that an error in it becomes one sentence with the file and the line.

The file's own frames are printed below the sentence, those of iclab are left out. An exit inside a file is an error
like any other: a run that ends half-way must not look successful.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import greenlet

from iclab.engine import EndedError
from iclab.errors import InputError, in_words, line_in, require

SHOWN = 4  # frames of the file, the innermost ones
SURROGATES = re.compile(r"[\ud800-\udfff]")
UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]|^\.|^$")


class _LeftError(Exception):
    """A file called `os._exit`."""


LEAVE = os._exit
_INSIDE: list[int] = []


def _refuse_to_leave(status: int) -> None:
    if os.getpid() != _INSIDE[0]:  # a forked child may exit
        LEAVE(status)
    raise _LeftError(f"os._exit({status})")


@contextlib.contextmanager
def guarded(file: str, what: str = "") -> Iterator[None]:
    """Turn errors of this file's code into an `InputError` that names the line; `what` names the part of the file."""
    _INSIDE.append(os.getpid())
    os._exit = _refuse_to_leave  # type: ignore[assignment]
    try:
        yield
    except (InputError, EndedError, MemoryError, KeyboardInterrupt, GeneratorExit, greenlet.GreenletExit):
        raise
    except BaseException as error:
        said = f"it calls sys.exit({error.code})" if isinstance(error, SystemExit) else in_words(error)
        inside = f", in {what}" if what else ""
        found = InputError(f"{file}{line_in(file, error)}{inside}: {said}")
        found.frames = frames_of(file, error)
        raise found from error
    finally:
        _INSIDE.pop()
        if not _INSIDE:  # other experiments may still run
            os._exit = LEAVE


def frames_of(file: str, error: BaseException) -> str:
    """The frames of this file, formatted like a traceback."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return "".join(traceback.format_list(own[-SHOWN:])).rstrip()


def guard(file: str, what: str, function: Callable[..., Any], kind: type | None = None) -> Callable[..., Any]:
    """The function, guarded if it belongs to a user's file; it must return a `kind`."""
    if not file.endswith(".py"):
        return function

    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        with guarded(file, what):
            found = function(*arguments, **named)
        if inspect.iscoroutine(found):
            found.close()  # nobody waits for it
        if kind is not None:
            wanted = f"{kind.__module__.partition('.')[0]} {kind.__name__}"
            require(isinstance(found, kind), f"{file}: {what} must return an {wanted}, not {type(found).__name__}.")
        return found

    return run


def is_text(given: Any) -> bool:
    """Whether it is a text that can be written to a file; lone surrogates cannot."""
    return isinstance(given, str) and not SURROGATES.search(given)


def require_name(file: str, what: str, name: Any) -> None:
    """Refuse names that cannot be file names: with slashes, hidden, empty or too long."""
    usable = is_text(name) and not UNSAFE.search(name) and len(name) <= 100
    require(usable, f"{file}: {name!r} cannot be the name of {what}; use a word of letters, digits, - and _.")

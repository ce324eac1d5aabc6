"""Parse the command line before anything runs; answer a mistake in one sentence."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import re
import shutil
import sys
import textwrap
import typing
from collections.abc import Callable, Mapping
from typing import Any

import tyro

from iclab.errors import InputError, nearest, require

RULE = re.compile(r"^[─-]{3,}$")
BORDER = re.compile(r"^[╭╰]")
EMPTY = re.compile(r"\n{3,}")
PROSE = re.compile(r"^(?!usage:)[`\w(\"]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CONTINUED = re.compile(r"\n {12}")
HINT = "Perhaps you meant:"


def parsed(commands: Mapping[str, Callable[..., None]], description: str) -> Callable[[], None]:
    """The command on this process's command line, with its arguments, ready to be called."""
    word = sys.argv[1] if len(sys.argv) > 1 else "--help"
    require(word.startswith("-") or word in commands, f"there is no command {word!r}. {nearest(word, commands)}")
    later = {name: _later(command, whole=name == word) for name, command in commands.items()}
    said, helped = io.StringIO(), _Terminal()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(helped):
            found: Callable[[], None] = tyro.extras.subcommand_cli_from_dict(
                later, prog="iclab", description=description, sort_subcommands=False
            )
    except SystemExit as stop:
        if not stop.code:
            text, asked = helped.getvalue(), {"-h", "--help"} & set(sys.argv)
            sys.stdout.write(folded(text, shutil.get_terminal_size().columns) if asked else text)
            raise
        of = f" {word}" if word in commands else ""
        raise InputError(f"{sentence(said.getvalue())} See `iclab{of} --help`.") from None
    return found


class _Terminal(io.StringIO):
    """Keeps what is printed, in the colours and signs that standard output shows."""

    encoding = property(lambda self: getattr(sys.__stdout__, "encoding", "utf-8"))

    def isatty(self) -> bool:
        """Whether the real one is a terminal."""
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def folded(text: str, width: int) -> str:
    """The text with its long lines of prose folded between words; tyro folds only what stands in its boxes. Of several
    empty lines one is left.

    >>> print(folded("Short.\\nWhat is said here is longer than that.", 20))
    Short.
    What is said here is
    longer than that.
    """
    lines = EMPTY.sub("\n\n", text).split("\n")
    plain = [PROSE.match(line) and len(line) > width for line in lines]
    return "\n".join(textwrap.fill(line, width) if long else line for line, long in zip(lines, plain, strict=True))


def _later(command: Callable[..., None], *, whole: bool) -> Callable[..., Callable[[], None]]:
    """The command with the same options; calling it returns what to run. Without `whole`, its help is one line."""

    def later(*arguments: Any, **named: Any) -> Callable[[], None]:
        return functools.partial(command, *arguments, **named)

    text = CONTINUED.sub(" ", command.__doc__ or "")  # tyro would keep the line breaks of an argument's text
    later.__doc__ = text if whole else text.partition("\n")[0]
    later.__signature__ = inspect.signature(command)  # type: ignore[attr-defined]
    later.__annotations__ = typing.get_type_hints(command, include_extras=True)
    return later


def sentence(box: str) -> str:
    """Tyro's boxed error in one line: what is wrong, and the likely spelling.

    >>> sentence("╭─ Unrecognized options ─╮\\n│ Unrecognized options: --sedes │\\n╰─────╯")
    'unrecognized options: --sedes.'
    """
    sections: list[list[str]] = [[]]
    for line in COLOUR.sub("", box).splitlines():
        inside = line.strip().strip("│").strip()
        if RULE.match(inside):
            sections.append([])
        elif inside and not BORDER.match(inside):
            sections[-1].append(inside)
    if not BORDER.match(box.strip()):  # where the terminal has no such lines, the title stands in a section of its own
        sections = sections[1:] or [[]]
    words = " ".join(sections[0]).removesuffix("(required)").rstrip(". ")
    meant = [f" Did you mean {lines[1]}?" for lines in sections if len(lines) > 1 and lines[0] == HINT]
    return f"{words[:1].lower()}{words[1:]}.{''.join(meant)}"

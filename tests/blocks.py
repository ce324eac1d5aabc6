"""The code blocks of the documentation, found and executed in order, page by page.

    python     executed; a block that begins with a comment `# name.py` is written to that file instead
    pycon      a doctest: what it prints must be what is printed there
    console    commands after `$ `; each must succeed, and print what stands below it (`...` stands for anything)
    text, toml shown, not code
    code-cell  in a notebook, which the build of the site executes

A page's blocks share one namespace and one empty folder. A block that cannot be executed has a comment right before it,
`<!-- not executed: reason -->`. Anything else, an indented block too, is refused: nothing goes unexecuted silently.

Run as a script, this executes pages with the `iclab` command that lies beside the interpreter: the tutorial, from a
wheel in an empty environment (`make dist`).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from markdown_it import MarkdownIt

EXECUTED = ("python", "pycon", "console")
SHOWN = ("text", "toml")
DIRECTIVES = ("{toctree}", "{include}")
CELL, NOTEBOOK = "{code-cell}", "---\nfile_format: mystnb\n"  # a notebook is executed by the build of the site
OPT_OUT = re.compile(r"<!-- not executed: (.+) -->\s*")
FILE = re.compile(r"# ([\w-]+\.py)\n")
SHOW_STATUS = ' || echo "status $?"'
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block; `reason` says why it is not executed."""

    page: Path
    line: int
    language: str
    text: str
    reason: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """All blocks of a page. Raises on one that would be neither executed nor plain text."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text())
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "code_block":
            yield Block(page, token.map[0] + 1, "indented", token.content)
        if token.type == "fence":
            language = token.info.split(" ")[0]
            comment = OPT_OUT.fullmatch(before.content) if before is not None and before.type == "html_block" else None
            yield Block(page, token.map[0] + 1, language, token.content, comment[1] if comment else "")


def refused(page: Path) -> list[str]:
    """What is wrong with the blocks of a page, in sentences."""
    wrong = []
    cells = (CELL,) if page.read_text().startswith(NOTEBOOK) else ()
    for block in blocks(page):
        if block.language not in (*EXECUTED, *SHOWN, *DIRECTIVES, *cells):
            wrong.append(
                f"{block.place}: {block.language or 'no language'!r} is not executed; use {', '.join(EXECUTED)} "
                "or text."
            )
        if block.language in SHOWN and re.search(r"^(\$ |>>> |import |from \w+ import )", block.text, re.MULTILINE):
            wrong.append(f"{block.place}: this text looks like code; say which language it is.")
        if block.reason and len(block.reason.split()) < 3:
            wrong.append(f"{block.place}: {block.reason!r} does not say why it is not executed.")
        if block.language == "console" and not block.text.startswith("$ "):
            wrong.append(f"{block.place}: a console block begins with `$ ` and a command.")
    return wrong


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what stands below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        last = next(at for at, line in enumerate(lines) if not line.rstrip().endswith("\\"))
        command = "".join(lines[: last + 1]).replace("\\\n", " ").strip()
        yield command, "".join(lines[last + 1 :]).rstrip() + "\n"


def in_this_process(command: str) -> tuple[int, str]:
    """Run a command: `iclab` by a call, so that JAX starts once, anything else by the shell."""
    if command.endswith(SHOW_STATUS):
        status, printed = in_this_process(command.removesuffix(SHOW_STATUS))
        return 0, f"{printed}status {status}\n" if status else printed
    words = shlex.split(command)
    if words[0] != "iclab":
        return by_the_shell(command)
    from iclab import cli
    from iclab.cli.console import ERR, OUT

    printed = io.StringIO()
    kept = sys.argv, OUT.width, ERR.width
    sys.argv, OUT.width, ERR.width = words, 100, 100
    status: object = 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            cli.main()
    except SystemExit as end:
        status = end.code or 0
    finally:
        sys.argv, OUT.width, ERR.width = kept
    return int(str(status)), printed.getvalue()


def by_the_shell(command: str) -> tuple[int, str]:
    """Run a command with the programs beside this interpreter first on the path."""
    place = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
        env=os.environ | {"PATH": place, "COLUMNS": "100"},
    )  # fmt: skip
    return run.returncode, run.stdout


def execute(
    page: Path, folder: Path, run: Callable[[str], tuple[int, str]], say: Callable[[str], None] = lambda line: None
) -> int:
    """Execute a page's blocks in the folder; the number of blocks that were. AssertionError names the block that
    failed.
    """
    space: dict[str, object] = {"__name__": "__main__"}
    done = 0
    with contextlib.chdir(folder):
        for block in blocks(page):
            if block.language not in EXECUTED or block.reason:
                continue
            done += 1
            began = time.perf_counter()
            if block.language == "console":
                _console(block, run, say)
            elif block.language == "pycon":
                _session(block, space)
            elif named := FILE.match(block.text):
                Path(named[1]).write_text(block.text)
            else:
                exec(compile(block.text, block.place, "exec"), space)
            say(f"{block.place}: {block.language}, {time.perf_counter() - began:.1f} s")
    return done


def fits(expected: str, printed: str) -> bool:
    """Is this what was expected? White space is not compared; `...` stands for anything, or for nothing."""
    said, wanted = ("".join(f" {word}" for word in text.split()) for text in (printed, expected))
    pattern = re.sub(r"\\ \\\.\\\.\\\.(?=\\ |$)", r"(?: .*)?", re.escape(wanted)).replace(r"\.\.\.", ".*")
    return not wanted or re.fullmatch(pattern, said, re.DOTALL) is not None


def _console(block: Block, run: Callable[[str], tuple[int, str]], say: Callable[[str], None]) -> None:
    for command, expected in commands(block.text):
        status, printed = run(command)
        printed = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed)
        say(f"$ {command}\n{printed}")
        assert status == 0, f"{block.place}: `{command}` ended with status {status}:\n{printed}"
        assert fits(expected, printed), f"{block.place}: `{command}` printed\n{printed}\ninstead of\n{expected}"


def _session(block: Block, space: dict[str, object]) -> None:
    session = doctest.DocTestParser().get_doctest(block.text, space, block.place, str(block.page), block.line)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(session, out=told.append, clear_globs=False)
    space.update(session.globs)
    assert runner.failures == 0, "".join(told)


def main() -> None:
    """Execute pages with the `iclab` command beside this interpreter, in an empty folder, and say what it printed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    for page in parser.parse_args().pages:
        with tempfile.TemporaryDirectory() as folder:
            count = execute(page.resolve(), Path(folder), by_the_shell, print)
        print(f"{page}: {count} blocks ran")


if __name__ == "__main__":
    main()

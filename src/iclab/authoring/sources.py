"""Papers from outside: a user's file, or those that an installed package registers under the entry point "iclab".

A file is its name and its text; a worker on another machine needs nothing else. It is executed once, so that its
functions, and the programs compiled for them, stay the same objects.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import linecache
import re
import sys
import types
import warnings
from pathlib import Path
from typing import NamedTuple

from iclab.authoring.guarded import guarded
from iclab.authoring.module import paper_of
from iclab.authoring.paper import Paper
from iclab.errors import InputError, PackageWarning, in_words, require

GROUP = "iclab"
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def split_file(text: str) -> tuple[str, str] | None:
    """`path/my_idea.py` or `path/my_idea.py/statement` as (path, statement); None for anything else.

    >>> split_file("a/my_idea.py/error"), split_file("my_idea.py"), split_file("nonlinear-icl/fig1")
    (('a/my_idea.py', 'error'), ('my_idea.py', ''), None)
    """
    found = re.fullmatch(r"(.+\.py)(/[^/]*)?", text)
    require(
        found is None or found[2] != "/", f"{text}: add the name of a statement after the slash, or remove the slash."
    )
    return None if found is None else (found[1], (found[2] or "").removeprefix("/"))


def read_file(path: str | Path) -> tuple[str, str]:
    """The name and the text of a user's file."""
    path = Path(path)
    require(
        bool(NAME.fullmatch(path.stem)),
        f"{path.name} cannot be the name of a file with statements; use letters, digits, - and _.",
    )
    try:
        return path.stem, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}.") from None


@functools.cache
def module_of(name: str, text: str) -> types.ModuleType:
    """The file as a module, executed once."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    module = types.ModuleType(f"iclab_user_{digest}")
    module.__file__ = f"{name}.py"
    sys.modules[module.__name__] = module  # where dataclasses look up their module
    lines = text.splitlines(keepends=True)
    linecache.cache[module.__file__] = (len(text), None, lines, module.__file__)  # for tracebacks
    with guarded(module.__file__):
        exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module


@functools.cache
def user_paper(name: str, text: str) -> Paper:
    """The paper that a user's file defines."""
    return paper_of(name, f"{name}.py", module_of(name, text))


class Registered(NamedTuple):
    """A paper of an installed package; `text` names the package, its version and its source."""

    paper: Paper
    text: str
    package: str


@functools.cache
def registered(taken: frozenset[str]) -> dict[str, Registered]:
    """The papers that installed packages register, by id.

    An entry point may name a `Paper`, or a module written like a user's file. One that cannot be used gives a warning.
    """
    found: dict[str, Registered] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        package = entry.dist.name if entry.dist else "a package"
        try:
            loaded = entry.load()
            usable = isinstance(loaded, Paper | types.ModuleType)
            require(usable, f"it is a {type(loaded).__name__}, not a Paper or a module.")
            paper = loaded if isinstance(loaded, Paper) else paper_of(entry.name, entry.value, loaded)
            require(paper.id not in taken and paper.id not in found, f"another paper has the id {paper.id!r}.")
            text = f"{package} {entry.dist.version if entry.dist else ''} {_digest(entry.module)}"
            found[paper.id] = Registered(paper, text, package)
        except Exception as error:
            text = f"{package} registers {entry.name} = {entry.value}, which cannot be used: {in_words(error)}"
            warnings.warn(text, PackageWarning, stacklevel=2)
    return found


def _digest(module: str) -> str:
    """A digest of the source files of the package that a module belongs to."""
    root = Path(inspect.getfile(sys.modules[module.partition(".")[0]]))
    files = sorted(root.parent.rglob("*.py")) if root.name == "__init__.py" else [root]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]

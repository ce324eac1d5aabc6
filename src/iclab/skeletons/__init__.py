"""Working examples that `iclab new` copies, to be changed into your own files."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path

from iclab.contents import contents
from iclab.errors import InputError, nearest, require

KINDS = ("world", "model", "probe", "claim", "paper")
SWEPT = {"world": "noise=0:1:5", "model": "step_size=0.5,1,2", "probe": "matching_fraction=0.4:1:4",
         "claim": "matching_fraction=0.4:1:4", "paper": "width=2,4,8,16"}  # fmt: skip


def text_of(kind: str) -> str:
    """The skeleton of this kind."""
    require(kind in KINDS, f"there is no skeleton for {kind!r}. {nearest(kind, KINDS)}")
    return (resources.files("iclab.skeletons") / f"{kind}.py").read_text(encoding="utf-8")


def write(kind: str, name: str, folder: Path) -> Path:
    """Write the skeleton as NAME.py in a folder; never overwrite a file."""
    text = text_of(kind)
    stem = name.removesuffix(".py")
    require(
        bool(re.fullmatch(r"[A-Za-z][\w-]*", stem)),
        f"{name!r} cannot be the name of a file; use letters, digits, - and _, and begin with a letter.",
    )
    require(not keyword.iskeyword(stem), f"{name!r} is a keyword of Python; choose another name.")
    taken = {paper["id"] for paper in contents()}
    require(stem not in taken, f"{name!r} is the name of a paper; choose another name.")
    path = folder / f"{stem}.py"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} already exists; choose another name.") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}.") from None
    return path


def next_commands(path: Path, kind: str) -> list[str]:
    """The commands to try next."""
    return [
        f"iclab check {path}",
        f"iclab reproduce {path} --out runs/{path.stem}",
        f"iclab sweep {path} --grid {SWEPT[kind]} --out runs/{path.stem}-sweep",
    ]

"""Bad command lines: each is answered with one sentence that has the right words in it, and leaves nothing behind."""

import contextlib

from measured import SHORTEST
from trial import command

import mistakes

NAME = "bad command lines"
SMALL = ("--seeds", "2", "--set", "steps=5")


def try_all(category, folder):
    furnish(folder / "furnished")
    (folder / "empty").mkdir()
    for place, table in (
        ("empty", (*mistakes.COMMANDS, *mistakes.MORE_COMMANDS)),
        ("furnished", mistakes.COMMANDS_WITH_FILES),
    ):
        with contextlib.chdir(folder / place):
            before = everything(folder / place)
            for arguments, words in table:
                _one(category, arguments, words)
                if (after := everything(folder / place)) != before:
                    category.bad("wrong", spelled(arguments), f"something is left: {sorted(after ^ before)}")
                    before = after


def everything(place):
    return {(str(path.relative_to(place)), path.stat().st_size) for path in place.rglob("*")}


def spelled(arguments):
    return f"iclab {' '.join(arguments)}"[:300]


def _one(category, arguments, words):
    outcome = command(*arguments)
    category.tried += 1
    category.judge(spelled(arguments), outcome, statuses=(2,))
    if words not in outcome.err:
        category.bad("unclear", spelled(arguments), f"{words!r} is not in {outcome.err!r}")


def furnish(place):
    """A folder with files, a run and a sweep, for mistakes that need them."""
    (place / "other").mkdir(parents=True)
    (place / "folder.py").mkdir()
    for name in ("good.py", "other/good.py", "nonlinear-icl.py", "wrong.py"):
        (place / name).write_text(SHORTEST.read_text())
    (place / "file.txt").write_text("text")
    (place / "empty.py").write_text("")
    (place / "binary.py").write_bytes(bytes(range(256)))
    (place / "null.py").write_bytes(b"import os\0\n")
    (place / "latin.py").write_bytes("# é\n".encode("latin-1"))
    with contextlib.chdir(place):
        made = (
            command("reproduce", "good.py", *SMALL, "--out", "run"),
            command("sweep", "good.py", "--grid", "noise=0.4,0.8", *SMALL, "--out", "sweep"),
        )
    assert [outcome.status for outcome in made] == [0, 0], made

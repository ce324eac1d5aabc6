"""A trial: what was tried, and what came that should not have come."""

import contextlib
import dataclasses
import io
import re
import sys
import time
import traceback
import unittest.mock

from iclab import cli

KINDS = ("lost", "wrong", "traceback", "unclear")
NOISE = re.compile(
    r"Traceback \(most recent call last\)|asyncio|distributed\.|StreamClosed|CommClosed|was never awaited"
)
UNKNOWN = "iclab: unexpected error"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str


@dataclasses.dataclass
class Category:
    """One row of the table."""

    name: str
    tried: int = 0
    found: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    sentences: set[str] = dataclasses.field(default_factory=set)
    note: str = ""
    seconds: float = 0.0

    def bad(self, kind, what, came):
        """Something came that should not have come; it is printed at once and counted."""
        assert kind in KINDS
        self.found.append((kind, what, came))
        print(f"{self.name}: {kind}: {what}\n    {came.strip()[-2000:] or 'nothing was said'}", flush=True)

    def judge(self, what, outcome, statuses=(0, 2)):
        """Success, or one sentence; anything else is bad. True for success."""
        if NOISE.search(outcome.err):
            self.bad("traceback", what, outcome.err)
        elif outcome.status not in statuses or (outcome.status != 0 and not is_sentence(outcome.err)):
            self.bad("unclear", what, f"status {outcome.status}: {outcome.err or outcome.out}")
        elif outcome.status != 0:
            self.sentences.add(outcome.err.splitlines()[0])
        return outcome.status == 0

    def count(self, kind):
        return sum(found == kind for found, _, _ in self.found)


def is_sentence(err):
    """`iclab: what is wrong and what to do`; below it at most lines of a user's own file."""
    first, *rest = err.splitlines() or [""]
    own = all(line.startswith(" ") for line in rest) and "iclab/" not in "".join(rest)
    return first.startswith("iclab: ") and len(first) > 20 and UNKNOWN not in first and own


def command(*arguments):
    """A command in this process."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    before = sys.argv
    sys.argv = ["iclab", *map(str, arguments)]
    unwatched = unittest.mock.patch.object(cli, "watch_for_interrupts", lambda: None)  # a thread for each would be many
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), unwatched:
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code or 0
        except KeyboardInterrupt:
            status = 130
        except BaseException:
            status = 1
            err.write(traceback.format_exc())
        finally:
            sys.argv = before
    return Outcome(status, out.getvalue(), err.getvalue())


def called(function, *arguments, **named):
    """A function of the library: its outcome as a command's, and what it returns."""
    from iclab.errors import InputError

    err, value = io.StringIO(), None
    with contextlib.redirect_stderr(err):
        try:
            value = function(*arguments, **named)
        except InputError as error:
            err.write(f"iclab: {error}\n")
            return Outcome(2, "", err.getvalue()), None
        except BaseException:
            err.write(traceback.format_exc())
            return Outcome(1, "", err.getvalue()), None
    return Outcome(0, "", err.getvalue()), value


@contextlib.contextmanager
def timed(category):
    """How long the category took."""
    began = time.monotonic()
    try:
        yield
    except Exception:
        category.bad("unclear", f"the trial of {category.name} itself", traceback.format_exc())
    finally:
        category.seconds = time.monotonic() - began


def table(categories):
    """One row per category."""
    lines = [f"{'category':24}{'tried':>8}" + "".join(f"{kind:>11}" for kind in KINDS) + f"{'seconds':>9}"]
    for one in categories:
        counts = "".join(f"{one.count(kind):11}" for kind in KINDS)
        lines.append(f"{one.name:24}{one.tried:8}{counts}{one.seconds:9.0f}  {one.note}".rstrip())
    return "\n".join(lines)

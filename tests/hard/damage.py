"""Every file of a folder, damaged in many ways: what reads it gives the same numbers or one sentence, and so does the
command that is run again.
"""

import concurrent.futures
import contextlib
import io
import random
import re
import shutil
import unittest.mock
import zipfile

import measured
from measured import SHORTEST
from trial import called, command

import iclab
from iclab.report import figures
from iclab.runs import checkpoints, jobs, sweep

NAME = "damage"
SMALL = ["--seeds", "2", "--set"]


class Scene:
    """A folder in some state, the command that made it, what reads it, and its numbers in the end."""

    sweeping = False
    only = ("",)  # files whose names begin so are damaged

    def arguments(self, steps):
        return ["reproduce", SHORTEST, *SMALL, f"steps={steps}", "--save-models"]

    def again(self, folder, steps=5):
        """The same command with the same --out."""
        return command(*self.arguments(steps), "--out", folder)

    def make(self, folder, steps):
        return self.again(folder, steps)

    def numbers(self, folder):
        return measured.of_sweep(folder) if self.sweeping else measured.of_run(folder)


class Finished(Scene):
    """A finished run."""


class Stopped(Scene):
    """A run that was interrupted in the middle of its training."""

    only = ("manifest", "status", "trainings")

    def make(self, folder, steps):
        with stopping(checkpoints.KeptTraining, "save", after=1):
            return self.again(folder, steps)


class InPieces(Scene):
    """A run whose seeds were computed by an executor."""

    only = ("results/pieces/shortest-seed-1",)

    def again(self, folder, steps=5):
        with concurrent.futures.ThreadPoolExecutor(1) as executor, contextlib.redirect_stdout(io.StringIO()):
            changes = {"steps": str(steps)}
            named = {"seeds": 2, "changes": changes, "save_models": True, "executor": executor, "out": folder}
            return called(iclab.reproduce, str(SHORTEST), **named)[0]


class StoppedInPieces(InPieces):
    """The same, interrupted when the first seed was there."""

    only = ("results/pieces/shortest-seed-0/names", "status")

    def make(self, folder, steps):
        with stopping(jobs, "from_bytes", after=2):
            return self.again(folder, steps)


class Swept(Scene):
    """A finished sweep of two shards."""

    sweeping = True

    def arguments(self, steps):
        return ["sweep", SHORTEST, "--grid", "noise=0.4,0.8", *SMALL, f"steps={steps}"]


class StoppedSweep(Swept):
    """A sweep that was interrupted in its second shard."""

    only = ("results", "trainings")

    def make(self, folder, steps):
        with stopping(checkpoints.KeptTraining, "save", after=3):
            return self.again(folder, steps)


@contextlib.contextmanager
def stopping(owner, name, after):
    """Ctrl-C behind so many calls of a function."""
    function, calls = getattr(owner, name), []

    def stop(*arguments, **named):
        found = function(*arguments, **named)
        calls.append(name)
        if len(calls) >= after:
            raise KeyboardInterrupt
        return found

    with unittest.mock.patch.object(owner, name, stop):
        yield
    assert len(calls) >= after, f"{name} was called {len(calls)} times only"


# Ways to damage a file. Each takes the file, the same file of another run, and a source of chance.


def flipped(part):
    def damage(path, other, chance):
        content = bytearray(path.read_bytes())
        place = min(int(part * len(content)), len(content) - 1)
        content[place] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(content))

    return damage


def truncated(path, other, chance):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path, other, chance):
    path.write_bytes(b"")


def appended(path, other, chance):
    path.write_bytes(path.read_bytes() + b"\0")


def deleted(path, other, chance):
    path.unlink()


def a_directory(path, other, chance):
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("")


def noise(path, other, chance):
    path.write_bytes(chance.randbytes(1000))


def another_zip(path, other, chance):
    """A zip archive that says it is encrypted."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("state_0000.npy", b"x" * 100)
    content = bytearray(buffer.getvalue())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(bytes(content))


def of_another_run(path, other, chance):
    path.write_bytes(other.read_bytes())


def of_another_run_with_checksum(path, other, chance):
    path.write_bytes(other.read_bytes())
    beside = other.with_name(f"{other.name}.sha256")
    if beside.exists():
        path.with_name(f"{path.name}.sha256").write_bytes(beside.read_bytes())


def a_dangling_link(path, other, chance):
    path.unlink()
    path.symlink_to("nowhere")


def unreadable_text(path, other, chance):
    path.write_bytes(b'{"a": "\xff\xfe"}')


WAYS = {
    "first byte flipped": flipped(0.0), "a byte at a third flipped": flipped(0.33), "a byte in the middle flipped": flipped(0.5),
    "a byte behind flipped": flipped(0.83), "last byte flipped": flipped(1.0),
    "truncated": truncated, "emptied": emptied, "a byte too many": appended, "deleted": deleted,
    "a directory instead": a_directory, "random bytes": noise, "an encrypted zip": another_zip,
    "a dangling link": a_dangling_link, "no text": unreadable_text,
    "of another run": of_another_run, "of another run, with its checksum": of_another_run_with_checksum,
}  # fmt: skip


DERIVED = (
    "figures/",
    "results/control",
    "index.html",
    ".lock",
    "sweep.",
    "results.nc",
    "results.csv",
)  # written anew every time, or tried beside
FEW = ("a byte in the middle flipped", "emptied", "deleted", "a directory instead", "a dangling link", "of another run")


def try_all(category, folder):
    sweep.LARGEST["cpu"] = 1
    checkpoints.EVERY = checkpoints.COST = 0.0
    with unittest.mock.patch.object(figures, "picture", svg_only):
        for scene in (Finished(), Stopped(), InPieces(), StoppedInPieces(), Swept(), StoppedSweep()):
            Trial(category, scene, folder / type(scene).__name__).run()


def svg_only(figure, kind, draw=figures.picture):
    """PDF takes most of the time of a run as small as these, and has no numbers of its own."""
    return draw(figure, kind) if kind == "svg" else b"%PDF"


def one_of_each_kind(folder, only):
    """Files whose names begin so; of those that differ in a number or a digest, the first."""
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    kinds = {re.sub(r"[0-9a-f]{6,}|[0-9]+", "0", str(name)): name for name in reversed(names)}
    return sorted(name for name in kinds.values() if str(name).startswith(only))


class Trial:
    """All files of one scene in all ways."""

    def __init__(self, category, scene, folder):
        self.category, self.scene, self.folder = category, scene, folder

    def run(self):
        scene, chance = self.scene, random.Random(0)
        self.whole, self.other = self.folder / "whole", self.folder / "other"
        for name, steps in (("whole", 5), ("other", 6)):
            scene.make(self.folder / name, steps)
        shutil.copytree(self.whole, self.folder / "end")
        self.folder_of_end = self.folder / "end"
        assert scene.again(self.folder / "end").status == 0
        shutil.copytree(self.other, self.folder / "other end")
        assert scene.again(self.folder / "other end", 6).status == 0
        self.wanted = scene.numbers(self.folder / "end")
        assert self.wanted != scene.numbers(self.folder / "other end")
        self.read_whole = self.readings(self.whole)
        for path in one_of_each_kind(self.whole, self.scene.only):
            few = str(path).startswith(DERIVED) or path.suffix in (".sha256", ".seal")
            for way in FEW if few else WAYS:
                self.try_one(path, way, WAYS[way], chance)

    def try_one(self, name, way, damage, chance):
        folder = self.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.whole, folder)
        other = self.other / name
        if not other.exists():  # a name that says what is inside
            other = next(path for path in sorted(self.other.rglob(f"*{name.suffix}")) if path.is_file())
        before = (folder / name).read_bytes()
        damage(folder / name, other, chance)
        if (folder / name).is_file() and (folder / name).read_bytes() == before:
            return
        self.category.tried += 1
        self.what = f"{type(self.scene).__name__}: {name}: {way}"
        for reader, found in self.readings(folder).items():
            self.compare(reader, found, self.read_whole[reader])
        outcome = self.scene.again(folder)
        if self.category.judge(f"{self.what}: the same command again", outcome):
            self.go_on(folder)

    def go_on(self, folder):
        """The command says that all is well: then it must be."""
        outcome, numbers = called(self.scene.numbers, folder)
        if outcome.status != 0:
            self.category.bad("lost", f"{self.what}: opened after the same command", outcome.err)
        elif numbers != self.wanted:
            self.category.bad("wrong", f"{self.what}: the same command again", different(numbers, self.wanted))

    def compare(self, reader, found, whole):
        """What a reader gives of a damaged folder: the same as of the whole one, or a sentence."""
        what = f"{self.what}: {reader}"
        said = found[0].err and not whole[0].err  # `figures` says what it leaves out
        if self.category.judge(what, found[0]) and whole[0].status == 0 and found[1] != whole[1] and not said:
            self.category.bad("wrong", what, f"{found[1]!r:.800} instead of {whole[1]!r:.800}")

    def readings(self, folder):
        """What every reader gives of a folder: its outcome, and its numbers."""
        if self.scene.sweeping:
            return {"open_sweep": called(lambda: measured.plain(iclab.open_sweep(folder).data))}
        found = {}
        for words in (["claims", folder], ["diff", folder, self.folder_of_end]):
            outcome = command(*words)
            found[f"iclab {words[0]}"] = outcome, outcome.out.replace(str(folder), "RUN")
        outcome = command("figures", folder, "--format", "svg", "--file", SHORTEST)
        drawn = {path.name: path.read_bytes() for path in map(type(folder), outcome.out.split())}
        found["iclab figures"] = outcome, drawn
        found["open_run"] = called(lambda: measured.of_run(folder)[:2])
        return found


def different(found, wanted):
    """Which part of the numbers is another one."""
    names = [type(part).__name__ for part, other in zip(found, wanted, strict=True) if part != other]
    details = [
        sorted(key for key in set(part) | set(other) if part.get(key) != other.get(key))
        for part, other in zip(found, wanted, strict=True)
        if isinstance(part, dict) and part != other
    ]
    return f"other numbers than those of the undisturbed run: {names} {details}"

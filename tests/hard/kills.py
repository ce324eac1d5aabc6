"""Kill -9 at random moments of a sweep and of a reproduction; what is resumed ends with the same numbers, and what was
finished is not computed again.
"""

import random
import subprocess
import time

import measured
from trial import Outcome

from test_survival import GRID, IDEA, finish, start

NAME = "kills"
KILLS = 25  # of each of the two


def try_all(category, folder):
    own = measured.write_own(folder)
    reproduced = ["reproduce", own, "--seeds", "2", "--save-models", "--set", "steps=600", "--set", "records=60"]
    for name, arguments, numbers in (
        ("sweep", ["sweep", IDEA, *GRID], measured.of_sweep),
        ("reproduce", reproduced, measured.of_run),
    ):
        Trial(category, folder / name, arguments, numbers).run()


class Trial:
    """One command, killed again and again."""

    def __init__(self, category, folder, arguments, numbers):
        self.category, self.folder, self.arguments, self.numbers = category, folder, arguments, numbers

    def run(self):
        for name in ("warm", "whole"):  # the first one fills the cache of compiled programs
            began = time.monotonic()
            status, _, err = finish(start(*self.arguments, "--out", self.folder / name))
            assert status == 0, err
        self.wanted, seconds = self.numbers(self.folder / "whole"), time.monotonic() - began
        moments, killed, folders = random.Random(5), 0, 0
        while killed < KILLS:
            self.out, self.kept = self.folder / f"run-{folders}", {}
            while killed < KILLS and not self.attempt(moments.uniform(0.35, 0.9) * seconds):
                killed += 1
            folders += 1
        while not self.attempt(300.0):
            pass

    def attempt(self, seconds):
        """Whether it got through before it was killed."""
        process = start(*self.arguments, "--out", self.out)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.category.tried += 1
            self.remember()
            if err:
                self.category.bad("traceback", self.what(), err)
            return False
        self.finished(Outcome(process.returncode, out, err))
        return True

    def what(self):
        return f"iclab {' '.join(map(str, self.arguments))} --out {self.out}, killed"

    def remember(self):
        """What was finished stays as it is: after every kill, and at the end."""
        now = measured.finished(self.out)
        if lost := {str(path) for path, moment in self.kept.items() if now.get(path) != moment}:
            self.category.bad("lost", self.what(), f"finished before, gone or computed again: {sorted(lost)}")
        self.kept = now

    def finished(self, outcome):
        if not self.category.judge(self.what(), outcome, statuses=(0,)):
            self.category.bad("lost", self.what(), f"it does not go on: {outcome.err}")
            return
        self.remember()
        if "is damaged" in outcome.out:
            self.category.bad("lost", self.what(), outcome.out)
        if self.numbers(self.out) != self.wanted:
            self.category.bad("wrong", self.what(), "the numbers are other ones than those of the undisturbed run")
        if half := [path for path in self.out.rglob(".*") if path.name != ".lock"]:
            self.category.bad("lost", self.what(), f"half-written files are left: {half}")

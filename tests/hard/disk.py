"""A disk that is full, at ten sizes: one sentence, and what was finished is kept and gone on from elsewhere."""

import subprocess
import sys

import measured
from trial import Outcome

from test_survival import GRID, IDEA, STARTER, finish, start

NAME = "full disk"
SIZES = {  # KB: from a manifest that does not fit to the last figure that does not
    "sweep": (4, 32, 64, 96, 160),
    "reproduce": (8, 48, 80, 112, 144),
}


def try_all(category, folder):
    own = measured.write_own(folder)
    commands = {
        "sweep": (["sweep", IDEA, *GRID], measured.of_sweep),
        "reproduce": (["reproduce", own, "--seeds", "2", "--save-models", "--set", "steps=600"], measured.of_run),
    }
    for name, (arguments, numbers) in commands.items():
        status, _, err = finish(start(*arguments, "--out", folder / name))
        assert status == 0, err
        wanted = numbers(folder / name)
        for size in SIZES[name]:
            if not _one(category, folder / f"{name}-{size}", arguments, size, (numbers, wanted)):
                return


def _one(category, folder, arguments, size, right):
    """A tmpfs of this size in a mount namespace of its own; then what is there is copied out and gone on with. False
    where there are no namespaces.
    """
    small, saved = folder / "small", folder / "saved"
    small.mkdir(parents=True)
    words = " ".join(map(str, arguments))
    script = (
        f"mount -t tmpfs -o size={size}k none {small} && "
        f"{sys.executable} -c '{STARTER}' {words} --out {small}/run; status=$?; "
        f"if test -d {small}/run; then cp -r {small}/run {saved}; fi; exit $status"
    )
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=300
    )
    if done.stderr.startswith(("unshare", "mount:")):
        category.note = f"skipped, no mount namespaces here: {done.stderr.strip()}"
        return False
    category.tried += 1
    what = f"iclab {words} on a disk of {size} KB"
    category.judge(what, Outcome(done.returncode, done.stdout, done.stderr), statuses=(2,))
    before = measured.finished(saved)
    outcome = Outcome(*finish(start(*arguments, "--out", saved)))
    if not category.judge(f"{what}, then elsewhere", outcome, statuses=(0,)):
        category.bad("lost", what, f"it does not go on: {outcome.err}")
    elif right[0](saved) != right[1]:
        category.bad("wrong", what, "the numbers are other ones than those of the undisturbed run")
    after = measured.finished(saved)
    if again := [str(path) for path, moment in before.items() if after.get(path) != moment]:
        category.bad("lost", what, f"finished before, gone or computed again: {again}")
    return True

"""A Dask cluster whose parts die, cannot import iclab or have another one: one sentence within a minute, nothing hangs,
and without the cluster the same command goes on to the same numbers.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys

import measured
from trial import Outcome

import iclab
from test_survival import GRID, IDEA, finish, start

NAME = "cluster"
PATIENCE = 60.0
FOLDER = os.path.dirname(sys.executable)


def try_all(category, folder):
    if not pathlib.Path(FOLDER, "dask").exists():
        category.note = "skipped, dask is not installed"
        return
    status, _, err = finish(start("sweep", IDEA, *GRID, "--out", folder / "whole"))
    assert status == 0, err
    trial = Trial(category, folder, measured.of_sweep(folder / "whole"))
    for name in (
        "nobody",
        "no_workers",
        "one_killed",
        "all_killed",
        "scheduler_killed",
        "cannot_import",
        "another_version",
    ):
        getattr(trial, name)(folder / name)


class Cluster:
    """A scheduler and workers as processes."""

    def __init__(self, folder, workers=2, path=None):
        self.address = f"tcp://127.0.0.1:{random.randint(20000, 60000)}"
        port = self.address.rpartition(":")[2]
        self.scheduler = self._start(["scheduler", "--port", port, "--no-dashboard"], None)
        options = ["--nthreads", "1", "--nworkers", "1", "--no-nanny", "--no-dashboard", "--local-directory"]
        self.workers = [
            self._start(["worker", self.address, *options, str(folder / f"worker-{number}")], path)
            for number in range(workers)
        ]

    def wait(self):
        """Until all are there."""
        from distributed import Client

        with Client(self.address, timeout="60s") as client:
            if self.workers:
                client.wait_for_workers(len(self.workers), timeout=120)

    def _start(self, words, path):
        environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
        return subprocess.Popen([f"{FOLDER}/dask", *words], **quiet)

    def __enter__(self):
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


class Trial:
    """One sweep, on clusters that fail in several ways."""

    def __init__(self, category, folder, wanted):
        self.category, self.folder, self.wanted = category, folder, wanted

    def nobody(self, folder):
        self.one(folder, "no scheduler", "tcp://127.0.0.1:1", statuses=(2,))

    def no_workers(self, folder):
        with Cluster(folder, workers=0) as cluster:
            self.one(folder, "no workers", cluster.address, statuses=(2,))

    def one_killed(self, folder):
        with Cluster(folder) as cluster:
            self.one(folder, "one worker killed", cluster.address, cluster.workers[0].kill, statuses=(0,))

    def all_killed(self, folder):
        with Cluster(folder) as cluster:
            kill = lambda: [worker.kill() for worker in cluster.workers]  # noqa: E731
            self.one(folder, "all workers killed", cluster.address, kill, statuses=(2,))

    def scheduler_killed(self, folder):
        with Cluster(folder) as cluster:
            self.one(folder, "the scheduler killed", cluster.address, cluster.scheduler.kill, statuses=(2,))

    def cannot_import(self, folder):
        (folder / "path").mkdir(parents=True)
        (folder / "path" / "iclab.py").write_text("raise ImportError('there is no iclab here')\n")
        with Cluster(folder, path=folder / "path") as cluster:
            self.one(folder, "workers that cannot import iclab", cluster.address, statuses=(2,))

    def another_version(self, folder):
        source = pathlib.Path(iclab.__file__).parent
        shutil.copytree(source, folder / "path" / "iclab", ignore=shutil.ignore_patterns("__pycache__"))
        with (folder / "path" / "iclab" / "tallies.py").open("a") as file:
            file.write("\n# another version\n")
        with Cluster(folder, path=folder / "path") as cluster:
            self.one(folder, "workers with another version of iclab", cluster.address, statuses=(2,))

    def one(self, folder, what, address, strike=None, *, statuses):
        """The sweep on this cluster, struck when the first shard is there; then without a cluster."""
        self.category.tried += 1
        out = folder / "run"
        process = start("sweep", IDEA, *GRID, "--out", out, "--cluster", address)
        said = ""
        if strike is not None:
            for line in process.stdout:
                said += line
                if "shard-" in line:
                    break
            strike()
        try:
            printed, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, err = process.communicate()
            self.category.bad("unclear", what, f"nothing is said within {PATIENCE:.0f} seconds: {err}")
            err = ""
            process.returncode = statuses[0]
        if process.returncode == 0 or err:
            self.category.judge(what, Outcome(process.returncode, said + printed, err), statuses)
        self.go_on(what, out)

    def go_on(self, what, out):
        outcome = Outcome(*finish(start("sweep", IDEA, *GRID, "--out", out)))
        if not self.category.judge(f"{what}, then without a cluster", outcome, statuses=(0,)):
            self.category.bad("lost", what, f"it does not go on: {outcome.err}")
            return
        if measured.of_sweep(out) != self.wanted:
            self.category.bad("wrong", what, "the numbers are other ones than those of the undisturbed run")

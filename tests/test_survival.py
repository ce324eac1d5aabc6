"""Runs that survive: killed, interrupted, without space, without rights, with a dying worker. Real processes, real
signals.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest
import xarray as xr

import iclab
from iclab.errors import InputError

IDEA = str(pathlib.Path(__file__).with_name("idea.py"))
GRID = ["--grid", "matching_fraction=0.4,0.6,0.8", "--grid", "neurons=20,21", "--seeds", "2", "--set", "steps=600"]
# One shard per point, a checkpoint at every record: many moments at which something is half done.
STARTER = """
import sys
from iclab import cli
from iclab.runs import checkpoints, sweep
sweep.LARGEST["cpu"] = 1
checkpoints.EVERY = checkpoints.COST = 0.0
sys.argv[0] = "iclab"
cli.main()
"""


def start(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def finish(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The sweep, uninterrupted, and how long it took."""
    out = tmp_path_factory.mktemp("survival") / "whole"
    for folder in (out.with_name("warm"), out):  # the first one fills the cache of compiled programs
        began = time.monotonic()
        status, _, err = finish(start("sweep", IDEA, *GRID, "--out", folder))
        assert status == 0, err
    return iclab.open_sweep(out, trust=True), time.monotonic() - began


def test_killed_at_random_moments_a_sweep_ends_with_the_same_numbers(whole, tmp_path, pytestconfig):
    """Kill -9, resume, again; every attempt lives for a random part of the time that the whole sweep takes."""
    kills = 20 if pytestconfig.getoption("--slow") else 2  # make test-hard kills 50 times
    uninterrupted, seconds = whole
    out = tmp_path / "run"
    moments = random.Random(5)
    killed = 0
    while killed < kills:
        process = start("sweep", IDEA, *GRID, "--out", out)
        try:
            process.wait(timeout=moments.uniform(0.2, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            killed += 1
        _, err = process.communicate()
        assert not err, err
        if process.returncode == 0:  # it got through between two kills: begin another one
            check(out, uninterrupted)
            out = tmp_path / f"run-{killed}"
    status, printed, err = finish(start("sweep", IDEA, *GRID, "--out", out))
    assert status == 0, err
    assert "is damaged" not in printed
    check(out, uninterrupted)


def check(out, uninterrupted):
    """The same numbers, every shard once, nothing half-written, the same models."""
    found = iclab.open_sweep(out, trust=True)
    xr.testing.assert_identical(found.data.load(), uninterrupted.data.load())
    assert sorted(path.name for path in (out / "results").glob("*.nc")) == [f"shard-{n:05d}.nc" for n in range(6)]
    assert not [path for path in out.rglob(".*") if path.name != ".lock"]
    point = {"seed": 1, "matching_fraction": 0.6, "neurons": 21}
    assert (found.select(**point).output_weights == uninterrupted.select(**point).output_weights).all()


def test_ctrl_c_leaves_a_run_that_goes_on_and_says_how(whole, tmp_path):
    uninterrupted, _ = whole
    for attempt in range(5):
        out = tmp_path / f"run-{attempt}"
        process = start("sweep", IDEA, *GRID, "--out", out)
        for line in process.stdout:
            if "shard-" in line:
                break
        process.send_signal(signal.SIGINT)
        status, printed, err = finish(process)
        if status != 0:  # on a busy machine the sweep may be finished before the signal comes
            break
    assert status == 130 and f"To continue, repeat the command with --out {out}." in printed, err
    status, printed, err = finish(start("sweep", IDEA, *GRID, "--out", out))
    assert status == 0 and re.search(r"[1-5] of 6 shards kept from an earlier run", printed), err
    check(out, uninterrupted)


@pytest.mark.slow  # also in make test-hard
def test_a_second_process_on_the_folder_is_told_so(tmp_path):
    out = tmp_path / "run"
    process = start("sweep", IDEA, *GRID, "--out", out)
    for line in process.stdout:
        if "programs to compile" in line:  # the plan is made before the folder is taken
            break
    process.send_signal(signal.SIGSTOP)
    status, _, err = finish(start("sweep", IDEA, *GRID, "--out", out))
    process.kill()
    process.communicate()
    assert status == 2 and f"{out} is in use by another iclab (process {process.pid} on" in err


@pytest.mark.slow  # also in make test-hard
def test_a_full_disk_is_a_clear_error_and_leaves_what_was_finished(whole, tmp_path):
    """A tmpfs of 128 KB in a mount namespace of its own; then the folder is copied out and the sweep finished."""
    uninterrupted, _ = whole
    small, saved = tmp_path / "small", tmp_path / "saved"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=128k none {small} && "
        f"{sys.executable} -c '{STARTER}' sweep {IDEA} {' '.join(GRID)} --out {small}/run; status=$?; "
        f"cp -r {small}/run {saved}; exit $status"
    )
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=300
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert done.returncode == 2, done.stderr
    assert "No space left on device. Finished work is kept" in done.stderr and done.stderr.count("\n") == 1
    before = {path.name for path in (saved / "results").glob("*.nc.sha256")}  # written behind the results themselves
    assert 0 < len(before) < 6 and not list(saved.rglob(".*.*"))
    status, printed, err = finish(start("sweep", IDEA, *GRID, "--out", saved))
    assert status == 0 and f"{len(before)} of 6 shards kept from an earlier run" in printed, err
    check(saved, uninterrupted)


def test_a_read_only_folder_is_a_clear_error(tmp_path):
    script = (
        f"mount -t tmpfs none {tmp_path} && mkdir {tmp_path}/run && mount -o remount,ro {tmp_path} && "
        f"exec {sys.executable} -c '{STARTER}' sweep {IDEA} {' '.join(GRID)} --out {tmp_path}/run"
    )
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=300
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert done.returncode == 2
    assert (
        f"iclab: cannot write to {tmp_path}/run: Read-only file system." in done.stderr and done.stderr.count("\n") == 1
    )


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and two workers as separate processes, as in docs/cluster.md."""
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    folder = os.path.dirname(sys.executable)
    port = random.Random(os.getpid()).randint(20000, 60000)
    address = f"tcp://127.0.0.1:{port}"
    started = [
        subprocess.Popen(
            [f"{folder}/dask", "scheduler", "--port", str(port), "--no-dashboard"], stderr=subprocess.DEVNULL
        )
    ]
    workers = [
        subprocess.Popen(
            [f"{folder}/dask", "worker", address, "--nthreads", "1", "--nworkers", "1", "--no-nanny", "--no-dashboard",
             "--name", name, "--local-directory", str(tmp_path / name)], stderr=subprocess.DEVNULL,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    from distributed import Client

    with Client(address, timeout="60s") as client:
        client.wait_for_workers(2, timeout=120)
    yield address, workers
    for process in (*workers, *started):
        process.kill()
        process.wait()


def test_two_workers_one_killed_on_the_way_give_the_same_numbers(whole, scheduler, tmp_path):
    uninterrupted, _ = whole
    address, workers = scheduler
    out = tmp_path / "run"
    process = start("sweep", IDEA, *GRID, "--out", out, "--cluster", address)
    for line in process.stdout:
        if "shard-" in line:
            break
    workers[0].kill()
    status, _, err = finish(process)
    assert status == 0, err
    check(out, uninterrupted)


def test_a_worker_with_another_version_or_other_numerics_is_refused():
    from iclab.runs.cluster import Here, here, require_same

    run = here()
    require_same(run)
    with pytest.raises(InputError, match="a different version of iclab"):
        require_same(Here("0" * 16, run.numerics))
    with pytest.raises(InputError, match=r"would compute different numbers: 64 bits False instead of True\."):
        require_same(Here(run.source, {**run.numerics, "64 bits": True}))

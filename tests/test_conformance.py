"""`iclab check`: a sound file passes, every deliberate mistake is found, named and answered with a remedy."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

import broken
from iclab import skeletons
from iclab.conformance.models import hide
from iclab.conformance.worlds import check_world, draw
from iclab.devices import quick_compilation
from iclab.prompts import Padding
from iclab.worlds.markov import Markov
from iclab.worlds.recall import Recall
from marks import mostly_slow

# Without the tests' own type checker, which would catch wrong shapes before the checks see them, and all in one
# process.
SCRIPT = """
import dataclasses, json, pathlib, sys
from iclab.conformance import check_file
from iclab.devices import quick_compilation
found = {}
with quick_compilation():
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
        findings = check_file(str(file), everything=file.stem == "idea")
        found[file.stem] = [dataclasses.asdict(finding) for finding in findings]
print(json.dumps(found))
"""


# One mistake of each kind is always tried; all of them with --slow.
ONE_OF_EACH = tuple({(mistake.part.split()[0], mistake.check): mistake for mistake in broken.MISTAKES}.values())


@pytest.fixture(scope="module")
def checked(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "sound.py").write_text(broken.SOUND)
    for mistake in broken.MISTAKES if request.config.getoption("--slow") else ONE_OF_EACH:
        (folder / f"{mistake.name}.py").write_text(mistake.text)
    for kind in skeletons.KINDS:
        skeletons.write(kind, f"my_{kind}", folder)
    shutil.copy(pathlib.Path(__file__).with_name("idea.py"), folder)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_sound_file_passes_every_check(checked):
    findings = checked["sound"]
    assert [f for f in findings if not f["passed"]] == []
    parts = {(f["part"], f["check"]) for f in findings}
    assert {("world World", c) for c in ("shapes", "jit and vmap", "keys", "truth")} <= parts
    kinds = ("initialisation", "shapes", "jit and vmap", "truth", "masks", "padding", "gradients")
    assert {("model AttentionSettings", c) for c in kinds} <= parts
    assert {("loss distance", "values"), ("probe observe", "values"), ("probe probe", "padding")} <= parts


@pytest.mark.parametrize("mistake", mostly_slow(broken.MISTAKES, kept=ONE_OF_EACH), ids=lambda mistake: mistake.name)
def test_every_mistake_is_found_named_and_answered(mistake, checked):
    failed = [f for f in checked[mistake.name] if not f["passed"]]
    assert [(f["part"], f["check"]) for f in failed] == [(mistake.part, mistake.check)], failed
    assert mistake.words in failed[0]["words"] and mistake.remedy in failed[0]["remedy"]
    assert failed[0]["remedy"], "a failure without a remedy"


@pytest.mark.parametrize("kind", skeletons.KINDS)
def test_every_skeleton_passes(kind, checked):
    findings = checked[f"my_{kind}"]
    assert len(findings) >= 5 and all(finding["passed"] for finding in findings), findings


def test_a_world_and_a_model_of_iclab_keep_their_own_promises(checked):
    """The file of the sweep's tests uses iclab's own world, model and measure, and everything was asked for."""
    assert len(checked["idea"]) >= 15 and all(finding["passed"] for finding in checked["idea"]), checked["idea"]


@pytest.mark.parametrize(
    ("padding", "hidden"),
    [
        (Padding(), [[1, 0, 1, 1, 1, 1]]),
        (Padding(in_front=True), [[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1]]),
        (Padding(in_front=True, together=2), [[0, 0, 1, 1, 1, 1]]),
    ],
)
def test_contexts_are_hidden_where_the_world_lets_them_be(padding, hidden):
    """Every way that is named occurs, and none that is not allowed; the query and a group of contexts stay."""
    world = Recall(6, 4, 3) if padding.together == 2 else Markov(3, 6)
    present = np.asarray(hide(draw(world, 64), padding).present)
    groups = present[:, :-1].reshape(64, -1, padding.together)
    found = {tuple(row) for row in present.astype(int)[:, : len(hidden[0])]}
    if padding.in_front:
        assert (np.diff(present.astype(int), axis=1) >= 0).all() and (groups == groups[..., :1]).all()
    assert {tuple(row) for row in hidden} <= found
    assert present[:, -1].all() and groups.any(axis=(1, 2)).all() and not present.all()


@pytest.mark.parametrize(
    "world",
    [Markov(3, 5, maximum_length=8, shortest_length=3), Recall(6, 4, 2, maximum_pairs=3), Recall(6, 4, 2, joined=True)],
)
def test_worlds_pad_where_they_say(world):
    assert [finding.words for finding in check_world(world, "") if not finding.passed] == []


def test_compiling_quickly_ends_with_its_block():
    """What is compiled after `iclab check` in the same process is compiled as before."""
    flag = "jax_disable_most_optimizations"
    before = jax.config.read(flag)
    with pytest.raises(ZeroDivisionError), quick_compilation():
        assert jax.config.read(flag)
        1 / 0  # noqa: B018
    assert jax.config.read(flag) == before

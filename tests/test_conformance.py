"""`iclab check`: a sound file passes, every deliberate mistake is found, named and answered with a remedy."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import jax
import pytest

import broken
from iclab import skeletons
from iclab.devices import quick_compilation

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


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "sound.py").write_text(broken.SOUND)
    for mistake in broken.MISTAKES:
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


@pytest.mark.parametrize("mistake", broken.MISTAKES, ids=lambda mistake: mistake.name)
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


def test_compiling_quickly_ends_with_its_block():
    """What is compiled after `iclab check` in the same process is compiled as before."""
    flag = "jax_disable_most_optimizations"
    before = jax.config.read(flag)
    with pytest.raises(ZeroDivisionError), quick_compilation():
        assert jax.config.read(flag)
        1 / 0  # noqa: B018
    assert jax.config.read(flag) == before

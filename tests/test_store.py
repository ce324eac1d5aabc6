import json

import numpy as np
import pytest
import xarray as xr

from iclab.errors import InputError
from iclab.runs.contents import digest_of
from iclab.runs.manifest import read_manifest
from iclab.runs.store import Store

IDENTITY = {"ids": ["nonlinear-icl/thm3.3"], "profile": "smoke", "seeds": 2}


def data():
    return xr.Dataset({"error": (("setting", "seed"), np.array([[0.1, np.nan]]))}, {"setting": ["a"], "seed": [0, 1]})


def test_a_result_is_kept_for_the_same_run(tmp_path):
    with Store(tmp_path / "run", IDENTITY) as store:
        store.save_result("paper/one", data(), 1.5)
    with Store(tmp_path / "run", IDENTITY) as store:
        kept = store.load_result("paper/one")
        assert kept is not None
        xr.testing.assert_equal(kept, data())
        assert kept.attrs["seconds"] == 1.5
        assert store.load_result("paper/two") is None


def test_a_folder_in_use_is_refused_until_it_is_given_free(tmp_path):
    with Store(tmp_path, IDENTITY), pytest.raises(InputError, match=r"is in use by another iclab \(process \d+ on "):
        Store(tmp_path, IDENTITY)
    Store(tmp_path, IDENTITY).close()


def test_what_was_being_written_when_a_run_died_is_cleared_away(tmp_path):
    Store(tmp_path, IDENTITY).close()
    half = tmp_path / "results" / f".one.nc.{'0' * 32}"
    half.parent.mkdir()
    half.write_bytes(b"half")
    (tmp_path / "results" / ".gitignore").write_text("*")
    Store(tmp_path, IDENTITY).close()
    assert not half.exists() and (tmp_path / "results" / ".gitignore").exists()


def test_a_run_that_died_before_its_manifest_leaves_the_folder_free(tmp_path):
    (tmp_path / ".lock").write_text("")
    (tmp_path / f".manifest.json.{'a' * 32}").write_text("{")
    with Store(tmp_path, IDENTITY) as store:
        assert store.manifest["identity"] == IDENTITY


def test_the_folder_of_another_run_is_refused_and_not_touched(tmp_path):
    Store(tmp_path, IDENTITY)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"holds another run \(nonlinear-icl/thm3.3, profile smoke, 2 seeds\)"):
        Store(tmp_path, IDENTITY | {"seeds": 8})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_is_no_run_is_refused_and_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="is not a run of iclab"):
        Store(tmp_path, IDENTITY)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="is a file; --out needs a folder"):
        Store(tmp_path / "out", IDENTITY)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to"):
        Store(tmp_path / "file" / "below", IDENTITY)


@pytest.mark.parametrize("identity", ["a string", None, {"ids": 5}])
def test_a_manifest_of_another_shape_is_named(tmp_path, identity):
    (tmp_path / "manifest.json").write_text(json.dumps({"fingerprint": "x", "identity": identity}))
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        Store(tmp_path, IDENTITY)


def test_a_name_that_no_file_system_takes_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot write to"):
        Store(tmp_path / ("x" * 300), IDENTITY)


def test_a_truncated_manifest_is_named(tmp_path):
    Store(tmp_path, IDENTITY)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text()[:40])
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        Store(tmp_path, IDENTITY)


def test_a_damaged_or_foreign_result_is_not_used(tmp_path):
    store = Store(tmp_path / "run", IDENTITY)
    store.save_result("paper/one", data(), 1.0)
    path = tmp_path / "run" / "results" / "paper" / "one.nc"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert store.load_result("paper/one") is None
    for place in np.random.default_rng(0).integers(len(whole), size=50):
        broken = bytearray(whole)
        broken[place] ^= 0x01
        path.write_bytes(bytes(broken))
        assert store.load_result("paper/one") is None
    other = Store(tmp_path / "other", IDENTITY | {"seeds": 3})
    other.save_result("paper/one", data(), 1.0)
    for name in ("one.nc", "one.nc.sha256"):
        path.with_name(name).write_bytes((tmp_path / "other" / "results" / "paper" / name).read_bytes())
    assert store.load_result("paper/one") is None


def test_a_right_checksum_of_something_else_is_not_used(tmp_path):
    with Store(tmp_path, IDENTITY) as store:
        store.keep("results/paper/one.nc", b"no netCDF")
        assert store.load_result("paper/one") is None


def test_every_byte_of_a_checkpoint_counts_and_its_run_too(tmp_path):
    leaves, records = [np.arange(3.0)], {"loss": np.array([0.5])}
    told = []
    with Store(tmp_path, IDENTITY) as store:
        store.on_report = told.append
        store.checkpoint("training").save(lambda: leaves, records, finished=True)
        found = store.checkpoint("training").load()
        assert found is not None and (found[0][0] == leaves[0]).all() and (found[1]["loss"] == records["loss"]).all()
        path = next((tmp_path / "trainings").iterdir())
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x01]) + whole[place + 1 :])
            assert store.checkpoint("training").load() is None
        assert "is damaged or belongs to another run; the training starts again." in told[0]
        path.unlink()
        path.mkdir()
        assert store.checkpoint("training").load() is None
    with Store(tmp_path.with_name("other"), IDENTITY | {"seeds": 3}) as other:
        (other.directory / "trainings").mkdir()
        (other.directory / "trainings" / path.name).write_bytes(whole)
        assert other.checkpoint("training").load() is None


@pytest.mark.parametrize("name", ["platform", "plan", "identity", "fingerprint", "backend"])
def test_a_manifest_changed_by_hand_is_never_used(tmp_path, name):
    Store(tmp_path, IDENTITY, {"shards": [[0, 1]]}).close()
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest[name] = {"identity": IDENTITY | {"seeds": 3}, "plan": {"shards": [[0, 2]]}}.get(name, "other")
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"damaged or was edited: its digest is wrong\. Nothing was"):
        Store(tmp_path, IDENTITY)


def test_a_run_is_not_continued_with_other_numerics_or_another_version(tmp_path):
    numerics = {"jax": "0.10", "64 bits": False}
    Store(tmp_path, IDENTITY | {"numerics": numerics, "source": "a"}).close()
    with pytest.raises(InputError, match="computed with 64 bits False, now True; the two cannot be mixed"):
        Store(tmp_path, IDENTITY | {"numerics": numerics | {"64 bits": True}, "source": "a"})
    with pytest.raises(InputError, match="a run of another version of iclab"):
        Store(tmp_path, IDENTITY | {"numerics": numerics, "source": "b"})


def test_a_model_is_sealed_by_its_run(tmp_path):
    told = []
    with Store(tmp_path / "run", IDENTITY) as store, Store(tmp_path / "other", IDENTITY | {"seeds": 3}) as other:
        store.on_report = told.append
        store.save_model("one/a-0.npz", b"weights")
        other.save_model("one/a-0.npz", b"others")
        assert store.models_are_whole()
        for name in ("a-0.npz", "a-0.npz.seal"):
            (tmp_path / "run/models/one" / name).write_bytes((tmp_path / "other/models/one" / name).read_bytes())
            assert not store.models_are_whole()
    assert "a-0.npz is damaged or belongs to another run; the work is done again." in told[0]


@pytest.mark.parametrize(
    "changes", [{"ids": "x"}, {"seeds": "2"}, {"settings": []}, {"seeds": True}, {"grid": {"a": 3}}]
)
def test_a_manifest_that_is_none_is_refused_though_its_digests_are_right(tmp_path, changes):
    identity = IDENTITY | changes
    about = {"fingerprint": digest_of(identity), "identity": identity}
    (tmp_path / "manifest.json").write_text(json.dumps(about | {"digest": digest_of(about)}))
    with pytest.raises(InputError, match="does not have the form of a manifest"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", ["../outside", "results/../../outside", "/tmp/outside"])
def test_nothing_is_written_outside_of_the_folder(tmp_path, name):
    with Store(tmp_path / "run", IDENTITY) as store, pytest.raises(InputError, match="it lies outside"):
        store.write(name, b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_manifest_says_what_ran_where(tmp_path):
    Store(tmp_path, IDENTITY)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["identity"] == IDENTITY
    assert manifest["packages"]["jax"] and manifest["devices"] and manifest["python"]

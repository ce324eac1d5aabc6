"""Another model in a paper's world: `--model`, from the zoo or from a file; what it changes, and what it must not."""

import dataclasses
import pathlib
import shutil

import numpy as np
import pytest
import xarray as xr

import iclab
from iclab.authoring import plugged
from iclab.errors import InputError
from iclab.experiments import Lab
from iclab.library import select
from iclab.papers import PAPERS
from iclab.papers.mamba_outliers.settings import Settings, one_layer
from iclab.planning import PlanningEngine

PAPER = PAPERS["mamba-outliers"]
TINY = {"steps": 6, "record_every": 6, "batch": 8, "prompts": 40, "trend_prompts": 40, "train_length": 5, "test_length": 5,
        "feature_dimension": 20}  # fmt: skip
SMALL = {name: str(value) for name, value in TINY.items()}
FILE = pathlib.Path(__file__).with_name("delta_file.py")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(FILE, tmp_path / "my.py")
    return "my.py:Settings"


def robustness(model):
    lab = Lab(PAPER.id, Settings(**TINY, model=model), (0, 1))
    return PAPER.experiments["robustness"].run(lab)


def test_a_deltanet_from_a_file_has_the_numbers_of_the_built_in_one(file):
    ours, theirs = robustness("deltanet"), robustness(file)
    xr.testing.assert_identical(ours, theirs)
    assert ours["error"].sel(kind="mamba").std() > 0
    default = robustness("mamba")
    assert not ours["error"].sel(kind="mamba").equals(default["error"].sel(kind="mamba"))
    xr.testing.assert_identical(ours.sel(kind="linear"), default.sel(kind="linear"))


def test_the_papers_own_model_is_trained_under_its_old_name():
    names = {}
    for model in ("mamba", "gla"):
        lab = Lab(PAPER.id, Settings(**TINY, model=model), (0,), engine=PlanningEngine())
        PAPER.experiments["convergence"].run(lab)
        names[model] = set(lab.trainings())
    linear = "mamba-outliers-linear-one-layer"
    assert names["mamba"] == {"mamba-outliers-mamba-one-layer", linear}
    assert names["gla"] == {"mamba-outliers-model-one-layer", linear}


def test_statements_say_whom_they_are_asked_of_and_are_beyond_the_paper():
    changed = dataclasses.replace(PAPER.settings["quick"], model="gated-delta")
    asked = {one.name: one for one in select(["mamba-outliers"], {PAPER.id: changed})}
    fig1 = asked["fig1a"]
    assert fig1.beyond and fig1.printed is None and fig1.asked_of == "gated-delta"
    assert fig1.words.startswith("With label flipping, gated-delta's error is below 0.01")
    assert fig1.parts[0].name == "gated-delta: largest α with an error below 0.01"
    assert "Mamba" not in fig1.rule and fig1.source == "Figure 1(A), asked of gated-delta"
    assert {"fig1a", "fig1b", "fig1c", "thm1", "thm2", "p2", "cor1", "cor2", "negative-scores"} <= set(asked)
    assert not {"thm3", "thm4", "lem3", "eq3", "table2", "fig2", "gpt2-fig1"} & set(asked)
    assert [part.name for part in asked["thm1"].parts] == ["0-1 error over all tasks, training prompts"]
    default = {one.name for one in select(["mamba-outliers"])}
    assert set(asked) < default and not any(one.asked_of for one in select(["mamba-outliers"]))


def test_every_statement_that_can_be_asked_can_be_measured():
    """On zeros of the right shapes: nothing is trained."""
    from iclab.runs.judging import dry_run

    for model in ("rwkv7", "gru"):
        s = Settings(**TINY, model=model)
        dry_run(PAPER, s, select(["mamba-outliers"], {PAPER.id: s}))
    known = {one.name for one in select(["mamba-outliers"], {PAPER.id: Settings(model="gru")})}
    assert "fig1a" in known and not {"cor1", "cor2", "negative-scores"} & known


def test_a_run_asks_another_model_and_keeps_the_text_of_its_file(file, tmp_path):
    asked = ("mamba-outliers/fig1a[exact,kappa=10]",)
    run = iclab.reproduce(*asked, profile="smoke", seeds=2, changes=SMALL | {"model": file}, out=tmp_path / "run")
    entry = run.statements[0]
    assert entry["beyond"] and "robustness" not in entry and entry["statement"].startswith("With label flipping, my.py")
    manifest = run._manifest
    pinned = manifest["identity"]["settings"][PAPER.id]["model"]
    assert pinned.startswith("my.py:Settings@") and manifest["plan"]["texts"][pinned] == FILE.read_text()
    with pytest.raises(InputError, match="no answers are recorded for the papers of"):
        iclab.runs.opened.sides(tmp_path / "run", pathlib.Path("recorded"))
    (tmp_path / "my.py").write_text(FILE.read_text() + "\n# another text\n")
    with pytest.raises(InputError, match="another"):
        iclab.reproduce(*asked, profile="smoke", seeds=2, changes=SMALL | {"model": file}, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("mamba-outliers/fig1", "--model", "gated-dleta"), "model is 'gated-dleta'; give the name of a mixer"),
        (
            ("mamba-outliers/lem3", "--model", "gla"),
            "mamba-outliers/lem3 cannot be tested with gla: it is not about",
        ),
        (("mamba-outliers/cor1", "--model", "gru"), "mamba-outliers/cor1 cannot be tested with gru"),
        (("vector-arithmetic", "--model", "gla"), "--model: the model of vector-arithmetic cannot be replaced"),
        (("--model", "gla"), "--model gla: name the paper whose model it replaces"),
        (("mamba-outliers", "--model", "gla", "--set", "model=gru"), "set the same thing; give one."),
        (("mamba-outliers/fig1a", "--model", "none.py:Settings"), "cannot read none.py"),
        (("mamba-outliers/fig1a", "--model", "my.py:Setings"), "my.py does not define Setings. "),
        (("mamba-outliers/fig1a", "--model", "my.py:Wrong"), "my.py: Wrong cannot make a model"),
        (("mamba-outliers/cor2", "--model", "my.py:Settings"), "my.py:Settings keeps no score and no gate for each"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)
def test_what_does_not_fit_is_one_sentence_and_status_2(arguments, sentence, file, command, tmp_path):
    status, _, err = command("reproduce", *arguments, "--profile", "smoke", "--out", str(tmp_path / "run"))
    assert status == 2 and sentence in err, err


def test_a_model_that_does_not_fit_the_world_is_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wide.py").write_text(FILE.read_text().replace("jnp.sum(counts * tokens[:, -1])", "counts"))
    with pytest.raises(InputError, match="the loss hinge needs one number from the model"):
        PAPER.check(Settings(**TINY, model="wide.py:Settings"))
    with pytest.raises(InputError, match="only one layer"):
        plugged.model_of("wide.py:Settings", depth=3)


def test_a_model_is_a_setting_that_can_be_swept(file, tmp_path):
    found = iclab.sweep("mamba-outliers/convergence", {"model": f"deltanet,{file}"}, profile="smoke", seeds=2,
                        changes=SMALL, out=tmp_path / "sweep")  # fmt: skip
    error = found.data["error"].sel(kind="mamba")
    np.testing.assert_array_equal(error.isel(model=0).values, error.isel(model=1).values)


def test_any_mixer_can_take_mambas_place():
    from iclab.models.zoo import MIXERS

    for name in MIXERS:
        PAPER.check(Settings(**TINY, model=name))
        assert one_layer(Settings(model=name), "mamba", 1).model.initial_scale == 0.2


# nonlinear-icl: a mixer in the place of the softmax Transformer

NONLINEAR = PAPERS["nonlinear-icl"]
FEW = {"steps": 6, "record_every": 6, "batch": 8, "prompts": 40, "trend_prompts": 40, "train_length": 5, "test_length": 5,
       "longest_test": 5, "baseline_prompts": 2}  # fmt: skip


def nonlinear(model):
    return dataclasses.replace(NONLINEAR.settings["smoke"], **FEW, model=model)


def test_the_errors_of_nonlinear_icl_can_be_asked_of_any_mixer():
    from iclab.models.zoo import MIXERS

    for name in MIXERS:
        NONLINEAR.check(nonlinear(name))
    asked = {one.name: one for one in select([NONLINEAR.id], {NONLINEAR.id: nonlinear("gla")})}
    assert {"thm3.3", "thm3.4", "fig3a", "fig3b", "fig4a", "fig4b", "fig7"} <= set(asked)
    assert not {"thm3.7", "prop4.1", "cor4.3", "fig2a", "fig5a", "gpt2-thm3.3"} & set(asked)
    assert asked["fig4a"].parts[0].name == "best baseline's error minus gla's" and asked["fig4a"].beyond
    assert [reading.name for reading in asked["fig3a"].readings] == ["one-layer", "one-layer,loss", "U=4"]
    with pytest.raises(InputError, match="model is 'transfomer'; give the name of a mixer"):
        nonlinear("transfomer")


@pytest.mark.slow
def test_another_model_in_nonlinear_icl_is_what_is_trained():
    from iclab.runs.judging import dry_run

    dry_run(NONLINEAR, nonlinear("gru"), select([NONLINEAR.id], {NONLINEAR.id: nonlinear("gru")}))
    found = {}
    for model in ("transformer", "gla"):
        lab = Lab(NONLINEAR.id, nonlinear(model), (0, 1))
        found[model] = NONLINEAR.experiments["generalisation"].run(lab)["hinge"]
    assert found["gla"].notnull().all() and not found["gla"].equals(found["transformer"])

"""Settings inside settings: by name in commands, manifests, sweeps, comparisons and the documentation."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest

import iclab
from iclab.authoring.gpt2 import GPT2Training
from iclab.errors import InputError
from iclab.papers import PAPERS
from iclab.report.comparison import Side, compare
from iclab.runs.options import check_names, grid_values, override
from iclab.runs.redraw import settings_of
from iclab.settings import flat, names_of, replaced, value_of
from iclab.unstated import Unstated, shown

SETTINGS = PAPERS["nonlinear-icl"].settings["smoke"]
WITH_GPT2 = ("nonlinear-icl", "mamba-outliers", "chain-of-thought")


@dataclasses.dataclass(frozen=True)
class Inner:
    low: int = 1
    high: int = 2

    def __post_init__(self):
        if self.low > self.high:
            raise InputError(f"low is {self.low}, above high.")


@dataclasses.dataclass(frozen=True)
class Outer:
    steps: int = 10
    pair: Inner = Inner()
    sizes: tuple[int, ...] = (1, 2)


def test_names_and_values_go_into_groups():
    assert names_of(Outer()) == ["steps", "pair.low", "pair.high", "sizes"]
    assert [value_of(Outer(), name) for name in names_of(Outer())] == [10, 1, 2, (1, 2)]
    assert list(flat(dataclasses.asdict(Outer()))) == names_of(Outer())


def test_a_group_is_made_once_with_all_its_values_and_its_complaint_names_it():
    assert replaced(Outer(), {"pair.low": 5, "steps": 3, "pair.high": 7}) == Outer(3, Inner(5, 7))
    with pytest.raises(InputError, match=r"^pair: low is 5, above high"):
        replaced(Outer(), {"pair.low": 5})


@pytest.mark.parametrize("paper", WITH_GPT2)
@pytest.mark.parametrize("profile", ["smoke", "quick", "paper"])
def test_the_settings_of_a_manifest_are_those_of_the_run(paper, profile):
    before = PAPERS[paper].settings[profile]
    settings = override(before, {"gpt2.depth": "5", "gpt2.half": "true", "gpt2.step_size": "2"})
    assert settings.gpt2 == dataclasses.replace(before.gpt2, depth=5, half=True, step_size=2.0)
    kept = json.loads(json.dumps({"profile": profile, "settings": {paper: dataclasses.asdict(settings)}}))
    found = settings_of(kept, pathlib.Path("run"), PAPERS)[paper]
    assert found == settings and isinstance(found.gpt2, GPT2Training)


@pytest.mark.parametrize("changes", [{"gpt2_depth": 3}, {"gpt2": {"deep": 3}}, {"gpt2": 3}])
def test_a_manifest_with_other_settings_is_of_another_version(changes):
    kept = {"profile": "smoke", "settings": {"nonlinear-icl": dataclasses.asdict(SETTINGS) | changes}}
    with pytest.raises(InputError, match="was written by another version"):
        settings_of(kept, pathlib.Path("run"), PAPERS)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gpt2_depth", "no such setting in nonlinear-icl. Did you mean 'gpt2.depth'"),
        ("gpt2.dept", "no such setting in nonlinear-icl. Did you mean 'gpt2.depth'"),
        ("gpt2", "--set gpt2 is a group of settings; choose one of gpt2.batch, gpt2.depth, "),
    ],
)
def test_a_name_that_is_none_is_answered_with_one_that_is(name, sentence):
    with pytest.raises(InputError, match=sentence):
        check_names("--set", [name], {"nonlinear-icl": SETTINGS})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gpt2.depth": "many"}, "--set gpt2.depth=many: gpt2.depth takes a value like 1"),
        ({"gpt2.half": "1"}, "--set gpt2.half=1: gpt2.half must be true or false"),
        ({"gpt2.batch": "0"}, "gpt2: batch is 0; it must be positive"),
        ({"gpt2.step_size": "inf"}, "the value must be finite"),
    ],
)
def test_a_bad_value_is_answered_with_one_sentence(change, sentence):
    with pytest.raises(InputError, match=sentence):
        override(SETTINGS, change)


def test_what_is_no_number_or_text_is_not_set_by_a_command():
    with pytest.raises(InputError, match="sizes is not a number or text; change it in the file"):
        override(Outer(), {"sizes": "3"})


def test_grids_of_nested_settings():
    assert grid_values(SETTINGS, "gpt2.depth", "1,2") == [1, 2]
    assert grid_values(SETTINGS, "gpt2.step_size", "1:2:3") == [1.0, 1.5, 2.0]
    assert grid_values(SETTINGS, "gpt2.half", "true,false") == [True, False]


def test_a_nested_setting_is_swept(tmp_path):
    changes = {"gpt2.width": "8", "gpt2.steps": "4"}
    out, name = tmp_path / "sweep", "gpt2.step_size"
    swept = iclab.sweep(
        "nonlinear-icl/gpt2-training", {name: "0.01,1"}, profile="smoke", seeds=1, out=out, changes=changes
    )
    assert swept.data.sizes[name] == 2
    assert not np.allclose(*(swept.data["training_loss"].isel({name: point}) for point in (0, 1)), equal_nan=True)
    assert swept.trained(**{name: 1.0}).recipes[0].training.step_size == 1.0
    assert name in (out / "results.csv").read_text().splitlines()[0] and (out / "sweep.png").exists()


def test_two_runs_differ_in_a_nested_setting_by_its_name():
    def side(settings):
        identity = {"profile": "smoke", "settings": {"nonlinear-icl": dataclasses.asdict(settings)}}
        return Side("run", {"identity": identity}, [])

    (found,) = compare(side(SETTINGS), side(replaced(SETTINGS, {"gpt2.depth": 2}))).settings
    assert (found.where, found.name, found.first, found.second) == ("nonlinear-icl", "gpt2.depth", 1, 2)


def test_what_a_paper_does_not_state_is_printed_with_the_value_taken(command):
    status, printed, _ = command("settings", "feature-selection", "--profile", "paper")
    assert not status
    lines = {line.split()[0]: line.split() for line in printed.splitlines() if line.split()}
    for entry in (one for one in PAPERS["feature-selection"].unstated if isinstance(one, Unstated)):
        value = value_of(PAPERS["feature-selection"].settings["paper"], entry.setting)
        assert shown(value) in lines[entry.setting], entry.setting
    assert "record_every" not in printed and "record_every" in command("settings", "feature-selection", "--all")[1]
    status, _, complaint = command("settings", "feature-selection/fig1a")
    assert status == 2 and "is not a paper" in complaint

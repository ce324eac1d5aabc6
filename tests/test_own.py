"""A user's own file in every command, and papers that packages register."""

import concurrent.futures
import importlib
import json
import pathlib
import shutil
import sys
import textwrap

import numpy as np
import pytest

import broken
import iclab
from folders import code_lines
from iclab import skeletons
from iclab.authoring import sources
from iclab.errors import InputError

THEORY = """
from iclab.theorems import SymbolsBase, Theorem, at_least, rate, symbol


@dataclasses.dataclass(frozen=True)
class Symbols(SymbolsBase):
    noise: float = symbol("σ")
    error: float = symbol("ε")


def symbols(settings):
    return Symbols(settings.noise, 0.1)


def theorems(s, constant):
    rates = (rate("n", "σ/ε", s, {"noise": 1, "error": -1}),)
    return [Theorem("thm1", "Theorem 1", "Enough.", (at_least("noise", "σ", s.noise, s.error),), rates)]
"""


@pytest.fixture(scope="module")
def idea(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "my_idea.py"
    path.write_text(broken.SOUND + THEORY)
    return path


@pytest.fixture(scope="module")
def judged(idea):
    return iclab.reproduce(str(idea), seeds=3, out=idea.with_name("run"), save_models=True)


def test_a_file_is_reproduced_as_a_paper_is(judged):
    (entry,) = judged.statements
    assert entry["id"] == "my_idea/small" and entry["answer"] in ("holds", "fails", "open")
    assert entry["source"] == "own statement" and entry["settings"] == {"noise": 0.1, "steps": 3}
    (part,) = entry["readings"][0]["parts"]
    assert part["seeds"] == 3 and part["low"] < part["measured"] < part["high"] and part["control"]["seeds"] == 3
    files = {str(path.relative_to(judged.directory)) for path in judged.directory.rglob("*") if path.is_file()}
    assert {"index.html", "claims.json", "figures/my_idea/small.svg", "results/my_idea/experiment.nc"} <= files
    assert "results/control/my_idea/experiment.nc" in files
    page = (judged.directory / "index.html").read_text()
    assert "A sound file" in page and "iclab reproduce my_idea.py/small --profile quick --seeds 3" in page
    with np.load(judged.directory / "models" / "my_idea-main" / "standard-2.npz", allow_pickle=False) as model:
        assert model["weights"].shape == (4, 4)  # a model without letters is saved under the names of its fields


def test_the_same_command_goes_on_and_another_text_is_refused(judged, idea):
    again = iclab.reproduce(str(idea), seeds=3, out=judged.directory, save_models=True)
    assert json.dumps(again.statements) == json.dumps(judged.statements)
    other = idea.with_name("other") / "my_idea.py"
    other.parent.mkdir(exist_ok=True)
    other.write_text(idea.read_text().replace("Training(0.01", "Training(0.02"))
    with pytest.raises(InputError, match=r"my_idea\.py has changed since the run in .* began"):
        iclab.reproduce(str(other), seeds=3, out=judged.directory, save_models=True)


def test_a_point_of_a_sweep_has_the_numbers_of_reproduce_with_set(idea, tmp_path):
    run = iclab.reproduce(str(idea), seeds=2, out=tmp_path / "run", changes={"noise": "0.5"})
    swept = iclab.sweep(str(idea), {"noise": "0.1,0.5"}, seeds=2, out=tmp_path / "sweep")
    found = swept.data.load()["output"].sel(noise=0.5).squeeze()
    assert np.array_equal(found, run.results["my_idea/experiment"]["output"].squeeze())
    model = swept.select(seed=1, noise=0.5)
    assert model.weights.shape == (4, 4)


def test_workers_are_sent_the_file(judged, idea, tmp_path):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        there = iclab.reproduce(str(idea), seeds=3, out=tmp_path / "there", executor=pool)
    assert there.statements[0]["readings"] == judged.statements[0]["readings"]


def test_members_of_another_run_are_not_trained_again(judged, idea, tmp_path, monkeypatch):
    from iclab.engine import ComputingEngine

    few = iclab.reproduce(str(idea), seeds=2, out=tmp_path / "few")
    asked, train_all = [], ComputingEngine.train_all

    def counting(engine, requests, *report):
        asked.extend(request.count for request in requests)
        return train_all(engine, requests, *report)

    monkeypatch.setattr(ComputingEngine, "train_all", counting)
    more = iclab.reproduce(str(idea), seeds=3, out=tmp_path / "more", reuse=few.directory)
    assert sum(asked) == 2  # one seed, trained and untrained
    assert more.statements[0]["readings"] == judged.statements[0]["readings"]
    for name, data in more.results.items():
        assert data.equals(judged.results[name]), name
    with pytest.raises(InputError, match="has none of these papers with the same settings"):
        iclab.reproduce(str(idea), seeds=3, out=tmp_path / "x", changes={"noise": "0.5"}, reuse=few.directory)
    with pytest.raises(InputError, match="models are saved only if they are trained in this run"):
        iclab.reproduce(str(idea), seeds=3, out=tmp_path / "y", save_models=True, reuse=few.directory)


def test_list_theory_claims_and_diff_take_a_file(judged, idea, command):
    status, out, _ = command("list", idea)
    assert status == 0 and out.startswith("my_idea: A sound file\n  small  value ") and "feature-selection" not in out
    status, out, _ = command("list", idea, "--experiments")
    assert status == 0 and "my_idea/experiment" in out
    status, out, _ = command("theory", idea, "--set", "noise=0.01", "--set", "error=0.2")
    assert status == 0 and "Theorem 1" in out and "0.05" in out
    status, out, _ = command("claims", judged.directory)
    assert status == 0 and "my_idea/small" in out
    status, out, _ = command("diff", judged.directory, judged.directory)
    assert status == 0 and "1 statement in both, 1 with equal numbers" in out


def test_a_report_on_a_file_executes_it_only_where_that_is_wanted(judged, tmp_path, command):
    status, _, err = command("referee", judged.directory, "--out", tmp_path)
    assert status == 2 and "a report on my_idea needs my_idea.py" in err and "--trust executes the copy in" in err
    status, out, _ = command("referee", judged.directory, "--out", tmp_path, "--trust")
    assert status == 0 and out == f"report: {tmp_path / 'my_idea.md'}\n"
    text = (tmp_path / "my_idea.md").read_text()
    assert f"from the run in {judged.directory} (quick profile, 3 seeds)" in text.replace("\\_", "_")


def test_figures_are_drawn_by_the_file_that_is_named(judged, idea, tmp_path, command):
    copy = tmp_path / "run"
    shutil.copytree(judged.directory, copy)
    status, out, err = command("figures", copy, "--format", "png", "--file", idea)
    assert status == 0 and out.strip().endswith("small.png") and not err
    status, _, err = command("figures", copy, "--file", tmp_path / "other.py")
    assert status == 2 and "cannot read" in err
    (tmp_path / "other.py").write_text(idea.read_text())
    status, _, err = command("figures", copy, "--file", tmp_path / "other.py")
    assert status == 2 and "the run used my_idea.py" in err
    (tmp_path / "my_idea.py").write_text(idea.read_text() + "# later\n")
    status, _, err = command("figures", copy, "--file", tmp_path / "my_idea.py")
    assert status == 0 and "has changed since the run" in err


@pytest.mark.parametrize("kind", skeletons.KINDS)
def test_every_skeleton_runs_as_it_is(kind, tmp_path):
    path = skeletons.write(kind, "mine", tmp_path)
    run = iclab.reproduce(str(path), profile="smoke", out=tmp_path / "run")
    parts = [part for entry in run.statements for part in entry["readings"][0]["parts"]]
    assert parts and all(part["outcome"] == "not asked" and part["measured"] is not None for part in parts)
    assert all(entry["answer"] == "not asked" for entry in run.statements)
    assert list((tmp_path / "run" / "figures" / "mine").glob("*.svg"))


def test_a_world_a_model_and_a_statement_with_an_interval_take_less_than_40_lines(tmp_path):
    path = pathlib.Path(__file__).with_name("shortest.py")
    assert code_lines(path) < 40
    (entry,) = iclab.reproduce(str(path), seeds=3, out=tmp_path / "run").statements
    (part,) = entry["readings"][0]["parts"]
    assert entry["answer"] == "holds" and 0 < part["low"] < part["measured"] < part["high"] < 1
    assert part["control"]["outcome"] == "fails" and part["control"]["measured"] > 2.5  # it has learned something


def test_new_writes_a_file_once_and_says_what_is_next(monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    status, out, _ = command("new", "claim", "my-idea")
    assert (
        status == 0
        and "iclab check my-idea.py" in out
        and (tmp_path / "my-idea.py").read_text() == skeletons.text_of("claim")
    )
    for arguments, sentence in (
        (("claim", "my-idea"), "my-idea.py already exists"),
        (("clam", "x"), "Did you mean 'claim'?"),
        (("claim", "../x"), "cannot be the name of a file"),
    ):
        status, _, err = command("new", *arguments)
        assert status == 2 and sentence in err and err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["my-idea.py"]


def test_a_file_cannot_take_the_name_of_a_paper(tmp_path):
    (tmp_path / "feature-selection.py").write_text(broken.SOUND)
    with pytest.raises(InputError, match="'feature-selection' is taken by a paper; rename the file"):
        iclab.reproduce(str(tmp_path / "feature-selection.py"))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with entry points: `install("name = module:attribute")`."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(*lines):
        (tmp_path / "other_group.py").write_text(broken.SOUND)
        (tmp_path / "other_broken.py").write_text("1 / 0\n")
        about = tmp_path / "other_group-1.5.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-group\nVersion: 1.5\n")
        (about / "entry_points.txt").write_text(textwrap.dedent("[iclab]\n" + "\n".join(lines) + "\n"))
        importlib.invalidate_caches()
        sources.registered.cache_clear()

    yield install
    sources.registered.cache_clear()
    for name in ("other_group", "other_broken"):
        sys.modules.pop(name, None)


def test_registered_papers_are_listed_and_reproduced(package, tmp_path, command):
    package("other-lab = other_group")
    status, out, err = command("list", "other-lab")
    assert status == 0 and out.startswith("other-lab: A sound file (from other-group)\n  small  ") and not err
    assert command("list", "other-group") == (status, out, err)  # all papers of a package
    status, out, _ = command("list")
    assert (
        status == 0 and "other-lab: A sound file (from other-group)\n  small  " in out and "feature-selection: " in out
    )
    run = iclab.reproduce("other-lab", seeds=2, out=tmp_path / "run")
    assert run.statements[0]["id"] == "other-lab/small"
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["identity"]["texts"]["other-lab"].startswith(
        "other-group 1.5 "
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("bad = other_broken", "ZeroDivisionError: division by zero"),
        ("bad = nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("bad = other_group:statements", "it is a list, not a Paper or a module."),
        ("feature-selection = other_group", "another paper has the id 'feature-selection'."),
    ],
)
def test_a_broken_entry_point_is_one_line_and_nothing_else(line, reason, package, monkeypatch, command):
    package(line)
    monkeypatch.setattr("warnings.filters", [])
    status, out, err = command("list", "feature-selection/fig1")
    assert status == 0 and [line.split()[0] for line in out.splitlines()[1:]] == ["fig1a", "fig1b"]
    assert err == f"iclab: other-group registers {line}, which cannot be used: {err.partition('cannot be used: ')[2]}"
    assert reason in err and err.count("\n") == 1

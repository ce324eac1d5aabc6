"""The examples, executed: the scripts as they are, the files of statements at their real sizes with two seeds."""

import os
import pathlib
import runpy
import subprocess
import sys

import pytest

import iclab
from folders import code_lines

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def test_the_examples_are_numbered_without_gaps():
    names = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert [int(name[:2]) for name in names] == list(range(1, len(names) + 1)) and len(names) >= 7


def test_a_trained_model_looks_at_the_query_s_pattern(capsys):
    runpy.run_path(str(EXAMPLES / "01_attention.py"), run_name="__main__")
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()[:1].isdigit()]
    before, after = (sum(float(row[column]) for row in rows if "<-" in row) for column in (2, 3))
    assert len(rows) == 10 and before < 0.6 and after > 0.9


def measured(entry, name=None):
    """What was measured for a part of a statement; for its first, if none is named."""
    parts = entry["readings"][0]["parts"]
    return next(part for part in parts if name in (None, part["name"]))["measured"]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Two seeds of an example at its quick profile: the numbers, not the answer, which needs more seeds."""

    def reproduce(name):
        out = tmp_path_factory.mktemp("examples") / "run"
        found = iclab.reproduce(str(EXAMPLES / f"{name}.py"), seeds=2, out=out)
        assert list(out.glob("figures/*/*.svg"))
        return {entry["id"].partition("/")[2]: entry for entry in found.statements}

    return reproduce


def test_mamba_and_linear_attention_under_outliers(example):
    statements = example("02_outliers")
    assert measured(statements["gate-helps"]) > 0.05


@pytest.mark.slow
def test_linear_attention_is_one_step_of_gradient_descent_and_not_ridge_regression(example):
    statements = example("03_regression")
    assert measured(statements["one-step"]) < 0.1  # of the error that Zhang, Frei, Bartlett give
    assert measured(statements["not-ridge"], "error / error of ridge, 80 examples") > 2
    assert code_lines(EXAMPLES / "03_regression.py") < 60


@pytest.mark.slow
def test_gated_linear_attention_trains(example):
    statements = example("04_gated_attention")
    assert measured(statements["learns"]) < 0.4  # the statement itself, below 0.1, fails: the example says so


@pytest.mark.slow
def test_task_diversity(example):
    statements = example("05_another_paper")
    assert measured(statements["few-tasks-fail"], "error on new tasks / d, one task") > 0.7
    assert measured(statements["many-tasks-generalise"], "error on new tasks / d, 64 tasks") < 0.4


def test_reading_a_run(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["06_reading_a_run.py"])
    runpy.run_path(str(EXAMPLES / "06_reading_a_run.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert "feature-selection/fig1a: not asked" in out and "seeds that diverged: []" in out


def test_a_sweep_on_a_cluster_of_processes(tmp_path):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "07_cluster.py")], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "4 shards, computed by two workers" in done.stdout and "the same numbers as here: True" in done.stdout

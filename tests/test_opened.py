"""A run that is opened: its table, its statements with figure, data and reasons, its trained models."""

import html
import json
import shutil

import equinox as eqx
import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

import iclab
from iclab.errors import InputError
from iclab.experiments import Recipe, Trained
from iclab.models.gpt2 import GPT2Settings
from iclab.models.mamba import MambaSettings
from iclab.optimisation import Training
from iclab.runs.contents import model_files
from iclab.runs.progress import RunProgress
from iclab.runs.saved import load_model, read_saved
from small import world

TRAINING = "feature-selection-standard"


@pytest.fixture(scope="module")
def opened(run):
    return iclab.open_run(run.directory)


def test_a_run_says_in_a_line_what_it_is(opened):
    assert repr(opened).startswith(f"Run('{opened.directory}': nonlinear-icl: ") and "\n" not in repr(opened)
    assert len(repr(opened)) < 600 and len(opened) == len(opened.statements) == len(list(opened))


@pytest.mark.parametrize("words", ["claims", "diff"])
def test_a_run_of_iclab_0_1_is_named_as_such(tmp_path, words, command):
    """It wrote a list of rows, and no checksum beside it."""
    (tmp_path / "claims.json").write_text('[{"id": "nonlinear-icl/fig3a", "verdict": "reproduced"}]')
    (tmp_path / "manifest.json").write_text("{}")
    status, _, err = command(words, tmp_path, *([tmp_path] if words == "diff" else []))
    assert status == 2 and "was written by iclab 0.1, in another format; run it again with this version." in err


def test_the_table_has_a_row_per_statement_in_python_and_in_a_notebook(opened):
    table = opened.table()
    assert list(table.index) == [entry["id"] for entry in opened.statements]
    assert set(table["answer"]) == {"not asked"} and table.loc["feature-selection/thm1", "source"] == "Theorem 1"
    shown = opened._repr_html_()
    assert shown.count("<tr>") == len(opened) + 1 and "feature-selection/thm1" in shown


def test_a_statement_is_found_by_its_name_where_one_paper_has_it(opened):
    assert opened["mamba-outliers/fig1a"].id == "mamba-outliers/fig1a"
    assert opened["thm3.3"].id == "nonlinear-icl/thm3.3"
    with pytest.raises(InputError, match=r"several statements are called .*feature-selection/fig1a"):
        opened["fig1a"]
    with pytest.raises(InputError, match=r"no statement 'thm3.33'. Did you mean"):
        opened["thm3.33"]


def test_the_data_of_a_statement_are_the_results_that_it_reads(opened):
    data = opened["feature-selection/thm2"].data
    assert [node.path for node in data.leaves] == ["/trained/generalisation", "/untrained/generalisation"]
    assert data["trained/generalisation"].to_dataset().identical(opened.results["feature-selection/generalisation"])


def test_a_statement_draws_its_own_figure(opened):
    figure = opened["feature-selection/fig1a"].plot()
    assert isinstance(figure, Figure) and any(line.get_xdata().size for axis in figure.axes for line in axis.lines)


def test_why_names_rules_intervals_controls_hypotheses_readings_and_what_is_unstated(run, opened):
    entry = next(entry for entry in run.statements if entry["id"] == "mamba-outliers/thm2")
    told = opened["mamba-outliers/thm2"].why()
    assert repr(told).split() == told.split() and max(map(len, repr(told).splitlines())) <= 96
    for reading in entry["readings"]:
        assert f"Reading {reading['name']}" in told and reading["why"] in told
        for part in reading["parts"]:
            assert f"- {part['name']}: " in told and f"rule: {part['rule']}; " in told
    known = entry["readings"][0]["hypotheses"]
    assert "  untrained: " in told and f"hypotheses: {known['met']} of {known['of']} met" in told
    assert (
        "- test_outlier_magnitude, κ_a' (plausible: " in told
        and "iclab reproduce mamba-outliers/thm2 --profile smoke" in told
    )


def test_text_of_a_folder_is_shown_as_text(run):
    entry = {**run.statements[0], "words": "<script>alert(1)</script>\x1b[2J", "statement": "<b>"}
    other = iclab.Run(run.directory, [entry], {})
    statement = other[entry["id"]]
    for shown in (other._repr_html_(), statement._repr_html_()):
        assert "<script" not in shown and "\x1b" not in shown and html.escape("<script>alert(1)") in shown
    assert "\x1b" not in repr(statement) + statement.why()


def test_a_trained_model_of_a_run_answers_a_prompt_of_its_world(opened):
    named = {"training": TRAINING, "setting": "standard", "seed": 1}
    model, where = opened.model(**named), opened.world(**named)
    output, trace = model(where.sample(jax.random.key(0), 0))
    assert np.isfinite(float(output)) and np.isclose(float(np.sum(trace.attention)), 1.0, atol=1e-5)
    file = opened.directory / "models" / TRAINING / "standard-1.npz"
    assert eqx.tree_equal(load_model(file), model)
    np.testing.assert_array_equal(np.load(file)["W_Q"], model.query_weights)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({}, "there are several models; choose one with training=: "),
        ({"training": TRAINING}, "choose one with seed=: 0, 1."),
        ({"training": TRAINING, "seed": 7}, "there is no seed 7. Known: 0, 1."),
        ({"training": f"{TRAINING}s", "seed": 0}, f"Did you mean '{TRAINING}'"),
        (
            {"training": TRAINING, "seed": 0, "setting": "standart"},
            "there is no setting 'standart'. Did you mean 'standard'",
        ),
    ],
)
def test_a_model_that_is_not_one_is_refused_in_a_sentence(opened, named, sentence):
    with pytest.raises(InputError, match=sentence):
        opened.model(**named)


def test_without_models_a_run_says_how_to_keep_them(run, tmp_path):
    shutil.copytree(run.directory, tmp_path / "run", ignore=shutil.ignore_patterns("models", "results"))
    with pytest.raises(InputError, match=r"keeps no models; .* with save_models=True"):
        iclab.open_run(tmp_path / "run").model()


def test_a_model_that_was_changed_is_not_loaded(run, tmp_path):
    shutil.copytree(run.directory, tmp_path / "run", ignore=shutil.ignore_patterns("results"))
    file = tmp_path / "run" / "models" / TRAINING / "standard-1.npz"
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(InputError, match="is damaged or belongs to another run"):
        iclab.open_run(tmp_path / "run").model(training=TRAINING, seed=1)


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY"])
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    (tmp_path / "model.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"is not a model of iclab: it cannot be read as an \.npz file"):
        load_model(tmp_path / "model.npz")


@pytest.mark.parametrize(
    "kind", ["iclab.models.nowhere:Mamba", "iclab.models.mamba:jax", "iclab.worlds.outliers:require"]
)
def test_a_file_names_models_and_worlds_of_iclab_and_nothing_else(tmp_path, kind):
    told = json.dumps({"model": {"class": kind, "fields": {}}})
    np.savez(tmp_path / "model.npz", how_it_is_made=np.array(told))
    with pytest.raises(InputError, match="is damaged: its description of the model cannot be read"):
        load_model(tmp_path / "model.npz")


def test_a_file_names_no_class_of_another_package(tmp_path):
    told = json.dumps({"model": {"class": "subprocess:Popen", "fields": {}}})
    np.savez(tmp_path / "model.npz", how_it_is_made=np.array(told))
    with pytest.raises(InputError, match="needs Popen, which is not a class of iclab"):
        load_model(tmp_path / "model.npz")


class Own(eqx.Module):
    """A model of a user's file, with a part that is another model."""

    inside: eqx.Module
    scale: float

    def __call__(self, prompt):
        output, trace = self.inside(prompt)
        return self.scale * output, trace


def written(tmp_path, model, where):
    """A model in a file, as a run keeps it."""
    recipe = Recipe(where, None, Training(step_size=1.0, batch=2))
    stacked = jax.tree.map(lambda leaf: np.asarray(leaf)[None], model)
    trained = Trained("own", ("a, b",), (3,), (recipe,), stacked, np.array([False]), None)
    ((name, content),) = model_files(trained)
    path = tmp_path / name.replace("/", "-")
    path.write_bytes(content)
    return path


def labelled(**changes):
    return world(label_embedding=np.array([1.0]), **changes)


@pytest.mark.parametrize("kind", ["mamba", "gpt2"])
def test_what_is_written_is_what_is_read_layers_and_all(tmp_path, kind):
    where = labelled()
    settings = {"mamba": MambaSettings(depth=1), "gpt2": GPT2Settings(depth=2, heads=1, width=4, positions=32)}[kind]
    model = jax.tree.map(np.asarray, settings.init(jax.random.key(0), where))
    path = written(tmp_path, model, where)
    assert path.name == "own-a-b-3.npz"
    again = read_saved(path)
    assert eqx.tree_equal(again.model(), jax.tree.map(jax.numpy.asarray, model))
    key = jax.random.key(1)
    for one, other in zip(*map(jax.tree.leaves, (again.world().sample(key, 0), where.sample(key, 0))), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_class_of_a_users_own_is_given_and_never_imported(tmp_path):
    own = Own(jax.tree.map(np.asarray, MambaSettings().init(jax.random.key(0), labelled())), np.float32(2.0))
    path = written(tmp_path, own, labelled())
    with pytest.raises(
        InputError, match=r"needs Own, which is not a class of iclab; give it: load_model\(FILE, classes="
    ):
        load_model(path)
    assert isinstance(load_model(path, classes=[Own]), Own)


def test_in_a_notebook_a_run_shows_one_bar_and_takes_it_away(monkeypatch):
    shown = []

    class Handle:
        def update(self, content):
            shown.append(content.data)

    def display(content, display_id):
        shown.append(content.data)
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("iclab.runs.progress.kernel_is_here", lambda: True)
    monkeypatch.setattr("iclab.runs.bars.EVERY", 0.0)
    with RunProgress(Console(quiet=True), 2.0) as progress:
        progress.begin("one", 1.0)
        progress.update("one", "training <one>", 1.0)
        progress.end("one", "done")
    assert "0 % · one" in shown[1] and "47 %" in shown[2] and "training &lt;one&gt;" in shown[2] and shown[-1] == ""

"""`iclab reproduce` from end to end at the smoke profile, and what a user can do wrong."""

import dataclasses
import json
import re

import numpy as np
import pytest

import folders
import iclab
from iclab import randomness
from iclab.entries import SCHEMA
from iclab.errors import InputError
from iclab.papers import PAPERS
from iclab.runs.judging import Judge

FIELDS = {
    "id", "paper", "source", "statement", "kinds", "beyond", "answer", "words", "architecture", "also_untrained", "readings",
    "ours", "afterwards", "figure", "table", "profile", "settings", "seconds",
    "printed",
}  # fmt: skip


def test_every_statement_has_an_entry_with_the_agreed_fields(run):
    content = json.loads((run.directory / "claims.json").read_text())
    entries = content["statements"]
    assert content["schema"] == SCHEMA
    there = [PAPERS[name] for name in folders.TRAINING]
    expected = [statement.id for paper in there for statement in paper.statements(paper.settings["smoke"])]
    assert [entry["id"] for entry in entries] == expected
    for entry in entries:
        assert entry.keys() - {"robustness"} == FIELDS  # which is there for statements with a recorded curve
        assert entry["answer"] == "not asked"  # smoke says nothing about the science
        assert entry["settings"] == json.loads(json.dumps(dataclasses.asdict(PAPERS[entry["paper"]].settings["smoke"])))


def test_the_page_is_self_contained_and_names_every_statement(run):
    page = (run.directory / "index.html").read_text()
    page = re.sub(
        r'<script type="text/plain" id="vega">.*?</script>', "", page, flags=re.DOTALL
    )  # the charting library
    for entry in run.statements:
        assert f'id="{entry["id"]}"' in page
    loads = re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']*|url\((?!#)[^)]*|@import""", page)
    assert loads == []
    assert page.count('<template id="figure:') == sum(
        len(list((run.directory / "figures" / paper).glob("*.svg"))) for paper in PAPERS
    )


def test_saved_models_hold_the_letters_of_the_paper_and_answer_as_the_code_does(run):

    import reference
    from iclab.papers.nonlinear_icl.settings import recipe

    with np.load(run.directory / "models" / "nonlinear-icl-standard" / "standard-1.npz", allow_pickle=False) as file:
        letters = dict(file)
    assert {name: letters[name].shape for name in ("W_Q", "W_K", "W_V", "W_O", "a")} == {
        "W_Q": (60, 60), "W_K": (60, 60), "W_V": (60, 60), "W_O": (300, 60), "a": (300,),
    }  # fmt: skip
    assert letters["relevant"].shape == (6, 30) and letters["irrelevant"].shape == (24, 30)
    assert letters["label_embedding"].shape == (30,)
    assert not np.allclose(letters["W_O"], 0)
    settings = PAPERS["nonlinear-icl"].settings["smoke"]
    prompt = recipe(settings, settings.matching_fraction).world.sample(randomness.key(0), 0)
    output, _ = reference.forward(letters, prompt.tokens(), prompt.present)
    assert np.isfinite(output)
    assert len(list((run.directory / "models" / "nonlinear-icl-tasks").glob("*.npz"))) == 30


def test_saved_mamba_models_have_their_own_letters(run):
    folder = run.directory / "models"
    with np.load(folder / "mamba-outliers-mamba-one-layer" / "18-tasks-0.npz", allow_pickle=False) as file:
        shapes = {name: file[name].shape for name in ("W_B", "W_C", "w", "relevant", "irrelevant", "outliers")}
    assert shapes == {
        "W_B": (31, 31), "W_C": (31, 31), "w": (31,), "relevant": (6, 30), "irrelevant": (10, 30), "outliers": (3, 30),
    }  # fmt: skip
    with np.load(folder / "mamba-outliers-linear-one-layer" / "6-tasks-1.npz", allow_pickle=False) as file:
        assert {"W_B", "W_C", "outliers"} <= set(file) and "w" not in file
    stacks = sorted(path.name for path in folder.glob("mamba-outliers-stack-*"))
    assert len(stacks) == 5
    with np.load(
        next((folder / "mamba-outliers-stack-Mamba-label-residual").glob("*-0.npz")), allow_pickle=False
    ) as file:
        assert file["W_B"].shape == (3, 31, 31) and file["w"].shape == (3, 31)


def test_saved_gpt2_has_the_names_of_the_reference_implementation(run):
    for folder, file in (
        ("nonlinear-icl-gpt2", "varied-1"), ("mamba-outliers-gpt2", "18-tasks-0"), ("chain-of-thought-gpt2", "GPT-2-1"),
    ):  # fmt: skip
        with np.load(run.directory / "models" / folder / f"{file}.npz", allow_pickle=False) as saved:
            names = ("wpe.weight", "h.0.attn.c_attn.weight", "h.0.mlp.c_fc.weight", "ln_f.bias")
            shapes = {name: saved[name].shape for name in names}
        tokens = 63 if folder.startswith("chain") else 21
        assert shapes == dict(zip(names, ((tokens, 16), (16, 48), (16, 64), (16,)), strict=True))


def test_the_page_shows_one_layer_and_gpt2_side_by_side(run):
    """Where a statement is put to GPT-2, it has a figure, and the results of the small model it is compared with are
    there too.
    """
    for paper in ("nonlinear-icl", "mamba-outliers", "chain-of-thought"):
        for statement in PAPERS[paper].statements(PAPERS[paper].settings["smoke"]):
            if any("gpt2" in need for need in statement.needs()):
                assert (run.directory / "figures" / paper / f"{statement.figure or statement.name}.svg").exists()
    text = (run.directory / "figures" / "nonlinear-icl" / "fig3a.svg").read_text()
    assert "one-layer Transformer" in text and "GPT-2, contexts of one length" in text


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return folders.smoke(tmp_path_factory.mktemp("alone") / "run", "feature-selection/thm2")


def test_the_same_run_again_keeps_what_is_there_and_gives_the_same_answers(alone):
    results = list(alone.directory.glob("results/**/*.nc"))
    written = [path.stat().st_mtime_ns for path in results]
    again = folders.smoke(alone.directory, "feature-selection/thm2")
    assert json.dumps(again.statements) == json.dumps(alone.statements)
    assert written == [path.stat().st_mtime_ns for path in results] and written


def test_one_statement_alone_gives_the_numbers_it_had_among_all(run, alone):
    among = next(entry for entry in run.statements if entry["id"] == "feature-selection/thm2")
    assert alone.statements[0]["readings"] == among["readings"]
    assert set(alone.results) == {"feature-selection/generalisation", "control/feature-selection/generalisation"}


def test_claims_prints_the_table_of_a_finished_run(run, command):
    status, out, _ = command("claims", run.directory)
    assert status == 0 and "nonlinear-icl/fig7" in out and "not asked" in out


def test_list_names_statements_and_help_teaches(command):
    status, out, _ = command("list", "nonlinear-icl/fig2")
    assert status == 0 and out.count("  fig2") == 4 and "nonlinear-icl: " in out
    status, out, _ = command("reproduce", "--help")
    assert status == 0
    assert "To continue an interrupted run, repeat the command with the same --out." in " ".join(
        out.replace("│", " ").split()
    )
    assert "(default: quick)" in out and "None" not in out  # a default that is a value, and no other
    status, out, _ = command("--help")
    assert status == 0 and "half an hour" not in out  # one line per command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reproduce", "nonlinear-icl/thm3.33"], "'nonlinear-icl/thm3.33'. Did you mean 'nonlinear-icl/thm3.3'?"),
        (["list", "nonlinear-ilc"], "Did you mean 'nonlinear-icl'?"),
        (["reproduce", "--profile", "fast"], "profile 'fast' is unknown"),
        (["reproduce", "--seeds", "0"], "--seeds is 0; it must be at least 1."),
        (["reproduce", "--set", "relevant_patterns=-6"], "relevant_patterns is -6"),
        (["reproduce", "nonlinear-icl", "--set", "relevant_patterns=8"], "need 32 orthogonal directions, but"),
        (["reproduce", "--set", "matching_fraction=1.2"], "matching_fraction is 1.2; a fraction must lie in (0, 1]."),
        (["reproduce", "--set", "neurons=0"], "neurons is 0; it must be positive."),
        (["reproduce", "--set", "matching_fracton=0.5"], "Did you mean 'matching_fraction'?"),
        (["reproduce", "--set", "steps=many"], "--set steps=many: steps takes a value like"),
        (["reproduce", "--set", "steps"], "write it as name=value"),
        (["claims", "/nowhere/at/all"], "has no claims.json"),
        (["reproduce", "--set", "steps=10", "--set", "steps=20"], "--set steps is given twice"),
        (["reproduce", "--set", "step_size=inf"], "the value must be finite"),
        (["reproduce", "--set", "irrelevant_size=nan"], "the value must be finite"),
        (["reproduce", "--set", "basis_seed=-1"], "basis_seed is -1"),
        (["reproduce", "nonlinear-icl", "--set", "key_width=10"], "key_width 10 must be at least feature_dimension 30"),
        (["reproduce", "nonlinear-icl", "--set", "longest_test=3", "--set", "test_length=3"], "longest_test is 3"),
        (["reproduce", "chain-of-thought", "--set", "longest_comparison=5"], "longest_comparison is 5"),
        (["reproduce", "chain-of-thought", "--set", "matching_fraction=0.01"], "leaves none that starts from the query"),
        (["reproduce", "chain-of-thought", "--set", "reasoning_steps=0"], "reasoning_steps is 0"),
        (["reproduce", "mamba-outliers", "--set", "outlier_fraction=1"], "outlier_fraction is 1.0"),
        (["reproduce", "mamba-outliers", "--set", "stack_depth=0"], "stack_depth is 0"),
        (["reproduce", "mamba-outliers", "--set", "gpt2.heads=3"], "gpt2: width 64 is not a multiple of heads 3"),
        (["reproduce", "chain-of-thought", "--set", "gpt2.warmup=1"], "gpt2: warmup is 1.0; it must be a share of"),
        (["reproduce", "nonlinear-icl", "--set", "gpt2_shortest_train=21"], "gpt2_shortest_train is 21"),
        (["reproduce", "nonlinear-icl", "--set", "gpt2_task_shifts=5"], "gpt2_task_shifts is 5"),
    ],
)  # fmt: skip
def test_bad_input_is_answered_with_one_sentence_and_status_2(arguments, sentence, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    status, _, err = command(*arguments)
    assert status == 2
    assert sentence in err and err.startswith("iclab: ") and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["{", "null", '{"statements": [{"id": "x"}]}', '{"schema": 2}'])
def test_damaged_claims_are_named(content, tmp_path, command):
    (tmp_path / "claims.json").write_text(content)
    status, _, err = command("claims", tmp_path)
    assert status == 2 and "claims.json is damaged" in err


def test_a_run_in_which_everything_diverges_still_ends_with_a_page(tmp_path):
    run = iclab.reproduce("nonlinear-icl/fig2", profile="smoke", out=tmp_path / "run", changes={"step_size": "1e30"})
    assert (run.directory / "index.html").exists()
    parts = [part for entry in run.statements for reading in entry["readings"] for part in reading["parts"]]
    assert all(part["measured"] is None and part["seeds"] == 0 and part["lost"] == 2 for part in parts)


def test_a_folder_of_another_run_is_refused_by_the_command(run, command):
    status, _, err = command("reproduce", "feature-selection", "--profile", "smoke", "--out", run.directory)
    assert status == 2 and re.search(r"holds another run \(.*nonlinear-icl.*profile smoke, 2 seeds\)", err)


def test_an_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch, command):
    from iclab.experiments import Lab

    def stop(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(Lab, "evaluate", stop)
    out = tmp_path / "run"
    ids = "feature-selection/thm2", "feature-selection/fig1a"
    status, printed, _ = command("reproduce", *ids, "--profile", "smoke", "--out", out)
    assert status == 130 and "To continue, repeat the command with --out" in " ".join(printed.split())
    assert (out / "results" / "feature-selection" / "training.nc").exists() and not (out / "claims.json").exists()
    monkeypatch.undo()
    resumed = iclab.reproduce(*ids, profile="smoke", out=out)
    assert [entry["id"] for entry in resumed.statements] == list(ids)


def test_ctrl_c_while_figures_are_drawn_says_how_to_go_on_too(tmp_path, monkeypatch, command):
    def stop(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("iclab.runs.reproduce.render_page", stop)
    out = tmp_path / "run"
    status, printed, _ = command("reproduce", "feature-selection/thm1", "--profile", "smoke", "--out", out)
    assert status == 130 and "To continue, repeat the command with --out" in " ".join(printed.split())


def test_the_experiments_that_can_be_swept_are_listed(command):
    status, out, _ = command("list", "--experiments")
    assert status == 0
    for paper in PAPERS.values():
        for statement in paper.statements(paper.settings["quick"]):
            assert all(f"{paper.id}/{need.partition('@')[0]}" in out for need in statement.needs())


def test_unknown_ids_raise_in_python_too():
    with pytest.raises(InputError, match="Did you mean"):
        iclab.reproduce("nonlinear-icl/fig9z")


# Statements that models pass before they are trained, and why they are not called architectural: their answer is "open".
UNTRAINED = {}


def test_no_statement_holds_for_untrained_models_that_is_not_about_the_architecture(computed_run):
    """Every rule of every statement put to untrained models alone; what they pass is marked, or known and said to be open."""
    results = computed_run.results
    control = {name.removeprefix("control/"): data for name, data in results.items() if name.startswith("control/")}
    papers = {paper.id: paper for paper in PAPERS.values() if paper.unit == "seed"}
    judge = Judge(papers, {name: paper.settings["smoke"] for name, paper in papers.items()})
    both = control | {f"control/{name}": data for name, data in control.items()}
    asked = 0
    for name, paper in papers.items():
        for statement in paper.statements(paper.settings["smoke"]):
            kept = tuple(reading for reading in statement.readings if not reading.changes)
            if not kept:
                continue
            entry = judge(dataclasses.replace(statement, readings=kept), both)
            asked += 1
            assert entry["answer"] not in ("holds", "holds if") or statement.architecture, (name, entry["words"])
            if len(entry["also_untrained"]) == len(kept):
                assert statement.architecture or statement.id in UNTRAINED, entry["words"]
    assert asked > 70

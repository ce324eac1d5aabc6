"""A run's folder is data: what only reads it executes nothing that it carries, whoever made it."""

import ast
import io
import json
import pathlib
import shutil

import pytest

import iclab
from iclab import cli
from iclab.errors import InputError
from iclab.report.mathematics import equation
from iclab.runs.contents import checksum_of, digest_of
from iclab.runs.redraw import redraw
from iclab.runs.serving import Server

HERE = pathlib.Path(__file__)
IDEA = HERE.with_name("shortest.py")
SOURCES = sorted((HERE.parents[1] / "src" / "iclab").rglob("*.py"))


def canary(path):
    return f"import pathlib\npathlib.Path({str(path)!r}).write_text('executed')\n"


def rewritten(folder, **plan):
    """A manifest that somebody else could write: every digest is right."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["plan"] |= plan
    manifest["fingerprint"] = digest_of(manifest["identity"])
    manifest.pop("digest")
    path.write_text(json.dumps(manifest | {"digest": digest_of(manifest)}))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run and a sweep of a user's file."""
    out = tmp_path_factory.mktemp("trust")
    iclab.reproduce(str(IDEA), profile="smoke", seeds=2, out=out / "run", changes={"steps": "5"})
    iclab.sweep(str(IDEA), {"noise": [0.4, 0.8]}, seeds=2, out=out / "sweep", changes={"steps": "5"})
    return out


@pytest.fixture
def hostile(own, tmp_path):
    """Copies of both whose text writes a file as soon as it is executed, and the place of that file."""
    mark = tmp_path / "executed"
    for name in ("run", "sweep"):
        shutil.copytree(own / name, tmp_path / name)
    text = canary(mark) + IDEA.read_text()
    rewritten(tmp_path / "run", texts={"shortest": text})
    rewritten(tmp_path / "sweep", text=text)
    return tmp_path / "run", tmp_path / "sweep", mark


def test_reading_a_hostile_folder_executes_nothing(hostile, monkeypatch, capsys):
    run, sweep, mark = hostile
    for arguments in (["claims", run], ["figures", run], ["figures", run, "--format", "svg"], ["diff", run, run]):
        monkeypatch.setattr("sys.argv", ["iclab", *map(str, arguments)])
        cli.main()
    said = capsys.readouterr()
    assert "that executes shortest.py. Give your own copy with --file PATH/shortest.py" in " ".join(said.err.split())
    with Server(run, port=0):
        pass
    iclab.open_run(run)
    assert iclab.open_sweep(sweep).grid == {"noise": [0.4, 0.8]}
    with pytest.raises(InputError, match=r"use iclab\.open_sweep\(\.\.\., trust=True\)"):
        iclab.open_sweep(sweep).select(seed=0, noise=0.4)
    assert not mark.exists()


def test_what_is_trusted_is_executed(hostile):
    """The canary can sing: without this the test above would show nothing."""
    run, _, mark = hostile
    redraw(run, "png", trust=True)
    assert mark.exists()


def test_a_sweep_of_ones_own_gives_its_models(own):
    with pytest.raises(InputError, match="trust=True"):
        iclab.open_sweep(own / "sweep").select(seed=0, noise=0.4)
    assert iclab.open_sweep(own / "sweep", trust=True).select(seed=0, noise=0.4) is not None


def test_a_run_is_opened_with_answers_and_results(own):
    run = iclab.open_run(own / "run")
    assert run.statements[0]["paper"] == "shortest" and "shortest/experiment" in run.results
    assert "control/shortest/experiment" in run.results
    with pytest.raises(InputError, match=r"is a sweep; open it with iclab\.open_sweep"):
        iclab.open_run(own / "sweep")


@pytest.mark.parametrize("name", ["shortest/experiment.nc", "shortest/experiment.nc.sha256"])
def test_a_damaged_result_is_not_opened(own, tmp_path, name):
    shutil.copytree(own / "run", tmp_path / "run")
    path = tmp_path / "run" / "results" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="is damaged: its checksum is missing or wrong"):
        iclab.open_run(tmp_path / "run")


# claims.json


def test_every_flipped_bit_of_the_answers_is_noticed(own, tmp_path):
    shutil.copytree(own / "run", tmp_path / "run")
    path = tmp_path / "run" / "claims.json"
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        with pytest.raises(InputError, match="damaged or was edited"):
            iclab.open_run(tmp_path / "run")


@pytest.mark.parametrize(
    "content", ["{}", '{"schema": 2, "statements": [{}]}', '{"schema": 9, "statements": []}', "3", "[" * 9999]
)
def test_answers_of_another_shape_are_one_sentence(own, tmp_path, content, monkeypatch, capsys):
    import hashlib

    shutil.copytree(own / "run", tmp_path / "run")
    path = tmp_path / "run" / "claims.json"
    path.write_text(content)
    checksum_of(path).write_text(hashlib.sha256(content.encode()).hexdigest())
    for arguments in (["claims", tmp_path / "run"], ["diff", tmp_path / "run", tmp_path / "run"]):
        monkeypatch.setattr("sys.argv", ["iclab", *map(str, arguments)])
        with pytest.raises(SystemExit):
            cli.main()
        assert capsys.readouterr().err.count("\n") == 1


def test_answers_of_another_run_are_refused(own, tmp_path):
    import hashlib

    shutil.copytree(own / "run", tmp_path / "run")
    path = tmp_path / "run" / "claims.json"
    content = json.dumps(json.loads(path.read_text()) | {"run": "another"})
    path.write_text(content)
    checksum_of(path).write_text(hashlib.sha256(content.encode()).hexdigest())
    with pytest.raises(InputError, match="belongs to another run; repeat the command with --out"):
        iclab.open_run(tmp_path / "run")


def test_a_result_that_is_gone_is_missed_and_figures_without_untrained_models_say_so(own, tmp_path):
    shutil.copytree(own / "run", tmp_path / "run")
    (tmp_path / "run" / "results" / "control" / "shortest" / "experiment.nc").unlink()
    with pytest.raises(InputError, match="is damaged: its checksum is missing or wrong"):
        iclab.open_run(tmp_path / "run")
    _, notes = redraw(tmp_path / "run", "svg", [str(IDEA)])
    assert any("drawn without untrained models: shortest" in note for note in notes)


@pytest.mark.parametrize("plan", [{"shards": [[0]]}, {"shards": [[0, 7]]}, {"shards": [["0"]]}, {"shards": 3}])
def test_a_plan_that_is_none_is_refused(own, tmp_path, plan):
    shutil.copytree(own / "sweep", tmp_path / "sweep")
    rewritten(tmp_path / "sweep", **plan)
    with pytest.raises(InputError, match=r"does not say what was swept|does not have the form of a manifest"):
        iclab.open_sweep(tmp_path / "sweep")


# Text that would be more than text


def test_a_comparison_leaves_the_terminal_as_it_is():
    from rich.console import Console

    from iclab.report.comparison import Comparison, Difference, Side, print_comparison

    side, wild = Side("a\x1b[2J", {}, []), Difference("\x1b[31m[/]", "\x9b", "\u202e", "[bold]")
    out = Console(file=io.StringIO(), width=200)
    print_comparison(out, Comparison(side, side, (wild,), (), (wild,), (), ("\x1b",), (), 0, 0), {})
    assert not set(out.file.getvalue()) & set("\x1b\x9b\u202e")


def test_control_characters_of_a_file_do_not_reach_the_terminal(capsys):
    from iclab.cli.console import plain, print_answers

    assert plain("a\x1b[2Jb\x9bc\u202e") == "a�[2Jb�c�"
    entry = {"id": "p/\x1b[31ms", "words": "holds\x1b]0;x\x07", "answer": "holds", "beyond": False, "paper": "p\x1b"}
    print_answers([entry | {"readings": [{"hypotheses": None}], "also_untrained": [""], "architecture": "\x1b[2J"}])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("latex", [r"x \text{<script>alert(1)</script>}", r"\text{<img src=x onerror=alert(1)>}"])
def test_markup_in_an_equation_is_text(latex):
    found = str(equation(latex))
    assert "<script" not in found and "<img" not in found and found.startswith("<math")


def test_an_equation_that_is_no_latex_is_shown_as_it_is():
    assert str(equation(r"\left(")) == r"<code>\left(</code>"


# No pickles


def test_nothing_unpickles():
    """No module that can execute what it reads is imported, and arrays are always read without pickles."""
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) if node.module}
        assert not imported & {"pickle", "dill", "cloudpickle", "shelve", "marshal"}, path
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load"):
                assert "allow_pickle=False" in ast.unparse(node), path

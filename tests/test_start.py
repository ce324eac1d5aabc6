"""A command that trains nothing starts at once: it loads none of the libraries that trainings need."""

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import iclab
from iclab.runs import opened, reproduce, saved, sweep, sweep_results

HEAVY = ("jax", "xarray", "matplotlib", "equinox", "scipy", "sklearn", "numpy", "pandas", "torch")
STARTED = """
import sys
from iclab.cli import main

sys.argv = ["iclab", *sys.argv[1:]]
try:
    main()
finally:
    print("loaded:", *sys.modules, file=sys.stderr)
"""


def start(folder, *arguments):
    """A command in a process of its own: what it prints, and the modules that it has loaded at its end."""
    command = [sys.executable, "-c", STARTED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.rpartition("loaded:")[2].split()


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--help"], "reproduce"),
        (["list", "--help"], "--experiments"),
        (["reproduce", "--help"], "--profile"),
        (["--version"], f"iclab {iclab.__version__}\n"),
        (["list", "mamba-outliers/fig1a"], "mamba-outliers/fig1a[exact,kappa=10]"),
        (["new", "claim", "my_idea"], "iclab check my_idea.py"),
    ],
    ids=" ".join,
)
def test_it_starts_without_what_trainings_need(arguments, printed, tmp_path):
    out, loaded = start(tmp_path, *arguments)
    assert printed in out
    assert "iclab.cli" in loaded and not set(HEAVY) & set(loaded)


def test_papers_of_packages_are_imported_once_for_the_list(tmp_path):
    """The second time, `iclab list` reads what the first has kept."""
    from iclab.contents import imported

    first, _ = start(tmp_path, "list")
    second, loaded = start(tmp_path, "list")
    assert second == first and not set(HEAVY) & set(loaded)
    assert all(paper["id"] in first for paper in imported())


def test_another_source_of_a_package_is_another_list(monkeypatch, tmp_path):
    from iclab import contents

    source = tmp_path / "paper.py"
    monkeypatch.setattr(contents, "_sources", lambda package: [source])
    names = []
    for text in ("one", "two", "one"):
        source.write_text(text)
        names.append(contents._digest(entry_points(group="iclab")))
    assert names[0] == names[2] != names[1]


def test_what_the_package_exports_is_there_when_asked_for():
    assert iclab.reproduce is reproduce.reproduce
    assert iclab.Run is opened.Run and iclab.open_run is opened.open_run and iclab.load_model is saved.load_model
    assert iclab.sweep is sweep.sweep
    assert iclab.open_sweep is sweep_results.open_sweep and iclab.Sweep is sweep_results.Sweep
    assert set(iclab.__all__) <= set(dir(iclab))
    with pytest.raises(AttributeError, match="has no attribute 'reproduced'"):
        _ = iclab.reproduced


def test_the_list_of_statements_is_that_of_the_papers():
    """`iclab list` reads a file; `python -m iclab.contents` writes it."""
    from iclab.contents import collected, contents

    assert contents() == json.loads(json.dumps(collected()))


def test_the_list_has_a_line_per_statement_and_fits_a_terminal(command):
    status, out, _ = command("list")
    lines = out.splitlines()
    assert status == 0 and len(lines) < 200 and max(map(len, lines)) <= 80
    assert sum("  thm" in line or "  fig" in line for line in lines) > 40


def test_a_reader_that_stops_reading_is_no_error():
    """As in `iclab reproduce --help | head -1`."""
    code = "import os, sys; os.close(0); read, write = os.pipe(); os.close(read); os.dup2(write, 1); " + STARTED
    done = subprocess.run([sys.executable, "-c", code, "reproduce", "--help"], capture_output=True, text=True)
    assert done.returncode != 0 and "error" not in done.stderr.partition("loaded:")[0].lower(), done.stderr

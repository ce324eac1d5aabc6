"""What a file's results depend on: a corrected statement keeps them, anything that could change a number does not."""

import pytest

import broken
import iclab
from iclab.authoring.dependence import computing_part
from iclab.errors import InputError

WHOLE = computing_part(broken.SOUND)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("below(1.0)", "below(2.0)"),
        ("The output is small.", "The output stays small."),
        ('"""A sound file."""', '"""Another title."""'),
        ("settings = Settings()", "settings = Settings()  # as in Section 5"),
        ("statements = [", 'title = "x"\nfigures = {"a": lambda r, s: None}\nstatements = ['),
        ("small = Part(", "limit = 3\nsmall = Part("),
    ],
)
def test_what_only_judges_or_draws_does_not_count(old, new):
    assert broken.SOUND.count(old) == 1 and computing_part(broken.SOUND.replace(old, new)) == WHOLE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("noise: float = 0.1\n    steps", "noise: float = 0.2\n    steps"),
        ("Training(0.01, batch=8)", "Training(0.02, batch=8)"),
        ("scale: float = 0.1", "scale: float = 0.2"),
        ("loss = Loss(", "jax.config.update('jax_enable_x64', False)\nloss = Loss("),
        ("loss = Loss(", "Settings.noise = 3\nloss = Loss("),
        ("statements = [", "statements = eval('[]') or ["),
    ],
)
def test_what_may_change_a_number_counts(old, new):
    assert broken.SOUND.count(old) == 1 and computing_part(broken.SOUND.replace(old, new)) != WHOLE


def test_what_is_left_is_a_file_that_runs():
    found = {}
    exec(WHOLE, found)
    assert {"settings", "experiment", "World", "probe", "loss"} <= set(found) and "statements" not in found


def test_a_corrected_statement_keeps_the_results_and_another_experiment_does_not(tmp_path):
    path, out = tmp_path / "mine.py", tmp_path / "run"
    path.write_text(broken.SOUND)
    first = iclab.reproduce(str(path), seeds=2, out=out)
    results = {name.name: name.stat().st_mtime_ns for name in (out / "results").rglob("*.nc")}
    path.write_text(broken.SOUND.replace("below(1.0)", "below(-1000.0)").replace('"small"', '"tiny"'))
    second = iclab.reproduce(str(path), seeds=2, out=out)
    assert [run.statements[0]["id"] for run in (first, second)] == ["mine/small", "mine/tiny"]
    assert second.statements[0]["answer"] != "holds"
    assert {name.name: name.stat().st_mtime_ns for name in (out / "results").rglob("*.nc")} == results
    path.write_text(broken.SOUND.replace("Training(0.01", "Training(0.02"))
    with pytest.raises(InputError, match=r"has changed since the run .* results depend on the change"):
        iclab.reproduce(str(path), seeds=2, out=out)

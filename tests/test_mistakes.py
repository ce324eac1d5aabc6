"""Mistakes are answered with one sentence that says where and what, whoever makes them; never with a traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

import broken
import mistakes


def refused(command, *arguments):
    """The sentence that answers a command; below it at most lines of the user's own file."""
    status, out, err = command(*arguments)
    assert status == 2, (status, out, err)
    first, *rest = err.splitlines()
    assert first.startswith("iclab: ") and "Traceback" not in err
    assert all(line.startswith(" ") for line in rest) and "iclab/" not in "".join(rest)
    return first


@pytest.mark.parametrize(("old", "new", "sentence"), mistakes.FILES, ids=lambda part: part[:40])
def test_what_is_wrong_with_a_file_is_said_in_one_sentence(old, new, sentence, tmp_path, monkeypatch, command):
    assert broken.SOUND.count(old) == 1
    (tmp_path / "wrong.py").write_text(broken.SOUND.replace(old, new))
    monkeypatch.chdir(tmp_path)
    said = refused(command, "reproduce", "wrong.py", "--seeds", "2", "--out", "run")
    assert sentence in said and "wrong" in said
    assert not (tmp_path / "run" / "claims.json").exists()


@pytest.mark.parametrize(("whose", "field", "value", "sentence"), mistakes.TYPES)
def test_a_part_of_another_type_is_refused(whose, field, value, sentence, tmp_path, monkeypatch, command):
    (tmp_path / "wrong.py").write_text(f"{broken.SOUND}\nobject.__setattr__({whose}, {field!r}, {value})\n")
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(command, "reproduce", "wrong.py", "--seeds", "2", "--out", "run")


@pytest.mark.parametrize("drawn", ["None", "1 / 0", "3"])
def test_a_figure_that_is_none_is_named(drawn, tmp_path, monkeypatch, command):
    text = broken.SOUND.replace("statements = [", f'figures = {{"drawn": lambda r, s: {drawn}}}\nstatements = [')
    text = text.replace("(small,)", '(small,), figure="drawn"')
    (tmp_path / "wrong.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert "'drawn' of figures" in refused(command, "reproduce", "wrong.py", "--seeds", "2", "--out", "run")


def test_lines_of_ones_own_file_stand_below_the_sentence(tmp_path, monkeypatch, command):
    (tmp_path / "wrong.py").write_text(broken.SOUND.replace(mistakes.EXPERIMENT, f"{mistakes.EXPERIMENT}\n    2 / 0"))
    monkeypatch.chdir(tmp_path)
    _, _, err = command("reproduce", "wrong.py", "--seeds", "2", "--out", "run")
    assert 'File "wrong.py", line' in err and "    2 / 0" in err


def test_debug_shows_all(tmp_path, monkeypatch):
    from iclab import cli
    from iclab.errors import InputError

    (tmp_path / "wrong.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "argv", ["iclab", "list", str(tmp_path / "wrong.py"), "--debug"])
    with pytest.raises(InputError) as error:
        cli.main()
    assert isinstance(error.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(("arguments", "sentence"), mistakes.COMMANDS, ids=lambda part: str(part)[:60])
def test_a_bad_command_line_is_answered_in_one_sentence(arguments, sentence, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(command, *arguments)
    assert not list(tmp_path.iterdir())


ENDLESS = """
import threading, time
from iclab.cli import interrupts
interrupts.PATIENCE = 1.0
interrupts.watch_for_interrupts()
import jax
loop = jax.jit(lambda x: jax.lax.while_loop(lambda y: y < 1, lambda y: y * 0.5, x))
print("going", flush=True)
jax.block_until_ready(loop(0.5))
"""


def test_ctrl_c_ends_an_endless_compiled_loop():
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "going\n"
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 or "KeyboardInterrupt" in err

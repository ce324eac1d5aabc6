"""The documentation: all its code runs, every block is code or says why not, and every name in a table exists."""

import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
import re
import shlex
import sys
from pathlib import Path

import pytest

import blocks
import iclab
from iclab import authoring, cli
from iclab.cli.parsing import parsed
from iclab.library import select
from iclab.papers import PAPERS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CODED = [page for page in PAGES if any(b.language in blocks.EXECUTED and not b.reason for b in blocks.blocks(page))]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_executed_or_says_why_not(page):
    wrong = blocks.refused(page)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", CODED, ids=name)
def test_the_code_of_a_page_runs(page, tmp_path):
    assert blocks.execute(page, tmp_path, blocks.in_this_process) > 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nimport iclab\n```\n", None),
        ("```bash\nls\n```\n", "'bash' is not executed"),
        ("```\nls\n```\n", "'no language'"),
        ("a\n\n    indented\n", "'indented' is not executed"),
        ("```text\n$ iclab list\n```\n", "looks like code"),
        ("<!-- not executed: slow -->\n```console\n$ make\n```\n", "does not say why"),
        ("<!-- not executed: it takes half an hour -->\n```console\n$ make\n```\n", None),
        ("```{code-block} python\nimport iclab\n```\n", "'{code-block}' is not executed"),
    ],
)
def test_a_block_that_would_not_run_is_refused(tmp_path, text, complaint):
    page = tmp_path / "page.md"
    page.write_text(text)
    wrong = blocks.refused(page)
    assert (not wrong) if complaint is None else (len(wrong) == 1 and complaint in wrong[0])


@pytest.mark.parametrize(
    "text",
    [
        "```python\nassert False\n```\n",
        "```pycon\n>>> 1 + 1\n3\n\n```\n",
        "```console\n$ exit 3\n```\n",
        "```console\n$ echo one\ntwo\n```\n",
    ],
)
def test_a_block_that_fails_fails(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError):
        blocks.execute(page, tmp_path, blocks.in_this_process)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\n...\nb", "a\nb", True),
        ("a\n...\nb", "a\nx\ny\nb", True),
        ("...\nb", "b", True),
        ("a 1.5 ...", "a 1.5 s", True),
        ("", "anything", True),
        ("took ... s", "took  3 s", True),
        ("a\n...\nb", "a\nx", False),
        ("a b", "a c b", False),
        ("a.b", "axb", False),
    ],
)
def test_what_was_printed_is_compared_with_room_for_anything(expected, printed, same):
    assert blocks.fits(expected, printed) is same


def written_commands():
    """Every command that stands in a text or a table, `iclab ...`, with its page."""
    for page in PAGES:
        for command in re.findall(r"`(iclab [^`]+)`", page.read_text()):
            yield pytest.param(command, id=f"{name(page)}: {command}")


@pytest.mark.parametrize("command", list(written_commands()))
def test_commands_in_the_text_have_these_options(command):
    words = command.split()[1:]
    assert words[0] in cli.COMMANDS
    parameters = inspect.signature(cli.COMMANDS[words[0]]).parameters
    options = {"--set": "changes", "--format": "kind"}
    for option in (word for word in words if word.startswith("--")):
        known = options.get(option, option[2:].replace("-", "_")) in parameters
        assert known, f"{option} is no option of iclab {words[0]}"


def modules():
    found = [iclab.__name__, *(m.name for m in pkgutil.walk_packages(iclab.__path__, "iclab."))]
    return [importlib.import_module(module) for module in found if not module.endswith("cli")]


def resolves(code, paper):
    """`Settings.steps` of this paper, `Symbols.x` of its theorems, `Class.field` of any module, or a dotted path."""
    owner, _, rest = code.rpartition(".")
    if owner.startswith("iclab."):
        module, _, last = owner.rpartition(".")
        for place, names in ((owner, [rest]), (module, [last, rest])):
            try:
                found = importlib.import_module(place)
            except ModuleNotFoundError:
                continue
            for part in names:
                found = getattr(found, part)
            return True
    folder = paper.replace("-", "_")
    if owner in ("Settings", "Symbols"):
        place = f"iclab.papers.{folder}.settings" if owner == "Settings" else f"iclab.papers.{folder}.theory"
        owners = [getattr(importlib.import_module(place), owner)]
    else:
        owners = [getattr(module, owner) for module in modules() if hasattr(module, owner)]
    fields = [field.name for o in owners if dataclasses.is_dataclass(o) for field in dataclasses.fields(o)]
    return rest in fields or any(hasattr(o, rest) for o in owners)


@pytest.mark.parametrize("paper", [paper.id for paper in PAPERS.values() if paper.unit == "seed"])  # with letters
def test_every_name_in_a_table_of_letters_exists(paper):
    text = (ROOT / "docs" / "papers" / f"{paper}.md").read_text()
    table = text.split("## Letters")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "| letter |" not in line]
    assert len(rows) > 10
    for row in rows:
        codes = re.findall(r"`([\w.]+)`", row.split(" | ")[1])
        assert codes, row
        for code in codes:
            assert resolves(code, paper), f"{code} does not exist"


def test_the_reference_has_every_module_a_reader_may_import():
    texts = [page.read_text() for page in (ROOT / "docs" / "api").glob("*.md")]
    shown = {word for text in texts for word in re.findall(r"module (iclab\S*)", text)}
    inside = ("report", "cli", "runs", "papers", "probes", "conformance", "skeletons", "bench", "language.study")
    inner = tuple(f"iclab.{part}" for part in inside)
    wanted = {module.__name__ for module in modules() if not module.__name__.startswith(inner) and module is not iclab}
    wanted -= {"iclab.__main__"}
    wanted |= {
        f"iclab.{name}"
        for name in ("runs.reproduce", "runs.opened", "runs.saved", "runs.sweep", "runs.sweep_results", "papers")
    }
    wanted |= {module.__name__ for module in modules() if module.__name__.startswith("iclab.probes.")}
    assert wanted <= shown


def test_the_reference_has_every_name_that_authoring_exports():
    place = ROOT / "docs" / "extensions" / "api_reference.py"
    spec = importlib.util.spec_from_file_location("reference_of_the_site", place)
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    text = site.module("iclab.authoring") + site.exports("iclab.authoring")
    shown = re.findall(r"\{py:(?:function|class|data)\} (\w+)", text)
    assert sorted(shown) == sorted(authoring.__all__)


def test_every_command_in_the_text_of_the_readme_is_understood(monkeypatch):
    """Those in blocks are executed or say why not. These train for minutes: their options and ids are read instead."""
    found = re.findall(r"`(iclab [^`]+)`", re.sub(r"^```.*?^```$", "", README.read_text(), flags=re.M | re.S))
    assert len(found) >= 10
    for command in found:
        monkeypatch.setattr(sys, "argv", shlex.split(" ".join(command.split())))
        ids = parsed(cli.COMMANDS, "").keywords.get("ids", ())
        assert not ids or select(ids), command

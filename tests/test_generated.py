"""What README and documentation take from the code and from the answers on record is what these say now."""

import re
import sys
from pathlib import Path

import pytest

from iclab.library import default_settings
from iclab.papers import PAPERS
from iclab.records import recorded
from iclab.report.sentences import sentence
from iclab.tallies import tally

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs" / "extensions"))  # where Sphinx finds them too

import generated  # noqa: E402
import paper_parts  # noqa: E402


@pytest.mark.parametrize("page", generated.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_generated_text_is_up_to_date(page):
    text = page.read_text()
    if generated.renewed(text) != text:
        pytest.fail(f"{page.relative_to(ROOT)} is out of date. `make docs-write` renews it.")


def test_every_mark_has_its_end():
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        whole = len(generated.PART.findall(text))
        assert text.count("<!-- generated: ") == text.count(generated.END) == whole, page.name


@pytest.mark.parametrize("paper", [name for name in PAPERS if name != "language-model"])
def test_the_table_of_the_readme_agrees_with_the_records(paper):
    """Read from the page itself, so that the writer of the table is tested too."""
    (row,) = re.findall(rf"^\| \[`{paper}`\].*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    own = [entry for entry in recorded(paper) if not entry["beyond"]]
    beyond = [entry for entry in recorded(paper) if entry["beyond"]]
    _, said, tallies, answer, _ = re.split(r" ?(?<!\\)\| ?", row)
    missing = len(PAPERS[paper].statements(default_settings(PAPERS[paper]))) - len(own) - len(beyond)
    unknown = f"<br>not run at full size yet: {missing}" if missing else ""
    assert tallies == f"{tally(own)}<br>beyond the paper: {tally(beyond)}{unknown}"
    assert answer.replace("\\", "") == sentence(own, PAPERS[paper].facets)
    assert PAPERS[paper].citation in said


@pytest.mark.parametrize("paper", [name for name in PAPERS if name != "language-model"])
def test_the_paper_is_cited_with_its_authors(paper):
    cited = (ROOT / "CITATION.cff").read_text().split("references:")[1].split("  - type: ")[1:]
    (entry,) = [text for text in cited if PAPERS[paper].title in text]
    authors = PAPERS[paper].citation.partition(".")[0].removesuffix(", et al")
    for author in authors.split(", "):
        given, _, family = author.rpartition(" ")
        assert author in entry or f"{{family-names: {family}, given-names: {given}}}" in entry


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("λ_* and W_Q", r"λ\_\* and W_Q"),
        ("`a_*` * 2", r"`a_*` \* 2"),
        ("a <= b <c>", r"a ≤ b \<c>"),
    ],
)
def test_letters_of_papers_are_no_markup(text, shown):
    assert paper_parts.escaped(text) == shown


def test_a_wrapped_line_begins_no_list_by_accident():
    lines = paper_parts.wrapped("- " + "word " * 25 + "+ 1. - more `code with spaces` " + "word " * 20, 1)
    assert len(lines) > 1 and lines[0].startswith("  - word") and all(line.startswith("    word") for line in lines[1:])


def test_a_paper_s_page_has_every_setting_with_its_remark():
    rows = paper_parts.settings("nonlinear-icl").splitlines()
    assert "| `gpt2.warmup` | share of the steps | 0.1 | 0.1 |" in rows
    assert "| `gpt2.steps` |  | 700 | 3000 |" in rows and any(row.startswith("| `gpt2_task_shifts` | ") for row in rows)

"""The referee's reports: every sentence is carried by the answers, and those in the documentation are up to date."""

import copy
import dataclasses
import re
from pathlib import Path

import pytest

from iclab.library import select
from iclab.papers import PAPERS
from iclab.records import recorded, recorded_papers
from iclab.report.referee import report
from iclab.report.testimony import FAILS
from iclab.report.writing import latex, markdown
from iclab.runs.refereeing import on_the_record

DOCS = Path(__file__).parents[1] / "docs" / "referee"
PAPER = "feature-selection"


@pytest.fixture(scope="module", params=recorded_papers())
def given(request):
    return on_the_record(request.param)[0]


def test_the_report_in_the_documentation_is_that_of_the_record(given):
    """`iclab referee recorded --out docs/referee` writes them again."""
    assert (DOCS / f"{given.paper.id}.md").read_text() == markdown(report(given))


def test_every_statement_stands_in_the_table_with_its_answer(given):
    found = report(given)
    assert [row.answer for row in found.rows] == [entry["answer"] for entry in given.entries]
    table = markdown(found).split("## Statement by statement")[1].split("\n## ")[0]
    assert len(re.findall(r"^\| .* \| \*\*[a-z ]+\*\* \| .* \|$", table, re.MULTILINE)) == sum(
        not entry["beyond"] for entry in given.entries
    )


def test_counter_evidence_is_a_part_that_fails_where_all_hypotheses_are_met(given):
    own = {entry["id"]: entry for entry in given.entries if not entry["beyond"]}
    for one in report(given).evidence:
        wanted = re.fullmatch(r"iclab reproduce '?([^'\[ ]+)(?:\[(.*)\])?'? --profile paper --seeds \d+", one.command)
        entry = own[wanted[1]]
        (reading,) = (r for r in entry["readings"] if r["name"] == (wanted[2] or ""))
        met, _, of = reading["hypotheses"].partition(" of ")
        assert met == of
        part = one.sentences[0].lower()
        assert any(part.startswith(p["name"].lower()) and p["outcome"] in FAILS for p in reading["parts"])
        asked = select([f"{wanted[1]}[{wanted[2] or ''}]"], {given.paper.id: given.settings})
        assert asked[0].words.startswith(one.words.rstrip("… "))


def test_a_paper_in_which_nothing_fails_has_no_counter_evidence(given):
    entries = copy.deepcopy(given.entries)
    for part in (part for entry in entries for reading in entry["readings"] for part in reading["parts"]):
        part["outcome"] = "holds"
    found = report(dataclasses.replace(given, entries=entries))
    assert found.evidence == ()
    assert "No part of a statement fails where the hypotheses are met." in markdown(found)


def test_it_has_two_or_three_pages(given):
    assert 1200 < len(markdown(report(given)).split()) < 3000


def test_latex_is_ascii_and_balanced(given):
    text = latex(report(given))
    assert text.isascii() and not re.search(r"\[[a-z ]*(?:letter|sign|unknown)[a-z ]*\]", text)
    plain = re.sub(r"\\[{}$&%#_]", "", text)
    assert plain.count("{") == plain.count("}") and plain.count("$") % 2 == 0
    for line in plain.splitlines():
        assert line.count("$") % 2 == 0 and not re.search(r"(?<!\\)%", line)
        if line.endswith("\\\\"):
            assert line.count("&") == 3
    begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end"))
    assert sorted(begun) == sorted(ended)


def test_what_is_chosen_by_us_and_afterwards_is_said(given):
    own = [entry["id"] for entry in given.entries if not entry["beyond"]]
    statements = {one.id: one for one in given.paper.statements(given.settings)}
    later = [name for name in own if statements[name].afterwards]
    text = markdown(report(given))
    assert f"In {len(later)} of {len(own)} statements (marked †)" in text and text.count(" † |") == len(later)


def test_settings_are_those_of_the_profile_that_was_asked():
    """GPT-2 is trained longer and with more seeds in the paper profile than in the quick one."""
    (given,) = on_the_record("chain-of-thought")
    text = markdown(report(given))
    assert f"of {given.settings.gpt2.steps} steps" in text and "of 400 steps" not in text


def test_markdown_and_latex_show_text_as_text():
    (given,) = on_the_record(PAPER)
    given = dataclasses.replace(given, origin="<script> | $x$ `y` \\input{/etc/passwd} & 5 % \x1b[2J")
    assert "&lt;script> \\| \\$x\\$ \\`y\\` \\\\input" in markdown(report(given))
    assert r"$<$script$>$ $|$ \$x\$ `y` \textbackslash{}input\{/etc/passwd\} \& 5 \%" in latex(report(given))
    assert "\x1b" not in markdown(report(given)) + latex(report(given))


def test_the_command_writes_where_it_says(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = command("referee", "recorded", "--paper", PAPER, "--format", "tex")
    assert status == 0 and out == f"report: referee/{PAPER}.tex\n"
    assert (tmp_path / "referee" / f"{PAPER}.tex").read_text() == latex(report(on_the_record(PAPER)[0]))
    status, out, _ = command("referee", "recorded", "--out", "all")
    assert status == 0 and len(out.splitlines()) == len(recorded_papers()) == len(list((tmp_path / "all").iterdir()))


def test_the_records_are_of_papers_that_are_built_in():
    for name in recorded_papers():
        known = {statement.id for statement in PAPERS[name].statements(PAPERS[name].settings["paper"])}
        assert {entry["id"] for entry in recorded(name)} <= known

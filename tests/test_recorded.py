"""The recorded runs: what the quick profile answers is what the paper profile answered on a GPU, or is open."""

import importlib.util
from pathlib import Path

import pytest

from iclab.papers import PAPERS

PATH = Path(__file__).parents[1] / "benchmarks" / "recorded.py"
spec = importlib.util.spec_from_file_location("recorded", PATH)
records = importlib.util.module_from_spec(spec)
spec.loader.exec_module(records)


def asked(paper, profile):
    """Statements, readings and parts with their rules, as they are now."""
    found = PAPERS[paper]
    return {
        statement.id: [
            (reading.name, [(part.name, str(part.rule)) for part in statement.asked(reading)])
            for reading in statement.readings
        ]
        for statement in found.statements(found.settings[profile])
    }


def answered(entries):
    """The same of a record."""
    return {
        name: [(r["name"], [(part["name"], part["rule"]) for part in r["parts"]]) for r in entry["readings"]]
        for name, entry in entries.items()
    }


@pytest.mark.parametrize("profile", ["quick", "paper"])
@pytest.mark.parametrize("paper", records.papers())
def test_a_record_answers_the_statements_as_they_are_now(paper, profile):
    now = asked(paper, profile)
    for name, found in answered(records.recorded(paper)[profile]).items():
        assert found == now[name], name


@pytest.mark.parametrize("paper", records.papers())
def test_what_quick_decides_is_decided_alike_at_full_size(paper):
    both = records.recorded(paper)
    assert records.disagreements(both["quick"], both["paper"]) == []


def test_a_disagreement_is_found():
    def entry(outcome):
        return {"a": {"readings": [{"name": "", "parts": [{"name": "p", "outcome": outcome, "words": outcome}]}]}}

    assert records.disagreements(entry("holds"), entry("fails")) == ["a, p: holds; at full size fails"]
    assert records.disagreements(entry("holds"), entry("open"))
    assert not records.disagreements(entry("open"), entry("fails")) and records.left_open(entry("open"), entry("fails"))
    assert not records.disagreements(entry("fails"), entry("fails"))


def test_the_table_is_that_of_the_records():
    assert (PATH.parent / "answers.md").read_text() == records.side_by_side()


@pytest.mark.parametrize("paper", records.papers())
@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_what_holds_was_learned_or_is_marked_as_about_the_architecture(paper, profile):
    """A statement that untrained models pass in every reading says nothing about training, and says so."""
    statements = {one.id: one for one in PAPERS[paper].statements(PAPERS[paper].settings[profile])}
    for name, entry in records.recorded(paper)[profile].items():
        passed = entry["answer"] in ("holds", "holds if") and len(entry["also_untrained"]) == len(entry["readings"])
        assert not passed or statements[name].architecture, entry["words"]

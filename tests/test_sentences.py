"""What a page says of answers in words: a sentence per paper, a line per statement, the paper's own words beside it."""

import pytest

from iclab.papers import PAPERS
from iclab.report.sentences import briefly, condition, sentence


def reading(name, answer, **outcomes):
    parts = [{"name": part, "outcome": outcome} for part, outcome in (outcomes or {"one": answer}).items()]
    return {"name": name, "answer": answer, "parts": parts}


def entry(source, answer, *readings, words=""):
    return {"source": source, "answer": answer, "words": words, "readings": list(readings) or [reading("", answer)]}


FACETS = {"kappa=10": "outliers of size 10", "seen": "outliers seen in training"}
THEOREM_2 = entry(
    "Theorem 2", "holds if",
    reading("18tasks,kappa=2", "in part"), reading("18tasks,kappa=10", "holds"), reading("cycle,kappa=2", "open"),
    reading("cycle,kappa=10", "holds"), reading("seen,kappa=2", "holds"),
)  # fmt: skip


def test_a_paper_is_told_in_one_sentence():
    found = sentence(
        [THEOREM_2, entry("Theorem 1", "holds"), entry("Theorem 3", "holds"), entry("Figure 3(A)", "in part"),
         entry("Figure 3(B)", "in part"), entry("Figure 5", "fails"), entry("Lemma 1", "open")], FACETS
    )  # fmt: skip
    assert found == (
        "Theorems 1 and 3 hold; Theorem 2 needs outliers of size 10 or outliers seen in training; Figure 3 holds in part; "
        "Figure 5 fails; the one other statement does not."
    )


def test_a_theorem_that_lacks_one_part_names_it():
    statement = entry("Theorem 1", "in part", reading("", "in part", loss="holds", rate="fails"))
    assert sentence([statement], {}) == "Theorem 1 holds but for “rate”."


def test_a_condition_is_what_the_readings_that_hold_have_in_common_and_the_others_lack():
    assert condition(THEOREM_2, {}) == "need{} kappa=10 or seen"
    few = entry("Theorem 4", "holds if", reading("", "holds"), reading("wide", "holds"), reading("edge", "fails"))
    assert condition(few, {"edge": "the edge"}) == "hold{} except with the edge"
    few["readings"][2]["answer"] = "open"
    assert condition(few, {"edge": "the edge"}) == "hold{}, open with the edge"
    odd = entry("T", "holds if", *(reading(f"{a},{b},{c}", "holds" if (a + b + c) % 2 else "fails")
                                   for a in (0, 1) for b in (2, 3) for c in (4, 5)))  # fmt: skip
    assert condition(odd, {}) == "" and briefly(odd, {}) == "in 4 of 8 readings"


def test_what_was_not_asked_is_not_answered():
    assert sentence([entry("Theorem 1", "not asked")], {}) == "Numbers only: this profile answers nothing."


@pytest.mark.parametrize(
    "paper", [paper for paper in PAPERS.values() if paper.unit == "seed"], ids=lambda paper: paper.id
)
def test_what_a_paper_prints_belongs_to_its_statements_and_their_parts(paper):
    own = {statement.name: statement for statement in paper.statements(paper.settings["quick"])}
    told = {name: statement.printed for name, statement in own.items() if statement.printed}
    assert len(told) > 2
    for name, printed in told.items():
        assert printed.words and printed.where and set(printed.values) <= {part.name for part in own[name].parts}
    facets = {facet for one in own.values() for r in one.readings for facet in r.name.split(",")}
    assert set(paper.facets) <= facets

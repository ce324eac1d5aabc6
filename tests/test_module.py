"""A user's file is read as a built-in paper is, and what is wrong in it is said before anything is trained."""

import dataclasses
import types

import numpy as np
import pytest
import xarray as xr

import broken
import iclab
from iclab.authoring.module import paper_of
from iclab.authoring.sources import user_paper
from iclab.engine import ComputingEngine
from iclab.errors import InputError
from iclab.expressions import apply, measured
from iclab.kinds import below
from iclab.library import default_settings, select
from iclab.papers import PAPERS, PLACES
from iclab.planning import PlanningEngine
from iclab.runs.judging import dry_run
from iclab.scaling import Scaling
from iclab.statements import STATED, Part, Reading, Statement


@dataclasses.dataclass(frozen=True)
class Settings:
    width: int = 2
    noise: float = 0.1


def runs(lab):
    """Numbers that depend on nothing but the seed."""
    assert isinstance(lab._engine, PlanningEngine), "nothing may be trained here"
    seeds = np.array(lab.seeds, float)
    values = np.stack([seeds + 1, seeds + lab.settings.width])
    return xr.Dataset(
        {"x": (("domain", "seed"), values), "printed_x": (("domain", "seed"), 2 * values)},
        {"domain": ["in", "out"], "seed": list(lab.seeds)},
    )


X = measured("runs", "x")
INSIDE = X.sel(domain="in")
PART = Part("x inside", INSIDE, below(9.0))
OTHER = Part("x outside", X.sel(domain="out"), below(9.0))


def stated(*parts, name="thm1", **more):
    return Statement(name, "Theorem 1", "x is small.", parts or (PART,), **more)


def paper(*statements, **more):
    module = types.ModuleType("note", "A small note.\n\nAnd more about it.")
    vars(module).update({"settings": Settings(), "experiments": {"runs": runs}, "statements": list(statements)} | more)
    return paper_of("note", "note.py", module)


# What is read


def test_a_users_file_is_read_as_a_built_in_paper_is():
    """A file that has what the folder has is the same paper under another name."""
    for name, built_in in PAPERS.items():
        text = f"import {PLACES[name]} as it\nglobals().update((k, v) for k, v in vars(it).items() if k[0] != '_')\n"
        own = user_paper("mine", text)
        settings = default_settings(built_in)
        here, there = own.statements(settings), built_in.statements(settings)
        assert [s.id.partition("/")[2] for s in here] == [s.name for s in there]
        assert [(s.words, s.rule, s.needs()) for s in here] == [(s.words, s.rule, s.needs()) for s in there]
        assert own.id == "mine" and own.unit == built_in.unit and own.settings == built_in.settings
        assert set(own.experiments) == set(built_in.experiments) and own.unstated == built_in.unstated


def test_a_file_needs_settings_an_experiment_and_a_docstring():
    note = paper(stated(), dataclasses.replace(stated(name="own"), source=""))
    assert note.title == "A small note" and note.citation == "From note.py." and note.unit == "seed"
    first, second = note.statements(Settings())
    assert (first.id, first.paper, first.name, first.source) == ("note/thm1", "note", "thm1", "Theorem 1")
    assert second.source == "own statement"
    assert set(note.settings) == {"smoke", "quick", "paper"}


def test_rules_may_follow_from_the_settings():
    note = paper(statements=lambda s: [stated(Part("x", INSIDE, below(float(s.width))))])
    rules = [note.statements(Settings(width)) for width in (3, 30)]
    assert [found[0].parts[0].rule.high for found in rules] == [3.0, 30.0]


def test_one_reading_of_a_statement_can_be_asked():
    note = paper(
        stated(X_BY_DOMAIN, readings=(Reading("in", at={"domain": "in"}), Reading("out", at={"domain": "out"})))
    )
    shelf = {"note": note}
    (one,) = select(["note/thm1[out]"], papers=shelf)
    assert [reading.name for reading in one.readings] == ["out"]
    (both,) = select(["note/thm1"], papers=shelf)
    assert len(both.readings) == 2
    with pytest.raises(InputError, match=r"note/thm1 has no reading 'outt'. Did you mean 'out'\?"):
        select(["note/thm1[outt]"], papers=shelf)


def test_a_prefix_names_all_its_panels_and_does_not_end_inside_a_number():
    names = ("fig1", "fig1a", "fig1-hinge", "fig10", "thm1")
    shelf = {"note": paper(*(stated(name=name) for name in names))}
    chosen = lambda *ids: [statement.name for statement in select(ids, papers=shelf)]  # noqa: E731
    assert chosen("note/fig1") == ["fig1"]
    assert chosen("note/fig") == ["fig1", "fig1a", "fig1-hinge", "fig10"]
    assert chosen("note/fig1a", "note/thm") == ["fig1a", "thm1"]
    assert chosen() == chosen("note") == list(names)
    with pytest.raises(InputError, match=r"no paper or statement is called 'note/fgi1'. Did you mean 'note/fig1'\?"):
        chosen("note/fgi1")


def test_only_keeps_a_group():
    figure = dataclasses.replace(stated(name="fig1"), source="Figure 1")
    shelf = {"note": paper(stated(), figure, stated(name="more", beyond=True))}
    only = lambda group: [statement.name for statement in select((), None, group, shelf)]  # noqa: E731
    assert only("theorems") == ["thm1"] and only("figures") == ["fig1"] and only("beyond") == ["more"]
    assert only("papers") == ["thm1", "fig1"]
    with pytest.raises(
        InputError, match=r"--only figure: there is no such group of statements\. Did you mean 'figures'"
    ):
        only("figure")
    with pytest.raises(InputError, match=r"--only beyond: no statement of note/thm1 is in this group"):
        select(["note/thm1"], None, "beyond", shelf)


# What is refused when the file is read

X_BY_DOMAIN = Part("x", X, below(9.0))


@pytest.mark.parametrize(
    ("statements", "sentence"),
    [
        ([dataclasses.replace(stated(), parts=())], "the statement thm1 has no parts; give at least one Part."),
        ([stated(), stated()], "two statements have the same name."),
        ([stated(name="two words")], "'two words' cannot be the name of a statement; use one word."),
        ([stated(name="")], "'' cannot be the name of a statement; use a word of letters, digits, - and _."),
        ([stated(PART, PART)], "two parts of thm1 have the same name."),
        ([stated(Part("x", measured("rums", "x"), below(1)))], "thm1 needs 'rums', which is not an experiment. Did you mean 'runs'?"),
        ([stated(dataclasses.replace(PART, found=measured("no", "x")))], "thm1 needs 'no', which is not an experiment."),
        ([stated(readings=())], "two readings of thm1 have the same name, or it has none."),
        ([stated(readings=(STATED, Reading("")))], "two readings of thm1 have the same name, or it has none."),
        ([stated(readings=(Reading("a b"),))], "'a b' cannot be the name of a reading of thm1; use one word."),
        (
            [stated(readings=(Reading("other", experiments={"runs": "rums"}),))],
            "thm1 needs 'rums', which is not an experiment. Did you mean 'runs'?",
        ),
        (
            [stated(PART, dataclasses.replace(OTHER, readings=("prnited",)), readings=(STATED, Reading("printed")))],
            "the part 'x outside' of thm1 names the readings prnited, but thm1 has none of them. "
            "Did you mean 'printed'?",
        ),
        (
            [stated(dataclasses.replace(PART, readings=("",)), readings=(STATED, Reading("printed")))],
            "no part of thm1 belongs to the reading 'printed'.",
        ),
        ([3], "`statements` must be a list of statements, or a function of the settings that returns one."),
    ],
)  # fmt: skip
def test_a_statement_that_cannot_be_asked_is_refused_when_it_is_read(statements, sentence):
    with pytest.raises(InputError) as refused:
        paper(*statements).statements(Settings())
    assert str(refused.value).startswith(f"note.py: {sentence}") and "\n" not in str(refused.value)


# What is refused on zeros of the right shapes


def reading(**more):
    return stated(readings=(STATED, Reading("other", **more)))


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (stated(Part("x", measured("runs", "y"), below(1))), "note/thm1, 'x': the experiment 'runs' has no 'y'."),
        (stated(Part("x", X.sel(domain="inn"), below(1))), "note/thm1, 'x': x has no domain = 'inn'; it has in, out."),
        (
            stated(Part("x", X.sel(domian="in"), below(1))),
            "note/thm1, 'x': x has no dimension 'domian'. Did you mean 'domain'?",
        ),
        (
            stated(X_BY_DOMAIN),
            "note/thm1, 'x': the statistic also has the dimensions domain (2); choose with .sel(...)",
        ),
        (
            stated(Part("x", INSIDE, Scaling("size", 1.0, "s"))),
            "note/thm1, 'x': the statistic has no dimension 'size'.",
        ),
        (stated(Part("x", apply(len, INSIDE), below(1))), "note/thm1, 'x': the statistic must be an xarray DataArray"),
        (stated(Part("x", apply(lambda x: 1 // 0, X), below(1))), "note/thm1, 'x': ZeroDivisionError:"),
        (stated(dataclasses.replace(PART, found=X.sel(domain="no"))), "note/thm1, 'x inside': x has no domain = 'no'"),
        (
            reading(at={"domian": "in"}),
            "note/thm1, the reading 'other': no result that it reads has a dimension 'domian'. Did you mean 'domain'?",
        ),
        (
            stated(X_BY_DOMAIN, readings=(Reading("far", at={"domain": "far"}),)),
            "note/thm1[far], 'x': runs has no domain = 'far'; it has in, out.",
        ),
        (
            reading(variables={"x": "prnited_x"}),
            "note/thm1, the reading 'other': no result that it reads has 'prnited_x'. Did you mean 'printed_x'?",
        ),
        (
            reading(changes={"wdith": 4}),
            "the reading 'other' changes wdith: there is no such setting in note. Did you mean 'width'?",
        ),
        (reading(changes={"width": "wide"}), "--set width=wide: width takes a value like 2."),
        (stated(figure="fig9"), "note/thm1: no figure 'fig9'; the figures are none."),
        (stated(table="rates"), "note/thm1: no table 'rates'; the tables are none."),
        (stated(hypotheses="thm7"), "note/thm1: its hypotheses name the theorem 'thm7', which does not exist."),
    ],
)
def test_a_statement_that_names_what_is_not_there_is_refused_before_anything_is_trained(statement, sentence):
    note = paper(statement)
    with pytest.raises(InputError) as refused:
        dry_run(note, Settings(), note.statements(Settings()))
    assert str(refused.value).startswith(sentence) and "\n" not in str(refused.value)


def test_two_readings_of_one_name_have_the_same_settings():
    wide, wider = (stated(name=f"thm{n}", readings=(Reading("wide", changes={"width": n}),)) for n in (4, 5))
    note = paper(wide, wider)
    with pytest.raises(InputError, match="note/thm5: two readings with different settings are called 'wide'"):
        dry_run(note, Settings(), note.statements(Settings()))


def test_sound_statements_pass_in_every_reading():
    note = paper(
        stated(),
        stated(
            X_BY_DOMAIN,
            name="thm2",
            readings=(
                Reading("in", at={"domain": "in"}),
                Reading("printed", at={"domain": "out"}, variables={"x": "printed_x"}),
                Reading("wide", at={"domain": "out"}, changes={"width": 7}),
            ),
        ),
    )
    dry_run(note, Settings(), note.statements(Settings()))


def test_a_label_that_a_reading_shares_with_other_statements_may_be_idle_in_one():
    """A reading is shared by a paper's statements; it must be read by one of them, not by all."""
    wide = Reading("wide", at={"domain": "out"}, changes={"width": 7})
    idle = stated(Part("mean", apply(lambda x: x, INSIDE), below(9)), name="idle", readings=(STATED,))
    note = paper(stated(X_BY_DOMAIN, readings=(wide,)), idle)
    dry_run(note, Settings(), note.statements(Settings()))


def test_reproduce_trains_nothing_where_a_statement_is_wrong(tmp_path, monkeypatch):
    def train(*arguments, **options):
        raise AssertionError("a training began")

    monkeypatch.setattr(ComputingEngine, "train_all", train)
    (tmp_path / "wrong.py").write_text(broken.SOUND.replace('"output"), below', '"outptu"), below'))
    with pytest.raises(InputError, match=r"wrong/small, 'output': the experiment 'experiment' has no 'outptu'"):
        iclab.reproduce(str(tmp_path / "wrong.py"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    (tmp_path / "sound.py").write_text(broken.SOUND)
    with pytest.raises(InputError, match="a training began"):
        iclab.reproduce(str(tmp_path / "sound.py"), out=tmp_path / "run")


# The built-in papers


@pytest.mark.parametrize("name", PAPERS)
def test_the_statements_of_a_paper_are_whole(name):
    paper = PAPERS[name]
    for settings in paper.settings.values():
        statements = paper.statements(settings)
        assert len({statement.id for statement in statements}) == len(statements) > 0
        for statement in statements:
            assert statement.id == f"{name}/{statement.name}" and statement.source and statement.words.endswith(".")
            assert statement.beyond == statement.source.startswith("Beyond"), statement.id
            assert statement.figure is None or statement.figure in paper.figures, statement.id
            assert statement.table is None or statement.table in paper.tables, statement.id
            assert not statement.hypotheses or paper.theorem(statement.hypotheses, settings), statement.id
            assert all(reading.why for reading in statement.readings if reading.changes), statement.id


@pytest.mark.parametrize("name", PAPERS)
def test_no_rule_of_a_paper_is_one_that_no_model_could_fail(name):
    """Where a statistic has a range by arithmetic, some of it is outside of the rule, and some inside."""
    for statement in PAPERS[name].statements(default_settings(PAPERS[name])):
        for part in statement.parts:
            low, high = part.bounds
            if part.rule.dim is None and np.isfinite([low, high]).any():
                assert not (part.rule.low < low and high < part.rule.high), f"{statement.id}, {part.name}: all agrees"
                assert part.rule.low < high and low < part.rule.high, f"{statement.id}, {part.name}: nothing agrees"

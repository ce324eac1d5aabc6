"""Specification curves: which points are asked, what they say together, and a real one of a file of a user's."""

import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

import iclab
from iclab.errors import InputError
from iclab.papers import PAPERS
from iclab.runs.options import override
from iclab.runs.points import Piece
from iclab.runs.questions import points_of, questions
from iclab.runs.robust_results import recorded
from iclab.settings import value_of
from iclab.specification import BLOCK, DEFAULT, READING, Share, design, edges, influences, smallest_change
from iclab.statistics import wilson
from iclab.unstated import Between, Unstated

SHORTEST = pathlib.Path(__file__).with_name("shortest.py")
# Nothing is learned at a step size of 1e-5; whether that is plausible is what decides.
OPEN = """

unstated = (
    Unstated("rate", (1e-5, 0.02), "η", "common practice"),
    Unstated("noise", Between(0.01, 0.2, log=True), "σ", "common practice"),
    Unstated("unused", Between(0.0, 1.0), "", "nothing reads it"),
)
"""


@dataclasses.dataclass(frozen=True)
class Settings:
    width: int = 8
    rate: float = 0.1
    other: float = 0.1


WIDTH, RATE = Unstated("width", (4, 8, 16), "m"), Unstated("rate", Between(0.01, 1.0, log=True), "η", along=("other",))


@pytest.mark.parametrize("name", [name for name, paper in PAPERS.items() if paper.unit == "seed"])
def test_what_is_declared_is_a_setting_and_our_own_value_is_plausible(name):
    paper = PAPERS[name]
    taken = paper.settings["quick"]
    declared = [one for one in paper.unstated if isinstance(one, Unstated)]
    assert declared and all(one.source for one in declared)
    for one in declared:
        value = value_of(taken, one.setting)
        assert value in one.plausible, one.setting
        assert 0 <= one.share(value) <= 1
        for other in one.others(value):
            accepted = {name: str(other) for name in (one.setting, *one.along)}
            assert value_of(override(taken, accepted), one.setting) == other


def test_a_range_is_even_in_its_own_scale():
    assert [Between(1, 100, log=True).value(share) for share in (0, 0.5, 1)] == [1, 10, 100]
    assert [Between(0, 1).value(share) for share in (0, 0.5, 1)] == [0, 0.5, 1]
    assert Between(1, 100, log=True).share(10) == 0.5
    for low, high, log in ((1, 1, False), (0, 1, True), (0, np.inf, False)):
        with pytest.raises(InputError, match=r"not a range|must be positive"):
            Between(low, high, log)


def test_points_are_our_own_choice_single_changes_and_a_sequence():
    points = design((WIDTH, RATE), Settings(), 16, readings=3)
    assert [point.number for point in points] == list(range(len(points)))
    own, drawn = points[0], [point for point in points if not point.alone]
    assert own.alone == DEFAULT and own.changes == {"width": 8, "rate": 0.1, "other": 0.1}
    single = [point for point in points if point.alone not in ("", DEFAULT)]
    assert [p.alone for p in single] == ["width", "width", "rate", "rate", READING, READING]
    for point in single[:4]:
        changed = {name for name in point.changes if point.changes[name] != own.changes[name]}
        assert changed == ({"width"} if point.alone == "width" else {"rate", "other"})
    assert len(drawn) == 16 and {point.changes["width"] for point in drawn} == {4, 8, 16}
    assert all(0.01 <= point.changes["rate"] == point.changes["other"] <= 1 for point in drawn)
    assert len({point.pick(3) for point in drawn}) == 3 and single[-1].pick(2) is None
    assert points == design((WIDTH, RATE), Settings(), 16, readings=3)


def test_halves_of_a_range_have_as_many_points_each():
    drawn = [point for point in design((RATE,), Settings(), 64) if not point.alone]
    assert abs(sum(point.changes["rate"] < 0.1 for point in drawn) - 32) <= 2


def test_settings_that_need_programs_of_their_own_change_by_blocks():
    drawn = [p for p in design((WIDTH, RATE), Settings(), 32, hard={"width"}) if not p.alone]
    blocks = {point.block: set() for point in drawn}
    for point in drawn:
        blocks[point.block].add(point.changes["width"])
    assert len(blocks) == 32 // BLOCK and all(len(widths) == 1 for widths in blocks.values())
    read = {block: {point.pick(2) for point in drawn if point.block == block} for block in blocks}
    assert all(len(picked) == 2 for picked in read.values())  # readings do not go with the blocks
    assert len({point.changes["rate"] for point in drawn}) > 16


def test_points_that_cannot_be_run_are_replaced_and_none_at_all_is_a_sentence():
    def even(changes):
        if changes["width"] == 4:
            raise InputError("four is too few")

    points = design((WIDTH, RATE), Settings(), 16, check=even)
    assert sum(not point.alone for point in points) == 16 and all(p.changes["width"] != 4 for p in points)

    def never(changes):
        raise InputError("nothing can be run")

    with pytest.raises(InputError, match="only 0 of 256 points can be run: nothing can"):
        design((WIDTH,), Settings(), 16, check=never)
    with pytest.raises(InputError, match="--points is 0; it must be at least 1"):
        design((WIDTH,), Settings(), 0)
    with pytest.raises(InputError, match="there is nothing to vary"):
        design((), Settings(), 8)


def test_points_of_a_block_that_answer_alike_count_as_one():
    held = [True] * 8 + [False] * 8
    alike = Share.of(held, [number // 4 for number in range(16)])
    apart = Share.of(held, list(range(16)))
    assert (apart.low, apart.high) == wilson(0.5, 16) and (alike.low, alike.high) == wilson(0.5, 4)
    assert str(apart) == "50 % [28, 72] of 16 plausible settings"


def test_the_setting_that_decides_is_found_and_others_are_not():
    points = [p for p in design((WIDTH, RATE), Settings(), 64, hard={"width"}) if not p.alone]
    columns = {name: [p.changes[name] for p in points] for name in ("width", "rate")}
    blocks = [p.block for p in points]
    for name, rule in (("rate", lambda p: p.changes["rate"] > 0.1), ("width", lambda p: p.changes["width"] > 4)):
        found = influences(columns, [rule(p) for p in points], blocks)
        assert [one.setting for one in found if one.decides] == [name] and found[0].explained > 0.9
    assert not any(one.decides for one in influences(columns, [True] * 64, blocks))


def test_chance_decides_in_about_one_of_twenty_curves():
    """Also where points of a block answer alike, which would fool an order that mixes blocks."""
    points = [p for p in design((WIDTH, RATE), Settings(), 32, hard={"width"}) if not p.alone]
    columns = {"width": [p.changes["width"] for p in points]}
    random, blocks = np.random.default_rng(0), [p.block for p in points]
    answers = [random.random(32 // BLOCK) < 0.5 for _ in range(60)]
    found = [influences(columns, [by_block[b] for b in blocks], blocks)[0].decides for by_block in answers]
    assert np.mean(found) <= 0.12


def test_the_smallest_change_is_measured_against_what_is_plausible():
    own = {"width": 8, "rate": 0.1, READING: ""}, "holds"
    alone = [
        ("rate", own[0] | {"rate": 0.01}, "holds"),
        ("rate", own[0] | {"rate": 1.0}, "fails"),
        ("width", own[0] | {"width": 16}, "open"),
        (READING, own[0] | {READING: "exact"}, "fails"),
    ]
    found = smallest_change((WIDTH, RATE), own, alone)
    assert str(found) == "fails with rate 1 instead of 0.1"
    assert str(smallest_change((WIDTH, RATE), own, alone[-1:])) == "fails if read as exact"
    assert smallest_change((WIDTH, RATE), own, alone[:1]) is None


def test_beyond_a_hypothesis_it_is_said_how_far_it_still_holds():
    factors = [{"η <= 1": 2.0}, {"η <= 1": 0.5}, {"η <= 1": 0.25}, {"η <= 1": 0.1}]
    (edge,) = edges(factors, [True, True, True, False])
    assert (edge.violated, edge.held, edge.farthest, edge.farthest_held) == (3, 2, 0.1, 0.25)
    assert str(edge) == "η <= 1: violated at 3 points, and it holds at 2 of them, also where a factor 4 is missing"
    assert edges([{"η <= 1": 1.0}], [True]) == []


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    text = SHORTEST.read_text().replace(
        "    steps: int = 300\n", "    steps: int = 60\n    rate: float = 0.02\n    unused: float = 0.5\n"
    )
    text = (
        text.replace("Training(0.02)", "Training(lab.settings.rate, 32)")
        .replace("Part, ", "Between, Part, ")
        .replace("Training, below", "Training, Unstated, below")
    )
    path = tmp_path_factory.mktemp("open") / "left_open.py"
    path.write_text(text.replace("below(1)", "below(2)") + OPEN)
    return path


@pytest.fixture(scope="module")
def curve(file):
    return iclab.robust(str(file), points=12, seeds=3, out=file.with_name("curve"))


def test_a_curve_of_a_users_file_names_the_setting_that_decides(curve):
    found = curve["learns"]
    assert found.deciding == ["η"] and found.letters == {"rate": "η", "noise": "σ"}  # `unused` was found to be that
    assert found.own == "holds" and str(found.change) == "fails with rate 1e-05 instead of 0.02"
    data = found.data
    drawn = data.isel(point=(data["alone"] == "").values)
    assert drawn.sizes["point"] == 12 and ((drawn["rate"] > 0.01) == (drawn["answer"] == "holds")).all()
    assert found.share.held == int((drawn["answer"] == "holds").sum()) and found.share.low < 0.5 < found.share.high
    files = {str(path.relative_to(curve.directory)) for path in curve.directory.rglob("*") if path.is_file()}
    assert {"index.html", "robustness.json", "robustness.csv", "data/left_open/learns.nc"} <= files
    again = iclab.open_robust(curve.directory)["learns"]
    assert again.words == found.words and again.summary() == json.loads(json.dumps(found.summary()))
    assert again.data.identical(found.data)
    assert "η" in (curve.directory / "index.html").read_text()


def test_our_own_choice_has_the_numbers_of_reproduce_and_stands_beside_the_answer(curve, file):
    run = iclab.reproduce(str(file), seeds=3, out=file.with_name("run"), robustness=curve.directory)
    (part,) = run.statements[0]["readings"][0]["parts"]
    assert float(curve["learns"].data["measured"].isel(point=0, part=0)) == part["measured"]
    assert run.statements[0]["robustness"]["words"] == curve["learns"].words
    page = (run.directory / "index.html").read_text()
    assert "plausible settings" in page and "robust:left_open/learns" in page  # the line, and the curve
    assert iclab.open_run(run.directory).statements[0]["robustness"]["points"] == 12


def test_a_folder_that_is_no_curve_is_refused(curve, tmp_path):
    with pytest.raises(InputError, match="is not a run"):
        iclab.open_robust(tmp_path)
    damaged = tmp_path / "damaged"
    shutil.copytree(curve.directory, damaged)
    (damaged / "data/left_open/learns.nc").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"the data of left_open/learns in .* are missing or damaged"):
        iclab.open_robust(damaged)


def test_what_is_recorded_is_about_statements_that_there_are():
    known = {statement.id for paper in PAPERS.values() for statement in paper.statements(paper.settings["quick"])}
    assert set(recorded()) <= known
    for one in recorded().values():
        assert 0 <= one["low"] <= one["share"] <= one["high"] <= 1 and one["words"].startswith("holds in")


def points_in(folder):
    return {path.name: json.loads(path.read_text()) for path in sorted((folder / "results/points").glob("*.json"))}


def test_a_curve_that_was_killed_goes_on_and_is_the_same(curve, file):
    folder = file.with_name("killed")
    words = [sys.executable, "-m", "iclab", "robust", str(file), "--points", "12", "--seeds", "3", "--out", str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not list(folder.glob("results/points/*.json")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(folder.glob("results/points/*.json")) and not (folder / "index.html").exists()
    again = iclab.robust(str(file), points=12, seeds=3, out=folder)
    assert points_in(folder) == points_in(curve.directory) and again["learns"].words == curve["learns"].words


def test_workers_say_the_same(curve, file):
    folder = file.with_name("workers")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as executor:
        iclab.robust(str(file), points=12, seeds=3, out=folder, executor=executor)
    assert points_in(folder) == points_in(curve.directory)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--points", "0"], "--points is 0; a curve has 1 to 10,000 points"),
        (["--points", "many"], "give a whole number"),
        (["--over", "steps"], "does not leave steps open"),
        (["--over", "nosuch=1:2"], "there is no such setting in left_open"),
        (["--over", "noise=2:1"], "2 to 1 is not a range"),
        (["--over", "noise=x:1"], "write a range as noise=low:high"),
        (["--over", "unused"], "none of these statements depends on it"),
    ],
)
def test_bad_input_is_answered_in_one_sentence(words, complaint, file, command):
    status, _, said = command("robust", str(file), *words)
    assert status == 2 and complaint in said and said.count("\n") <= 3


def test_settings_that_go_along_do_so_where_they_are_not_varied():
    (one,) = questions(("mamba-outliers/fig1a",), ("steps",), 2, False, "smoke", {}, Console(quiet=True))
    piece = Piece("mamba-outliers", "", "smoke", one.changes, points_of(one, 2, ())[-1], one.asked, 2)
    named = {s.name: s for s in one.paper.statements(piece.settings)}["fig1a"]
    assert piece.settings.large_outlier_magnitude == piece.settings.test_outlier_magnitude == 2
    assert set(one.asked["fig1a"][0]) <= {reading.name for reading in named.readings}


def test_a_range_that_no_theorem_allows_is_refused(command):
    where = ("robust", "nonlinear-icl/rem3.5", "--profile", "smoke", "--points", "4")
    status, _, said = command(*where, "--over", "neurons=10:50")
    assert status == 2 and "nonlinear-icl/thm3.4 assumes" in said and "met nowhere in this range" in said
    status, _, said = command(*where, "--over", "initial_scale=-1:1")
    assert status == 2 and "initial_scale" in said
    assert not [name for name in os.listdir() if name.startswith("iclab-robust")]

"""Sweeps: planned, merged, sharded, opened again. Numbers never depend on how the work was cut."""

import concurrent.futures
import functools
import json
import pathlib
import sys

import jax
import numpy as np
import pytest
import xarray as xr

import iclab
from iclab import cli, ensemble, memory, randomness, training
from iclab.engine import ComputingEngine, TrainingRequest
from iclab.errors import InputError
from iclab.experiments import Lab
from iclab.losses import hinge
from iclab.planning import Plan, PlanningEngine
from iclab.report import sweeps as drawing_sweeps
from iclab.runs import sweep as sweeping
from iclab.runs.options import grid_values
from iclab.runs.sweep_target import find, load
from iclab.together import side_by_side

IDEA = str(pathlib.Path(__file__).with_name("idea.py"))
GRID = {"matching_fraction": "0.4,0.8", "step_size": "0.5:2:3"}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return iclab.sweep(IDEA, GRID, seeds=2, out=tmp_path_factory.mktemp("sweeps") / "whole")


def test_a_sweep_has_a_dimension_per_setting_and_the_numbers_of_each_point_alone(swept):
    data = swept.data.load()
    assert dict(data.sizes) == {"matching_fraction": 2, "step_size": 3, "setting": 1, "seed": 2, "step": 4}
    alone = iclab.sweep(
        IDEA, {"step_size": "2"}, seeds=2, changes={"matching_fraction": "0.4"}, out=swept.directory.with_name("one")
    )
    xr.testing.assert_equal(
        alone.data.load().isel(step_size=0, drop=True), data.sel(matching_fraction=0.4, step_size=2.0).drop_vars(GRID)
    )
    loss = data["training_loss"].isel(step=-1)
    assert len(np.unique(loss)) == loss.size  # every point and seed is another training


def test_a_point_of_a_paper_has_the_numbers_of_reproduce_with_set(tmp_path):
    run = iclab.reproduce(
        "feature-selection/fig1a", profile="smoke", out=tmp_path / "run", changes={"step_size": "0.5"}
    )
    point = iclab.sweep("feature-selection/training", {"step_size": [0.5]}, profile="smoke", out=tmp_path / "sweep")
    result = run.results["feature-selection/training"]
    found = point.data.load().isel(step_size=0)
    for name, values in result.data_vars.items():
        assert np.array_equal(values, found[name].transpose(*values.dims), equal_nan=True), name


def test_traced_settings_compile_once_and_the_plan_says_so(tmp_path):
    compiled = training._compiled_advance(hinge, (), "")
    before = compiled._in_turn._cache_size()
    iclab.sweep(
        IDEA, {"step_size": "0.1:1:7", "matching_fraction": "0.5,0.6", "neurons": "41"}, seeds=1, out=tmp_path / "a"
    )
    assert compiled._in_turn._cache_size() == before + 1
    loaded = load(find(IDEA), "quick")
    points = [type(loaded.settings)(neurons=n, step_size=s) for n in (41, 42) for s in (0.1, 0.2, 0.3)]
    plan = sweeping._plan(loaded, points, (2, 3), 5, 1)
    assert plan["shards"] == [[0, 1, 2], [3, 4, 5]]  # static settings are computed apart
    assert plan["words"][0] == "6 points: 30 trainings, 30 evaluations"
    assert plan["words"][1] == "programs to compile: 4; batches: 4, in 2 shards of at most 3 points"


def test_shards_of_any_size_give_the_same_numbers(swept, monkeypatch, tmp_path):
    monkeypatch.setitem(sweeping.LARGEST, "cpu", 2)
    cut = iclab.sweep(IDEA, GRID, seeds=2, out=tmp_path / "cut")
    assert [list(shard.points) for shard in cut.shards] == [[0, 1], [2, 3], [4, 5]]
    xr.testing.assert_identical(cut.data.load(), swept.data.load())


def test_any_executor_gives_the_same_numbers_and_models(swept, tmp_path):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        run = iclab.sweep(IDEA, GRID, seeds=2, out=tmp_path / "pool", executor=pool, workers=2)
    assert len(run.shards) == 3
    xr.testing.assert_identical(run.data.load(), swept.data.load())
    one, other = (r.select(seed=1, matching_fraction=0.8, step_size=2) for r in (run, swept))
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_reproduce_on_an_executor_gives_the_same_answers(tmp_path):
    here = iclab.reproduce("feature-selection/fig1a", profile="smoke", out=tmp_path / "here", save_models=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        there = iclab.reproduce(
            "feature-selection/fig1a", profile="smoke", out=tmp_path / "there", save_models=True, executor=pool
        )
    for a, b in zip(here.statements, there.statements, strict=True):
        assert a | {"seconds": 0} == b | {"seconds": 0}
    files = [sorted(p.relative_to(r.directory) for p in r.directory.glob("models/**/*.npz")) for r in (here, there)]
    assert files[0] == files[1] and len(files[0]) == 2


def test_select_gives_an_ordinary_model_back(swept):
    again = iclab.open_sweep(swept.directory, trust=True)
    model = again.select(seed=1, matching_fraction=0.4, step_size=2)
    history = swept.data["training_loss"].sel(matching_fraction=0.4, step_size=2.0, seed=1)
    trained = again.trained(matching_fraction=0.4, step_size=2)
    assert np.array_equal(trained.history["training_loss"].sel(seed=1).squeeze(), history.squeeze(), equal_nan=True)
    output, trace = model(trained.recipes[0].world.sample(randomness.key(0), 0))
    assert np.isfinite(output) and trace.attention.shape == (10,)


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"seed": 5, "matching_fraction": 0.4, "step_size": 2}, "seed is 5; this sweep has the seeds 0 to 1"),
        (
            {"seed": 0, "matching_fraction": 0.5, "step_size": 2},
            "matching_fraction is 0.5; the swept values are 0.4, 0.8",
        ),
        ({"seed": 0, "matching_fraction": 0.4}, "step_size is missing; give one of 0.5, 1.25, 2.0"),
        ({"seed": 0, "matching_fraction": 0.4, "step_size": 2, "noise": 1}, "noise was not swept"),
        ({"seed": 0, "matching_fraction": 0.4, "step_size": 2, "training": "large"}, "this experiment has idea-small"),
        ({"seed": 0, "matching_fraction": 0.4, "step_size": 2, "setting": "large"}, "this training has small"),
    ],
)
def test_select_says_what_there_is(swept, wanted, sentence):
    with pytest.raises(InputError, match=sentence):
        swept.select(**wanted)


def test_a_sweep_writes_tables_and_a_figure(swept):
    assert (swept.directory / "sweep.png").read_bytes()[1:4] == b"PNG"
    rows = (swept.directory / "results.csv").read_text().splitlines()
    assert rows[0].startswith("matching_fraction,step_size,setting,seed") and len(rows) == 1 + 2 * 3 * 2
    xr.testing.assert_identical(xr.load_dataset(swept.directory / "results.nc"), swept.data.load())


def test_a_table_that_is_too_long_is_left_to_the_file_of_all_numbers(swept, monkeypatch):
    data = swept.data.load()
    whole = drawing_sweeps.tables(data)
    assert None not in whole.values()
    rows = len(whole["results"].splitlines()) - 1
    monkeypatch.setattr(drawing_sweeps, "MOST_ROWS", rows - 1)
    assert drawing_sweeps.tables(data)["results"] is None


def test_a_flipped_byte_is_reported_and_the_shard_done_again(swept, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sweeping.LARGEST, "cpu", 3)
    out = tmp_path / "run"
    arguments = [
        "sweep",
        IDEA,
        *(f"--grid={name}={text}" for name, text in GRID.items()),
        "--seeds",
        "2",
        "--out",
        str(out),
    ]
    monkeypatch.setattr(sys, "argv", ["iclab", *arguments])
    cli.main()
    for path in (out / "results" / "shard-00001.nc", next(out.glob("trainings/*.checkpoint"))):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x10
        path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"shard-00001\.nc is damaged; to compute it again, repeat `iclab sweep`"):
        iclab.open_sweep(out).data  # noqa: B018
    capsys.readouterr()
    cli.main()
    printed = " ".join(capsys.readouterr().out.split())
    assert "planning" not in printed  # the plan is the one that was begun with
    assert "shard-00001.nc is damaged" in printed and "1 of 2 shards kept from an earlier run" in printed
    xr.testing.assert_identical(iclab.open_sweep(out).data.load(), swept.data.load())


def test_a_truncated_manifest_is_a_clear_error(swept, tmp_path):
    (tmp_path / "run").mkdir()
    manifest = (swept.directory / "manifest.json").read_text()
    (tmp_path / "run" / "manifest.json").write_text(manifest[: len(manifest) // 2])
    with pytest.raises(InputError, match=r"manifest\.json is damaged and cannot be read\. Nothing was changed"):
        iclab.sweep(IDEA, GRID, seeds=2, out=tmp_path / "run")
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        iclab.open_sweep(tmp_path / "run")


def test_other_work_in_the_folder_is_refused(swept):
    for changed in ({"seeds": 3}, {"changes": {"neurons": "39"}}):
        with pytest.raises(InputError, match=r"holds another run \(idea over matching_fraction, step_size"):
            iclab.sweep(IDEA, GRID, **({"seeds": 2} | changed), out=swept.directory)


@pytest.mark.parametrize(("changes", "points"), [({}, 1), ({"neurons": 400, "steps": 3}, 1), ({}, 40)])
def test_the_estimate_of_memory_is_within_a_factor_of_two_of_what_the_program_takes(changes, points):
    """Also where 40 points of a sweep are computed together: 320 members, not 8."""
    loaded = load(find(IDEA), "quick")
    engine = PlanningEngine()
    lab = Lab("idea", type(loaded.settings)(**changes), range(8), engine=engine)
    loaded.run(lab)
    (trained,) = lab.trainings().values()
    recipe = trained.recipes[0]
    member = training.Member(ensemble.member_key("x", 0), recipe.world, recipe.model, recipe.training)
    count = 8 * points
    members = ensemble.stack([member] * count)
    layout = ensemble.Layout(count, memory.bytes_of(training.shapes(members, hinge, ())[0]))
    spread = layout.spread(members)
    state = training._compiled_start(False)(layout.counts, spread)
    program = training._compiled_advance(hinge, (), "").lower(
        layout.counts, spread, state, layout.spread(np.zeros(count, np.int32))
    )
    used = program.compile().memory_analysis()
    taken = used.argument_size_in_bytes + used.output_size_in_bytes + used.temp_size_in_bytes
    estimate = Plan.of(engine.asked[:1], points).memory / jax.local_device_count()
    assert taken / 2 < estimate < 2 * taken


def test_members_that_do_not_fit_are_trained_in_several_programs(monkeypatch, tmp_path):
    """With room for four members a device the numbers are those of one program, and every part has its checkpoint."""
    whole = iclab.sweep(IDEA, {"neurons": "3000"}, seeds=5, changes={"steps": "4"}, out=tmp_path / "whole")
    recipe = whole.trained().recipes[0]
    members = ensemble.stack(
        [training.Member(ensemble.member_key("x", s), recipe.world, recipe.model, recipe.training) for s in range(600)]
    )
    footprint = iclab.engine.training_footprint(TrainingRequest("x", members, hinge, (1,)))
    request = TrainingRequest("x", members, hinge, (1,))
    assert iclab.engine.members_per_program(request, 600) == 600
    monkeypatch.setattr(memory, "room_on_device", lambda: footprint.working + 5 * footprint.held)
    assert iclab.engine.members_per_program(request, 600) == 4 * jax.local_device_count()
    monkeypatch.setattr(iclab.engine, "members_per_program", lambda request, count: 2)
    parts = iclab.sweep(IDEA, {"neurons": "3000"}, seeds=5, changes={"steps": "4"}, out=tmp_path / "parts")
    assert len(list((tmp_path / "parts" / "trainings").glob("*.checkpoint"))) == 3
    xr.testing.assert_identical(parts.data.load(), whole.data.load())
    one, other = (run.select(seed=4) for run in (parts, whole))
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_a_training_goes_on_from_its_checkpoint(monkeypatch):
    """The training is stopped after two of four records; the second run computes the other two only."""
    from iclab.runs import checkpoints

    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "COST", 0.0)
    files = {}
    seen = []

    class Stops(checkpoints.KeptTraining):
        def save(self, leaves, records, finished):
            super().save(leaves, records, finished)
            seen.append(records["training_loss"].shape[1])
            if len(seen) == 2:
                raise KeyboardInterrupt

    loaded = load(find(IDEA), "quick")

    def run(kind):
        return loaded.run(
            Lab("idea", loaded.settings, range(2), engine=ComputingEngine(lambda name: kind(files, name, "run")))
        )

    with pytest.raises(KeyboardInterrupt):
        run(Stops)
    resumed = run(Stops)
    assert seen == [1, 2, 3, 4]
    xr.testing.assert_identical(resumed, loaded.run(Lab("idea", loaded.settings, range(2))))
    run(Stops)
    assert seen == [1, 2, 3, 4]  # a finished training is not computed again


def test_an_error_in_one_experiment_is_raised_and_lets_the_others_go():
    loaded = load(find(IDEA), "quick")

    def good(engine):
        return loaded.run(Lab("idea", loaded.settings, range(1), engine=engine))

    def bad(engine):
        raise ZeroDivisionError("in a user's experiment")

    with pytest.raises(ZeroDivisionError, match="in a user's experiment"):
        side_by_side([good, bad, good], ComputingEngine())


def test_the_plan_counts_what_every_paper_asks_for():
    from iclab.papers import PAPERS

    engine = PlanningEngine()
    paper = PAPERS["nonlinear-icl"]
    lab = Lab(paper.id, paper.settings["quick"], range(8), engine=engine)
    for name in ("training", "classifiers"):
        paper.experiments[name].run(lab)
    plan = Plan.of(engine.asked)
    assert plan.trainings == 8 and plan.evaluations == 160 and len(plan.programs) == 2
    assert 1e6 < plan.memory < 1e9 and 0.01 < plan.seconds() < 600  # on fast and on slow machines


@pytest.mark.parametrize(
    ("text", "values"),
    [("1,2,4", [1, 2, 4]), ("10:40:4", [10, 20, 30, 40]), ("7", [7])],
)
def test_grids(text, values):
    assert grid_values(load(find(IDEA), "quick").settings, "neurons", text) == values


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([IDEA], "give at least one --grid"),
        ([IDEA, "--grid", "neurons=10:15:4"], "takes whole numbers, but the range has others"),
        ([IDEA, "--grid", "neurons=10:15"], "write a range as start:stop:count"),
        ([IDEA, "--grid", "neurons=4,4"], "a value is given twice"),
        ([IDEA, "--grid", "neurons=x"], "takes a value like 40"),
        ([IDEA, "--grid", "neuron=4"], "Did you mean 'neurons'?"),
        ([IDEA, "--grid", "neurons=4", "--set", "neurons=5"], "neurons is in both --set and --grid"),
        ([IDEA, "--grid", "step_size=-1"], "step_size is -1"),
        (["nowhere.py", "--grid", "a=1"], "cannot read nowhere.py: No such file"),
        (["nonlinear-icl/trainin", "--grid", "a=1"], "Did you mean 'nonlinear-icl/training'?"),
        (["nonlinear-icl/training", "--grid", "matching_fraction=0.5,1.5"], "a fraction must lie in (0, 1]"),
        (
            ["nonlinear-icl/training", "--grid", "steps=1", "--cluster", "tcp://127.0.0.1:1"],
            "no Dask scheduler answers",
        ),
    ],
)
def test_bad_sweeps_are_answered_with_one_sentence(arguments, sentence, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("iclab.runs.cluster.PATIENCE", "0.5s")
    monkeypatch.setattr(sys, "argv", ["iclab", "sweep", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    err = capsys.readouterr().err
    assert stop.value.code == 2 and sentence in err and err.startswith("iclab: ") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1/0", r"broken\.py, line 1: ZeroDivisionError"),
        ("x = 1", "must define `settings`"),
        (
            "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass S:\n    a: int = 1\nsettings = S()",
            "must define `experiment",
        ),
    ],
)
def test_a_users_file_that_is_no_experiment_is_named(text, sentence, tmp_path):
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(InputError, match=sentence):
        iclab.sweep(str(tmp_path / "broken.py"), {"a": "1"}, out=tmp_path / "out")


def test_the_manifest_of_a_sweep_says_what_it_is(swept):
    manifest = json.loads((swept.directory / "manifest.json").read_text())
    assert manifest["identity"]["grid"] == {"matching_fraction": [0.4, 0.8], "step_size": [0.5, 1.25, 2.0]}
    assert (
        manifest["plan"]["shards"] == [[0, 1, 2, 3, 4, 5]]
        and manifest["packages"]["jax"]
        and "experiment(lab)" in manifest["identity"]["text"]
    )


def test_models_and_checksums_that_are_gone_are_missed_and_computed_again(tmp_path):
    shortest = str(pathlib.Path(IDEA).with_name("shortest.py"))
    again = functools.partial(iclab.sweep, shortest, {"noise": [0.4]}, seeds=2, out=tmp_path, changes={"steps": "5"})
    before = again().data.load()
    next((tmp_path / "trainings").iterdir()).unlink()
    with pytest.raises(InputError, match="repeat the sweep with the same --out to train them again"):
        iclab.open_sweep(tmp_path, trust=True).select(seed=0, noise=0.4)
    again().select(seed=0, noise=0.4)
    (tmp_path / "results" / "shard-00000.nc.sha256").unlink()
    with pytest.raises(InputError, match=r"cannot be read; to compute it again, repeat `iclab sweep`"):
        assert iclab.open_sweep(tmp_path).data is None
    xr.testing.assert_identical(again().data.load(), before)

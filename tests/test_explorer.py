"""The mechanism explorer: what it shows is what the models do, on the same prompts for every member and moment."""

import json
import types

import jax
import numpy as np
import pytest

import idea
from iclab import randomness
from iclab.authoring.exploration import MEAN, MOMENTS, PROMPTS, moments
from iclab.authoring.module import paper_of
from iclab.experiments import Lab
from iclab.inference import chain_of_thought
from iclab.models.chain_transformer import ChainTransformer
from iclab.papers import PAPERS
from iclab.papers.chain_of_thought import explorer as chain_explorer
from iclab.papers.mamba_outliers.explorer import OUTLIER
from iclab.planning import PlanningEngine
from iclab.report.explorer import content


@pytest.fixture(params=[name for name, paper in PAPERS.items() if paper.explore])
def paper(request):
    return PAPERS[request.param]


def history(run, name):
    return run.results[f"{name}/explorer"]


def test_attention_sums_to_one_and_pools_the_labels(run):
    for name in ("nonlinear-icl", "feature-selection"):
        data = history(run, name)
        np.testing.assert_allclose(data["attention"].sum("token"), 1, rtol=1e-5)
        np.testing.assert_allclose((data["attention"] * data["shown"]).sum("token"), data["pooled"], atol=1e-5)


def test_what_the_examples_add_is_the_answer(run):
    """The query's own label is 0, so it adds nothing to eq. (3)."""
    data = history(run, "mamba-outliers")
    np.testing.assert_allclose(data["part"], data["gate"] * data["score"] * data["shown"], rtol=1e-5, atol=1e-6)
    assert (data["gate"].sel(setting="linear Transformer") == 1).all() and (data["gate"].sel(setting="Mamba") < 1).all()
    softmax, sums = data.sel(setting="softmax Transformer"), data.sel(setting=["Mamba", "linear Transformer"])
    np.testing.assert_allclose(sums["part"].sum("token"), sums["output"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(softmax["score"].sum("token"), 1, rtol=1e-5)
    same = softmax["clean_output"].sel(switch=0), softmax["output"].sel(switch=0)
    np.testing.assert_allclose(*same, rtol=1e-3, atol=1e-5)  # there are no outliers to remove


def test_outliers_are_switched_on_in_the_same_prompts(run):
    data = history(run, "mamba-outliers").isel(setting=0, seed=0, step=0)
    off, on = data.isel(switch=0), data.isel(switch=1)
    marked = on["outlier"].values > 0
    assert not off["outlier"].any() and 0 < marked.mean() < 1
    np.testing.assert_array_equal(off["same"], on["same"])
    flipped = np.where(marked, -off["shown"], off["shown"])
    np.testing.assert_array_equal(flipped, on["shown"])
    clean = ~marked
    np.testing.assert_allclose(off["score"].values[clean], on["score"].values[clean], rtol=1e-5)
    shown = PAPERS["mamba-outliers"].explore(history(run, "mamba-outliers"), PAPERS["mamba-outliers"].settings["smoke"])
    assert OUTLIER not in shown.panels[0].groups[0] and OUTLIER in shown.panels[0].groups[1]


def explored(run, name):
    return PAPERS[name].explore(history(run, name), PAPERS[name].settings["smoke"])


def test_without_attention_every_example_counts_the_same(run):
    for name in ("nonlinear-icl", "feature-selection"):
        data, shown = history(run, name), explored(run, name)
        np.testing.assert_allclose(
            data["blind_pooled"],
            (data["shown"] * data["present"]).sum("token") / data["present"].sum("token"),
            atol=1e-5,
        )
        assert shown.ablations[0].panels == {0: MEAN}


def test_pruned_halves_add_up_to_the_answer(run):
    """F is a sum over neurons."""
    data = history(run, "nonlinear-icl")
    np.testing.assert_allclose(data["small_output"] + data["large_output"], data["output"], rtol=1e-3, atol=1e-5)


def test_a_gate_that_is_not_there_cannot_be_removed(run):
    """The linear Transformer's gates are 1; Mamba's answer without them is the sum of score · label."""
    data, shown = history(run, "mamba-outliers"), explored(run, "mamba-outliers")
    gates = next(one for one in shown.ablations if one.name.startswith("the gates"))
    mamba, linear = ([name in member for member in shown.members] for name in ("Mamba", "linear"))
    np.testing.assert_allclose(
        gates.lines["answer F"][:, linear], shown.lines["answer F"][:, linear], rtol=1e-4, atol=1e-4
    )
    assert not np.allclose(gates.lines["answer F"][:, mamba], shown.lines["answer F"][:, mamba], rtol=1e-2)
    whole = (data["score"] * data["shown"]).sum("token").sel(setting="Mamba", switch=1, seed=1)
    np.testing.assert_allclose(gates.lines["answer F"][1, 1, :, 0], whole.transpose("step", "prompt"), rtol=1e-4)


def test_removing_outliers_changes_nothing_where_there_are_none(run):
    shown = explored(run, "mamba-outliers")
    off, on = shown.ablations[-1].lines["answer F"]
    np.testing.assert_allclose(off, shown.lines["answer F"][0], rtol=1e-3, atol=1e-4)
    assert not np.allclose(on, shown.lines["answer F"][1], rtol=1e-2)


def test_every_explorer_can_remove_a_heads_attention(run, paper):
    shown = explored(run, paper.id)
    assert "the head's attention" in shown.ablations[0].name and len(shown.ablations) > 1
    for one in shown.ablations:
        assert one.said.shape == shown.said.shape and set(one.lines) <= set(shown.lines)


def test_the_steps_of_a_reasoning_are_those_of_cot_inference():
    s = PAPERS["chain-of-thought"].settings["smoke"]
    world = chain_explorer._recipe(s, 0).watched[0]
    prompt = world.sample(randomness.key(3), 1)
    model = ChainTransformer(0.5 * jax.random.normal(randomness.key(4), (world.columns, world.columns)))
    found = chain_explorer.look(model, prompt)
    answers, _ = chain_of_thought(model, prompt)
    np.testing.assert_array_equal(found["answer@stage"], answers)
    np.testing.assert_array_equal(found["asked@stage"][1:], answers[:-1])  # every answer is the next question
    assert found["asked@stage"][0] == prompt.chain[0]
    np.testing.assert_allclose(found["attention@stage@token"].sum(axis=1), 1, rtol=1e-5)
    assert (np.asarray(found["attention@stage@token"])[np.asarray(found["group@stage@token"]) == 0] == 0).all()


def test_every_member_sees_the_same_prompts_and_they_stay(run, paper):
    data = history(run, paper.id)
    truth = "right" if paper.id == "chain-of-thought" else "target"
    same = data[truth]
    assert (same == same.isel(setting=0, seed=0, step=0)).all() and data.sizes["prompt"] == PROMPTS


def test_moments_are_dense_at_first_and_end_at_the_end():
    found = moments(1000)
    assert found[0] == 0 and found[-1] == 1000 and len(found) == MOMENTS + 1
    assert np.all(np.diff(found) > 0) and np.diff(found)[0] < np.diff(found)[-1]
    assert moments(3) == [0, 1, 2, 3]


def test_an_explorer_is_planned_and_run_with_the_same_shapes(run, paper):
    engine = PlanningEngine()
    planned = paper.experiments["explorer"].run(Lab(paper.id, paper.settings["smoke"], (0, 1), engine=engine))
    assert planned.sizes == history(run, paper.id).sizes
    assert {asked.kind for asked in engine.asked} == {"training"}


def test_an_explorer_takes_a_megabyte_at_most(run, paper):
    shown = paper.explore(history(run, paper.id), paper.settings["smoke"])
    text = content(shown)
    data = json.loads(text)
    factor = (MOMENTS + 1) / len(shown.steps)  # a longer training has more moments
    assert len(text) * factor < 1_000_000 and "<" not in text
    size = int(np.prod(data["shape"]))
    assert all(len(values) == size for values in data["lines"]["values"].values())
    assert all(len(panel["values"]) == size * panel["items"] for panel in data["panels"])


def test_a_diverged_member_is_shown_as_such(run, paper):
    data = history(run, paper.id).copy(deep=True)
    for name in data.data_vars:
        if "seed" in data[name].dims and np.issubdtype(data[name].dtype, np.floating):
            data[name].loc[{"seed": 0}] = np.nan
    shown = paper.explore(data, paper.settings["smoke"])
    json.loads(content(shown))
    assert (shown.said[:, 0] == "diverged").all() and (shown.said[:, 1] != "diverged").all()


def test_a_file_gets_an_explorer_by_saying_so():
    """`explore = True`, and nothing else: the first training is looked into."""
    module = types.SimpleNamespace(**{name: getattr(idea, name) for name in ("settings", "experiment")}, explore=True)
    paper = paper_of("idea", "idea.py", module)
    engine = PlanningEngine()
    found = paper.experiments["explorer"].run(Lab("idea", idea.settings, (0, 1), engine=engine))
    assert [asked.kind for asked in engine.asked] == ["training"]
    shown = paper.explore(found, idea.settings)
    assert [panel.axis for panel in shown.panels] == ["attention"] and shown.steps[-1] == idea.settings.steps
    json.loads(content(shown))

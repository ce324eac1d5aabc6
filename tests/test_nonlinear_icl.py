"""What the statements of nonlinear-icl measure, against slow NumPy: responses to tokens, L by its gap, test prompts."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from iclab import randomness
from iclab.models.softmax_transformer import SoftmaxTransformer
from iclab.papers.nonlinear_icl import quantities as of
from iclab.papers.nonlinear_icl.lemmas import lucky_shares
from iclab.papers.nonlinear_icl.prompts import guaranteed
from iclab.papers.nonlinear_icl.settings import Settings, out_of_domain, place, recipe, symbols
from iclab.papers.nonlinear_icl.sizes import PATTERNS, sized
from iclab.papers.nonlinear_icl.theory import theorems
from iclab.probes.norms import responses
from iclab.worlds.tasks import cyclic_tasks

SMALL = Settings(
    feature_dimension=10, label_dimension=2, irrelevant_patterns=4, key_width=12, value_width=12, label_norm=0.7
)


def by_tokens(weights, relevant, irrelevant, size, labels, rivals):
    """Every token with a largest κ, one by one: components along all unit patterns."""
    features = relevant.shape[1]
    units = np.concatenate([relevant, irrelevant])
    units = units / np.linalg.norm(units, axis=1, keepdims=True)
    count, found = len(relevant), {"own": [], "other": [], "idle": [], "carried": []}
    for j, k, sign, label in itertools.product(range(count), range(len(irrelevant)), (-1, 1), labels):
        token = np.concatenate([relevant[j] + sign * size * irrelevant[k], label])
        along = np.abs(units @ (weights @ token)[:features])
        found["own"].append(along[j])
        found["other"].append(np.delete(along[:count], j).max())
        found["idle"].append(np.delete(along[count:], k).max())
        found["carried"].append(along[count + k])
    bare = units @ weights[:features, :features] @ relevant.T
    mask = np.zeros((count, count), bool)
    mask[rivals[:, 0], rivals[:, 1]] = mask[rivals[:, 1], rivals[:, 0]] = True
    strange = ~mask & ~np.eye(count, dtype=bool)
    return {
        "own": min(found["own"]), **{name: max(found[name]) for name in ("other", "idle", "carried")},
        "kept": np.diagonal(bare[:count]).min(), "rival": np.abs(bare[:count])[mask].max(),
        "stranger": np.abs(bare[:count])[strange].max(), "noise": np.abs(bare[count:]).max(),
    }  # fmt: skip


def test_responses_are_those_of_the_worst_token():
    random = np.random.default_rng(0)
    world = recipe(SMALL).world
    weights = [0.02 * random.normal(size=(12, 12)) + np.eye(12) for _ in range(2)]
    arrays = [jnp.asarray(own, jnp.float32) for own in weights]
    model = SoftmaxTransformer(*arrays, arrays[0], arrays[0], jnp.ones(12))
    found = jax.jit(lambda own: responses(own, world, world))(model)
    letters, embedding = world.letters(), np.array([0.7, 0.0])
    for name, own, labels in (("query", weights[0], [0 * embedding]), ("key", weights[1], [embedding, -embedding])):
        patterns = letters["relevant"].astype(float), letters["irrelevant"].astype(float)
        slow = by_tokens(own, *patterns, SMALL.irrelevant_size, labels, cyclic_tasks(6))
        for what, value in slow.items():
            assert float(found[f"{name}_{what}"]) == pytest.approx(value, rel=1e-4), (name, what)


def test_an_untrained_model_answers_every_pattern_with_the_initial_scale():
    world = out_of_domain(SMALL, 1.28, 0.8, 20, 20)
    model = recipe(SMALL).model.init(randomness.key(0), world)
    found = responses(model, world, recipe(SMALL).world)
    start = SMALL.initial_scale * SMALL.pattern_strength
    assert float(found["query_own"]) == pytest.approx(start, rel=1e-4)
    assert float(found["query_other"]) == pytest.approx(0, abs=1e-6)
    # (19) for the irrelevant pattern that a token carries: δ β K', whatever the training does
    assert float(found["query_carried"]) == pytest.approx(start * SMALL.shifted_irrelevant_size, rel=1e-4)


def test_the_gap_splits_norms_with_the_least_variance():
    random = np.random.default_rng(1)
    norms = np.concatenate([random.normal(0.3, 0.1, 12), random.normal(2.0, 0.3, 20)])
    ordered = np.sort(norms)
    spread = [np.var(ordered[:at]) * at + np.var(ordered[at:]) * (32 - at) for at in range(1, 32)]
    best = int(np.argmin(spread)) + 1
    data = xr.DataArray(random.permutation(norms)[None], dims=("seed", "neuron"))
    assert best == 12 and of.between(data).item() == pytest.approx(ordered[11:13].mean())
    assert of.large_share(data).item() == pytest.approx(20 / 32)
    assert of.least_large(data).item() == pytest.approx(ordered[12])
    assert of.largest_small(data).item() == pytest.approx(ordered[11])
    assert np.isnan(of.large_share(data * np.nan)).all()


@pytest.mark.parametrize("domain", ["in", "out"])
@pytest.mark.parametrize(("fraction", "length", "matching"), [(0.1, 10, 1), (0.5, 9, 3), (0.8, 20, 8)])
def test_every_guaranteed_prompt_has_what_is_assumed_and_no_more(domain, fraction, length, matching):
    world = guaranteed(place(SMALL, domain, fraction, length), fraction)
    prompts = jax.vmap(world.sample)(jax.random.split(randomness.key(3), 200), jnp.arange(200))
    matches = jax.vmap(lambda prompt: prompt.matches_query())(prompts)
    assert (matches.sum(axis=1) == matching).all()
    labels = np.where(matches, prompts.label[:, :-1], prompts.target[:, None])
    assert (labels == np.asarray(prompts.target)[:, None]).all()
    assert (np.asarray(prompts.atoms)[..., 0] == np.asarray(prompts.pattern)).all()
    assert set(np.unique(prompts.label[:, :-1])) == {-1.0, 1.0}


def test_lucky_neurons_by_hand():
    positive = np.array([[1, 1, 0, 0], [1, 0, 0, 1]])  # labels +1 and -1
    sign = np.array([1, 1, 1, -1])
    fires = np.array([[[1, 1, 1, 1], [1, 1, 1, 1]], [[1, 0, 1, 1], [1, 1, 1, 0]]])
    found = lucky_shares(positive, fires, sign)
    assert found["lucky_share"] == pytest.approx(3 / 8)  # neurons 0 and 1 of the first prompt, 3 of the second
    assert found["still"].tolist() == pytest.approx([1.0, 1 / 3])
    assert found["ever_still"].tolist() == pytest.approx([1.0, 1 / 3])


def test_what_pruning_and_mixtures_are_judged_by():
    rates = [0.0, 0.1, 0.3, 0.6, 0.9]
    loss = xr.DataArray([[0.1, 0.2, 0.5, 0.9, 1.0]], dims=("seed", "rate"), coords={"rate": rates})
    assert of.rise(loss).values[0].tolist() == pytest.approx([0.1, 0.4, 0.8])
    assert of.rise_at(loss, xr.DataArray([0.2], dims="seed")).item() == pytest.approx(0.25)
    totals = xr.DataArray([[0.3, 0.2, 0.05, 0.1]], dims=("seed", "total"), coords={"total": [0.4, 0.9, 1.0, 1.28]})
    assert of.below_one(totals).item() == pytest.approx(0.175)
    sizes = xr.DataArray([[1.0], [2.0]], dims=("patterns", "seed"), coords={"patterns": [6, 20]})
    scaled = sizes / of.root_log(sizes)
    assert scaled["patterns"].values.tolist() == [6, 20]
    assert scaled.values[:, 0] == pytest.approx([1 / np.sqrt(np.log(6)), 2 / np.sqrt(np.log(20))])


def test_a_contrast_of_too_few_tasks_with_enough():
    coords = {"relevant": ("setting", [6, 6, 6, 8]), "task_count": ("setting", [3, 5, 6, 8])}
    error = xr.DataArray([[0.4, 0.1, 0.02, 0.9]], dims=("seed", "setting"), coords=coords)
    assert of.too_few_tasks(error, 6).item() == pytest.approx(0.08)


def test_the_multiple_of_one_over_alpha_that_is_enough_for_drawn_prompts():
    fraction, length = np.array([0.2, 0.5, 1.0]), np.array([2, 5, 10, 20, 40])
    error = 0.5 * np.exp(-fraction[:, None] * length / 2)
    data = xr.DataArray(np.stack([error] * 2), dims=("seed", "fraction", "length"),
                        coords={"fraction": fraction, "length": length})  # fmt: skip
    assert (of.long_enough(data, "multiple") == 4.5).all()  # 0.5 exp(-5/2) = 0.041; products are 0.4, 1, 2, 4, 5, 8 ...
    assert (of.long_enough(data, "error") == pytest.approx(0.5 * np.exp(-2.5))).all()


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("count", PATTERNS)
def test_sizes_meet_the_hypotheses(count, root):
    s = sized(Settings(), count, 1, root=root)
    theorem = next(one for one in theorems(symbols(s), 1.0) if one.id.endswith("thm3.3"))
    assert all(condition.satisfied for condition in theorem.conditions)
    assert theorem.condition("(i) neurons").factor == pytest.approx(1, rel=0.01)
    assert theorem.condition("(iv) iterations").factor == pytest.approx(12 if root else 140, rel=0.01)

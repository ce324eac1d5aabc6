"""The gallery: papers of other groups. Closed forms in float64, and every statement and figure through the command."""

import importlib
import itertools
import json
import os
import pathlib
import sys
import tomllib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import folders
from iclab import randomness
from iclab.authoring import sources
from marks import mostly_slow

GALLERY = pathlib.Path(__file__).parents[1] / "gallery"
ABOUT = tomllib.loads((GALLERY / "pyproject.toml").read_text())["project"]
PAPERS = ABOUT["entry-points"]["iclab"]
sys.path.insert(0, str(GALLERY / "src"))

from iclab_gallery import closed_forms, induction_heads, linear_attention, zoology  # noqa: E402

EIGENVALUES = np.array([1.0, 0.7, 0.4])
LENGTH = 6


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package as pip installs it, for this process and those it starts; it need not be installed."""
    place = tmp_path_factory.mktemp("site")
    about = place / "iclab_gallery-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {ABOUT['name']}\nVersion: {ABOUT['version']}\n")
    lines = [f"{name} = {module}" for name, module in PAPERS.items()]
    (about / "entry_points.txt").write_text("\n".join(["[iclab]", *lines, ""]))
    added = [str(place), str(GALLERY / "src")]
    before = os.environ.get("PYTHONPATH", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([*added, before] if before else added))
        patch.syspath_prepend(str(place))
        importlib.invalidate_caches()
        sources.registered.cache_clear()
        yield
    sources.registered.cache_clear()


@pytest.fixture(scope="module")
def smoke(installed, tmp_path_factory):
    """All papers of the package, most numbers made up, the explorers' computed."""
    return folders.smoke(tmp_path_factory.mktemp("runs") / "gallery", "gallery", starter=folders.PRETENDED)


def test_a_paper_is_one_file_of_at_most_300_lines():
    files = list((GALLERY / "src").rglob("*.py"))
    assert {f"iclab_gallery.{path.stem}" for path in files} >= set(PAPERS.values())
    assert all(len(path.read_text().splitlines()) <= 300 for path in files)


def test_the_list_says_where_papers_come_from(installed, command):
    status, out, err = command("list", "gallery")
    assert status == 0 and not err and out.count(" (from iclab-gallery)\n") == len(PAPERS) == 4
    assert command("list", "iclab-gallery") == (status, out, err)


def test_every_statement_and_figure_of_every_paper(smoke):
    assert {statement["paper"] for statement in smoke.statements} == set(PAPERS)
    for statement in smoke.statements:
        parts = [part for reading in statement["readings"] for part in reading["parts"]]
        assert parts and statement["answer"] == "not asked", statement["id"]
    drawn = {path.parent.name for path in (smoke.directory / "figures").rglob("*.svg")}
    assert drawn == set(PAPERS)
    assert {name for name in PAPERS if f"{name}/explorer" in smoke.results} == set(PAPERS)


def test_every_control_is_asked(smoke):
    texts = json.loads((smoke.directory / "claims.json").read_text())
    found = texts if isinstance(texts, list) else texts["statements"]
    assert all(part["control"] for s in found for r in s["readings"] for part in r["parts"])


@pytest.mark.parametrize("module", mostly_slow(PAPERS.values(), kept=("iclab_gallery.linear_attention",)))
def test_every_file_passes_the_check(module, command):
    """Of a package that is installed, too: a file is looked at, whatever other papers are called."""
    status, out, _ = command("check", str(GALLERY / "src" / f"{module.replace('.', '/')}.py"))
    assert status == 0 and out.rstrip().endswith("all passed"), out


def product(state):
    """B of c and W, in one vector."""
    return state[0] * state[1:].reshape(len(EIGENVALUES), -1).T


def test_the_gradient_of_the_risk_vanishes_at_the_minimiser():
    """By complex steps, which have no rounding error of differences: exact to float64."""
    scale, weights = closed_forms.minimiser(EIGENVALUES, LENGTH)
    state = np.append(scale[-1], weights[:-1].ravel()).astype(complex)
    slopes = []
    for place in range(len(state)):
        moved = state.copy()
        moved[place] += 1e-20j
        slopes.append(closed_forms.risk(product(moved), LENGTH, np.diag(EIGENVALUES)).imag / 1e-20)
    assert np.abs(slopes).max() < 1e-14
    best = closed_forms.risk(product(state.real), LENGTH, np.diag(EIGENVALUES))
    generator = np.random.default_rng(0)
    for _ in range(20):
        other = state.real + 0.1 * generator.standard_normal(len(state))
        assert closed_forms.risk(product(other), LENGTH, np.diag(EIGENVALUES)) > best


def test_weights_that_the_minimiser_leaves_at_zero_have_no_gradient_there():
    """Their gradients at a task w and at -w cancel, prompt by prompt."""
    with jax.enable_x64(True):
        layer = linear_attention.Attention(*map(jnp.asarray, closed_forms.minimiser(EIGENVALUES, LENGTH)))
        drawn = np.random.default_rng(1).standard_normal((LENGTH + 2, 3)) * np.sqrt(EIGENVALUES)

        def loss(model, task):
            y = drawn[:-1] @ task
            tokens = jnp.asarray(np.column_stack([drawn[:-1], np.append(y[:-1], 0.0)]))
            scores = tokens @ (model.weights @ tokens[-1, :-1])
            return ((tokens @ model.projection) @ scores / LENGTH - y[-1]) ** 2

        one, other = (jax.grad(loss)(layer, sign * drawn[-1]) for sign in (1, -1))
        assert np.abs(one.projection[:-1] + other.projection[:-1]).max() < 1e-13
        assert np.abs(one.weights[-1] + other.weights[-1]).max() < 1e-13
        assert np.abs(one.weights[:-1] + other.weights[:-1]).max() > 1e-3


def test_the_risk_is_that_of_fourth_moments():
    """E S T S from Isserlis' theorem, index by index, for matrices that do not commute."""
    generator = np.random.default_rng(2)
    roots, answer = generator.standard_normal((3, 3, 3)), generator.standard_normal((3, 3))
    covariates, query, task = roots @ np.swapaxes(roots, 1, 2)
    fourth = (
        np.einsum("ab,cd->abcd", covariates, covariates)
        + np.einsum("ac,bd->abcd", covariates, covariates)
        + np.einsum("ad,bc->abcd", covariates, covariates)
    )
    same = np.einsum("abcd,bc->ad", fourth, task)  # E x xᵀ T x xᵀ
    second = same / LENGTH + (1 - 1 / LENGTH) * covariates @ task @ covariates
    cross = answer @ covariates @ task
    expected = np.trace(query @ (task - cross - cross.T + answer @ second @ answer.T))
    found = closed_forms.risk(answer, LENGTH, covariates, query, task)
    assert np.isclose(found, expected, rtol=1e-13)


def test_gradient_flow_ends_at_the_minimiser():
    scale, weights = closed_forms.minimiser(EIGENVALUES, LENGTH)
    wanted = np.append(scale[-1], weights[:-1].ravel())
    found = closed_forms.flow(EIGENVALUES, LENGTH, 0.3 * closed_forms.start(3, 5))
    assert np.abs(found - wanted).max() < 1e-8


@pytest.mark.parametrize(("states", "concentration"), [(2, 1.0), (3, 0.5)])
def test_losses_of_the_dirichlet_posterior_add_up_to_the_entropy_of_sequences(states, concentration):
    total, length = 0.0, 6
    for sequence in itertools.product(range(states), repeat=length):
        counts, log = np.zeros(states), 0.0
        for symbol in sequence:
            log += np.log((counts[symbol] + concentration) / (counts.sum() + states * concentration))
            counts[symbol] += 1
        total -= np.exp(log) * log
    losses = [closed_forms.urn_loss(seen, states, concentration) for seen in range(length)]
    assert np.isclose(sum(losses), total, rtol=1e-12) and np.isclose(losses[0], np.log(states), rtol=1e-14)
    long = closed_forms.urn_loss(20_000, states, concentration)
    assert 0 < long - closed_forms.expected_entropy(states, concentration) < 1e-3


def test_strategies_are_counts_of_states_and_of_what_followed_the_last():
    prompt = induction_heads.Markov(3, 12, maximum_length=15).sample(randomness.key(3), 0)
    states = np.asarray(prompt.pattern)[np.asarray(prompt.present)]
    unigram = np.bincount(states, minlength=3) + 1.0
    follows = [after for state, after in itertools.pairwise(states) if state == states[-1]]
    bigram = np.bincount(np.array(follows, int), minlength=3) + 1.0
    found = induction_heads.strategies(prompt)
    assert np.allclose(found["unigram"], unigram / unigram.sum(), atol=1e-6)
    assert np.allclose(found["bigram"], bigram / bigram.sum(), atol=1e-6)


def test_the_in_weights_posterior_is_bayes_rule_on_gaussian_densities():
    generator = np.random.default_rng(3)
    means, labels, deviation = generator.standard_normal((5, 4)) / 2, np.array([0, 1, 1, 2, 0]), 0.6
    items = generator.standard_normal((7, 4)) / 2
    spread = deviation**2 / ((1 + deviation**2) * 4) * np.eye(4)
    density = [scipy.stats.multivariate_normal(mean / np.sqrt(1 + deviation**2), spread).pdf(items) for mean in means]
    joint = np.stack(density, axis=1) @ np.eye(3)[labels]
    found = closed_forms.in_weights_posterior(items, means, labels, deviation, 3)
    assert np.allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-11)


def test_a_state_of_width_d_misses_all_but_d_keys():
    for width, pairs in itertools.product((1, 4, 8), (2, 4, 9)):
        assert np.isclose(zoology.least_miss(width, pairs), max(0, pairs - width), atol=1e-12)


def test_the_gated_recurrence_is_its_state_read_at_the_end():
    """Against NumPy: S_t = g_t S_{t-1} + v_t k_{t-1}ᵀ, and S_T q, in float64."""
    world = zoology.Recall(5, 4, 3)
    model = zoology.MixerSettings(0.5, "recurrence", 6).init(randomness.key(0), world)
    prompt = world.sample(randomness.key(1), 0)
    with jax.enable_x64(True):
        model = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), model)
        rows = {name: np.asarray(zoology.embedded(prompt, table)) for name, table in model.tables.items()}
        state, before = np.zeros((6, 6)), np.zeros(6)
        for key, value, gate in zip(rows["key"], rows["value"], rows["gate"][:, 0] + 3.0, strict=True):
            state, before = state / (1 + np.exp(-gate)) + np.outer(value, before), key
        expected = state @ rows["query"][-1] @ np.asarray(model.read_out)
        assert np.allclose(model(prompt)[0], expected, rtol=1e-12, atol=1e-14)

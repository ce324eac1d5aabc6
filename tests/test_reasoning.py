import dataclasses
import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from iclab import ensemble, randomness
from iclab.errors import InputError
from iclab.evaluation import Jobs, errors, evaluate
from iclab.inference import chain_errors, chain_of_thought
from iclab.losses import squared
from iclab.models.chain_transformer import ChainTrace, ChainTransformer, ChainTransformerSettings
from iclab.optimisation import Training
from iclab.papers.chain_of_thought.settings import Settings
from iclab.probes.steps import step_gradients, step_masses
from iclab.training import Member, train
from iclab.worlds import transitions
from iclab.worlds.reasoning import Mode, Reasoning, ask

PATTERNS = np.eye(8)[:5]


def world(patterns=PATTERNS, steps=2, **changes):
    settings = {"matching_fraction": 0.5, "context_length": 6} | changes
    return Reasoning(patterns, steps=steps, **settings)


def draw(made, count=2000):
    return jax.jit(jax.vmap(lambda k, i: made.sample(k, i)))(
        jax.random.split(randomness.key(0), count), jnp.arange(count)
    )


# --- transition matrices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tau", "rho"), [(0.5, 0.8), (0.1, 0.8), (0.5, 0.95), (0.3, 0.6)])
def test_step_matrices_have_the_wanted_trajectory_probability_and_primacy(tau, rho):
    matrices = transitions.for_steps(tau, rho, 3, 10)
    found = transitions.measure(matrices)
    assert abs(found.trajectory_probability - tau) < 1e-6 and abs(found.primacy - rho) < 1e-6
    assert np.allclose(matrices.sum(axis=2), 1)


def test_the_measures_follow_the_definitions():
    """τ and τ_o against explicit loops over starts, trajectories and outputs."""
    matrices = transitions.for_steps(0.4, 0.7, 3, 6)
    shift = [1, 3, 6]  # places after steps 1, 2, 3
    tau = min(
        np.prod([matrices[k, (i + ([0, *shift])[k]) % 6, (i + shift[k]) % 6] for k in range(3)]) for i in range(6)
    )
    product = matrices[0] @ matrices[1] @ matrices[2]
    found = transitions.measure(matrices)
    assert np.isclose(found.trajectory_probability, tau)
    assert np.isclose(found.output_probability, product.max(axis=1).min())


@pytest.mark.parametrize("condition_1", [True, False])
def test_output_matrices_have_the_wanted_outputs_with_condition_1_holding_or_failing(condition_1):
    matrices = transitions.for_outputs(0.4, 0.1, 3, 10, condition_1=condition_1)
    found = transitions.measure(matrices)
    assert abs(found.output_probability - 0.4) < 1e-6 and abs(found.output_primacy - 0.1) < 1e-6
    assert found.condition_1 == condition_1
    transitions.check(matrices)  # (15) holds in any case


def test_infeasible_wishes_are_refused_with_the_feasible_range():
    with pytest.raises(InputError, match=r"allows a primacy in \[0.7401, 0.9711\] in this construction, not 0.5"):
        transitions.for_steps(0.5, 0.5, 3, 10)
    with pytest.raises(
        InputError, match=r"Condition 1 holding.*allows a primacy between about 0\.\d+ and 0\.\d+, not 0.15"
    ):
        transitions.for_outputs(0.5, 0.15, 3, 10)


def test_any_matrices_that_satisfy_15_are_accepted_and_the_offending_row_is_named():
    own = transitions.from_kernel(0.6, 0.3, 2, 5)
    assert np.array_equal(transitions.check(own), own)
    wrong = own.copy()
    wrong[1, 3] = np.roll(wrong[1, 3], 1)
    with pytest.raises(InputError, match=r"row 3 of the matrix of step 2 violates \(15\)"):
        world(transitions=wrong)
    wrong = own.copy()
    wrong[0, 2, 0] += 0.1
    with pytest.raises(InputError, match=r"row 2 of the matrix of step 1 sums to 1\.1"):
        transitions.check(wrong)


# --- the world --------------------------------------------------------------------------------------------------------


def test_the_chain_is_the_task_and_error_free_examples_follow_it():
    prompts = draw(world(steps=3), 300)
    chain, pattern = np.asarray(prompts.chain), np.asarray(prompts.pattern)[:, :18].reshape(300, 6, 3)
    for number in range(300):
        successor = {}  # (step, input) -> output, as all examples and the query say
        for example in pattern[number]:
            for step in range(2):
                assert successor.setdefault((step, int(example[step])), int(example[step + 1])) == int(
                    example[step + 1]
                )
        for step in range(2):
            if (step, int(chain[number, step])) in successor:
                assert successor[step, int(chain[number, step])] == chain[number, step + 1]


def test_patterns_and_steps_are_asked_equally_often_and_the_right_number_of_examples_match():
    prompts = draw(world(), 100)
    assert np.all(np.bincount(np.asarray(prompts.chain)[:, 0]) == 20)
    assert np.all(np.bincount(np.asarray(prompts.step)[:, -1])[1:] == 50)
    starts = np.asarray(prompts.pattern)[:, :12:2]
    assert np.all((starts == np.asarray(prompts.chain)[:, :1]).sum(axis=1) == 3)


def test_patterns_and_steps_stay_balanced_over_batches_of_any_size():
    """A batch of 7 does not divide 5 patterns × 2 steps; numbered on, 10 batches see every pair 7 times."""
    made = world()
    pairs = np.zeros((5, 2), int)
    for step in range(10):
        for index in range(step * 7, step * 7 + 7):
            prompt = made.sample(randomness.key(index), index)
            pairs[int(prompt.chain[0]), int(prompt.step[-1]) - 1] += 1
    assert np.all(pairs == 7)


def test_tokens_are_input_output_and_position():
    prompt = world(steps=3, mode=Mode.next_step).sample(randomness.key(1), 7)  # pattern 2, step 2
    tokens, chain = np.asarray(prompt.tokens()), np.asarray(prompt.chain)
    assert int(prompt.step[-1]) == 2 and int(prompt.target) == chain[2]
    assert np.allclose(tokens[-1], np.r_[PATTERNS[chain[1]], np.zeros(8), np.eye(3)[1]])
    assert np.allclose(tokens[-3], np.r_[PATTERNS[chain[0]], PATTERNS[chain[1]], np.eye(3)[0]])
    assert np.asarray(prompt.present)[-3:].tolist() == [True, False, True]  # step 1 solved, step 2 asked
    assert np.allclose(tokens[4, 16:], np.eye(3)[1])


def test_steps_go_wrong_as_often_as_the_matrices_say():
    matrices = transitions.from_kernel(0.6, 0.3, 1, 5)
    prompts = draw(world(steps=1, transitions=matrices, matching_fraction=1.0))
    chain = np.asarray(prompts.chain)
    outputs = np.asarray(prompts.atoms)[:, :6, 1] - 5
    right = outputs == chain[:, 1:]
    assert scipy.stats.binomtest(int(right.sum()), right.size, 0.6).pvalue > 1e-4


def test_noise_is_orthogonal_to_the_patterns_has_its_norm_and_is_shared_by_output_and_next_input():
    prompt = world(noise_norm=0.2).sample(randomness.key(0), 0)
    noise = np.asarray(prompt.noise)
    assert np.allclose(noise[:12, :8] @ PATTERNS.T, 0, atol=1e-6)
    assert np.allclose(np.linalg.norm(noise[:12, :8], axis=1), 0.2, atol=1e-5)
    assert np.allclose(noise[0, 8:16], noise[1, :8])  # y_{i,1} is the output of step 1 and the input of step 2
    assert np.all(noise[12:] == 0)  # the query is noiseless


def test_direct_prompts_show_input_and_final_answer_only():
    prompt = world(steps=3, mode=Mode.direct, noise_norm=0.1).sample(randomness.key(2), 3)
    clean = np.asarray(dataclasses.replace(prompt, noise=None).tokens())
    assert np.allclose(np.asarray(prompt.tokens())[:, :16], clean[:, :16] + np.asarray(prompt.noise), atol=1e-6)
    first = clean[:18].reshape(6, 3, -1)
    assert np.all(first[:, 1:, :16] == 0) and np.all(np.asarray(prompt.noise)[:18].reshape(6, 3, -1)[:, 1:] == 0)
    chain = np.asarray(prompt.chain)
    for example in first[:, 0]:
        if np.allclose(example[:8], PATTERNS[chain[0]]):
            assert np.allclose(example[8:16], PATTERNS[chain[3]])
    assert int(prompt.target) == chain[3] and int(prompt.step[-1]) == 1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: world(steps=0), "steps is 0; a task needs at least one step"),
        (lambda: world(matching_fraction=0.05), "matching_fraction 0.05 of 6 examples leaves none"),
        (lambda: world(matching_fraction=1.5), "matching_fraction is 1.5"),
        (lambda: world(context_length=0), "context_length is 0"),
        (lambda: world(noise_norm=-0.1), "noise_norm is -0.1"),
        (lambda: world(2 * PATTERNS), "the patterns must be orthonormal"),
        (lambda: world(np.eye(5), noise_norm=0.1), "noise orthogonal to 5 patterns does not exist in 5 dimensions"),
        (lambda: Settings(reasoning_steps=0), "reasoning_steps is 0"),
        (lambda: Settings(test_patterns=25), "test_patterns is 25, above patterns 20"),
        (lambda: Settings(primacy=0.2), "allows a primacy in"),
    ],
)
def test_bad_settings_are_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


# --- the model and how it is asked
# -------------------------------------------------------------------------------------


def forward_float64(weights, tokens, present):
    """Eq. (2), column by column."""
    weights, tokens = np.asarray(weights, np.float64), np.asarray(tokens, np.float64)
    seen = [i for i in range(len(tokens) - 1) if present[i]]
    scores = np.array([tokens[i] @ weights @ tokens[-1] for i in seen])
    attention = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    return sum(a * tokens[i, 8:16] for a, i in zip(attention, seen, strict=True))


@pytest.mark.parametrize("separate", [False, True])
def test_it_agrees_with_a_slow_float64_forward_of_equation_2(separate):
    made = world(noise_norm=0.2)
    model = ChainTransformerSettings(initial_scale=0.5, separate=separate).init(randomness.key(1), made)
    prompt = made.sample(randomness.key(2), 3)
    letters = model.letters()
    weights = letters["W"] if not separate else letters["W_K"].T @ letters["W_Q"]
    assert np.allclose(model(prompt)[0], forward_float64(weights, prompt.tokens(), prompt.present), atol=1e-5)


def test_attention_is_uniform_at_zero_weights_and_splits_into_four_groups():
    made = world(steps=3)
    prompt = made.sample(randomness.key(0), 7)
    _, trace = ChainTransformer(jnp.zeros((19, 19)))(prompt)
    seen = np.asarray(prompt.present)[:-1]
    assert np.allclose(trace.attention, seen / seen.sum())
    masses = step_masses(ChainTransformer(jnp.zeros((19, 19))), prompt)
    assert np.isclose(sum(float(mass) for mass in masses.values()), 1.0)
    same = (np.asarray(prompt.pattern)[:-1] == prompt.pattern[-1]) & (np.asarray(prompt.step)[:-1] == prompt.step[-1])
    assert np.isclose(masses["same_pattern_same_step"], (same & seen).sum() / seen.sum())


def softmax_gradient(weights, tokens, present, target):
    """∂/∂W of ½‖z - F‖² by hand: Σ_i a_i (F - z)·(v_i - F) p̃_i p̃_queryᵀ, in float64."""
    keys, query = tokens[:-1][present], tokens[-1]
    scores = np.exp(keys @ weights @ query)
    attention = scores / scores.sum()
    outputs = keys[:, 8:16]
    answer = attention @ outputs
    pull = attention * ((outputs - answer) @ (answer - target))
    return np.outer(pull @ keys, query)


def test_gradients_between_columns_are_the_means_over_pairs_of_the_gradient_by_hand():
    """Against a loop over all pairs of columns (μ_j; 0; c_k), with a model that is not symmetric."""
    prompt = world().sample(randomness.key(3), 6)
    weights = np.random.default_rng(0).normal(size=(18, 18))
    found = step_gradients(ChainTransformer(jnp.asarray(weights, jnp.float32)), prompt)
    tokens, present = np.asarray(prompt.tokens(), float), np.asarray(prompt.present)[:-1]
    gradient = softmax_gradient(weights, tokens, present, PATTERNS[int(prompt.target)])
    columns = {(j, k): np.r_[PATTERNS[j], np.zeros(8), np.eye(2)[k]] for j in range(5) for k in range(2)}
    pairs = {}
    for (j, k), left in columns.items():
        for (i, h), right in columns.items():
            name = f"gradient_{'same' if i == j else 'other'}_pattern_{'same' if k == h else 'other'}_step"
            pairs.setdefault(name, []).append(left @ gradient @ right)
    for name, values in pairs.items():
        assert np.isclose(found[name], np.mean(values), atol=1e-6), name
    mass = float(step_masses(ChainTransformer(jnp.asarray(weights, jnp.float32)), prompt)["same_pattern_same_step"])
    assert np.isclose(found["mass_rest_squared"], mass * (1 - mass) ** 2, atol=1e-6)


class Oracle(eqx.Module):
    """Always attends to the columns of the same step with the same input, equally."""

    unused: jax.Array

    def __call__(self, prompt):
        good = (prompt.pattern[:-1] == prompt.pattern[-1]) & (prompt.step[:-1] == prompt.step[-1]) & prompt.present[:-1]
        attention = good / jnp.maximum(jnp.sum(good), 1)
        features = prompt.answers.shape[1]
        return attention @ prompt.tokens()[:-1, features : 2 * features], ChainTrace(attention)


def plurality_error(probabilities, voters):
    """The exact error of a plurality vote for candidate 0; a tie is an error."""
    error = 0.0
    for counts in itertools.product(range(voters + 1), repeat=len(probabilities)):
        if sum(counts) == voters:
            ways = math.factorial(voters) / np.prod([math.factorial(count) for count in counts])
            top = max(counts)
            won = counts[0] == top and sum(count == top for count in counts) == 1
            error += ways * np.prod(np.power(probabilities, counts)) * (not won)
    return error


@pytest.mark.parametrize(("right", "following", "voters"), [(0.5, 0.3, 5), (0.6, 0.2, 8)])
def test_an_oracle_has_the_error_of_a_majority_vote(right, following, voters):
    patterns = np.eye(6)[:4]
    matrices = transitions.from_kernel(right, following, 1, 4)
    made = Reasoning(
        patterns, steps=1, matching_fraction=1.0, context_length=voters, transitions=matrices, mode=Mode.chain
    )
    jobs = Jobs(*(ensemble.stack([part]) for part in (Oracle(jnp.zeros(1)), np.float32(0), made, randomness.key(5))))
    found = float(evaluate(chain_errors, jobs, 40_000)["error"][0])
    rest = (1 - right - following) / 2
    expected = plurality_error([right, following, rest, rest], voters)
    assert abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / 40_000)


def test_chain_of_thought_feeds_its_answers_back():
    """With error-free examples that all start from the query, the oracle reasons right; one wrong answer derails the
    rest.
    """
    made = world(steps=3, matching_fraction=1.0, mode=Mode.chain)
    prompt = made.sample(randomness.key(3), 2)
    answers, ties = chain_of_thought(Oracle(jnp.zeros(1)), prompt)
    assert np.array_equal(answers, prompt.chain[1:]) and not np.any(ties)
    derailed = ask(prompt, prompt.chain.at[1].set((prompt.chain[1] + 1) % 5), 2)
    assert int(derailed.pattern[-1]) == (int(prompt.chain[1]) + 1) % 5
    assert np.allclose(np.asarray(derailed.tokens())[-1, :8], PATTERNS[int(derailed.pattern[-1])])


def trained(made, steps=400, step_size=10.0):
    member = Member(ensemble.member_key("chain", 0), made, ChainTransformerSettings(), Training(step_size, 20))
    states, _ = train(ensemble.stack([member]), squared, [0, steps])
    return states.model


def measured(models, made, measure, prompts=2000):
    jobs = Jobs(models, np.zeros(1), ensemble.stack([made]), ensemble.stack([randomness.key(1)]))
    return {name: float(value[0]) for name, value in evaluate(measure, jobs, prompts).items()}


def test_with_error_free_examples_and_one_matching_example_a_trained_model_reasons_exactly():
    models = trained(world())
    test = world(matching_fraction=0.17, mode=Mode.chain)  # one of six examples
    assert measured(models, test, chain_errors)["error"] == 0.0


def test_position_codes_inside_the_coordinates_of_the_value_are_caught_by_loss_and_value_not_by_accuracy():
    right, inside = world(), world(positions_inside=True)
    good, bad = (measured(trained(made), made, errors(squared)) for made in (right, inside))
    assert good["squared"] < 0.02 and good["error"] == 0.0
    assert bad["squared"] > 0.2 and bad["error"] < 0.02  # accuracy alone would not have noticed
    # The code leaks into the value: even perfect attention leaves ½‖c_k‖² = ½.
    leaked = np.asarray(inside.dictionary)[-3:-1, 8:16]
    assert np.allclose(np.linalg.norm(leaked, axis=1), 1)

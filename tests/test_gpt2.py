import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reference
import small
from iclab import randomness, training
from iclab.errors import InputError
from iclab.losses import cross_entropy, hinge, squared
from iclab.models import at_a_time
from iclab.models.gpt2 import GPT2Settings
from iclab.worlds.concepts import Concepts, Kind, orthonormal_concepts
from iclab.worlds.reasoning import Reasoning

SIZES = [(1, 1, 8), (3, 2, 12)]  # depth, heads, width
# Compiled once for all tests: operation by operation a forward pass takes seconds to compile.
answer = eqx.filter_jit(lambda model, prompt: model(prompt))
draw = eqx.filter_jit(lambda world, seed: world.sample(randomness.key(seed), seed))
init = eqx.filter_jit(lambda settings, world: settings.init(randomness.key(0), world))


def model_of(world, depth=3, heads=2, width=12):
    """GPT-2 with weights that have nothing special about them: every bias and norm moved away from its initial
    value.
    """
    model = init(GPT2Settings(depth=depth, heads=heads, width=width, positions=40), world)
    random = np.random.default_rng(0)
    return jax.tree.map(
        lambda leaf: np.asarray(leaf) + np.float32(0.3) * random.normal(size=leaf.shape).astype("f"), model
    )


def worlds():
    a, b, common = orthonormal_concepts(10, 2, 6)
    return {
        "labels": (small.world(length=4), hinge),
        "vectors": (
            Reasoning(np.eye(5, 7), steps=2, matching_fraction=0.5, context_length=4, maximum_length=6),
            squared,
        ),
        "dictionary": (
            Concepts(a, b, common, kind=Kind.icl, pairs=3, common_length=3, noise_scale=0.01, maximum_pairs=5),
            cross_entropy,
        ),
    }


@pytest.mark.parametrize("name", worlds())
def test_it_agrees_with_a_slow_float64_forward_on_every_world(name):
    world, loss = worlds()[name]
    model = model_of(world)
    for seed in range(3):
        prompt = draw(world, seed)
        output, trace = answer(model, prompt)
        expected, attention = reference.gpt2(model.letters(), 2, prompt.tokens(), prompt.present)
        assert np.shape(output) == (() if name == "labels" else prompt.answers.shape[1:])
        assert np.allclose(output, expected, atol=1e-4)
        assert np.allclose(trace.attention[..., np.flatnonzero(prompt.present[:-1])], attention[..., :-1], atol=1e-5)
        assert np.isfinite(loss.value(output, prompt))


def test_a_batch_in_pieces_has_the_loss_and_gradient_of_the_whole_batch(monkeypatch):
    """The loss, the error and every weight's gradient, over pieces of 10, 4 and 1 of 20 prompts, and over all."""
    world, loss = worlds()["labels"]
    model = model_of(world)
    draw_all = jax.vmap(lambda number: world.sample(jax.random.fold_in(randomness.key(3), number), number))
    prompts = jax.jit(draw_all)(jnp.arange(20)).written_out()
    axes = jax.tree.map(lambda leaf: 0, prompts)
    mean = lambda model, prompts: training._batch_loss(model, prompts, axes, loss)  # noqa: E731
    gradient = eqx.filter_value_and_grad(mean, has_aux=True)
    assert [at_a_time(model, batch) for batch in (64, 60, 7, 250)] == [8, 6, 7, 5]
    whole = jax.tree.leaves(eqx.filter_jit(gradient)(model, prompts))
    for most in (10, 4, 1):
        monkeypatch.setattr(type(model), "at_a_time", most)
        pieces = jax.tree.leaves(eqx.filter_jit(training._by_pieces)(gradient, model, prompts))
        assert len(pieces) == len(whole) > 10
        assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(pieces, whole, strict=True))


@pytest.mark.parametrize(("depth", "heads", "width"), SIZES)
def test_it_agrees_with_the_reference_implementation_on_the_same_weights(depth, heads, width):
    """`transformers`' GPT2Model, loaded with our weights by name, on whole prompts and on prompts with absent
    tokens.
    """
    torch = pytest.importorskip("torch", reason="the extra `llm` (torch, transformers) is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra `llm` (torch, transformers) is not installed")
    config = transformers.GPT2Config(
        n_layer=depth, n_head=heads, n_embd=width, n_positions=40, vocab_size=1, activation_function="gelu_new",
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager",
    )  # fmt: skip
    theirs = transformers.GPT2Model(config).eval()
    world = small.world(length=small.LENGTH)
    ours = model_of(world, depth, heads, width)
    letters = ours.letters()
    mine = {name: torch.tensor(value) for name, value in letters.items() if not name.startswith("read_")}
    missing, unexpected = theirs.load_state_dict(mine, strict=False)
    assert missing == ["wte.weight"] and unexpected == []  # word embeddings are what our read-in replaces
    for length in (small.LENGTH, 4):
        prompt = draw(small.world(length=length), length)
        output, trace = answer(ours, prompt)
        embedded = np.asarray(prompt.tokens()) @ letters["read_in.weight"] + letters["read_in.bias"]
        mask = torch.tensor(np.asarray(prompt.present))[None].long()
        with torch.no_grad():
            found = theirs(
                inputs_embeds=torch.tensor(embedded)[None], attention_mask=mask,
                position_ids=(mask.cumsum(1) - 1).clamp(min=0), output_attentions=True,
            )  # fmt: skip
        hidden = found.last_hidden_state[0, -1].numpy()
        logits = hidden @ letters["read_out.weight"] + letters["read_out.bias"]
        assert abs(float(output) - logits[0]) < 1e-4
        attention = np.stack([layer[0, :, -1, :-1].numpy() for layer in found.attentions])
        assert np.allclose(trace.attention, attention, atol=1e-5)


def test_what_lies_in_the_padding_does_not_leak():
    prompt = draw(small.world(length=4), 2)
    poisoned = eqx.tree_at(lambda p: p.coefficients, prompt, prompt.coefficients.at[4:-1].set(1e3))
    model = model_of(small.world())
    assert answer(model, prompt)[0] == answer(model, poisoned)[0]
    gradients = eqx.filter_jit(eqx.filter_grad(lambda m: m(prompt)[0]))(model)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradients))


def test_a_masked_prompt_is_the_shorter_prompt():
    """Padding takes no position: the same four contexts and query, with and without room for six more."""
    long = draw(small.world(length=4), 2)
    keep = jnp.array([0, 1, 2, 3, small.LENGTH])
    fields = ("atoms", "coefficients", "present", "pattern", "label")
    short = eqx.tree_at(lambda p: [getattr(p, f) for f in fields], long, [getattr(long, f)[keep] for f in fields])
    model = model_of(small.world())
    assert np.allclose(answer(model, long)[0], answer(model, short)[0], atol=1e-5)


def test_only_positions_tell_the_order_of_contexts_in_one_layer():
    """One layer sees its contexts as a set once positions are gone: what the query reads is a sum over them."""
    prompt = draw(small.world(), 1)
    order = jnp.array([*np.random.default_rng(0).permutation(10), 10])
    fields = ("atoms", "coefficients", "present", "pattern", "label")
    shuffled = eqx.tree_at(
        lambda p: [getattr(p, f) for f in fields], prompt, [getattr(prompt, f)[order] for f in fields]
    )
    model = model_of(small.world(), depth=1)
    assert not np.allclose(answer(model, prompt)[0], answer(model, shuffled)[0], atol=1e-3)
    blind = eqx.tree_at(lambda m: m.positions, model, jnp.zeros_like(model.positions))
    assert np.allclose(answer(blind, prompt)[0], answer(blind, shuffled)[0], atol=1e-5)


@pytest.mark.slow
def test_half_precision_changes_the_answer_little_and_answers_in_float32():
    world = small.world()
    prompt = draw(world, 0)
    model = init(GPT2Settings(depth=2, width=32, positions=11), world)
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), model)
    exact, rounded = answer(model, prompt), answer(half, prompt)
    assert rounded[0].dtype == jnp.float32 and rounded[1].attention.dtype == jnp.float32
    assert exact[0] != rounded[0] and abs(exact[0] - rounded[0]) < 0.02 * max(1.0, abs(exact[0]))
    assert np.allclose(np.sum(rounded[1].attention, axis=-1), np.sum(exact[1].attention, axis=-1), atol=0.01)


def test_initialisation_is_that_of_gpt2():
    model = init(GPT2Settings(depth=2, width=128, positions=300), small.world())
    block = model.blocks[0]
    for weight, scale in (
        (block.attention.weight, 0.02), (block.expansion.weight, 0.02), (model.positions, 0.02),
        (block.projection.weight, 0.01), (block.contraction.weight, 0.01),
    ):  # fmt: skip
        assert abs(np.std(weight) / scale - 1) < 0.03
    assert np.all(block.attention.bias == 0) and np.all(block.neuron_norm.scale == 1)
    assert not np.array_equal(block.attention.weight, model.blocks[1].attention.weight)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="width 10 is not a multiple of heads 3"):
        GPT2Settings(heads=3, width=10)
    with pytest.raises(InputError, match="depth is 0"):
        GPT2Settings(depth=0)
    model = init(GPT2Settings(width=12, depth=1, positions=5), small.world())
    with pytest.raises(InputError, match="11 tokens does not fit into the 5 positions"):
        model(draw(small.world(), 0))

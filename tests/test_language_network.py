"""What is read from a language model is what transformers computes, and what is changed in it acts where it should."""

import copy

import numpy as np
import pytest

import tiny

torch = pytest.importorskip("torch", reason="the extra `llm` is not installed")

from iclab.errors import InputError  # noqa: E402
from iclab.language import edits, loading, network, prompts, words  # noqa: E402
from iclab.language.study.asking import require_effect  # noqa: E402

KINDS = ("llama", "gpt2", "mamba")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {kind: network.LanguageModel(kind, *loading._read(tiny.write(folder / kind, kind))) for kind in KINDS}


@pytest.fixture(params=KINDS)
def model(models, request):
    return models[request.param]


@pytest.fixture(params=("llama", "gpt2"))
def transformer(models, request):
    return models[request.param]


def some(model, count=6):
    """Prompts of different lengths, and their answers."""
    pairs = words.examples("antonym")
    lines = [prompts.few_shot(model, pairs[10 : 10 + number], pairs[number][:1], ":").tokens for number in range(count)]
    return lines, [model.tokens(f" {pairs[number][-1]}")[0] for number in range(count)]


def test_words_are_the_same_tokens_wherever_they_stand(model):
    text = "\n hot: cold\n big:"
    built = prompts.few_shot(model, [("hot", "cold")], ("big",), ":")
    assert list(built.tokens) == model.tokenizer(text).input_ids
    assert (
        built.owner == (-1, 0, 0, 0, 0, -1, -1) and model.is_one_token("cold") and not model.is_one_token("New Zealand")
    )


def test_answers_are_those_of_one_whole_forward_pass_and_padding_changes_nothing(model):
    lines, targets = some(model)
    found = model.ask(lines, targets, [[target, 1] for target in targets])
    for number, (line, target) in enumerate(zip(lines, targets, strict=True)):
        with torch.inference_mode():
            logits = model.network(torch.as_tensor([line])).logits[0, -1].double().numpy()
        assert found.top[number] == logits.argmax() and found.rank[number] == (logits > logits[target]).sum()
        expected = logits[target] - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        np.testing.assert_allclose(found.log_probability[number], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.choices[number], logits[[target, 1]], rtol=1e-4, atol=1e-4)
    assert found.rank.max() > 0 and (found.right == (found.rank == 0)).all()


def test_streams_are_the_hidden_states_of_transformers(model):
    lines, _ = some(model)
    found = model.states(lines)
    assert found.shape == (len(lines), model.depth + 1, model.width)
    for number, line in enumerate(lines):
        with torch.inference_mode():
            hidden = model.core(torch.as_tensor([line]), output_hidden_states=True).hidden_states
        # transformers' lists: normalised at the end; a Mamba's without the embeddings; GPT-2's with positions in the
        # first.
        first = 1 if model.name in ("mamba", "gpt2") else 0
        for place in range(first, model.depth):
            expected = hidden[place - 1 if model.name == "mamba" else place][0, -1].numpy()
            np.testing.assert_allclose(found[number, place], expected, rtol=1e-4, atol=1e-4)


def test_attention_is_that_of_transformers_and_sums_to_one(transformer):
    lines, _ = some(transformer)
    before = transformer.network.config._attn_implementation
    for weights, line in zip(transformer.attention(lines), lines, strict=True):
        assert weights.shape == (3, 4, len(line))
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    assert transformer.network.config._attn_implementation == before
    # A uniform planted attention is read as such.
    flat = copy.deepcopy(transformer.network)
    for name, weight in flat.named_parameters():
        if "q_proj" in name or "c_attn" in name:
            weight.data.zero_()
    (weights,) = network.LanguageModel("flat", flat, transformer.tokenizer).attention(lines[3:4])
    np.testing.assert_allclose(weights, 1 / len(lines[3]), rtol=1e-5)


def test_a_mamba_has_no_attention_to_look_at_and_no_mlp_to_prune(models):
    assert not models["mamba"].has_attention and models["llama"].has_attention and models["gpt2"].has_attention
    with pytest.raises(InputError, match="mamba has no attention"):
        models["mamba"].attention([[1, 2]])
    with pytest.raises(InputError, match="iclab finds no MLP in block 0"):
        edits.mlps(models["mamba"])


def test_a_patch_of_nothing_changes_nothing(model):
    lines, targets = some(model)
    plain, streams = model.ask(lines, targets).log_probability, model.states(lines)
    for place in range(model.depth + 1):
        at = np.full(len(lines), place)
        zero = edits.Patch(at, np.zeros((len(lines), model.width)))
        same = edits.Patch(at, streams[:, place], replace=True)
        np.testing.assert_array_equal(model.ask(lines, targets, edit=zero).log_probability, plain)
        np.testing.assert_array_equal(model.ask(lines, targets, edit=same).log_probability, plain)


def test_a_planted_stream_gives_the_other_prompts_answer(model):
    lines, targets = some(model)
    streams, order = model.states(lines), np.roll(np.arange(len(lines)), 1)
    planted = edits.Patch(np.full(len(lines), model.depth), streams[order, model.depth], replace=True)
    found = model.ask(lines, targets, edit=planted)
    other = model.ask([lines[index] for index in order], targets)
    np.testing.assert_array_equal(found.top, other.top)
    np.testing.assert_allclose(found.log_probability, other.log_probability, rtol=1e-4, atol=1e-4)


def test_a_planted_vector_along_an_answer_makes_it_the_first(model):
    lines, targets = some(model)
    rows = model.network.get_output_embeddings().weight.numpy()[targets]
    edit = edits.Patch(np.full(len(lines), model.depth), 1e3 * rows / np.linalg.norm(rows, axis=1, keepdims=True))
    assert model.ask(lines, targets, edit=edit).rank.max() <= 2 < model.ask(lines, targets).rank.max()


def test_every_place_acts_on_its_own_rows_and_not_before_itself(model):
    lines, targets = some(model)
    plain, streams = model.ask(lines, targets).log_probability, model.states(lines)
    vectors = np.random.default_rng(0).normal(size=(len(lines), model.width))
    places = np.arange(len(lines)) % (model.depth + 1)
    moved = model.states(lines, edit=edits.Patch(places, vectors))
    for row, place in enumerate(places):
        np.testing.assert_array_equal(moved[row, :place], streams[row, :place])
        np.testing.assert_allclose(moved[row, place], streams[row, place] + vectors[row], rtol=1e-4, atol=1e-4)
        assert place == model.depth or np.abs(moved[row, place + 1 :] - streams[row, place + 1 :]).min(1).max() > 0
    effect = np.abs(model.ask(lines, targets, edit=edits.Patch(places, vectors)).log_probability - plain)
    assert (effect > 1e-4).all()
    with pytest.raises(InputError, match=f"between 0 and {model.depth}"):
        model.ask(lines, targets, edit=edits.Patch(places + 10, vectors))


def test_hooks_are_gone_after_use_even_where_something_fails(model):
    lines, targets = some(model)
    plain = model.ask(lines, targets).log_probability
    model.ask(lines, targets, edit=edits.Patch(np.ones(len(lines), int), np.ones((len(lines), model.width))))
    with pytest.raises((RuntimeError, ValueError)):
        model.ask(lines, targets, edit=edits.Patch(np.ones(len(lines), int), np.ones((len(lines), 3))))
    np.testing.assert_array_equal(model.ask(lines, targets).log_probability, plain)


def test_pruning_nothing_changes_nothing_and_pruning_all_is_a_network_without_mlps(transformer):
    lines, targets = some(transformer)
    plain = transformer.ask(lines, targets).log_probability
    width = edits.mlps(transformer)[0].width
    assert width == (40 if transformer.name == "llama" else 96)
    everything = edits.Pruned(np.ones((3, width), bool))
    np.testing.assert_array_equal(transformer.ask(lines, targets, edit=everything).log_probability, plain)
    bare = copy.deepcopy(transformer.network)
    for neurons in edits.mlps(network.LanguageModel("bare", bare, transformer.tokenizer)):
        neurons.outgoing.weight.data.zero_()
    expected = network.LanguageModel("bare", bare, transformer.tokenizer).ask(lines, targets).log_probability
    found = transformer.ask(lines, targets, edit=edits.Pruned(np.zeros((3, width), bool))).log_probability
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert np.abs(found - plain).min() > 1e-3
    one = np.ones((3, width), bool)
    one[1, 5] = False
    assert np.abs(transformer.ask(lines, targets, edit=edits.Pruned(one)).log_probability - plain).max() > 1e-5


def test_what_an_mlp_adds_is_the_step_from_the_stream_before_it_to_that_behind_it(transformer):
    lines, _ = some(transformer)
    behind, added = edits.updates(transformer, lines)
    np.testing.assert_array_equal(behind, transformer.states(lines))
    assert added.shape == behind.shape and not added[:, 0].any()
    name = "post_attention_layernorm" if transformer.name == "llama" else "ln_2"
    seen = []
    handles = [
        getattr(block, name).register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0][0, -1].numpy()))
        for block in transformer.blocks
    ]
    with torch.inference_mode():
        for line in lines:
            transformer.core(torch.as_tensor([line]))
    for handle in handles:
        handle.remove()
    expected = np.reshape(seen, (len(lines), transformer.depth, transformer.width))
    np.testing.assert_allclose((behind - added)[:, 1:], expected, rtol=1e-4, atol=1e-4)


def test_a_vector_in_the_stead_of_what_an_mlp_adds_acts_there_and_on_its_own_rows(transformer):
    lines, targets = some(transformer)
    plain, (behind, added) = transformer.ask(lines, targets).log_probability, edits.updates(transformer, lines)
    second = np.tile(np.arange(3) == 1, (len(lines), 1))
    back = transformer.ask(lines, targets, edit=edits.Updated(second, added[:, 2])).log_probability
    np.testing.assert_allclose(back, plain, rtol=1e-5, atol=1e-5)
    only = second & (np.arange(len(lines)) % 2 == 0)[:, None]
    moved = transformer.states(lines, edit=edits.Updated(only, np.zeros((len(lines), transformer.width))))
    np.testing.assert_allclose(moved[::2, 2], (behind - added)[::2, 2], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(moved[1::2], behind[1::2])
    np.testing.assert_array_equal(moved[:, :2], behind[:, :2])
    assert np.abs(moved[::2, 3] - behind[::2, 3]).max() > 1e-2


def test_decoding_behind_the_last_block_gives_the_answer_and_elsewhere_norm_and_head(model):
    lines, targets = some(model)
    streams, answers = model.states(lines), model.ask(lines, targets, [[target, 1] for target in targets])
    tokens = np.array([[target, 1] for target in targets])
    logits, ranks = model.decode(streams[:, -1], tokens)
    np.testing.assert_allclose(logits, answers.choices, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(ranks[:, 0], answers.rank)
    state = streams[:, 1].astype(float)
    if model.name == "gpt2":
        state = state - state.mean(1, keepdims=True)
    state = state / np.sqrt((state**2).mean(1, keepdims=True) + 1e-6)  # gains are 1 and biases 0 in a fresh network
    expected = state @ model.network.get_output_embeddings().weight.numpy().astype(float).T
    logits, ranks = model.decode(streams[:, 1], tokens)
    np.testing.assert_allclose(logits, np.take_along_axis(expected, tokens, 1), rtol=1e-3, atol=1e-3)
    assert (ranks[:, 0] == (expected > expected[np.arange(6), targets][:, None]).sum(1)).mean() > 0.8


def test_shuffled_weights_are_the_same_numbers_in_another_order_and_leave_the_model_as_it_was(model):
    lines, targets = some(model)
    plain = model.ask(lines, targets).log_probability
    blank = edits.shuffled(model)
    for given, mixed in zip(model.network.parameters(), blank.network.parameters(), strict=True):
        torch.testing.assert_close(given.flatten().sort().values, mixed.flatten().sort().values, rtol=0, atol=0)
        assert torch.equal(given, mixed) == (given.ndim == 1)
    np.testing.assert_array_equal(model.ask(lines, targets).log_probability, plain)
    found = blank.ask(lines, targets).log_probability
    assert np.abs(found - plain).min() > 0
    np.testing.assert_array_equal(edits.shuffled(model).ask(lines, targets).log_probability, found)


def test_a_neurons_size_is_the_product_of_its_norms_and_its_activity_a_mean_over_tokens(transformer):
    neurons = edits.mlps(transformer)[1]
    if transformer.name == "llama":
        gate, up = (m.weight.numpy().astype(float) for m in neurons.incoming)
        into, out = np.linalg.norm(gate, axis=1) * np.linalg.norm(up, axis=1), neurons.outgoing.weight.numpy()
    else:
        into, out = np.linalg.norm(neurons.incoming[0].weight.numpy(), axis=0), neurons.outgoing.weight.numpy().T
    np.testing.assert_allclose(neurons.weight_score(), into * np.linalg.norm(out, axis=0), rtol=1e-5)
    lines, _ = some(transformer, 3)
    seen = []
    handle = neurons.outgoing.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0][0].numpy()))
    with torch.inference_mode():
        for line in lines:
            transformer.core(torch.as_tensor([line]))
    handle.remove()
    np.testing.assert_allclose(
        edits.activity(transformer, lines)[1], np.abs(np.concatenate(seen)).mean(0), rtol=1e-3, atol=1e-5
    )


def test_an_intervention_that_changed_nothing_is_refused():
    require_effect("a change", np.zeros(3), np.array([0.0, 0.1, 0.0]))
    with pytest.raises(RuntimeError, match="a change changed nothing: the intervention missed its place"):
        require_effect("a change", np.zeros(3), np.zeros(3))

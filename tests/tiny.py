"""Tiny language models with random weights and a tokenizer of whole words, written into a folder as transformers
does.
"""

import functools
import re

from iclab.language import words

PIECE = r"\n|:| ?[^\s:]+"


@functools.cache
def vocabulary():
    """Every word of every task with the space before it, and what stands between them."""
    names = (*words.WORD_TASKS, *words.LABEL_TASKS, *words.TWO_STEP_TASKS)
    texts = [f" {word}" for name in names for example in words.examples(name) for word in example]
    pieces = {piece for text in (*texts, " James Bond", " X", " Y") for piece in re.findall(PIECE, text)}
    return {piece: number for number, piece in enumerate(["<unk>", "\n", ":", " ->", " =", *sorted(pieces)])}


def tokenizer():
    import transformers
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel(vocabulary(), unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), behavior="isolated")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>")


def write(folder, kind="llama"):
    """A model with nothing special about it: weights large enough for answers to differ."""
    import torch
    import transformers

    size = {"vocab_size": len(vocabulary()), "hidden_size": 24, "num_hidden_layers": 3}
    torch.manual_seed(0)
    if kind == "llama":
        config = transformers.LlamaConfig(
            **size, intermediate_size=40, num_attention_heads=4, num_key_value_heads=2, initializer_range=0.5
        )
        network = transformers.LlamaForCausalLM(config)
    elif kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=len(vocabulary()), n_embd=24, n_layer=3, n_head=4, initializer_range=0.5, n_positions=256
        )
        network = transformers.GPT2LMHeadModel(config)
    else:
        network = transformers.MambaForCausalLM(transformers.MambaConfig(**size, state_size=4, initializer_range=0.5))
    network.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder

"""One interface to Transformers and Mambas: read and change the residual stream, and get answers.

Places are numbered 0 (the embeddings) to depth (after the last block). Prompts of different lengths are padded on the
right: every model here is causal, so padding after the last token changes nothing before it, and no mask is needed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from iclab.errors import InputError, require

TOKENS_AT_ONCE = 2048  # padded tokens of a batch: enough to keep two cores busy, small enough for a laptop
ROWS_AT_ONCE = 256  # residual streams that are decoded together: each gives a number for every token


@runtime_checkable
class Edit(Protocol):
    """A change inside the network while a batch runs."""

    def attach(self, model: LanguageModel, rows: np.ndarray, last: Any) -> list[Any]:
        """Register hooks for these rows of the whole set of prompts, whose last tokens stand at `last`; their
        handles.
        """
        ...


@dataclasses.dataclass(frozen=True)
class Answers:
    """The answers to prompts: the most probable token, the rank of the right one (0: first) in the vocabulary, its
    log-probability, and the logits of the tokens offered as choices.
    """

    top: np.ndarray
    rank: np.ndarray
    log_probability: np.ndarray
    choices: np.ndarray

    @property
    def right(self) -> np.ndarray:
        """1.0 where the most probable token is the right one."""
        return (self.rank == 0).astype(float)


@dataclasses.dataclass(frozen=True, eq=False)
class LanguageModel:
    """A causal network of transformers with its tokenizer."""

    name: str
    network: Any
    tokenizer: Any

    @property
    def core(self) -> Any:
        """The network without the map to the vocabulary."""
        return getattr(self.network, self.network.base_model_prefix)

    @functools.cached_property
    def blocks(self) -> list[Any]:
        """The blocks that write to the residual stream, in order."""
        import torch

        count = self.network.config.num_hidden_layers
        lists = [m for m in self.core.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == count]
        require(len(lists) >= 1, f"model={self.name}: iclab finds no list of {count} blocks in it.")
        return list(lists[0])

    @functools.cached_property
    def places(self) -> list[Any]:
        """The modules whose outputs are the residual stream, from the embeddings on."""
        return [self.network.get_input_embeddings(), *self.blocks]

    @property
    def depth(self) -> int:
        """How many blocks."""
        return len(self.blocks)

    @property
    def width(self) -> int:
        """Coordinates of the residual stream."""
        return int(self.network.config.hidden_size)

    @property
    def has_attention(self) -> bool:
        """Whether blocks attend (a Mamba's do not)."""
        return any("attn" in name or "attention" in name for name, _ in self.blocks[0].named_modules())

    @functools.cached_property
    def embeddings(self) -> np.ndarray:
        """The static word vectors, token × coordinate."""
        return self.network.get_input_embeddings().weight.detach().numpy()

    @functools.cached_property
    def start(self) -> tuple[int, ...]:
        """The beginning of every prompt: the tokenizer's own first token, if it has one, and a new line.

        Without the new line, the first word would be at position 0, an attention sink.
        """
        text = self.tokenizer("\n", add_special_tokens=False).input_ids
        first = self.tokenizer("\n").input_ids[:1]
        bos = [self.tokenizer.bos_token_id] if first == [self.tokenizer.bos_token_id] != text[:1] else []
        return (*bos, *text)

    @functools.cached_property
    def new_line(self) -> tuple[int, ...]:
        """The end of a line."""
        return tuple(self.tokenizer("\n", add_special_tokens=False).input_ids[-1:])

    @functools.cached_property
    def _pieces(self) -> dict[str, tuple[int, ...]]:
        return {}

    def tokens(self, piece: str) -> tuple[int, ...]:
        """The tokens of a piece of a line, as inside a text: " France" with its space."""
        if piece not in self._pieces:
            alone = self.tokenizer("\n", add_special_tokens=False).input_ids
            whole = self.tokenizer(f"\n{piece}", add_special_tokens=False).input_ids
            self._pieces[piece] = tuple(whole[len(alone) :])
        return self._pieces[piece]

    def is_one_token(self, word: str) -> bool:
        """Whether the word, with the space before it, is one token."""
        return len(self.tokens(f" {word}")) == 1

    def ask(
        self,
        prompts: Sequence[Sequence[int]],
        targets: Sequence[int],
        choices: Sequence[Sequence[int]] = (),
        edit: Edit | None = None,
    ) -> Answers:
        """The answer to each prompt."""
        import torch

        count, offered = len(prompts), max((len(row) for row in choices), default=0)
        top, rank = np.zeros(count, int), np.zeros(count, int)
        probability, logits_of = np.zeros(count), np.zeros((count, offered))
        head = self.network.get_output_embeddings()
        for rows, ids, last in self._batches(prompts):
            with torch.inference_mode(), _attached(edit, self, rows, last):
                state = self.core(input_ids=ids, use_cache=False)[0]
                logits = head(state[torch.arange(len(rows)), last])
                right = torch.as_tensor([targets[row] for row in rows])
                mine = logits.gather(1, right[:, None])
                top[rows] = logits.argmax(1).numpy()
                rank[rows] = (logits > mine).sum(1).numpy()
                probability[rows] = (mine[:, 0] - logits.logsumexp(1)).numpy()
                if offered:
                    wanted = torch.as_tensor([list(choices[row]) for row in rows])
                    logits_of[rows] = logits.gather(1, wanted).numpy()
        return Answers(top, rank, probability, logits_of)

    def states(self, prompts: Sequence[Sequence[int]], edit: Edit | None = None) -> np.ndarray:
        """The residual stream at each prompt's last token: prompt × place × coordinate."""
        import torch

        found = np.zeros((len(prompts), self.depth + 1, self.width), np.float32)

        def keep(rows: Any, last: Any, number: int, module: Any, inputs: Any, output: Any) -> None:
            found[rows, number] = stream(output)[torch.arange(len(rows)), last].numpy()

        for rows, ids, last in self._batches(prompts):
            handles = edit.attach(self, rows, last) if edit else []
            for number, place in enumerate(self.places):
                handles.append(place.register_forward_hook(functools.partial(keep, rows, last, number)))
            try:
                with torch.inference_mode():
                    self.core(input_ids=ids, use_cache=False)
            finally:
                for handle in handles:
                    handle.remove()
        return found

    def decode(self, streams: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The model's own head applied to residual streams (row × coordinate): logit and rank (0: first) of tokens
        (row × token). After the last block, this is its answer.
        """
        import torch

        head = self.network.get_output_embeddings()
        logits, ranks = np.zeros(tokens.shape), np.zeros(tokens.shape)
        for begin in range(0, len(streams), ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            with torch.inference_mode():
                found = head(self._last_norm(torch.as_tensor(streams[rows], dtype=torch.float32)))
                own = found.gather(1, torch.as_tensor(tokens[rows]))
                logits[rows] = own.numpy()
                for column in range(tokens.shape[1]):
                    ranks[rows, column] = (found > own[:, column, None]).sum(1).numpy()
        return logits, ranks

    @functools.cached_property
    def _last_norm(self) -> Any:
        """The normalisation between the last block and the head."""
        inside = {module for block in self.blocks for module in block.modules()}
        outside = [module for module in self.core.modules() if module not in inside]
        norms = [module for module in outside if getattr(getattr(module, "weight", None), "ndim", 0) == 1]
        require(len(norms) >= 1, f"model={self.name}: iclab finds no normalisation after its blocks.")
        return norms[-1]

    def attention(self, prompts: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """The attention of each prompt's last token, per prompt: block × head × token."""
        import torch

        require(self.has_attention, f"model={self.name} has no attention.")
        found: list[np.ndarray] = [np.zeros(0)] * len(prompts)
        before = self.network.config._attn_implementation
        self.network.set_attn_implementation("eager")  # the others do not give the weights
        try:
            for rows, ids, last in self._batches(prompts, TOKENS_AT_ONCE // 4):
                with torch.inference_mode():
                    weights = self.core(input_ids=ids, use_cache=False, output_attentions=True).attentions
                for index, row in enumerate(rows):
                    end = int(last[index])
                    found[row] = np.stack([layer[index, :, end, : end + 1].numpy() for layer in weights])
        finally:
            self.network.set_attn_implementation(before)
        return found

    def _batches(
        self, prompts: Sequence[Sequence[int]], budget: int = TOKENS_AT_ONCE
    ) -> Iterator[tuple[np.ndarray, Any, Any]]:
        """Prompts of similar lengths together: their numbers, padded tokens, and the places of their last tokens."""
        import torch

        lengths = np.array([len(prompt) for prompt in prompts])
        if len(lengths) and lengths.min() == 0:
            raise InputError("a prompt has no tokens.")
        order = np.argsort(lengths, kind="stable")
        begin = 0
        while begin < len(order):
            end = begin + 1
            while end < len(order) and (end + 1 - begin) * lengths[order[end]] <= budget:
                end += 1
            rows = order[begin:end]
            ids = torch.zeros((len(rows), int(lengths[rows].max())), dtype=torch.long)
            for index, row in enumerate(rows):
                ids[index, : lengths[row]] = torch.as_tensor(list(prompts[row]))
            yield rows, ids, torch.as_tensor(lengths[rows] - 1)
            begin = end


def stream(output: Any) -> Any:
    """The residual stream in the output of a block: the output itself, or its first item."""
    return output[0] if isinstance(output, tuple) else output


class _attached:
    """An edit while a batch runs."""

    def __init__(self, edit: Edit | None, model: LanguageModel, rows: np.ndarray, last: Any) -> None:
        self._handles = edit.attach(model, rows, last) if edit else []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

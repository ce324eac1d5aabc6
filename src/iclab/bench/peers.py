"""The same trainings in eager PyTorch, the way the field writes them: a module, a batch of dense prompts, backward,
step.

Data are drawn anew every step with vectorised tensor operations, nothing is compiled, one model is trained on all cores
(or the GPU). This is what a careful student would write first; it is not tuned, and it is not meant to be slow. Weights
start as in the papers; that a peer learns like the model beside it is tested. Needs the extra `llm` for PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from iclab.bench.cases import CASES


def _classification(torch: Any, world: Any, batch: int, device: Any) -> Callable[[], tuple[Any, Any]]:
    """Dense prompts (batch × tokens × columns) and targets of a classification world, all at once."""
    dictionary = torch.tensor(np.asarray(world.dictionary), device=device)
    tasks = torch.tensor(np.asarray(world.tasks)[: int(world.task_count)], device=device).long()
    relevant, irrelevant = int(world.relevant_patterns), int(world.irrelevant_patterns)
    length, fraction = int(world.context_length), float(world.matching_fraction)
    low, high = float(world.irrelevant_low), float(world.irrelevant_high)
    target = torch.ones(batch, device=device)
    target[1::2] = -1

    def draw() -> tuple[Any, Any]:
        task = tasks[torch.randint(len(tasks), (batch,), device=device)]
        choice = torch.rand(batch, length, device=device)
        others = torch.randint(relevant - 2, (batch, length), device=device)
        ordered = task.sort(dim=1).values
        others = others + (others >= ordered[:, :1])
        others = others + (others >= ordered[:, 1:])
        pattern = torch.where(choice < fraction / 2, task[:, :1], torch.where(choice < fraction, task[:, 1:], others))
        coin = torch.randint(2, (batch, length), device=device).float() * 2 - 1
        label = torch.where(pattern == task[:, :1], 1.0, torch.where(pattern == task[:, 1:], -1.0, coin))
        query = torch.where(target > 0, task[:, 0], task[:, 1])
        pattern = torch.cat([pattern, query[:, None]], dim=1)
        size = low + (high - low) * torch.rand(batch, length + 1, device=device)
        other = relevant + torch.randint(irrelevant, (batch, length + 1), device=device)
        tokens = dictionary[pattern] + size[..., None] * dictionary[other]
        if world.outliers is not None:
            outlier = torch.rand(batch, length, device=device) < float(world.outliers.fraction)
            label = torch.where(outlier, torch.randint(2, (batch, length), device=device).float() * 2 - 1, label)
            which = relevant + irrelevant + torch.randint(int(world.outlier_patterns), (batch, length), device=device)
            tokens[:, :-1] += float(world.outliers.magnitude) * outlier[..., None] * dictionary[which]
        tokens[:, :-1] += label[..., None] * dictionary[-1]
        return tokens, target

    return draw


def _reasoning(torch: Any, world: Any, batch: int, device: Any) -> Callable[[], tuple[Any, Any]]:
    """Dense reasoning prompts: l examples of K columns each, the solved steps of the query, the question; and the
    answers.
    """
    dictionary = torch.tensor(np.asarray(world.dictionary), device=device)
    patterns = torch.tensor(np.asarray(world.patterns), device=device)
    count, steps, length = len(patterns), world.steps, int(world.context_length)
    matching = round(float(world.matching_fraction) * length)
    numbers = torch.arange(batch, device=device)
    empty = len(dictionary) - 1

    def draw() -> tuple[Any, Any]:
        order = torch.rand(batch, count, device=device).argsort(dim=1)
        start = (order == (numbers % count)[:, None]).float().argmax(dim=1)
        asked = (numbers // count) % steps + 1
        rank = torch.rand(batch, length, device=device).argsort(dim=1)
        elsewhere = (start[:, None] + 1 + torch.randint(count - 1, (batch, length), device=device)) % count
        place = torch.where(rank < matching, start[:, None], elsewhere)
        moves = torch.cumsum(torch.arange(steps + 1, device=device), dim=0)
        examples = order.gather(1, ((place[..., None] + moves) % count).reshape(batch, -1)).reshape(
            batch, length, steps + 1
        )
        chain = order.gather(1, (start[:, None] + moves) % count)
        codes = 2 * count + torch.arange(steps, device=device)
        tokens = dictionary[examples[..., :-1]] + dictionary[count + examples[..., 1:]] + dictionary[codes]
        solved = dictionary[chain[:, :-1]] + dictionary[count + chain[:, 1:]] + dictionary[codes]
        given = torch.arange(1, steps + 1, device=device) < asked[:, None]
        question = (
            dictionary[chain.gather(1, asked[:, None] - 1)]
            + dictionary[empty]
            + dictionary[2 * count + asked - 1][:, None]
        )
        tokens = torch.cat(
            [tokens.reshape(batch, length * steps, -1), (solved * given[..., None])[:, :-1], question], dim=1
        )
        seen = torch.cat([torch.ones(batch, length * steps, dtype=torch.bool, device=device), given[:, :-1]], dim=1)
        return (tokens, seen), patterns[chain.gather(1, asked[:, None])[:, 0]]

    return draw


def _fixed(torch: Any, world: Any, batch: int, device: Any) -> Callable[[], tuple[Any, Any]]:
    """The fixed prompts of vector-arithmetic: drawn once, kept as dense tensors."""
    import jax

    prompts = [world.sample(jax.random.fold_in(jax.random.key(0), number), number) for number in range(batch)]
    tokens = torch.tensor(np.stack([prompt.tokens() for prompt in prompts]), device=device)
    target = torch.tensor(np.array([int(prompt.target) for prompt in prompts]), device=device)
    return lambda: (tokens, target)


def build(name: str, device: str = "cpu") -> Callable[[], float]:
    """`step()` of a peer: one training step, returning its loss."""
    import torch
    from torch import nn

    made = CASES[name].recipe()
    world, training = made.world, made.training
    rate, batch = float(training.step_size), training.batch
    columns = world.columns

    def diagonal(rows: int, scale: float, features: int) -> Any:
        return nn.Parameter(scale * torch.eye(rows, columns) * (torch.arange(columns) < features))

    class Softmax(nn.Module):
        readout: torch.Tensor

        def __init__(self, s: Any) -> None:
            super().__init__()
            scale, features = float(s.initial_scale), world.feature_columns
            self.query, self.key = diagonal(s.key_width, scale, features), diagonal(s.key_width, scale, features)
            self.value = diagonal(s.value_width, scale, columns)
            self.output = nn.Parameter(torch.randn(s.neurons, s.value_width) / s.neurons**0.5)
            self.register_buffer("readout", (torch.randint(2, (s.neurons,)).float() * 2 - 1) / s.neurons)

        def forward(self, tokens: Any) -> Any:
            context, query = tokens[:, :-1], tokens[:, -1]
            scores = torch.einsum("btk,bk->bt", context @ self.key.T, query @ self.query.T)
            pooled = torch.einsum("bt,btv->bv", scores.softmax(dim=1), context @ self.value.T)
            return torch.relu(pooled @ self.output.T) @ self.readout

    class Gated(nn.Module):
        def __init__(self, s: Any, gated: bool) -> None:
            super().__init__()
            scale = float(s.initial_scale)
            self.key, self.query = diagonal(columns, scale, columns - 1), diagonal(columns, scale, columns - 1)
            self.gate = nn.Parameter(torch.randn(columns) / columns**0.5) if gated else None

        def forward(self, tokens: Any) -> Any:
            scores = torch.einsum("btk,bk->bt", tokens @ self.key.T, tokens[:, -1] @ self.query.T)
            weighted = tokens[..., -1] * scores
            if self.gate is None:
                return weighted.sum(dim=1)
            gates = torch.sigmoid(tokens @ self.gate)
            kept = torch.cat([(1 - gates)[:, 1:], torch.ones_like(gates[:, :1])], dim=1)
            after = torch.flip(torch.cumprod(torch.flip(kept, [1]), dim=1), [1])
            return (gates * after * weighted).sum(dim=1)

    class Chain(nn.Module):
        def __init__(self, s: Any) -> None:
            super().__init__()
            self.weights = nn.Parameter(float(s.initial_scale) * torch.randn(columns, columns))

        def forward(self, prompt: Any) -> Any:
            tokens, seen = prompt
            features = world.feature_columns
            scores = torch.einsum("btc,bc->bt", tokens[:, :-1], tokens[:, -1] @ self.weights.T)
            attention = scores.masked_fill(~seen, -torch.inf).softmax(dim=1)
            return torch.einsum("bt,btf->bf", attention, tokens[:, :-1, features : 2 * features])

    class Residual(nn.Module):
        def __init__(self, s: Any) -> None:
            super().__init__()
            scales = (float(s.attention_scale), float(s.attention_scale), float(s.value_scale))
            self.query, self.key, self.value = (nn.Parameter(scale * torch.randn(columns, columns)) for scale in scales)
            self.register_buffer("answers", torch.tensor(np.asarray(world.answers)))

        def forward(self, tokens: Any) -> Any:
            context, query = tokens[:, :-1], tokens[:, -1]
            scores = torch.einsum("btk,bk->bt", context @ self.key.T, query @ self.query.T)
            value = torch.einsum("bt,btv->bv", scores.softmax(dim=1), context @ self.value.T)
            return (nn.functional.normalize(value, dim=1) + query) @ self.answers.T

    class Deep(nn.Module):
        def __init__(self, s: Any) -> None:
            super().__init__()
            from transformers import GPT2Config, GPT2Model

            config = GPT2Config(vocab_size=1, n_positions=s.positions, n_embd=s.width, n_layer=s.depth, n_head=s.heads,
                                resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)  # fmt: skip
            self.read_in, self.body, self.read_out = (
                nn.Linear(columns, s.width),
                GPT2Model(config),
                nn.Linear(s.width, 1),
            )

        def forward(self, tokens: Any) -> Any:
            return self.read_out(self.body(inputs_embeds=self.read_in(tokens)).last_hidden_state[:, -1])[:, 0]

    hinge = lambda output, target: torch.relu(1 - target * output).mean()  # noqa: E731
    squared = lambda output, target: 0.5 * ((output - target) ** 2).sum(dim=1).mean()  # noqa: E731
    models: dict[str, tuple[Callable[[], Any], Any, Any]] = {
        "softmax": (lambda: Softmax(made.model), _classification, hinge),
        "linear": (lambda: Gated(made.model, False), _classification, hinge),
        "mamba": (lambda: Gated(made.model, True), _classification, hinge),
        "chain": (lambda: Chain(made.model), _reasoning, squared),
        "residual": (lambda: Residual(made.model), _fixed, nn.functional.cross_entropy),
        "gpt2": (lambda: Deep(made.model), _classification, hinge),
    }
    torch.manual_seed(0)
    make, data, loss = models[name]
    model = make().to(device)
    draw = data(torch, world, batch, torch.device(device))
    if name == "gpt2":
        optimiser: Any = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=float(training.weight_decay))
    elif name == "residual":
        slow: dict[str, Any] = {"params": [model.value], "lr": rate * float(training.scales["value_weights"])}
        others: dict[str, Any] = {"params": [model.query, model.key]}
        optimiser = torch.optim.SGD([others, slow], lr=rate)
    else:
        optimiser = torch.optim.SGD(model.parameters(), lr=rate)

    def step() -> Any:
        tokens, target = draw()
        value = loss(model(tokens), target)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        return value.detach()

    return step


def rate(name: str, seconds: float) -> float:
    """Steps a second of the peer, over at least `seconds` after a warm-up; the best of three stretches."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    step = build(name, device)
    for _ in range(5):
        float(step())
    best = 0.0
    for _ in range(3):
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds / 3:
            for _ in range(5):
                value = step()
            float(value)  # waits for the device
            done += 5
        best = max(best, done / (time.perf_counter() - began))
    return best

"""The same trainings in PyTorch, twice: the way the field writes them, and the way an expert would for many seeds.

*Eager*: a module, a batch of dense prompts, backward, step; one model on all cores (or the GPU). This is what a careful
student would write first; it is not tuned, and it is not meant to be slow. *Compiled*: an ensemble of such modules,
their weights stacked and their gradients vmapped, the whole step with its fresh prompts under `torch.compile`. Data are
drawn anew every step with vectorised tensor operations in both. Weights start as in the papers; that a peer learns like
the model beside it is tested. Needs the extra `llm` for PyTorch.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from iclab.bench import peer_data
from iclab.bench.cases import CASES
from iclab.bench.mixer_peers import gru, mixer
from iclab.models.gru import GRUSettings
from iclab.models.mixers import MixerSettings


@dataclasses.dataclass(frozen=True)
class Peer:
    """How a case is written in PyTorch: `make()` a module, `draw(members)` a function for the prompts of a step, a
    loss, and by what the step of single weights is multiplied.
    """

    make: Callable[[], Any]
    draw: Callable[[int], Callable[[], tuple[Any, Any]]]
    loss: Callable[[Any, Any], Any]
    scales: dict[str, float]
    rate: float
    decay: float | None  # of AdamW; None for plain SGD


def peer(name: str, device: str = "cpu", plain: bool = False) -> Peer:
    """The case of this name. `plain` takes a GPT-2 of a few lines that can be vmapped in place of the library's."""
    import torch
    from torch import nn

    made = CASES[name].recipe()
    world, training = made.world, made.training
    rate, batch = float(training.step_size), training.batch
    columns, features = world.columns, world.feature_columns

    def diagonal(rows: int, scale: float, features: int) -> Any:
        return nn.Parameter(scale * torch.eye(rows, columns) * (torch.arange(columns) < features))

    class Softmax(nn.Module):
        readout: torch.Tensor

        def __init__(self, s: Any) -> None:
            super().__init__()
            scale = float(s.initial_scale)
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

    class Block(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            rows, tokens, width = x.shape
            parts = self.all(self.before(x)).reshape(rows, tokens, 3, self.heads, width // self.heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)  # 21 tokens: written out
            scores = (query @ key.transpose(-1, -2) / key.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
            seen = scores.softmax(dim=-1) @ value
            x = x + self.out(seen.transpose(1, 2).reshape(rows, tokens, width))
            return x + self.down(nn.functional.gelu(self.up(self.between(x)), approximate="tanh"))

    class Plain(nn.Module):
        def __init__(self, s: Any) -> None:
            super().__init__()
            self.read_in, self.read_out = nn.Linear(columns, s.width), nn.Linear(s.width, 1)
            self.places = nn.Parameter(0.02 * torch.randn(s.positions, s.width))
            self.blocks = nn.ModuleList([Block(s.width, s.heads) for _ in range(s.depth)])
            self.last = nn.LayerNorm(s.width)

        def forward(self, tokens: Any) -> Any:
            x = self.read_in(tokens) + self.places[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.read_out(self.last(x[:, -1]))[:, 0]

    hinge = lambda output, target: torch.relu(1 - target * output).mean()  # noqa: E731
    squared = lambda output, target: 0.5 * ((output - target) ** 2).sum(dim=1).mean()  # noqa: E731
    models: dict[str, tuple[Callable[[], Any], Any, Any]] = {
        "softmax": (lambda: Softmax(made.model), peer_data.classification, hinge),
        "linear": (lambda: Gated(made.model, False), peer_data.classification, hinge),
        "mamba": (lambda: Gated(made.model, True), peer_data.classification, hinge),
        "chain": (lambda: Chain(made.model), peer_data.reasoning, squared),
        "residual": (lambda: Residual(made.model), peer_data.fixed, nn.functional.cross_entropy),
        "gpt2": (lambda: Plain(made.model) if plain else Deep(made.model), peer_data.classification, hinge),
    }
    own = made.model
    if isinstance(own, MixerSettings):
        models[name] = mixer(torch, columns, float(own.initial_scale), own.mechanism), peer_data.classification, hinge
    elif isinstance(own, GRUSettings):
        make_unit = gru(torch, columns, float(own.initial_scale), own.width, plain)
        models[name] = make_unit, peer_data.classification, hinge
    make, data, loss = models[name]
    draw = functools.partial(data, torch, world, batch, torch.device(device))
    scales = {"value": float(training.scales["value_weights"])} if name == "residual" else {}
    decay = float(training.weight_decay) if name == "gpt2" else None
    return Peer(lambda: make().to(device), draw, loss, scales, rate, decay)


def eager(name: str, device: str = "cpu") -> Callable[[], Any]:
    """`step()` of a single model: one training step, returning its loss."""
    import torch

    torch.manual_seed(0)
    made = peer(name, device)
    model, draw = made.make(), made.draw(1)
    groups = [
        {"params": [value], "lr": made.rate * made.scales.get(own, 1.0)} for own, value in model.named_parameters()
    ]
    if made.decay is None:
        optimiser: Any = torch.optim.SGD(groups, lr=made.rate)
    else:
        optimiser = torch.optim.AdamW(model.parameters(), lr=made.rate, weight_decay=made.decay)

    def step() -> Any:
        tokens, target = draw()
        value = made.loss(model(tokens), target)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        return value.detach()

    return step


def compiled(name: str, members: int, device: str = "cpu") -> Callable[[], Any]:
    """`step()` of an ensemble: one training step of all its members, returning their losses."""
    import torch

    torch.manual_seed(0)
    made = peer(name, device, plain=True)
    several = [made.make() for _ in range(members)]
    weights, fixed = torch.func.stack_module_state(several)
    weights = {own: value.detach() for own, value in weights.items()}
    one, draw = several[0], made.draw(members)
    moments = {own: (torch.zeros_like(value), torch.zeros_like(value)) for own, value in weights.items()}
    count = torch.zeros((), device=device)

    def objective(weights: Any, fixed: Any, tokens: Any, target: Any) -> Any:
        return made.loss(torch.func.functional_call(one, (weights, fixed), (tokens,)), target)

    gradients = torch.func.vmap(torch.func.grad_and_value(objective))

    def by_member(data: Any) -> Any:
        if isinstance(data, tuple):
            return tuple(map(by_member, data))
        return data.reshape(members, -1, *data.shape[1:])

    @torch.compile(dynamic=False)
    def advance(weights: Any, moments: Any, count: Any) -> Any:
        tokens, target = draw()
        slopes, value = gradients(weights, fixed, by_member(tokens), by_member(target))
        if made.decay is None:
            new = {own: w - made.rate * made.scales.get(own, 1.0) * slopes[own] for own, w in weights.items()}
            return new, moments, count, value
        count = count + 1
        moments = {
            own: (0.9 * first + 0.1 * slopes[own], 0.999 * second + 0.001 * slopes[own] ** 2)
            for own, (first, second) in moments.items()
        }
        new = {}
        for own, w in weights.items():
            first, second = moments[own][0] / (1 - 0.9**count), moments[own][1] / (1 - 0.999**count)
            new[own] = w - made.rate * (first / (second.sqrt() + 1e-8) + made.decay * w)
        return new, moments, count, value

    def step() -> Any:
        nonlocal weights, moments, count
        with torch.no_grad():
            weights, moments, count, value = advance(weights, moments, count)
        return value

    return step


def rate(name: str, seconds: float, members: int = 0) -> float:
    """Model-steps a second of the eager peer, or of the compiled one with so many members, over at least `seconds`
    after a warm-up; the best of three stretches.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False  # as everywhere here: full float32
    step = compiled(name, members, device) if members else eager(name, device)
    for _ in range(5):
        step().mean().item()
    best = 0.0
    for _ in range(3):
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds / 3:
            for _ in range(5):
                value = step()
            value.mean().item()  # waits for the device
            done += 5
        best = max(best, max(members, 1) * done / (time.perf_counter() - began))
    return best

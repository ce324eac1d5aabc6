"""Token mixers in PyTorch, for the bench: the parallel form where a mechanism has a short one, a loop over the tokens
where it corrects its memory, the library's own GRU.

Of every prompt the label alone is stored, so that a memory is one vector: the way a careful student would write it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iclab.models.mechanisms import FIXED, SLOWEST, SMALLEST, TEMPERATURE, Mechanism


def mixer(torch: Any, columns: int, scale: float, mechanism: Mechanism) -> Callable[[], Any]:
    """Makes one-layer mixers of one class on dense prompts (batch × tokens × columns); the last column is the label."""
    nn, functional = torch.nn, torch.nn.functional

    def unit(keys: Any) -> Any:
        return keys * torch.rsqrt((keys**2).sum(dim=-1, keepdim=True) + SMALLEST)

    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            diagonal = scale * torch.eye(columns) * (torch.arange(columns) < columns - 1)
            self.key, self.query = nn.Parameter(diagonal), nn.Parameter(diagonal.clone())
            general = mechanism.delta == "general"
            if mechanism.decay not in ("none", "fixed"):
                rows = columns if mechanism.by_coordinate else 1
                self.decay = nn.Parameter(torch.randn(rows, columns) / columns**0.5)
            if mechanism.decay == "rate":
                self.rate = nn.Parameter(torch.zeros(()))
            if general or mechanism.gate == "own":
                self.gate = nn.Parameter(torch.randn(columns if general else 1, columns) / columns**0.5)
            if general:
                self.removal = nn.Parameter(torch.ones(columns))

        def log_decay(self, tokens: Any) -> tuple[Any, Any]:
            """log a_t (batch × tokens × 1 or state), and the logits that it comes from."""
            if mechanism.decay == "none":
                return torch.zeros_like(tokens[..., :1]), None
            if mechanism.decay == "fixed":
                return torch.full_like(tokens[..., :1], FIXED), None
            logits = tokens @ self.decay.T
            if mechanism.decay == "vector":
                return functional.logsigmoid(logits) / TEMPERATURE, logits
            if mechanism.decay == "bounded":
                return -SLOWEST * torch.sigmoid(logits), logits
            rate = torch.exp(self.rate) if mechanism.decay == "rate" else 1.0
            return -rate * functional.softplus(logits), logits

        def forward(self, tokens: Any) -> Any:
            kept, logits = self.log_decay(tokens)
            keys, query, label = tokens @ self.key.T, tokens[:, -1] @ self.query.T, tokens[..., -1]
            if mechanism.delta != "none":
                return self.corrected(tokens, keys, query, label, torch.exp(kept))
            after = torch.flip(torch.cumsum(torch.flip(kept, [1]), dim=1), [1]) - kept
            if mechanism.normaliser == "softmax":
                scores = torch.einsum("btk,bk->bt", keys, query) + after[..., 0]
                return (scores.softmax(dim=1) * label).sum(dim=1)
            scores = (torch.exp(after) * keys * query[:, None]).sum(dim=-1)
            gate = functional.softplus(logits[..., 0]) if mechanism.gate == "step" else 1.0
            return (gate * scores * label).sum(dim=1)

        def corrected(self, tokens: Any, keys: Any, query: Any, label: Any, decay: Any) -> Any:
            gate = torch.sigmoid(tokens @ self.gate.T)
            if mechanism.delta == "key":
                keys = unit(keys)
                write, recalled, erased = gate * keys, decay * keys, gate * keys
            else:
                removal = unit(keys * self.removal)
                write, recalled, erased = gate * keys, removal, gate * removal
            memory = torch.zeros_like(query)
            last = tokens.shape[1] - 1
            for t in range(last + 1):
                found = (memory * recalled[:, t]).sum(dim=1, keepdim=True)
                memory = memory * decay[:, t] + label[:, t, None] * write[:, t]
                if t < last:
                    memory = memory - found * erased[:, t]
            return (memory * query).sum(dim=1)

    return Mixer


def gru(torch: Any, columns: int, scale: float, width: int, plain: bool) -> Callable[[], Any]:
    """Makes gated recurrent units: the library's, or ones of a few lines that can be vmapped."""
    nn = torch.nn

    class Library(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unit = nn.GRU(columns, width, batch_first=True)
            for own, value in self.unit.named_parameters():
                nn.init.normal_(value, std=scale) if "weight" in own else nn.init.zeros_(value)
            self.readout = nn.Parameter(scale * torch.randn(width))

        def forward(self, tokens: Any) -> Any:
            return self.unit(tokens)[0][:, -1] @ self.readout

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inputs = nn.Parameter(scale * torch.randn(3 * width, columns))
            self.states = nn.Parameter(scale * torch.randn(3, width, width))
            self.bias = nn.Parameter(torch.zeros(3 * width))
            self.readout = nn.Parameter(scale * torch.randn(width))

        def forward(self, tokens: Any) -> Any:
            update, reset, candidate = (tokens @ self.inputs.T + self.bias).chunk(3, dim=-1)
            state = torch.zeros_like(update[:, 0])
            for t in range(tokens.shape[1]):
                opened = torch.sigmoid(update[:, t] + state @ self.states[0].T)
                kept = torch.sigmoid(reset[:, t] + state @ self.states[1].T)
                state = (1 - opened) * state + opened * torch.tanh(candidate[:, t] + (kept * state) @ self.states[2].T)
            return state @ self.readout

    return Plain if plain else Library

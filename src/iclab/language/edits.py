"""Changes inside a network: put a vector into the residual stream, replace what an MLP adds to it, switch off MLP
neurons, shuffle weights.

An edit that misses its place fails silently: the network answers as before. So every edit is checked on the model at
hand (`iclab.language.study.interventions`), and the tests check it on models made for that.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from iclab.errors import InputError, require
from iclab.language.network import LanguageModel, stream


@dataclasses.dataclass(frozen=True, eq=False)
class Patch:
    """Add a vector to the residual stream at each prompt's last token, or replace it; `places` and `vectors` are by
    prompt.
    """

    places: np.ndarray
    vectors: np.ndarray
    replace: bool = False

    def attach(self, model: LanguageModel, rows: np.ndarray, last: Any) -> list[Any]:
        """One hook for every place that one of these rows names."""
        import torch

        own = self.places[rows]
        require(own.min() >= 0 and own.max() <= model.depth, f"a place must lie between 0 and {model.depth}.")

        def change(which: Any, values: Any, module: Any, inputs: Any, output: Any) -> Any:
            state = stream(output).clone()
            at = last[which]
            state[which, at] = values if self.replace else state[which, at] + values
            return (state, *output[1:]) if isinstance(output, tuple) else state

        handles = []
        for place in np.unique(own):
            which = torch.as_tensor(np.flatnonzero(own == place))
            values = torch.as_tensor(self.vectors[rows[which.numpy()]], dtype=torch.float32)
            handles.append(model.places[place].register_forward_hook(functools.partial(change, which, values)))
        return handles


@dataclasses.dataclass(frozen=True, eq=False)
class Updated:
    """Replace what MLPs add at each prompt's last token by a vector: `blocks` is prompt × block, True where to replace,
    and `vectors` is by prompt.
    """

    blocks: np.ndarray
    vectors: np.ndarray

    def attach(self, model: LanguageModel, rows: np.ndarray, last: Any) -> list[Any]:
        """One hook after each MLP that one of these rows names."""
        import torch

        def change(which: Any, values: Any, module: Any, inputs: Any, output: Any) -> Any:
            output = output.clone()
            output[which, last[which]] = values
            return output

        handles = []
        for number, neurons in enumerate(mlps(model)):
            own = np.flatnonzero(self.blocks[rows, number])
            which, values = torch.as_tensor(own), torch.as_tensor(self.vectors[rows[own]], dtype=torch.float32)
            if len(own):
                handles.append(neurons.outgoing.register_forward_hook(functools.partial(change, which, values)))
        return handles


@dataclasses.dataclass(frozen=True, eq=False)
class Pruned:
    """MLP neurons switched off everywhere: `kept` is block × neuron, True for those that stay."""

    kept: np.ndarray

    def attach(self, model: LanguageModel, rows: np.ndarray, last: Any) -> list[Any]:
        """One hook before each block's map out of the MLP."""
        import torch

        def scale(factor: Any, module: Any, inputs: Any) -> Any:
            return inputs[0] * factor, *inputs[1:]

        factors = [torch.as_tensor(kept, dtype=torch.float32) for kept in self.kept]
        return [
            neurons.outgoing.register_forward_pre_hook(functools.partial(scale, factor))
            for neurons, factor in zip(mlps(model), factors, strict=True)
        ]


@dataclasses.dataclass(frozen=True)
class Neurons:
    """The neurons of one block's MLP: the maps into them and the map out of them."""

    incoming: tuple[Any, ...]
    outgoing: Any

    @property
    def width(self) -> int:
        """How many neurons."""
        return int(_matrix(self.outgoing).shape[1])

    def outgoing_norm(self) -> np.ndarray:
        """The norm of each neuron's outgoing weights."""
        return np.linalg.norm(_matrix(self.outgoing), axis=0)

    def weight_score(self) -> np.ndarray:
        """The product of the norms of each neuron's incoming and outgoing weights: scaling one by c and the other by
        1/c changes nothing.
        """
        score = self.outgoing_norm()
        for module in self.incoming:
            score = score * np.linalg.norm(_matrix(module), axis=1)
        return score


def mlps(model: LanguageModel) -> list[Neurons]:
    """Every block's MLP, found by shape: maps from the stream's width to another one, and the one map back, in a
    module with "mlp" or "feed" in its name.
    """
    found = []
    for number, block in enumerate(model.blocks):
        inside = [
            (n, m) for n, m in block.named_modules() if hasattr(m, "weight") and getattr(m.weight, "ndim", 0) == 2
        ]
        inside = [(name, module) for name, module in inside if any(part in name for part in ("mlp", "feed", "fc"))]
        outgoing = [m for _, m in inside if _matrix(m).shape[0] == model.width and _matrix(m).shape[1] != model.width]
        if len(outgoing) != 1:
            raise InputError(f"model={model.name}: iclab finds no MLP in block {number}.")
        neurons = _matrix(outgoing[0]).shape[1]
        incoming = tuple(m for _, m in inside if m is not outgoing[0] and _matrix(m).shape == (neurons, model.width))
        found.append(Neurons(incoming, outgoing[0]))
    return found


def _matrix(module: Any) -> np.ndarray:
    """A linear map's weights as output × input; GPT-2 keeps them the other way round."""
    weight = module.weight.detach().numpy()
    return weight.T if type(module).__name__ == "Conv1D" else weight


def activity(model: LanguageModel, prompts: Sequence[Sequence[int]]) -> np.ndarray:
    """Mean absolute activation of every neuron over all tokens of these prompts: block × neuron."""
    sums: list[Any] = [0.0] * model.depth
    seen = sum(len(prompt) for prompt in prompts)
    found = mlps(model)

    @dataclasses.dataclass(frozen=True)
    class Watch:
        def attach(self, model: LanguageModel, rows: np.ndarray, last: Any) -> list[Any]:
            def keep(number: int, module: Any, inputs: Any) -> None:
                states = inputs[0]
                for index in range(len(rows)):  # padding does not count
                    sums[number] = sums[number] + states[index, : int(last[index]) + 1].abs().sum(0).numpy()

            return [
                neurons.outgoing.register_forward_pre_hook(functools.partial(keep, number))
                for number, neurons in enumerate(found)
            ]

    model.states(prompts, edit=Watch())
    return np.stack(sums) / seen


def updates(model: LanguageModel, prompts: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """At each prompt's last token, the stream at every place and what an MLP added to it there (nothing at place 0):
    twice prompt × place × coordinate. The first minus the second is the stream before the MLP.
    """
    found = mlps(model)
    added = np.zeros((len(prompts), model.depth + 1, model.width), np.float32)

    @dataclasses.dataclass(frozen=True)
    class Watch:
        def attach(self, model: LanguageModel, rows: np.ndarray, last: Any) -> list[Any]:
            def keep(place: int, module: Any, inputs: Any, output: Any) -> None:
                added[rows, place] = output[np.arange(len(rows)), last].numpy()

            return [
                neurons.outgoing.register_forward_hook(functools.partial(keep, place))
                for place, neurons in enumerate(found, start=1)
            ]

    return model.states(prompts, edit=Watch()), added


def shuffled(model: LanguageModel) -> LanguageModel:
    """The same network with the entries of every weight matrix in random order, so that it knows nothing. Gains and
    biases stay, which keeps activations at their sizes.
    """
    import torch

    network, random = copy.deepcopy(model.network), torch.Generator().manual_seed(0)
    for weight in network.parameters():
        if weight.ndim > 1:
            order = torch.randperm(weight.numel(), generator=random)
            weight.data = weight.data.flatten()[order].reshape(weight.shape)
    return LanguageModel(model.name, network, model.tokenizer)


def keep_all_but(scores: np.ndarray, rate: float, largest: bool = False) -> np.ndarray:
    """Which neurons stay if the share `rate` with the smallest (or largest) scores is removed in every block.

    >>> keep_all_but(np.array([[3.0, 1.0, 2.0, 4.0]]), 0.5).tolist()
    [[True, False, False, True]]
    """
    order = np.argsort(-scores if largest else scores, axis=1, kind="stable")
    gone = order[:, : round(rate * scores.shape[1])]
    kept = np.ones(scores.shape, bool)
    np.put_along_axis(kept, gone, False, axis=1)
    return kept

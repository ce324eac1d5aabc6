"""What happens inside a model on a few prompts while it trains, for the page's mechanism explorer.

A paper observes a few fixed prompts at every record of a small training: an observer (`watching`) applies its `look` to
them, and the page shows the resulting `Exploration`. Arrays have the axes switch (outliers off or on, say), member,
moment, stage (of a reasoning), prompt and item (a token).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from iclab.ensemble import member_key
from iclab.prompts import Prompt
from iclab.training import Member, Observer

PROMPTS = 4
MOMENTS = 24
AXES = ("switch", "member", "step", "stage", "prompt")

MEAN = "mean"  # uniform attention: the same on every present item

Look = Callable[[Any, Prompt], Mapping[str, Array]]
"""`look(model, prompt)` -> named arrays, "attention@token" with its axes named."""


def watching(look: Look) -> Observer:
    """Observe fixed prompts of every watched world; return "name@switch@prompt@..." for each name of `look`."""

    def observe(model: Any, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
        keys = jax.random.split(member_key("explorer", 0), PROMPTS)  # the same prompts for every member

        def one(world: Any) -> Mapping[str, Array]:
            return jax.vmap(lambda index, prompt_key: look(model, world.sample(prompt_key, index)))(
                jnp.arange(PROMPTS), keys
            )

        found = [one(world) for world in member.watched]
        return {_named(name): jnp.stack([part[name].astype(float) for part in found]) for name in found[0]}

    return observe


def _named(name: str) -> str:
    base, *axes = name.split("@")
    return "@".join((base, "switch", "prompt", *axes))


def moments(steps: int) -> list[int]:
    """The steps at which a training is observed: densely at first, where most happens."""
    return sorted({round(steps * (number / MOMENTS) ** 1.6) for number in range(MOMENTS + 1)})


@dataclasses.dataclass(frozen=True)
class Panel:
    """Bars over the items of a prompt. `values` has the six axes; items of group "" are absent."""

    title: str
    axis: str
    items: str  # what the bars represent: examples, tokens
    order: Sequence[str]  # the groups
    values: np.ndarray
    labels: np.ndarray  # switch × stage × prompt × item: the text below a bar
    groups: np.ndarray  # the same axes: the group of a bar, which decides its colour


@dataclasses.dataclass(frozen=True)
class Ablation:
    """The exploration with something removed; `name` says what. `lines` and `said` replace those of the exploration;
    `panels` says by number which panels change: to other values, to one number, to their `MEAN` over the items, or by
    removing the named group.
    """

    name: str
    said: np.ndarray
    lines: Mapping[str, np.ndarray]
    panels: Mapping[int, np.ndarray | float | str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Exploration:
    """What the explorer of a paper shows. `lines` are numbers along training, `said` the answers in words, both on five
    axes.
    """

    about: str
    steps: Sequence[int]
    members: Sequence[str]
    prompts: Sequence[str]
    panels: Sequence[Panel]
    lines: Mapping[str, np.ndarray]
    said: np.ndarray
    switch: tuple[str, Sequence[str]] | None = None
    stage: tuple[str, Sequence[str]] | None = None
    ablations: Sequence[Ablation] = ()


def arrange(values: xr.DataArray, *more: str) -> np.ndarray:
    """An array of a training's history, on the explorer's axes and `more`; settings × seeds are the members."""
    values = values.stack(member=("setting", "seed"))
    for axis in AXES:
        if axis not in values.dims:
            values = values.expand_dims(axis)
    return np.asarray(values.transpose(*AXES, *more).values, float)


def truth(values: xr.DataArray, *more: str) -> np.ndarray:
    """Properties of the prompts, the same for every member and moment: switch × stage × prompt (× more)."""
    return np.asarray(arrange(values, *more)[:, _sound(values), 0])


def _sound(values: xr.DataArray) -> int:
    """A member that did not diverge; diverged ones have no numbers."""
    found = np.isfinite(arrange(values, *[str(d) for d in values.dims if d not in (*AXES, "setting", "seed")]))
    whole = found.all(axis=tuple(axis for axis in range(found.ndim) if axis != 1))
    return int(np.argmax(whole))


def members(history: xr.Dataset) -> list[str]:
    """The names of the members."""
    several = history.sizes["setting"] > 1
    return [
        f"{f'{setting}, ' if several else ''}seed {seed}"
        for setting in history["setting"].values
        for seed in history["seed"].values
    ]


def signed(value: float) -> str:
    """A label or an answer with its sign.

    >>> signed(1.0), signed(-0.25)
    ('+1', '−0.25')
    """
    return f"{value:+.3g}".replace("-", "−")


def binary(output: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Answers of a binary task in words; `output` on five axes, `target` on switch × stage × prompt."""
    right = np.broadcast_to(target[:, None, None], output.shape)
    words = [
        f"answers {signed(found)}, right is {signed(wanted)}: {'correct' if found * wanted > 0 else 'wrong'}"
        if np.isfinite(found)
        else "diverged"
        for found, wanted in zip(output.ravel(), right.ravel(), strict=True)
    ]
    return np.array(words, object).reshape(output.shape)

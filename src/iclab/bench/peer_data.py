"""Prompts of the papers' worlds drawn in PyTorch: a batch for each of several members, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def classification(torch: Any, world: Any, batch: int, device: Any, members: int = 1) -> Callable[[], tuple[Any, Any]]:
    """Dense prompts (batch × tokens × columns) and targets of a classification world, all at once."""
    dictionary = torch.tensor(np.asarray(world.dictionary), device=device)
    tasks = torch.tensor(np.asarray(world.tasks)[: int(world.task_count)], device=device).long()
    relevant, irrelevant = int(world.relevant_patterns), int(world.irrelevant_patterns)
    length, fraction = int(world.context_length), float(world.matching_fraction)
    low, high = float(world.irrelevant_low), float(world.irrelevant_high)
    target = torch.ones(members, batch, device=device)
    target[:, 1::2] = -1
    batch, target = members * batch, target.reshape(-1)

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


def reasoning(torch: Any, world: Any, batch: int, device: Any, members: int = 1) -> Callable[[], tuple[Any, Any]]:
    """Dense reasoning prompts: l examples of K columns each, the solved steps of the query, the question; and the
    answers.
    """
    dictionary = torch.tensor(np.asarray(world.dictionary), device=device)
    patterns = torch.tensor(np.asarray(world.patterns), device=device)
    count, steps, length = len(patterns), world.steps, int(world.context_length)
    matching = round(float(world.matching_fraction) * length)
    numbers = torch.arange(batch, device=device).repeat(members)
    batch = members * batch
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


def fixed(torch: Any, world: Any, batch: int, device: Any, members: int = 1) -> Callable[[], tuple[Any, Any]]:
    """The fixed prompts of vector-arithmetic: drawn once, kept as dense tensors."""
    import jax

    def drawn(number: Any) -> Any:
        prompt = world.sample(jax.random.fold_in(jax.random.key(0), number), number)
        return prompt.tokens(), prompt.target

    tokens, target = (
        torch.tensor(np.array(part), device=device) for part in jax.jit(jax.vmap(drawn))(np.arange(batch))
    )
    target = target.long()
    return lambda: (tokens.repeat(members, 1, 1), target.repeat(members))

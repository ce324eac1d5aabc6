"""Estimate the memory and arithmetic of a program from shapes alone; nothing is compiled or run.

The working set of one member is the largest sum of arrays alive at once in its traced program. For the built-in models
this was within a factor of 1.4 of what XLA reserved; arguments and results are exact.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from iclab.devices import on_the_host

SHARE = 0.35  # of a device's memory for one program; a GPU runs two at a time


def crowded() -> bool:
    """Whether compiled programs use three quarters of the memory maps that Linux gives a process (usually 65,530). Each
    program takes some hundreds, and when none are left, the compiler ends the process.
    """
    try:
        most = int(Path("/proc/sys/vm/max_map_count").read_text())
        return Path("/proc/self/maps").read_bytes().count(b"\n") > most * 3 // 4
    except (OSError, ValueError):  # another system
        return False


def bytes_of(tree: Any) -> int:
    """The bytes of all arrays (or shapes of arrays) of a pytree."""
    return sum(_bytes(leaf) for leaf in jax.tree.leaves(tree))


def _bytes(shaped: Any) -> int:
    """Random keys count as the words they are made of; anything without a shape counts as nothing."""
    return int(np.prod(shaped.shape)) * shaped.dtype.itemsize if hasattr(shaped, "shape") else 0


def working_set(function: Callable[..., Any], *shapes: Any) -> int:
    """Bytes alive at once while `function` runs on arrays of these shapes, without its arguments."""
    return _peak(jax.make_jaxpr(function)(*shapes).jaxpr)


def arithmetic(function: Callable[..., Any], *shapes: Any) -> float:
    """Floating-point operations of `function`; the body of a loop counts once, whatever the number of its rounds.

    Counted for this machine's processor; a count for a GPU let programs through that a limit should refuse.
    """
    with on_the_host():
        found = jax.jit(function).lower(*shapes).cost_analysis()
    return float((found or {}).get("flops", 0.0))


def _peak(program: Any) -> int:
    last = {
        variable: number
        for number, equation in enumerate(program.eqns)
        for variable in equation.invars
        if not isinstance(variable, Literal)
    }
    last |= {variable: len(program.eqns) for variable in program.outvars if not isinstance(variable, Literal)}
    alive: dict[Any, int] = {}
    highest = 0
    for number, equation in enumerate(program.eqns):
        inside = max((_peak(inner) for inner in _programs(equation.params.values())), default=0)
        alive |= {variable: _bytes(variable.aval) for variable in equation.outvars}
        highest = max(highest, sum(alive.values()) + inside)
        alive = {variable: held for variable, held in alive.items() if last.get(variable, -1) > number}
    return highest


def _programs(values: Any) -> list[Any]:
    """The programs inside an operation: bodies of loops, branches, calls."""
    flat = [part for value in values for part in (value if isinstance(value, tuple | list) else [value])]
    return [inner for inner in (getattr(part, "jaxpr", part) for part in flat) if hasattr(inner, "eqns")]


@contextlib.contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect garbage less often: tracing makes very many lasting objects, and scanning them again and again took a
    fifth of the time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def room_on_device() -> int:
    """Bytes that a program may take on one device: a fixed share, so that a machine always makes the same plan."""
    device = jax.local_devices()[0]
    if device.platform != "cpu":
        found = device.memory_stats() or {}
        return int(SHARE * found.get("bytes_limit", 16 << 30))
    return int(SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / jax.local_device_count())

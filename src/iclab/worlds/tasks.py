"""Sets of binary tasks over M1 relevant patterns, as rows (a, b): μ_a is labelled +1 and μ_b is labelled -1."""

from __future__ import annotations

import numpy as np

from iclab.errors import require


def all_tasks(patterns: int) -> np.ndarray:
    """T of Definition 3.1 (nonlinear-icl): all M1(M1-1) ordered pairs.

    >>> all_tasks(3).tolist()
    [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    """
    return np.array([(a, b) for a in range(patterns) for b in range(patterns) if a != b])


def cyclic_tasks(patterns: int, shifts: int = 1) -> np.ndarray:
    """The training tasks of Section 5 (nonlinear-icl): (μ_j, μ_{j+k}) for j in [M1], k in [U]; `shifts` is U.

    >>> cyclic_tasks(3).tolist()
    [[0, 1], [1, 2], [2, 0]]
    """
    require(
        1 <= shifts < patterns,
        f"task_shifts is {shifts}; with {patterns} patterns it must lie in 1..{patterns - 1}.",
    )
    return np.array([(j, (j + k) % patterns) for k in range(1, shifts + 1) for j in range(patterns)])


def without(tasks: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The tasks of the first set that are not in the second, in their order."""
    gone = {tuple(task) for task in removed.tolist()}
    return np.array([task for task in tasks.tolist() if tuple(task) not in gone]).reshape(-1, 2)

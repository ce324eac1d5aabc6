"""Transition matrices of erroneous reasoning (chain-of-thought, Section C.1): how they are built, checked and measured.

Step k of a task shifts a pattern's place in the task's permutation by k: f_k(μ_{p_i}) = μ_{p_{(i+k) mod M'}}. In an
example the step may go wrong: A_k(i, j) is the probability to land at place j from place i. The matrices built here are
circulant in the order of the permutation, A_k = (shift by k) · E with one error kernel: e(0) = a right, e(1) = b one
place too far, the rest uniform. For them the trajectory probability (20) is τ = a^K and the primacy (15) is
ρ = 1 - max(b, rest)/a.

| word | letter |
|---|---|
| trajectory probability, primacy | τ, ρ of the steps (20), (15) |
| output probability, output primacy | τ_o, ρ_o of B = Π A_k (21), (16) |
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import scipy.optimize

from iclab.errors import InputError, require


def shifts(steps: int, patterns: int) -> np.ndarray:
    """Error-free matrices (K × M' × M'): step k goes from place i to place i + k."""
    require(steps >= 1, f"steps is {steps}; a task needs at least one step (K >= 1).")
    require(patterns >= 2, f"patterns is {patterns}; at least 2 are needed.")
    return np.stack([np.roll(np.eye(patterns), step, axis=1) for step in range(1, steps + 1)])


def from_kernel(right: float, next_: float, steps: int, patterns: int) -> np.ndarray:
    """A_k = shift by k times the kernel e(0) = `right`, e(1) = `next_`, the rest uniform."""
    kernel = np.full(patterns, (1.0 - right - next_) / max(patterns - 2, 1))
    kernel[0], kernel[1] = right, next_
    circulant = np.stack([np.roll(kernel, place) for place in range(patterns)])
    return np.stack([shift @ circulant for shift in shifts(steps, patterns)])


@dataclasses.dataclass(frozen=True)
class Measured:
    """What the definitions say of matrices. `condition_1` is (24): the right answer is the most probable output."""

    trajectory_probability: float
    primacy: float
    output_probability: float
    output_primacy: float
    condition_1: bool


def measure(matrices: np.ndarray) -> Measured:
    """τ (20), ρ (15), τ_o (21), ρ_o (16) and Condition 1 (24), by their definitions."""
    steps, patterns = matrices.shape[:2]
    right = shifts(steps, patterns)
    places = np.arange(patterns)
    trajectory = np.ones(patterns)
    place = places
    for step in range(steps):
        following = (place + step + 1) % patterns
        trajectory = trajectory * matrices[step, place, following]
        place = following
    wrong = np.where(right > 0, 0.0, matrices).max(axis=2)
    correct = (matrices * right).sum(axis=2)
    output = np.linalg.multi_dot(matrices) if steps > 1 else matrices[0]
    ordered = np.sort(output, axis=1)
    return Measured(
        float(trajectory.min()),
        float(1.0 - np.max(wrong / correct)),
        float(ordered[:, -1].min()),
        float(1.0 - np.max(ordered[:, -2] / ordered[:, -1])),
        bool(np.all(output.argmax(axis=1) == place)),
    )


def check(matrices: np.ndarray) -> np.ndarray:
    """Accept matrices that satisfy (15): rows are distributions with the right step as largest entry. Names the row."""
    matrices = np.asarray(matrices, float)
    require(
        matrices.ndim == 3 and matrices.shape[1] == matrices.shape[2] and len(matrices) >= 1,
        f"transition matrices have shape {matrices.shape}; it must be (K, M', M') with K >= 1.",
    )
    steps, patterns = matrices.shape[:2]
    right = shifts(steps, patterns)
    for step in range(steps):
        for row in range(patterns):
            values = matrices[step, row]
            where = f"row {row} of the matrix of step {step + 1}"
            require(np.all(values >= 0), f"{where} has a negative entry ({values.min():.4g}).")
            require(abs(values.sum() - 1) < 1e-6, f"{where} sums to {values.sum():.6g}, not to 1.")
            correct = values[right[step, row] > 0][0]
            largest = values[right[step, row] == 0].max()
            require(
                correct > largest,
                f"{where} violates (15): the right step has probability {correct:.4g}, another one {largest:.4g}.",
            )
    return matrices


def for_steps(trajectory_probability: float, primacy: float, steps: int, patterns: int) -> np.ndarray:
    """Matrices with these τ and ρ, or an error that says which ρ this τ allows.

    a = τ^(1/K). The largest wrong entry is b = (1-ρ)a; what is left over, 1-a-b, is spread over the other M'-2 entries
    and may not exceed b, nor be negative: (1-a)/(M'-1) <= b <= 1-a.
    """
    tau, rho = trajectory_probability, primacy
    shifts(steps, patterns)
    require(patterns >= 3, f"patterns is {patterns}; the error kernel needs at least 3.")
    require(0 < tau < 1, f"trajectory_probability is {tau}; it must lie in (0, 1).")
    right = tau ** (1.0 / steps)
    lowest, highest = max(0.0, 1 - (1 - right) / right), 1 - (1 - right) / ((patterns - 1) * right)
    given = f"trajectory_probability {tau} with {steps} steps and {patterns} patterns"
    require(highest > 0, f"{given} is below {patterns**-steps:.3g}, chance.")
    require(
        lowest - 1e-9 <= rho <= highest + 1e-9 and 0 < rho < 1,
        f"{given} allows a primacy in [{lowest:.4f}, {highest:.4f}] in this construction, not {rho}.",
    )
    return _verified(from_kernel(right, (1 - rho) * right, steps, patterns), tau, rho, outputs=False, condition_1=None)


def _outcome(right: float, next_: float, steps: int, patterns: int) -> Measured | None:
    """What a kernel leads to; None if it is none, or violates (15)."""
    rest = (1.0 - right - next_) / max(patterns - 2, 1)
    if rest < 0 or next_ < 0 or right <= max(next_, rest):
        return None
    return measure(from_kernel(right, next_, steps, patterns))


@functools.lru_cache(maxsize=16)
def _grid(steps: int, patterns: int) -> list[tuple[tuple[float, float], Measured | None]]:
    """Kernels from which a search may start, and what each leads to."""
    kernels = [(float(a), float(b)) for a in np.linspace(0.02, 0.99, 98) for b in np.linspace(0.0, 0.5, 51)]
    return [(kernel, _outcome(*kernel, steps, patterns)) for kernel in kernels]


@functools.lru_cache(maxsize=64)
def for_outputs(
    output_probability: float, output_primacy: float, steps: int, patterns: int, *, condition_1: bool = True
) -> np.ndarray:
    """Matrices whose product has these τ_o and ρ_o, with Condition 1 holding or failing; (15) holds in any case.

    Solved for (a, b) from a grid of starts; what cannot be met is refused with the ρ_o that this τ_o allows.
    """
    tau, rho = output_probability, output_primacy
    shifts(steps, patterns)
    require(patterns >= 3, f"patterns is {patterns}; the error kernel needs at least 3.")
    require(0 < tau < 1 and 0 < rho < 1, f"output_probability {tau} and output_primacy {rho} must lie in (0, 1).")

    def away(found: Measured | None) -> float:
        if found is None or found.condition_1 != condition_1:
            return 10.0
        return abs(found.output_probability - tau) + abs(found.output_primacy - rho)

    grid = _grid(steps, patterns)
    for start, _ in sorted(grid, key=lambda point: away(point[1]))[:5]:
        solved = scipy.optimize.minimize(
            lambda kernel: away(_outcome(kernel[0], kernel[1], steps, patterns)), np.array(start), method="Nelder-Mead",
            options={"xatol": 1e-12, "fatol": 1e-12, "maxiter": 4000},
        )  # fmt: skip
        if solved.fun < 1e-7:
            return _verified(
                from_kernel(solved.x[0], solved.x[1], steps, patterns), tau, rho, outputs=True, condition_1=condition_1
            )
    outcomes = [found for _, found in grid if found is not None and found.condition_1 == condition_1]
    near = [found.output_primacy for found in outcomes if abs(found.output_probability - tau) < 0.02]
    span = f"a primacy between about {min(near):.2f} and {max(near):.2f}" if near else "no primacy at all"
    word = "holding" if condition_1 else "failing"
    given = f"output_probability {tau} with Condition 1 {word}, {steps} steps and {patterns} patterns"
    raise InputError(f"{given} allows {span}, not {rho}.")


def _verified(matrices: np.ndarray, tau: float, rho: float, *, outputs: bool, condition_1: bool | None) -> np.ndarray:
    """The matrices, after their definitions were evaluated on them."""
    check(matrices)
    found = measure(matrices)
    steps, output = (found.trajectory_probability, found.primacy), (found.output_probability, found.output_primacy)
    pair = output if outputs else steps
    assert np.allclose(pair, (tau, rho), atol=1e-6), f"built {pair}, wanted {(tau, rho)}"
    assert condition_1 is None or found.condition_1 == condition_1
    return matrices

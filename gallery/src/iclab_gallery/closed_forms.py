"""Closed forms to compare the papers of this package with, in NumPy and float64."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import digamma
from scipy.stats import betabinom


def gamma(eigenvalues, length):
    """The diagonal of Γ, in the basis of Λ."""
    return (1 + 1 / length) * eigenvalues + np.sum(eigenvalues) / length


def minimiser(eigenvalues, length):
    """The last row of W_PV and the first d columns of W_KQ at the global minimum."""
    d, inverse = len(eigenvalues), 1 / gamma(eigenvalues, length)
    size = np.sum(inverse**2) ** 0.25
    return size * np.eye(d + 1)[-1], np.eye(d + 1, d) * inverse / size


def risk(answer, length, covariates, query=None, task=None):
    """R(M) of ŷ = x_queryᵀ B (1/M) Σ y_i x_i for any B; without a length for M → ∞. Matrices, or stacks of B."""
    query, task = covariates if query is None else query, np.eye(len(covariates)) if task is None else task
    share = 0.0 if length is None else 1 / length
    mixed = covariates @ task @ covariates
    second = (1 + share) * mixed + share * np.trace(task @ covariates) * covariates
    across = answer @ covariates @ task
    errors = task - across - np.swapaxes(across, -1, -2) + answer @ second @ np.swapaxes(answer, -1, -2)
    return np.trace(query @ errors, axis1=-2, axis2=-1)


def start(dimension, seed):
    """The initialisation of the theorem with σ = 1, as one vector: c = 1, W = ΘΘᵀ of Frobenius norm 1, Θ Gaussian."""
    theta = np.random.default_rng(seed).standard_normal((dimension, dimension))
    square = theta @ theta.T
    return np.append(1.0, (square / np.linalg.norm(square)).ravel())


def flow(eigenvalues, length, start, time=1e4):
    """Gradient flow on half of the risk, from c = start[0], W = start[1:], in float64: its state at this time."""
    d = len(eigenvalues)
    covariance, second = np.diag(eigenvalues), np.diag(gamma(eigenvalues, length) * eigenvalues)

    def velocity(_, state):
        scale, weights = state[0], state[1:].reshape(d, d)
        slope = (second @ (scale * weights) - covariance) @ covariance
        return -np.append(np.sum(slope * weights), (scale * slope).ravel())

    return solve_ivp(velocity, (0, time), start, method="LSODA", rtol=1e-10, atol=1e-12).y[:, -1]


def urn_loss(seen, states, concentration):
    """The expected loss -log p of the Dirichlet posterior (n_j + α)/(n + kα) for the next symbol, after n symbols.

    Symbols are drawn from p ~ Dirichlet(α, ..., α), so their number n_j is beta-binomial and the next one is j with
    probability (n_j + α)/(n + kα).
    """
    counts, total = np.arange(seen + 1), seen + states * concentration
    chances = betabinom(seen, concentration, (states - 1) * concentration).pmf(counts) if seen else np.ones(1)
    shares = (counts + concentration) / total
    return float(-states * np.sum(chances * shares * np.log(shares)))


def expected_entropy(states, concentration):
    """E H(p) for p ~ Dirichlet(α, ..., α): the limit of `urn_loss`."""
    return float(digamma(states * concentration + 1) - digamma(concentration + 1))


def in_weights_posterior(items, means, labels, deviation, count):
    """P(label | item) from what weights can learn: classes are equally likely, items are (μ_k + ε η)/√(1 + ε²) with
    η ~ N(0, I/D), and the context says nothing. Rows are items, columns the `count` labels.
    """
    variance = deviation**2 / ((1 + deviation**2) * means.shape[1])
    centres = means / np.sqrt(1 + deviation**2)
    logs = -np.sum((items[:, None] - centres) ** 2, axis=2) / (2 * variance)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return shares @ np.eye(count)[labels] / shares.sum(axis=1, keepdims=True)

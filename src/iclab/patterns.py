"""Directions in feature space: orthogonal dictionaries, and mixtures of them.

Every paper starts from a set of orthogonal patterns. Relevant ones decide labels (μ_j), irrelevant ones do not (ν_k),
outlier directions (v*_s) are added to corrupt an example. All models here are equivariant under rotations of the
feature space, so the axis-aligned basis is the default and a random one gives results with the same distribution.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from iclab.errors import require, require_positive


@dataclasses.dataclass(frozen=True)
class Patterns:
    """Patterns as rows, in R^d_X.

    | word | letter |
    |---|---|
    | relevant | μ_1..μ_M1 (M1 × d_X) |
    | irrelevant | ν_1..ν_M2 (M2 × d_X) |
    | outliers | v*_1..v*_V (V × d_X), empty unless the world has outliers |
    """

    relevant: np.ndarray
    irrelevant: np.ndarray
    outliers: np.ndarray

    @property
    def dimension(self) -> int:
        """d_X, the dimension of the feature space."""
        return self.relevant.shape[1]

    @property
    def rows(self) -> np.ndarray:
        """All patterns, relevant first, then irrelevant, then outliers."""
        return np.concatenate([self.relevant, self.irrelevant, self.outliers])


def orthogonal_patterns(
    dimension: int,
    relevant: int,
    irrelevant: int,
    strength: float,
    *,
    outliers: int = 0,
    basis_seed: int | None = None,
) -> Patterns:
    """M1 relevant and M2 irrelevant orthogonal patterns of norm β, and V orthonormal outlier directions.

    `strength` is β. With `basis_seed` the basis is a random rotation; without, patterns are axis-aligned.

    >>> patterns = orthogonal_patterns(4, relevant=2, irrelevant=1, strength=3.0)
    >>> patterns.rows @ patterns.rows.T
    array([[9., 0., 0.],
           [0., 9., 0.],
           [0., 0., 9.]])
    """
    require_positive(dimension=dimension, relevant_patterns=relevant, irrelevant_patterns=irrelevant)
    require_positive(pattern_strength=strength)
    require(basis_seed is None or basis_seed >= 0, f"basis_seed is {basis_seed}; it must not be negative.")
    require(outliers >= 0, f"outlier_patterns is {outliers}; it must not be negative.")
    wanted = relevant + irrelevant + outliers
    require(
        wanted <= dimension,
        f"{relevant} relevant + {irrelevant} irrelevant + {outliers} outlier patterns need {wanted} orthogonal "
        f"directions, but the feature dimension is {dimension}.",
    )
    basis = np.eye(dimension) if basis_seed is None else random_rotation(dimension, basis_seed)
    return Patterns(
        relevant=strength * basis[:relevant],
        irrelevant=strength * basis[relevant : relevant + irrelevant],
        outliers=basis[relevant + irrelevant : wanted],
    )


def random_rotation(dimension: int, seed: int) -> np.ndarray:
    """A rotation (or reflection) drawn from the Haar measure: QR of a Gaussian matrix with the signs of R made
    positive.
    """
    gaussian = np.random.default_rng(seed).standard_normal((dimension, dimension))
    q, r = np.linalg.qr(gaussian)
    return q * np.sign(np.diag(r))


def mix(coefficients: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """New patterns as linear combinations of old ones: coefficients (new × old) times rows (old × d).

    Refuses combinations that are not mutually orthogonal or change the norm: the theorems are about such mixtures only.
    """
    mixed = np.asarray(coefficients, float) @ rows
    gram = mixed @ mixed.T
    norm_squared = float(rows[0] @ rows[0])
    require(
        bool(np.allclose(gram, norm_squared * np.eye(len(mixed)), atol=1e-6 * norm_squared)),
        "the mixed patterns must be mutually orthogonal and keep the norm of the old ones; "
        f"their Gram matrix is {np.round(gram / norm_squared, 3).tolist()} times the old squared norm.",
    )
    return mixed

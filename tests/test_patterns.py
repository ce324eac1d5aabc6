import numpy as np
import pytest

from iclab.errors import InputError
from iclab.patterns import mix, orthogonal_patterns, random_rotation


@pytest.mark.parametrize("basis_seed", [None, 3])
def test_patterns_are_orthogonal_with_the_wanted_norms(basis_seed):
    patterns = orthogonal_patterns(12, 4, 5, 3.0, outliers=2, basis_seed=basis_seed)
    gram = patterns.rows @ patterns.rows.T
    assert np.allclose(gram, np.diag([9.0] * 9 + [1.0] * 2))


def test_a_random_rotation_is_orthogonal_and_depends_on_its_seed_only():
    rotation = random_rotation(7, 1)
    assert np.allclose(rotation @ rotation.T, np.eye(7))
    assert np.array_equal(rotation, random_rotation(7, 1))
    assert not np.allclose(rotation, random_rotation(7, 2))


def test_more_patterns_than_dimensions_are_refused_with_the_numbers():
    with pytest.raises(
        InputError, match=r"6 relevant \+ 24 irrelevant \+ 0 outlier patterns need 30 .* dimension is 20"
    ):
        orthogonal_patterns(20, 6, 24, 3.0)


@pytest.mark.parametrize("sizes", [(-1, 2, 2), (8, 0, 2), (8, 2, -3)])
def test_sizes_that_are_not_positive_are_refused(sizes):
    with pytest.raises(InputError, match="must be positive"):
        orthogonal_patterns(*sizes, 1.0)


def test_mixtures_that_are_not_orthogonal_or_change_the_norm_are_refused():
    rows = 3.0 * np.eye(4)
    assert np.allclose(mix(np.array([[0.6, 0.8, 0, 0]]), rows), [[1.8, 2.4, 0, 0]])
    with pytest.raises(InputError, match="mutually orthogonal"):
        mix(np.array([[0.6, 0.8, 0, 0], [1.0, 0, 0, 0]]), rows)
    with pytest.raises(InputError, match="keep the norm"):
        mix(np.array([[1.0, 1.0, 0, 0]]), rows)

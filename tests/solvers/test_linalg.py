"""Shared parts of the solvers, each against its definition."""

import numpy as np
import pytest

from consilience.solvers.design import view_columns
from consilience.solvers.linalg import without_rounding
from consilience.solvers.metric import direct_metric

rng = np.random.default_rng(0)


def test_columns_of_views_stand_side_by_side():
    assert view_columns([2, 3, 0, 1]) == [slice(0, 2), slice(2, 5), slice(5, 5), slice(5, 6)]
    assert view_columns([]) == []


def test_only_negative_eigenvalues_of_rounding_are_taken_away():
    low = rng.normal(size=(12, 2))
    definite = low @ low.T + np.eye(12)
    assert without_rounding(definite) is definite
    for dtype, error in ((np.float32, 1e-6), (np.float64, 1e-14)):
        rounded = (low @ low.T).astype(dtype)
        rounded = (rounded + rounded.T) / 2
        found = without_rounding(rounded)
        assert found.dtype == np.float64
        assert np.linalg.eigvalsh(found)[0] >= -1e-14
        assert np.abs(found - rounded).max() <= error * np.abs(rounded).max()
        assert np.linalg.matrix_rank(found, tol=1e-9) == 2
        indefinite = rounded - 0.1 * np.eye(12, dtype=dtype)
        assert without_rounding(indefinite) is indefinite


@pytest.mark.parametrize("kappa", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("moments", [True, False])
def test_the_metric_of_one_output_meets_its_equation(moments, kappa):
    M, y = rng.normal(size=(15, 8)), rng.normal(size=(15, 1))
    A, b = (M.T @ M, M.T @ y) if moments else (M @ M.T, y)
    x = direct_metric(A, b, kappa, moments=moments)
    g = x if moments else M.T @ x
    slope = 2 * M.T @ (y - M @ g) - 4 / 3 * kappa * np.linalg.norm(g) ** (-2 / 3) * g  # of |y - Mg|² + κ|g|^(4/3)
    assert np.abs(slope).max() <= 1e-9 * np.abs(M.T @ y).max()
    assert not direct_metric(A, 0 * b, kappa, moments=moments).any()

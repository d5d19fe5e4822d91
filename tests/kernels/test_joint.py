"""Rows of kernels as solvers ask for them."""

import numpy as np
import pytest

from consilience.kernels import RBF


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-3, 0.3, 50.0])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_rows_of_gaussian_kernels(dtype, gamma, offset):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(700, 4)) + offset, 3 * rng.normal(size=(900, 4)) + offset
    rows = RBF(gamma)._against(Z, dtype)(X, np.empty((700, 900), dtype=dtype))
    np.testing.assert_allclose(rows, RBF(gamma)(X, Z), atol=2e-6 if dtype == np.float32 else 1e-10)
    for start in (0, 300):  # few rows, in one thread
        some = RBF(gamma)._against(Z, dtype)(X[start : start + 3], np.empty((3, 900), dtype=dtype))
        np.testing.assert_allclose(some, rows[start : start + 3], atol=1e-6)

"""Compiled loops of the kernels. Imported when first used, so that numba loads only then.

Each compiled function fills a block of rows of a matrix and releases the lock; threads share the rows.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from .._backend import by_rows


def mirror(matrix: np.ndarray) -> None:
    """Copy the lower triangle of a square matrix to the upper, by tiles that fit the cache."""
    n, tile = matrix.shape[0], 256
    for a in range(0, n, tile):
        for b in range(0, a, tile):
            matrix[b : b + tile, a : a + tile] = matrix[a : a + tile, b : b + tile].T
        corner = matrix[a : a + tile, a : a + tile]
        upper = np.triu_indices(corner.shape[0], 1)
        corner[upper] = corner.T[upper]


# -- χ² and its kin
def harmonic_sums(X: Any, Y: Any) -> np.ndarray:
    """Σ_j 2 x_j z_j / (x_j + z_j) between the rows of X and Y (None: of X, symmetric), dense or CSR."""
    symmetric = Y is None
    Y = X if symmetric else Y
    out = np.empty((X.shape[0], Y.shape[0]), dtype=np.result_type(X.dtype, Y.dtype))
    if sp.issparse(X):
        arrays = (X.indptr, X.indices, X.data, Y.indptr, Y.indices, Y.data, X.shape[1], symmetric, out)
        by_rows(lambda a, b: _harmonic_sparse(a, b, *arrays), X.shape[0], X.shape[0] * Y.nnz)
    else:
        X, Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
        by_rows(lambda a, b: _harmonic_dense(a, b, X, Y, symmetric, out), X.shape[0], X.shape[0] * Y.size)
    if symmetric:
        mirror(out)
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def _harmonic_dense(start, stop, X, Y, symmetric, out):  # type: ignore[no-untyped-def]
    tiny = np.finfo(X.dtype).tiny  # keeps 0/0 at 0 without a branch
    for i in range(start, stop):
        for j in range(i + 1 if symmetric else Y.shape[0]):
            total = out.dtype.type(0)
            for c in range(X.shape[1]):
                total += X[i, c] * Y[j, c] / (X[i, c] + Y[j, c] + tiny)
            out[i, j] = 2 * total


@njit(cache=True, nogil=True)
def _harmonic_sparse(start, stop, x_ptr, x_col, x_val, y_ptr, y_col, y_val, width, symmetric, out):  # type: ignore[no-untyped-def]
    row = np.zeros(width, dtype=out.dtype)
    for i in range(start, stop):
        for k in range(x_ptr[i], x_ptr[i + 1]):
            row[x_col[k]] += x_val[k]
        for j in range(i + 1 if symmetric else y_ptr.shape[0] - 1):
            total = 0.0
            for k in range(y_ptr[j], y_ptr[j + 1]):
                x = row[y_col[k]]
                if x > 0:
                    total += x * y_val[k] / (x + y_val[k])
            out[i, j] = 2 * total
        for k in range(x_ptr[i], x_ptr[i + 1]):
            row[x_col[k]] = 0

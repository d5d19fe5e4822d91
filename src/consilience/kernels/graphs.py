"""Graphs over the samples of a view, which state what samples should get similar predictions."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from .._backend import is_device_array, like, namespace, to_numpy
from ..solvers.linalg import add_to_diagonal, diagonal_of, multiply
from ..views._reading import checked_sparse

__all__ = ["laplacian", "nearest_neighbors"]


def laplacian(weights: Any, *, normalized: bool = False) -> Any:
    """Return the Laplacian of a graph: f'Lf = Σ_{i<j} w_ij (f_i - f_j)².

    Parameters
    ----------
    weights : array or sparse matrix of shape (n, n)
        Edge weights W, symmetric and at least 0. The diagonal only matters for the degrees of a `normalized` Laplacian.
    normalized : bool, default=False
        Whether to return I - D^{-½} W D^{-½} instead of D - W, where D is the diagonal matrix of row sums d. Then
        f'Lf = Σ_{i<j} w_ij (f_i/√d_i - f_j/√d_j)². A sample without neighbors has a zero row.

    Returns
    -------
    array or sparse matrix of shape (n, n)
        Laplacian L, symmetric and positive semi-definite; sparse if `weights` is.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels.graphs import laplacian
    >>> laplacian(np.array([[0.0, 2.0], [2.0, 0.0]]))
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    W: Any
    if sp.issparse(weights):
        W = sp.csr_array(checked_sparse(weights, "The graph"))
    else:
        W = np.asarray(weights, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"The weights of a graph must be a square matrix; got shape {W.shape}.")
    if not np.isfinite(W.data if sp.issparse(W) else W).all():
        raise ValueError("The weights of a graph must be finite; they contain NaN or infinity.")
    if W.shape[0] and abs(W - W.T).max() > 1e-8 * abs(W).max():
        raise ValueError("The weights of a graph must be symmetric, w_ij = w_ji. Use (W + W.T) / 2.")
    smallest = float(W.min()) if W.shape[0] else 0.0
    if smallest < 0:
        raise ValueError(f"The weights of a graph must be at least 0; the smallest is {smallest:.4g}.")
    return weighted_laplacian(W, np.ones(W.shape[0]), normalized=normalized)


def weighted_laplacian(W: Any, s: np.ndarray, *, normalized: bool) -> Any:
    """Return the Laplacian of a graph in which sample i is repeated s_i times."""
    L = WeightLaplacian(W, s, normalized=normalized)
    return L.tosparse() if sp.issparse(W) else L.toarray()


class WeightLaplacian:
    """The Laplacian diag(d) - diag(r) W diag(r), stored as d, r and W itself: a Gram matrix as W is not copied."""

    ndim = 2

    def __init__(self, W: Any, s: np.ndarray, *, normalized: bool):
        # a neighbor j counts s_j times
        degrees = to_numpy(multiply(W, like(s[:, None], W)))[:, 0] if is_device_array(W) else np.asarray(W @ s)
        self.W, self.shape = W, W.shape
        if normalized:
            # s_i rows of I - D^{-½}WD^{-½}, added up
            self.r = np.divide(s, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
            self.d = np.where(degrees > 0, s, 0)
        else:
            self.r, self.d = s, s * degrees  # s_i rows of D - W, added up

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        d, r = like(self.d[:, None], x), like(self.r[:, None], x)
        return d * x - r * multiply(self.W, r * x)

    def toarray(self) -> np.ndarray:
        """Return L as a dense array."""
        L = self.W * like(-self.r[None, :], self.W)
        L *= like(self.r[:, None], self.W)
        return add_to_diagonal(L, self.d)

    def tosparse(self) -> Any:
        """Return L as a sparse matrix."""
        return sp.diags_array(self.d) - sp.diags_array(self.r) @ self.W @ sp.diags_array(self.r)


def nearest_neighbors(X: Any, n_neighbors: int = 10) -> sp.csr_array:
    """Return the nearest-neighbor graph: weight 1 if one of two samples is among the nearest neighbors of the other.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Samples of a view; distances are Euclidean.
    n_neighbors : int, default=10
        Number of neighbors of each sample, at most all other samples.

    Returns
    -------
    sparse matrix of shape (n_samples, n_samples)
        Edge weights for `laplacian`.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels.graphs import nearest_neighbors
    >>> nearest_neighbors(np.array([[0.0], [1.0], [5.0]]), n_neighbors=1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    n = X.shape[0]
    if n < 2:
        return sp.csr_array((n, n))
    near = sp.csr_array(kneighbors_graph(X, min(n_neighbors, n - 1)))
    return near.maximum(near.T).tocsr()  # an edge if either is among the neighbors of the other


def kernel_neighbors(K: Any, n_neighbors: int = 10) -> Any:
    """Return the nearest-neighbor graph by the distance in feature space, k(x, x) - 2k(x, z) + k(z, z).

    It is sparse; on a device it is a matrix there.
    """
    n = K.shape[0]
    k = min(n_neighbors, n - 1)
    if is_device_array(K):
        return _device_neighbors(K, k)
    if n < 2:
        return sp.csr_array((n, n))
    distances = K.diagonal()[None, :] - 2 * K  # k(x, x) is constant in a row, so it does not change the order
    np.fill_diagonal(distances, np.inf)
    # the order among the k nearest does not matter
    columns = np.argpartition(distances, k - 1, axis=1)[:, :k] if k < n - 1 else _others(n)
    rows = np.repeat(np.arange(n), k)
    near = sp.csr_array((np.ones(n * k), (rows, columns.ravel())), shape=(n, n))
    return near.maximum(near.T).tocsr()


def _device_neighbors(K: Any, k: int) -> Any:
    """Return the weights of the graph of the k nearest neighbors as a matrix on the device."""
    xp, n = namespace(K), K.shape[0]
    distances = add_to_diagonal(like(diagonal_of(K), K)[None, :] - 2 * K, 1e300)  # no sample is its own neighbor
    columns = xp.argsort(distances, axis=1)[:, :k]
    places = like(np.arange(n), K)[None, :]
    near = xp.zeros_like(K)
    for j in range(k):  # arrays of the standard cannot be assigned to by positions
        near = near + xp.astype(columns[:, j : j + 1] == places, K.dtype)
    return xp.maximum(near, near.T)


def _others(n: int) -> np.ndarray:
    """Return, in row i, all positions but i."""
    return np.array([[j for j in range(n) if j != i] for i in range(n)])

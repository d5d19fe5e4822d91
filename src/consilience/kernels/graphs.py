"""Graphs over the samples of a view: which of them should get similar answers."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from ..solvers.linalg import multiply
from ..views._reading import checked_sparse

__all__ = ["laplacian", "nearest_neighbors"]


def laplacian(weights: Any, *, normalized: bool = False) -> Any:
    """Return the Laplacian of a graph: f'Lf = Σ_{i<j} w_ij (f_i - f_j)².

    Parameters
    ----------
    weights : array or sparse matrix of shape (n, n)
        Symmetric and at least 0. The diagonal does not matter, but for degrees where `normalized`.
    normalized : bool, default=False
        I - D^{-½} W D^{-½} instead of D - W, D the diagonal of the sums of rows: f'Lf = Σ_{i<j} w_ij (f_i/√d_i -
        f_j/√d_j)². A sample without neighbors has a zero row.

    Returns
    -------
    array or sparse matrix of shape (n, n)
        L, symmetric and positive semi-definite; sparse where `weights` is.

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
        raise ValueError(f"The weights of a graph are a square matrix; got shape {W.shape}.")
    if not np.isfinite(W.data if sp.issparse(W) else W).all():
        raise ValueError("The weights of a graph must be finite.")
    if W.shape[0] and abs(W - W.T).max() > 1e-8 * abs(W).max():
        raise ValueError("The weights of a graph must be symmetric: w_ij = w_ji.")
    smallest = float(W.min()) if W.shape[0] else 0.0
    if smallest < 0:
        raise ValueError(f"The weights of a graph must be at least 0; the smallest is {smallest:.4g}.")
    return weighted_laplacian(W, np.ones(W.shape[0]), normalized=normalized)


def weighted_laplacian(W: Any, s: np.ndarray, *, normalized: bool) -> Any:
    """The Laplacian of a graph in which sample i stands s_i times."""
    made = WeightLaplacian(W, s, normalized=normalized)
    return made.tosparse() if sp.issparse(W) else made.toarray()


class WeightLaplacian:
    """diag(d) - diag(r) W diag(r), with W as it is: where the weights are a Gram matrix, nothing more is stored."""

    ndim = 2

    def __init__(self, W: Any, s: np.ndarray, *, normalized: bool):
        degrees = np.asarray(W @ s)
        self.W, self.shape = W, W.shape
        if normalized:
            self.r = np.divide(s, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
            self.d = np.where(degrees > 0, s, 0)
        else:
            self.r, self.d = s, s * degrees

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        return self.d[:, None] * x - self.r[:, None] * multiply(self.W, self.r[:, None] * x)

    def toarray(self) -> np.ndarray:
        """L, dense."""
        L = self.W * -self.r
        L *= self.r[:, None]
        L[np.diag_indices_from(L)] += self.d
        return L

    def tosparse(self) -> Any:
        """L, sparse."""
        return sp.diags_array(self.d) - sp.diags_array(self.r) @ self.W @ sp.diags_array(self.r)


def nearest_neighbors(X: Any, n_neighbors: int = 10) -> sp.csr_array:
    """Return the graph of nearest neighbors: weight 1 where one of two samples is among the nearest of the other.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The samples of a view; distances are Euclidean.
    n_neighbors : int, default=10
        How many are near; all others where there are fewer.

    Returns
    -------
    sparse matrix of shape (n_samples, n_samples)
        The weights; `laplacian` makes the Laplacian of them.

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
    return near.maximum(near.T).tocsr()


def kernel_neighbors(K: np.ndarray, n_neighbors: int = 10) -> sp.csr_array:
    """The graph of nearest neighbors by the distance in a kernel's feature space, k(x, x) - 2k(x, z) + k(z, z)."""
    n = len(K)
    if n < 2:
        return sp.csr_array((n, n))
    k = min(n_neighbors, n - 1)
    distances = K.diagonal()[None, :] - 2 * K  # the term of the row does not change its order
    np.fill_diagonal(distances, np.inf)
    columns = np.argpartition(distances, k - 1, axis=1)[:, :k] if k < n - 1 else _others(n)
    rows = np.repeat(np.arange(n), k)
    near = sp.csr_array((np.ones(n * k), (rows, columns.ravel())), shape=(n, n))
    return near.maximum(near.T).tocsr()


def _others(n: int) -> np.ndarray:
    return np.array([[j for j in range(n) if j != i] for i in range(n)])

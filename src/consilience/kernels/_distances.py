"""Squared Euclidean distances by matrix products, as accurate as sums of squared differences where it matters.

‖x - z‖² = ‖x‖² - 2x·z + ‖z‖² is one matrix product, but its rounding error is about eps (‖x‖² + ‖z‖²), even if x and z
are close. So the origin is moved into the data, away from rows that lie far from the others. Pairs of rows that are
close to each other and still far from the origin are computed again from their differences.
"""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from .._backend import is_device_array, like, namespace, take_rows, to_numpy
from ..solvers.linalg import multiply
from ..views._blocks import Block
from .base import Array

_EPS = float(np.finfo(np.float64).eps)
_FAR = 256.0  # γ‖x‖² above which exponents are checked; below, the kernel is accurate to about 1e-12
_NEGLIGIBLE = -36.0  # exponents below this give kernel values below the rounding error of 1
_PAIR_VALUES = 1 << 20  # values stored at a time when pairs of rows are compared
_OUTLYING = 100  # ratio of a squared norm to the mean squared norm above which a row distorts the mean
_SAMPLE = 64  # rows whose median replaces a distorted mean


def squared_norms(X: Block) -> Array:
    """Return ‖x‖² of each row."""
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return namespace(X).sum(X * X, axis=1)


def inner(X: Block, Y: Block) -> Array:
    """Return XY' as a dense array, for dense and sparse arguments; Y = None stands for X."""
    other = X if Y is None else Y
    if isinstance(X, np.ndarray) and isinstance(other, np.ndarray) and X.dtype == other.dtype:
        return multiply(other, X.T).T  # by the library of all other products: see solvers.linalg
    product = X @ other.T
    return product.toarray() if sp.issparse(product) else product


def double(X: Block) -> Block:
    """Return the data in double precision, without a copy if they are."""
    if isinstance(X, np.ndarray):
        return X.astype(np.float64, copy=False)
    if is_device_array(X):
        xp = namespace(X)
        return xp.astype(X, xp.float64, copy=False)
    return X.astype(np.float64, copy=False)


def centered(Y: Block) -> tuple[Any, Block, Array]:
    """Return the new origin, the data relative to it, and their squared norms.

    The origin is the mean, or the columnwise median of some rows if outliers move the mean far from most rows.
    """
    n = Y.shape[0]
    middle = namespace(Y).sum(Y, axis=0) / max(n, 1)  # distances do not depend on the origin, their rounding does
    moved = Y - middle
    norms = squared_norms(moved)
    sizes = to_numpy(norms) if n > _OUTLYING else np.zeros(1)  # among fewer rows none can be so far out
    if not sizes.max() > _OUTLYING * sizes.mean():
        return middle, moved, norms
    some = take_rows(Y, np.unique(np.linspace(0, n - 1, _SAMPLE).astype(int)))
    middle = like(np.median(to_numpy(some), axis=0), Y)
    moved = Y - middle
    return middle, moved, squared_norms(moved)


def squared_distances(X: Block, Y: Block = None) -> Array:
    """Return squared distances between rows in double precision; Y = None stands for X, with a diagonal of zeros."""
    symmetric, sparse = Y is None, sp.issparse(X) or sp.issparse(Y)
    Y = double(X if symmetric else Y)
    X = Y if symmetric else double(X)
    middle: Any = None
    # a moved sparse matrix would be dense
    middle, moved_Y, norms_Y = (None, Y, squared_norms(Y)) if sparse else centered(Y)
    moved_X = moved_Y if symmetric else X if sparse else X - middle
    norms_X = norms_Y if symmetric else squared_norms(moved_X)
    distances = inner(moved_X, None if symmetric else moved_Y)
    distances *= -2
    distances += norms_X[:, None]
    distances += norms_Y[None, :]
    share = 1e10 * _rounding(X)  # below this share of the norms, a distance has fewer than ten correct digits
    if is_device_array(distances):
        limits = share * (norms_X[:, None] + norms_Y[None, :])
        return _refined_on_device(distances, X, Y, limits, symmetric)
    if symmetric:
        np.fill_diagonal(distances, np.inf)  # no comparison of a row with itself
    least = distances.min(axis=1, initial=np.inf)  # most rows are far from all others, so this is enough for them
    rows = np.flatnonzero(~(least >= share * (norms_X + norms_Y.max(initial=0.0))))
    for start in range(0, len(rows), 128):
        some = rows[start : start + 128]
        doubtful = ~(distances[some] >= share * (norms_X[some, None] + norms_Y))  # written so that NaN is doubtful too
        _compare(distances, doubtful, X, Y, some, 1.0)
    if symmetric:
        np.fill_diagonal(distances, 0)
    return distances


def _rounding(X: Block) -> float:
    """Return a bound on the error of an inner product of two rows, relative to the product of their norms."""
    return _EPS * (4 + math.sqrt(X.shape[1]))


def _refined_on_device(distances: Array, X: Array, Y: Array, limits: Array, symmetric: bool) -> Array:
    """Compute distances below their limits again; most data have few of them except the diagonal."""
    xp = namespace(distances)
    doubtful = xp.logical_not(distances >= limits)
    if symmetric:
        diagonal = xp.eye(distances.shape[0], dtype=distances.dtype, device=distances.device) > 0
        distances = xp.where(diagonal, xp.zeros_like(distances), distances)
        doubtful = xp.logical_and(doubtful, xp.logical_not(diagonal))
    rows = np.flatnonzero(to_numpy(xp.any(doubtful, axis=1)))
    if not len(rows):
        return distances
    exact = []
    step = max(1, 16 * _PAIR_VALUES // (Y.shape[0] * X.shape[1]))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        differences = take_rows(X, some)[:, None, :] - Y[None, :, :]
        close = xp.sum(differences * differences, axis=2)
        exact.append(xp.where(take_rows(doubtful, some), close, take_rows(distances, some)))
    # not every device array can be assigned to: whole rows are taken from the old or the new ones
    where = np.arange(distances.shape[0])
    where[rows] = distances.shape[0] + np.arange(len(rows))
    return take_rows(xp.concat([distances, *exact], axis=0), where)


def gaussian_exponents(X: Array, Y: Array | None, gamma: float) -> Array | None:
    """Return -γ‖x - z‖² between rows on a device by one product; None if rounding could matter.

    [x, ‖x‖², 1]·[2z, -1, -‖z‖²] γ: the norms are columns of the product, and need no other pass over the matrix.
    """
    xp = namespace(X)
    middle, moved, norms = centered(double(X if Y is None else Y))
    left, left_norms = (moved, norms) if Y is None else (double(X) - middle, None)
    left_norms = squared_norms(left) if left_norms is None else left_norms
    if gamma * min(float(xp.max(left_norms)), float(xp.max(norms))) > _FAR:
        return None
    columns = [xp.ones_like(left_norms)[:, None], xp.ones_like(norms)[:, None]]
    extended = xp.concat([left, left_norms[:, None], columns[0]], axis=1)
    reference = xp.concat([2 * gamma * moved, -gamma * columns[1], -gamma * norms[:, None]], axis=1)
    return extended @ reference.T


def _compare(out: np.ndarray, doubtful: np.ndarray, X: Block, Y: Block, rows: np.ndarray, scale: float) -> None:
    """Write `scale` ‖x - z‖², computed from differences, to the doubtful places of out[rows]."""
    # a quarter of the pairs: all at once is faster
    if not sp.issparse(X) and not sp.issparse(Y) and 4 * np.count_nonzero(doubtful) > doubtful.size:
        out[rows] = np.where(doubtful, scale * cdist(X[rows], Y, "sqeuclidean"), out[rows])
        return
    i, j = np.nonzero(doubtful)
    step = max(1, _PAIR_VALUES // X.shape[1])
    for start in range(0, len(i), step):
        r, c = rows[i[start : start + step]], j[start : start + step]
        out[r, c] = scale * squared_norms(_difference(X[r], Y[c]))


def _difference(X: Block, Z: Block) -> Block:
    """Return X - Z for dense and sparse rows."""
    if sp.issparse(X) and sp.issparse(Z):
        return X - Z
    return np.asarray((X.toarray() if sp.issparse(X) else X) - (Z.toarray() if sp.issparse(Z) else Z))


class GaussianRows:
    """Reference rows z for exponents -γ‖x - z‖², NumPy or CSR.

    Parameters
    ----------
    Y : array or CSR matrix
        Reference rows.
    gamma : float
        Inverse width γ.
    move : bool, default=True
        Whether to move the origin into the data; sparse data would become dense.
    """

    def __init__(self, Y: Block, gamma: float, *, move: bool = True):
        self.gamma, self.rounding = gamma, _rounding(Y)
        self.given = double(Y)
        self.middle: Any
        self.middle, self.Y, norms = centered(self.given) if move else (None, self.given, squared_norms(self.given))
        self.norms = gamma * norms  # γ‖z‖²
        self.farthest = float(self.norms.max(initial=0.0))

    def moved(self, X: Block) -> Block:
        """Return rows of new samples relative to the origin of the reference."""
        return X if self.middle is None else X - self.middle

    def refine(self, block: np.ndarray, X: Block, norms: np.ndarray) -> None:
        """Compute exponents -γ‖x - z‖² again where rounding can matter: both rows are far from the origin.

        `norms` are γ‖x‖² of the moved rows. X holds the original rows, since moving them rounds too.
        """
        if not (self.farthest > _FAR and norms.max(initial=0.0) > _FAR):
            return
        rounding = 2 * self.rounding  # twice, since `RBF._against` lowers exponents by as much
        reach = rounding * (norms + self.farthest)
        # rows whose exponents stay below _NEGLIGIBLE need no correction
        rows = np.flatnonzero((norms > _FAR) & ~(block.max(axis=1) + reach <= _NEGLIGIBLE))
        if len(rows):
            error = rounding * (norms[rows, None] + self.norms)
            doubtful = ~(block[rows] + error <= _NEGLIGIBLE) & (self.norms > _FAR)
            _compare(block, doubtful, X, self.given, rows, -self.gamma)

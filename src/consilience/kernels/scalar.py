"""Kernels on vectors: inner products and functions of distances.

A kernel is a small object with parameters. ``k(X, Y)`` is the matrix of k(x, z), ``k.diag(X)`` the vector of k(x, x)
without that matrix, and ``repr(k)`` the expression that makes the kernel. ``k.resolved(X)`` replaces rules such as
``gamma="scale"`` by their value on data.
"""

import numbers
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._backend import by_rows, cast, few_threads, is_device_array, like, namespace, to_numpy
from ..views import _blocks
from ..views._blocks import Block
from ._distances import GaussianRows, double, gaussian_exponents, inner, squared_distances, squared_norms
from .base import Array, Kernel, check_degree, check_numeric, full, integer_power, precision, to_precision
from .gram import is_psd

__all__ = ["Linear", "Polynomial", "RBF", "Laplacian", "Mahalanobis"]


# -- kernels of an inner product
class Linear(Kernel):
    """The linear kernel k(x, z) = x·z.

    Equals ``sklearn.metrics.pairwise.linear_kernel``. Short name: ``"linear"``.

    Examples
    --------
    >>> from consilience.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    _name = "linear"

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        return inner(X, Y)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        return squared_norms(X)


class Polynomial(Kernel):
    """The polynomial kernel k(x, z) = (c + x·z)^M.

    Equals ``sklearn.metrics.pairwise.polynomial_kernel`` with ``gamma=1``. Short name: ``"polynomial"``.

    Parameters
    ----------
    degree : int, default=2
        Degree M, at least 1.
    constant : float, default=1.0
        Constant c, at least 0.

    Examples
    --------
    >>> from consilience.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    _name = "polynomial"

    def __init__(self, degree: int = 2, constant: float = 1.0):
        self.degree = degree
        self.constant = constant

    def _check(self) -> None:
        """Validate the parameters."""
        check_degree(self, self.degree)
        if not self.constant >= 0:
            raise ValueError(f"{self!r}: `constant` must be at least 0, so that the kernel is positive semi-definite.")

    def _gram(self, X: Block, Y: Block) -> Array:
        self._check()
        check_numeric(self, X, Y)
        products = inner(X, Y)
        products += self.constant
        return integer_power(products, int(self.degree))

    def _diagonal(self, X: Block) -> Array:
        self._check()
        check_numeric(self, X, None)
        return integer_power(squared_norms(X) + self.constant, int(self.degree))


class Mahalanobis(Kernel):
    """The kernel k(x, z) = x'Az of a positive semi-definite matrix A.

    Equals the linear kernel of the data multiplied by A^(1/2).

    Parameters
    ----------
    A : array of shape (n_columns, n_columns)
        Symmetric positive semi-definite matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import Mahalanobis
    >>> Mahalanobis(np.diag([1.0, 10.0]))([[1.0, 2.0]], [[3.0, 4.0]])
    array([[83.]])
    """

    def __init__(self, A: np.ndarray):
        self.A = A

    def _unresolved(self) -> bool:
        # the check of A counts as resolving, so that it is made once
        return getattr(self, "_checked", None) is not self.A  # a new A is to be checked again

    def _resolved(self, X: Block) -> "Kernel":
        """Validate A: its shape for the data, and that it is positive semi-definite."""
        shape = np.shape(self.A)
        if shape != (X.shape[1], X.shape[1]):
            raise ValueError(
                f"Mahalanobis: `A` must be {X.shape[1]} x {X.shape[1]} for data of {X.shape[1]} columns; got {shape}."
            )
        if not is_psd(self.A):
            raise ValueError("Mahalanobis: `A` must be symmetric and positive semi-definite. Use nearest_psd(A).")
        checked = clone(self)
        checked._checked = checked.A
        return checked

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        return inner(X @ self._matrix(X), X if Y is None else Y)  # x'Az as <A'x, z>

    def _matrix(self, X: Block) -> Array:
        """Return A with the library, device and precision of X."""
        single = str(X.dtype).endswith("float32")
        return like(np.asarray(self.A, dtype=np.float32 if single else np.float64), X)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        mapped = X @ self._matrix(X)
        return namespace(X).sum(mapped * (X.toarray() if sp.issparse(X) else X), axis=1)


# -- kernels of a distance
class DistanceKernel(Kernel):
    """A kernel exp(-γ d(x, z)) of a distance d with d(x, x) = 0; γ is a number or a rule to compute it from data."""

    _bounded = True
    _rules: Mapping[str, Callable[[Any, Block], float]] = {
        "median": lambda kernel, X: kernel._by_distances(X, np.median),
        "mean_distance": lambda kernel, X: kernel._by_distances(X, np.mean),
    }

    def __init__(self, gamma: float | str = "mean_distance"):
        self.gamma = gamma

    @abstractmethod
    def _distances(self, X: Block, Y: Block) -> Array:
        """Return a new matrix of d(x, z); Y = None stands for X."""

    def _unresolved(self) -> bool:
        return isinstance(self.gamma, str)

    def _resolved(self, X: Block) -> "Kernel":
        if isinstance(self.gamma, str) and self.gamma in self._rules:
            check_numeric(self, X, None)
            return clone(self).set_params(gamma=self._rules[self.gamma](self, X))
        self._check_gamma()
        return clone(self)

    def _check_gamma(self) -> None:
        """Validate gamma."""
        if not isinstance(self.gamma, numbers.Real) or not self.gamma > 0:
            rules = ", ".join(map(repr, self._rules))
            raise ValueError(f"{self!r}: `gamma` must be a positive number or one of {rules}.")

    def _by_distances(self, X: Block, middle: Callable[[np.ndarray], Any]) -> float:
        """Return one over the median or mean distance between different samples; 1 if all samples are equal."""
        distances = to_numpy(self._distances(_sample_for_distances(X), None))
        pairs = distances[np.triu_indices(distances.shape[0], 1)]  # each pair of different samples once
        if not len(pairs):
            return 1.0
        typical = float(middle(pairs)) or float(np.mean(pairs))  # the median is 0 if most pairs are equal
        return 1.0 / typical if typical > 0 else 1.0

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        self._check_gamma()
        return self._exponential(X, Y)

    def _exponential(self, X: Block, Y: Block) -> Array:
        """Return exp(-γ d(x, z))."""
        exponent = self._distances(X, Y)
        exponent *= -float(self.gamma)
        return namespace(exponent).exp(exponent) if is_device_array(exponent) else np.exp(exponent, out=exponent)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        return full(X, (X.shape[0],), 1.0)


class RBF(DistanceKernel):
    """The Gaussian kernel k(x, z) = exp(-γ‖x - z‖²), γ = 1/(2σ²).

    Equals ``sklearn.metrics.pairwise.rbf_kernel``. Short name: ``"rbf"``.

    Parameters
    ----------
    gamma : float or {"scale", "median", "mean_distance"}, default="scale"
        Inverse width γ. ``"scale"`` is 1 / (n_columns · variance of the data). ``"median"`` and ``"mean_distance"`` are
        one over the median and the mean of ‖x - z‖² between pairs of different samples.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> RBF("median").resolved(X)
    RBF(gamma=0.25)
    """

    _name = "rbf"
    _rules = {"scale": lambda _, X: 1.0 / (X.shape[1] * (_variance(X) or 1.0)), **DistanceKernel._rules}

    def __init__(self, gamma: float | str = "scale"):
        self.gamma = gamma

    def _distances(self, X: Block, Y: Block) -> Array:
        dtype = X.dtype if Y is None or X.dtype == Y.dtype else None
        return to_precision(squared_distances(X, Y), dtype)

    def _exponential(self, X: Block, Y: Block) -> Array:
        if is_device_array(X):
            exponents = gaussian_exponents(X, Y, float(self.gamma)) if X.shape[0] else None
            if exponents is None:
                return super()._exponential(X, Y)
            xp = namespace(exponents)
            exponents = xp.minimum(exponents, xp.zeros_like(exponents[:1, :1]))
            return to_precision(xp.exp(exponents), X.dtype)
        # -γ‖x - z‖² = 2γ x·z - γ‖x‖² - γ‖z‖², by one matrix product; `refine` corrects what cancellation spoils
        single = precision(X) == np.float32 and (Y is None or precision(Y) == np.float32)
        gamma, sparse = float(self.gamma), sp.issparse(X) or sp.issparse(Y)
        reference = GaussianRows(X if Y is None else Y, gamma, move=not sparse)
        X = reference.given if Y is None else double(X)
        moved = reference.Y if Y is None else reference.moved(X)
        norms = reference.norms if Y is None else gamma * squared_norms(moved)
        at_once = not single and not sparse  # one product, half the work if symmetric; else one per block of rows
        shape = (X.shape[0], reference.Y.shape[0])
        matrix = (
            inner(moved, None if Y is None else reference.Y)
            if at_once
            else np.empty(shape, np.float32 if single else np.float64)
        )
        for start in range(0, len(matrix), 128):  # a block of rows stays in the cache through all steps
            rows = slice(start, start + 128)
            block = matrix[rows] if at_once else inner(moved[rows], reference.Y)
            block *= 2 * gamma
            block -= norms[rows, None]
            block -= reference.norms[None, :]
            if Y is None:
                np.fill_diagonal(block[:, start:], -np.inf)  # no refinement of the diagonal, which becomes 1 below
            reference.refine(block, X[rows], norms[rows])
            np.minimum(block, 0, out=block)  # rounding may make exponents positive, and values exceed 1
            np.exp(block, out=matrix[rows], casting="same_kind")
        if Y is None:
            np.fill_diagonal(matrix, 1)
        return matrix

    def _against(self, Y: Block, dtype: Any) -> Callable[[Block, np.ndarray], np.ndarray]:
        if not isinstance(Y, np.ndarray) or not len(Y):
            return super()._against(Y, dtype)
        check_numeric(self, Y, None)
        gamma = float(self.gamma)
        reference = GaussianRows(Y, gamma)  # prepared once for many X

        def extended(X: np.ndarray, norms: np.ndarray, left: bool) -> np.ndarray:
            """Return rows [2γx, -γ‖x‖², 1] or [z, 1, -γ‖z‖²], whose inner products are -γ‖x - z‖².

            The norms are raised by the rounding error, so that no exponent is positive.
            """
            ones, less = np.ones((len(X), 1)), -(1 + reference.rounding) * norms[:, None]
            return np.hstack([2 * gamma * X, less, ones] if left else [X, ones, less])

        right = np.ascontiguousarray(extended(reference.Y, reference.norms, left=False).T)
        size = 128 if len(right) < 256 else 512  # rows per product: few fit the cache, wide rows need more (measured)
        small = reference.farthest < 32  # else the exponents of near rows would lose digits in single precision
        single = right.astype(np.float32) if small and dtype == np.float32 else None

        def fill(X: np.ndarray, out: np.ndarray) -> np.ndarray:
            X = double(X)
            moved = reference.moved(X)
            norms = gamma * squared_norms(moved)
            rows, columns = extended(moved, norms, left=True), right
            if single is not None and norms.max(initial=0.0) < 32:
                rows, columns = rows.astype(np.float32), single
            whole = columns.dtype == out.dtype  # the product can be written to `out` itself

            def work(first: int, last: int) -> None:
                for start in range(first, last, size):
                    part = slice(start, min(start + size, last))
                    block = np.matmul(rows[part], columns, out=out[part]) if whole else rows[part] @ columns
                    reference.refine(block, X[part], norms[part])  # as in `_exponential`
                    np.exp(block, out=out[part], casting="same_kind")

            if out.size < 500_000:
                work(0, len(out))
            else:  # our threads share the rows, so that `exp` runs in parallel too; BLAS gets one thread in each
                with few_threads(0):
                    by_rows(work, len(out), out.size, pieces=1)
            return out

        return fill


class Laplacian(DistanceKernel):
    """The Laplacian kernel k(x, z) = exp(-γ‖x - z‖₁).

    Equals ``sklearn.metrics.pairwise.laplacian_kernel``. Short name: ``"laplacian"``.

    Parameters
    ----------
    gamma : float or {"scale", "median", "mean_distance"}, default="scale"
        Inverse width γ. ``"scale"`` is 1 / (n_columns · standard deviation of the data). ``"median"`` and
        ``"mean_distance"`` are one over the median and the mean of ‖x - z‖₁ between pairs of different samples.

    Examples
    --------
    >>> from consilience.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0]], [[2.0]]).round(3)
    array([[0.368]])
    """

    _name = "laplacian"
    _rules = {"scale": lambda _, X: 1.0 / (X.shape[1] * (_variance(X) ** 0.5 or 1.0)), **DistanceKernel._rules}

    def __init__(self, gamma: float | str = "scale"):
        self.gamma = gamma

    def _distances(self, X: Block, Y: Block) -> Array:
        return city_block_distances(X, Y)


def _variance(X: Block) -> float:
    """Return the variance of all entries, in two passes; 0 if it is only rounding error."""
    n = X.shape[0] * X.shape[1]
    if is_device_array(X) and n:
        xp = namespace(X)
        center = float(xp.sum(X, dtype=xp.float64)) / n
        variance = float(xp.sum((cast(X, "float64") - center) ** 2)) / n
        return variance if variance > (8 * np.finfo(float).eps * float(xp.max(xp.abs(X)))) ** 2 else 0.0
    values = X.data if sp.issparse(X) else to_numpy(X)
    if not values.size:
        return 0.0
    mean = values.sum(dtype=np.float64) / n
    # entries that a sparse matrix does not store are zeros
    variance = float((np.square(values - mean).sum() + (n - values.size) * mean**2) / n)
    return variance if variance > (8 * np.finfo(float).eps * np.abs(values).max()) ** 2 else 0.0


def city_block_distances(X: Block, Y: Block) -> Array:
    """Return ‖x - z‖₁ by scikit-learn; on a device column by column."""
    from sklearn.metrics.pairwise import manhattan_distances

    if is_device_array(X):
        xp = namespace(X)
        return add_columns(X, Y, lambda x, z: xp.abs(x - z))
    shape = (X.shape[0], (X if Y is None else Y).shape[0])
    kind = precision(X) if Y is None else np.result_type(precision(X), precision(Y))
    if 0 in shape:
        return np.empty(shape, kind)
    if Y is not None and sp.issparse(X) != sp.issparse(Y):  # scikit-learn takes both sparse or both dense
        X, Y = (sp.csr_array(block) for block in (X, Y))
    return manhattan_distances(X, Y).astype(kind, copy=False)


def add_columns(X: Block, Y: Block, term: Callable[[Array, Array], Array]) -> Array:
    """Return Σ_j t(x_j, z_j) for all pairs of rows on a device; memory does not grow with the number of columns."""
    xp, Z = namespace(X) if Y is None else namespace(X, Y), X if Y is None else Y
    total = xp.zeros((X.shape[0], Z.shape[0]), dtype=xp.result_type(X.dtype, Z.dtype), device=X.device)
    for j in range(X.shape[1]):
        total += term(X[:, j : j + 1], Z[:, j][None, :])
    return total


def _sample_for_distances(X: Block, most: int = 2000) -> Block:
    """Return at most `most` evenly spaced rows: enough for a median of distances, and not random."""
    n = X.shape[0]
    return X if n <= most else _blocks.take(X, np.linspace(0, n - 1, most).astype(int))

"""Kernels on one view.

A kernel is a small object with parameters: ``k(X, Y)`` is the matrix of k(x, z), ``k.diag(X)`` the vector of k(x, x)
without that matrix, ``repr(k)`` the expression that made it. ``gamma="scale"`` and the like are resolved on data by
``k.resolved(X)``, which returns a kernel with numbers in it. The algebra on them is in `algebra`.
"""

import numbers
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._backend import by_rows, few_threads, is_device_array, like, namespace, to_numpy
from ..views import _blocks
from ..views._blocks import Block, Gram
from ._distances import GaussianRows, double, inner, squared_distances, squared_norms
from .base import Array, Kernel, check_degree, check_nonnegative, check_numeric, full, integer_power, precision, read
from .gram import is_psd


# -- kernels of an inner product
class Linear(Kernel):
    """The linear kernel k(x, z) = x·z.

    Equals ``sklearn.metrics.pairwise.linear_kernel``.

    Examples
    --------
    >>> from consilience.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        return inner(X, Y)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        return squared_norms(X)


class Polynomial(Kernel):
    """The polynomial kernel k(x, z) = (c + x·z)^M.

    Equals ``sklearn.metrics.pairwise.polynomial_kernel`` with ``gamma=1``.

    Parameters
    ----------
    degree : int, default=2
        M >= 1.
    constant : float, default=1.0
        c >= 0.

    Examples
    --------
    >>> from consilience.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    def __init__(self, degree: int = 2, constant: float = 1.0):
        self.degree = degree
        self.constant = constant

    def _check(self) -> None:
        check_degree(self, self.degree)
        if not self.constant >= 0:
            raise ValueError(f"{self!r}: constant must be at least 0 for a positive semi-definite kernel.")

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

    Equals the linear kernel on the data times A^(1/2).

    Parameters
    ----------
    A : array of shape (n_columns, n_columns)
        Symmetric and positive semi-definite.

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
        return getattr(self, "_checked", None) is not self.A  # another A is another question

    def resolved(self, X: Any) -> "Kernel":
        """Return the kernel after checking A, against the data and for being positive semi-definite.

        Parameters
        ----------
        X : array or sparse matrix
            The reference.

        Returns
        -------
        Kernel
            The same kernel.
        """
        X = read(X)
        shape = np.shape(self.A)
        if shape != (X.shape[1], X.shape[1]):
            raise ValueError(
                f"Mahalanobis: A must be {X.shape[1]} x {X.shape[1]} for data of {X.shape[1]} columns; got {shape}."
            )
        if not is_psd(self.A):
            raise ValueError("Mahalanobis: A must be symmetric and positive semi-definite; see nearest_psd(A).")
        checked = clone(self)
        checked._checked = checked.A
        return checked

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        return inner(X @ self._matrix(X), X if Y is None else Y)

    def _matrix(self, X: Block) -> Array:
        single = str(X.dtype).endswith("float32")
        return like(np.asarray(self.A, dtype=np.float32 if single else np.float64), X)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        mapped = X @ self._matrix(X)
        return namespace(X).sum(mapped * (X.toarray() if sp.issparse(X) else X), axis=1)


# -- kernels of a distance
class _Distance(Kernel):
    """exp(-gamma d(x, z)) for a distance d with d(x, x) = 0; gamma a number or read off the data by a rule."""

    _bounded = True
    _rules: Mapping[str, Callable[[Any, Block], float]] = {
        "median": lambda kernel, X: kernel._by_distances(X, np.median),
        "mean_distance": lambda kernel, X: kernel._by_distances(X, np.mean),
    }

    def __init__(self, gamma: float | str = "mean_distance"):
        self.gamma = gamma

    @abstractmethod
    def _distances(self, X: Block, Y: Block) -> Array: ...

    def _unresolved(self) -> bool:
        return isinstance(self.gamma, str)

    def resolved(self, X: Any) -> "Kernel":
        """Return the kernel with a number for gamma.

        Parameters
        ----------
        X : array or sparse matrix
            The reference.

        Returns
        -------
        Kernel
            ``"scale"``, ``"median"`` and ``"mean_distance"`` replaced by their value on X.
        """
        if isinstance(self.gamma, str) and self.gamma in self._rules:
            X = read(X)
            check_numeric(self, X, None)
            return clone(self).set_params(gamma=self._rules[self.gamma](self, X))
        self._check_gamma()
        return clone(self)

    def _check_gamma(self) -> None:
        if not isinstance(self.gamma, numbers.Real) or not self.gamma > 0:
            rules = ", ".join(map(repr, self._rules))
            raise ValueError(f"{self!r}: gamma must be a positive number or one of {rules}.")

    def _by_distances(self, X: Block, middle: Callable[[np.ndarray], Any]) -> float:
        distances = to_numpy(self._distances(_sample_for_distances(X), None))
        pairs = distances[np.triu_indices(distances.shape[0], 1)]
        if not len(pairs):
            return 1.0
        typical = float(middle(pairs)) or float(np.mean(pairs))  # a median of 0: more than half of the pairs coincide
        return 1.0 / typical if typical > 0 else 1.0

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        self._check_gamma()
        return self._exponential(X, Y)

    def _exponential(self, X: Block, Y: Block) -> Array:
        exponent = self._distances(X, Y)
        exponent *= -float(self.gamma)
        return namespace(exponent).exp(exponent) if is_device_array(exponent) else np.exp(exponent, out=exponent)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        return full(X, (X.shape[0],), 1.0)


class RBF(_Distance):
    """The Gaussian kernel k(x, z) = exp(-γ‖x - z‖²), γ = 1/(2σ²).

    Equals ``sklearn.metrics.pairwise.rbf_kernel``.

    Parameters
    ----------
    gamma : float or {"scale", "median", "mean_distance"}, default="scale"
        γ; ``"scale"`` is 1 / (n_columns · variance of the data), ``"median"`` and ``"mean_distance"`` are one over the
        median and the mean of ‖x - z‖² over pairs of different samples.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> RBF("median").resolved(X)
    RBF(gamma=0.25)
    """

    _rules = {"scale": lambda _, X: 1.0 / (X.shape[1] * (_variance(X) or 1.0)), **_Distance._rules}

    def __init__(self, gamma: float | str = "scale"):
        self.gamma = gamma

    def _distances(self, X: Block, Y: Block) -> Array:
        kind = X.dtype if Y is None or X.dtype == Y.dtype else None
        return _rounded(squared_distances(X, Y), kind)

    def _exponential(self, X: Block, Y: Block) -> Array:
        if is_device_array(X):
            return super()._exponential(X, Y)
        single = precision(X) == np.float32 and (Y is None or precision(Y) == np.float32)
        gamma, sparse = float(self.gamma), sp.issparse(X) or sp.issparse(Y)
        reference = GaussianRows(X if Y is None else Y, gamma, move=not sparse)
        X = reference.given if Y is None else double(X)
        moved = reference.Y if Y is None else reference.moved(X)
        norms = reference.norms if Y is None else gamma * squared_norms(moved)
        at_once = not single and not sparse  # half the work where it is symmetric; else a block at a time
        shape = (X.shape[0], reference.Y.shape[0])
        matrix = (
            inner(moved, None if Y is None else reference.Y)
            if at_once
            else np.empty(shape, np.float32 if single else np.float64)
        )
        for start in range(0, len(matrix), 128):  # a block of rows goes through all steps while it is in the cache
            rows = slice(start, start + 128)
            block = matrix[rows] if at_once else inner(moved[rows], reference.Y)
            block *= 2 * gamma
            block -= norms[rows, None]
            block -= reference.norms[None, :]
            if Y is None:
                np.fill_diagonal(block[:, start:], -np.inf)  # 1 in the end, whatever rounding makes of it
            reference.refine(block, X[rows], norms[rows])
            np.minimum(block, 0, out=block)
            np.exp(block, out=matrix[rows], casting="same_kind")
        if Y is None:
            np.fill_diagonal(matrix, 1)
        return matrix

    def _against(self, Y: Block, dtype: Any) -> Callable[[Block, np.ndarray], np.ndarray]:
        if not isinstance(Y, np.ndarray) or not len(Y):
            return super()._against(Y, dtype)
        check_numeric(self, Y, None)
        gamma = float(self.gamma)
        reference = GaussianRows(Y, gamma)

        def extended(X: np.ndarray, norms: np.ndarray, left: bool) -> np.ndarray:
            """Rows whose inner products are the exponents -γ‖x - z‖², less what rounding could make positive."""
            ones, less = np.ones((len(X), 1)), -(1 + reference.rounding) * norms[:, None]
            return np.hstack([2 * gamma * X, less, ones] if left else [X, ones, less])

        right = np.ascontiguousarray(extended(reference.Y, reference.norms, left=False).T)
        size = (
            128 if len(right) < 256 else 512
        )  # rows at a time: few stay in the cache, products of wide ones want more
        small = reference.farthest < 32  # else single precision would lose the small distances of large numbers
        single = right.astype(np.float32) if small and dtype == np.float32 else None

        def fill(X: np.ndarray, out: np.ndarray) -> np.ndarray:
            X = double(X)
            moved = reference.moved(X)
            norms = gamma * squared_norms(moved)
            rows, columns = extended(moved, norms, left=True), right
            if single is not None and norms.max(initial=0.0) < 32:
                rows, columns = rows.astype(np.float32), single
            whole = columns.dtype == out.dtype

            def work(first: int, last: int) -> None:
                for start in range(first, last, size):
                    part = slice(start, min(start + size, last))
                    block = np.matmul(rows[part], columns, out=out[part]) if whole else rows[part] @ columns
                    reference.refine(block, X[part], norms[part])
                    np.exp(block, out=out[part], casting="same_kind")

            if out.size < 500_000:
                work(0, len(out))
            else:
                with few_threads(0):
                    by_rows(work, len(out), out.size, pieces=1)
            return out

        return fill


class Laplacian(_Distance):
    """The Laplacian kernel k(x, z) = exp(-γ‖x - z‖₁).

    Equals ``sklearn.metrics.pairwise.laplacian_kernel``.

    Parameters
    ----------
    gamma : float or {"scale", "median", "mean_distance"}, default="scale"
        γ; ``"scale"`` is 1 / (n_columns · standard deviation of the data), the others are one over the median and the
        mean of ‖x - z‖₁ over pairs of different samples.

    Examples
    --------
    >>> from consilience.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0]], [[2.0]]).round(3)
    array([[0.368]])
    """

    _rules = {"scale": lambda _, X: 1.0 / (X.shape[1] * (_variance(X) ** 0.5 or 1.0)), **_Distance._rules}

    def __init__(self, gamma: float | str = "scale"):
        self.gamma = gamma

    def _distances(self, X: Block, Y: Block) -> Array:
        return _city_block(X, Y)


class ChiSquared(_Distance):
    """The exponential χ² kernel k(x, z) = exp(-γ Σ_j (x_j - z_j)² / (x_j + z_j)) of nonnegative data.

    Equals ``sklearn.metrics.pairwise.chi2_kernel``, and takes sparse data too.

    Parameters
    ----------
    gamma : float or {"median", "mean_distance"}, default="mean_distance"
        γ; the words are one over the median and the mean of the χ² distance over pairs of different samples.

    Examples
    --------
    >>> from consilience.kernels import ChiSquared
    >>> ChiSquared(gamma=1.0)([[1.0, 0.0]], [[0.5, 0.5]]).round(3)
    array([[0.513]])
    """

    def _distances(self, X: Block, Y: Block) -> Array:
        kind = X.dtype if Y is None or X.dtype == Y.dtype else None
        X, Y = double(X), None if Y is None else double(Y)  # the sum of the three terms cancels
        sums_X = _row_sums(X)
        sums_Y = sums_X if Y is None else _row_sums(Y)
        distances = _harmonic_sums(self, X, Y)
        distances *= -2
        distances += sums_X[:, None]
        distances += sums_Y[None, :]
        return _rounded(_at_least_zero(distances, symmetric=Y is None), kind)


class AdditiveChiSquared(Kernel):
    """The additive χ² kernel k(x, z) = Σ_j 2 x_j z_j / (x_j + z_j) of nonnegative data (0/0 counts as 0).

    Equals (Σx + Σz + a(x, z)) / 2 with a = ``sklearn.metrics.pairwise.additive_chi2_kernel``, which is minus the χ²
    distance and therefore not positive semi-definite itself. It is the kernel that ``AdditiveChi2Sampler``
    approximates.

    Examples
    --------
    >>> from consilience.kernels import AdditiveChiSquared
    >>> AdditiveChiSquared()([[1.0, 0.0]], [[0.5, 0.5]]).round(3)
    array([[0.667]])
    """

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        return _harmonic_sums(self, X, Y)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        check_nonnegative(self, X)
        return _row_sums(X)


class Intersection(Kernel):
    """The histogram intersection kernel k(x, z) = Σ_j min(x_j, z_j) of nonnegative data.

    Equals (‖x‖₁ + ‖z‖₁ - ‖x - z‖₁) / 2.

    Examples
    --------
    >>> from consilience.kernels import Intersection
    >>> Intersection()([[1.0, 2.0]], [[3.0, 0.5]])
    array([[1.5]])
    """

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        check_nonnegative(self, X, Y)
        kind = X.dtype if Y is None or X.dtype == Y.dtype else None
        X, Y = double(X), None if Y is None else double(Y)  # the sum of the three terms cancels
        sums_X = _row_sums(X)
        sums_Y = sums_X if Y is None else _row_sums(Y)
        common = _city_block(X, Y)
        common *= -1
        common += sums_X[:, None]
        common += sums_Y[None, :]
        common *= 0.5
        return _rounded(common, kind)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        check_nonnegative(self, X)
        return _row_sums(X)


def _variance(X: Block) -> float:
    """The variance of all entries, in two passes; 0 where it is only rounding."""
    values = X.data if sp.issparse(X) else to_numpy(X)
    n = X.shape[0] * X.shape[1]
    if not values.size:
        return 0.0
    mean = values.sum(dtype=np.float64) / n
    variance = float((np.square(values - mean).sum() + (n - values.size) * mean**2) / n)
    return variance if variance > (8 * np.finfo(float).eps * np.abs(values).max()) ** 2 else 0.0


def _city_block(X: Block, Y: Block) -> Array:
    """‖x - z‖₁ by scikit-learn; arrays of a device come and go."""
    from sklearn.metrics.pairwise import manhattan_distances

    if is_device_array(X):
        return like(_city_block(to_numpy(X), None if Y is None else to_numpy(Y)), X)
    shape = (X.shape[0], (X if Y is None else Y).shape[0])
    kind = precision(X) if Y is None else np.result_type(precision(X), precision(Y))
    if 0 in shape:
        return np.empty(shape, kind)
    if Y is not None and sp.issparse(X) != sp.issparse(Y):
        X, Y = (sp.csr_array(block) for block in (X, Y))
    return manhattan_distances(X, Y).astype(kind, copy=False)


def _harmonic_sums(kernel: Kernel, X: Block, Y: Block) -> Array:
    """Σ_j 2 x_j z_j / (x_j + z_j): only columns where both are nonzero count. Arrays of a device come and go."""
    from . import _compiled

    check_nonnegative(kernel, X, Y)
    if is_device_array(X):
        return like(_harmonic_sums(kernel, to_numpy(X), None if Y is None else to_numpy(Y)), X)
    if sp.issparse(X) or sp.issparse(Y):
        X = sp.csr_array(X)
        Y = None if Y is None else sp.csr_array(Y)
    return _compiled.harmonic_sums(X, Y)


# -- data that are no vectors
class Precomputed(Kernel):
    """The kernel whose matrix is the data.

    Given rows of a shared Gram matrix (``Views(..., precomputed=...)``), k(x, z) is a look-up. Given a plain array it
    is scikit-learn's manner: a square matrix at fit, test-by-train blocks later.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import Precomputed
    >>> Precomputed()(np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """

    @property
    def reads_gram(self) -> bool:
        """Whether the data are a Gram matrix: yes."""
        return True

    @property
    def may_be_indefinite(self) -> bool:
        """Whether the values need not be those of a positive semi-definite kernel: yes."""
        return True

    def _gram(self, X: Block, Y: Block) -> Array:
        if Y is not None:
            reference = self.as_gram(Y)
            if isinstance(X, Gram):
                return X.block(reference)
            block = reference.columns_of(X.toarray() if sp.issparse(X) else X)
            _blocks.check_finite("The block", block, np.ones(len(block), dtype=bool))
            return block
        if not isinstance(X, Gram) and X.shape[0] != X.shape[-1]:
            raise ValueError(
                f"A precomputed kernel must be square at fit; got {X.shape[0]} x {X.shape[1]}. To split samples by "
                "rows, build Views(..., precomputed=...) from the square Gram of all samples first."
            )
        X = self.as_gram(X)
        return X.block(X)

    def _diagonal(self, X: Block) -> Array:
        return self.as_gram(X).diagonal()

    @staticmethod
    def as_gram(X: Block) -> Gram:
        """Read a plain matrix as a Gram."""
        if isinstance(X, Gram):
            return X
        if _blocks.kind(X) == "objects":
            raise TypeError("A precomputed kernel is a matrix of numbers; got a sequence of objects.")
        return Gram(X.toarray() if sp.issparse(X) else X)


class FromCallable(Kernel):
    """A kernel given by a function.

    Parameters
    ----------
    func : callable
        ``func(X, Y)`` returns the matrix between two sets of samples; with `pairs`, ``func(x, z)`` returns one number.
    pairs : bool, default=False
        Whether the function takes two samples instead of two sets. Then it must be symmetric: each pair is asked once.

    Examples
    --------
    >>> from consilience.kernels import FromCallable
    >>> FromCallable(lambda s, t: float(s[0] == t[0]), pairs=True)(["anna", "otto", "anton"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    def __init__(self, func: Callable[[Any, Any], Any], pairs: bool = False):
        self.func = func
        self.pairs = pairs

    @property
    def may_be_indefinite(self) -> bool:
        """Whether the values need not be those of a positive semi-definite kernel: yes."""
        return True

    def _gram(self, X: Block, Y: Block) -> Array:
        if not self.pairs:
            matrix = self.func(X, X if Y is None else Y)
            shape = (X.shape[0], (X if Y is None else Y).shape[0])
            if np.shape(matrix) != shape:
                raise ValueError(
                    f"{self!r}: the function must return a matrix of shape {shape}; got {np.shape(matrix)}."
                )
            return (
                matrix + 0.0 if is_device_array(matrix) else np.array(matrix, dtype=np.result_type(matrix, np.float32))
            )
        if Y is not None:
            return np.array([[self.func(x, z) for z in Y] for x in X], dtype=np.float64).reshape(X.shape[0], Y.shape[0])
        matrix = np.empty((X.shape[0], X.shape[0]))
        for i in range(X.shape[0]):
            for j in range(i + 1):
                matrix[i, j] = matrix[j, i] = self.func(X[i], X[j])
        return matrix

    def _diagonal(self, X: Block) -> Array:
        return np.array([self.func(x, x) for x in X], dtype=np.float64) if self.pairs else super()._diagonal(X)


# -- small tools
def _row_sums(X: Block) -> Array:
    return namespace(X).sum(X, axis=1) if is_device_array(X) else np.asarray(X.sum(axis=1)).ravel()


def _at_least_zero(distances: Array, symmetric: bool) -> Array:
    """Distances without what rounding made of zeros, in place where that can be."""
    if is_device_array(distances):
        return namespace(distances).clip(distances, 0.0, None)
    np.maximum(distances, 0, out=distances)
    if symmetric:
        np.fill_diagonal(distances, 0)
    return distances


def _rounded(values: Array, kind: Any) -> Array:
    """The values in the precision that the data had; None: as they are."""
    return values if kind is None else namespace(values).astype(values, kind, copy=False)


def _sample_for_distances(X: Block, most: int = 2000) -> Block:
    """At most `most` rows, evenly spaced: the median of distances needs no more, and the choice is not random."""
    n = X.shape[0]
    return X if n <= most else _blocks.take(X, np.linspace(0, n - 1, most).astype(int))


NAMED = {
    "linear": Linear,
    "polynomial": Polynomial,
    "rbf": RBF,
    "laplacian": Laplacian,
    "chi2": ChiSquared,
    "additive_chi2": AdditiveChiSquared,
    "intersection": Intersection,
    "precomputed": Precomputed,
}


def as_kernel(kernel: Any) -> Kernel:
    """Read a kernel: one of our own, a name, or a function of two sets of samples.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The name is one of ``"linear"``, ``"polynomial"``, ``"rbf"``, ``"laplacian"``, ``"chi2"``, ``"additive_chi2"``,
        ``"intersection"``, ``"precomputed"``.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
    >>> from consilience.kernels import as_kernel
    >>> as_kernel("rbf")
    RBF(gamma='scale')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in NAMED:
        return NAMED[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return FromCallable(kernel)
    raise ValueError(
        f"A kernel is an object of consilience.kernels such as RBF(gamma=0.5), a function, or one of the names "
        f"{_blocks.quoted(NAMED)}; got {kernel!r}."
    )

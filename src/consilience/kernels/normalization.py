"""Normalize and center kernels and Gram matrices; evaluate kernels on standardized columns."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._backend import cast, is_device_array, like, namespace, to_numpy
from ..views._blocks import Block, Gram, take
from .base import Array, Kernel, check_numeric, read
from .given import Precomputed
from .gram import center_gram, normalize_gram

__all__ = ["center", "normalize", "standardize"]


class Normalized(Kernel):
    """A kernel divided by the norms, k(x, z) / sqrt(k(x, x) k(z, z)), as in ``normalize(k)``; 0 if a norm is 0.

    Parameters
    ----------
    kernel : Kernel
        Kernel.

    Examples
    --------
    >>> from consilience.kernels import Linear, normalize
    >>> normalize(Linear())([[1.0, 0.0], [1.0, 1.0]]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    @property
    def keeps_gram(self) -> bool:
        """Whether evaluation needs the Gram matrix of the training samples: yes, for their norms."""
        return self.kernel.reads_gram

    def _gram(self, X: Block, Y: Block) -> Array:
        if Y is not None and self.kernel.reads_gram and not isinstance(X, Gram):
            raise ValueError(
                f"{self!r} needs k(x, x) of each new sample, which a block of new samples by training samples does not "
                "contain. Build Views(..., precomputed=...) from the square Gram matrix of all samples and select rows."
            )
        matrix = self.kernel._gram(X, Y)
        left = self._inverse_norms(X)
        right = left if Y is None else self._inverse_norms(Y)
        matrix *= left[:, None]
        matrix *= right[None, :]
        return matrix

    def _inverse_norms(self, X: Block) -> Array:
        """Return 1 / sqrt(k(x, x)), and 0 where k(x, x) is 0."""
        diagonal = self.kernel._diagonal(X)
        xp = namespace(diagonal)
        positive = diagonal > 0
        return xp.where(
            positive, 1.0 / xp.sqrt(xp.where(positive, diagonal, xp.ones_like(diagonal))), xp.zeros_like(diagonal)
        )

    def _diagonal(self, X: Block) -> Array:
        diagonal = self.kernel._diagonal(X)
        xp = namespace(diagonal)
        return xp.astype(diagonal > 0, diagonal.dtype)  # 1, or 0 for samples of norm 0

    def _expression(self) -> str:
        return f"normalize({self.kernel!r})"


class Centered(Kernel):
    """A kernel centered at the mean of the reference samples in feature space, as in ``center(k)``.

    k(x, z) - mean_r k(x, r) - mean_r k(r, z) + mean_rs k(r, s), with means over reference samples r and s. These are
    the samples given to `resolved`, or else the second argument of the call.

    Parameters
    ----------
    kernel : Kernel
        Kernel.
    reference : array, sparse matrix or objects, optional
        Reference samples. `resolved` sets and keeps them.
    grand_mean : float, optional
        Mean of k(r, s) over all pairs of reference samples. `resolved` sets it.

    Examples
    --------
    >>> from consilience.kernels import Linear, center
    >>> center(Linear())([[0.0], [2.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    def __init__(self, kernel: Kernel, reference: Any = None, grand_mean: float | None = None):
        self.kernel = kernel
        self.reference = reference
        self.grand_mean = grand_mean

    @property
    def keeps_gram(self) -> bool:
        """Whether evaluation needs the Gram matrix of the training samples: yes, for their means."""
        return self.kernel.reads_gram

    def _unresolved(self) -> bool:
        return self.grand_mean is None or super()._unresolved()

    def set_params(self, **params: Any) -> "Centered":
        """Set parameters; a new kernel or reference resets the mean.

        Parameters
        ----------
        **params : dict
            Name -> value.

        Returns
        -------
        self
            Kernel.
        """
        super().set_params(**params)
        if "grand_mean" not in params and any(key.partition("__")[0] in ("kernel", "reference") for key in params):
            self.grand_mean = None
        return self

    def _resolved(self, X: Block) -> "Kernel":
        """Return the kernel centered at the mean of X, unless it has a reference of its own."""
        if not self._unresolved():
            return clone(self)
        reference = X if self.reference is None else read(self.reference)
        if self.kernel.reads_gram:
            reference = Precomputed.as_gram(reference)
        kernel = self.kernel._resolved(reference)
        # by blocks of 512 rows, so that the matrix of all reference samples is never stored
        blocks = np.array_split(np.arange(reference.shape[0]), -(-reference.shape[0] // 512) or 1)
        parts = (kernel._gram(take(reference, rows), reference) for rows in blocks)
        sums = [float(namespace(K).sum(K)) for K in parts]
        return Centered(kernel, reference, sum(sums) / max(reference.shape[0], 1) ** 2)

    def _gram(self, X: Block, Y: Block) -> Array:
        matrix = self.kernel._gram(X, Y)
        # the matrix has the means already
        left = namespace(matrix).mean(matrix, axis=1) if Y is None and X is self.reference else self._means(X)
        right = left if Y is None else self._means(Y)
        matrix -= left[:, None]
        matrix -= right[None, :]
        matrix += self.grand_mean
        return matrix

    def _means(self, X: Block) -> Array:
        """Return mean_r k(x, r) of each sample."""
        block = self.kernel._gram(X, self.reference)
        return namespace(block).mean(block, axis=1)

    def _diagonal(self, X: Block) -> Array:
        return self.kernel._diagonal(X) - 2 * self._means(X) + self.grand_mean

    def _expression(self) -> str:
        return f"center({self.kernel!r})"


class Standardized(Kernel):
    """A kernel of standardized columns, k((x - μ) / σ, (z - μ) / σ), as in ``standardize(k)``.

    μ and σ are the means and standard deviations of the columns of the reference samples: those given to `resolved`, or
    else the second argument of the call. Values farther than σ outside the range of the reference samples are moved to
    that border, and columns that are constant there count as 0. So a column that is rarely not 0 cannot decide about a
    new sample alone. Sparse data stay sparse: they are divided by σ and not shifted.

    Parameters
    ----------
    kernel : Kernel
        Kernel.
    shift : array of shape (n_columns,), optional
        Means μ; 0 for sparse data. `resolved` sets them.
    scale : array of shape (n_columns,), optional
        Standard deviations σ, infinite for constant columns. `resolved` sets them.
    limits : array of shape (2, n_columns), optional
        Smallest and largest values. `resolved` sets them.

    Examples
    --------
    >>> from consilience.kernels import Linear, standardize
    >>> standardize(Linear())([[0.0, 5.0], [8.0, 5.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    def __init__(self, kernel: Kernel, shift: Any = None, scale: Any = None, limits: Any = None):
        self.kernel = kernel
        self.shift = shift
        self.scale = scale
        self.limits = limits

    @property
    def _bounded(self) -> bool:  # type: ignore[override]
        return self.kernel._bounded

    def _unresolved(self) -> bool:
        return self.scale is None or super()._unresolved()

    def _resolved(self, X: Block) -> "Kernel":
        check_numeric(self, X, None)
        known = (self.shift, self.scale, self.limits) if self.scale is not None else column_scales(X)
        inside = Standardized(self.kernel, *known)._standardized(X)
        return Standardized(self.kernel._resolved(inside), *known)

    def _standardized(self, X: Block) -> Block:
        check_numeric(self, X, None)
        if X.shape[1] != len(self.scale):
            raise ValueError(f"{self!r} was resolved on {len(self.scale)} columns; got samples with {X.shape[1]}.")
        if sp.issparse(X) and not np.any(self.shift):
            low, high = self.limits[:, X.indices]
            values = np.clip(X.data, low, high) / self.scale[X.indices]
            return sp.csr_array((values.astype(X.dtype, copy=False), X.indices, X.indptr), shape=X.shape)
        X = X.toarray() if sp.issparse(X) else X  # resolved on dense data
        known = (self.shift, self.scale, *self.limits)
        xp = namespace(X)
        if is_device_array(X):
            shift, scale, low, high = (like(np.asarray(each), X) for each in known)
        else:
            shift, scale, low, high = (np.asarray(each, dtype=X.dtype) for each in known)
        return (xp.minimum(xp.maximum(X, low), high) - shift) / scale

    def _gram(self, X: Block, Y: Block) -> Array:
        return self.kernel._gram(self._standardized(X), None if Y is None else self._standardized(Y))

    def _diagonal(self, X: Block) -> Array:
        return self.kernel._diagonal(self._standardized(X))

    def _expression(self) -> str:
        return f"standardize({self.kernel!r})"


def column_scales(X: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what to subtract from the columns (0 if they are sparse), their standard deviations, and their limits."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        second = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        scale, shift = np.sqrt(np.maximum(second - mean**2, 0.0)), np.zeros(X.shape[1])
        low, high = (np.asarray(end.toarray()).ravel() for end in (X.min(axis=0), X.max(axis=0)))
        rounding = 1e-7 * np.sqrt(second)  # a difference of two large numbers
    else:
        xp, values = namespace(X), cast(X, "float64") if is_device_array(X) else X
        kind = {} if is_device_array(X) else {"dtype": np.float64}
        mean = shift = to_numpy(xp.mean(values, axis=0, **kind))
        scale = to_numpy(xp.std(values, axis=0, **kind))
        low, high = to_numpy(xp.min(X, axis=0)), to_numpy(xp.max(X, axis=0))
        rounding = 16 * np.finfo(low.dtype).eps * np.abs(mean)
    scale = np.where(scale > rounding, scale, np.inf)
    reach = np.where(np.isfinite(scale), scale, 0.0)
    return shift, scale, np.stack([low - reach, high + reach])


def normalize(kernel: Any) -> Any:
    """Normalize a kernel or a Gram matrix, so that its diagonal is 1.

    Parameters
    ----------
    kernel : Kernel or array of shape (n_samples, n_samples)
        Kernel or Gram matrix.

    Returns
    -------
    Kernel or array
        k(x, z) / sqrt(k(x, x) k(z, z)).

    Examples
    --------
    >>> from consilience.kernels import Linear, normalize
    >>> normalize(Linear() ** 2)
    normalize(Linear() ** 2)
    """
    return Normalized(kernel) if isinstance(kernel, Kernel) else normalize_gram(kernel)


def center(kernel: Any) -> Any:
    """Center a kernel or a Gram matrix in feature space.

    Parameters
    ----------
    kernel : Kernel or array of shape (n_samples, n_samples)
        Kernel or Gram matrix.

    Returns
    -------
    Kernel or array
        Kernel of φ(x) minus the mean of φ over the reference samples.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import center
    >>> center(np.array([[0.0, 0.0], [0.0, 4.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return Centered(kernel) if isinstance(kernel, Kernel) else center_gram(kernel)


def standardize(kernel: Kernel) -> Kernel:
    """Evaluate a kernel on standardized columns: each with mean 0 and standard deviation 1 among the training samples.

    Values of new samples are limited to one standard deviation outside the range of the training samples.

    Parameters
    ----------
    kernel : Kernel
        Kernel of numeric data.

    Returns
    -------
    Kernel
        k((x - μ) / σ, (z - μ) / σ).

    Examples
    --------
    >>> from consilience.kernels import RBF, standardize
    >>> standardize(RBF(0.5))([[0.0, 5.0], [8.0, 5.0]]).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """
    return Standardized(kernel)

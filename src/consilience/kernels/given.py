"""Kernels that the user gives: as a matrix, as a function, or by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import cast, check_memory, in_single, is_device_array, like, namespace, spread_rows
from ..solvers.linalg import without_rounding
from ..views import _blocks
from ..views._blocks import Block, Gram
from ..views.container import Views
from . import histogram, scalar, structured
from .base import Array, Kernel

__all__ = ["FromCallable", "Precomputed", "as_kernel"]


class Precomputed(Kernel):
    """The kernel whose matrix is the data.

    For rows of a shared Gram matrix (``Views(..., precomputed=...)``), k(x, z) is a look-up. For plain arrays it is
    as in scikit-learn: a square matrix at fit, and test-by-train blocks later. Short name: ``"precomputed"``.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import Precomputed
    >>> Precomputed()(np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """

    _name = "precomputed"

    @property
    def reads_gram(self) -> bool:
        """Whether the kernel takes Gram matrices as data: yes."""
        return True

    @property
    def may_be_indefinite(self) -> bool:
        """Whether the user supplies the values, so that the kernel may not be positive semi-definite: yes."""
        return True

    def _gram(self, X: Block, Y: Block) -> Array:
        if Y is not None:
            reference = self.as_gram(Y)
            if isinstance(X, Gram):
                return X.block(reference)  # positions of X and of the reference in one shared matrix
            # test-by-train blocks: the columns of the training samples kept
            block = reference.columns_of(X.toarray() if sp.issparse(X) else X)
            _blocks.check_finite("The block", block, np.ones(len(block), dtype=bool))
            return block
        if not isinstance(X, Gram) and X.shape[0] != X.shape[-1]:
            raise ValueError(
                f"A precomputed kernel must be square at fit; got {X.shape[0]} x {X.shape[1]}. To split samples by "
                "rows, build Views(..., precomputed=...) from the square Gram matrix of all samples first."
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
            raise TypeError("A precomputed kernel must be a numeric matrix; got a sequence of objects.")
        return Gram(X.toarray() if sp.issparse(X) else X)


class FromCallable(Kernel):
    """A kernel given by a function.

    Parameters
    ----------
    func : callable
        ``func(X, Y)`` returns the matrix between two sets of samples. With `pairs`, ``func(x, z)`` returns the value
        for two samples.
    pairs : bool, default=False
        Whether the function takes two samples instead of two sets. The function must then be symmetric, since each
        pair is evaluated once.

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
        """Whether the user supplies the values, so that the kernel may not be positive semi-definite: yes."""
        return True

    def _gram(self, X: Block, Y: Block) -> Array:
        if not self.pairs:
            matrix = self.func(X, X if Y is None else Y)
            shape = (X.shape[0], (X if Y is None else Y).shape[0])
            if np.shape(matrix) != shape:
                raise ValueError(
                    f"{self!r}: the function must return a matrix of shape {shape}; got shape {np.shape(matrix)}."
                )
            # a copy: callers change the matrix in place, and the function may keep its own
            return (
                matrix + 0.0 if is_device_array(matrix) else np.array(matrix, dtype=np.result_type(matrix, np.float32))
            )
        if Y is not None:
            return np.array([[self.func(x, z) for z in Y] for x in X], dtype=np.float64).reshape(X.shape[0], Y.shape[0])
        matrix = np.empty((X.shape[0], X.shape[0]))
        for i in range(X.shape[0]):
            for j in range(i + 1):  # each pair once
                matrix[i, j] = matrix[j, i] = self.func(X[i], X[j])
        return matrix

    def _diagonal(self, X: Block) -> Array:
        return np.array([self.func(x, x) for x in X], dtype=np.float64) if self.pairs else super()._diagonal(X)


def definite_grams(X: Views) -> Views:
    """Return training samples whose Gram matrices in single precision are positive semi-definite in double precision.

    Rounding gives a matrix of low rank, such as that of a linear kernel, small negative eigenvalues. They are removed
    between the samples given, by a matrix of lower rank in double precision; other matrices stay as they are.
    """
    mended = {}
    for name in X.names:
        block = X.block(name)
        rows = np.flatnonzero(X.present(name))
        if not isinstance(block, Gram) or not _blocks.is_single(block) or not len(rows):
            continue
        check_memory(
            16 * len(rows) ** 2,
            f"View '{name}': the check of its Gram matrix of {len(rows):,} samples in single precision",
            "Give fewer samples.",
        )
        K = block[rows].block(block[rows])
        xp = namespace(K)
        K = K if K.shape[0] != K.shape[1] or not bool(xp.all(xp.isfinite(K))) else without_rounding(K)
        if not in_single(K):
            values = _with_part(block.values, K, block.index[rows])
            mended[name] = block._like(values, block.index, block.order, block.n_order)
    return X._with({name: mended.get(name, X.block(name)) for name in X.names}, X.mask) if mended else X


def _with_part(values: Array, K: Array, rows: np.ndarray) -> Array:
    """Return a copy of a matrix in double precision, with K between some rows."""
    if not is_device_array(values):
        values = np.array(values, dtype=np.float64)
        values[np.ix_(rows, rows)] = K
        return values
    n = values.shape[0]
    wide = spread_rows(spread_rows(K, rows, n).T, rows, n)  # symmetric
    there = np.isin(np.arange(n), rows)
    return namespace(K).where(like(there[:, None] & there[None, :], K), wide, cast(values, "float64"))


def _by_name() -> dict[str, type[Kernel]]:
    """Return the kernels that have a short name; each class states its own."""
    modules = (scalar, histogram, structured)
    kernels = [*(getattr(module, name) for module in modules for name in module.__all__), Precomputed]
    return {kernel._name: kernel for kernel in kernels if kernel._name is not None}


NAMED = _by_name()


def as_kernel(kernel: Any) -> Kernel:
    """Return a kernel for a Kernel, a name, or a function of two sets of samples.

    Parameters
    ----------
    kernel : Kernel, str or callable
        Kernel, function of two sets of samples, or short name of a kernel such as ``"rbf"``. The docstrings of the
        kernels state their short names.

    Returns
    -------
    Kernel
        Kernel; a name gives default parameters.

    Examples
    --------
    >>> from consilience.kernels import as_kernel
    >>> as_kernel("rbf")
    RBF(gamma='scale')
    >>> as_kernel("spectrum")  # of strings or lists of tokens
    Spectrum(length=3)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in NAMED:
        return NAMED[kernel]()
    # a class such as RBF is callable too, but lacks its parameters
    if callable(kernel) and not isinstance(kernel, type):
        return FromCallable(kernel)
    raise ValueError(
        f"A kernel must be an object of consilience.kernels such as RBF(gamma=0.5), a function, or one of the names "
        f"{_blocks.quoted(NAMED)}; got {kernel!r}."
    )

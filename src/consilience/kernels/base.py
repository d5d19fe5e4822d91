"""The class `Kernel`, and the reading and validation that all kernels share."""

import inspect
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._backend import check_memory, check_same_library, is_device_array, namespace, to_numpy
from ..views import _blocks, _frames, _reading
from ..views._blocks import Block, Gram

Array = Any  # an array of NumPy, PyTorch or CuPy

_CHECKED = 1 << 22  # kernel values; matrices with more are compared with the memory available


class Kernel(BaseEstimator, ABC):
    """A positive semi-definite similarity k(x, z) between samples of one view.

    Subclasses define `_gram` and may define `_diagonal`. `_gram` takes two blocks, where None for the second means the
    first again, and returns a new array that its caller may change.
    """

    __array_ufunc__ = None  # so that NumPy scalars leave `scalar * kernel` to the kernel
    _name: str | None = None  # the short name by which estimators accept the kernel
    _bounded = False  # whether all values are between 0 and 1, so that they cannot overflow
    _precedence = 4  # of the expression: 1 for a sum, 2 a product, 3 a power, 4 a name or a call

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Evaluate the kernel between all samples of X and all samples of Y.

        Parameters
        ----------
        X, Y : array, sparse matrix, sequence of strings or trees, or Gram
            One view's data. Y defaults to X; parameters that depend on data, such as ``gamma="scale"``, are computed
            on Y.

        Returns
        -------
        array of shape (n_samples_X, n_samples_Y)
            Matrix of k(x, z).
        """
        Y = None if Y is None else read(Y)
        X = read(X, finite=not (self.reads_gram and isinstance(Y, Gram)))  # unused columns of a Gram may hold NaN
        kernel = self._resolved(X if Y is None else Y) if self._unresolved() else self
        return kernel._finite_gram(X, Y)

    def diag(self, X: Any) -> Array:
        """Evaluate k(x, x) for every sample, without forming the matrix.

        Parameters
        ----------
        X : array, sparse matrix, sequence of strings or trees, or Gram
            One view's data.

        Returns
        -------
        array of shape (n_samples,)
            Diagonal of ``k(X)``.
        """
        X = read(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return (self._resolved(X) if self._unresolved() else self)._diagonal(X)

    def resolved(self, X: Any) -> "Kernel":
        """Return a copy in which every parameter that depends on data is computed from X.

        Parameters
        ----------
        X : array, sparse matrix, sequence of strings or trees, or Gram
            Reference samples, usually the training samples of the view.

        Returns
        -------
        Kernel
            Kernel with numbers for parameters; the original is not changed.
        """
        return self._resolved(read(X))

    def _resolved(self, X: Block) -> "Kernel":
        """Resolve on a validated block: a copy whose kernels are resolved."""
        own = self.get_params(deep=False).items()  # kernels made of kernels resolve their parts
        return clone(self).set_params(**{name: part._resolved(X) for name, part in own if isinstance(part, Kernel)})

    @property
    def reads_gram(self) -> bool:
        """Whether the kernel takes Gram matrices as data."""
        return any(child.reads_gram for child in self._children())

    @property
    def keeps_gram(self) -> bool:
        """Whether evaluation against training samples needs their own Gram matrix, not only their positions."""
        return any(child.keeps_gram for child in self._children())

    @property
    def may_be_indefinite(self) -> bool:
        """Whether the user supplies the values, so that the kernel may not be positive semi-definite."""
        return any(child.may_be_indefinite for child in self._children())

    def _children(self) -> list["Kernel"]:
        """Return the kernels among the parameters."""
        return [value for value in vars(self).values() if isinstance(value, Kernel)]

    def _unresolved(self) -> bool:
        """Tell whether a parameter is still to be computed from data."""
        return any(child._unresolved() for child in self._children())

    @abstractmethod
    def _gram(self, X: Block, Y: Block) -> Array:
        """Return a new matrix of k(x, z); Y = None stands for X."""

    def _finite_gram(self, X: Block, Y: Block) -> Array:
        """Evaluate the kernel between blocks; raise for values that overflow."""
        if Y is not None:
            check_same_library(X, Y)
        n, n_other = X.shape[0], (X if Y is None else Y).shape[0]
        if n * n_other > _CHECKED and not is_device_array(X):
            self._check_memory(n, n_other, 4 if _blocks.is_single(X) else 8)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self._gram(X, Y)
        if not self._bounded:
            check_overflow(repr(self), K)
        return K

    def _check_memory(self, n: int, n_other: int, each: int) -> None:
        """Raise MemoryError for a matrix that does not fit into memory; `each` value takes so many bytes."""
        check_memory(
            float(each) * self._n_matrices() * n * n_other,
            f"{self!r} between {n:,} and {n_other:,} samples",
            "Evaluate it between blocks of rows, kernel(X[rows], Y), or use `Nystroem` features.",
        )

    def _n_matrices(self) -> int:
        """Return how many matrices are held while kernels of kernels are combined: a result and the next part."""
        parts = [child._n_matrices() for child in self._children()]
        return max([1, *(own + (place > 0) for place, own in enumerate(parts))])

    def _against(self, Y: Block, dtype: Any) -> Callable[[Block, np.ndarray], np.ndarray]:
        """Return a function (X, out) that writes k(X, Y) to `out`, for many X and one Y; the kernel is resolved."""

        def fill(X: Block, out: np.ndarray) -> np.ndarray:
            np.copyto(out, to_numpy(self._finite_gram(X, Y)), casting="same_kind")
            return out

        return fill

    def _diagonal(self, X: Block) -> Array:
        """Return k(x, x) of each sample."""
        # n values instead of an n x n matrix
        one_by_one = [self._gram(_blocks.take(X, np.array([i])), None)[0] for i in range(X.shape[0])]
        return namespace(*one_by_one[:1]).concat(one_by_one)

    # -- algebra
    def __add__(self, other: Any) -> "Kernel":
        from . import algebra

        return algebra.Sum(self, other if isinstance(other, Kernel) else algebra.Constant(other))

    def __radd__(self, other: Any) -> "Kernel":
        from . import algebra

        return algebra.Sum(algebra.Constant(other), self)

    def __mul__(self, other: Any) -> "Kernel":
        from . import algebra

        return algebra.Product(self, other) if isinstance(other, Kernel) else algebra.Scaled(self, other)

    def __rmul__(self, other: Any) -> "Kernel":
        from . import algebra

        return algebra.Scaled(self, other)

    def __pow__(self, degree: int) -> "Kernel":
        from . import algebra

        return algebra.Power(self, degree)

    def on(self, columns: slice | Sequence[int]) -> "Kernel":
        """Return the kernel on a subset of the columns.

        Parameters
        ----------
        columns : slice or list of int
            Columns.

        Returns
        -------
        Kernel
            k(x[columns], z[columns]).
        """
        from . import algebra

        return algebra.OnColumns(self, columns)

    def mapped(self, func: Callable[[Any], Any]) -> "Kernel":
        """Return the kernel of mapped data.

        Parameters
        ----------
        func : callable
            Map φ. It takes one view's data and returns data with the same rows.

        Returns
        -------
        Kernel
            k(φ(x), φ(z)). For a function f to one column, ``Linear().mapped(f)`` is f(x)f(z), so
            ``k * Linear().mapped(f)`` is f(x) k(x, z) f(z).
        """
        from . import algebra

        return algebra.Mapped(self, func)

    # -- display
    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return self._expression()

    def _expression(self) -> str:
        """Return the Python expression that makes the kernel."""
        inside = ", ".join(f"{name}={value_text(getattr(self, name))}" for name in _parameters(type(self)))
        return f"{type(self).__name__}({inside})"

    def _within(self, precedence: int) -> str:
        """Return the expression, in parentheses if it binds less than the operator around it."""
        return f"({self!r})" if self._precedence < precedence else repr(self)


def read(X: Any, *, finite: bool = True) -> Block:
    """Read one view's data as a block; raise if a sample is missing or, with `finite`, a value is not finite."""
    if isinstance(X, Gram):
        return X
    if _frames.is_frame(X):
        X = _frames.read_frame("X", X).block
    block = _reading.read_block("X", X)
    if block.dtype == object and any(x is None for x in block):
        raise ValueError("A kernel cannot evaluate missing samples; X contains None. Select the present rows first.")
    if finite:
        _blocks.check_finite("X", block, np.ones(block.shape[0], dtype=bool))
    return block


def value_text(value: Any) -> str:
    """Return a parameter as it is written in an expression."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, (float, np.floating)):
        return repr(float(value)) if float(value).is_integer() else f"{float(value):.6g}"
    return getattr(value, "__name__", None) or repr(value)


def check_numeric(kernel: Kernel, X: Block, Y: Block) -> None:
    """Raise if data are not numeric, or if X and Y have different numbers of columns."""
    for block in (X, Y):
        if block is not None and _blocks.kind(block) not in ("dense", "sparse"):
            raise TypeError(
                f"{kernel!r} takes numeric data (dense or sparse); got {_blocks.kind(block)}. For strings use Spectrum "
                "or Subsequence, for trees SubsetTree, for Gram matrices Precomputed."
            )
    if Y is not None and X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"{kernel!r} got samples with {X.shape[1]} and with {Y.shape[1]} columns. Give the same columns for both."
        )


def check_overflow(what: str, K: Array) -> None:
    """Raise if kernel values are not finite; `what` names the kernel in the message."""
    xp = namespace(K)
    with np.errstate(over="ignore", invalid="ignore"):  # a finite sum proves all values finite, in one pass
        # a sum may overflow although its terms are finite
        if bool(xp.isfinite(xp.sum(K))) or bool(xp.all(xp.isfinite(K))):
            return
    raise ValueError(
        f"{what} has values between these samples that are NaN or too large for floating point. Scale the data, or use "
        "a bounded kernel such as RBF() or normalize(kernel)."
    )


def check_nonnegative(kernel: Kernel, *blocks: Block) -> None:
    """Raise for negative values."""
    for block in blocks:
        if block is None or block.shape[0] == 0:
            continue
        smallest = float(namespace(block).min(block) if is_device_array(block) else block.min())
        if smallest < 0:
            raise ValueError(
                f"{kernel!r} needs nonnegative data such as histograms; the smallest value is {smallest:.3g}. Shift "
                "the data, or use another kernel."
            )


def _parameters(kernel: type) -> list[str]:
    """Return the names of a kernel's parameters in the order of `__init__`."""
    return [name for name in inspect.signature(kernel).parameters if name not in ("args", "kwargs")]


def full(X: Block, shape: tuple[int, ...], value: float) -> Array:
    """Return an array of one value with the library, device and precision of the kernel of X."""
    if is_device_array(X):
        return namespace(X).full(shape, value, dtype=X.dtype, device=X.device)
    return np.full(shape, value, dtype=precision(X))


def integer_power(values: Array, degree: int) -> Array:
    """Return an elementwise power by repeated squaring: many times faster than `**`, and exact for degree 1."""
    result = None
    while degree:
        if degree % 2:
            result = values if result is None else result * values  # a binary digit of the degree
        degree //= 2
        values = values * values if degree else values
    return result


def precision(X: Block) -> Any:
    """Return the type of a kernel's values: float32 for float32 data, else float64."""
    return np.float32 if not isinstance(X, Gram) and X.dtype == np.float32 else np.float64


def to_precision(values: Array, dtype: Any) -> Array:
    """Return values in a type; None leaves them as they are."""
    return values if dtype is None else namespace(values).astype(values, dtype, copy=False)


def check_degree(kernel: Kernel, degree: Any) -> None:
    """Raise for degrees whose power is not positive semi-definite."""
    if not isinstance(degree, numbers.Integral) or degree < 1:
        raise ValueError(
            f"{kernel!r}: `degree` must be an integer of at least 1, so that the kernel is positive semi-definite."
        )

"""What a kernel is; and the reading and checking that all kernels share."""

import inspect
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._backend import is_device_array, namespace, to_numpy
from ..views import _blocks, _reading
from ..views._blocks import Block, Gram

Array = Any  # an array of NumPy, PyTorch or CuPy


class Kernel(BaseEstimator, ABC):
    """A positive semi-definite similarity k(x, z) of samples of one view.

    Subclasses define `_gram` (both arguments given as blocks, the second None for the first again), which returns a
    new array that its caller may change, and `_diagonal`.
    """

    __array_ufunc__ = None  # 0.5 * k with a NumPy scalar asks the kernel, not NumPy
    _bounded = False  # whether values are from 0 to 1 whatever the data, so that they cannot overflow
    _precedence = 4  # of the expression: 1 a sum, 2 a product, 3 a power, 4 a name or a call

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Evaluate the kernel between all samples of X and all of Y (X again by default).

        Parameters
        ----------
        X, Y : array, sparse matrix, sequence of strings or trees, or Gram
            One view's data; the second is the reference where parameters are taken from data.

        Returns
        -------
        array of shape (n_samples_X, n_samples_Y)
            The matrix of k(x, z).
        """
        Y = None if Y is None else read(Y)
        X = read(X, finite=not (self.reads_gram and isinstance(Y, Gram)))  # of a block only some columns may count
        kernel = self.resolved(X if Y is None else Y) if self._unresolved() else self
        return kernel._finite_gram(X, Y)

    def diag(self, X: Any) -> Array:
        """Evaluate k(x, x) for every sample, without the matrix.

        Parameters
        ----------
        X : array, sparse matrix, sequence of strings or trees, or Gram
            One view's data.

        Returns
        -------
        array of shape (n_samples,)
            The diagonal of ``k(X)``.
        """
        X = read(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return (self.resolved(X) if self._unresolved() else self)._diagonal(X)

    def resolved(self, X: Any) -> "Kernel":
        """Return the kernel with every parameter that depends on data worked out on X.

        Parameters
        ----------
        X : array, sparse matrix, sequence of strings or trees, or Gram
            The reference, usually the training samples of the view.

        Returns
        -------
        Kernel
            A kernel with numbers for parameters; the original is not changed.
        """
        return clone(self)

    @property
    def reads_gram(self) -> bool:
        """Whether the data are a Gram matrix."""
        return any(child.reads_gram for child in self._children())

    @property
    def keeps_gram(self) -> bool:
        """Whether evaluating against training samples needs their own Gram matrix, not only their positions."""
        return any(child.keeps_gram for child in self._children())

    @property
    def may_be_indefinite(self) -> bool:
        """Whether the values come from outside, so that they need not be those of a positive semi-definite kernel."""
        return any(child.may_be_indefinite for child in self._children())

    def _children(self) -> list["Kernel"]:
        return [value for value in self.get_params(deep=False).values() if isinstance(value, Kernel)]

    def _unresolved(self) -> bool:
        return any(child._unresolved() for child in self._children())

    @abstractmethod
    def _gram(self, X: Block, Y: Block) -> Array: ...

    def _finite_gram(self, X: Block, Y: Block) -> Array:
        """Evaluate the kernel between blocks, and refuse values that overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            K = self._gram(X, Y)
        if not self._bounded:
            check_overflow(repr(self), K)
        return K

    def _against(self, Y: Block, dtype: Any) -> Callable[[Block, np.ndarray], np.ndarray]:
        """A function (X, out) that fills `out` with k(X, Y), for many X against one Y; its parameters are numbers."""

        def fill(X: Block, out: np.ndarray) -> np.ndarray:
            np.copyto(out, to_numpy(self._finite_gram(X, Y)), casting="same_kind")
            return out

        return fill

    def _diagonal(self, X: Block) -> Array:
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
        """Return the kernel on a block of the columns.

        Parameters
        ----------
        columns : slice or list of int
            The columns.

        Returns
        -------
        Kernel
            k(x[columns], z[columns]).
        """
        from . import algebra

        return algebra.OnColumns(self, columns)

    def mapped(self, func: Callable[[Any], Any]) -> "Kernel":
        """Return the kernel behind a map of the data.

        Parameters
        ----------
        func : callable
            Takes one view's data and returns data with the same rows.

        Returns
        -------
        Kernel
            k(φ(x), φ(z)). With the linear kernel and a function to one column it is f(x)f(z), so that
            ``k * Linear().mapped(f)`` is f(x) k(x, z) f(z).
        """
        from . import algebra

        return algebra.Mapped(self, func)

    # -- showing
    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return self._expression()

    def _expression(self) -> str:
        inside = ", ".join(f"{name}={value_text(getattr(self, name))}" for name in _parameters(type(self)))
        return f"{type(self).__name__}({inside})"

    def _within(self, precedence: int) -> str:
        return f"({self!r})" if self._precedence < precedence else repr(self)


def read(X: Any, *, finite: bool = True) -> Block:
    """One view's data as kernels work on it; every sample must be there."""
    if isinstance(X, Gram):
        return X
    if _reading.is_frame(X):
        X, _ = _reading.read_frame("X", X)
    block = _reading.read_block("X", X)
    if block.dtype == object and any(x is None for x in block):
        raise ValueError("A kernel needs every sample it is given; row with None found. Take the present rows first.")
    if finite:
        _blocks.check_finite("X", block, np.ones(block.shape[0], dtype=bool))
    return block


def value_text(value: Any) -> str:
    """A parameter as it reads in an expression."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, (float, np.floating)):
        return repr(float(value)) if float(value).is_integer() else f"{float(value):.6g}"
    return getattr(value, "__name__", None) or repr(value)


def check_numeric(kernel: Kernel, X: Block, Y: Block) -> None:
    """Refuse data that are no vectors, and vectors of different lengths."""
    for block in (X, Y):
        if block is not None and _blocks.kind(block) not in ("dense", "sparse"):
            raise TypeError(
                f"{kernel!r} takes numbers (dense or sparse); got {_blocks.kind(block)}. For strings there are "
                "Spectrum and Subsequence, for trees SubsetTree, for Gram matrices Precomputed."
            )
    if Y is not None and X.shape[1] != Y.shape[1]:
        raise ValueError(f"{kernel!r} is evaluated between samples of {X.shape[1]} and of {Y.shape[1]} columns.")


def check_overflow(what: str, K: Array) -> None:
    """Refuse kernel values that are not finite; one sum tells where all are."""
    xp = namespace(K)
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(K))) or bool(xp.all(xp.isfinite(K))):
            return
    raise ValueError(
        f"{what} has values that are NaN or too large for floating point between these samples. Scale the data, or use "
        "a bounded kernel such as RBF() or normalize(kernel)."
    )


def check_nonnegative(kernel: Kernel, *blocks: Block) -> None:
    """Refuse negative values."""
    for block in blocks:
        if block is None or block.shape[0] == 0:
            continue
        least = float(namespace(block).min(block) if is_device_array(block) else block.min())
        if least < 0:
            raise ValueError(f"{kernel!r} is for nonnegative data such as histograms; the least value is {least:.3g}.")


def _parameters(kernel: type) -> list[str]:
    return [name for name in inspect.signature(kernel).parameters if name not in ("args", "kwargs")]


def full(X: Block, shape: tuple[int, ...], value: float) -> Array:
    """An array of one value, of the library, device and precision that the kernel of X has."""
    if is_device_array(X):
        return namespace(X).full(shape, value, dtype=X.dtype, device=X.device)
    return np.full(shape, value, dtype=precision(X))


def integer_power(values: Array, degree: int) -> Array:
    """The power by repeated squaring: many times faster than the general one, and exact for degree 1."""
    result = None
    while degree:
        if degree % 2:
            result = values if result is None else result * values
        degree //= 2
        values = values * values if degree else values
    return result


def precision(X: Block) -> Any:
    """Return the type of the kernel's values: float32 where the data are, float64 else."""
    return np.float32 if not isinstance(X, Gram) and X.dtype == np.float32 else np.float64


def check_degree(kernel: Kernel, degree: Any) -> None:
    """Refuse powers that are no kernels."""
    if not isinstance(degree, numbers.Integral) or degree < 1:
        raise ValueError(
            f"{kernel!r}: the degree must be an integer of at least 1 for a positive semi-definite kernel."
        )

"""The algebra of kernels: sums, products, powers, exponentials and maps of kernels are kernels."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._backend import is_device_array, namespace
from ..views._blocks import Block
from .base import Array, Kernel, check_degree, check_numeric, full, integer_power, read, value_text

__all__ = ["exp"]


class _OfTwo(Kernel):
    """A kernel made of two kernels."""

    def __init__(self, k1: Kernel, k2: Kernel):
        self.k1 = k1
        self.k2 = k2


class _OfOne(Kernel):
    """A kernel made of one kernel."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel


def _nonnegative(value: Any, what: str) -> float:
    """Validate a number that keeps kernels positive semi-definite, and return it."""
    if not isinstance(value, numbers.Real) or not float(value) >= 0:
        raise ValueError(f"The {what} a kernel must be a number of at least 0; got {value!r}.")
    return float(value)


class Constant(Kernel):
    """The constant kernel k(x, z) = c, as in ``k + 0.1``.

    Parameters
    ----------
    value : float
        Constant c, at least 0.

    Examples
    --------
    >>> from consilience.kernels import Linear
    >>> Linear() + 0.5
    Linear() + 0.5
    """

    def __init__(self, value: float):
        self.value = value

    def _gram(self, X: Block, Y: Block) -> Array:
        return full(X, (X.shape[0], (X if Y is None else Y).shape[0]), _nonnegative(self.value, "constant added to"))

    def _diagonal(self, X: Block) -> Array:
        return full(X, (X.shape[0],), _nonnegative(self.value, "constant added to"))

    def _expression(self) -> str:
        return value_text(self.value)


class Sum(_OfTwo):
    """The sum of two kernels, as in ``k1 + k2``.

    Parameters
    ----------
    k1, k2 : Kernel
        Terms.

    Examples
    --------
    >>> from consilience.kernels import RBF, Linear
    >>> RBF(gamma=0.5) + Linear()
    RBF(gamma=0.5) + Linear()
    """

    _precedence = 1

    def _gram(self, X: Block, Y: Block) -> Array:
        total, other = self.k1._gram(X, Y), self.k2._gram(X, Y)
        if total.dtype != other.dtype:  # in place, single precision would round the sum
            return total + other
        total += other
        return total

    def _diagonal(self, X: Block) -> Array:
        return self.k1._diagonal(X) + self.k2._diagonal(X)

    def _expression(self) -> str:
        return f"{self.k1._within(1)} + {self.k2._within(2)}"  # a sum on the right keeps its parentheses


class Product(_OfTwo):
    """The elementwise product of two kernels, as in ``k1 * k2``.

    Parameters
    ----------
    k1, k2 : Kernel
        Factors.

    Examples
    --------
    >>> from consilience.kernels import RBF, Linear
    >>> (RBF(gamma=0.5) + 1.0) * Linear()
    (RBF(gamma=0.5) + 1.0) * Linear()
    """

    _precedence = 2

    def _gram(self, X: Block, Y: Block) -> Array:
        total, other = self.k1._gram(X, Y), self.k2._gram(X, Y)
        if total.dtype != other.dtype:  # in place, single precision would round the product
            return total * other
        total *= other
        return total

    def _diagonal(self, X: Block) -> Array:
        return self.k1._diagonal(X) * self.k2._diagonal(X)

    def _expression(self) -> str:
        return f"{self.k1._within(2)} * {self.k2._within(3)}"


class Scaled(Kernel):
    """A kernel times a number, as in ``0.5 * k``.

    Parameters
    ----------
    kernel : Kernel
        Kernel.
    scale : float
        Factor, at least 0.

    Examples
    --------
    >>> from consilience.kernels import Linear
    >>> 0.5 * Linear()
    0.5 * Linear()
    """

    _precedence = 2

    def __init__(self, kernel: Kernel, scale: float):
        self.kernel = kernel
        self.scale = scale

    def _gram(self, X: Block, Y: Block) -> Array:
        scale = _nonnegative(self.scale, "factor of")
        matrix = self.kernel._gram(X, Y)
        matrix *= scale
        return matrix

    def _diagonal(self, X: Block) -> Array:
        return _nonnegative(self.scale, "factor of") * self.kernel._diagonal(X)

    def _expression(self) -> str:
        return f"{value_text(self.scale)} * {self.kernel._within(3)}"


class Power(Kernel):
    """An integer power of a kernel, elementwise, as in ``k ** 2``.

    Parameters
    ----------
    kernel : Kernel
        Kernel.
    degree : int
        Degree, at least 1.

    Examples
    --------
    >>> from consilience.kernels import Linear
    >>> (Linear() + 1.0) ** 3
    (Linear() + 1.0) ** 3
    """

    _precedence = 3

    def __init__(self, kernel: Kernel, degree: int):
        self.kernel = kernel
        self.degree = degree

    def _gram(self, X: Block, Y: Block) -> Array:
        check_degree(self, self.degree)
        return integer_power(self.kernel._gram(X, Y), int(self.degree))

    def _diagonal(self, X: Block) -> Array:
        check_degree(self, self.degree)
        return integer_power(self.kernel._diagonal(X), int(self.degree))

    def _expression(self) -> str:
        return f"{self.kernel._within(4)} ** {self.degree}"


class Exponential(_OfOne):
    """The exponential of a kernel, elementwise, as in ``exp(k)``.

    Parameters
    ----------
    kernel : Kernel
        Kernel.

    Examples
    --------
    >>> from consilience.kernels import Linear, exp
    >>> exp(0.1 * Linear())
    exp(0.1 * Linear())
    """

    def _gram(self, X: Block, Y: Block) -> Array:
        exponent = self.kernel._gram(X, Y)
        return namespace(exponent).exp(exponent) if is_device_array(exponent) else np.exp(exponent, out=exponent)

    def _diagonal(self, X: Block) -> Array:
        exponent = self.kernel._diagonal(X)
        return namespace(exponent).exp(exponent)

    def _expression(self) -> str:
        return f"exp({self.kernel!r})"


class OnColumns(Kernel):
    """A kernel on a subset of the columns, as in ``k.on([0, 1])``.

    Parameters
    ----------
    kernel : Kernel
        Kernel.
    columns : slice or list of int
        Columns.

    Examples
    --------
    >>> from consilience.kernels import Linear
    >>> Linear().on([1])([[1.0, 2.0]], [[3.0, 4.0]])
    array([[8.]])
    """

    def __init__(self, kernel: Kernel, columns: slice | Sequence[int]):
        self.kernel = kernel
        self.columns = columns

    def _resolved(self, X: Block) -> "Kernel":
        return OnColumns(self.kernel._resolved(self._select(X)), self.columns)

    def _select(self, X: Block) -> Block:
        """Return the selected columns."""
        check_numeric(self, X, None)
        try:
            columns = np.atleast_1d(np.arange(X.shape[1])[self.columns])  # slices, lists and masks become positions
        except (IndexError, TypeError) as error:
            raise ValueError(f"{self!r} selects columns that data of {X.shape[1]} columns do not have.") from error
        return namespace(X).take(X, namespace(X).asarray(columns), axis=1) if is_device_array(X) else X[:, columns]

    def _gram(self, X: Block, Y: Block) -> Array:
        return self.kernel._gram(self._select(X), None if Y is None else self._select(Y))

    def _diagonal(self, X: Block) -> Array:
        return self.kernel._diagonal(self._select(X))

    def _expression(self) -> str:
        return f"{self.kernel._within(4)}.on({self.columns!r})"


class Mapped(Kernel):
    """A kernel of mapped data, k(φ(x), φ(z)), as in ``k.mapped(func)``.

    Parameters
    ----------
    kernel : Kernel
        Kernel.
    func : callable
        Map φ. It takes one view's data and returns data with the same rows.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import Linear
    >>> Linear().mapped(np.log)
    Linear().mapped(log)
    """

    def __init__(self, kernel: Kernel, func: Callable[[Any], Any]):
        self.kernel = kernel
        self.func = func

    def _resolved(self, X: Block) -> "Kernel":
        return Mapped(self.kernel._resolved(self._map(X)), self.func)

    def _map(self, X: Block) -> Block:
        """Return the mapped data."""
        mapped = read(self.func(X))  # validated like data of the user
        if mapped.shape[0] != X.shape[0]:
            raise ValueError(f"{self!r}: the function must return {X.shape[0]} rows; it returned {mapped.shape[0]}.")
        return mapped

    def _gram(self, X: Block, Y: Block) -> Array:
        return self.kernel._gram(self._map(X), None if Y is None else self._map(Y))

    def _diagonal(self, X: Block) -> Array:
        return self.kernel._diagonal(self._map(X))

    def _expression(self) -> str:
        return f"{self.kernel._within(4)}.mapped({value_text(self.func)})"


def exp(kernel: Kernel) -> Kernel:
    """Return the elementwise exponential of a kernel.

    Parameters
    ----------
    kernel : Kernel
        Kernel.

    Returns
    -------
    Kernel
        exp(k(x, z)).

    Examples
    --------
    >>> from consilience.kernels import Linear, exp
    >>> exp(Linear())([[1.0]]).round(3)
    array([[2.718]])
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"exp takes a kernel; got {type(kernel).__name__}. For arrays use numpy.exp.")
    return Exponential(kernel)

"""The algebra of kernels: what sums, products, powers and maps of kernels make, again kernels."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from .._backend import is_device_array, namespace, to_numpy
from ..views._blocks import Block, Gram, take
from .base import Array, Kernel, check_degree, check_numeric, full, integer_power, read, value_text
from .gram import center_gram, normalize_gram
from .scalar import Precomputed


# -- closure
class _Composite(Kernel):
    """A kernel made of kernels: resolving it resolves them."""

    def resolved(self, X: Any) -> "Kernel":
        """Return the kernel with its parts resolved.

        Parameters
        ----------
        X : array, sparse matrix, sequence of strings or trees, or Gram
            The reference.

        Returns
        -------
        Kernel
            The same expression with numbers for parameters.
        """
        parts = {
            name: part.resolved(X) for name, part in self.get_params(deep=False).items() if isinstance(part, Kernel)
        }
        return clone(self).set_params(**parts)


class Constant(Kernel):
    """The constant kernel k(x, z) = c >= 0, as in ``k + 0.1``.

    Parameters
    ----------
    value : float
        c.

    Examples
    --------
    >>> from consilience.kernels import Linear
    >>> Linear() + 0.5
    Linear() + 0.5
    """

    def __init__(self, value: float):
        self.value = value

    def _number(self) -> float:
        if not isinstance(self.value, numbers.Real) or not self.value >= 0:
            raise ValueError(f"A constant added to a kernel must be a number of at least 0; got {self.value!r}.")
        return float(self.value)

    def _gram(self, X: Block, Y: Block) -> Array:
        return full(X, (X.shape[0], (X if Y is None else Y).shape[0]), self._number())

    def _diagonal(self, X: Block) -> Array:
        return full(X, (X.shape[0],), self._number())

    def _expression(self) -> str:
        return value_text(self.value)


class Sum(_Composite):
    """The sum of two kernels, as in ``k1 + k2``.

    Parameters
    ----------
    k1, k2 : Kernel
        The terms.

    Examples
    --------
    >>> from consilience.kernels import RBF, Linear
    >>> RBF(gamma=0.5) + Linear()
    RBF(gamma=0.5) + Linear()
    """

    _precedence = 1

    def __init__(self, k1: Kernel, k2: Kernel):
        self.k1 = k1
        self.k2 = k2

    def _gram(self, X: Block, Y: Block) -> Array:
        total, other = self.k1._gram(X, Y), self.k2._gram(X, Y)
        if total.dtype != other.dtype:
            return total + other
        total += other
        return total

    def _diagonal(self, X: Block) -> Array:
        return self.k1._diagonal(X) + self.k2._diagonal(X)

    def _expression(self) -> str:
        return f"{self.k1._within(1)} + {self.k2._within(2)}"


class Product(_Composite):
    """The elementwise product of two kernels, as in ``k1 * k2``.

    Parameters
    ----------
    k1, k2 : Kernel
        The factors.

    Examples
    --------
    >>> from consilience.kernels import RBF, Linear
    >>> (RBF(gamma=0.5) + 1.0) * Linear()
    (RBF(gamma=0.5) + 1.0) * Linear()
    """

    _precedence = 2

    def __init__(self, k1: Kernel, k2: Kernel):
        self.k1 = k1
        self.k2 = k2

    def _gram(self, X: Block, Y: Block) -> Array:
        total, other = self.k1._gram(X, Y), self.k2._gram(X, Y)
        if total.dtype != other.dtype:
            return total * other
        total *= other
        return total

    def _diagonal(self, X: Block) -> Array:
        return self.k1._diagonal(X) * self.k2._diagonal(X)

    def _expression(self) -> str:
        return f"{self.k1._within(2)} * {self.k2._within(3)}"


class Scaled(_Composite):
    """A kernel times a number, as in ``0.5 * k``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    scale : float
        At least 0.

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

    def _number(self) -> float:
        if not isinstance(self.scale, numbers.Real) or not self.scale >= 0:
            raise ValueError(f"A kernel is multiplied by a number of at least 0; got {self.scale!r}.")
        return float(self.scale)

    def _gram(self, X: Block, Y: Block) -> Array:
        scale = self._number()
        matrix = self.kernel._gram(X, Y)
        matrix *= scale
        return matrix

    def _diagonal(self, X: Block) -> Array:
        return self._number() * self.kernel._diagonal(X)

    def _expression(self) -> str:
        return f"{value_text(self.scale)} * {self.kernel._within(3)}"


class Power(_Composite):
    """An integer power of a kernel, elementwise, as in ``k ** 2``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    degree : int
        At least 1.

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


class Exponential(_Composite):
    """The exponential of a kernel, elementwise, as in ``exp(k)``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.

    Examples
    --------
    >>> from consilience.kernels import Linear, exp
    >>> exp(0.1 * Linear())
    exp(0.1 * Linear())
    """

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def _gram(self, X: Block, Y: Block) -> Array:
        inner = self.kernel._gram(X, Y)
        return namespace(inner).exp(inner) if is_device_array(inner) else np.exp(inner, out=inner)

    def _diagonal(self, X: Block) -> Array:
        inner = self.kernel._diagonal(X)
        return namespace(inner).exp(inner)

    def _expression(self) -> str:
        return f"exp({self.kernel!r})"


class Normalized(_Composite):
    """A kernel divided by the norms, k(x, z) / sqrt(k(x, x) k(z, z)), as in ``normalize(k)``; 0 where a norm is 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel.

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
        """Whether training samples must keep their Gram matrix: yes, for their norms."""
        return self.kernel.reads_gram

    def _gram(self, X: Block, Y: Block) -> Array:
        if Y is not None and self.kernel.reads_gram and not isinstance(X, Gram):
            raise ValueError(
                f"{self!r} needs the kernel of each new sample with itself, which a block against training samples "
                "does not have. Build Views(..., precomputed=...) from the square Gram of all samples and take rows."
            )
        matrix = self.kernel._gram(X, Y)
        left = self._inverse_norms(X)
        right = left if Y is None else self._inverse_norms(Y)
        matrix *= left[:, None]
        matrix *= right[None, :]
        return matrix

    def _inverse_norms(self, X: Block) -> Array:
        diagonal = self.kernel._diagonal(X)
        xp = namespace(diagonal)
        there = diagonal > 0
        return xp.where(
            there, 1.0 / xp.sqrt(xp.where(there, diagonal, xp.ones_like(diagonal))), xp.zeros_like(diagonal)
        )

    def _diagonal(self, X: Block) -> Array:
        diagonal = self.kernel._diagonal(X)
        xp = namespace(diagonal)
        return xp.astype(diagonal > 0, diagonal.dtype)

    def _expression(self) -> str:
        return f"normalize({self.kernel!r})"


class Centered(_Composite):
    """A kernel with the mean of the reference samples in feature space taken away, as in ``center(k)``.

    k(x, z) - mean_r k(x, r) - mean_r k(r, z) + mean_rs k(r, s), the means over the reference samples: those given to
    `resolved`, or else the second argument of the call.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    reference : array, sparse matrix or objects, optional
        The reference samples; set by `resolved`, and kept from then on.
    grand_mean : float, optional
        mean_rs k(r, s); set by `resolved`.

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
        """Whether training samples must keep their Gram matrix: yes, for their means."""
        return self.kernel.reads_gram

    def _unresolved(self) -> bool:
        return self.grand_mean is None or super()._unresolved()

    def set_params(self, **params: Any) -> "Centered":
        """Set parameters; another kernel or reference has another mean.

        Parameters
        ----------
        **params : dict
            Name -> value.

        Returns
        -------
        self
            The kernel.
        """
        super().set_params(**params)
        if "grand_mean" not in params and any(key.partition("__")[0] in ("kernel", "reference") for key in params):
            self.grand_mean = None
        return self

    def resolved(self, X: Any) -> "Kernel":
        """Return the kernel centered at the mean of X.

        Parameters
        ----------
        X : array, sparse matrix, sequence of strings or trees, or Gram
            The reference samples, which the result keeps; a kernel that has a reference already keeps its own.

        Returns
        -------
        Kernel
            The resolved kernel.
        """
        if not self._unresolved():
            return clone(self)
        reference = read(X if self.reference is None else self.reference)
        if self.kernel.reads_gram:
            reference = Precomputed.as_gram(reference)
        kernel = self.kernel.resolved(reference)
        blocks = np.array_split(np.arange(reference.shape[0]), -(-reference.shape[0] // 512) or 1)
        sums = [float(to_numpy(kernel._gram(take(reference, rows), reference)).sum()) for rows in blocks]
        return Centered(kernel, reference, sum(sums) / max(reference.shape[0], 1) ** 2)

    def _gram(self, X: Block, Y: Block) -> Array:
        matrix = self.kernel._gram(X, Y)
        left = namespace(matrix).mean(matrix, axis=1) if Y is None and X is self.reference else self._means(X)
        right = left if Y is None else self._means(Y)
        matrix -= left[:, None]
        matrix -= right[None, :]
        matrix += self.grand_mean
        return matrix

    def _means(self, X: Block) -> Array:
        block = self.kernel._gram(X, self.reference)
        return namespace(block).mean(block, axis=1)

    def _diagonal(self, X: Block) -> Array:
        return self.kernel._diagonal(X) - 2 * self._means(X) + self.grand_mean

    def _expression(self) -> str:
        return f"center({self.kernel!r})"


class OnColumns(_Composite):
    """A kernel on a block of the columns, as in ``k.on([0, 1])``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    columns : slice or list of int
        The columns.

    Examples
    --------
    >>> from consilience.kernels import Linear
    >>> Linear().on([1])([[1.0, 2.0]], [[3.0, 4.0]])
    array([[8.]])
    """

    def __init__(self, kernel: Kernel, columns: slice | Sequence[int]):
        self.kernel = kernel
        self.columns = columns

    def resolved(self, X: Any) -> "Kernel":
        """Return the kernel with its part resolved on the columns.

        Parameters
        ----------
        X : array or sparse matrix
            The reference.

        Returns
        -------
        Kernel
            The resolved kernel.
        """
        return OnColumns(self.kernel.resolved(self._cut(read(X))), self.columns)

    def _cut(self, X: Block) -> Block:
        check_numeric(self, X, None)
        try:
            chosen = np.atleast_1d(np.arange(X.shape[1])[self.columns])
        except (IndexError, TypeError) as error:
            raise ValueError(f"{self!r} asks for columns that data of {X.shape[1]} columns do not have.") from error
        return namespace(X).take(X, namespace(X).asarray(chosen), axis=1) if is_device_array(X) else X[:, chosen]

    def _gram(self, X: Block, Y: Block) -> Array:
        return self.kernel._gram(self._cut(X), None if Y is None else self._cut(Y))

    def _diagonal(self, X: Block) -> Array:
        return self.kernel._diagonal(self._cut(X))

    def _expression(self) -> str:
        return f"{self.kernel._within(4)}.on({self.columns!r})"


class Mapped(_Composite):
    """A kernel behind a map of the data, k(φ(x), φ(z)), as in ``k.mapped(func)``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    func : callable
        Takes one view's data and returns data with the same rows.

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

    def resolved(self, X: Any) -> "Kernel":
        """Return the kernel with its part resolved on the mapped data.

        Parameters
        ----------
        X : array, sparse matrix or objects
            The reference.

        Returns
        -------
        Kernel
            The resolved kernel.
        """
        return Mapped(self.kernel.resolved(self._map(read(X))), self.func)

    def _map(self, X: Block) -> Block:
        mapped = read(self.func(X))
        if mapped.shape[0] != X.shape[0]:
            raise ValueError(f"{self!r}: the function must keep the {X.shape[0]} rows; it returned {mapped.shape[0]}.")
        return mapped

    def _gram(self, X: Block, Y: Block) -> Array:
        return self.kernel._gram(self._map(X), None if Y is None else self._map(Y))

    def _diagonal(self, X: Block) -> Array:
        return self.kernel._diagonal(self._map(X))

    def _expression(self) -> str:
        return f"{self.kernel._within(4)}.mapped({value_text(self.func)})"


def exp(kernel: Kernel) -> Kernel:
    """Return the elementwise exponential of a kernel, again a kernel.

    Parameters
    ----------
    kernel : Kernel
        The kernel.

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
        raise TypeError(f"exp is of kernels; got {type(kernel).__name__}. For arrays there is numpy.exp.")
    return Exponential(kernel)


def normalize(kernel: Any) -> Any:
    """Return the kernel, or the Gram matrix, with ones on its diagonal.

    Parameters
    ----------
    kernel : Kernel or array of shape (n_samples, n_samples)
        A kernel, or a Gram matrix.

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
    """Return the kernel, or the Gram matrix, centered in feature space.

    Parameters
    ----------
    kernel : Kernel or array of shape (n_samples, n_samples)
        A kernel, or a Gram matrix.

    Returns
    -------
    Kernel or array
        The kernel of φ(x) minus the mean of φ over the reference samples.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.kernels import center
    >>> center(np.array([[0.0, 0.0], [0.0, 4.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return Centered(kernel) if isinstance(kernel, Kernel) else center_gram(kernel)

"""Normalize and center kernels and Gram matrices."""

from typing import Any

import numpy as np
from sklearn.base import clone

from .._backend import namespace, to_numpy
from ..views._blocks import Block, Gram, take
from .base import Array, Kernel, read
from .given import Precomputed
from .gram import center_gram, normalize_gram

__all__ = ["center", "normalize"]


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
        sums = [float(to_numpy(kernel._gram(take(reference, rows), reference)).sum()) for rows in blocks]
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

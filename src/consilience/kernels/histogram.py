"""Kernels on nonnegative vectors such as histograms."""

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array, namespace
from ..views._blocks import Block
from ._distances import double, inner
from .base import Array, Kernel, check_nonnegative, check_numeric, to_precision
from .scalar import DistanceKernel, add_columns, city_block_distances

__all__ = ["AdditiveChiSquared", "ChiSquared", "Hellinger", "Intersection"]


class ChiSquared(DistanceKernel):
    """The exponential χ² kernel k(x, z) = exp(-γ Σ_j (x_j - z_j)² / (x_j + z_j)) of nonnegative data.

    Equals ``sklearn.metrics.pairwise.chi2_kernel``, and also takes sparse data. Short name: ``"chi2"``.

    Parameters
    ----------
    gamma : float or {"median", "mean_distance"}, default="mean_distance"
        Inverse width γ. ``"median"`` and ``"mean_distance"`` are one over the median and the mean of the χ² distance
        between pairs of different samples.

    Examples
    --------
    >>> from consilience.kernels import ChiSquared
    >>> ChiSquared(gamma=1.0)([[1.0, 0.0]], [[0.5, 0.5]]).round(3)
    array([[0.513]])
    """

    _name = "chi2"

    def _distances(self, X: Block, Y: Block) -> Array:
        dtype = X.dtype if Y is None or X.dtype == Y.dtype else None
        X, Y = double(X), None if Y is None else double(Y)  # in single precision the sum below would cancel
        # (x - z)² / (x + z) = x + z - 4xz / (x + z), and the harmonic sum is Σ 2xz / (x + z)
        distances = _row_sums_less(_harmonic_sums(self, X, Y), 2, X, Y)
        return to_precision(_at_least_zero(distances, symmetric=Y is None), dtype)


class AdditiveChiSquared(Kernel):
    """The additive χ² kernel k(x, z) = Σ_j 2 x_j z_j / (x_j + z_j) of nonnegative data, with 0/0 = 0.

    Equals (Σx + Σz + a(x, z)) / 2, where a is ``sklearn.metrics.pairwise.additive_chi2_kernel``. That function is minus
    the χ² distance, and so is not positive semi-definite itself. ``AdditiveChi2Sampler`` approximates this kernel.
    Short name: ``"additive_chi2"``.

    Examples
    --------
    >>> from consilience.kernels import AdditiveChiSquared
    >>> AdditiveChiSquared()([[1.0, 0.0]], [[0.5, 0.5]]).round(3)
    array([[0.667]])
    """

    _name = "additive_chi2"

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        return _harmonic_sums(self, X, Y)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        check_nonnegative(self, X)
        return _row_sums(X)


class Hellinger(Kernel):
    """The Hellinger kernel k(x, z) = Σ_j √(x_j z_j) of nonnegative data, also called Bhattacharyya's.

    Equals `Linear` on the square roots of the data, which make large counts less dominant. Negative values keep their
    sign, -√|x_j|. Short name: ``"hellinger"``.

    Examples
    --------
    >>> from consilience.kernels import Hellinger
    >>> Hellinger()([[4.0, 9.0]], [[1.0, 4.0]])
    array([[8.]])
    """

    _name = "hellinger"

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        return inner(_square_roots(X), None if Y is None else _square_roots(Y))

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        return _row_sums(abs(X))


class Intersection(Kernel):
    """The histogram intersection kernel k(x, z) = Σ_j min(x_j, z_j) of nonnegative data.

    Equals (‖x‖₁ + ‖z‖₁ - ‖x - z‖₁) / 2. Short name: ``"intersection"``.

    Examples
    --------
    >>> from consilience.kernels import Intersection
    >>> Intersection()([[1.0, 2.0]], [[3.0, 0.5]])
    array([[1.5]])
    """

    _name = "intersection"

    def _gram(self, X: Block, Y: Block) -> Array:
        check_numeric(self, X, Y)
        check_nonnegative(self, X, Y)
        dtype = X.dtype if Y is None or X.dtype == Y.dtype else None
        X, Y = double(X), None if Y is None else double(Y)  # in single precision the sum below would cancel
        common = _row_sums_less(city_block_distances(X, Y), 1, X, Y)  # min(x, z) = (x + z - |x - z|) / 2
        common *= 0.5
        return to_precision(common, dtype)

    def _diagonal(self, X: Block) -> Array:
        check_numeric(self, X, None)
        check_nonnegative(self, X)
        return _row_sums(X)


def _square_roots(X: Block) -> Block:
    """Return the square roots of the sizes, with the signs."""
    if sp.issparse(X):
        X = X.copy()
        X.data = _square_roots(X.data)
        return X
    xp = namespace(X)
    return xp.sign(X) * xp.sqrt(xp.abs(X))


def _harmonic_sums(kernel: Kernel, X: Block, Y: Block) -> Array:
    """Return Σ_j 2 x_j z_j / (x_j + z_j) where both are nonzero; on a device column by column."""
    from . import _compiled

    check_nonnegative(kernel, X, Y)
    if is_device_array(X):
        xp = namespace(X)

        def term(x: Array, z: Array) -> Array:
            sums, product = x + z, 2 * x * z
            return xp.where(product > 0, product / xp.where(sums > 0, sums, xp.ones_like(sums)), xp.zeros_like(sums))

        return add_columns(X, Y, term)
    if sp.issparse(X) or sp.issparse(Y):
        X = sp.csr_array(X)
        Y = None if Y is None else sp.csr_array(Y)  # both sparse, or both dense
    return _compiled.harmonic_sums(X, Y)


def _row_sums_less(matrix: Array, factor: int, X: Block, Y: Block) -> Array:
    """Return Σx + Σz - factor · matrix for all pairs of rows, in place."""
    sums = _row_sums(X)
    matrix *= -factor
    matrix += sums[:, None]
    matrix += (sums if Y is None else _row_sums(Y))[None, :]
    return matrix


def _row_sums(X: Block) -> Array:
    """Return the sum of each row."""
    return namespace(X).sum(X, axis=1) if is_device_array(X) else np.asarray(X.sum(axis=1)).ravel()


def _at_least_zero(distances: Array, symmetric: bool) -> Array:
    """Return distances without negative values that rounding made of zeros; NumPy arrays in place."""
    if is_device_array(distances):
        return namespace(distances).clip(distances, 0.0, None)
    np.maximum(distances, 0, out=distances)
    if symmetric:
        np.fill_diagonal(distances, 0)  # d(x, x) = 0 exactly
    return distances

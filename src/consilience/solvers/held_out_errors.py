"""Kernel ridge for many outputs: weights of the kernels and the penalty of each output by exact held-out errors.

With weights γ of the kernels, K = Σ_v γ_v K_v, every output p has the model

    min_{f, b} Σ_i s_i (y_ip - f(x_i) - b)² + a ‖f‖²,

and the same eigendecomposition of K serves all outputs and penalties a. With M = s½ K_c s½ = V diag(e) V', where K_c is
centered by the weights s, and Z = V's½(Y - ȳ), the residuals of the fit times s½ are V diag(a / (e + a)) Z. Those at
samples g that the model has not seen are (I - S_gg)⁻¹ times these, with I - S = V diag(a / (e + a)) V' (`consensus`).
A model of training rows T predicts other rows by K_gT V diag(1 / (e + a)) Z. Either way held-out errors are

    base + left · diag(filter of a) · Z,

and the products with `left` cost most. Filters of different penalties are alike where e is far from a, so they are
combinations of few functions of e: `FilterBasis` finds them for intervals of the spectrum, and the products are made
for these functions only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._backend import is_device_array, like, namespace, take_rows, to_numpy
from .linalg import eigh, inverse_general, svd

_ROWS = 256  # rows whose held-out errors are computed at a time; all on devices
MEMORY = 1 << 26  # bytes of the products of one batch of outputs; more on devices
_INTERVALS = 1, 2, 3, 4, 6, 8, 12, 16  # numbers of intervals of the spectrum that are tried


# -- filters
class FilterBasis(NamedTuple):
    """Filters (A, r) as `coefficients` (A, k) times functions of the eigenvalues, each 0 outside one interval."""

    coefficients: np.ndarray
    parts: list[tuple[slice, np.ndarray]]  # an interval, and its functions there, (number, length)


def filter_basis(values: np.ndarray, filters: np.ndarray, tol: float) -> FilterBasis:
    """Return few functions whose combinations are the filters, up to `tol` of each filter's largest value.

    More intervals need fewer products with eigenvectors, but more combinations: the cheapest number is taken.
    """
    A, r = filters.shape
    if not r:
        return FilterBasis(np.zeros((A, 0)), [])
    scale = np.maximum(np.abs(filters).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    least = max(float(values[-1]) * float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny))
    place = np.log(np.maximum(values, least))  # ascending
    best: tuple[float, list[Any]] | None = None
    for number in _INTERVALS:
        ends = np.searchsorted(place, np.linspace(place[0], place[-1], number + 1)[1:-1])
        bounds = np.unique([0, *ends.tolist(), r])
        found = [_functions(filters[:, a:b] / scale, slice(a, b), tol) for a, b in pairwise(bounds.tolist())]
        products = sum(len(G) * G.shape[1] for _, _, G in found)
        combinations = A * sum(len(G) for _, _, G in found)
        cost = products + 4.0 * combinations  # small products are slower than large ones
        if best is None or cost < best[0]:
            best = cost, found
        if len(bounds) - 1 == r:
            break
    assert best is not None
    coefficients = scale * np.hstack([C for _, C, _ in best[1]])
    return FilterBasis(coefficients, [(own, G) for own, _, G in best[1]])


def _functions(filters: np.ndarray, own: slice, tol: float) -> tuple[slice, np.ndarray, np.ndarray]:
    """Return the filters on one interval as coefficients times orthonormal functions."""
    U, size, G = svd(filters)
    k = max(int((size > tol).sum()), 1)
    return own, U[:, :k] * size[:k], G[:k]


# -- decompositions
class RidgeSpectrum(NamedTuple):
    """M = V diag(e) V' without the directions whose eigenvalues are rounding errors."""

    values: np.ndarray  # e, ascending
    vectors: Any  # V
    full: bool  # whether V spans all that is orthogonal to s½


@dataclass
class ModelRows:
    """The training rows of one model: what does not depend on the weights of the kernels.

    Where all kernels together have a low rank, `basis` has orthonormal columns Q that span them, and each kernel is
    Q B_v Q' with a small matrix.
    """

    rows: np.ndarray  # positions among all samples
    test: np.ndarray | None  # rows that are predicted; None for the training rows themselves
    root: Any  # s½, (n, 1)
    share: Any  # s / Σs, (n, 1)
    basis: Any = None
    small: list[Any] | None = None  # B_v
    across: list[Any] | None = None  # s½ K_v of test and training rows, centered, times Q
    equal: RidgeSpectrum | None = None  # the decomposition for weights of 1, until it is used

    @classmethod
    def of(
        cls, grams: Sequence[Any], s: np.ndarray, rows: np.ndarray, test: np.ndarray | None, *, low_rank: bool = True
    ) -> "ModelRows":
        """Prepare the training rows; with `low_rank` find out whether the kernels have a low rank together."""
        own = s[rows][:, None]
        made = cls(rows, test, like(np.sqrt(own).astype(float_type(grams[0])), grams[0]), None)
        made.share = like((own / own.sum()).astype(float_type(grams[0])), grams[0])
        if not low_rank:
            return made
        equal = _decompose(made.centered(_weighted(grams, np.ones(len(grams))), in_place=True))
        if len(equal.values) > 0.7 * len(rows):
            made.equal = equal
        else:
            made.basis = vectors = equal.vectors
            made.small = [vectors.T @ made.centered(K) @ vectors for K in grams]
            if test is not None:
                made.across = [made.crossed(K, s) @ vectors for K in grams]
        return made

    def centered(self, K: Any, *, in_place: bool = False) -> Any:
        """Return s½ K_c s½ over the training rows; `in_place` uses the memory of K."""
        own = square_part(K, self.rows)
        means = own @ self.share
        if not in_place:
            own = own + 0
        own -= means
        own -= means.T - (means.T @ self.share)
        own *= self.root
        own *= self.root.T
        return own

    def crossed(self, K: Any, s: np.ndarray) -> Any:
        """Return s½ K_c s½ between test and training rows, centered by the training rows."""
        assert self.test is not None
        own = _block(K, self.test, self.rows)
        means = square_part(K, self.rows) @ self.share
        own = own - own @ self.share - (means.T - (means.T @ self.share))
        return own * self.root.T * like(np.sqrt(s[self.test])[:, None].astype(float_type(K)), K)

    def spectrum(self, grams: Sequence[Any], weights: np.ndarray) -> RidgeSpectrum:
        """Return the decomposition for weights of the kernels."""
        if self.equal is not None and (weights == weights[0]).all():
            (values, vectors, full), self.equal = self.equal, None
            return RidgeSpectrum(values * weights[0], vectors, full)
        if self.small is None:
            return _decompose(self.centered(_weighted(grams, weights), in_place=True))
        values, vectors, _ = _decompose(_weighted(self.small, weights), null=0)
        return RidgeSpectrum(values, self.basis @ vectors, False)


def _decompose(M: Any, *, null: int = 1) -> RidgeSpectrum:
    """Decompose a positive semi-definite matrix; drop eigenvalues that are rounding errors, `null` of them at least.

    A centered matrix has s½ in its null space.
    """
    values, vectors = eigh(M, driver="threads")
    e = to_numpy(values).astype(np.float64)
    rounding = 10 * np.finfo(float_type(M)).eps * float(e.max(initial=0.0))
    first = max(int(np.searchsorted(e, rounding, side="right")), null)
    return RidgeSpectrum(e[first:], vectors[:, first:], first == null == 1)


def float_type(x: Any) -> Any:
    """Return the NumPy type of an array's numbers."""
    return np.float32 if "float32" in str(x.dtype) else np.float64


def _weighted(grams: Sequence[Any], weights: np.ndarray) -> Any:
    total = grams[0] * float(weights[0])
    for K, weight in zip(grams[1:], weights[1:], strict=True):
        if weight:
            total += K * float(weight)
    return total


def square_part(K: Any, rows: np.ndarray) -> Any:
    """Return the part of a matrix between some rows; the matrix itself for all rows."""
    return K if len(rows) == K.shape[0] else _block(K, rows, rows)


def _block(K: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    if not is_device_array(K):
        return K[np.ix_(rows, columns)]
    return namespace(K).take(take_rows(K, rows), like(columns, K), axis=1)


# -- held-out errors
@dataclass
class HeldOutErrors:
    """Held-out errors of one model for one draw of weights: base + left · diag(filters) · Z, squares times `scale`."""

    model: ModelRows
    spectrum: RidgeSpectrum
    left: Any  # (number of held-out rows, r)
    basis: FilterBasis
    scale: Any = None  # 1 / (I - S)_ii² for every penalty and row, (A, n); None for 1
    inverses: list[list[Any]] | None = None  # (I - S_gg)⁻¹ by penalty and fold
    folds: Sequence[np.ndarray] = ()

    def errors(self, Y: Any, Z: Any) -> np.ndarray:
        """Return the squared held-out errors for each penalty, (A, P); Y is centered by the training rows, times s½."""
        base = None
        if self.model.test is not None:
            base = Y
        elif not self.spectrum.full:
            base = Y - self.spectrum.vectors @ Z  # what no kernel reaches
        C = self.basis.coefficients
        C = C if base is None else np.hstack([C, np.ones((len(C), 1))])
        C = like(C.astype(float_type(Z)), Z)
        n, p = self.left.shape[0], Z.shape[1]
        on_device, itemsize = is_device_array(Z), np.dtype(float_type(Z)).itemsize
        block = n if on_device or self.inverses is not None else min(_ROWS, n)
        functions = sum(len(G) * G.shape[1] for _, G in self.basis.parts)
        room = MEMORY * (32 if on_device else 1) // itemsize
        size = max(room // (functions + (C.shape[0] + C.shape[1]) * block), 16)
        found = np.zeros((C.shape[0], p))
        for start in range(0, p, size):
            own = slice(start, min(start + size, p))
            filtered = _filtered(self.basis, Z[:, own])
            for first in range(0, n, block):
                rows = slice(first, min(first + block, n))
                rest = None if base is None else base[rows, own]
                found[:, own] += self._squares(_products(self.left[rows, :], filtered, own.stop - start, rest), C, rows)
        return found

    def _squares(self, products: Any, C: Any, rows: slice) -> np.ndarray:
        """Return the sums of squares over some rows, from the products of all functions, (k, rows, P)."""
        xp = namespace(products)
        k, n, p = products.shape
        if self.inverses is not None:
            residuals = (C[a : a + 1, :] @ xp.reshape(products, (k, -1)) for a in range(C.shape[0]))
            pairs = zip(residuals, self.inverses, strict=True)
            return np.stack([self._fold_errors(xp.reshape(own, (n, p)), inverses) for own, inverses in pairs])
        combined = C @ xp.reshape(products, (k, -1))
        combined *= combined
        combined = xp.reshape(combined, (C.shape[0], n, p))
        if self.scale is None:
            return to_numpy(xp.sum(combined, axis=1))
        return to_numpy(xp.matmul(self.scale[:, None, rows], combined)[:, 0, :])

    def _fold_errors(self, residuals: Any, inverses: Sequence[Any]) -> np.ndarray:
        """Return the squared errors for one penalty, from the residuals at all rows."""
        xp, total = namespace(residuals), np.zeros(residuals.shape[1])
        for fold, inverse in zip(self.folds, inverses, strict=True):
            unseen = inverse @ take_rows(residuals, fold)
            total += to_numpy(xp.sum(unseen * unseen, axis=0))
        return total


def _filtered(basis: FilterBasis, Z: Any) -> list[tuple[slice, Any]]:
    """Return diag(g) Z for every function g of a basis, by intervals: (functions, length, P)."""
    found = []
    for own, G in basis.parts:
        functions = like(np.ascontiguousarray(G).astype(float_type(Z)), Z)
        found.append((own, functions[:, :, None] * Z[own, :][None, :, :]))
    return found


def _products(left: Any, filtered: Sequence[tuple[slice, Any]], p: int, base: Any) -> Any:
    """Return left · diag(g) · Z for every function g of a basis, and the base as a last one, (k, n, P)."""
    xp, n = namespace(left), left.shape[0]
    k = sum(own.shape[0] for _, own in filtered) + (base is not None)
    kind = {"device": left.device} if is_device_array(left) else {}
    out, at = xp.empty((k, n, p), dtype=left.dtype, **kind), 0
    for interval, own in filtered:
        here = slice(at, at + own.shape[0])
        if is_device_array(left):
            out[here, :, :] = xp.matmul(left[None, :, interval], own)
        else:
            np.matmul(left[:, interval], own, out=out[here])
        at = here.stop
    if base is not None:
        out[at, :, :] = base
    return out


def leave_one_out(model: ModelRows, spectrum: RidgeSpectrum, alphas: np.ndarray) -> HeldOutErrors:
    """Return the errors at samples that are left out one by one."""
    filters, V = alphas[:, None] / (spectrum.values + alphas[:, None]), spectrum.vectors
    held = HeldOutErrors(model, spectrum, V, filter_basis(spectrum.values, filters, _tol(V)))
    xp = namespace(V)
    rest = (V * V) @ like(np.ascontiguousarray(filters.T).astype(float_type(V)), V)  # (I - S)_ii, by the penalties
    if not spectrum.full:
        outside = 1.0 - model.share - xp.sum(V * V, axis=1, keepdims=True)
        rest = rest + xp.where(outside > 0, outside, outside * 0)
    held.scale = (1.0 / (rest * rest)).T
    return held


def all_folds(
    model: ModelRows, spectrum: RidgeSpectrum, alphas: np.ndarray, folds: Sequence[np.ndarray]
) -> HeldOutErrors:
    """Return the errors at folds from one decomposition, for many small folds."""
    filters, V = alphas[:, None] / (spectrum.values + alphas[:, None]), spectrum.vectors
    held = HeldOutErrors(model, spectrum, V, filter_basis(spectrum.values, filters, _tol(V)), folds=folds)
    whole, root = to_numpy(V).astype(np.float64), np.sqrt(to_numpy(model.share).astype(np.float64))
    held.inverses = []
    for own in filters:
        blocks = []
        for fold in folds:
            left = np.eye(len(fold)) - root[fold] @ root[fold].T - (whole[fold] * (1 - own)) @ whole[fold].T
            blocks.append(like(inverse_general(left).astype(float_type(V)), V))
        held.inverses.append(blocks)
    return held


def one_fold(
    grams: Sequence[Any], model: ModelRows, weights: np.ndarray, alphas: np.ndarray, s: np.ndarray
) -> HeldOutErrors:
    """Return the errors at the test rows of a fold, from a decomposition of its training rows."""
    if model.small is None:
        spectrum = model.spectrum(grams, weights)
        left = model.crossed(_weighted(grams, weights), s) @ spectrum.vectors
    else:
        assert model.across is not None
        values, vectors, _ = _decompose(_weighted(model.small, weights), null=0)
        spectrum = RidgeSpectrum(values, model.basis @ vectors, False)
        left = _weighted(model.across, weights) @ vectors
    e = spectrum.values
    filters = -e / (e + alphas[:, None])
    left = left * like((1 / e)[None, :].astype(float_type(left)), left)
    return HeldOutErrors(model, spectrum, left, filter_basis(e, filters, _tol(left)))


def _tol(V: Any) -> float:
    return 5e-6 if float_type(V) == np.float32 else 1e-11

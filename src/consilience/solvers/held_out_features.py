"""Outputs of co-regularized least squares over features at rows whose targets are hidden, for a grid of penalties.

Hidden targets are u = 0; the penalties keep the l of all labeled rows, and the rows stay among the unlabeled ones. Rows
are read block by block. Symbols are those of `coupled_features`.

Leave-one-out: penalties with equal ratios have R = α R_1, R_1 = LL'. With L⁻¹ D_c X D_c L⁻ᵀ = Q diag(β) Q' the rows
√u ν φ D_c L⁻ᵀ Q diag(β)^{-½} are left vectors, from which the residuals of every α follow. A fold F that is hidden
together leaves the sums X - X_F and Z - Z_F, and takes a factorization for each pair of penalties.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._backend import like, take_rows, to_numpy
from .coregularized import Penalties, couple, penalty_ratios, turn_back
from .coupled import row_scale
from .coupled_features import FeatureSums, turned
from .design import FeatureRows
from .held_out_metric import HeldOutSpectrum
from .linalg import (
    add_gram,
    add_product_transposed,
    cholesky,
    drop_null_space,
    eigh_positive,
    forward,
    mirror,
    multiply,
    solve,
)

_KEPT = 1 << 25  # entries of matrices that one pass over the rows keeps; what does not fit takes another pass

OutputGroups = Sequence[tuple[float, np.ndarray | None]]  # eigenvalues of the output kernel, with their eigenvectors
HeldRows = tuple[int, np.ndarray, np.ndarray, np.ndarray]  # position in the grid, targets, weights and outputs of rows


def held_rows(
    sums: FeatureSums,
    c: np.ndarray,
    grid: Sequence[Penalties],
    groups: OutputGroups,
    folds: Sequence[np.ndarray] | None = None,
) -> Iterator[HeldRows]:
    """Yield the outputs at held-out rows for every pair of penalties of the grid, block by block.

    Parameters
    ----------
    sums : FeatureSums
        The sums over rows of a design.
    c : array of shape (m,)
        Weights of the views.
    grid : list of Penalties
        Pairs of penalties.
    groups : list of pairs
        Eigenvalues of the output kernel with their eigenvectors, or None for the outputs themselves.
    folds : list of array of int, optional
        Labeled rows that are hidden together, by their positions among the labeled rows. By default, one at a time.
    """
    groups = [group for group in groups if group[0]]
    return _one_at_a_time(sums, c, grid, groups) if folds is None else _by_folds(sums, c, grid, groups, folds)


# -- leave-one-out
class _LeftVectors(NamedTuple):
    """What the residuals at hidden rows need, for penalties of equal ratios."""

    values: np.ndarray  # β
    vectors: Any  # (q, r): the left vectors are √u ν φ times these
    turned: np.ndarray  # (r, P): the targets along the left vectors

    @classmethod
    def of(cls, sums: FeatureSums, ratios: tuple[float, float], c: np.ndarray) -> "_LeftVectors":
        L = cholesky(couple(sums.design, Penalties(1.0, *ratios), sums=sums).R)  # type: ignore[attr-defined]
        X, Z = sums.of(c).data(c)
        d = _spread(sums, c)
        half = forward(L, d * X * d.T)
        values, Q = drop_null_space(*eigh_positive(forward(L, half.T + 0)))
        inverse = forward(L, like(np.eye(X.shape[0], order="F"), X))
        roots = np.sqrt(np.maximum(values, np.finfo(float).tiny))
        vectors = d * multiply(inverse.T, Q) / like(roots[None, :], X)
        return cls(values, vectors, to_numpy(multiply(vectors.T, Z)))

    def at(self, rows: FeatureRows, factors: Any, labeled: int) -> HeldOutSpectrum:
        """Return the residuals of some rows for any α; `factors` are √u ν of the rows."""
        V = factors * multiply(rows.Phi, self.vectors)
        Y = np.sqrt(rows.u)[:, None] * rows.Y
        return HeldOutSpectrum(self.values, V, Y, self.turned, reaches_all=len(self.values) == labeled)


def _one_at_a_time(
    sums: FeatureSums, c: np.ndarray, grid: Sequence[Penalties], groups: OutputGroups
) -> Iterator[HeldRows]:
    known = {k: [penalty_ratios(penalties, value) for value, _ in groups] for k, penalties in enumerate(grid)}
    most = max(_KEPT // sum(sums.design.sizes) ** 2, 1)
    for part in _parts(known, most):
        left: dict[Any, _LeftVectors] = {}
        for k in part:
            for ratios, key in known[k]:
                if key not in left:
                    left[key] = _LeftVectors.of(sums, ratios, c)
        for _, rows in _labeled_rows(sums):
            factors = like((row_scale(rows.present, c) * np.sqrt(rows.u))[:, None], rows.Phi)
            held = {key: own.at(rows, factors, sums.moments.labeled) for key, own in left.items()}
            for k in part:
                outputs = np.zeros_like(rows.Y)
                for (_, key), (value, vectors) in zip(known[k], groups, strict=True):
                    rho = np.full(rows.Y.shape[1], grid[k].alpha / value)
                    residuals = held[key].ridge(rho) / np.sqrt(rows.u)[:, None]
                    outputs += turn_back(
                        rows.Y - residuals if vectors is None else (rows.Y - residuals) @ vectors, vectors
                    )
                yield k, rows.Y, rows.u, outputs


def _parts(known: dict[int, list[Any]], most: int) -> Iterator[list[int]]:
    """Yield positions of the grid that together need at most so many decompositions, or one position."""
    part: list[int] = []
    keys: set[Any] = set()
    for k, pairs in known.items():
        own = {key for _, key in pairs}
        if part and len(keys | own) > most:
            yield part
            part, keys = [], set()
        part, keys = [*part, k], keys | own
    yield part


# -- folds
def _by_folds(
    sums: FeatureSums, c: np.ndarray, grid: Sequence[Penalties], groups: OutputGroups, folds: Sequence[np.ndarray]
) -> Iterator[HeldRows]:
    q = sum(sums.design.sizes)
    size = max(_KEPT // q**2, 1)
    folds = [np.sort(fold) for fold in folds]
    for some in (folds[a : a + size] for a in range(0, len(folds), size)):
        left = _sums_without(sums, c, some)
        each = max(_KEPT // (len(some) * q * sums.design.n_outputs), 1)  # pairs whose coefficients are kept
        for a in range(0, len(grid), each):
            part = range(a, min(a + each, len(grid)))
            W = {k: _fold_coefficients(sums, c, grid[k], groups, left) for k in part}
            for start, rows in _labeled_rows(sums):
                nu = like(row_scale(rows.present, c)[:, None], rows.Phi)
                for f, fold in enumerate(some):
                    here = _within(fold, start, len(rows.u))
                    if not len(here):
                        continue
                    Phi = take_rows(nu * rows.Phi, here) if len(here) < len(rows.u) else nu * rows.Phi
                    for k in part:
                        yield k, rows.Y[here], rows.u[here], to_numpy(multiply(Phi, W[k][f]))


def _within(fold: np.ndarray, start: int, n: int) -> np.ndarray:
    """Return which of n rows from `start` on a fold has."""
    first, last = np.searchsorted(fold, [start, start + n])
    return fold[first:last] - start


def _sums_without(sums: FeatureSums, c: np.ndarray, folds: Sequence[np.ndarray]) -> list[tuple[Any, Any]]:
    """Return D_c (X - X_F) D_c and D_c (Z - Z_F) for each fold F, from one pass over the rows."""
    X, Z = sums.of(c).data(c)
    hidden = [[0 * X, 0 * Z] for _ in folds]
    for start, rows in _labeled_rows(sums):
        root = np.sqrt(rows.u)
        factors = like((row_scale(rows.present, c) * root)[:, None], rows.Phi)
        for own, fold in zip(hidden, folds, strict=True):
            here = _within(fold, start, len(rows.u))
            if len(here):
                M = take_rows(factors * rows.Phi, here)
                own[0] = add_gram(own[0], M)
                own[1] = add_product_transposed(own[1], M, like(root[here, None] * rows.Y[here], M))
    d = _spread(sums, c)
    return [(d * (X - mirror(hidden_X)) * d.T, d * (Z - hidden_Z)) for hidden_X, hidden_Z in hidden]


def _fold_coefficients(
    sums: FeatureSums, c: np.ndarray, penalties: Penalties, groups: OutputGroups, left: Sequence[tuple[Any, Any]]
) -> list[Any]:
    """Return D_c W without the targets of each fold."""
    found = [0 * Z for _, Z in left]
    for value, vectors in groups:
        R = couple(sums.design, penalties, value, sums=sums).R  # type: ignore[attr-defined]
        for f, (X, Z) in enumerate(left):
            found[f] = found[f] + turn_back(solve(cholesky(R + X), turned(Z, vectors)), vectors)
    d = _spread(sums, c)
    return [d * W for W in found]


# -- rows
def _spread(sums: FeatureSums, c: np.ndarray) -> Any:
    """Return the weights of the views as a column with a row for each feature."""
    some = next(iter(sums.moments.parts.values())).X
    return like(np.repeat(c, sums.design.sizes)[:, None], some)


def _labeled_rows(sums: FeatureSums) -> Iterator[tuple[int, FeatureRows]]:
    """Yield the labeled rows block by block, with the position of the first one among the labeled rows."""
    start = 0
    for rows in sums.design.rows():
        shown = np.flatnonzero(rows.u)
        if len(shown) < len(rows.u):
            rows = FeatureRows(take_rows(rows.Phi, shown), *(part[shown] for part in rows[1:]))
        if len(shown):
            yield start, rows
        start += len(shown)

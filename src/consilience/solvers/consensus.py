"""Kernel ridge regression that has not seen a sample, a group or a fold, for every penalty, without any refit.

A base model minimizes, for weights s of the samples,

    Σ_i s_i ‖y_i - f(x_i) - b‖² + λ ‖f‖².

With K_c its Gram matrix minus the means of the samples, M = s½ K_c s½ and H = (M + λI)⁻¹, the residuals of the fit are
r = B s½ y with B = λH - s½s½'/Σs, all multiplied by s½. At samples g that the model has not seen its residuals are
e_g = B_gg⁻¹ r_g. The model without g is the fit to targets in which its own predictions replace y_g, so that its
residuals are r - B_:g e_g. By the Schur complement, B_hh - B_hg B_gg⁻¹ B_gh takes the place of B for samples h outside
of g: within each fold, penalties and stacking weights are chosen by predictions of samples that are held out again.
Over p features everything comes from p x p matrices.

Matrices may be on a device, and stay there. Targets, weights and what is predicted at the samples are NumPy's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._backend import is_device_array, like, namespace, take_rows, to_numpy
from .linalg import (
    add_product,
    add_to_diagonal,
    cholesky,
    column_norms,
    diagonal_of,
    eigh,
    gram_of,
    inverse_factor,
    multiply,
    solve_each,
)

#: Penalties that are tried, in units of the mean eigenvalue.
PENALTIES = np.logspace(-5, 3, 17)
#: Samples whose models choose the penalty together.
CHOOSING = 400
#: Samples up to which each fold has penalties of its own by samples that are held out within it.
NESTED_PENALTIES = 100
#: Samples up to which each fold has stacking weights of its own by samples that are held out within it.
NESTED = 600


@dataclass(frozen=True)
class Sets:
    """Which samples are held out together."""

    units: np.ndarray | None  # (n,) number of the unit of each sample; None for single samples
    folds: np.ndarray  # (n,) number of its fold, a set of units
    n_folds: int
    repeated: bool = False  # whether units are equal samples, which count once

    def of(self, rows: np.ndarray) -> "Sets":
        """Return the same for some samples."""
        return replace(self, units=None if self.units is None else self.units[rows], folds=self.folds[rows])

    def n_samples(self) -> int:
        """Return the number of samples, equal ones counted once."""
        return len(np.unique(self.units)) if self.repeated and self.units is not None else len(self.folds)

    def without(self, fold: int) -> np.ndarray:
        """Return the samples outside of a fold; none if they are of one unit, so that none can be held out."""
        rest = np.flatnonzero(self.folds != fold)
        one = len(rest) < 2 or (self.units is not None and np.ptp(self.units[rest]) == 0)
        return rest[:0] if one else rest

    def sizes(self) -> np.ndarray:
        """Return the number of samples in the unit of each sample."""
        if self.units is None:
            return np.ones(len(self.folds))
        return np.bincount(self.units)[self.units].astype(np.float64)


class BaseFit(NamedTuple):
    """One base model at its best penalty, and the models without each of K folds."""

    penalty: float
    held: np.ndarray  # (n, P): predictions of samples by the model without their unit
    by_fold: np.ndarray  # (n, P): by the model without their fold; NaN if nothing would be left
    inner: np.ndarray | None  # (K, n, P): by the model without a fold and their unit; NaN inside of the fold
    coefficients: Any  # (n or p, (1 + K) P): of the whole and of each fold, where the matrix is
    intercept: np.ndarray  # ((1 + K) P,)


class _Left(NamedTuple):
    """What smoothers leave: B = I - S and residuals, perhaps for several penalties along a first axis."""

    r: np.ndarray  # (..., n, P)
    diagonal: np.ndarray  # (..., n)
    block: Callable[[np.ndarray, np.ndarray], np.ndarray]  # B of some rows and columns
    solve: Callable[[np.ndarray, np.ndarray], np.ndarray]  # B_gg⁻¹ times a matrix

    def held_out(self, units: np.ndarray | None) -> np.ndarray:
        """Return the residuals of each sample by the model without its unit."""
        e = self.r / np.where(self.diagonal > 1e-14, self.diagonal, np.inf)[..., None]
        for unit in _several(units):
            e[..., unit, :] = self.solve(unit, self.r[..., unit, :])
        return e

    def without(self, g: np.ndarray, rest: np.ndarray, e: np.ndarray) -> "_Left":
        """Return the same for the model without the samples g, whose residuals are e."""
        side = self.block(g, rest)
        across, solved = side.swapaxes(-1, -2), self.solve(g, side)

        def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return self.block(rest[a], rest[b]) - across[..., a, :] @ solved[..., b]

        diagonal = self.diagonal[..., rest] - np.sum(side * solved, axis=-2)
        return _Left(self.r[..., rest, :] - across @ e, diagonal, block, _solver(block))


def _several(units: np.ndarray | None) -> Iterator[np.ndarray]:
    """Yield the samples of each unit of several samples."""
    if units is not None:
        order = np.argsort(units, kind="stable")
        for unit in np.split(order, np.flatnonzero(np.diff(units[order])) + 1):
            if len(unit) > 1:
                yield unit


def _solver(block: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda g, right: np.asarray(solve_each(block(g, g), right))


def _of_matrix(B: np.ndarray, r: np.ndarray) -> _Left:
    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return B[..., a[:, None], b]

    return _Left(r, np.diagonal(B, axis1=-2, axis2=-1), block, _solver(block))


class _Folds:
    """Collects the models without each fold."""

    def __init__(self, Y: np.ndarray, root: np.ndarray, sets: Sets):
        self.Y, self.root, self.sets = Y, root, sets
        K, (n, P) = sets.n_folds, Y.shape
        self.by_fold = np.full((n, P), np.nan)
        self.inner = np.full((K, n, P), np.nan) if n <= NESTED else None
        self.targets = np.repeat(Y[None], K + 1, axis=0)  # with predictions of its own in place of those of a fold

    def add(self, k: int, left: _Left) -> tuple[np.ndarray, np.ndarray]:
        """Leave fold k out; return its samples and their residuals."""
        g, rest = np.flatnonzero(self.sets.folds == k), self.sets.without(k)
        if not len(rest):
            return g[:0], self.Y[:0]
        e = left.solve(g, left.r[g])
        self.by_fold[g] = self.targets[k + 1, g] = self.Y[g] - e / self.root[g]
        if self.inner is not None:
            residuals = left.without(g, rest, e).held_out(self.sets.of(rest).units)
            self.inner[k, rest] = self.Y[rest] - residuals / self.root[rest]
        return g, e


def _smallest(errors: np.ndarray) -> int:
    """Return the penalty with the smallest error; the largest of those that are equal up to rounding."""
    errors = np.where(np.isfinite(errors), errors, np.inf)
    return int(np.flatnonzero(errors <= errors.min() * (1 + 1e-6))[-1])


def _choices(squares: np.ndarray, sets: Sets) -> list[int]:
    """Return the best penalty of all samples, and of those outside of each fold, by squared errors (penalties, n)."""
    rests = [sets.without(k) for k in range(sets.n_folds)]
    return [_smallest(squares.sum(axis=1)), *(_smallest(squares[:, rest].sum(axis=1)) for rest in rests)]


# -- Gram matrices
def fit_base(K: Any, Y: np.ndarray, s: np.ndarray, sets: Sets) -> BaseFit | None:
    """Fit one base model with the penalty of the smallest held-out error; f(x) = Σ_i k(x, x_i) a_i + intercept.

    The fit and its held-out predictions are in double precision. Nothing is returned if the kernel is constant.
    """
    M, means = _centered(K, s)
    n = M.shape[0]
    unit = float(diagonal_of(M).sum()) / sets.n_samples()
    if n < 2 or not unit > 1e-14 * float(np.abs(diagonal_of(K)).max(initial=0.0)):
        return None
    root = np.sqrt(s)[:, None]
    scaled = root * (Y - s @ Y / s.sum())
    grid = unit * PENALTIES
    choices = _penalties(M, scaled, root, grid, sets)
    folds, held = _Folds(Y, root, sets), Y
    solved = np.empty((len(choices), *Y.shape))
    for choice in sorted(set(choices), key=lambda c: c == choices[0]):  # the last one may use M up
        penalty, last = float(grid[choice]), choice == choices[0]
        left, times = _by_factor(M if last else M + 0.0, penalty, scaled, root)
        if last:
            held = Y - left.held_out(sets.units) / root
            solved[0] = left.r / penalty
        for k in np.flatnonzero(np.array(choices[1:]) == choice).tolist():
            solved[k + 1] = (left.r - times(*folds.add(k, left))) / penalty
    # M s½ = 0, so that nothing of it is along s½ but rounding, divided by a small penalty
    solved -= root * (root.T @ solved / s.sum())
    coefficients = np.hstack(list(root * solved))  # their sums are 0
    intercept = np.concatenate(list(s @ folds.targets / s.sum())) - means @ coefficients
    return BaseFit(float(grid[choices[0]]), held, folds.by_fold, folds.inner, like(coefficients, K), intercept)


def _centered(K: Any, s: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return s½ K_c s½ as a new array, and the means of the rows of K by weight; these are NumPy's in any case."""
    means = multiply(K, like(s[:, None], K))[:, 0] / float(s.sum())
    on_host = to_numpy(means)
    M = K - means
    M -= means[:, None] - float(on_host @ s / s.sum())
    if np.ptp(s):
        root = like(np.sqrt(s), K)
        M *= root
        M *= root[:, None]
    elif s[0] != 1.0:
        M *= float(s[0])
    # symmetric: the transpose is M in Fortran's order
    return (M.T if not is_device_array(M) and M.flags.c_contiguous else M), on_host


def held_out_means(Y: np.ndarray, s: np.ndarray, units: np.ndarray | None) -> np.ndarray:
    """Return at each sample the weighted mean of the targets that are not of its unit; 0 where there are none."""
    total, whole = s.sum(), s @ Y
    rest, sums = (total - s)[:, None], whole - s[:, None] * Y
    for unit in _several(units):
        rest[unit], sums[unit] = total - s[unit].sum(), whole - s[unit] @ Y[unit]
    return np.divide(sums, rest, out=np.zeros_like(Y), where=rest > 1e-12 * total)


class _Spectrum(NamedTuple):
    """B for each penalty of a grid by the eigenvectors V of M: V D V' with D = λ / (eigenvalues + λ).

    Nothing of V is along s½, where M is 0: removing it from V keeps the digits that the difference of V D V' and
    s½s½'/Σs would lose.
    """

    V: np.ndarray
    D: np.ndarray  # (penalties, n)
    r: np.ndarray  # (penalties, n, P)

    def matrices(self) -> np.ndarray:
        """Return B for each penalty, (penalties, n, n)."""
        return (self.V * self.D[:, None, :]) @ self.V.T


def _spectrum(M: Any, scaled: np.ndarray, root: np.ndarray, grid: np.ndarray) -> _Spectrum:
    """Return the spectrum of a matrix of at most a few hundred rows.

    In double precision: small penalties divide small residuals by small numbers, whose rounding would choose.
    """
    values, vectors = eigh(M if is_device_array(M) else np.ascontiguousarray(M), driver="threads")
    values, V = to_numpy(values), to_numpy(vectors)
    V = V - root @ (root.T @ V) / np.sum(root**2)
    D = grid[:, None] / (np.maximum(values, 0)[None] + grid[:, None])
    return _Spectrum(V, D, V @ (D[:, :, None] * multiply(V.T, scaled)))


def _squares(spectrum: _Spectrum, units: np.ndarray | None) -> np.ndarray:
    """Return the weighted squared held-out errors, (penalties, n)."""
    V, D, r = spectrum

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (V[a] * D[:, None, :]) @ V[b].T

    left = _Left(r, np.maximum(multiply(D, (V**2).T), 2e-14), block, _solver(block))
    return np.sum(left.held_out(units) ** 2, axis=2)


def _penalties(M: Any, scaled: np.ndarray, root: np.ndarray, grid: np.ndarray, sets: Sets) -> list[int]:
    """Return the best penalty of all samples, and of those outside of each fold.

    Many samples are divided into blocks with models of their own, and the errors of all samples are added: the penalty
    is the ratio of two variances, of noise and function, so that it does not depend on the number of samples.
    """
    n = M.shape[0]
    n_blocks = -(-n // CHOOSING)
    squares = np.empty((len(grid), n))
    for first in range(n_blocks):
        rows = np.arange(first, n, n_blocks)
        spectrum = _spectrum(M[first::n_blocks, first::n_blocks], scaled[rows], root[rows], grid)
        squares[:, rows] = _squares(spectrum, sets.of(rows).units)
    choices = _choices(squares, sets)
    nested = n_blocks == 1 and sets.n_samples() <= NESTED_PENALTIES
    return [choices[0], *_nested_choices(spectrum, sets, choices[1:])] if nested else choices


def _nested_choices(spectrum: _Spectrum, sets: Sets, choices: list[int]) -> list[int]:
    """Return the best penalty outside of each fold, by models that have seen neither the fold nor the sample."""
    left = _of_matrix(spectrum.matrices(), spectrum.r)
    for k in range(sets.n_folds):
        g, rest = np.flatnonzero(sets.folds == k), sets.without(k)
        if len(g) and len(rest):
            remaining = left.without(g, rest, left.solve(g, left.r[:, g]))
            choices[k] = _smallest(np.sum(remaining.held_out(sets.of(rest).units) ** 2, axis=(1, 2)))
    return choices


def _by_factor(
    M: Any, penalty: float, scaled: np.ndarray, root: np.ndarray
) -> tuple[_Left, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """Return what the smoother leaves by M + λI = LL', and the product of B with a matrix; M is used up.

    B = λW'W with W = (I - pp') L⁻¹ and p = L⁻¹ s½ / ‖L⁻¹ s½‖. Products of a factor keep the digits that the difference
    of λH and s½s½'/Σs would lose.
    """
    W = inverse_factor(cholesky(add_to_diagonal(M, penalty)))
    p = float(np.sqrt(penalty)) * multiply(W, like(root, W)) / float(np.sqrt((root**2).sum()))
    if is_device_array(W):
        W -= multiply(p, multiply(p.T, W))
    else:
        add_product(W, -p, multiply(p.T, W))
    r = penalty * to_numpy(multiply(W.T, multiply(W, like(scaled, W))))
    if len(r) <= NESTED:
        B = penalty * to_numpy(gram_of(W))
        return _of_matrix(B, r), lambda g, e: multiply(B[:, g], e)
    columns = W.T  # a row for each sample

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(penalty * to_numpy(multiply(take_rows(columns, a), take_rows(columns, b).T)))

    def times(g: np.ndarray, e: np.ndarray) -> np.ndarray:
        inside = multiply(take_rows(columns, g).T, like(e, W))
        return np.asarray(penalty * to_numpy(multiply(columns, inside)))

    return _Left(r, penalty * column_norms(W) ** 2, block, _solver(block)), times


# -- features
def fit_features(F: Any, Y: np.ndarray, s: np.ndarray, sets: Sets) -> BaseFit | None:
    """Fit one base model over features (n, p): f(x) = φ(x)'w + intercept, with the best penalty."""
    means = like(s, F) @ F / float(s.sum())
    root = np.sqrt(s)[:, None]
    centered = (F - means) * like(root, F)
    values, vectors = eigh(gram_of(centered), driver="evd")
    values = to_numpy(values)
    positive = values > max([0.0, *values[-1:]]) * 1e-12  # a kernel of zeros has no features at all
    if not positive.any():
        return None
    first = int(np.argmax(positive))  # the values ascend
    values, vectors = values[first:], vectors[:, first:]
    basis = multiply(centered, vectors)  # s½ φ_c(x_i) in the axes of the covariance
    scaled = root * (Y - s @ Y / s.sum())
    turned = multiply(basis.T, like(scaled, F))
    grid = float(values.sum()) / sets.n_samples() * PENALTIES

    def left_of(penalty: float) -> _Left:
        return _of_features(basis, values + penalty, turned, scaled, root)

    squares = np.stack([np.sum(left_of(penalty).held_out(sets.units) ** 2, axis=1) for penalty in grid.tolist()])
    choices = _choices(squares, sets)
    folds = _Folds(Y, root, sets)
    for choice in sorted(set(choices)):
        left = left_of(float(grid[choice]))
        if choice == choices[0]:
            held = Y - left.held_out(sets.units) / root
        for k in np.flatnonzero(np.array(choices[1:]) == choice).tolist():
            folds.add(k, left)
    targets = like(np.hstack(list(root * folds.targets)), F)
    shrunk = values[:, None] + np.repeat(grid[choices], Y.shape[1])
    w = multiply(vectors, multiply(basis.T, targets) / like(shrunk, F))
    intercept = np.concatenate(list(s @ folds.targets / s.sum())) - to_numpy(means) @ to_numpy(w)
    return BaseFit(float(grid[choices[0]]), held, folds.by_fold, folds.inner, w, intercept)


def _of_features(basis: Any, shrunk: np.ndarray, turned: Any, scaled: np.ndarray, root: np.ndarray) -> _Left:
    """Return what a smoother over features leaves: B = I - EE'; `shrunk` are eigenvalues plus penalty."""
    xp = namespace(basis)
    r = scaled - to_numpy(multiply(basis, turned / like(shrunk[:, None], basis)))
    ones = like(root / np.sqrt(np.sum(root**2)), basis)
    E = xp.concat([basis / like(np.sqrt(shrunk), basis), ones], axis=1)  # the features and the intercept

    def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a[:, None] == b) - to_numpy(multiply(take_rows(E, a), take_rows(E, b).T))

    def solve(g: np.ndarray, right: np.ndarray) -> np.ndarray:
        rows = take_rows(E, g)
        if len(g) <= E.shape[1]:  # by the lemma of Woodbury the smaller of two systems is solved
            return np.asarray(solve_each(block(g, g), right))
        inside = np.eye(E.shape[1]) - to_numpy(gram_of(rows))
        change = solve_each(inside, to_numpy(multiply(rows.T, like(right, E))))
        return right + to_numpy(multiply(rows, like(change, E)))

    return _Left(r, 1.0 - to_numpy(xp.sum(E**2, axis=1)), block, solve)

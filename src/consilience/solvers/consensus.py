"""Kernel ridge regression that has not seen a sample, a group or a fold, for every penalty, without any refit.

A base model minimizes, for weights s of the samples,

    Σ_i s_i ‖y_i - f(x_i) - b‖² + λ ‖f‖².

With K_c its Gram matrix less the mean of the samples, M = s½ K_c s½ and H = (M + λI)⁻¹, the residuals of the fit are
r = λ s^(-½) H s½ (y - ȳ), and I - S = λH - s½s½'/Σs is what the smoother S leaves, seen through s½. At samples g that
the model has not seen, its residuals are (I - S_gg)⁻¹ r_g; for one sample r_i / (1 - S_ii). A model without the samples
g predicts f(x) - s_g(x)' (its residuals there) at x, where s(x) is the smoother's row at x. Over p features everything
comes from p x p matrices.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .linalg import (
    add_to_diagonal,
    cholesky,
    eigh,
    forward,
    gram_of,
    inverse,
    inverse_diagonal,
    multiply,
    qr_r,
    solve,
    solve_general,
)

#: Penalties that are tried, in units of the mean eigenvalue.
PENALTIES = np.logspace(-5, 3, 17)
#: Samples whose models choose the penalty together.
CHOOSING = 400

Folds = Sequence[np.ndarray] | None  # positions that are held out together; None for single samples


class BaseFit(NamedTuple):
    """One base model at its best penalty."""

    penalty: float
    held: np.ndarray  # (n, P): what it predicts at samples that it has not seen
    coefficients: np.ndarray  # (n, P) for a Gram matrix, (p, P) for features
    intercept: np.ndarray  # (P,)


# -- Gram matrices
def fit_base(K: np.ndarray, Y: np.ndarray, s: np.ndarray, folds: Folds = None) -> BaseFit:
    """Fit one base model with the penalty of the smallest held-out error; f(x) = Σ_i k(x, x_i) a_i + intercept.

    The fit and its held-out predictions are in double precision.
    """
    M, means = _centered(K, s)
    unit = float(np.trace(M)) / len(M)
    if len(M) < 2 or not unit > 1e-14 * float(np.abs(K.diagonal()).max(initial=0.0)):  # nothing to learn from
        return _constant(Y, s, folds)
    root = np.sqrt(s)[:, None]
    scaled = root * (Y - s @ Y / s.sum())
    penalty = _chosen_penalty(M, scaled, s, folds, unit)
    factor = cholesky(add_to_diagonal(M, penalty))
    solved = solve(factor, scaled)
    if folds is None:
        rest = penalty * inverse_diagonal(factor) - s / s.sum()  # 1 - S_ii
        held = Y - penalty * solved / (root * np.where(rest > 1e-14, rest, np.inf)[:, None])
    else:
        held = Y - _unseen_by_folds(factor, penalty * solved, penalty, root, folds) / root
    coefficients = root * solved  # their sum is 0, since M s½ = 0
    return BaseFit(penalty, held, coefficients, s @ Y / s.sum() - means @ coefficients)


def _centered(K: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return s½ K_c s½ as a new array, and the means of the rows of K by weight."""
    means = multiply(K, s[:, None])[:, 0] / s.sum()
    M = np.subtract(K, means)
    M -= means[:, None] - float(means @ s / s.sum())
    if np.ptp(s):
        root = np.sqrt(s)
        M *= root
        M *= root[:, None]
    elif s[0] != 1.0:
        M *= s[0]
    return (M.T if M.flags.c_contiguous else M), means  # symmetric: the transpose is M in Fortran's order


def _constant(Y: np.ndarray, s: np.ndarray, folds: Folds) -> BaseFit:
    """Return the mean as a model: at each sample the mean of those that are not held out with it."""
    return BaseFit(np.inf, held_out_means(Y, s, folds), np.zeros_like(Y), s @ Y / s.sum())


def held_out_means(Y: np.ndarray, s: np.ndarray, folds: Folds) -> np.ndarray:
    """Return at each sample the weighted mean of the targets that are not held out with it; 0 where there are none."""
    total, whole = s.sum(), s @ Y
    if folds is None:
        rest = (total - s)[:, None]
        return np.divide(whole - s[:, None] * Y, rest, out=np.zeros_like(Y), where=rest > 1e-12 * total)
    held = np.zeros_like(Y)
    for fold in folds:
        rest = total - s[fold].sum()
        if rest > 1e-12 * total:
            held[fold] = (whole - s[fold] @ Y[fold]) / rest
    return held


def _chosen_penalty(M: np.ndarray, scaled: np.ndarray, s: np.ndarray, folds: Folds, unit: float) -> float:
    """Return the penalty with the smallest weighted held-out error; the largest of equal ones.

    Many samples are divided into blocks, each with models of its own, and the errors of all samples are added. The
    penalty is the ratio of two variances, of noise and function, so that it does not depend on the number of samples.
    """
    n, grid = len(M), unit * PENALTIES
    n_blocks = -(-n // CHOOSING)
    errors = np.zeros(len(grid))
    for first in range(n_blocks):
        rows = np.arange(first, n, n_blocks)
        part = M if n_blocks == 1 else M[np.ix_(rows, rows)]
        errors += _errors(part, scaled[rows], s[rows], _folds_among(folds, rows, n), grid)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    return float(grid[len(grid) - 1 - int(np.argmin(errors[::-1]))])


def _folds_among(folds: Folds, rows: np.ndarray, n: int) -> Folds:
    """Return the folds as positions among some rows."""
    if folds is None:
        return None
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    return [here for fold in folds if len(here := place[fold][place[fold] >= 0])]


def _errors(M: np.ndarray, scaled: np.ndarray, s: np.ndarray, folds: Folds, grid: np.ndarray) -> np.ndarray:
    """Return the weighted squared held-out error for each penalty; single precision is enough to compare them."""
    values, vectors = eigh(np.ascontiguousarray(M), driver="threads")
    vectors = vectors.astype(np.float32)
    left = np.asarray(grid[:, None] / (np.maximum(values, 0)[None] + grid[:, None]), dtype=np.float32)  # (penalties, n)
    turned = multiply(vectors.T, scaled.astype(np.float32))
    root = np.sqrt(s).astype(np.float32)[:, None]
    own = multiply(vectors**2, left.T) - (s / s.sum())[:, None] if folds is None else None
    n, P = turned.shape
    kept = (left.T[:, :, None] * turned[:, None, :]).reshape(n, -1)
    r = multiply(vectors, kept).reshape(n, len(grid), P)  # s½ times the residuals, for each penalty
    if own is not None:
        return np.sum((r / np.maximum(own, 1e-6)[:, :, None]).astype(np.float64) ** 2, axis=(0, 2))
    errors = np.zeros(len(grid))
    for k in range(len(grid)):
        for fold in folds or ():
            error = _solved(vectors[fold], left[k], root[fold], s.sum(), r[fold, k])
            errors[k] += np.sum(error.astype(np.float64) ** 2)
    return errors


def _solved(vectors: np.ndarray, kept: np.ndarray, root: np.ndarray, total: float, r: np.ndarray) -> np.ndarray:
    """Return (I - S_gg)⁻¹ r_g for one fold."""
    return solve_general(multiply(vectors * kept, vectors.T) - multiply(root, root.T) / total, r)


def _unseen_by_folds(
    L: np.ndarray, r: np.ndarray, penalty: float, root: np.ndarray, folds: Sequence[np.ndarray]
) -> np.ndarray:
    """Return s½ times the residuals at samples that the model has not seen, for M + λI = LL' and s½ times residuals r.

    I - S_gg = V'V with V = (I - pp') √λ L⁻¹_{:g} and p = √λ L⁻¹ s½/√Σs, a vector of length 1. The factor of V keeps the
    digits that V'V would lose for small penalties.
    """
    p = np.sqrt(penalty) * forward(L, root) / np.sqrt(float((root**2).sum()))
    out = np.empty_like(r)
    for fold in folds:
        columns = np.zeros((len(L), len(fold)), order="F")
        columns[fold, np.arange(len(fold))] = np.sqrt(penalty)
        W = forward(L, columns)
        R = qr_r(W - multiply(p, multiply(p.T, W)))[: len(fold)]
        out[fold] = solve_general(R, solve_general(R.T, r[fold]))
    return out


class Smoother(NamedTuple):
    """A fitted base model as a linear map of the targets."""

    A: np.ndarray | None  # s½ H s½; None for the mean as a model
    means: np.ndarray  # of the rows of K
    share: np.ndarray  # s / Σs

    def rows(self, K_new: np.ndarray) -> np.ndarray:
        """Return s(x) at new samples, (n_new, n): the prediction at x is s(x)'Y."""
        if self.A is None:
            return np.tile(self.share, (len(K_new), 1))
        grand = float(self.means @ self.share)
        new = K_new - self.means - (multiply(K_new, self.share[:, None]) - grand)
        return multiply(new, self.A) + self.share


def smoother(K: np.ndarray, s: np.ndarray, penalty: float) -> Smoother:
    """Return the smoother of a base model with this penalty."""
    M, means = _centered(K, s)
    if not np.isfinite(penalty):
        return Smoother(None, means, s / s.sum())
    A = inverse(add_to_diagonal(M, penalty))
    root = np.sqrt(s)
    A *= root
    A *= root[:, None]
    return Smoother(A, means, s / s.sum())


# -- features
def fit_features(F: np.ndarray, Y: np.ndarray, s: np.ndarray, folds: Folds = None) -> BaseFit:
    """Fit one base model over features (n, p): f(x) = φ(x)'w + intercept, with the best penalty."""
    means = s @ F / s.sum()
    root = np.sqrt(s)[:, None]
    centered = (F - means) * root
    values, vectors = eigh(gram_of(centered), driver="evd")
    kept = values > max(values[-1], 0.0) * 1e-12
    if not kept.any():
        fit = _constant(Y, s, folds)
        return fit._replace(coefficients=np.zeros((F.shape[1], Y.shape[1])))
    values, vectors = values[kept], vectors[:, kept]
    basis = multiply(centered, vectors)  # s½ φ_c(x_i) in the axes of the covariance
    scaled = root * (Y - s @ Y / s.sum())
    turned = multiply(basis.T, scaled)
    best: tuple[float, float, np.ndarray] | None = None
    for penalty in float(values.sum()) / len(F) * PENALTIES[::-1]:
        unseen = _unseen_of_features(basis, values + penalty, turned, scaled, root[:, 0], folds)
        error = float(np.sum(unseen**2))
        if np.isfinite(error) and (best is None or error < best[0]):
            best = error, penalty, unseen
    assert best is not None
    _, penalty, unseen = best
    w = multiply(vectors, turned / (values + penalty)[:, None])
    return BaseFit(penalty, Y - unseen / root, w, s @ Y / s.sum() - means @ w)


def _unseen_of_features(
    basis: np.ndarray, shrunk: np.ndarray, turned: np.ndarray, scaled: np.ndarray, root: np.ndarray, folds: Folds
) -> np.ndarray:
    """Return s½ times the residuals at samples that the model has not seen; `shrunk` are eigenvalues plus penalty."""
    r = scaled - multiply(basis, turned / shrunk[:, None])
    total = float(root @ root)
    if folds is None:
        rest = 1.0 - (basis**2) @ (1 / shrunk) - root**2 / total
        return r / np.where(rest > 1e-14, rest, np.inf)[:, None]
    out = np.empty_like(r)
    for fold in folds:
        # the features and the intercept: by the lemma of Woodbury the smaller of two systems is solved
        extended = np.column_stack([basis[fold] / np.sqrt(shrunk), root[fold] / np.sqrt(total)])
        if len(fold) <= extended.shape[1]:
            out[fold] = solve_general(np.eye(len(fold)) - multiply(extended, extended.T), r[fold])
        else:
            inside = np.eye(extended.shape[1]) - gram_of(extended)
            out[fold] = r[fold] + multiply(extended, solve_general(inside, multiply(extended.T, r[fold])))
    return out

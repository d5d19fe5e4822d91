"""Kernel ridge regression that has not seen a sample, a group or a fold, for every penalty, without any refit.

A base model minimizes, for weights s of the samples,

    Σ_i s_i ‖y_i - f(x_i) - b‖² + λ ‖f‖².

With K_c its Gram matrix less the mean of the samples, M = s½ K_c s½ and H = (M + λI)⁻¹, the residuals of the fit are
r = λ s^(-½) H s½ (y - ȳ), and I - S = λH - s½s½'/Σs is what the smoother S leaves, seen through s½. At samples g that
the model has not seen, its residuals are (I - S_gg)⁻¹ r_g; for one sample r_i / (1 - S_ii). A model without the samples
g predicts f(x) - s_g(x)' (its residuals there) at x, where s(x) is the smoother's row at x. Over p features everything
comes from p x p matrices.

Matrices may be on a device, and stay there. Targets, weights and what is predicted at the samples are NumPy's.
"""

from collections.abc import Callable, Iterator, Sequence
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
    forward,
    gram_of,
    inverse,
    inverse_factor,
    multiply,
    qr_r,
    solve,
    solve_each,
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
    coefficients: Any  # (n, P) for a Gram matrix, (p, P) for features; where the matrix is
    intercept: np.ndarray  # (P,)


# -- Gram matrices
def fit_base(K: Any, Y: np.ndarray, s: np.ndarray, folds: Folds = None) -> BaseFit:
    """Fit one base model with the penalty of the smallest held-out error; f(x) = Σ_i k(x, x_i) a_i + intercept.

    The fit and its held-out predictions are in double precision.
    """
    M, means = _centered(K, s)
    n = M.shape[0]
    unit = float(diagonal_of(M).sum()) / n
    if n < 2 or not unit > 1e-14 * float(np.abs(diagonal_of(K)).max(initial=0.0)):  # nothing to learn from
        return _constant(Y, s, folds)
    root = np.sqrt(s)[:, None]
    scaled = root * (Y - s @ Y / s.sum())
    penalty = _chosen_penalty(M, scaled, s, folds, unit)
    factor = cholesky(add_to_diagonal(M, penalty))
    del M  # used up, and on a device not the same memory
    solved = solve(factor, like(scaled, K))
    # M s½ = 0, so that it has no part along s½ but rounding, divided by a small penalty
    solved -= like(root, K) * like(root.T @ to_numpy(solved) / s.sum(), K)
    coefficients = like(root, K) * solved  # their sum is 0
    intercept = s @ Y / s.sum() - means @ to_numpy(coefficients)
    if folds is None:
        rest = _left_alone(factor, penalty, root)
        held = Y - penalty * to_numpy(solved) / (root * np.where(rest > 1e-14, rest, np.inf)[:, None])
    else:
        held = Y - to_numpy(_unseen_by_folds(factor, penalty * solved, penalty, root, folds)) / root
    return BaseFit(penalty, held, coefficients, intercept)


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


def _chosen_penalty(M: Any, scaled: np.ndarray, s: np.ndarray, folds: Folds, unit: float) -> float:
    """Return the penalty with the smallest weighted held-out error; the largest of equal ones.

    Many samples are divided into blocks, each with models of its own, and the errors of all samples are added. The
    penalty is the ratio of two variances, of noise and function, so that it does not depend on the number of samples.
    """
    n, grid = M.shape[0], unit * PENALTIES
    n_blocks = -(-n // CHOOSING)
    errors = np.zeros(len(grid))
    for first in range(n_blocks):
        rows = np.arange(first, n, n_blocks)
        part = M if n_blocks == 1 else M[first::n_blocks, first::n_blocks]
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


def _errors(M: Any, scaled: np.ndarray, s: np.ndarray, folds: Folds, grid: np.ndarray) -> np.ndarray:
    """Return the weighted squared held-out error for each penalty.

    In double precision: small penalties divide small residuals by small numbers, whose rounding would choose.
    """
    values, vectors = eigh(M if is_device_array(M) else np.ascontiguousarray(M), driver="threads")
    xp = namespace(vectors)
    left = like(grid[:, None] / (np.maximum(to_numpy(values), 0)[None] + grid[:, None]), vectors)  # (penalties, n)
    turned = multiply(vectors.T, like(scaled, vectors))
    n, P = turned.shape
    kept = xp.reshape(left.T[:, :, None] * turned[:, None, :], (n, -1))
    r = xp.reshape(multiply(vectors, kept), (n, len(grid), P))  # s½ times the residuals, for each penalty
    if folds is None:
        own = multiply(vectors**2, left.T) - like((s / s.sum())[:, None], vectors)
        own = xp.maximum(own, like(np.full((1, 1), 1e-14), own))
        return to_numpy(xp.sum((r / own[:, :, None]) ** 2, axis=(0, 2)))
    root = like(np.sqrt(s)[:, None], vectors)
    if is_device_array(M):
        unseen = _unseen_by_penalty(vectors, left, root, float(s.sum()), r, folds)
        return to_numpy(xp.sum(unseen**2, axis=(0, 2)))
    errors = np.zeros(len(grid))
    for k in range(len(grid)):
        for fold in folds:
            error = _solved(vectors[fold], left[k], root[fold], s.sum(), r[fold, k])
            errors[k] += np.sum(error**2)
    return errors


def _solved(vectors: np.ndarray, kept: np.ndarray, root: np.ndarray, total: float, r: np.ndarray) -> np.ndarray:
    """Return (I - S_gg)⁻¹ r_g for one fold."""
    return solve_general(multiply(vectors * kept, vectors.T) - multiply(root, root.T) / total, r)


def _unseen_by_penalty(vectors: Any, left: Any, root: Any, total: float, r: Any, folds: Sequence[np.ndarray]) -> Any:
    """Return (I - S_gg)⁻¹ r_g for all folds and penalties on a device; r and the result are (n, penalties, P)."""
    xp = namespace(r)
    n, n_penalties, P = r.shape

    def of(same: np.ndarray, own: Any) -> Any:
        V, ends = _of_folds(vectors, same), _of_folds(root, same)
        seen = (V[None, ...] * left[:, None, None, :]) @ xp.matrix_transpose(V)[None, ...]
        matrices = seen - (ends @ xp.matrix_transpose(ends))[None, ...] / total
        by_penalty = xp.permute_dims(xp.reshape(own, (*same.shape, n_penalties, P)), (2, 0, 1, 3))
        return xp.permute_dims(solve_each(matrices, by_penalty), (1, 2, 0, 3))

    return xp.reshape(_by_folds(folds, xp.reshape(r, (n, -1)), of), (n, n_penalties, P))


def _left_alone(L: Any, penalty: float, root: np.ndarray) -> np.ndarray:
    """Return 1 - S_ii for M + λI = LL', which is used up: squared lengths of the columns V of `_unseen_by_folds`."""
    W = inverse_factor(L)
    p = float(np.sqrt(penalty)) * multiply(W, like(root, W)) / float(np.sqrt((root**2).sum()))
    if is_device_array(W):
        W -= multiply(p, multiply(p.T, W))
    else:
        add_product(W, -p, multiply(p.T, W))
    return penalty * column_norms(W) ** 2


def _unseen_by_folds(L: Any, r: Any, penalty: float, root: np.ndarray, folds: Sequence[np.ndarray]) -> Any:
    """Return s½ times the residuals at samples that the model has not seen, for M + λI = LL' and s½ times residuals r.

    I - S_gg = V'V with V = (I - pp') √λ L⁻¹_{:g} and p = √λ L⁻¹ s½/√Σs, a vector of length 1. The factor of V keeps the
    digits that V'V would lose for small penalties.
    """
    scale = float(np.sqrt(penalty))
    p = scale * forward(L, like(root, L)) / float(np.sqrt((root**2).sum()))
    if is_device_array(L):
        xp = namespace(L)
        W = inverse_factor(L)
        W -= multiply(p, multiply(p.T, W))
        V = W.T  # a row for each sample

        def of(same: np.ndarray, own: Any) -> Any:
            R = scale * qr_r(xp.matrix_transpose(_of_folds(V, same)))
            return solve_each(R, solve_each(xp.matrix_transpose(R), own))

        return _by_folds(folds, r, of)
    out = np.empty_like(r)
    for fold in folds:
        columns = np.zeros((len(L), len(fold)), order="F")
        columns[fold, np.arange(len(fold))] = scale
        W = forward(L, columns)
        R = qr_r(W - multiply(p, multiply(p.T, W)))[: len(fold)]
        out[fold] = solve_general(R, solve_general(R.T, r[fold]))
    return out


# -- folds on a device: those of one size at once, because many small steps leave it idle
def _by_folds(folds: Sequence[np.ndarray], r: Any, of: Callable[[np.ndarray, Any], Any]) -> Any:
    """Return `of` (folds of one size, their rows of r) for all samples in their order, as rows of the length of r."""
    xp = namespace(r)
    parts = [(same, xp.reshape(of(same, _of_folds(r, same)), (-1, r.shape[1]))) for same in _of_one_size(folds)]
    order = np.argsort(np.concatenate([same.ravel() for same, _ in parts]))
    return take_rows(xp.concat([own for _, own in parts], axis=0), order)


def _of_one_size(folds: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the folds of each size, (folds, size)."""
    sizes = np.array([len(fold) for fold in folds])
    for size in np.unique(sizes):
        yield np.stack([folds[k] for k in np.flatnonzero(sizes == size).tolist()])


def _of_folds(x: Any, same: np.ndarray) -> Any:
    """Return the rows of folds of one size, (folds, size, columns)."""
    return namespace(x).reshape(take_rows(x, same.ravel()), (*same.shape, x.shape[1]))


class Smoother(NamedTuple):
    """A fitted base model as a linear map of the targets."""

    A: Any  # s½ H s½; None for the mean as a model
    means: np.ndarray  # of the rows of K
    share: np.ndarray  # s / Σs

    def rows(self, K_new: Any) -> Any:
        """Return s(x) at new samples, (n_new, n): the prediction at x is s(x)'Y."""
        share = like(self.share, K_new)
        if self.A is None:
            return namespace(K_new).zeros_like(K_new) + share
        grand = float(self.means @ self.share)
        new = K_new - like(self.means, K_new) - (multiply(K_new, share[:, None]) - grand)
        return multiply(new, self.A) + share


def smoother(K: Any, s: np.ndarray, penalty: float) -> Smoother:
    """Return the smoother of a base model with this penalty."""
    M, means = _centered(K, s)
    if not np.isfinite(penalty):
        return Smoother(None, means, s / s.sum())
    A = inverse(add_to_diagonal(M, penalty))
    root = like(np.sqrt(s), K)
    A *= root
    A *= root[:, None]
    return Smoother(A, means, s / s.sum())


# -- features
def fit_features(F: Any, Y: np.ndarray, s: np.ndarray, folds: Folds = None) -> BaseFit:
    """Fit one base model over features (n, p): f(x) = φ(x)'w + intercept, with the best penalty."""
    means = like(s, F) @ F / float(s.sum())
    root = np.sqrt(s)[:, None]
    centered = (F - means) * like(root, F)
    values, vectors = eigh(gram_of(centered), driver="evd")
    values = to_numpy(values)
    kept = values > max([0.0, *values[-1:]]) * 1e-12  # a kernel of zeros has no features at all
    if not kept.any():
        fit = _constant(Y, s, folds)
        return fit._replace(coefficients=like(np.zeros((F.shape[1], Y.shape[1])), F))
    first = int(np.argmax(kept))  # the values ascend
    values, vectors = values[first:], vectors[:, first:]
    basis = multiply(centered, vectors)  # s½ φ_c(x_i) in the axes of the covariance
    scaled = like(root * (Y - s @ Y / s.sum()), F)
    turned = multiply(basis.T, scaled)
    best: tuple[float, float, Any] | None = None
    for penalty in (float(values.sum()) / F.shape[0] * PENALTIES[::-1]).tolist():
        unseen = _unseen_of_features(basis, values + penalty, turned, scaled, root[:, 0], folds)
        error = float(namespace(unseen).sum(unseen**2))
        if np.isfinite(error) and (best is None or error < best[0]):
            best = error, penalty, unseen
    assert best is not None
    _, penalty, unseen = best
    w = multiply(vectors, turned / like((values + penalty)[:, None], F))
    intercept = s @ Y / s.sum() - to_numpy(means) @ to_numpy(w)
    return BaseFit(penalty, Y - to_numpy(unseen) / root, w, intercept)


def _unseen_of_features(
    basis: Any, shrunk: np.ndarray, turned: Any, scaled: Any, root: np.ndarray, folds: Folds
) -> Any:
    """Return s½ times the residuals at samples that the model has not seen; `shrunk` are eigenvalues plus penalty."""
    xp = namespace(basis)
    r = scaled - multiply(basis, turned / like(shrunk[:, None], basis))
    total = float(root @ root)
    if folds is None:
        rest = 1.0 - (basis**2) @ like(1 / shrunk, basis) - like(root**2 / total, basis)
        return r / xp.where(rest > 1e-14, rest, xp.full_like(rest, np.inf))[:, None]
    columns = [basis / like(np.sqrt(shrunk), basis), like((root / np.sqrt(total))[:, None], basis)]
    extended = xp.concat(columns, axis=1)  # the features and the intercept
    if is_device_array(basis):
        return _by_folds(folds, r, lambda same, own: _left_by_features(_of_folds(extended, same), own))
    out = np.empty_like(r)
    for fold in folds:
        E = extended[fold]
        if len(fold) <= E.shape[1]:  # by the lemma of Woodbury the smaller of two systems is solved
            out[fold] = solve_general(np.eye(len(fold)) - multiply(E, E.T), r[fold])
        else:
            out[fold] = r[fold] + multiply(E, solve_general(np.eye(E.shape[1]) - gram_of(E), multiply(E.T, r[fold])))
    return out


def _left_by_features(E: Any, r: Any) -> Any:
    """Return (I - EE')⁻¹ r for each of several folds on a device, (folds, size, features) and (folds, size, P)."""
    xp = namespace(E)
    turned = xp.matrix_transpose(E)
    few = E.shape[1] <= E.shape[2]  # the smaller of two systems
    inside = E @ turned if few else turned @ E
    rest = xp.eye(inside.shape[1], dtype=E.dtype, device=E.device)[None, ...] - inside
    return solve_each(rest, r) if few else r + E @ solve_each(rest, turned @ r)

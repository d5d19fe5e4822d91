"""Maximum margin regression over features: coordinate steps on the dual, with the operator W kept in memory.

The program is that of `margin` with K = ΦΦ'. A step reads and changes only the rows of W that its label uses: P rows
for labels in R^P, two rows for labels that all have the same inner product.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import few_threads
from .._progress import report_progress
from ._coordinates import Variables, dense_steps, sparse_steps, violations
from .certificates import Solution
from .margin_labels import LabelRows


def squared_lengths(Phi: Any) -> np.ndarray:
    """Return ‖φ_i‖² of each row of a dense or sparse matrix."""
    if sp.issparse(Phi):
        return np.asarray(Phi.multiply(Phi).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", Phi, Phi)


def margin_features(
    Phi: Any,
    labels: LabelRows,
    of: np.ndarray,
    upper: np.ndarray,
    target: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    x0: np.ndarray | None = None,
) -> Solution:
    """Solve the dual over features, dense or in compressed sparse rows; x is (α, g) with g = Qα - target.

    The gap is at most `tol` of the primal objective.
    """
    # Q_ii = ‖y_i‖² ‖φ_i‖²
    norms, n = np.einsum("tk,tk->t", labels.read, labels.write)[of] * squared_lengths(Phi), len(of)
    a = np.zeros(n) if x0 is None else np.clip(x0, 0, upper)
    variables, W = Variables(a, upper, target, norms, of), _operator(Phi, labels, of, a)
    steps, matrix = (sparse_steps, (Phi.data, Phi.indices, Phi.indptr)) if sp.issparse(Phi) else (dense_steps, Phi)
    everyone, violation, rng = np.arange(n), np.empty(n), np.random.default_rng(0)
    active, least, status = everyone.copy(), np.inf, "max_iter"
    for n_iter in range(1, max_iter + 1):
        rng.shuffle(active)
        largest, kept = steps(active, matrix, labels, W, variables, least)
        # a variable held by more than the largest violation of this turn will probably stay at its bound
        active, least = active[:kept], largest if largest > 0 else np.inf
        if n_iter % 4 and len(active) and largest > tol and n_iter < max_iter:
            continue  # the gap needs a product with all features, so it is measured every fourth turn
        g = _scores(Phi, labels, of, W) - target
        gap = float(violations(a, g, upper, violation))
        report_progress(n_iter, gap)
        objective = 0.5 * float(a @ (g + target)) + float(upper @ np.maximum(0, -g))
        if gap <= tol * objective:
            status = "converged"
            break
        if len(active) < n and (not len(active) or violation[active].max() <= 0.1 * violation.max()):
            active, least = everyone.copy(), np.inf  # those left out are now the ones that violate
    return Solution((a, g), gap, n_iter, status, objective=objective, residual=float(violation.max()))


def _operator(Phi: Any, labels: LabelRows, of: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return W = Σ α_i write[c_i] φ_i'."""
    n, R = len(of), labels.n_rows
    if not a.any():
        return np.zeros((R, Phi.shape[1]))
    weights = (a[:, None] * labels.write[of]).ravel()
    place = sp.csr_array(  # (rows of W, samples)
        (weights, (labels.rows[of].ravel(), np.repeat(np.arange(n), labels.rows.shape[1]))), shape=(R, n)
    )
    W = place @ Phi
    return np.ascontiguousarray(W.toarray() if sp.issparse(W) else W, dtype=np.float64)


def _scores(Phi: Any, labels: LabelRows, of: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return the score of each sample for its own label, (Qα)_i."""
    with few_threads(len(of) * W.size, most=100_000_000):
        outputs = np.asarray(Phi @ W.T)
    return np.einsum("ik,ik->i", labels.read[of], outputs[np.arange(len(of))[:, None], labels.rows[of]])

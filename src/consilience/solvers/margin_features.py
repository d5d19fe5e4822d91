"""Maximum margin regression over features: coordinate steps on the dual with the operator W kept in memory.

The same program as in `margin`, K = ΦΦ'. A step reads and changes the rows of W that a label touches: its P rows for
labels in R^P, two for labels with one inner product b between any two, whatever their number: there
<y_c, Wφ> = (a - b) <v_c, φ> + b <Σ v, φ>, v_c the sum of α_i φ_i over class c.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import few_threads
from .._progress import report_progress
from ._coordinates import dense_steps, sparse_steps, violations
from .certificates import Solution


@dataclass
class LabelRows:
    """How labels meet the rows of W: label c reads Σ_k read[c, k] W[rows[c, k]] and writes to the same rows."""

    rows: np.ndarray
    read: np.ndarray
    write: np.ndarray
    n_rows: int

    @classmethod
    def of_vectors(cls, Y: np.ndarray) -> "LabelRows":
        """Labels as vectors: W is the operator itself."""
        T, P = Y.shape
        Y = np.ascontiguousarray(Y, dtype=np.float64)
        return cls(np.tile(np.arange(P), (T, 1)), Y, Y, P)

    @classmethod
    def of_two_values(cls, own: float, b: float, T: int) -> "LabelRows":
        """Labels of squared length `own` with b between any two: W holds the sum of each class, and that of all."""
        rows = np.column_stack([np.arange(T), np.full(T, T)])
        weights = np.tile([own - b, b], (T, 1))
        return cls(rows, weights, np.tile([1.0, 1.0 if b else 0.0], (T, 1)), T + 1)

    def scores(self, W: np.ndarray) -> np.ndarray:
        """The row of each label: its score is this times φ."""
        return np.einsum("tk,tkp->tp", self.read, W[self.rows])


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
    """Solve the dual over features, dense or in compressed sparse rows; x is (α, g, W).

    The gap is at most `tol` of the primal objective.
    """
    sparse = sp.issparse(Phi)
    own = np.einsum("tk,tk->t", labels.read, labels.write)
    squares = np.asarray(Phi.multiply(Phi).sum(axis=1)).ravel() if sparse else np.einsum("ij,ij->i", Phi, Phi)
    norms, n = own[of] * squares, len(of)
    a = np.zeros(n) if x0 is None else np.clip(x0, 0, upper)
    W = _operator(Phi, labels, of, a)
    matrix = (Phi.data, Phi.indices, Phi.indptr) if sparse else (Phi,)
    steps, rng = (sparse_steps if sparse else dense_steps), np.random.default_rng(0)
    everyone, violation = np.arange(n), np.empty(n)
    active, least, status = everyone.copy(), np.inf, "max_iter"
    for n_iter in range(1, max_iter + 1):
        rng.shuffle(active)
        largest, kept = steps(
            active, *matrix, norms, of, labels.rows, labels.read, labels.write, W, target, a, upper, least
        )
        active, least = active[:kept], largest if largest > 0 else np.inf
        if n_iter % 4 and len(active) and largest > tol and n_iter < max_iter:
            continue
        g = _gradient(Phi, labels, of, W) - target
        gap = float(violations(a, g, upper, violation))
        report_progress(n_iter, gap)
        objective = 0.5 * float(a @ (g + target)) + float(upper @ np.maximum(0, -g))
        if gap <= tol * objective:
            status = "converged"
            break
        if len(active) < n and (not len(active) or violation[active].max() <= 0.1 * violation.max()):
            active, least = everyone.copy(), np.inf
    return Solution((a, g, W), gap, n_iter, status, objective=objective, residual=float(violation.max()))


def _operator(Phi: Any, labels: LabelRows, of: np.ndarray, a: np.ndarray) -> np.ndarray:
    """W = Σ α_i write[c_i] φ_i'."""
    n, R = len(of), labels.n_rows
    if not a.any():
        return np.zeros((R, Phi.shape[1]))
    weights = (a[:, None] * labels.write[of]).ravel()
    place = sp.csr_array(
        (weights, (labels.rows[of].ravel(), np.repeat(np.arange(n), labels.rows.shape[1]))), shape=(R, n)
    )
    W = place @ Phi
    return np.ascontiguousarray(W.toarray() if sp.issparse(W) else W, dtype=np.float64)


def _gradient(Phi: Any, labels: LabelRows, of: np.ndarray, W: np.ndarray) -> np.ndarray:
    """The score of each sample for its own label."""
    with few_threads(len(of) * W.size, most=100_000_000):
        outputs = np.asarray(Phi @ W.T)
    return np.einsum("ik,ik->i", labels.read[of], outputs[np.arange(len(of))[:, None], labels.rows[of]])

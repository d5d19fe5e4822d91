"""Metrics over views that are not learned: ridge regression with A, over Gram matrices or features.

    min_G ‖Y - MG‖² + λ tr(G'A†G),   G = A M'B/λ with the residuals B

The diagonal metric is A = I over roots of the kernels. The covariance is A_vw = S/Σs between the samples that both
views have, over Gram matrices, and Φ'SΦ/Σs over features. Any other metric is a matrix over the coefficients.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._backend import like, namespace, take_rows, to_numpy
from .certificates import Solution
from .design_matrix import DesignMatrix, Measured, at_rows, at_rows_and_columns
from .linalg import add_to_diagonal, cholesky, drop_null_space, eigh_positive, eigvalsh, gram_of, multiply, norm, solve
from .moment_matrix import MomentMatrix
from .weights import Evaluation, learn_weights, with_learned


@dataclass
class FixedFit:
    """Coefficients for a fixed metric, and what they amount to."""

    G: Any
    measured: Measured
    penalty: float  # λ tr(G'A†G)
    between: np.ndarray  # Σ_p β_p'B_v A_vw B_w'β_p without w, (m, m)

    @property
    def objective(self) -> float:
        """The loss plus the penalty."""
        return float(self.measured.losses.sum()) + self.penalty

    def dual(self, conjugate: float) -> float:
        """Return the dual value at the best multiple of the residuals."""
        # 2t<B, Y> - t² below is largest at t = <B, Y>/below
        below = float(self.measured.losses.sum()) + conjugate
        return float(self.measured.products.sum()) ** 2 / below if below else 0.0


class FixedMetric:
    """Ridge regression with a fixed metric, for any weights of the views.

    Parameters
    ----------
    system : DesignMatrix or MomentMatrix
        M and the targets, with `roots` for the diagonal metric.
    metric : "diagonal", "covariance" or array of shape (q, q)
        A; an array is symmetric positive semi-definite over the coefficients of all views.
    alpha : float
        λ.
    tol : float
        Relative gap at which learned weights are accepted.
    max_iter : int
        Maximum number of steps from one starting point, for learned weights.
    """

    def __init__(
        self, system: DesignMatrix | MomentMatrix, metric: str | np.ndarray, alpha: float, *, tol: float, max_iter: int
    ):
        self.system, self.alpha, self.tol, self.max_iter = system, alpha, tol, max_iter
        self.identity = isinstance(metric, str) and metric == "diagonal"
        self.matrix: Any = None  # A, unless it is the identity or the covariance over Gram matrices
        self.root: Any = None  # F with FF' = A (primal)
        if not isinstance(metric, str):
            self.matrix = like(metric, system.example)
        elif not self.identity and isinstance(system, MomentMatrix):
            self.matrix = system.covariance()
        if self.matrix is not None and not system.dual:
            values, vectors = eigh_positive(self.matrix + 0)
            self.root = vectors * like(np.sqrt(values)[None, :], vectors)  # A may be singular, so no Cholesky factor

    def solve(self, w: np.ndarray | None, starts: Sequence[np.ndarray] | None = None) -> Solution:
        """Return (coefficients of each view, w, None) as x, for given w or the best one.

        Where the matrices are not positive semi-definite, the status is "indefinite", and x is None.
        """
        try:
            if w is not None:
                return self._solve_given(w)
            assert starts is not None
            learned = learn_weights(self.evaluate, starts, tol=self.tol, max_iter=self.max_iter)
            best = np.abs(learned.x) if self.identity else learned.x  # signs count only between views
            return with_learned(self._solve_given(best), learned)
        except np.linalg.LinAlgError:
            return Solution(None, None, 0, "indefinite")

    def _solve_given(self, w: np.ndarray) -> Solution:
        fit = self.fit(w)
        # the conjugate of the penalty at the residuals
        gap = max(fit.objective - fit.dual(float(w @ fit.between @ w) / self.alpha), 0.0) + fit.measured.unseen
        status = "exact" if gap <= 1e-6 * abs(fit.objective) else "inexact"
        return Solution((self.system.by_view(fit.G), w, None), gap, 1, status, objective=fit.objective)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return the optimal value for w, its gradient in w, and a lower bound over all w of this length."""
        fit = self.fit(w)
        slopes = self.system.weight_slopes(w, fit.G, fit.measured)
        # bounds the conjugate for all w of this length
        largest = norm(w) ** 2 * float(eigvalsh(fit.between)[-1]) / self.alpha
        return fit.objective, slopes, fit.dual(largest) if self.system.complete else None

    def fit(self, w: np.ndarray) -> FixedFit:
        """Return the coefficients for w."""
        system, alpha, xp = self.system, self.alpha, namespace(self.system.example)
        if isinstance(system, DesignMatrix):
            kernel = self._kernel(system, w)
            inner = solve(cholesky(add_to_diagonal(kernel + 0, alpha)), system.Y)  # (MAM' + λI)⁻¹Y = B/λ
            G = self._times_metric(system.lift(w, inner))
            penalty = alpha * float(xp.sum(inner * multiply(kernel, inner)))  # A†A drops out, as G = AM'·inner
        else:
            C, c = system.moments(w)
            if self.root is not None:
                C, c = multiply(self.root.T, multiply(C, self.root)), multiply(self.root.T, c)
            H = solve(cholesky(add_to_diagonal(C, alpha)), c)  # G = FH: ridge regression over MF
            G = H if self.root is None else multiply(self.root, H)
            penalty = alpha * float(xp.sum(H**2))
        measured = system.measure(w, G)
        return FixedFit(G, measured, penalty, self._between(measured.unweighted))

    def left_vectors(self, w: np.ndarray) -> tuple[np.ndarray, Any, np.ndarray]:
        """Return the squared singular values of MA½, what makes its left vectors V, and V'Y."""
        if isinstance(self.system, DesignMatrix) and not self.identity:
            values, V = drop_null_space(*eigh_positive(self._kernel(self.system, w)))
            return values, V, to_numpy(multiply(V.T, self.system.Y))
        return self.system.left_vectors(w, self.root)

    def _kernel(self, system: DesignMatrix, w: np.ndarray) -> Any:
        """Return MAM' (dual)."""
        if self.identity:
            return system.gram(w)
        if self.matrix is not None:
            M = system.matrix(w)
            return multiply(M, multiply(self.matrix, M.T))
        # the covariance is FF', where F stacks the rows of I/√Σs at the samples of each view
        scale, T = system.row_factors(w) / np.sqrt(system.weight), 0.0
        for (here, own, K), weight in zip(system.pieces(), w, strict=True):
            part = like(weight * scale[here, None], K) * K * like(system.s_root[None, own], K)
            T = T + at_rows_and_columns(part, here, system.n)
        return gram_of(T.T)  # type: ignore[attr-defined]

    def _times_metric(self, U: Any) -> Any:
        """Return AU."""
        if self.identity:
            return U
        if self.matrix is not None:
            return multiply(self.matrix, U)
        system = self.system
        assert isinstance(system, DesignMatrix)
        # the covariance adds the views of a sample
        total = sum(at_rows(U[own, :], here, system.n) for here, own, _ in system.pieces()) / system.weight
        return namespace(U).concat([take_rows(total, here) for here, _, _ in system.pieces()], axis=0)

    def _between(self, U: Any) -> np.ndarray:
        """Return <U_v, A_vw U_w> for every pair of views: the penalty's conjugate is w' this w."""
        embedded, columns, xp = self.system.embed(U), self.system.columns, namespace(U)
        between = np.empty((len(columns), len(columns)))
        for x, other in enumerate(columns):
            alone = 0 * U
            alone[other, :] = U[other, :]  # one view's part, the others zero
            moved = self._times_metric(alone)
            between[:, x] = [float(xp.sum(embedded[own, :] * moved[own, :])) for own in columns]
        return between

"""The coupled problem over finite features: normal equations in Σ_v p_v coefficients, from sums over rows.

With f_v = Φ_v W_v and all features side by side, φ_i = [φ_1(x_i) .. φ_m(x_i)], zero where a view is missing:

    R = aI + b (blockdiag Σ_i s_i m_i φ_v φ_v' - Σ_i s_i φ_i φ_i') + w blockdiag Φ_v'L_vΦ_v
    X = Σ_i u_i ν_i² φ_i φ_i',  Z = Σ_i u_i ν_i φ_i y_i',   (R + D_c X D_c) W = D_c Z,   D_c = diag(c_v on view v)

Only sums over rows are kept, so memory does not grow with the rows. Symbols are those of `coupled`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .._backend import is_device_array, like, namespace, to_numpy
from .coupled import Coupled, RidgeFit, missing_slopes, row_scale
from .design import FeatureDesign, FeatureRows, view_columns
from .linalg import add_to_diagonal, cholesky, eigh, forward, multiply, solve
from .moments import Moments, TooManyPatterns, slopes_by_rows, unfinished_moments
from .weights import Evaluation


class FeatureSums:
    """The sums over rows that the problem needs for any c, from one pass over the rows where they fit into memory.

    Parameters
    ----------
    design : FeatureDesign
        Features by blocks of rows.
    c : array of shape (m,), optional
        Weights of the views, where they are given. Sums are then kept for these alone.
    """

    def __init__(self, design: FeatureDesign, c: np.ndarray | None = None):
        self.design = design
        try:
            self.moments = self._read(c)
        except TooManyPatterns:  # a pass over the rows for each c
            self.moments = self._read(np.full(len(design.sizes), 1 / len(design.sizes)))
        self.total = self.moments.total  # l, also where targets are hidden later

    def _read(self, c: np.ndarray | None) -> Moments:
        design = self.design
        if design.known is not None:
            known: Moments = design.known
            return known
        work = partial(unfinished_moments, sizes=design.sizes, n_outputs=design.n_outputs, c=c, outer=design.outer)
        found: Moments = design.reduce(work)
        return found.finish()

    def of(self, c: np.ndarray) -> Moments:
        """Return the sums for weights c."""
        known = self.moments
        if known.c is None or known.complete or np.array_equal(known.c, c):
            return known
        self.moments = self._read(c)
        return self.moments


class CoupledFeatures(Coupled):
    """The penalties of all views over finite features, and the sums over rows that a loss needs.

    Parameters
    ----------
    design : FeatureDesign
        Features by blocks of rows and, where there are graphs, the smoothness of functions of them.
    ridge, agreement_penalty, graph_penalty : float
        a, b and w: l times the penalties.
    sums : FeatureSums, optional
        The sums over rows, where they are at hand.
    """

    coupled = True

    def __init__(
        self,
        design: FeatureDesign,
        *,
        ridge: float,
        agreement_penalty: float = 0.0,
        graph_penalty: float = 0.0,
        sums: FeatureSums | None = None,
    ):
        self.design, self.m, self.ridge = design, len(design.sizes), float(ridge)
        self.parts = view_columns(design.sizes)
        self.sums = FeatureSums(design) if sums is None else sums
        moments = self.sums.moments
        self.l = moments.labeled
        some = next(iter(moments.parts.values())).X
        if agreement_penalty > 0 and self.m > 1:
            self.R = float(agreement_penalty) * moments.disagreement()
        elif is_device_array(some):
            self.R = 0 * some
        else:
            self.R = np.zeros(some.shape, order="F")
        if graph_penalty:
            for part, smoothness in zip(self.parts, design.smoothness, strict=True):
                self.R[part, part] += float(graph_penalty) * like(smoothness, some)
        self.R = add_to_diagonal(self.R, self.ridge)
        self._factor: Any = None
        self._labeled: FeatureRows | None = None

    def _spread(self, c: np.ndarray) -> Any:
        return like(np.repeat(c, self.design.sizes), self.R)

    # -- least squares by the normal equations
    def _normal_solution(self, c: np.ndarray, turn: np.ndarray | None) -> tuple[Any, float, float, float]:
        """Return W, the value times l, the residual of the normal equations and the bound it puts on the error.

        Sums over rows are rounded: an entry of A by a few eps √(A_ii A_jj), the value by as much of Σ u y². What the
        residual does not show of that is added to the bound. The targets are Y times `turn`, or Y itself.
        """
        moments, xp = self.sums.of(c), namespace(self.R)
        X, Z = moments.data(c)
        yy = sum_of_squares(moments.squares, turn)
        d = self._spread(c)
        A = self.R + d[:, None] * X * d[None, :]
        right = turned(d[:, None] * Z, turn)
        L = cholesky(A + 0)
        W = solve(L, right)
        W = W + solve(L, right - multiply(A, W))  # one step of iterative refinement
        rest = right - multiply(A, W)
        value = yy - float(xp.sum(right * W))  # the minimum of a quadratic function
        rounding = float(np.finfo(np.float64).eps * (4 + np.sqrt(moments.n)))
        diagonal = xp.linalg.diagonal(A)
        sizes = xp.sqrt(xp.where(diagonal > self.ridge, diagonal - self.ridge, 0 * diagonal))[:, None]
        unseen = rounding * sizes * (xp.sum(sizes * xp.abs(W), axis=0) + float(np.sqrt(yy)))
        # A ⪰ aI, so a residual ρ is worth at most ‖ρ‖²/a of the objective
        bound = float(xp.sum((xp.abs(rest) + unseen) ** 2)) / self.ridge + rounding * yy
        return W, value, float(xp.max(xp.abs(rest))), bound

    def ridge_fit(self, c: np.ndarray, turn: np.ndarray | None) -> RidgeFit:
        """Return the optimum of Σ u_i ‖y_i - g_i‖² + penalties for the targets Y times `turn`."""
        W, value, residual, bound = self._normal_solution(c, turn)
        return RidgeFit(self.design.split(W), value, residual, bound, 0.0)

    def evaluate_ridge(self, c: np.ndarray, turn: np.ndarray | None) -> Evaluation:
        """Return the optimal value for c, its gradient in c and in cc'; all times l."""
        W, value, _, _ = self._normal_solution(c, turn)
        moments, xp = self.sums.of(c), namespace(self.R)
        if not moments.complete:
            return value, self._missing_gradient(c, W, turn), None
        X, Z = moments.data(c)
        d = self._spread(c)
        t = turned(Z, turn) - multiply(X, d[:, None] * W)  # Φ'r
        gradient = np.array([-2 * float(xp.sum(t[part, :] * W[part, :])) for part in self.parts])  # -2 <Φ_v'r, W_v>
        alone = [self._alone(t, part) for part in self.parts]
        halves = [forward(self._penalty_factor(), own) for own in alone]  # L⁻¹ of Φ'r of each view alone, R = LL'
        inner = [[-float(xp.sum(one * other)) for other in halves] for one in halves]
        return value, gradient, np.array(inner)  # -<νr, G_vw νr>

    def _alone(self, t: Any, part: slice) -> Any:
        """Return t with zeros outside of one view."""
        alone = 0 * t
        alone[part, :] = t[part, :]
        return alone

    def _missing_gradient(self, c: np.ndarray, W: Any, turn: np.ndarray | None) -> np.ndarray:
        """Return the gradient in c where views are missing, from the sums of rows that have the same views."""
        moments, total = self.sums.of(c), np.zeros(self.m)
        if moments.c is not None:
            work = partial(slopes_by_rows, columns=self.parts, c=c, W=self.design.split(W), turn=turn)
            slopes: np.ndarray = self.design.reduce(work)
            return slopes
        d = self._spread(c)
        for key, own in moments.parts.items():
            if not own.labeled:
                continue
            nu = moments.nu(key, c)
            t = turned(own.Z, turn) - nu * multiply(own.X, d[:, None] * W)  # Σ u φ r' over these rows
            products = np.array([[float(namespace(t).sum(t[part, :] * W[part, :])) for part in self.parts]])
            total = total + missing_slopes(c, np.array([key]), products)
        return total

    def view_outputs(
        self, cs: Sequence[np.ndarray], turn: np.ndarray | None
    ) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return, for every c, the optimal value, and R, q with ‖y - Fc‖² = ‖q - Rc‖² + const for outputs F."""
        return [self._output_products(c, turn) for c in cs]

    def _output_products(self, c: np.ndarray, turn: np.ndarray | None) -> tuple[float, np.ndarray, np.ndarray]:
        W, value, _, _ = self._normal_solution(c, turn)
        X, Z = self.sums.of(c).data(c)
        xp, right = namespace(W), turned(Z, turn)
        alone = [self._alone(W, part) for part in self.parts]
        moved = [multiply(X, own) for own in alone]
        products = np.array([[float(xp.sum(one * other)) for other in moved] for one in alone])
        values, vectors = eigh(products)  # F'F between the views' outputs
        roots = np.sqrt(np.maximum(values, 0))
        reached = vectors.T @ np.array([float(xp.sum(own * right)) for own in alone])
        # R'q = F'y where F reaches it
        q = np.divide(reached, roots, out=np.zeros_like(roots), where=roots > 1e-8 * roots[-1])
        return value, roots[:, None] * vectors.T, q

    def held_outputs(self, c: np.ndarray, turn: np.ndarray | None, hidden: FeatureRows) -> np.ndarray:
        """Return g at rows whose targets no sum has."""
        W = self._normal_solution(c, turn)[0]
        nu = row_scale(hidden.present, c)[:, None]
        return to_numpy(like(nu, hidden.Phi) * multiply(hidden.Phi * self._spread(c)[None, :], W))

    # -- what the labeled rows see: G_vw = T_v'T_w, T_v = R^{-½} Φ_v'
    def _penalty_factor(self) -> Any:
        if self._factor is None:
            self._factor = cholesky(self.R + 0)
        return self._factor

    @property
    def present(self) -> np.ndarray:  # type: ignore[override]
        """Which views the labeled rows have, (l, m)."""
        return self.labeled_rows().present

    def labeled_rows(self) -> FeatureRows:
        """Return the features of all labeled rows, which stay in memory."""
        if self._labeled is None:
            self._labeled = self.design.labeled()
        return self._labeled

    def own(self, v: int) -> None:
        """Return nothing: T has it all."""

    def half(self, c: np.ndarray) -> np.ndarray:
        """Return Σ_v c_v T_v."""
        return forward(self._penalty_factor(), np.asfortranarray((self.labeled_rows().Phi * self._spread(c)).T))

    def coefficients(self, c: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
        """Return W_v by view for dual residuals r of the labeled rows."""
        scaled = self.labeled_rows().Phi * self._spread(c)
        return self.design.split(solve(self._penalty_factor(), multiply(scaled.T, self.nu(c)[:, None] * r)))

    def outputs(self, c: np.ndarray, coefficients: Sequence[np.ndarray]) -> tuple[None, np.ndarray, float]:
        """Return g at the labeled rows and the penalties: what the coefficients really do."""
        W = np.concatenate(coefficients)
        g = self.nu(c)[:, None] * multiply(self.labeled_rows().Phi * self._spread(c), W)
        return None, g, float(np.sum(W * multiply(self.R, W)))


def turned(Z: Any, turn: np.ndarray | None) -> Any:
    """Return sums with the targets Y turned into directions of outputs; None stands for the outputs themselves."""
    return Z if turn is None else multiply(Z, like(turn, Z))


def sum_of_squares(squares: np.ndarray, turn: np.ndarray | None) -> float:
    """Return Σ u y² over the outputs, or over directions of them, from Σ u y² by output or from Y'uY."""
    if turn is None:
        return float(np.trace(squares) if squares.ndim == 2 else squares.sum())
    return float(np.sum(turn * (squares @ turn)))

"""The coupled problem over finite features: normal equations in Σ_v p_v coefficients, from sums over rows.

With f_v = Φ_v W_v and all features side by side, φ_i = [φ_1(x_i) .. φ_m(x_i)], zero where a view is missing:

    R = aI + b (blockdiag Σ_i s_i m_i φ_v φ_v' - Σ_i s_i φ_i φ_i') + w blockdiag Φ_v'L_vΦ_v
    X = Σ_i u_i ν_i² φ_i φ_i',  Z = Σ_i u_i ν_i φ_i y_i',   (R + D_c X D_c) W = D_c Z,   D_c = diag(c_v on view v)

Only sums over rows are kept, so memory does not grow with the rows. Symbols are those of `coupled`.
"""

from collections.abc import Sequence

import numpy as np

from .coupled import Coupled, RidgeFit, missing_slopes, row_scale
from .design import FeatureDesign, view_columns
from .linalg import add_to_diagonal, cholesky, eigh, forward, gram_of, multiply, solve
from .weights import Evaluation


class CoupledFeatures(Coupled):
    """The penalties of all views over finite features, and the sums over labeled rows that a loss needs.

    Parameters
    ----------
    design : FeatureDesign
        Features by blocks of rows and, where there are graphs, the smoothness of functions of them.
    ridge, agreement_penalty, graph_penalty : float
        a, b and w: l times the penalties.
    """

    coupled = True

    def __init__(
        self, design: FeatureDesign, *, ridge: float, agreement_penalty: float = 0.0, graph_penalty: float = 0.0
    ):
        self.design, self.l, self.m, self.ridge = design, design.l, len(design.sizes), ridge
        self.present = design.present[: self.l]
        self.parts = view_columns(design.sizes)
        self.R = np.zeros((sum(design.sizes), sum(design.sizes)), order="F")
        if agreement_penalty > 0 and self.m > 1:
            self._add_agreement(agreement_penalty)
        if graph_penalty:
            for part, smoothness in zip(self.parts, design.smoothness, strict=True):
                self.R[part, part] += graph_penalty * smoothness
        add_to_diagonal(self.R, ridge)
        self._sums: tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, float]] | None = None
        self._factor: np.ndarray | None = None
        self._labeled: np.ndarray | None = None

    def _add_agreement(self, b: float) -> None:
        """Add the differences between views to R."""
        for rows, Phi in self.design.blocks():
            s, count = self.design.s[rows], self.design.present[rows].sum(axis=1)
            self.R -= gram_of(np.sqrt(b * s)[:, None] * Phi)  # -b Σ s_i φ_iφ_i'
            for part in self.parts:
                self.R[part, part] += gram_of(np.sqrt(b * s * count)[:, None] * Phi[:, part])  # +b Σ s_i m_i φ_vφ_v'

    def _spread(self, c: np.ndarray) -> np.ndarray:
        return np.repeat(c, self.design.sizes)

    # -- least squares by the normal equations
    def _data(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return X, Z and Σ u y²; where every labeled row has every view they do not depend on c and are kept."""
        if self._sums is not None and self._sums[0] is Y and self._sums[1] is u:
            return self._sums[2]
        X, Z, yy = np.zeros_like(self.R), np.zeros((len(self.R), Y.shape[1])), 0.0
        for rows, Phi in self.design.blocks(self.l):
            here = u[rows] > 0  # rows of weight 0 have no loss
            own, weights = Y[rows][here], u[rows][here]
            scaled = (np.sqrt(weights) * row_scale(self.present[rows], c)[here])[:, None] * Phi[here]  # √u ν φ
            X += gram_of(scaled)
            Z = Z + multiply(scaled.T, np.sqrt(weights)[:, None] * own)
            yy += float(np.sum(weights[:, None] * own**2))
        if self.present[u > 0].all():  # ν = 1
            self._sums = Y, u, (X, Z, yy)
        return X, Z, yy

    def _normal_solution(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float, float, float]:
        """Return W, the value times l, the residual of the normal equations and the bound it puts on the error.

        Sums over rows are rounded: an entry of A by a few eps √(A_ii A_jj), the value by as much of Σ u y². What the
        residual does not show of that is added to the bound.
        """
        X, Z, yy = self._data(c, Y, u)
        d = self._spread(c)
        A = self.R + d[:, None] * X * d
        right = d[:, None] * Z
        L = cholesky(A.copy(order="F"))
        W = solve(L, right)
        W += solve(L, right - multiply(A, W))  # one step of iterative refinement
        rest = right - multiply(A, W)
        value = yy - float(np.sum(right * W))  # the minimum of a quadratic function
        rounding = np.finfo(np.float64).eps * (4 + np.sqrt(len(self.design.s)))
        sizes = np.sqrt(np.maximum(A.diagonal() - self.ridge, 0))[:, None]
        unseen = rounding * sizes * (np.sum(sizes * np.abs(W), axis=0) + np.sqrt(yy))
        # A ⪰ aI, so a residual ρ is worth at most ‖ρ‖²/a of the objective
        bound = float(np.sum((np.abs(rest) + unseen) ** 2)) / self.ridge + rounding * yy
        return W, value, float(np.abs(rest).max()), bound

    def ridge_fit(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> RidgeFit:
        """Return the optimum of Σ u_i ‖y_i - g_i‖² + penalties."""
        W, value, residual, bound = self._normal_solution(c, Y, u)
        return RidgeFit(self.design.split(W), value, residual, bound, 0.0)

    def evaluate_ridge(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> Evaluation:
        """Return the optimal value for c, its gradient in c and in cc'; all times l."""
        X, Z, _ = self._data(c, Y, u)
        W, value, _, _ = self._normal_solution(c, Y, u)
        if not self.present[u > 0].all():
            return value, self._missing_gradient(c, W, Y, u), None
        d = self._spread(c)
        t = Z - multiply(X, d[:, None] * W)  # Φ'r
        gradient = np.array([-2 * np.sum(t[part] * W[part]) for part in self.parts])  # -2 <Φ_v'r, W_v>
        P = Z.shape[1]
        apart = np.zeros((len(t), self.m * P))  # Φ'r with each view in columns of its own
        for v, part in enumerate(self.parts):
            apart[part, v * P : (v + 1) * P] = t[part]
        half = forward(self._penalty_factor(), apart).reshape(len(t), self.m, P)
        return value, gradient, -np.einsum("avp,awp->vw", half, half)  # -<νr, G_vw νr> with R = LL'

    def _missing_gradient(self, c: np.ndarray, W: np.ndarray, Y: np.ndarray, u: np.ndarray) -> np.ndarray:
        total = np.zeros(self.m)
        for rows, Phi in self.design.blocks(self.l):
            here = u[rows] > 0
            present = self.present[rows][here]
            f = np.stack([multiply(Phi[here][:, part], W[part]) for part in self.parts], axis=1)
            g = row_scale(present, c)[:, None] * np.einsum("v,ivp->ip", c, f)
            r = u[rows][here, None] * (Y[rows][here] - g)
            total += missing_slopes(c, present, np.einsum("ip,ivp->iv", r, f))
        return total

    def view_outputs(
        self, cs: Sequence[np.ndarray], Y: np.ndarray, u: np.ndarray
    ) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return, for every c, the optimal value, and R, q with ‖y - Fc‖² = ‖q - Rc‖² + const for outputs F."""
        return [self._output_products(c, Y, u) for c in cs]

    def _output_products(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        X, Z, _ = self._data(c, Y, u)
        W, value, _, _ = self._normal_solution(c, Y, u)
        apart = np.zeros((len(W), self.m, W.shape[1]))
        for v, part in enumerate(self.parts):
            apart[part, v] = W[part]
        flat = apart.reshape(len(W), -1)
        products = multiply(flat.T, multiply(X, flat)).reshape(self.m, W.shape[1], self.m, W.shape[1])
        values, vectors = eigh(np.einsum("vpwp->vw", products))  # F'F between the views' outputs
        roots = np.sqrt(np.maximum(values, 0))
        right = vectors.T @ np.einsum("avp,ap->v", apart, Z)
        # R'q = F'y where F reaches it
        q = np.divide(right, roots, out=np.zeros_like(roots), where=roots > 1e-8 * roots[-1])
        return value, roots[:, None] * vectors.T, q

    def held_outputs(self, c: np.ndarray, Y: np.ndarray, u: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """Return g at labeled rows whose weight in `u` is 0, learned from the others."""
        W = self._normal_solution(c, Y, u)[0]
        g = row_scale(self.present, c)[:, None] * multiply(self._labeled_features() * self._spread(c), W)
        return g[hidden]

    # -- what the labeled rows see: G_vw = T_v'T_w, T_v = R^{-½} Φ_v'
    def _penalty_factor(self) -> np.ndarray:
        if self._factor is None:
            self._factor = cholesky(self.R.copy(order="F"))
        return self._factor

    def _labeled_features(self) -> np.ndarray:
        if self._labeled is None:
            self._labeled = np.concatenate([Phi for _, Phi in self.design.blocks(self.l)])
        return self._labeled

    def own(self, v: int) -> None:
        """Return nothing: T has it all."""

    def half(self, c: np.ndarray) -> np.ndarray:
        """Return Σ_v c_v T_v."""
        return forward(self._penalty_factor(), np.asfortranarray((self._labeled_features() * self._spread(c)).T))

    def coefficients(self, c: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
        """Return W_v by view for dual residuals r of the labeled rows."""
        scaled = self._labeled_features() * self._spread(c)
        return self.design.split(solve(self._penalty_factor(), multiply(scaled.T, self.nu(c)[:, None] * r)))

    def outputs(self, c: np.ndarray, coefficients: Sequence[np.ndarray]) -> tuple[None, np.ndarray, float]:
        """Return g at the labeled rows and the penalties: what the coefficients really do."""
        W = np.concatenate(coefficients)
        g = self.nu(c)[:, None] * multiply(self._labeled_features() * self._spread(c), W)
        return None, g, float(np.sum(W * multiply(self.R, W)))

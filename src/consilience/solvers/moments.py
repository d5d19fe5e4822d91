"""Finite features: the same coupled problem as normal equations in Σp coefficients, from sums over blocks of rows.

With f_v = Φ_v W_v and all features side by side, φ_i = [φ_1(x_i) .. φ_m(x_i)], zero where a view is absent:

    R = aI + b (blockdiag Σ_i s_i m_i φ_v φ_v' - Σ_i s_i φ_i φ_i') + blockdiag Φ_v'W_vΦ_v
    X = Σ_i u_i ν_i² φ_i φ_i',  Z = Σ_i u_i ν_i φ_i y_i',   (R + D_c X D_c) W = D_c Z,   D_c = diag(c_v on view v)

Only sums over rows are kept, so n is limited by time and not by memory; the order of the blocks does not matter.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .coupled import Coupled, row_scale
from .linalg import add_to_diagonal, cholesky, forward, gram_of, multiply, solve
from .ridge import missing_slopes
from .weights import Evaluation


@dataclass
class RowBlock:
    """Some rows: features side by side (zero where absent), presence, weights of rows and losses, targets."""

    features: np.ndarray  # (n, Σp)
    present: np.ndarray  # (n, m)
    s: np.ndarray  # (n,)
    u: np.ndarray  # (n,), zero where unlabeled
    Y: np.ndarray  # (n, P)


class FeatureMoments:
    """The normal equations of coupled views over finite features.

    Parameters
    ----------
    blocks : callable
        Gives the blocks of rows, again at every call.
    sizes : list of int
        p_v.
    ridge, between : float
        a and b.
    smooth : list of array of shape (p_v, p_v), optional
        Φ_v'W_vΦ_v.
    """

    def __init__(
        self,
        blocks: Callable[[], Iterator[RowBlock]],
        sizes: Sequence[int],
        *,
        ridge: float,
        agreement_penalty: float = 0.0,
        smooth: Sequence[np.ndarray] | None = None,
    ):
        self.blocks, self.ridge = blocks, ridge
        self.m = len(sizes)
        ends = np.cumsum(sizes)
        self.parts = [slice(int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True)]
        total = int(ends[-1])
        self.R = np.zeros((total, total), order="F")
        self.complete = True
        self.n_rows = 0
        coupled = agreement_penalty > 0 and self.m > 1
        for block in blocks():
            self.n_rows += len(block.s)
            self.complete &= bool(block.present[block.u > 0].all())
            if coupled:
                count = block.present.sum(axis=1)
                self.R -= gram_of(np.sqrt(agreement_penalty * block.s)[:, None] * block.features)
                for part in self.parts:
                    own = np.sqrt(agreement_penalty * block.s * count)[:, None] * block.features[:, part]
                    self.R[part, part] += gram_of(own)
        for part, W in zip(self.parts, smooth or [], strict=bool(smooth)):
            self.R[part, part] += W
        add_to_diagonal(self.R, ridge)
        self._sums: tuple[np.ndarray, np.ndarray, float] | None = None
        self._factor: np.ndarray | None = None

    def _data(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """X, Z and Σ u y²; where every labeled row is complete they do not depend on c."""
        if self._sums is not None:
            return self._sums
        X, Z, yy = np.zeros_like(self.R), np.zeros(1), 0.0
        for block in self.blocks():
            here = block.u > 0
            weight = (np.sqrt(block.u) * row_scale(block.present, c))[here, None]
            scaled = weight * block.features[here]
            X += gram_of(scaled)
            Z = Z + multiply(scaled.T, np.sqrt(block.u[here, None]) * block.Y[here])
            yy += float(np.sum(block.u[here, None] * block.Y[here] ** 2))
        if self.complete:
            self._sums = X, Z, yy
        return X, Z, yy

    def _spread(self, c: np.ndarray) -> np.ndarray:
        return np.concatenate([np.full(part.stop - part.start, c[v]) for v, part in enumerate(self.parts)])

    def ridge_solution(self, c: np.ndarray) -> tuple[np.ndarray, float, float, float]:
        """W, the value times l, the largest residual of the normal equations and the bound it puts on the error.

        Sums over rows are rounded: an entry of A by a few eps √(A_ii A_jj), the value by as much of Σ u y². What the
        residual does not show of that is added to the bound.
        """
        X, Z, yy = self._data(c)
        d = self._spread(c)
        A = self.R + d[:, None] * X * d
        right = d[:, None] * Z
        L = cholesky(A.copy(order="F"))
        W = solve(L, right)
        W += solve(L, right - multiply(A, W))
        rest = right - multiply(A, W)
        value = yy - float(np.sum(right * W))
        rounding = np.finfo(np.float64).eps * (4 + np.sqrt(self.n_rows))
        sizes = np.sqrt(np.maximum(A.diagonal() - self.ridge, 0))[:, None]
        unseen = rounding * sizes * (np.sum(sizes * np.abs(W), axis=0) + np.sqrt(yy))
        bound = float(np.sum((np.abs(rest) + unseen) ** 2)) / self.ridge + rounding * yy
        return W, value, float(np.abs(rest).max()), bound

    def evaluate(self, c: np.ndarray) -> Evaluation:
        """φ(c), its gradient and ∇; all times l."""
        X, Z, _ = self._data(c)
        W, value, _, _ = self.ridge_solution(c)
        if not self.complete:
            return value, self._missing_gradient(c, W), None
        d = self._spread(c)
        t = Z - multiply(X, d[:, None] * W)  # Φ'r
        gradient = np.array([-2 * np.sum(t[part] * W[part]) for part in self.parts])
        if self._factor is None:
            self._factor = cholesky(self.R.copy(order="F"))
        P = Z.shape[1]
        apart = np.zeros((len(t), self.m * P))
        for v, part in enumerate(self.parts):
            apart[part, v * P : (v + 1) * P] = t[part]
        half = forward(self._factor, apart).reshape(len(t), self.m, P)
        return value, gradient, -np.einsum("avp,awp->vw", half, half)

    def answer_products(self, c: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """φ(c) times l, and R, q with ‖y - Fc‖² = ‖q - Rc‖² + const for the answers F of complete rows."""
        X, Z, _ = self._data(c)
        W, value, _, _ = self.ridge_solution(c)
        apart = np.zeros((len(W), self.m, W.shape[1]))
        for v, part in enumerate(self.parts):
            apart[part, v] = W[part]
        flat = apart.reshape(len(W), -1)
        products = multiply(flat.T, multiply(X, flat)).reshape(self.m, W.shape[1], self.m, W.shape[1])
        FF = np.einsum("vpwp->vw", products)
        Fy = np.einsum("avp,ap->v", apart, Z)
        values, vectors = np.linalg.eigh(FF)
        roots = np.sqrt(np.maximum(values, 0))
        R = roots[:, None] * vectors.T
        q = np.divide(vectors.T @ Fy, roots, out=np.zeros_like(roots), where=roots > 1e-8 * roots[-1])
        return value, R, q

    def _missing_gradient(self, c: np.ndarray, W: np.ndarray) -> np.ndarray:
        total = np.zeros(self.m)
        for block in self.blocks():
            here = block.u > 0
            f = np.stack([multiply(block.features[here][:, part], W[part]) for part in self.parts], axis=1)
            g = row_scale(block.present, c)[here, None] * np.einsum("v,ivp->ip", c, f)
            r = block.u[here, None] * (block.Y[here] - g)
            total += missing_slopes(c, block.present[here], np.einsum("ip,ivp->iv", r, f))
        return total


class CoupledFeatures(Coupled):
    """The labeled kernel of coupled views over finite features: G_vw = T_v'T_w, T_v = R^{-½} Φ_v'."""

    def __init__(self, moments: FeatureMoments, labeled: RowBlock):
        self.moments, self.labeled = moments, labeled
        self.l, self.m = labeled.present.shape
        self.present = labeled.present
        self.coupled = True
        self.factor = cholesky(moments.R.copy(order="F"))

    def own(self, v: int) -> None:
        """Nothing: all is in T."""

    def half(self, c: np.ndarray) -> np.ndarray:
        """Σ_v c_v T_v."""
        return forward(self.factor, np.asfortranarray((self.labeled.features * self.moments._spread(c)).T))

    def coefficients(self, c: np.ndarray, r: np.ndarray) -> np.ndarray:
        """W for forces r on the labeled rows."""
        scaled = self.labeled.features * self.moments._spread(c)
        return solve(self.factor, multiply(scaled.T, self.nu(c)[:, None] * r))

    def outputs(self, c: np.ndarray, W: np.ndarray) -> tuple[None, np.ndarray, float]:
        """g at the labeled rows and the penalties: what the coefficients really do."""
        g = self.nu(c)[:, None] * multiply(self.labeled.features * self.moments._spread(c), W)
        return None, g, float(np.sum(W * multiply(self.moments.R, W)))

"""The data of metric learning over Nyström features, made again block by block."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..solvers.kernel_weights import MomentFit
from ..solvers.linalg import add_to_diagonal, cholesky, forward, gram_of, multiply, solve
from ..solvers.metric import Spectrum, direct_metric, eigen, rank_one_metric, within_reach
from ._frame import ROWS, Features, KernelLearner, Rows
from ._metric_problems import FixedSolution, Measured, MetricData


class FeatureData(MetricData):
    """Over Nyström features, made again block by block."""

    def __init__(self, learner: KernelLearner, rows: Rows, Y: np.ndarray, u: np.ndarray, *, shared: bool = True):
        super().__init__(rows, Y, u)
        self.form: Features = Features(learner, rows, shared=shared)
        self.sizes = self.form.sizes
        self._bare_moments: tuple[np.ndarray, np.ndarray] | None = None
        self._kept: list[tuple[slice, np.ndarray]] | None = None

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The features times √u, block by block; kept where they are few enough."""
        if self._kept is None:
            n, q = len(self.Y), sum(self.sizes)
            made = self._made(n)
            if n * q > 5e7:
                yield from made
                return
            self._kept = list(made)
        yield from self._kept

    def _made(self, n: int) -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, n, ROWS):
            rows = slice(start, min(start + ROWS, n))
            yield rows, self.u_root[rows, None] * self.form.side_by_side(self.form.rows_in.X[rows])

    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M'M and M'Y."""
        if self.complete:
            if self._bare_moments is None:
                self._bare_moments = self.summed(np.ones(len(self.Y)))
            C, c = self._bare_moments
        else:
            C, c = self.summed(self.nu(w))
        spread = np.repeat(w, self.sizes)
        return spread[:, None] * C * spread, spread[:, None] * c

    def summed(self, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M'M and M'Y without w, for factors ν of the rows."""
        q = sum(self.sizes)
        C, c = np.zeros((q, q), order="F"), np.zeros((q, self.Y.shape[1]))
        for rows, Phi in self._blocks():
            scaled = Phi if self.complete else nu[rows, None] * Phi
            C += gram_of(scaled)
            c += multiply(scaled.T, self.Y[rows])
        return C, c

    def spectrum(self, w: np.ndarray) -> Spectrum:
        """The singular values and vectors of M."""
        C, c = self.moments(w)
        return Spectrum.of_moments(C, c, np.sum(self.Y**2, axis=0))

    def direct(self, w: np.ndarray, kappa: float) -> np.ndarray:
        """G of one metric for each output, where they are few."""
        C, c = self.moments(w)
        try:
            return np.stack([direct_metric(C, own, kappa, moments=True) for own in c.T], axis=1)
        except np.linalg.LinAlgError:
            return rank_one_metric(self.spectrum(w), kappa).x[0]

    def left_vectors(self, w: np.ndarray, A: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The squared singular values of M, or of MA½ for a fixed metric, and the left vectors."""
        root = None if A is None else self._metric_and_root(A)[1]
        C, _ = self.moments(w)
        values, R = within_reach(*eigen(C if root is None else multiply(root.T, multiply(C, root))))
        turn = np.repeat(w, self.sizes)[:, None] * (R if root is None else multiply(root, R))
        turn /= np.sqrt(np.maximum(values, np.finfo(float).tiny))
        V = np.empty((len(self.Y), len(values)), order="F")
        nu = self.nu(w)
        for rows, Phi in self._blocks():
            V[rows] = nu[rows, None] * multiply(Phi, turn)
        return values, V

    def fits(self, w: np.ndarray) -> Iterator[MomentFit]:
        """J of every output."""
        C, c = self.moments(w)
        for p in range(self.Y.shape[1]):
            yield MomentFit(C, c[:, p : p + 1], float(np.sum(self.Y[:, p] ** 2)), self.sizes)

    def weighed(self, fit: MomentFit, w: np.ndarray, d: np.ndarray, p: int) -> np.ndarray:
        """The coefficients of output p for weights d of the views' kernels."""
        return fit.coefficients(d)

    def own_inverse(self, w: np.ndarray, d: np.ndarray) -> np.ndarray:
        """The diagonal of (I + Σ_v d_v D_v)⁻¹."""
        C, _ = self.moments(w)
        root = np.repeat(np.sqrt(d), self.sizes)
        L = cholesky(add_to_diagonal(np.asfortranarray(root[:, None] * C * root), 1.0))
        turn = (np.repeat(w, self.sizes) * root)[:, None] * forward(L, np.eye(len(L), order="F")).T
        nu = self.nu(w)
        found = np.empty(len(self.Y))
        for rows, Phi in self._blocks():
            found[rows] = 1 - np.sum((nu[rows, None] * multiply(Phi, turn)) ** 2, axis=1)
        return found

    def _residuals(self, w: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """B, N Φ'B, and the slope of the loss in w."""
        nu, parts = self.nu(w), self.parts()
        B, pulled = np.empty_like(self.Y), np.zeros_like(G)
        pulls = np.zeros_like(self.present, dtype=np.float64)
        for rows, Phi in self._blocks():
            answers = np.stack([multiply(Phi[:, own], G[own]) for own in parts], axis=1)  # times √u
            B[rows] = self.Y[rows] - nu[rows, None] * np.einsum("m,nmp->np", w, answers)
            pulls[rows] = np.einsum("np,nmp->nm", B[rows], answers)
            pulled += multiply(Phi.T, nu[rows, None] * B[rows])
        return B, pulled, self.slope_of(w, pulls)

    def measure(self, w: np.ndarray, G: np.ndarray) -> Measured:
        """What coefficients come to."""
        B, pulled, slope = self._residuals(w, G)
        bare = [pulled[own] for own in self.parts()]
        pulls = np.repeat(w, self.sizes)[:, None] * pulled
        return Measured(np.sum(B**2, axis=0), np.sum(B * self.Y, axis=0), pulls, bare, slope)

    def residuals(self, w: np.ndarray, G: np.ndarray) -> np.ndarray:
        """B = Y - MG."""
        return self._residuals(w, G)[0]

    def _metric_and_root(self, A: Any) -> tuple[np.ndarray, np.ndarray]:
        """A metric, given or by its name, and L with LL' = A."""
        if isinstance(A, str) and A == "diagonal":
            return (identity := np.eye(sum(self.sizes))), identity
        metric = A
        if isinstance(A, str):
            metric = np.zeros((sum(self.sizes), sum(self.sizes)), order="F")
            for rows, Phi in self._blocks():
                metric += gram_of(np.sqrt(self.s[rows] / self.s.sum())[:, None] * Phi / self.u_root[rows, None])
        values, vectors = eigen(np.array(metric, order="F"))
        return metric, vectors * np.sqrt(values)

    def fixed(self, w: np.ndarray, A: Any, alpha: float) -> FixedSolution:
        """The ridge solution for a metric that is "diagonal", "covariance" or a matrix."""
        C, c = self.moments(w)
        metric, root = self._metric_and_root(A)
        inner = add_to_diagonal(np.asfortranarray(multiply(root.T, multiply(C, root))), alpha)
        H = solve(cholesky(inner), multiply(root.T, c))
        G = multiply(root, H)
        B, pulled, slope = self._residuals(w, G)
        parts = self.parts()
        between = [[float(np.sum(pulled[v] * multiply(metric[v, x], pulled[x]))) for x in parts] for v in parts]
        coefficients = [G[own] for own in parts]
        losses, products = np.sum(B**2, axis=0), np.sum(B * self.Y, axis=0)
        return FixedSolution(coefficients, losses, products, alpha * np.sum(H**2, axis=0), np.array(between), slope)

    def for_prediction(self, G: np.ndarray) -> list[np.ndarray]:
        """G by view."""
        return [G[own] for own in self.parts()]

    def squared_size(self) -> float:
        """Σ_v ‖Φ_v‖_F², samples counted by their weights."""
        squares = [(rows, np.sum(Phi**2, axis=1) / self.u_root[rows] ** 2) for rows, Phi in self._blocks()]
        return float(sum(self.s[rows] @ own for rows, own in squares))

    def functions(self, w: np.ndarray, coefficients: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each output, and the squared norms of the views' functions as (m, P)."""
        rest = self.residuals(w, np.concatenate(coefficients))
        return np.sum(rest**2, axis=0), np.array([np.sum(W**2, axis=0) for W in coefficients])

    def products(self, coefficients: Sequence[np.ndarray]) -> np.ndarray:
        """The inner products of functions, outputs by outputs, all views together."""
        return np.sum([multiply(W.T, W) for W in coefficients], axis=0)

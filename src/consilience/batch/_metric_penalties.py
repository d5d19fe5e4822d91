"""What is left of a learned metric's penalties once the metric is the best for its coefficients: one class per metric.

Each knows how to solve for G, its penalty and the violation of its optimality conditions at any G, and the dual value
at any residuals: so that objective, residual and gap are those of the coefficients that are kept, whoever found them.
"""

from abc import ABC, abstractmethod

import numpy as np

from ..solvers.kernel_weights import BlockNorm, Fitted, learn_kernel_weights
from ..solvers.linalg import multiply
from ..solvers.metric import dual_value, eigen, kappa_of, output_kernel, rank_one_metric, row_space, within_reach
from ._metric_problems import Measured, MetricData

Found = tuple[np.ndarray, int, str]  # G, iterations, status


class MetricPenalty(ABC):
    """The penalty on G that a learned metric leaves."""

    shared = False
    sparse = False

    def __init__(self, alpha: float, metric_penalty: float, tol: float, max_iter: int):
        self.alpha, self.metric_penalty, self.tol, self.max_iter = alpha, metric_penalty, tol, max_iter
        self.kappa = kappa_of(alpha, metric_penalty)

    @abstractmethod
    def solve(self, data: MetricData, w: np.ndarray) -> Found:
        """G at the optimum for the weights w."""

    @abstractmethod
    def value(self, data: MetricData, G: np.ndarray) -> float:
        """The penalty."""

    @abstractmethod
    def violation(self, data: MetricData, G: np.ndarray, measured: Measured) -> float:
        """The largest entry of the gradient of the objective."""

    @abstractmethod
    def dual(self, data: MetricData, measured: Measured) -> float:
        """A lower bound on the optimum."""

    def over_weights(self, data: MetricData, measured: Measured, radius: float) -> float | None:
        """A lower bound on the optimum over all weights of this length, where one is known."""
        return None

    @abstractmethod
    def factors(self, data: MetricData, G: np.ndarray) -> list[np.ndarray]:
        """F with FF' the best metric for G: one for each output, or one for all."""


class RankOne(MetricPenalty):
    """A metric for each output, with ‖A‖_F²: κ‖g‖^(4/3), and A = a gg'/‖g‖² with a = (λ‖g‖²/2η)^⅓."""

    def solve(self, data: MetricData, w: np.ndarray) -> Found:
        """One equation for each output."""
        if data.Y.shape[1] <= 2:  # a decomposition takes as long as ten factors
            return data.direct(w, self.kappa), 1, "exact"
        found = rank_one_metric(data.spectrum(w), self.kappa)
        return found.x[0], 1, found.status

    def value(self, data: MetricData, G: np.ndarray) -> float:
        """κ Σ_p ‖g_p‖^(4/3)."""
        return self.kappa * float(np.sum(np.linalg.norm(G, axis=0) ** (4 / 3)))

    def violation(self, data: MetricData, G: np.ndarray, measured: Measured) -> float:
        """2M'(y - Mg) - (4κ/3) ‖g‖^(-2/3) g."""
        norms = np.linalg.norm(G, axis=0)
        scale = np.divide(4 / 3 * self.kappa, np.cbrt(norms) ** 2, out=np.zeros_like(norms), where=norms > 0)
        return float(np.abs(2 * measured.pulls - scale * G).max())

    def dual(self, data: MetricData, measured: Measured) -> float:
        """The dual value of each output, in sum."""
        fourth = np.sum(measured.pulls**2, axis=0) ** 2
        return float(np.sum(dual_value(measured.products, measured.losses, fourth, self.kappa)))

    def over_weights(self, data: MetricData, measured: Measured, radius: float) -> float | None:
        """The conjugate is convex in w²: over the sphere it is largest with all the weight on one view."""
        if not data.complete:
            return None
        lengths = np.array([np.sum(own**2, axis=0) for own in measured.bare])  # (m, P)
        fourth = float(np.max(np.sum((radius**2 * lengths) ** 2, axis=1)))
        return float(dual_value(measured.products.sum(), measured.losses.sum(), np.array(fourth), self.kappa))

    def factors(self, data: MetricData, G: np.ndarray) -> list[np.ndarray]:
        """√a g/‖g‖."""
        norms = np.linalg.norm(G, axis=0)
        a = np.cbrt(self.alpha * norms**2 / (2 * self.metric_penalty))
        scale = np.divide(np.sqrt(a), norms, out=np.zeros_like(norms), where=norms > 0)
        scaled = scale * G
        return [scaled[:, p : p + 1] for p in range(G.shape[1])]


class Shared(MetricPenalty):
    """One metric for all outputs, with ‖A‖_F²: κ Σ_i s_i(G)^(4/3), and A = (λ/2η)^⅓ (GG')^⅓."""

    shared = True
    _rows: np.ndarray | None = None

    def solve(self, data: MetricData, w: np.ndarray) -> Found:
        """As a kernel between the outputs is learned."""
        found = output_kernel(data.spectrum(w), self.alpha, self.metric_penalty, tol=self.tol, max_iter=self.max_iter)
        return found.x[0], found.n_iter, found.status

    def value(self, data: MetricData, G: np.ndarray) -> float:
        """κ Σ_i s_i^(4/3)."""
        return self.kappa * float(np.sum(self._directions(data, G)[0] ** (2 / 3)))

    def _directions(self, data: MetricData, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The squared singular values of G, and its right vectors: they lie in the space of the rows of Y."""
        if self._rows is None:
            self._rows = row_space(data.Y)
        narrow = multiply(G, self._rows)
        values, vectors = within_reach(*eigen(multiply(narrow.T, narrow)))
        return values, multiply(self._rows, vectors)

    def violation(self, data: MetricData, G: np.ndarray, measured: Measured) -> float:
        """2M'(Y - MG) - (4κ/3) G(G'G)^(-⅓)."""
        values, V = self._directions(data, G)
        slope = multiply(multiply(G, V) * _power(values, -1 / 3), V.T)
        return float(np.abs(2 * measured.pulls - 4 / 3 * self.kappa * slope).max())

    def dual(self, data: MetricData, measured: Measured) -> float:
        """By the singular values of M'B."""
        fourth = np.sum(self._directions(data, measured.pulls)[0] ** 2)
        return float(dual_value(measured.products.sum(), measured.losses.sum(), fourth, self.kappa))

    def factors(self, data: MetricData, G: np.ndarray) -> list[np.ndarray]:
        """(λ/2η)^(1/6) G(G'G)^(-⅓), turned so that each direction has a column."""
        values, V = self._directions(data, G)
        values, V = values[values > 0], V[:, values > 0]
        return [(self.alpha / (2 * self.metric_penalty)) ** (1 / 6) * multiply(G, V) * _power(values, -1 / 3)]


def _power(values: np.ndarray, exponent: float) -> np.ndarray:
    return np.power(values, exponent, out=np.zeros_like(values), where=values > 0)


class BlockSparse(MetricPenalty):
    """A metric for each output, with Σ_γ ‖A_γ‖_F over pairs of views: Ω of `BlockNorm`, and A = gg' √(λ/ηQ)."""

    sparse = True

    def __init__(
        self, alpha: float, metric_penalty: float, tol: float, max_iter: int, start: "BlockSparse | None" = None
    ):
        super().__init__(alpha, metric_penalty, tol, max_iter)
        self.norm = BlockNorm(alpha, metric_penalty)
        # d of each output, where the next solution starts: for other weights of the views, or other penalties
        self._found: dict[int, np.ndarray] = {} if start is None else dict(start._found)

    def solve(self, data: MetricData, w: np.ndarray) -> Found:
        """Weights of the views' kernels for each output."""
        start = np.full(len(w), 1 / np.sqrt(self.alpha * self.metric_penalty))
        columns, n_iter, status = [], 0, "converged"
        for p, fit in enumerate(data.fits(w)):
            before = self._found.get(p, start)
            begin = before if before.any() else start
            found = learn_kernel_weights(fit, self.norm, begin, tol=self.tol, max_iter=self.max_iter)
            self._found[p] = found.x
            start = found.x if found.x.any() else start  # near for the next output too
            columns.append(data.weighed(fit, w, found.x, p))
            n_iter, status = max(n_iter, found.n_iter), status if found.converged else found.status
        return np.hstack(columns), n_iter, status

    def weights(self, p: int) -> np.ndarray:
        """d of output p, as it was found last."""
        return self._found[p]

    def _norms(self, data: MetricData, G: np.ndarray) -> np.ndarray:
        """‖g_v‖ as (m, P)."""
        return np.array([np.linalg.norm(G[own], axis=0) for own in data.parts()])

    def value(self, data: MetricData, G: np.ndarray) -> float:
        """Σ_p Ω(g_p)."""
        return sum(self.norm.norm(n) for n in self._norms(data, G).T)

    def violation(self, data: MetricData, G: np.ndarray, measured: Measured) -> float:
        """The distance of 2M_v'(y - Mg) from the subgradients of Ω."""
        worst = 0.0
        for p, n in enumerate(self._norms(data, G).T):
            pulls = [2 * measured.pulls[own, p] for own in data.parts()]
            if not n.any():
                worst = max(worst, 1 - self.norm.room(np.array([np.linalg.norm(u) for u in pulls])))
                continue
            within, along = self.norm.slopes(n)
            for v, (own, u) in enumerate(zip(data.parts(), pulls, strict=True)):
                if n[v]:
                    worst = max(worst, float(np.abs(u - along[v] * G[own, p]).max()))
                else:
                    worst = max(worst, float(np.linalg.norm(u)) - within)
        return worst

    def dual(self, data: MetricData, measured: Measured) -> float:
        """That of each output, in sum."""
        total = 0.0
        for p in range(len(measured.losses)):
            pulls = np.array([float(np.sum(measured.pulls[own, p] ** 2)) for own in data.parts()])
            own_part = Fitted(float(measured.products[p]), float(measured.losses[p]), pulls, np.empty(0))
            total += self.norm.dual(own_part)
        return total

    def factors(self, data: MetricData, G: np.ndarray) -> list[np.ndarray]:
        """(λ/ηQ)^¼ g."""
        found = []
        for p, n in enumerate(self._norms(data, G).T):
            Q = self.norm.squared(n)
            scale = (self.alpha / (self.metric_penalty * Q)) ** 0.25 if Q else 0.0
            found.append(scale * G[:, p : p + 1])
        return found

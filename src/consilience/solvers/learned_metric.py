"""Metrics over views that are learned with the coefficients: one class for each penalty that the best metric leaves.

For G fixed the best metric is known, and the problem in G alone is convex. Each class minimizes it, and evaluates its
penalty, the violation of its optimality conditions and its dual value at any coefficients. Objective, residual and gap
are therefore those of the coefficients that are returned, whichever solver computed them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._backend import is_device_array, like, namespace, to_numpy
from .certificates import Solution, rademacher_bound
from .design_matrix import Measured, ViewMatrix
from .kernel_weights import BlockNorm, Fitted, learn_kernel_weights
from .linalg import column_norms, drop_null_space, eigh_positive, forward, gram_of, multiply, norm, solve_general
from .metric import direct_metric, dual_value, kappa_of, rank_one_metric
from .output_kernel import learn_output_kernel
from .weights import Evaluation, learn_weights, with_learned

Minimum = tuple[Any, int, str]  # G, number of iterations, status


class LearnedMetric(ABC):
    """The problem min_G ‖Y - MG‖² + the penalty that the best metric leaves, over M for any weights of the views.

    Parameters
    ----------
    system : DesignMatrix or MomentMatrix
        M and the targets.
    alpha, metric_penalty : float
        λ and η.
    tol : float
        Relative gap at which a solution is accepted.
    max_iter : int
        Maximum number of steps.
    """

    shared = False  # one metric for all outputs
    sparse = False  # the penalty on the metric is Σ_γ ‖A_γ‖_F over pairs of views

    def __init__(self, system: ViewMatrix, alpha: float, metric_penalty: float, *, tol: float, max_iter: int):
        self.system, self.alpha, self.metric_penalty, self.tol, self.max_iter = (
            system, alpha, metric_penalty, tol, max_iter,
        )  # fmt: skip
        self.kappa = kappa_of(alpha, metric_penalty)
        system.square_kernels()

    # -- what each penalty defines
    @abstractmethod
    def minimize(self, w: np.ndarray) -> Minimum:
        """Return G at the optimum for the weights w."""

    @abstractmethod
    def penalty(self, G: Any) -> float:
        """Return the penalty of coefficients."""

    @abstractmethod
    def violation(self, G: Any, measured: Measured) -> float:
        """Return the largest entry of the gradient of the objective."""

    @abstractmethod
    def dual(self, measured: Measured) -> float:
        """Return a lower bound on the optimum, from the residuals."""

    @abstractmethod
    def factors(self, G: Any) -> list[Any]:
        """Return F with FF' the best metric for G: one for each output, or one for all."""

    def dual_over_weights(self, measured: Measured, radius: float) -> float | None:
        """Return a lower bound on the optimum over all weights of this length, where one is known."""
        return None

    # -- the same for all
    def solve(self, w: np.ndarray | None, starts: Sequence[np.ndarray] | None = None) -> Solution:
        """Return (coefficients of each view, w, factors of the metrics by view) as x, for given w or the best one.

        Where the matrices are not positive semi-definite, the status is "indefinite", and x is None.
        """
        try:
            if w is not None:
                G, n_iter, status = self.minimize(w)
                return self.measured(w, G, n_iter, status)
            assert starts is not None
            learned = learn_weights(self.evaluate, [np.abs(c) for c in starts], tol=self.tol, max_iter=self.max_iter)
            return with_learned(self.solve(np.abs(learned.x)), learned)  # signs are those of G
        except np.linalg.LinAlgError:
            return Solution(None, None, 0, "indefinite")

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return the optimal value for w, its gradient in w, and a lower bound over all w of this length."""
        G = self.minimize(w)[0]
        measured = self.system.measure(w, G)
        value = float(measured.losses.sum()) + self.penalty(G)
        return value, self.system.weight_slopes(w, G, measured), self.dual_over_weights(measured, norm(w))

    def measured(self, w: np.ndarray, G: Any, n_iter: int, status: str, factors: list[Any] | None = None) -> Solution:
        """Return coefficients and metrics as a solution, with the objective, gap and residual of G itself.

        The metrics are the best ones for G, unless others are given by their `factors`.
        """
        measured = self.system.measure(w, G)
        objective = float(measured.losses.sum()) + self.penalty(G)
        gap = max(objective - self.dual(measured), 0.0) + measured.unseen
        if status in ("exact", "converged") and not gap <= max(2 * self.tol, 1e-6) * abs(objective):
            status = "inexact"
        residual = max(self.violation(G, measured), 0.0)
        sizes = self.best_sizes(G) if factors is None else self._sizes(G, factors)
        # Rademacher complexity (Theorem 1), the largest over the outputs
        n, size = self.system.weight, self.system.squared_size()
        bound = max(rademacher_bound(large, length, size, n) for large, length in sizes)
        by_view = [self.system.by_view(F) for F in (self.factors(G) if factors is None else factors)]
        x = self.system.by_view(G), w, by_view
        return Solution(x, gap, n_iter, status, objective=objective, residual=residual, bound=bound)

    def best_sizes(self, G: Any) -> list[tuple[float, float]]:
        """Return ‖A‖_F and ‖f‖ = tr(G'A†G)½ of the best metric for G: for each output, or one for all."""
        return self._sizes(G, self.factors(G))

    def _sizes(self, G: Any, factors: list[Any]) -> list[tuple[float, float]]:
        """Return the same for metrics given by their factors."""
        parts = [G] if self.shared else [G[:, p : p + 1] for p in range(G.shape[1])]
        return [(norm(multiply(F.T, F)), _function_norm(own, F)) for own, F in zip(parts, factors, strict=True)]


def _function_norm(G: Any, F: Any) -> float:
    """Return ‖f‖ = tr(G'A†G)½ for A = FF': the length of F⁺G."""
    if not norm(F):
        return 0.0
    if F.shape[0] == F.shape[1] and not is_device_array(F) and not np.triu(F, 1).any():
        return norm(forward(F, G))  # a triangular factor, from the published scheme
    # F⁺ = (F'F)⁻¹F', as F has full rank
    return norm(solve_general(to_numpy(multiply(F.T, F)), to_numpy(multiply(F.T, G))))


class MetricPerOutput(LearnedMetric):
    """A metric for each output, with ‖A‖_F²: the penalty is κ‖g‖^(4/3), and A = a gg'/‖g‖² with a = (λ‖g‖²/2η)^⅓."""

    def minimize(self, w: np.ndarray) -> Minimum:
        """Solve one equation for each output."""
        system = self.system
        if system.n_outputs <= 2 and not system.is_decomposed(w):  # a decomposition takes as long as ten factors
            A, b = system.small_side(w)
            each = [b[:, p : p + 1] for p in range(system.n_outputs)]
            try:
                columns = [direct_metric(A, own, self.kappa, moments=not system.dual) for own in each]
                return system.from_small_side(w, namespace(A).concat(columns, axis=1)), 1, "exact"
            except np.linalg.LinAlgError:  # ρ is too small for Cholesky factors
                pass
        spectrum = system.spectrum(w)
        solution = rank_one_metric(spectrum, self.kappa)
        return system.from_spectrum(w, spectrum, solution.x), 1, solution.status

    def penalty(self, G: Any) -> float:
        """Return κ Σ_p ‖g_p‖^(4/3)."""
        return self.kappa * float(np.sum(column_norms(G) ** (4 / 3)))

    def violation(self, G: Any, measured: Measured) -> float:
        """Return the largest entry of 2M'(y - Mg) - (4κ/3) ‖g‖^(-2/3) g."""
        norms = column_norms(G)
        scale = np.divide(4 / 3 * self.kappa, np.cbrt(norms) ** 2, out=np.zeros_like(norms), where=norms > 0)
        return _largest_entry(2 * measured.correlations - like(scale[None, :], G) * G)

    def dual(self, measured: Measured) -> float:
        """Return the sum of the outputs' dual values."""
        # ‖M'b‖⁴: see the lower bounds in docs/guide/exact_metric.md
        fourth = column_norms(measured.correlations) ** 4
        return float(np.sum(dual_value(measured.products, measured.losses, fourth, self.kappa)))

    def dual_over_weights(self, measured: Measured, radius: float) -> float | None:
        """Return the dual value for the worst w: the conjugate is convex in w², so all weight is on one view."""
        if not self.system.complete:
            return None
        lengths = self.system.view_sums(measured.unweighted**2)  # (m, P)
        fourth = float(np.max(np.sum((radius**2 * lengths) ** 2, axis=1)))
        return float(dual_value(measured.products.sum(), measured.losses.sum(), np.array(fourth), self.kappa))

    def factors(self, G: Any) -> list[Any]:
        """Return √a g/‖g‖ of each output."""
        norms = column_norms(G)
        a = np.cbrt(self.alpha * norms**2 / (2 * self.metric_penalty))
        scaled = like(np.divide(np.sqrt(a), norms, out=np.zeros_like(norms), where=norms > 0)[None, :], G) * G
        return [scaled[:, p : p + 1] for p in range(G.shape[1])]

    def best_sizes(self, G: Any) -> list[tuple[float, float]]:
        """Return a and ‖g‖/√a of each output."""
        norms = column_norms(G)
        a = np.cbrt(self.alpha * norms**2 / (2 * self.metric_penalty))
        lengths = np.divide(norms, np.sqrt(a), out=np.zeros_like(norms), where=norms > 0)
        return list(zip(a.tolist(), lengths.tolist(), strict=True))


class SharedMetric(LearnedMetric):
    """One metric for all outputs, with ‖A‖_F²: the penalty is κ Σ_i s_i(G)^(4/3), and A = (λ/2η)^⅓ (GG')^⅓."""

    shared = True
    _rows: Any = None
    _last: tuple[Any, np.ndarray, Any, Any] | None = None  # of the last G: see `_singular`

    def minimize(self, w: np.ndarray) -> Minimum:
        """Solve the equal problem of a kernel between the outputs."""
        spectrum = self.system.spectrum(w)
        solution = learn_output_kernel(spectrum, self.alpha, self.metric_penalty, tol=self.tol, max_iter=self.max_iter)
        S, Q, _ = solution.x
        return self.system.from_spectrum(w, spectrum, multiply(S, Q.T)), solution.n_iter, solution.status

    def penalty(self, G: Any) -> float:
        """Return κ Σ_i s_i^(4/3)."""
        return self.kappa * float(np.sum(self._singular(G)[0] ** (2 / 3)))  # the values are squares: s^(4/3)

    def _narrow(self, G: Any) -> Any:
        """Return G, or with more outputs than rows G in the space of the rows of Y, where its rows are."""
        if self.system.n_outputs <= min(self.system.n, sum(self.system.sizes)):
            return G
        if self._rows is None:
            self._rows = self.system.output_space()
        return multiply(G, self._rows)

    def _singular(self, G: Any) -> tuple[np.ndarray, Any, Any]:
        """Return the squared singular values of G, its right vectors V and GV, computed once for each G."""
        if self._last is None or self._last[0] is not G:
            narrow = self._narrow(G)
            values, vectors = drop_null_space(*eigh_positive(gram_of(narrow)))
            V = vectors if self._rows is None else multiply(self._rows, vectors)
            self._last = G, values, V, multiply(narrow, vectors)
        return self._last[1:]

    def violation(self, G: Any, measured: Measured) -> float:
        """Return the largest entry of 2M'(Y - MG) - (4κ/3) G(G'G)^(-⅓)."""
        values, V, turned = self._singular(G)
        slope = multiply(turned * like(_power(values, -1 / 3)[None, :], G), V.T)
        return _largest_entry(2 * measured.correlations - 4 / 3 * self.kappa * slope)

    def dual(self, measured: Measured) -> float:
        """Return the dual value, from the singular values of M'B: Σ s_i⁴ is the squared size of its Gram matrix."""
        fourth = np.array(norm(gram_of(self._narrow(measured.correlations))) ** 2)
        return float(dual_value(measured.products.sum(), measured.losses.sum(), fourth, self.kappa))

    def factors(self, G: Any) -> list[Any]:
        """Return (λ/2η)^(1/6) G(G'G)^(-⅓), turned so that each direction has a column."""
        values, _, turned = self._singular(G)
        first = int(np.sum(values <= 0))  # the values ascend
        scale = (self.alpha / (2 * self.metric_penalty)) ** (1 / 6) * _power(values[first:], -1 / 3)
        return [turned[:, first:] * like(scale[None, :], G)]

    def best_sizes(self, G: Any) -> list[tuple[float, float]]:
        """Return ‖A‖_F and ‖f‖ for A = a(GG')^⅓: a and 1/√a times the root of Σ_i s_i^(4/3)."""
        total, a = np.sum(self._singular(G)[0] ** (2 / 3)), np.cbrt(self.alpha / (2 * self.metric_penalty))
        return [(float(a * np.sqrt(total)), float(np.sqrt(total / a)))]


def _largest_entry(A: Any) -> float:
    return float(namespace(A).max(namespace(A).abs(A)))


def _power(values: np.ndarray, exponent: float) -> np.ndarray:
    return np.power(values, exponent, out=np.zeros_like(values), where=values > 0)


class BlockSparseMetric(LearnedMetric):
    """A metric for each output, with Σ_γ ‖A_γ‖_F over pairs of views: the penalty is `BlockNorm`, and A = gg' √(λ/ηQ).

    `start` are the kernel weights of a solved problem, by output: the next solution starts there.
    """

    sparse = True

    def __init__(
        self,
        system: ViewMatrix,
        alpha: float,
        metric_penalty: float,
        *,
        tol: float,
        max_iter: int,
        start: dict[int, np.ndarray] | None = None,
    ):
        super().__init__(system, alpha, metric_penalty, tol=tol, max_iter=max_iter)
        self.norm = BlockNorm(alpha, metric_penalty)
        self.kernel_weights = dict(start or {})  # d of each output

    def minimize(self, w: np.ndarray) -> Minimum:
        """Learn weights of the views' kernels for each output."""
        start = np.full(len(w), 1 / np.sqrt(self.alpha * self.metric_penalty))  # the alternation corrects the scale
        columns, n_iter, status = [], 0, "converged"
        groups = [slice(p, p + 1) for p in range(self.system.n_outputs)]
        for p, fit in enumerate(self.system.kernel_fits(w, groups)):
            before = self.kernel_weights.get(p, start)
            before = before if before.any() else start
            solution = learn_kernel_weights(fit, self.norm, before, tol=self.tol, max_iter=self.max_iter)
            d = self.kernel_weights[p] = solution.x
            start = d if d.any() else start  # near for the next output too
            columns.append(self.system.from_kernel_weights(w, fit, d))
            n_iter, status = max(n_iter, solution.n_iter), status if solution.converged else solution.status
        return namespace(*columns).concat(columns, axis=1), n_iter, status

    def _view_norms(self, G: Any) -> np.ndarray:
        """Return ‖g_v‖ as (P, m)."""
        return np.sqrt(self.system.squared_norms(G)).T

    def penalty(self, G: Any) -> float:
        """Return Σ_p Ω(g_p)."""
        return sum(self.norm.norm(n) for n in self._view_norms(G))

    def violation(self, G: Any, measured: Measured) -> float:
        """Return the distance of 2M_v'(y - Mg) from the subgradients of Ω."""
        worst = 0.0
        for p, n in enumerate(self._view_norms(G)):
            gradients = [2 * measured.correlations[own, p : p + 1] for own in self.system.columns]
            lengths = np.array([norm(u) for u in gradients])
            if not n.any():
                # g = 0 is optimal where the dual norm of 2M'y is at most 1
                worst = max(worst, 1 - self.norm.room(lengths))
                continue
            within, along = self.norm.slopes(n)
            for v, (own, u) in enumerate(zip(self.system.columns, gradients, strict=True)):
                # Ω is smooth where n_v > 0; elsewhere all vectors of a ball are subgradients
                excess = _largest_entry(u - float(along[v]) * G[own, p : p + 1]) if n[v] else lengths[v] - within
                worst = max(worst, excess)
        return worst

    def dual(self, measured: Measured) -> float:
        """Return the sum of the outputs' dual values."""
        by_view = self.system.view_sums(measured.correlations**2)  # (m, P)
        return sum(
            self.norm.dual(Fitted(float(value), float(loss), own, np.empty(0)))
            for value, loss, own in zip(measured.products, measured.losses, by_view.T, strict=True)
        )

    def factors(self, G: Any) -> list[Any]:
        """Return (λ/ηQ)^¼ g of each output."""
        factors = []
        for p, n in enumerate(self._view_norms(G)):
            Q = self.norm.squared(n)
            scale = (self.alpha / (self.metric_penalty * Q)) ** 0.25 if Q else 0.0
            factors.append(scale * G[:, p : p + 1])
        return factors

"""What metric learners share: learned and fixed metrics over prepared data, weights of views, what is proved."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.linalg

from .._backend import few_threads
from ..solvers.certificates import Certificate, Solution, rademacher_bound, warn_unless_converged
from ..solvers.metric import alternate_metric
from ..solvers.weights import Evaluation, learn_weights
from ..views.container import Views
from ._frame import ReadsTargets, Rows, not_positive_kernels, with_learned
from ._metric_features import FeatureData
from ._metric_penalties import BlockSparse, MetricPenalty, RankOne, Shared
from ._metric_problems import FixedSolution, GramData, MetricData
from ._view_metric import ViewMetric

_LEARNED = ("learned", "block_sparse")
_FIXED = ("covariance", "diagonal")


class MetricFrame(ReadsTargets):
    """What metric learners share; subclasses read targets or labels."""

    metric: Any
    alpha: float
    metric_penalty: float
    shared_metric: bool
    solver: str
    metric_: ViewMetric | None
    _bound: float | None

    def _penalties(self) -> tuple[float, float]:
        """λ and η."""
        return self.alpha, self.metric_penalty

    def _check_parameters(self) -> None:
        self._check_numbers(above=("alpha", "metric_penalty"))
        self._check_metric()

    def _check_metric(self) -> None:
        if isinstance(self.metric, str) and self.metric not in (*_LEARNED, *_FIXED):
            raise ValueError(
                f"`metric` is 'learned', 'block_sparse', 'covariance', 'diagonal' or a matrix; got {self.metric!r}."
            )
        if self.solver not in ("exact", "alternating"):
            raise ValueError(f"`solver` is 'exact' or 'alternating'; got {self.solver!r}.")
        if self.shared_metric and not self._is("learned"):
            raise ValueError(
                "`shared_metric` is for metric='learned': a block-sparse metric for several outputs at once has no "
                "solution in the coefficients alone, and fixed metrics are shared as they are. Use metric='learned' or "
                "shared_metric=False."
            )

    def _is(self, *names: str) -> bool:
        return isinstance(self.metric, str) and self.metric in names

    def _data(self, rows: Rows, Y: np.ndarray, u: np.ndarray) -> MetricData:
        make: Any = GramData if self.n_components is None else FeatureData
        return make(self, rows, rows.first(Y), rows.first(u))

    def _penalty(self) -> MetricPenalty:
        make: Any = BlockSparse if self._is("block_sparse") else Shared if self.shared_metric else RankOne
        return make(*self._penalties(), self.tol, int(self.max_iter))

    def _fit_targets(self, X: Views, Y: np.ndarray, labeled: np.ndarray, s: np.ndarray, u: np.ndarray) -> Self:
        taken = labeled & (u > 0)
        rows = self._arrange(X, taken, np.where(taken, s, 0), with_unlabeled=False)
        with few_threads(len(rows.order), most=1300):
            return self._fit_data(rows, self._data(rows, Y, u))

    def _fit_data(self, rows: Rows, data: MetricData) -> Self:
        try:
            return self._learn(rows, data)
        except np.linalg.LinAlgError as error:
            raise not_positive_kernels(self, error) from error

    def _learn(self, rows: Rows, data: MetricData) -> Self:
        if not self._is(*_LEARNED):
            return self._fit_fixed(rows, data)
        penalty = self._penalty()
        if self.solver == "alternating":
            return self._fit_alternating(rows, data, penalty)
        w = self._given_weights()
        learned = None
        if w is None:
            learned = self._learn_weights(data, penalty)
            w = np.abs(learned.x)  # signs are those of g
        G, n_iter, status = penalty.solve(data, w)
        return self._finish(rows, data, penalty, w, G, penalty.factors(data, G), n_iter, status, learned)

    def _finish(
        self,
        rows: Rows,
        data: MetricData,
        penalty: MetricPenalty,
        w: np.ndarray,
        G: np.ndarray,
        factors: list[np.ndarray],
        n_iter: int,
        status: str,
        learned: Solution | None,
    ) -> Self:
        """Keep a learned metric, with what is proved of the coefficients themselves."""
        measured = data.measure(w, G)
        objective = float(measured.losses.sum()) + penalty.value(data, G)
        gap = max(objective - penalty.dual(data, measured), 0.0)
        if status in ("exact", "converged") and not gap <= max(2 * self.tol, 1e-6) * abs(objective):
            status = "inexact"
        residual = max(penalty.violation(data, G, measured), 0.0)
        solution = Solution(None, gap, n_iter, status, objective=objective, residual=residual)
        self.solution_ = solution if learned is None else with_learned(solution, learned)
        parts = data.for_prediction(G)
        self._keep(rows, parts, data.form, every_row=True)
        self.view_weights_ = w
        self.active_views_ = _active(self._used_views, parts)
        by_view = [data.for_prediction(F) for F in factors]
        self.metric_ = ViewMetric._of(self, [self._whole_rows(rows, data, F) for F in by_view], penalty.shared)
        # the class of functions of Theorem 1: ‖A‖_F, and ‖f‖² = tr(G'A†G), largest over the outputs
        norms = [float(np.sqrt(np.sum((F.T @ F) ** 2))) for F in factors]
        lengths = [_length(G if penalty.shared else G[:, p : p + 1], F) for p, F in enumerate(factors)]
        n, size = float(data.s.sum()), data.squared_size()
        self._bound = max(rademacher_bound(a, b, size, n) for a, b in zip(norms, lengths, strict=True))
        warn_unless_converged(self.solution_, type(self).__name__)
        return self

    def _whole_rows(self, rows: Rows, data: MetricData, parts: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Factors by view over all samples that are kept, zero where a view is absent."""
        names = rows.X.names
        if isinstance(data, FeatureData):
            return dict(zip(names, parts, strict=True))
        back = np.argsort(rows.order)
        found = {}
        for name, here, own in zip(names, data.rows, parts, strict=True):  # type: ignore[attr-defined]
            whole = np.zeros((len(rows.order), own.shape[1]))
            whole[here] = own
            found[name] = whole[back]
        return found

    def _learn_weights(self, data: MetricData, penalty: MetricPenalty) -> Solution:
        radius = self._norm()

        def evaluate(w: np.ndarray) -> Evaluation:
            G = penalty.solve(data, w)[0]
            measured = data.measure(w, G)
            value = float(measured.losses.sum()) + penalty.value(data, G)
            return value, measured.slope, penalty.over_weights(data, measured, radius)

        starts = [np.abs(start) for start in self._starts()]
        return learn_weights(evaluate, starts, tol=self.tol, max_iter=int(self.max_iter))

    def _fit_alternating(self, rows: Rows, data: MetricData, penalty: MetricPenalty) -> Self:
        w, learn = self._given_weights(), False
        if w is None:
            if not data.complete:
                raise ValueError(
                    "solver='alternating' learns weights of views for complete samples only. Use solver='exact', or "
                    "give `view_weights`."
                )
            w, learn = self._starts()[0], True
        C, c = data.moments(np.ones_like(w) if data.complete else w)
        found = alternate_metric(
            C,
            c,
            np.sum(data.Y**2, axis=0),
            data.sizes,
            w if data.complete else np.ones_like(w),
            *self._penalties(),
            sparse=penalty.sparse,
            shared=penalty.shared,
            learn_weights=learn,
            tol=self.tol,
            max_iter=int(self.max_iter),
        )
        G, metrics = found.x.G, found.x.metrics
        w = found.x.w if data.complete else w
        factors = [np.linalg.cholesky(A) for A in metrics]
        self._finish(rows, data, penalty, w, G, factors, found.n_iter, found.status, None)
        # the objective is that of the metric where the steps ended, not of the best one for these coefficients
        gap = None if learn else float(found.objective) - (self.solution_.objective - self.solution_.gap)  # type: ignore[arg-type]
        self.solution_ = replace(self.solution_, objective=found.objective, gap=gap)
        return self

    # -- fixed metrics
    def _fit_fixed(self, rows: Rows, data: MetricData) -> Self:
        metric = self._metric_of(rows, data)
        w, learned = self._given_weights(), None
        if w is None:
            learned = self._learn_fixed_weights(data, metric)
            w = np.abs(learned.x) if self._is("diagonal") else learned.x
        found = data.fixed(w, metric, self._penalties()[0])
        objective, bound = self._fixed_value(found, w)
        gap = max(objective - bound, 0.0)
        status = "exact" if gap <= 1e-6 * abs(objective) else "inexact"
        solution = Solution(None, gap, 1, status, objective=objective)
        self.solution_ = solution if learned is None else with_learned(solution, learned)
        self._keep(rows, found.coefficients, data.form, every_row=True)
        self.view_weights_ = w
        self.active_views_ = _active(self._used_views, found.coefficients)
        self.metric_ = None
        self._bound = None
        warn_unless_converged(self.solution_, type(self).__name__)
        return self

    def _fixed_value(self, found: FixedSolution, w: np.ndarray) -> tuple[float, float]:
        """The objective, and the dual value at the residuals."""
        objective = float(np.sum(found.losses + found.penalties))
        conjugate = float(w @ found.between_views @ w) / self._penalties()[0]
        products, losses = float(found.products.sum()), float(found.losses.sum())
        below = losses + conjugate
        return objective, products**2 / below if below else 0.0

    def _learn_fixed_weights(self, data: MetricData, metric: Any) -> Solution:
        radius = self._norm()

        def evaluate(w: np.ndarray) -> Evaluation:
            found = data.fixed(w, metric, self._penalties()[0])
            objective, _ = self._fixed_value(found, w)
            if not data.complete:
                return objective, found.slope, None
            largest = radius**2 * float(np.linalg.eigvalsh(found.between_views)[-1]) / self._penalties()[0]
            below = float(found.losses.sum()) + largest
            return objective, found.slope, float(found.products.sum()) ** 2 / below if below else 0.0

        return learn_weights(evaluate, self._starts(), tol=self.tol, max_iter=int(self.max_iter))

    def _metric_of(self, rows: Rows, data: MetricData) -> Any:
        """A fixed metric: its name, or the matrix given."""
        return self.metric if isinstance(self.metric, str) else self._given_metric(rows, data)

    def _given_metric(self, rows: Rows, data: MetricData) -> np.ndarray:
        """A matrix given as the metric, for the rows that take part."""
        try:
            A = np.array(self.metric, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"`metric` must be a name or a matrix of numbers; got {self.metric!r}.") from error
        names = self.view_names_in_
        if isinstance(data, FeatureData):
            size, what = sum(data.sizes), f"a row for each feature of the views used, {sum(data.sizes)}"
        else:
            size = len(names) * rows.n
            what = f"a row for each view and sample given to fit, {len(names)} x {rows.n}"
        if A.shape != (size, size) or not np.isfinite(A).all():
            raise ValueError(
                f"`metric` must be a finite square matrix with {what}; got shape {A.shape}. Where samples are divided, "
                "as in cross-validation, a metric over samples cannot be given."
            )
        largest = float(np.abs(A).max())
        if np.abs(A - A.T).max() > 1e-8 * largest:
            raise ValueError(
                f"`metric` is not symmetric: entries that should be equal differ by {np.abs(A - A.T).max():.4g}. Give "
                "(A + A') / 2 if that is meant."
            )
        if isinstance(data, GramData):
            taken = np.concatenate([names.index(name) * rows.n + rows.order for name in rows.X.names])
            A = A[np.ix_(taken, taken)]
        least = float(np.linalg.eigvalsh(A)[0])
        if least < -1e-8 * largest:
            raise ValueError(f"`metric` must be positive semi-definite; its smallest eigenvalue is {least:.4g}.")
        return A

    def certificate(self) -> Certificate:
        """Return what is proved about the fit.

        Returns
        -------
        Certificate
            The objective, its gap to the optimum, the largest violation of the optimality conditions and, of learned
            metrics, the bound on the empirical Rademacher complexity of functions (f_1 .. f_m), before they are
            combined, with a metric and a norm no larger than these (Huusari, Kadri and Capponi 2018, Theorem 1); the
            largest over the outputs.
        """
        return replace(super().certificate(), bound=self._bound)


def _active(names: tuple[str, ...], parts: list[np.ndarray]) -> tuple[str, ...]:
    return tuple(name for name, own in zip(names, parts, strict=True) if own.any())


def _length(G: np.ndarray, F: np.ndarray) -> float:
    """‖f‖ = tr(G'A†G)½ for A = FF': the length of F⁺G."""
    if not F.any():
        return 0.0
    if F.shape[0] == F.shape[1]:  # a factor of Cholesky's, by the published scheme
        return float(np.linalg.norm(scipy.linalg.solve_triangular(F, G, lower=True)))
    return float(np.linalg.norm(np.linalg.solve(F.T @ F, F.T @ G)))

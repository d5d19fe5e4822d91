"""Penalties of metric learning, chosen by leave-one-out from one decomposition."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from .._backend import few_threads
from .._progress import report_progress
from ..solvers.certificates import Solution
from ..solvers.coregularized import right_share
from ..solvers.fixed_metric import FixedMetric
from ..solvers.held_out_metric import HeldOutFixed, HeldOutLearned, HeldOutMetric, HeldOutShared, HeldOutSparse
from ..views._docs import shared_docs
from ..views.estimator import ViewClassifier, ViewRegressor
from ._estimator import BatchEstimator, constraints
from ._fit import TrainingData, distinct_samples, double_design, given_weights, raise_if_indefinite, read_training
from ._memory import plan_memory
from .metric import (
    METRIC_CONSTRAINTS,
    MetricSystem,
    check_shared_metric,
    fixed_metric,
    has_metric,
    metric_problem,
    metric_system,
    store_metric,
    takes_several,
)

__all__ = ["ViewMetricRidgeCV", "ViewMetricRidgeClassifierCV"]

_PARAMETERS = ("shared_metric", "view_weights", "n_components", "tol", "max_iter", "random_state", "verbose")


def _penalty_grid(estimator: Any) -> list[tuple[float, float]]:
    """Return every pair of λ and η to try."""
    values = []
    for name in ("alphas", "metric_penalties"):
        given = getattr(estimator, name)
        try:
            values.append(np.ravel(np.asarray(given, dtype=np.float64)))
        except (TypeError, ValueError):
            values.append(np.array([]))
        if not len(values[-1]) or not (np.isfinite(values[-1]) & (values[-1] > 0)).all():
            raise ValueError(f"`{name}` must hold finite numbers above 0; got {given!r}.")
    return [(float(alpha), float(penalty)) for alpha in values[0] for penalty in values[1]]


def _held_out(estimator: Any, data: TrainingData, system: MetricSystem, w: np.ndarray) -> HeldOutMetric:
    """Return the leave-one-out residuals of the metric that the parameters name, for any penalties."""
    steps = {"tol": estimator.tol, "max_iter": estimator.max_iter}
    if has_metric(estimator, "block_sparse"):
        return HeldOutSparse(system, w, **steps)
    if has_metric(estimator, "learned"):
        return HeldOutShared(system, w, **steps) if estimator.shared_metric else HeldOutLearned(system, w)
    return HeldOutFixed(FixedMetric(system, fixed_metric(estimator, data, system.design), 1.0, **steps), w)


def choose_metric_penalties(
    estimator: Any, data: TrainingData, system: MetricSystem, grid: list[tuple[float, float]], w: np.ndarray
) -> tuple[float, float]:
    """Score every pair of penalties by hidden targets, store the scores, and return the best pair."""
    try:
        held = _held_out(estimator, data, system, w)
        keys = [f"{held.key(*pair):.9e}" for pair in grid]
        by_key: dict[str, tuple[float, float]] = {}  # pairs with equal residuals share a score
        for key, pair in zip(keys, grid, strict=True):
            by_key.setdefault(key, pair)
        totals, weight = np.zeros(len(by_key)), np.zeros(len(by_key))
        for k, (Y, u, residuals) in held.residuals(list(by_key.values())):
            report_progress(k + 1, None, of=len(by_key), unit="pair of penalties")
            outputs = Y - residuals / np.sqrt(u)[:, None]
            totals[k] += u.sum() * _score(estimator, outputs, Y, u)
            weight[k] += u.sum()
    except np.linalg.LinAlgError:
        raise_if_indefinite(estimator, Solution(None, None, 0, "indefinite"))
    score_of = dict(zip(by_key, (totals / weight).tolist(), strict=True))
    scores = [score_of[key] for key in keys]
    if not held.converged:
        warnings.warn(
            f"{type(estimator).__name__}: some solutions of the grid did not reach `tol` within `max_iter` steps. "
            "Raise `max_iter`, or `tol`.",
            ConvergenceWarning,
            stacklevel=3,
        )
    best = max(range(len(grid)), key=lambda k: (scores[k], *grid[k]))
    estimator.alpha_, estimator.metric_penalty_ = grid[best]
    estimator.best_score_ = scores[best]
    estimator.cv_results_ = {
        "alpha": np.array([alpha for alpha, _ in grid]),
        "metric_penalty": np.array([penalty for _, penalty in grid]),
        "score": np.array(scores),
    }
    return grid[best]


def _score(estimator: Any, outputs: np.ndarray, Y: np.ndarray, u: np.ndarray) -> float:
    """Return the share of correct classes, or minus the mean squared error."""
    if is_classifier(estimator):
        return right_share(outputs, Y, u, estimator._indicator)
    return -float(np.average(((outputs - Y) ** 2).mean(axis=1), weights=u))


@shared_docs
@dataclass(eq=False, repr=False)
class ViewMetricRidgeCV(ViewRegressor, BatchEstimator):
    """MVML with λ and η chosen by leave-one-out: `ViewMetricRidge` for a whole grid from one decomposition.

    The solution for every λ and η comes from the singular values and vectors of M. So do the predictions at each sample
    with its own target hidden, exactly: the residual is (Qy)_i/Q_ii with Q = (MM' + ρI)⁻¹, where ρ solves its equation
    again without the target (for a fixed metric ρ = λ). The sample stays among those that kernels, landmarks and a
    covariance are made of.

    With ``shared_metric=True`` the learned kernel between outputs, and with ``metric="block_sparse"`` the weights of
    the views, stay as they are with all targets. The other scores equal those of refits with one target left out.
    Scores are minus the mean squared error.

    Parameters
    ----------
    {kernel_metric}
    {metric}
    alphas : array-like of float, default=(1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
        Values of `alpha` to try, the penalty λ on the norm of the function.
    metric_penalties : array-like of float, default=(1.0,)
        Values of `metric_penalty` to try. Predictions of a learned metric depend on λ²η alone, those of a block-sparse
        metric on λη.
    {shared_metric}
    {view_weights_given}
    {n_components_shared}
    {tol_gap}
    {max_iter_steps}
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    alpha_, metric_penalty_ : float
        Chosen penalties. Among equal scores the largest λ wins, then the largest η.
    best_score_ : float
        Their score.
    cv_results_ : dict of array
        ``alpha``, ``metric_penalty`` and ``score`` of every pair.
    {metric_}
    {active_views_}
    {view_weights_}
    {dual_coef_metric}
    {support_}
    {coef_several}
    {kernels_several}
    {solution_metric}

    See Also
    --------
    ViewMetricRidge : The estimator for given penalties, with the program.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import ViewMetricRidgeCV, Views
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(60, 1))
    >>> X = Views(a=hidden + 0.3 * rng.normal(size=(60, 3)), b=hidden + 0.3 * rng.normal(size=(60, 2)))
    >>> model = ViewMetricRidgeCV().fit(X, np.sin(hidden[:, 0]))
    >>> model.alpha_
    0.1
    """

    _parameter_constraints = constraints(*_PARAMETERS, **METRIC_CONSTRAINTS)
    solver = "exact"

    kernel: Any = "rbf"
    _: KW_ONLY
    metric: Any = "learned"
    alphas: Any = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
    metric_penalties: Any = (1.0,)
    shared_metric: bool = False
    view_weights: Any = "uniform"
    n_components: float | None = None
    tol: float = 1e-6
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the penalties, then fit with them.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples. Blocks of rows have their targets and weights with them, and need `n_components`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets; samples whose targets are NaN are left out. For classification: classes, or an indicator of labels;
            samples without any are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples. A weight of 2 equals the sample given twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            check_shared_metric(self)
            grid = _penalty_grid(self)
            data = read_training(self, X, y, sample_weight, labeled_only=True, several=takes_several(self))
            data = distinct_samples(data, "For other folds, use GridSearchCV with ViewMetricRidge.")
            plan_memory(self, data)
            w = given_weights(self)
            if w is None:
                raise ValueError(
                    f"{type(self).__name__} takes given weights. To learn them, use view_weights='learned' in the "
                    "estimator without CV, with the penalties chosen here."
                )
            with few_threads(data.n_used):
                design = double_design(self, data, shared_landmarks=True)
                system = metric_system(self, data, design)
                penalties = choose_metric_penalties(self, data, system, grid, w)
                solution = metric_problem(self, data, system, *penalties).solve(w)
            return store_metric(self, data, design, solution)


@shared_docs
@dataclass(eq=False, repr=False)
class ViewMetricRidgeClassifierCV(ViewClassifier, BatchEstimator):
    """MVML for classes with λ and η chosen by leave-one-out; see `ViewMetricRidgeCV`.

    Targets are those of `ViewMetricRidgeClassifier`, which it equals with the chosen penalties. Scores are the share of
    samples classified correctly with their own label hidden. Samples count by their weights and those of their classes.

    Parameters
    ----------
    {Parameters of ViewMetricRidgeCV}
    {class_weight}
    {unlabeled_out}

    Attributes
    ----------
    {Attributes of ViewMetricRidgeCV}
    {classes_}

    See Also
    --------
    ViewMetricRidgeClassifier : The estimator for given penalties.

    Examples
    --------
    >>> from consilience import ViewMetricRidgeClassifierCV
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> model = ViewMetricRidgeClassifierCV(n_components=50, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:800], y[400:800]) > 0.85
    True
    """

    _parameter_constraints = constraints(*_PARAMETERS, **METRIC_CONSTRAINTS)
    _multi_label = True
    solver = "exact"

    kernel: Any = "rbf"
    _: KW_ONLY
    metric: Any = "learned"
    alphas: Any = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
    metric_penalties: Any = (1.0,)
    shared_metric: bool = False
    view_weights: Any = "uniform"
    n_components: float | None = None
    tol: float = 1e-6
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"
    class_weight: Any = None
    unlabeled: Any = None

    fit = ViewMetricRidgeCV.fit

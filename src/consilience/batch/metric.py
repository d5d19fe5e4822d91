"""Multi-view metric learning (MVML), exactly: a metric within and between views, learned with the function."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from .._backend import few_threads, spread_rows, take_rows
from ..solvers.alternating_metric import AlternatingMetric
from ..solvers.certificates import Solution
from ..solvers.design import Design, GramDesign
from ..solvers.design_matrix import DesignMatrix
from ..solvers.fixed_metric import FixedMetric
from ..solvers.learned_metric import BlockSparseMetric, LearnedMetric, MetricPerOutput, SharedMetric
from ..solvers.linalg import eigvalsh, largest_entry
from ..solvers.moment_matrix import MomentMatrix, view_matrix
from ..views._docs import shared_docs
from ..views.estimator import ViewClassifier, ViewRegressor
from ._estimator import BatchEstimator, constraints
from ._fit import TrainingData, double_design, given_weights, read_training, store_fit
from ._memory import plan_memory
from ._partial import SumsData, add_samples, keeps_sums, merge_sums
from ._terms import learns_weights, terms_of, weight_starts
from ._view_metric import ViewMetric

__all__ = ["ViewMetricRidge", "ViewMetricRidgeClassifier"]

METRIC_CONSTRAINTS = {"metric": [StrOptions({"learned", "block_sparse", "covariance", "diagonal"}), "array-like"]}
_PUBLISHED_CONSTRAINTS: dict[str, list[Any]] = {
    "view_weights": [StrOptions({"uniform", "learned", "least_squares"}), Mapping, "array-like"],
    "step_size": [Interval(Real, 0, None, closed="neither"), None],
}
_PARAMETERS = (
    "alpha", "metric_penalty", "shared_metric", "solver", "n_components", "n_restarts", "tol", "max_iter",
    "random_state", "verbose",
)  # fmt: skip


MetricSystem = DesignMatrix | MomentMatrix


# -- which problem
def has_metric(estimator: Any, *names: str) -> bool:
    """Tell whether the parameter `metric` is one of these names."""
    return isinstance(estimator.metric, str) and estimator.metric in names


def check_shared_metric(estimator: Any) -> None:
    """Refuse `shared_metric` for metrics other than the learned one."""
    if estimator.shared_metric and not has_metric(estimator, "learned"):
        raise ValueError(
            "`shared_metric` is for metric='learned': a block-sparse metric of several outputs has no solution in the "
            "coefficients alone, and fixed metrics are shared in any case. Use metric='learned' or shared_metric=False."
        )


def check_published(estimator: Any) -> None:
    """Refuse parameters of the published scheme where they have no meaning."""
    free, step = _free_weights(estimator), estimator.step_size
    name = "view_weights='least_squares'" if free else "`step_size`"
    if not free and step is None:
        return
    if not has_metric(estimator, "learned", "block_sparse"):
        raise ValueError(
            f"{name} is a step of the published scheme, which learns a metric. Use metric='learned' or "
            "metric='block_sparse', or leave it out."
        )
    if estimator.solver != "alternating":
        why = "the exact solver takes no steps on the metric"
        if free:
            why = "without a fixed length of the weights there is no optimum, and view_weights='learned' fixes it"
        raise ValueError(f"{name} is for solver='alternating', the published scheme: {why}.")
    if step is not None and has_metric(estimator, "learned") and not step * estimator.metric_penalty < 0.5:
        raise ValueError(
            f"`step_size` times `metric_penalty` must be below 1/2, or steps leave the positive semi-definite metrics "
            f"(Huusari, Kadri and Capponi 2018); got {step:g} times {estimator.metric_penalty:g}. Lower `step_size`."
        )


def takes_several(estimator: Any) -> bool:
    """Tell whether views may have several kernels: a metric between them, or their weights, are learned."""
    learned = has_metric(estimator, "learned", "block_sparse")
    return learned or (learns_weights(estimator) and isinstance(estimator.metric, str))


def _free_weights(estimator: Any) -> bool:
    return isinstance(estimator.view_weights, str) and estimator.view_weights == "least_squares"


def metric_system(estimator: Any, data: TrainingData, design: Design) -> MetricSystem:
    """Return the matrix of all views, over roots of the kernels for the diagonal metric."""
    if not isinstance(estimator.metric, str) and isinstance(design, GramDesign):
        design = replace(design, s=np.ones_like(design.s))  # over the samples themselves, whatever their weights
    return view_matrix(design, data, roots=has_metric(estimator, "diagonal"))


def metric_problem(
    estimator: Any, data: TrainingData, system: MetricSystem, alpha: float, metric_penalty: float
) -> LearnedMetric | AlternatingMetric | FixedMetric:
    """Return the problem that the parameters `metric`, `shared_metric` and `solver` name."""
    steps = {"tol": estimator.tol, "max_iter": estimator.max_iter}
    if not has_metric(estimator, "learned", "block_sparse"):
        return FixedMetric(system, fixed_metric(estimator, data, system.design), alpha, **steps)
    kind: type[LearnedMetric] = SharedMetric if estimator.shared_metric else MetricPerOutput
    kind = BlockSparseMetric if has_metric(estimator, "block_sparse") else kind
    problem = kind(system, alpha, metric_penalty, **steps)
    if estimator.solver == "exact":
        return problem
    if given_weights(estimator) is None and not system.complete:
        raise ValueError(
            "solver='alternating' learns weights of views only if every sample has every view. Use solver='exact', or "
            "give `view_weights`."
        )
    return AlternatingMetric(problem, estimator.step_size, free_weights=_free_weights(estimator))


def fixed_metric(estimator: Any, data: TrainingData, design: Design) -> str | np.ndarray:
    """Return the name of a fixed metric, or the matrix given, cut to the samples and views used."""
    if isinstance(estimator.metric, str):
        return estimator.metric
    try:
        A = np.array(estimator.metric, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`metric` must be a name or a matrix of numbers; got {estimator.metric!r}.") from error
    names = estimator.view_names_in_
    size, what = sum(design.sizes), f"a row for each feature of the views used, {sum(design.sizes)}"
    if isinstance(design, GramDesign):
        size, what = len(names) * data.n, f"a row for each view and sample given to fit, {len(names)} x {data.n}"
    if A.shape != (size, size) or not np.isfinite(A).all():
        raise ValueError(
            f"`metric` must be a finite square matrix with {what}; got shape {A.shape}. A metric over samples cannot "
            "be given where the samples are divided, as in cross-validation."
        )
    largest = float(np.abs(A).max())
    if np.abs(A - A.T).max() > 1e-8 * largest:
        raise ValueError(
            f"`metric` is not symmetric: entries that should be equal differ by {np.abs(A - A.T).max():.4g}. Give "
            "(A + A') / 2 if that is meant."
        )
    if isinstance(design, GramDesign):
        used = zip(data.X.names, design.rows, strict=True)
        rows = np.concatenate([names.index(name) * data.n + data.order[here] for name, here in used])
        A = A[np.ix_(rows, rows)]
    least = float(eigvalsh(A)[0])
    if least < -1e-8 * largest:
        raise ValueError(f"`metric` must be positive semi-definite; its smallest eigenvalue is {least:.4g}.")
    return A


# -- what is stored
def store_metric(estimator: Any, data: TrainingData, design: Design, solution: Solution) -> Any:
    """Store the fit, and the metric if it was learned; return the estimator."""
    store_fit(estimator, data, design, solution, every_row=True)
    coefficients, _, factors, *signs = solution.x
    names = data.X.names
    active = [term.view for term, own in zip(terms_of(estimator), coefficients, strict=True) if largest_entry(own)]
    estimator.active_views_ = tuple(dict.fromkeys(active))
    estimator.metric_ = None
    if factors is not None:
        if isinstance(design, GramDesign):
            factors = [_over_all_rows(data, design, F) for F in factors]
        by_view = [dict(zip(names, F, strict=True)) for F in factors]
        estimator.metric_ = ViewMetric._of(estimator, by_view, estimator.shared_metric, *signs)
    return estimator


def _over_all_rows(data: TrainingData, design: GramDesign, parts: list[np.ndarray]) -> list[np.ndarray]:
    """Return the factors of each view with a row for each stored sample, zero where the view is missing."""
    order = np.argsort(data.order)
    wholes = (spread_rows(own, here, len(order)) for here, own in zip(design.rows, parts, strict=True))
    return [take_rows(whole, order) for whole in wholes]


def _fit_sums(estimator: Any, data: SumsData) -> Any:
    """Fit the functions and the metric from sums over samples."""
    w = given_weights(estimator)
    with few_threads(data.n_used, most=1300):
        system = metric_system(estimator, data, data.design)
        problem = metric_problem(estimator, data, system, estimator.alpha, estimator.metric_penalty)
        solution = problem.solve(w, weight_starts(estimator) if w is None else None)
    return store_metric(estimator, data, data.design, solution)


@shared_docs
@dataclass(eq=False, repr=False)
class ViewMetricRidge(ViewRegressor, BatchEstimator):
    """MVML: least squares with a metric within and between views (Huusari, Kadri and Capponi 2018), solved exactly.

    Solves, over one function f_v(x) = k_v(x)'g_v per view and a metric A over the views' feature maps,

        min_{A ⪰ 0, g} Σ_i (y_i - Σ_v w_v f_v(x_i))² + λ g'A†g + η‖A‖_F²

    for each output. The kernel between views v and u is k_v(x)'A_vu k_u(z). For g fixed the best metric has rank one,
    and the problem in g alone is convex: ‖y - Mg‖² + κ‖g‖^(4/3) with M = [w_1 K_1 .. w_m K_m] and κ = 3 η^⅓ (λ/2)^⅔.
    That is kernel ridge with Σ_v w_v² K_v² and a ridge that solves one equation. One eigendecomposition serves all
    outputs.

    With ``metric="block_sparse"`` (MVMLsparse) the penalty is η Σ_γ ‖A_γ‖_F over pairs of views and leaves views out.
    With ``shared_metric=True`` one A serves all outputs, and the method equals output kernel learning with the kernel
    Σ_v w_v² K_v². With ``metric="diagonal"`` it equals ``sklearn.kernel_ridge.KernelRidge(alpha=alpha)`` on
    Σ_v w_v² k_v.

    With `n_components` the metric is over Nyström features. With all samples as landmarks that is the problem with K_v½
    for K_v, not the problem without `n_components`. Samples without a target are left out. A missing view takes no part
    in the row's loss: w is rescaled over the views present so that Σ|w| stays, and the view's row of A is 0.

    Parameters
    ----------
    {kernel_metric}
    {metric}
    alpha : float, default=0.1
        Penalty on the norm of the function, λ > 0.
    metric_penalty : float, default=1.0
        Penalty on the size of a learned metric, η > 0.
    {shared_metric}
    view_weights : "uniform", "learned", "least_squares", dict or array of shape (n_views,), default="uniform"
        Weights of the views: 1 / n_views each; given by name or in the order of the views, negative ones too; or
        learned together with the functions, with the length of uniform weights. "least_squares" is the published step
        w = (Z'Z)⁻¹Z'y over the views' outputs Z, of any length; only with solver="alternating".
    solver : {"exact", "alternating"}, default="exact"
        How a metric is learned. "alternating" is the published scheme: gradient steps from the identity, with
        backtracking unless `step_size` is given.
    step_size : float, optional
        Length μ of the published fixed steps on the metric, one in each round of solver="alternating". The objective
        may rise, and a block-sparse metric may become indefinite; `certificate` says so. For metric="learned" μη < 1/2.
        By default, steps have backtracking.
    {n_components_shared}
    {n_restarts}
    tol : float, default=1e-6
        Relative gap at which a solution is accepted; with "alternating" the relative decrease of the objective.
    max_iter : int, default=100
        Maximum number of steps of the solver, and of learned weights from one starting point.
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    {metric_}
    {active_views_}
    {view_weights_several}
    {dual_coef_metric}
    {support_}
    {coef_several}
    {kernels_several}
    {solution_metric}

    See Also
    --------
    ViewMetricRidgeCV : The same with penalties chosen by leave-one-out.
    MultipleKernelRidge : Weights of kernels, nothing between views.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import ViewMetricRidge, Views
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(80, 1))
    >>> X = Views(a=hidden + 0.1 * rng.normal(size=(80, 3)), b=hidden + 0.1 * rng.normal(size=(80, 2)))
    >>> y = np.sin(hidden[:, 0])
    >>> model = ViewMetricRidge(alpha=1e-3, metric_penalty=1e-3).fit(X[:60], y[:60])
    >>> round(model.score(X[60:], y[60:]), 2)
    0.99
    >>> model.metric_
    ViewMetric of rank 1 over the views 'a' (60), 'b' (60)
    """

    _parameter_constraints = constraints(*_PARAMETERS, **METRIC_CONSTRAINTS, **_PUBLISHED_CONSTRAINTS)

    kernel: Any = "rbf"
    _: KW_ONLY
    metric: Any = "learned"
    alpha: float = 0.1
    metric_penalty: float = 1.0
    shared_metric: bool = False
    view_weights: Any = "uniform"
    solver: str = "exact"
    step_size: float | None = None
    n_components: float | None = None
    n_restarts: int = 5
    tol: float = 1e-6
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the functions and the metric.

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
            check_published(self)
            data = read_training(self, X, y, sample_weight, labeled_only=True, several=takes_several(self))
            plan_memory(self, data)
            w = given_weights(self)
            with few_threads(data.n_used, most=1300):
                design = double_design(self, data, shared_landmarks=True)
                system = metric_system(self, data, design)
                problem = metric_problem(self, data, system, self.alpha, self.metric_penalty)
                solution = problem.solve(w, weight_starts(self) if w is None else None)
            return store_metric(self, data, design, solution)

    @available_if(keeps_sums)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Self:
        """Add samples to the fit; needs `n_components`.

        The first call fixes the parameters of kernels, the landmarks and the classes, from its samples. The fit is
        then that of all samples with these landmarks, however they are divided into later calls. Only sums over
        samples are kept.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            More training samples. Blocks of rows have their targets and weights with them.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets, as in `fit`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.
        classes : array-like, optional
            For classification: all classes, at the first call. By default, those of its samples.

        Returns
        -------
        self
            The estimator, fitted to all samples so far.
        """
        with self._restore_on_error():
            self._validate_params()
            check_shared_metric(self)
            check_published(self)
            data = add_samples(
                self, X, y, sample_weight, classes,
                labeled_only=True, several=takes_several(self), shared_landmarks=True,
            )  # fmt: skip
            return _fit_sums(self, data)

    @available_if(keeps_sums)
    def merge(self, other: Any) -> Self:
        """Add the samples of another fit by `partial_fit`.

        Both must have begun with the same call of `partial_fit`, as copies of one estimator have. The samples of that
        call count once.

        Parameters
        ----------
        other : estimator
            An estimator of the same class.

        Returns
        -------
        self
            The estimator, fitted to the samples of both.
        """
        with self._restore_on_error():
            self._validate_params()
            return _fit_sums(self, merge_sums(self, other))


@shared_docs
@dataclass(eq=False, repr=False)
class ViewMetricRidgeClassifier(ViewClassifier, BatchEstimator):
    """MVML for classes: `ViewMetricRidge` on targets of ±1, one class against the rest (Huusari et al. 2018).

    Targets are +1 for a sample's class and -1 for the others, one output per class, one in all for two classes. The
    largest output decides. With an indicator matrix for y (several labels per sample) each column is an output of its
    own, and its sign decides. The program, its special cases and the metrics are those of `ViewMetricRidge` (Huusari,
    Kadri and Capponi 2018). With ``metric="diagonal"`` it equals ``sklearn.kernel_ridge.KernelRidge`` on the targets.

    Parameters
    ----------
    {Parameters of ViewMetricRidge}
    {class_weight}
    {unlabeled_out}

    Attributes
    ----------
    {Attributes of ViewMetricRidge}
    {classes_}

    See Also
    --------
    ViewMetricRidgeClassifierCV : The same with penalties chosen by leave-one-out.

    Examples
    --------
    >>> from consilience import ViewMetricRidgeClassifier
    >>> from consilience.datasets import make_views
    >>> X, y = make_views(n_samples=300, informative=2, redundant=0, noise=2, random_state=0)
    >>> model = ViewMetricRidgeClassifier(metric="block_sparse", alpha=20.0, metric_penalty=20.0).fit(X, y)
    >>> model.active_views_
    ('informative0', 'informative1')
    >>> proof = model.certificate()
    >>> proof.gap <= 1e-6 * proof.objective
    True
    """

    _parameter_constraints = constraints(*_PARAMETERS, **METRIC_CONSTRAINTS, **_PUBLISHED_CONSTRAINTS)
    _multi_label = True

    kernel: Any = "rbf"
    _: KW_ONLY
    metric: Any = "learned"
    alpha: float = 0.1
    metric_penalty: float = 1.0
    shared_metric: bool = False
    view_weights: Any = "uniform"
    solver: str = "exact"
    step_size: float | None = None
    n_components: float | None = None
    n_restarts: int = 5
    tol: float = 1e-6
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"
    class_weight: Any = None
    unlabeled: Any = None

    fit = ViewMetricRidge.fit
    partial_fit, merge = (vars(ViewMetricRidge)[name] for name in ("partial_fit", "merge"))  # with their condition

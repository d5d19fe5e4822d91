"""Multi-view metric learning (MVML), exactly: a metric within and between views, learned with the function."""

from typing import Any, Self

from ..views.estimator import ViewRegressor
from ._frame import ReadsClasses
from ._metric_frame import MetricFrame

__all__ = ["ViewMetricRidge", "ViewMetricRidgeClassifier"]


class ViewMetricRidge(ViewRegressor, MetricFrame):
    """MVML: least squares with a metric within and between views (Huusari, Kadri and Capponi 2018), solved exactly.

    Solves, over one function f_v(x) = k_v(x)'g_v per view and a metric A over the views' feature maps,

        min_{A ⪰ 0, g} Σ_i (y_i - Σ_v w_v f_v(x_i))² + λ g'A†g + η‖A‖_F²

    for each output: the kernel between views v and u is k_v(x)'A_vu k_u(z). For g fixed the best metric has rank one,
    and the problem in g alone is convex, ‖y - Mg‖² + κ‖g‖^(4/3) with M = [w_1 K_1 .. w_m K_m] and
    κ = 3 η^⅓ (λ/2)^⅔: kernel ridge with Σ_v w_v² K_v² and a ridge that solves one equation. One eigendecomposition
    serves all outputs. With ``metric="block_sparse"`` (MVMLsparse) the penalty is η Σ_γ ‖A_γ‖_F over pairs of views and
    leaves views out; with ``shared_metric=True`` one A serves all outputs, and equals output kernel learning with the
    kernel Σ_v w_v² K_v².

    With ``metric="diagonal"`` it equals ``sklearn.kernel_ridge.KernelRidge(alpha=alpha)`` on Σ_v w_v² k_v. With
    `n_components` the metric is over Nyström features: with all samples as landmarks that is the problem with K_v½ for
    K_v, not the problem without `n_components`. Samples without a target are left out. Where a view is absent it has
    no part in the row's loss, w is rescaled over the views present so that Σ|w| stays, and its row of A is 0.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    metric : {"learned", "block_sparse", "covariance", "diagonal"} or array, default="learned"
        The metric between and within views. "learned" and "block_sparse" are optimized with g, with ‖A‖_F² and with
        Σ_γ ‖A_γ‖_F over pairs of views as penalties; "covariance" is A_vw = I/n for all pairs (the paper's MVML_Cov),
        "diagonal" has the kernels alone, A_vv = K_v⁻¹ (MVML_I). An array is a symmetric positive semi-definite matrix
        with a row for each view and sample given to `fit`, view after view.
    alpha : float, default=0.1
        λ > 0, the weight of the norm of f.
    metric_penalty : float, default=1.0
        η > 0, the weight of the learned metric.
    shared_metric : bool, default=False
        Whether all outputs share one learned metric; by default each has its own, as in the paper. For "learned" only.
    view_weights : "uniform", "learned", dict or array of shape (n_views,), default="uniform"
        w: 1/m each; numbers, negative ones too, by name or in the order of the views; or learned with f over the
        sphere that the uniform weights are on.
    solver : {"exact", "alternating"}, default="exact"
        "alternating" is the published scheme for learned metrics, gradient steps from the identity, with backtracking.
    n_components : int or float, optional
        The number of Nyström landmarks, the same samples in all views, or their fraction of the samples; by default
        the kernels are taken whole.
    n_restarts : int, default=5
        How many starts for learned weights, the first with equal ones; another is tried where a proof is missing.
    tol : float, default=1e-6
        The relative gap at which an answer is good enough; with "alternating" the relative fall of the objective.
    max_iter : int, default=100
        The most steps of the solver, and of learned weights from one start.
    random_state : int, RandomState or None, default=None
        The seed of random starts and landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    metric_ : ViewMetric or None
        The learned metric in factors; None where it was not learned.
    active_views_ : tuple of str
        The views with a part in the answer.
    view_weights_ : array of shape (n_views_used,)
        w; a view that no sample with a part in the objective has is left out.
    dual_coef_ : array of shape (n_views, n_samples_used, n_outputs)
        g_v with f_v(x) = Σ_i k_v(x, x_i) g_v,i; not with `n_components`.
    support_ : array of int
        The positions of the x_i among the samples given to `fit`.
    coef_ : dict of array
        With `n_components`: the coefficients of each view's features.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        The objective, its gap and the residual of the optimality conditions.

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

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        metric: Any = "learned",
        alpha: float = 0.1,
        metric_penalty: float = 1.0,
        shared_metric: bool = False,
        view_weights: Any = "uniform",
        solver: str = "exact",
        n_components: float | None = None,
        n_restarts: int = 5,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.metric = metric
        self.alpha = alpha
        self.metric_penalty = metric_penalty
        self.shared_metric = shared_metric
        self.view_weights = view_weights
        self.solver = solver
        self.n_components = n_components
        self.n_restarts = n_restarts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples and their targets.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets; samples whose targets are NaN are left out.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._restore_on_error():
            return self._fit_regressor(X, y, sample_weight)


class ViewMetricRidgeClassifier(ReadsClasses, MetricFrame):
    """MVML for classes: `ViewMetricRidge` on ±1 codes, one class against the rest (Huusari, Kadri and Capponi 2018).

    Targets are +1 for a sample's class and -1 for the others, one output per class, one in all for two classes; the
    largest output decides. With an indicator matrix for y (several labels per sample) each column is an output of its
    own and its sign decides. The program, its special cases and the metrics are those of `ViewMetricRidge`: with
    ``metric="diagonal"`` it equals ``sklearn.kernel_ridge.KernelRidge`` on the codes.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    metric : {"learned", "block_sparse", "covariance", "diagonal"} or array, default="learned"
        The metric between and within views. "learned" and "block_sparse" are optimized with g, with ‖A‖_F² and with
        Σ_γ ‖A_γ‖_F over pairs of views as penalties; "covariance" is A_vw = I/n for all pairs (the paper's MVML_Cov),
        "diagonal" has the kernels alone, A_vv = K_v⁻¹ (MVML_I). An array is a symmetric positive semi-definite matrix
        with a row for each view and sample given to `fit`, view after view.
    alpha : float, default=0.1
        λ > 0, the weight of the norm of f.
    metric_penalty : float, default=1.0
        η > 0, the weight of the learned metric.
    shared_metric : bool, default=False
        Whether all outputs share one learned metric; by default each has its own, as in the paper. For "learned" only.
    view_weights : "uniform", "learned", dict or array of shape (n_views,), default="uniform"
        w: 1/m each; numbers, negative ones too, by name or in the order of the views; or learned with f over the
        sphere that the uniform weights are on.
    solver : {"exact", "alternating"}, default="exact"
        "alternating" is the published scheme for learned metrics, gradient steps from the identity, with backtracking.
    n_components : int or float, optional
        The number of Nyström landmarks, the same samples in all views, or their fraction of the samples; by default
        the kernels are taken whole.
    n_restarts : int, default=5
        How many starts for learned weights, the first with equal ones; another is tried where a proof is missing.
    tol : float, default=1e-6
        The relative gap at which an answer is good enough; with "alternating" the relative fall of the objective.
    max_iter : int, default=100
        The most steps of the solver, and of learned weights from one start.
    class_weight : dict or "balanced", optional
        Weights of the classes in the loss, as scikit-learn reads them.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones; they are left out.
    random_state : int, RandomState or None, default=None
        The seed of random starts and landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    metric_ : ViewMetric or None
        The learned metric in factors; None where it was not learned.
    active_views_ : tuple of str
        The views with a part in the answer.
    view_weights_ : array of shape (n_views_used,)
        w; a view that no sample with a part in the objective has is left out.
    dual_coef_ : array of shape (n_views, n_samples_used, n_outputs)
        g_v with f_v(x) = Σ_i k_v(x, x_i) g_v,i; not with `n_components`.
    support_ : array of int
        The positions of the x_i among the samples given to `fit`.
    coef_ : dict of array
        With `n_components`: the coefficients of each view's features.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        The objective, its gap and the residual of the optimality conditions.

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

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        metric: Any = "learned",
        alpha: float = 0.1,
        metric_penalty: float = 1.0,
        shared_metric: bool = False,
        view_weights: Any = "uniform",
        solver: str = "exact",
        n_components: float | None = None,
        n_restarts: int = 5,
        tol: float = 1e-6,
        max_iter: int = 100,
        class_weight: Any = None,
        unlabeled: Any = None,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.metric = metric
        self.alpha = alpha
        self.metric_penalty = metric_penalty
        self.shared_metric = shared_metric
        self.view_weights = view_weights
        self.solver = solver
        self.n_components = n_components
        self.n_restarts = n_restarts
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples and their classes.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            The classes, or an indicator of labels; samples without any are left out.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._restore_on_error():
            return self._fit_classifier(X, y, sample_weight)

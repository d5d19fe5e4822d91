"""Penalties of metric learning, chosen by leave-one-out from one decomposition."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._backend import few_threads
from .._progress import report_progress
from ..solvers.metric import HeldOutMetric, kappa_of, output_kernel
from ..views.container import Views
from ..views.estimator import ViewRegressor
from ._frame import ReadsClasses, Rows, right_share
from ._metric_frame import MetricFrame
from ._metric_penalties import BlockSparse
from ._metric_problems import MetricData

__all__ = ["ViewMetricRidgeCV", "ViewMetricRidgeClassifierCV"]


class _MetricCV(MetricFrame):
    """Chooses λ and η by leave-one-out before the fit."""

    alphas: Any
    metric_penalties: Any
    solver = "exact"

    def _penalties(self) -> tuple[float, float]:
        return self.alpha_, self.metric_penalty_

    def _check_parameters(self) -> None:
        self._check_numbers()
        self._check_metric()
        for name in ("alphas", "metric_penalties"):
            try:
                values = np.ravel(np.asarray(getattr(self, name), dtype=np.float64))
            except (TypeError, ValueError):
                values = np.array([])
            if not len(values) or not (np.isfinite(values) & (values > 0)).all():
                raise ValueError(f"`{name}` must hold finite numbers above 0; got {getattr(self, name)!r}.")

    def _score(self, outputs: np.ndarray, Y: np.ndarray, u: np.ndarray) -> float:
        return -float(np.average(((outputs - Y) ** 2).mean(axis=1), weights=u))

    def _fit_targets(self, X: Views, Y: np.ndarray, labeled: np.ndarray, s: np.ndarray, u: np.ndarray) -> Self:
        taken = labeled & (u > 0)
        rows = self._arrange(X, taken, np.where(taken, s, 0), with_unlabeled=False)
        w = self._given_weights()
        if w is None:
            raise ValueError(
                f"{type(self).__name__} takes weights as given; learn them with the penalties chosen: "
                "view_weights='learned' in the learner without CV."
            )
        grid = [
            (float(alpha), float(penalty))
            for alpha in np.ravel(self.alphas)
            for penalty in np.ravel(self.metric_penalties)
        ]
        with few_threads(len(rows.order)):
            data = self._data(rows, Y, u)
            held = _Held(self, rows, data, w)
            scores: dict[str, float] = {}
            for number, pair in enumerate(grid, start=1):
                report_progress(number, None, of=len(grid), unit="pair of penalties")
                if (key := held.key(*pair)) not in scores:
                    outputs = rows.first(Y) - held.residuals(*pair) / data.u_root[:, None]
                    scores[key] = self._score(outputs, rows.first(Y), rows.first(u))
            if held.unfinished:
                warnings.warn(
                    f"{type(self).__name__}: some solutions of the grid were not good enough within `max_iter` steps. "
                    "Raise it, or `tol`.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            found = [scores[held.key(*pair)] for pair in grid]
            best = max(range(len(grid)), key=lambda k: (found[k], *grid[k]))
            self.alpha_, self.metric_penalty_ = grid[best]
            self.best_score_ = found[best]
            self.cv_results_ = {
                "alpha": np.array([alpha for alpha, _ in grid]),
                "metric_penalty": np.array([penalty for _, penalty in grid]),
                "score": np.array(found),
            }
            return self._fit_data(rows, data)


class _Held:
    """The residuals at samples whose own target is hidden; they stay among the samples of the kernels."""

    def __init__(self, learner: _MetricCV, rows: Rows, data: MetricData, w: np.ndarray):
        self.learner, self.data, self.w = learner, data, w
        self.sparse = learner._is("block_sparse")
        self.learned = learner._is("learned")
        self.last: BlockSparse | None = None
        self.unfinished = False  # whether some solution was not good enough
        if not self.sparse:
            fixed = None if self.learned else learner._metric_of(rows, data)
            self.decomposed = HeldOutMetric(*data.left_vectors(w, fixed), data.Y)
            self.spectrum = data.spectrum(w) if learner.shared_metric else None

    def key(self, alpha: float, penalty: float) -> str:
        """What the answer depends on, to nine digits."""
        value = alpha * penalty if self.sparse else alpha * np.sqrt(penalty) if self.learned else alpha
        return f"{value:.9e}"

    def residuals(self, alpha: float, penalty: float) -> np.ndarray:
        """√u (y_i - g(x_i)) when the target of row i is hidden."""
        if self.sparse:
            return self._sparse(alpha, penalty)
        if not self.learned:
            return self.decomposed.ridge(self.data.Y, np.full(self.data.Y.shape[1], alpha))
        if self.spectrum is None:
            return self.decomposed.residuals(kappa_of(alpha, penalty))
        tol, max_iter = self.learner.tol, int(self.learner.max_iter)
        found = output_kernel(self.spectrum, alpha, penalty, tol=tol, max_iter=max_iter)
        self.unfinished |= not found.converged
        C = found.x[1]
        values, Q = np.linalg.eigh(C)  # with C held, each of its directions is a ridge of its own
        kept = values > len(values) * np.finfo(float).eps * max(float(values[-1]), 0.0)
        Y = self.data.Y @ Q
        Y[:, kept] = self.decomposed.ridge(Y[:, kept], alpha / values[kept]) if kept.any() else Y[:, kept]
        return Y @ Q.T

    def _sparse(self, alpha: float, penalty: float) -> np.ndarray:
        """With the weights of the views' kernels held."""
        solved = BlockSparse(alpha, penalty, self.learner.tol, int(self.learner.max_iter), start=self.last)
        self.last = solved
        G, _, status = solved.solve(self.data, self.w)
        self.unfinished |= status != "converged"
        B = self.data.residuals(self.w, G)
        own = np.stack([self.data.own_inverse(self.w, solved.weights(p)) for p in range(G.shape[1])], axis=1)
        return B / own


class ViewMetricRidgeCV(ViewRegressor, _MetricCV):
    """MVML with λ and η chosen by leave-one-out: `ViewMetricRidge` for a whole grid from one decomposition.

    The solution for every λ and η comes from the singular values and vectors of M; so do the answers at each sample
    when its own target is hidden, exactly: the residual is (Qy)_i/Q_ii with Q = (MM' + ρI)⁻¹, and ρ solves its equation
    anew without the target (of a fixed metric ρ = λ). The sample stays among those that kernels, landmarks and a
    covariance are made of. With ``shared_metric=True`` the learned kernel between outputs, and with
    ``metric="block_sparse"`` the weights of the views, are held as they are with all targets; the other scores equal
    those of refits with one target left out. Scores are minus the mean squared error.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    metric : {"learned", "block_sparse", "covariance", "diagonal"} or array, default="learned"
        The metric between and within views. "learned" and "block_sparse" are optimized with g, with ‖A‖_F² and with
        Σ_γ ‖A_γ‖_F over pairs of views as penalties; "covariance" is A_vw = I/n for all pairs (the paper's MVML_Cov),
        "diagonal" has the kernels alone, A_vv = K_v⁻¹ (MVML_I). An array is a symmetric positive semi-definite matrix
        with a row for each view and sample given to `fit`, view after view.
    alphas : array-like of float, default=(1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
        The values of λ to try.
    metric_penalties : array-like of float, default=(1.0,)
        The values of η to try. Answers of a learned metric depend on λ²η alone, those of a block-sparse one on λη.
    shared_metric : bool, default=False
        Whether all outputs share one learned metric; by default each has its own, as in the paper. For "learned" only.
    view_weights : "uniform", dict or array of shape (n_views,), default="uniform"
        w.
    n_components : int or float, optional
        The number of Nyström landmarks, the same samples in all views, or their fraction of the samples; by default
        the kernels are taken whole.
    tol : float, default=1e-6
        The relative gap at which an answer is good enough.
    max_iter : int, default=100
        The most steps of the solver.
    random_state : int, RandomState or None, default=None
        The seed of landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    alpha_, metric_penalty_ : float
        The penalties chosen; among equal scores the largest λ, then the largest η.
    best_score_ : float
        Their score.
    cv_results_ : dict of array
        ``alpha``, ``metric_penalty`` and ``score`` of every pair.
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
    ViewMetricRidge : The learner for given penalties; the program is there.

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

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        metric: Any = "learned",
        alphas: Any = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0),
        metric_penalties: Any = (1.0,),
        shared_metric: bool = False,
        view_weights: Any = "uniform",
        n_components: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.metric = metric
        self.alphas = alphas
        self.metric_penalties = metric_penalties
        self.shared_metric = shared_metric
        self.view_weights = view_weights
        self.n_components = n_components
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


class ViewMetricRidgeClassifierCV(ReadsClasses, _MetricCV):
    """MVML for classes with λ and η chosen by leave-one-out; see `ViewMetricRidgeCV`.

    Codes of the classes are those of `ViewMetricRidgeClassifier`, which it equals with the penalties chosen. Scores are
    the share of samples that are decided rightly when their own label is hidden, samples counted by their weights and
    those of their classes.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    metric : {"learned", "block_sparse", "covariance", "diagonal"} or array, default="learned"
        The metric between and within views. "learned" and "block_sparse" are optimized with g, with ‖A‖_F² and with
        Σ_γ ‖A_γ‖_F over pairs of views as penalties; "covariance" is A_vw = I/n for all pairs (the paper's MVML_Cov),
        "diagonal" has the kernels alone, A_vv = K_v⁻¹ (MVML_I). An array is a symmetric positive semi-definite matrix
        with a row for each view and sample given to `fit`, view after view.
    alphas : array-like of float, default=(1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
        The values of λ to try.
    metric_penalties : array-like of float, default=(1.0,)
        The values of η to try. Answers of a learned metric depend on λ²η alone, those of a block-sparse one on λη.
    shared_metric : bool, default=False
        Whether all outputs share one learned metric; by default each has its own, as in the paper. For "learned" only.
    view_weights : "uniform", dict or array of shape (n_views,), default="uniform"
        w.
    n_components : int or float, optional
        The number of Nyström landmarks, the same samples in all views, or their fraction of the samples; by default
        the kernels are taken whole.
    tol : float, default=1e-6
        The relative gap at which an answer is good enough.
    max_iter : int, default=100
        The most steps of the solver.
    class_weight : dict or "balanced", optional
        Weights of the classes in the loss, as scikit-learn reads them.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones; they are left out.
    random_state : int, RandomState or None, default=None
        The seed of landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    alpha_, metric_penalty_ : float
        The penalties chosen; among equal scores the largest λ, then the largest η.
    best_score_ : float
        Their score.
    cv_results_ : dict of array
        ``alpha``, ``metric_penalty`` and ``score`` of every pair.
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
    ViewMetricRidgeClassifier : The learner for given penalties.

    Examples
    --------
    >>> from consilience import ViewMetricRidgeClassifierCV
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> model = ViewMetricRidgeClassifierCV(n_components=50, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:800], y[400:800]) > 0.85
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        metric: Any = "learned",
        alphas: Any = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0),
        metric_penalties: Any = (1.0,),
        shared_metric: bool = False,
        view_weights: Any = "uniform",
        n_components: float | None = None,
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
        self.alphas = alphas
        self.metric_penalties = metric_penalties
        self.shared_metric = shared_metric
        self.view_weights = view_weights
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _score(self, outputs: np.ndarray, Y: np.ndarray, u: np.ndarray) -> float:
        return right_share(outputs, Y, u, self._indicator)

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

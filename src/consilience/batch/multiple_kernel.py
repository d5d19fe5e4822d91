"""Kernels learned with the function: weights of the views' kernels (lp-norm MKL), a kernel between outputs (OKL)."""

import numbers
from typing import Any, Self

import numpy as np

from .._backend import few_threads
from ..solvers.certificates import Solution, warn_unless_converged
from ..solvers.kernel_weights import GramFit, MomentFit, SquaredNorm, learn_kernel_weights
from ..solvers.linalg import multiply
from ..solvers.metric import Spectrum, eigen, kappa_of, output_kernel, row_space, within_reach
from ..views.container import Views
from ..views.estimator import ViewRegressor
from ._frame import ReadsClasses, ReadsTargets, Rows, not_positive_kernels
from ._metric_features import FeatureData
from ._metric_problems import GramData

__all__ = ["MultipleKernelRidge", "MultipleKernelRidgeClassifier", "OutputKernelRidge"]


class MultipleKernelFrame(ReadsTargets):
    """lp-norm multiple kernel ridge; subclasses read targets or labels."""

    alpha: float
    p: float
    shared_weights: bool

    def _check_parameters(self) -> None:
        self._check_numbers(above=("alpha",))
        if not (isinstance(self.p, numbers.Real) and self.p >= 1):
            raise ValueError(f"`p` must be a number of at least 1, or infinity; got {self.p!r}.")

    def _fit_targets(self, X: Views, Y: np.ndarray, labeled: np.ndarray, s: np.ndarray, u: np.ndarray) -> Self:
        taken = labeled & (u > 0)
        rows = self._arrange(X, taken, np.where(taken, s, 0), with_unlabeled=False)
        m, P = len(self._used_views), Y.shape[1]
        groups = [slice(0, P)] if self.shared_weights else [slice(p, p + 1) for p in range(P)]
        with few_threads(len(rows.order)):
            data = _data(self, rows, Y, u)
            norm = SquaredNorm(self.alpha, float(self.p))
            try:
                found, coefficients = self._weigh(data, norm, groups)
            except np.linalg.LinAlgError as error:
                raise not_positive_kernels(self, error) from error
            self.view_weights_ = np.full(m, 1 / m)
            losses, norms = data.functions(self.view_weights_, coefficients)
        squares = norms / m**2  # ‖f_v‖² of what is added up
        objective = sum(
            float(losses[k].sum()) + norm.norm(np.sqrt(np.maximum(squares[:, k].sum(axis=1), 0))) for k in groups
        )
        weights = self.alpha * np.stack([one.x for one in found], axis=1)  # (m, 1) or (m, P)
        self._keep(rows, coefficients, data.form)
        self.kernel_weights_ = weights[:, 0] if self.shared_weights else weights
        self.active_views_ = tuple(name for name, own in zip(self._used_views, weights, strict=True) if own.any())
        status = next((one.status for one in found if not one.converged), "converged")
        below = sum(((one.objective or 0.0) - (one.gap or 0.0) for one in found), start=0.0)
        self.solution_ = _measured(objective, below, max(one.n_iter for one in found), status, self.tol)
        warn_unless_converged(self.solution_, type(self).__name__)
        return self

    def _weigh(
        self, data: GramData | FeatureData, norm: SquaredNorm, groups: list[slice]
    ) -> tuple[list[Solution], list[np.ndarray]]:
        """The weights, for all outputs or each, and the coefficients of m f_v: views are combined with weights 1/m."""
        m = len(self._used_views)
        nu = data.nu(np.full(m, 1 / m))
        if isinstance(data, GramData):
            kernels = data.plain_kernels(nu, np.ones(m))
        else:
            C, c = data.summed(nu)
        found, columns = [], []
        for group in groups:
            Y = data.Y[:, group]
            fit: GramFit | MomentFit
            if isinstance(data, GramData):
                fit = GramFit(kernels, Y)
            else:
                fit = MomentFit(C, c[:, group], float(np.sum(Y**2)), data.sizes)
            start = norm.best(np.ones(m))
            solution = learn_kernel_weights(fit, norm, start, tol=self.tol, max_iter=int(self.max_iter))
            found.append(solution)
            if isinstance(data, GramData):
                scaled = (nu * data.u_root)[:, None] * fit.forces(solution.x, Y)  # type: ignore[union-attr]
                columns.append([m * own * scaled[here] for own, here in zip(solution.x, data.rows, strict=True)])
            else:
                G = fit.coefficients(solution.x)  # type: ignore[union-attr]
                columns.append([m * G[part] for part in data.parts()])
        return found, [np.hstack(own) for own in zip(*columns, strict=True)]


def _data(learner: Any, rows: Rows, Y: np.ndarray, u: np.ndarray) -> GramData | FeatureData:
    if learner.n_components is None:
        return GramData(learner, rows, rows.first(Y), rows.first(u))
    return FeatureData(learner, rows, rows.first(Y), rows.first(u), shared=False)


def _measured(objective: float, bound: float, n_iter: int, status: str, tol: float) -> Solution:
    """A solution by the objective of its coefficients themselves."""
    gap = max(objective - bound, 0.0)
    if status == "converged" and not gap <= max(2 * tol, 1e-6) * abs(objective):
        status = "inexact"
    return Solution(None, gap, n_iter, status, objective=objective)


class MultipleKernelRidge(ViewRegressor, MultipleKernelFrame):
    """lp-norm multiple kernel learning, lp-MKL, with squared losses (Kloft, Brefeld, Sonnenburg and Zien 2011).

    Solves, over weights d of the kernels and a function in the space of the kernel Σ_v d_v k_v,

        min_{d >= 0, ‖d‖_p <= 1} min_f Σ_i ‖y_i - f(x_i)‖² + λ‖f‖²  =  min_{f_v} Σ_i ‖y_i - Σ_v f_v(x_i)‖²
            + λ (Σ_v ‖f_v‖^q)^(2/q),   q = 2p/(p + 1):

    p = 1 is a squared sum of norms and leaves views out, p = ∞ is kernel ridge with the sum of all kernels. The optimum
    in d is convex and has one variable per view: Newton steps with one Cholesky factor each, ended by the duality gap,
    where the published alternation of d and f needs many.

    With one view it equals ``sklearn.kernel_ridge.KernelRidge(alpha=alpha)``; with p = ∞ the same on Σ_v k_v; with
    p = 1 `CoRegularizedRidge` with weights learned over ‖c‖ = 1, c² = d. Samples without a target are left out. Where
    views are absent, the answers of the others are added up and multiplied by m over their number, at fit and at
    prediction.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
        Their scales matter; `consilience.kernels.normalize` and `consilience.kernels.center` make
        them comparable.
    p : float, default=2.0
        The norm of the weights, 1 <= p <= ∞. 1 leaves views out, ∞ gives every kernel the weight 1.
    alpha : float, default=1.0
        λ > 0, the weight of the norms.
    shared_weights : bool, default=True
        Whether all outputs share the weights of the kernels; else each output has its own.
    n_components : int or float, optional
        The number of Nyström landmarks of each view, or their fraction of the samples; by default the kernels are
        taken whole.
    tol : float, default=1e-6
        The relative gap at which an answer is good enough.
    max_iter : int, default=100
        The most Newton steps.
    random_state : int, RandomState or None, default=None
        The seed of the landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    kernel_weights_ : array of shape (n_views_used,) or (n_views_used, n_outputs)
        d; for each output where they do not share them. A view that no sample with a part in the objective has is left
        out.
    view_weights_ : array of shape (n_views_used,)
        1/m each, the weights with which the answers of the views are combined: d is in the answers.
    active_views_ : tuple of str
        The views with a weight above 0.
    dual_coef_ : array of shape (n_views, n_support, n_outputs)
        a_v with f_v(x) = Σ_i k_v(x, x_i) a_v,i; not with `n_components`.
    support_ : array of int
        The positions of the x_i among the samples given to `fit`.
    coef_ : dict of array
        With `n_components`: the coefficients of each view's features.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        The objective and its gap.

    See Also
    --------
    ViewMetricRidge : A metric between views too.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import MultipleKernelRidge, Views
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(80, 1))
    >>> X = Views(a=hidden + 0.1 * rng.normal(size=(80, 3)), b=rng.normal(size=(80, 2)))
    >>> model = MultipleKernelRidge(p=1, alpha=3.0).fit(X, np.sin(hidden[:, 0]))
    >>> model.active_views_
    ('a',)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        p: float = 2.0,
        alpha: float = 1.0,
        shared_weights: bool = True,
        n_components: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.p = p
        self.alpha = alpha
        self.shared_weights = shared_weights
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


class MultipleKernelRidgeClassifier(ReadsClasses, MultipleKernelFrame):
    """lp-norm multiple kernel learning for classes: `MultipleKernelRidge` on ±1 codes (Kloft et al. 2011).

    Targets are +1 for a sample's class and -1 for the others, one output per class, one in all for two classes; the
    largest output decides. With an indicator matrix for y (several labels per sample) each column is an output of its
    own and its sign decides. The program and its special cases are those of `MultipleKernelRidge`.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
        Their scales matter; `consilience.kernels.normalize` and `consilience.kernels.center` make
        them comparable.
    p : float, default=2.0
        The norm of the weights, 1 <= p <= ∞. 1 leaves views out, ∞ gives every kernel the weight 1.
    alpha : float, default=1.0
        λ > 0, the weight of the norms.
    shared_weights : bool, default=True
        Whether all outputs share the weights of the kernels; else each output has its own.
    n_components : int or float, optional
        The number of Nyström landmarks of each view, or their fraction of the samples; by default the kernels are
        taken whole.
    tol : float, default=1e-6
        The relative gap at which an answer is good enough.
    max_iter : int, default=100
        The most Newton steps.
    class_weight : dict or "balanced", optional
        Weights of the classes in the loss, as scikit-learn reads them.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones; they are left out.
    random_state : int, RandomState or None, default=None
        The seed of the landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    kernel_weights_ : array of shape (n_views_used,) or (n_views_used, n_outputs)
        d; for each output where they do not share them. A view that no sample with a part in the objective has is left
        out.
    view_weights_ : array of shape (n_views_used,)
        1/m each, the weights with which the answers of the views are combined: d is in the answers.
    active_views_ : tuple of str
        The views with a weight above 0.
    dual_coef_ : array of shape (n_views, n_support, n_outputs)
        a_v with f_v(x) = Σ_i k_v(x, x_i) a_v,i; not with `n_components`.
    support_ : array of int
        The positions of the x_i among the samples given to `fit`.
    coef_ : dict of array
        With `n_components`: the coefficients of each view's features.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        The objective and its gap.

    See Also
    --------
    ViewMetricRidgeClassifier : A metric between views too.

    Examples
    --------
    >>> from consilience import MultipleKernelRidgeClassifier
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = MultipleKernelRidgeClassifier(p=1).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.9
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        p: float = 2.0,
        alpha: float = 1.0,
        shared_weights: bool = True,
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
        self.p = p
        self.alpha = alpha
        self.shared_weights = shared_weights
        self.n_components = n_components
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


class OutputKernelRidge(ViewRegressor, ReadsTargets):
    """Output kernel learning, OKL: least squares with a kernel between outputs (Dinuzzo, Ong, Gehler, Pillonetto 2011).

    Solves, over a positive semi-definite L between the outputs and f in the space of the kernel k(x, z) L with
    k = Σ_v w_v² k_v,

        min_{L ⪰ 0, f} Σ_i ‖y_i - f(x_i)‖² + λ‖f‖² + λ‖L‖_F²,

    which is the paper's program times 2λ. For f fixed L is known, and what is left is a sum of powers 4/3 of singular
    values, convex in f: L for f and f for L take turns, from one eigendecomposition, until the duality gap is met.

    With k = Σ_v w_v² K_v² for the kernel matrix it equals `ViewMetricRidge` with ``shared_metric=True``. Samples
    without targets are left out. Where a view is absent w is rescaled over the views present so that Σ|w| stays.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    alpha : float, default=1.0
        λ > 0.
    view_weights : "uniform", dict or array of shape (n_views,), default="uniform"
        w: 1/m each, or numbers by name or in the order of the views.
    n_components : int or float, optional
        The number of Nyström landmarks of each view, or their fraction of the samples; by default the kernels are
        taken whole.
    tol : float, default=1e-6
        The relative gap at which an answer is good enough.
    max_iter : int, default=500
        The most turns.
    random_state : int, RandomState or None, default=None
        The seed of the landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    output_kernel_ : array of shape (n_outputs, n_outputs)
        L.
    view_weights_ : array of shape (n_views_used,)
        w; a view that no sample with a part in the objective has is left out.
    dual_coef_ : array of shape (n_views, n_support, n_outputs)
        a_v with f_v(x) = Σ_i k_v(x, x_i) a_v,i; not with `n_components`.
    support_ : array of int
        The positions of the x_i among the samples given to `fit`.
    coef_ : dict of array
        With `n_components`: the coefficients of each view's features.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        The objective and its gap.

    See Also
    --------
    ViewMetricRidge : A metric between views.
    CoRegularizedRidge : Takes a kernel between outputs that is given.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import OutputKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> twice = np.sin(X[:, :1]) + 0.3 * rng.normal(size=(60, 2))  # two outputs that are the same but for noise
    >>> model = OutputKernelRidge(alpha=3.0).fit(X, np.hstack([twice, np.cos(3 * X[:, 1:])]))
    >>> L = model.output_kernel_
    >>> bool(L[0, 1] > 5 * abs(L[0, 2]))
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        alpha: float = 1.0,
        view_weights: Any = "uniform",
        n_components: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 500,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.alpha = alpha
        self.view_weights = view_weights
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.views = views

    def _check_parameters(self) -> None:
        self._check_numbers(above=("alpha",))

    def _fit_targets(self, X: Views, Y: np.ndarray, labeled: np.ndarray, s: np.ndarray, u: np.ndarray) -> Self:
        taken = labeled & (u > 0)
        rows = self._arrange(X, taken, np.where(taken, s, 0), with_unlabeled=False)
        w = self._given_weights()
        if w is None:
            raise ValueError(
                "OutputKernelRidge takes weights as given; MultipleKernelRidge and ViewMetricRidge learn them."
            )
        with few_threads(len(rows.order)):
            data = _data(self, rows, Y, u)
            try:
                spectrum = self._spectrum(data, w)
            except np.linalg.LinAlgError as error:
                raise not_positive_kernels(self, error) from error
            found = output_kernel(spectrum, self.alpha, self.alpha, tol=self.tol, max_iter=int(self.max_iter))
            G, self.output_kernel_ = found.x
            if isinstance(data, GramData):
                scaled = (data.nu(w) * data.u_root)[:, None] * G
                coefficients = [weight * scaled[here] for weight, here in zip(w, data.rows, strict=True)]
            else:
                coefficients = data.for_prediction(G)
            turn = row_space(data.Y)
            inner = data.products([multiply(own, turn) for own in coefficients])
            spent = kappa_of(self.alpha, self.alpha) * float(np.sum(eigen(inner)[0] ** (2 / 3)))
            objective = float(np.sum(data.functions(w, coefficients)[0])) + spent
        self._keep(rows, coefficients, data.form)
        self.view_weights_ = w
        below = float(found.objective) - float(found.gap)  # type: ignore[arg-type]
        self.solution_ = _measured(objective, below, found.n_iter, found.status, self.tol)
        warn_unless_converged(self.solution_, type(self).__name__)
        return self

    def _spectrum(self, data: GramData | FeatureData, w: np.ndarray) -> Spectrum:
        if isinstance(data, FeatureData):
            return data.spectrum(w)
        total = np.asfortranarray(np.sum(data.plain_kernels(data.nu(w), w**2), axis=0))
        return Spectrum.of_gram(*within_reach(*eigen(total)), data.Y, lambda B: B)

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

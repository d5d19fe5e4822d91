"""Kernels learned with the function: weights of the views' kernels (lp-norm MKL), a kernel between outputs (OKL)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from sklearn.utils.metaestimators import available_if

from .._backend import few_threads
from ..solvers.certificates import Solution
from ..solvers.design import Design
from ..solvers.moment_matrix import view_matrix
from ..solvers.multiple_kernels import MultipleKernels, OutputKernel
from ..views._docs import shared_docs
from ..views.estimator import ViewClassifier, ViewRegressor
from ._estimator import BatchEstimator, constraints
from ._fit import TrainingData, double_design, given_weights, read_training, store_fit
from ._memory import plan_memory
from ._partial import SumsData, add_samples, keeps_sums, merge_sums
from ._terms import kernel_parts, terms_of

__all__ = ["MultipleKernelRidge", "MultipleKernelRidgeClassifier", "OutputKernelRidge", "OutputKernelRidgeClassifier"]

_OUTPUT_PARAMETERS = ("alpha", "view_weights", "n_components", "tol", "max_iter", "random_state", "verbose")
_PARAMETERS = ("alpha", "p", "shared_weights", "n_components", "tol", "max_iter", "random_state", "verbose")


def _store_weights(estimator: Any, data: TrainingData, design: Design, solution: Solution) -> Any:
    """Store the fit and the weights of the kernels; return the estimator."""
    store_fit(estimator, data, design, solution)
    weights = solution.x[2]
    estimator._kernel_weights = weights[:, 0] if estimator.shared_weights else weights
    active = [term.view for term, own in zip(terms_of(estimator), weights, strict=True) if own.any()]
    estimator.active_views_ = tuple(dict.fromkeys(active))
    return estimator


def _fit_sums(estimator: Any, data: SumsData) -> Any:
    """Fit the functions and the weights of the kernels from sums over samples."""
    with few_threads(data.n_used):
        system = view_matrix(data.design, data, parts=kernel_parts(estimator))
        problem = MultipleKernels(system, estimator.alpha, float(estimator.p), shared=estimator.shared_weights)
        solution = problem.solve(tol=estimator.tol, max_iter=estimator.max_iter)
    return _store_weights(estimator, data, data.design, solution)


@shared_docs
@dataclass(eq=False, repr=False)
class MultipleKernelRidge(ViewRegressor, BatchEstimator):
    """lp-norm multiple kernel learning, lp-MKL, with squared losses (Kloft, Brefeld, Sonnenburg and Zien 2011).

    Solves, over weights d of the kernels and a function in the space of the kernel Σ_v d_v k_v,

        min_{d >= 0, ‖d‖_p <= 1} min_f Σ_i ‖y_i - f(x_i)‖² + λ‖f‖²  =  min_{f_v} Σ_i ‖y_i - Σ_v f_v(x_i)‖²
            + λ (Σ_v ‖f_v‖^q)^(2/q),   q = 2p/(p + 1).

    p = 1 is a squared sum of norms and leaves views out; p = ∞ is kernel ridge with the sum of all kernels. A view may
    have several kernels; v then counts the kernels of all views. The optimum in d is convex and has one variable per
    kernel. It takes Newton steps with one Cholesky factor each, until the duality gap is met, where the published
    alternation of d and f needs many.

    With one view it equals ``sklearn.kernel_ridge.KernelRidge(alpha=alpha)``, with p = ∞ the same on Σ_v k_v, and with
    other p `CoRegularizedRidge` with weights learned over ‖c‖_2p = 1, c² = d. Samples without a target are left out.
    Where views are missing, the functions of the others are added and multiplied by m over their number, with m views
    in all, at fit and at prediction.

    Parameters
    ----------
    kernel : Kernel, str, callable, list or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view. Views that the dict does not name get "rbf". A list gives a
        view several kernels with a weight each; "auto" takes kernels that suit its training samples
        (`consilience.kernels.auto_kernels`). The kernels' scales matter; `consilience.kernels.normalize` and
        `consilience.kernels.center` make them comparable.
    p : float, default=2.0
        Norm of the kernel weights, 1 <= p <= ∞. 1 leaves views out, ∞ gives every kernel the weight 1.
    alpha : float, default=1.0
        Penalty on the norms of the functions, λ > 0.
    shared_weights : bool, default=True
        Whether all outputs share the weights of the kernels. Otherwise each output has its own.
    {n_components}
    {tol_gap}
    {max_iter_steps}
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    kernel_weights_ : array of shape (n_views_used,) or (n_views_used, n_outputs), or DataFrame
        Weights d of the kernels, for each output if they are not shared. Views missing in every training sample are
        omitted. If a view has a list of kernels or "auto", a frame with the columns ``view``, ``kernel`` and
        ``weight``, and ``output`` if weights are not shared.
    view_weights_ : array of shape (n_views_used,)
        1 / n_views_used each, the weights with which the views' functions are combined. The functions contain d.
    {active_views_}
    {dual_coef_several}
    {support_}
    {coef_several}
    {kernels_several}
    {solution_}

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
    >>> several = MultipleKernelRidge({"a": ["linear", "rbf"], "b": "auto"}, p=1, alpha=3.0)
    >>> several.fit(X, np.sin(hidden[:, 0])).kernel_weights_.round(2).head(2)
      view              kernel  weight
    0    a            Linear()    0.45
    1    a  RBF(gamma='scale')    0.55
    """

    _parameter_constraints = constraints(*_PARAMETERS)

    kernel: Any = "rbf"
    _: KW_ONLY
    p: float = 2.0
    alpha: float = 1.0
    shared_weights: bool = True
    n_components: float | None = None
    tol: float = 1e-6
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the functions and the weights of the kernels.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples. Blocks of rows have their targets and weights with them, and need `n_components`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets; samples whose targets are NaN are left out. For classification: classes, or an indicator of labels;
            samples without any are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the losses. A weight of 2 equals the sample given twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            data = read_training(self, X, y, sample_weight, labeled_only=True, several=True)
            plan_memory(self, data)
            with few_threads(data.n_used):
                design = double_design(self, data)
                # a missing view counts once, however many kernels it has
                system = view_matrix(design, data, roots=True, parts=kernel_parts(self))
                problem = MultipleKernels(system, self.alpha, float(self.p), shared=self.shared_weights)
                solution = problem.solve(tol=self.tol, max_iter=self.max_iter)
            return _store_weights(self, data, design, solution)

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
            Weights of the losses.
        classes : array-like, optional
            For classification: all classes, at the first call. By default, those of its samples.

        Returns
        -------
        self
            The estimator, fitted to all samples so far.
        """
        with self._restore_on_error():
            self._validate_params()
            data = add_samples(self, X, y, sample_weight, classes, labeled_only=True, several=True)
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
class MultipleKernelRidgeClassifier(ViewClassifier, BatchEstimator):
    """lp-norm multiple kernel learning for classes: `MultipleKernelRidge` on targets of ±1 (Kloft et al. 2011).

    Targets are +1 for a sample's class and -1 for the others, one output per class, one in all for two classes. The
    largest output decides. With an indicator matrix for y (several labels per sample) each column is an output of its
    own, and its sign decides. The program and its special cases are those of `MultipleKernelRidge`.

    Parameters
    ----------
    {Parameters of MultipleKernelRidge}
    {class_weight}
    {unlabeled_out}

    Attributes
    ----------
    {Attributes of MultipleKernelRidge}
    {classes_}

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

    _parameter_constraints = constraints(*_PARAMETERS)
    _multi_label = True

    kernel: Any = "rbf"
    _: KW_ONLY
    p: float = 2.0
    alpha: float = 1.0
    shared_weights: bool = True
    n_components: float | None = None
    tol: float = 1e-6
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"
    class_weight: Any = None
    unlabeled: Any = None

    fit = MultipleKernelRidge.fit
    partial_fit, merge = (vars(MultipleKernelRidge)[name] for name in ("partial_fit", "merge"))  # with their condition


@shared_docs
@dataclass(eq=False, repr=False)
class OutputKernelRidge(ViewRegressor, BatchEstimator):
    """Output kernel learning, OKL: least squares with a kernel between outputs (Dinuzzo, Ong, Gehler, Pillonetto 2011).

    Solves, over a positive semi-definite L between the outputs and f in the space of the kernel k(x, z) L with
    k = Σ_v w_v² k_v,

        min_{L ⪰ 0, f} Σ_i ‖y_i - f(x_i)‖² + λ‖f‖² + λ‖L‖_F²,

    which is the paper's program times 2λ. For f fixed L is known, and a sum of powers 4/3 of singular values remains,
    convex in f. Newton's steps on L, from one eigendecomposition of the kernel, end where the duality gap is met.

    With k = Σ_v w_v² K_v² for the kernel matrix it equals `ViewMetricRidge` with ``shared_metric=True``. Samples
    without targets are left out. Where a view is missing, w is rescaled over the views present so that Σ|w| stays.

    Parameters
    ----------
    {kernel}
    alpha : float, default=1.0
        Penalty on the norms of the function and of the output kernel, λ > 0.
    {view_weights_given}
    {n_components}
    {tol_gap}
    max_iter : int, default=500
        Maximum number of steps on L.
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    output_kernel_ : array of shape (n_outputs, n_outputs)
        Learned kernel L between the outputs.
    {view_weights_}
    {dual_coef_}
    {support_}
    {coef_}
    {kernels_}
    {solution_}

    See Also
    --------
    ViewMetricRidge : A metric between views.
    OutputKernelRidgeClassifier : The same for classes.
    CoRegularizedRidge : Takes a given kernel between outputs.

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

    _parameter_constraints = constraints(*_OUTPUT_PARAMETERS)

    kernel: Any = "rbf"
    _: KW_ONLY
    alpha: float = 1.0
    view_weights: Any = "uniform"
    n_components: float | None = None
    tol: float = 1e-6
    max_iter: int = 500
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the functions and the kernel between outputs.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples. Blocks of rows have their targets and weights with them, and need `n_components`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets; samples whose targets are NaN are left out. For classification: classes, or an indicator of labels;
            samples without any are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the losses. A weight of 2 equals the sample given twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            data = read_training(self, X, y, sample_weight, labeled_only=True)
            plan_memory(self, data)
            w = given_weights(self)
            if w is None:
                raise ValueError(
                    f"{type(self).__name__} takes given weights. MultipleKernelRidge and ViewMetricRidge, and their "
                    "classifiers, learn weights."
                )
            with few_threads(data.n_used):
                design = double_design(self, data)
                problem = OutputKernel(view_matrix(design, data, roots=True), self.alpha)
                solution = problem.solve(w, tol=self.tol, max_iter=self.max_iter)
            store_fit(self, data, design, solution)
            self.output_kernel_ = solution.x[2]
            return self


@shared_docs
@dataclass(eq=False, repr=False)
class OutputKernelRidgeClassifier(ViewClassifier, BatchEstimator):
    """Output kernel learning, OKL, for classes: `OutputKernelRidge` on targets of ±1 (Dinuzzo et al. 2011).

    Targets are +1 for a sample's class and -1 for the others, one output per class, one in all for two classes. The
    largest output decides. With an indicator matrix for y (several labels per sample) each column is an output of its
    own, and its sign decides. In the kernel L between outputs, labels that occur together have positive entries, and
    classes that are hard to tell apart negative ones. The program and its special cases are those of
    `OutputKernelRidge` (Dinuzzo, Ong, Gehler and Pillonetto 2011).

    Parameters
    ----------
    {Parameters of OutputKernelRidge}
    {class_weight}
    {unlabeled_out}

    Attributes
    ----------
    {Attributes of OutputKernelRidge}
    {classes_}

    See Also
    --------
    ViewMetricRidgeClassifier : With ``shared_metric=True`` the same on Σ_v w_v² K_v², with a metric between views.

    Examples
    --------
    >>> from consilience import OutputKernelRidgeClassifier
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> model = OutputKernelRidgeClassifier(alpha=0.01).fit(X[:400], y[:400])
    >>> model.output_kernel_.shape, model.score(X[400:800], y[400:800]) > 0.9
    ((10, 10), True)
    """

    _parameter_constraints = constraints(*_OUTPUT_PARAMETERS)
    _multi_label = True

    kernel: Any = "rbf"
    _: KW_ONLY
    alpha: float = 1.0
    view_weights: Any = "uniform"
    n_components: float | None = None
    tol: float = 1e-6
    max_iter: int = 500
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"
    class_weight: Any = None
    unlabeled: Any = None

    fit = OutputKernelRidge.fit

"""Least squares over several views: vector-valued manifold and co-regularized learning, its weights learned too."""

from typing import Any, Self

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from ..solvers.certificates import Solution
from ..solvers.weights import alternate_weights, learn_weights
from ..views.container import Views
from ..views.estimator import ViewRegressor
from ._coregularized import CoRegularized
from ._frame import ReadsClasses, ReadsTargets, right_share, with_learned
from ._ridge_problems import FeatureRidge, GramRidge, output_groups

__all__ = ["CoRegularizedRidge", "CoRegularizedRidgeClassifier"]


class RidgeFrame(CoRegularized, ReadsTargets):
    """Least squares; subclasses read targets or labels."""

    output_kernel: Any
    weights_solver: str
    validation_fraction: float | None

    def _fit_targets(self, X: Views, Y: np.ndarray, labeled: np.ndarray, s: np.ndarray, u: np.ndarray) -> Self:
        penalties = self._penalties()
        labeled = labeled & (u > 0)
        rows = self._arrange(X, labeled, s, with_unlabeled=self._with_unlabeled(penalties))
        groups = output_groups(self.output_kernel, Y.shape[1])
        make: Any = GramRidge if self._exact_kernels() else FeatureRidge

        def work(form: Any) -> tuple[list[np.ndarray], np.ndarray, Solution]:
            problem = make(form, penalties.alpha, rows.first(Y), rows.first(u), groups)
            c = self._given_weights()
            if c is not None:
                return (found := problem.solve(c))[0], c, found[1]
            learned = self._learn_weights(problem)
            coefficients, solution = problem.solve(learned.x)
            return coefficients, learned.x, with_learned(solution, learned)

        return self._solve(rows, penalties, work)

    def _learn_weights(self, problem: Any) -> Solution:
        if self.weights_solver not in ("exact", "alternating"):
            raise ValueError(f"`weights_solver` is 'exact' or 'alternating'; got {self.weights_solver!r}.")
        if self.validation_fraction is not None and self.weights_solver == "exact":
            raise ValueError(
                "`validation_fraction` chooses among the weights that weights_solver='alternating' visits; the exact "
                "solver has one answer."
            )
        starts = self._starts()
        problem.keep()
        if self.weights_solver == "exact":
            return learn_weights(problem.evaluate, starts, tol=self.tol, max_iter=self.max_iter)
        l = len(problem.Y)
        shown, hidden = np.arange(l), np.arange(0)
        if self.validation_fraction is not None:
            shown, hidden = train_test_split(
                np.arange(l), test_size=self.validation_fraction, random_state=check_random_state(self.random_state)
            )
        found, visited = alternate_weights(
            lambda cs: problem.answers(cs, shown), starts, tol=self.tol, max_iter=self.max_iter
        )
        if len(hidden) == 0:
            return found
        losses = [self._validation_loss(problem.outputs(c, shown, hidden), problem.Y[hidden]) for c in visited]
        return Solution(visited[int(np.argmin(losses))], None, found.n_iter, found.status)

    def _validation_loss(self, outputs: np.ndarray, Y: np.ndarray) -> float:
        return float(np.mean((outputs - Y) ** 2))


class RidgeClassifierFrame(ReadsClasses, RidgeFrame):
    """Least squares on codes of classes, or on indicators of labels."""

    def _validation_loss(self, outputs: np.ndarray, Y: np.ndarray) -> float:
        return 1 - right_share(outputs, Y, np.ones(len(Y)), self._indicator)


class CoRegularizedRidge(ViewRegressor, RidgeFrame):
    """MVL-LS: vector-valued manifold and co-regularized least squares (Minh, Bazzani and Murino 2016).

    Solves, over one function f_v per view with values in R^P,

        min 1/l Σ_{i<=l} ‖y_i - Σ_v c_v f_v(x_i)‖² + γ_A Σ_v ‖f_v‖² + γ_B Σ_{i<=N} Σ_{v<w} ‖f_v(x_i) - f_w(x_i)‖²
            + γ_W Σ_v tr(f_v' L_v f_v)

    over l labeled and N - l unlabeled samples (targets of NaN). With ``view_weights="learned"`` c is optimized too over
    ‖c‖ = `weights_norm` (MVL-LS-optC), with a proof that it is the global optimum. Where a view is absent it has no
    part in the row's terms, and c is rescaled over the views present so that Σ|c| stays.

    With one view it equals ``sklearn.kernel_ridge.KernelRidge(alpha=l * alpha)`` for γ_W = 0 and Laplacian regularized
    least squares (Belkin, Niyogi and Sindhwani 2006) for γ_W > 0; with γ_B = γ_W = 0 it is kernel ridge with
    Σ_v c_v² k_v; with one output and γ_W = 0 co-regularized least squares (Sindhwani and Rosenberg 2008).
    Solved with one factorization of each view's matrix, never of an (Nm) x (Nm) one.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    alpha : float, default=1e-3
        γ_A > 0, the weight of the norms.
    agreement_penalty : float, default=0.0
        γ_B, the weight of the views' differences, on labeled and unlabeled samples.
    graph_penalty : float, default=0.0
        γ_W, the weight of smoothness along each view's graph, on labeled and unlabeled samples.
    graph : {"kernel", "kernel_normalized", "knn"}, callable, array or dict, default="kernel"
        L_v: the Laplacian, plain or normalized, of the graph with the kernel's values as weights, as in the paper; of
        the ten nearest neighbors by the kernel's distance; what a callable makes of a view's data; or a matrix over
        the samples given to `fit`. A dict gives one of these to each view.
    view_weights : "uniform", "learned", dict or array of shape (n_views,), default="uniform"
        c: 1/m each; numbers, negative ones too, by name or in the order of the views; or learned with f.
    weights_norm : float, optional
        ‖c‖ of learned weights; 1/√m by default, the length of uniform ones.
    weights_solver : {"exact", "alternating"}, default="exact"
        How weights are learned. "exact" goes along the sphere by quasi-Newton steps and stops when the optimum is
        proved to be global. "alternating" is the published scheme: f for c fixed, then c for f fixed.
    n_restarts : int, default=5
        How many starts, the first with equal weights; "exact" tries another only where a proof is missing.
    validation_fraction : float, optional
        With "alternating": the share of the labeled samples that is set aside to choose among all weights visited;
        by default they are chosen by the objective.
    output_kernel : array of shape (n_outputs, n_outputs), optional
        R, symmetric positive semi-definite: the kernel of the vector-valued functions is k_v(x, z) R. See
        `consilience.kernels.multi_task` and `consilience.kernels.output_graph`; the identity by default.
    n_components : int or float, optional
        The number of Nyström landmarks of each view, or their fraction of the samples; by default the kernels are
        taken whole.
    tol : float, default=1e-6
        The relative gap at which learned weights are good enough.
    max_iter : int, default=100
        The most steps from one start, for learned weights.
    random_state : int, RandomState or None, default=None
        The seed of random starts, validation and landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    view_weights_ : array of shape (n_views_used,)
        c; a view that no sample with a part in the objective has is left out.
    dual_coef_ : array of shape (n_views, n_support, n_outputs)
        a_v with f_v(x) = Σ_i k_v(x, x_i) a_v,i; not with `n_components`.
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
    CoRegularizedRidgeCV : The same with penalties chosen by leave-one-out.
    CoRegularizedRidgeClassifier : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import CoRegularizedRidge, Views
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(60, 1))
    >>> X = Views(a=hidden + 0.1 * rng.normal(size=(60, 3)), b=hidden + 0.1 * rng.normal(size=(60, 2)))
    >>> y = np.where(np.arange(60) < 20, np.sin(hidden[:, 0]), np.nan)
    >>> model = CoRegularizedRidge(agreement_penalty=1e-3).fit(X, y)
    >>> round(model.score(X[20:], np.sin(hidden[20:, 0])), 2)
    0.98
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        alpha: float = 1e-3,
        agreement_penalty: float = 0.0,
        graph_penalty: float = 0.0,
        graph: Any = "kernel",
        view_weights: Any = "uniform",
        weights_norm: float | None = None,
        weights_solver: str = "exact",
        n_restarts: int = 5,
        validation_fraction: float | None = None,
        output_kernel: Any = None,
        n_components: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.alpha = alpha
        self.agreement_penalty = agreement_penalty
        self.graph_penalty = graph_penalty
        self.graph = graph
        self.view_weights = view_weights
        self.weights_norm = weights_norm
        self.weights_solver = weights_solver
        self.n_restarts = n_restarts
        self.validation_fraction = validation_fraction
        self.output_kernel = output_kernel
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
            The samples, unlabeled ones too.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The targets; NaN for unlabeled samples.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts, in the loss, between the views and in graphs made of kernels.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._whole():
            return self._fit_regressor(X, y, sample_weight)


class CoRegularizedRidgeClassifier(RidgeClassifierFrame):
    """MVL-LS for classes: `CoRegularizedRidge` on ±1 codes (Minh, Bazzani and Murino 2016).

    Targets are +1 for a sample's class and -1 for the others, one output per class, one in all for two classes; the
    largest output decides. With an indicator matrix for y (several labels per sample) each column is an output of its
    own and its sign decides. Unlabeled samples (missing labels) take part through `agreement_penalty` and `graph_penalty`.

    With one view and γ_W = 0 it equals ``sklearn.kernel_ridge.KernelRidge`` on the codes; see `CoRegularizedRidge`,
    whose program and special cases are the same.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    alpha : float, default=1e-3
        γ_A > 0, the weight of the norms.
    agreement_penalty : float, default=0.0
        γ_B, the weight of the views' differences, on labeled and unlabeled samples.
    graph_penalty : float, default=0.0
        γ_W, the weight of smoothness along each view's graph, on labeled and unlabeled samples.
    graph : {"kernel", "kernel_normalized", "knn"}, callable, array or dict, default="kernel"
        L_v: the Laplacian, plain or normalized, of the graph with the kernel's values as weights, as in the paper; of
        the ten nearest neighbors by the kernel's distance; what a callable makes of a view's data; or a matrix over
        the samples given to `fit`. A dict gives one of these to each view.
    view_weights : "uniform", "learned", dict or array of shape (n_views,), default="uniform"
        c: 1/m each; numbers, negative ones too, by name or in the order of the views; or learned with f.
    weights_norm : float, optional
        ‖c‖ of learned weights; 1/√m by default, the length of uniform ones.
    weights_solver : {"exact", "alternating"}, default="exact"
        How weights are learned. "exact" goes along the sphere by quasi-Newton steps and stops when the optimum is
        proved to be global. "alternating" is the published scheme: f for c fixed, then c for f fixed.
    n_restarts : int, default=5
        How many starts, the first with equal weights; "exact" tries another only where a proof is missing.
    validation_fraction : float, optional
        With "alternating": the share of the labeled samples that is set aside to choose among all weights visited;
        by default they are chosen by the objective.
    output_kernel : array of shape (n_outputs, n_outputs), optional
        R between the outputs; see `CoRegularizedRidge`.
    n_components : int or float, optional
        The number of Nyström landmarks of each view, or their fraction of the samples; by default the kernels are
        taken whole.
    tol : float, default=1e-6
        The relative gap at which learned weights are good enough.
    max_iter : int, default=100
        The most steps from one start, for learned weights.
    class_weight : dict or "balanced", optional
        Weights of the classes in the loss, as scikit-learn reads them.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones.
    random_state : int, RandomState or None, default=None
        The seed of random starts, validation and landmarks.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    view_weights_ : array of shape (n_views_used,)
        c; a view that no sample with a part in the objective has is left out.
    dual_coef_ : array of shape (n_views, n_support, n_outputs)
        a_v with f_v(x) = Σ_i k_v(x, x_i) a_v,i; not with `n_components`.
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
    CoRegularizedSVC : The same views with hinge losses.
    CoRegularizedRidgeClassifierCV : The same with penalties chosen by leave-one-out.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import CoRegularizedRidgeClassifier
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> X, y = X[:400], y[:400]
    >>> half = np.where(np.arange(400) < 100, y, np.nan)  # the other labels are not known
    >>> alone = CoRegularizedRidgeClassifier(alpha=1e-4).fit(X[:100], y[:100])
    >>> both = CoRegularizedRidgeClassifier(alpha=1e-4, agreement_penalty=1e-4, graph_penalty=1e-4, graph="knn").fit(X, half)
    >>> both.score(X[100:], y[100:]) > alone.score(X[100:], y[100:])
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        alpha: float = 1e-3,
        agreement_penalty: float = 0.0,
        graph_penalty: float = 0.0,
        graph: Any = "kernel",
        view_weights: Any = "uniform",
        weights_norm: float | None = None,
        weights_solver: str = "exact",
        n_restarts: int = 5,
        validation_fraction: float | None = None,
        output_kernel: Any = None,
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
        self.alpha = alpha
        self.agreement_penalty = agreement_penalty
        self.graph_penalty = graph_penalty
        self.graph = graph
        self.view_weights = view_weights
        self.weights_norm = weights_norm
        self.weights_solver = weights_solver
        self.n_restarts = n_restarts
        self.validation_fraction = validation_fraction
        self.output_kernel = output_kernel
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
            The samples, unlabeled ones too.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            The classes, missing for unlabeled samples; or an indicator of labels, rows of NaN for unlabeled samples.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts, in the loss, between the views and in graphs made of kernels.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._whole():
            return self._fit_classifier(X, y, sample_weight)

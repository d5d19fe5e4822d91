"""Co-regularized least squares over several views (MVL-LS), with given or learned weights of the views."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from .._backend import few_threads
from ..solvers.coregularized import Penalties, RidgeProblem, WeightSearch
from ..solvers.linalg import eigh
from ..views._docs import shared_docs
from ..views.estimator import ViewClassifier, ViewRegressor
from ._estimator import BatchEstimator, constraints
from ._fit import designs, given_weights, is_precise, read_training, store_fit
from ._graphs import add_graphs
from ._memory import plan_memory
from ._partial import SumsData, add_samples, keeps_sums, merge_sums
from ._terms import learns_weights, weight_starts, weights_order

__all__ = ["CoRegularizedRidge", "CoRegularizedRidgeClassifier"]

_PARAMETERS = (
    "alpha", "agreement_penalty", "graph_penalty", "view_weights", "weights_norm", "weights_order", "weights_solver",
    "n_restarts", "validation_fraction", "n_components", "tol", "max_iter", "random_state", "verbose",
)  # fmt: skip


def output_groups(R: Any, n_outputs: int) -> list[tuple[float, np.ndarray | None]]:
    """Return the eigenvalues of the output kernel R, equal ones together, and their eigenvectors as columns.

    None stands for the outputs themselves, where there is no kernel between them.
    """
    if R is None:
        return [(1.0, None)]
    R = np.asarray(R, dtype=np.float64)
    if R.shape != (n_outputs, n_outputs) or not np.isfinite(R).all():
        raise ValueError(
            f"`output_kernel` must be a finite matrix of shape ({n_outputs}, {n_outputs}), one row per output; got "
            f"{R!r}."
        )
    largest = float(np.abs(R).max())
    if np.abs(R - R.T).max() > 1e-8 * largest:
        raise ValueError("`output_kernel` is not symmetric. Give (R + R') / 2 if that is meant.")
    values, vectors = eigh(R)
    if values[0] < -1e-8 * largest:
        raise ValueError(f"`output_kernel` must be positive semi-definite; its smallest eigenvalue is {values[0]:.4g}.")
    values[values <= 1e-12 * values[-1]] = 0.0
    new = np.flatnonzero(np.diff(values, prepend=-1.0) > 1e-12 * values[-1])
    return [(float(values[k[0]]), vectors[:, k]) for k in np.split(np.arange(n_outputs), new[1:])]


def _weight_search(estimator: Any, l: int) -> WeightSearch:
    """Return how weights of the views are learned, with the labeled rows that are set aside for validation."""
    alternating, share = estimator.weights_solver == "alternating", estimator.validation_fraction
    if share is not None and not alternating:
        raise ValueError(
            "`validation_fraction` chooses among the weights that weights_solver='alternating' visits; the exact "
            "solver has one solution. Leave `validation_fraction` out."
        )
    starts = weight_starts(estimator)
    hidden = np.arange(0)
    if share is not None:
        seed = check_random_state(estimator.random_state)
        hidden = train_test_split(np.arange(l), test_size=share, random_state=seed)[1]
    kind = ("labels" if estimator._indicator else "classes") if is_classifier(estimator) else None
    order = weights_order(estimator)
    return WeightSearch(starts, estimator.tol, estimator.max_iter, alternating, hidden, kind, order)


def _fit_sums(estimator: Any, data: SumsData) -> Any:
    """Fit the functions and weights of the views from sums over samples."""
    penalties = Penalties(estimator.alpha, estimator.agreement_penalty, 0.0)
    groups = output_groups(estimator.output_kernel, data.n_outputs)
    c = given_weights(estimator)
    search = _weight_search(estimator, data.l) if c is None else None
    with few_threads(data.n_used):
        solution = RidgeProblem(data.design, data.Y, data.u, penalties, groups).solve(c, search)
    return store_fit(estimator, data, data.design, solution)


@shared_docs
@dataclass(eq=False, repr=False)
class CoRegularizedRidge(ViewRegressor, BatchEstimator):
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
    {kernel_several}
    alpha : float, default=1e-3
        Penalty on the norms of the functions, γ_A > 0.
    {agreement_penalty}
    {graph_penalty}
    {graph}
    {view_weights}
    {weights_norm}
    {weights_order}
    weights_solver : {"exact", "alternating"}, default="exact"
        How weights are learned. "exact" takes quasi-Newton steps over weights of this norm and stops when the optimum
        is proved global. "alternating" is the published scheme: functions for fixed weights, then weights for fixed
        functions, both with Euclidean norm.
    {n_restarts}
    validation_fraction : float, optional
        With "alternating": fraction of the labeled samples that chooses among all weights visited. By default, the
        objective chooses.
    {output_kernel}
    {n_components}
    tol : float, default=1e-6
        Relative gap at which learned weights are accepted.
    max_iter : int, default=100
        Maximum number of steps from one starting point, for learned weights.
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    {view_weights_several}
    {dual_coef_several}
    {support_}
    {coef_several}
    {kernels_several}
    {solution_}

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

    _parameter_constraints = constraints(*_PARAMETERS)

    kernel: Any = "rbf"
    _: KW_ONLY
    alpha: float = 1e-3
    agreement_penalty: float = 0.0
    graph_penalty: float = 0.0
    graph: Any = "kernel"
    view_weights: Any = "uniform"
    weights_norm: float | None = None
    weights_order: float | None = None
    weights_solver: str = "exact"
    n_restarts: int = 5
    validation_fraction: float | None = None
    output_kernel: Any = None
    n_components: float | None = None
    tol: float = 1e-6
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the functions and weights of the views.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples, with or without labels. Blocks of rows have their targets and weights with them, and need
            `n_components`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets, NaN for unlabeled samples. For classification: classes, missing for unlabeled samples, or an
            indicator of labels with rows of NaN for unlabeled samples.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in the loss, in the agreement between views and in graphs made of kernels. A weight
            of 2 equals the sample given twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            penalties = Penalties(self.alpha, self.agreement_penalty, self.graph_penalty)
            several, unlabeled = learns_weights(self), penalties.use_unlabeled
            data = read_training(self, X, y, sample_weight, use_unlabeled=unlabeled, several=several)
            plan_memory(self, data, single=True)
            groups = output_groups(self.output_kernel, data.n_outputs)
            c = given_weights(self)
            search = _weight_search(self, data.l) if c is None else None
            with few_threads(data.n_used):
                for design in designs(self, data):
                    if penalties.graph:
                        add_graphs(self, data, design, penalties)
                    solution = RidgeProblem(design, data.Y, data.u, penalties, groups).solve(c, search)
                    if is_precise(design, solution):
                        break
            return store_fit(self, data, design, solution)

    @available_if(keeps_sums)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Self:
        """Add samples to the fit; needs `n_components`, without a `graph_penalty`.

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
            Weights of the samples in the loss and in the agreement between views.
        classes : array-like, optional
            For classification: all classes, at the first call. By default, those of its samples.

        Returns
        -------
        self
            The estimator, fitted to all samples so far.
        """
        with self._restore_on_error():
            self._validate_params()
            data = add_samples(
                self, X, y, sample_weight, classes,
                use_unlabeled=self.agreement_penalty > 0, several=learns_weights(self),
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
class CoRegularizedRidgeClassifier(ViewClassifier, BatchEstimator):
    """MVL-LS for classes: `CoRegularizedRidge` on ±1 codes (Minh, Bazzani and Murino 2016).

    Targets are +1 for a sample's class and -1 for the others, one output per class, one in all for two classes; the
    largest output decides. With an indicator matrix for y (several labels per sample) each column is an output of its
    own and its sign decides. Unlabeled samples (missing labels) take part through `agreement_penalty` and
    `graph_penalty`.

    With one view and γ_W = 0 it equals ``sklearn.kernel_ridge.KernelRidge`` on the codes; see `CoRegularizedRidge`,
    whose program and special cases are the same.

    Parameters
    ----------
    {Parameters of CoRegularizedRidge}
    {class_weight}
    {unlabeled}

    Attributes
    ----------
    {Attributes of CoRegularizedRidge}
    {classes_}

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
    >>> both = CoRegularizedRidgeClassifier(
    ...     alpha=1e-4, agreement_penalty=1e-4, graph_penalty=1e-4, graph="knn"
    ... ).fit(X, half)
    >>> both.score(X[100:], y[100:]) > alone.score(X[100:], y[100:])
    True
    """

    _parameter_constraints = constraints(*_PARAMETERS)

    _multi_label = True

    kernel: Any = "rbf"
    _: KW_ONLY
    alpha: float = 1e-3
    agreement_penalty: float = 0.0
    graph_penalty: float = 0.0
    graph: Any = "kernel"
    view_weights: Any = "uniform"
    weights_norm: float | None = None
    weights_order: float | None = None
    weights_solver: str = "exact"
    n_restarts: int = 5
    validation_fraction: float | None = None
    output_kernel: Any = None
    n_components: float | None = None
    tol: float = 1e-6
    max_iter: int = 100
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"
    class_weight: Any = None
    unlabeled: Any = None

    fit = CoRegularizedRidge.fit
    partial_fit, merge = (vars(CoRegularizedRidge)[name] for name in ("partial_fit", "merge"))  # with their condition

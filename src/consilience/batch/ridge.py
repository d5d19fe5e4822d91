"""Least squares over several views: vector-valued manifold and co-regularized learning, its weights learned too."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv, train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._backend import few_threads
from .._base import ViewClassifier, ViewRegressor
from .._inputs import class_weights, read_labels, read_targets, read_views_to_fit, read_weights
from ..certificates import Solution
from ..solvers.coupled import CoupledGrams
from ..solvers.moments import FeatureMoments
from ..solvers.ridge import HeldOut, evaluate_ridge, ridge_forces
from ..solvers.weights import Evaluation, alternate_weights, learn_weights
from ..views import Views
from ._coregularized import CoRegularized, GramForm, Penalties, Rows, not_positive, with_learned

__all__ = [
    "CoRegularizedRidge",
    "CoRegularizedRidgeCV",
    "CoRegularizedRidgeClassifier",
    "CoRegularizedRidgeClassifierCV",
]


# -- the problem, one for each eigenvalue of the output kernel
def _output_groups(R: Any, P: int) -> list[tuple[float, np.ndarray]]:
    """The eigenvalues of R, equal ones together, and their eigenvectors as columns."""
    if R is None:
        return [(1.0, np.eye(P))]
    R = np.asarray(R, dtype=np.float64)
    if R.shape != (P, P) or not np.isfinite(R).all():
        raise ValueError(f"`output_kernel` must be a finite matrix of shape ({P}, {P}), one row per output; got {R!r}.")
    largest = float(np.abs(R).max())
    if np.abs(R - R.T).max() > 1e-8 * largest:
        raise ValueError("`output_kernel` is not symmetric.")
    values, vectors = np.linalg.eigh(R)
    if values[0] < -1e-8 * largest:
        raise ValueError(f"`output_kernel` must be positive semi-definite; its smallest eigenvalue is {values[0]:.4g}.")
    values[values <= 1e-12 * values[-1]] = 0.0
    new = np.flatnonzero(np.diff(values, prepend=-1.0) > 1e-12 * values[-1])
    return [(float(values[k[0]]), vectors[:, k]) for k in np.split(np.arange(P), new[1:])]


class _Problem:
    """min over f for c given; what Gram matrices and features share."""

    def __init__(self, form: Any, alpha: float, Y: np.ndarray, u: np.ndarray, groups: list[tuple[float, np.ndarray]]):
        self.form, self.alpha, self.Y, self.u = form, alpha, Y, u
        self.groups = [(value, vectors) for value, vectors in groups if value > 0]
        self.lost = sum(float(np.sum(u[:, None] * (Y @ vectors) ** 2)) for value, vectors in groups if not value)

    def _evaluations(self, c: np.ndarray) -> Iterator[Evaluation]:
        """φ, its gradient and ∇ of every part, times l."""
        raise NotImplementedError

    def evaluate(self, c: np.ndarray) -> Evaluation:
        """φ, its gradient and ∇."""
        value, gradient, curvature = self.lost, np.zeros(len(c)), np.zeros((len(c), len(c)))
        known = True
        for more in self._evaluations(c):
            value, gradient = value + more[0], gradient + more[1]
            known &= more[2] is not None
            curvature = curvature + (0 if more[2] is None else more[2])
        scale = self.form.scale
        return value / scale, gradient / scale, curvature / scale if known else None


class _GramRidge(_Problem):
    """The problem over Gram matrices."""

    _systems: list[CoupledGrams] | None = None

    def _parts(self) -> Iterator[tuple[CoupledGrams, np.ndarray]]:
        """The systems; those of several eigenvalues are not held at once unless weights are learned."""
        for k, (value, vectors) in enumerate(self.groups):
            yield (self.form.system(self.alpha / value) if self._systems is None else self._systems[k]), vectors

    def keep(self) -> None:
        """Hold the factorizations, for many c."""
        if self._systems is None:
            self._systems = [system for system, _ in self._parts()]

    def _evaluations(self, c: np.ndarray) -> Iterator[Evaluation]:
        for system, vectors in self._parts():
            yield evaluate_ridge(system, c, self.Y @ vectors, self.u)

    def answers(self, cs: Sequence[np.ndarray], shown: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """φ, the views' answers at the labeled rows shown, and their targets, as least squares takes them."""
        root = np.sqrt(self.u[shown])[:, None]
        values, F = np.full(len(cs), float(self.lost)), [[] for _ in cs]  # type: ignore[var-annotated]
        b = []
        for system, vectors in self._parts():
            forces = [self._shown_forces(system, c, vectors, shown) for c in cs]
            values += [value for _, value in forces]
            b.append((root * (self.Y[shown] @ vectors)).ravel())
            for k, (f, _) in enumerate(system.answers_together(cs, [r for r, _ in forces])):
                weighed = f[:, shown] * (system.nu(cs[k])[shown, None] * root)
                F[k].append(weighed.reshape(len(cs[k]), -1).T)
        targets = np.concatenate(b)
        return [(value / self.form.scale, np.concatenate(f), targets) for value, f in zip(values, F, strict=True)]

    def _shown_forces(
        self, system: CoupledGrams, c: np.ndarray, vectors: np.ndarray, shown: np.ndarray
    ) -> tuple[np.ndarray, float]:
        kernel = system.labeled_kernel(c)
        kernel = kernel if len(shown) == len(kernel) else kernel[np.ix_(shown, shown)]
        r = np.zeros((len(self.Y), vectors.shape[1]))
        r[shown], value = ridge_forces(kernel, self.Y[shown] @ vectors, self.u[shown])
        return r, value

    def outputs(self, c: np.ndarray, shown: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """g at hidden labeled rows, learned from those shown."""
        total = np.zeros((len(hidden), self.Y.shape[1]))
        for system, vectors in self._parts():
            r, _ = self._shown_forces(system, c, vectors, shown)
            total += system.labeled_kernel(c)[hidden] @ r @ vectors.T
        return total

    def solve(self, c: np.ndarray) -> tuple[list[np.ndarray], Solution]:
        """a_v with f_v = K_v a_v."""
        coefficients = [np.zeros((len(K), self.Y.shape[1])) for K in self.form.grams]
        value, worst, gap = self.lost, 0.0, 0.0
        for system, vectors in self._parts():
            Y = self.Y @ vectors
            r, _ = ridge_forces(system.labeled_kernel(c), Y, self.u)
            found = system.coefficients(c, r)
            f, g, penalty = system.outputs(c, found)
            rest, bound = system.optimality(c, found, f, self.u[:, None] * (Y - g))
            value += float(np.sum(self.u[:, None] * (Y - g) ** 2)) + penalty
            worst, gap = max(worst, rest), gap + bound
            for total, part in zip(coefficients, found, strict=True):
                total += part @ vectors.T
        return coefficients, _direct(value / self.form.scale, gap / self.form.scale, worst / self.form.scale)


def _direct(objective: float, gap: float, residual: float) -> Solution:
    """A direct solution, and whether rounding left it one."""
    status = "exact" if gap <= 1e-6 * abs(objective) else "inexact"
    return Solution(None, gap, 1, status, objective=objective, residual=residual)


class _FeatureRidge(_Problem):
    """The problem over finite features."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self._moments: dict[bytes, list[FeatureMoments]] = {}

    def keep(self) -> None:
        """Sums over rows are kept as they are made."""

    def _parts(self, shown: np.ndarray | None = None) -> Iterator[tuple[FeatureMoments, np.ndarray]]:
        key = b"" if shown is None else shown.tobytes()
        if key not in self._moments:
            u = self.u if shown is None else np.where(np.isin(np.arange(len(self.u)), shown), self.u, 0.0)
            self._moments[key] = [
                self.form.moments(self.alpha / value, self.Y @ vectors, u) for value, vectors in self.groups
            ]
        yield from zip(self._moments[key], (vectors for _, vectors in self.groups), strict=True)

    def _evaluations(self, c: np.ndarray) -> Iterator[Evaluation]:
        for moments, _ in self._parts():
            yield moments.evaluate(c)

    def answers(self, cs: Sequence[np.ndarray], shown: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """φ, and the views' answers and targets, as least squares takes them."""
        found = []
        for c in cs:
            parts = [moments.answer_products(c) for moments, _ in self._parts(shown)]
            value = (self.lost + sum(part[0] for part in parts)) / self.form.scale
            found.append((value, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])))
        return found

    def outputs(self, c: np.ndarray, shown: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """g at hidden labeled rows, learned from those shown."""
        return self.form.combined(self._weights(c, shown), c, hidden)

    def _weights(self, c: np.ndarray, shown: np.ndarray | None = None) -> np.ndarray:
        return sum(m.ridge_solution(c)[0] @ vectors.T for m, vectors in self._parts(shown))

    def solve(self, c: np.ndarray) -> tuple[list[np.ndarray], Solution]:
        """W_v with f_v = Φ_v W_v."""
        value, worst, gap = self.lost, 0.0, 0.0
        total = np.zeros((sum(self.form.sizes), self.Y.shape[1]))
        for moments, vectors in self._parts():
            W, more, rest, bound = moments.ridge_solution(c)
            total += W @ vectors.T
            value, worst, gap = value + more, max(worst, rest), gap + bound
        scale = self.form.scale
        return self.form.split(total), _direct(value / scale, gap / scale, worst / scale)


# -- the learners
class _Ridge(CoRegularized):
    """Least squares; subclasses read targets or labels."""

    output_kernel: Any
    weights_solver: str
    validation_fraction: float | None

    def _fit_targets(self, X: Views, Y: np.ndarray, labeled: np.ndarray, s: np.ndarray, u: np.ndarray) -> Self:
        penalties = self._penalties()
        labeled = labeled & (u > 0)
        rows = self._arrange(X, labeled, s, with_unlabeled=self._with_unlabeled(penalties))
        groups = _output_groups(self.output_kernel, Y.shape[1])
        make: Any = _GramRidge if self._exact_kernels() else _FeatureRidge

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

    def _fit_regressor(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        X = read_views_to_fit(self, X)
        Y, labeled = read_targets(y, len(X))
        self._one_output = np.asarray(y).ndim == 1
        s = read_weights(sample_weight, len(X))
        return self._fit_targets(X, Y, labeled, s, s)


class _RidgeClassifier(ViewClassifier, _Ridge):
    """Least squares on codes of classes, or on indicators of labels."""

    class_weight: Any
    unlabeled: Any

    def _fit_classifier(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        X = read_views_to_fit(self, X)
        s = read_weights(sample_weight, len(X))
        y = y.toarray() if hasattr(y, "toarray") else y
        self._indicator = y is not None and np.asarray(y).ndim == 2 and np.asarray(y).shape[1] > 1
        if self._indicator:
            if self.class_weight is not None:
                raise ValueError("`class_weight` is for one class per sample; y is an indicator of several labels.")
            Y, labeled = read_targets(y, len(X))
            others = np.setdiff1d(Y[labeled], (0, 1))
            if len(others):
                raise ValueError(f"An indicator of labels holds 0 and 1; y has {others[0]:g}.")
            self.classes_ = np.arange(Y.shape[1])
            return self._fit_targets(X, 2 * Y - 1, labeled, s, s)
        labels = read_labels(y, len(X), self.unlabeled)
        self.classes_ = labels.classes
        return self._fit_targets(X, labels.signs(), labels.labeled, s, s * class_weights(self.class_weight, labels))

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes, or the indicator of labels.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_labels)
            The classes; 0 and 1 where y was an indicator.
        """
        check_is_fitted(self)
        return (self._combined(X) > 0).astype(int) if self._indicator else super().predict(X)

    def _validation_loss(self, outputs: np.ndarray, Y: np.ndarray) -> float:
        return 1 - _accuracy(outputs, Y, np.ones(len(Y)), self._indicator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _accuracy(outputs: np.ndarray, Y: np.ndarray, weights: np.ndarray, indicator: bool) -> float:
    """The share of rows decided rightly; with an indicator the share of right entries."""
    if indicator or Y.shape[1] == 1:
        right = ((outputs > 0) == (Y > 0)).mean(axis=1)
    else:
        right = outputs.argmax(axis=1) == Y.argmax(axis=1)
    return float(np.average(right, weights=weights))


class CoRegularizedRidge(ViewRegressor, _Ridge):
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
    kernel : Kernel, str or callable, default="rbf"
        The kernel of the views that `kernels` does not name.
    kernels : dict, optional
        Kernels by view.
    alpha : float, default=1e-3
        γ_A > 0, the weight of the norms.
    between : float, default=0.0
        γ_B, the weight of the views' differences, on labeled and unlabeled samples.
    within : float, default=0.0
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
    >>> model = CoRegularizedRidge(between=1e-3).fit(X, y)
    >>> round(model.score(X[20:], np.sin(hidden[20:, 0])), 2)
    0.98
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        kernels: Mapping[str, Any] | None = None,
        alpha: float = 1e-3,
        between: float = 0.0,
        within: float = 0.0,
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
        views: Any = None,
    ):
        self.kernel = kernel
        self.kernels = kernels
        self.alpha = alpha
        self.between = between
        self.within = within
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
        return self._fit_regressor(X, y, sample_weight)


class CoRegularizedRidgeClassifier(_RidgeClassifier):
    """MVL-LS for classes: `CoRegularizedRidge` on ±1 codes (Minh, Bazzani and Murino 2016).

    Targets are +1 for a sample's class and -1 for the others, one output per class, one in all for two classes; the
    largest output decides. With an indicator matrix for y (several labels per sample) each column is an output of its
    own and its sign decides. Unlabeled samples (missing labels) take part through `between` and `within`.

    With one view and γ_W = 0 it equals ``sklearn.kernel_ridge.KernelRidge`` on the codes; see `CoRegularizedRidge`,
    whose program and special cases are the same.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="rbf"
        The kernel of the views that `kernels` does not name.
    kernels : dict, optional
        Kernels by view.
    alpha : float, default=1e-3
        γ_A > 0, the weight of the norms.
    between : float, default=0.0
        γ_B, the weight of the views' differences, on labeled and unlabeled samples.
    within : float, default=0.0
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
    >>> both = CoRegularizedRidgeClassifier(alpha=1e-4, between=1e-4, within=1e-4, graph="knn").fit(X, half)
    >>> both.score(X[100:], y[100:]) > alone.score(X[100:], y[100:])
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        kernels: Mapping[str, Any] | None = None,
        alpha: float = 1e-3,
        between: float = 0.0,
        within: float = 0.0,
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
        views: Any = None,
    ):
        self.kernel = kernel
        self.kernels = kernels
        self.alpha = alpha
        self.between = between
        self.within = within
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
        return self._fit_classifier(X, y, sample_weight)


class _RidgeCV(_Ridge):
    """Chooses γ_A and γ_B by held-out scores before the fit."""

    alphas: Any
    betweens: Any
    cv: Any

    def _penalties(self) -> Penalties:
        return Penalties(self.alpha_, self.between_, self.within)

    def _exact_kernels(self) -> bool:
        return True

    def _with_unlabeled(self, penalties: Penalties) -> bool:
        return self._grid_uses_unlabeled  # the views that take part are those of the scores

    def _check_parameters(self) -> None:
        self._grid()

    def _grid(self) -> list[Penalties]:
        alphas, betweens = np.ravel(self.alphas).tolist(), np.ravel(self.betweens).tolist()
        grid = [Penalties(alpha, between, self.within) for alpha in alphas for between in betweens]
        if not grid:
            raise ValueError("`alphas` and `betweens` must not be empty.")
        return grid

    def _score(self, outputs: np.ndarray, Y: np.ndarray, u: np.ndarray) -> float:
        return -float(np.average(((outputs - Y) ** 2).mean(axis=1), weights=u))

    def _fit_targets(self, X: Views, Y: np.ndarray, labeled: np.ndarray, s: np.ndarray, u: np.ndarray) -> Self:
        grid = self._grid()
        self._grid_uses_unlabeled = any(penalties.uses_unlabeled for penalties in grid)
        rows = self._arrange(X, labeled & (u > 0), s, with_unlabeled=self._grid_uses_unlabeled)
        c = self._given_weights()
        if c is None:
            raise ValueError(
                f"{type(self).__name__} takes weights as given; learn them with the penalties chosen: "
                "view_weights='learned' in the learner without CV."
            )
        held = self._folds(rows.first(Y))
        order = np.arange(rows.l) if held is None else np.concatenate(held)
        kept, weights = rows.first(Y)[order], rows.first(u)[order]
        try:
            with few_threads(len(rows.order)):
                found = self._held_out(rows, grid, c, rows.first(Y), rows.first(u), held)
                scores = [self._score(outputs, kept, weights) for outputs in found]
        except np.linalg.LinAlgError as error:
            raise not_positive(self, error) from error
        best = max(range(len(grid)), key=lambda k: (scores[k], grid[k].alpha, grid[k].between))
        self.alpha_, self.between_, self.best_score_ = grid[best].alpha, grid[best].between, scores[best]
        self.cv_results_ = {
            "alpha": np.array([penalties.alpha for penalties in grid]),
            "between": np.array([penalties.between for penalties in grid]),
            "score": np.array(scores),
        }
        return super()._fit_targets(X, Y, labeled, s, u)

    def _folds(self, Y: np.ndarray) -> list[np.ndarray] | None:
        """The rows whose targets are hidden together; None for leave-one-out."""
        if self.cv is None:
            return None
        strata = Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)
        splitter = check_cv(self.cv, strata, classifier=is_classifier(self))
        folds = []
        for train, test in splitter.split(np.zeros((len(Y), 1)), strata):
            if len(np.union1d(train, test)) != len(Y) or len(np.intersect1d(train, test)):
                raise ValueError(
                    f"{type(self).__name__}: a fold of `cv` must train on all labeled samples that it does not test; "
                    f"one trains on {len(train)} and tests on {len(test)} of {len(Y)}. Use GridSearchCV for others."
                )
            folds.append(np.asarray(test))
        return folds

    def _held_out(
        self,
        rows: Rows,
        grid: Sequence[Penalties],
        c: np.ndarray,
        Y: np.ndarray,
        u: np.ndarray,
        folds: list[np.ndarray] | None,
    ) -> Iterator[np.ndarray]:
        """The outputs at held-out rows, fold after fold, for every point of the grid."""
        form = GramForm(self, rows, grid[0], double=True)
        spectra: dict[tuple[float, float], HeldOut] = {}
        groups = [group for group in _output_groups(self.output_kernel, Y.shape[1]) if group[0]]
        to_come = Counter(_ratios(penalties, value)[1] for penalties in grid for value, _ in groups)
        for penalties in grid:
            outputs = np.zeros((len(Y) if folds is None else sum(map(len, folds)), Y.shape[1]))
            for value, vectors in groups:
                alpha = penalties.alpha / value
                ratios, key = _ratios(penalties, value)
                if key not in spectra:
                    spectra[key] = HeldOut(form.system(1.0, *ratios).labeled_kernel(c), Y, u)
                held = spectra[key]
                to_come[key] -= 1
                if not to_come[key]:
                    del spectra[key]
                found = held.leave_one_out(alpha) if folds is None else held.outputs(alpha, folds)
                outputs += found @ vectors @ vectors.T
            yield outputs


def _ratios(penalties: Penalties, value: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """γ_B/γ_A and γ_W/γ_A for an eigenvalue of the output kernel, and the same rounded, to be found again."""
    alpha = penalties.alpha / value
    ratios = penalties.between / alpha, penalties.within / alpha
    return ratios, (float(f"{ratios[0]:.9e}"), float(f"{ratios[1]:.9e}"))


class CoRegularizedRidgeCV(ViewRegressor, _RidgeCV):
    """`CoRegularizedRidge` with γ_A and γ_B chosen by exact held-out scores (the mean squared error).

    The targets of a fold are hidden only: its samples stay among the unlabeled ones, and lγ_A, lγ_B and lγ_W keep the l
    of all labeled samples. With γ_B = γ_W = 0 that is ordinary cross-validation of kernel ridge. The labeled
    kernel depends on γ_B/γ_A and γ_W/γ_A alone, up to a factor, and one eigendecomposition of it serves every fold and
    every γ_A with these ratios: a grid of p γ_A and q γ_B in equal steps takes p + q - 1 factorizations instead of
    p·q·folds fits. Exact: the same scores as fitting anew each time.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="rbf"
        The kernel of the views that `kernels` does not name.
    kernels : dict, optional
        Kernels by view.
    alphas : array-like, default=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1)
        The values of γ_A to try.
    betweens : array-like, default=(0.0,)
        The values of γ_B to try.
    within : float, default=0.0
        γ_W; above 0 every pair of γ_A and γ_B takes a factorization of its own.
    graph : {"kernel", "kernel_normalized", "knn"}, callable, array or dict, default="kernel"
        The graphs of the views; see `CoRegularizedRidge`.
    view_weights : "uniform", dict or array of shape (n_views,), default="uniform"
        c.
    cv : int, splitter or iterable, optional
        Folds of the labeled samples; leave-one-out by default.
    output_kernel : array of shape (n_outputs, n_outputs), optional
        R between the outputs; see `CoRegularizedRidge`.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    alpha_, between_ : float
        The penalties chosen.
    best_score_ : float
        Their score.
    cv_results_ : dict of array
        ``alpha``, ``between`` and ``score`` of every pair.
    view_weights_ : array of shape (n_views_used,)
        c; a view that no sample with a part in the objective has is left out.
    dual_coef_ : array of shape (n_views, n_support, n_outputs)
        a_v with f_v(x) = Σ_i k_v(x, x_i) a_v,i.
    support_ : array of int
        The positions of the x_i among the samples given to `fit`.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        The objective, its gap and the residual of the optimality conditions.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import CoRegularizedRidgeCV, Views
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(60, 1))
    >>> X = Views(a=hidden + 0.3 * rng.normal(size=(60, 3)), b=hidden + 0.3 * rng.normal(size=(60, 2)))
    >>> model = CoRegularizedRidgeCV(betweens=[0, 1e-4, 1e-3, 1e-2]).fit(X, np.sin(hidden[:, 0]))
    >>> model.alpha_, model.between_
    (0.001, 0.001)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        kernels: Mapping[str, Any] | None = None,
        alphas: Any = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0),
        betweens: Any = (0.0,),
        within: float = 0.0,
        graph: Any = "kernel",
        view_weights: Any = "uniform",
        cv: Any = None,
        output_kernel: Any = None,
        views: Any = None,
    ):
        self.kernel = kernel
        self.kernels = kernels
        self.alphas = alphas
        self.betweens = betweens
        self.within = within
        self.graph = graph
        self.view_weights = view_weights
        self.cv = cv
        self.output_kernel = output_kernel
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
        return self._fit_regressor(X, y, sample_weight)


class CoRegularizedRidgeClassifierCV(_RidgeCV, _RidgeClassifier):
    """`CoRegularizedRidgeClassifier` with γ_A and γ_B chosen by exact held-out scores (accuracy).

    The targets of a fold are hidden only: its samples stay among the unlabeled ones, and lγ_A, lγ_B and lγ_W keep the l
    of all labeled samples. With γ_B = γ_W = 0 that is ordinary cross-validation of kernel ridge. The labeled
    kernel depends on γ_B/γ_A and γ_W/γ_A alone, up to a factor, and one eigendecomposition of it serves every fold and
    every γ_A with these ratios: a grid of p γ_A and q γ_B in equal steps takes p + q - 1 factorizations instead of
    p·q·folds fits. Exact: the same scores as fitting anew each time.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="rbf"
        The kernel of the views that `kernels` does not name.
    kernels : dict, optional
        Kernels by view.
    alphas : array-like, default=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1)
        The values of γ_A to try.
    betweens : array-like, default=(0.0,)
        The values of γ_B to try.
    within : float, default=0.0
        γ_W; above 0 every pair of γ_A and γ_B takes a factorization of its own.
    graph : {"kernel", "kernel_normalized", "knn"}, callable, array or dict, default="kernel"
        The graphs of the views; see `CoRegularizedRidge`.
    view_weights : "uniform", dict or array of shape (n_views,), default="uniform"
        c.
    cv : int, splitter or iterable, optional
        Folds of the labeled samples; leave-one-out by default.
    output_kernel : array of shape (n_outputs, n_outputs), optional
        R between the outputs; see `CoRegularizedRidge`.
    class_weight : dict or "balanced", optional
        Weights of the classes in the loss, as scikit-learn reads them.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    alpha_, between_ : float
        The penalties chosen.
    best_score_ : float
        Their score.
    cv_results_ : dict of array
        ``alpha``, ``between`` and ``score`` of every pair.
    view_weights_ : array of shape (n_views_used,)
        c; a view that no sample with a part in the objective has is left out.
    dual_coef_ : array of shape (n_views, n_support, n_outputs)
        a_v with f_v(x) = Σ_i k_v(x, x_i) a_v,i.
    support_ : array of int
        The positions of the x_i among the samples given to `fit`.
    kernels_ : dict of Kernel
        The kernels, with numbers for parameters.
    solution_ : Solution
        The objective, its gap and the residual of the optimality conditions.

    Examples
    --------
    >>> from consilience import CoRegularizedRidgeClassifierCV
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = CoRegularizedRidgeClassifierCV(betweens=[0, 1e-4]).fit(X, y)
    >>> round(model.best_score_, 2)
    0.95
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        kernels: Mapping[str, Any] | None = None,
        alphas: Any = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0),
        betweens: Any = (0.0,),
        within: float = 0.0,
        graph: Any = "kernel",
        view_weights: Any = "uniform",
        cv: Any = None,
        output_kernel: Any = None,
        class_weight: Any = None,
        unlabeled: Any = None,
        views: Any = None,
    ):
        self.kernel = kernel
        self.kernels = kernels
        self.alphas = alphas
        self.betweens = betweens
        self.within = within
        self.graph = graph
        self.view_weights = view_weights
        self.cv = cv
        self.output_kernel = output_kernel
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.views = views

    def _score(self, outputs: np.ndarray, Y: np.ndarray, u: np.ndarray) -> float:
        return _accuracy(outputs, Y, u, self._indicator)

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
        return self._fit_classifier(X, y, sample_weight)

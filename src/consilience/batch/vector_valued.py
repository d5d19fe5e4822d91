"""Vector-valued learning over several views in its general form: any combination, kernel between views and operator."""

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import Interval, StrOptions

from .._backend import few_threads
from ..kernels.between_views import between_views
from ..solvers.certificates import Solution
from ..solvers.vector_valued import NotPositiveOperator, Penalty, VectorProblem, WholeDesign, target_scale
from ..views._docs import shared_docs
from ..views._reading import checked_sparse
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.estimator import ViewClassifier, ViewRegressor, presence
from ..views.validation import read_targets, read_to_score, read_views_to_fit, read_views_to_predict, read_weights
from ._estimator import BatchEstimator, constraints
from ._fit import TrainingData, raise_if_indefinite, read_training, select_training_rows, store_fit
from ._memory import plan_memory
from ._vector_valued import covariance_weights, make_vector_design, read_combination, read_view_kernel
from .coregularized import output_groups
from .svc import hinge_loss, read_vectors

__all__ = ["VectorValuedClassifier", "VectorValuedRegressor"]

_OPERATOR = {"operator_penalty": [Interval(Real, 0, None, closed="left")]}


# -- what both estimators share
def _make_problem(
    estimator: Any, data: TrainingData, scale: float, known: np.ndarray, T: Any = None
) -> tuple[Any, VectorProblem]:
    """Return the design and the problem for the parameters of the estimator; `scale` is l."""
    estimator.combination_ = read_combination(estimator, known.shape[1])
    Q = estimator.combination_.shape[2]
    groups = [(value, np.eye(Q) if own is None else own) for value, own in output_groups(estimator.output_kernel, Q)]
    if not any(value for value, _ in groups):
        raise ValueError("`output_kernel` is 0, so that every function is. Leave it out, or give a kernel.")
    try:
        design, agreement = make_vector_design(estimator, read_view_kernel(estimator, data))
        weight = 0.0 if estimator.operator is None else estimator.operator_penalty * scale
        penalty = Penalty(estimator.alpha * scale, weight, agreement)
        return design, VectorProblem(design, estimator.combination_, groups, penalty, known, T)
    except NotPositiveOperator as error:
        raise ValueError(
            "`operator` must be symmetric and positive semi-definite over views and samples; it is not on the "
            "functions of these kernels. A Laplacian is, and (M + M') / 2 is symmetric."
        ) from error
    except np.linalg.LinAlgError as error:
        raise_if_indefinite(estimator, Solution(getattr(error, "view", None), None, 0, "indefinite"))
        raise


def _store(estimator: Any, data: TrainingData, design: Any, solution: Solution) -> Any:
    coefficients, C = solution.x, estimator.combination_
    if isinstance(design, WholeDesign) and design.root is not None:  # the covariance kernel
        # f_v(x) = mean of k_v(x, x_j) Σ_w (K_w a_w)_j: each view's own kernel, with coefficients of all
        g = np.sqrt(covariance_weights(data))[:, None] * (design.root.T @ np.concatenate(coefficients))
        coefficients = [g[here] for here in design.rows]
    sizes = np.sqrt(np.sum(C**2, axis=(1, 2)) / C.shape[1])
    scalar = C.shape[1] == C.shape[2] and np.array_equal(C, C[:, :1, :1] * np.eye(C.shape[1]))
    return store_fit(estimator, data, design, replace(solution, x=(coefficients, C[:, 0, 0] if scalar else sizes)))


# -- regression
class _Observations(NamedTuple):
    """Targets of samples, or of functionals of them."""

    data: TrainingData  # the samples; those observed are its labeled rows
    Y: np.ndarray  # NaN where a target is not known
    u: np.ndarray  # weights of the losses
    functionals: Any = None  # T over the rows observed


def _read_observations(estimator: Any, X: Any, y: Any, sample_weight: Any, functionals: Any) -> _Observations:
    """Validate samples and targets; rows that are observed come first."""
    every_sample = functionals is not None or estimator.operator is not None
    X = read_views_to_fit(estimator, X, None if every_sample else sample_weight)
    T = None if functionals is None else _read_functionals(functionals, len(X))
    n = len(X) if T is None else T.shape[0]
    if T is None:  # otherwise a row of y is no sample, and has no sample's name
        y, sample_weight = (in_order_of(X, part, what) for part, what in ((y, "y"), (sample_weight, "sample_weight")))
    s = read_weights(sample_weight, n)
    Y, labeled = read_targets(y, n, partial=True, weights=s)
    estimator._one_output = np.asarray(y).ndim == 1
    rows = np.flatnonzero(labeled & (s > 0))
    if T is None:
        observed = np.isin(np.arange(n), rows)
        s_used = np.ones(n) if estimator.operator is not None else s
    else:
        T = T[rows]
        observed = np.asarray(abs(T).sum(axis=0)).ravel() > 0
        s_used = np.ones(len(X))
    views, kernels, order = select_training_rows(
        estimator, X, observed, s_used, use_unlabeled=estimator.operator is not None
    )
    l = int(observed.sum())
    if T is None:
        rows = order[:l]
    else:
        T = T[:, order[:l]]
    weights = s[order] if T is None else np.ones(len(order))
    data = TrainingData(views, kernels, order, len(X), weights, np.zeros((l, Y.shape[1])), np.ones(l))
    return _Observations(data, Y[rows], s[rows], T)


def _read_functionals(given: Any, n: int) -> sp.csr_array:
    T = checked_sparse(given, "`functionals`") if sp.issparse(given) else np.asarray(given, dtype=np.float64)
    if T.ndim != 2 or T.shape[1] != n or not np.isfinite(T.data if sp.issparse(T) else T).all():
        raise ValueError(
            f"`functionals` must be a finite matrix with a column per sample, {n} in all; got shape {T.shape}. Row i "
            "has the weights of the samples' outputs in target i."
        )
    return sp.csr_array(T)


@shared_docs
@dataclass(eq=False, repr=False)
class VectorValuedRegressor(ViewRegressor, BatchEstimator):
    """Vector-valued least squares in its general form (Minh, Bazzani and Murino 2016, sections 3 to 5 and 8.2).

    Solves, over functions f = (f_1 .. f_m) of m views with values in R^Q each,

        min 1/l Σ_{i<=l} ‖y_i - Σ_v C_v f_v(x_i)‖² + γ_A ‖f‖² + γ_I <f, (M ⊗ I) f>

    in the space of the kernel G ⊗ R: G(x, z) is an m × m matrix between views, R one between outputs, and M is over
    the values of all views at all N samples. Samples without targets (NaN) take part through M; single targets may be
    NaN too. Where a view is absent it has no part in the row's terms, and each target's row of [C_1 .. C_m] is rescaled
    over the views present so that the sum of its absolute values stays.

    The other estimators of the paper are special cases: with C_v = c_v I, G = diag(k_v) and M the agreement between
    views plus the Laplacian of each view's graph it is `CoRegularizedRidge`; with one view vector-valued regularized
    least squares (Micchelli and Pontil 2005), and with a Laplacian for M vector-valued manifold regularization (Minh
    and Sindhwani 2011); with one output scalar multi-view learning (Rosenberg, Sindhwani, Bartlett and Niyogi 2009).
    Where G is diagonal, and M such a sum, it costs as much as `CoRegularizedRidge`. For any other G or M a system over
    all views and samples is solved, in O((mN)³).

    Parameters
    ----------
    {kernel}
    alpha : float, default=1e-3
        Penalty on the norm of the functions, γ_A > 0.
    {combination}
    {view_kernel}
    {output_kernel_views}
    {operator}
    {operator_penalty}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    {combination_}
    {view_weights_combination}
    {dual_coef_between}
    {support_}
    {kernels_}
    {solution_}

    See Also
    --------
    CoRegularizedRidge : Its most used special case, with learned weights, landmarks and cross-validation.
    VectorValuedClassifier : The same for classes, with two losses.

    Examples
    --------
    Two views, each for a part of the targets, with one target in four missing:

    >>> import numpy as np
    >>> from consilience import VectorValuedRegressor, Views
    >>> rng = np.random.default_rng(0)
    >>> X = Views(a=rng.normal(size=(80, 2)), b=rng.normal(size=(80, 2)))
    >>> Y = np.column_stack([X["a"][:, 0], np.sin(X["b"][:, 1])])
    >>> seen = np.where(rng.random(Y.shape) < 0.75, Y, np.nan)
    >>> model = VectorValuedRegressor(combination={"a": np.diag([1, 0]), "b": np.diag([0, 1])}, alpha=1e-4)
    >>> model.fit(X[:60], seen[:60]).score(X[60:], Y[60:]) > 0.8
    True
    """

    _cpu_only = True
    _parameter_constraints = constraints("alpha", "verbose", **_OPERATOR)

    kernel: Any = "rbf"
    _: KW_ONLY
    alpha: float = 1e-3
    combination: Any = "average"
    view_kernel: Any = "diagonal"
    output_kernel: Any = None
    operator: Any = None
    operator_penalty: float = 1.0
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, functionals: Any = None) -> Self:
        """Fit the functions of the views.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Training samples, with or without targets.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, NaN where they are not known. With `functionals`, a row for each of them.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows of y in the loss.
        functionals : matrix of shape (n_observations, n_samples), optional
            T, dense or sparse: row i of y is Σ_j T_ij C f(x_j), an average over a group of samples, a difference, an
            integral (Appendix B of the paper). By default, y has the samples' own targets.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            seen = _read_observations(self, X, y, sample_weight, functionals)
            plan_memory(self, seen.data)
            scale = float(seen.u.sum())
            with few_threads(len(seen.data.order)):
                design, problem = _make_problem(self, seen.data, scale, ~np.isnan(seen.Y), seen.functionals)
                solution = problem.solve_squares(seen.Y, seen.u, scale)
            return _store(self, seen.data, design, solution)

    def _is_consistent(self) -> bool:
        """Tell whether the arrays of a fit, as a file may give them, have shapes that go together."""
        C, kind, m = self.combination_, self._view_kernel, len(self._used_views)
        vectors = getattr(self, "class_vectors_", np.zeros((len(getattr(self, "classes_", ())), *C.shape[1:2])))
        known = kind in ("diagonal", "covariance") if isinstance(kind, str) else callable(kind) or kind.shape == (m, m)
        functions = self.coef_.values() if hasattr(self, "coef_") else [self.dual_coef_[0]]
        return bool(
            known
            and C.ndim == 3
            and len(C) == m
            and np.isfinite(C).all()
            and all(f.shape[1] == C.shape[2] for f in functions)
            and vectors.shape == (len(getattr(self, "classes_", ())), C.shape[1])
        )

    def _block_outputs(self, X: Views) -> np.ndarray:
        if isinstance(self._view_kernel, str):
            return BatchEstimator._block_outputs(self, X)
        G = between_views(self._view_kernel, self.kernels_, X, self.X_fit_)  # (m, n, m, n')
        return np.asarray(np.einsum("vnwj,wjq->nvq", G, self.dual_coef_, optimize=True))

    def _combined(self, X: Any) -> np.ndarray:
        """Return the targets (n, P), each scaled up to what it has of all views."""
        X = read_views_to_predict(self, X)
        present = presence(X)
        nu = target_scale(self.combination_, present)
        if not nu.all():
            i, p = (int(k) for k in np.argwhere(nu == 0)[0])
            raise ValueError(
                f"Sample {i} has no view that adds to target {p} by `combination`, so that it cannot be predicted. "
                "Give it one of the views that do."
            )
        f = np.where(present[:, :, None], self._view_outputs(X), 0.0)
        return np.asarray(nu * np.einsum("vpq,nvq->np", self.combination_, f, optimize=True))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R² of the predictions, averaged over the targets; missing targets (NaN) are left out.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            R², averaged over the targets that are known in some sample.
        """
        X, y, sample_weight = read_to_score(self, X, y, sample_weight)
        Y, _ = read_targets(y, len(X), partial=True)
        outputs = self.predict(X).reshape(len(X), -1)
        s = read_weights(sample_weight, len(X))
        scores = []
        for target, output in zip(Y.T, outputs.T, strict=True):
            known = ~np.isnan(target)
            if known.any():
                scores.append(r2_score(target[known], output[known], sample_weight=s[known]))
        return float(np.mean(scores))


# -- classification
@shared_docs
@dataclass(eq=False, repr=False)
class VectorValuedClassifier(ViewClassifier, BatchEstimator):
    """Vector-valued SVM and least squares for classes in their general form (Minh, Bazzani and Murino 2016).

    Solves, over functions f = (f_1 .. f_m) of m views with values in R^Q each,

        min 1/l Σ_{i<=l} V(y_i, Σ_v C_v f_v(x_i)) + γ_A ‖f‖² + γ_I <f, (M ⊗ I) f>

    in the space of the kernel G ⊗ R; see `VectorValuedRegressor` for C, G, R and M. With vectors s_k of the classes the
    loss "hinge" is V(y, g) = Σ_{k≠y} max(0, -<s_k, s_y> + <s_k, g>), and "squared" is ‖s_y - g‖²; the class with the
    largest <s_k, g> is decided for. With ``class_vectors="ovr"`` each class has a target of its own, ±1, and "hinge" is
    Σ_k max(0, 1 ∓ g_k).

    With C_v = c_v I, G = diag(k_v) and M the agreement between views plus the Laplacian of each view's graph, "hinge"
    is `CoRegularizedSVC` and "squared" with "ovr" `CoRegularizedRidgeClassifier`; with one view, "hinge" and "simplex"
    it is the simplex cone SVM (Mroueh, Poggio, Rosasco and Slotine 2012), for two classes with a Laplacian for M the
    Laplacian SVM (Belkin, Niyogi and Sindhwani 2006). Where R or the C_v make the classes interact, the program has a
    matrix over all pairs of a labeled sample and a class.

    Parameters
    ----------
    {kernel}
    alpha : float, default=1e-3
        Penalty on the norm of the functions, γ_A > 0.
    loss : {"hinge", "squared"}, default="hinge"
        The loss V.
    class_vectors : {"simplex", "ovr"} or array of shape (n_classes, n_targets), default="simplex"
        Vectors s_k of the classes, in sorted order if given; "ovr" fits each class against the rest.
    {combination}
    {view_kernel}
    {output_kernel_views}
    {operator}
    {operator_penalty}
    tol : float, default=1e-4
        Duality gap to reach with "hinge", relative to the objective.
    max_iter : int, default=100
        Maximum number of rounds of the solver, with "hinge".
    {class_weight}
    {unlabeled}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    {classes_}
    {combination_}
    class_vectors_ : array of shape (n_classes, n_targets)
        Vectors s_k; not set for one class against the rest.
    {view_weights_combination}
    {dual_coef_between}
    {support_}
    {kernels_}
    {solution_}

    See Also
    --------
    CoRegularizedSVC : Its most used special case, with learned weights and landmarks.
    VectorValuedRegressor : The same for numbers.

    Examples
    --------
    >>> from consilience import VectorValuedClassifier
    >>> from consilience.datasets import load_digits_views
    >>> X, y = load_digits_views(return_X_y=True)
    >>> model = VectorValuedClassifier(loss="squared", alpha=1e-4, view_kernel="covariance").fit(X[:200], y[:200])
    >>> round(model.score(X[200:400], y[200:400]), 1)
    0.9
    """

    _cpu_only = True
    _parameter_constraints = constraints(
        "alpha", "tol", "max_iter", "verbose", **_OPERATOR,
        loss=[StrOptions({"hinge", "squared"})], class_vectors=[StrOptions({"ovr", "simplex"}), "array-like"],
    )  # fmt: skip

    kernel: Any = "rbf"
    _: KW_ONLY
    alpha: float = 1e-3
    loss: str = "hinge"
    class_vectors: Any = "simplex"
    combination: Any = "average"
    view_kernel: Any = "diagonal"
    output_kernel: Any = None
    operator: Any = None
    operator_penalty: float = 1.0
    tol: float = 1e-4
    max_iter: int = 100
    class_weight: Any = None
    unlabeled: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the functions of the views.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Training samples, with or without labels.
        y : array-like of shape (n_samples,)
            Classes, missing for unlabeled samples.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in the loss.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            whole = self.operator is not None  # over all samples
            data = read_training(self, X, y, sample_weight, use_unlabeled=whole, every_sample=whole)
            plan_memory(self, data)
            vectors = read_vectors(self.class_vectors, len(self.classes_))
            scale = float(data.s[: data.l].sum())
            Y = data.Y if vectors is None else vectors[data.codes]
            with few_threads(len(data.order)):
                design, problem = _make_problem(self, data, scale, np.ones(Y.shape, dtype=bool))
                if self.loss == "squared":
                    solution = problem.solve_squares(Y, data.u, scale)
                else:
                    solution = problem.solve_hinges(hinge_loss(data, vectors), self.tol, self.max_iter)
                    solution = replace(solution, x=solution.x[0])
            if vectors is not None:
                self.class_vectors_ = vectors
            elif hasattr(self, "class_vectors_"):
                del self.class_vectors_
            return _store(self, data, design, solution)

    def _scores(self, outputs: np.ndarray) -> np.ndarray:
        """Return the scores of the classes, one for two classes."""
        if not hasattr(self, "class_vectors_"):
            return outputs
        vectors = self.class_vectors_
        return np.asarray(outputs @ (vectors if len(vectors) != 2 else vectors[1:] - vectors[:1]).T)

    _is_consistent = VectorValuedRegressor._is_consistent
    _block_outputs = VectorValuedRegressor._block_outputs

    def _combined(self, X: Any) -> np.ndarray:
        return self._scores(VectorValuedRegressor._combined(self, X))

    def view_decision_function(self, X: Any) -> np.ndarray:
        """Return the decision function of each view by itself.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.

        Returns
        -------
        array of shape (n_samples, n_views) or (n_samples, n_views, n_classes)
            What `decision_function` would be if a sample had this view alone; NaN where a view is missing, or where no
            combination of its outputs reaches the classes.
        """
        X = read_views_to_predict(self, X)
        f, C = self._view_outputs(X), self.combination_
        alone = target_scale(C, np.eye(len(C), dtype=bool))  # (m, P)
        outputs = np.where(alone > 0, alone * np.einsum("vpq,nvq->nvp", C, f), np.nan)
        scores = self._scores(np.where(presence(X)[:, :, None], outputs, np.nan))
        return scores[:, :, 0] if scores.shape[2] == 1 else scores

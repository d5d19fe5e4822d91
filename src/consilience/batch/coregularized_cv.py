"""Penalties of co-regularized least squares, chosen by exact held-out scores."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from .._backend import few_threads
from .._progress import report_progress
from ..solvers.certificates import Solution
from ..solvers.coregularized import HeldOut, Penalties, RidgeProblem, couple, penalty_ratios, right_share
from ..solvers.coupled_features import FeatureSums
from ..solvers.design import Design
from ..solvers.held_out_features import held_rows
from ..views._docs import shared_docs
from ..views.estimator import ViewClassifier, ViewRegressor
from ._estimator import BatchEstimator, constraints
from ._fit import (
    TrainingData,
    designs,
    distinct_samples,
    feature_design,
    given_weights,
    gram_design,
    is_precise,
    raise_if_indefinite,
    read_training,
    store_fit,
)
from ._graphs import add_graphs
from ._memory import landmarks_of, plan_memory
from .coregularized import output_groups

__all__ = ["CoRegularizedRidgeCV", "CoRegularizedRidgeClassifierCV"]

_PARAMETERS = ("graph_penalty", "view_weights", "n_components", "random_state", "verbose")

Groups = Sequence[tuple[float, np.ndarray | None]]  # eigenvalues of the output kernel, with their eigenvectors


def _penalty_grid(estimator: Any) -> list[Penalties]:
    """Return every pair of penalties to try."""
    alphas, agreements = np.ravel(estimator.alphas).tolist(), np.ravel(estimator.agreement_penalties).tolist()
    grid = [Penalties(alpha, agreement, estimator.graph_penalty) for alpha in alphas for agreement in agreements]
    if not grid:
        raise ValueError("`alphas` and `agreement_penalties` must not be empty.")
    for name, values, least in (("alphas", alphas, "above 0"), ("agreement_penalties", agreements, "of at least 0")):
        for value in values:
            if not (isinstance(value, (int, float)) and np.isfinite(value) and value >= 0 and (value or "at" in least)):
                raise ValueError(f"`{name}` must be numbers {least}; got {value!r}.")
    return grid


def _folds(estimator: Any, data: TrainingData) -> list[np.ndarray] | None:
    """Return the labeled rows whose targets are hidden together; None for leave-one-out.

    Rows that are read by blocks are passed over once, for the targets by which a splitter may divide them.
    """
    if estimator.cv is None:
        return None
    parts = [Y[u > 0] for _, _, u, Y in data.rows()] if data.by_blocks else [data.Y]
    strata = np.concatenate([Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1) for Y in parts])
    l = len(strata)
    splitter = check_cv(estimator.cv, strata, classifier=is_classifier(estimator))
    folds = []
    for train, test in splitter.split(np.zeros((l, 1)), strata):
        if len(np.union1d(train, test)) != l or len(np.intersect1d(train, test)):
            raise ValueError(
                f"{type(estimator).__name__}: a fold of `cv` must train on all labeled samples that it does not test; "
                f"one trains on {len(train)} and tests on {len(test)} of {l}. Use GridSearchCV for others."
            )
        folds.append(np.asarray(test))
    return folds


def held_outputs(
    design: Design,
    data: TrainingData,
    grid: Sequence[Penalties],
    groups: Groups,
    c: np.ndarray,
    folds: list[np.ndarray] | None,
) -> Iterator[np.ndarray]:
    """Yield the outputs at held-out rows, fold after fold, for every pair of penalties of the grid.

    The labeled kernel depends on the ratios of the penalties alone, up to a factor, so that penalties with equal
    ratios share one eigendecomposition; it is dropped after its last use.
    """
    spectra: dict[tuple[float, float], HeldOut] = {}
    groups = [group for group in groups if group[0]]
    to_come = Counter(penalty_ratios(penalties, value)[1] for penalties in grid for value, _ in groups)
    size = len(data.Y) if folds is None else sum(map(len, folds))
    for number, penalties in enumerate(grid, start=1):
        report_progress(number, None, of=len(grid), unit="pair of penalties")
        outputs = np.zeros((size, data.Y.shape[1]))
        for value, vectors in groups:
            ratios, key = penalty_ratios(penalties, value)
            if key not in spectra:
                spectra[key] = HeldOut(couple(design, Penalties(1.0, *ratios)).labeled_kernel(c), data.Y, data.u)
            held = spectra[key]
            to_come[key] -= 1
            if not to_come[key]:
                del spectra[key]
            own = held.outputs(penalties.alpha / value, folds)
            outputs += own if vectors is None else own @ vectors @ vectors.T
        yield outputs


def _gram_scores(
    estimator: Any, data: TrainingData, grid: Sequence[Penalties], groups: Groups, c: np.ndarray
) -> list[float]:
    """Return the held-out score of every pair of penalties, over Gram matrices."""
    folds = _folds(estimator, data)
    order = np.arange(data.l) if folds is None else np.concatenate(folds)
    Y, u = data.Y[order], data.u[order]
    design = gram_design(data)
    if estimator.graph_penalty:
        add_graphs(estimator, data, design, grid[0])
    return [_score(estimator, outputs, Y, u) for outputs in held_outputs(design, data, grid, groups, c, folds)]


def _feature_scores(
    estimator: Any, data: TrainingData, sums: FeatureSums, grid: Sequence[Penalties], groups: Groups, c: np.ndarray
) -> list[float]:
    """Return the same over features, block by block."""
    totals, weights = np.zeros(len(grid)), np.zeros(len(grid))
    for k, Y, u, outputs in held_rows(sums, c, grid, groups, _folds(estimator, data)):
        report_progress(k + 1, None, of=len(grid), unit="pair of penalties")
        totals[k] += u.sum() * _score(estimator, outputs, Y, u)
        weights[k] += u.sum()
    return (totals / weights).tolist()


def _score(estimator: Any, outputs: np.ndarray, Y: np.ndarray, u: np.ndarray) -> float:
    """Return the share of correct classes, or minus the mean squared error."""
    if is_classifier(estimator):
        return right_share(outputs, Y, u, estimator._indicator)
    return -float(np.average(((outputs - Y) ** 2).mean(axis=1), weights=u))


def choose_penalties(
    estimator: Any,
    data: TrainingData,
    grid: Sequence[Penalties],
    groups: Groups,
    c: np.ndarray,
    sums: FeatureSums | None,
) -> Penalties:
    """Score every pair of penalties by held-out targets, store the scores, and return the best pair.

    `sums` are those over rows of features; None for Gram matrices.
    """
    try:
        if sums is None:
            scores = _gram_scores(estimator, data, grid, groups, c)
        else:
            scores = _feature_scores(estimator, data, sums, grid, groups, c)
    except np.linalg.LinAlgError as error:
        raise_if_indefinite(estimator, Solution(getattr(error, "view", None), None, 0, "indefinite"))
    best = max(range(len(grid)), key=lambda k: (scores[k], grid[k].alpha, grid[k].agreement))
    estimator.alpha_, estimator.agreement_penalty_ = grid[best].alpha, grid[best].agreement
    estimator.best_score_ = scores[best]
    estimator.cv_results_ = {
        "alpha": np.array([penalties.alpha for penalties in grid]),
        "agreement_penalty": np.array([penalties.agreement for penalties in grid]),
        "score": np.array(scores),
    }
    return grid[best]


def _feature_sums(estimator: Any, data: TrainingData, penalties: Penalties, c: np.ndarray) -> FeatureSums | None:
    """Return the sums over rows of features, with graphs where they are asked for; None for exact kernels."""
    if landmarks_of(estimator) is None:
        return None
    design = feature_design(estimator, data)
    if estimator.graph_penalty:
        add_graphs(estimator, data, design, penalties)
    return FeatureSums(design, c)


@shared_docs
@dataclass(eq=False, repr=False)
class CoRegularizedRidgeCV(ViewRegressor, BatchEstimator):
    """`CoRegularizedRidge` with γ_A and γ_B chosen by exact held-out scores (the mean squared error).

    The targets of a fold are hidden only: its samples stay among the unlabeled ones, and lγ_A, lγ_B and lγ_W keep the l
    of all labeled samples. With γ_B = γ_W = 0 that is ordinary cross-validation of kernel ridge. The labeled
    kernel depends on γ_B/γ_A and γ_W/γ_A alone, up to a factor, and one eigendecomposition of it serves every fold and
    every γ_A with these ratios: a grid of p γ_A and q γ_B in equal steps takes p + q - 1 factorizations instead of
    p·q·folds fits. Exact: the same scores as refits.

    Over features (`n_components`) all comes from sums over rows and two passes over the samples. Leave-one-out takes an
    eigendecomposition for each pair of ratios, folds a factorization for each fold and pair of penalties. Landmarks
    are the same for all scores. Folds of samples that are read by blocks keep two numbers for each labeled sample.

    Parameters
    ----------
    {kernel}
    alphas : array-like, default=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1)
        Values of `alpha` to try, the penalty on the norms of the functions.
    agreement_penalties : array-like, default=(0.0,)
        Values of `agreement_penalty` to try, the penalty on differences between views.
    graph_penalty : float, default=0.0
        Penalty on changes along each view's graph. Above 0 every pair of penalties takes a factorization of its own.
    {graph}
    view_weights : "uniform", dict or array of shape (n_views,), default="uniform"
        Weights of the views.
    cv : int, splitter or iterable, optional
        Folds of the labeled samples. Default: leave-one-out.
    {output_kernel}
    {n_components}
    {random_state}
    {verbose}
    {views}
    {missing_columns}

    Attributes
    ----------
    alpha_, agreement_penalty_ : float
        Chosen penalties.
    best_score_ : float
        Their score.
    cv_results_ : dict of array
        ``alpha``, ``agreement_penalty`` and ``score`` of every pair.
    {view_weights_}
    {dual_coef_}
    {support_}
    {coef_}
    {kernels_}
    {solution_}

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import CoRegularizedRidgeCV, Views
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(60, 1))
    >>> X = Views(a=hidden + 0.3 * rng.normal(size=(60, 3)), b=hidden + 0.3 * rng.normal(size=(60, 2)))
    >>> model = CoRegularizedRidgeCV(agreement_penalties=[0, 1e-4, 1e-3, 1e-2]).fit(X, np.sin(hidden[:, 0]))
    >>> model.alpha_, model.agreement_penalty_
    (0.001, 0.001)
    """

    _parameter_constraints = constraints(*_PARAMETERS)

    kernel: Any = "rbf"
    _: KW_ONLY
    alphas: Any = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
    agreement_penalties: Any = (0.0,)
    graph_penalty: float = 0.0
    graph: Any = "kernel"
    view_weights: Any = "uniform"
    cv: Any = None
    output_kernel: Any = None
    n_components: float | None = None
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the penalties, then fit with them.

        Parameters
        ----------
        X : Views, what `as_views` reads, or RowBlocks
            Training samples, with or without labels. Blocks of rows have their targets and weights with them, and need
            `n_components`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets, NaN for unlabeled samples. For classification: classes, missing for unlabeled samples, or an
            indicator of labels with rows of NaN for unlabeled samples.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in the loss, in the agreement between views and in graphs made of kernels.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error():
            self._validate_params()
            grid = _penalty_grid(self)
            # the views that take part are those of the scores, whichever penalties are chosen
            use_unlabeled = any(penalties.use_unlabeled for penalties in grid)
            data = read_training(self, X, y, sample_weight, use_unlabeled=use_unlabeled)
            data = distinct_samples(data, "Pass `cv` to choose the folds.") if self.cv is None else data
            plan_memory(self, data)
            groups = output_groups(self.output_kernel, data.n_outputs)
            c = given_weights(self)
            if c is None:
                raise ValueError(
                    f"{type(self).__name__} takes given weights. To learn them, use view_weights='learned' in the "
                    "estimator without CV, with the penalties chosen here."
                )
            with few_threads(data.n_used):
                sums = _feature_sums(self, data, grid[0], c)
                penalties = choose_penalties(self, data, grid, groups, c, sums)
                for design in designs(self, data) if sums is None else [sums.design]:
                    if penalties.graph and sums is None:
                        add_graphs(self, data, design, penalties)
                    solution = RidgeProblem(design, data.Y, data.u, penalties, groups, sums).solve(c)
                    if is_precise(design, solution):
                        break
            return store_fit(self, data, design, solution)


@shared_docs
@dataclass(eq=False, repr=False)
class CoRegularizedRidgeClassifierCV(ViewClassifier, BatchEstimator):
    """`CoRegularizedRidgeClassifier` with γ_A and γ_B chosen by exact held-out scores (accuracy).

    The targets of a fold are hidden only: its samples stay among the unlabeled ones, and lγ_A, lγ_B and lγ_W keep the l
    of all labeled samples. With γ_B = γ_W = 0 that is ordinary cross-validation of kernel ridge. The labeled
    kernel depends on γ_B/γ_A and γ_W/γ_A alone, up to a factor, and one eigendecomposition of it serves every fold and
    every γ_A with these ratios: a grid of p γ_A and q γ_B in equal steps takes p + q - 1 factorizations instead of
    p·q·folds fits. Exact: the same scores as refits.

    Over features (`n_components`) all comes from sums over rows and two passes over the samples. Leave-one-out takes an
    eigendecomposition for each pair of ratios, folds a factorization for each fold and pair of penalties. Landmarks
    are the same for all scores. Folds of samples that are read by blocks keep two numbers for each labeled sample.

    Parameters
    ----------
    {Parameters of CoRegularizedRidgeCV}
    {class_weight}
    {unlabeled}

    Attributes
    ----------
    {Attributes of CoRegularizedRidgeCV}
    {classes_}

    Examples
    --------
    >>> from consilience import CoRegularizedRidgeClassifierCV
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = CoRegularizedRidgeClassifierCV(agreement_penalties=[0, 1e-4]).fit(X, y)
    >>> round(model.best_score_, 2)
    0.95
    """

    _parameter_constraints = constraints(*_PARAMETERS)
    _multi_label = True

    kernel: Any = "rbf"
    _: KW_ONLY
    alphas: Any = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
    agreement_penalties: Any = (0.0,)
    graph_penalty: float = 0.0
    graph: Any = "kernel"
    view_weights: Any = "uniform"
    cv: Any = None
    output_kernel: Any = None
    n_components: float | None = None
    random_state: Any = None
    verbose: bool = False
    views: Any = None
    missing_columns: str = "raise"
    class_weight: Any = None
    unlabeled: Any = None

    fit = CoRegularizedRidgeCV.fit

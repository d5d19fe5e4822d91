"""Penalties of co-regularized least squares, chosen by exact held-out scores."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from .._backend import few_threads
from .._progress import tell
from ..solvers.ridge import HeldOut
from ..views.container import Views
from ..views.estimator import ViewRegressor
from ._coregularized import GramForm, Penalties, not_positive
from ._frame import Rows, right_share
from ._ridge_problems import output_groups
from .coregularized import RidgeClassifierFrame, RidgeFrame

__all__ = ["CoRegularizedRidgeCV", "CoRegularizedRidgeClassifierCV"]


class _RidgeCV(RidgeFrame):
    """Chooses γ_A and γ_B by held-out scores before the fit."""

    alphas: Any
    agreement_penalties: Any
    cv: Any

    def _penalties(self) -> Penalties:
        return Penalties(self.alpha_, self.agreement_penalty_, self.graph_penalty)

    def _exact_kernels(self) -> bool:
        return True

    def _with_unlabeled(self, penalties: Penalties) -> bool:
        return self._grid_uses_unlabeled  # the views that take part are those of the scores

    def _check_parameters(self) -> None:
        self._grid()

    def _grid(self) -> list[Penalties]:
        alphas, agreement_penalties = np.ravel(self.alphas).tolist(), np.ravel(self.agreement_penalties).tolist()
        grid = [
            Penalties(alpha, agreement_penalty, self.graph_penalty)
            for alpha in alphas
            for agreement_penalty in agreement_penalties
        ]
        if not grid:
            raise ValueError("`alphas` and `agreement_penalties` must not be empty.")
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
        best = max(range(len(grid)), key=lambda k: (scores[k], grid[k].alpha, grid[k].agreement_penalty))
        self.alpha_, self.agreement_penalty_, self.best_score_ = (
            grid[best].alpha,
            grid[best].agreement_penalty,
            scores[best],
        )
        self.cv_results_ = {
            "alpha": np.array([penalties.alpha for penalties in grid]),
            "agreement_penalty": np.array([penalties.agreement_penalty for penalties in grid]),
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
        groups = [group for group in output_groups(self.output_kernel, Y.shape[1]) if group[0]]
        to_come = Counter(_ratios(penalties, value)[1] for penalties in grid for value, _ in groups)
        for number, penalties in enumerate(grid, start=1):
            tell(number, None, of=len(grid), unit="pair of penalties")
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
    ratios = penalties.agreement_penalty / alpha, penalties.graph_penalty / alpha
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
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    alphas : array-like, default=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1)
        The values of γ_A to try.
    agreement_penalties : array-like, default=(0.0,)
        The values of γ_B to try.
    graph_penalty : float, default=0.0
        γ_W; above 0 every pair of γ_A and γ_B takes a factorization of its own.
    graph : {"kernel", "kernel_normalized", "knn"}, callable, array or dict, default="kernel"
        The graphs of the views; see `CoRegularizedRidge`.
    view_weights : "uniform", dict or array of shape (n_views,), default="uniform"
        c.
    cv : int, splitter or iterable, optional
        Folds of the labeled samples; leave-one-out by default.
    output_kernel : array of shape (n_outputs, n_outputs), optional
        R between the outputs; see `CoRegularizedRidge`.
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    alpha_, agreement_penalty_ : float
        The penalties chosen.
    best_score_ : float
        Their score.
    cv_results_ : dict of array
        ``alpha``, ``agreement_penalty`` and ``score`` of every pair.
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
    >>> model = CoRegularizedRidgeCV(agreement_penalties=[0, 1e-4, 1e-3, 1e-2]).fit(X, np.sin(hidden[:, 0]))
    >>> model.alpha_, model.agreement_penalty_
    (0.001, 0.001)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        alphas: Any = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0),
        agreement_penalties: Any = (0.0,),
        graph_penalty: float = 0.0,
        graph: Any = "kernel",
        view_weights: Any = "uniform",
        cv: Any = None,
        output_kernel: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.alphas = alphas
        self.agreement_penalties = agreement_penalties
        self.graph_penalty = graph_penalty
        self.graph = graph
        self.view_weights = view_weights
        self.cv = cv
        self.output_kernel = output_kernel
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


class CoRegularizedRidgeClassifierCV(_RidgeCV, RidgeClassifierFrame):
    """`CoRegularizedRidgeClassifier` with γ_A and γ_B chosen by exact held-out scores (accuracy).

    The targets of a fold are hidden only: its samples stay among the unlabeled ones, and lγ_A, lγ_B and lγ_W keep the l
    of all labeled samples. With γ_B = γ_W = 0 that is ordinary cross-validation of kernel ridge. The labeled
    kernel depends on γ_B/γ_A and γ_W/γ_A alone, up to a factor, and one eigendecomposition of it serves every fold and
    every γ_A with these ratios: a grid of p γ_A and q γ_B in equal steps takes p + q - 1 factorizations instead of
    p·q·folds fits. Exact: the same scores as fitting anew each time.

    Parameters
    ----------
    kernel : Kernel, str, callable or dict, default="rbf"
        Kernel of every view, or a dict of kernels by view; views that the dict does not name get the default.
    alphas : array-like, default=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1)
        The values of γ_A to try.
    agreement_penalties : array-like, default=(0.0,)
        The values of γ_B to try.
    graph_penalty : float, default=0.0
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
    verbose : bool, default=False
        Whether to show iterations and gaps while it fits, in a terminal or a notebook.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    classes_ : array
        The classes.
    alpha_, agreement_penalty_ : float
        The penalties chosen.
    best_score_ : float
        Their score.
    cv_results_ : dict of array
        ``alpha``, ``agreement_penalty`` and ``score`` of every pair.
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
    >>> model = CoRegularizedRidgeClassifierCV(agreement_penalties=[0, 1e-4]).fit(X, y)
    >>> round(model.best_score_, 2)
    0.95
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        alphas: Any = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0),
        agreement_penalties: Any = (0.0,),
        graph_penalty: float = 0.0,
        graph: Any = "kernel",
        view_weights: Any = "uniform",
        cv: Any = None,
        output_kernel: Any = None,
        class_weight: Any = None,
        unlabeled: Any = None,
        verbose: bool = False,
        views: Any = None,
    ):
        self.kernel = kernel
        self.alphas = alphas
        self.agreement_penalties = agreement_penalties
        self.graph_penalty = graph_penalty
        self.graph = graph
        self.view_weights = view_weights
        self.cv = cv
        self.output_kernel = output_kernel
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.verbose = verbose
        self.views = views

    def _score(self, outputs: np.ndarray, Y: np.ndarray, u: np.ndarray) -> float:
        return right_share(outputs, Y, u, self._indicator)

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

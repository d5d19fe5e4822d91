"""Estimators that the experiments on multi-omics compare, and how each is tuned.

Every search takes three inner folds of the training rows and at most 12 settings. Scaling is a part of the estimator,
so that it is learned on the training rows of each fold alone.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ..batch.consensus import ConsensusClassifier
from ..batch.coregularized_cv import CoRegularizedRidgeClassifierCV
from ..batch.fusion import EarlyFusion, LateFusion
from ..batch.metric_cv import ViewMetricRidgeClassifierCV
from ..batch.multiple_kernel import MultipleKernelRidgeClassifier
from ..kernels import RBF
from ..views.container import Views
from ..views.per_view import PerView
from ._easymkl import EasyMKL, gaussian_grams

_WIDTHS = (0.1, 1 / 3, 1.0, 3.0)  # times 1 / columns, which is the inverse width that suits standardized columns
_FEW_WIDTHS = (1 / 3, 1.0)
_COSTS = (1.0, 10.0, 100.0)
_Grid = dict[str, Any]


def _best(found: dict[str, Any]) -> int:
    """Return the setting with the best accuracy, among equal ones that with the smallest log loss."""
    accuracy, loss = np.round(found["mean_test_accuracy"], 12), -found["mean_test_neg_log_loss"]
    return int(np.lexsort((loss, -accuracy))[0])


class Tuning:
    """What the searches of one draw share: the views, the inner folds, and whether the run is a quick one."""

    def __init__(self, X: Views, draw: int, small: bool) -> None:
        self.columns = {name: X[name].shape[1] for name in X.names}
        self.draw = draw
        self.small = small

    @property
    def folds(self) -> StratifiedKFold:
        """Return the inner folds."""
        return StratifiedKFold(2 if self.small else 3, shuffle=True, random_state=self.draw)

    def search(self, scaler: Any, model: Any, grid: _Grid) -> GridSearchCV:
        """Return a search over a scaler and a model; a quick run has the first setting alone."""
        grid = {f"model__{name}": values[:1] if self.small else values for name, values in grid.items()}
        steps = [("scale", scaler), ("model", model)]
        if not hasattr(model, "predict_proba"):
            return GridSearchCV(Pipeline(steps), grid, scoring="accuracy", cv=self.folds)
        return GridSearchCV(Pipeline(steps), grid, scoring=("accuracy", "neg_log_loss"), refit=_best, cv=self.folds)

    def on_views(self, model: Any, widths: tuple[float, ...], grid: _Grid) -> GridSearchCV:
        """Return a search over the widths of the kernels of all views, and a grid."""
        kernels = [{name: RBF(width / d) for name, d in self.columns.items()} for width in widths]
        return self.search(PerView(StandardScaler()), model, {"kernel": kernels, **grid})

    def on_columns(self, model: Any, grid: _Grid, fill: str = "mean") -> EarlyFusion:
        """Return a search on the columns of all views side by side."""
        return EarlyFusion(self.search(StandardScaler(), model, grid), fill=fill)

    def svm(self, n_columns: int) -> GridSearchCV:
        """Return the search of a support vector machine with a Gaussian kernel."""
        return self.search(StandardScaler(), SVC(), {"gamma": [width / n_columns for width in _WIDTHS], "C": _COSTS})


# -- methods that need more than a line
class BestView:
    """The one view whose estimator has the best score on the training rows."""

    def __init__(self, estimators: dict[str, Any], score: Callable[[Any], float]) -> None:
        self.estimators = estimators
        self.score = score

    def fit(self, X: Views, y: np.ndarray) -> Self:
        """Fit the estimator of each view and choose one."""
        self.fitted_ = {name: each.fit(X[[name]], y) for name, each in self.estimators.items()}
        self.view_ = max(self.fitted_, key=lambda name: self.score(self.fitted_[name]))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Views) -> np.ndarray:
        """Return the predictions of the chosen view."""
        return self.predict_by(self.view_, X)

    def predict_by(self, name: str, X: Views) -> np.ndarray:
        """Return the predictions of a view."""
        return np.asarray(self.fitted_[name].predict(X[[name]]))


class HimalayaRidge:
    """Multiple kernel ridge regression of himalaya on targets of ±1, with its random search of the kernel weights."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    def fit(self, X: Views, y: np.ndarray) -> Self:
        """Draw 12 mixtures of the kernels, and choose one and its penalty for each class."""
        self.scaler_ = PerView(StandardScaler()).fit(X)
        self.X_ = self.scaler_.transform(X)
        self.classes_ = np.unique(y)
        Y = np.where(y[:, None] == self.classes_, 1.0, -1.0)
        self.center_ = Y.mean(axis=0)  # the package has no intercept
        settings = {
            "n_iter": 2 if self.tuning.small else 12,
            "alphas": np.array([1e-3, 1e-2, 1e-1]),
            "progress_bar": False,
        }
        self.model_ = import_module("himalaya.kernel_ridge").MultipleKernelRidgeCV(
            "precomputed", solver="random_search", solver_params=settings, random_state=self.tuning.draw,
            cv=list(self.tuning.folds.split(y, y)),
        )  # fmt: skip
        self.model_.fit(self._grams(self.X_), Y - self.center_)
        return self

    def predict(self, X: Views) -> np.ndarray:
        """Return the class with the largest output."""
        outputs = np.asarray(self.model_.predict(self._grams(self.scaler_.transform(X)))) + self.center_
        return np.asarray(self.classes_[outputs.argmax(axis=1)])

    def _grams(self, X: Views) -> np.ndarray:
        return np.stack([gram for width in _FEW_WIDTHS for gram in gaussian_grams(X, self.X_, width)])


# -- the list
def _inner_score(model: Any) -> float:
    return float(model.estimator_.best_score_)


def _single_svm(t: Tuning) -> Any:
    return BestView({name: EarlyFusion(t.svm(d)) for name, d in t.columns.items()}, _inner_score)


def _single_consensus(t: Tuning) -> Any:
    return BestView({name: ConsensusClassifier() for name in t.columns}, lambda model: float(model.loo_score_))


def _coregularized(t: Tuning) -> Any:
    alphas, agreement = (1e-5, 1e-4, 1e-3), (0.0, 1e-2)
    model = CoRegularizedRidgeClassifierCV(alphas=alphas, agreement_penalties=agreement[: 1 if t.small else 2])
    return t.on_views(model, _FEW_WIDTHS, {})


def _view_metric(t: Tuning) -> Any:
    return t.on_views(ViewMetricRidgeClassifierCV(alphas=(1e-2, 1e-1, 1.0)), _WIDTHS, {})


def _multiple_kernel(t: Tuning) -> Any:
    return t.on_views(MultipleKernelRidgeClassifier(), _FEW_WIDTHS, {"alpha": (1e-2, 1e-1, 1.0), "p": (1.0, 2.0)})


def _easymkl(t: Tuning) -> Any:
    return t.search(PerView(StandardScaler()), EasyMKL(), {"width": _FEW_WIDTHS, "lam": (0.1, 0.5), "C": _COSTS})


def _logistic(t: Tuning) -> tuple[Any, _Grid]:
    grid = {"C": 10.0 ** np.arange(-4, 2), "class_weight": (None, "balanced")}
    return LogisticRegression(max_iter=20 if t.small else 300), grid


def _late(t: Tuning) -> Any:
    return LateFusion(t.search(StandardScaler(), *_logistic(t)))


def _forest(t: Tuning) -> Any:
    model = RandomForestClassifier(5 if t.small else 100, random_state=t.draw)
    return t.on_columns(model, {"min_samples_leaf": (1, 3), "class_weight": (None, "balanced")})


def _boosting(t: Tuning) -> Any:
    """Return boosted trees, which look at some 100 columns at each split; they read NaN where a view is missing."""
    share = min(1.0, 100 / sum(t.columns.values()))
    model = HistGradientBoostingClassifier(
        max_iter=2 if t.small else 60, max_features=share, min_samples_leaf=5, early_stopping=False, random_state=t.draw
    )
    return t.on_columns(model, {"learning_rate": (0.1, 0.2), "max_depth": (2, 4)}, fill="nan")


CONSENSUS, SINGLE_CONSENSUS, SINGLE_SVM, HIMALAYA = "Consensus", "Consensus, best view", "SVM, best view", "himalaya"
METHODS: dict[str, Callable[[Tuning], Any]] = {
    CONSENSUS: lambda t: ConsensusClassifier(),
    "CoRegularizedRidgeClassifierCV": _coregularized,
    "ViewMetricRidgeClassifierCV": _view_metric,
    "MultipleKernelRidgeClassifier": _multiple_kernel,
    "late fusion, logistic regression": _late,
    HIMALAYA: HimalayaRidge,
    "EasyMKL": _easymkl,
    "SVM, all columns": lambda t: EarlyFusion(t.svm(sum(t.columns.values()))),
    "logistic regression, all columns": lambda t: t.on_columns(*_logistic(t)),
    "random forest": _forest,
    "gradient boosting": _boosting,
    SINGLE_CONSENSUS: _single_consensus,
    SINGLE_SVM: _single_svm,
}
SETTINGS = dict.fromkeys(METHODS, 12) | {
    CONSENSUS: 0, SINGLE_CONSENSUS: 0, "random forest": 4, "gradient boosting": 4,
}  # fmt: skip
COMPLETE_ONLY = (HIMALAYA, "EasyMKL", SINGLE_CONSENSUS, SINGLE_SVM)  # they cannot do without a view
TREES = ("random forest", "gradient boosting")


def installed(method: str) -> bool:
    """Return whether the package of a method can be imported; all but one need none."""
    if method == HIMALAYA:
        try:
            import_module("himalaya.kernel_ridge")
        except ImportError:
            return False
    return True

"""Learners side by side on one set of samples: nested cross-validation, confidence intervals, times."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import type_of_target

from .batch.fusion import EarlyFusion, LateFusion
from .batch.kernels_learned import MultipleKernelRidge, MultipleKernelRidgeClassifier
from .batch.margin import MaxMarginClassifier
from .batch.metric_cv import ViewMetricRidgeClassifierCV, ViewMetricRidgeCV
from .batch.ridge import CoRegularizedRidge, CoRegularizedRidgeClassifier
from .batch.svc import CoRegularizedSVC
from .online.matrix import OrthogonalPerceptron
from .preprocessing import PerView
from .views import Views, as_views

__all__ = ["Comparison", "candidates", "compare"]


@dataclass(frozen=True)
class Comparison:
    """How one learner did.

    Parameters
    ----------
    name : str
        The learner.
    scores : tuple of float
        Held-out scores, one per outer fold.
    seconds : float
        The mean time of a fold, the search for parameters included.
    low, high : float
        The 95 % confidence interval of the mean score, corrected for folds that share samples (Nadeau and Bengio 2003).
    model : estimator
        Fitted on all samples by the same search.
    """

    name: str
    scores: tuple[float, ...]
    seconds: float
    low: float
    high: float
    model: Any = None

    @property
    def score(self) -> float:
        """The mean score."""
        return float(np.mean(self.scores))


def candidates(X: Views, y: Any) -> dict[str, tuple[Any, dict[str, list[Any]]]]:
    """Learners to compare and their grids, by name: for classes or for numbers, complete views alone among them.

    Parameters
    ----------
    X : Views
        The samples.
    y : array-like
        Classes or numbers.

    Returns
    -------
    dict
        Name -> (learner on scaled views, grid of its parameters).

    Examples
    --------
    >>> from consilience.comparison import candidates
    >>> from consilience.datasets import load_breast_cancer_views
    >>> sorted(candidates(*load_breast_cancer_views(return_X_y=True)))[:2]
    ['CoRegularizedRidgeClassifier', 'CoRegularizedSVC']
    """
    powers = [1e-4, 1e-3, 1e-2, 1e-1]
    numeric = all(X.kind(name) in ("dense", "sparse", "absent") for name in X.names)
    kernels = {name: "linear" for name in X.names if X.kind(name) == "sparse"} or None
    found: dict[str, tuple[Any, dict[str, list[Any]]]] = {}
    if _is_numbers(y):
        found["CoRegularizedRidge"] = CoRegularizedRidge(kernels=kernels), {"alpha": powers, "between": [0.0, 1e-3]}
        found["ViewMetricRidgeCV"] = ViewMetricRidgeCV(kernels=kernels), {}
        found["MultipleKernelRidge"] = MultipleKernelRidge(kernels=kernels), {"alpha": [1e-2, 1e-1, 1.0]}
        plain, grid = Ridge(), {"estimator__alpha": [0.1, 1.0, 10.0, 100.0]}
    else:
        ridge = CoRegularizedRidgeClassifier(kernels=kernels)
        found["CoRegularizedRidgeClassifier"] = ridge, {"alpha": powers, "between": [0.0, 1e-3]}
        found["CoRegularizedSVC"] = CoRegularizedSVC(kernels=kernels), {"alpha": powers}
        found["ViewMetricRidgeClassifierCV"] = ViewMetricRidgeClassifierCV(kernels=kernels), {}
        many = MultipleKernelRidgeClassifier(kernels=kernels)
        found["MultipleKernelRidgeClassifier"] = many, {"alpha": [1e-2, 1e-1, 1.0]}
        found["MaxMarginClassifier"] = MaxMarginClassifier(kernels=kernels), {"C": [0.1, 1.0, 10.0]}
        online = OrthogonalPerceptron("rbf", kernels=kernels, average=True, random_state=0)
        found["OrthogonalPerceptron"] = online, {"p": [1.0, 2.0, 4.0]}
        plain, grid = LogisticRegression(max_iter=5000), {"estimator__C": [0.01, 0.1, 1.0, 10.0]}
    if numeric:
        if X.mask is None:
            found["EarlyFusion"] = EarlyFusion(plain), grid
        found["LateFusion"] = LateFusion(plain), grid
        for name in X.names if len(X.names) > 1 else ():
            if X.present(name).all():  # else some samples would have no answer
                found[f"{name} alone"] = LateFusion(plain), grid
    dense = {name: StandardScaler() for name in X.names if X.kind(name) == "dense"}
    scaled = {}
    for name, (learner, own) in found.items():
        key = type(learner).__name__.lower()
        scaled[name] = (
            make_pipeline(PerView(dense), learner) if dense else make_pipeline(learner),
            {f"{key}__{parameter}": values for parameter, values in own.items()},
        )
    return scaled


def _is_numbers(y: Any) -> bool:
    return type_of_target(np.asarray(y)) in ("continuous", "continuous-multioutput")


def compare(
    X: Any,
    y: Any,
    *,
    learners: Iterable[str] | None = None,
    folds: int = 5,
    inner: int = 3,
    random_state: int = 0,
    refit: bool = False,
    told: Callable[[str, int, int], None] | None = None,
) -> list[Comparison]:
    """Compare learners by nested cross-validation: parameters are chosen within the training part of each fold.

    Parameters
    ----------
    X : Views or what `as_views` reads
        The samples.
    y : array-like of shape (n_samples,)
        Classes, or numbers for regression.
    learners : iterable of str, optional
        Which of `candidates`; all by default.
    folds, inner : int, default=5 and 3
        Outer folds, and inner ones for the search.
    random_state : int, default=0
        The seed of the folds.
    refit : bool, default=False
        Whether to fit each learner on all samples in the end.
    told : callable, optional
        Called with (learner, fold, folds) as each fold is done.

    Returns
    -------
    list of Comparison
        The best first.

    Examples
    --------
    >>> from consilience.comparison import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, learners=["LateFusion", "error alone"], folds=3)
    >>> board[0].name
    'LateFusion'
    """
    X, y = as_views(X), np.asarray(y)
    known = candidates(X, y)
    chosen = list(known) if learners is None else list(learners)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise ValueError(f"There is no learner '{unknown[0]}' to compare here; there are {', '.join(known)}.")
    kind = KFold if _is_numbers(y) else StratifiedKFold
    if not _is_numbers(y):
        fewest = int(np.unique(y, return_counts=True)[1].min())
        if fewest < folds:
            raise ValueError(
                f"A class has {fewest} samples, fewer than the {folds} folds. Take fewer folds, or drop it."
            )
    splits = list(kind(folds, shuffle=True, random_state=random_state).split(np.zeros(len(y)), y))
    found = []
    for name in chosen:
        search, views = _search(name, X, known, kind(inner, shuffle=True, random_state=random_state))
        scores, times = [], []
        for number, (train, test) in enumerate(splits, start=1):
            start = time.perf_counter()
            scores.append(_fitted(clone(search), views[train], y[train]).score(views[test], y[test]))
            times.append(time.perf_counter() - start)
            if told is not None:
                told(name, number, folds)
        low, high = _interval(np.array(scores), len(splits[0][1]) / len(splits[0][0]))
        high = min(high, 1.0)  # of accuracy and R²
        model = _fitted(clone(search), views, y) if refit else None
        found.append(Comparison(name, tuple(map(float, scores)), float(np.mean(times)), low, high, model))
    return sorted(found, key=lambda row: -row.score)


def _search(name: str, X: Views, known: Mapping[str, tuple[Any, dict[str, list[Any]]]], cv: Any) -> tuple[Any, Views]:
    learner, grid = known[name]
    view = name.removesuffix(" alone")
    if view != name:
        scaled = X.kind(view) == "dense"
        learner = make_pipeline(PerView(StandardScaler()), learner[-1]) if scaled else make_pipeline(learner[-1])
        X = X[[view]]
    return (GridSearchCV(learner, grid, cv=cv) if grid else learner), X


def _fitted(model: Any, X: Views, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def _interval(scores: np.ndarray, ratio: float) -> tuple[float, float]:
    """A t-interval whose variance counts that training parts overlap: (1/k + n_test/n_train) s²."""
    k, mean = len(scores), float(scores.mean())
    half = float(student.ppf(0.975, k - 1)) * float(np.sqrt((1 / k + ratio) * scores.var(ddof=1))) if k > 1 else np.inf
    return mean - half, mean + half

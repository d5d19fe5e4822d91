"""Fits of a comparison: the search inside a training part, and the result of one outer fold."""

import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from .._progress import progress
from ..views.container import Views
from ._baselines import HISTOGRAM
from ._measures import HeldOutPart, scored_value
from ._wrappers import final_estimator, layers_of
from .candidates import samples_for, views_of

_ONE_THREAD = 5000  # samples up to which boosted trees use one thread
# what an estimator may raise on data that it cannot learn from, or that a scorer cannot use
_FIT_ERRORS = (ValueError, TypeError, AttributeError, ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class FoldResult:
    """Scores, fit time, predictions and chosen parameters of one outer fold.

    `measures` has the scores by name. `undefined` has the reasons why other measures than the first have no score.
    `best_index` is the place of the chosen parameters in the grid, if a search over a grid chose them.
    """

    score: float
    fit_time: float
    predictions: np.ndarray
    best_params: dict[str, Any]
    measures: dict[str, float] = field(default_factory=dict)
    held_out: HeldOutPart | None = None
    undefined: dict[str, str] = field(default_factory=dict)
    best_index: int | None = None


# -- one fit
def make_search(pair: tuple[Any, Mapping[str, Any]], inner_cv: Any, scorer: Any) -> Any:
    """Return a search over the grid of an estimator, or the estimator itself if its grid is empty."""
    estimator, grid = pair
    if not grid:
        return estimator
    return GridSearchCV(estimator, dict(grid), cv=inner_cv, scoring=scorer, error_score="raise")


def fit_part(
    model: Any,
    X: Views,
    y: np.ndarray,
    groups: np.ndarray | None,
    rows: Any = slice(None),
    sample_weight: np.ndarray | None = None,
) -> Any:
    """Fit on some samples without warnings on unfinished iterations and rare classes: the score shows their effect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The least populated class")
        warnings.filterwarnings("ignore", message="The effects of batches")  # `compare` counts them
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")  # `compare` has a note on it
        warnings.filterwarnings("ignore", message=".* labeled samples repeat another one")  # so it has on these
        X, y = X[rows], y[rows]
        groups, weights = (None if part is None else part[rows] for part in (groups, sample_weight))
        groups = None if groups is None or len(np.unique(groups)) < 2 else groups
        if weights is not None and isinstance(model, GridSearchCV) and callable(model.scoring):
            return _fit_weighted_search(model, X, y, groups, weights)
        # threads of boosted trees wait for each other if processes share the cores
        boosted = isinstance(final_estimator(model), HISTOGRAM) and len(y) <= _ONE_THREAD
        with threadpool_limits(1, user_api="openmp") if boosted else nullcontext():
            return model.fit(X, y, **_fit_params(model, groups, weights))


def _fit_params(model: Any, groups: np.ndarray | None, weights: np.ndarray | None) -> dict[str, Any]:
    """Return groups and weights under the names by which they reach searches and the final estimator of a model."""
    params: dict[str, Any] = {}
    prefix = ""
    for layer in layers_of(model):
        if isinstance(layer, BaseSearchCV) and groups is not None:
            params[f"{prefix}groups"] = groups  # the inner folds keep groups together too
        prefix += f"{layer.steps[-1][0]}__" if isinstance(layer, Pipeline) else ""
    final = final_estimator(model)
    if groups is not None and has_fit_parameter(final, "groups"):
        params[f"{prefix}groups"] = groups  # its own leave-one-out leaves out groups
    if weights is not None:
        if not has_fit_parameter(final, "sample_weight"):
            raise TypeError(f"{type(final).__name__} does not take sample_weight.")
        params[f"{prefix}sample_weight"] = weights
    return params


def _fit_weighted_search(search: Any, X: Views, y: np.ndarray, groups: Any, weights: np.ndarray) -> Any:
    """Fit a search whose inner scores are weighted too; scikit-learn's gives weights to the fits only."""
    params = list(ParameterGrid(search.param_grid))
    totals = np.zeros(len(params))
    for train, test in search.cv.split(np.zeros((len(y), 1)), y, groups):
        for k, chosen in enumerate(params):
            model = clone(search.estimator).set_params(**chosen)
            model.fit(X[train], y[train], **_fit_params(model, None, weights[train]))
            totals[k] += scored_value(search.scoring, model, X[test], y[test], weights[test])
    search.best_index_ = int(np.argmax(totals))  # of equal scores the first, as scikit-learn's
    search.best_params_ = params[search.best_index_]
    best = clone(search.estimator).set_params(**search.best_params_)
    search.best_estimator_ = best.fit(X, y, **_fit_params(best, None, weights))
    return search


# -- one fold
def run_fold(
    search: Any,
    scorers: Any,
    X: Views,
    y: np.ndarray,
    groups: np.ndarray | None,
    train: np.ndarray,
    test: np.ndarray,
    sample_weight: np.ndarray | None = None,
    classes: np.ndarray | None = None,
) -> FoldResult | str:
    """Return the result of one fold, or the first line of the error message.

    `scorers` is a scorer, or a dict of scorers by name, the first of which must be defined. `classes` are the columns
    of probabilities, by default those of y.
    """
    scorers = scorers if isinstance(scorers, Mapping) else {"score": scorers}
    if not len(test):
        nothing = dict.fromkeys(scorers, np.nan)
        return FoldResult(np.nan, np.nan, y[:0], {}, nothing, HeldOutPart(test, y[:0]))
    start = time.perf_counter()
    try:
        # a clone, because all folds get the same search
        model = fit_part(clone(search), X, y, groups, train, sample_weight)
        fit_time = max(time.perf_counter() - start, 0.0)
        test_views, weights = X[test], None if sample_weight is None else sample_weight[test]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The effects of batches")
            measures, undefined = _measured(scorers, model, test_views, y[test], weights)
            predictions = np.asarray(model.predict(test_views))
            held_out = HeldOutPart(
                test, predictions, *_class_scores(model, test_views, classes if classes is not None else np.unique(y))
            )
        first = next(iter(measures.values()))
        index = int(model.best_index_) if isinstance(model, GridSearchCV) else None
        return FoldResult(
            first, fit_time, predictions, getattr(model, "best_params_", {}), measures, held_out, undefined, index
        )
    except _FIT_ERRORS as error:
        return _first_line(error)


def _measured(
    scorers: Mapping[str, Any], model: Any, X: Views, y: np.ndarray, weights: np.ndarray | None
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the scores by name, and the reasons why some are undefined; an error of the first scorer is raised."""
    measures: dict[str, float] = {}
    undefined = {}
    for name, scorer in scorers.items():
        try:
            measures[name] = scored_value(scorer, model, X, y, weights)
        except _FIT_ERRORS as error:
            if not measures:
                raise
            method = re.search(
                r"none of the following attributes: (\w+)", str(error)
            )  # scikit-learn names the pipeline
            reason = f"no `{method[1]}`" if method else _first_line(error)
            measures[name], undefined[name] = np.nan, reason
    return measures, undefined


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _class_scores(model: Any, X: Views, classes: np.ndarray) -> list[np.ndarray | None]:
    """Return probabilities and decision values, with a column for each class of the comparison."""
    if not is_classifier(model):
        return [None, None]
    found: list[np.ndarray | None] = []
    for method in ("predict_proba", "decision_function"):
        scores = np.asarray(getattr(model, method)(X)) if hasattr(model, method) else None
        if scores is not None and scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        if scores is None or scores.shape[1] != len(model.classes_):  # scores of pairs of classes
            found.append(None)
            continue
        # a class that the training part lacks is the least likely
        lowest = np.zeros(len(scores)) if method == "predict_proba" else scores.min(axis=1)
        placed = np.repeat(lowest[:, None], len(classes), axis=1)
        placed[:, np.searchsorted(classes, model.classes_)] = scores
        found.append(placed)
    return found


# -- all folds
@dataclass(frozen=True)
class FoldData:
    """Samples of all folds as one estimator receives them, and their positions among all samples."""

    X: Views
    y: np.ndarray
    groups: np.ndarray | None
    sample_weight: np.ndarray | None
    splits: Sequence[tuple[np.ndarray, np.ndarray]]
    rows: np.ndarray


def data_of(
    name: str, X: Views, y: np.ndarray, groups: Any, sample_weight: Any, splits: Sequence[Any], prepare: Any
) -> FoldData:
    """Return the samples of a comparison for the estimator of a name: those that have its single view."""
    rows = samples_for(name, X)
    if len(rows) < len(X):
        there = np.isin(np.arange(len(X)), rows)
        place = np.cumsum(there) - 1
        splits = [tuple(place[part[there[part]]] for part in split) for split in splits]
        X, y = X[rows], y[rows]
        groups, sample_weight = (None if part is None else part[rows] for part in (groups, sample_weight))
    return FoldData(views_of(name, X, prepare), y, groups, sample_weight, splits, rows)


class FoldPlan(NamedTuple):
    """Everything that the folds of a comparison need; one of them is a name of `searches` and the number of a split."""

    searches: Mapping[str, Any]
    scorers: Mapping[str, Any]
    data: Mapping[str, FoldData]
    classes: np.ndarray | None
    n_folds: int


def run_folds(
    folds: FoldPlan,
    n_jobs: int | None,
    verbose: bool,
    known: Mapping[tuple[str, int], FoldResult | str],
    keep: Callable[[tuple[str, int], FoldResult | str], object],
) -> dict[str, list[FoldResult | str]]:
    """Return the results of each estimator, fold by fold; an error message stands for a fold that failed.

    Results that are `known` are not computed again. Each new one is given to `keep` as soon as it is there.
    """
    searches, n_folds = folds.searches, folds.n_folds
    turns = _turns(searches, n_folds)
    results: dict[str, list[Any]] = {name: [None] * n_folds for name in searches}
    for (name, k), result in known.items():
        results[name][k] = result
    missing = [turn for turn in turns if turn not in known]
    # a generator gives results as they come, for the progress bar and for `keep`
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_run_turn)(
            (name, k), searches[name], folds.scorers, own.X, own.y, own.groups, *own.splits[k], own.sample_weight,
            folds.classes,
        )
        for name, k, own in ((name, k, folds.data[name]) for name, k in missing)
    )  # fmt: skip
    first = missing[0] if missing else turns[-1]
    with progress(verbose, f"{first[0]}, fold {first[1] + 1} of {n_folds}") as show:
        for done, (turn, result) in enumerate(work, start=1):
            keep(turn, result)
            results[turn[0]][turn[1]] = result
            following, fold = missing[min(done, len(missing) - 1)]
            show(f"{following}, fold {fold + 1} of {n_folds}", (len(turns) - len(missing) + done) / len(turns))
    return {
        name: [part if isinstance(part, str) else _among_all(part, folds.data[name].rows) for part in parts]
        for name, parts in results.items()
    }


def _run_turn(turn: tuple[str, int], *given: Any) -> tuple[tuple[str, int], FoldResult | str]:
    """Return the result of a fold together with what it is of, because results come in any order."""
    return turn, run_fold(*given)


def _among_all(result: FoldResult, rows: np.ndarray) -> FoldResult:
    """Return a result whose test samples are positions among all samples."""
    held_out: Any = result.held_out
    return replace(result, held_out=replace(held_out, test=rows[held_out.test]))


def _turns(searches: Mapping[str, Any], n_folds: int) -> list[tuple[str, int]]:
    """Return (estimator, fold) in the order of work: online estimators last, except one fold of the first three.

    Online estimators compile their loops at the first use on a machine, which takes seconds. Processes start with
    that, each with other loops, so that they do not all wait for the same compilation later.
    """
    estimators = {name: s.estimator if isinstance(s, BaseSearchCV) else s for name, s in searches.items()}
    online = [name for name, estimator in estimators.items() if hasattr(final_estimator(estimator), "learn_one")]
    first = [(name, 0) for name in online[:3]]
    ordered = [*(name for name in searches if name not in online), *online]
    rest = [(name, k) for name in ordered for k in range(n_folds)]
    return first + [turn for turn in rest if turn not in first]

"""Comparison of estimators by nested cross-validation, with confidence intervals and fit times."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from .._progress import progress
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import as_views
from ._folds import check_targets, inner_splitter, outer_splits, read_groups
from ._intervals import mean_interval, share_interval
from ._wrappers import final_estimator
from .candidates import TASKS, Candidates, candidates, default_kernels, tell_new_batches, views_of, with_preparation

__all__ = ["Comparison", "Leaderboard", "candidates", "compare", "default_kernels"]

_DEFAULT_SCORING = {"classification": "accuracy", "regression": "r2"}
# what an estimator may raise on data that it cannot learn from, or that a scorer cannot use
_FIT_ERRORS = (ValueError, TypeError, AttributeError, ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class Comparison:
    """Result of one estimator in a comparison.

    Parameters
    ----------
    name : str
        Name of the estimator.
    scores : tuple of float
        Score on the test part of each outer fold.
    fit_time : float
        Mean time of a fit on one training part in seconds, including the search for parameters.
    low, high : float
        95% confidence interval of the mean score, corrected for training parts that share samples (Nadeau and Bengio
        2003). A few folds may agree by chance, so for accuracy it is at least as wide as the interval of a proportion
        of that many samples (Wilson 1927).
    predictions : array of shape (n_samples,)
        Prediction of each sample by the model that was fitted without its fold.
    best_params : tuple of dict
        Parameters that the search chose in each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import Comparison
    >>> row = Comparison("mine", (0.75, 0.25), 0.1, 0.0, 1.0, np.array([1, 0, 1, 1]), ({}, {}))
    >>> row.score
    0.5
    """

    name: str
    scores: tuple[float, ...]
    fit_time: float
    low: float
    high: float
    predictions: np.ndarray
    best_params: tuple[dict[str, Any], ...]

    @property
    def score(self) -> float:
        """Mean of the scores."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Leaderboard(Sequence[Comparison]):
    """Compared estimators in the order of their scores, the best first; prints as a table.

    Parameters
    ----------
    rows : tuple of Comparison
        Results of the estimators.
    splits : tuple of (array, array)
        Training and test samples of each outer fold.
    task : {"classification", "regression"}
        Kind of prediction.
    scoring : str
        Name of the score, such as "accuracy" or "r2".
    scorer : callable
        Function of a fitted estimator, samples and targets that returns the score.
    estimators : dict
        Name -> (estimator, grid) of everything that was compared.
    inner_cv : splitter
        Splitter of the search inside each training part.
    groups : array of shape (n_samples,) or None
        Groups of samples that were kept together.
    random_state : int
        Seed of the folds.
    failed : dict
        Name -> error message of estimators that could not be fitted or scored.
    sample_names : array of shape (n_samples,) or None
        Names of the samples, in the order of the predictions.
    prepare : object
        The preparation of the views inside the folds, as given to `compare`.

    Examples
    --------
    >>> from consilience import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, estimators=["error alone"], cv=2)
    >>> len(board), board[0].name, board.scoring
    (1, 'error alone', 'accuracy')
    """

    rows: tuple[Comparison, ...]
    splits: tuple[tuple[np.ndarray, np.ndarray], ...]
    task: str
    scoring: str
    scorer: Any = field(repr=False)
    estimators: Candidates = field(repr=False)
    inner_cv: Any = None
    groups: np.ndarray | None = field(default=None, repr=False)
    random_state: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    sample_names: np.ndarray | None = field(default=None, repr=False)
    prepare: Any = field(default=None, repr=False)

    @property
    def test_ratio(self) -> float:
        """Number of test samples divided by the number of training samples in the first fold."""
        train, test = self.splits[0]
        return len(test) / len(train)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows], default=0)
        wide = max(len(self.scoring), 8)
        lines = [f"{'':<{width}}  {self.scoring:>{wide}}  {'95% interval':>15}  {'fit time':>8}"]
        for row in self.rows:
            interval = f"{row.low:>7.4f} {row.high:>7.4f}"
            lines.append(f"{row.name:<{width}}  {row.score:>{wide}.4f}  {interval}  {row.fit_time:>8.2f}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads = ("estimator", self.scoring, "95% interval", "fit time (s)")
        head = "".join(f"<th>{escape(name)}</th>" for name in heads)
        body = "".join(
            f"<tr><td>{escape(row.name)}</td><td>{row.score:.4f}</td><td>{row.low:.4f} to {row.high:.4f}</td>"
            f"<td>{row.fit_time:.2f}</td></tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_frame(self) -> Any:
        """Return the results as a pandas DataFrame with one row per estimator.

        Returns
        -------
        pandas.DataFrame
            Columns ``score``, ``low``, ``high``, ``fit_time``, ``best_params`` and the score of each fold,
            ``split0_score`` and so on. The index is the name of the estimator.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Leaderboard.to_frame needs pandas: pip install pandas.") from error
        fields = ("score", "low", "high", "fit_time", "best_params")
        columns = {name: [getattr(row, name) for row in self.rows] for name in fields}
        for k in range(len(self.splits)):
            columns[f"split{k}_score"] = [row.scores[k] for row in self.rows]
        return pd.DataFrame(columns, index=pd.Index([row.name for row in self.rows], name="name"))

    def predictions_to_frame(self) -> Any:
        """Return the held-out predictions of all estimators as a pandas DataFrame with one row per sample.

        Returns
        -------
        pandas.DataFrame
            One column per estimator. The index has the names of the samples, or their positions if they have none.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Leaderboard.predictions_to_frame needs pandas: pip install pandas.") from error
        return pd.DataFrame({row.name: list(row.predictions) for row in self.rows}, index=self.sample_names)

    def refit(self, name: str, X: Any, y: Any) -> Any:
        """Fit an estimator on all samples, with its parameters chosen as in the folds.

        Parameters
        ----------
        name : str
            Name of a compared estimator.
        X : Views or what `as_views` reads
            The samples of the comparison.
        y : array-like of shape (n_samples,)
            Their targets.

        Returns
        -------
        estimator
            The fitted estimator, including its scaling.
        """
        search = make_search(self.estimators[name], self.inner_cv, self.scorer)
        X = as_views(X)
        y = np.asarray(in_order_of(X.sample_names, y, "y"))
        model = fit_part(search, views_of(name, X, self.prepare), y, self.groups)
        return model.best_estimator_ if self.estimators[name][1] else model


@validate_params(
    {
        "task": [StrOptions(set(TASKS)), None],
        "scoring": [str, callable, None],
        "cv": ["cv_object"],
        "inner_cv": ["cv_object"],
        "groups": ["array-like", None],
        "estimators": [Iterable, None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=False,
)
def compare(
    X: Any,
    y: Any,
    *,
    task: str | None = None,
    scoring: Any = None,
    cv: Any = 5,
    inner_cv: Any = 3,
    groups: Any = None,
    estimators: Iterable[str] | Mapping[str, Any] | None = None,
    prepare: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Leaderboard:
    """Compare estimators by nested cross-validation.

    Each outer fold holds out a test part. The parameters of an estimator are chosen within the training part, so that
    no test sample takes part in the choice.

    Parameters
    ----------
    X : Views or what `as_views` reads
        The samples.
    y : array-like of shape (n_samples,)
        Class labels, or targets for regression.
    task : {"classification", "regression"}, optional
        Kind of prediction. Default: regression if any target value is not an integer.
    scoring : str or callable, optional
        Any scorer of scikit-learn, by name or as a function of (estimator, X, y); higher is better. It chooses the
        parameters and scores the test parts. Default: "accuracy" for classification, "r2" for regression.
    cv : int or splitter, default=5
        Outer folds. Their number, or a splitter whose test parts contain each sample once. With a number, the folds
        are stratified for classification, and keep `groups` together if they are given.
    inner_cv : int or splitter, default=3
        Folds of the search inside each training part. A number is reduced if a class or the groups are too few.
    groups : array-like of shape (n_samples,), optional
        Groups of samples, such as patients. No group is in both parts of an outer or inner split.
    estimators : iterable of str, or dict, optional
        Names of `candidates` to compare. Or a dict of your own estimators by name, which must accept `Views`; a value
        may also be a pair (estimator, grid), as in `candidates`. Default: all candidates.
    prepare : recipe, dict, transformer of Views or list of these, optional
        First steps of every estimator, fitted on the training part of each fold only: a recipe of `PerView` such as
        "log" or "top_k:100", a dict of recipes or transformers by view, or a transformer of `Views` such as
        `RemoveBatch`. A list is applied in order. Candidates scale dense views after it.
    random_state : int, default=0
        Seed of the folds, if `cv` is a number and `groups` is not given.
    n_jobs : int, optional
        Number of processes, each of which works on one fold at a time; -1 uses all cores.
    verbose : bool, default=False
        Whether to show progress, in a terminal or a notebook.

    Returns
    -------
    Leaderboard
        Results of the estimators, the best first.

    See Also
    --------
    candidates : The estimators that are compared by default.
    sklearn.model_selection.cross_validate : Scores of one estimator, without an inner search.

    Notes
    -----
    Candidates whose names end with "CV" choose their penalties by built-in leave-one-out. If you give `groups` or
    another `scoring` than the default, `inner_cv` searches the same penalties instead.

    Examples
    --------
    >>> from consilience import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, estimators=["LateFusion", "error alone"], cv=3)
    >>> board[0].name
    'LateFusion'
    """
    X = as_views(X)
    y, task = check_targets(X, in_order_of(X.sample_names, y, "y"), task)
    groups = read_groups(in_order_of(X.sample_names, groups, "groups"), len(y))
    is_default = scoring in (None, _DEFAULT_SCORING[task])
    scoring = _DEFAULT_SCORING[task] if is_default else scoring
    scorer = get_scorer(scoring)
    # built-in leave-one-out knows neither groups nor other scores
    pairs = _read_estimators(estimators, X, y, task, prepare, built_in_cv=is_default and groups is None)
    splits = outer_splits(cv, y, task, groups, random_state)
    tell_new_batches(X, prepare, splits)
    inner = inner_splitter(inner_cv, y, task, groups, random_state, splits)
    searches = {name: make_search(pair, inner, scorer) for name, pair in pairs.items()}
    by_name = {name: views_of(name, X, prepare) for name in pairs}
    results = _run_folds(searches, scorer, by_name, y, groups, splits, n_jobs, verbose)
    failed = {
        name: next(part for part in parts if isinstance(part, str))
        for name, parts in results.items()
        if any(isinstance(part, str) for part in parts)
    }
    if len(failed) == len(pairs):
        first = next(iter(failed))
        raise ValueError(f"No estimator could be fitted and scored. {first}: {failed[first]}")
    name_of_score = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", str(scoring))
    rows = [_row(name, parts, splits, name_of_score) for name, parts in results.items() if name not in failed]
    rows.sort(key=lambda row: (np.isnan(row.score), -row.score))  # scores that are NaN come last
    return Leaderboard(
        tuple(rows), splits, task, name_of_score, scorer, pairs, inner, groups, random_state, failed, X.sample_names,
        prepare,
    )  # fmt: skip


def _read_estimators(
    estimators: Any, X: Views, y: np.ndarray, task: str, prepare: Any, *, built_in_cv: bool
) -> Candidates:
    """Return the estimators to compare and their grids, by name."""
    if isinstance(estimators, Mapping):
        if not estimators:
            raise ValueError("`estimators` is empty. Give at least one estimator by name, or None for all candidates.")
        pairs = {name: own if isinstance(own, tuple) else (own, {}) for name, own in estimators.items()}
        return {
            name: with_preparation(pair, prepare, views_of(name, X, prepare).names, task)
            for name, pair in pairs.items()
        }
    known = candidates(X, y, task=task, built_in_cv=built_in_cv, prepare=prepare)
    if estimators is None:
        return known
    names = list(dict.fromkeys([estimators] if isinstance(estimators, str) else estimators))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"got '{unknown[0]}'" if unknown else "got no name"
        raise ValueError(f"`estimators` must name candidates for these data; {wrong}. There are {', '.join(known)}.")
    return {name: known[name] for name in names}


def make_search(pair: tuple[Any, Mapping[str, Any]], inner_cv: Any, scorer: Any) -> Any:
    """Return a search over the grid of an estimator, or the estimator itself if its grid is empty."""
    estimator, grid = pair
    if not grid:
        return estimator
    return GridSearchCV(estimator, dict(grid), cv=inner_cv, scoring=scorer, error_score="raise")


def fit_part(model: Any, X: Views, y: np.ndarray, groups: np.ndarray | None, rows: Any = slice(None)) -> Any:
    """Fit on some samples without warnings on unfinished iterations and rare classes: the score shows their effect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The least populated class")
        warnings.filterwarnings("ignore", message="The effects of batches")  # `compare` counts them
        if groups is not None and isinstance(model, BaseSearchCV):
            return model.fit(X[rows], y[rows], groups=groups[rows])  # the inner folds keep groups together too
        return model.fit(X[rows], y[rows])


# -- folds
@dataclass(frozen=True)
class FoldResult:
    """Score, fit time, predictions and chosen parameters of one outer fold."""

    score: float
    fit_time: float
    predictions: np.ndarray
    best_params: dict[str, Any]


def _run_folds(
    searches: Mapping[str, Any],
    scorer: Any,
    views: Mapping[str, Views],
    y: np.ndarray,
    groups: np.ndarray | None,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    n_jobs: int | None,
    verbose: bool,
) -> dict[str, list[FoldResult | str]]:
    """Return the results of each estimator, fold by fold; an error message stands for a fold that failed."""
    turns = _turns(searches, len(splits))
    # a generator gives results as they come, for the progress bar
    work = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(run_fold)(searches[name], scorer, views[name], y, groups, *splits[k]) for name, k in turns
    )
    results: dict[str, list[Any]] = {name: [None] * len(splits) for name in searches}
    with progress(verbose, f"{turns[0][0]}, fold 1 of {len(splits)}") as show:
        for done, ((name, k), result) in enumerate(zip(turns, work, strict=True), start=1):
            results[name][k] = result
            following, fold = turns[min(done, len(turns) - 1)]
            show(f"{following}, fold {fold + 1} of {len(splits)}", done / len(turns))
    return results


def _turns(searches: Mapping[str, Any], n_folds: int) -> list[tuple[str, int]]:
    """Return (estimator, fold) in the order of work: online estimators last, except one fold of the first three.

    Online estimators compile their loops at the first use on a machine, which takes seconds. Processes start with
    that, each with other loops, so that they do not all wait for the same compilation later.
    """
    estimators = {name: s.estimator if isinstance(s, BaseSearchCV) else s for name, s in searches.items()}
    online = [name for name, estimator in estimators.items() if hasattr(final_estimator(estimator), "partial_fit")]
    first = [(name, 0) for name in online[:3]]
    ordered = [*(name for name in searches if name not in online), *online]
    rest = [(name, k) for name in ordered for k in range(n_folds)]
    return first + [turn for turn in rest if turn not in first]


def run_fold(
    search: Any, scorer: Any, X: Views, y: np.ndarray, groups: np.ndarray | None, train: np.ndarray, test: np.ndarray
) -> FoldResult | str:
    """Return the result of one fold, or the first line of the error message."""
    start = time.perf_counter()
    try:
        model = fit_part(clone(search), X, y, groups, train)  # a clone, because all folds get the same search
        fit_time = time.perf_counter() - start
        test_views = X[test]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The effects of batches")
            score = float(scorer(model, test_views, y[test]))
            return FoldResult(score, fit_time, model.predict(test_views), getattr(model, "best_params_", {}))
    except _FIT_ERRORS as error:
        return (str(error).strip() or type(error).__name__).splitlines()[0]


def _row(name: str, parts: Sequence[Any], splits: Any, scoring: str) -> Comparison:
    scores = np.array([part.score for part in parts])
    tested = np.concatenate([test for _, test in splits])
    low, high = score_interval(scores, len(splits[0][1]) / len(splits[0][0]), len(tested), scoring)
    joined = np.concatenate([np.asarray(part.predictions) for part in parts])
    predictions = np.empty_like(joined)
    predictions[tested] = joined  # from the order of the folds to that of the samples
    fit_time = float(np.mean([part.fit_time for part in parts]))
    best_params = tuple(part.best_params for part in parts)
    return Comparison(name, tuple(map(float, scores)), fit_time, low, high, predictions, best_params)


def score_interval(scores: np.ndarray, test_ratio: float, n_samples: int, scoring: str) -> tuple[float, float]:
    """Return the 95% interval of the mean of fold scores, within the range that the score can have."""
    low, high = mean_interval(scores, test_ratio)
    if scoring == "accuracy":
        # equal scores in a few folds would make the interval too short
        least, most = share_interval(float(scores.mean()), n_samples)
        low, high = max(min(low, least), 0.0), max(high, most)
    return low, min(high, 1.0) if scoring in ("accuracy", "r2") else high

"""Comparison of estimators by nested cross-validation, with confidence intervals, paired tests and fit times."""

import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import as_views
from ..views.repeated import repeated_samples
from ..views.validation import read_groups, read_weights
from ._baselines import baselines_of, on_table, takes_views
from ._differences import Difference, PairedScores
from ._folds import check_targets, inner_splitter, outer_splits
from ._kept_folds import describe_comparison, keep_folds
from ._measures import DEFAULT_SCORING, read_scoring
from ._running import FoldPlan, data_of, make_search, run_folds
from .candidates import (
    TASKS,
    Candidates,
    candidates,
    default_kernels,
    default_names,
    preparation_steps,
    prepared,
    samples_for,
    single_view,
    tell_new_batches,
    title_of,
    views_of,
    with_preparation,
)
from .leaderboard import Comparison, Leaderboard

__all__ = ["Comparison", "Difference", "Leaderboard", "candidates", "compare", "default_kernels"]


@validate_params(
    {
        "task": [StrOptions(set(TASKS)), None],
        "cv": ["cv_object"],
        "inner_cv": ["cv_object"],
        "groups": ["array-like", None],
        "estimators": [Iterable, None],
        "baselines": ["boolean"],
        "sample_weight": ["array-like", None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "resume": [str, os.PathLike, None],
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
    estimators: Any = None,
    baselines: bool = True,
    sample_weight: Any = None,
    class_weight: Any = None,
    prepare: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    resume: str | os.PathLike[str] | None = None,
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
        Kind of prediction. Default: regression if any target value is not an integer. Integers of more than 20 values,
        or of more values than a fifth of the samples, need it.
    scoring : str, callable, or list or dict of these, optional
        Scorers of scikit-learn, by name or as functions of (estimator, X, y); higher is better. The first one chooses
        the parameters and ranks the rows. Names that scikit-learn defines for two classes only stand for their form for
        several classes, such as "roc_auc_ovr" for "roc_auc"; a note of the leaderboard says so. Default: "accuracy"
        for classification, "r2" for regression.
    cv : int or splitter, default=5
        Outer folds. Their number, or any splitter, such as ``RepeatedStratifiedKFold``. With a number, the folds are
        stratified for classification, and keep `groups` together if they are given.
    inner_cv : int or splitter, default=3
        Folds of the search inside each training part. A number is reduced if a class or the groups are too few.
    groups : array-like of shape (n_samples,), optional
        Groups of samples, such as patients or hospitals. No group is in both parts of an outer or inner split, and
        tests and intervals count groups instead of samples. With fewer groups than folds, each group is held out in
        turn. Where a training part has only one group, its inner folds split samples. Notes of the leaderboard say so.
    estimators : "all", iterable of str, or dict, optional
        Names of `candidates` to compare, or "all" for every candidate. Or a dict of your own estimators by name; a
        value may also be a pair (estimator, grid), as in `candidates`. Estimators that do not take `Views` get one
        table with the columns of all views, in which missing views are NaN. Default: seven candidates for
        classification or six for regression, and each view alone.
    baselines : bool, default=True
        Whether to add baselines: the most frequent class or the mean, each view alone, and random forests and boosted
        trees on the columns of all views.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples in fits and scores.
    class_weight : "balanced" or dict, optional
        Weights of the classes, for all estimators that have this parameter and do not set it. A note of the leaderboard
        names the others.
    prepare : recipe, dict, transformer of Views or list of these, optional
        First steps of every estimator, fitted on the training part of each fold only: a recipe of `PerView` such as
        "log" or "top_k:100", a dict of recipes or transformers by view, or a transformer of `Views` such as
        `RemoveBatch`. A list is applied in order. Candidates scale dense views after it.
    random_state : int, default=0
        Seed of the folds, if `cv` is a number and `groups` is not given.
    n_jobs : int, optional
        Number of processes, each of which works on one fold of one estimator at a time; -1 uses all cores.
    verbose : bool, default=False
        Whether to show progress: a bar in a terminal or a notebook, otherwise a line per minute.
    resume : path, optional
        File that keeps the result of each estimator on each outer fold as soon as it is there. The same call with the
        same file computes only what the file lacks, and returns the same leaderboard. Default: nothing is kept.

    Returns
    -------
    Leaderboard
        Results of the estimators, the best first.

    See Also
    --------
    candidates : The estimators that can be compared by name.
    sklearn.model_selection.cross_validate : Scores of one estimator, without an inner search.

    Notes
    -----
    Candidates whose names end with "CV" choose their penalties by built-in leave-one-out. If you give `groups` or
    another `scoring` than the default, `inner_cv` searches the same penalties instead. The consensus always chooses by
    its own leave-one-out, or leaves out whole groups.

    The interval of an accuracy is that of a proportion (Wilson 1927). Intervals of other measures come from the
    Bayesian bootstrap of the held-out samples (Rubin 1981), or from the folds if the scorer needs more than predictions
    (Nadeau and Bengio 2003). `Leaderboard.difference` tells how both allow for chance in the training samples.

    An interval is about the mean score of test parts of this size. R2 of many samples is higher than its mean over
    small test parts, because each part has its own mean of the targets. With ten samples of a rare class, intervals of
    the area under the curve covered 84% of the truths in simulations. Intervals over the folds are too short where all
    folds have nearly the same score by chance, as accuracies with a rare class.

    A single view is fitted to the samples that have it and scored on those; ``scored`` of its row tells which.

    A file of `resume` belongs to one comparison: to its data, folds, measures and estimators, and to the versions of
    this library, Python and the packages. With others, it is refused and stays as it is. Only `n_jobs` and `verbose`
    may differ. Your own functions and classes count with their code, and with the constants, functions and classes of
    their module that the code names. Not seen are functions that it calls in other modules, attributes of modules
    (``settings.COST``), and the files and environment variables that it reads.
    Splitters and estimators need a fixed ``random_state``. The file stays when the comparison ends; remove it when you
    no longer need it. It holds predictions for all samples, so protect it like the data.

    Examples
    --------
    >>> from consilience import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, estimators=["LateFusion"], cv=3)
    >>> board.simplest().title
    'Logistic regression on worst alone'
    >>> sorted(row.name for row in board if row.kind == "baseline")
    ['DummyClassifier', 'HistGradientBoostingClassifier', 'RandomForestClassifier']
    """
    X = as_views(X)
    y, task = check_targets(X, in_order_of(X, y, "y"), task)
    groups = read_groups(in_order_of(X, groups, "groups"), len(y))
    weights = None
    if sample_weight is not None:
        weights = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(y))
    scorers, notes = read_scoring(scoring, y, task)
    scoring, scorer = next(iter(scorers.items()))
    # built-in leave-one-out knows neither groups nor other scores
    built_in_cv = scoring == DEFAULT_SCORING[task] and groups is None
    pairs, kinds, more = _read_estimators(estimators, baselines, X, y, task, prepare, built_in_cv)
    pairs, unweighted = _with_class_weight(pairs, class_weight, task)
    splits, fewer = outer_splits(cv, y, task, groups, random_state)
    tell_new_batches(X, prepare, splits)
    inner, ungrouped = inner_splitter(inner_cv, y, task, groups, random_state, splits)
    searches = {name: make_search(pair, inner, scorer) for name, pair in pairs.items()}
    data = {name: data_of(name, X, y, groups, weights, splits, prepare) for name in pairs}
    classes = np.unique(y) if task == "classification" else None
    folds = FoldPlan(searches, scorers, data, classes, len(splits))
    parts = {
        "the views": X, "the targets": y, "the groups": groups, "the sample weights": weights, "the task": task,
        "the folds": splits, "the inner folds": inner, "the measures": scorers, "the preparation": prepare,
    }  # fmt: skip
    file = None if resume is None else Path(resume)
    with keep_folds(file, folds, lambda: describe_comparison(parts, pairs)) as kept:
        results = run_folds(folds, n_jobs, verbose, kept.known, kept.add)
    failed = _failed(results)
    paired = PairedScores(scorer, y, classes, groups, weights, len(splits[0][1]) / len(splits[0][0]))
    rows = [
        _row(name, title_of(name, X, task) if kinds[name] != "own" else name, kinds[name], parts, paired)
        for name, parts in results.items()
        if name not in failed
    ]
    copies = _copies(X) if groups is None else []
    notes = [*notes, *more, *fewer, *ungrouped, *unweighted, *_undefined(results), *copies]
    return Leaderboard(
        _ranked(rows), splits, task, scoring, scorer, pairs, inner, groups, random_state, failed, X.sample_names,
        prepare, tuple(scorers), classes, y, weights, tuple(notes),
    )  # fmt: skip


# -- what is compared
def _copies(X: Views) -> list[str]:
    """Return a sentence on samples that repeat others, if there are some."""
    units = repeated_samples(X)
    if units is None:
        return []
    return [
        f"{len(units) - units.max() - 1:,} of {len(units):,} samples repeat another one in all views. Copies in the "
        "training and the test part of a fold make scores too high: remove them, or give them a group by `groups` "
        "(--groups)."
    ]


def _read_estimators(
    estimators: Any, baselines: bool, X: Views, y: np.ndarray, task: str, prepare: Any, built_in_cv: bool
) -> tuple[Candidates, dict[str, str], list[str]]:
    """Return the estimators to compare and their grids, what kind they are, and sentences about baselines."""
    steps = preparation_steps(prepare, task)
    simple, notes = baselines_of(prepared(steps, X, y), task)
    simple = {name: with_preparation(pair, prepare, X.names, task) for name, pair in simple.items()}
    simple_ones = set(simple)
    known = {**candidates(X, y, task=task, built_in_cv=built_in_cv, prepare=prepare), **simple}
    alone = [name for name in known if single_view(name, X) is not None]
    kinds = {name: "single view" if name in alone else "baseline" if name in simple else "estimator" for name in known}
    always = [*alone, *simple] if baselines else []
    if isinstance(estimators, Mapping):
        if not estimators:
            raise ValueError("`estimators` is empty. Give at least one estimator by name, or None for the default.")
        own = {name: _own_pair(name, given, X, prepare, task) for name, given in estimators.items()}
        pairs = {**own, **{name: known[name] for name in always if name not in own}}
        kinds = {name: "own" if name in own else kinds[name] for name in pairs}
    else:
        names = _names(estimators, list(known), X, simple_ones)
        pairs = {name: known[name] for name in dict.fromkeys([*names, *always])}
    return pairs, kinds, notes if simple_ones & set(pairs) else []


def _names(estimators: Any, known: Sequence[str], X: Views, baselines: set[str]) -> list[str]:
    """Return the names of the candidates to compare."""
    if estimators is None:
        return default_names(known, X)
    if isinstance(estimators, str) and estimators == "all":
        return [name for name in known if name not in baselines]
    names = list(dict.fromkeys([estimators] if isinstance(estimators, str) else estimators))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"got '{unknown[0]}'" if unknown else "got no name"
        raise ValueError(f"`estimators` must name candidates for these data; {wrong}. There are {', '.join(known)}.")
    return names


def _own_pair(name: str, given: Any, X: Views, prepare: Any, task: str) -> tuple[Any, Any]:
    """Return an estimator of the user and its grid; one that does not take views gets a table of all columns."""
    pair = given if isinstance(given, tuple) else (given, {})
    if not hasattr(pair[0], "fit") or not hasattr(pair[0], "predict"):
        raise TypeError(f"`estimators` has {pair[0]!r} for '{name}', which is not an estimator with fit and predict.")
    if not takes_views(pair[0]):
        pair = on_table(pair)
    return with_preparation(pair, prepare, views_of(name, X[samples_for(name, X)], prepare).names, task)


def _with_class_weight(pairs: Candidates, class_weight: Any, task: str) -> tuple[Candidates, list[str]]:
    """Return the estimators with weights of the classes, and a sentence that names those without."""
    if class_weight is None:
        return pairs, []
    if task == "regression":
        raise ValueError("`class_weight` is for classification, but the task is regression. Use sample_weight.")
    weighted, without = {}, []
    for name, (estimator, grid) in pairs.items():
        own = {key: value for key, value in estimator.get_params().items() if key.split("__")[-1] == "class_weight"}
        free = {key: class_weight for key, value in own.items() if value is None}
        weighted[name] = clone(estimator).set_params(**free) if free else estimator, grid
        without += [] if own else [name]
    sentence = f"Fitted without class_weight, which they do not have: {', '.join(without)}."
    return weighted, [sentence] if without else []


# -- rows
def _failed(results: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Return the first error message of each estimator that has one; all of them must not fail."""
    failed = {
        name: next(part for part in parts if isinstance(part, str))
        for name, parts in results.items()
        if any(isinstance(part, str) for part in parts)
    }
    if len(failed) == len(results):
        first = next(iter(failed))
        raise ValueError(f"No estimator could be fitted and scored. {first}: {failed[first]}")
    return failed


def _row(name: str, title: str, kind: str, parts: Sequence[Any], paired: PairedScores) -> Comparison:
    scores = np.array([part.score for part in parts])
    held_out = tuple(part.held_out for part in parts)
    predictions, probabilities, scored = _joined(held_out, paired.y, paired.classes)
    low, high = paired.interval(scores, held_out, scored)
    times = [part.fit_time for part in parts if len(part.predictions)]
    measures = {key: tuple(float(part.measures[key]) for part in parts) for key in parts[0].measures}
    best_params = tuple(part.best_params for part in parts)
    return Comparison(
        name, tuple(map(float, scores)), float(np.mean(times)), low, high, predictions, best_params, title, kind,
        scored, probabilities, measures, held_out,
    )  # fmt: skip


def _joined(parts: Sequence[Any], y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return predictions and probabilities in the order of the samples, and which samples have them."""
    n, times = len(y), np.zeros(len(y))
    for part in parts:
        times[part.test] += 1
    scored = times > 0
    divided = np.maximum(times, 1)
    if classes is None:
        total = np.zeros(n)
        for part in parts:
            total[part.test] += part.predictions
        return np.where(scored, total / divided, np.nan), None, scored
    votes = np.zeros((n, len(classes)))
    sums: Any = None if any(part.probabilities is None for part in parts if len(part.test)) else np.zeros_like(votes)
    for part in parts:
        votes[part.test, np.searchsorted(classes, part.predictions)] += 1
        if sums is not None and len(part.test):
            sums[part.test] += part.probabilities
    predictions = classes[votes.argmax(axis=1)]
    if not scored.all():
        predictions = predictions.astype(object)
        predictions[~scored] = None
    if sums is not None:
        sums = np.where(scored[:, None], sums / divided[:, None], np.nan)
    return predictions, sums, scored


def _ranked(rows: list[Comparison]) -> tuple[Comparison, ...]:
    """Return rows by score; the first one is the best of those that predict every tested sample."""
    rows = sorted(rows, key=lambda row: (np.isnan(row.score), -row.score))  # scores that are NaN come last
    most = max(int(row.scored.sum()) for row in rows)
    best = next(row for row in rows if row.scored.sum() == most)
    return best, *(row for row in rows if row is not best)


def _undefined(results: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return sentences about measures that some estimators do not have."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, parts in results.items():
        for part in parts:
            for measure, reason in {} if isinstance(part, str) else part.undefined.items():
                reasons.setdefault((measure, reason), [])
                if name not in reasons[measure, reason]:
                    reasons[measure, reason].append(name)
    return [
        f"No {measure} for {', '.join(names)}: {reason.rstrip('.')}." for (measure, reason), names in reasons.items()
    ]

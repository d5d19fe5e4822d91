"""Examine a comparison for a report: fits on parts of the data show which views matter and where they disagree."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from .._progress import progress
from ..batch.fusion import EarlyFusion
from ..evaluation._intervals import difference_interval
from ..evaluation._wrappers import final_estimator
from ..evaluation.candidates import default_kernels, single_view, used_views, views_of, without_view
from ..evaluation.comparison import Comparison, FoldResult, Leaderboard, fit_part, run_fold, score_interval
from ..evaluation.inspection import view_agreement, view_outputs
from ..kernels.given import as_kernel
from ..kernels.gram import alignment
from ..views._notebook import weights_of
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.conversion import as_views
from ..views.estimator import presence
from ._findings import Disagreement, Findings

ALIGNED_SAMPLES = 600  # a random subset of this size changes an alignment by less than the report shows
CURVE_SHARES = (0.1, 0.2, 0.4, 0.7)  # of the training part, along the learning curve
SHOWN_DISAGREEMENTS = 12


def examine(
    X: Any, y: Any, board: Leaderboard, *, title: str = "Data", n_jobs: int | None = None, verbose: bool = False
) -> Findings:
    """Examine the data and the estimators of a comparison, for a report.

    All statements about the quality of predictions are about held-out samples. Estimators are fitted on the training
    part of each fold of the comparison, with the parameters chosen there.

    Parameters
    ----------
    X : Views or what `as_views` reads
        The samples of the comparison.
    y : array-like of shape (n_samples,)
        Their classes or targets.
    board : Leaderboard
        Result of `compare`.
    title : str, default="Data"
        Title of the data.
    n_jobs : int, optional
        Number of processes, each of which fits one estimator at a time; -1 uses all cores.
    verbose : bool, default=False
        Whether to show progress, in a terminal or a notebook.

    Returns
    -------
    Findings
        What a report shows; see `write_report`.

    Examples
    --------
    >>> from consilience import compare
    >>> from consilience.datasets import load_breast_cancer_views
    >>> from consilience.report import examine
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> board = compare(X, y, estimators=["ViewMetricRidgeClassifierCV"], cv=2)
    >>> findings = examine(X, y, board, title="Breast cancer")
    >>> findings.losses["worst"][0] > findings.losses["error"][0]
    True
    """
    X = as_views(X)
    y = np.asarray(in_order_of(X.sample_names, y, "y"))
    names = [str(name) for name in (range(len(X)) if X.sample_names is None else X.sample_names)]
    best: Comparison = board[0]
    used = used_views(X, board.prepare)
    shown = X[used]  # without batches and dropped views, which the models do not learn from
    of_all_views = next((row for row in board if single_view(row.name, X) is None), None)
    fits = _FoldFits(board, X, y, n_jobs)
    with progress(verbose, "examining the data") as show:
        show("fitting on all samples", 0.05)
        model = board.refit(best.name, X, y)
        show("comparing the predictions of the views", 0.15)
        vote_estimator, votes, spread = _votes(fits)
        show("fitting without each view", 0.4)
        losses = {} if of_all_views is None or len(used) < 2 else _losses(fits, of_all_views)
        show("fitting on fewer samples", 0.7)
        curve = _learning_curve(fits, best)
        show("comparing kernels", 0.95)
        alignments = _alignments(shown, y, board)
    calibration, confidence = _calibration(fits, best)
    voter = next((row for row in board if row.name == vote_estimator), best)
    agreed, disputed, rows = _disagreements(votes, spread, voter.predictions, y, names, board.task)
    each = zip(best.best_params, fits.models(best), strict=True)
    chosen = [_chosen_params(best.best_params[0], model), *(_chosen_params(given, part) for given, part in each)]
    final = final_estimator(model)
    return Findings(
        title=title, X=shown, y=y, board=board, patterns=_patterns(shown), alignments=alignments, model=model,
        chosen_params=chosen, certificate=final.certificate() if hasattr(final, "certificate") else None,
        weights=_weights(final), loss_estimator=(of_all_views or best).name, losses=losses,
        vote_estimator=vote_estimator, disagreements=rows, agreed=agreed, disputed=disputed, calibration=calibration,
        confidence=confidence, learning_curve=curve,
    )  # fmt: skip


# -- fits on training parts
class _FoldFits:
    """Fits of the compared estimators on the training parts, several at a time."""

    def __init__(self, board: Leaderboard, X: Views, y: np.ndarray, n_jobs: int | None):
        self.board, self.X, self.y, self.n_jobs = board, X, y, n_jobs
        self._models: dict[str, list[Any]] = {}  # several sections of a report need the same fits

    def estimator(self, row: Comparison, fold: int) -> Any:
        """Return a clone of the estimator of a row with the parameters chosen in a fold."""
        return clone(self.board.estimators[row.name][0]).set_params(**row.best_params[fold])

    def models(self, row: Comparison) -> list[Any]:
        """Return the estimator of a row, fitted on each training part."""
        if row.name not in self._models:
            X = views_of(row.name, self.X, self.board.prepare)
            self._models[row.name] = Parallel(n_jobs=self.n_jobs)(
                delayed(fit_part)(self.estimator(row, k), X, self.y, self.board.groups, train)
                for k, (train, _) in enumerate(self.board.splits)
            )
        return self._models[row.name]

    def scores(self, jobs: Sequence[tuple[Any, ...]]) -> list[FoldResult | None]:
        """Return the results of jobs (estimator, X, y, groups, train, test); None for a fit that fails."""
        work = (delayed(run_fold)(estimator, self.board.scorer, *data) for estimator, *data in jobs)
        # a part may have too few samples, or samples of one class only
        return [None if isinstance(result, str) else result for result in Parallel(n_jobs=self.n_jobs)(work)]


def _chosen_params(best_params: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the parameters that the search chose, and those that the estimator chose by itself."""
    final, values = final_estimator(model), model.get_params()
    step = f"{type(final).__name__.lower()}__"  # the name that `make_pipeline` gives to the estimator
    searched = {key.partition(step)[2] or key: values[key] for key in best_params}
    own = ("alpha", "agreement_penalty", "metric_penalty")
    return {**searched, **{name: getattr(final, f"{name}_") for name in own if hasattr(final, f"{name}_")}}


# -- the data
def _patterns(X: Views) -> list[tuple[tuple[bool, ...], int]]:
    return Counter(map(tuple, presence(X).tolist())).most_common()


def _alignments(X: Views, y: np.ndarray, board: Leaderboard) -> np.ndarray:
    """Return the alignments between views, and of each view with the target, on samples that have both."""
    rng = np.random.default_rng(board.random_state)
    kernels, m = default_kernels(X), len(X.names)
    regression = board.task == "regression"
    target = (y - y.mean())[:, None] if regression else (y[:, None] == np.unique(y)).astype(np.float64)
    alignments, present = np.full((m + 1, m + 1), np.nan), presence(X)  # the target has the last row and column
    np.fill_diagonal(alignments, 1.0)
    for v in range(m):
        for w in range(v + 1, m + 1):
            rows = np.flatnonzero(present[:, v] & (present[:, w] if w < m else True))
            if len(rows) < 3:  # centered matrices of two samples are always aligned
                continue
            rows = np.sort(rng.permutation(rows)[:ALIGNED_SAMPLES])
            other = _gram(X, X.names[w], rows, kernels) if w < m else target[rows] @ target[rows].T
            alignments[v, w] = alignments[w, v] = alignment(_gram(X, X.names[v], rows, kernels), other)
    return alignments


def _gram(X: Views, name: str, rows: np.ndarray, kernels: dict[str, Any]) -> np.ndarray:
    """Return the Gram matrix of some samples of a view, by its default kernel; dense views are scaled."""
    block = X[rows].block(name)
    if X.kind(name) == "dense":
        block = np.nan_to_num(StandardScaler().fit_transform(np.asarray(block)))
    return np.asarray(as_kernel(kernels.get(name, "rbf")).resolved(block)(block))


# -- the views
def _weights(final: Any) -> dict[str, float]:
    """Return the share of each view in the weights of an estimator; empty if it does not weight all views."""
    weights = weights_of(final)
    if weights is None or len(weights) != len(getattr(final, "view_names_in_", ())):
        return {}
    total = np.abs(weights).sum() or 1.0
    return dict(zip(final.view_names_in_, (np.abs(weights) / total).tolist(), strict=True))


def _losses(fits: _FoldFits, row: Comparison) -> dict[str, tuple[float, float, float]]:
    """Return the score lost by fitting and predicting without each view, with its interval over the folds."""
    X, y, board = fits.X, fits.y, fits.board
    jobs: list[tuple[Any, ...]] = []
    places = []
    used = used_views(X, board.prepare)
    for v, name in enumerate(used):
        kept = np.flatnonzero(np.delete(presence(X[used]), v, axis=1).any(axis=1))  # samples that have another view
        others = X[kept][[other for other in X.names if other != name]]
        groups = None if board.groups is None else board.groups[kept]
        for k, split in enumerate(board.splits):
            train, test = (np.flatnonzero(np.isin(kept, part)) for part in split)
            if len(train) and len(test) > 1:
                jobs.append((without_view(fits.estimator(row, k), name), others, y[kept], groups, train, test))
                places.append((name, k, kept[test]))
    lost: dict[str, list[float]] = {}
    correct: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for (name, k, test), result in zip(places, fits.scores(jobs), strict=True):
        if result is not None:
            lost.setdefault(name, []).append(_score_on(fits, row, k, test) - result.score)
            correct.setdefault(name, []).append((row.predictions[test] == y[test], result.predictions == y[test]))
    losses = {}
    for name, values in lost.items():
        pair = tuple(np.concatenate(part) for part in zip(*correct[name], strict=True))
        paired: Any = pair if board.scoring == "accuracy" else None
        losses[name] = (float(np.mean(values)), *difference_interval(np.array(values), board.test_ratio, paired))
    return losses


def _score_on(fits: _FoldFits, row: Comparison, fold: int, test: np.ndarray) -> float:
    """Return the score of a row on some test samples of a fold."""
    if len(test) == len(fits.board.splits[fold][1]):  # all test samples, whose score is known
        return row.scores[fold]
    X = views_of(row.name, fits.X, fits.board.prepare)
    return float(fits.board.scorer(fits.models(row)[fold], X[test], fits.y[test]))


def _votes(fits: _FoldFits) -> tuple[str, np.ndarray | None, np.ndarray]:
    """Return the best estimator whose views predict one by one, their predictions and spreads on held-out samples."""
    X, used = fits.X, tuple(used_views(fits.X, fits.board.prepare))
    m = len(used)
    for row in fits.board if m > 1 else ():
        final = final_estimator(fits.board.estimators[row.name][0])
        # a metric combines pairs of views, and early fusion fills missing views: there no view predicts by itself
        together = isinstance(final, EarlyFusion) or hasattr(final, "metric")
        by_view = hasattr(final, "view_decision_function") and not together
        if single_view(row.name, X) is not None or not by_view:
            continue
        if final_estimator(fits.models(row)[0]).view_names_in_ != used:  # its preparation makes other views
            continue
        votes, spread = np.full((len(X), m), None, dtype=object), np.full(len(X), np.nan)
        for model, (_, test) in zip(fits.models(row), fits.board.splits, strict=True):
            votes[test], spread[test] = _fold_votes(model, X[test])
        return row.name, votes, spread
    return "", None, np.zeros(0)


def _fold_votes(model: Any, X: Views) -> tuple[np.ndarray, np.ndarray]:
    """Return the prediction of each view for samples, and their spread, in the units of the target."""
    agreement = view_agreement(model, X)
    if "votes" in agreement:
        return agreement.votes, agreement.spread
    outputs = view_outputs(model, X)[0].reshape(len(X), -1)
    votes = outputs.astype(object)
    votes[np.isnan(outputs)] = None
    return votes, agreement.spread


def _disagreements(
    votes: np.ndarray | None,
    spread: np.ndarray,
    predictions: np.ndarray,
    y: np.ndarray,
    names: Sequence[str],
    task: str,
) -> tuple[tuple[int, float] | None, tuple[int, float] | None, list[Disagreement]]:
    """Return how often views agree and disagree, and the samples on which they differ most."""
    if votes is None:
        return None, None, []
    several = ~np.isnan(spread)  # samples with at least two views
    agreed = disputed = None
    show: Callable[[Any], str] = str
    if task == "regression":
        chosen, show = np.flatnonzero(several), "{:.4g}".format
    else:
        differ = several & np.array([len({str(v) for v in row if v is not None}) > 1 for row in votes])
        correct, same = np.asarray(predictions == y), several & ~differ
        agreed = (int(same.sum()), float(correct[same].mean())) if same.any() else None
        disputed = (int(differ.sum()), float(correct[differ].mean())) if differ.any() else None
        chosen = np.flatnonzero(differ)
    rows = [
        Disagreement(
            names[i], tuple("" if v is None else show(v) for v in votes[i]), show(predictions[i]), show(y[i]),
            float(spread[i]),
        )
        for i in chosen[np.argsort(-spread[chosen], kind="stable")][:SHOWN_DISAGREEMENTS]
    ]  # fmt: skip
    return agreed, disputed, rows


# -- calibration and learning curve
def _calibration(fits: _FoldFits, row: Comparison) -> tuple[np.ndarray, str]:
    """Return bins of predictions with their means, and how the confidence of a prediction is computed.

    For regression, bins are by the predicted value. For classification, they are by confidence: the probability of the
    model, or else the margin of the best score over the second best. A logistic regression on the other folds turns
    margins into probabilities.
    """
    X, y, splits = views_of(row.name, fits.X, fits.board.prepare), fits.y, fits.board.splits
    if fits.board.task == "regression":
        return _binned(row.predictions.astype(np.float64), y.astype(np.float64)), ""
    correct, models = (row.predictions == y).astype(int), fits.models(row)
    confidence = np.full(len(y), np.nan)
    if hasattr(models[0], "predict_proba"):
        for model, (_, test) in zip(models, splits, strict=True):
            confidence[test] = model.predict_proba(X[test]).max(axis=1)
        return _binned(confidence, correct), "the predicted probability"
    if not hasattr(models[0], "decision_function"):
        return np.zeros((0, 3)), ""
    margin = np.empty(len(y))
    for model, (_, test) in zip(models, splits, strict=True):
        scores = model.decision_function(X[test])
        ordered = np.sort(scores, axis=1) if scores.ndim == 2 else np.column_stack([np.zeros(len(test)), abs(scores)])
        margin[test] = ordered[:, -1] - ordered[:, -2]
    margin /= margin.std() or 1.0  # so that the penalty of the logistic regression hardly matters
    for _, test in splits:
        others = np.setdiff1d(np.arange(len(y)), test)
        if len(np.unique(correct[others])) < 2:
            return np.zeros((0, 3)), ""
        logistic = LogisticRegression(C=1e6).fit(margin[others, None], correct[others])
        confidence[test] = logistic.predict_proba(margin[test, None])[:, 1]
    method = "the margin of the best score over the second best, as a probability that was fitted on the other folds"
    return _binned(confidence, correct), method


def _binned(given: np.ndarray, observed: np.ndarray, bins: int = 10) -> np.ndarray:
    """Return the means of both arrays in bins of equal size by the first, and the sizes."""
    order = np.argsort(given, kind="stable")
    parts = np.array_split(order, min(bins, max(1, len(order) // 10)))
    return np.array([(given[part].mean(), observed[part].mean(), len(part)) for part in parts])


def _learning_curve(fits: _FoldFits, row: Comparison) -> np.ndarray:
    """Return test scores after fits on some of the training samples, and on all of them."""
    X, y, board = views_of(row.name, fits.X, fits.board.prepare), fits.y, fits.board
    labels = None if board.task == "regression" else y
    n_train = len(board.splits[0][0])
    least = 10 if labels is None else 2 * len(np.unique(labels))  # fewer samples give no meaningful fit
    sizes = sorted({size for size in (int(share * n_train) for share in CURVE_SHARES) if size >= least})
    rng = np.random.default_rng(board.random_state)
    jobs = [
        (fits.estimator(row, k), X, y, board.groups, _subset(train, labels, size, rng), test)
        for size in sizes
        for k, (train, test) in enumerate(board.splits)
    ]
    results, rows = fits.scores(jobs), []
    for number, size in enumerate(sizes):
        own = results[number * len(board.splits) : (number + 1) * len(board.splits)]
        scores = np.array([result.score for result in own if result is not None])
        if len(scores) == len(own):
            rows.append((size, scores.mean(), *score_interval(scores, board.test_ratio, len(y), board.scoring)))
    return np.array([*rows, (n_train, row.score, row.low, row.high)], dtype=np.float64)


def _subset(train: np.ndarray, labels: np.ndarray | None, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random subset of training samples, stratified by class, with at least one sample of each class."""
    order = rng.permutation(len(train))
    if labels is None:
        return train[np.sort(order[:size])]
    own = labels[train]
    chosen = []
    for value in np.unique(own):
        members = order[own[order] == value]
        chosen.append(members[: max(1, round(size * len(members) / len(train)))])
    return train[np.sort(np.concatenate(chosen))]

"""Examine held-out predictions: calibration, the coverage of prediction sets, the learning curve."""

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.compose import TransformedTargetRegressor

from ..evaluation._intervals import mean_interval, share_interval
from ..evaluation._wrappers import final_estimator, final_views, layers_of
from ..evaluation.external import binned, proportion, reliability
from ..evaluation.leaderboard import Comparison, Leaderboard
from ..views.container import Views
from ._findings import PredictionSets
from ._fold_fits import FoldFits
from ._scores import is_share

CURVE_SHARES = (0.1, 0.2, 0.4, 0.7)  # of the training part, along the learning curve
COVERAGE = 0.9  # of the prediction sets that are examined
SET_SAMPLES = 200  # of each fold: enough to see the coverage


def calibration_of(row: Comparison, y: np.ndarray, board: Leaderboard) -> np.ndarray:
    """Return bins of held-out predictions with what was observed, and their numbers of samples."""
    there = row.scored
    if board.task == "regression":
        return binned(row.predictions[there].astype(np.float64), y[there].astype(np.float64))
    if row.probabilities is None or board.classes is None:
        return np.zeros((0, 3))
    return reliability(row.probabilities[there], y[there], board.classes)


def held_out_sets(fits: FoldFits, row: Comparison) -> PredictionSets | None:
    """Return the coverage and sizes of prediction sets on held-out samples; None if the model has none."""
    regression = fits.board.task == "regression"
    method = "predict_interval" if regression else "predict_set"
    models = fits.models(row)
    wrapped = any(isinstance(layer, TransformedTargetRegressor) for layer in layers_of(models[0]))
    if wrapped or not hasattr(final_estimator(models[0]), method):
        return None
    y = fits.y
    covered, sizes = np.zeros(len(y), dtype=bool), np.full(len(y), np.nan)
    parts = [test[row.scored[test]][:SET_SAMPLES] for _, test in fits.board.splits]
    found = Parallel(n_jobs=fits.n_jobs)(
        delayed(_sets_of)(model, method, fits.views(row, test)) for model, test in zip(models, parts, strict=True)
    )
    for model, test, sets in zip(models, parts, found, strict=True):
        if regression:
            low, high = sets.T
            covered[test], sizes[test] = (low <= y[test]) & (y[test] <= high), high - low
        else:
            own = final_estimator(model).classes_ == y[test][:, None]
            covered[test], sizes[test] = (sets & own).any(axis=1), sets.sum(axis=1)
    there = ~np.isnan(sizes)
    return PredictionSets(COVERAGE, proportion(int(covered[there].sum()), int(there.sum())), sizes[there])


def _sets_of(model: Any, method: str, X: Views) -> np.ndarray:
    return np.asarray(getattr(final_estimator(model), method)(final_views(model, X), coverage=COVERAGE))


# -- learning curve
def learning_curve_of(fits: FoldFits, row: Comparison) -> np.ndarray:
    """Return test scores after fits on some of the training samples, and on all of them."""
    board = fits.board
    X, y, groups, weights, splits = fits.data(row)
    labels = None if board.task == "regression" else y
    n_train = len(splits[0][0])
    least = 10 if labels is None else 2 * len(np.unique(labels))  # fewer samples give no meaningful fit
    sizes = sorted({size for size in (int(share * n_train) for share in CURVE_SHARES) if size >= least})
    rng = np.random.default_rng(board.random_state)
    jobs = [
        (fits.estimator(row, k), X, y, groups, _subset(train, labels, size, rng), test, weights)
        for size in sizes
        for k, (train, test) in enumerate(splits)
    ]
    results, rows = fits.scores(jobs), []
    for number, size in enumerate(sizes):
        own = results[number * len(board.splits) : (number + 1) * len(board.splits)]
        scores = np.array([result.score for result in own if result is not None])
        if len(scores) == len(own) and np.isfinite(scores).all():
            rows.append((size, scores.mean(), *_curve_interval(scores, board, int(row.scored.sum()))))
    return np.array([*rows, (n_train, row.score, row.low, row.high)], dtype=np.float64)


def _curve_interval(scores: np.ndarray, board: Leaderboard, n_samples: int) -> tuple[float, float]:
    """Return the interval of a mean over folds; of shares at least Wilson's, since a few folds may agree by chance."""
    low, high = mean_interval(scores, board.test_ratio)
    if is_share(board.scoring):
        least, most = share_interval(float(np.clip(scores.mean(), 0.0, 1.0)), n_samples)
        low, high = max(min(low, least), 0.0), max(high, most)
    return low, min(high, 1.0) if is_share(board.scoring) or board.scoring == "r2" else high


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

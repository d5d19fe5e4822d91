"""Fits of compared estimators on the training parts of the folds, which several parts of a report need."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from ..evaluation._running import FoldResult, fit_part, run_fold
from ..evaluation.candidates import single_view, views_of
from ..evaluation.leaderboard import Comparison, Leaderboard
from ..views.container import Views


class FoldFits:
    """Fits of the compared estimators on the training parts, several at a time."""

    def __init__(self, board: Leaderboard, X: Views, y: np.ndarray, n_jobs: int | None):
        self.board, self.X, self.y, self.n_jobs = board, X, y, n_jobs
        self._models: dict[str, list[Any]] = {}

    def estimator(self, row: Comparison, fold: int) -> Any:
        """Return a clone of the estimator of a row with the parameters chosen in a fold."""
        return clone(self.board.estimators[row.name][0]).set_params(**row.best_params[fold])

    def models(self, row: Comparison) -> list[Any]:
        """Return the estimator of a row, fitted on each training part."""
        if row.name not in self._models:
            X, y, groups, weights, splits = self.data(row)
            self._models[row.name] = Parallel(n_jobs=self.n_jobs)(
                delayed(fit_part)(self.estimator(row, k), X, y, groups, train, weights)
                for k, (train, _) in enumerate(splits)
            )
        return self._models[row.name]

    def views(self, row: Comparison, rows: np.ndarray) -> Views:
        """Return some samples as the estimator of a row receives them: all views, or its single one."""
        return views_of(row.name, self.X[rows], self.board.prepare)

    def data(self, row: Comparison) -> tuple[Any, ...]:
        """Return samples, targets, groups, weights and splits for a row, of the samples that have its view."""
        view, board = single_view(row.name, self.X), self.board
        there = np.ones(len(self.X), dtype=bool) if view is None else self.X.present(view)
        kept, place = np.flatnonzero(there), np.cumsum(there) - 1
        splits = [tuple(place[part[there[part]]] for part in split) for split in board.splits]
        groups, weights = (None if part is None else part[kept] for part in (board.groups, board.sample_weight))
        return self.views(row, kept), self.y[kept], groups, weights, splits

    def scores(self, jobs: Sequence[tuple[Any, ...]]) -> list[FoldResult | None]:
        """Return results of jobs (estimator, X, y, groups, train, test, sample_weight); None for a fit that fails."""
        work = (delayed(run_fold)(estimator, self.board.scorer, *data) for estimator, *data in jobs)
        # a part may have too few samples, or samples of one class only
        return [None if isinstance(result, str) else result for result in Parallel(n_jobs=self.n_jobs)(work)]

"""Model selection where only some samples are labeled."""

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.multiclass import type_of_target

from ..views.validation import labeled_rows

__all__ = ["LabeledKFold"]


class LabeledKFold(BaseEstimator):
    """Folds of the labeled samples; the unlabeled ones are in every training set and in no test set.

    For ``cv=`` of scikit-learn's `GridSearchCV`, `cross_val_score` and the like, so that half-labeled data can be
    scored: a test fold has labels only, and a learner sees all unlabeled samples every time.

    Parameters
    ----------
    cv : int, splitter or iterable, default=5
        How the labeled samples are divided: the number of folds (with the classes' shares kept where y are classes), or
        any splitter of scikit-learn.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones (NaN, None, pd.NA).

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import LabeledKFold
    >>> y = np.array([0, 1, np.nan, 0, 1, np.nan])
    >>> for train, test in LabeledKFold(2).split(y, y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    def __init__(self, cv: Any = 5, *, unlabeled: Any = None):
        self.cv = cv
        self.unlabeled = unlabeled

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Give the positions of training and test samples, fold by fold.

        Parameters
        ----------
        X : object
            The samples; only their number matters.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or targets, missing for unlabeled samples.
        groups : array-like of shape (n_samples,), optional
            Groups that a splitter keeps together.

        Yields
        ------
        train, test : array of int
            Positions, ascending.
        """
        here, rest, known = self._read(X, y)
        parts = None if groups is None else np.asarray(groups)[here]
        for train, test in self._splitter(known).split(np.zeros((len(here), 1)), known, parts):
            yield np.sort(np.concatenate([here[train], rest])), here[test]

    def _read(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The labeled rows, the others, the labels."""
        if y is None:
            raise ValueError("LabeledKFold needs y, to know which samples have a label.")
        labeled, known = labeled_rows(y, self.unlabeled)
        if X is not None and X.shape[0] != len(labeled):
            raise ValueError(f"X has {X.shape[0]} samples, y has {len(labeled)}.")
        if not labeled.any():
            raise ValueError("y has no label at all: every value is missing. Give labels for some samples.")
        return np.flatnonzero(labeled), np.flatnonzero(~labeled), known

    def _splitter(self, known: np.ndarray) -> Any:
        """Folds with the classes' shares where y are classes: their commonest stands in every fold."""
        if not isinstance(self.cv, numbers.Integral):
            return check_cv(self.cv)
        classes = known.ndim == 1 and type_of_target(known) in ("binary", "multiclass")
        if classes and np.unique(known, return_counts=True)[1].max() >= self.cv:
            return StratifiedKFold(int(self.cv))
        return KFold(int(self.cv))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            As in `split`; some splitters need them.

        Returns
        -------
        int
            The number of folds.
        """
        if isinstance(self.cv, numbers.Integral):
            return int(self.cv)
        if y is None:
            return int(check_cv(self.cv).get_n_splits(X, None, groups))
        here, _, known = self._read(X, y)
        parts = None if groups is None else np.asarray(groups)[here]
        return int(check_cv(self.cv).get_n_splits(np.zeros((len(here), 1)), known, parts))

"""Model selection where only some samples are labeled."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv

from ._inputs import labeled_rows

__all__ = ["LabeledFolds"]


class LabeledFolds(BaseEstimator):
    """Folds of the labeled samples; the unlabeled ones are in every training set and in no test set.

    For ``cv=`` of scikit-learn's `GridSearchCV`, `cross_val_score` and the like, so that half-labeled data can be
    scored: a test fold has labels only, and a learner sees all unlabeled samples every time.

    Parameters
    ----------
    cv : int, splitter or iterable, default=5
        How the labeled samples are divided: the number of folds (with the classes' shares kept where y are classes or
        whole numbers), or any splitter of scikit-learn.
    unlabeled : object, optional
        A label that marks unlabeled samples, beside missing ones (NaN, None, pd.NA).

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import LabeledFolds
    >>> y = np.array([0, 1, np.nan, 0, 1, np.nan])
    >>> for train, test in LabeledFolds(2).split(y, y):
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
        labeled, known = labeled_rows(y, self.unlabeled)
        here, rest = np.flatnonzero(labeled), np.flatnonzero(~labeled)
        splitter = check_cv(self.cv, known, classifier=True)
        parts = None if groups is None else np.asarray(groups)[here]
        for train, test in splitter.split(np.zeros((len(here), 1)), known, parts):
            yield np.sort(np.concatenate([here[train], rest])), here[test]

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
        if y is None:
            return int(check_cv(self.cv).get_n_splits(X, None, groups))
        labeled, known = labeled_rows(y, self.unlabeled)
        parts = None if groups is None else np.asarray(groups)[labeled]
        return int(check_cv(self.cv, known, classifier=True).get_n_splits(np.zeros((len(known), 1)), known, parts))

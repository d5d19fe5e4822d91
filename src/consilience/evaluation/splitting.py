"""Cross-validation of data of which only some samples are labeled."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.multiclass import type_of_target

from ..views.validation import labeled_rows, read_groups

__all__ = ["LabeledKFold"]


class LabeledKFold(BaseEstimator):
    """Folds of the labeled samples; all unlabeled samples are in every training set and in no test set.

    Use it as ``cv=`` of scikit-learn's `GridSearchCV` or `cross_val_score` to score semi-supervised estimators. Every
    test sample has a label, and the estimator sees all unlabeled samples in each fold.

    Parameters
    ----------
    cv : int, splitter or iterable, default=5
        Folds of the labeled samples: their number, or any splitter of scikit-learn. With a number, the folds of class
        labels are stratified.
    unlabeled : object, optional
        Label that marks unlabeled samples, in addition to missing values (NaN, None, pd.NA).

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

    _parameter_constraints: dict[str, Any] = {"cv": ["cv_object"], "unlabeled": "no_validation"}

    def __init__(self, cv: Any = 5, *, unlabeled: Any = None):
        self.cv = cv
        self.unlabeled = unlabeled

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the positions of training and test samples, fold by fold.

        Parameters
        ----------
        X : object
            The samples. Only their number is used.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or targets, missing for unlabeled samples.
        groups : array-like of shape (n_samples,), optional
            Groups of samples for the splitter.

        Yields
        ------
        train, test : array of int
            Positions in ascending order.
        """
        self._validate_params()
        labeled, unlabeled, known = self._read(X, y)
        own_groups = None if groups is None else read_groups(groups, len(y))[labeled]
        for train, test in self._splitter(known).split(np.zeros((len(labeled), 1)), known, own_groups):
            yield np.sort(np.concatenate([labeled[train], unlabeled])), labeled[test]

    def _read(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Validate the labels; return the labeled samples, the unlabeled ones, and the known labels."""
        if y is None:
            raise ValueError("LabeledKFold needs y to know which samples are labeled.")
        labeled, known = labeled_rows(y, self.unlabeled)
        if X is not None and X.shape[0] != len(labeled):
            raise ValueError(f"X has {X.shape[0]} samples and y has {len(labeled)}; the numbers must be equal.")
        if not labeled.any():
            raise ValueError("y has no label: every value is missing. Give labels for some samples.")
        return np.flatnonzero(labeled), np.flatnonzero(~labeled), known

    def _splitter(self, known: np.ndarray) -> Any:
        """Return the splitter; it is stratified if y has classes and the most frequent class is in every fold."""
        if not isinstance(self.cv, Integral):
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
            Arguments of `split`, which some splitters need.

        Returns
        -------
        int
            The number of folds.
        """
        self._validate_params()
        if isinstance(self.cv, Integral):
            return int(self.cv)
        if y is None:
            return int(check_cv(self.cv).get_n_splits(X, None, groups))
        labeled, _, known = self._read(X, y)
        own_groups = None if groups is None else read_groups(groups, len(y))[labeled]
        return int(check_cv(self.cv).get_n_splits(np.zeros((len(labeled), 1)), known, own_groups))

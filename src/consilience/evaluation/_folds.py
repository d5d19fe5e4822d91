"""Targets, groups and folds of a comparison: validated, and split so that no group is in both parts of a fold."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from ..views.container import Views
from .candidates import task_of

Splits = tuple[tuple[np.ndarray, np.ndarray], ...]


def check_targets(X: Views, y: Any, task: str | None) -> tuple[np.ndarray, str]:
    """Validate the targets; return them and the task."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must have one target per sample; got the shape {y.shape}. Compare one column at a time.")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} samples and y has {len(y)}; the numbers must be equal.")
    missing = sum(value is None or value != value for value in y.tolist())  # NaN differs from itself
    if missing:
        raise ValueError(f"{missing} samples have no target. Remove them before the comparison.")
    types = sorted({type(value).__name__ for value in y.tolist()})
    if y.dtype == object and len(types) > 1:
        raise ValueError(f"y has values of several types ({', '.join(types)}). Convert all of them to strings.")
    inferred, task = task is None, task_of(y) if task is None else task
    if inferred and task == "classification" and y.dtype.kind in "iuf" and needs_task(len(np.unique(y)), len(y)):
        raise ValueError(
            f"y has {len(np.unique(y))} different whole numbers in {len(y)} samples. Set task='regression' if they are "
            "measurements, or task='classification' if each one is a class."
        )
    if task == "regression" and y.dtype.kind not in "biuf":
        raise ValueError(f"y must have numbers for task='regression'; got values of type {types[0]}.")
    if task == "classification":
        _check_classes(y)
    return y, task


def needs_task(n_values: int, n: int) -> bool:
    """Return whether whole numbers have so many values that they may be measurements."""
    return n_values > 20 or n_values > max(5, n / 5)


def _check_classes(y: np.ndarray) -> None:
    if task_of(y) == "regression":
        raise ValueError("y has values that are not integers. Use task='regression', or convert them to class labels.")
    if len(np.unique(y)) < 2:
        raise ValueError(f"All samples have the class '{y[0]}'. A comparison needs at least two classes.")


def outer_splits(
    cv: Any, y: np.ndarray, task: str, groups: np.ndarray | None, random_state: int
) -> tuple[Splits, list[str]]:
    """Return training and test samples of each outer split, and a sentence if there are fewer folds than asked for.

    A sample may be in several test parts, or in none.
    """
    notes = []
    if groups is not None and len(np.unique(groups)) < 2:
        raise ValueError(f"All samples are of the group '{groups[0]}'. Use at least two groups, or leave `groups` out.")
    if isinstance(cv, Integral):
        n_folds = int(cv) if groups is None else min(int(cv), len(np.unique(groups)))
        if n_folds < int(cv):
            notes.append(f"There are {n_folds} groups, so there are {n_folds} folds instead of {cv}.")
        _check_number_of_folds(n_folds, y, task)
        splitter = _splitter(n_folds, task, groups, random_state)
    else:
        splitter = check_cv(cv)
    splits = tuple(splitter.split(np.zeros((len(y), 1)), y, groups))  # splitters use only the number of samples
    splits = tuple((np.asarray(train), np.asarray(test)) for train, test in splits)
    if any(len(train) == 0 or len(test) == 0 for train, test in splits):
        raise ValueError(f"A split of `cv` has no training or no test sample; got {cv!r}. Use fewer folds.")
    shared = [np.intersect1d(train, test) for train, test in splits]
    if any(map(len, shared)):
        row = next(rows[0] for rows in shared if len(rows))
        raise ValueError(f"`cv` puts sample {row} into the training and the test part of one split; got {cv!r}.")
    if groups is not None:
        _check_groups_apart("cv", splits, groups)
    return splits, notes


def inner_splitter(
    inner_cv: Any, y: np.ndarray, task: str, groups: np.ndarray | None, random_state: int, splits: Splits
) -> tuple[Any, list[str]]:
    """Return the splitter of the search inside training parts, and a sentence if it does not keep groups together.

    A number of folds is reduced to what the training parts allow.
    """
    if not isinstance(inner_cv, Integral):
        splitter = check_cv(inner_cv)
        if groups is not None:
            for train, _ in splits:
                inside = splitter.split(np.zeros((len(train), 1)), y[train], groups[train])
                _check_groups_apart("inner_cv", inside, groups[train])
        return splitter, []
    units = y if task == "classification" else np.zeros(len(y))  # for regression, all samples count as one class
    fewest = min(int(np.unique(units[train], return_counts=True)[1].min()) for train, _ in splits)
    notes = []
    if groups is not None:
        n_groups = min(len(np.unique(groups[train])) for train, _ in splits)
        if n_groups < 2:
            groups = None
            notes = [
                "A training part has only one group, so the search for parameters splits it by samples. The scores are "
                "of other groups all the same."
            ]
        else:
            fewest = min(fewest, n_groups)
    return _splitter(max(2, min(int(inner_cv), fewest)), task, groups, random_state), notes


def _splitter(n_folds: int, task: str, groups: np.ndarray | None, random_state: int) -> Any:
    if groups is not None:  # without shuffling, these balance the sizes (and classes) of the folds
        return GroupKFold(n_folds) if task == "regression" else StratifiedGroupKFold(n_folds)
    kind = KFold if task == "regression" else StratifiedKFold
    return kind(n_folds, shuffle=True, random_state=random_state)


def _check_number_of_folds(cv: int, y: np.ndarray, task: str) -> None:
    """Validate that there are enough samples, and samples of each class, for this number of folds."""
    if task == "regression":
        if len(y) < 2 * cv:
            raise ValueError(
                f"There are {len(y)} samples, fewer than two for each of the {cv} folds. Use a smaller `cv`."
            )
        return
    values, counts = np.unique(y, return_counts=True)
    if counts.min() < cv:
        rarest = f"The class '{values[counts.argmin()]}' has {counts.min()} samples, fewer than the {cv} folds."
        numeric = "; or predict numbers by task='regression' (--task regression)" if y.dtype.kind in "iuf" else ""
        raise ValueError(f"{rarest} Use a smaller `cv`, or remove the class{numeric}.")


def _check_groups_apart(name: str, splits: Any, groups: np.ndarray) -> None:
    for train, test in splits:
        shared = np.intersect1d(groups[train], groups[test]).tolist()
        if shared:
            raise ValueError(
                f"`{name}` puts samples of group '{shared[0]}' into the training and the test part of one fold. Use "
                "a number of folds, or a splitter that keeps groups together, such as GroupKFold."
            )

"""What a stream is told before it is learned: predictions of every sample, with the truth beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["StreamPredictions"]


@dataclass(frozen=True)
class StreamPredictions:
    """Predictions of samples, each made before the sample was learned; see `predict_then_learn`.

    They are made by the hypothesis that `predict` uses: the mean of all so far with ``average=True``.

    Parameters
    ----------
    rows : array of int
        Positions of the samples that have a target, among those given.
    y : array of shape (n,) or (n, n_labels)
        Positions of the true classes in `classes`; the targets in regression; 0 and 1 by label for several labels.
    predicted : array of shape (n,) or (n, n_labels)
        Predictions of the same kind; -1 where no class led: before the first update, and where scores tie.
    classes : array, optional
        Classes or labels; None in regression.
    probabilities : array of shape (n, n_classes), optional
        Calibrated probabilities; 0 for classes that were not known yet. None in regression.
    view_margins : array of shape (n, n_views), optional
        Part of each view in the margin of the true class, NaN where the view is missing. None unless asked for.
    view_names : tuple of str
        Views of the columns of `view_margins`.
    sample_weight : array of shape (n,), optional
        Weights of the samples, where some were given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from consilience import OnlinePerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> made = OnlinePerceptron().predict_then_learn(X[::2], y[::2])
    >>> bool(made.n_errors == sum(made.predicted != made.y))
    True
    """

    rows: np.ndarray
    y: np.ndarray
    predicted: np.ndarray
    classes: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    view_margins: np.ndarray | None = None
    view_names: tuple[str, ...] = ()
    sample_weight: np.ndarray | None = None

    @property
    def n_errors(self) -> int:
        """Number of samples whose prediction is not the truth; meaningful for classes and labels."""
        different = self.predicted != self.y
        return int(np.count_nonzero(different.any(axis=1) if different.ndim == 2 else different))


def joined_predictions(
    parts: Sequence[StreamPredictions], classes: np.ndarray | None, names: tuple[str, ...]
) -> StreamPredictions:
    """Return the predictions of consecutive samples; classes and views may have joined between them."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return StreamPredictions(none, none, none, classes, None, None, names)
    if len(parts) == 1 and parts[0].view_names == names:
        return parts[0]
    return StreamPredictions(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([_recoded(part.y, part.classes, classes) for part in parts]),
        np.concatenate([_recoded(part.predicted, part.classes, classes) for part in parts]),
        classes,
        _stacked([(part.probabilities, part.classes) for part in parts], classes, 0.0),
        _stacked([(part.view_margins, part.view_names) for part in parts], names, np.nan),
        names,
        None if parts[0].sample_weight is None else np.concatenate([part.sample_weight for part in parts]),
    )


def _recoded(codes: np.ndarray, before: np.ndarray | None, classes: np.ndarray | None) -> np.ndarray:
    """Return positions among more classes than before, -1 stays; of labels a wider indicator."""
    if before is None or classes is None or len(before) == len(classes):
        return codes
    if codes.ndim == 2:
        wide = np.zeros((len(codes), len(classes)), dtype=codes.dtype)
        wide[:, np.searchsorted(classes, before)] = codes
        return wide
    return np.append(np.searchsorted(classes, before), -1)[codes]


def _stacked(parts: Sequence[tuple[Any, Any]], names: Any, fill: float) -> np.ndarray | None:
    """Return arrays one below the other, their columns by name; `fill` where an array lacks a column."""
    if any(values is None for values, _ in parts):
        return None
    place = {name: k for k, name in enumerate(np.asarray(names, dtype=object).tolist())}
    out = np.full((sum(len(values) for values, _ in parts), len(place)), fill)
    at = 0
    for values, own in parts:
        columns = [place[name] for name in np.asarray(own, dtype=object).tolist()]
        out[at : at + len(values), columns] = values
        at += len(values)
    return out

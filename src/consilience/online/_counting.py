"""Counts of online estimators: samples, mistakes of the last hypothesis, wrong predictions, losses, their curves."""

from typing import Any

import numpy as np


def begin_counts(estimator: Any) -> None:
    """Set the counts of mistakes and errors to 0."""
    estimator.n_mistakes_ = estimator.n_errors_ = 0
    estimator._curve = np.zeros((0, 2), dtype=np.int64)


def count(estimator: Any, wrong: np.ndarray, errors: np.ndarray) -> None:
    """Count samples, mistakes of the last hypothesis and wrong predictions, and add to the error curve."""
    first, mistaken = estimator.n_samples_seen_, np.flatnonzero(errors)
    kept = curve_marks(first, first + len(wrong))
    total = estimator.n_errors_ + np.searchsorted(mistaken, kept - first)  # errors before each mark
    estimator._curve = np.concatenate([estimator._curve, np.column_stack([kept, total])])
    estimator.n_samples_seen_ += len(wrong)
    estimator.n_mistakes_ += int(np.count_nonzero(wrong))
    estimator.n_errors_ += len(mistaken)


def count_one(estimator: Any, wrong: bool, error: bool) -> None:
    """Count one sample."""
    estimator.n_samples_seen_ += 1
    estimator.n_mistakes_ += wrong
    estimator.n_errors_ += error
    if _is_mark(estimator.n_samples_seen_):
        estimator._curve = np.concatenate([estimator._curve, [[estimator.n_samples_seen_, estimator.n_errors_]]])


def begin_losses(estimator: Any) -> None:
    """Set the sums of losses to 0: of the last hypotheses, and of predictions."""
    estimator.total_loss_ = estimator._predicted_loss = 0.0
    estimator._curve = np.zeros((0, 2))


def count_losses(estimator: Any, last: np.ndarray, predicted: np.ndarray) -> None:
    """Count samples, add up losses of the last hypotheses and of predictions, and add to the loss curve."""
    first, sums = estimator.n_samples_seen_, _added_in_turn(estimator._predicted_loss, predicted)
    kept = curve_marks(first, first + len(last))
    estimator._curve = np.concatenate([estimator._curve, np.column_stack([kept, sums[kept - first - 1]])])
    estimator.n_samples_seen_ += len(last)
    estimator.total_loss_ = float(_added_in_turn(estimator.total_loss_, last)[-1])
    estimator._predicted_loss = float(sums[-1])


def _added_in_turn(start: float, values: np.ndarray) -> np.ndarray:
    """Return the sums after each value, added one by one, so that chunks of any size have the same bits."""
    return np.cumsum(np.concatenate([[start], values]))[1:]


def count_one_loss(estimator: Any, last: float, predicted: float) -> None:
    """Count one sample, and add up its losses."""
    estimator.n_samples_seen_ += 1
    estimator.total_loss_ += last
    estimator._predicted_loss += predicted
    if _is_mark(estimator.n_samples_seen_):
        mark = [[estimator.n_samples_seen_, estimator._predicted_loss]]
        estimator._curve = np.concatenate([estimator._curve, mark])


def _is_mark(n: int) -> bool:
    """Return whether a count is among `curve_marks`."""
    return n % (1 << max(n.bit_length() - 8, 0)) == 0


def curve_marks(first: int, last: int) -> np.ndarray:
    """Return the counts in (first, last] that the error curve keeps: about 128 for each doubling."""
    marks = []
    for octave in range(int(first + 1).bit_length() - 1, int(last).bit_length()):
        spacing = 1 << max(octave - 7, 0)  # 128 marks in each octave
        low, high = max(first + 1, 1 << octave), min(last, (2 << octave) - 1)
        # multiples of the spacing, from the first at or above low
        marks.append(np.arange(-(-low // spacing) * spacing, high + 1, spacing))
    return np.concatenate(marks)

"""Counts of online estimators: samples, mistakes of the last hypothesis, wrong predictions, the error curve."""

from typing import Any

import numpy as np


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
    # the counts of `curve_marks`
    if estimator.n_samples_seen_ % (1 << max(estimator.n_samples_seen_.bit_length() - 8, 0)) == 0:
        estimator._curve = np.concatenate([estimator._curve, [[estimator.n_samples_seen_, estimator.n_errors_]]])


def curve_marks(first: int, last: int) -> np.ndarray:
    """Return the counts in (first, last] that the error curve keeps: about 128 for each doubling."""
    marks = []
    for octave in range(int(first + 1).bit_length() - 1, int(last).bit_length()):
        spacing = 1 << max(octave - 7, 0)  # 128 marks in each octave
        low, high = max(first + 1, 1 << octave), min(last, (2 << octave) - 1)
        # multiples of the spacing, from the first at or above low
        marks.append(np.arange(-(-low // spacing) * spacing, high + 1, spacing))
    return np.concatenate(marks)

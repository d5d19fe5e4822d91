"""Passes of online estimators until one is without a mistake."""

from typing import Any

import numpy as np


def passes(model: Any, X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Learn until a pass without a mistake, or `most` passes; return the number of mistakes of each pass."""
    mistakes: list[int] = []
    while len(mistakes) < most and (not mistakes or mistakes[-1]):
        before = sum(mistakes)
        mistakes.append(model.partial_fit(X, y).n_mistakes_ - before)
    return np.array(mistakes)

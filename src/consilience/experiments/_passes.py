"""Passes of online estimators over samples whose classes are known before the first one, as in the papers."""

from typing import Any

import numpy as np


def one_pass(model: Any, X: Any, y: np.ndarray) -> float:
    """Learn all samples in one pass; return the share of mistakes on the way, in percent."""
    model.partial_fit(X, y, classes=np.unique(y))
    return 100 * model.n_mistakes_ / model.n_samples_seen_


def passes(model: Any, X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Learn until a pass without a mistake, or `most` passes; return the number of mistakes of each pass."""
    mistakes: list[int] = []
    while len(mistakes) < most and (not mistakes or mistakes[-1]):
        model.partial_fit(X, y, classes=np.unique(y))
        mistakes.append(model.n_mistakes_ - sum(mistakes))
    return np.array(mistakes)

"""Single missing values (NaN) in the numbers of a view, filled with the means of their columns."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import is_device_array
from .container import Views


def fill_gaps(estimator: Any, X: Views, *, fitting: bool) -> Views:
    """Return samples in which NaN are replaced by the means of their columns among the training samples.

    At fit the means, and how many values were replaced in each view (``n_filled_``), are stored on the estimator.
    """
    if fitting:
        estimator._fill_values, estimator.n_filled_ = {}, {}
    blocks = {}
    for name in X.names:
        block = X.block(name)
        if X.kind(name) not in ("dense", "sparse") or is_device_array(block):
            continue
        values = block.data if sp.issparse(block) else block
        present = X.present(name)
        if np.isfinite(values.sum(dtype=np.float64)):  # without rows of missing views, no NaN at all
            gaps = None
        else:
            gaps = np.isnan(values) if sp.issparse(block) else np.isnan(values) & present[:, None]
        if fitting:
            estimator._fill_values[name] = _column_means_of_known(block, gaps, present)
            estimator.n_filled_[name] = 0 if gaps is None else int(gaps.sum())
        if gaps is not None and gaps.any():
            blocks[name] = _filled(block, gaps, estimator._fill_values[name])
    return X._with({**{name: X.block(name) for name in X.names}, **blocks}, X.mask) if blocks else X


def _column_means_of_known(block: Any, gaps: Any, present: np.ndarray) -> np.ndarray:
    """Return the mean of each column over the values that are known; 0 where none is."""
    if sp.issparse(block):
        known = block.copy()
        if gaps is not None:
            known.data = np.where(gaps, 0.0, known.data)
        unknown = np.bincount(block.indices, weights=gaps, minlength=block.shape[1]) if gaps is not None else 0
        n = np.maximum(present.sum() - unknown, 1)
        return np.asarray(known.sum(axis=0)).ravel() / n
    there = block[present] if not present.all() else block
    if gaps is None:
        return np.asarray(there.mean(axis=0, dtype=np.float64)) if len(there) else np.zeros(block.shape[1])
    known = ~(gaps[present] if not present.all() else gaps)
    return np.asarray(np.where(known, there, 0.0).sum(axis=0, dtype=np.float64) / np.maximum(known.sum(axis=0), 1))


def _filled(block: Any, gaps: np.ndarray, means: np.ndarray) -> Any:
    if sp.issparse(block):
        block = block.copy()
        block.data[gaps] = means[block.indices[gaps]]
        return block
    return np.where(gaps, means.astype(block.dtype), block)

"""Single missing values (NaN) in the numbers of a view, filled with the means of their columns."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import cast, is_device_array, like, namespace, to_numpy
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
        if X.kind(name) not in ("dense", "sparse"):
            continue
        values, xp = (block.data, np) if sp.issparse(block) else (block, namespace(block))
        present = X.present(name)
        if bool(xp.isfinite(xp.sum(values, dtype=xp.float64))):  # without rows of missing views, no NaN at all
            gaps = None
        else:
            gaps = xp.isnan(values) if sp.issparse(block) else xp.isnan(values) & like(present[:, None], block)
        count = 0 if gaps is None else int(xp.sum(xp.astype(gaps, xp.int64)))
        if fitting:
            means = _device_means if is_device_array(block) else _column_means_of_known
            estimator._fill_values[name] = means(block, gaps, present)
            estimator.n_filled_[name] = count
        if count:
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


def _device_means(block: Any, gaps: Any, present: np.ndarray) -> np.ndarray:
    """Return the same means of a view on a device; they are NumPy's."""
    xp = namespace(block)
    known = like(present[:, None], block) if gaps is None else like(present[:, None], block) & ~gaps
    known = xp.broadcast_to(known, block.shape)
    total = to_numpy(xp.sum(xp.where(known, block, xp.zeros_like(block)), axis=0, dtype=xp.float64))
    return np.asarray(total / np.maximum(to_numpy(xp.sum(xp.astype(known, xp.int64), axis=0)), 1))


def _filled(block: Any, gaps: Any, means: np.ndarray) -> Any:
    if sp.issparse(block):
        block = block.copy()
        block.data[gaps] = means[block.indices[gaps]]
        return block
    if is_device_array(block):
        return namespace(block).where(gaps, cast(like(means[None, :], block), block.dtype), block)
    return np.where(gaps, means.astype(block.dtype), block)

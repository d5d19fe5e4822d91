"""Blocks of rows for estimators whose fit needs all samples: they are collected in memory, as far as they fit."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from .._backend import check_memory, memory_of, to_numpy
from ..views.container import Views
from ..views.partitions import is_dask
from ..views.row_blocks import RowBlocks

_COPIES = 3  # the blocks, the whole that is made of them, and its rows in the order of the solver


def collect_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the samples, targets and weights of all blocks or partitions; refuse what does not fit into memory.

    The number of bytes is checked while they are read, so that no pass ends out of memory. Samples that are in memory
    are returned as they are.
    """
    if is_dask(X):
        X, y, sample_weight = RowBlocks.of(X, y, sample_weight, views=getattr(estimator, "views", None)), None, None
    if not isinstance(X, RowBlocks):
        return X, y, sample_weight
    blocks = X
    if y is not None or sample_weight is not None:
        raise ValueError("RowBlocks have targets and weights in their blocks. Leave `y` and `sample_weight` out.")
    other = "CoRegularizedRidgeClassifier" if is_classifier(estimator) else "CoRegularizedRidge"
    parts, size, n = [], 0.0, 0
    for block in blocks:
        if block.y is None:
            raise ValueError(
                f"{type(estimator).__name__} needs targets, and {blocks.name} have none. Let blocks be (X, y), or give "
                "`target=` to read_blocks."
            )
        parts.append(block)
        size, n = size + sum(_bytes(block.X.block(name)) for name in block.X.names), n + len(block.X)
        total = size * max((blocks.n_samples or n) / n, 1)
        with memory_of(*(block.X.block(name) for name in block.X.names)):
            check_memory(
                _COPIES * total,
                f"{type(estimator).__name__}, which holds all samples in memory,",
                "Give fewer samples, or use an estimator that keeps sums over samples, such as "
                f"{other}(n_components=300).",
            )
    weights = [to_numpy(part.sample_weight) for part in parts if part.sample_weight is not None]
    whole = Views.concat([part.X for part in parts])
    return whole, np.concatenate([to_numpy(part.y) for part in parts]), np.concatenate(weights) if weights else None


def _bytes(block: Any) -> float:
    """Return the memory of a view's block; strings and other objects count as 100 bytes each."""
    if block is None:
        return 0.0
    if sp.issparse(block):
        return float(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
    if isinstance(block, np.ndarray) and block.dtype == object:
        return 100.0 * len(block)
    return 8.0 * float(np.prod(block.shape))

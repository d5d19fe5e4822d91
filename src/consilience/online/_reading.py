"""Samples to learn: validated, prepared, and divided from those without a target or a weight."""

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from ..kernels.by_view import kernel_of
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.partitions import cut_values
from ..views.per_view import as_preparation
from ..views.validation import check_numbers, read_views_to_learn, read_views_to_predict, read_weights
from ._labels import targets_for
from ._stream import check_kernel
from ._targets import Chunk


class Reading(NamedTuple):
    """Samples that were read, before the estimator has changed."""

    X: Views  # all samples, as they were given
    rows: np.ndarray  # positions of those to learn
    chunk: Chunk  # those to learn, prepared; their names are positions among them
    prepared: Any  # the preparation after these samples
    given: Any  # what the targets of an estimator that starts are known to be; None: nothing to learn from yet


def read_chunk(estimator: Any, X: Any, y: Any, sample_weight: Any, classes: Any) -> Reading:
    """Return the next samples of a stream.

    The statistics of a preparation follow every sample, also without a target and before the first one. They do so on
    a copy: a chunk that is refused later changes nothing.
    """
    fresh = not hasattr(estimator, "n_samples_seen_")
    given_views = read_views_to_learn(estimator, X, fresh, sample_weight=sample_weight)
    X, y, weights, rows = _counted(given_views, y, sample_weight, required=False)
    before = vars(estimator).get("preparation_")
    if not len(rows):
        return Reading(given_views, rows, Chunk(X, rows, weights, rows), before, None)
    kind = targets_for(estimator, y) if fresh else estimator._targets
    labeled, targets, given = kind.read(estimator, X, y, classes, fresh)
    prepared = as_preparation(estimator.prepare) if before is None else deepcopy(before)
    ready = X if prepared is None else check_numbers(prepared.learn_transform(X))
    if given is not None:
        estimator._check_views(ready, whole=False)
    chunk = _labeled(ready, labeled, targets, weights)
    return Reading(given_views, rows[labeled], chunk, prepared, given)


def read_whole(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Reading:
    """Return all samples of `fit`; the statistics of a preparation are those of all of them."""
    given_views = read_views_to_learn(estimator, X, fresh=True, grams=True, sample_weight=sample_weight)
    X, y, weights, rows = _counted(given_views, y, sample_weight, required=True)
    labeled, targets, given = targets_for(estimator, y).read_all(X, y)
    prepared = as_preparation(estimator.prepare)
    ready = X if prepared is None else check_numbers(prepared.partial_fit(X).transform(X))
    return Reading(given_views, rows[labeled], _labeled(ready, labeled, targets, weights), prepared, given)


def _counted(X: Views, y: Any, sample_weight: Any, required: bool) -> tuple[Views, Any, np.ndarray, np.ndarray]:
    """Return the samples of a weight above 0, their targets and weights, and their positions; others are absent."""
    weights = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(X), required=required)
    rows, y = np.flatnonzero(weights), in_order_of(X, y, "y")
    y = y if y is None or hasattr(y, "__len__") else np.asarray(y)
    if len(rows) == len(X) or y is None or (y.shape[0] if hasattr(y, "shape") else len(y)) != len(X):
        return X, y, weights, np.arange(len(X))  # targets of another number are refused later
    return X[rows], cut_values(y.to_pylist() if hasattr(y, "to_pylist") else y, rows), weights[rows], rows


def _labeled(X: Views, labeled: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Chunk:
    rows = np.flatnonzero(labeled)
    return Chunk(X if len(rows) in (0, len(X)) else X[rows], targets, weights[rows], np.arange(len(rows)))


def read_learned(estimator: Any, X: Any, y: Any) -> tuple[Views, np.ndarray]:
    """Return samples that were learned, as they were prepared then, and their targets as lessons have them."""
    X = read_views_to_predict(estimator, X)
    labeled, targets = estimator._targets.read_known(estimator, X, y)
    prepared = as_preparation(estimator.prepare)
    if prepared is not None:
        whole = hasattr(estimator, "converged_")  # `fit` prepares with the statistics of all samples
        X = estimator.preparation_.transform(X) if whole else prepared.learn_transform(X)
    return X[np.flatnonzero(labeled)], targets


def check_views(estimator: Any, X: Views, whole: bool) -> None:
    """Validate views before anything changes; `whole` if these are all samples there are."""
    primal = estimator._is_primal()
    for name in X.names:
        if X.block(name) is None or not X.present(name).any():
            continue
        plain = X.kind(name) in ("dense", "sparse")
        if not whole and plain and estimator._view_is_gram(name):
            raise ValueError(
                f"View '{name}' must be a Gram matrix, and a stream needs kernels between samples of all chunks. "
                f"Give rows of Views(..., precomputed='{name}'), or all samples at once to `fit`."
            )
        if primal and not plain:
            raise ValueError(
                f"View '{name}' holds {X.kind(name)}; {type(estimator).__name__} is linear here and needs numbers. "
                f"Hash it by prepare={{'{name}': 'hash'}}, give a kernel, or use KernelPerceptron."
            )
        if not primal and not whole:
            check_kernel(kernel_of(getattr(estimator, "kernel", "linear"), name), name, X)

"""What banded ridge reads and prepares: targets of many outputs, folds, and kernels of one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, check_cv

from .._backend import check_memory, is_device_array, like, namespace, take_rows, to_numpy
from ..kernels import present_grams
from ..solvers.banded_ridge import Fold
from ..solvers.held_out_errors import MEMORY
from ..views import _blocks
from ..views.container import Views
from ..views.validation import read_targets
from ._fit import TrainingData, gram_design


def output_moments(Y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return number, weight, mean and weighted sum of squares around the mean of the known targets of each output."""
    P = Y.shape[1]
    counts, totals, means, variation = (np.zeros(P) for _ in range(4))
    for start in range(0, P, 1024):
        own = slice(start, start + 1024)
        known = ~np.isnan(Y[:, own])
        values, u = np.where(known, Y[:, own], 0.0), s[:, None] * known
        counts[own], totals[own] = known.sum(axis=0), u.sum(axis=0)
        means[own] = (u * values).sum(axis=0) / np.where(totals[own] > 0, totals[own], 1.0)
        variation[own] = (u * (values - means[own]) ** 2).sum(axis=0)
    return counts, totals, means, variation


# -- reading
def checked_alphas(given: Any) -> np.ndarray:
    try:
        alphas = np.unique(np.asarray(given, dtype=np.float64).ravel())
    except (TypeError, ValueError) as error:
        raise ValueError(f"`alphas` must be numbers above 0; got {given!r}.") from error
    if not len(alphas):
        raise ValueError("`alphas` must not be empty.")
    if not (np.isfinite(alphas) & (alphas > 0)).all():
        wrong = alphas[~(np.isfinite(alphas) & (alphas > 0))][0]
        raise ValueError(f"`alphas` must be numbers above 0; got {wrong!r}.")
    return alphas


def read_many_outputs(y: Any, n: int, s: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return targets as (n, P) and which samples have some; floating point arrays are not copied."""
    if isinstance(y, np.ndarray) and y.dtype in (np.float32, np.float64) and y.ndim == 2 and y.shape[1] > 64:
        labeled = np.zeros(n, dtype=bool)
        if len(y) == n:
            for start in range(0, y.shape[1], 1024):
                labeled |= _labeled_rows(y[:, start : start + 1024], n, s)
            if labeled.any():
                return y, labeled
    return read_targets(y, n, partial=True, weights=s)


def _labeled_rows(y: np.ndarray, n: int, s: np.ndarray | None) -> np.ndarray:
    """Validate some columns of the targets; return which samples have one of them."""
    missing = np.isnan(y).all(axis=1)
    if missing.all():
        return ~missing
    return read_targets(y, n, partial=True, weights=s)[1]


def held_out_folds(estimator: Any, data: TrainingData, groups: np.ndarray | None) -> list[Fold] | None:
    """Return the folds as positions of rows; None for leave-one-out."""
    cv, n = estimator.cv, len(data.order)
    if cv is None:
        if groups is None:
            return None
        cv = LeaveOneGroupOut()
    elif isinstance(cv, Integral) and groups is not None:
        cv = GroupKFold(int(cv))
    splitter = check_cv(cv)
    folds = [
        (np.sort(np.asarray(train)), np.sort(np.asarray(test)))
        for train, test in splitter.split(np.zeros((n, 1)), data.Y[:, 0], groups)
    ]
    for train, test in folds:
        if len(train) < 2 or not len(test) or len(np.intersect1d(train, test)):
            raise ValueError(
                f"{type(estimator).__name__}: a fold of `cv` must train on 2 samples at least and test others; one "
                f"trains on {len(train)} and tests {len(test)} samples, {len(np.intersect1d(train, test))} of them the "
                "same. Use another splitter or fewer folds."
            )
    return folds


# -- kernels
@dataclass
class KernelScaling:
    """What makes the standard kernels of the views from those as given."""

    scales: np.ndarray  # (m,): means of k(x, x) after centering
    shares: np.ndarray  # (m, n): weights of the samples in the means, 0 where a view is missing
    means: np.ndarray  # (m, n): means of k(x_j, x_i) over the samples j


def is_single_precision(X: Views) -> bool:
    return all(_blocks.is_single(X.block(name)) for name in X.names)


def standard_grams(data: TrainingData) -> tuple[list[Any], KernelScaling]:
    """Return the kernel matrices of all views, centered and scaled; 0 where a view is missing."""
    X, n, m = data.X, len(data.order), len(data.X.names)
    dtype = np.float32 if is_single_precision(X) else np.float64
    size = np.dtype(dtype).itemsize
    check_memory(
        size * (n * n * (m + 6.0) + n * data.Y.shape[1]) + 2 * MEMORY,
        f"Banded ridge with {n:,} samples, {m} views and {data.Y.shape[1]:,} outputs",
        "Give float32 data, fit on fewer samples, or use CoRegularizedRidge with `n_components`.",
    )
    if any(is_device_array(X.block(name)) for name in X.names):
        given: Sequence[Any] = present_grams(data.kernels, X, validated=True)
    else:
        given = gram_design(data, dtype).grams
    scaling = KernelScaling(np.ones(m), np.zeros((m, n), dtype=dtype), np.zeros((m, n), dtype=dtype))
    grams = []
    for v, (name, K) in enumerate(zip(X.names, given, strict=True)):
        rows = np.flatnonzero(X.present(name))
        share = data.s[rows] / data.s[rows].sum()
        column = like(share[:, None].astype(dtype), K)
        means = K @ column
        before = _mean_diagonal(K, share)
        K = K - means
        K -= means.T - (means.T @ column)
        scale = _mean_diagonal(K, share)
        if scale > 100 * np.finfo(dtype).eps * abs(before):
            K *= 1 / scale
        else:
            K *= 0  # the view is constant
            scale = 1.0
        scaling.scales[v], scaling.shares[v, rows] = scale, share
        scaling.means[v, rows] = to_numpy(means)[:, 0]
        grams.append(K if len(rows) == n else _padded(K, rows, n))
    return grams, scaling


def _mean_diagonal(K: Any, share: np.ndarray) -> float:
    """Return the weighted mean of k(x, x)."""
    diagonal = to_numpy(namespace(K).linalg.diagonal(K)) if is_device_array(K) else K.diagonal()
    return float(share @ diagonal.astype(np.float64))


def _padded(K: Any, rows: np.ndarray, n: int) -> Any:
    """Return the matrix of some rows as a part of the matrix of all, which is 0 elsewhere."""
    place = np.full(n, len(rows))
    place[rows] = np.arange(len(rows))
    xp = namespace(K)
    kind = {"device": K.device} if is_device_array(K) else {}
    wide = xp.concat([K, xp.zeros((len(rows), 1), dtype=K.dtype, **kind)], axis=1)
    wide = xp.concat([wide, xp.zeros((1, len(rows) + 1), dtype=K.dtype, **kind)], axis=0)
    return xp.take(take_rows(wide, place), like(place, K), axis=1)

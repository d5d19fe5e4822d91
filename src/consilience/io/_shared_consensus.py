"""A consensus without training samples: its base models are written as functions of averages of similar samples.

All base models of a view use the same averages. A base model of several views needs samples that have them all, so
these samples are averaged jointly: a group of samples has one average in each of its views. No sample is in two
averages of one view, so that differences between averages do not single it out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from ..batch._consensus import BaseModel
from ..batch._consensus_fit import pattern_key
from ..batch._stack import Expert, Stack, expert
from ..kernels import Kernel
from ..kernels.normalization import Normalized, Standardized, column_scales
from ..solvers.certificates import Solution
from ..solvers.linalg import column_norms, multiply
from ..views import _blocks
from ..views.container import Views
from ..views.estimator import presence
from ._averages import average_views, check_coefficients, check_view, fit_functions, group_size, is_linear

_MOST_VIEWS = 8  # up to which the weights of all 2^m - 1 patterns of views are kept
_OF_SAMPLES = ("X_fit_", "loo_predictions_", "loo_probabilities_")

AverageRows = Mapping[str, Any]  # rows of some views, the same number of each


def share_consensus(estimator: Any, least: int) -> dict[str, int]:
    """Replace the training samples of a consensus; return the number of averages by view.

    Parameters
    ----------
    estimator : ConsensusClassifier or ConsensusRegressor
        A fitted estimator, which is changed.
    least : int
        Smallest number of samples in an average.
    """
    X: Views = estimator.X_fit_
    old: list[BaseModel] = estimator._models
    for model in old:
        for name, kernel in zip(model.views, model.kernels, strict=True):
            check_view(name, kernel, _numbers(X, name, X.present(name)), least)
    whole, experts = _without_samples(estimator._whole), _experts(estimator._stack)
    weighted = np.any([own.weights.any(axis=1) for own in (whole, *experts.values())], axis=0)
    linear, others = {}, []
    for k in np.flatnonzero(weighted).tolist():
        check_coefficients(
            f"the base model '{old[k].label}' of {_views_text(old[k].views)}", old[k].coefficients, least
        )
        function = _linear_function(old[k], X)
        if function is None:
            others.append(k)
        else:
            linear[k] = function
    averages = _averages(X, {old[k].views for k in others}, least)
    parts = [*averages, *({old[k].views[0]: z} for k, (z, _) in linear.items())]
    stored, starts = _stacked(X, parts)
    models = [replace(model, rows=np.arange(0), coefficients=model.coefficients[:0]) for model in old]
    for k, start in zip(linear, starts[len(averages) :], strict=True):
        z, B = linear[k]
        models[k] = replace(old[k], rows=start + np.arange(z.shape[0]), coefficients=B)
    n_averages = sum(map(_length, averages))
    for k in others:
        models[k] = _projected(old[k], X, stored, n_averages, least)
    for name in _OF_SAMPLES:
        vars(estimator).pop(name, None)
    estimator._models, estimator._averages = models, stored
    estimator._whole, estimator._experts, estimator._stack = whole, experts, _without_rows(estimator._stack)
    estimator.solution_ = Solution(x=None, gap=None, n_iter=estimator.solution_.n_iter, status="shared")
    return {name: int(stored.present(name)[:n_averages].sum()) for name in stored.names}


def _views_text(views: Sequence[str]) -> str:
    return f"the view{'s' * (len(views) > 1)} {_blocks.quoted(views)}"


def _numbers(X: Views, name: str, rows: np.ndarray) -> Any:
    """Return rows of a view, given by positions or booleans, on the host."""
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    block = _blocks.take(X.block(name), rows)
    return block if _blocks.kind(block) != "dense" else np.asarray(to_numpy(block))


def _length(rows: AverageRows) -> int:
    return int(next(iter(rows.values())).shape[0])


# -- weights by pattern of views
def _experts(stack: Stack) -> dict[str, Expert]:
    """Return what is known of samples by the views that they have, for all patterns but that of all views."""
    m = stack.needs.shape[1]
    if m <= _MOST_VIEWS:
        patterns = np.array(list(product([False, True], repeat=m)))[1:]
    else:
        patterns = np.unique(np.vstack([stack.present, np.eye(m, dtype=bool)]), axis=0)
    return {pattern_key(own): _without_samples(expert(stack, own)) for own in patterns if not own.all()}


def _without_samples(own: Expert) -> Expert:
    return replace(own, rows=np.arange(0), held=own.held[:0])


def _without_rows(stack: Stack) -> Stack:
    """Return what a stack says of the base models and the targets' units, without any sample."""
    codes = None if stack.codes is None else stack.codes[:0]
    nothing = {name: getattr(stack, name)[:0] for name in ("T", "means", "u", "present", "parts")}
    return replace(stack, Z=stack.Z[:, :0], codes=codes, **nothing)


# -- averages
def _averages(X: Views, needed: Collection[tuple[str, ...]], least: int) -> list[AverageRows]:
    """Return averages of samples, jointly for sets of views, so that models of the needed sets have some.

    Sets of many views come first. Each takes the samples that have its views and are not yet in an average of any.
    """
    left = {name: X.present(name).copy() for name in X.names}
    found: list[AverageRows] = []
    for views in sorted({*_joined(X, needed), *needed}, key=lambda views: (-len(views), views)):
        rows = np.flatnonzero(np.all([left[name] for name in views], axis=0))
        if len(rows) < least:
            continue
        blocks = {name: _numbers(X, name, rows) for name in views}
        means = average_views(blocks, _positions(blocks), group_size(len(rows), least))
        if means is not None:
            found.append(means)
            for name in views:
                left[name][rows] = False
    return found


def _joined(X: Views, needed: Collection[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return unions of needed sets of views that overlap, among those that samples of one pattern have."""
    found: set[tuple[str, ...]] = set()
    for pattern in np.unique(presence(X), axis=0):
        there = {name for name, own in zip(X.names, pattern, strict=True) if own}
        unions: list[set[str]] = []
        for views in map(set, needed):
            if views <= there:
                apart = [own for own in unions if not own & views]
                unions = [*apart, views.union(*(own for own in unions if own & views))]
        found |= {tuple(name for name in X.names if name in own) for own in unions}
    return found


def _positions(blocks: AverageRows) -> Any:
    """Return the columns of all views side by side, scaled so that views count equally."""
    scaled = []
    for block in blocks.values():
        if sp.issparse(block):
            size = float(np.sqrt(block.multiply(block).sum() / max(block.shape[0], 1)))
            scaled.append(sp.csr_array(block * (1.0 / size if size > 0 else 1.0)))
        else:
            shift, scale, _ = column_scales(block)
            scaled.append((block - shift) / scale / np.sqrt(block.shape[1]))
    if len(scaled) == 1:
        return scaled[0]
    return sp.csr_array(sp.hstack(scaled)) if any(map(sp.issparse, scaled)) else np.hstack(scaled)


def _stacked(X: Views, parts: Sequence[AverageRows]) -> tuple[Views, list[int]]:
    """Return all rows as views, which a row of other views lacks, and where each part starts."""
    ends = np.cumsum([0, *map(_length, parts)]).tolist()
    blocks, mask = {}, np.zeros((ends[-1], len(X.names)), dtype=bool)
    for v, name in enumerate(X.names):
        own = [(rows[name], start) for rows, start in zip(parts, ends, strict=False) if name in rows]
        block = X.block(name)[:0]
        if own:
            join = sp.vstack if sp.issparse(block) else np.vstack
            block = join([sp.csr_array(z) if sp.issparse(block) else z for z, _ in own])
        places = [start + np.arange(z.shape[0]) for z, start in own]
        rows = np.concatenate([np.arange(0), *places])
        mask[rows, v] = True
        blocks[name] = _blocks.place_rows(sp.csr_array(block) if sp.issparse(block) else block, rows, ends[-1])
    return Views._of(blocks, ends[-1], mask, X.feature_names, None), ends[:-1]


# -- functions of base models
def _projected(model: BaseModel, X: Views, stored: Views, n_averages: int, least: int) -> BaseModel:
    """Return a base model as a function of the averages that have its views, near to it at the training samples."""
    rows = np.flatnonzero(np.all([stored.present(name)[:n_averages] for name in model.views], axis=0))
    if not len(rows):
        raise ValueError(
            f"Not shared: no group of {least} training samples has an average in {_views_text(model.views)}, which "
            f"{model.label!r} needs. Give more samples that have these views, or leave one of the views out."
        )
    outputs = multiply(model.gram(X, model.rows), model.coefficients)
    B = fit_functions(model.gram(stored, rows), model.gram(stored, rows, X, model.rows), outputs)
    return replace(model, rows=rows, coefficients=B)


def _linear_function(model: BaseModel, X: Views) -> tuple[Any, np.ndarray] | None:
    """Return rows z and B with k(x, samples) @ coefficients = k(x, z) @ B, exactly; None if the kernel is not linear.

    The rows are coefficients over columns. Kernels of standardized columns and cosines are linear in scaled samples.
    """
    kernel: Kernel = model.kernels[0]
    inside = kernel.kernel if isinstance(kernel, (Normalized, Standardized)) else kernel
    if len(model.views) > 1 or not is_linear(inside):
        return None
    block = _numbers(X, model.views[0], model.rows)
    if isinstance(kernel, Standardized):
        return _standardized_function(kernel, block, model.coefficients)
    A = model.coefficients
    if isinstance(kernel, Normalized):
        A = np.asarray(to_numpy(kernel._inverse_norms(block)))[:, None] * A
    W = np.asarray(block.T @ A)
    size = column_norms(W)
    z = np.ascontiguousarray((W / np.where(size > 0, size, 1.0)).T)
    if isinstance(kernel, Normalized):
        size = size * np.sqrt(np.asarray(to_numpy(inside._diagonal(z)), dtype=np.float64))
    return z, np.diag(size)


def _standardized_function(kernel: Standardized, block: Any, A: np.ndarray) -> tuple[Any, np.ndarray] | None:
    """Return rows within a standard deviation of the means, which the limits of the columns do not move."""
    W = np.asarray(kernel._standardized(block).T @ A)
    size = np.abs(W).max(axis=0)
    spread = np.where(np.isfinite(kernel.scale), kernel.scale, 0.0)
    z = np.ascontiguousarray(kernel.shift + (W / np.where(size > 0, size, 1.0)).T * spread)
    low, high = kernel.limits
    return (z, np.diag(size)) if ((z >= low) & (z <= high)).all() else None

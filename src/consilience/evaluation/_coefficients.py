"""Coefficients of columns: of estimators whose views have linear kernels, and of early fusion of a linear estimator."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._backend import to_numpy
from ..batch._terms import terms_of
from ..batch.fusion import EarlyFusion
from ..io.sharing import view_functions
from ..kernels.algebra import Constant, OnColumns, Scaled, Sum
from ..kernels.normalization import Standardized
from ..kernels.scalar import Linear, Mahalanobis
from ..views import _blocks
from ..views.container import Views

_CHECKED = 50  # samples on which coefficients are compared with the model


def is_affine(kernel: Any) -> bool:
    """Tell whether k(x, z) is a linear function of x plus a constant, for every z."""
    if isinstance(kernel, (Sum, Scaled, OnColumns, Standardized)):
        return all(map(is_affine, kernel._children()))
    return isinstance(kernel, (Linear, Mahalanobis, Constant))


def column_coefficients(final: Any, X: Views) -> dict[str, np.ndarray] | None:
    """Return the coefficients of each view's columns, (n_columns, n_outputs); None if the estimator is not linear.

    They are those of the combined output, so they include the weight of the view. X are samples as the estimator
    receives them. The coefficients are compared with the differences between its outputs for some of them, so that
    estimators which combine kernels in other ways are found out.
    """
    if isinstance(final, EarlyFusion):
        return _fused(final, X)
    if not isinstance(getattr(final, "kernels_", None), dict) or not hasattr(final, "view_decision_function"):
        return None
    terms = {term.name: term for term in terms_of(final)}  # a view may have several kernels
    if not all(is_affine(term.kernel) for term in terms.values()):
        return None
    try:
        functions = view_functions(final)
    except (ValueError, AttributeError, TypeError):  # views are not combined one by one
        return None
    found: dict[str, np.ndarray] = {}
    for name, (block, A) in functions.items():
        own = _gradient(terms[name].kernel, block, A)
        found[terms[name].view] = found[terms[name].view] + own if terms[name].view in found else own
    inside = {name: np.ones(len(X), dtype=bool) for name in X.names}  # samples that no kernel moves to its limits
    for term in terms.values():
        inside[term.view] &= _within_limits(term.kernel, X.block(term.view))
    if tuple(found) != tuple(X.names) or not _agree(final, X, found, inside):
        return None
    return {name: c * W for c, (name, W) in zip(final.view_weights_, found.items(), strict=True)}


def _gradient(kernel: Any, Z: Any, A: np.ndarray) -> np.ndarray:
    """Return the derivative of k(x, Z) @ A with respect to x, (n_columns, n_outputs)."""
    if isinstance(kernel, Sum):
        return _gradient(kernel.k1, Z, A) + _gradient(kernel.k2, Z, A)
    if isinstance(kernel, Scaled):
        return float(kernel.scale) * _gradient(kernel.kernel, Z, A)
    if isinstance(kernel, Constant):
        return np.zeros((Z.shape[1], A.shape[1]))
    if isinstance(kernel, OnColumns):
        W = np.zeros((Z.shape[1], A.shape[1]))
        places = np.atleast_1d(np.arange(Z.shape[1])[kernel.columns])
        np.add.at(W, places, _gradient(kernel.kernel, kernel._select(Z), A))  # a column may be chosen twice
        return W
    if isinstance(kernel, Standardized):
        inside = _gradient(kernel.kernel, kernel._standardized(Z), A)
        return inside / np.asarray(to_numpy(kernel.scale))[:, None]
    W = np.asarray(Z.T @ A) if sp.issparse(Z) else np.asarray(to_numpy(Z)).T @ A
    return np.asarray(kernel.A) @ W if isinstance(kernel, Mahalanobis) else W


def _fused(final: EarlyFusion, X: Views) -> dict[str, np.ndarray] | None:
    """Return the coefficients of early fusion, whose estimator has them for all columns side by side."""
    coef = getattr(final.estimator_, "coef_", None)
    if coef is None or not all(X.kind(name) in ("dense", "sparse") for name in X.names):
        return None
    W = (coef.toarray() if sp.issparse(coef) else np.asarray(coef)).reshape(-1, np.shape(coef)[-1]).T
    widths = [_blocks.width(X.block(name)) for name in X.names]
    if len(W) != sum(widths):
        return None
    found = dict(zip(X.names, np.split(W, np.cumsum(widths)[:-1]), strict=True))
    rows = np.flatnonzero(np.all([_usable(X, name) for name in X.names], axis=0))[:_CHECKED]
    some: Views = X[rows]
    whole = getattr(final, "decision_function", final.predict)(some) if len(rows) else np.zeros((0, W.shape[1]))
    added = sum(np.asarray(some.block(name) @ W) for name, W in found.items())
    outputs = np.asarray(whole).reshape(len(rows), -1)
    return found if outputs.dtype.kind == "f" and _same_steps(outputs, np.asarray(added)) else None


def _within_limits(kernel: Any, block: Any) -> np.ndarray:
    """Tell which samples a standardized kernel takes as they are."""
    inside = np.ones(block.shape[0], dtype=bool)
    if isinstance(kernel, OnColumns):
        return _within_limits(kernel.kernel, kernel._select(block))
    if isinstance(kernel, Standardized):
        values = block.toarray() if sp.issparse(block) else np.asarray(to_numpy(block))
        inside &= ((values >= kernel.limits[0]) & (values <= kernel.limits[1])).all(axis=1)
    for part in kernel._children():
        inside &= _within_limits(part, block if not isinstance(kernel, Standardized) else kernel._standardized(block))
    return inside


def _agree(final: Any, X: Views, found: dict[str, np.ndarray], inside: dict[str, np.ndarray]) -> bool:
    """Tell whether coefficients give the differences between each view's outputs for some samples."""
    for v, (name, W) in enumerate(found.items()):
        rows = np.flatnonzero(_usable(X, name) & inside[name])[:_CHECKED]
        some: Views = X[rows]
        outputs = final.view_decision_function(some) if len(rows) else np.zeros((0, len(found), W.shape[1]))
        block = some.block(name)
        linear = np.asarray(block @ W) if sp.issparse(block) else np.asarray(to_numpy(block)) @ W
        if not _same_steps(outputs.reshape(len(rows), len(found), -1)[:, v], linear):
            return False
    return True


def _usable(X: Views, name: str) -> np.ndarray:
    """Tell which samples have a view without gaps."""
    block, there = X.block(name), X.present(name)
    return there if sp.issparse(block) else there & ~np.isnan(np.asarray(to_numpy(block))).any(axis=1)


def _same_steps(outputs: np.ndarray, linear: np.ndarray) -> bool:
    """Tell whether both have the same differences between samples, up to rounding in single precision."""
    if outputs.shape != linear.shape:
        return False
    if not len(outputs):
        return True
    steps, expected = outputs - outputs[0], linear - linear[0]
    size = max(float(np.abs(linear).max()), float(np.abs(outputs).max()), np.finfo(float).tiny)
    return bool(np.abs(steps - expected).max() <= 1e-4 * size)

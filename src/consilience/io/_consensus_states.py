"""Validation of consensus estimators that were read from a file: base models, weights and held-out predictions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..batch._consensus import BaseModel
from ..batch._prepared import Prepared, Refit
from ..batch._stack import Expert, Stack
from ..batch.consensus import ConsensusClassifier, ConsensusRegressor
from ..kernels import Kernel
from ..solvers.consensus import Sets
from ..views.container import Views

Require = Callable[[Any, str], None]  # raises with the words of the second argument unless the first is true


def check_consensus(value: Any, require: Require) -> None:
    """Validate an object if it is a consensus estimator or a part of one.

    Parameters
    ----------
    value : object
        Any part of a loaded model.
    require : callable
        Function that raises an error with a text unless its first argument is true.
    """
    if isinstance(value, BaseModel):
        _check_model(value, require)
    elif isinstance(value, Stack):
        _check_stack(value, require)
    elif isinstance(value, Prepared):
        _check_prepared(value, require)
    elif isinstance(value, (ConsensusClassifier, ConsensusRegressor)) and "_models" in vars(value):
        _check_estimator(value, require)


def _is_array(value: Any, kinds: str, shape: tuple[int | None, ...]) -> bool:
    fits = isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.ndim == len(shape)
    return fits and all(b is None or a == b for a, b in zip(value.shape, shape, strict=True))


def _check_model(model: BaseModel, require: Require) -> None:
    m = len(model.views)
    require(m and len(model.kernels) == len(model.factors) == m, "kernels of a base model")
    require(all(isinstance(kernel, Kernel) for kernel in model.kernels), "kernels of a base model")
    require(all(isinstance(factor, float) for factor in model.factors), "factors of a base model")
    require(model.combine in ("sum", "product"), "combine of a base model")
    require(_is_array(model.intercept, "f", (None,)), "intercept of a base model")
    require(_is_array(model.rows, "iu", (None,)), "rows of a base model")
    require(
        _is_array(model.coefficients, "f", (len(model.rows), len(model.intercept)))
        and np.isfinite(model.coefficients).all(),
        "coefficients of a base model",
    )


def _check_sets(sets: Any, n: int, require: Require) -> None:
    require(isinstance(sets, Sets) and isinstance(sets.n_folds, int) and sets.n_folds > 0, "folds of samples")
    require(_is_array(sets.folds, "iu", (n,)) and n > 0, "folds of samples")
    require(0 <= sets.folds.min() <= sets.folds.max() < sets.n_folds, "folds of samples")
    fits = sets.units is None or (_is_array(sets.units, "iu", (n,)) and 0 <= sets.units.min() <= sets.units.max() < n)
    require(fits and isinstance(sets.repeated, bool), "units of samples")


def _check_stack(stack: Stack, require: Require) -> None:
    require(_is_array(stack.Y, "f", (None, None)) and _is_array(stack.needs, "b", (None, None)), "targets of a stack")
    (n, P), (q, m), sets = stack.Y.shape, stack.needs.shape, stack.sets
    _check_sets(sets, n, require)
    fits = _is_array(stack.held, "f", (q, n, P)) and _is_array(stack.by_fold, "f", (q, n, P))
    fits = fits and (stack.inner is None or _is_array(stack.inner, "f", (sets.n_folds, q, n, P)))
    fits = fits and _is_array(stack.u, "f", (n,)) and _is_array(stack.present, "b", (n, m))
    require(fits, "held-out predictions of a stack")
    require(_is_array(stack.shift, "f", (P,)) and _is_array(stack.scale, "f", (P,)), "scales of a stack")
    require(isinstance(stack.shared, bool), "weights of a stack")


def _check_prepared(value: Prepared, require: Require) -> None:
    _check_sets(value.sets, len(value.held), require)
    n, P = value.held.shape
    require(isinstance(value.folds, list) and len(value.folds) == value.sets.n_folds, "folds of a preparation")
    for refit in (value.whole, *(fold for fold in value.folds if fold is not None)):
        consensus = isinstance(refit, Refit) and isinstance(refit.model, (ConsensusClassifier, ConsensusRegressor))
        require(consensus and hasattr(refit.steps, "transform"), "folds of a preparation")
    truth = _is_array(value.truth, "f", (n, P)) if not value.n_classes else _is_array(value.truth, "iu", (n, 1))
    require(truth and _is_array(value.mean, "f", (P,)), "held-out predictions of a preparation")


def _check_estimator(estimator: Any, require: Require) -> None:
    models, stack, X = estimator._models, estimator._stack, estimator.X_fit_
    require(isinstance(models, list) and all(isinstance(model, BaseModel) for model in models), "base models")
    require(isinstance(stack, Stack) and isinstance(X, Views), "what a consensus keeps of its samples")
    (n, P), q, m = stack.Y.shape, len(models), len(estimator._used_views)
    require(stack.needs.shape == (q, m), "views of the base models")
    columns = (1 + stack.sets.n_folds) * P
    for model in models:
        require(set(model.views) <= set(X.names) and len(model.intercept) == columns, "views of a base model")
        require(not len(model.rows) or (model.rows.min() >= 0 and model.rows.max() < len(X)), "rows of a base model")
        require(all(X.present(name)[model.rows].all() for name in model.views), "rows of a base model")
    require(isinstance(estimator._experts, dict), "weights by pattern of views")
    for pattern, known in estimator._experts.items():
        fits = isinstance(pattern, str) and len(pattern) == m and set(pattern) <= {"0", "1"} and "1" in pattern
        require(fits, "weights by pattern of views")
        _check_expert(known, stack, require)
        absent = [there == "0" for there in pattern]
        unused = stack.needs[:, absent].any(axis=1)
        require(not known.weights[unused].any() and not known.fold_weights[:, unused].any(), "weights by pattern")
    require(_is_array(estimator._mean, "f", (P,)), "means of targets")
    if isinstance(estimator, ConsensusClassifier):
        codes, n_classes = stack.codes, len(estimator.classes_)
        require(stack.n_classes == n_classes, "classes of a stack")
        inside = _is_array(codes, "iu", (n,)) and (not n or (codes.min() >= 0 and codes.max() < n_classes))
        require(inside, "classes of the samples")


def _check_expert(known: Any, stack: Stack, require: Require) -> None:
    (n, P), q, K = stack.Y.shape, len(stack.needs), stack.sets.n_folds
    require(isinstance(known, Expert) and _is_array(known.weights, "f", (q, P)), "weights")
    require(_is_array(known.fold_weights, "f", (K, q, P)) and np.isfinite(known.fold_weights).all(), "weights")
    require(np.isfinite(known.weights).all(), "weights")
    rows = known.rows
    inside = _is_array(rows, "iu", (None,)) and (not len(rows) or 0 <= rows.min() <= rows.max() < n)
    require(inside and _is_array(known.held, "f", (len(rows), P)), "held-out scores")
    require(isinstance(known.fold_links, list) and len(known.fold_links) == K, "maps to probabilities")
    n_biases = stack.n_classes if stack.n_classes > 1 else P
    for slope, biases in (known.link, *known.fold_links):
        require(isinstance(slope, float) and _is_array(biases, "f", (n_biases,)), "map to probabilities")

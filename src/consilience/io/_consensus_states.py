"""Validation of consensus estimators that were read from a file: base models, weights and held-out predictions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..batch._consensus import BaseModel
from ..batch._stack import Expert, Stack
from ..batch.consensus import ConsensusClassifier, ConsensusRegressor
from ..kernels import Kernel
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


def _check_stack(stack: Stack, require: Require) -> None:
    require(_is_array(stack.T, "f", (None, None)) and _is_array(stack.needs, "b", (None, None)), "targets of a stack")
    (n, P), (q, m) = stack.T.shape, stack.needs.shape
    fits = _is_array(stack.Z, "f", (q, n, P)) and _is_array(stack.u, "f", (n,))
    require(fits and _is_array(stack.present, "b", (n, m)), "held-out predictions of a stack")
    require(_is_array(stack.means, "f", (n, P)), "means of a stack")
    require(_is_array(stack.shift, "f", (P,)) and _is_array(stack.scale, "f", (P,)), "scales of a stack")
    require(_is_array(stack.parts, "iu", (n,)) and isinstance(stack.shared, bool), "folds of a stack")


def _check_estimator(estimator: Any, require: Require) -> None:
    models, stack, X = estimator._models, estimator._stack, estimator.X_fit_
    require(isinstance(models, list) and all(isinstance(model, BaseModel) for model in models), "base models")
    require(isinstance(stack, Stack) and isinstance(X, Views), "what a consensus keeps of its samples")
    (n, P), q, m = stack.T.shape, len(models), len(estimator._used_views)
    require(stack.needs.shape == (q, m), "views of the base models")
    for model in models:
        require(set(model.views) <= set(X.names) and len(model.intercept) == P, "views of a base model")
        require(not len(model.rows) or (model.rows.min() >= 0 and model.rows.max() < len(X)), "rows of a base model")
        require(all(X.present(name)[model.rows].all() for name in model.views), "rows of a base model")
    _check_expert(estimator._whole, stack, require)
    require(_is_array(estimator._mean, "f", (P,)), "means of targets")
    if isinstance(estimator, ConsensusClassifier):
        codes, n_classes = stack.codes, len(estimator.classes_)
        require(stack.n_classes == n_classes, "classes of a stack")
        inside = _is_array(codes, "iu", (n,)) and (not n or (codes.min() >= 0 and codes.max() < n_classes))
        require(inside, "classes of the samples")


def _check_expert(own: Any, stack: Stack, require: Require) -> None:
    (n, P), q = stack.T.shape, len(stack.needs)
    require(isinstance(own, Expert) and _is_array(own.weights, "f", (q, P)), "weights")
    require(np.isfinite(own.weights).all(), "weights")
    inside = _is_array(own.rows, "iu", (None,)) and (not len(own.rows) or 0 <= own.rows.min() <= own.rows.max() < n)
    require(inside and _is_array(own.held, "f", (len(own.rows), P)), "held-out scores")
    slope, biases = own.link
    n_biases = stack.n_classes if stack.n_classes > 1 else P
    require(isinstance(slope, float) and _is_array(biases, "f", (n_biases,)), "map to probabilities")

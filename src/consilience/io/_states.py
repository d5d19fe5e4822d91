"""Validation of states that were read from a file: shapes, types, index ranges, before any compiled loop sees them.

A file of trusted types can still hold arrays of any shape. Compiled loops do not check their indices, so the arrays
that they index are checked here, once, after loading.
"""

import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..batch._partial import has_valid_sums
from ..batch._terms import names_of_terms
from ..batch.banded_ridge import BandedRidgeCV
from ..batch.fusion import EarlyFusion, LateFusion
from ..batch.max_margin import MaxMarginClassifier
from ..batch.max_margin_outputs import MaxMarginRegressor
from ..kernels import Kernel
from ..kernels.features import Nystroem, RandomFeatures
from ..online._frame import OnlineEstimator
from ..solvers.certificates import STATUSES, Certificate, Solution
from ..views._blocks import Gram, width
from ..views._reading import checked_sparse
from ..views.container import Views
from ._checks import BadState, are_names, check_array, check_counts, require
from ._complete_states import check_complete, check_complete_views, check_parts_of_kernel
from ._consensus_states import check_consensus
from ._online_states import ONLINE_CHECKS
from ._remembered_states import check_remembered
from ._scikit_learn import check_scikit_learn

_NAMED = type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType  # in files by name alone


def check_state(model: Any) -> None:
    """Validate a model and everything in it.

    Parameters
    ----------
    model : object
        The loaded model.

    Raises
    ------
    BadState
        If an array, an index or a number cannot be what `save` wrote.
    """
    try:
        _walk(model, set())
    except BadState:
        raise
    except Exception as error:  # an attribute is missing, or is of another type than its checks expect
        raise BadState("its parts do not fit together") from error


def _walk(value: Any, seen: set[int]) -> None:
    """Check parts before the whole, each once."""
    if value is None or isinstance(value, (str, bytes, int, float)) or id(value) in seen:
        return
    seen.add(id(value))
    if sp.issparse(value):
        require(value.format == "csr" or not _is_ours(value), "a sparse matrix is not in CSR format")
        try:
            checked_sparse(value, "A sparse matrix")
        except ValueError as error:
            raise BadState("a sparse matrix points outside its arrays") from error
        return
    for part in _parts(value):
        _walk(part, seen)
    for kind, check in _CHECKS.items():
        if isinstance(value, kind):
            check(value)
    check_scikit_learn(value, require)
    check_consensus(value, require)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, np.ndarray):
        return list(value.ravel()) if value.dtype == object else []
    return list(vars(value).values()) if hasattr(value, "__dict__") and not isinstance(value, _NAMED) else []


def _is_ours(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "consilience"


# -- data
def _check_views(X: Views) -> None:
    check_complete_views(X)
    check_counts(X, "_n")
    n, m = X._n, len(X.names)
    require(are_names(X.names) and m > 0 and tuple(X._blocks) == tuple(X.names), "Views have other names than data")
    if X.mask is not None:
        require(isinstance(X.mask, np.ndarray) and X.mask.dtype == bool and X.mask.shape == (n, m), "Views.mask")
    for name, block in X._blocks.items():
        if block is None:
            continue
        numbers = not isinstance(block, Gram) and block.dtype in (np.float32, np.float64)
        kind = isinstance(block, Gram) or (numbers and block.ndim == 2) or (block.dtype == object and block.ndim == 1)
        require(kind and block.shape[0] == n, f"view '{name}' is not data of {n} samples")
        if sp.issparse(block):
            again = type(block)((block.data, block.indices, block.indptr), shape=block.shape)
            require(again.has_canonical_format and len(block.data) == block.indptr[-1], f"view '{name}' is not sorted")
            block.has_canonical_format = True  # the file may say otherwise
    for name, columns in X.feature_names.items():
        fits = name in X._blocks and isinstance(columns, tuple) and all(isinstance(c, str) for c in columns)
        require(fits and len(columns) == (width(X._blocks[name]) or len(columns)), f"columns of view '{name}'")


def _check_gram(gram: Gram) -> None:
    if gram.values is not None:
        check_array(gram, "values", (None, None))
        require(gram.n_columns == gram.values.shape[1], "a Gram matrix has other columns than it says")
    index = check_array(gram, "index", (None,), "iu")
    limit = gram.values.shape[0] if gram.values is not None else gram.n_columns
    require(not len(index) or (index.min() >= 0 and index.max() < limit), "positions in a Gram matrix are out of range")
    check_counts(gram, "n_order")
    if gram.order is not None:
        order = check_array(gram, "order", (len(index),), "iu")
        require(not len(order) or (order.min() >= 0 and order.max() < gram.n_order), "orders of a Gram matrix")


def _check_solution(solution: Solution | Certificate) -> None:
    require(solution.status in STATUSES, f"a status is {solution.status!r}")


# -- estimators
def _check_estimator(estimator: Any) -> None:
    """Check an estimator of the library; others have their parameters, but are not made of our arrays."""
    require(set(estimator._get_param_names()) <= set(vars(estimator)), "a parameter is missing")
    if _is_ours(estimator):
        check_complete(estimator)
        _check_fitted(estimator)
        if not isinstance(estimator, OnlineEstimator):
            _check_batch(estimator)


def _check_fitted(estimator: Any) -> None:
    """Check what all fitted estimators keep of their views and classes."""
    fitted = vars(estimator)
    if "view_names_in_" in fitted:
        require(are_names(estimator.view_names_in_), "view_names_in_")
    if "_used_views" in fitted:
        used = estimator._used_views
        require(are_names(used) and set(used) <= set(estimator.view_names_in_), "_used_views")
    check_remembered(estimator, require)
    if "classes_" in fitted:
        classes = estimator.classes_
        require(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes), "classes_")
        require(len(np.unique(classes)) == len(classes) and (np.unique(classes) == classes).all(), "classes_")


def _check_batch(estimator: Any) -> None:
    """Check what batch estimators keep of a fit: weights, coefficients, kernels and the solution."""
    fitted = vars(estimator)
    if "solution_" not in fitted or "_used_views" not in fitted:
        return
    if "view_weights_" in fitted:
        check_array(estimator, "view_weights_", (len(estimator._used_views), None)[: estimator.view_weights_.ndim])
    names = names_of_terms(estimator)
    require(names, "kernels_")
    if "dual_coef_" in fitted and not isinstance(estimator, (MaxMarginClassifier, MaxMarginRegressor)):
        terms = () if isinstance(estimator, BandedRidgeCV) else (len(names),)  # it scales those of all views
        check_array(estimator, "dual_coef_", (*terms, len(estimator.X_fit_), None))
        require(estimator.X_fit_.names == estimator._used_views, "X_fit_")
    for name in fitted.keys() & {"combination_", "cv_scores_"}:
        require(estimator._is_consistent(), name)
    if "_features" in fitted:
        sizes = estimator._features.n_components_
        fits = isinstance(estimator.coef_, dict) and tuple(estimator.coef_) == names == tuple(sizes)
        require(fits and all(len(W) == sizes[name] for name, W in estimator.coef_.items()), "coef_")
    if "_sums" in fitted:
        require(has_valid_sums(estimator), "sums over samples")
    if "_kernel_weights" in fitted:
        check_array(
            estimator, "_kernel_weights", (len(names), None)[: 1 + (not getattr(estimator, "shared_weights", True))]
        )
    require(isinstance(estimator.solution_, Solution), "solution_")


def _check_margin(estimator: MaxMarginClassifier | MaxMarginRegressor) -> None:
    if "dual_coef_" not in vars(estimator):
        return
    S = len(estimator.dual_coef_)
    check_array(estimator, "dual_coef_", (S,))
    regresses = isinstance(estimator, MaxMarginRegressor)
    labels = len(estimator._outputs) if regresses else len(estimator.classes_)
    for name, limit in (("_support_labels", labels), ("support_", estimator._n_fit)):
        values = check_array(estimator, name, (S,), "iu")
        require(not S or (values.min() >= 0 and values.max() < limit), name)
    if "_in_fit" in vars(estimator):
        root = vars(estimator).get("_landmark_root")  # of landmarks; otherwise the support is found by them
        inside, n = check_array(estimator, "_in_fit", (S if root is None else len(root),), "iu"), len(estimator.X_fit_)
        require(not len(inside) or (inside.min() >= 0 and inside.max() < n), "_in_fit")
        check_array(estimator, "_fit_weights", (n,))
    outputs = len(estimator.candidates_) if regresses else labels
    check_array(estimator, "intercept_", (outputs,))
    if estimator._score_map is not None:
        check_array(estimator, "_score_map", (labels, outputs if regresses or labels != 2 else 1))


def _check_features(features: Nystroem | RandomFeatures) -> None:
    if "view_names_in_" not in vars(features):
        return
    used = set(features._used_views)
    require(set(features.kernels_) == used, "kernels_")
    if isinstance(features, RandomFeatures):
        require(set(features._weights) == set(features._phases) == used, "weights of features")
        shapes = [(features._weights[name].shape, features._phases[name].shape) for name in used]
        require(all(len(w) == 2 and b == w[1:] for w, b in shapes), "weights of features")
        return
    require(set(features._roots) == set(features._landmarks) == set(features.landmark_indices_) == used, "landmarks")
    for name, root in features._roots.items():
        landmarks = features._landmarks[name]
        block = isinstance(landmarks, Gram) or len(landmarks.shape) == (1 if landmarks.dtype == object else 2)
        require(block and root.ndim == 2 and len(root) == landmarks.shape[0], "landmarks")


def _check_fusion(estimator: EarlyFusion | LateFusion) -> None:
    if "solution_" not in vars(estimator):
        require("view_names_in_" not in vars(estimator), "solution_")
        return
    check_array(estimator, "view_weights_", (len(estimator._used_views),))
    if isinstance(estimator, LateFusion):
        fits = isinstance(estimator.estimators_, dict) and tuple(estimator.estimators_) == tuple(estimator._used_views)
        require(fits and isinstance(estimator._train, dict), "estimators_")
        parts = list(estimator.estimators_.values())
    else:
        require(set(estimator._means) == set(estimator._used_views), "_means")
        for name, (means, sparse) in estimator._means.items():
            fits = isinstance(means, np.ndarray) and means.dtype.kind == "f" and isinstance(sparse, bool)
            require(fits and means.shape == (estimator._known[name][1],), "_means")
        parts = [estimator.estimator_]
    for part in parts:
        require(isinstance(part, BaseEstimator), "an estimator")
        if hasattr(estimator, "classes_"):
            known = len(part.classes_) and np.isin(part.classes_, estimator.classes_).all()
            require(known, "classes_ of an estimator")
    by_view = isinstance(estimator, LateFusion) and isinstance(estimator.estimator, dict)
    given = list(estimator.estimator.values()) if by_view else [estimator.estimator]
    require(given and all(isinstance(part, BaseEstimator) for part in given), "estimator")


_CHECKS: dict[type, Any] = {
    **ONLINE_CHECKS,
    Views: _check_views,
    Gram: _check_gram,
    Solution: _check_solution,
    Certificate: _check_solution,
    BaseEstimator: _check_estimator,
    Kernel: check_parts_of_kernel,
    MaxMarginClassifier: _check_margin,
    MaxMarginRegressor: _check_margin,
    Nystroem: _check_features,
    RandomFeatures: _check_features,
    EarlyFusion: _check_fusion,
    LateFusion: _check_fusion,
}

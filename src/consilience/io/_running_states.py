"""Validation of transformers of a stream that were read from a file: statistics of columns, steps of views."""

from typing import Any

import numpy as np

from ..kernels._table_features import TableFeatures
from ..kernels.features import Nystroem, RandomFeatures
from ..views.hashing import HashedTokens
from ..views.per_view import PerView
from ..views.running import FixedStep, RunningStep, RunningSteps
from ._consensus_states import Require

_STATISTICS = ("_count", "_origin", "_mean", "_squares", "_lost")


def check_running(estimator: Any, require: Require) -> None:
    """Validate an estimator if it is a transformer of a stream, or has some.

    Parameters
    ----------
    estimator : object
        An estimator of the library.
    require : callable
        Function that raises an error with a text unless its first argument is true.
    """
    if isinstance(estimator, RunningStep):
        _check_step(estimator, require)
    elif isinstance(estimator, TableFeatures):
        features = vars(estimator).get("features_", estimator.features)
        require(isinstance(features, (RandomFeatures, Nystroem)) and isinstance(estimator.view, str), "features")
        if "features_" in vars(estimator):
            require(estimator.view in features._used_views, "features of another view")
    elif isinstance(estimator, HashedTokens):
        require(type(estimator.n_features) is int and 0 < estimator.n_features < 2**31, "columns of hashing")
    elif isinstance(estimator, PerView) and "n_samples_seen_" in vars(estimator):
        seen = estimator.n_samples_seen_
        require(type(seen) is int and seen >= 0 and isinstance(estimator.transformers_, dict), "n_samples_seen_")
        for name, own in estimator.transformers_.items():
            require(name in estimator.view_names_in_, "transformers_")
            require(own in ("passthrough", "drop") if isinstance(own, str) else _fits(own, name), "transformers_")


def _check_step(step: RunningStep, require: Require) -> None:
    """Check that statistics are of the same columns, and can be numbers of rows, means and sums of squares."""
    fitted = vars(step)
    if "_count" not in fitted:
        return
    shape = np.shape(step._count)
    for name in _STATISTICS:
        value = fitted.get(name, step._count)
        whole = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.flags.c_contiguous
        require(whole and value.ndim == 1 and value.shape == shape and np.isfinite(value).all(), f"{name} of a stream")
    for name in ("_count", "_squares", "_lost"):
        require((fitted.get(name, step._count) >= 0).all(), f"{name} of a stream")
    rows = fitted.get("_rows")
    require(isinstance(rows, np.ndarray) and rows.shape == (1,) and rows.dtype == np.float64, "_rows of a stream")
    imputed = getattr(step, "n_imputed_", 0)
    require(type(imputed) is int and imputed >= 0, "n_imputed_")


def _fits(own: Any, name: str) -> bool:
    """Tell whether the steps of a view are what `PerView` makes."""
    if not isinstance(own, RunningSteps) or not isinstance(own.steps, list):
        return False
    steps = all(isinstance(step, (RunningStep, TableFeatures)) for step in own.steps)
    learning = [k for k, step in enumerate(own.steps) if not isinstance(step, FixedStep)]
    counts = type(own.width) is int and type(own.in_order) is bool and own.n_fixed == min([*learning, len(own.steps)])
    return steps and counts and own.view == name and own.kind in ("dense", "sparse", "objects")

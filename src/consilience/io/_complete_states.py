"""Validation that objects which were read from a file have every attribute that their class gives them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from ..batch._estimator import BatchEstimator
from ..batch.banded_ridge import BandedRidgeCV
from ..batch.consensus import ConsensusClassifier, ConsensusRegressor
from ..batch.fusion import EarlyFusion, LateFusion
from ..batch.max_margin import MaxMarginClassifier
from ..batch.max_margin_outputs import MaxMarginRegressor
from ..batch.vector_valued import VectorValuedClassifier, VectorValuedRegressor
from ..kernels import Kernel
from ..kernels.by_view import kernel_terms
from ..kernels.features import Nystroem, RandomFeatures
from ..kernels.normalization import Standardized
from ..online._frame import OnlineEstimator
from ..online.ranking import RankingPerceptron
from ..online.regression import PassiveAggressiveRegressor
from ..views.container import Views
from ..views.estimator import ViewEstimator
from ._checks import require

_OF_VIEWS = frozenset(vars(Views(a=[[0.0]])))
_REMEMBERED = ("_known", "view_names_in_", "_used_views")  # of every estimator that was fitted to views
_WITHOUT_KERNELS = (ConsensusClassifier, ConsensusRegressor, EarlyFusion, LateFusion)
_OF_KERNELS = ("kernel", "k1", "k2")  # parameters of kernels that are kernels themselves


def check_complete_views(X: Views) -> None:
    """Validate that Views have exactly the attributes of Views.

    Parameters
    ----------
    X : Views
        The loaded views.
    """
    require(set(vars(X)) - {"_chosen_by_target"} == _OF_VIEWS, "Views have other attributes than Views have")


def check_parts_of_kernel(kernel: Kernel) -> None:
    """Validate that a kernel consists of kernels and values, not of classes.

    Parameters
    ----------
    kernel : Kernel
        The loaded kernel.
    """
    for name, value in vars(kernel).items():
        require(not isinstance(value, type), f"{name} of a kernel")
        require(name not in _OF_KERNELS or isinstance(value, Kernel), f"{name} of a kernel")
    if isinstance(kernel, Standardized) and kernel.scale is not None:
        shapes = [np.shape(part) for part in (kernel.shift, kernel.scale, kernel.limits)]
        columns = shapes[1]
        require(
            len(columns) == 1 and shapes[0] in ((), columns) and shapes[2] == (2, *columns), "the scales of a kernel"
        )


def check_complete(estimator: Any) -> None:
    """Validate that a fitted estimator has the attributes that every fit of its class leaves.

    Parameters
    ----------
    estimator : estimator of the library
        The loaded estimator, which has all its parameters.
    """
    # a chunk that is refused leaves a width, and samples before the first label a preparation
    fitted = set(vars(estimator)).difference(estimator._get_param_names(), ["_first_width"])
    if isinstance(estimator, OnlineEstimator) and fitted <= {"preparation_", "_shared"}:
        return
    if not fitted or not isinstance(estimator, ViewEstimator):
        return
    kinds = BatchEstimator, OnlineEstimator, Nystroem, RandomFeatures
    needed = _REMEMBERED if isinstance(estimator, kinds) or fitted.intersection(_REMEMBERED) else ()
    _require_names(needed, fitted)
    if "kernels_" in fitted:
        terms = kernel_terms(estimator.kernels_)
        require(all(isinstance(term.kernel, Kernel) for term in terms), "kernels_")
    if isinstance(estimator, BatchEstimator):
        _require_names(_of_batch(estimator, fitted), fitted)
    elif isinstance(estimator, OnlineEstimator):
        _require_names(("n_samples_seen_", "_began_with", "_machine"), fitted)
        _require_names(_of_online(estimator), fitted)


def _require_names(needed: Any, fitted: set[str]) -> None:
    for name in needed:
        require(name in fitted, f"{name} is missing")


def _of_batch(estimator: BatchEstimator, fitted: set[str]) -> Iterator[str]:
    """Yield the names of what the batch estimators need to predict."""
    yield from (name for name in BatchEstimator.__annotations__ if not hasattr(type(estimator), name))
    if is_classifier(estimator):
        yield "classes_"
    elif is_regressor(estimator) and not isinstance(estimator, MaxMarginRegressor):
        yield "_one_output"
    if isinstance(estimator, (ConsensusClassifier, ConsensusRegressor)):
        yield from ("_honest", "_mean", *(() if "_prepared" in fitted else ("_models", "_stack", "_experts")))
    if isinstance(estimator, (VectorValuedClassifier, VectorValuedRegressor)):
        yield from ("combination_", "_view_kernel")
    if not isinstance(estimator, _WITHOUT_KERNELS):
        yield "kernels_"
        yield from _coefficients(estimator, fitted)


def _coefficients(estimator: BatchEstimator, fitted: set[str]) -> Iterator[str]:
    """Yield the names of coefficients: of features, or of training samples."""
    if isinstance(estimator, (MaxMarginClassifier, MaxMarginRegressor)):
        yield from ("_combine", "_score_map", "intercept_")
        if estimator.solution_.status != "shared":  # a copy without samples has features alone
            yield from ("dual_coef_", "support_", "_support_labels", "_n_fit")
        if "X_fit_" in fitted or "coef_" not in fitted:
            yield from ("X_fit_", "_in_fit", "_means", "_fit_weights")
            yield from ("_landmark_root",) if "coef_" in fitted else ()
    elif isinstance(estimator, BandedRidgeCV):
        yield from ("intercept_", "_scales", "_offsets")
        yield from () if "coef_" in fitted else ("dual_coef_", "X_fit_", "_shares", "_dual_sums")
    elif "coef_" in fitted or "_features" in fitted:
        yield from ("coef_", "_features")
    else:
        yield from ("dual_coef_", "X_fit_")


def _of_online(estimator: Any) -> list[str]:
    """Return the names of what an online estimator has before its first sample."""
    begun: Any = object.__new__(type(estimator))
    vars(begun).update({name: vars(estimator)[name] for name in estimator._get_param_names()})
    if "_width" in vars(estimator):
        begun._first_width = estimator._width
    if isinstance(estimator, RankingPerceptron) and estimator._ranks():
        begun._begin_ranking()
    elif isinstance(estimator, PassiveAggressiveRegressor):
        begun._begin(estimator._machine.n_outputs, estimator._one_output)
    else:
        labels = (estimator._label_lists,) if estimator._indicator else ()
        begun._begin(estimator.classes_, estimator._announced, *labels)
    return [name for name in vars(begun) if name not in estimator._get_param_names() and name != "_first_width"]

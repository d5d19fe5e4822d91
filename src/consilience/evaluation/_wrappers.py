"""Look inside scikit-learn's wrappers: pipelines, searches, transformed targets, calibration and thresholds."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


# -- the parts of a model
def layers_of(model: Any) -> list[Any]:
    """Return a model and the models inside it, from the outermost wrapper to the final estimator.

    Parts of fitted wrappers are fitted. A calibrated classifier with one estimator per fold is not opened.
    """
    layers = [model]
    while (inside := _inside(layers[-1])) is not None:
        layers.append(inside)
    return layers


def _inside(model: Any) -> Any:
    """Return the model directly inside a wrapper; None if there is no such model, or more than one."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, BaseSearchCV):
        return getattr(model, "best_estimator_", model.estimator)
    if isinstance(model, TransformedTargetRegressor):
        return getattr(model, "regressor_", model.regressor)
    if isinstance(model, (FixedThresholdClassifier, TunedThresholdClassifierCV)):
        return getattr(model, "estimator_", model.estimator)
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if isinstance(model, CalibratedClassifierCV):
        members = members_of(model) or [model.estimator]
        return members[0] if len(members) == 1 else None
    return None


def members_of(model: Any) -> list[Any]:
    """Return the fitted estimators of a calibrated classifier, one per fold or a single one; none for other models."""
    is_calibrated = isinstance(model, CalibratedClassifierCV)
    return [fit.estimator for fit in getattr(model, "calibrated_classifiers_", ())] if is_calibrated else []


def steps_of(model: Any) -> list[Any]:
    """Return the transformers of all pipelines in a model, in order, and the final estimator last.

    Of a calibrated classifier with one estimator per fold, the steps of each fold follow one another.
    """
    layers = layers_of(model)
    transformers = [
        step
        for layer in layers
        if isinstance(layer, Pipeline)
        for _, step in layer.steps[:-1]
        if step is not None and not isinstance(step, str)
    ]
    finals = [step for member in members_of(layers[-1]) for step in steps_of(member)]
    return [*transformers, *(finals or layers[-1:])]


def final_estimator(model: Any) -> Any:
    """Return the estimator inside all wrappers of a model, fitted or not."""
    return layers_of(model)[-1]


def final_views(model: Any, X: Any) -> Any:
    """Return samples as the final estimator of a fitted model receives them."""
    for layer in layers_of(model):
        if isinstance(layer, Pipeline) and len(layer) > 1:
            X = layer[:-1].transform(X)
    return X


def fitted_final(model: Any, needed: str, remedy: str | None = None) -> Any:
    """Return the final estimator of a fitted model; raise if it lacks an attribute, with the remedy."""
    final = final_estimator(model)
    for layer in layers_of(model):
        if isinstance(layer, BaseSearchCV) and hasattr(layer, "cv_results_") and not hasattr(layer, "best_estimator_"):
            raise TypeError(
                f"{type(layer).__name__} has refit=False, so it has no fitted estimator. Fit it again with refit=True."
            )
    check_is_fitted(final)
    if hasattr(final, needed):
        return final
    name, inside = type(final).__name__, "" if final is model else f" (inside {type(model).__name__})"
    if members_of(final):
        raise TypeError(
            f"{name}{inside} has {len(members_of(final))} estimators, one per fold, and no single `{needed}`. Fit it "
            "with ensemble=False, or give one of them: calibrated_classifiers_[0].estimator."
        )
    if remedy is None and hasattr(final, "learn_one"):
        raise TypeError(f"{name}{inside} learns from all views together and has no `{needed}`. Give a batch estimator.")
    ensemble = " Of an ensemble, give one member." if hasattr(final, "estimators_") else ""
    wanted = "Give a fitted estimator of views that has it, or a pipeline or search around one."
    raise TypeError(f"{name}{inside} has no `{needed}`. {remedy or wanted}{ensemble}")


# -- targets
def in_target_units(model: Any, outputs: np.ndarray) -> np.ndarray:
    """Return outputs by view (n, m, P) in the units of y, where a TransformedTargetRegressor has changed them."""
    for layer in reversed(layers_of(model)):
        if isinstance(layer, TransformedTargetRegressor):
            outputs = outputs.copy()
            for v in range(outputs.shape[1]):
                there = np.flatnonzero(~np.isnan(outputs[:, v]).any(axis=1))  # transformers may refuse NaN
                if len(there):
                    values = layer.transformer_.inverse_transform(outputs[there, v])
                    outputs[there, v] = np.asarray(values).reshape(len(there), -1)
    return outputs


# -- fitting again
def to_fit_again(model: Any) -> Any:
    """Return an unfitted copy of a model, in which fitted searches are replaced by their best estimators."""
    if isinstance(model, BaseSearchCV):
        if not hasattr(model, "best_estimator_"):
            raise TypeError(
                f"{type(model).__name__} has no best estimator yet. Fit it with refit=True, or give its estimator."
            )
        return to_fit_again(model.best_estimator_)
    if isinstance(model, FrozenEstimator):
        return to_fit_again(model.estimator)
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return clone(model).set_params(**{name: to_fit_again(last)})
    if isinstance(model, TransformedTargetRegressor) and model.regressor is not None:
        return clone(model).set_params(regressor=to_fit_again(_inside(model)))
    return clone(model)


def parameter_of_final(model: Any, name: str, remedy: str) -> str:
    """Return the name that a parameter of the final estimator has in the whole model; raise if there is none."""
    path = ""
    *wrappers, final = layers_of(model)
    for layer in wrappers:
        if isinstance(layer, Pipeline):
            path += f"{layer.steps[-1][0]}__"
        else:
            path += "regressor__" if isinstance(layer, TransformedTargetRegressor) else "estimator__"
    if not hasattr(final, "get_params") or name not in final.get_params():
        raise TypeError(f"{type(final).__name__} has no `{name}`. {remedy}")
    return path + name

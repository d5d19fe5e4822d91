"""Small data for every estimator of tests/cases.py, their fits, and all that a fitted model answers."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor

import cases
from consilience.online._frame import OnlineEstimator

#: Methods that answer for many rows, and for one; those that an estimator lacks are left out
METHODS = ("predict", "decision_function", "predict_proba", "view_decision_function")
SINGLE = ("predict_one", "predict_proba_one")

#: Estimators that learn streams, found among all
ONLINE = [
    name for name, own in cases.LEARNERS.items() if isinstance(own, OnlineEstimator) and hasattr(own, "learn_one")
]


def samples(name: str, n: int = 60, seed: int = 0, n_classes: int = 3) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return two views and targets of the kind that an estimator takes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = {
        "a": rng.normal(size=(n, 3)) + y[:, None] * [1.0, -1.0, 0.5],
        "b": rng.normal(size=(n, 2)) + y[:, None] * [0.5, 1.0],
    }
    if is_regressor(cases.LEARNERS[name]):
        return X, X["a"][:, 0] - X["b"][:, 1] + 0.1 * rng.normal(size=n)
    return X, y


def fitted(name: str, n: int = 60, seed: int = 0) -> Any:
    """Return a fitted estimator; warnings of fits that stop early are no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(cases.LEARNERS[name]).fit(*samples(name, n, seed))


def rows_of(X: dict[str, np.ndarray], rows: Any) -> dict[str, np.ndarray]:
    """Return some rows of all views."""
    return {view: block[rows] for view, block in X.items()}


def answers(model: Any, X: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return what each method that the model has says about the rows, and about the first one alone."""
    found = {method: getattr(model, method)(X) for method in METHODS if hasattr(model, method)}
    first = rows_of(X, 0)
    return found | {method: getattr(model, method)(first) for method in SINGLE if hasattr(model, method)}


def numbers(found: Any) -> np.ndarray:
    """Return all numbers of answers or of a state in one row."""
    if isinstance(found, dict):
        parts = [numbers(found[key]) for key in found]
    elif isinstance(found, (list, tuple)):
        parts = [numbers(part) for part in found]
    else:
        value = np.asarray(found)
        return value.ravel().astype(np.float64) if value.dtype.kind in "fiub" else np.zeros(0)
    return np.concatenate([np.zeros(0), *parts])

"""Predictions while a model learns: snapshots that many threads can share."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from ..kernels import Kernel
from ._machine import Machine

__all__ = ["Snapshot"]

_FIXED = (str, bytes, int, float, complex, tuple, type(None), np.ndarray, np.generic, Kernel)  # replaced, not changed


def _as_model(name: str) -> Any:
    """Return a condition for methods that exist where the model has them; its own error says why it has not."""

    def exists(snapshot: Any) -> bool:
        getattr(snapshot._model, name)
        return True

    return available_if(exists)


class Snapshot:
    """An online model as it was at one moment: it predicts, and further learning does not change it.

    `snapshot` of an online estimator returns it. It copies weights, or coefficients of the samples kept, but not the
    samples. Any number of threads may predict with it at once. A service keeps the latest one in a variable, which
    its learning thread replaces.

    Parameters
    ----------
    model : online estimator
        The model, fitted or not. No other thread may learn while the snapshot is made.

    See Also
    --------
    OnlinePerceptron : One of the estimators.
    save : Write a model to a file.

    Examples
    --------
    >>> import consilience as cs
    >>> model = cs.OnlinePerceptron().partial_fit({"a": [[1.0], [-1.0]] * 5}, [1, 0] * 5)
    >>> before = model.snapshot()
    >>> for _ in range(9):
    ...     _ = model.learn_one({"a": [1.0]}, 0)
    >>> int(before.predict_one({"a": [1.0]})), int(model.predict_one({"a": [1.0]}))
    (1, 0)
    """

    def __init__(self, model: Any):
        self._model = _frozen_estimator(model)

    def __repr__(self) -> str:
        seen = self.n_samples_seen_
        return f"Snapshot of {type(self._model).__name__} after {seen:,} sample{'s' * (seen != 1)}"

    @property
    def n_samples_seen_(self) -> int:
        """Number of samples that the model had learned; 0 before the first."""
        return int(vars(self._model).get("n_samples_seen_", 0))

    @property
    def classes_(self) -> np.ndarray:
        """The classes at that moment."""
        return np.asarray(self._model.classes_)

    def predict(self, X: Any) -> Any:
        """Predict the targets of samples.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.

        Returns
        -------
        array of shape (n_samples,)
            Predictions.
        """
        return self._model.predict(X)

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """Predict the target of one sample.

        Parameters
        ----------
        x : dict
            The row of each view: an array, a sparse row, a list of numbers, or a Series or dict with the names of the
            columns. Missing views are left out.

        Returns
        -------
        object
            The target; None if the model had not learned a sample.
        """
        return self._model.predict_one(x)

    @_as_model("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of samples.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Scores; for two classes that of the second.
        """
        return np.asarray(self._model.decision_function(X))

    @_as_model("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities of the classes.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Samples.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return np.asarray(self._model.predict_proba(X))

    @_as_model("predict_proba_one")
    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        """Return the probabilities of the classes of one sample.

        Parameters
        ----------
        x : dict
            The row of each view; missing views are left out.

        Returns
        -------
        dict
            Class -> probability; empty if the model had not learned a sample.
        """
        return dict(self._model.predict_proba_one(x))


def _frozen_estimator(model: Any) -> Any:
    """Return a copy of an online estimator that shares nothing which learning changes in place."""
    other = object.__new__(type(model))
    other.__dict__.update({name: _frozen(value) for name, value in vars(model).items()})
    return other


def _frozen(value: Any) -> Any:
    if isinstance(value, _FIXED):
        return value
    if isinstance(value, Machine):
        return value.frozen()
    if isinstance(value, dict):
        return {key: _frozen(part) for key, part in value.items()}
    return _frozen_estimator(value) if hasattr(value, "learn_one") else deepcopy(value)

"""Predictions of a model as rows of a table: probabilities, sets of classes and intervals where they are asked for."""

from pathlib import Path
from typing import Any, NamedTuple


class PredictionTable(NamedTuple):
    """Predictions as a flat table, and as objects for JSON."""

    heads: list[str]
    rows: list[dict[str, Any]]
    nested: list[dict[str, Any]]


def prediction_rows(model: Any, X: Any, *, proba: bool, coverage: float | None, source: Path) -> PredictionTable:
    """Return the predictions of samples with what was asked for.

    Parameters
    ----------
    model : estimator
        The fitted model.
    X : Views
        The samples.
    proba : bool
        Whether to add probabilities of the classes.
    coverage : float or None
        Coverage of the sets of classes, or intervals, to add.
    source : path
        Model file, for messages.
    """
    from sklearn.base import is_classifier

    predictions = model.predict(X).tolist()
    names = list(range(len(predictions))) if X.sample_names is None else X.sample_names.tolist()
    rows: list[dict[str, Any]] = [
        {"id": name, "prediction": value} for name, value in zip(names, predictions, strict=True)
    ]
    nested = [dict(row) for row in rows]
    if proba:
        classes, values = _probabilities(model, X, source)
        for row, own, part in zip(rows, nested, values.tolist(), strict=True):
            row.update({f"probability_{label}": value for label, value in zip(classes, part, strict=True)})
            own["probabilities"] = dict(zip(map(str, classes), part, strict=True))
    if coverage is not None:
        for row, own, region in zip(rows, nested, _regions(model, X, coverage, source), strict=True):
            flat, sets = region, region
            if is_classifier(model):
                flat = {f"in_set_{label}": inside for label, inside in region.items()}
                sets = {"classes": [label for label, inside in region.items() if inside]}
            row.update(flat)
            own.update(sets)
    heads = list(rows[0]) if rows else ["id", "prediction"]
    return PredictionTable(heads, rows, nested)


def _probabilities(model: Any, X: Any, source: Path) -> tuple[list[Any], Any]:
    """Return the classes and their probabilities."""
    from sklearn.base import is_classifier

    if not is_classifier(model):
        raise ValueError(f"--proba is for classes, and '{source}' holds a model for regression. Try --coverage 0.9.")
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"--proba needs a model with probabilities, and {_final_name(model)} of '{source}' has only scores. Fit "
            "without --estimator (-e), or save a CalibratedClassifierCV around it from Python."
        )
    return model.classes_.tolist(), model.predict_proba(X)


def _regions(model: Any, X: Any, coverage: float, source: Path) -> list[dict[Any, Any]]:
    """Return by sample which classes are in its set, or the ends of its interval."""
    import numpy as np
    from sklearn.base import is_classifier

    from ..evaluation._wrappers import final_estimator, final_views, in_target_units

    if not 0 < coverage < 1:
        raise ValueError(f"--coverage is a probability between 0 and 1, such as 0.9; got {coverage:g}.")
    final = final_estimator(model)
    name = "predict_set" if is_classifier(model) else "predict_interval"
    if not hasattr(final, name):
        what = "sets of classes" if is_classifier(model) else "intervals"
        raise ValueError(
            f"--coverage needs a model with {what}, and {_final_name(model)} of '{source}' has none. Fit without "
            "--estimator (-e): ConsensusClassifier and ConsensusRegressor have them."
        )
    found = getattr(final, name)(final_views(model, X), coverage=coverage)
    if is_classifier(model):
        labels = final.classes_.tolist()
        return [dict(zip(labels, map(bool, row), strict=True)) for row in found]
    ends = np.sort(in_target_units(model, np.asarray(found)[:, :, None])[:, :, 0], axis=1)
    return [{"low": float(low), "high": float(high)} for low, high in ends]


def _final_name(model: Any) -> str:
    from ..evaluation._wrappers import final_estimator

    return type(final_estimator(model)).__name__

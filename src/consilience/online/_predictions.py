"""Predictions that online estimators make of samples before they learn them."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..views.conversion import as_views
from ..views.validation import labeled_rows


@dataclass(frozen=True)
class StreamPredictions:
    """Predictions of a chunk, made before its samples were learned."""

    rows: np.ndarray
    y: np.ndarray
    predicted: np.ndarray
    classes: np.ndarray | None
    probabilities: np.ndarray | None
    view_margins: np.ndarray | None
    view_names: tuple[str, ...]
    sample_weight: np.ndarray | None


def predict_then_learn(
    self: Any, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, view_margins: bool = False
) -> StreamPredictions:
    """Predict each sample, then learn it."""
    X = as_views(X)
    labeled, _ = labeled_rows(y)
    rows = np.flatnonzero(labeled)
    saved = copy.deepcopy(self.__dict__)
    made, margins = [], []
    try:
        for i in rows:
            row, label = X[i : i + 1], [y[i]]
            known = self.classes_ if hasattr(self, "n_samples_seen_") else np.array([])
            if len(known) < 2:
                made.append((label[0], known[0] if len(known) else None, {c: 1.0 for c in known.tolist()}))
                margins.append([np.nan] * len(X.names))
            else:
                seen = row[[n for n in row.names if n in self.view_names_in_]]
                scores = self.decision_function(seen)
                scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
                shares = np.exp(scores - scores.max())[0]
                shares /= shares.sum()
                predicted = self.predict(seen)[0]
                made.append((label[0], predicted, dict(zip(known.tolist(), shares.tolist(), strict=True))))
                margins.append(_margins(self, row, label[0], known) if view_margins else [np.nan] * len(X.names))
            self.partial_fit(row, label, classes=classes)
    except Exception:
        self.__dict__.clear()
        self.__dict__.update(saved)
        raise
    codes = {c: k for k, c in enumerate(self.classes_.tolist())} if hasattr(self, "classes_") else {}
    plain = [(getattr(a, "item", lambda a=a: a)(), getattr(b, "item", lambda b=b: b)(), p) for a, b, p in made]
    probabilities = np.array([[p.get(c, 0.0) for c in codes] for _, _, p in plain]).reshape(len(rows), len(codes))
    return StreamPredictions(
        rows,
        np.array([codes[a] for a, _, _ in plain], dtype=np.int64),
        np.array([codes.get(b, -1) for _, b, _ in plain], dtype=np.int64),
        getattr(self, "classes_", np.array([])),
        probabilities,
        np.array(margins).reshape(len(rows), len(X.names)) if view_margins else None,
        tuple(X.names),
        None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[rows],
    )


def _margins(model: Any, row: Any, label: Any, classes: np.ndarray) -> list[float]:
    found = []
    for name in row.names:
        w = model.coef_.get(name) if hasattr(model, "coef_") else None
        if w is None or not row.present(name)[0]:
            found.append(np.nan)
            continue
        scores = np.asarray(row[name] @ np.asarray(w).reshape(row[name].shape[1], -1)).ravel()
        scores = np.array([-scores[0], scores[0]]) if len(scores) == 1 else scores
        true = int(np.searchsorted(classes, label))
        inside = true < len(classes) and classes[true] == label
        found.append(scores[true] - np.delete(scores, true).max() if inside else np.nan)
    return found


def predict_proba_one(self: Any, x: Any) -> dict[Any, float]:
    """Return the probability of each class."""
    from ._stream import one_row

    if not hasattr(self, "n_samples_seen_") or len(self.classes_) < 2:
        return {c: 1.0 for c in getattr(self, "classes_", np.array([])).tolist()}
    scores = self.decision_function(one_row(x) if isinstance(x, dict) else x)
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    shares = np.exp(scores - scores.max())[0]
    return dict(zip(self.classes_.tolist(), (shares / shares.sum()).tolist(), strict=True))


def forget(self: Any, share: float, view: str | None = None) -> None:
    """Multiply what was learned by share."""
    if share == 0.0 and view is None:
        machine = self._new_machine(self._machine.n_outputs)
        self._machine = machine
        self._met = ()
        self.kernels_ = {}

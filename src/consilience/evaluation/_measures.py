"""Measures of a comparison: scorers by name, the form that suits the classes, and weighted scores of held-out parts."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.metrics import get_scorer, make_scorer, roc_auc_score

DEFAULT_SCORING = {"classification": "accuracy", "regression": "r2"}
# names of scikit-learn that are defined for two classes only, and the form for several
_SEVERAL_CLASSES = {
    "roc_auc": "roc_auc_ovr",
    "f1": "f1_macro",
    "precision": "precision_macro",
    "recall": "recall_macro",
    "jaccard": "jaccard_macro",
}
# names of scikit-learn that count one of two classes, by default the class 1
_ONE_CLASS = {
    "f1": metrics.f1_score,
    "precision": metrics.precision_score,
    "recall": metrics.recall_score,
    "jaccard": metrics.jaccard_score,
    "average_precision": metrics.average_precision_score,
}
_MEANING = {"_ovr": "the mean over the classes, each against the others", "_macro": "the mean over the classes"}


@dataclass(frozen=True)
class HeldOutPart:
    """Predictions for the test part of one fold.

    `probabilities` and `decisions` are (n_test, n_classes), with a column for each class of the comparison; None where
    the estimator has no such method.
    """

    test: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray | None = None
    decisions: np.ndarray | None = None

    def on(self, samples: np.ndarray) -> "HeldOutPart":
        """Return the part for some samples, given as booleans for all samples of the comparison."""
        kept = samples[self.test]
        if kept.all():
            return self
        parts = (None if part is None else part[kept] for part in (self.probabilities, self.decisions))
        return HeldOutPart(self.test[kept], self.predictions[kept], *parts)

    def joined(self, other: "HeldOutPart") -> "HeldOutPart":
        """Return a part with the predictions of two estimators for the same samples."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("probabilities", "decisions")]
        scores = (None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs)
        predictions = np.concatenate([self.predictions, other.predictions])
        return HeldOutPart(np.tile(self.test, 2), predictions, *scores)


# -- reading `scoring`
def read_scoring(scoring: Any, y: np.ndarray, task: str) -> tuple[dict[str, Any], list[str]]:
    """Return scorers by name, the first of which ranks, and sentences about the forms that were chosen."""
    if scoring is None:
        scoring = DEFAULT_SCORING[task]
    if isinstance(scoring, Mapping):
        named = list(scoring.items())
    elif isinstance(scoring, str) or callable(scoring):
        named = [(None, scoring)]
    elif isinstance(scoring, Iterable):
        named = [(None, each) for each in scoring]
    else:
        raise TypeError(
            f"`scoring` must be a scorer of scikit-learn by name, a function of (estimator, X, y), or a list or dict "
            f"of these; got {scoring!r}."
        )
    if not named:
        raise ValueError("`scoring` is empty. Give at least one scorer, or None for the default.")
    scorers: dict[str, Any] = {}
    notes: list[str] = []
    for name, given in named:
        own_name, scorer, note = _read_scorer(given, y, task)
        name = own_name if name is None else str(name)
        if name in scorers:
            raise ValueError(f"`scoring` has two scorers of the name '{name}'. Give a dict with a name for each.")
        scorers[name] = scorer
        notes += [note] if note else []
    return scorers, notes


def _read_scorer(given: Any, y: np.ndarray, task: str) -> tuple[str, Any, str]:
    """Return the name of a scorer, the scorer, and a sentence if it is another form than the one that was named."""
    if not isinstance(given, str):
        if not callable(given):
            raise TypeError(f"A scorer is a name or a function of (estimator, X, y); got {given!r}.")
        return getattr(given, "__name__", str(given)), given, ""
    scorer = get_scorer(given)
    if task == "regression":
        return given, scorer, ""
    classes = np.unique(y)
    if len(classes) > 2:
        name = _SEVERAL_CLASSES.get(given, given)
        note = ""
        if name != given:
            form = next(text for end, text in _MEANING.items() if name.endswith(end))
            note = f"There are {len(classes)} classes, so '{given}' is '{name}': {form}."
        # scikit-learn's needs probabilities; the same mean is defined for other scores of the classes
        several = _class_auc_scorer() if name == "roc_auc_ovr" else get_scorer(name)
        return name, several, note
    if given in _ONE_CLASS and 1 not in classes.tolist():
        note = f"The score '{given}' is that of the class '{classes[1]}', the second in sorted order."
        return given, scorer_of_class(given, classes[1]), note
    return given, scorer, ""


def scorer_of_class(name: str, positive: Any) -> Any:
    """Return a scorer of two classes; those of one class, such as "f1", are of `positive`."""
    if name not in _ONE_CLASS:
        return name
    methods = ("decision_function", "predict_proba") if name == "average_precision" else "predict"
    return make_scorer(_ONE_CLASS[name], response_method=methods, pos_label=positive)


def class_auc(y: np.ndarray, scores: np.ndarray, sample_weight: Any = None) -> float:
    """Return the mean area under the ROC curve over the classes, each against the others.

    Equals ``roc_auc_score(..., multi_class="ovr")`` for probabilities. Columns are the classes of y in sorted order.
    """
    classes = np.unique(y)
    scores = np.asarray(scores)
    if scores.ndim != 2 or scores.shape[1] != len(classes):
        raise ValueError(f"A part has {len(classes)} classes, and the estimator scores others. Use fewer folds.")
    areas = [roc_auc_score(y == c, scores[:, k], sample_weight=sample_weight) for k, c in enumerate(classes)]
    return float(np.mean(areas))


def _class_auc_scorer() -> Any:
    return make_scorer(class_auc, response_method=("predict_proba", "decision_function"))


def scored_value(scorer: Any, model: Any, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> float:
    """Return the score of a fitted model; weights reach scorers of scikit-learn, and functions that take them."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return float(scorer(model, X, y, **weights))


# -- weighted scores of held-out predictions
def weighted_scores(scorer: Any, y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any) -> np.ndarray | None:
    """Return the scores of one test part for each row of sample weights W (B, n_test).

    None if the score cannot be computed from predictions alone. Scores that are undefined, such as an area under the
    curve without a sample of one class, are NaN.
    """
    function, kwargs = getattr(scorer, "_score_func", None), dict(getattr(scorer, "_kwargs", {}))
    if function is None:
        return None
    y = y[part.test]
    known = _KNOWN.get(function)
    found = known(y, part, W, classes, kwargs, scorer) if known is not None else None
    if found is None:
        found = _one_by_one(y, part, W, classes, kwargs, scorer)
    return None if found is None else getattr(scorer, "_sign", 1) * found


def _ratio(above: np.ndarray, below: np.ndarray, undefined: float = np.nan) -> np.ndarray:
    return np.divide(above, below, out=np.full(np.shape(below), undefined), where=below > 0)


def _mean_of(values: np.ndarray, W: np.ndarray) -> np.ndarray:
    return _ratio(W @ values, W.sum(axis=1))


def _accuracy(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    return None if kwargs else _mean_of((part.predictions == y).astype(float), W)


def _squared(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    return None if kwargs else _mean_of((y - part.predictions) ** 2, W)


def _root_squared(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    return None if kwargs else np.sqrt(_mean_of((y - part.predictions) ** 2, W))


def _absolute(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    return None if kwargs else _mean_of(np.abs(y - part.predictions), W)


def _r2(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    if kwargs or len(y) < 2:
        return None
    around = y - y.mean()  # sums of squares lose digits far from the origin
    spread = _mean_of(around**2, W) - _mean_of(around, W) ** 2
    return 1 - _ratio(_mean_of((y - part.predictions) ** 2, W), spread)


def _log_loss(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    if kwargs or part.probabilities is None:
        return None
    least = np.finfo(part.probabilities.dtype).eps
    own = np.clip(part.probabilities[np.arange(len(y)), np.searchsorted(classes, y)], least, 1 - least)
    return _mean_of(-np.log(own), W)


# -- scores of counts: f1, precision, recall, Jaccard index, balanced accuracy
def _by_counts(formula: Callable[[Any, Any, Any], np.ndarray]) -> Any:
    """Return a function for a score that is computed from counts of each class: hits, predicted and true samples."""

    def scores(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
        average = kwargs.get("average", "binary")
        if set(kwargs) - {"average", "pos_label"} or average not in ("binary", "macro", "micro", "weighted"):
            return None
        labels = np.unique(np.concatenate([y, part.predictions]))
        if average == "binary":
            labels = np.array([kwargs.get("pos_label", 1)], dtype=labels.dtype)
        hits, predicted, true = _counts(y, part.predictions, W, labels)
        if average == "micro":
            return formula(hits.sum(axis=1), predicted.sum(axis=1), true.sum(axis=1))
        by_class = formula(hits, predicted, true)
        if average == "weighted":
            return _ratio((by_class * true).sum(axis=1), true.sum(axis=1))
        return by_class.mean(axis=1)

    return scores


def _counts(y: np.ndarray, predictions: np.ndarray, W: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    is_true, is_predicted = (values[:, None] == labels for values in (y, predictions))
    return [W @ part.astype(float) for part in (is_true & is_predicted, is_predicted, is_true)]


def _balanced(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    if kwargs.get("adjusted", False):
        return None
    hits, _, true = _counts(y, part.predictions, W, np.unique(y))
    return _ratio(hits, true).mean(axis=1)


# -- areas under the ROC curve
def _area(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    scores = _response(part, scorer)
    if kwargs or scores is None or scores.shape[1] != 2:
        return None
    return _weighted_area(scores[:, 1], y == classes[1], W)


def _class_areas(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    scores = _response(part, scorer)
    if scores is None or len(np.unique(y)) != len(classes):
        return None
    return np.mean([_weighted_area(scores[:, k], y == c, W) for k, c in enumerate(classes)], axis=0)


def _weighted_area(scores: np.ndarray, positive: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return the weighted share of pairs of a positive and a negative sample in the right order; ties count half."""
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))  # samples with equal scores
    above = np.add.reduceat(W[:, order] * positive[order], starts, axis=1)
    below = np.add.reduceat(W[:, order] * ~positive[order], starts, axis=1)
    right = (above * (np.cumsum(below, axis=1) - below / 2)).sum(axis=1)
    return _ratio(right, above.sum(axis=1) * below.sum(axis=1))


# -- all other scores
def _response(part: HeldOutPart, scorer: Any) -> np.ndarray | None:
    """Return scores of the classes as a scorer takes them: by the first of its methods that the estimator has."""
    methods = getattr(scorer, "_response_method", "predict")
    by_method = {"predict_proba": part.probabilities, "decision_function": part.decisions}
    for method in [methods] if isinstance(methods, str) else methods:
        if by_method.get(method) is not None:
            return by_method[method]
    return None


def _one_by_one(y: np.ndarray, part: HeldOutPart, W: np.ndarray, classes: Any, kwargs: Any, scorer: Any) -> Any:
    """Return the scores by the metric itself; None if it takes no weights."""
    function = scorer._score_func
    if "sample_weight" not in inspect.signature(function).parameters:
        return None
    response: Any = part.predictions
    if getattr(scorer, "_response_method", "predict") != "predict":
        response = _response(part, scorer)
        if response is None:
            return None
        if response.shape[1] == 2:  # scikit-learn gives the scores of the class that is counted
            response = response[:, int(np.searchsorted(classes, kwargs.get("pos_label", classes[1])))]
    try:
        return np.array([function(y, response, sample_weight=w, **kwargs) for w in W])
    except (ValueError, TypeError, IndexError):
        return None


_KNOWN: dict[Any, Callable[..., Any]] = {
    metrics.accuracy_score: _accuracy,
    metrics.balanced_accuracy_score: _balanced,
    metrics.f1_score: _by_counts(lambda hits, predicted, true: _ratio(2 * hits, predicted + true, 0.0)),
    metrics.precision_score: _by_counts(lambda hits, predicted, true: _ratio(hits, predicted, 0.0)),
    metrics.recall_score: _by_counts(lambda hits, predicted, true: _ratio(hits, true, 0.0)),
    metrics.jaccard_score: _by_counts(lambda hits, predicted, true: _ratio(hits, predicted + true - hits, 0.0)),
    roc_auc_score: _area,
    class_auc: _class_areas,
    metrics.log_loss: _log_loss,
    metrics.r2_score: _r2,
    metrics.mean_squared_error: _squared,
    metrics.root_mean_squared_error: _root_squared,
    metrics.mean_absolute_error: _absolute,
}


def is_accuracy(scorer: Any) -> bool:
    """Tell whether a scorer is the share of correct predictions, for which tests are exact."""
    return getattr(scorer, "_score_func", None) is metrics.accuracy_score and not getattr(scorer, "_kwargs", {})


def has_formula(scorer: Any) -> bool:
    """Tell whether the scores of many rows of weights are computed together."""
    return getattr(scorer, "_score_func", None) in _KNOWN


def needs_order_only(scorer: Any) -> bool:
    """Tell whether a scorer uses only the order of the scores of a class, whatever their units."""
    orders = roc_auc_score, class_auc, metrics.average_precision_score
    return getattr(scorer, "_score_func", None) in orders


def range_of(scorer: Any) -> tuple[float, float]:
    """Return the range that a score can have, as far as it is known."""
    function, sign = getattr(scorer, "_score_func", None), getattr(scorer, "_sign", 1)
    shares = (
        metrics.accuracy_score, metrics.balanced_accuracy_score, metrics.f1_score, metrics.precision_score,
        metrics.recall_score, metrics.jaccard_score, roc_auc_score, class_auc, metrics.average_precision_score,
    )  # fmt: skip
    if function in shares:
        return 0.0, 1.0
    if function is metrics.r2_score:
        return -np.inf, 1.0
    return -np.inf, 0.0 if sign < 0 and function in _KNOWN else np.inf

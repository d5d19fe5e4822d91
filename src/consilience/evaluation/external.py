"""Evaluation of a fitted model on an external cohort: every measure with a 95% interval, classes, ROC, calibration."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.base import is_classifier
from sklearn.metrics import roc_curve
from sklearn.utils._param_validation import Interval, validate_params

from ..views._annotated import kind_of
from ..views._blocks import some
from ..views._samples import in_order_of
from ..views.conversion import as_views
from ..views.validation import labeled_rows
from ._intervals import share_interval
from ._stored_samples import StoredSamples

__all__ = ["ClassMeasures", "ExternalEvaluation", "Measure", "evaluate_external"]

_CELLS = 4_000_000  # entries of the resampled weights that are in memory at a time
_EDGES = 10  # bins of probabilities
UNCHECKED = "The model stores no training samples, so it cannot be checked that these samples are new."


class Measure(NamedTuple):
    """A measure with its 95% confidence interval.

    Parameters
    ----------
    value : float
        The measure on all samples.
    low, high : float
        Its interval; NaN if the samples determine none.

    Examples
    --------
    >>> from consilience.evaluation.external import Measure
    >>> Measure(0.9, 0.8, 0.95).low
    0.8
    """

    value: float
    low: float
    high: float


class ClassMeasures(NamedTuple):
    """How well a model recognizes one class.

    Parameters
    ----------
    label : object
        The class.
    n_samples, n_predicted : int
        Number of samples of the class, and of samples that are predicted to be of it.
    sensitivity : Measure
        Share of the samples of the class that are predicted to be of it (recall), with Wilson's interval (1927).
    ppv : Measure
        Positive predictive value (precision): share of the samples predicted to be of the class that are of it.

    Examples
    --------
    >>> from consilience.evaluation.external import ClassMeasures, Measure
    >>> ClassMeasures("a", 10, 9, Measure(0.9, 0.6, 0.98), Measure(1.0, 0.7, 1.0)).n_predicted
    9
    """

    label: Any
    n_samples: int
    n_predicted: int
    sensitivity: Measure
    ppv: Measure


@dataclass(frozen=True)
class ExternalEvaluation:
    """Result of `evaluate_external`; prints as a table.

    Parameters
    ----------
    task : {"classification", "regression"}
        Kind of prediction.
    measures : dict
        Name -> Measure. For classification: accuracy, balanced accuracy, F1 (mean over classes) and, where the model
        has scores or probabilities, AUC (mean of one class against the others), log loss and Brier score. For
        regression: R2, mean absolute error and root mean squared error.
    by_class : tuple of ClassMeasures
        Sensitivity and positive predictive value of each class; empty for regression.
    roc : dict
        Class -> array of (false positive rate, true positive rate). The second class only, if there are two.
    calibration : array of shape (n_bins, 3)
        Mean predicted probability, observed share and number of samples, in bins of the probability; see
        `reliability`. For regression: mean prediction, mean target and number of samples, in bins of equal size.
    y, predictions : array of shape (n_samples,)
        Targets and predictions of the samples that have a target.
    n_unlabeled : int
        Number of samples without a target, which are left out.
    unknown : tuple
        Classes that the model does not know. Their samples are left out of all measures.
    n_unknown : int
        Number of samples of these classes.
    n_training : int or None
        Number of samples that have the values of a training sample in all views. None if the model stores no training
        samples, so that it cannot be checked.
    measures_of_new : dict
        The measures of the other samples, if there are some of both.
    notes : tuple of str
        Sentences about what limits the evaluation, printed below the measures.

    Examples
    --------
    >>> import consilience as cs
    >>> from consilience.evaluation.external import evaluate_external
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier(alpha=1e-2).fit(X[:300], y[:300])
    >>> result = evaluate_external(model, X[300:], y[300:])
    >>> list(result.measures)
    ['accuracy', 'balanced accuracy', 'F1', 'AUC']
    """

    task: str
    measures: dict[str, Measure]
    by_class: tuple[ClassMeasures, ...]
    roc: dict[Any, np.ndarray]
    calibration: np.ndarray
    y: np.ndarray
    predictions: np.ndarray
    n_unlabeled: int = 0
    unknown: tuple[Any, ...] = ()
    n_unknown: int = 0
    n_training: int | None = None
    measures_of_new: dict[str, Measure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = list(self.measures.items())
        rows += [(f"sensitivity of {own.label}", own.sensitivity) for own in self.by_class]
        rows += [(f"PPV of {own.label}", own.ppv) for own in self.by_class]
        wide = max(len(name) for name, _ in rows)
        lines = [f"{'':<{wide}}  {'value':>8}  {'95% interval':>17}"]
        lines += [f"{name:<{wide}}  {own.value:>8.4f}  {own.low:>8.4f} {own.high:>8.4f}" for name, own in rows]
        notes = [*self.notes, *([UNCHECKED] if self.n_training is None else [])]
        return "\n".join([*lines, *([""] if notes else []), *notes])


@validate_params(
    {
        "n_resamples": [Interval(Integral, 100, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=False,
)
def evaluate_external(
    model: Any, X: Any, y: Any, *, n_resamples: int = 1000, random_state: int = 0, positive: Any = None
) -> ExternalEvaluation:
    """Evaluate a fitted model on samples of an external cohort, with a 95% interval of every measure.

    The model is not fitted again, so the intervals are about other samples of the same cohort, with this model.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor.
    X : Views or what the model predicts
        Samples that took no part in the fit. Where the model stores training samples, they are compared by value, and a
        note says how many of the samples repeat one.
    y : array-like of shape (n_samples,)
        Their classes or targets. Samples whose target is missing, or a class that the model does not know, are left out
        of all measures and counted.
    n_resamples : int, default=1000
        Number of bootstrap resamples of the samples.
    random_state : int, default=0
        Seed of the resamples.
    positive : object, optional
        The class that ROC curve and calibration are of, if there are two. Default: the second one in sorted order.

    Returns
    -------
    ExternalEvaluation
        Measures, measures by class, ROC curves and calibration.

    Notes
    -----
    The intervals of accuracy, sensitivity and positive predictive value are Wilson's (1927). That of balanced accuracy
    combines those of the sensitivities (Zou and Donner 2008). Means of losses have bootstrap-t intervals (Efron and
    Tibshirani 1993). F1, AUC and R2 have percentiles of bootstrap resamples. Resamples of correct predictions do not
    vary, so F1 gets at least the interval of TP / (TP + FP + FN) as a proportion, and AUC at least that of Newcombe
    (2006, method 5).

    Examples
    --------
    >>> import consilience as cs
    >>> from consilience.evaluation.external import evaluate_external
    >>> X, y = cs.datasets.load_breast_cancer_views(return_X_y=True)
    >>> model = cs.CoRegularizedRidgeClassifier(alpha=1e-2).fit(X[:300], y[:300])
    >>> accuracy = evaluate_external(model, X[300:], y[300:]).measures["accuracy"]
    >>> accuracy.low < accuracy.value < accuracy.high
    True
    """
    X = X if hasattr(X, "shape") and kind_of(X) is None else as_views(X)
    y = in_order_of(X, y, "y")
    labeled, y = labeled_rows(y)
    if y.ndim != 1 or not len(y):
        raise ValueError(f"evaluate_external needs one known target per sample; y has shape {y.shape} without missing.")
    n_unlabeled, unknown = int(np.sum(~labeled)), ()
    rows = np.flatnonzero(labeled)
    if is_classifier(model):
        known, unknown = _known_classes(model, y)
        rows, y = rows[known], y[known]
    elif y.dtype.kind not in "iufb":
        raise ValueError(f"The model is for regression, but y has {y[:1].tolist()[0]!r}, for example. Give numbers.")
    n_unknown = int(len(labeled) - n_unlabeled - len(rows))
    if len(rows) < len(labeled):
        X = _samples(X, rows)
    result = _evaluate(model, X, y, n_resamples, np.random.default_rng(random_state), positive)
    result = replace(result, n_unlabeled=n_unlabeled, unknown=unknown, n_unknown=n_unknown)
    training = StoredSamples(model, X)
    repeated = training.repeated()
    if repeated is not None:
        result = replace(result, n_training=int(repeated.sum()))
        if training.all_stored and 0 < repeated.sum() < len(y):
            new, rng = np.flatnonzero(~repeated), np.random.default_rng(random_state)
            result = replace(
                result, measures_of_new=_evaluate(model, _samples(X, new), y[new], n_resamples, rng, positive).measures
            )
    return replace(result, notes=(*_notes(result, training.all_stored), *training.other_units()))


def _samples(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _known_classes(model: Any, y: np.ndarray) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return which labels the model knows, and the other ones; some must be known."""
    classes = np.asarray(model.classes_)
    known = np.isin(y, classes)
    if (y.dtype.kind != classes.dtype.kind and "U" in (y.dtype.kind, classes.dtype.kind)) or not known.any():
        raise ValueError(f"The model has the classes {some(classes, 5)}, but y has {y[:1].tolist()[0]!r}, for example.")
    return known, tuple(np.unique(y[~known]).tolist())


def _count(n: int) -> str:
    return f"{n:,} sample{'s' * (n != 1)}"


def _notes(result: ExternalEvaluation, all_stored: bool) -> list[str]:
    """Return sentences about samples that are left out, and about training samples."""
    notes, n = [], len(result.y)
    if result.n_unlabeled:
        notes.append(f"{_count(result.n_unlabeled)} without a target left out.")
    if result.unknown:
        notes.append(
            f"The model does not know {some([str(label) for label in result.unknown], 5)}: {_count(result.n_unknown)} "
            "left out of all measures. Spell classes as in training."
        )
    if result.n_training:
        notes.append(
            f"{'' if all_stored else 'At least '}{result.n_training:,} of {n:,} samples are training samples of the "
            "model (equal in all views); scores on them are not of new samples."
        )
    if result.measures_of_new:
        listed = (
            f"{name} {own.value:.4f} ({own.low:.4f} to {own.high:.4f})" for name, own in result.measures_of_new.items()
        )
        notes.append(f"On the other {_count(n - int(result.n_training or 0))}: {', '.join(listed)}.")
    return notes


def _evaluate(
    model: Any, X: Any, y: np.ndarray, n_resamples: int, rng: np.random.Generator, positive: Any
) -> ExternalEvaluation:
    predictions = np.asarray(model.predict(X))
    if is_classifier(model):
        return _evaluate_classifier(model, X, y, predictions, n_resamples, rng, positive)
    y = y.astype(np.float64)
    values = predictions.astype(np.float64).reshape(len(y))
    measures = _regression_measures(y, values, n_resamples, rng)
    return ExternalEvaluation("regression", measures, (), {}, binned(values, y), y, values)


def _evaluate_classifier(
    model: Any,
    X: Any,
    y: np.ndarray,
    predictions: np.ndarray,
    n_resamples: int,
    rng: np.random.Generator,
    positive: Any,
) -> ExternalEvaluation:
    classes = np.asarray(model.classes_)
    by_class = tuple(_class_measures(label, y, predictions) for label in classes.tolist())
    measures = _class_summary(y, predictions, by_class, n_resamples, rng)
    roc: dict[Any, np.ndarray] = {}
    calibration = np.zeros((0, 3))
    scores, are_probabilities = _scores(model, X, len(classes))
    if scores is not None:
        last = np.argsort(classes == positive, kind="stable")  # the positive class comes last
        classes, scores = classes[last], scores[:, last]
        codes = np.argmax(y[:, None] == classes, axis=1)
        more, roc = _score_measures(codes, scores, are_probabilities, n_resamples, rng)
        measures.update(more)
        roc = {classes[k]: curve for k, curve in roc.items()}
        if are_probabilities:
            calibration = reliability(scores, y, classes)
    return ExternalEvaluation("classification", measures, by_class, roc, calibration, y, predictions)


def _scores(model: Any, X: Any, n_classes: int) -> tuple[np.ndarray | None, bool]:
    """Return probabilities or scores of all classes, (n, n_classes), and whether they are probabilities."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64), True
    if not hasattr(model, "decision_function"):
        return None, False
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    return (scores if scores.shape[1] == n_classes else None), False


# -- classes
def proportion(hits: int, n: int) -> Measure:
    """Return a share of n samples with Wilson's interval (1927); NaN for no samples."""
    if not n:
        return Measure(np.nan, np.nan, np.nan)
    return Measure(hits / n, *share_interval(hits / n, n))


def _class_measures(label: Any, y: np.ndarray, predictions: np.ndarray) -> ClassMeasures:
    own, given = np.asarray(y == label), np.asarray(predictions == label)
    hits, n_samples, n_predicted = int((own & given).sum()), int(own.sum()), int(given.sum())
    return ClassMeasures(label, n_samples, n_predicted, proportion(hits, n_samples), proportion(hits, n_predicted))


def _class_summary(
    y: np.ndarray,
    predictions: np.ndarray,
    by_class: tuple[ClassMeasures, ...],
    n_resamples: int,
    rng: np.random.Generator,
) -> dict[str, Measure]:
    """Return the measures that the counts of true and predicted classes determine."""
    present = [own for own in by_class if own.n_samples]
    balanced = _mean_of([own.sensitivity for own in present])
    labels = [own.label for own in by_class]
    counts = np.array([[np.sum((y == a) & (predictions == b)) for b in labels] for a in labels])
    # resampled samples have multinomial counts
    drawn = rng.multinomial(len(y), counts.ravel() / len(y), size=n_resamples).reshape(-1, *counts.shape)
    f1 = _wider(_mean_of([_f1_of(*pair) for pair in _overlaps(counts)]), np.array([_mean_f1(own) for own in drawn]))
    hits = int(np.sum(predictions == y))
    return {"accuracy": proportion(hits, len(y)), "balanced accuracy": balanced, "F1": f1}


def _overlaps(counts: np.ndarray) -> list[tuple[int, int]]:
    """Return TP and TP + FP + FN of each class that is among the targets or the predictions."""
    hits = counts.diagonal()
    unions = counts.sum(axis=0) + counts.sum(axis=1) - hits
    return [(int(hit), int(union)) for hit, union in zip(hits, unions, strict=True) if union]


def _mean_f1(counts: np.ndarray) -> float:
    return float(np.mean([2 * hits / (hits + union) for hits, union in _overlaps(counts)]))


def _f1_of(hits: int, union: int) -> Measure:
    """Return F1 = 2J / (1 + J) and its interval from that of J = TP / (TP + FP + FN), a proportion."""
    return Measure(*(2 * share / (1 + share) for share in proportion(hits, union)))


def _mean_of(parts: list[Measure]) -> Measure:
    """Return the mean of independent measures, with an interval from theirs (Zou and Donner 2008)."""
    values, lows, highs = np.array(parts).T
    mean, k = float(values.mean()), len(parts)
    below, above = (float(np.sqrt(np.sum((values - edge) ** 2))) / k for edge in (lows, highs))
    return Measure(mean, max(mean - below, 0.0), min(mean + above, 1.0))


def _wider(measure: Measure, resampled: np.ndarray) -> Measure:
    """Return a measure with an interval that covers its own and that of the resamples."""
    low, high = _percentiles(resampled)
    return Measure(measure.value, float(np.fmin(measure.low, low)), float(np.fmax(measure.high, high)))


def _percentiles(values: np.ndarray) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    return tuple(np.quantile(values, (0.025, 0.975)).tolist()) if len(values) else (np.nan, np.nan)


# -- scores and probabilities
def _score_measures(
    codes: np.ndarray, scores: np.ndarray, are_probabilities: bool, n_resamples: int, rng: np.random.Generator
) -> tuple[dict[str, Measure], dict[int, np.ndarray]]:
    """Return AUC, log loss and Brier score, and the ROC curves by the position of their class."""
    n, n_classes = scores.shape
    present = [k for k in range(n_classes) if 0 < np.sum(codes == k) < n]
    shown = present[-1:] if n_classes == 2 else present
    areas = {k: _area(codes == k, scores[:, k]) for k in shown}
    truth = codes[:, None] == np.arange(n_classes)
    chosen = scores[np.arange(n), codes]
    losses = np.column_stack([-np.log(np.clip(chosen, 1e-15, 1.0)), ((scores - truth) ** 2).sum(axis=1)])
    losses[:, 1] /= 2 if n_classes == 2 else 1  # of two classes, the squared error of one probability

    ones = np.ones((1, n))
    measures = {}
    if areas:
        by_class = [_newcombe(float(areas[k](ones)[0]), int(np.sum(codes == k)), n) for k in areas]
        drawn = _resampled(lambda w: np.mean([area(w) for area in areas.values()], axis=0), n, n_resamples, rng)
        measures["AUC"] = _wider(_mean_of(by_class), drawn)
    if are_probabilities:
        measures["log loss"], brier = _means(losses, n_resamples, rng)
        measures["Brier score"] = brier._replace(high=min(brier.high, 1.0 if n_classes == 2 else 2.0))
    curves = {k: np.column_stack(roc_curve(codes == k, scores[:, k])[:2]) for k in shown}
    return measures, curves


def _resampled(
    statistics: Callable[[np.ndarray], np.ndarray], n: int, n_resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """Return statistics of bootstrap resamples, which are given as rows of counts of the n samples."""
    step, parts = max(1, _CELLS // n), []
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        rows = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(rows.ravel(), minlength=size * n).reshape(size, n)
        parts.append(statistics(counts.astype(np.float64)))
    return np.concatenate(parts)


def _area(positive: np.ndarray, scores: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from weights of samples, a row each, to the weighted area under the ROC curve.

    The area is the share of pairs of a positive and a negative sample with the higher score for the positive one; equal
    scores count half (Hanley and McNeil 1982).
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])  # of samples with equal scores
    above = positive[order]

    def area(weights: np.ndarray) -> np.ndarray:
        sorted_weights = weights[:, order]
        won = np.add.reduceat(sorted_weights * above, starts, axis=1)
        lost = np.add.reduceat(sorted_weights * ~above, starts, axis=1)
        below = np.cumsum(lost, axis=1) - lost
        pairs = won.sum(axis=1) * lost.sum(axis=1)
        with np.errstate(invalid="ignore"):  # a resample may have one class only
            return np.asarray((won * (below + lost / 2)).sum(axis=1) / np.where(pairs > 0, pairs, np.nan))

    return area


def _newcombe(area: float, n_positive: int, n: int) -> Measure:
    """Return an area under a ROC curve with its score interval (Newcombe 2006, method 5).

    The ends are the areas t with (t - area)² = z² V(t), where V is the variance of Hanley and McNeil (1982) with both
    numbers of samples replaced by their mean, except for the two that divide it.
    """
    n_negative, middle = n - n_positive, n / 2 - 1
    z = float(norm.ppf(0.975))

    def distance(t: float) -> float:
        variance = t * (1 - t) * (1 + middle * (1 - t) / (2 - t) + middle * t / (1 + t)) / (n_positive * n_negative)
        return float((t - area) ** 2 - z**2 * variance)

    tiny = 1e-9  # the variance is 0 at 0 and 1, and positive at this distance from them
    low = brentq(distance, 0.0, min(area, 1 - tiny)) if area > 0 else 0.0
    high = brentq(distance, max(area, tiny), 1.0) if area < 1 else 1.0
    return Measure(area, float(low), float(high))


# -- regression
def _regression_measures(
    y: np.ndarray, predictions: np.ndarray, n_resamples: int, rng: np.random.Generator
) -> dict[str, Measure]:
    n, error, centered = len(y), y - predictions, y - y.mean()
    columns = np.column_stack([error**2, centered, centered**2])

    def r_squared(weights: np.ndarray) -> np.ndarray:
        square, first, second = (weights @ columns / n).T
        variance = second - first**2
        return np.asarray(1 - square / np.where(variance > 0, variance, np.nan))

    r2 = Measure(float(r_squared(np.ones((1, n)))[0]), *_percentiles(_resampled(r_squared, n, n_resamples, rng)))
    absolute, square = _means(np.column_stack([np.abs(error), error**2]), n_resamples, rng)
    root = Measure(*np.sqrt(square).tolist())
    return {"R2": r2, "mean absolute error": absolute, "root mean squared error": root}


def _means(losses: np.ndarray, n_resamples: int, rng: np.random.Generator) -> list[Measure]:
    """Return the means of nonnegative columns with their bootstrap-t intervals (Efron and Tibshirani 1993, chapter 12).

    A few samples with large losses make a mean skewed, so that percentiles of its resamples are too short.
    """
    n = len(losses)
    both = np.column_stack([losses, losses**2])

    def moments(weights: np.ndarray) -> np.ndarray:
        """Return the mean and its standard error of each column, (n_resamples, 2, n_columns)."""
        first, second = np.split(weights @ both / n, 2, axis=1)
        return np.stack([first, np.sqrt(np.maximum(second - first**2, 0.0) / max(n - 1, 1))], axis=1)

    means, errors = moments(np.ones((1, n)))[0]
    drawn = _resampled(moments, n, n_resamples, rng)
    found = []
    for k, mean in enumerate(means.tolist()):
        there = drawn[:, 1, k] > 1e-12 * abs(mean)  # resamples of equal losses have no standard error
        low, high = _percentiles((drawn[there, 0, k] - mean) / drawn[there, 1, k])
        found.append(Measure(mean, max(mean - high * float(errors[k]), 0.0), mean - low * float(errors[k])))
    return found


# -- calibration
def reliability(probabilities: np.ndarray, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return mean probability, observed share and number of samples in ten bins of equal width; empty bins are omitted.

    Of two classes, the probability is that of the second. Of more, it is that of the predicted class, and the observed
    share is that of correct predictions.
    """
    if len(classes) == 2:
        given, observed = probabilities[:, 1], y == classes[1]
    else:
        best = probabilities.argmax(axis=1)
        given, observed = probabilities[np.arange(len(y)), best], classes[best] == y
    place = np.minimum((given * _EDGES).astype(int), _EDGES - 1)
    bins = [place == k for k in range(_EDGES)]
    return np.array([(given[own].mean(), observed[own].mean(), own.sum()) for own in bins if own.any()])


def binned(given: np.ndarray, observed: np.ndarray, bins: int = 10) -> np.ndarray:
    """Return the means of both arrays in bins of equal size by the first, and the sizes."""
    order = np.argsort(given, kind="stable")
    parts = np.array_split(order, min(bins, max(1, len(order) // 10)))
    return np.array([(given[part].mean(), observed[part].mean(), len(part)) for part in parts])

"""Inspection of a fitted estimator: where its views agree, which views it needs, and its equal error rate."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, roc_curve
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ..views import _blocks
from ..views.container import Views
from ..views.estimator import decide, presence
from ..views.validation import labeled_rows, read_views_to_predict

__all__ = ["equal_error_rate", "view_agreement", "view_importances"]


def view_agreement(model: Any, X: Any) -> Bunch:
    """Return how far the views of each sample agree.

    Samples on which the views disagree deserve a closer look, or a label.

    Parameters
    ----------
    model : estimator
        A fitted batch estimator with `view_decision_function`.
    X : Views or what `as_views` reads
        The samples.

    Returns
    -------
    Bunch
        - ``spread`` (n_samples,): root of the mean of ‖f_v(x) - f_w(x)‖² over pairs of present views; NaN for samples
          with fewer than two views.
        - ``votes`` (n_samples, n_views): for classifiers, the class that each view predicts; None for a missing view.
        - ``agreement`` (n_samples,): for classifiers, the share of pairs of present views with the same vote; 1 if all
          agree, NaN for samples with fewer than two views.

    Examples
    --------
    >>> from consilience import CoRegularizedRidgeClassifier, view_agreement
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = CoRegularizedRidgeClassifier(agreement_penalty=1e-4).fit(X[:400], y[:400])
    >>> agreement = view_agreement(model, X[400:])
    >>> correct = model.predict(X[400:]) == y[400:]
    >>> bool(correct[agreement.agreement == 1].mean() > correct[agreement.agreement < 1].mean())
    True
    """
    _check_fitted_with(model, "view_decision_function")
    outputs = model.view_decision_function(X)
    flat = outputs[:, :, None] if outputs.ndim == 2 else outputs
    present = ~np.isnan(flat).any(axis=2)
    n, m = present.shape
    classifies = is_classifier(model) and not getattr(model, "_indicator", False)
    chosen = np.zeros((n, m), dtype=int)  # position of the class that each view predicts
    if classifies:
        # missing views get a class too; it is never counted
        chosen = np.column_stack([decide(np.nan_to_num(outputs[:, v]), len(model.classes_)) for v in range(m)])
    squares, pairs, same = np.zeros(n), np.zeros(n), np.zeros(n)
    for v in range(m):
        for w in range(v + 1, m):
            both = present[:, v] & present[:, w]
            pairs += both
            squares[both] += ((flat[both, v] - flat[both, w]) ** 2).sum(axis=1)
            same += both & (chosen[:, v] == chosen[:, w])
    agreement = Bunch(spread=np.sqrt(_ratio(squares, pairs)))
    if classifies:
        votes = model.classes_[chosen].astype(object)
        votes[~present] = None
        agreement.update(votes=votes, agreement=_ratio(same, pairs))
    return agreement


def _check_fitted_with(model: Any, needed: str) -> None:
    """Validate that an estimator is fitted and has an attribute."""
    check_is_fitted(model)
    if hasattr(model, needed):
        return
    if hasattr(model, "learn_one"):
        raise TypeError(
            f"{type(model).__name__} learns from all views together and has no `{needed}`. Give a batch estimator."
        )
    raise TypeError(
        f"{type(model).__name__} has no `{needed}`. Give a fitted estimator of views. For a pipeline, give its last "
        "step and the transformed samples: model[-1], model[:-1].transform(X)."
    )


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def view_importances(model: Any, X: Any, y: Any, *, scoring: Any = None) -> Bunch:
    """Return the weight of each view, and the score that is lost when the view is missing at prediction.

    The estimator is not fitted again: it predicts without the view, as for samples where the view is missing. Each
    view is tested on the samples that have it and at least one other view.

    Parameters
    ----------
    model : estimator
        A fitted batch estimator.
    X : Views or what `as_views` reads
        Samples that were not used to fit it.
    y : array-like of shape (n_samples,)
        Their classes or targets.
    scoring : str or callable, optional
        Scorer of scikit-learn. Default: the `score` of the estimator.

    Returns
    -------
    Bunch
        - ``weight`` (dict by view): share of ``|c_v|`` in their sum.
        - ``loss`` (dict by view): score with all views minus the score without this view on the same samples; NaN if
          there are none.
        - ``n_samples`` (dict by view): number of samples that were tested.
        - ``score``: score of all samples with all views.

    Examples
    --------
    >>> from consilience import CoRegularizedRidgeClassifier, view_importances
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = CoRegularizedRidgeClassifier().fit(X[:400], y[:400])
    >>> importances = view_importances(model, X[400:], y[400:])
    >>> {name: round(loss, 3) for name, loss in importances.loss.items()}
    {'mean': 0.006, 'error': 0.0, 'worst': 0.053}
    """
    _check_fitted_with(model, "view_weights_")
    score = check_scoring(model, scoring=scoring)
    X = read_views_to_predict(model, X)
    y = np.asarray(y)
    labeled, _ = labeled_rows(y, getattr(model, "unlabeled", None))
    present = presence(X) & labeled[:, None]  # unlabeled samples cannot be scored
    sizes = np.abs(model.view_weights_)
    weight = dict(zip(X.names, (sizes / sizes.sum()).tolist(), strict=True))
    loss, n_samples = {}, {}
    for v, name in enumerate(X.names):
        rows = np.flatnonzero(present[:, v] & (present.sum(axis=1) > 1))
        n_samples[name] = len(rows)
        loss[name] = float("nan")
        if len(rows):
            tested: Views = X[rows]
            others = tested[[other for other in X.names if other != name]]
            loss[name] = float(score(model, tested, y[rows]) - score(model, others, y[rows]))
    return Bunch(weight=weight, loss=loss, n_samples=n_samples, score=float(score(model, X, y)))


def equal_error_rate(y: Any, scores: Any, *, positive: Any = None) -> float:
    """Return the error rate at the threshold where the rates of false positives and false negatives are equal.

    The rate is interpolated between two points of the ROC curve. Szedmak, Shawe-Taylor and Parrado-Hernandez (2006)
    report one minus this rate.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The classes.
    scores : array-like of shape (n_samples,) or (n_samples, n_classes)
        Scores of the second of two classes, or of all classes in sorted order, as `decision_function` returns them.
        With more than two classes, one column holds the scores of `positive`.
    positive : object, optional
        Class to separate from the others. Default: the second of two classes.

    Returns
    -------
    float
        The equal error rate, between 0 and 1.

    See Also
    --------
    sklearn.metrics.roc_curve : The curve that the rate is read from.

    Examples
    --------
    >>> from consilience import equal_error_rate
    >>> equal_error_rate(["a", "a", "b", "b"], [0.1, 0.4, 0.35, 0.8])
    0.5
    >>> equal_error_rate(["a", "a", "b", "b"], [0.1, 0.2, 0.35, 0.8])
    0.0
    """
    is_positive, scores = _one_against_rest(np.asarray(y), np.asarray(scores, dtype=np.float64), positive)
    false, true, _ = roc_curve(is_positive, scores, drop_intermediate=False)
    excess = false - (1 - true)  # false positive rate minus false negative rate: from -1 to 1, never decreasing
    k = int(np.argmax(excess >= 0))
    if excess[k] == 0 or excess[k] == excess[k - 1]:  # a point of the curve, or nothing to interpolate
        return float(false[k])
    share = -excess[k - 1] / (excess[k] - excess[k - 1])
    return float(false[k - 1] + share * (false[k] - false[k - 1]))


def _one_against_rest(y: np.ndarray, scores: np.ndarray, positive: Any) -> tuple[np.ndarray, np.ndarray]:
    """Validate classes and scores; return which samples are positive, and the scores of the positive class."""
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"The equal error rate needs samples of two classes; y has only {_blocks.quoted(classes)}.")
    if positive is None:
        if len(classes) > 2:
            raise ValueError(f"y has {len(classes)} classes. Choose one of them by `positive`.")
        positive = classes[1]
    if positive not in classes:
        raise ValueError(f"`positive` must be a class of y, {_blocks.quoted(classes)}; got {positive!r}.")
    if scores.ndim == 2:
        if scores.shape[1] != len(classes):
            raise ValueError(
                f"`scores` has {scores.shape[1]} columns and y has {len(classes)} classes. Give one column per class."
            )
        scores = scores[:, int(np.flatnonzero(classes == positive)[0])]
    elif len(classes) == 2 and positive == classes[0]:
        scores = -scores  # a single score belongs to the second class
    if scores.shape != y.shape or not np.isfinite(scores).all():
        raise ValueError(f"`scores` must be finite, one per sample; got shape {scores.shape} for {len(y)} samples.")
    return y == positive, scores

"""Looking into a fitted learner: where its views agree, and which of them it needs."""

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

__all__ = ["equal_error_rate", "roc_points", "view_agreement", "view_importances"]


def view_agreement(model: Any, X: Any) -> Bunch:
    """Say for each sample how far its views agree: where they do not, look closer, or ask for a label.

    Parameters
    ----------
    model : learner
        A fitted batch learner with `view_decision_function`.
    X : Views or what `as_views` reads
        The samples.

    Returns
    -------
    Bunch
        - ``spread`` (n_samples,): the root of the mean of ‖f_v(x) - f_w(x)‖² over pairs of views present; NaN where
          there are fewer than two.
        - ``votes`` (n_samples, n_views): for classifiers, each view's own class; an absent view has none (None).
        - ``agreement`` (n_samples,): for classifiers, the share of pairs of views present with the same vote, 1 where
          all agree; NaN where there are fewer than two.

    Examples
    --------
    >>> from consilience import CoRegularizedRidgeClassifier, view_agreement
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = CoRegularizedRidgeClassifier(agreement_penalty=1e-4).fit(X[:400], y[:400])
    >>> found = view_agreement(model, X[400:])
    >>> right = model.predict(X[400:]) == y[400:]
    >>> bool(right[found.agreement == 1].mean() > right[found.agreement < 1].mean())
    True
    """
    _check_learner(model, "view_decision_function")
    answers = model.view_decision_function(X)
    flat = answers[:, :, None] if answers.ndim == 2 else answers
    present = ~np.isnan(flat).any(axis=2)
    n, m = present.shape
    squares, pairs, same = np.zeros(n), np.zeros(n), np.zeros(n)
    classifies = is_classifier(model) and not getattr(model, "_indicator", False)
    picks = (
        np.column_stack([decide(np.nan_to_num(answers[:, v]), len(model.classes_)) for v in range(m)])
        if (classifies)
        else np.zeros((n, m), dtype=int)
    )
    for v in range(m):
        for w in range(v + 1, m):
            both = present[:, v] & present[:, w]
            pairs += both
            squares[both] += ((flat[both, v] - flat[both, w]) ** 2).sum(axis=1)
            same += both & (picks[:, v] == picks[:, w])
    found = Bunch(spread=np.sqrt(_share(squares, pairs)))
    if classifies:
        votes = model.classes_[picks].astype(object)
        votes[~present] = None
        found.update(votes=votes, agreement=_share(same, pairs))
    return found


def _check_learner(model: Any, needed: str) -> None:
    check_is_fitted(model)
    if not hasattr(model, needed):
        if hasattr(model, "learn_one"):
            raise TypeError(
                f"{type(model).__name__} learns its views together and has no `{needed}`: give a batch learner."
            )
        raise TypeError(
            f"{type(model).__name__} has no `{needed}`: give a fitted learner of views itself. Of a pipeline, give its "
            "last step, and the samples as its steps before make them: model[-1], model[:-1].transform(X)."
        )


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def view_importances(model: Any, X: Any, y: Any, *, scoring: Any = None) -> Bunch:
    """Say what each view is worth: its weight, and the score that is lost when it is absent at prediction.

    Nothing is fitted anew: the learner predicts without the view, as it does where a view is missing. A view is judged
    on the samples that have it and at least one other.

    Parameters
    ----------
    model : learner
        A fitted batch learner.
    X : Views or what `as_views` reads
        Samples that were not used for the fit.
    y : array-like
        Their classes or targets.
    scoring : str or callable, optional
        A scorer of scikit-learn; the learner's own `score` by default.

    Returns
    -------
    Bunch
        Dicts by view: ``weight`` (the share of ``|c_v|`` in their sum), ``loss`` (the score with all views less the
        score without this one, on the same samples; NaN where none can be judged) and ``n_samples`` (how many were);
        and ``score``, that of all samples with all views.

    Examples
    --------
    >>> from consilience import CoRegularizedRidgeClassifier, view_importances
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = CoRegularizedRidgeClassifier().fit(X[:400], y[:400])
    >>> found = view_importances(model, X[400:], y[400:])
    >>> {name: round(loss, 3) for name, loss in found.loss.items()}
    {'mean': 0.006, 'error': 0.0, 'worst': 0.053}
    """
    _check_learner(model, "view_weights_")
    score = check_scoring(model, scoring=scoring)
    X = read_views_to_predict(model, X)
    y = np.asarray(y)
    labeled, _ = labeled_rows(y, getattr(model, "unlabeled", None))
    there = presence(X) & labeled[:, None]
    sizes = np.abs(model.view_weights_)
    weight = dict(zip(X.names, (sizes / sizes.sum()).tolist(), strict=True))
    loss, judged = {}, {}
    for v, name in enumerate(X.names):
        rows = np.flatnonzero(there[:, v] & (there.sum(axis=1) > 1))
        judged[name] = len(rows)
        loss[name] = float("nan")
        if len(rows):
            whole: Views = X[rows]
            loss[name] = float(score(model, whole, y[rows]) - score(model, _without(whole, name), y[rows]))
    return Bunch(weight=weight, loss=loss, n_samples=judged, score=float(score(model, X, y)))


def _without(X: Views, name: str) -> Views:
    return X[[other for other in X.names if other != name]]


def roc_points(y: Any, scores: Any, *, positive: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the points of the receiver operating characteristic of one class against the rest.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The classes.
    scores : array-like of shape (n_samples,) or (n_samples, n_classes)
        The scores of `positive`, or those of all classes in sorted order, as `decision_function` gives them.
    positive : object, optional
        The class that scores are for; the second of two by default.

    Returns
    -------
    false_positives : array
        The share of other samples with a score of at least the threshold, from 0 to 1.
    true_positives : array
        The share of samples of the class with a score of at least the threshold.
    thresholds : array
        The thresholds, falling; the first is infinite.

    Examples
    --------
    >>> from consilience import roc_points
    >>> false, true, _ = roc_points(["a", "a", "b", "b"], [0.1, 0.4, 0.35, 0.8])
    >>> false
    array([0. , 0. , 0.5, 0.5, 1. ])
    >>> true
    array([0. , 0.5, 0.5, 1. , 1. ])
    """
    values, scores = np.asarray(y), np.asarray(scores, dtype=np.float64)
    classes = np.unique(values)
    if len(classes) < 2:
        raise ValueError(f"A ROC curve needs samples of the class and others; y has {_blocks.quoted(classes)} only.")
    if positive is None:
        if len(classes) > 2:
            raise ValueError(f"y has {len(classes)} classes: say by `positive` which of them the curve is for.")
        positive = classes[1]
    if positive not in classes:
        raise ValueError(f"`positive` is {positive!r}; the classes in y are {_blocks.quoted(classes)}.")
    if scores.ndim == 2:
        if scores.shape[1] != len(classes):
            raise ValueError(
                f"`scores` has {scores.shape[1]} columns, y {len(classes)} classes. Give one column per class."
            )
        scores = scores[:, int(np.flatnonzero(classes == positive)[0])]
    elif len(classes) == 2 and positive == classes[0]:
        scores = -scores  # one score is for the second class
    if scores.shape != values.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"`scores` must be finite, one per sample; got shape {scores.shape} for {len(values)} samples."
        )
    false, true, thresholds = roc_curve(values == positive, scores, drop_intermediate=False)
    return false, true, thresholds


def equal_error_rate(y: Any, scores: Any, *, positive: Any = None) -> float:
    """Return the error where a threshold makes the shares of false positives and false negatives equal.

    Szedmak, Shawe-Taylor and Parrado-Hernandez (2006) report one minus it. Between two points of the curve it is
    interpolated.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The classes.
    scores : array-like of shape (n_samples,) or (n_samples, n_classes)
        The scores of `positive`, or those of all classes in sorted order.
    positive : object, optional
        The class that scores are for; the second of two by default.

    Returns
    -------
    float
        The equal error rate, between 0 and 1.

    Examples
    --------
    >>> from consilience import equal_error_rate
    >>> equal_error_rate(["a", "a", "b", "b"], [0.1, 0.4, 0.35, 0.8])
    0.5
    >>> equal_error_rate(["a", "a", "b", "b"], [0.1, 0.2, 0.35, 0.8])
    0.0
    """
    false, true, _ = roc_points(y, scores, positive=positive)
    above = false - (1 - true)  # from -1 to 1, never falling
    k = int(np.argmax(above >= 0))
    if above[k] == 0 or above[k] == above[k - 1]:
        return float(false[k])
    share = -above[k - 1] / (above[k] - above[k - 1])
    return float(false[k - 1] + share * (false[k] - false[k - 1]))

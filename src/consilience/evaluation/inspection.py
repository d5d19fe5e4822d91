"""Inspection of a fitted estimator: its proof, where its views agree, which views it needs, its equal error rate."""

from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, roc_curve
from sklearn.utils import Bunch

from .._backend import to_numpy
from ..solvers.certificates import Certificate
from ..views import _blocks
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.estimator import decide, presence
from ..views.validation import labeled_rows, read_as_fitted, read_views_to_predict
from ._wrappers import final_estimator, final_views, fitted_final, in_target_units, members_of, steps_of

__all__ = ["certificate", "equal_error_rate", "view_agreement", "view_importances"]


def certificate(model: Any, X: Any = None, y: Any = None) -> Certificate:
    """Return what is proved about a fitted estimator, also inside a pipeline or a search.

    The same as ``estimator.certificate()``, for models of scikit-learn that have no such method. It is about the
    problem that the final estimator solved, on transformed samples and targets.

    Parameters
    ----------
    model : estimator
        A fitted estimator of views, or a pipeline, search or other wrapper around one.
    X : Views or what `as_views` reads, optional
        For online estimators, the samples learned, as they were given to `model`. They give a better mistake bound.
    y : array-like of shape (n_samples,), optional
        Their classes. A pandas Series is matched by the names of the samples.

    Returns
    -------
    Certificate
        Objective, gap, residual or bound; prints as a sentence.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from consilience import CoRegularizedRidgeClassifier, PerView, certificate
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = make_pipeline(PerView(StandardScaler()), CoRegularizedRidgeClassifier(alpha=1e-2)).fit(X, y)
    >>> certificate(model).status
    'exact'
    """
    final = fitted_final(model, "certificate")
    if X is None:
        proof: Certificate = final.certificate()
        return proof
    if "X" not in signature(final.certificate).parameters:
        raise TypeError(
            f"The certificate of {type(final).__name__} needs no samples: it is computed in `fit`. Omit X and y."
        )
    given = X if isinstance(X, Views) else None
    X = read_views_to_predict(final, final_views(model, X))
    proof = final.certificate(X, in_order_of(X if X.sample_names is not None or given is None else given, y, "y"))
    return proof


def _sample_names(given: Views | None, transformed: Views) -> np.ndarray | None:
    """Return the names of transformed samples; those of the given samples if a transformer has dropped them."""
    if transformed.sample_names is not None or given is None:
        return transformed.sample_names
    return given.sample_names


def names_of_values(model: Any, n: int) -> tuple[str, ...]:
    """Return the views that n values of a fitted estimator belong to: all of them, or those that were used."""
    return tuple(model.view_names_in_) if len(model.view_names_in_) == n else tuple(model._used_views)


# -- agreement of views
def view_agreement(model: Any, X: Any) -> Bunch:
    """Return how far the views of each sample agree.

    Samples on which the views disagree deserve a closer look, or a label.

    Parameters
    ----------
    model : estimator
        A fitted batch estimator with `view_decision_function`, or a pipeline, search or other wrapper around one.
    X : Views or what `as_views` reads
        The samples, as you give them to ``model.predict``.

    Returns
    -------
    Bunch
        - ``spread`` (n_samples,): root of the mean of ‖f_v(x) - f_w(x)‖² over pairs of present views; NaN for samples
          with fewer than two views. Where a `TransformedTargetRegressor` scales the target, in the units of the target.
        - ``votes`` (n_samples, n_views): for classifiers, the class that each view predicts; None for a missing view.
        - ``agreement`` (n_samples,): for classifiers, the share of pairs of present views with the same vote; 1 if all
          agree, NaN for samples with fewer than two views.
        - ``sample_names`` (n_samples,): names of the samples; None if they have no names.

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
    outputs, names = view_outputs(model, X)
    final = final_estimator(model)
    present = ~np.isnan(outputs).any(axis=2)
    n, m = present.shape
    classifies = is_classifier(final) and not getattr(final, "_indicator", False)
    chosen = np.zeros((n, m), dtype=int)  # position of the class that each view predicts
    if classifies:
        # missing views get a class too; it is never counted
        scores = np.nan_to_num(outputs[:, :, 0] if outputs.shape[2] == 1 else outputs)
        chosen = np.column_stack([decide(scores[:, v], len(final.classes_)) for v in range(m)])
    squares, pairs, same = np.zeros(n), np.zeros(n), np.zeros(n)
    for v in range(m):
        for w in range(v + 1, m):
            both = present[:, v] & present[:, w]
            pairs += both
            squares[both] += ((outputs[both, v] - outputs[both, w]) ** 2).sum(axis=1)
            same += both & (chosen[:, v] == chosen[:, w])
    agreement = Bunch(spread=np.sqrt(_ratio(squares, pairs)), sample_names=names)
    if classifies:
        votes = final.classes_[chosen].astype(object)
        votes[~present] = None
        agreement.update(votes=votes, agreement=_ratio(same, pairs))
    return agreement


def view_outputs(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the predictions of each view, (n_samples, n_views, n_outputs), and the names of the samples.

    Predictions are in the units of the target; NaN where a view is missing.
    """
    final = fitted_final(model, "view_decision_function")
    given = X if isinstance(X, Views) else None
    X = read_views_to_predict(final, final_views(model, X))
    outputs = to_numpy(final.view_decision_function(X))
    return in_target_units(model, outputs.reshape(*outputs.shape[:2], -1)), _sample_names(given, X)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


# -- importance of views
def view_importances(model: Any, X: Any, y: Any, *, scoring: Any = None) -> Bunch:
    """Return the weight of each view, and the score that is lost when the view is missing at prediction.

    The estimator is not fitted again: it predicts without the view, as for samples where the view is missing. Each
    view is tested on the samples that have it and at least one other view. Of a pipeline, the view is left out before
    the first step, and the whole pipeline is scored.

    Parameters
    ----------
    model : estimator
        A fitted batch estimator, or a pipeline, search or other wrapper around one.
    X : Views or what `as_views` reads
        Samples that were not used to fit it, as you give them to ``model.predict``.
    y : array-like of shape (n_samples,)
        Their classes or targets. A pandas Series is matched by the names of the samples.
    scoring : str or callable, optional
        Scorer of scikit-learn. Default: the `score` of the model.

    Returns
    -------
    Bunch
        - ``weight`` (dict by view): share of ``|c_v|`` in their sum. Of a calibrated classifier with one estimator per
          fold, the mean of their shares.
        - ``loss`` (dict by view): score with all views minus the score without this view on the same samples; NaN if
          there are none.
        - ``n_samples`` (dict by view): number of samples that were tested.
        - ``score``: score of all samples with all views.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from consilience import CoRegularizedRidgeClassifier, PerView, view_importances
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = CoRegularizedRidgeClassifier().fit(X[:400], y[:400])
    >>> importances = view_importances(model, X[400:], y[400:])
    >>> {name: round(loss, 3) for name, loss in importances.loss.items()}
    {'mean': 0.006, 'error': 0.0, 'worst': 0.053}
    >>> scaled = make_pipeline(PerView(StandardScaler()), model).fit(X[:400], y[:400])
    >>> sorted(view_importances(scaled, X[400:], y[400:]).loss)
    ['error', 'mean', 'worst']
    """
    final = final_estimator(model)
    members = [fitted_final(member, "view_weights_") for member in members_of(final)]
    finals = members or [fitted_final(model, "view_weights_")]
    score = check_scoring(model, scoring=scoring)
    first = steps_of(model)[0]
    X = read_views_to_predict(first, X) if any(first is each for each in finals) else _read_first(first, X)
    y = np.asarray(in_order_of(X, y, "y"))
    if len(y) != len(X):
        raise ValueError(f"X has {len(X)} samples, but y has {len(y)}. Give one target per sample.")
    labeled, known = labeled_rows(y, getattr(finals[0], "unlabeled", None))
    if not labeled.all():  # unlabeled samples cannot be scored
        X, y = X[labeled], known if y.ndim == 1 else y[labeled]
    used = [name for name in X.names if name in finals[0]._used_views]
    if len(used) < len(finals[0]._used_views):  # a step makes other views, so all that it reads count
        used = list(X.names)
    present = presence(X)[:, [X.names.index(name) for name in used]]
    loss, n_samples = {}, {}
    for v, name in enumerate(used):
        rows = np.flatnonzero(present[:, v] & (present.sum(axis=1) > 1))
        n_samples[name] = len(rows)
        loss[name] = float("nan")
        if len(rows):
            tested: Views = X[rows]
            others = tested[[other for other in X.names if other != name]]
            loss[name] = float(score(model, tested, y[rows]) - score(model, others, y[rows]))
    return Bunch(weight=_mean_shares(finals), loss=loss, n_samples=n_samples, score=float(score(model, X, y)))


def _read_first(first: Any, X: Any) -> Views:
    """Return samples as the first step of a fitted pipeline reads them: views by name."""
    if hasattr(first, "view_names_in_"):
        return read_as_fitted(first, X).align(first.view_names_in_)
    if isinstance(X, Views):
        return X
    raise TypeError(
        f"The first step, {type(first).__name__}, does not read views, so none can be left out before it. Give Views, "
        "or the last step and the transformed samples: model[-1], model[:-1].transform(X)."
    )


def _mean_shares(finals: list[Any]) -> dict[str, float]:
    """Return the share of each view in the weights, averaged over estimators."""
    shares: dict[str, float] = {}
    for final in finals:
        sizes = np.abs(final.view_weights_)
        sizes = sizes if sizes.ndim == 1 else sizes.mean(axis=1)  # of each output
        for name, share in zip(names_of_values(final, len(sizes)), (sizes / sizes.sum()).tolist(), strict=True):
            shares[name] = shares.get(name, 0.0) + share / len(finals)
    return shares


# -- error rates
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
    y = in_order_of(scores, y, "y")  # both may be pandas objects, in different orders
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

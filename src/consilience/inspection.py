"""Looking into a fitted learner: where its views agree, and which of them it needs."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ._base import decide, presence
from ._inputs import labeled_rows, read_views_to_predict
from .views import Views

__all__ = ["view_agreement", "view_importances"]


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
    >>> model = CoRegularizedRidgeClassifier(between=1e-4).fit(X[:400], y[:400])
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

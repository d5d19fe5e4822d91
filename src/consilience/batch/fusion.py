"""Early and late fusion around any estimator: what every multi-view method is compared with."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._backend import is_device_array, take_rows, to_numpy
from ..solvers.certificates import Certificate, Solution
from ..views import _blocks
from ..views._blocks import Gram
from ..views.container import Views
from ..views.estimator import combine_views, finite_outputs, presence
from ..views.validation import (
    labeled_rows,
    read_labels,
    read_targets,
    read_views_to_fit,
    read_views_to_predict,
    read_weights,
)
from ._base import BatchLearner

__all__ = ["EarlyFusion", "LateFusion"]


def _have(learner: Any, method: str) -> bool:
    return all(hasattr(part, method) for part in learner._parts())


def _gives_probabilities(self: Any) -> bool:
    return is_classifier(self) and _have(self, "predict_proba")


def _gives_scores(self: Any) -> bool:
    return is_classifier(self) and self._answer_kind() in ("probabilities", "scores")


def _scores_pairs(estimator: Any) -> bool:
    """Whether an estimator, or one inside it, scores one class against another."""
    parameters = estimator.get_params(deep=True)
    return any(key.endswith("decision_function_shape") and value == "ovo" for key, value in parameters.items())


class _Fusion(BatchLearner):
    """A wrapped estimator decides whether this is a classifier or a regressor, and what it can answer."""

    estimator: Any

    def _parts(self) -> list[Any]:
        return [self.estimator]

    def _targets(self, X: Views, y: Any) -> tuple[Any, np.ndarray]:
        """The targets as the wrapped estimator takes them, and which rows have one."""
        mixed = [part for part in self._parts() if is_classifier(part) != is_classifier(self)]
        if mixed:
            raise TypeError(f"Classifiers and regressors do not mix; beside {self.estimator!r} stands {mixed[0]!r}.")
        if is_classifier(self):
            labels = read_labels(y, len(X), self.unlabeled)
            self.classes_ = labels.classes
            return labels.classes[labels.codes], labels.labeled
        Y, labeled = read_targets(y, len(X))
        self._one_output = np.asarray(y).ndim == 1
        return (Y[:, 0] if self._one_output else Y), labeled

    def _keep_classes(self, target: np.ndarray) -> None:
        """Know the classes of samples that count, and no others."""
        if is_classifier(self):
            self.classes_ = np.unique(target)

    def _answer_kind(self) -> str:
        """What is combined: probabilities where all estimators give them, else scores, else votes; or numbers.

        Scores of one class against another (``decision_function_shape="ovo"``) are not scores of classes.
        """
        if not is_classifier(self):
            return "numbers"
        if _have(self, "predict_proba"):
            return "probabilities"
        of_pairs = any(_scores_pairs(part) for part in self._parts())
        return "scores" if _have(self, "decision_function") and not of_pairs else "votes"

    def _answers(self, estimator: Any, data: Any) -> np.ndarray:
        """One estimator's answer as (n, P), its classes among all classes; a class it never saw is the least likely."""
        kind = self._answer_kind()
        if kind == "numbers":
            return np.asarray(estimator.predict(data)).reshape(data.shape[0], -1)
        if kind == "probabilities":
            known = np.asarray(estimator.predict_proba(data))
        elif kind == "scores":
            scores = np.asarray(estimator.decision_function(data))
            known = np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores
        if kind == "votes" or known.shape[1] != len(estimator.classes_):  # one class only has no score of its own
            known = (np.asarray(estimator.predict(data))[:, None] == estimator.classes_).astype(float)
        least = known.min(axis=1) if kind == "scores" else np.zeros(len(known))
        answers = np.repeat(least[:, None], len(self.classes_), axis=1)
        answers[:, np.searchsorted(self.classes_, estimator.classes_)] = known
        return answers

    def _one_score(self, answers: np.ndarray) -> np.ndarray:
        """Two classes have one score, the second's minus the first's; along the last axis."""
        two = is_classifier(self) and answers.shape[-1] == 2
        return answers[..., 1:] - answers[..., :1] if two else answers

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, R² of a regressor; samples without a label or target are left out.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.
        y : array-like
            Their classes or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            The score.
        """
        classifies = is_classifier(self)
        labeled, known = labeled_rows(y, self.unlabeled if classifies else None)
        weights = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        measure = accuracy_score if classifies else r2_score
        return float(measure(known, self.predict(X)[labeled], sample_weight=weights))

    def certificate(self) -> Certificate:
        """Return what is proved about the fit: nothing beyond what the wrapped estimator says itself.

        Returns
        -------
        Certificate
            With the status ``"delegated"``.
        """
        check_is_fitted(self)
        return Certificate(status=self.solution_.status)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = all(get_tags(part).input_tags.pairwise for part in self._parts())
        return tags


def _fit_one(estimator: Any, data: Any, target: Any, weights: np.ndarray | None) -> Any:
    name = type(estimator).__name__
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(f"{name} takes no sample_weight; fit without it or wrap another estimator.")
    given = {} if weights is None else {"sample_weight": weights}
    try:
        return clone(estimator).fit(data, target, **given)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        raise ValueError(f"{name} could not be fitted: {str(error).strip().rstrip('.')}.") from error


class EarlyFusion(_Fusion):
    """Early fusion: one estimator on the columns of all views side by side.

    Equals the wrapped estimator on ``numpy.hstack`` of the views. Where a view is absent its columns take their means
    over the training samples, by weight, so that the estimator sees an average sample there.

    Parameters
    ----------
    estimator : estimator
        A classifier or regressor of scikit-learn's kind.
    fill : {"mean", "nan"}, default="mean"
        What stands in the columns of an absent view: training means, or NaN for estimators that read it (gradient
        boosting by histograms, for one).
    unlabeled : object, optional
        The label that marks unlabeled samples, besides missing values. They are left out.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    classes_ : array
        The classes, of a classifier.
    view_weights_ : array of shape (n_views,)
        Ones: a concatenation weighs nothing.

    Notes
    -----
    `view_decision_function` gives the answer with one view present and all others absent.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> from consilience import EarlyFusion, PerView
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> X = PerView(StandardScaler()).fit_transform(X)
    >>> EarlyFusion(LogisticRegression()).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.95
    True
    """

    def __init__(self, estimator: Any, *, fill: str = "mean", unlabeled: Any = None, views: Any = None):
        self.estimator = estimator
        self.fill = fill
        self.unlabeled = unlabeled
        self.views = views

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator on all views side by side.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The training samples.
        y : array-like
            Their classes or targets; samples without one are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, where the estimator takes them.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._restore_on_error(shows_progress=False):
            if self.fill not in ("mean", "nan"):
                raise ValueError(f"EarlyFusion: fill must be 'mean' or 'nan'; got {self.fill!r}.")
            X = read_views_to_fit(self, X)
            target, labeled = self._targets(X, y)
            weights = read_weights(sample_weight, len(X))
            if (weights == 0).any():  # a weight of 0 leaves a sample out, and views that no other sample has
                counted = weights > 0
                X, target, labeled, weights = X[counted], target[counted], labeled[counted], weights[counted]
                self._used_views = tuple(name for name in X.names if X.present(name).any())
                X = X[list(self._used_views)]
                if not labeled.any():
                    raise ValueError("No labeled sample has a weight above 0. Give labels or weights to others.")
                self._keep_classes(target[labeled])
            weights = weights * labeled
            self._means = {name: _column_means(X, name, weights) for name in X.names}
            part = None if sample_weight is None else weights[labeled]
            self.estimator_ = _fit_one(self.estimator, self._table(X[labeled]), target[labeled], part)
            self.view_weights_ = np.ones(len(X.names))
            self.solution_ = Solution(x=None, gap=None, n_iter=1, status="delegated")
            return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes or targets: what the estimator predicts.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            The predictions.
        """
        table = self._table(read_views_to_predict(self, X))
        answers = self.estimator_.predict(table)
        return answers if is_classifier(self) else finite_outputs(self, answers)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities.
        """
        table = self._table(read_views_to_predict(self, X))
        return finite_outputs(self, self.estimator_.predict_proba(table))

    @available_if(lambda self: is_classifier(self) and _have(self, "decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision values of the estimator.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array
            What the estimator gives.
        """
        table = self._table(read_views_to_predict(self, X))
        return finite_outputs(self, self.estimator_.decision_function(table))

    def _view_outputs(self, X: Views) -> np.ndarray:
        outputs = []
        for alone in X.names:
            filled = [self._fill(X, name, there=name == alone) for name in X.names]
            outputs.append(self._one_score(self._answers(self.estimator_, _side_by_side(filled))))
        return np.stack(outputs, axis=1)

    def _table(self, X: Views) -> Any:
        return _side_by_side([self._fill(X, name) for name in X.names])

    def _fill(self, X: Views, name: str, there: bool = True) -> Any:
        """One view with its absent rows filled; as if absent in every row unless it is to be there."""
        means, sparse = self._means[name]
        means = means if self.fill == "mean" else np.full_like(means, np.nan)
        absent = ~X.present(name) if there else np.ones(len(X), dtype=bool)
        block = X.block(name)
        if is_device_array(block):
            block = to_numpy(block)
        if not absent.any():
            return block
        if not sparse:
            block = block.toarray() if sp.issparse(block) else block
            return np.where(absent[:, None], means, 0.0 if absent.all() else block)
        filled = sp.csr_array(absent[:, None].astype(means.dtype)) @ sp.csr_array(means[None, :])
        if absent.all():
            return filled
        keep = sp.diags_array((~absent).astype(means.dtype), format="csr")
        return (keep @ sp.csr_array(block) + filled).tocsr()


def _side_by_side(blocks: list[Any]) -> Any:
    return sp.hstack(blocks, format="csr") if any(sp.issparse(block) for block in blocks) else np.hstack(blocks)


def _column_means(X: Views, name: str, weights: np.ndarray) -> tuple[np.ndarray, bool]:
    """The means of a view's columns over the training samples, by weight, and whether the view is sparse."""
    if X.kind(name) not in ("dense", "sparse"):
        raise TypeError(
            f"EarlyFusion puts columns of numbers side by side, but view '{name}' is {X.kind(name)}. Turn objects into "
            "numbers with PerView first, or use LateFusion."
        )
    rows = np.flatnonzero(X.present(name) & (weights > 0))
    if not len(rows):  # absent in every labeled sample: the others tell what is usual
        rows, weights = np.flatnonzero(X.present(name)), np.ones(len(X))
    block = take_rows(X.block(name), rows)
    block = to_numpy(block) if is_device_array(block) else block
    means = np.asarray(weights[rows] @ block).ravel() / weights[rows].sum()
    return means.astype(block.dtype, copy=False), sp.issparse(block)


class LateFusion(_Fusion):
    """Late fusion: one estimator per view, their answers averaged.

    f(x) = Σ_v c_v f_v(x) / Σ_v c_v over the views present, with f_v the probabilities of the estimator of view v where
    all estimators give them, else their decision values, and the predictions of regressors. With one view its
    answers are those of the wrapped estimator.

    Parameters
    ----------
    estimator : estimator
        A classifier or regressor of scikit-learn's kind, cloned for each view.
    estimators : dict, optional
        Estimators by view, for views that need their own.
    view_weights : "uniform", array-like of shape (n_views,) or dict, default="uniform"
        c > 0, in the order of the views or by name.
    unlabeled : object, optional
        The label that marks unlabeled samples, besides missing values. They are left out.
    views : dict, list or "prefix", optional
        How one wide table is divided into views; see `as_views`.

    Attributes
    ----------
    estimators_ : dict of estimator
        The fitted estimators by view.
    classes_ : array
        The classes, of a classifier.
    view_weights_ : array of shape (n_views,)
        c, with sum 1.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from consilience import LateFusion
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> model = LateFusion(SVC()).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    >>> model.view_decision_function(X[400:402]).shape
    (2, 3)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        estimators: Mapping[str, Any] | None = None,
        view_weights: Any = "uniform",
        unlabeled: Any = None,
        views: Any = None,
    ):
        self.estimator = estimator
        self.estimators = estimators
        self.view_weights = view_weights
        self.unlabeled = unlabeled
        self.views = views

    def _parts(self) -> list[Any]:
        return [self.estimator, *(self.estimators or {}).values()]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one estimator per view, on the rows where the view is present.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The training samples.
        y : array-like
            Their classes or targets; samples without one are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, where the estimators take them.

        Returns
        -------
        self
            The fitted learner.
        """
        with self._restore_on_error(shows_progress=False):
            X = read_views_to_fit(self, X)
            target, labeled = self._targets(X, y)
            weights = read_weights(sample_weight, len(X))
            weight = _read_view_weights(self.view_weights, self.view_names_in_)
            chosen = dict(self.estimators or {})
            unknown = [name for name in chosen if name not in self.view_names_in_]
            if unknown:
                raise ValueError(
                    f"`estimators` names the view {_blocks.quoted(unknown)}; the views are {_blocks.quoted(X.names)}."
                )
            self._keep_classes(target[labeled & (weights > 0)])
            self.estimators_: dict[str, Any] = {}
            self._train: dict[str, Gram] = {}
            for name in X.names:
                counted = X.present(name) & (weights > 0)  # a weight of 0 leaves a sample out
                rows = np.flatnonzero(counted & labeled)
                if not counted.any():
                    continue
                if not len(rows):
                    raise ValueError(
                        f"View '{name}' has no labeled sample to learn from. Drop the view, or label some."
                    )
                part = None if sample_weight is None else weights[rows]
                estimator = chosen.get(name, self.estimator)
                block = X.block(name)
                if isinstance(block, Gram):
                    self._train[name] = block.reference(strip=True)[rows]
                block = take_rows(block, rows)
                with _blocks.naming(name):
                    self.estimators_[name] = _fit_one(estimator, self._data(name, block), target[rows], part)
            self._used_views = tuple(self.estimators_)
            used = np.array([weight[self.view_names_in_.index(name)] for name in self._used_views])
            self.view_weights_ = used / used.sum()
            self.solution_ = Solution(x=None, gap=None, n_iter=1, status="delegated")
            return self

    def _data(self, name: str, block: Any) -> Any:
        """A view as its estimator takes it: a Gram as its block against the training samples, others as they are."""
        if name not in self._train:
            return block
        train = self._train[name]
        return block.block(train) if isinstance(block, Gram) else train.columns_of(block)

    def _view_is_gram(self, name: str) -> bool:
        estimator = (self.estimators or {}).get(name, self.estimator)
        return bool(get_tags(estimator).input_tags.pairwise)

    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        return finite_outputs(self, combine_views(self._outputs_by_view(X), self.view_weights_, presence(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes or targets.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            The class of the largest mean answer, or the mean of the predictions.
        """
        outputs = self._combined(X)
        if is_classifier(self):
            return self.classes_[outputs.argmax(axis=1)]
        return outputs[:, 0] if self._one_output else outputs

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples, n_classes)
            The means of the estimators' probabilities.
        """
        return self._combined(X)

    @available_if(_gives_scores)
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each class.

        Parameters
        ----------
        X : Views or what `as_views` reads
            The samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            The mean of what the estimators answer; with two classes the difference of the second and the first.
        """
        outputs = self._one_score(self._combined(X))
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def _view_outputs(self, X: Views) -> np.ndarray:
        return self._one_score(self._outputs_by_view(X))

    def _outputs_by_view(self, X: Views) -> np.ndarray:
        answers = {}
        for v, name in enumerate(X.names):
            rows = np.flatnonzero(X.present(name))
            if len(rows):
                data = self._data(name, take_rows(X.block(name), rows))
                answers[v] = rows, self._answers(self.estimators_[name], data)
        width = next(iter(answers.values()))[1].shape[1]
        stacked = np.zeros((len(X), len(X.names), width))
        for v, (rows, answer) in answers.items():
            stacked[rows, v] = answer
        return stacked


def _read_view_weights(view_weights: Any, names: tuple[str, ...]) -> np.ndarray:
    if isinstance(view_weights, str) and view_weights == "uniform":
        return np.full(len(names), 1 / len(names))
    if isinstance(view_weights, Mapping):
        unknown = [name for name in view_weights if name not in names]
        if unknown:
            raise ValueError(
                f"`view_weights` names the view {_blocks.quoted(unknown)}; the views are {_blocks.quoted(names)}."
            )
        view_weights = [view_weights.get(name, 1.0) for name in names]
    weights = np.asarray(view_weights, dtype=np.float64) if not isinstance(view_weights, str) else np.empty(0)
    if weights.shape != (len(names),) or not (weights > 0).all():
        raise ValueError(
            f"`view_weights` must be 'uniform' or {len(names)} numbers above 0, one per view; got {view_weights!r}. "
            "Leave out views that are to count for nothing."
        )
    return weights / weights.sum()

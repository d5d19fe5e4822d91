"""Early and late fusion around any estimator: the baselines of multi-view methods."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import available_if

from .._backend import check_memory, take_rows
from ..solvers.certificates import Solution
from ..views import _blocks
from ..views._blocks import Gram
from ..views._docs import shared_docs
from ..views.container import Views
from ..views.estimator import by_parts, combine_views, finite_outputs, presence, to_score
from ..views.validation import read_views_to_fit, read_views_to_predict
from ._estimator import BatchEstimator, constraints
from ._fusion import (
    all_have,
    decision_shape,
    fit_views,
    fit_wrapped,
    fusion_tags,
    hstack,
    means_of_columns,
    one_score,
    output_kind,
    predicted_type,
    read_fusion_targets,
    wrapped_outputs,
)

__all__ = ["EarlyFusion", "LateFusion"]


def _has_probabilities(fusion: Any) -> bool:
    return is_classifier(fusion) and all_have(fusion, "predict_proba")


# -- early fusion
@shared_docs
@dataclass(eq=False, repr=False)
class EarlyFusion(BatchEstimator):
    """Early fusion: one estimator on the columns of all views side by side.

    Equals the wrapped estimator on ``numpy.hstack`` of the views. Where a view is missing, its columns take their means
    over the training samples, by weight, so that the estimator sees an average sample there.

    Parameters
    ----------
    estimator : estimator
        Classifier or regressor with scikit-learn's interface.
    fill : {"mean", "nan"}, default="mean"
        Values in the columns of a missing view: the means over the training samples, or NaN for estimators that read
        it, such as ``HistGradientBoostingClassifier``.
    {unlabeled_out}
    {views}
    {missing_columns}

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    classes_ : array
        Classes in sorted order, if the estimator is a classifier.
    view_weights_ : array of shape (n_views,)
        All ones; early fusion does not weight views.

    Notes
    -----
    `view_decision_function` returns the outputs with one view present and all others missing.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> from consilience import EarlyFusion, PerView
    >>> from consilience.datasets import load_breast_cancer_views
    >>> X, y = load_breast_cancer_views(return_X_y=True)
    >>> X = PerView(StandardScaler()).fit_transform(X)
    >>> model = EarlyFusion(LogisticRegression()).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True
    """

    _cpu_only = True
    _parameter_constraints = constraints(estimator=[HasMethods(["fit", "predict"])], fill=[StrOptions({"mean", "nan"})])

    estimator: Any
    _: KW_ONLY
    fill: str = "mean"
    unlabeled: Any = None
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator on all views side by side.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Training samples.
        y : array-like
            Classes or targets; samples without one are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, for estimators that take them.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error(shows_progress=False):
            self._validate_params()
            X = read_views_to_fit(self, X, sample_weight)
            target, labeled, weights = read_fusion_targets(self, X, y, sample_weight)
            if not weights.all():  # a weight of 0 leaves a sample out
                counted = weights > 0
                X, target, labeled, weights = X[counted], target[counted], labeled[counted], weights[counted]
            self._means = {name: means_of_columns(X, name, weights * labeled) for name in X.names}
            part = None if sample_weight is None else weights[labeled]
            self.estimator_ = fit_wrapped(self.estimator, self._table(X[labeled]), target[labeled], part)
            self.view_weights_ = np.ones(len(X.names))
            self.solution_ = Solution(x=None, gap=None, n_iter=1, status="delegated")
            return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes or targets: what the estimator predicts.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        tail = () if is_classifier(self) else None
        return by_parts(self, X, self._predictions, "predict", tail, predicted_type(self))

    def _predictions(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        predictions = self.estimator_.predict(self._table(X))
        return predictions if is_classifier(self) else finite_outputs(self, predictions)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities.
        """
        tail = (len(vars(self).get("classes_", ())),)
        return by_parts(self, X, lambda own: self._wrapped(own, "predict_proba"), "predict_proba", tail, np.float64)

    def _wrapped(self, X: Any, method: str) -> np.ndarray:
        table = self._table(read_views_to_predict(self, X))
        return finite_outputs(self, getattr(self.estimator_, method)(table))

    @available_if(lambda self: is_classifier(self) and all_have(self, "decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision values of the estimator.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array
            Decision values.
        """
        name, tail = "decision_function", decision_shape(self, of_pairs=True)
        return by_parts(self, X, lambda own: self._wrapped(own, name), name, tail, np.float64)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier or R² of a regressor; samples without a target are left out.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. Blocks of rows have their targets and weights with them.
        y : array-like
            Classes or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            Score.
        """
        known, predicted, weights = to_score(self, X, y, sample_weight)
        return float((accuracy_score if is_classifier(self) else r2_score)(known, predicted, sample_weight=weights))

    def _view_outputs(self, X: Views) -> np.ndarray:
        outputs = []
        for alone in X.names:
            filled = [self._fill(X, name, present=name == alone) for name in X.names]
            outputs.append(one_score(self, wrapped_outputs(self, self.estimator_, hstack(filled))))
        return np.stack(outputs, axis=1)

    def _table(self, X: Views) -> Any:
        return hstack([self._fill(X, name) for name in X.names])

    def _fill(self, X: Views, name: str, present: bool = True) -> Any:
        """Return one view with its missing rows filled; without `present`, all its rows count as missing."""
        means, sparse = self._means[name]
        means = means if self.fill == "mean" else np.full_like(means, np.nan)
        missing = ~X.present(name) if present else np.ones(len(X), dtype=bool)
        block = X.block(name)
        if not missing.any():
            return block
        if not sparse:
            block = block.toarray() if sp.issparse(block) else block
            return np.where(missing[:, None], means, 0.0 if missing.all() else block)
        filled = sp.csr_array(missing[:, None].astype(means.dtype)) @ sp.csr_array(means[None, :])
        if missing.all():
            return filled
        keep = sp.diags_array((~missing).astype(means.dtype), format="csr")
        return (keep @ sp.csr_array(block) + filled).tocsr()

    def __sklearn_tags__(self) -> Any:
        return fusion_tags(self, super().__sklearn_tags__())


# -- late fusion
@shared_docs
@dataclass(eq=False, repr=False)
class LateFusion(BatchEstimator):
    """Late fusion: one estimator per view, with the average of their outputs as prediction.

    f(x) = Σ_v c_v f_v(x) / Σ_v c_v over the views present. f_v are the probabilities of the estimator of view v if all
    estimators have them, else their decision values, else their votes; for regression their predictions. With one view
    the predictions are those of the wrapped estimator.

    Parameters
    ----------
    estimator : estimator or dict
        Classifier or regressor with scikit-learn's interface, cloned for each view; or a dict of estimators by view,
        which names every view.
    view_weights : "uniform", array-like of shape (n_views,) or dict, default="uniform"
        Weights c > 0 of the views, in their order or by name. Views that a dict does not name get 1.
    n_jobs : int, optional
        Number of processes, each of which fits the estimator of one view at a time; -1 uses all cores.
    {unlabeled_out}
    {views}
    {missing_columns}

    Attributes
    ----------
    estimators_ : dict of estimator
        Fitted estimators by view.
    classes_ : array
        Classes in sorted order, if the estimators are classifiers.
    view_weights_ : array of shape (n_views_used,)
        Weights c, scaled to a sum of 1. Views missing in every training sample are omitted.

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

    _cpu_only = True
    _parameter_constraints = constraints(
        estimator=[HasMethods(["fit", "predict"]), Mapping],
        view_weights=[StrOptions({"uniform"}), Mapping, "array-like"],
        n_jobs=[Integral, None],
    )

    estimator: Any
    _: KW_ONLY
    view_weights: Any = "uniform"
    n_jobs: int | None = None
    unlabeled: Any = None
    views: Any = None
    missing_columns: str = "raise"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one estimator per view, on the samples that have the view.

        Parameters
        ----------
        X : Views or what `as_views` reads
            Training samples.
        y : array-like
            Classes or targets; samples without one are left out.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, for estimators that take them.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._restore_on_error(shows_progress=False):
            self._validate_params()
            X = read_views_to_fit(self, X, sample_weight)
            by_view = _read_estimators(self.estimator, self.view_names_in_)
            target, labeled, weights = read_fusion_targets(self, X, y, sample_weight)
            c = _read_view_weights(self.view_weights, self.view_names_in_)
            tasks = []
            self._train: dict[str, Gram] = {}  # training samples of views that are Gram matrices
            for name in X.names:
                rows = np.flatnonzero(X.present(name) & (weights > 0) & labeled)  # a weight of 0 leaves a sample out
                if not len(rows):
                    raise ValueError(
                        f"View '{name}' has no labeled sample to learn from. Drop the view, or label some."
                    )
                part = None if sample_weight is None else weights[rows]
                block = X.block(name)
                if isinstance(block, Gram):
                    self._train[name] = block.reference(strip=True)[rows]
                tasks.append((name, by_view[name], self._data(name, take_rows(block, rows)), target[rows], part))
            self.estimators_ = fit_views(tasks, self.n_jobs)
            self._used_views = tuple(self.estimators_)
            used = np.array([c[self.view_names_in_.index(name)] for name in self._used_views])
            self.view_weights_ = used / used.sum()
            self.solution_ = Solution(x=None, gap=None, n_iter=1, status="delegated")
            return self

    def _data(self, name: str, block: Any) -> Any:
        """Return a view as its estimator takes it: a Gram matrix as its block against the training samples."""
        if name not in self._train:
            return block
        train = self._train[name]
        what = f"LateFusion, view '{name}': its Gram matrix between {len(block):,} and {len(train):,} samples"
        check_memory(8.0 * len(block) * len(train), what, "Give fewer samples at a time.")
        return block.block(train) if isinstance(block, Gram) else train.columns_of(block)

    def _view_is_gram(self, name: str) -> bool:
        by_view = isinstance(self.estimator, Mapping)
        estimator = self.estimator.get(name) if by_view else self.estimator
        return estimator is not None and bool(get_tags(estimator).input_tags.pairwise)

    def _combined(self, X: Any) -> np.ndarray:
        X = read_views_to_predict(self, X)
        return finite_outputs(self, combine_views(self._outputs_by_view(X), self.view_weights_, presence(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes or targets.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Class with the largest mean output, or the mean of the predictions.
        """
        tail = () if is_classifier(self) else None
        return by_parts(self, X, self._predictions, "predict", tail, predicted_type(self))

    def _predictions(self, X: Any) -> np.ndarray:
        outputs = self._combined(X)
        if is_classifier(self):
            return self.classes_[outputs.argmax(axis=1)]
        return outputs[:, 0] if self._one_output else outputs

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Means of the estimators' probabilities.
        """
        tail = (len(vars(self).get("classes_", ())),)
        return by_parts(self, X, self._combined, "predict_proba", tail, np.float64)

    @available_if(lambda self: output_kind(self) in ("probabilities", "scores"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each class.

        Parameters
        ----------
        X : Views, what `as_views` reads, RowBlocks or Dask collections
            Samples. For Dask collections the result is a Dask array, which computes nothing yet.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Mean output of the estimators; with two classes the difference of the second and the first.
        """
        tail = decision_shape(self, of_pairs=False)
        return by_parts(self, X, self._decisions, "decision_function", tail, np.float64)

    def _decisions(self, X: Any) -> np.ndarray:
        outputs = one_score(self, self._combined(X))
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    score = EarlyFusion.score

    def _view_outputs(self, X: Views) -> np.ndarray:
        return one_score(self, self._outputs_by_view(X))

    def _outputs_by_view(self, X: Views) -> np.ndarray:
        """Return the outputs of each view's estimator, (n, m, P); 0 where the view is missing."""
        by_view = {}
        for v, name in enumerate(X.names):
            rows = np.flatnonzero(X.present(name))
            if len(rows):
                data = self._data(name, take_rows(X.block(name), rows))
                by_view[v] = rows, wrapped_outputs(self, self.estimators_[name], data)
        width = next(iter(by_view.values()))[1].shape[1]
        stacked = np.zeros((len(X), len(X.names), width))
        for v, (rows, outputs) in by_view.items():
            stacked[rows, v] = outputs
        return stacked

    def __sklearn_tags__(self) -> Any:
        return fusion_tags(self, super().__sklearn_tags__())


def _read_estimators(estimator: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return an estimator for each view."""
    if not isinstance(estimator, Mapping):
        return dict.fromkeys(names, estimator)
    lacking, unknown = [n for n in names if n not in estimator], [n for n in estimator if n not in names]
    if lacking:
        raise ValueError(
            f"`estimator` has no estimator for the view {_blocks.quoted(lacking)}. Give one for each view, or one "
            "estimator for all."
        )
    if unknown:
        raise ValueError(
            f"`estimator` names the view {_blocks.quoted(unknown)}; the views are {_blocks.quoted(names)}."
        )
    return estimator


def _read_view_weights(view_weights: Any, names: tuple[str, ...]) -> np.ndarray:
    """Return the weights of the views, with sum 1."""
    if isinstance(view_weights, str) and view_weights == "uniform":
        return np.full(len(names), 1 / len(names))
    if isinstance(view_weights, Mapping):
        unknown = [name for name in view_weights if name not in names]
        if unknown:
            raise ValueError(
                f"`view_weights` names the view {_blocks.quoted(unknown)}; the views are {_blocks.quoted(names)}."
            )
        view_weights = [view_weights.get(name, 1.0) for name in names]
    weights = np.asarray(view_weights, dtype=np.float64)
    if weights.shape != (len(names),) or not (weights > 0).all():
        raise ValueError(
            f"`view_weights` must be 'uniform' or {len(names)} numbers above 0, one per view; got {view_weights!r}. To "
            "leave a view out, do not give it."
        )
    return weights / weights.sum()

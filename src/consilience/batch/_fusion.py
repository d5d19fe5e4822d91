"""What early and late fusion share: reading targets, fitting a wrapped estimator, and reading its outputs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from .._backend import take_rows
from ..views import _blocks
from ..views._samples import in_order_of
from ..views.container import Views
from ..views.recipes import routed_to_fit
from ..views.validation import read_labels, read_targets, read_weights


# -- what the wrapped estimators are
def wrapped_estimators(estimator: Any) -> list[Any]:
    """Return the estimators that `estimator` holds: itself, or those of a dict by view."""
    return list(estimator.values()) if isinstance(estimator, Mapping) else [estimator]


def all_have(fusion: Any, method: str) -> bool:
    """Tell whether all wrapped estimators have a method."""
    return all(hasattr(part, method) for part in wrapped_estimators(fusion.estimator))


def output_kind(fusion: Any) -> str:
    """Return what is combined: regression outputs; or probabilities where all estimators have them, scores, or votes.

    Scores of one class against another (``decision_function_shape="ovo"``) are not scores of classes.
    """
    if not is_classifier(fusion):
        return "regression"
    if all_have(fusion, "predict_proba"):
        return "probabilities"
    of_pairs = any(_scores_pairs(part) for part in wrapped_estimators(fusion.estimator))
    return "scores" if all_have(fusion, "decision_function") and not of_pairs else "votes"


def _scores_pairs(estimator: Any) -> bool:
    """Tell whether an estimator, or one inside it, scores one class against another."""
    parameters = estimator.get_params(deep=True)
    return any(key.endswith("decision_function_shape") and value == "ovo" for key, value in parameters.items())


def fusion_tags(fusion: Any, tags: Any) -> Any:
    """Return the tags of a fusion: those of its first estimator; pairwise if all its estimators are."""
    parts = [get_tags(part) for part in wrapped_estimators(fusion.estimator)]
    if not parts:  # an empty dict: `fit` says so
        return tags
    first = parts[0]
    tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
        first.estimator_type, first.classifier_tags, first.regressor_tags
    )  # fmt: skip
    if tags.classifier_tags is not None:
        tags.classifier_tags.multi_label = False
    tags.target_tags = first.target_tags
    tags.input_tags.sparse = first.input_tags.sparse
    tags.input_tags.pairwise = all(part.input_tags.pairwise for part in parts)
    return tags


def decision_shape(fusion: Any, *, of_pairs: bool) -> tuple[int, ...]:
    """Return the shape of a row of scores: one number for two classes, else one per class, or per pair of classes."""
    n = len(vars(fusion).get("classes_", ()))
    pairs = of_pairs and any(_scores_pairs(part) for part in wrapped_estimators(fusion.estimator))
    return () if n <= 2 else (n * (n - 1) // 2,) if pairs else (n,)


def predicted_type(fusion: Any) -> Any:
    """Return the type of predictions: that of the classes, or of numbers."""
    return vars(fusion)["classes_"].dtype if "classes_" in vars(fusion) else np.dtype(np.float64)


# -- fitting
def read_fusion_targets(fusion: Any, X: Views, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return targets as the wrapped estimators take them, which samples have one, and the weights of the samples.

    Stores the classes of the samples that have a weight above 0.
    """
    parts = wrapped_estimators(fusion.estimator)
    others = [part for part in parts if is_classifier(part) != is_classifier(fusion)]
    if others:
        raise TypeError(f"`estimator` mixes classifiers and regressors: {parts[0]!r} and {others[0]!r}. Use one kind.")
    y = in_order_of(X, y, "y")
    weights = read_weights(in_order_of(X, sample_weight, "sample_weight"), len(X))
    if is_classifier(fusion):
        labels = read_labels(y, len(X), fusion.unlabeled, weights=weights)
        target, labeled, fusion.classes_ = labels.classes[labels.codes], labels.labeled, labels.classes
    else:
        Y, labeled = read_targets(y, len(X), weights=weights)
        fusion._one_output = np.asarray(y).ndim == 1
        target = Y[:, 0] if fusion._one_output else Y
    if not (labeled & (weights > 0)).any():
        raise ValueError("No labeled sample has a weight above 0. Give labels or weights to others.")
    return target, labeled, weights


def fit_wrapped(estimator: Any, data: Any, target: Any, weights: np.ndarray | None) -> Any:
    """Return a fitted clone of an estimator; weights are given only to estimators that take them."""
    name = type(estimator).__name__
    given = {} if weights is None else {"sample_weight": weights}
    if given and get_config()["enable_metadata_routing"]:
        given = routed_to_fit("EarlyFusion and LateFusion", estimator, given)
    elif given and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(f"{name} does not take sample_weight. Fit without it, or wrap another estimator.")
    try:
        return clone(estimator).fit(data, target, **given)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        raise ValueError(f"{name} could not be fitted: {str(error).strip().rstrip('.')}.") from error


def fit_views(tasks: list[tuple[str, Any, Any, Any, Any]], n_jobs: int | None) -> dict[str, Any]:
    """Return fitted estimators by view, from the view's name, estimator, samples, targets and weights."""
    fitted = Parallel(n_jobs=n_jobs)(delayed(_fit_view)(*task) for task in tasks)
    return {task[0]: own for task, own in zip(tasks, fitted, strict=True)}


def _fit_view(name: str, *given: Any) -> Any:
    with _blocks.naming(name):
        return fit_wrapped(*given)


# -- one table of all views
def hstack(blocks: list[Any]) -> Any:
    """Return blocks side by side, sparse where one of them is."""
    return sp.hstack(blocks, format="csr") if any(sp.issparse(block) for block in blocks) else np.hstack(blocks)


def means_of_columns(X: Views, name: str, weights: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the means of a view's columns over the training samples, by weight, and whether the view is sparse."""
    if X.kind(name) not in ("dense", "sparse"):
        raise TypeError(
            f"EarlyFusion needs columns of numbers, but view '{name}' is {X.kind(name)}. Turn objects into numbers "
            "with PerView first, or use LateFusion."
        )
    rows = np.flatnonzero(X.present(name) & (weights > 0))
    if not len(rows):  # missing in every labeled sample: the means are those of the unlabeled ones
        rows, weights = np.flatnonzero(X.present(name)), np.ones(len(X))
    block = take_rows(X.block(name), rows)
    means = np.asarray(weights[rows] @ block).ravel() / weights[rows].sum()
    return means.astype(block.dtype, copy=False), sp.issparse(block)


# -- prediction
def wrapped_outputs(fusion: Any, estimator: Any, data: Any) -> np.ndarray:
    """Return one estimator's outputs as (n, P), P all classes; a class that it never saw is the least likely."""
    kind = output_kind(fusion)
    if kind == "regression":
        return np.asarray(estimator.predict(data)).reshape(data.shape[0], -1)
    if kind == "probabilities":
        known = np.asarray(estimator.predict_proba(data))
    elif kind == "scores":
        scores = np.asarray(estimator.decision_function(data))
        known = np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores
    if kind == "votes" or known.shape[1] != len(estimator.classes_):  # a single class has no score of its own
        known = (np.asarray(estimator.predict(data))[:, None] == estimator.classes_).astype(float)
    least = known.min(axis=1) if kind == "scores" else np.zeros(len(known))
    outputs = np.repeat(least[:, None], len(fusion.classes_), axis=1)
    outputs[:, np.searchsorted(fusion.classes_, estimator.classes_)] = known
    return outputs


def one_score(fusion: Any, outputs: np.ndarray) -> np.ndarray:
    """Return one score for two classes, the second's minus the first's, along the last axis; else the outputs."""
    two = is_classifier(fusion) and outputs.shape[-1] == 2
    return outputs[..., 1:] - outputs[..., :1] if two else outputs

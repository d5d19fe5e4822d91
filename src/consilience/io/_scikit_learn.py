"""Validation of scikit-learn's estimators that were read from a file.

Compiled loops of scikit-learn index arrays of a fitted state without checks: nodes of trees, support vectors, columns
of tokens and categories. Estimators of these kinds are trusted only together with the checks below. Others with such
loops are not trusted.
"""

import io
import json
import zipfile
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from ._class_names import schema_nodes
from ._consensus_states import Require

# compiled loops of these estimators and packages read arrays that are not checked
_UNCHECKED = ("GradientBoostingClassifier", "GradientBoostingRegressor", "IsolationForest")
_UNCHECKED_PACKAGES = ("sklearn.cluster.", "sklearn.neighbors.")

_HISTOGRAM = HistGradientBoostingClassifier, HistGradientBoostingRegressor


def check_scikit_learn(value: Any, require: Require) -> None:
    """Validate an object if it is a tree, or an estimator whose compiled loops index arrays of its state.

    Parameters
    ----------
    value : object
        Any part of a loaded model.
    require : callable
        Function that raises an error with a text unless its first argument is true.
    """
    if isinstance(value, Tree):
        _check_tree(value, require)
    elif isinstance(value, TreePredictor):
        _check_predictor(value, require)
    elif isinstance(value, BaseDecisionTree) and "tree_" in vars(value):
        fits = isinstance(value.tree_, Tree) and value.tree_.n_features == value.n_features_in_
        require(fits and value.tree_.n_outputs == value.n_outputs_, "columns of a tree")
    elif isinstance(value, BaseForest) and "estimators_" in vars(value):
        kinds = all(type(tree) is type(value.estimator) for tree in value.estimators_)
        require(value.estimators_ and kinds and isinstance(value.estimator, BaseDecisionTree), "trees of a forest")
        # predictions of a forest validate the samples once, and each tree reads them by its own columns
        widths = all(tree.n_features_in_ == value.n_features_in_ for tree in value.estimators_)
        require(widths and all("tree_" in vars(tree) for tree in value.estimators_), "columns of a forest")
    elif isinstance(value, _HISTOGRAM) and "_predictors" in vars(value):
        _check_boosting(value, require)
    elif isinstance(value, BaseLibSVM) and "support_" in vars(value):
        _check_support(value, require)
    elif isinstance(value, OneHotEncoder) and "categories_" in vars(value):
        _check_categories(value, require)
    elif isinstance(value, (CountVectorizer, DictVectorizer)) and "vocabulary_" in vars(value):
        columns = sorted(value.vocabulary_.values())
        require(columns == list(range(len(columns))), "columns of a vocabulary")
    require(not opens_files(value), "a vectorizer would open the files that the data name")


def opens_files(value: Any) -> bool:
    """Tell whether an object is a vectorizer that takes data as names of files."""
    return isinstance(value, (CountVectorizer, HashingVectorizer)) and value.input != "content"


def unchecked_estimators(packed: bytes) -> list[str]:
    """Return the full names of estimators in a payload of skops whose states are not checked."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        schema = json.loads(archive.read("schema.json"))
    named = [(str(node.get("__module__")), str(node.get("__class__"))) for node in schema_nodes(schema)]
    return sorted(
        f"{home}.{name}"
        for home, name in set(named)
        if (home.startswith("sklearn.") and name in _UNCHECKED) or home.startswith(_UNCHECKED_PACKAGES)
    )


def has_categories(value: Any) -> bool:
    """Tell whether an object is a boosted model of categories, which model files do not hold."""
    return isinstance(value, _HISTOGRAM) and getattr(value, "is_categorical_", None) is not None


def _check_tree(tree: Tree, require: Require) -> None:
    require(0 < tree.node_count <= tree.capacity, "nodes of a tree")  # before any array of nodes is read
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    inner = left != -1
    _check_children(left[inner], right[inner], np.flatnonzero(inner), tree.node_count, require)
    columns = feature[inner]
    require(not len(columns) or (columns.min() >= 0 and columns.max() < tree.n_features), "columns of a tree")


def _check_children(left: np.ndarray, right: np.ndarray, own: np.ndarray, n_nodes: int, require: Require) -> None:
    """Check that children exist and come after their parents, so that every path ends."""
    for children in (left.astype(np.int64), right.astype(np.int64)):
        require((children > own).all() and (children < n_nodes).all(), "children in a tree")


def _check_predictor(predictor: TreePredictor, require: Require) -> None:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = predictor.nodes
    kind = isinstance(nodes, np.ndarray) and nodes.dtype == PREDICTOR_RECORD_DTYPE and nodes.ndim == 1 and len(nodes)
    require(kind, "nodes of a tree")
    inner = nodes["is_leaf"] == 0
    own = np.flatnonzero(inner)
    _check_children(nodes["left"][inner], nodes["right"][inner], own, len(nodes), require)
    # category values index sets of bits
    require(not nodes["is_categorical"].any(), "categories in a tree, which model files do not hold")
    require(np.isin(nodes["is_leaf"], (0, 1)).all(), "leaves of a tree")
    for name in ("binned_left_cat_bitsets", "raw_left_cat_bitsets"):
        bits = getattr(predictor, name)
        require(isinstance(bits, np.ndarray) and bits.dtype == np.uint32 and bits.shape == (0, 8), "sets of categories")


def _check_boosting(model: Any, require: Require) -> None:
    n = model.n_features_in_
    require(type(n) is int and n > 0 and model._n_features == n, "columns of a boosted model")
    mapper = model._bin_mapper
    require("_in_fit" not in vars(model), "a boosted model that is being fitted")
    require(model.is_categorical_ is None and model._preprocessor is None, "categories of a boosted model")
    flags = mapper.is_categorical_
    require(isinstance(flags, np.ndarray) and flags.shape == (n,) and not flags.any(), "categories of a boosted model")
    require(len(mapper.bin_thresholds_) == n, "bins of a boosted model")
    for row in model._predictors:
        fits = isinstance(row, list) and len(row) == model.n_trees_per_iteration_
        require(fits and all(isinstance(tree, TreePredictor) for tree in row), "trees of a boosted model")
        for tree in row:
            columns = tree.nodes["feature_idx"][tree.nodes["is_leaf"] == 0].astype(np.int64)
            require((columns >= 0).all() and (columns < n).all(), "columns of a boosted model")


def _check_support(model: Any, require: Require) -> None:
    """Check a support vector machine: LIBSVM takes sizes of arrays from other arrays."""
    n, n_classes, what = len(model.support_), len(model._n_support), "support vectors of a machine"
    pairs = n_classes * (n_classes - 1) // 2
    counts = model.n_support_  # of regression, the first one
    require(n_classes > 1 and counts.min() >= 0 and counts.sum(dtype=np.int64) == n, what)
    coef = model._dual_coef_
    require(coef.shape == (n_classes - 1, n) and (not model._sparse or len(coef.data) == (n_classes - 1) * n), what)
    require(model._intercept_.shape == (pairs,), what)
    require({model._probA.shape, model._probB.shape} in ({(0,)}, {(pairs,)}), what)
    if model.kernel == "precomputed" or callable(model.kernel):
        require(not n or (model.support_.min() >= 0 and model.support_.max() < model.shape_fit_[0]), what)
    else:
        require(model.support_vectors_.shape == (n, model.n_features_in_), what)


def _check_categories(encoder: OneHotEncoder, require: Require) -> None:
    """Check that every category has a column of the encoder's output."""
    m, what = len(encoder.categories_), "categories of an encoder"
    rare = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else [None] * m
    dropped = [None] * m if encoder._drop_idx_after_grouping is None else encoder._drop_idx_after_grouping
    for values, places, drop, width in zip(encoder.categories_, rare, dropped, encoder._n_features_outs, strict=True):
        places = np.arange(len(values)) if places is None else places
        n = int(places.max()) + 1
        require(len(places) == len(values) and places.min() >= 0 and width == n - (drop is not None), what)
        require(drop is None or 0 <= drop < n, what)
        if values.dtype != object:  # places of numbers are searched
            require(np.array_equal(np.sort(values), values, equal_nan=values.dtype.kind == "f"), what)

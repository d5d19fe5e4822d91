"""Estimators that work on arrays of any library, and samples for them; the tests and `trust/devices.py` share them."""

import numpy as np
from sklearn.base import is_classifier

import consilience as cs
from consilience.kernels import RBF, ChiSquared, center, normalize

R, C = cs.CoRegularizedRidge, cs.CoRegularizedRidgeClassifier
RUNS = {
    "ridge": R(),
    "agreement": R(agreement_penalty=1e-3),
    "small agreement": R(agreement_penalty=1e-9),
    "graph": R(graph_penalty=1e-5),
    "normalized graph and agreement": R(graph_penalty=1e-5, graph="kernel_normalized", agreement_penalty=1e-3),
    "learned weights": R(view_weights="learned", agreement_penalty=1e-3, tol=1e-12),
    "published weights": R(
        view_weights="learned", weights_solver="alternating", validation_fraction=0.2, max_iter=20, random_state=0
    ),
    "output kernel": R(output_kernel=[[1.0, 0.5], [0.5, 1.0]], agreement_penalty=1e-3),
    "an output kernel of rank 0": R(output_kernel=[[0.0, 0.0], [0.0, 0.0]]),
    "several kernels": R({"a": ["rbf", "linear"], "b": ["rbf"]}, view_weights="learned", tol=1e-12),
    "singular kernels": R("linear", agreement_penalty=1e-3),
    "laplacian": R("laplacian"),
    "chi2": R(ChiSquared(0.3).mapped(abs)),
    "centered": R(center(normalize(RBF("median")))),
    "classes": C(agreement_penalty=1e-3, class_weight="balanced"),
    "leave-one-out": cs.CoRegularizedRidgeCV(agreement_penalties=[0, 1e-3]),
    "folds": cs.CoRegularizedRidgeClassifierCV(agreement_penalties=[0, 1e-3], cv=3),
    "metric": cs.ViewMetricRidge(),
    "metric of classes": cs.ViewMetricRidgeClassifier(),
    "shared metric": cs.ViewMetricRidge(shared_metric=True),
    "block-sparse metric": cs.ViewMetricRidge(metric="block_sparse"),
    "covariance": cs.ViewMetricRidge(metric="covariance"),
    "diagonal": cs.ViewMetricRidge(metric="diagonal"),
    "metric with learned weights": cs.ViewMetricRidge(view_weights="learned", tol=1e-12),
    "metric by leave-one-out": cs.ViewMetricRidgeCV(),
    "metric over features": cs.ViewMetricRidgeClassifierCV(n_components=20, random_state=0),
    "kernel weights": cs.MultipleKernelRidge(),
    "sparse kernel weights": cs.MultipleKernelRidgeClassifier(p=1),
    "automatic kernels": cs.MultipleKernelRidge("auto"),
    "kernel weights over features": cs.MultipleKernelRidge(n_components=20, random_state=0),
    "learned output kernel": cs.OutputKernelRidge(),
    "learned output kernel of classes": cs.OutputKernelRidgeClassifier(),
    "consensus": cs.ConsensusRegressor(),
    "consensus of classes": cs.ConsensusClassifier(class_weight="balanced"),
    "consensus of folds": cs.ConsensusClassifier(cv=4),
    "consensus over features": cs.ConsensusRegressor(n_components=20, shared_weights=False),
    "consensus of folds over features": cs.ConsensusClassifier(n_components=20, cv=4),
    "banded": cs.BandedRidgeCV(random_state=0),
    "banded linear": cs.BandedRidgeCV("linear", random_state=0),
}
MANY = ("output kernel", "an output kernel of rank 0", "shared metric", "learned output kernel", "consensus")


def draw_samples(seed=0, n=90):
    """Return two views of n samples, two outputs, three classes, weights, a mask, and who loses the label."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 3))
    views = {name: hidden @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d)) for name, d in (("a", 6), ("b", 4))}
    y = np.column_stack([np.sin(hidden[:, 0]), hidden[:, 1] ** 2])
    labels = np.where(hidden[:, 0] > 0.4, "high", np.where(hidden[:, 1] > 0, "middle", "low")).astype(object)
    mask = rng.random((n, 2)) > 0.2
    mask[~mask.any(axis=1), 0] = True
    return views, y, labels, rng.uniform(0.2, 2, size=n), mask, rng.random(n) < 0.3


def targets(name, samples, unlabeled=True):
    """Return the targets that an estimator of `RUNS` takes, some of them missing."""
    _, y, labels, _, _, hidden = samples
    found = labels.copy() if is_classifier(RUNS[name]) else y.copy() if name in MANY else y[:, 0].copy()
    if unlabeled:
        found[hidden] = None if is_classifier(RUNS[name]) else np.nan
    return found


def outputs(model, X):
    """Return scores of classes, or predictions."""
    return model.decision_function(X) if is_classifier(model) else model.predict(X)

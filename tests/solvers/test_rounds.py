"""How many rounds solvers take: a solver that corrects its own faults would only show them here."""

import numpy as np
import pytest
from sklearn.base import is_classifier

import consilience as cs

rng = np.random.default_rng(0)
LABELS = rng.integers(4, size=80)
A, B = rng.normal(size=(80, 6)) + 1.5 * np.eye(6)[LABELS], rng.normal(size=(80, 5)) - 1.2 * np.eye(5)[(LABELS + 1) % 4]
X = cs.Views({"a": A, "b": B, "c": rng.normal(size=(80, 4))})
Y = np.stack([np.sin(A[:, 0]) + B[:, 1], np.cos(B[:, 0]), A[:, 1] * B[:, 2]], axis=1) + 0.2 * rng.normal(size=(80, 3))
METRIC = {"kernel": "rbf", "alpha": 0.1, "metric_penalty": 0.5, "tol": 1e-8, "random_state": 0}
MACHINE = {"kernel": "rbf", "alpha": 1e-3, "tol": 1e-8, "random_state": 0}
# with one round more than is needed now, and a fifth more where they are many
CASES = {
    "one against the rest": (cs.CoRegularizedSVC(**MACHINE), 1),
    "one against the rest, small penalty": (cs.CoRegularizedSVC(**MACHINE | {"alpha": 1e-7}), 1),
    "simplex": (cs.CoRegularizedSVC(**MACHINE, class_vectors="simplex"), 3),
    "simplex, small penalty": (cs.CoRegularizedSVC(**MACHINE | {"alpha": 1e-7}, class_vectors="simplex"), 3),
    "machine, learned weights": (cs.CoRegularizedSVC(**MACHINE | {"tol": 1e-6}, view_weights="learned"), 8),
    "machine over features": (cs.CoRegularizedSVC(**MACHINE | {"tol": 1e-7}, n_components=30), 13),
    "ridge, learned weights": (cs.CoRegularizedRidge("rbf", alpha=1e-2, view_weights="learned", tol=1e-8), 8),
    "metric per output": (cs.ViewMetricRidge(**METRIC), 1),
    "shared metric": (cs.ViewMetricRidge(**METRIC, shared_metric=True), 4),
    "block-sparse metric": (cs.ViewMetricRidge(**METRIC, metric="block_sparse"), 5),
    "metric, learned weights": (cs.ViewMetricRidge(**METRIC | {"tol": 1e-7}, view_weights="learned"), 110),
    "multiple kernels": (cs.MultipleKernelRidge("rbf", tol=1e-8), 4),
    "multiple kernels, sparse": (cs.MultipleKernelRidge("rbf", p=1.0, tol=1e-8), 6),
    "output kernel": (cs.OutputKernelRidge("rbf", tol=1e-8), 4),
    "maximum margin": (cs.MaxMarginClassifier("rbf", C=1e3, tol=1e-8), 60),
    "maximum margin, intercept": (cs.MaxMarginClassifier("rbf", C=10, fit_intercept=True, tol=1e-8), 240),
    "maximum margin, outputs": (cs.MaxMarginRegressor("rbf", C=10, tol=1e-8), 60),
    "general machine": (cs.VectorValuedClassifier("rbf", loss="hinge", tol=1e-8), 3),
}


@pytest.mark.parametrize("case", CASES)
def test_solvers_end_soon(case):
    model, rounds = CASES[case]
    model.set_params(max_iter=2000).fit(X, LABELS if is_classifier(model) else Y)
    assert model.n_iter_ <= rounds

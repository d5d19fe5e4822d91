"""Budgets: the oldest samples are dropped exactly, also from norms and averages; defaults stay bounded."""

import warnings

import numpy as np
import pytest
from online_cases import features, in_chunks, kernel_blocks, one_by_one, same_state, stream, two_signs
from sklearn.base import clone

import consilience as cs
import reference
from consilience.kernels import RBF, Linear

pytestmark = pytest.mark.filterwarnings("ignore:The budget of")
FULL = "The budget of"
DUAL = 1.0 * Linear()  # not recognized as linear, so that samples are kept


def pair_features(X, kernel):
    """Samples as matrices of features with a column for each view, whose products are kernels between any two views."""
    there = np.concatenate([X.present(name) for name in X.names])
    Z = features(kernel(np.nan_to_num(np.vstack([X[name] for name in X.names])))) * there[:, None]
    return Z.reshape(len(X.names), len(X), -1).transpose(1, 2, 0)


def with_one(kernel):
    return lambda A: kernel(A) + 1


# an estimator with a budget of 9, its samples as matrices of features, exponent and prior norms of its factors, margin
BUDGETS = {
    "orthogonal": (
        cs.OrthogonalPerceptron(RBF(0.2), p=2.5, budget=9, fit_intercept=False),
        lambda X: kernel_blocks(X, RBF(0.2)), (2.5, None), 0.0,
    ),
    "orthogonal, prior norms": (
        cs.OrthogonalPerceptron(RBF(0.2), p=3, prior_norms={"v0": 2.0, "v1": 0.5}, budget=9, margin=0.3),
        lambda X: kernel_blocks(X, with_one(RBF(0.2))), (3, [2.0, 0.5]), 0.3,
    ),
    "matrix": (
        cs.MatrixPerceptron(RBF(0.2), p=2, budget=9), lambda X: pair_features(X, with_one(RBF(0.2))), (2, None), 0.0,
    ),
    "matrix, products": (
        cs.MatrixPerceptron(DUAL, p=3, budget=9, fit_intercept=False), lambda X: pair_features(X, Linear()), (3, None),
        0.2,
    ),
}  # fmt: skip
BUDGETS["matrix, products"][0].set_params(margin=0.2)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_equals_its_twin(name, missing, n_classes):
    estimator, made, link, margin = BUDGETS[name]
    X, y = stream(3, n=90, n_classes=n_classes, missing=missing)
    rows = made(X)
    wrong, kept, hypotheses = reference.budgeted(rows, y, n_classes, reference.matrix_link(*link), margin, 9)
    last = np.array([[np.sum(w * x) for w in hypotheses[-1][1]] for x in rows])
    mean = np.zeros_like(hypotheses[0][0])
    for h, (V, W) in enumerate(hypotheses[:-1]):  # what is left of each hypothesis, with its factors
        for t in range(len(V)):
            left = sum((a[t] * rows[s] for s, a in kept.items() if s < h), 0 * V[t])
            mean[t] += left @ np.linalg.pinv(V[t], rcond=1e-9) @ W[t] / len(y)
    means = np.array([[np.sum(w * x) for w in mean] for x in rows])
    for average, expected in ((False, last), (True, means)):
        for size in (1, 7, len(y)):
            model = in_chunks(clone(estimator).set_params(average=average), X, y, size, range(n_classes))
            np.testing.assert_array_equal(model.support_, list(kept))
            assert model.n_mistakes_ == wrong.sum()
            assert model.n_dropped_ == model.n_updates_ - 9
            np.testing.assert_allclose(model.decision_function(X), two_signs(expected), atol=1e-8)
    V = hypotheses[-1][0]  # the norms follow exactly
    norms = np.array([(v.T @ v).ravel() if "matrix" in name else (v**2).sum(axis=0) for v in V]).T
    np.testing.assert_allclose(model._machine.factors.norms, norms, atol=1e-9)

"""MLKR: the objective is that of a double loop, and its gradient that of finite differences."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from consilience.experiments._mlkr import kernel_regression, loss_and_slope, mlkr


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 3))
    return rng.normal(size=(3, 3)), X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=25)


def literal_loss(L, X, y):
    total = 0.0
    for i in range(len(y)):
        weights = [0.0 if j == i else np.exp(-np.sum((L @ (X[i] - X[j])) ** 2)) for j in range(len(y))]
        total += (np.dot(weights, y) / np.sum(weights) - y[i]) ** 2
    return total


def test_loss_is_that_of_a_double_loop(data):
    L, X, y = data
    assert loss_and_slope(L, X, y)[0] == pytest.approx(literal_loss(L, X, y), rel=1e-10)


def test_slope_is_that_of_finite_differences(data):
    L, X, y = data
    shape = L.shape
    error = check_grad(
        lambda entries: loss_and_slope(entries.reshape(shape), X, y)[0],
        lambda entries: loss_and_slope(entries.reshape(shape), X, y)[1].ravel(),
        L.ravel(),
    )
    assert error < 1e-5 * np.linalg.norm(loss_and_slope(L, X, y)[1])


def test_learned_map_uses_the_column_that_matters(data):
    _, X, y = data
    L = mlkr(X, y, max_iter=50)
    assert literal_loss(L, X, y) < 0.5 * literal_loss(np.eye(3), X, y)
    sizes = np.linalg.norm(L, axis=0)
    assert sizes[0] > 2 * sizes[1:].max()


def test_predictions_are_weighted_means(data):
    L, X, y = data
    x = np.array([0.3, -0.2, 0.5])
    weights = [np.exp(-np.sum((L @ (x - row)) ** 2)) for row in X]
    assert kernel_regression(L, X, y, x[None])[0] == pytest.approx(np.dot(weights, y) / np.sum(weights))

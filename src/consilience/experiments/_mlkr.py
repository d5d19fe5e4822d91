"""Metric learning for kernel regression (Weinberger and Tesauro 2007), a comparison method of Huusari et al. (2018).

A linear map L makes the leave-one-out error of kernel regression small, with weights exp(-‖L(x_i - x_j)‖²).
"""

import numpy as np
from scipy.optimize import minimize

from ..kernels._distances import squared_distances


def mlkr(X: np.ndarray, y: np.ndarray, max_iter: int) -> np.ndarray:
    """Return the map L of shape (n_features, n_features) that the steps of L-BFGS from the identity reach."""
    n_features = X.shape[1]

    def value(entries: np.ndarray) -> tuple[float, np.ndarray]:
        loss, slope = loss_and_slope(entries.reshape(n_features, n_features), X, y)
        return loss, slope.ravel()

    start = np.eye(n_features).ravel()
    found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return np.asarray(found.x).reshape(n_features, n_features)


def loss_and_slope(L: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return Σ_i (ŷ_i - y_i)² and its gradient in L, where ŷ_i is the weighted mean of all other targets."""
    distances = squared_distances(X @ L.T)
    np.fill_diagonal(distances, np.inf)
    P = _weights(distances)
    predicted = P @ y
    errors = predicted - y
    W = 2 * errors[:, None] * P * (predicted[:, None] - y)  # derivative in the squared distance of i and j
    W += W.T
    # squared distances are (x_i - x_j)'L'L(x_i - x_j)
    return float(errors @ errors), 2 * L @ (X.T @ (W.sum(axis=1)[:, None] * X - W @ X))


def kernel_regression(L: np.ndarray, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Return the weighted means of the targets of training rows, for test rows."""
    return _weights(squared_distances(X_test @ L.T, X @ L.T)) @ y


def _weights(distances: np.ndarray) -> np.ndarray:
    weights = np.exp(distances.min(axis=1, keepdims=True) - distances)
    return weights / weights.sum(axis=1, keepdims=True)

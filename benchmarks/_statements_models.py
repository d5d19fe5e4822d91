"""Models and made data of statements.py: a fast classifier, models with a known truth, views of equal value."""

import numpy as np
from scipy.stats import norm
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

MANY = 200_000  # samples for the truth of a known model


class Plane(ClassifierMixin, BaseEstimator):
    """Ridge regression of ±1 on some columns, in few lines: a fast classifier for many repeats."""

    def __init__(self, start: int = 0, stop: int | None = None, balanced: bool = False):
        self.start, self.stop, self.balanced = start, stop, balanced

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Plane":
        """Fit the plane; `balanced` gives both classes the same weight."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        A = np.asarray(X)[:, self.start : self.stop]
        weights = 1 / np.bincount(codes)[codes] if self.balanced else np.full(len(A), 1 / len(A))
        self.center_ = weights @ A / weights.sum()
        target = 2.0 * codes - 1
        self.mean_ = float(weights @ target / weights.sum())
        Z = (A - self.center_) * np.sqrt(len(A) * weights / weights.sum())[:, None]
        target = (target - self.mean_) * np.sqrt(len(A) * weights / weights.sum())
        dual = np.linalg.solve(Z @ Z.T + 10 * np.eye(len(Z)), target) if Z.shape[1] > len(Z) else None
        own = np.linalg.solve(Z.T @ Z + 10 * np.eye(Z.shape[1]), Z.T @ target) if dual is None else Z.T @ dual
        self.direction_ = own
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Distance from the plane, up to its scale."""
        return (np.asarray(X)[:, self.start : self.stop] - self.center_) @ self.direction_ + self.mean_

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Side of the plane."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def tables(rng: np.random.Generator, y: np.ndarray, columns: int, views: int, correlation: float) -> np.ndarray:
    """Views of equal value side by side: the same signal, noise that they share in part."""
    shift = np.full(columns, 0.75 / np.sqrt(columns))
    common = rng.normal(size=(len(y), columns))
    noise = [np.sqrt(1 - correlation) * rng.normal(size=common.shape) for _ in range(views)]
    return np.hstack([own + np.sqrt(correlation) * common + np.outer(2 * y - 1, shift) for own in noise])


class Known(ClassifierMixin, BaseEstimator):
    """The true probabilities of two normal classes at -d and d, the second of share `rare`."""

    def __init__(self, d: float = 1.0, rare: float = 0.35):
        self.d, self.rare, self.classes_ = d, rare, np.array([0, 1])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """The true probabilities."""
        odds = np.exp(2 * self.d * X[:, 0]) * self.rare / (1 - self.rare)
        return np.column_stack([1 / (1 + odds), odds / (1 + odds)])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The side of 0."""
        return (X[:, 0] > 0).astype(int)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples and their targets."""
        y = (rng.random(n) < self.rare).astype(int)
        return (rng.normal(size=n) + self.d * (2 * y - 1))[:, None], y


class Line(RegressorMixin, BaseEstimator):
    """Predicts the first column; the target has other errors, with few degrees of freedom also large ones."""

    def __init__(self, freedom: float = 100.0):
        self.freedom = freedom

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The first column."""
        return X[:, 0]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples and their targets."""
        x = rng.normal(size=n)
        return x[:, None], x + rng.standard_t(self.freedom, size=n)


def truths_of(model: Known | Line) -> dict[str, float]:
    """The measures of a model on many samples, by scikit-learn."""
    X, y = model.draw(np.random.default_rng(10**6), MANY)
    predicted = model.predict(X)
    if isinstance(model, Line):
        square = metrics.mean_squared_error(y, predicted)
        found = {"R2": metrics.r2_score(y, predicted), "root mean squared error": np.sqrt(square)}
        return {**found, "mean absolute error": metrics.mean_absolute_error(y, predicted)}
    shares = model.predict_proba(X)[:, 1]
    return {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced accuracy": metrics.balanced_accuracy_score(y, predicted),
        "F1": metrics.f1_score(y, predicted, average="macro"),
        "AUC": metrics.roc_auc_score(y, shares),
        "log loss": metrics.log_loss(y, shares),
        "Brier score": metrics.brier_score_loss(y, shares),
        "sensitivity of class 1": float(norm.cdf(model.d)),
        "PPV of class 1": metrics.precision_score(y, predicted),
    }

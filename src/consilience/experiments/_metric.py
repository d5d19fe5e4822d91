"""Methods of Huusari, Kadri and Capponi (2018) with the choice of their penalties, for several experiments."""

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.utils import check_random_state

from ..batch.metric_cv import ViewMetricRidgeClassifierCV, ViewMetricRidgeCV
from ..batch.multiple_kernel import MultipleKernelRidge, MultipleKernelRidgeClassifier, OutputKernelRidgeClassifier
from ..kernels.features import Nystroem
from ..views.container import Views

PAPER = "Huusari, Kadri and Capponi (2018)"
ALPHAS = 10.0 ** np.arange(-8, 2)  # λ of the paper
PENALTIES = 10.0 ** np.arange(-3, 3)  # η of Table 1
METRICS = {"MVML": "learned", "MVMLsparse": "block_sparse", "MVML_Cov": "covariance", "MVML_I": "diagonal"}


def tuned(
    method: str, kernels: Any, level: float | None, draw: int, *, penalties: Any = PENALTIES, regression: bool = False
) -> Any:
    """Return a method on Nyström features, with the choice of λ and η on training rows."""
    given: dict[str, Any] = {"kernel": kernels, "n_components": level, "random_state": draw}
    if method in METRICS:
        kind: Any = ViewMetricRidgeCV if regression else ViewMetricRidgeClassifierCV
        own = penalties if METRICS[method] in ("learned", "block_sparse") else (1.0,)  # other metrics have no η
        return kind(metric=METRICS[method], alphas=ALPHAS, metric_penalties=own, **given)
    if method == "lpMKL":
        kind = MultipleKernelRidge if regression else MultipleKernelRidgeClassifier
        return GridSearchCV(kind(p=2, **given), {"alpha": ALPHAS}, cv=5)
    return GridSearchCV(OutputKernelRidgeClassifier(**given), {"alpha": ALPHAS}, cv=5)


def nystroem_features(X: Views, X_test: Views, kernels: Any, level: float, draw: int) -> tuple[Views, Views, Any]:
    """Return features of training and test rows with the same landmarks in all views, and the landmarks' rows."""
    seed = check_random_state(draw).randint(2**31)  # as in estimators, so that all methods have the same landmarks
    features = Nystroem(kernels, n_components=level, shared=True, random_state=seed).fit(X)
    return features.transform(X), features.transform(X_test), features.landmark_indices_[X.names[0]]


def wide(X: Views) -> np.ndarray:
    """Return the columns of all views in one array."""
    return np.hstack([X[name] for name in X.names])

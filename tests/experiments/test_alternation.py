"""The published iteration in the experiment is that of the estimator, with the same landmarks."""

import numpy as np
import pytest

from consilience import ViewMetricRidgeClassifier
from consilience.datasets import make_views
from consilience.experiments._metric import nystroem_features
from consilience.experiments.alternation import outputs_after
from consilience.kernels import RBF


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("step", [None, 0.05])
def test_rounds_are_those_of_the_estimator(step):
    X, y = make_views(80, n_classes=3, random_state=0)
    X, y, X_test = X[:60], y[:60], X[60:]
    kernels = {name: RBF(0.1) for name in X.names}
    model = ViewMetricRidgeClassifier(
        kernels, solver="alternating", alpha=0.1, metric_penalty=2.0, max_iter=3, tol=1e-12,
        step_size=None if step is None else step / 2.0, n_components=0.2, random_state=5,
    ).fit(X, y)  # fmt: skip
    Z, Z_test, landmarks = nystroem_features(X, X_test, kernels, 0.2, 5)
    assert len(landmarks) == 12
    Y = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    outputs = outputs_after(Z, Y, Z_test, (0.1, 2.0), 3, step)
    np.testing.assert_allclose(outputs, model.decision_function(X_test), rtol=1e-7, atol=1e-9)
    assert np.abs(outputs - outputs_after(Z, Y, Z_test, (0.1, 2.0), 1, step)).max() > 1e-4

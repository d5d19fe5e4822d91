import numpy as np
import pytest

from consilience import CoRegularizedRidgeClassifier, Views
from consilience.experiments._flower17 import Flowers, draw_labels, percent_right
from consilience.experiments.flower17_weights import alternation
from consilience.kernels import RBF
from consilience.solvers.coregularized import Penalties
from consilience.solvers.sphere import sphere_least_squares


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    grams = {name: RBF(0.3)(np.eye(3)[y] + rng.normal(size=(60, 3))) for name in "abc"}
    order = rng.permutation(60)
    return Flowers(Views(grams, precomputed=True), y, order[:30], order[30:45], order[45:])


def test_alternation_is_that_of_the_estimator(data):
    labeled = draw_labels(data.y, data.train, 5, 0)
    penalties = Penalties(1e-3, 1e-4, 1e-4)
    visited, right = alternation(data, labeled, penalties, 2, 3, np.random.default_rng(1))
    assert visited.shape == (6, 3)
    np.testing.assert_allclose(np.linalg.norm(visited, axis=1), 1)
    Y = np.where(data.y[labeled][:, None] == np.arange(3), 1.0, -1.0)
    for k, c in enumerate(visited):
        model = CoRegularizedRidgeClassifier(
            "precomputed", alpha=1e-3, agreement_penalty=1e-4, graph_penalty=1e-4, view_weights=c
        )
        score = percent_right(model, data.K, data.y, labeled, np.arange(0), data.validation)
        assert score == pytest.approx(100 * right[k] / 15)
        if k < 4:  # the same start one step later
            views = np.moveaxis(model.view_decision_function(data.K[labeled]), 1, -1).reshape(-1, 3)
            np.testing.assert_allclose(visited[k + 2], sphere_least_squares(views, Y.ravel(), 1.0), atol=1e-6)


def test_larger_draws_contain_smaller_ones(data):
    small, large = (draw_labels(data.y, data.train, n, 4) for n in (2, 6))
    assert set(small) < set(large) <= set(data.train)
    assert (np.bincount(data.y[small]) == 2).all()


def test_unlabeled_rows_have_no_labels(data):
    labeled = draw_labels(data.y, data.train, 4, 0)
    unlabeled = np.setdiff1d(data.train, labeled)
    wrong = data.y.copy()
    wrong[unlabeled] = (wrong[unlabeled] + 1) % 3
    outputs = []
    for y in (data.y, wrong):
        for known, unknown in ((labeled, unlabeled), (data.train, np.arange(0))):
            model = CoRegularizedRidgeClassifier("precomputed", agreement_penalty=1e-3)
            percent_right(model, data.K, y, known, unknown, data.test)
            outputs.append(model.decision_function(data.K[data.test]))
    np.testing.assert_array_equal(outputs[0], outputs[2])
    assert np.abs(outputs[1] - outputs[3]).max() > 0.1
